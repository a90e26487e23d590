"""Lines of a report as data: arms with their runs, differences, effects, and claims with their verdicts.

Numbers keep full precision; tables round them.
"""

from typing import Any, Literal

from pydantic import Field

from ablab.statistics.interval import Interval
from ablab.statistics.verdict import Outcome
from ablab.store.records import Strict
from ablab.study.study import marked, survivors
from ablab.text import digits_apart, number, signed

EXPLORATORY = "Exploratory: "
"""What a claim says first that was not fixed before its results were known."""


class Span(Strict):
    """A confidence interval."""

    low: float
    high: float
    level: float
    method: str

    @classmethod
    def of(cls, interval: Interval) -> "Span":
        return cls(low=interval.low, high=interval.high, level=interval.level, method=interval.method)


def interval_text(interval: Span | None, digits: int, *, sign: bool = True) -> str:
    """Format as `[-0.31, +0.52]`; empty for None. A difference has the digits that tell its ends from 0."""
    if interval is None:
        return ""
    write, ends = signed if sign else number, [interval.low, interval.high]
    more = digits_apart(digits, ends, [0.0]) if sign else digits
    return f"[{', '.join(write(end, more) for end in ends)}]"


def digits_shown(difference: float | None, interval: Span | None, digits: int) -> int:
    """Return `digits`, or more, with which neither a difference nor an end of its interval reads as 0."""
    ends = [] if interval is None else [interval.low, interval.high]
    return digits_apart(digits, [*([] if difference is None else [difference]), *ends], [0.0])


class RunLine(Strict):
    """A run of an arm and its provenance. `loss`: of the selected weights on validation. `note`: what is unusual."""

    run_id: str
    seed: int
    state: str
    score: float | None
    loss: float | None
    folder: str
    commit: str | None
    code: str | None
    signature: str | None
    device: str | None
    threads: int | None
    note: str


class ArmLine(Strict):
    """An arm by itself. `mean`, `sd`, `interval`, `minimum`, `maximum`: of the metric over finished seeds.

    `scored`: how many of these have it, where not all have. `scores`: means of those beside the metric. `differs`:
    recipe fields that differ from the baseline's. `convergence`: still, moving, unclear, or why it is unknown. `steps`,
    `tokens`: means over runs. `train_seconds`, `tokens_per_second`, `decoding_speed`: medians, since other load on the
    machine slows some runs down.
    """

    name: str
    is_baseline: bool
    planned: int
    finished: int
    scored: int | None = None
    diverged: int
    missing: dict[str, int]
    mean: float | None
    sd: float | None
    interval: Span | None
    minimum: float | None
    maximum: float | None
    scores: dict[str, float | None]
    failed_share: Span | None
    parameters: int | None
    steps: float | None
    tokens: float | None
    train_seconds: float | None
    tokens_per_second: float | None
    decoding_speed: float | None
    convergence: str
    differs: dict[str, Any]
    notes: list[str]
    runs: list[RunLine]

    @property
    def counted(self) -> int:
        """The number of seeds that the mean is over."""
        return self.finished if self.scored is None else self.scored

    @property
    def marked(self) -> str:
        """The name beside means over its runs, which says so where some diverged."""
        return marked(self.name, survivors(self.finished or self.diverged, self.planned, self.diverged))


class SeedDifference(Strict):
    """What is compared, under one seed: arm less baseline, or the contrast of several arms."""

    seed: int
    difference: float


class OtherTest(Strict):
    """The same difference otherwise. `interval`: of a claim's other method, at the level of the one that decides it.

    `p`: two-sided, of no difference, uncorrected; None where the verdict is about lying within the margin.
    """

    test: str
    interval: Span
    p: float | None


class DifferenceLine(Strict):
    """An arm less the baseline, paired by seed. `baseline`: the arm's own, where not all have the same.

    `interval`, `p`, `test`: where a claim about the metric is made of the pair, those that decide it, and `claim`: its
    place among the claims; else those at 95 %, uncorrected, of the method that would. `per_seed`: the differences whose
    mean `difference` is. `detectable`: the difference that so many seeds detect with 80 % power.
    `uncorrected`: the same method at 95 %, where a claim has another level; `other`: the method that does not decide;
    `crossed`: interval over seeds and sentences; `randomisation_p`: p of test-set noise alone. Where a method refuses,
    its `..._refused` says why.
    """

    arm: str
    n: int
    baseline: str | None = None
    difference: float | None = None
    interval: Span | None = None
    p: float | None = None
    test: str | None = None
    claim: int | None = None
    uncorrected: OtherTest | None = None
    other: OtherTest | None = None
    refused: str | None = None
    crossed: Span | None = None
    crossed_p: float | None = None
    crossed_refused: str | None = None
    randomisation_p: float | None = None
    randomisation_refused: str | None = None
    detectable: float | None = None
    per_seed: list[SeedDifference] = Field(default_factory=list)


class Advice(Strict):
    """Seeds with which a new study would decide a claim with 80 % power; None: more than anyone trains.

    `fewest`, `most`: the same for the ends of an 80 % interval of the noise. `seconds`: machine time for its arms.
    """

    seeds: int | None
    fewest: int | None
    most: int | None
    seconds: float | None


class LookLine(Strict):
    """A look at a claim after `n` seeds. `interval`: repeated confidence interval."""

    n: int
    difference: float
    interval: Span


