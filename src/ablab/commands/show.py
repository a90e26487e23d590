"""The `show` command: one run, what it is, has, and rests on."""

from collections.abc import Iterator, Sequence

from ablab.api import open as open_store
from ablab.api.card import ShownRun, card
from ablab.commands.options import ShowOptions
from ablab.errors import DONE
from ablab.tasks.registry import task_named
from ablab.tasks.score import Score, Scores
from ablab.tasks.task import written
from ablab.tasks.verbs import read_words, say_json
from ablab.text import duration, how_many, program
from ablab.tracking.console import Console


def show(arguments: Sequence[str]) -> int:
    """Show a run."""
    options = read_words(ShowOptions, arguments)
    run = open_store(options.outputs).run(options.run)
    told = card(run)
    if options.format == "json":
        say_json(told)
        return DONE
    console = Console()
    for key, value in _lines(told, run.measured):
        console.say(f"{key:<12}{value}".rstrip())
    if told.state in ("finished", "diverged"):
        console.say(f"Next: {program('verify')} run={told.id}")
    console.say(f"Results: {told.folder}")
    return DONE


def _lines(told: ShownRun, measured: Scores) -> Iterator[tuple[str, str]]:
    yield "run", f"{told.id}  {told.name}"
    yield "state", told.state + ("" if told.reason in (None, "steps") else f": {told.reason}")
    if told.damage is not None:
        yield "damage", told.damage
    if told.failure is not None and told.state == "failed":
        yield "failure", f"{told.failure.kind}: {told.failure.line}"
    if told.study is not None:
        yield "planned as", f"{told.arm} of {told.study}"
    if told.ended is not None:
        words = [f"{key}={value}" for key, value in told.differs.items()]
        yield from _listed("differs by", words or ["nothing: the defaults"])
    if told.origin is not None:
        yield "began from", f"weights {told.origin}"
    if told.seconds is not None:
        chosen = told.selected_steps or ()
        steps = f"selected step{'s' * (len(chosen) > 1)}: {', '.join(f'{step:,}' for step in chosen) or 'none'}"
        size = f"{told.parameters:,} parameters, " if told.parameters else ""  # a command has none
        yield "training", f"{duration(told.seconds)}, {size}{steps}"
        yield "ended", told.ended or ""
    if told.ceiling is not None:
        watched = task_named(told.task).watched
        yield "ceiling", f"{watched.title} {told.ceiling:.2f}, of the references put through the tokenizer"
    yield from _listed("scores", [_in_words(measured[name], value) for name, value in told.scores.items()])
    yield from _what_it_has(told)
    yield from _stretches(told)
    if told.ended is not None:
        yield "custody", told.custody or "every digest is the one on record"


def _in_words(score: Score, value: float) -> str:
    unit = "" if score.title.endswith(score.unit) else f" {score.unit}"
    return f"{score.title} {value:,.{score.digits}f}{unit}"


def _what_it_has(told: ShownRun) -> Iterator[tuple[str, str]]:
    for one in told.evaluations:
        search = "".join(f", {key}={value}" for key, value in one.decoding.items())
        unit = "sentences" if one.decoding else "items"
        primary = task_named(told.task).scores.get(task_named(told.task).primary)
        score = f": {written(primary, one.scores[primary.key])}" if primary and primary.key in one.scores else ""
        yield "evaluation", f"{one.id}  {one.test_set} ({one.sentences:,} {unit}){search}{score}"
    for each in told.curves:
        yield "curve", f"{each.id}  {each.label}, {each.models} models on {each.test_set}"
    yield from _listed("pruned", told.pruned)
    yield from _listed("exports", told.exports)
    yield from _listed("analyses", told.artefacts)
    if told.wandb is not None:
        yield "W&B", "all events are sent" if told.wandb else f"has events to send ({program('sync')})"
    yield "on disk", size_of(told.bytes)


def _stretches(told: ShownRun) -> Iterator[tuple[str, str]]:
    for number, one in enumerate(told.stretches, 1):
        steps = f"steps {one.first_step:,} to {one.last_step:,}"
        yield (
            f"stretch {number}",
            f"{steps}, {one.device}, {how_many(one.threads, 'thread')}, code {one.code}",
        )
    if told.mixed is not None:
        yield "mixed", f"{told.mixed} changed between stretches"


def _listed(key: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield words on as many lines as they need, the key before the first."""
    line: list[str] = []
    for word in words:
        if line and len(", ".join([*line, word])) > 100:
            yield key, f"{', '.join(line)},"
            key, line = "", []
        line.append(word)
    if line:
        yield key, ", ".join(line)


def size_of(count: int) -> str:
    """Format bytes as `12.3 MB`."""
    value, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
