"""The task `command`: to train is to run a command once, with its words filled in for an arm and a seed."""

import math
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np

from ablab.errors import UserError
from ablab.fields import EVALUATION, RUNTIME, NonNegative, Positive
from ablab.files import read_json, sha256, write_json
from ablab.store.records import Record, ToldCost
from ablab.store.run_folder import RunFolder
from ablab.tasks.command.artefacts import write_artefacts
from ablab.tasks.command.inputs import digests_of, image_files, program, undeclared, unpinned, version_of
from ablab.tasks.command.process import execute
from ablab.tasks.command.result import (
    CommandError,
    CommandResult,
    CurvePoint,
    JoinedPoints,
    ProgressLines,
    check_bounds,
    check_declared,
    read_result,
)
from ablab.tasks.command.words import ALL_NAMES, OF_A_RUN, Value, check_words, filled
from ablab.tasks.own import Loop, OwnTask, RunCallbacks, Tested
from ablab.tasks.score import Place, Score, Scores
from ablab.tasks.task import FAILURES
from ablab.text import is_one_line

FOLDER = "work"
"""The folder of a run that belongs to its command, in the run's own."""

OF_A_SCORE = ("better", "unit", "digits", "title", "low", "high")
BETTER = ("higher", "lower")


THREADS = "OMP_NUM_THREADS"

LISTED = "a column of every list of runs"

TAKEN = {
    FAILURES: "the share of runs that diverge",
    "seconds": "the time that every run has",
    "step": "when a score was told",
    "memory": "the memory that every run has",
    "parameters": "a column of tables of runs",
    "size": "the size of a run's folder",
    **dict.fromkeys(("id", "name", "state", "seed", "study", "arm", "label", "ended"), LISTED),
    **dict.fromkeys(("training_speed", "decoding_speed", "depth"), "a measure of trained models"),
}
"""Names that are no score's of a command: lists, conditions and claims take them for something else."""


