"""The code digest: a hash of the definitions that can affect numbers or rounding, wherever they stand.

A stage reaches, from the roots of a recipe, every definition of the package that a reached definition names, including
whole classes; imports are followed. Moving a definition, renaming a module, changing a comment or editing what the
recipe does not use leaves the digest unchanged.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import ablab
from ablab.code.definitions import Sources, code_of, reached
from ablab.code.find import find_part
from ablab.code.folders import shipped_targets
from ablab.code.modules import Package
from ablab.files import json_digest
from ablab.former import current

Stage = Literal["training", "evaluation", "curve", "analysis"]

OF_MODEL = ("norm", "placement", "embedding", "attention_norm", "feed_forward", "position")
OF_TRAINING = (*OF_MODEL, "init", "drophead", "schedule", "optim", "loss", "data")
GROUPS: Mapping[Stage, tuple[str, ...]] = {
    "training": OF_TRAINING,
    "evaluation": (*OF_MODEL, "data"),
    "curve": (*OF_MODEL, "data", "pruning"),
    "analysis": (*OF_MODEL, "data"),
}
"""Groups whose parts each stage constructs as the recipe names them: no name in its code leads to one."""

FORMERLY: Mapping[str, str] = {"feed_forward": "relu", "loss": "label_smoothing"}
"""The kinds that recipes leave out, since there was no other before their group existed."""

CHOSEN: Mapping[str, str] = {
    "ablab.transformer.model.layerdrop.RATES": "layerdrop.rates",
    "ablab.transformer.stages.train.DTYPES": "training.precision",
    "ablab.transformer.pruning.search.HEAD_STRATEGIES": "pruning.kind",
    "ablab.transformer.translation.evaluate.ENGINES": "decoding.engine",
    "ablab.transformer.translation.analyse.MAKERS": "analysis",
    "ablab.transformer.translation.analyse.LOOKS": "analysis",
}
"""Dictionaries from which the recipe chooses one entry, with the setting that does. No other entry is in a digest."""

UNSAID: Mapping[str, str] = {"layerdrop.rates": "uniform"}
"""The entries of these that run where a recipe chooses none: layers that never drop have rates, too."""

ROOTS: Mapping[Stage, tuple[str, ...]] = {
    "training": (
        "ablab.transformer.translation.training.prepare_training",
        "ablab.transformer.stages.train.train",
        "ablab.transformer.stages.train.run_worker",
        "ablab.store.records.NOTHING_LEARNT",
    ),
    "evaluation": ("ablab.transformer.translation.evaluate.evaluate",),
    "curve": ("ablab.transformer.translation.prune_curve.measure",),
    "analysis": ("ablab.transformer.translation.analyse.add_artefacts",),
}


OF_TASKS: Mapping[str, Mapping[Stage, tuple[str, ...]]] = {
    "language_model": {
        "training": (
            "ablab.transformer.language_model.training.prepare_training",
            *ROOTS["training"][1:],
        ),
        "evaluation": ("ablab.transformer.language_model.evaluate.evaluate",),
        "curve": ("ablab.transformer.language_model.curve.measure",),
        "analysis": ("ablab.transformer.language_model.analyse.add_artefacts",),
    },
}
"""The same of other tasks that have stages of their own, by kind. That of any other task is its class."""

SPINE = "spine"


def roots(stage: Stage, recipe: Mapping[str, Any], sources: Sources) -> dict[str, tuple[str, ...]]:
    """Return the dotted names from which everything that decides a stage's numbers is reached, by component.

    `recipe`: plain values; for a curve, with `pruning`, and for an analysis, with its name as `analysis`. Of a part
    from outside, whose own code belongs to the recipe, they are what it uses of ablab.
    """
    task = recipe.get("task", {})  # that of translation stays out of recipes
    own = str(task.get("_target_", ""))
    if own:  # a task of one's own: its code belongs to the recipe
        return {f"task={own}": tuple(_used_by(own, sources))}
    kind = str(task.get("kind"))
    shipped = None if kind in OF_TASKS else shipped_targets("task").get(kind)
    found = {SPINE: OF_TASKS.get(kind, ROOTS)[stage] if shipped is None else (shipped,)}
    for group in GROUPS[stage] if shipped is None else [each for each in GROUPS[stage] if each in recipe]:
        option = recipe.get(group, {})
        kind = option.get("kind", option.get("_target_", FORMERLY.get(group)))
        target = shipped_targets(group).get(str(kind))
        if target is not None:
            found[f"{group}={kind}"] = (target,)
        elif "_target_" in option and (used := tuple(_used_by(str(kind), sources))):
            found[f"{group}={kind}"] = used
    for registry, setting in CHOSEN.items() if shipped is None else ():
        value = _value(recipe, setting) or UNSAID.get(setting)
        if value is not None and sources.has_entry(registry, value) and _is_asked(stage, setting, recipe):
            found[f"{setting}={value}"] = (f"{registry}[{value}]",)
    return found


def _is_asked(stage: Stage, setting: str, recipe: Mapping[str, Any]) -> bool:
    """Return whether a stage reads a setting that chooses an entry."""
    if setting == "pruning.kind":
        return stage == "curve" and recipe["pruning"].get("what", "layers") == "heads"
    return setting != "training.precision" or stage == "training"


def _value(recipe: Mapping[str, Any], setting: str) -> str | None:
    found: Any = recipe
    for key in setting.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else None


def _used_by(target: str, sources: Sources) -> Iterator[str]:
    """Yield what a part from outside names of ablab."""
    named = {current(name) for each in find_part(target).definitions.values() for name in each.others}
    for name in sorted(each for each in named if sources.package.holds(each)):
        with suppress(LookupError):
            yield from sources.definitions_of(name)


OUTSIDE: Mapping[str, str] = {
    "ablab.errors": "errors end a run; they decide no number of one that goes on",
    "ablab.former": "finds modules by the names that they had",
    "ablab.code": "reads sources, finds and imports parts; says where numbers come from",
    "ablab.config": "its values are the recipe",
    "ablab.transformer.config.schema": "its values are the recipe",
    "ablab.transformer.config.options": "its values are the recipe",
    "ablab.transformer.language_model.schema": "its values are the recipe",
    "ablab.transformer.config.training": "its values are the recipe",
    "ablab.transformer.config.former": "its values are the recipe",
    "ablab.fields": "its values are the recipe",
    "ablab.files.disk": "puts on disk what was computed",
    "ablab.tasks.identity": "names recipes and evaluations",
    "ablab.tasks.plan": "says what a run is before it begins",
    "ablab.store": "holds results and finds them; roots name what of it decides one",
    "ablab.tracking.console": "watches",
    "ablab.text.Say": "tells a person a line",
    "ablab.tracking": "watches",
    "ablab.transformer.analysis.plot": "draws",
    "ablab.search": "may end a poor trial, which then has no result",
    "ablab.transformer.pruning.saved_model": "finds the weights of a run or of a pruned model, and reads what they are",
    "ablab.transformer.training.cost": "counts and measures what a model takes",
    "ablab.transformer.training.callbacks": "watches",
    "ablab.transformer.stages.callbacks": "watches, or ends a poor trial",
    "ablab.transformer.translation.callbacks": "watches",
    "ablab.transformer.stages.console_callback": "watches",
    "ablab.transformer.data.multi30k.fetch": "fetches files whose checksums are known beforehand",
}
"""Modules and definitions that affect no number of any stage, with the reason. No digest includes them."""

SILENT = ("ablab.text.Say", "ablab.tracking.console.Console.say")
"""Types and methods that only tell a person a line: a statement that only calls one is no part of a digest."""

UNUSED: Mapping[Stage, Mapping[str, str]] = {
    "training": {
        "ablab.transformer.decoding.search.beam_search": "validation decodes greedily",
        "ablab.transformer.decoding.hypotheses": "validation decodes greedily",
    },
}
"""Definitions that a stage's code names but never calls. A test checks this by training and tracing calls."""


