"""Tasks of one's own: a class says how to train and how to test; the files of a run, resume and progress are ours."""

import math
import resource
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

from ablab.code.code import code
from ablab.code.machine import provenance
from ablab.config.kinds import outside_parts
from ablab.config.schema import Config
from ablab.errors import UserError, choices
from ablab.fields import Role
from ablab.files import read_json, sealed, sha256, write_json
from ablab.store.metrics import MetricsFile
from ablab.store.records import UNNAMED, Cost, Evaluation, Record, Selected, ToldCost, now
from ablab.store.run_folder import STATE
from ablab.tasks import identity
from ablab.tasks.score import Place
from ablab.tasks.task import ScoredValidation, Stops, Task

TRIED = 3
"""Steps of a dry run. The first may be slow; only the others are timed."""


@dataclass(frozen=True)
class Tested:
    """Scores on test items, by their keys; `items`: the summands of those that are made of sums, [items, k]."""

    scores: Mapping[str, float]
    items: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)


class DivergedError(Exception):
    """Training has failed, and would fail again: the run ends as diverged. Its text is the reason."""


class EndedEarly(BaseException):
    """Training is ended from outside, as by Ctrl-C, so that no `except Exception` of a task goes on with it."""


class Loop:
    """What training is given. `config`: all settings of the run; `seed`: the only source of chance. `state`: None at
    first, else what the last validation left; `step`: after which it was left. `folder`: of the run.
    """

    def __init__(self, planned: Any, told: "RunCallbacks", stops: Stops | None = None) -> None:
        self._planned, self._told, self._stops = planned, told, stops
        self.config: Config = planned.config
        self.seed: int = planned.config.seed
        self.folder = planned.folder.path
        self._path = planned.folder.checkpoints / STATE
        kept: dict[str, Any] = read_json(self._path) if self._path.exists() else {}
        self.step: int = kept.get("step", 0)
        self.state: Any = kept.get("state")
        self.total: int | None = kept.get("total")
        self.validations: list[dict[str, float]] = kept.get("validations", [])
        self._before: float = kept.get("seconds", 0.0)
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Of training so far, those of earlier processes included."""
        return self._before + time.perf_counter() - self._began

    def begin_anew(self) -> None:
        """Count the seconds of this process alone: its training has not gone on from what earlier ones left."""
        self._before = 0.0

    def steps(self, total: int) -> Iterator[int]:
        """Yield the number of each step that is left, from 0. `total`: steps of the whole training."""
        self.total = total
        yield from range(self.step, total)

    def validate(self, step: int, scores: Mapping[str, float], state: Any, total: int | None = None) -> None:
        """Note the scores of validation after a step, and keep the state, which JSON must hold, to go on from.

        `total`: steps of the whole training, where `steps` has not said them. A score that is not a number ends the run
        as diverged; a search whose trial it is may end it here too.
        """
        self._check_step(step)
        check_scores(self._planned.task, step, scores)
        # NumPy's numbers are none for JSON.
        self.step, scores = int(step), {key: float(value) for key, value in scores.items()}
        self.state, self.total = state, self.total if total is None else int(total)
        self.validations.append({"step": float(step), **scores})
        kept = {"step": self.step, "state": state, "validations": self.validations, "seconds": self.seconds}
        try:
            check_kept(state)
            write_json(self._path, {**kept, "total": self.total})
        except (TypeError, ValueError) as error:
            raise UserError(
                f"task={self._planned.task.name}: the state after step {step:,} is not for JSON ({error}); "
                "allowed: finite numbers, text, true, false, None, and lists and mappings of them"
            ) from None
        self._told.validated(self.step, scores, self.total)
        self.ask()

    def _check_step(self, step: int) -> None:
        """Raise UserError for a step that no curve could show after those before."""
        task, last = f"task={self._planned.task.name}", self.validations[-1]["step"] if self.validations else -1
        if not isinstance(step, Integral) or step < 0:
            raise UserError(f"{task}: validated after step {step!r}; allowed: whole numbers from 0")
        if step <= last:
            raise UserError(
                f"{task}: validated after step {step:,}, and before after {last:,.0f}; allowed: later steps"
            )

    def ask(self) -> None:
        """Tell the search of all validations. Raise EndedEarly if it ends the trial, which after the last step is none.

        They are told each time, since a process may have been killed before it told its last.
        """
        if self._stops is None or not self.validations:
            return
        told = [ScoredValidation(int(one["step"]), {**one}) for one in self.validations]
        reason = self._stops(told, self.total)
        if reason is not None and self.step != self.total:
            raise EndedEarly(reason)


def check_kept(state: Any) -> None:
    """Raise TypeError for a state that JSON would give back as another: a run that goes on must have what it told."""
    if isinstance(state, tuple):
        raise TypeError("tuple")
    if isinstance(state, dict) and (others := [key for key in state if not isinstance(key, str)]):
        raise TypeError(f"the key {others[0]!r}")
    for each in state.values() if isinstance(state, dict) else state if isinstance(state, list) else ():
        if isinstance(each, dict | list | tuple):
            check_kept(each)


class TriedLoop(Loop):
    """Training in a dry run: it begins anew, keeps nothing, and is ended after a few steps.

    Where `steps` says nothing of these, the first validation ends it.
    """

    def __init__(self, planned: Any, folder: Path) -> None:
        self._planned, self.config = planned, planned.config
        self.seed, self.folder = planned.config.seed, folder
        self.step, self.state, self.validations, self.total = 0, None, [], None
        self._before, self._began = 0.0, time.perf_counter()
        self.seconds_per_step: float | None = None
        self.has_validated = False

    def steps(self, total: int) -> Iterator[int]:
        self.total, times = total, [time.perf_counter()]
        for step in range(min(total, TRIED)):
            yield step
            times.append(time.perf_counter())
            counted = times[1:] if len(times) > 2 else times
            self.seconds_per_step = (counted[-1] - counted[0]) / (len(counted) - 1)
        raise EndedEarly

    def validate(self, step: int, scores: Mapping[str, float], state: Any, total: int | None = None) -> None:
        check_scores(self._planned.task, step, scores)
        self.has_validated = True
        if self.total is None and step > 0:
            self.total, self.seconds_per_step = total, self.seconds / step
            raise EndedEarly


class RunCallbacks:
    """Everything that is told of a run of one's own: console, heartbeat, tracker and metrics.csv."""

    def __init__(self, planned: Any, console: Any, beating: Any, tracker: Any) -> None:
        self.planned, self.console, self.beating, self.tracker = planned, console, beating, tracker
        self.metrics: MetricsFile | None = None

    @contextmanager
    def training(self, from_step: int, validations: Sequence[Mapping[str, float]]) -> Iterator[None]:
        """Keep metrics.csv open."""
        columns = ["step", *(f"valid_{key}" for key in self.planned.task.validated)]
        rows = [{"step": int(one["step"]), **self._valid(one)} for one in validations]
        self.beating.tell(stage="training")
        self.metrics = MetricsFile(self.planned.folder.metrics, columns, from_step, rows)
        try:
            yield
        finally:
            self.metrics.close()

    def validated(self, step: int, scores: Mapping[str, float], total: int | None) -> None:
        """Tell the scores of a validation."""
        assert self.metrics is not None
        self.metrics.write({"step": step, **self._valid(scores)})
        self.tracker.log(step, {f"valid/{key}": value for key, value in scores.items()})
        self.beating.tell(step=step, total_steps=total, score=scores.get(self.planned.task.watched.key))
        words = "   ".join(f"{key} {value:.4f}" for key, value in scores.items())
        self.console.say(f"step {step:>6,}   validation {words}")

    def _valid(self, scores: Mapping[str, float]) -> dict[str, float]:
        """Return the declared ones among scores, by their columns."""
        return {f"valid_{key}": value for key, value in scores.items() if key in self.planned.task.validated}

    def on_result(self, record: Record, evaluation: Evaluation | None) -> None:
        """Tell the figures by which runs are compared."""
        figures: dict[str, Any] = {"state": record.state, "reason": record.reason, "steps": record.cost.steps}
        figures |= {"ended": record.ended, "minutes": round(record.cost.seconds / 60, 2)}
        if record.selected is not None:
            figures |= {f"selected/{key}": value for key, value in record.selected.scores.items()}
        if evaluation is not None:
            figures |= {f"test/{key}": value for key, value in evaluation.scores.items()}
        self.tracker.summary(figures)


