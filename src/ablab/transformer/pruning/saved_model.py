"""Saved models, of a finished run or pruned from one: their files and architecture, read without torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from ablab.config.kinds import with_options
from ablab.config.schema import DEFAULT, schema_of
from ablab.errors import MissingPartError, UserError, reason
from ablab.fields import SCHEMA, Group
from ablab.files import read_json, sha256
from ablab.store.finished import open_run
from ablab.store.former import reshaped
from ablab.store.records import Record, Strict, of_older_schema
from ablab.store.run_folder import CARD, SELECTED, RunFolder, model_files
from ablab.transformer.config.former import of_schema_1
from ablab.transformer.config.training import TransformerConfig
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
    """The weights, tokenizers and architecture of a model, the fields of its task's `TransformerConfig.architecture`.

    `former`: a warning if they have an older schema.

    `heads`: by site and layer, the heads that remain of those that the architecture says; None: all. `sha256`: of the
    file of weights when it was written; None where that was not recorded. `settings`: those of its run, or its recipe.
    `layers`: indices by stack of those that it has of a model of the architecture `whole`, from which it is built:
    parts may know their layer.
    """

    name: str
    weights: Path
    architecture: Any
    sha256: str | None
    former: str | None = None
    heads: Mapping[str, Sequence[Sequence[int]]] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    layers: Mapping[str, Sequence[int]] | None = None
    whole: Any = None

    @property
    def built(self) -> Any:
        """The architecture to build before `layers` are taken of it."""
        return self.architecture if self.layers is None else self.whole

    @property
    def lowercase(self) -> bool:
        """Whether it was trained on text in lower case; settings of before the field lack it."""
        return bool(self.settings.get("data", {}).get("lowercase", False))

    @property
    def extra_tokens(self) -> int:
        """The tokens by which a translation may exceed its source, unless asked otherwise."""
        data = self.settings.get("data", {})
        return extra_tokens(str(data.get("tokenizer")), int(data.get("max_tokens", EXTRA_TOKENS)))

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

    def check_vocabulary(self, folder: Path) -> None:
        """Raise UserError unless its tokenizers are those of prepared data: weights are valid for their own alone."""
        theirs, ours = ({path.name: sha256(path) for path in model_files(each)} for each in (self.tokenizers, folder))
        if theirs != ours:
            raise UserError(
                f"init_from={self.name}: its vocabulary is another; allowed: a model trained on the same data.*"
            )


def find_model(reference: str, outputs: Path, *, key: str = "run", task: str = DEFAULT) -> SavedModel:
    """Return the model that a path to a pruned model, or any reference to a run, names; UserError if there is none."""
    folder = Path(reference)
    run = None if (folder / CARD).exists() else open_run(reference, outputs, key=key, selected=True)
    try:
        return of_card(folder, task) if run is None else of_run(run.folder, run.record, task)
    except UserError as error:
        raise UserError(f"{key}={reference}: {error}") from None


def of_run(folder: RunFolder, record: Record, task: str = DEFAULT) -> SavedModel:
    """Return the selected weights of a run; UserError if it is of another task or diverged, or they are gone."""
    if record.task != task:
        raise UserError(f"{folder.run_id} is a run of task={record.task}; allowed: runs of task={task}")
    if record.selected is None:
        raise UserError(f"{folder.run_id} diverged ({record.reason}); it has no weights to use")
    weights = _there(folder.checkpoints / SELECTED)
    try:
        architecture = _architecture(record.settings, task, folder.path)
    except MissingPartError as error:
        origin = folder.origin_of(error.group)
        raise UserError(f"{folder.run_id}: {error}; it came from {origin}; {folder.parts} keeps its source") from None
    return SavedModel(
        folder.run_id,
        weights,
        architecture,
        record.selected.sha256,
        record.former,
        settings=record.settings,
    )


def of_card(folder: Path, task: str = DEFAULT) -> SavedModel:
    """Return the pruned model in this folder; UserError if its description cannot be read or its weights are gone."""
    try:
        content = read_json(folder / CARD)
        card = ModelCard.model_validate(reshaped(ModelCard.__name__, content) or content)
    except ValueError as error:
        raise UserError(f"{folder / CARD}: cannot be read ({str(error).splitlines()[0]})") from None
    if (own := card.recipe.get("task", {}).get("kind", DEFAULT)) != task:
        raise UserError(f"{folder} is a model of task={own}; allowed: models of task={task}")
    architecture = of_schema_1(card.architecture) if card.schema_version == 1 else card.architecture
    former = of_older_schema(card.name, card.schema_version)
    weights = _there(folder / PRUNED)
    depths = {f"{stack}_layers": card.recipe.get("model", {}).get(f"{stack}_layers") for stack in card.kept}
    known = {key: depth for key, depth in depths.items() if depth is not None}
    whole = {**architecture, "model": {**architecture["model"], **known}} if card.schema_version > 1 else None
    return SavedModel(
        card.name,
        weights,
        _architecture(architecture, task, folder),
        card.sha256,
        former,
        card.heads,
        settings=card.recipe,
        layers=None if whole is None else card.kept,
        whole=None if whole is None else _architecture(whole, task, folder),
    )


def origin_of(config: TransformerConfig) -> SavedModel | None:
    """Return the model that training starts from, or None; UserError if its architecture does not fit."""
    if config.init_from is None:
        return None
    try:
        saved = find_model(config.init_from, Path(config.outputs), key="init_from", task=config.task.kind)
    except UserError as error:
        if not config.smoke:
            raise
        raise UserError(f"{error} (smoke=true has a store of its own; allowed: a path)") from None
    if saved.heads is not None:
        raise UserError(
            f"init_from={config.init_from}: heads were removed from it, and model.num_heads is one number for every "
            "attention; allowed: a run, or a model that layers were removed from"
        )
    sizes = ("d_model", "d_ff", "num_heads", "encoder_layers", "decoder_layers")
    for key in (*sizes, "tie", "attention_bias", "output_bias"):
        if not hasattr(config.model, key):
            continue
        theirs, ours = getattr(saved.architecture.model, key), getattr(config.model, key)
        if theirs != ours:
            raise UserError(f"init_from={config.init_from}: its model.{key} is {theirs}, not {ours}; allowed: {theirs}")
    for group in ("norm", "placement", "embedding", "attention_norm", "feed_forward", "position"):
        theirs, ours = getattr(saved.architecture, group), getattr(config, group)
        if theirs != ours:
            raise UserError(
                f"init_from={config.init_from}: its {group} is {_differing(theirs, ours)}; allowed: the same"
            )
    return saved


def _differing(theirs: Group, ours: Group) -> str:
    there, here = theirs.model_dump(), ours.model_dump()
    keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
    return ", ".join(f"{key}={there.get(key)}, not {here.get(key)}" for key in keys)


def as_read(saved: SavedModel, sentences: Sequence[str]) -> list[str]:
    """Return sentences as the model reads them: in lower case if it was trained so, since it knows no capitals."""
    return [sentence.lower() for sentence in sentences] if saved.lowercase else list(sentences)


def _there(weights: Path) -> Path:
    if not weights.is_file():
        raise UserError(f"{weights}: the weights are gone; the run's train line with rerun=true trains it again")
    return weights


def _architecture(values: dict[str, Any], task: str, where: Path) -> Group:
    schema = schema_of(task)
    assert issubclass(schema, TransformerConfig)
    kind = schema.architecture
    wanted = {name: values[name] for name in kind.model_fields if name in values}
    try:
        return kind.model_validate(with_options(kind, wanted))
    except ValidationError as error:
        raise UserError(f"{where}: not an architecture of this version ({reason(error)})") from None
    except MissingPartError:
        raise
    except UserError as error:
        raise UserError(f"{where}: not an architecture of this version ({error})") from None
