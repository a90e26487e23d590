"""What decides the weights, the evaluations and the pruning curves of a language model's run."""

from collections.abc import Mapping, Sequence
from typing import Any

from ablab.fields import SCHEMA, Role
from ablab.transformer.config.recipe import recipe_of_training
from ablab.transformer.data.documents.texts import text_of, wanted
from ablab.transformer.language_model.schema import STACK, LanguageModelConfig


def recipe(config: LanguageModelConfig, origin: str | None) -> dict[str, Any]:
    """Return everything that decides the selected weights, as plain values; settings without effect are left out."""
    content = recipe_of_training(config, origin)
    content["data"] |= text_of(config.data).digests()
    if "sites" in content["drophead"]:
        content["drophead"]["sites"] = [STACK]
    dropped = {STACK: content.pop("layerdrop")}
    if "layerdrop_rates" in content:  # the linear ones rise with depth, up to the same one
        rates = content.pop("layerdrop_rates")
        dropped["rates"] = "uniform" if config.model.decoder_layers == 1 and rates == "linear" else rates
    content["layerdrop"] = dropped
    return content


def evaluation(config: LanguageModelConfig, kept: Mapping[str, Sequence[Any]] | None = None) -> dict[str, Any]:
    """Return the settings of an evaluation: the test text and the remaining layers or heads.

    `kept`: indices of layers, or of heads by site and layer; None if all remain.
    """
    texts = text_of(config.data)
    test = {
        "name": " + ".join(texts.test_names),
        "digest": texts.test_digest(),
        "documents": wanted(config.data, "test"),
    }
    remaining = {} if kept is None else {"kept": {stack: list(layers) for stack, layers in kept.items()}}
    return {**remaining, "schema": SCHEMA, "test": test}


def curve(config: LanguageModelConfig) -> dict[str, Any]:
    """Return the settings of pruning curves: the evaluation of each point and the choice of layers."""
    pruning = config.pruning.part(Role.EVALUATION)
    if "curves" in pruning:
        pruning["curves"] = [STACK]
    return {**evaluation(config), "pruning": pruning}
