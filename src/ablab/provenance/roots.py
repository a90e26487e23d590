"""Roots of each stage's code digest, and the definitions they name that affect no number."""

from collections.abc import Mapping
from typing import Literal

from ablab.parts.shipped import shipped_targets

Stage = Literal["training", "evaluation", "curve", "analysis"]

OF_MODEL = ("norm", "placement", "embedding", "attention_norm", "feed_forward", "position")
OF_TRAINING = (*OF_MODEL, "init", "drophead", "schedule", "optim", "data")
GROUPS: Mapping[Stage, tuple[str, ...]] = {
    "training": OF_TRAINING,
    "evaluation": (*OF_MODEL, "data"),
    "curve": (*OF_MODEL, "data", "pruning"),
    "analysis": (*OF_MODEL, "data"),
}
"""Groups whose parts, ablab's own, each stage constructs from their YAML files: no name in its code leads to one."""

ROOTS: Mapping[Stage, tuple[str, ...]] = {
    "training": (
        "ablab.stages.train.prepare_training",
        "ablab.stages.train.train",
        "ablab.stages.worker.run_worker",
        "ablab.store.records.NOTHING_LEARNT",
    ),
    "evaluation": ("ablab.stages.evaluate.evaluate",),
    "curve": ("ablab.stages.prune_curve.measure",),
    "analysis": ("ablab.stages.analyse.add_artefacts",),
}


def roots(stage: Stage) -> tuple[str, ...]:
    """Return the dotted names from which everything that decides a stage's numbers is reached."""
    return (*ROOTS[stage], *(target for group in GROUPS[stage] for target in shipped_targets(group).values()))


OUTSIDE: Mapping[str, str] = {
    "ablab.errors": "errors end a run; they decide no number of one that goes on",
    "ablab.provenance": "says where numbers come from",
    "ablab.syntax": "reads sources",
    "ablab.parts": "finds and imports parts; the recipe says which",
    "ablab.config": "its values are the recipe",
    "ablab.fields": "its values are the recipe",
    "ablab.identity": "names recipes and evaluations",
    "ablab.plan": "says what a run is before it begins",
    "ablab.store": "holds results and finds them; roots name what of it decides one",
    "ablab.console": "watches",
    "ablab.wording.Say": "tells a person a line",
    "ablab.tracking": "watches",
    "ablab.analysis.plot": "draws",
    "ablab.analysis.plot_matrices": "draws",
    "ablab.search": "may end a poor trial, which then has no result",
    "ablab.stages.train._cost": "measures time and memory",
    "ablab.training.cost": "counts and measures what a model takes",
    "ablab.training.callbacks": "watches",
    "ablab.stages.callbacks": "watches, or ends a poor trial",
    "ablab.stages.console_callback": "watches",
    "ablab.training.loop.graceful_stop": "ends a process between two steps, with a checkpoint",
    "ablab.data.download": "fetches files whose checksums are known beforehand",
}
"""Modules and definitions that affect no number of any stage, with the reason. No digest includes them."""

SILENT = ("ablab.wording.Say", "ablab.console.Console.say")
"""Types and methods that only tell a person a line: a statement that only calls one is no part of a digest."""

UNUSED: Mapping[Stage, Mapping[str, str]] = {
    "training": {
        "ablab.decoding.beam": "validation decodes greedily",
        "ablab.decoding.hypotheses": "validation decodes greedily",
    },
}
"""Definitions that a stage's code names but never calls. A test checks this by training and tracing calls."""
