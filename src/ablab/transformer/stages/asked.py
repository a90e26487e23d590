"""Analyses of a run: what a user can ask for, the artefacts that any Transformer gives, and those missing; no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ablab.errors import UserError
from ablab.store.artefacts import comparable_artefacts
from ablab.store.records import Evaluation
from ablab.tasks.plan import PlannedRun

VERSION = 1
"""Raised when the same settings would give other numbers, so that existing artefacts are computed again."""


POSITIONS = 64
"""Positions shown; of a learned table that has fewer, all."""

HAVE_VECTORS = ("sinusoidal", "learned")
"""Kinds of positions that add a vector to the input, which can be shown."""

LOOKED_INTO = 1
"""Place of the sentence whose single heads and next tokens are shown: the shortest, so that the picture is readable."""


@dataclass(frozen=True)
class Wanted:
    """A required artefact: its file name, and all settings that decide its numbers beside the weights."""

    key: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """What a user can ask for.

    `attention`: `cross`, the mean over heads of cross-attention; `heads`, also every single head of all kinds of
    attention on one sentence; `all`, on all of them. `heads`: number of validation sentences on which head importance
    is measured; None: it is not measured. `text`: a source sentence, or a text, whose next tokens are shown.
    """

    attention: str = "heads"
    heads: int | None = None
    text: str | None = None


def of_scales(planned: PlannedRun[Any]) -> list[Wanted]:
    """Return the artefact of the learned g, where norms learn one."""
    norm = planned.config.norm
    sites = {"outputs": True} if planned.config.placement.kind == "sandwich" else {}
    return (
        [wanted_of("scalenorm_g", "scalenorm_g", **sites)] if norm.kind == "scalenorm" and norm.own["learn_g"] else []
    )


def of_positions(planned: PlannedRun[Any]) -> list[Wanted]:
    """Return the artefacts of the vectors of positions, where the model adds some."""
    position = planned.config.position
    if position.kind not in HAVE_VECTORS:
        return []
    count = min(POSITIONS, position.own.get("max_length", POSITIONS))
    return [
        wanted_of("position_vectors", "positions", positions=count),
        wanted_of("position_similarity", "similarity", positions=count),
    ]


def missing(planned: PlannedRun[Any], wanted: list[Wanted]) -> list[Wanted]:
    """Return the artefacts that do not exist or were computed from other settings."""
    there = {key: artefact.settings for key, artefact in comparable_artefacts(planned.folder.artefacts).items()}
    return [each for each in wanted if there.get(each.key) != each.settings]


def wanted_of(key: str, analysis: str, **others: Any) -> Wanted:
    """Return an artefact under the present version of the analyses."""
    return Wanted(key, {"analysis": analysis, "version": VERSION, **others})


def evaluated(planned: PlannedRun[Any]) -> Evaluation:
    """Return the run's evaluation on this test set with this search; UserError if there is none."""
    evaluation = planned.folder.evaluation(planned.evaluation_id)
    if evaluation is None:
        raise UserError(
            f"{planned.run_id} has not been scored on {planned.evaluation['test']['name']}; type its train line again, "
            "with the words that name this test set"
        )
    return evaluation