def check_scores(task: Any, step: int, scores: Mapping[str, float]) -> None:
    """Raise UserError for other validation scores than those declared, DivergedError for one that is no number."""
    task.check_told("validation", scores)
    if (lost := next((key for key, value in scores.items() if not math.isfinite(value)), None)) is not None:
        raise DivergedError(f"the validation {lost} is not a number at step {step:,}")


class OwnTask(Task, ABC):
    """A task of one's own. Its constructor takes the settings, with their types and defaults, as a part's does.

    Interrupted training goes on from the state of the last validation. The last state is the selected one. `tested`:
    what its evaluations are on. `continuing`: what is said of a run that goes on after a step. `memory_of`: whose
    memory a record has, as `peak_memory` asks.
    """

    tested: ClassVar[str] = "test"
    memory_of: ClassVar[int] = resource.RUSAGE_SELF
    continuing: ClassVar[str] = "continues from step {:,}"

    @abstractmethod
    def train_on(self, loop: Loop) -> None:
        """Train from `loop.state` on, and call `loop.validate` now and then, the last time at the end.

        Raise DivergedError where training has failed.
        """

    @abstractmethod
    def test(self, state: Any, seed: int) -> Tested:
        """Score the state that training has left on test items."""

    def check_told(self, place: Place, scores: Mapping[str, float]) -> None:
        """Raise UserError unless these are the scores that it declares of validation, or of the test."""
        if not isinstance(scores, Mapping):
            raise UserError(f"task={self.name}: gave the {place} scores {scores!r}; allowed: a number for each name")
        declared = {score.key for score in self.scores.values() if score.place == place}
        if set(scores) != declared:
            given, allowed = (", ".join(sorted(keys)) or "none" for keys in (scores, declared))
            raise UserError(f"task={self.name}: gave the {place} scores {given}; allowed: those it declares, {allowed}")
        for name, value in scores.items():
            if not isinstance(value, Real):
                raise UserError(f"task={self.name}: the {place} score {name} is {value!r}; allowed: a number")

    def prepared(self, planned: Any, console: Any) -> Any:
        for group, part in outside_parts(planned.config).items():
            console.say(f"{group} is {part.target} of {part.file} ({part.code})")
        planned.folder.begin(planned.recipe, outside_parts(planned.config))
        planned.folder.checkpoints.mkdir(exist_ok=True)
        console.say(f"{planned.run_id}  {planned.name}")
        return planned

    def callbacks(self, planned: Any, console: Any, beating: Any, tracker: Any) -> RunCallbacks:
        return RunCallbacks(planned, console, beating, tracker)

    def train(self, work: Any, callbacks: RunCallbacks, stops: Stops | None = None) -> Record | None:
        loop = Loop(work, callbacks, stops)
        if loop.step:
            callbacks.console.say(f"{work.run_id} {self.continuing.format(loop.step)}")
        diverged: str | None = None
        unnamed = self.unnamed()
        with callbacks.training(loop.step, loop.validations):
            try:
                loop.ask()  # it may have been killed after the search had decided
                self.train_on(loop)
            except DivergedError as error:
                diverged = str(error)
            except EndedEarly as ended:
                callbacks.tracker.summary({"state": "stopped", "reason": str(ended)})
                callbacks.console.say(f"{work.run_id} {ended}; the same line, typed again, continues from there")
                return None
        if diverged is None and not loop.validations:
            raise self._unvalidated()
        told = None if diverged is not None else self.told_cost(loop.state)
        record = _record(work, loop, diverged, _cost(loop, told, peak_memory(self.memory_of)))
        if unnamed:
            record = record.model_copy(update={"provenance": {**record.provenance, UNNAMED: unnamed}})
        work.folder.write_record(record)
        work.folder.tidy()
        return record

    def unnamed(self) -> dict[str, str]:
        """Return digests of files that training may read although no setting names them, by their paths."""
        return {}

    def told_cost(self, state: Any) -> ToldCost | None:
        """Return what the program said of its own cost, of the state that training has left; None if nothing."""
        return None

    def _unvalidated(self) -> UserError:
        return UserError(f"task={self.name}: training ended without a validation; allowed: at least one, at the end")

    def _check_items(self, found: Tested) -> None:
        """Raise UserError for items that are no sums of a score."""
        declared = {score.key for score in self.scores.values()}
        for key, rows in found.items.items():
            if key not in declared:
                raise UserError(f"task={self.name}: items of {key}, which is no score; {choices(key, declared)}")
            for number, row in enumerate(rows):
                sums = list(row) if isinstance(row, Iterable) and not isinstance(row, str) else [None]
                if not all(isinstance(one, Real) and math.isfinite(one) for one in sums):
                    raise UserError(
                        f"task={self.name}: item {number} of {key} is {row!r}; allowed: its sums, finite numbers"
                    )

    def dry_run(self, planned: Any) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            loop = TriedLoop(planned, Path(folder))
            try:
                self.train_on(loop)
            except EndedEarly:
                loop.has_validated = True
        if not loop.has_validated:
            raise self._unvalidated()
        return {"parameters": None, "seconds_per_step": loop.seconds_per_step, "total_steps": loop.total}

    def evaluate(self, planned: Any, record: Record, callbacks: RunCallbacks) -> None:
        callbacks.beating.tell(stage="evaluating")
        state = read_json(planned.folder.checkpoints / STATE)["state"]
        began = time.perf_counter()
        found = self.test(state, planned.config.seed)
        if not isinstance(found, Tested):
            raise UserError(f"task={self.name}: its test returned a {type(found).__name__}; allowed: a Tested")
        self.check_told("test", found.scores)
        self._check_items(found)
        if lost := [key for key, value in found.scores.items() if not math.isfinite(value)]:
            raise UserError(f"task={self.name}: the test score {lost[0]} is not a number; allowed: finite ones")
        made = code("evaluation", planned.recipe)
        evaluation = Evaluation(
            evaluation_id=planned.evaluation_id,
            settings=planned.evaluation,
            test_name=self.tested,
            sentences=max(map(len, found.items.values()), default=0),
            scores={key: float(value) for key, value in found.scores.items()},
            items={key: [list(row) for row in rows] for key, rows in found.items.items()},
            seconds=time.perf_counter() - began,
            provenance_code=made.digest,
            components=dict(made.components),
            ended=now(),
        )
        planned.folder.write_evaluation(evaluation, None)


