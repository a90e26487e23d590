"""The report as data: one structure behind every output format. Numbers keep full precision; tables round them."""

from typing import Any, Literal

from pydantic import Field, model_validator

from ablab.statistics.interval import Interval
from ablab.statistics.verdict import Outcome
from ablab.store.former import reshaped
from ablab.store.records import SharedSentences, Strict
from ablab.study.study import marked, survivors
from ablab.tasks.task import Example
from ablab.text import number, signed

EXPLORATORY = "Exploratory: "
"""What a claim says first that was not fixed before its results were known."""

TUNING = "tuning"
"""The factor `within` of a study whose arms are compared at usual settings and tuned."""


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
    """Format as `[-0.31, +0.52]`; empty for None."""
    if interval is None:
        return ""
    write = signed if sign else number
    return f"[{write(interval.low, digits)}, {write(interval.high, digits)}]"


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


class Beside(Strict):
    """A score that is shown beside the metric, by its name in experiment files. `digits`: after the decimal point."""

    name: str
    title: str
    digits: int


class ArmLine(Strict):
    """An arm by itself. `mean`, `sd`, `interval`, `minimum`, `maximum`: of the metric over finished seeds.

    `scores`: means of those beside the metric. `differs`: recipe fields that differ from the baseline's. `convergence`:
    still, moving, unclear, or why it is unknown. `steps`, `tokens`: means over runs. `train_seconds`,
    `tokens_per_second`, `decoding_speed`: medians, since other load on the machine slows some runs down.
    """

    name: str
    is_baseline: bool
    planned: int
    finished: int
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
    `figure`, so that the moderated test errs more often, or sees less than the paired one.
    """

    kind: Literal["wide", "groups", "order", "opposed", "together"]
    arm: str | None = None
    figure: float | None = None


class ClaimLine(Strict):
    """A claim and its verdict. `interval`: at the level that Holm's procedure leaves to the claim.

    `exploratory`: why the claim is exploratory, or None. `about`: the measure claimed; `title`, `unit`, `digits`: of
    the measure compared: where runs diverged, shares of failures, or ranks of all runs. `unlike`: differences between
    the arms that are no part of a recipe, such as code or threads. `test`: the method behind `interval` and `p`;
    `other`: what the method that does not decide would say. `near_failures`: runs of both arms that nearly failed, in
    words; `conditions`: what else the runs show that bears on the test. `different`, `small`, `large`: the difference
    is shown not to be 0, to lie within the margin, and to lie at or beyond it; `strength`: the same in words. `chosen`:
    the choice of weights that the compared score made, if it did. `per_seed`: the differences whose mean `difference`
    is; empty for ranks, shares of failures, and in older reports. `higher_is_better`: of the measure claimed; older
    reports do not say. `followed`: where seeds are added until the claims are settled. `later`: it came after the
    registration, and shares an error rate with such claims alone. `union`: where other studies registered claims about
    the same runs. `tuning`: how it stands with tuned and with usual settings. `words`: sentences that can stand alone;
    they begin with what is claimed, which older reports do not have apart, and before that with the mark of what is
    exploratory.
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

    @property
    def judged(self) -> str:
        """The words without the claim, for where it has just been said in others."""
        rest = self.words.removeprefix(EXPLORATORY).removeprefix(f"{self.claimed}: ")
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


class SetLine(Strict):
    """The score of an arm on one of several test sets: mean and standard deviation over `n` seeds."""

    test_set: str
    sentences: int
    score: str
    arm: str
    mean: float | None
    sd: float | None
    n: int


class MetricLine(Strict):
    """How well a metric tells the arms apart. `declared`: by the experiment file.

    `between`, `within`: standard deviations, in the metric's unit, of the arms' means without the noise in them and of
    runs within an arm; `ratio`: of the two. `f`, `omega_squared`: of a one-way analysis of variance.
    """

    metric: str
    title: str
    unit: str
    digits: int
    declared: bool
    arms: int
    runs: int
    between: float
    within: float
    ratio: float
    f: float
    omega_squared: float


class LineOf(Strict):
    """One arm in a picture: mean and range over seeds, at each x that all seeds have.

    `mark`: what the mean leaves out where runs diverged.
    """

    arm: str
    mark: str = ""
    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]

    @property
    def marked(self) -> str:
        """The name of the arm with its mark."""
        return marked(self.arm, self.mark)


class Series(Strict):
    """A picture of curves of one kind; its titles say what it shows. `names`: labels of x where x is no quantity.

    `caption`: what the lines are; empty: means over seeds. `is_log`: of the axis of x. `is_joined`: points by a line.
    """

    key: str
    title: str
    x: str
    y: str
    lines: list[LineOf]
    names: list[str] = Field(default_factory=list)
    caption: str = ""
    is_log: bool = False
    is_joined: bool = True


class MatrixOf(Strict):
    """One arm's matrix: the mean over `seeds` seeds of each slice of the picture; None where the arm lacks a slice.

    `mark`: what the mean leaves out where runs diverged. `cells`: the texts of each slice's cells, where they have any.
    """

    arm: str
    mark: str = ""
    seeds: int
    rows: list[str]
    columns: list[str]
    slices: list[list[list[float]] | None]
    cells: list[list[list[str]]] = Field(default_factory=list)

    @property
    def marked(self) -> str:
        """The name of the arm with its mark."""
        return marked(self.arm, self.mark)


class Facets(Strict):
    """A series artefact of several arms: a panel for each of its lines, with a line for each arm."""

    kind: Literal["series"] = "series"
    key: str
    section: str
    title: str
    about: str
    panels: list[Series]


