"""Saved models, of a finished run or pruned from one: their files and architecture, read without torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from ablab.config.kinds import with_options
from ablab.config.schema import DEFAULT
from ablab.errors import MissingPartError, UserError, reason
from ablab.fields import SCHEMA
from ablab.files import read_json, sha256
from ablab.store.finished import open_run
from ablab.store.former import reshaped
from ablab.store.records import Record, Strict, of_older_schema
from ablab.store.run_folder import CARD, SELECTED, RunFolder
from ablab.transformer.config.former import of_schema_1
from ablab.transformer.config.schema import Architecture
from ablab.transformer.data.corpus import EXTRA_TOKENS, extra_tokens

PRUNED = "model.safetensors"


class ModelCard(Strict):
    """The description of a pruned model. With its weights and tokenizers, it replaces everything of its run.

    `kept`: indices of the run's layers, from 0. `heads`: of its heads, by site and layer; None: all. `recipe`: of the
    run. `sha256`: of the weights' file.
    """

    schema_version: Literal[1, 2] = SCHEMA
    name: str
    architecture: dict[str, Any]
    kept: dict[str, list[int]]
    chosen_by: str
    run_id: str
    recipe: dict[str, Any]
    parameters: int
    valid: dict[str, float]
    sha256: str
    provenance_code: str
    ended: str
    heads: dict[str, list[list[int]]] | None = None


@dataclass(frozen=True)
class SavedModel:
    """The weights, tokenizers and architecture of a model. `former`: a warning if they have an older schema.

    `heads`: by site and layer, the heads that remain of those that the architecture says; None: all. `sha256`: of the
    file of weights when it was written; None where that was not recorded. `lowercase`: it was trained on lower case.
    `extra_tokens`: by which a translation may exceed its source, unless asked otherwise.
    """

    name: str
    weights: Path
    architecture: Architecture
    sha256: str | None
    former: str | None = None
    heads: Mapping[str, Sequence[Sequence[int]]] | None = None
    lowercase: bool = False
    extra_tokens: int = EXTRA_TOKENS

    @property
    def tokenizers(self) -> Path:
        """The folder of both tokenizers."""
        return self.weights.parent

    def digest(self) -> str:
        """Return the hex SHA-256 of the weights' file; it is part of the identity of runs that start from them."""
        return sha256(self.weights)

    def check(self) -> None:
        """Raise UserError unless the weights are those that were written."""
        if self.sha256 is not None and self.digest() != self.sha256:
            raise UserError(
                f"{self.weights}: damaged or changed (it is not the file that {self.name} was scored with); allowed: "
                "the file as it was written, or the run's train line with rerun=true"
            )


def find_model(reference: str, outputs: Path, *, key: str = "run") -> SavedModel:
    """Return the model that a path to a pruned model, or any reference to a run, names; UserError if there is none."""
    folder = Path(reference)
    run = None if (folder / CARD).exists() else open_run(reference, outputs, key=key, selected=True)
    try:
        return of_card(folder) if run is None else of_run(run.folder, run.record)
    except UserError as error:
        raise UserError(f"{key}={reference}: {error}") from None


def of_run(folder: RunFolder, record: Record) -> SavedModel:
    """Return the selected weights of a run; UserError if it diverged or its weights are gone."""
    if record.task != DEFAULT:
        raise UserError(f"{folder.run_id} is a run of task={record.task}; allowed: runs of task={DEFAULT}")
    if record.selected is None:
        raise UserError(f"{folder.run_id} diverged ({record.reason}); it has no weights to use")
    weights = _there(folder.checkpoints / SELECTED)
    try:
        architecture = _architecture(record.settings, folder.path)
    except MissingPartError as error:
        origin = folder.origin_of(error.group)
        raise UserError(f"{folder.run_id}: {error}; it came from {origin}; {folder.parts} keeps its source") from None
    return SavedModel(
        folder.run_id,
        weights,
        architecture,
        record.selected.sha256,
        record.former,
        lowercase=_is_lowercase(record.settings),
        extra_tokens=_extra_tokens(record.settings),
    )


def of_card(folder: Path) -> SavedModel:
    """Return the pruned model in this folder; UserError if its description cannot be read or its weights are gone."""
    try:
        content = read_json(folder / CARD)
        card = ModelCard.model_validate(reshaped(ModelCard.__name__, content) or content)
    except ValueError as error:
        raise UserError(f"{folder / CARD}: cannot be read ({str(error).splitlines()[0]})") from None
    architecture = of_schema_1(card.architecture) if card.schema_version == 1 else card.architecture
    former = of_older_schema(card.name, card.schema_version)
    weights = _there(folder / PRUNED)
    return SavedModel(
        card.name,
        weights,
        _architecture(architecture, folder),
        card.sha256,
        former,
        card.heads,
        lowercase=_is_lowercase(card.recipe),
        extra_tokens=_extra_tokens(card.recipe),
    )


def as_read(saved: SavedModel, sentences: Sequence[str]) -> list[str]:
    """Return sentences as the model reads them: in lower case if it was trained so, since it knows no capitals."""
    return [sentence.lower() for sentence in sentences] if saved.lowercase else list(sentences)


def _is_lowercase(settings: Mapping[str, Any]) -> bool:
    """Return whether settings, or a recipe, ask for text in lower case; those of before the field lack it."""
    return bool(settings.get("data", {}).get("lowercase", False))


def _extra_tokens(settings: Mapping[str, Any]) -> int:
    data = settings.get("data", {})
    return extra_tokens(str(data.get("tokenizer")), int(data.get("max_tokens", EXTRA_TOKENS)))


def _there(weights: Path) -> Path:
    if not weights.is_file():
        raise UserError(f"{weights}: the weights are gone; the run's train line with rerun=true trains it again")
    return weights


def _architecture(values: dict[str, Any], where: Path) -> Architecture:
    wanted = {name: values[name] for name in Architecture.model_fields if name in values}
    try:
        return Architecture.model_validate(with_options(Architecture, wanted))
    except ValidationError as error:
        raise UserError(f"{where}: not an architecture of this version ({reason(error)})") from None
    except MissingPartError:
        raise
    except UserError as error:
        raise UserError(f"{where}: not an architecture of this version ({error})") from None