def _record(planned: Any, loop: Loop, diverged: str | None, cost: Cost) -> Record:
    made = provenance(planned.recipe)
    state = planned.folder.checkpoints / STATE
    last = loop.validations[-1] if loop.validations else {}
    return Record(
        run_id=planned.run_id,
        condition_id=identity.condition_id(planned.recipe),
        name=planned.name,
        choices=planned.composed.choices,
        state="finished" if diverged is None else "diverged",
        reason="steps" if diverged is None else diverged,
        time_limited=False,
        selected=None
        if diverged is not None
        else Selected(steps=[loop.step], scores={key: value for key, value in last.items() if key != "step"}),
        validations=loop.validations,
        cost=cost,
        data={"sha256": {}, **({"state": sha256(state)} if state.exists() else {}), **_artefacts(planned.folder)},
        runtime={**planned.config.part(Role.RUNTIME), "device": "cpu"},
        provenance=made,
        config=planned.config.model_dump(serialize_as_any=True),
        metrics=sealed(planned.folder.metrics),
        ended=now(),
    )


def _artefacts(folder: Any) -> dict[str, dict[str, str]]:
    """Return the digests of the artefacts that training has left, by their files, if there are any."""
    digests = {path.name: sha256(path) for path in sorted(folder.artefacts.glob("[!.]*"))}
    return {"artefacts": digests} if digests else {}


def _cost(loop: Loop, told: ToldCost | None, measured: int) -> Cost:
    """Return what was measured, and what only the program knows. Its seconds replace none: a score is measured."""
    memory = None if told is None else told.memory
    return Cost(
        steps=loop.step,
        tokens=0 if told is None or told.tokens is None else told.tokens,
        seconds=loop.seconds,
        train_seconds=loop.seconds,
        peak_memory_bytes=measured if memory is None else memory,
        told=told,
    )


def peak_memory(who: int) -> int:
    """Return the most bytes of memory that this process has had, RUSAGE_SELF, or one of its children that ended."""
    return resource.getrusage(who).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
