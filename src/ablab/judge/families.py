"""Studies that were registered on the same runs: each has its own 5 %, and a reader must know of all of them."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ablab.errors import UserError
from ablab.files import json_digest, read_json
from ablab.judge.registration import Registered
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.store.chain import RECORD, Chain
from ablab.store.run_folder import RunFolder
from ablab.study.claims import Settled, asked

Run = tuple[str, int]
"""A run by the id of its recipe without the seed, and the seed: known before it has begun."""


def sharing(selection: SelectedArms) -> list[SelectedArms]:
    """Return other registrations of the store that claim something about runs of the selection's registered claims.

    Each as it was registered, before any of its runs had ended. What is registered later is exploratory on its own
    page, and needs no part of the error of those that came before.
    """
    registered = selection.registered
    if selection.study is None or registered is None:
        return []
    own = _runs(registered)
    found = []
    for folder in sorted(path.parent for path in selection.study.parent.glob("*/registered.json")):
        if folder != selection.study:
            with suppress(UserError):  # its own report says that it cannot be read
                early = [one for one in Registered.every(folder) if not one.runs_already_done]
                found += [_selected(selection, folder, one) for one in early if own & _runs(one)]
    return found


def registered_before(selection: SelectedArms, chain: Chain) -> list[str]:
    """Return the other studies that were registered before the first of the selection's runs had ended."""
    runs = {run.folder.run_id for run in selection.rests_on}
    found: dict[str, None] = {}
    for entry in chain.entries:
        if entry.what == "written" and entry.file == RECORD and entry.run in runs:
            break
        if entry.what == "registered" and entry.study is not None:
            found[entry.study] = None
    return [name for name in found if selection.study is not None and name != selection.study.name]


def claim_key(selection: SelectedArms, claim: Settled) -> str:
    """Return what a claim says of which runs: the same for a copy of it in another file, under other names of arms."""
    assert selection.registered is not None
    about = selection.registered
    arms = sorted((about.condition(name), about.way(name), weight) for name, weight in claim.weights.items())
    rest = asked(claim).model_dump(mode="json", exclude={"arm", "baseline", "parts"})
    return json_digest([arms, about.seeds, about.error, about.looks, rest], 11)


def _runs(registered: Registered) -> set[Run]:
    names = {name for claim in registered.claims for name in claim.weights}
    conditions = {registered.condition(name) for name in names} - {None}
    return {(condition, seed) for condition in conditions if condition is not None for seed in registered.seeds}


def _selected(selection: SelectedArms, folder: Path, registered: Registered) -> SelectedArms:
    """Return the arms of another registration, with the runs that are there."""
    ids: dict[tuple[str, int], str] = {}
    with suppress(UserError, OSError, LookupError, TypeError):
        ids = {(one["arm"], one["seed"]): one["run_id"] for one in read_json(folder / "runs.json")}
    arms = [ArmRuns(name, list(_runs_of(selection.outputs, registered, name, ids))) for name in registered.conditions]
    return SelectedArms(
        name=folder.name,
        arms=arms,
        baseline=arms[0].name,
        metric=selection.task.primary,
        claims=registered.claims,
        registered=registered,
        outputs=selection.outputs,
        error=registered.error,
        measures=selection.measures,
        task=selection.task,
    )


def _runs_of(outputs: Path, registered: Registered, arm: str, ids: dict[tuple[str, int], str]) -> Iterator[ArmRun]:
    evaluation, _, curve = registered.judged.get(arm, "").partition(" ")
    for seed in registered.seeds:
        folder = RunFolder(outputs / "runs" / ids.get((arm, seed), ""))
        with suppress(UserError):
            run = ArmRun.read(folder, evaluation, curve)
            if run is not None and run.record is not None and run.record.condition_id == registered.conditions[arm]:
                yield run
