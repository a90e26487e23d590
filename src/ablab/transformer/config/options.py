"""Groups of parts of a translation run: what the options of each have in common."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field

from ablab.config.options import Option, PartGroup
from ablab.fields import EVALUATION, Count, Formerly, Group, Positive, ReadIf, Role
from ablab.transformer.data.corpus import Corpus
from ablab.transformer.data.documents.text_corpus import TextCorpus


class NormOption(Option):
    """The normalisation of one vector per token. The placement group decides where it is applied."""

    of_group = "norm"


class PlacementOption(Option):
    """The position of the norm around a sublayer."""

    of_group = "placement"


class EmbeddingOption(Option):
    """The scaling of word vectors, at the input and at the output."""

    of_group = "embedding"


class AttentionNormOption(Option):
    """Normalisation inside attention, such as that of queries and keys."""

    of_group = "attention_norm"


class FeedForwardOption(Option):
    """The feed-forward network of a layer. Every kind has about the parameters of `relu` with `model.d_ff`."""

    of_group = "feed_forward"


class InitOption(Option):
    """The scheme of initial weights."""

    of_group = "init"


class PositionOption(Option):
    """The encoding of a token's position."""

    of_group = "position"


Site = Literal["encoder", "decoder", "cross"]
SITES = get_args(Site)


class DropHeadOption(Option):
    """Rate, sites and schedule of DropHead; this kind never drops."""

    of_group = "drophead"


class ScheduledDropHeadOption(DropHeadOption):
    """A rate that follows the step. `sites`: the kinds of attention whose heads are dropped."""

    sites: Annotated[list[Site], AfterValidator(lambda sites: [site for site in SITES if site in sites])]

    def effective(self) -> Group:
        """Return DropHead `none` at rate 0 or without a site."""
        return self if self.sites and self.own.get("p") != 0 else DropHeadOption(kind="none")


class ScheduleOption(Option):
    """The learning rate as a function of the step, or of validation."""

    of_group = "schedule"


class LossOption(Option):
    """What training minimises. Validation measures plain cross-entropy under each."""

    of_group = "loss"


class OptimOption(Option):
    """The optimiser and the batch size. `lr`: peak learning rate. `batch_tokens`: padded tokens of the longer side."""

    of_group = "optim"
    lr: Positive | None
    clip: Positive | None
    batch_tokens: Count


class Pruning(Option):
    """The choice of layers or heads for pruning curves; this kind makes no curve."""

    of_group = "pruning"
    role: ClassVar[Role] = EVALUATION


class RulePruning(Pruning):
    """The curves to make. `depths`: numbers of remaining layers; None: every number."""

    curves: Annotated[list[Literal["decoder", "encoder", "both"]], Field(min_length=1)]
    depths: Annotated[list[Count], Field(min_length=1)] | None


What = Literal["layers", "heads"]

OF_LAYERS = ReadIf(("what",), lambda what: what == "layers", "pruning.what=layers")
OF_HEADS = ReadIf(("what",), lambda what: what == "heads", "pruning.what=heads")

HeadCounts = Annotated[list[Count] | None, Formerly(None), OF_HEADS]
"""Numbers of remaining heads of the whole model; None: eighths of all."""


class ImportancePruning(Pruning):
    """Removal of heads by their importance on validation."""

    what: Annotated[What, Formerly("layers")]
    heads: HeadCounts


class EitherPruning(RulePruning):
    """Curves of layers or of heads."""

    what: Annotated[What, Formerly("layers")]
    curves: Annotated[list[Literal["decoder", "encoder", "both"]], Field(min_length=1), OF_LAYERS]
    depths: Annotated[Annotated[list[Count], Field(min_length=1)] | None, OF_LAYERS]
    heads: HeadCounts


class RandomPruning(EitherPruning):
    """Random choice of layers or heads. `seed` decides the draws."""

    seed: Annotated[int, Field(ge=0, lt=2**63)]


class GreedyPruning(EitherPruning):
    """`together`: shrink both stacks at once; otherwise each while the other stays whole.

    `budget`: most sets of heads that may be scored; layers are few enough to score all.
    """

    together: Annotated[
        bool,
        ReadIf(
            ("curves", "what"),
            lambda curves, what: what == "layers" and "both" in curves,
            "pruning.what=layers and both in pruning.curves",
        ),
    ]
    budget: Annotated[Count, Formerly(200), OF_HEADS]


class SearchPruning(GreedyPruning):
    """The size of the search over sets of layers or heads."""

    exhaustive: Annotated[int, Field(ge=0), OF_LAYERS]
    beam: Count
    budget: Count
    finalists: Count


def removes_heads(pruning: Pruning) -> bool:
    """Return whether curves count the heads that remain, not the layers."""
    return getattr(pruning, "what", None) == "heads"


MODEL = ("d_model", "d_ff", "num_heads", "d_head", "encoder_layers", "decoder_layers")
"""Dimensions of the model."""

PLACE = ("stack", "layer", "sublayer")
"""Where a part stands: `encoder` or `decoder`; the number of its layer, from 1, or 0 outside the layers; and
`self_attention`, `cross_attention`, `feed_forward`, `input` or `final`."""

PRUNINGS: Mapping[str, type[Group]] = {
    "": RulePruning,
    "none": Pruning,
    "importance": ImportancePruning,
    "random": RandomPruning,
    "greedy": GreedyPruning,
    "search": SearchPruning,
}

PARTS: Mapping[str, PartGroup] = {
    "norm": PartGroup({"": NormOption}, (*MODEL, *PLACE)),
    "placement": PartGroup({"": PlacementOption}, (*MODEL, *PLACE, "norm", "make_norm", "dropout")),
    "embedding": PartGroup({"": EmbeddingOption}, (*MODEL, "vocab_size")),
    "attention_norm": PartGroup({"": AttentionNormOption}, (*MODEL, *PLACE)),
    "feed_forward": PartGroup({"": FeedForwardOption}, (*MODEL, *PLACE, "dropout")),
    "init": PartGroup({"": InitOption}, MODEL),
    "position": PartGroup({"": PositionOption}, (*MODEL, *PLACE)),
    "drophead": PartGroup({"": ScheduledDropHeadOption, "none": DropHeadOption}, (*MODEL, *PLACE, "step")),
    "schedule": PartGroup({"": ScheduleOption}, (*MODEL, "step", "peak", "total")),
    "optim": PartGroup({"": OptimOption}, (*MODEL, "parameters")),
    "loss": PartGroup({"": LossOption}, (*MODEL, "model", "batch", "label_smoothing"), ("training.label_smoothing",)),
    "pruning": PartGroup(PRUNINGS, ("encoder_layers", "decoder_layers", "judge", "rates")),
    "data": PartGroup({"": Corpus, "documents": TextCorpus, "huggingface": TextCorpus}, is_declared=True),
}
"""`peak`: the largest learning rate. `total`: `training.max_steps`."""
