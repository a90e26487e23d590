"""What a loop says: the answer to a proposal, its ledger, and the page of its confirmation."""

from collections.abc import Iterator, Mapping, Sequence
from math import floor, log10
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from ablab.files import write_json, write_text
from ablab.judge.loop import Left, outcome_line
from ablab.judge.metrics import Measure
from ablab.report.drawing import intervals
from ablab.report.page import rendered
from ablab.report.text import escaped, grid, one_line
from ablab.store.records import Strict
from ablab.study.loop import Book, Confirmed, Contrasted, LoopFile, Outcome, Proposal
from ablab.text import aligned, digits_apart, how_many, in_store, p_text, program


class Answer(Strict):
    """What became of a proposal. `known`: it had been judged before. Differences are those from the floor's stack.

    `interval`: of 95 % for the difference. `p`: one-sided, at the last look. `runs`: that it took.
    """

    loop: str
    number: int
    change: list[str]
    because: str
    outcome: Outcome
    known: bool
    why: str
    metric: str
    difference: float | None
    interval: tuple[float, float] | None
    p: float | None
    runs: int
    stack: list[list[str]]
    left: Left


class LoopState(Strict):
    """A loop: its ledger and what is left. `floor`: scores of the present floor."""

    loop: str
    question: str
    metric: str
    stack: list[list[str]]
    floor: list[float]
    proposals: list[Proposal]
    confirmed: list[Confirmed]
    left: Left


class ConfirmedLoop(Strict):
    """A confirmation: each comparison, the changes that stand, and those whose place a later one has taken."""

    loop: str
    metric: str
    seeds: list[int]
    contrasts: list[Contrasted]
    stands: list[str]
    idle: list[str]
    page: str


def answer(file: LoopFile, book: Book, proposal: Proposal, left: Left, *, known: bool) -> Answer:
    """Return the answer to a proposal as data."""
    last = proposal.looks[-1] if proposal.looks else None
    return Answer(
        loop=file.name,
        number=proposal.number,
        change=proposal.words,
        because=proposal.because,
        outcome=proposal.outcome,
        known=known,
        why=proposal.why,
        metric=file.loop.metric,
        difference=None if last is None else last.estimate,
        interval=None if last is None else (last.low, last.high),
        p=None if last is None else last.p,
        runs=len(proposal.seeds),
        stack=book.changes(book.stack),
        left=left,
    )


def answer_lines(
    file: LoopFile, book: Book, proposal: Proposal, measure: Measure, left: Left, outputs: Path, *, known: bool
) -> Iterator[str]:
    """Yield the answer to a proposal, and what can be done next."""
    where = f"{file.typed}{in_store(outputs)}"
    before = (
        f", as on {proposal.at[:10]}: nothing was run" if known else f" after {how_many(len(proposal.seeds), 'run')}"
    )
    yield f"{proposal.number}  {' '.join(proposal.words)}: {outcome_line(proposal, file.loop, measure, book.floors)}"
    yield f"   because {proposal.because}{before}"
    yield f"Stack: {_stack(book)}; left: {left_words(left)}"
    yield f"Next: {program('try')}{where} 'key=value' because='...', or {program('confirm')}{where}"


def left_words(left: Left) -> str:
    """Return what is left of a budget in words."""
    parts = [how_many(left.proposals, "proposal")]
    parts += [] if left.runs is None else [how_many(left.runs, "run")]
    parts += [] if left.hours is None else [f"{left.hours:.1f} hours"]
    return ", ".join(parts)


def _stack(book: Book) -> str:
    return " + ".join(" ".join(words) for words in book.changes(book.stack)) or "no change was kept"


def state_of(file: LoopFile, book: Book, floor: Sequence[float], left: Left) -> LoopState:
    """Return a loop as data. `floor`: scores of the present floor, as far as its runs have ended."""
    return LoopState(
        loop=file.name,
        question=file.loop.question,
        metric=file.loop.metric,
        stack=book.changes(book.stack),
        floor=list(floor),
        proposals=book.proposals,
        confirmed=book.confirmed,
        left=left,
    )


