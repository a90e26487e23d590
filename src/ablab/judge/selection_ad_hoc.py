"""Select any finished runs of a store, one arm for each recipe."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.fields import flatten
from ablab.files import json_digest
from ablab.judge.metrics import measures
from ablab.judge.runs import ArmRun, ArmRuns, recipe_of, with_arrays
from ablab.judge.selection import SelectedArms, most_common, shared, way_of
from ablab.store.finished import FinishedRun, open_runs
from ablab.store.records import Curve, Evaluation, Record
from ablab.store.run_folder import RunFolder, all_runs
from ablab.study.loop import Ledger
from ablab.tasks.conditions import conditions as parsed
from ablab.tasks.conditions import meeting, near_miss, values_of
from ablab.tasks.identity import condition_id, distinct
from ablab.tasks.registry import known_scores, task_recorded

OF_LISTS = ("study", "arm", "label", "id", "name", "ended", "size")
"""Conditions on what a store knows of runs, and no report."""


def of_runs(runs: str, outputs: Path) -> SelectedArms:
    """Select the runs named in `runs`, one arm for each recipe; the first is the baseline."""
    return of_finished(open_runs(None, runs, outputs), f"runs={runs}", outputs)


def of_finished(runs: Iterable[FinishedRun], question: str, outputs: Path) -> SelectedArms:
    """Select these runs, one arm for each recipe; the first is the baseline."""
    return _ad_hoc("runs", question, [(run.folder, run.record) for run in runs], outputs)


def of_loop(ledger: Ledger) -> SelectedArms:
    """Select the runs of a loop that have ended, one arm for each recipe."""
    runs = [folder for row in ledger.noted if (folder := RunFolder(ledger.outputs / "runs" / row["run_id"])).record()]
    if not runs:
        raise UserError(f"{ledger.name}: none of its runs has ended in {ledger.outputs}")
    found = of_runs(",".join(folder.run_id for folder in runs), ledger.outputs)
    return replace(found, name=ledger.name, study=ledger.folder, chosen_by="the loop")


def where(conditions: str, outputs: Path) -> SelectedArms:
    """Select the finished runs that meet these conditions, such as `model=tiny data=multi30k` (`tasks.conditions`)."""
    if not conditions.split():
        raise UserError("where=: say which runs, such as where='model=tiny data=multi30k'")
    records, damage = _readable(all_runs(outputs))
    if not records:
        raise UserError(f"where={conditions}: no run has finished in {outputs}/runs; say outputs=<another store>")
    _check_blind(conditions, records)
    values = [values_of(one.record, one.latest) for one in records]
    are_meant = meeting(values, conditions)
    found = [(one.folder, one.record) for one, is_meant in zip(records, are_meant, strict=True) if is_meant]
    if not found:
        hint = near_miss(values, conditions)
        raise UserError(
            f"where={conditions}: none of the {len(records)} finished runs in {outputs}/runs is like that{hint}"
        )
    chosen = _ad_hoc("where", f"where={conditions}", found, outputs)
    return replace(chosen, notes=[*chosen.notes, *damage])


def _check_blind(text: str, runs: Sequence["_Found"]) -> None:
    """Raise UserError for a condition on a score: a report on runs chosen by their scores would show the choice."""
    results = {*known_scores(), *(name for run in runs for name in run.measured)}
    for condition in parsed(text):
        if condition.key in OF_LISTS:
            raise UserError(
                f"where={text}: {condition.key} is of lists of runs alone; allowed: settings, seed and state, or "
                "experiment=<study>"
            )
        if condition.key in results:
            raise UserError(
                f"where={text}: {condition.key} is a result, and choosing runs by it would make the report's own; "
                "allowed: settings, seed and state (ablab ls takes scores too)"
            )


def _readable(runs: Iterable[RunFolder]) -> tuple[list["_Found"], list[str]]:
    """Return the finished runs whose record, recipe and results can be read, and a note on the others."""
    found, damage = [], []
    for run in runs:
        try:
            if (record := run.record()) is not None:
                found.append(_Found.of(run, record))
        except UserError as error:
            damage.append(str(error))
    return found, [f"runs that cannot be read are left out: {'; '.join(damage)}"] if damage else []


def _ad_hoc(kind: str, question: str, found: Sequence[tuple[RunFolder, Record]], outputs: Path) -> SelectedArms:
    conditions: dict[str, list[_Found]] = {}
    for one in {folder.path.resolve(): _Found.of(folder, record) for folder, record in found}.values():
        conditions.setdefault(condition_id(one.recipe), []).append(one)
    names = _names([runs[0].record for runs in conditions.values()])
    everyone = [one for runs in conditions.values() for one in runs]
    usual_way = most_common([one.evaluations for one in everyone])
    usual_curve = most_common([one.curves for one in everyone])
    usual_head_curve = most_common([one.head_curves for one in everyone])
    arms, ways = [], {}
    for arm, runs in zip(names, conditions.values(), strict=True):
        way = shared(usual_way, [one.evaluations for one in runs])
        curve = shared(usual_curve, [one.curves for one in runs])
        head_curve = shared(usual_head_curve, [one.head_curves for one in runs])
        ways[arm] = next((one.evaluations[way] for one in runs if way in one.evaluations), None)
        in_order = sorted(runs, key=lambda one: one.recipe["seed"])
        arms.append(ArmRuns(arm, [one.run(way, curve, head_curve) for one in in_order]))
    ids = sorted(folder.run_id for folder, _ in found)
    name = f"{kind}-{json_digest(ids, 11)}"
    baseline = arms[0] if kind == "runs" else max(arms, key=lambda arm: (len(arm.finished), -_words(arm)))
    notes = _notes(arms, ways, sum(len(one.evaluations) for one in everyone))
    first = next((one for one in ways.values() if one is not None), None)
    task = task_recorded(found[0][1].settings, None if first is None else first.settings)
    return SelectedArms(
        name=name,
        question=question,
        arms=arms,
        baseline=baseline.name,
        metric=task.primary,
        outputs=outputs,
        measures=measures(task),
        task=task,
        notes=notes,
        chosen_by="runs=" if kind == "runs" else question,
    )


@dataclass(frozen=True)
class _Found:
    """A finished run with all evaluations of its whole model and all its curves, by their ids."""

    folder: RunFolder
    record: Record
    recipe: dict[str, Any]
    evaluations: dict[str, Evaluation]
    curves: Mapping[str, Curve]
    head_curves: Mapping[str, Curve]

    @classmethod
    def of(cls, folder: RunFolder, record: Record) -> "_Found":
        recipe = recipe_of(folder, record)
        whole = {
            found.evaluation_id: with_arrays(found) for found in folder.evaluations() if "kept" not in found.settings
        }
        curves: dict[bool, dict[str, Curve]] = {False: {}, True: {}}
        for curve in folder.curves():
            curves[curve.of_heads][curve.curve_id] = curve
        return cls(folder, record, recipe, whole, curves[False], curves[True])

    @property
    def measured(self) -> Iterable[str]:
        """The names of its scores and costs."""
        latest = self.latest
        return task_recorded(self.record.settings, None if latest is None else latest.settings).measured

    @property
    def latest(self) -> Evaluation | None:
        """The last evaluation of the whole model."""
        return next(reversed(self.evaluations.values()), None)

    def run(self, way: str, curve: str, head_curve: str) -> ArmRun:
        """Return the run with the evaluation `way` and the curves `curve` and `head_curve`."""
        evaluation = self.evaluations.get(way)
        return ArmRun(
            self.folder,
            self.recipe["seed"],
            self.record.state if self.record.state == "diverged" or evaluation else "not judged",
            self.record,
            evaluation,
            self.curves.get(curve),
            flatten(self.recipe),
            head_curve=self.head_curves.get(head_curve),
        )


def _notes(arms: Sequence[ArmRuns], ways: Mapping[str, Evaluation | None], evaluations: int) -> list[str]:
    arms_by_way: dict[str, list[str]] = {}
    for arm, way in ways.items():
        if way is not None:
            arms_by_way.setdefault(way_of(way), []).append(arm)
    notes = []
    if len(arms_by_way) > 1:
        judged = "; ".join(f"{', '.join(names)} on {way}" for way, names in arms_by_way.items())
        notes.append(f"arms are judged in different ways, so that differences may be those of the ways: {judged}")
    used = sum(run.evaluation is not None for arm in arms for run in arm.runs)
    if evaluations > used:
        ways_used = "; ".join(arms_by_way)
        left_out = f"{evaluations - used} other evaluations are left out"
        notes.append(f"scores are those on {ways_used}, which most runs have, or have since last; {left_out}")
    return notes


def _words(arm: ArmRuns) -> int:
    """Return the number of words by which the arm differs from the defaults."""
    (name,) = {run.record.name.rpartition(",")[0] for run in arm.runs[:1] if run.record}
    return len(name.split(",")) if name else 0


def _names(records: Sequence[Record]) -> list[str]:
    """Return distinct names made of the words that set each record apart from the others, the seed left out."""
    names = distinct([record.name.rpartition(",")[0] for record in records])
    return [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]
