"""Options with fields of their own: the class that validates each, made from the signature of the part it names.

A part declares its fields where it takes them, as parameters with types and ranges. What the builder supplies is no
field, and what all parts of a group have in common is declared here. There are no defaults here; the YAML files hold
them, each in one place, or the signature does.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast, get_args

from pydantic import AfterValidator, Field, ValidationError, create_model

from ablab.config.groups import groups, kinds, option_values
from ablab.config.supplied import SUPPLIED
from ablab.data.corpus import Corpus
from ablab.errors import MissingPartError, UserError, choices, first_error
from ablab.fields import EVALUATION, RUNTIME, Count, Formerly, Group, Positive, ReadIf, Role
from ablab.parts.find import Part, find_part
from ablab.parts.folders import user_confs
from ablab.parts.load import load
from ablab.parts.shipped import shipped_targets
from ablab.syntax.signature import MISSING, SignatureError


class Option(Group):
    """One choice within a group. `kind` names its part, whose fields are added in a class of its own."""

    of_group: ClassVar[str]
    kind: str

    @property
    def own(self) -> dict[str, Any]:
        """The fields that this kind reads, without its name."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in ("kind", "code")}

    def __reduce__(self) -> tuple[Any, ...]:
        # Its class is made from a signature and cannot be imported by name.
        return option, (self.of_group, self.model_dump())


class Outside(Group):
    """An option whose part is not ablab's. `code`: digest of the part's source; another code is another run."""

    kind: str
    code: str

    def part(self, role: Role) -> dict[str, Any]:
        """Return the fields of one role; the part is named by its target, as in its YAML file."""
        content = super().part(role)
        return {"_target_" if name == "kind" else name: value for name, value in content.items()}


class Norm(Option):
    """The normalisation of one vector per token. The placement group decides where it is applied."""

    of_group = "norm"


class Placement(Option):
    """The position of the norm around a sublayer."""

    of_group = "placement"


class Embedding(Option):
    """The scaling of word vectors, at the input and at the output."""

    of_group = "embedding"


class AttentionNorm(Option):
    """Normalisation inside attention, such as that of queries and keys."""

    of_group = "attention_norm"


class FeedForward(Option):
    """The feed-forward network of a layer. Every kind has about the parameters of `relu` with `model.d_ff`."""

    of_group = "feed_forward"


class Init(Option):
    """The scheme of initial weights."""

    of_group = "init"


class Position(Option):
    """The encoding of a token's position."""

    of_group = "position"


Site = Literal["encoder", "decoder", "cross"]
SITES = get_args(Site)


class DropHead(Option):
    """Rate, sites and schedule of DropHead; this kind never drops."""

    of_group = "drophead"


class ScheduledDropHead(DropHead):
    """A rate that follows the step. `sites`: the kinds of attention whose heads are dropped."""

    sites: Annotated[list[Site], AfterValidator(lambda sites: [site for site in SITES if site in sites])]

    def effective(self) -> Group:
        """Return DropHead `none` at rate 0 or without a site."""
        return self if self.sites and self.own.get("p") != 0 else DropHead(kind="none")


class Schedule(Option):
    """The learning rate as a function of the step, or of validation."""

    of_group = "schedule"


class Optim(Option):
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
    depths: list[Count] | None


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
    depths: Annotated[list[Count] | None, OF_LAYERS]
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


class Logger(Option):
    """The tracker of a run, if any; the record on disk is authoritative. A sweep sets `group` and `arm`."""

    of_group = "logger"
    role: ClassVar[Role] = RUNTIME
    group: str | None
    arm: str | None


class WandbLogger(Logger):
    """Weights & Biases."""

    mode: Literal["offline", "online"]
    project: str
    entity: str | None


OPTIONS: dict[str, dict[str, type[Option]]] = {
    "norm": {"": Norm},
    "placement": {"": Placement},
    "embedding": {"": Embedding},
    "attention_norm": {"": AttentionNorm},
    "feed_forward": {"": FeedForward},
    "init": {"": Init},
    "position": {"": Position},
    "drophead": {"": ScheduledDropHead, "none": DropHead},
    "schedule": {"": Schedule},
    "optim": {"": Optim},
    "pruning": {
        "": RulePruning,
        "none": Pruning,
        "importance": ImportancePruning,
        "random": RandomPruning,
        "greedy": GreedyPruning,
        "search": SearchPruning,
    },
    "logger": {"": Logger, "wandb": WandbLogger},
}
"""For each group whose options have fields of their own, what its kinds have in common; "" stands for all others."""


def class_of(group: str, kind: object) -> type[Group] | None:
    """Return the class that validates an option of this kind; None if no option here has this kind."""
    return _class_of(group, str(kind), user_confs()) if kind in kinds(group) else None


@cache
def _class_of(group: str, kind: str, confs: Sequence[Path]) -> type[Group]:
    part = part_of(group, kind)
    if group == "data":
        assert part is not None
        return _corpus(part)
    base = OPTIONS[group].get(kind, OPTIONS[group][""])
    if part is None:
        return base
    bases = base if part.is_own else (Outside, base)
    fields = {name: (_type(part, group, name), ...) for name in _fields(part, group) if name not in base.model_fields}
    if not fields and part.is_own:
        return base
    return cast(type[Group], create_model(base.__name__, __base__=bases, __module__=__name__, **fields))  # type: ignore[call-overload]


