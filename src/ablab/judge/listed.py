"""The runs that a study lists. The register does not have the list: it is held to what was registered of its arms."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StringConstraints, TypeAdapter, ValidationError

from ablab.errors import UserError
from ablab.files import read_json
from ablab.judge.registration import Registered


class Listed(BaseModel):
    """A run as a study lists it: in the place of which arm and seed."""

    model_config = ConfigDict(frozen=True)

    arm: str
    seed: Annotated[StrictInt, Field(ge=0)]
    run_id: Annotated[str, StringConstraints(pattern=r"^r[0-9a-f]+$")]


_LIST = TypeAdapter(list[Listed])


def listed(study: Path) -> list[Listed]:
    """Return the runs that a study lists; none where it has no list. Raises UserError where that cannot be read."""
    path = study / "runs.json"
    try:
        return _LIST.validate_python(read_json(path)) if path.exists() else []
    except ValidationError:
        raise UserError(f"{path}: cannot be read as the list of the study's runs") from None


def misplaced(
    rows: Sequence[Listed], known: Mapping[str, tuple[str, int]], registrations: Sequence[Registered]
) -> Iterator[str]:
    """Yield what is listed in the place of another run. known: recipe and seed of runs that have ended, by their ids.

    Each launch registers the recipes of its arms, so that a later launch with other settings is not meant.
    """
    for row in rows:
        if row.run_id not in known:
            continue
        condition, seed = known[row.run_id]
        registered = {one.condition(row.arm) for one in registrations} - {None}
        if seed != row.seed:
            yield f"{row.run_id} is listed as seed {row.seed} of {row.arm}, and has seed {seed}"
        elif registered and condition not in registered:
            yield f"{row.run_id} is listed as a run of {row.arm}, and has settings that were not registered for it"
