"""What is checked of a translation run before the corpus is prepared, and the model that its training starts from."""

from pathlib import Path

from ablab.config import Composed
from ablab.errors import UserError
from ablab.fields import SCHEMA, Group, flatten
from ablab.store.records import Record
from ablab.store.run_folder import RunFolder
from ablab.transformer.config.schema import TranslationConfig, settings_of_translation
from ablab.transformer.pruning.saved_model import SavedModel, find_model


def check_asked(composed: Composed) -> None:
    """Check the pairs of the corpus as it was asked for."""
    (composed.asked or settings_of_translation(composed.config).data).check_pairs()


def check_reopened(config: TranslationConfig, folder: RunFolder, record: Record) -> None:
    """Raise UserError where the text is not the one that the run was trained on: its tokenizers would not fit."""
    config.data.check()
    known, digests = flatten(folder.recipe()), config.data.digests()
    if record.schema_version == SCHEMA and known.get("data.digest") != digests["digest"]:
        raise UserError(
            f"{folder.run_id}: the text that data.* names is not what it was trained on; allowed: the same sentences "
            "(a relative path is looked up from the present folder; a corpus that a package makes, by the same version)"
        )
    if known.get("data.dropped") != digests.get("dropped"):
        raise UserError(
            f"{folder.run_id}: data.overlap=drop left the sentences of another test set out of its training; allowed: "
            "the test set that it was trained with"
        )


def origin_of(config: TranslationConfig) -> SavedModel | None:
    """Return the model that training starts from, or None; UserError if its architecture does not fit."""
    if config.init_from is None:
        return None
    saved = find_model(config.init_from, Path(config.outputs), key="init_from")
    if saved.heads is not None:
        raise UserError(
            f"init_from={config.init_from}: heads were removed from it, and model.num_heads is one number for every "
            "attention; allowed: a run, or a model that layers were removed from"
        )
    sizes = ("d_model", "d_ff", "num_heads", "encoder_layers", "decoder_layers")
    for key in (*sizes, "tie", "attention_bias", "output_bias"):
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
