"""A model on disk that can be used: a finished run's, or one that was cut out of it. No torch here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from ablab.config.former import of_schema_1
from ablab.config.schema import Architecture, with_options
from ablab.errors import UserError, reason
from ablab.files import read_json, sha256
from ablab.store.records import SCHEMA, Record, Strict, of_older_schema
from ablab.store.run_folder import SELECTED, RunFolder, find_run

PRUNED = "model.safetensors"
CARD = "model.json"


class ModelCard(Strict):
    """What a pruned model says of itself. With it, its weights and its tokenizers, nothing of its run is needed.

    `kept`: indices of the run's layers, from 0. `recipe`: of the run. `sha256`: of the weights' file.
    """

    schema_version: Literal[1, 2] = SCHEMA
    name: str
    architecture: dict[str, Any]
    kept: dict[str, list[int]]
    chosen_by: str
    run_id: str
    recipe: dict[str, Any]
    parameters: int
    valid_loss: float
    valid_bleu: float
    sha256: str
    provenance_code: str
    ended: str


@dataclass(frozen=True)
class SavedModel:
    """Weights, tokenizers and architecture, wherever they lie; `former` says that they are of an older SCHEMA."""

    name: str
    weights: Path
    architecture: Architecture
    former: str | None = None

    @property
    def tokenizers(self) -> Path:
        """The folder of both tokenizers."""
        return self.weights.parent

    def digest(self) -> str:
        """Hex SHA-256 of the weights' file: what a run that starts from them is named by."""
        return sha256(self.weights)


def of_run(folder: RunFolder, record: Record) -> SavedModel:
    """A run's selected weights."""
    if record.selected is None:
        raise UserError(f"{folder.run_id} diverged ({record.reason}); it has no weights to use")
    weights = _there(folder.checkpoints / SELECTED)
    return SavedModel(folder.run_id, weights, _architecture(record.settings, folder.path), record.former)


def find_model(reference: str, outputs: Path) -> SavedModel:
    """The model that a path to a pruned one, or anything that names a run, refers to; UserError otherwise."""
    folder = Path(reference)
    if (folder / CARD).exists():
        try:
            card = ModelCard.model_validate(read_json(folder / CARD))
        except ValueError as error:
            raise UserError(f"{folder / CARD}: cannot be read ({str(error).splitlines()[0]})") from None
        architecture = of_schema_1(card.architecture) if card.schema_version == 1 else card.architecture
        former = of_older_schema(card.name, card.schema_version)
        return SavedModel(card.name, _there(folder / PRUNED), _architecture(architecture, folder), former)
    run = find_run(reference, outputs)
    record = run.record()
    if record is None:
        raise UserError(f"run={reference}: {run.run_id} has not finished; type its train line again")
    return of_run(run, record)


def _there(weights: Path) -> Path:
    if not weights.is_file():
        raise UserError(f"{weights}: the weights are gone; the run's train line with rerun=true makes them anew")
    return weights


def _architecture(values: dict[str, Any], where: Path) -> Architecture:
    wanted = {name: values[name] for name in Architecture.model_fields if name in values}
    try:
        return Architecture.model_validate(with_options(Architecture, wanted))
    except ValidationError as error:
        raise UserError(f"{where}: not an architecture of this version ({reason(error)})") from None
    except UserError as error:
        raise UserError(f"{where}: not an architecture of this version ({error})") from None
