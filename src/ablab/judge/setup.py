"""What a paper's checklist asks of the runs behind a report: their size, cost, machines, data and settings."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from ablab.judge.document import CorpusLine, Setup
from ablab.judge.runs import ArmRun
from ablab.judge.selection import SelectedArms
from ablab.store.records import Record, SharedSentences


def setup(selection: SelectedArms) -> Setup | None:
    """Return the setup of all runs of the report, each counted once; None where no run left a record."""
    runs = {run.folder.path: run for arm in selection.arms for run in arm.runs if run.record is not None}
    records = [run.record for run in runs.values() if run.record is not None]
    if not records:
        return None
    parameters = [record.cost.parameters for record in records]
    versions: list[dict[str, str]] = [record.provenance.get("versions", {}) for record in records]
    # Arms that differ by pruning alone share their trials, and their runs.
    tried = {run: own for one in selection.tuned for trial in one.trials for run, own in trial.seconds.items()}
    trained = {arm.runs[0].folder.path for arm in selection.arms if arm.runs}
    most = None if selection.looks is None else selection.looks.last
    words = [] if selection.registered is None else selection.registered.typed
    return Setup(
        runs=len(records),
        parameters=[min(parameters), max(parameters)],
        training_seconds=sum(record.cost.seconds * _devices(record) for record in records),
        evaluation_seconds=sum(run.evaluation.seconds for run in runs.values() if run.evaluation),
        tokens=sum(record.cost.tokens for record in records),
        peak_memory_bytes=max(record.cost.peak_memory_bytes for record in records),
        machines=_told(map(_machine, records)),
        python=_told(str(record.provenance.get("python", "")) for record in records),
        versions={name: _told(each.get(name, "") for each in versions) for name in dict.fromkeys(chain(*versions))},
        corpora=_corpora(list(runs.values())),
        settings=_shared(selection),
        varied=_varied(selection),
        searched=list(selection.searched),
        typed=[word for word in words if not word.startswith(OWN)],
        tuning_runs=len(tried),
        tuning_seconds=sum(tried.values()),
        fixed_seeds=most,
        fixed_runs=(most or 0) * len(trained),
        unfixed=_unfixed(selection),
    )


def _unfixed(selection: SelectedArms) -> str | None:
    registered = selection.registered
    if registered is None:
        return "no study registered them"
    if registered.runs_already_done:
        return f"{registered.runs_already_done} of the runs had finished when the study was registered"
    return selection.departed


OWN = ("outputs=", "hydra.", "logger", "trainer.progress=", "wait=")
"""Beginnings of words that say nothing of what is computed."""


def _devices(record: Record) -> int:
    trainer = record.runtime.get("trainer")
    return int(trainer.get("devices", 1)) if isinstance(trainer, dict) else 1


def _machine(record: Record) -> str:
    """Return the device, and the machine around it: `cpu: AMD EPYC, 2 cores, Linux-6.18`."""
    machine = record.provenance.get("machine", {})
    number = _devices(record)
    device = f"{number} x {record.runtime.get('device', '')}" if number > 1 else str(record.runtime.get("device", ""))
    cores = f"{machine['cores']} cores" if machine.get("cores") else ""
    around = [machine.get("processor"), cores, machine.get("system")]
    return ": ".join(part for part in (device, ", ".join(str(part) for part in around if part)) if part)


def _told(values: Iterable[str]) -> list[str]:
    """Return the distinct values that are not empty, in order."""
    return list(dict.fromkeys(filter(None, values)))


def _corpora(runs: Sequence[ArmRun]) -> list[CorpusLine]:
    found: dict[str, CorpusLine] = {}
    for run in [run for run in runs if run.evaluation] or runs:
        assert run.record is not None
        data, settings = run.record.data, run.record.config.get("data", {})
        train, valid = data.get("train", {}), data.get("valid", {})
        line = CorpusLine(
            kind=str(run.recipe.get("data.kind") or data.get("kind") or "unknown"),
            languages="-".join(str(settings[side]) for side in ("src", "tgt") if side in settings),
            train_pairs=train.get("kept"),
            train_tokens=train.get("tgt_tokens"),
            valid_pairs=valid.get("pairs"),
            test=None if run.evaluation is None else run.evaluation.test_name,
            test_sentences=None if run.evaluation is None else run.evaluation.sentences,
            digest=None if run.recipe.get("data.digest") is None else str(run.recipe["data.digest"]),
            overlap=_overlap(run),
        )
        known = found.setdefault(line.model_dump_json(exclude={"overlap"}), line)
        if None in known.overlap.values():
            found[line.model_dump_json(exclude={"overlap"})] = line
    return list(found.values())


def _overlap(run: ArmRun) -> dict[str, SharedSentences | None]:
    """Return the overlap of any two splits, from the record and the evaluation."""
    assert run.record is not None
    valid, test = run.record.data.get("overlap"), {} if run.evaluation is None else run.evaluation.overlap or {}
    return {
        "validation in training": None if valid is None else SharedSentences.model_validate(valid),
        "test in training": test.get("train"),
        "test in validation": test.get("valid"),
    }


def _recipes(selection: SelectedArms) -> list[dict[str, Any]]:
    return [dict(arm.runs[0].recipe) for arm in selection.arms if arm.runs]


def _shared(selection: SelectedArms) -> dict[str, Any]:
    """Return the settings of the recipe that all arms have in common."""
    first, *others = _recipes(selection)
    return {
        key: value
        for key, value in first.items()
        if key not in ("seed", "schema") and all(key in other and other[key] == value for other in others)
    }


def _varied(selection: SelectedArms) -> dict[str, list[Any]]:
    """Return the settings in which arms differ, and their values; None where an arm has no such setting."""
    recipes = _recipes(selection)
    keys = dict.fromkeys(key for recipe in recipes for key in recipe if key not in ("seed", "schema"))
    values = {key: [recipe.get(key) for recipe in recipes] for key in keys}
    distinct = {key: [one for at, one in enumerate(found) if one not in found[:at]] for key, found in values.items()}
    return {key: found for key, found in distinct.items() if len(found) > 1}
