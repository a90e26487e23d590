"""The `dashboard` command: the workspace and the report of a study in W&B."""

import json
from collections.abc import Sequence
from importlib.util import find_spec

from ablab.commands.options import DashboardOptions
from ablab.errors import DONE, UserError
from ablab.report.dashboard.content import Content, content_of, last_report, unsent, without_wandb
from ablab.study.definition import define
from ablab.study.ledger import RESULTS, ledger
from ablab.study.study import Study
from ablab.tasks.verbs import split_words
from ablab.text import have, how_many
from ablab.tracking.console import Console
from ablab.tracking.server import check_server
from ablab.tracking.wandb import share


def dashboard(arguments: Sequence[str]) -> int:
    """Make the dashboard of a study, or print its specification."""
    options, words = split_words(DashboardOptions, arguments)
    if not words:
        raise UserError("dashboard: say experiment=<name>, or the words of a sweep")
    if find_spec("wandb_workspaces") is None:
        raise UserError("wandb-workspaces is not installed; pip install 'ablab[dashboard]'")
    study = define(tuple(words))
    document = last_report(study)
    if options.dry_run:
        _print(content_of(study, document))
        return DONE
    check_server("; dry_run=true prints what would be")
    content = content_of(study, document)  # writes, so all that can be refused is refused before
    from ablab.report.dashboard.send import send

    for entry in ledger(study).values():
        if entry.state in RESULTS:
            share(entry.cell.planned.folder, study.name, entry.cell.arm)
    places = send(content, study.folder)
    if options.format == "json":
        print(json.dumps(places, indent=1))  # noqa: T201
        return DONE
    _say(study, places, Console())
    return DONE


def _print(content: Content) -> None:
    from ablab.report.dashboard.send import as_sent, report, workspace

    entity = content.entity or ""  # W&B knows the user's own; a dry run asks nobody
    made = {"workspace": as_sent(workspace(content, entity)), "report": as_sent(report(content, entity))}
    print(json.dumps(made, indent=1, ensure_ascii=False))  # noqa: T201


def _say(study: Study, places: dict[str, str], console: Console) -> None:
    for what, address in places.items():
        console.say(f"{what.capitalize()}: {address}")
    if absent := without_wandb(study):
        was, them = ("was", "it") if len(absent) == 1 else ("were", "them")
        console.say(f"{how_many(len(absent), 'run')} {was} made with logger=none: W&B does not have {them}")
    if waiting := unsent(study):
        console.say(f"{how_many(len(waiting), 'run')} {have(len(waiting))} something to send first")
        console.say(f"Next: ablab sync outputs={study.outputs}")
