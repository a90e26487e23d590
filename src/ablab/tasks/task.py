"""The interface of a task. What it trains, it knows; arms, seeds, claims and reports know of it what stands here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass as checked

from ablab.errors import UserError
from ablab.fields import SCHEMA, Role
from ablab.tasks.score import Recipe, Score, Scores


class ScoredValidation(NamedTuple):
    """The scores of one validation, after so many steps, by their keys in a record's validations."""

    step: int
    scores: Mapping[str, float]


Stops = Callable[[Sequence[ScoredValidation], int | None], str | None]
"""Asks a search, of the validations so far and the steps of the whole training, if these are known: the reason to end a
trial now, or None.
"""


@dataclass(frozen=True)
class OfCurve:
    """A measure that is read from one of a run's further curves, such as the depth at which pruning has cost 1 BLEU.

    `of_heads`: the curve is that of heads. `read`: its value of a curve, None where that lacks it.
    """

    title: str
    unit: str
    digits: int
    higher_is_better: bool
    read: Any
    of_heads: bool = False

    def value(self, curve: Any) -> float | None:
        found: float | None = None if curve is None else self.read(curve)
        return found


@dataclass(frozen=True)
class Chart:
    """A picture of runs as lines: titles of it and its axes, and the points of a run.

    `source`: its validations, the rows of its metrics, or a further curve of it. `key`: what is drawn of each; of a
    curve, `read` returns the points. `is_flat_without`: not drawn where no value is above 0.
    """

    title: str
    x: str
    y: str
    source: str
    key: str = ""
    read: Any = None
    is_flat_without: bool = False


@checked(config=ConfigDict(extra="forbid", allow_inf_nan=False), frozen=True)
class Example:
    """An item on which two runs differ much: what each gave for it, and the score of each for it alone."""

    number: int
    source: str
    reference: str
    arm_text: str
    baseline_text: str
    arm_score: float
    baseline_score: float


@checked(config=ConfigDict(extra="forbid"), frozen=True)
class Nouns:
    """What a report calls the items of a test set, those of training, and the tokens that training predicts."""

    items: str = "items"
    trained: str = "items"
    tokens: str = "tokens"


