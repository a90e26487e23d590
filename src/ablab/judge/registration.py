"""What a study registered at its first launch, before there were results, and the runs that it lists.

The register has no list of runs: it is held to what was registered of its arms.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StringConstraints

from ablab.errors import UserError
from ablab.files import read_json
from ablab.study.claims import Settled, asked, settle
from ablab.study.experiment import ErrorEstimate
from ablab.study.extending import recorded
from ablab.study.study import names_of
from ablab.tasks.registry import task_named

FILE = "registered.json"


class Registered(BaseModel):
    """The study as registered at its first launch. `typed`: the words of that launch.

    `conditions`: ids of recipes by arm; `judged`: ids of evaluation and curve by arm, which older stores lack; `ways`:
    what of these must stay, where that is less. Older stores lack `error` too: until then every claim was judged by the
    paired t test; and `within`, which is then not in `model_fields_set`. `looks`: seeds at the first and the last look,
    where seeds are added. `planned`: its runs, and of the first registration those of all.
    """

    claims: list[Settled]
    arms: list[str] = []
    seeds: list[int]
    runs_already_done: int
    conditions: dict[str, str] = {}
    planned: list[str] = []
    judged: dict[str, str] = {}
    ways: dict[str, str] = {}
    typed: list[str] = []
    error: ErrorEstimate = "paired"
    moderated_test: int = 1
    looks: list[int] | None = None
    within: str | None = None

    def asks(self, claim: Settled) -> bool:
        """Return whether it has this claim, whatever has been published about it."""
        return _key(claim) in self._asked

    @cached_property
    def _asked(self) -> set[str]:
        return {_key(claim) for claim in self.claims}

    def has(self, arm: str) -> bool:
        """Return whether it has an arm of this name, alone or among others."""
        return not self.arms or any(set(names_of(one)) & set(names_of(arm)) for one in self.arms)

    def of_arms(self, arms: Sequence[str]) -> "Registered":
        """Return the registration with claims under the arms' present names.

        A claim about arms that are one by now keeps the names that it had.
        """

        def renamed(claim: Settled) -> Settled:
            names = {name: called(name, arms) for name in claim.weights}
            return claim.renamed(names) if len(set(names.values())) == len(names) else claim

        return self.model_copy(update={"claims": [renamed(claim) for claim in self.claims]})

    def renamed(self, names: Mapping[str, str]) -> "Registered":
        """Return the registration with other names of arms, by the names that they had."""

        def keyed(by_arm: Mapping[str, str]) -> dict[str, str]:
            return {names.get(arm, arm): one for arm, one in by_arm.items()}

        return self.model_copy(
            update={
                "arms": [names.get(arm, arm) for arm in self.arms],
                "claims": [claim.renamed({arm: names.get(arm, arm) for arm in claim.weights}) for claim in self.claims],
                **{key: keyed(getattr(self, key)) for key in ("conditions", "judged", "ways")},
            }
        )

    def condition(self, arm: str) -> str | None:
        """Return the id of the recipe of an arm, by its name then or now; None where it had none yet."""
        return next((one for name, one in self.conditions.items() if set(names_of(name)) & set(names_of(arm))), None)

    def way(self, arm: str) -> str | None:
        """Return the ids of evaluation and curve of an arm, likewise."""
        return next((one for name, one in self.judged.items() if set(names_of(name)) & set(names_of(arm))), None)

    @classmethod
    def of(cls, folder: Path) -> "Registered | None":
        """Read the registration; None where the study was never launched. Raises UserError where it cannot be read."""
        return next(iter(cls.every(folder)), None) if (folder / FILE).exists() else None

    @classmethod
    def every(cls, folder: Path) -> "list[Registered]":
        """Read all registrations of a study, the first launch first. Raises UserError where they cannot be read."""
        try:
            first, *later = read_json(folder / FILE)
            # The winner of a search has a recipe only since the search has ended.
            for entry in later:
                first["planned"] = [*first.get("planned", []), *entry.get("planned", [])]
                if entry.get("supersedes"):  # no run had ended, so that nothing was known of the recipes before it
                    first |= {
                        key: {**first.get(key, {}), **entry.get(key, {})} for key in ("conditions", "judged", "ways")
                    }
                    first |= {"within": entry["within"]} if "within" in entry else {}
                winners = {arm: entry.get("conditions", {}).get(arm) for arm in first.get("arms", [])}
                first["conditions"] = {arm: one for arm, one in winners.items() if one} | first.get("conditions", {})
            return [cls._read(entry) for entry in (first, *later)]
        except (ValueError, LookupError, TypeError, AttributeError):
            raise UserError(f"{folder / FILE}: cannot be read as what the study registered") from None

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> "Registered":
        # Older stores omit the baseline and metric of a claim where those of the study apply.
        metric = task_named().primary
        claims = [settle(claim, entry["baseline"], metric) for claim in entry["claims"]]
        return cls.model_validate({**entry, "claims": claims})


def called(name: str, arms: Sequence[str]) -> str:
    """Return the present name of an arm: one that was united with another has the names of both."""
    return next((arm for arm in arms if set(names_of(name)) <= set(names_of(arm))), name)


def _key(claim: Settled) -> str:
    return asked(claim).model_dump_json()


class ListedRun(BaseModel):
    """A run as a study lists it: in the place of which arm and seed."""

    model_config = ConfigDict(frozen=True)

    arm: str
    seed: Annotated[StrictInt, Field(ge=0)]
    run_id: Annotated[str, StringConstraints(pattern=r"^r[0-9a-f]+$")]


def listed(study: Path) -> list[ListedRun]:
    """Return the runs that a study lists; none where it has no list. Raises UserError where that cannot be read."""
    return recorded(ListedRun, study / "runs.json", "the list of the study's runs")


def misplaced(
    rows: Sequence[ListedRun], known: Mapping[str, tuple[str, object]], registrations: Sequence[Registered]
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
