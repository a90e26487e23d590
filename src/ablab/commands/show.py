"""The `show` command: one run, what it is, has, and rests on."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from ablab.api import open as open_store
from ablab.api.run import Run
from ablab.commands.options import ShowOptions
from ablab.errors import DONE, UserError, is_installed
from ablab.files import size
from ablab.judge.custody import links
from ablab.store.chain import Chain
from ablab.store.failures import Failure
from ablab.store.finished import find_run
from ablab.store.records import Stretch, Strict, ToldCost
from ablab.store.spent import read_spent
from ablab.tasks.identity import parts_of
from ablab.tasks.registry import task_named
from ablab.tasks.score import Score, Scores
from ablab.tasks.task import written
from ablab.tasks.verbs import read_words, say_json
from ablab.text import duration, how_many, in_store, program, size_of
from ablab.tracking.console import Console
from ablab.tracking.sender import is_sent


class Judged(Strict):
    """An evaluation of the whole model."""

    id: str
    test_set: str
    sentences: int
    scores: dict[str, float]
    decoding: dict[str, Any]
    ended: str


class Measured(Strict):
    """A pruning curve: its strategy, and the number of its models."""

    id: str
    label: str
    test_set: str
    models: int
    ended: str


class ShownRun(Strict):
    """A run. `differs`: groups and fields that are not the defaults. `selected_steps`: of the selected weights.
    `ceiling`: the validation score that a perfect model could reach with the run's tokenizer; older runs have none.

    `spent`: seconds of each part of the run, those of all processes; None for a run of before there were accounts.
    `origin`: digest of the weights that training began from. `artefacts`, `pruned`, `exports`: names. `wandb`: whether
    its events are all sent; None where nothing was logged. `bytes`: on disk. `seconds`: of training. `told_cost`:
    what a command says of its own. `mixed`: what changed between stretches. `custody`: the first broken link from the
    register to the bytes; None if all hold.
    """

    id: str
    name: str
    task: str
    state: str
    folder: str
    study: str | None
    arm: str | None
    damage: str | None = None
    failure: Failure | None = None
    seed: int | None = None
    condition: str | None = None
    differs: dict[str, str] = Field(default_factory=dict)
    origin: str | None = None
    reason: str | None = None
    ended: str | None = None
    seconds: float | None = None
    told_cost: ToldCost | None = None
    spent: dict[str, float] | None = None
    parameters: int | None = None
    selected_steps: list[int] = Field(default_factory=list)
    ceiling: float | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    evaluations: list[Judged] = Field(default_factory=list)
    curves: list[Measured] = Field(default_factory=list)
    artefacts: list[str] = Field(default_factory=list)
    pruned: list[str] = Field(default_factory=list)
    exports: list[str] = Field(default_factory=list)
    wandb: bool | None = None
    bytes: int = 0
    stretches: list[Stretch] = Field(default_factory=list)
    mixed: str | None = None
    commit: str | None = None
    custody: str | None = None


def card(run: Run) -> ShownRun:
    """Describe a run, damaged or not."""
    study, arm = run.arm[:2] if run.arm else (None, None)
    what: dict[str, Any] = {
        "id": run.id,
        "name": run.name,
        "task": run.task,
        "state": run.state,
        "folder": str(run.path),
        "study": study,
        "arm": arm,
        "damage": run.damage,
        "failure": run.failure,
        "bytes": size(run.path),
        "artefacts": sorted(path.stem for path in run.folder.artefacts.glob("[!.]*.json")),
        "pruned": _folders(run.folder.pruned),
        "exports": _folders(run.path / "exports"),
        "wandb": is_sent(run.path),
    }
    if run.damage is None:
        what |= {"seed": run.seed, "differs": differs(run)}
        try:
            what["origin"] = run.recipe.get("init_from")
            what["spent"] = read_spent(run.folder.spent)
            what |= _trained(run) if run.record is not None else {}
        except UserError as error:
            what["damage"] = str(error)
    return ShownRun(**what)


def differs(run: Run) -> dict[str, str]:
    """Return the words by which a run that has ended differs from the defaults, the seed apart."""
    if run.record is None:
        return {}
    words = parts_of(run.record.name)[:-1]  # the seed is last
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def _trained(run: Run) -> dict[str, Any]:
    record = run.record
    assert record is not None
    whole = [one for one in run.evaluations if "kept" not in one.settings]
    return {
        "condition": record.condition_id,
        "reason": record.reason,
        "ended": record.ended,
        "seconds": record.cost.seconds,
        "told_cost": record.cost.told,
        "parameters": record.cost.parameters,
        "selected_steps": [] if record.selected is None else record.selected.steps,
        "ceiling": record.data.get("ceiling", {}).get("through"),
        "scores": run.scores,
        "evaluations": [
            Judged(
                id=one.evaluation_id,
                test_set=one.test_name,
                sentences=one.sentences,
                scores=one.scores,
                decoding=one.settings.get("decoding", {}),
                ended=one.ended,
            )
            for one in whole
        ],
        "curves": [
            Measured(id=one.curve_id, label=one.label, test_set=one.test_name, models=len(one.points), ended=one.ended)
            for one in run.curves
        ],
        "stretches": record.stretches,
        "mixed": record.mixed,
        "commit": record.provenance.get("commit"),
        "custody": _custody(run),
    }


def _custody(run: Run) -> str | None:
    """Return the first broken link; scores are not computed again."""
    found = (f"{link.file} {link.fault}" for link in links(run.folder, Chain.of(run.folder.outputs)) if link.fault)
    return next(found, None)


def _folders(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir() if each.is_dir()) if path.is_dir() else []


def show(arguments: Sequence[str]) -> int:
    """Show a run."""
    options = read_words(ShowOptions, arguments)
    folder = find_run(options.run, Path(options.outputs))
    run = Run(folder, open_store(folder.outputs).arms().get(folder.run_id))
    told = card(run)
    if options.format == "json":
        say_json(told)
        return DONE
    console = Console()
    for key, value in _lines(told, run.measured):
        console.say(f"{key:<12}{value}".rstrip())
    if told.state in ("finished", "diverged"):
        is_there = folder.path.resolve() == (Path(options.outputs) / "runs" / told.id).resolve()
        named = told.id if is_there else shlex.quote(str(folder.path))
        console.say(f"Next: {program('verify')} run={named}{in_store(options.outputs)}")
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
        size = f"{told.parameters:,} parameters, " if told.parameters else ""  # some tasks count none
        yield "training", f"{duration(told.seconds)}, {size}{steps}"
        if told.told_cost is not None:
            yield "as it says", _cost_in_words(told.told_cost)
        if told.spent is not None:
            yield "time", _time_in_words(told.spent)
        yield "ended", told.ended or ""
    if told.ceiling is not None:
        watched = task_named(told.task).watched
        yield "ceiling", f"{watched.title} {told.ceiling:.2f}, of the references put through the tokenizer"
    yield from _listed("scores", [_in_words(measured[name], value) for name, value in told.scores.items()])
    yield from _what_it_has(told)
    yield from _stretches(told)
    if told.ended is not None:
        yield "custody", told.custody or "every digest is the one on record"


def _cost_in_words(cost: ToldCost) -> str:
    words = [
        None if cost.seconds is None else duration(cost.seconds),
        None if cost.tokens is None else how_many(cost.tokens, "token"),
        None if cost.memory is None else f"{size_of(cost.memory)} of memory",
        None if cost.devices is None else how_many(cost.devices, "device"),
    ]
    return ", ".join(word for word in words if word is not None) or "nothing"


def _time_in_words(spent: Mapping[str, float]) -> str:
    """Return the parts that took a tenth of a second or more, and all of them relative to the steps of training."""
    told = {part: f"{each:.1f} s" if each < 10 else duration(each) for part, each in spent.items() if each >= 0.1}
    parts = [f"{part} {each}" for part, each in told.items()]
    ratio = f"; {sum(spent.values()) / spent['train']:.2f} times the steps" if spent["train"] else ""
    return f"{', '.join(parts)}{ratio}"


def _in_words(score: Score, value: float) -> str:
    unit = "" if score.title.endswith(score.unit) else f" {score.unit}"
    return f"{score.title} {value:,.{score.digits}f}{unit}"


def _what_it_has(told: ShownRun) -> Iterator[tuple[str, str]]:
    for one in told.evaluations:
        search = "".join(f", {key}={value}" for key, value in one.decoding.items())
        task = task_named(told.task)
        primary = task.scores.get(task.primary)
        score = f": {written(primary, one.scores[primary.key])}" if primary and primary.key in one.scores else ""
        yield "evaluation", f"{one.id}  {one.test_set} ({one.sentences:,} {task.nouns.items}){search}{score}"
    for each in told.curves:
        yield "curve", f"{each.id}  {each.label}, {each.models} models on {each.test_set}"
    yield from _listed("pruned", told.pruned)
    yield from _listed("exports", told.exports)
    yield from _listed("artefacts", told.artefacts)
    if told.wandb is not None and is_installed("wandb"):
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