def floor_line(scores: Sequence[float], measure: Measure, file: LoopFile, outputs: Path) -> str:
    """Return mean and noise of a floor."""
    if len(scores) < 2:
        line = f"{program('floor')}{file.typed}{in_store(outputs)}"
        return f"Floor: {how_many(len(scores), 'run')} so far; {line} trains it"
    mean, sd = fmean(scores), stdev(scores)
    digits = max(measure.digits, 1 - floor(log10(sd))) if sd else measure.digits
    return f"Floor: {measure.title} {mean:.{digits}f} ± {sd:.{digits}f} over {len(scores)} seeds"


def state_lines(state: LoopState, file: LoopFile, book: Book, measure: Measure, floor: str) -> Iterator[str]:
    """Yield the ledger of a loop. `floor`: what is said of its floor."""
    yield f"{state.loop}: {state.question}"
    yield floor
    if book.proposals:
        yield from aligned([PROPOSALS, *_proposals(file, book, measure)], left=4)
    yield f"Stack: {_stack(book)}"
    for found in state.confirmed:
        if found.contrasts:
            yield f"On {found.at[:10]}: {headline(confirmed_loop(file, book, found, Path()))}"
    yield f"Left: {left_words(state.left)}"


PROPOSALS = ("", "change", "because", "what became of it", "runs")
"""Columns of the table of proposals."""


def _proposals(file: LoopFile, book: Book, measure: Measure) -> list[list[str]]:
    """Return a row for each proposal."""
    rows = []
    for each in book.proposals:
        became, because = outcome_line(each, file.loop, measure, book.floors), one_line(each.because)
        rows.append([str(each.number), " ".join(each.words), because, became, str(len(each.seeds))])
    return rows


def confirmation_lines(told: ConfirmedLoop, measure: Measure) -> Iterator[str]:
    """Yield the comparisons of a confirmation, what stands first."""
    yield headline(told)
    head = ["all kept changes against", "difference", "95 % interval", "one-sided p", "p of Holm", ""]
    contrasts = zip(told.contrasts, _contrasts(told, measure), strict=True)
    yield from aligned([head, *([*row[:3], p_text(one.p), *row[3:]] for one, row in contrasts)], left=1)
    yield from map(_idle, told.idle)


def _contrasts(told: ConfirmedLoop, measure: Measure) -> list[list[str]]:
    """Return a row for each comparison: its name, the difference, the interval, Holm's p, and whether it stands."""
    digits = digits_apart(measure.digits, [end for one in told.contrasts for end in (one.low, one.high)], [0.0])
    rows = []
    for one in told.contrasts:
        interval = f"{one.low:+.{digits}f} to {one.high:+.{digits}f}"
        stands = "stands" if one.stands else "not shown"
        rows.append([one.name, f"{one.estimate:+.{digits}f}", interval, p_text(one.holm_p), stands])
    return rows


def _idle(change: str) -> str:
    return f"{change} changes nothing any more: without it, the runs of the stack are the same."


def headline(told: ConfirmedLoop) -> str:
    """Return what a confirmation found, in a sentence."""
    whole = next(one for one in told.contrasts if not one.name.startswith(WITHOUT))
    count = len(told.contrasts) - 1 + len(told.idle) or 1
    all_are = "the kept change is" if count == 1 else f"the {how_many(count, 'kept change')} together are"
    if not whole.stands:
        return f"Not confirmed: {all_are} not shown to be better than {whole.name}."
    if told.stands:
        alone = "stands by itself" if len(told.stands) == 1 else "stand by themselves"
        return f"Confirmed: {all_are} better than {whole.name}; {', '.join(told.stands)} {alone}."
    return f"Confirmed: {all_are} better than {whole.name}, but no single one is shown to matter."


WITHOUT = "without "


