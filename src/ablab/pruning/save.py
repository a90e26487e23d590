"""Writes a pruned model down: weights, tokenizers, and a card that says what it is."""

import shutil
import tempfile
from pathlib import Path

from safetensors.torch import load_file, save_file

from ablab.files import sha256, write_json
from ablab.provenance import code_digest
from ablab.pruning.kept import Kept
from ablab.pruning.surgery import prune_weights
from ablab.store.records import Curve, Point, now
from ablab.store.run_folder import RunFolder
from ablab.store.saved_model import CARD, PRUNED, ModelCard, SavedModel


def save_pruned(folder: RunFolder, whole: SavedModel, curve: Curve, point: Point) -> Path:
    """The model of one point as a folder that needs nothing of its run; all of it or nothing."""
    kept = Kept(tuple(point.encoder), tuple(point.decoder))
    place = folder.pruned / kept.name
    folder.pruned.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.pruned, prefix=f".{kept.name}."))
    try:
        weights = prune_weights(load_file(whole.weights), kept)
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, made / PRUNED)
        for tokenizer in ("src.model", "tgt.model"):
            shutil.copy(whole.tokenizers / tokenizer, made / tokenizer)
        write_json(made / CARD, _card(folder, whole, curve, point, kept, sha256(made / PRUNED)).model_dump())
        made.chmod(0o755)
        shutil.rmtree(place, ignore_errors=True)
        made.rename(place)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return place


def _card(
    folder: RunFolder, whole: SavedModel, curve: Curve, point: Point, kept: Kept, weights_digest: str
) -> ModelCard:
    architecture = whole.architecture.model_dump(serialize_as_any=True)
    architecture["model"] |= {"encoder_layers": len(kept.encoder), "decoder_layers": len(kept.decoder)}
    return ModelCard(
        name=f"{folder.run_id}/{kept.name}",
        architecture=architecture,
        kept={stack: list(layers) for stack, layers in kept.layers.items()},
        chosen_by=curve.label,
        run_id=folder.run_id,
        recipe=folder.recipe(),
        parameters=point.parameters,
        valid_loss=point.valid_loss,
        valid_bleu=point.valid_bleu,
        sha256=weights_digest,
        provenance_code=code_digest("curve"),
        ended=now(),
    )
