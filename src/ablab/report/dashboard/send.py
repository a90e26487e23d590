"""A study's dashboard in the objects of wandb-workspaces, and its sending.

Typed again, the line changes the workspace and the report that it made before.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import wandb_workspaces.reports.v2 as wr
import wandb_workspaces.workspaces as ws
from wandb_workspaces import expr

from ablab.errors import LostError
from ablab.files import folder_name, read_json, write_json
from ablab.report.claim_words import answers, exploratory_words
from ablab.report.dashboard.content import Content
from ablab.report.tables import tables
from ablab.report.text import markdown_table
from ablab.tracking.events import STEP
from ablab.tracking.server import address

IN_REPORT = ("claims", "arms", "differences", "effects", "test_sets")
"""Tables of ablab's report that the W&B Report repeats."""

MOST_RUNS = 200
"""Runs that a panel averages over."""

LONGEST_TITLE = 128

TRAINING = ("train/loss", "train/learning_rate", "train/grad_norm", "train/tokens_per_second")
"""Curves of training over steps, where ablab trains."""

COST = ("parameters", "tokens_per_second")
"""Figures of a run beside its scores, likewise."""


def workspace(content: Content, entity: str) -> Any:
    """Return the workspace: the study's runs grouped by arm, and panels that average over seeds."""
    training, cost = (TRAINING, COST) if content.is_ours else ((), ())
    made = {"Validation": _curves(content, content.validated), "Training": _curves(content, training)}
    sections = [
        ws.Section(name="Test", panels=_bars(content), is_open=True),
        ws.Section(name="Depth and quality", panels=_depths(content), is_open=True),
        *(ws.Section(name=name, panels=panels, is_open=name == "Validation") for name, panels in made.items()),
    ]
    return ws.Workspace(
        entity=entity,
        project=content.project,
        name=content.study,
        sections=[section for section in sections if section.panels],
        settings=ws.WorkspaceSettings(x_axis=STEP, max_runs=MOST_RUNS),
        runset_settings=ws.RunsetSettings(
            filters=expr.And(expr.Metric("ID").isin(list(content.runs))),
            groupby=[expr.Config(content.arm)],
            order=[expr.Ordering(expr.Metric("Name"), ascending=True)],
            pinned_columns=[f"summary:{key}" for key in (*content.tested, *cost)],
        ),
    )


def report(content: Content, entity: str) -> Any:
    """Return the W&B Report: verdicts and tables as ablab reports them, and panels of the runs behind them."""
    document = content.document
    verdicts = [claim.words + exploratory_words(claim) for claim in document.claims]
    blocks: list[Any] = [wr.P(document.question)] if document.question else []
    blocks += [wr.CalloutBlock(note) for note in document.notes]
    if verdicts:
        blocks += [wr.H2("Verdicts"), wr.P(answers(document.claims)), wr.UnorderedList(verdicts)]
    for table in tables(document):
        if table.key in IN_REPORT:
            blocks += [wr.H2(table.title), wr.MarkdownBlock("\n".join(markdown_table(table)))]
    for title, panels in (
        ("Test scores by arm", _bars(content)),
        ("Depth and quality", _depths(content)),
        ("Learning curves", _curves(content, content.validated)),
    ):
        if panels:
            blocks += [wr.H2(title), wr.PanelGrid(runsets=[_runset(content)], panels=panels)]
    methods = [*document.methods, f"Report of {document.made}.", *document.custody]
    blocks += [wr.H2("Methods"), wr.UnorderedList(methods)]
    return wr.Report(
        project=content.project,
        entity=entity,
        title=f"Study {content.study}"[:LONGEST_TITLE],
        description=document.question,
        blocks=blocks,
        width="fluid",
    )


def as_sent(made: Any) -> dict[str, Any]:
    """Return what W&B is sent of a workspace or a report, as plain values."""
    spec: dict[str, Any] = made._to_model().model_dump(mode="json", by_alias=True, exclude_none=True)
    return spec


def _runset(content: Content) -> Any:
    return wr.Runset(
        name=content.study,
        filters=expr.And(expr.Metric("ID").isin(list(content.runs))),
        groupby=[f"config.{content.arm}"],
        order=[wr.OrderBy("Name", ascending=True)],
    )


def _averaged(content: Content) -> dict[str, Any]:
    """Return the settings of a panel with one line or bar for each arm: the mean over seeds, and their range."""
    return {
        "groupby": wr.Config(content.arm),
        "groupby_aggfunc": "mean",
        "groupby_rangefunc": "minmax",
        "max_runs_to_show": MOST_RUNS,
    }


def _bars(content: Content) -> list[Any]:
    averaged = _averaged(content)
    return [wr.BarPlot(title=key, metrics=[wr.SummaryMetric(key)], **averaged) for key in content.tested]


def _curves(content: Content, keys: Sequence[str]) -> list[Any]:
    averaged = _averaged(content)
    return [wr.LinePlot(title=key, x=STEP, y=[key], title_x=STEP, **averaged) for key in keys]


def _depths(content: Content) -> list[Any]:
    """Return a panel for each way of pruning: the test score over the layers or heads that remain."""
    averaged = _averaged(content)
    return [
        wr.LinePlot(
            title=f"{content.primary[:1].upper()}{content.primary[1:]} by depth: {depth.title}",
            x=depth.axis,
            y=[depth.key],
            title_x=depth.axis.removeprefix("axis/").replace("_", " "),
            title_y=content.primary,
            **averaged,
        )
        for depth in content.depths
    ]


PLACES = "dashboard.json"
"""File, in the folder of the study, with the ids and addresses of what was made; that of fewer seeds has their name."""


def send(content: Content, folder: Path) -> dict[str, str]:
    """Make or change both in W&B; return their addresses. Raises LostError if W&B does not take them.

    `folder`: of the study, which keeps their ids.
    """
    os.environ.setdefault("WANDB_SILENT", "true")
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    is_whole = folder.name == folder_name(content.study)
    path = folder / (PLACES if is_whole else f"dashboard-{folder_name(content.study)}.json")
    try:
        entity = content.entity or wandb.Api().default_entity
        where = f"{address()}/{entity}/{content.project}"
        known = _known(path, where)
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
            f"{path} is removed"
        ) from None
    ids = {
        "workspace_name": shown._internal_name,
        "workspace_id": shown._internal_id,
        "report_id": told.id,
    }
    write_json(path, {"where": where, **ids, **places})
    return places


def _known(path: Path, where: str) -> dict[str, Any]:
    """Return the ids of an earlier dashboard in the same project; none if there is none."""
    found = read_json(path) if path.exists() else {}
    return found if isinstance(found, dict) and found.get("where") == where else {}