class FollowedLine(Strict):
    """A claim of a study that adds seeds until its claims are settled, from its `first` to its `last` possible look.

    `state`: settled, open, hopeless, or spent; `looks`: those so far, up to the one that settled it. `chance`: of a
    verdict by the last look. `bias`: by how much the estimate at the stop is too large on average, in the claim's unit,
    in simulated studies whose truth is what was found.
    """

    state: str
    first: int
    last: int
    looks: list[LookLine]
    chance: float | None = None
    bias: float | None = None


class UnionLine(Strict):
    """A claim as one of all that were registered on its runs, in this study and others.

    `claims`: that share one error rate then; `p`: corrected for them; `outcome`: at that rate.
    """

    claims: int
    p: float
    outcome: Outcome


class Sign(Strict):
    """A sign in the runs that a condition of the claim's test may not hold, or that another test would see more.

    `wide`: `arm` scatters `figure` times as much as the others; `groups`: scores within arms fall into two groups;
    `order`: scores follow those of the seed before; `opposed`, `together`: runs with the same seed correlate, by
    `figure`, so that the moderated test errs more often, or sees less than the paired one. `quiet` is in reports of the
    second version of that test, to which an arm that scatters less than the others mattered.
    """

    kind: Literal["wide", "quiet", "groups", "order", "opposed", "together"]
    arm: str | None = None
    figure: float | None = None


class ClaimLine(Strict):
    """A claim and its verdict. `interval`: at the level that Holm's procedure leaves to the claim.

    `exploratory`: why the claim is exploratory, or None. `about`: the measure claimed; `title`, `unit`, `digits`: of
    the measure compared: where runs diverged, shares of failures, or ranks of all runs. There are more `digits` where
    an end of `interval` would read as 0 or the margin. `unlike`: differences between the arms that are no part of a
    recipe, such as code or threads. `test`: the method behind `interval` and `p`; `other`: what the method that does
    not decide would say. `near_failures`: runs of both arms that nearly failed, in words; `conditions`: what else the
    runs show that bears on the test. `different`, `small`, `large`: the difference is shown not to be 0, to lie within
    the margin, and to lie at or beyond it; `strength`: the same in words. `chosen`: the choice of weights that the
    compared score made, if it did. `per_seed`: the differences whose mean `difference` is; empty for ranks, shares of
    failures, and in older reports. `higher_is_better`: of the measure claimed; older reports do not say. `followed`:
    where seeds are added until the claims are settled. `later`: it came after the registration, and shares an error
    rate with such claims alone. `union`: where other studies registered claims about the same runs. `tuning`: how it
    stands with tuned and with usual settings. `n`: seeds; of ranks and shares, runs of the smaller arm, where arms are
    `uneven`. `words`: sentences that can stand alone; they begin with what is claimed, which older reports do not have
    apart, and before that with the mark of what is exploratory. `pair`: what people
    call the two sides, and what both have in common; older reports do not say.
    """

    arm: str
    baseline: str
    metric: str
    about: str
    title: str
    unit: str
    digits: int
    expect: str
    margin: float
    published: str | None
    source: str | None
    outcome: Outcome
    claimed: str = ""
    words: str
    n: int
    uneven: bool = False
    difference: float | None
    interval: Span | None
    simultaneous: Span | None
    p: float | None
    corrected: float | None
    detectable: float | None
    reason: str | None
    exploratory: str | None
    unlike: str | None = None
    test: str | None = None
    other: OtherTest | None = None
    near_failures: list[str] = Field(default_factory=list)
    conditions: list[Sign] = Field(default_factory=list)
    secondary: bool = False
    later: bool = False
    union: UnionLine | None = None
    advice: Advice | None = None
    different: bool = False
    small: bool = False
    large: bool = False
    strength: str | None = None
    chosen: str | None = None
    per_seed: list[SeedDifference] = Field(default_factory=list)
    higher_is_better: bool | None = None
    followed: FollowedLine | None = None
    tuning: str | None = None
    pair: list[str] | None = None

    @property
    def judged(self) -> str:
        """The words without the claim, for where it has just been said in others; one that is refuted was not said."""
        rest = self.words.removeprefix(EXPLORATORY).removeprefix(f"{self.claimed}: ")
        if self.claimed and self.outcome == "refuted":
            outcome, end, more = rest.partition(". ")
            rest = f"{outcome}{end}The claim was: {self.claimed}. {more}"
        return rest[:1].upper() + rest[1:] if self.claimed else rest

    @property
    def marked(self) -> str:
        """The outcome; what is exploratory says so first."""
        return f"{EXPLORATORY.lower()}{self.outcome}" if self.exploratory else self.outcome

    @property
    def verdict(self) -> str:
        """The outcome with its mark, and where the difference lies relative to the margin."""
        return self.marked if self.strength is None else f"{self.marked}, {self.strength}"


class EffectLine(Strict):
    """A main effect or an interaction of a factorial design. `refused`: why there are no figures.

    The other figures: as of a `DifferenceLine`.
    """

    what: str
    kind: Literal["main effect", "interaction"]
    n: int
    difference: float | None = None
    interval: Span | None = None
    p: float | None = None
    test: str | None = None
    claim: int | None = None
    uncorrected: OtherTest | None = None
    other: OtherTest | None = None
    refused: str | None = None


Compared = DifferenceLine | EffectLine
"""What has a difference with its interval, p and other ways to compute it."""
