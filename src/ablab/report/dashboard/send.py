"""Sending of a dashboard: typed again, the line changes the workspace and the report that it made before."""

import os
from pathlib import Path
from typing import Any

from ablab.errors import LostError
from ablab.files import read_json, write_json
from ablab.report.dashboard.content import Content
from ablab.report.dashboard.specification import report, workspace
from ablab.tracking.server import address

PLACES = "dashboard.json"
"""File, in the folder of the study, with the ids and addresses of what was made."""


def send(content: Content, folder: Path) -> dict[str, str]:
    """Make or change both in W&B; return their addresses. Raises LostError if W&B does not take them.

    `folder`: of the study, which keeps their ids.
    """
    os.environ.setdefault("WANDB_SILENT", "true")
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    try:
        entity = content.entity or wandb.Api().default_entity
        where = f"{address()}/{entity}/{content.project}"
        known = _known(folder / PLACES, where)
        shown, told = workspace(content, entity), report(content, entity)
        shown._internal_name, shown._internal_id = known.get("workspace_name", ""), known.get("workspace_id", "")
        told.id = known.get("report_id", "")
        told.save()  # the first makes the project, if there is none
        shown.save()
        places = {"workspace": str(shown.url), "report": str(told.url)}
    except Exception as error:  # whatever W&B raises is its own trouble
        words = " ".join(str(error).split())[:200] or type(error).__name__
        raise LostError(
            f"W&B has not taken the dashboard ({words}); the same line tries again, and makes another one if "
            f"{folder / PLACES} is removed"
        ) from None
    ids = {
        "workspace_name": shown._internal_name,
        "workspace_id": shown._internal_id,
        "report_id": told.id,
    }
    write_json(folder / PLACES, {"where": where, **ids, **places})
    return places


def _known(path: Path, where: str) -> dict[str, Any]:
    """Return the ids of an earlier dashboard in the same project; none if there is none."""
    found = read_json(path) if path.exists() else {}
    return found if isinstance(found, dict) and found.get("where") == where else {}
