"""What a tracker is to know of a run: its store, its id there, its name, its job type, its tags and its config."""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ablab.code.code import code_digest
from ablab.code.machine import commit
from ablab.config.labels import label
from ablab.config.options import LONGEST_TAG, Logger, tag
from ablab.errors import UserError
from ablab.files import read_json, write_json
from ablab.files.disk import lock_at
from ablab.store.chain import RECORD, Chain, History
from ablab.tasks.plan import Planned
from ablab.tracking.events import STUDIES, Event, events_of
from ablab.tracking.tracker import RunCard

BASELINE = "baseline"


def card_of_run(planned: Planned, logger: Logger) -> RunCard:
    """Return the card of a run; the config has the arms at its top level, to group by."""
    config = planned.config
    arms = {**planned.composed.choices, **{name: getattr(config, name) for name in config.grouped}}
    named = {} if logger.arm is None else {"arm": logger.arm}
    tags = [word for word in (logger.arm and (logger.label or label(logger.arm)), logger.study) if word]
    studies = {} if logger.study is None else {STUDIES: {key_of(logger.study): logger.arm}}
    return card(
        logger,
        planned.folder.path,
        run_id=planned.run_id,
        name=logger.name or logger.heard("NAME") or spoken(planned.name),
        config={**arms, **named, **studies, **_origin(planned), "run_id": planned.run_id, "recipe": planned.recipe},
        tags=[*tags, *(["smoke"] if config.smoke else [])],
        group=logger.study,
    )


def card(
    logger: Logger,
    folder: Path,
    *,
    run_id: str,
    name: str,
    config: Mapping[str, Any],
    tags: Sequence[str],
    group: str | None,
    job_type: str | None = None,
) -> RunCard:
    """Return the card of the run or study in `folder`, with the user's tags, notes and group.

    Settings win over the tracker's variables, and those over the group that the run has, or else `group`.
    `job_type`: None for a run: `train`, or `evaluate` where it was trained without a tracker; it stays what it was.
    UserError for variables that the tracker would refuse.
    """
    earlier, about = _earlier(folder, run_id), logger.about()
    if job_type is None:
        usual = "evaluate" if not earlier and (folder / "record.json").exists() else "train"
        job_type = earlier[-1].job_type or "train" if earlier else usual
    return RunCard(
        run_id=run_id,
        name=name,
        config=dict(config),
        group=logger.group or logger.heard("RUN_GROUP") or (earlier[-1].group if earlier else group),
        job_type=job_type,
        tracker_id=id_of(folder, run_id),
        **{
            **about,
            "tags": list(dict.fromkeys(map(as_tag, [*tags, *tags_of(logger)]))),
            "notes": about.get("notes") or logger.heard("NOTES"),
        },
    )


def cards_of(folder: Path) -> list[RunCard]:
    """Return the cards with which the run or study in `folder` was opened, oldest first."""
    return [card for event in events_of(folder) if (card := card_in(event)) is not None]


def card_in(event: Event) -> RunCard | None:
    """Return the card of an event that opens a run or study; None of another, and of one that is damaged."""
    try:
        return RunCard.model_validate(event.get("card")) if event["event"] == "opened" else None
    except ValidationError:
        return None


def id_of(folder: Path, run_id: str) -> str:
    """Return the run's id at the tracker: the one that it was opened with, or else the one that it will have."""
    earlier = _earlier(folder, run_id)
    return earlier[-1].id_there if earlier else _new_id(folder, run_id)


def spoken(display_name: str) -> str:
    """Return a run's name for people: `ScaleNorm with LayerDrop 0.2, seed 3`, or `baseline, seed 3`."""
    differing, _, seed = display_name.rpartition("s")
    return f"{label(differing.rstrip(',')) or BASELINE}, seed {seed}"


def key_of(study: str) -> str:
    """Return the study's key in W&B's config, where dots would lead into a nested mapping."""
    return study.replace(".", "_")


def as_tag(text: str) -> str:
    """Return the name of an arm or study as a tag."""
    return text if len(text) <= LONGEST_TAG else f"{text[: LONGEST_TAG - 1]}…"


def tags_of(logger: Logger) -> list[str]:
    """Return the user's tags; UserError for one in its variable that the tracker would refuse."""
    asked: list[str] | None = logger.about().get("tags")
    if asked is not None:
        return asked
    heard = logger.heard("TAGS") or ""
    try:
        return [tag(word.strip()) for word in heard.split(",")] if heard.strip() else []
    except ValueError as error:
        raise UserError(f"{logger.variables}_TAGS={heard}: {error}, with commas between") from None


def _earlier(folder: Path, run_id: str) -> list[RunCard]:
    return [one for one in cards_of(folder) if one.run_id == run_id]


def _new_id(folder: Path, run_id: str) -> str:
    """Return an id that begins with the run id and has the store's, and a number where the run is trained again.

    W&B may have the rows of a run that was moved to superseded/, or deleted since: the new one must not continue it.
    """
    store = folder.parents[1]
    before = [path.name.rpartition("-")[2] for path in (store / "superseded").glob(f"{run_id}-*")]
    history = Chain.of(store).histories.get(run_id, History())
    deleted = history.has_ended and not (folder / RECORD).exists()
    known = len(history.aside) + len(history.replaced) + deleted
    times = max(known, *(int(number) for number in before if number.isdecimal()), 0)
    return "-".join([run_id, store_id(store), *([str(times + 1)] if times else [])])


def _origin(planned: Planned) -> dict[str, Any]:
    """Return the commit and the digests of the code that trained the run, or trains it now."""
    record = planned.folder.record()
    if record is not None:
        known = record.provenance
        return {key: known.get(key) for key in ("commit", "code", "evaluation_code")}
    return {
        "commit": commit(),
        "code": code_digest("training", planned.recipe),
        "evaluation_code": code_digest("evaluation", planned.recipe),
    }


STORE = "store.json"
"""File with the id, at the top of a store. It is copied and moved with the store."""

PATIENCE = 30.0
"""Seconds to wait for another process that draws the id; a tracker does without one then."""


def store_id(store: Path) -> str:
    """Return the store's id, 8 hex digits, drawn once.

    Raises UserError if its file cannot be read, and OSError if it cannot be written.
    """
    path = store / STORE
    if not path.exists():
        store.mkdir(parents=True, exist_ok=True)
        with lock_at(store / ".store.lock", PATIENCE):  # of launchers that start at once, one draws
            if not path.exists():
                write_json(path, {"id": secrets.token_hex(4)})
    content = read_json(path)
    found = content.get("id") if isinstance(content, dict) else None
    if not isinstance(found, str) or not found.isalnum():
        raise UserError(f"{path}: names no store; removed, it is made anew, with another id")
    return found
