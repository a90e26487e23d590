"""What the runs of a loop show: their scores, a look at a proposal, a confirmation, and what is left of the budget."""

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from ablab.errors import UserError
from ablab.judge.metrics import Measure, measures
from ablab.judge.runs import ArmRun
from ablab.statistics.interval import NotTestable
from ablab.statistics.loops import ProposalLook, confirm, look
from ablab.statistics.paired import vary
from ablab.study.loop import Book, Contrasted, DeclaredLoop, Floor, Proposal, Seen
from ablab.tasks.identity import condition_id
from ablab.tasks.plan import Planned
from ablab.text import digits_apart, how_many, p_words


class Left(BaseModel):
    """What is left of a loop's budget; None of what it does not limit. `hours`: of training."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    proposals: int
    runs: int | None
    hours: float | None

    @property
    def over(self) -> str | None:
        """What of it is spent, in words."""
        spent = {"proposals": self.proposals, "runs": self.runs, "hours": self.hours}
        return next((f"its {what}" for what, left in spent.items() if left is not None and left <= 0), None)


def left_of(loop: DeclaredLoop, book: Book, seconds: float) -> Left:
    """Return what is left. `seconds`: that all runs of floors and proposals have trained."""
    budget = loop.budget
    return Left(
        proposals=budget.proposals - len(book.costing),
        runs=None if budget.runs is None else budget.runs - book.runs,
        hours=None if budget.hours is None else round(budget.hours - seconds / 3600, 3),
    )


def identity_of(planned: Planned, metric: str) -> str:
    """Return what decides a run's score but for its seed: the recipe, and how it is evaluated if the metric asks."""
    condition = condition_id(planned.recipe)
    return condition if planned.task.is_of_training(metric) else f"{condition} {planned.evaluation_id}"


def measure_of(planned: Planned, metric: str) -> Measure:
    """Return the measure by which the runs of a loop are compared."""
    known = measures(planned.task)
    if metric not in known:
        raise UserError(f"metric={metric}: task={planned.task.name} has no such score; allowed: {', '.join(known)}")
    return known[metric]


def scores_of(runs: Sequence[Planned], measure: Measure) -> list[float] | None:
    """Return the scores of runs that have ended; None where one diverged."""
    found = [ArmRun.read(planned.folder, planned.evaluation_id, planned.curve_id) for planned in runs]
    there = [run for run in found if run is not None]
    if any(run.state == "diverged" for run in there):
        return None
    try:
        return measure.values(there)
    except NotTestable as error:
        raise UserError(f"metric: {error}") from None


def is_without_noise(scores: Sequence[float]) -> bool:
    """Return whether several runs have one score, so that a floor of such runs could judge nothing."""
    return len(scores) > 1 and not vary(np.array(scores))


def check_noise(name: str, floor: Sequence[float]) -> None:
    """Raise UserError where the runs of a floor are alike, so that any difference would be more than noise."""
    if not vary(np.array(floor)):
        raise UserError(
            f"{name}: all {len(floor)} runs of the floor have one score, so that there is no noise by which to judge a "
            "change; allowed: runs that depend on their seed, or a larger floor"
        )


def look_at(loop: DeclaredLoop, measure: Measure, scores: Sequence[float], floor: Sequence[float]) -> ProposalLook:
    """Look at a proposal's scores beside those of the floor."""
    return look(scores, floor, loop.levels, higher_is_better=measure.higher_is_better)


def seen(found: ProposalLook, at: str, seeds: int, floor: int) -> Seen:
    """Return a look as the ledger has it."""
    return Seen(at=at, seeds=seeds, floor=floor, p=found.p, estimate=found.estimate, low=found.low, high=found.high)


def contrasts_of(
    scores: Mapping[str, Sequence[float]], whole: str, first: str, loop: DeclaredLoop, measure: Measure
) -> list[Contrasted]:
    """Compare the whole stack with the first baseline, and with each arm that lacks a change. `scores`: by arm."""
    without = {name: values for name, values in scores.items() if name not in (whole, first)}
    error, higher = loop.confirmation.error, measure.higher_is_better
    try:
        found = confirm(scores[whole], without, (first, scores[first]), higher_is_better=higher, error=error)
    except NotTestable as reason:
        raise UserError(f"nothing is confirmed: {reason}, so that there is no noise to judge it by") from None
    return [Contrasted(name=name, **one._asdict()) for name, one in found.items()]


def outcome_line(proposal: Proposal, loop: DeclaredLoop, measure: Measure, floors: Sequence[Floor]) -> str:
    """Say in a line what became of a proposal."""
    if not proposal.looks:
        return f"{proposal.outcome}: {proposal.why}" if proposal.why else proposal.outcome
    last = proposal.looks[-1]
    digits = digits_apart(measure.digits, [last.low, last.high], [0.0])
    better = last.estimate if measure.higher_is_better else -last.estimate
    small = ", less than matters" if proposal.outcome == "kept" and better < loop.margin else ""
    floor = floors[last.floor - 1]
    figures = f"{last.estimate:+.{digits}f}, 95 % interval [{last.low:+.{digits}f}, {last.high:+.{digits}f}]"
    why = f"; {proposal.why}" if proposal.why else ""
    return (
        f"{proposal.outcome}: {measure.title} {figures}{small}, one-sided {p_words(last.p)}, "
        f"{how_many(last.seeds, 'seed')} against {len(floor.seeds)}{why}"
    )
