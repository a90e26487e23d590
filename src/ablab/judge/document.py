"""The report as data: one structure behind every output format. Numbers keep full precision; tables round them."""

from typing import Any, Literal

from pydantic import Field, model_validator

from ablab.judge.lines import ArmLine, ClaimLine, DifferenceLine, EffectLine, Span
from ablab.store.artefacts import Cell
from ablab.store.former import reshaped
from ablab.store.records import SharedSentences, Strict
from ablab.study.study import marked
from ablab.study.tuning import TUNING
from ablab.tasks.task import Example, Nouns


class Beside(Strict):
    """A score that is shown beside the metric, by its name in experiment files. `digits`: after the decimal point.

    `unit`: older reports do not say it.
    """

    name: str
    title: str
    digits: int
    unit: str = ""


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
    runs within an arm; `ratio`: of the two. `f`, `omega_squared`: of a one-way analysis of variance. `seeds`: with
    which a study of as many claims sees a difference that is usual between these arms, with 80 % power; None: more than
    can be planned, or nothing differs.
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
    seeds: int | None = None


class OfArm(Strict):
    """What a picture shows of one arm. `mark`: what it leaves out where runs diverged."""

    arm: str
    mark: str = ""

    @property
    def marked(self) -> str:
        """The name of the arm with its mark."""
        return marked(self.arm, self.mark)


class LineOf(OfArm):
    """One arm in a picture: mean and range over seeds, at each x that all seeds have."""

    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


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


class MatrixOf(OfArm):
    """One arm's matrix: the mean over `seeds` seeds of each slice of the picture; None where the arm lacks a slice.

    `cells`: the texts of each slice's cells, where they have any.
    """

    seeds: int
    rows: list[str]
    columns: list[str]
    slices: list[list[list[float]] | None]
    cells: list[list[list[str]]] = Field(default_factory=list)


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


class TableOf(OfArm):
    """One arm's table: that of the run of `seed`."""

    seed: int
    columns: list[str]
    rows: list[list[Cell]]


class PictureOf(OfArm):
    """One arm's picture: that of the run of `seed`. `source`: its bytes, as an address of the scheme data."""

    seed: int
    source: str


class Exhibits(Strict):
    """Tables or pictures of several arms, which have no mean: those of each arm's first seed that has one.

    `left_out`: number of arms that have the artefact and are not shown.
    """

    kind: Literal["table", "picture"]
    key: str
    section: str
    title: str
    about: str
    panels: list[TableOf | PictureOf]
    left_out: int = 0


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


class WorthLine(Strict):
    """What an arm is worth: the factor of compute by which the baseline would score as well, with its 95 % interval.

    `factor`: None where the baseline is not shown to gain from compute (`saturated`), or nothing was trained to tell;
    0.5 or 2, the shortest and the longest length that was trained, where it is `beyond` that. `low`: 0 and `high`: None
    where the interval has no such end within these lengths. `refused`: why no factor could be computed. `at_least`: the
    baseline's steps over those from which on the arm's curve is shown, at 2.5 %, to be better than the baseline's end.
    `is_loss`: the arm is worse.
    """

    arm: str
    baseline: str
    factor: float | None
    beyond: bool = False
    is_loss: bool = False
    low: float | None
    high: float | None
    saturated: bool
    refused: str | None
    at_least: float | None
    n: int


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


class DriftLine(Strict):
    """Whether a baseline's runs follow the order in which the study's runs began. `n`: of its runs.

    `change`: from the first place of the study to the last, along a straight line; as a share of the value if
    `is_share`, which it is of costs. `interval`: of it, uncorrected. `found`: p is at most 5 % over the `tests`.
    """

    arm: str
    title: str
    unit: str
    digits: int
    is_share: bool
    n: int
    change: float
    interval: Span
    p: float
    tests: int
    found: bool


class Document(Strict):
    """The whole report. `notes`: what every output of it says beside its figures.

    `within`: the factor in each level of which arms have a baseline of their own, or None. `beside`: the scores that
    tables show beside the metric; `loss`: that of validation, of each run. `stamp`, `lost_stamps`: as of `Selection`;
    older reports have none. `origin`: where the figures are not from runs of a store, that it was not verified.
    `setup`: None without records, and in older reports. `drift`: of the baselines, where three of their
    runs finished, once no run is awaited. `labels`: what people call an arm, by its name, where that is not its name.
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
    nouns: Nouns = Nouns("sentences", "pairs", "target tokens")
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
    artefacts: list[Facets | Matrices | Exhibits]
    differing: list[DifferingSentences]
    methods: list[str]
    stamp: str | None = None
    lost_stamps: list[str] = Field(default_factory=list)
    origin: str | None = None
    setup: Setup | None = None
    tuning: list[TuningLine] = Field(default_factory=list)
    drift: list[DriftLine] = Field(default_factory=list)
    worth: list[WorthLine] = Field(default_factory=list)
    labels: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _as_today(cls, content: Any) -> Any:
        """Read a report from before scores had names, or of curves that said too much."""
        return reshaped(cls.__name__, content) or content

    @property
    def size(self) -> str:
        """The size of the test set: `1,000 sentences`, or `200 items` of a set that is no text."""
        return f"{self.sentences:,} {self.nouns.items}"

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