class Matrices(Strict):
    """A matrix artefact of several arms, side by side on one colour scale from `low` to `high`.

    `ranked`: each row was sorted before averaging, since its columns have no identity across runs. `slices`: the
    choices, the first shown initially. `left_out`: number of arms that have the artefact and are not shown. `of_one`:
    slices that have no identity across runs, and are those of each arm's first run. `alike`: number of arms whose
    matrices are equal, where all are; then one is shown.
    """

    kind: Literal["matrix"] = "matrix"
    key: str
    section: str
    title: str
    about: str
    x: str
    y: str
    value: str
    ranked: bool
    low: float
    high: float
    slices: list[str]
    panels: list[MatrixOf]
    left_out: int
    of_one: list[str] = Field(default_factory=list)
    alike: int = 0


class DifferingSentences(Strict):
    """Sentences on which an arm and the baseline differ most under one seed, in both directions.

    `arm_marked`, `baseline_marked`: their names, which say so where other runs diverged.
    """

    arm: str
    arm_marked: str = ""
    baseline_marked: str = ""
    seed: int
    lines: list[Example]
    baseline: str | None = None


class CorpusLine(Strict):
    """Training data and test set of runs. `languages`: source and target; `digest`: of what the recipe names.

    `train_pairs`, `train_tokens`: those that were trained on, in target tokens. `overlap`: by the splits compared, such
    as `test in training`; None where a record does not say.
    """

    kind: str
    languages: str
    train_pairs: int | None
    train_tokens: int | None
    valid_pairs: int | None
    test: str | None
    test_sentences: int | None
    digest: str | None
    overlap: dict[str, SharedSentences | None] = Field(default_factory=dict)


class TuningLine(Strict):
    """What tuning found for an arm, on validation. `metric`: what was minimised, or maximised where more is better.

    `usual`: with the arm's own settings, where these were tried; `best`: with the `settings` that were chosen; `worst`:
    of the settings that train it. `diverged`: settings under which a seed diverged. `expected`: the best of so many
    settings drawn from those that were tried, on average, from one more than diverged to all: where it still improves
    at the end, more trials would help.
    `edges`: chosen settings that lie at an end of what was tried.
    """

    arm: str
    metric: str
    usual: float | None
    best: float
    worst: float
    settings: str
    trials: int
    diverged: int
    expected: list[float]
    edges: list[str]


class Setup(Strict):
    """What the runs were and cost, for a paper's checklist. `parameters`: fewest and most.

    `training_seconds`: times the number of devices, with validation; `tokens`: of the target. `settings`: of the
    recipe, the same in all arms; `varied`: those in which arms differ, with their values. `unfixed`: why nothing shows
    that they were fixed before the runs; None where the registration does. `searched`: which settings
    were searched, within which bounds, and by which score. `typed`: the words of the first launch. `tuning_runs`,
    `tuning_seconds`: of what was tried to tune the arms. `fixed_seeds`, `fixed_runs`: of a design that trains every arm
    with as many seeds as a study that adds them may use; None and 0 for other studies.
    """

    runs: int
    parameters: list[int]
    training_seconds: float
    evaluation_seconds: float
    tokens: int
    peak_memory_bytes: int
    machines: list[str]
    python: list[str]
    versions: dict[str, list[str]]
    corpora: list[CorpusLine]
    settings: dict[str, Any]
    varied: dict[str, list[Any]]
    searched: list[str]
    typed: list[str] = Field(default_factory=list)
    tuning_runs: int = 0
    tuning_seconds: float = 0.0
    fixed_seeds: int | None = None
    fixed_runs: int = 0
    unfixed: str | None = None


class Document(Strict):
    """The whole report. `notes`: what every output of it says beside its figures.

    `within`: the factor in each level of which arms have a baseline of their own, or None. `beside`: the scores that
    tables show beside the metric; `loss`: that of validation, of each run. `stamp`, `lost_stamps`: as of `Selection`;
    older reports have none. `origin`: where the figures are not from runs of a store, that it was not verified.
    `setup`: None without records, and in older reports.
    """

    name: str
    question: str
    source: str | None
    made: str
    metric: str
    title: str
    unit: str
    digits: int
    higher_is_better: bool
    baseline: str
    within: str | None = None
    seeds: list[int]
    test_set: str | None
    sentences: int | None
    signatures: dict[str, str]
    beside: list[Beside] = Field(default_factory=list)
    loss: Beside | None = None
    notes: list[str]
    claims: list[ClaimLine]
    arms: list[ArmLine]
    differences: list[DifferenceLine]
    effects: list[EffectLine]
    test_sets: list[SetLine]
    metrics: list[MetricLine]
    series: list[Series]
    artefacts: list[Facets | Matrices]
    differing: list[DifferingSentences]
    methods: list[str]
    stamp: str | None = None
    lost_stamps: list[str] = Field(default_factory=list)
    origin: str | None = None
    setup: Setup | None = None
    tuning: list[TuningLine] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _as_today(cls, content: Any) -> Any:
        """Read a report from before scores had names."""
        return reshaped(cls.__name__, content) or content

    @property
    def size(self) -> str:
        """The size of the test set: `1,000 sentences`, or `200 items` of a set that is no text."""
        return f"{self.sentences:,} {'sentences' if self.signatures else 'items'}"

    @property
    def baselines(self) -> str:
        """What arms are compared with, in words; the name of the baseline where there is one."""
        if self.within == TUNING:
            return "the baseline, usual or tuned"
        return f"the baseline of each {self.within}" if self.within else self.baseline

    @property
    def custody(self) -> list[str]:
        """What vouches for the figures: `register 57:3f9a1c0d2b4e5f60`; empty where the store has no register.

        Or that nothing does: `origin not verified`.
        """
        return [*([] if self.stamp is None else [f"register {self.stamp}"]), *([self.origin] if self.origin else [])]