def part_of(group: str, kind: str) -> Part | None:
    """Return the part behind a kind, read from its source; None for kinds that need none, such as no curve."""
    target = shipped_targets(group).get(kind)
    if target is None and "." not in kind:
        return None
    return find_part(target or kind)


def _fields(part: Part, group: str) -> Iterator[str]:
    """Yield the parameters of a part that are fields: all that the builder does not supply."""
    yield from (name for name in part.signature.parameters if name not in SUPPLIED[group])


def _type(part: Part, group: str, name: str) -> Any:
    try:
        return part.signature.type_of(name)
    except SignatureError as error:
        raise UserError(
            f"_target_={part.target}: {error}; allowed: a type such as float, Positive, Count or Literal, "
            f"or a name that {group} parts are given: {', '.join(SUPPLIED[group])}"
        ) from None


def _corpus(part: Part) -> type[Corpus]:
    """Import a corpus, which reads text and needs no torch: its fields are declared as a pydantic model's are."""
    found = load(part)
    if not (isinstance(found, type) and issubclass(found, Corpus)):
        raise UserError(
            f"_target_={part.target}: no corpus; allowed: a class that derives from ablab.data.corpus.Corpus"
        )
    if part.is_own:
        return found
    return cast(type[Corpus], create_model(found.__name__, __base__=(Outside, found), __module__=__name__))


def corpus_class(values: Mapping[str, Any]) -> type[Corpus]:
    """Return the class of a recorded corpus; UserError if no option here names it."""
    found = class_of("data", values.get("kind"))
    if found is None:
        raise _unknown("data", values.get("kind"), values.get("code"))
    assert issubclass(found, Corpus)
    return found


def defaults_of(group: str, kind: str) -> dict[str, Any]:
    """Return the defaults that the part's signature has for its fields; those of the YAML file go before."""
    part = part_of(group, kind)
    if part is None or group == "data":
        return {}
    parameters = part.signature.parameters
    return {name: parameters[name].default for name in _fields(part, group) if parameters[name].default is not MISSING}


def option(group: str, values: Mapping[str, Any]) -> Group:
    """Return plain values as the option that their `kind` names; UserError for a bad kind or field."""
    kind = values.get("kind")
    found = class_of(group, kind)
    if found is None:
        raise _unknown(group, kind, values.get("code"))
    filled = dict(values)
    if issubclass(found, Outside):
        filled["code"] = _checked_code(group, str(kind), values.get("code"))
    try:
        return found.model_validate(filled)
    except ValidationError as error:
        raise UserError(first_error(error, values, f"{group}.")) from None


def _unknown(group: str, kind: object, code: object) -> UserError:
    if isinstance(kind, str) and "." in kind:
        return MissingPartError(
            f"{group} is {kind} ({code}), which no option here names; allowed: in the folder of its study, or with "
            f"--config-dir FOLDER, where FOLDER/{group}/<option>.yaml has _target_: {kind}",
            group,
        )
    return UserError(f"{group}.kind={kind}: unknown; {choices(kind, kinds(group))}")


def _checked_code(group: str, kind: str, recorded: object) -> str:
    """Return the digest of a part's source; MissingPartError if it is not the recorded one."""
    part = part_of(group, kind)
    assert part is not None
    if recorded is not None and recorded != part.code:
        raise MissingPartError(
            f"{group} is {kind} ({recorded}), and {part.file} has other code ({part.code}); allowed: the source that "
            "it was trained with",
            group,
        )
    return part.code


def outside_parts(config: Group) -> dict[str, Part]:
    """Return the parts of a configuration that are not ablab's, by group."""
    chosen = ((group, getattr(config, group)) for group in (*OPTIONS, "data") if group in type(config).model_fields)
    parts = {group: part_of(group, option.kind) for group, option in chosen if isinstance(option, Outside)}
    return {group: part for group, part in parts.items() if part is not None}


def fields_of(group: str, option: str) -> Collection[str] | None:
    """Return the names of the fields that an option reads; None for groups whose options all read the same."""
    if group not in (*OPTIONS, "data"):
        return None
    found = class_of(group, option_values(group, option).get("kind"))
    return None if found is None else [name for name in found.model_fields if name != "code"]


def fields_of_options() -> Mapping[str, Role]:
    """Return dotted name and role of every field of every kind."""
    return _fields_of_options(user_confs())


@cache
def _fields_of_options(confs: Sequence[Path]) -> Mapping[str, Role]:
    return {
        name: role
        for group in (*OPTIONS, "data")
        for kind in sorted(kinds(group))
        if (found := class_of(group, kind)) is not None
        for name, role in found.walk(f"{group}.")
        if name != f"{group}.code"
    }


def readers(key: str) -> tuple[str, ...]:
    """Return the options of the group in `group.field` that read the field."""
    group, _, field = key.partition(".")
    return tuple(name for name in groups()[group] if field in (fields_of(group, name) or ()))
