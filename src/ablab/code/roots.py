"""Roots of each stage's code digest, and the definitions they name that affect no number."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal

from ablab.code.definitions import Sources
from ablab.code.find import find_part
from ablab.code.folders import shipped_targets
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
    "ablab.transformer.build.pruning.HEAD_STRATEGIES": "pruning.kind",
    "ablab.transformer.stages.analyse.MAKERS": "analysis",
    "ablab.transformer.stages.analyse.LOOKS": "analysis",
}
"""Dictionaries from which the recipe chooses one entry, with the setting that does. No other entry is in a digest."""

UNSAID: Mapping[str, str] = {"layerdrop.rates": "uniform"}
"""The entries of these that run where a recipe chooses none: layers that never drop have rates, too."""

ROOTS: Mapping[Stage, tuple[str, ...]] = {
    "training": (
        "ablab.transformer.stages.train.prepare_training",
        "ablab.transformer.stages.train.train",
        "ablab.transformer.stages.worker.run_worker",
        "ablab.store.records.NOTHING_LEARNT",
    ),
    "evaluation": ("ablab.transformer.stages.evaluate.evaluate",),
    "curve": ("ablab.transformer.stages.prune_curve.measure",),
    "analysis": ("ablab.transformer.stages.analyse.add_artefacts",),
}


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
    shipped = shipped_targets("task").get(str(task.get("kind")))
    found = {SPINE: ROOTS[stage] if shipped is None else (shipped,)}
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
    "ablab.transformer.config.smoke": "its values are the recipe",
    "ablab.transformer.config.former": "its values are the recipe",
    "ablab.fields": "its values are the recipe",
    "ablab.tasks.identity": "names recipes and evaluations",
    "ablab.tasks.plan": "says what a run is before it begins",
    "ablab.store": "holds results and finds them; roots name what of it decides one",
    "ablab.tracking.console": "watches",
    "ablab.text.Say": "tells a person a line",
    "ablab.tracking": "watches",
    "ablab.transformer.analysis.plot": "draws",
    "ablab.search": "may end a poor trial, which then has no result",
    "ablab.transformer.pruning.saved_model": "finds the weights of a run or of a pruned model, and reads what they are",
    "ablab.transformer.stages.train._cost": "measures time and memory",
    "ablab.transformer.training.cost": "counts and measures what a model takes",
    "ablab.transformer.training.callbacks": "watches",
    "ablab.transformer.stages.callbacks": "watches, or ends a poor trial",
    "ablab.transformer.stages.console_callback": "watches",
    "ablab.tasks.stopping": "ends a process between two steps, with a checkpoint",
    "ablab.transformer.data.download": "fetches files whose checksums are known beforehand",
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
