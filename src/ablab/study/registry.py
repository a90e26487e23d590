"""What a study leaves beside its runs: its claims as they stood when it began, and readable links to the runs."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.files import folder_name, read_json, write_json
from ablab.identity import condition_id
from ablab.store.records import now
from ablab.study.arms import Study


def register(study: Study, *, already_done: int) -> None:
    """Write down claims and seeds that are new, and how many runs were finished by then.

    Claims that come after runs have ended can be chosen by their outcome; the report must be able to tell.
    """
    try:
        study.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"outputs: nothing can be written in {study.folder} ({error.strerror})") from None
    path = study.folder / "registered.json"
    known: list[dict[str, Any]] = read_json(path) if path.exists() else []
    said = _said(study)
    if not known or known[-1]["digest"] != said["digest"]:
        entry = {
            **said,
            "conditions": conditions(study),
            "judged": judged(study),
            "registered": now(),
            "runs_already_done": already_done,
            "runs": len(study.runs),
            "typed": list(study.typed),
        }
        write_json(path, [*known, entry])
    write_json(
        study.folder / "runs.json",
        [
            {"arm": cell.arm, "seed": cell.seed, "run_id": cell.planned.run_id, "words": list(cell.words)}
            for cell in study.cells
        ],
    )


def conditions(study: Study) -> dict[str, str]:
    """The recipe of each arm, whatever the seed, by its id."""
    return {cell.arm: condition_id(cell.planned.recipe) for cell in study.cells if cell.seed == study.seeds[0]}


def judged(study: Study) -> dict[str, str]:
    """How the runs of each arm meet the test set, whole and pruned, by the ids of that."""
    return {cell.arm: f"{cell.planned.evaluation_id} {cell.planned.curve_id}" for cell in study.cells}


def _said(study: Study) -> dict[str, Any]:
    experiment = study.experiment
    content = {
        "question": None if experiment is None else experiment.question,
        "arms": [arm.name for arm in study.arms],
        "baseline": study.baseline,
        "seeds": list(study.seeds),
        "claims": [claim.model_dump() for claim in study.claims],
    }
    return {**content, "digest": hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:11]}


def link(study: Study) -> None:
    """`<arm>/<seed>` -> the run, for people who look into folders."""
    for cell in study.cells:
        place = study.folder / folder_name(cell.arm) / str(cell.seed)
        target = Path(os.path.relpath(cell.planned.folder.path, place.parent))
        if not cell.planned.folder.path.exists() or (place.is_symlink() and Path(os.readlink(place)) == target):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(target, target_is_directory=True)
