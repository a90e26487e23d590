"""The `sync` command: send to W&B the events that it lacks, of each run and study of a store."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ablab.commands.options import SyncOptions
from ablab.errors import LostError, UserError
from ablab.store.heartbeat import read_pulse
from ablab.store.locks import is_running
from ablab.store.records import Strict
from ablab.store.run_folder import RunFolder
from ablab.tasks.verbs import read_words, say_json
from ablab.text import have, how_many, in_store
from ablab.tracking.card import cards_of
from ablab.tracking.console import Console
from ablab.tracking.events import EVENTS, FOLDER
from ablab.tracking.sender import is_sent
from ablab.tracking.server import check_server, out_of_reach
from ablab.tracking.tracker import RunCard
from ablab.tracking.wandb import sending, waited


class ToSend(Strict):
    """A run or study with events that W&B lacks, and the project that they go to."""

    folder: str
    project: str


class Unsent(Strict):
    """What W&B lacks, or lacked before it was sent."""

    dry_run: bool
    missing: list[ToSend]


SECONDS = 600.0
"""Seconds that W&B has for one run."""


def sync(arguments: Sequence[str]) -> int:
    """Send the events of each run in turn. One that the server does not take holds up no other."""
    options = read_words(SyncOptions, arguments)
    outputs = Path(options.outputs)
    if not outputs.is_dir():
        raise UserError(f"outputs={outputs}: no such folder")
    console = Console(stderr=options.format == "json")
    missing = list(unsent(outputs))
    what = "1 run or study" if len(missing) == 1 else f"{len(missing)} runs and studies"
    console.say(f"{what} of {outputs} {have(len(missing))} something to send")
    if missing and not options.dry_run:
        check_server()
    listed, problems = [], []
    for number, folder in enumerate(missing, 1):
        at = f"[{number}/{len(missing)}] {folder.name}"
        cards = cards_of(folder)
        if not cards:
            problems.append(f"{folder / FOLDER / EVENTS} names no run: it is damaged, and can be removed")
            console.say(f"{at}: not sent; {problems[-1]}")
            continue
        where = _project(cards[-1])
        listed.append(ToSend(folder=str(folder), project=where))
        where += f" as {cards[-1].id_there}" * (cards[-1].id_there != folder.name)
        console.say(f"{at} to {where}{': not sent' * options.dry_run}")
        if not options.dry_run and (problem := waited(sending(folder), folder, SECONDS)) is not None:
            problems.append(f"{folder}: W&B has not taken all of it ({problem})")
            if out_of_reach() is not None:
                raise LostError(f"{problems[-1]}; typed again, the line goes on there")
            console.say(f"  {problem}")
    if options.dry_run and missing:
        console.say(f"Next: ablab sync{in_store(outputs)}")
    elif former := _of_earlier_versions(outputs):
        console.say(f"{former} sessions are of an earlier version: wandb sync {outputs}/runs/*/wandb/offline-run-*")
    if options.format == "json":
        say_json(Unsent(dry_run=options.dry_run, missing=listed))
    if problems:
        more = f", and {how_many(len(problems) - 1, 'more problem')}" * (len(problems) > 1)
        raise LostError(f"{problems[0]}{more}{'' if options.dry_run else '; all else is sent'}")
    return 0


def unsent(outputs: Path) -> Iterator[Path]:
    """Yield the folders of runs and studies with events that W&B is not known to have; not of runs that go on now."""
    for kind in ("runs", "studies"):
        for path in sorted((outputs / kind).glob(f"*/{FOLDER}/{EVENTS}")):
            folder = path.parent.parent
            run = RunFolder(folder)
            if is_sent(folder) is False and not (kind == "runs" and is_running(run, read_pulse(run.pulse))):
                yield folder


def _project(card: RunCard) -> str:
    return f"{card.entity}/{card.project}" if card.entity else card.project


def _of_earlier_versions(outputs: Path) -> int:
    """Return the number of offline sessions that W&B itself wrote, for earlier versions, and has not sent."""
    sessions = outputs.glob("*/*/wandb/offline-run-*")
    return sum(any(session.glob("*.wandb")) and not any(session.glob("*.wandb.synced")) for session in sessions)
