"""Closing a study on record: its missing runs are given up, with a reason that its report repeats."""

from pathlib import Path

from pydantic import BaseModel

from ablab.errors import UserError
from ablab.files import read_json
from ablab.store.chain import complete
from ablab.store.records import now
from ablab.store.register import Register
from ablab.study.extending import extend, extensions
from ablab.study.ledger import RESULTS, State, ledger
from ablab.study.study import Cell, Study


class Closing(BaseModel):
    """Runs that were given up together. `runs`: their states then, by run id; of a run that is there, by task."""

    reason: str
    closed: str
    runs: dict[str, str]

    def gives_up(self, cell: Cell) -> bool:
        """Return whether the run of this cell is among them, or its evaluation or curve."""
        return task(cell) in self.runs or cell.planned.run_id in self.runs


def task(cell: Cell) -> str:
    """Return the id of what a run is asked for: arms that differ by pruning alone share their runs."""
    planned = cell.planned
    return " ".join(part for part in (planned.run_id, planned.evaluation_id, planned.curve_id) if part)


def closings(folder: Path) -> list[Closing]:
    """Return the closings of the study in this folder, oldest first. Raises UserError where they cannot be read."""
    path = folder / "closed.json"
    if not path.exists():
        return []
    try:
        return [Closing.model_validate(entry) for entry in read_json(path)]
    except (ValueError, TypeError):
        raise UserError(f"{path}: cannot be read as closings of the study") from None


def close(study: Study, reason: str) -> Closing:
    """Record that the study's missing runs are given up. Raises UserError where nothing is missing, or runs go on."""
    if not reason.strip():
        raise UserError("close=: says nothing; allowed: the reason, such as close='the machine is gone'")
    if not (study.folder / "registered.json").exists():
        raise UserError(f"close={reason}: {study.name} was never launched; only a launched study can be closed")
    path = study.folder / "closed.json"
    complete(study.outputs, path)
    before = closings(study.folder)
    missing = {
        entry.cell.planned.run_id if entry.record is None else task(entry.cell): entry.state
        for entry in ledger(study).values()
        if entry.state not in RESULTS and not any(closing.gives_up(entry.cell) for closing in before)
    }
    running = [run for run, state in missing.items() if state is State.RUNNING]
    typed = f"close={reason}"
    if running:
        raise UserError(
            f"{typed}: {len(running)} runs go on now, such as {running[0].split()[0]}; wait for them, or stop them"
        )
    if not missing:
        raise UserError(f"{typed}: each of the {len(study.runs)} runs of {study.name} has ended or was given up")
    closing = Closing(reason=reason.strip(), closed=now(), runs={run: state.value for run, state in missing.items()})
    content = [entry.model_dump() for entry in (*before, closing)]
    Register(study.outputs).write(path, content, "closed", study=study.folder.name)
    if study.looks is not None:  # no look comes after a seed that is missing
        seeds = {arm.name: len(study.cells_of(arm.name)) for arm in study.arms}
        extend(study, seeds, extensions(study.folder), ended=f"runs were given up: {closing.reason}")
    return closing