def confirmed_loop(file: LoopFile, book: Book, found: Confirmed, page: Path) -> ConfirmedLoop:
    """Return a confirmation as data."""
    contrasts = found.contrasts or []
    single = [one.name.removeprefix(WITHOUT) for one in contrasts if one.stands and one.name.startswith(WITHOUT)]
    if len(contrasts) == 1 and contrasts[0].stands:
        single = [" ".join(words) for words in book.changes(found.stack)]
    return ConfirmedLoop(
        loop=file.name,
        metric=file.loop.metric,
        seeds=found.seeds,
        contrasts=list(contrasts),
        stands=single,
        idle=found.idle,
        page=str(page),
    )


def write_page(
    told: ConfirmedLoop, file: LoopFile, book: Book, found: Confirmed, measure: Measure, stamp: str | None
) -> None:
    """Write the page of a confirmation, the same as Markdown, and its data beside it."""
    page = Path(told.page)
    content = {**_content(told, file, book, measure), "how": _how(book, found)}
    write_text(page, rendered("confirmation.html", **content, stamp=stamp))
    write_text(page.with_suffix(".md"), "".join(f"{line}\n" for line in _markdown_page(content, stamp)))
    write_json(page.with_suffix(".json"), told.model_dump(mode="json"))


def _content(told: ConfirmedLoop, file: LoopFile, book: Book, measure: Measure) -> dict[str, Any]:
    """Return what both pages say, in words."""
    rows = _contrasts(told, measure)
    return {
        "name": told.loop,
        "question": file.loop.question,
        "headline": headline(told),
        "head": [
            "all kept changes against",
            f"difference in {measure.title}",
            "95 % interval",
            "one-sided p of Holm",
            "",
        ],
        "rows": rows,
        "drawn": intervals(
            [(one.estimate, one.low, one.high) for one in told.contrasts],
            [f"{name}: {difference}, {interval}" for name, difference, interval, *_ in rows],
        ),
        "columns": PROPOSALS,
        "proposals": _proposals(file, book, measure),
        "outcomes": [each.outcome for each in book.proposals],
    }


def _how(book: Book, found: Confirmed) -> str:
    """Say how many seeds there were, on what, and what the error is of, by the rules of its day."""
    rules, error = book.rules_of(found), f"{100 * book.rules_of(found).error:g} %"
    every = [book.rules_of(each) for each in book.confirmed[: 1 + book.confirmed.index(found)]]
    shared = len({" ".join(each.sealed) for each in every}) == 1
    test = again = ""
    if rules.sealed and rules.sealed not in [each.sealed for each in every[:-1]]:
        test = f" No confirmation of this loop had used {' '.join(rules.sealed)} before."
    if len(every) > 1:
        own = f"its own {error}" if len({each.error for each in every}) == 1 else "an error of its own"
        again = (
            f" This is confirmation {len(every)} {'on the same test set' if shared else 'of this loop'}, and each had "
            f"{own}: over all of them, the chance is up to {min(100.0, 100 * sum(each.error for each in every)):g} %."
        )
    idle = "".join(f" {_idle(each)}" for each in found.idle)
    return (
        f"{how_many(len(found.seeds), 'fresh seed')} of all kept changes, {rules.seeds} of each other arm; "
        f"the chance that any line stands by mistake is {error}.{test}{again}{idle}"
    )


def _markdown_page(content: Mapping[str, Any], stamp: str | None) -> Iterator[str]:
    name, question = content["name"], content["question"]
    yield from (f"# {_in_line(f'{name}: {question}')}", "", _in_line(content["headline"]), "")
    yield from _markdown(content["head"], content["rows"])
    yield from ("", _in_line(content["how"]), "", "## Proposals", "")
    yield from _markdown(content["columns"], content["proposals"])
    if stamp is not None:
        yield from ("", f"Register: {stamp}")


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    top, *below = ([one_line(cell) for cell in row] for row in (head, *rows))
    return grid(top, below, [True] * len(head))


def _in_line(text: str) -> str:
    return escaped(one_line(text))