class Command(OwnTask):
    """A run of a command.

    `command`: its words, never a shell's; `environment`: variables that are set for it. Names in braces are filled in:
    those of `values`, and {seed}, {folder} (where it may keep files, checkpoints too), {result} (the JSON file that it
    writes) and {progress} (lines of JSON that it may append). `inputs`: files, folders and patterns whose content makes
    another run if it changes. `scores`: by name, `better`, and if wanted `unit`, `digits`, `title`, and
    its bounds `low` and `high`. `check`: values
    of a dry run. `timeout`: minutes; `grace`: seconds from SIGTERM to SIGKILL.
    """

    name = "command"
    has_own_scores = True
    is_heard = True
    tested = "result"
    continuing = "had come to step {:,}"
    memory_of = resource.RUSAGE_CHILDREN
    scores: Scores = MappingProxyType({})
    primary = loss = ""
    costs: ClassVar[Scores] = {"seconds": Score("time of a run", "s", 2, False, "training", "seconds")}

    def __init__(
        self,
        command: list[str],
        values: dict[str, str | int | float | bool | None],
        inputs: list[str],
        environment: dict[str, str],
        scores: Annotated[dict[str, dict[str, str | int | float]], EVALUATION],
        check: Annotated[dict[str, str | int | float | bool | None], RUNTIME],
        timeout: Annotated[Positive | None, RUNTIME],
        grace: Annotated[NonNegative, RUNTIME],
    ) -> None:
        self.command, self.values, self.inputs, self.environment = command, values, inputs, environment
        self.at_check, self.timeout, self.grace = check, timeout, grace
        self.scores = {name: _score(name, about) for name, about in scores.items()}
        self.bounds = {name: _bounds(f"scores.{name}", about) for name, about in scores.items()}
        self.primary = self.loss = next(iter(self.scores), "")
        self.listed, self.beside = tuple(self.scores)[:3], tuple(self.scores)

    def check(self, config: Any) -> None:
        check_words(self.command, self.environment, self.values)
        if not self.scores:
            raise UserError("scores: there is none; allowed: names in the result, as in {val_loss: {better: lower}}")
        for name in self.scores:
            if name in TAKEN:
                raise UserError(f"scores.{name}: that is {TAKEN[name]}; allowed: another name")
        for name in self.values:
            if name in self.scores or TAKEN.get(name) == LISTED:
                what = "a score" if name in self.scores else LISTED
                raise UserError(f"values.{name}: that is {what}, which conditions take it for; allowed: another name")
        for name in self.at_check:
            if name not in self.values:
                raise UserError(f"check.{name}: no such value; allowed: {', '.join(self.values) or 'none'}")
        if config.smoke:
            raise UserError("smoke=true: a command has no smoke run; allowed: ablab check, with the words of the study")
        if config.trainer.devices != 1:
            raise UserError(f"trainer.devices={config.trainer.devices}: a command is one process; allowed: 1")
        program(self._of_arm()[0])

    def recipe(self, config: Any, origin: str | None) -> dict[str, Any]:
        version = version_of(program(self._of_arm()[0]))
        interpreter = {} if version is None else {"interpreter": version}
        images, store = image_files(self._of_arm(), self.inputs), Path(config.outputs)
        return {
            **super().recipe(config, origin),
            "inputs": digests_of(self.inputs, store),
            **interpreter,
            **({"container": sorted(digests_of(images, store).values())} if images else {}),
        }

    def way(self) -> str:
        return " ".join(f"{name}={BETTER[not score.higher_is_better]}" for name, score in sorted(self.scores.items()))

    def called(self, key: str) -> str | None:
        name = key.removeprefix("task.values.")
        return None if name == key else name

    def converging(self, score: Score) -> None:
        """What a command calls a score need not be one of training."""

    def cautions(self) -> list[str]:
        paths = undeclared(self._of_arm(), self.inputs)[:5]
        said = [f"{path} is not among inputs: to edit it makes no other run, until it is added" for path in paths]
        if (image := unpinned(self._of_arm())) is None:
            return said
        other = "may be another image tomorrow, and the run would have the same id"
        return [*said, f"{image} {other}; name it by its digest, as in NAME@sha256:..."]

    def unnamed(self) -> dict[str, str]:
        return {path: sha256(Path(path)) for path in undeclared(self._of_arm(), self.inputs)}

    def prepared(self, planned: Any, console: Any) -> Any:
        console.say_all(self.cautions())
        return super().prepared(planned, console)

    def _of_arm(self) -> list[str]:
        """Return the words with the values of the arm; what differs between its runs keeps its name in braces."""
        return filled(self.command, {**{name: f"{{{name}}}" for name in OF_A_RUN}, **self.values})

    def train_on(self, loop: Loop) -> None:
        if loop.state is not None:
            return  # its result was read before a kill
        folder = loop.folder / FOLDER
        folder.mkdir(exist_ok=True)
        artefacts = RunFolder(loop.folder).artefacts
        write_artefacts(artefacts, {}, folder)  # those of an attempt before say nothing of what this one comes to
        progress = ProgressLines(folder / "progress.jsonl")

        joined, has_ended = JoinedPoints(self.scores), False

        def note(points: Sequence[CurvePoint]) -> None:
            for point in joined.whole(points, is_all=has_ended):
                last = loop.validations[-1]["step"] if loop.validations else -1
                if point.step > last:  # a command that begins anew writes again what is known
                    # One that has come to its end is not stopped early: each may be the last step.
                    loop.validate(point.step, self._told(point.scores), None, point.step if has_ended else None)

        def watch() -> None:
            news = progress.news()
            if any(point.step <= first for point in news):
                loop.begin_anew()
            note(news)

        before = digests_of(self.inputs, Path(loop.config.outputs))
        note(progress.news())  # what an earlier attempt told and was killed before it was noted
        first = loop.validations[0]["step"] if loop.validations else -math.inf
        try:
            found = self._run(folder, loop.seed, self.values, loop.config.trainer.threads, watch)
            has_ended = True
        finally:
            watch()
        now = digests_of(self.inputs, Path(loop.config.outputs))
        if changed := [name for name, digest in now.items() if digest != before[name]]:
            raise CommandError(
                f"inputs: {', '.join(changed)} changed while the command ran, so that nobody knows what it read; "
                "allowed: inputs that stay as they are, and that the command does not write"
            )
        note(sorted(found.curve, key=lambda point: point.step))
        items = {name: [[value, 1.0] for value in values] for name, values in found.items.items()}
        write_artefacts(artefacts, found.artefacts, folder)
        cost = {} if found.cost is None else {"cost": found.cost.model_dump()}
        loop.validate(loop.step + 1, self._told(found.scores), {"items": items, **cost}, loop.step + 1)

    def told_cost(self, state: Any) -> ToldCost | None:
        return ToldCost(**state["cost"]) if "cost" in state else None

    def _told(self, scores: Mapping[str, float]) -> dict[str, float]:
        """Return the scores without those that are neither declared nor finite: they are no outcome of the run."""
        return {
            name: score
            for name, score in scores.items()
            if name in self.scores or (math.isfinite(score) and name != "step")  # which says when, in a curve
        }

    def test(self, state: Any, seed: int) -> Tested:
        return Tested({}, {name: rows for name, rows in state["items"].items() if name in self.scores})

    def evaluate(self, planned: Any, record: Record, callbacks: RunCallbacks) -> None:
        """A run that was made for another study may have none of a score that this one declares."""
        told = {} if record.selected is None else record.selected.scores
        where = f"{planned.run_id}, which had ended (rerun=true runs it again)"
        check_declared(where, told, self.scores)
        for name in self.scores if record.selected is not None else ():
            check_bounds(where, name, told[name], *self.bounds[name])
        super().evaluate(planned, record, callbacks)

    def check_told(self, place: Place, scores: Mapping[str, float]) -> None:
        """A command may tell of more than it declares, and of less before its end."""

    def is_tried_first(self) -> bool:
        """A file that gives the values of a check asks for it: whether the seed decides the scores is soon seen."""
        return bool(self.at_check)

    def dry_run(self, planned: Any) -> dict[str, Any]:
        """Run it twice with one seed and once with another: runs that are equal under all seeds are no evidence."""
        values = {**self.values, **self.at_check}
        with tempfile.TemporaryDirectory() as parent:
            results = []
            for number, seed in enumerate((planned.config.seed, planned.config.seed, planned.config.seed + 1)):
                folder = Path(parent) / str(number)
                folder.mkdir()
                results.append(self._run(folder, seed, values, planned.config.trainer.threads))
        return {"parameters": None, "seconds_per_step": None, "total_steps": None, **self._law_of_seeds(results)}

    def _law_of_seeds(self, results: Sequence[CommandResult]) -> dict[str, Any]:
        one, again, other = ({name: found.scores[name] for name in self.scores} for found in results)
        gaps = {name: abs(one[name] - again[name]) for name in self.scores if one[name] != again[name]}
        if other == one:
            raise UserError(
                "another seed gives equal scores, so that copies of a run are no evidence; allowed: a command whose "
                f"scores depend on {{seed}}, which is in {', '.join(_carrying_seed(self.command, self.environment))}"
            )
        fixed = [name for name in self.scores if name not in gaps and one[name] == other[name]]
        idle = f"; another seed leaves {' and '.join(fixed)} as it is, of which copies are no evidence" if fixed else ""
        if gaps:
            gap = ", ".join(f"{name} by {value:.3g}" for name, value in gaps.items())
            return {"note": f"not deterministic: with one seed, two runs differ in {gap}{idle}", "gaps": gaps}
        return {"note": f"deterministic: with one seed, two runs have equal scores{idle}"}

    def _run(
        self,
        folder: Path,
        seed: int,
        values: Mapping[str, Value],
        threads: int | None,
        watch: Callable[[], None] | None = None,
    ) -> CommandResult:
        """Run the command in a folder, which may have files of an earlier attempt, and read its result.

        Where nobody watches, nobody hears what it says.
        """
        result, attempts = folder / "result.json", folder / ".attempts.json"
        attempt = 1 + (read_json(attempts) if attempts.exists() else 0)
        write_json(attempts, attempt)
        shutil.rmtree(result) if result.is_dir() and not result.is_symlink() else result.unlink(missing_ok=True)
        places = {"folder": folder, "result": result, "progress": folder / "progress.jsonl"}
        known = {**values, "seed": seed, **{name: str(path.resolve()) for name, path in places.items()}}
        own = dict(zip(self.environment, filled(self.environment.values(), known), strict=True))
        is_said = threads is None or THREADS in os.environ  # a program's user knows better
        limits = {} if is_said else {THREADS: str(threads)}
        execute(
            filled(self.command, known),
            {**limits, **own, "ABLAB_ATTEMPT": str(attempt)},
            watch or (lambda: None),
            is_heard=watch is not None,
            timeout=None if self.timeout is None else 60 * self.timeout,
            grace=self.grace,
        )
        return read_result(result, {name: self.bounds[name] for name in self.scores})


