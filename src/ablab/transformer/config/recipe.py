"""What decides the weights, the evaluations and the pruning curves of a translation run."""

from collections.abc import Mapping, Sequence
from typing import Any

from ablab.config.kinds import unasked
from ablab.fields import SCHEMA, Role
from ablab.transformer.config.options import DropHeadOption
from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.config.training import TransformerConfig
from ablab.transformer.data.corpus import EXTRA_TOKENS


def recipe(config: TranslationConfig, origin: str | None = None) -> dict[str, Any]:
    """Return everything that decides the selected weights, as plain values; settings without effect are left out.

    `origin`: digest of the weights that training starts from; None for random ones.
    """
    content = recipe_of_training(config, origin)
    content["data"] |= config.data.digests()
    content["layerdrop"] = {
        new: content.pop(old)
        for new, old in (
            ("encoder", "layerdrop_encoder"),
            ("decoder", "layerdrop_decoder"),
            ("rates", "layerdrop_rates"),
        )
        if old in content
    }
    model = config.model
    if content["layerdrop"].get("rates") == "linear" and model.encoder_layers == model.decoder_layers == 1:
        content["layerdrop"]["rates"] = "uniform"  # the rates rise with depth, up to the same one
    content["training"].pop("max_extra_tokens", None)
    if config.valid_extra_tokens != EXTRA_TOKENS:  # which every run had before the field
        content["training"]["max_extra_tokens"] = config.valid_extra_tokens
    return content


def recipe_of_training(config: TransformerConfig, origin: str | None) -> dict[str, Any]:
    """Return what decides the selected weights of any task, beside the digests of its data."""
    content = config.part(Role.RECIPE)
    content["schema"] = SCHEMA
    del content["init_from"]
    if origin is not None:
        content["init_from"] = origin
    for key in unasked(config):
        group, _, name = key.rpartition(".")
        del content[group][name]
    if config.sizes["num_heads"] == 1:  # the only head always stays
        content["drophead"] = DropHeadOption(kind="none").part(Role.RECIPE)
    content["optim"]["lr"] = config.peak_rate
    if config.training.select == "averaged_last":
        content["training"]["average_every"] = config.training.average_every or config.training.valid_every
    return content


def evaluation(config: TranslationConfig, kept: Mapping[str, Sequence[Any]] | None = None) -> dict[str, Any]:
    """Return the settings of an evaluation: test text, search, number of sentences and remaining layers or heads.

    `kept`: indices of layers per stack, or of heads per site and layer; None if all remain.
    """
    return {
        **({} if kept is None else {"kept": {stack: list(layers) for stack, layers in kept.items()}}),
        "schema": SCHEMA,
        "test": {
            "name": config.data.test_name,
            "digest": config.data.test_digest(),
            "pairs": config.data.test_pairs,
        },
        "decoding": {**config.decoding.part(Role.EVALUATION), "max_extra_tokens": config.test_extra_tokens},
        **({"scoring": config.data.scoring} if config.data.scoring else {}),
    }


def curve(config: TranslationConfig) -> dict[str, Any]:
    """Return the settings of pruning curves: the evaluation of each point and the choice of layers."""
    return {**evaluation(config), "pruning": config.pruning.part(Role.EVALUATION)}