class Task:
    """What a run is. One's own derives from it, and says at least its name and its scores.

    `scores`: of quality; `costs`: speeds and memory, which depend on the machine too. `primary`: the score by which
    arms are compared unless an experiment says otherwise. `loss`: the validation score that orders what is equal in
    others, and by which settings are tuned. `beside`: scores that a report shows beside the metric; `listed`: those
    that lists of runs and the summary of a study show. `curves`: keys of validations that dashboards draw. `nouns`:
    what it is about. `methods`: sentences on what makes its arms comparable. `smoke`: what is said of a smoke run.
    `of_curves`: metrics that are read from further curves; of each, the keys of a claim of which it needs one, and
    their meanings. `bounds`: the lowest and highest value that a score can have, by its name. `modules`: what processes
    import before they plan such a run. `lean`: words that leave out what only a final run needs. `is_heard`: what a run
    prints is not ours, and its last line is shown while it goes on. `length`: the setting that decides how long a run
    trains, if there is one. `has_own_scores`: each run declares its scores among its settings, so that without these it
    has none.
    """

    name: ClassVar[str]
    has_own_scores: ClassVar[bool] = False
    is_heard: ClassVar[bool] = False
    scores: Scores
    costs: ClassVar[Scores] = {}
    primary: str
    loss: str
    beside: Sequence[str] = ()
    listed: Sequence[str] = ()
    curves: ClassVar[Sequence[str]] = ()
    nouns: ClassVar[Nouns] = Nouns()
    methods: ClassVar[Sequence[str]] = ("All arms have the same seeds.",)
    smoke: ClassVar[str] = "every stage ran on a sliver of its data: the scores mean nothing"
    of_curves: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    bounds: Mapping[str, tuple[float, float]] = MappingProxyType({})

    modules: ClassVar[Sequence[str]] = ()
    lean: ClassVar[tuple[str, ...]] = ()
    length: ClassVar[str | None] = None

    def check(self, config: Any) -> None:
        """Raise UserError for settings that no run can have, before anything is planned."""

    def check_asked(self, composed: Any) -> None:
        """Raise UserError for what a smoke run would hide, as it takes less."""

    def check_reopened(self, config: Any, folder: Any, record: Any) -> None:
        """Raise UserError where a finished run cannot be evaluated anew under this configuration."""
        raise UserError(f"{folder.run_id} is a run of task={self.name}; allowed: runs of task=translation")

    def origin(self, config: Any) -> Any:
        """Return what training starts from, with `digest()` of its bytes for the recipe; None for random weights."""
        return None

    def recipe(self, config: Any, origin: str | None) -> dict[str, Any]:
        """Return everything that decides the result of training, as plain values: here the task and its settings."""
        return {"task": config.task.part(Role.RECIPE), "seed": config.seed, "schema": SCHEMA}

    def evaluation(self, config: Any) -> dict[str, Any]:
        """Return the settings that decide an evaluation besides the recipe."""
        return {"task": config.task.part(Role.EVALUATION), "schema": SCHEMA}

    def way(self) -> str:
        """Return words that all later ways to judge must have for a registered claim to mean what it did.

        Empty: any other evaluation is another way. A task whose scores are read from its results may declare more of
        them later, or call them otherwise, and no claim changes.
        """
        return ""

    def first_and_last_step(self, config: Any) -> tuple[int | None, int | None]:
        """Return the steps of the first validation and of the end of training, as far as the settings say them."""
        return None, None

    def curve(self, config: Any) -> dict[str, Any]:
        """Return the settings of further curves; empty where there are none."""
        return {}

    def lacks_curve(self, planned: Any) -> bool:
        """Return whether a run should have a further curve and has none."""
        return False

    def prepared(self, planned: Any, console: Any) -> Any:
        """Prepare training: read data, build, find the last checkpoint. UserError for what cannot be trained."""
        raise NotImplementedError

    def callbacks(self, planned: Any, console: Any, beating: Any, tracker: Any) -> Any:
        """Return what training and evaluation tell of themselves to; at least `on_result(record, evaluation)`."""
        raise NotImplementedError

    def train(self, work: Any, callbacks: Any, stops: Stops | None = None) -> Any:
        """Train what was prepared and write the record; return it, or None if training was interrupted.

        `stops`: where the run is a trial of a search, asked after every validation.
        """
        raise NotImplementedError

    def evaluate(self, planned: Any, record: Any, callbacks: Any) -> None:
        """Evaluate the selected weights and write the evaluation."""
        raise NotImplementedError

    def measure_curve(self, planned: Any, record: Any, callbacks: Any) -> Any:
        """Measure a further curve, write it and return it."""
        raise NotImplementedError

    def lead(self, work: Callable[[], int]) -> int:
        """As the first of the processes that torchrun has started, do the work; end the others with its exit code."""
        raise self._alone()

    def follow(self) -> None:
        """As another one of them, compute what the first asks for, and exit as it does."""
        raise self._alone()

    def _alone(self) -> UserError:
        return UserError(f"torchrun: a run of task={self.name} is one process; allowed: without torchrun")

    def outputs_for(self, folder: Any, inputs: Sequence[str], **settings: object) -> list[str]:
        """Return what the selected weights of a run make of each input, such as a translation."""
        known = folder.record().task  # a task whose option is gone has another name here
        raise UserError(
            f"run={folder.path}: {folder.run_id} is a run of task={known}; allowed: runs of task=translation"
        )

    def dry_run(self, planned: Any) -> dict[str, Any]:
        """Try a few steps; return `parameters`, `seconds_per_step` and `total_steps`, None for what is not known."""
        raise UserError(f"check=true: task={self.name} cannot be tried out; allowed: task=translation")

    def memory(self, config: Any) -> int | None:
        """Return about how many bytes a run needs at its peak on the CPU; None where nobody knows, as of a program."""
        return None

    def cautions(self) -> Sequence[str]:
        """Return what a user should know of these settings before a run: lines, each once for a study."""
        return ()

    def is_tried_first(self) -> bool:
        """Return whether a study tries out its arms once before its first run."""
        return False

    def draw_curves(self, curves: Mapping[str, Any], colours: Mapping[str, str], title: str, path: Path) -> None:
        """Draw a further curve of each arm, in the arm's colour."""

    @cached_property
    def measured(self) -> Scores:
        """Scores and costs."""
        return {**self.scores, **self.costs}

    @cached_property
    def validated(self) -> Mapping[str, Score]:
        """The scores of validation, by their keys in a record's validations."""
        return {score.key: score for score in self.scores.values() if score.place == "validation"}

    @cached_property
    def watched(self) -> Score:
        """The validation score that progress shows: the one that must converge before the primary is judged."""
        primary = self.scores[self.primary]
        return self.converging(primary) or primary

    def loss_of(self, record: Any) -> float | None:
        """Return the validation loss of a run's selected weights."""
        return self.scores[self.loss].value(record, None)

    def converging(self, score: Score) -> Score | None:
        """Return the validation score that must have converged before arms are compared by this one; None: none."""
        if score.converged is not None:
            return self.scores[score.converged]
        return score if score.place == "validation" else self.scores[self.loss]

    def is_of_training(self, metric: str) -> bool:
        """Return whether a metric is known when training ends, so that no other evaluation changes it."""
        known = self.measured.get(metric)
        return metric == FAILURES or (known is not None and known.place in ("validation", "training"))

    def chosen_by(self, metric: str, recipe: Recipe) -> str | None:
        """Return what was chosen by this metric where it chose the weights whose score it is; None if it did not.

        Such as `the best of {} validations`, with a place for their number: the best of several is no estimate for new
        data.
        """
        return None

    def of_curve(self, claim: Any) -> OfCurve | None:
        """Return the measure of a claim about a further curve; None for any other claim."""
        return None

    def may_judge_by(self, curve: Any, planned: Any) -> bool:
        """Return whether a claim about further curves may read this one, whose evaluation is that of the plan."""
        return True

    def check_measured(self, claim: Any, planned: Any) -> None:
        """Raise UserError unless a planned run measures the further curve that a claim is about."""

    def rows(self, record: Any, evaluation: Any) -> Iterator[tuple[str, str]]:
        """Yield what the end of a run tells of its scores: a name and a value for each line."""
        for score in self.scores.values():
            if (value := score.value(record, evaluation)) is not None:
                yield score.title, f"{value:,.{score.digits}f}"

    def next_lines(self, record: Any) -> Sequence[str]:
        """Return what can be done with a run that has ended, as lines to type."""
        return ()

    def curve_table(self, curve: Any) -> tuple[Sequence[Sequence[str]], int]:
        """Return a further curve as a table, its heading first, and how many of its columns are aligned to the left."""
        return (), 0

    def notes_on_curve(self, curve: Any) -> Sequence[str]:
        """Return what is said below the table of a curve."""
        return ()

    def scored_again(self, evaluation: Any, folder: Any) -> Iterator[str] | None:
        """Return where an evaluation's scores are not those that its items give; None where it has nothing to score."""
        scores = [one for one in self.scores.values() if one.place == "test" and one.of_sums is not None]
        found = [score for score in scores if score.key in evaluation.items]
        return self._unlike_items(found, evaluation) if found else None

    def _unlike_items(self, scores: Sequence[Score], evaluation: Any) -> Iterator[str]:
        import numpy as np  # only this needs it, and lists of runs are to be quick

        for score in scores:
            assert score.of_sums is not None
            sums = np.array(evaluation.items[score.key], dtype=np.float64).sum(axis=0)
            there, here = evaluation.scores[score.key], float(score.of_sums(sums))
            if abs(there - here) > TOLERANCE:
                yield f"{score.unit} {there:.6f} on record in {evaluation.evaluation_id}, {here:.6f} from its items"

    def differing(
        self, evaluations: tuple[Any, Any], texts: tuple[Sequence[str], Sequence[str]], outputs: Path
    ) -> Sequence[Example]:
        """Return items on which two evaluations differ most; `texts`: what each gave for every item."""
        return ()

    def samples(self, evaluation: Any, folder: Any, most: int) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
        """Return at most so many items of an evaluation as a table, columns and rows; the same items of every run."""
        return (), ()

    def dataset(self, planned: Any) -> tuple[str, Mapping[str, Any]] | None:
        """Return the name of what a run is trained on, and digests and settings that identify it; None if unknown."""
        return None

    def ends_by(self, settings: Mapping[str, Any]) -> str | None:
        """Return a setting, of these by their dotted names, that may end a run before its `length`; None: none does."""
        return None

    def called(self, key: str) -> str | None:
        """Return what names of runs call a changed field; None where they leave it out."""
        return key

    def charts(self, *, on_one_scale: bool) -> Mapping[str, Chart]:
        """Return pictures by key. `on_one_scale`: the losses of all runs can be compared."""
        return {
            name: Chart(f"{score.title[:1].upper()}{score.title[1:]}", "step", score.unit, "validations", score.key)
            for name, score in self.scores.items()
            if score.place == "validation"
        }


class UnknownTask(Task):
    """A task that no option here names: its runs can be listed, and nothing is known of their scores."""

    name = "unknown"
    scores: Scores = MappingProxyType({})


TOLERANCE = 1e-9
"""Absolute tolerance in score points: the same code gives the same bits on the same items, but another libm may not."""


FAILURES = "failures"
"""The metric of claims that every task has: the share of runs that diverge."""


def written(score: Score, value: float) -> str:
    """Return a value with what it is of, as in `BLEU 31.20` or `loss 2.310`."""
    title = score.title.removeprefix("test ")
    return f"{score.unit if score.unit and title.endswith(score.unit) else title} {value:,.{score.digits}f}"
