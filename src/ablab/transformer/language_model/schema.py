"""The schema of a language model's run, the rules on its settings, and what of them decides weights and scores."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, InstanceOf

from ablab.fields import SCHEMA, Count, DropProbability, Group, ReadIf, Role, as_typed
from ablab.tasks.plan import PlannedRun
from ablab.transformer.config.options import LossOption
from ablab.transformer.config.recipe import recipe_of_training
from ablab.transformer.config.training import SMALL, Dimensions, PartsOfModel, TransformerConfig
from ablab.transformer.data.corpus import Corpus
from ablab.transformer.data.documents.text_corpus import TextCorpus
from ablab.transformer.data.documents.texts import one_side, text_of, wanted

NAME = "language_model"
STACK = "decoder"
"""The one stack, by the name that its places, its saved tensors and DropHead's sites have."""


class Stack(Dimensions):
    """Dimensions and dropout rates of a decoder-only model.

    `context`: the most tokens that are read at once. `tie`: `all` is one table for the input and the output.
    """

    decoder_layers: Count
    context: Annotated[int, Field(ge=2)]
    dropout: DropProbability
    embedding_dropout: DropProbability
    attention_dropout: DropProbability
    activation_dropout: DropProbability
    attention_bias: Literal["all", "no_key", "none"]
    output_bias: bool
    tie: Literal["all", "none"]


class LanguageModelArchitecture(PartsOfModel):
    """The composition of a model: everything needed to load weights into it."""

    layerdrop: DropProbability
    layerdrop_rates: Annotated[
        Literal["uniform", "linear", "learned"],
        ReadIf(("layerdrop",), lambda rate: rate > 0, "layerdrop above 0"),
    ]
    model: Stack

    @property
    def layerdrop_decoder(self) -> float:
        """The rate of the stack, by the name that builders of stacks know."""
        return self.layerdrop


class LanguageModelConfig(LanguageModelArchitecture, TransformerConfig):
    """All settings that decide a language model's run."""

    grouped: ClassVar[tuple[str, ...]] = ("layerdrop", "seed")
    architecture: ClassVar[type[Group]] = LanguageModelArchitecture
    smallest: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        **SMALL,
        "data": {**SMALL["data"], "vocab_size": 600},
        "model": {"context": 64},
    }
    unread: ClassVar[Mapping[str, str]] = {
        "model.word_dropout": "whose tokenizers have no unknown word to put in a token's place"
    }

    data: Annotated[InstanceOf[Corpus] | InstanceOf[TextCorpus], AfterValidator(one_side)]
    loss: LossOption

    def violations(self) -> Iterator[str]:
        yield from _context(self)
        yield from _sites(self)
        if getattr(self.pruning, "together", False):
            yield "pruning.together=true: a language model has one stack; allowed: false"
        yield from super().violations()


PlannedLanguageModel = PlannedRun[LanguageModelConfig]
"""The plan of a language model's run."""


def _context(config: LanguageModelConfig) -> Iterator[str]:
    context, tokens, parts = config.model.context, config.optim.batch_tokens, config.trainer.micro_batches
    if tokens < parts * context:
        yield (
            f"optim.batch_tokens={tokens}: each of trainer.micro_batches={parts} has model.context={context} tokens or "
            f"more; allowed: {parts * context} or more"
        )
    vectors = config.position.own.get("max_length")
    if vectors is not None and vectors < context:
        yield f"position.max_length={vectors}: must be at least model.context={context}, or later tokens share a vector"


def _sites(config: LanguageModelConfig) -> Iterator[str]:
    sites = config.drophead.own.get("sites", [STACK])
    if sites and STACK not in sites:
        yield f"drophead.sites={as_typed(sites)}: a language model has one stack; allowed: [{STACK}]"


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