VERSION = "2"
"""What a digest is made of. Digests of two versions cannot be compared; those of the first bear no version."""


@dataclass(frozen=True)
class Code:
    """The code behind a stage. `digest`: the version, a colon, and 12 hex digits.

    `components`: such a digest for the code that all recipes share, `spine`, and for each part, such as
    `norm=scalenorm`. `definitions`: 8 hex digits by the name of each function, method, class or constant, from `named`.
    """

    digest: str
    components: Mapping[str, str] = field(default_factory=dict)
    named: Callable[[], Mapping[str, str]] = field(default=dict, repr=False, compare=False)

    @property
    def definitions(self) -> Mapping[str, str]:
        """The digests by definition, made when they are asked for: a plan of many arms does not need them."""
        return self.named()


def code(stage: Stage, recipe: Mapping[str, Any]) -> Code:
    """Return the code of this package behind a stage of a recipe, as it was on disk when `read_sources` was called."""
    return code_from(read_sources(), stage, recipe)


def code_from(sources: Sources, stage: Stage, recipe: Mapping[str, Any]) -> Code:
    """Return the code of these sources behind a stage of a recipe."""
    return _code(sources, stage, tuple(roots(stage, recipe, sources).items()))


def code_digest(stage: Stage, recipe: Mapping[str, Any]) -> str:
    return code(stage, recipe).digest


def version_of(digest: str) -> str:
    version, colon, _ = digest.partition(":")
    return version if colon else "1"


@cache
def read_sources() -> Sources:
    """Read this package's sources and options. A server of processes calls it early, since it outlives their edits."""
    for group in {group for groups in GROUPS.values() for group in groups}:
        shipped_targets(group)
    return Sources(Package(Path(ablab.__file__).parent).as_now(), OUTSIDE, SILENT, registries=CHOSEN)


@cache
def _code(sources: Sources, stage: Stage, roots_of: Sequence[tuple[str, Sequence[str]]]) -> Code:
    components = {name: _component(sources, stage, tuple(each)) for name, each in roots_of}
    return Code(f"{VERSION}:{json_digest(components, 12)}", components, partial(_named, sources, stage, roots_of))


@cache
def _named(sources: Sources, stage: Stage, roots_of: Sequence[tuple[str, Sequence[str]]]) -> Mapping[str, str]:
    return code_of(reached(sources, [root for _, each in roots_of for root in each], UNUSED.get(stage, ()))).definitions


@cache
def _component(sources: Sources, stage: Stage, roots_of: Sequence[str]) -> str:
    return f"{VERSION}:{code_of(reached(sources, roots_of, UNUSED.get(stage, ()))).digest}"
