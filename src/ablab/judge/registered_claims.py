"""Claims about a table that were registered before: what the store's register has of them, and what changed since."""

import calendar
import os
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ablab.errors import UserError
from ablab.files import json_digest, read_json
from ablab.files.disk import lock_at, writing_in
from ablab.judge.flaws import broken, broken_claims
from ablab.judge.other_tools import path_of
from ablab.judge.registration import Registered
from ablab.judge.results_table import Results
from ablab.judge.table_claims import JudgedTable, TableExperiment
from ablab.judge.table_metrics import about_metric
from ablab.statistics.moderated import VERSION
from ablab.store.chain import Chain, complete
from ablab.store.register import CLAIMS, Register, claims_path, file_digest
from ablab.study.claims import Settled, settled
from ablab.study.grid import Grid
from ablab.text import how_many

FREE = {"question", "source", "claims", "metrics", "labels"}
"""What may change after the registration without making all claims exploratory; claims are compared one by one."""


class RegisteredClaims(BaseModel):
    """Claims as they were registered. `file`, `table`: from the store; None: no table was named.

    `digest`: of the bytes of the file, `content`: of what it declares. `rows`: that the table had by then, or runs.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    digest: str
    content: str
    declared: dict[str, Any]
    table: str | None
    rows: int
    moderated_test: int = VERSION
    at: str = ""

    @property
    def experiment(self) -> TableExperiment:
        return TableExperiment.model_validate(self.declared)

    @property
    def day(self) -> str:
        """When it was registered, by the register."""
        return self.at.replace("T", " ").replace("Z", " UTC")


def register_claims(
    file: Path, experiment: TableExperiment, table: str | None, rows: int, store: Path
) -> RegisteredClaims:
    """Enter claims in the register; return what it has of them, which may be older.

    Raises UserError for claims that leave open what is to be judged: whoever sees results could still choose it.
    """
    check_complete(file, experiment)
    near = None if table is None else place_from(table, store)
    with writing_in(store), lock_at(store / f".{CLAIMS}.lock"):
        for known in Registrations.of(store).known:
            if (known.content, known.table) == (experiment.content, near):
                return known
        entry = RegisteredClaims(
            file=place_from(str(file), store),
            digest=file_digest(file),
            content=experiment.content,
            declared=experiment.model_dump(mode="json", exclude_unset=True),
            table=near,
            rows=rows,
        )
        name = f"{json_digest([entry.content, near], 11)}.json"
        complete(store, claims_path(store, name))
        Register(store).write(claims_path(store, name), entry.model_dump(exclude={"at"}), CLAIMS, file=name)
        return Registrations.of(store).known[-1]


def check_complete(file: Path, experiment: TableExperiment) -> None:
    """Raise UserError unless the file fixes its metric with the direction, its baseline, seeds and claims."""
    for key in ("metric", "baseline", "seeds", "claims"):
        if not getattr(experiment, key):
            raise UserError(f"{file}: {key}: missing; what is registered must not be chosen once results are there")
    for metric in experiment.named_metrics:
        about_metric(metric, experiment.declared.get(metric))
    if experiment.open_claims and not experiment.arms:
        raise UserError(f"{file}: arms: missing; {OPEN}; allowed: arms, with the name of each that there will be")


OPEN = "claims about each arm, the one before, effects, interactions or all levels depend on the arms that a table has"


@dataclass(frozen=True)
class Registrations:
    """All registrations of claims in a store, oldest first. `flaws`: where the register has something else."""

    known: Sequence[RegisteredClaims]
    flaws: Sequence[str]
    stamp: str | None

    @classmethod
    def of(cls, store: Path) -> "Registrations":
        chain = Chain.of(store)
        entered = ((store / entry.path, entry) for entry in chain.entries if entry.what == CLAIMS and entry.path)
        known = [
            _read(path).model_copy(update={"at": entry.at})
            for path, entry in entered
            if path.exists() and file_digest(path) == entry.digest
        ]
        return cls(known, [*broken(chain, []), *broken_claims(chain, store)], chain.stamp)

    def of_file(self, file: Path, judged: JudgedTable) -> RegisteredClaims | None:
        """Return the first registration of what a file declares about this table, or else about any, or of the file.

        None: there is none.
        """
        same = [one for one in self.known if one.content == judged.experiment.content]
        of_it = [one for one in same if one.table is None or _is_of(one, judged)]
        of_name = [one for one in self.known if one.file == place_from(str(file), judged.store)]
        return next(iter(of_it or same or of_name), None)


def _read(path: Path) -> RegisteredClaims:
    try:
        found = RegisteredClaims.model_validate(read_json(path))
        found.experiment  # noqa: B018
    except ValidationError:
        raise UserError(f"{path}: cannot be read as registered claims") from None
    return found


def place_from(place: str, store: Path) -> str:
    """Return a path, or that which an address names, as it is from the store: both are mostly moved together."""
    return os.path.relpath(path_of(place).resolve(), store.resolve())


def _is_of(registered: RegisteredClaims, judged: JudgedTable) -> bool:
    """Return whether claims were registered for the table that is judged. Addresses used to be kept as typed."""
    place = judged.place
    return place is not None and registered.table in (
        place_from(place, judged.store),
        *([place] if "://" in place else []),
    )


@dataclass(frozen=True)
class Fixed:
    """What a registration says of a selection. `departed`: why no claim of it is confirmatory; None: they are."""

    registered: Registered
    claims: Sequence[Settled]
    departed: str | None
    notes: Sequence[str]


def fixed(
    found: RegisteredClaims,
    others: Sequence[RegisteredClaims],
    judged: JudgedTable,
    claims: Sequence[Settled],
    grid: Grid,
) -> Fixed:
    """Hold a file of claims and its table to what was registered. `claims`: those of the file, on this grid."""
    then = found.experiment
    try:
        then_claimed = settled(then.claims, grid, then.metric or "")
    except UserError as error:
        again = "ablab register, typed again, registers the file as it is now"
        raise UserError(f"as registered on {found.day}: {error}; {again}") from None
    registered = Registered(
        claims=then_claimed,
        # Whatever else the table came to have lends no noise: it may have been added once there were results.
        arms=list(dict.fromkeys(arm for claim in then_claimed for arm in claim.weights)),
        seeds=then.seeds or [],
        runs_already_done=0,
        error=then.error,
        moderated_test=found.moderated_test,
    )
    present = Registered(claims=list(claims), seeds=[], runs_already_done=0)
    withdrawn = [claim for claim in registered.claims if not present.asks(claim)]
    departed = "; ".join([*_departures(found, judged), *_chosen_arms(then, judged, grid)]) or None
    notes = [
        *([] if departed is None else [departed]),
        f"{how_many(len(registered.claims), 'claim')} registered on {found.day}, digest {found.digest} of "
        f"{Path(found.file).name}{_of_table(found)}",
        *(f"no longer in the file, and judged as it was registered: {claim.words}" for claim in withdrawn),
        *_others(found, others),
    ]
    return Fixed(registered, [*claims, *withdrawn], departed, notes)


def _of_table(found: RegisteredClaims) -> str:
    if found.table is None:
        return ", which named no table"
    return "" if found.rows else f", when {Path(found.table).name} had no results"


def _departures(found: RegisteredClaims, judged: JudgedTable) -> Iterator[str]:
    """Yield why what was registered is not what is judged, or was not registered before there were results."""
    claimed = {name for claim in found.experiment.claims if (name := claim.metric or found.experiment.metric)}
    then, now = (_decisive(one, claimed) for one in (found.experiment, judged.experiment))
    place = judged.place
    if found.experiment.open_claims and (what := _other_arms(found.experiment.arms, judged.results.runs)):
        yield f"{what}, and {OPEN}"
    if changed := [key for key, value in now.items() if then[key] != value]:
        yield f"{' and '.join(changed)} changed after the claims were registered on {found.day}"
    if found.rows:
        table = Path(found.table or "").name
        yield f"{table} had {how_many(found.rows, 'row')} of results when the claims were registered on {found.day}"
    if place is None:
        if found.table is not None:
            yield f"the claims were registered for {found.table}; nobody can tell that a data frame is that table"
        return
    if found.table is not None and not _is_of(found, judged):
        yield f"the claims were registered for {found.table}, as seen from the store"
    if not found.rows and (at := _first_time(judged.results, place)) is not None and at < _seconds(found.at):
        what = "was last written" if judged.results.began is None else "has a run that began"
        yield f"{Path(place).name} {what} on {_day(at)}, before the claims were registered on {found.day}"


def _chosen_arms(registered: TableExperiment, judged: JudgedTable, grid: Grid) -> Iterator[str]:
    """Yield which names say what they are about only by the arms that the table has: another could have been put there.

    Nothing was left to choose where all arms were registered by their names.
    """
    if registered.arms is not None and not _other_arms(registered.arms, judged.results.runs):
        return
    named = [name for claim in registered.claims for name in (claim.arm, claim.baseline) if name]
    lost = [name for name in named if name not in ("each", "before") and grid.fixed(name) is None]
    if registered.baseline not in (None, *judged.results.runs):
        lost.insert(0, str(registered.baseline))
    if lost:
        yield f"{', '.join(dict.fromkeys(lost))}: no arm of the table has the name that was registered"


def _other_arms(registered: Sequence[str] | None, there: Collection[str]) -> str:
    """Say how the arms of a table differ from those that were registered with its claims; empty where they do not."""
    if registered is None:
        return "the claims were registered without the names of all arms"
    lacking, more = [arm for arm in registered if arm not in there], [arm for arm in there if arm not in registered]
    said = [(lacking, "missing in the table"), (more, "no registered arm")]
    return "; ".join(f"{', '.join(arms)}: {what}" for arms, what in said if arms)


def _decisive(experiment: TableExperiment, claimed: Collection[str]) -> dict[str, Any]:
    """Return what decides about registered claims, beside them: of metrics, the direction of those that are claimed."""
    said = {name: about.model_dump(exclude_unset=True) for name, about in experiment.declared.items()}
    lower = {name: said.get(name, {}).get("lower_is_better") for name in sorted(claimed)}
    return {**experiment.model_dump(mode="json", exclude=FREE), "better": lower}


def _first_time(results: Results, place: str) -> float | None:
    """Return when the first run began; of a table, when it was last written; None where neither is known."""
    if results.began is not None:
        return results.began
    return Path(place).stat().st_mtime if Path(place).is_file() else None


def _seconds(at: str) -> float:
    return calendar.timegm(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ"))


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def _others(found: RegisteredClaims, known: Sequence[RegisteredClaims]) -> Iterator[str]:
    """Yield a note on other claims registered for the same table, or from the same file: they were a choice."""
    others = [one for one in known if one.content != found.content]
    same = [one for one in others if one.file == found.file or (one.table is not None and one.table == found.table)]
    if same:
        digests = ", ".join(one.digest for one in same)
        yield f"{how_many(len(same), 'other registration')} of claims about this table: digest {digests}"