def _score(name: str, about: Mapping[str, Any]) -> Score:
    where = f"scores.{name}"
    if not name.isidentifier() or not name.isascii():
        raise UserError(f"{where}: allowed: a name of {ALL_NAMES}")
    if unknown := [key for key in about if key not in OF_A_SCORE]:
        raise UserError(f"{where}.{unknown[0]}: no such key; allowed: {', '.join(OF_A_SCORE)}")
    if about.get("better") not in BETTER:
        raise UserError(f"{where}.better={about.get('better')}: allowed: {', '.join(BETTER)}")
    digits = about.get("digits", 4)
    if not isinstance(digits, int) or not 0 <= digits <= 12:
        raise UserError(f"{where}.digits={digits}: allowed: 0 to 12")
    title, unit = str(about.get("title", name)), str(about.get("unit", ""))
    for key, text in (("title", title), ("unit", unit)):
        if not is_one_line(text):
            raise UserError(f"{where}.{key}={text!r}: allowed: text on one line")
    return Score(title, unit, digits, about["better"] == "higher", "validation", name, of_sums=_mean)


def _bounds(where: str, about: Mapping[str, Any]) -> tuple[float, float]:
    low, high = about.get("low", -math.inf), about.get("high", math.inf)
    if isinstance(low, str) or isinstance(high, str) or not low < high:
        raise UserError(f"{where}: low={low}, high={high}: allowed: numbers, low below high")
    return low, high


def _carrying_seed(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the words that carry the seed, as a reader finds them: with their number, counted from 1."""
    words = [f"word {number} ({word})" for number, word in enumerate(command, 1) if "{seed}" in word]
    return [*words, *(f"{name}={value}" for name, value in environment.items() if "{seed}" in value)]


def _mean(sums: Any) -> Any:
    """Return the mean over items, of the sums of their values and of their number."""
    return np.asarray(sums)[..., 0] / np.asarray(sums)[..., 1]
