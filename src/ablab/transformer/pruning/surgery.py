"""Removal of layers or of heads from a model, or from its weights on disk."""

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from ablab.code.code import code_digest
from ablab.errors import UserError
from ablab.files import read_json, sha256, write_json
from ablab.files.disk import publish
from ablab.store.records import Curve, Point, now
from ablab.store.run_folder import CARD, RunFolder, model_files
from ablab.transformer.model.heads import SITES, fewer, with_heads
from ablab.transformer.model.transformer import AnyTokenModel
from ablab.transformer.pruning.heads import Heads
from ablab.transformer.pruning.saved_model import PRUNED, ModelCard, SavedModel
from ablab.transformer.pruning.strategies import Kept


def prune(model: AnyTokenModel, kept: Kept | Heads) -> AnyTokenModel:
    """Return the model with only these layers, or heads. It shares its parameters with the full one.

    In evaluation it computes what the full model does when the other layers are skipped, bit for bit; or when the
    outputs of the other heads are 0, up to rounding.
    """
    if isinstance(kept, Heads):
        return with_heads(model, kept.sites)
    return model.of_layers(kept.layers).train(model.training)


def prune_head_weights(weights: Mapping[str, Tensor], kept: Heads, num_heads: int) -> dict[str, Tensor]:
    """Prune a state dictionary of a model with `num_heads` heads in each attention; leave all else unchanged."""
    pruned = dict(weights)
    for site, layers in kept.sites.items():
        stack, sublayer = SITES[site]
        for layer, heads in enumerate(layers):
            start = f"{stack}.layers.{layer}.{sublayer}."
            own = {name.removeprefix(start): tensor for name, tensor in weights.items() if name.startswith(start)}
            pruned |= {start + name: tensor for name, tensor in fewer(own, heads, num_heads).items()}
    return pruned


def prune_weights(weights: Mapping[str, Tensor], kept: Kept) -> dict[str, Tensor]:
    """Prune a state dictionary: renumber layers from 0, cut values kept per layer, leave all else unchanged."""
    pruned: dict[str, Tensor] = {}
    places = {
        f"{stack}.layers.{old}.": f"{stack}.layers.{new}."
        for stack, layers in kept.layers.items()
        for new, old in enumerate(layers)
    }
    for name, tensor in weights.items():
        if match := re.match(r"(encoder|decoder)\.layers\.\d+\.", name):
            if match[0] in places:
                pruned[places[match[0]] + name.removeprefix(match[0])] = tensor
        elif match := re.match(r"(encoder|decoder)\.layerdrop\.", name):
            pruned[name] = tensor[list(kept.layers[match[1]])]
        else:
            pruned[name] = tensor
    return pruned


def save_pruned(folder: RunFolder, whole: SavedModel, curve: Curve, point: Point) -> Path:
    """Save the model of one point as a folder that does not depend on its run; write all of it or nothing.

    Where a model of equal weights lies already, its files are replaced one by one, and what was added beside them, such
    as exports, stays.
    """
    kept = kept_at(point)
    name = kept.name.removeprefix("encoder_")  # a stack that the model lacks
    place = folder.pruned / name
    folder.pruned.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.pruned, prefix=f".{name}."))
    try:
        full = load_file(whole.weights)
        if isinstance(kept, Heads):
            weights = prune_head_weights(full, kept, whole.architecture.model.num_heads)
        else:
            weights = prune_weights(full, kept)
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, made / PRUNED)
        for tokenizer in model_files(whole.tokenizers):
            shutil.copy(tokenizer, made / tokenizer.name)
        digest = sha256(made / PRUNED)
        write_json(made / CARD, _card(folder, whole, curve, point, name, digest).model_dump())
        if _has_weights(place, digest):
            for file in made.iterdir():
                publish(file, place / file.name)
        else:
            made.chmod(0o755)
            shutil.rmtree(place, ignore_errors=True)
            publish(made, place)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return place


def _has_weights(place: Path, digest: str) -> bool:
    """Return whether the card of a saved model, if there is one, names weights of this digest."""
    try:
        return bool(read_json(place / CARD)["sha256"] == digest)
    except (OSError, UserError, LookupError, TypeError):
        return False


def kept_at(point: Point) -> Kept | Heads:
    """Return the layers, or heads, that the model of this point has."""
    if point.heads is not None:
        return Heads.of(point.heads)
    return Kept(tuple(point.encoder), tuple(point.decoder))


def _card(
    folder: RunFolder, whole: SavedModel, curve: Curve, point: Point, name: str, weights_digest: str
) -> ModelCard:
    architecture = whole.architecture.model_dump(serialize_as_any=True)
    recipe = folder.recipe()
    remaining = {"encoder": point.encoder, "decoder": point.decoder}
    sizes = {f"{stack}_layers": len(layers) for stack, layers in remaining.items()}
    architecture["model"] |= {key: size for key, size in sizes.items() if key in architecture["model"]}
    return ModelCard(
        name=f"{folder.run_id}/{name}",
        architecture=architecture,
        kept=remaining,
        heads=point.heads,
        chosen_by=curve.label,
        run_id=folder.run_id,
        recipe=recipe,
        parameters=point.parameters,
        valid=point.valid,
        sha256=weights_digest,
        provenance_code=code_digest("curve", {**recipe, "pruning": curve.settings["pruning"]}),
        ended=now(),
    )
