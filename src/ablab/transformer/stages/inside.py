"""The artefacts of an analysis, computed one at a time, so that an interruption loses at most one."""

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ablab.code.code import code_digest
from ablab.files import json_digest
from ablab.store.artefacts import Artefact, Axis, MatrixArtefact, SeriesArtefact, Slice, Trace, write_artefact
from ablab.store.records import Record, now
from ablab.tasks.plan import PlannedRun
from ablab.text import Say
from ablab.transformer.analysis import attentions, importance, learned_scales
from ablab.transformer.analysis.inspect import FINAL, NAMES
from ablab.transformer.analysis.plot import draw
from ablab.transformer.analysis.positions import heat_map, position_vectors, similarities
from ablab.transformer.config.options import SITES
from ablab.transformer.model.transformer import TokenModel
from ablab.transformer.stages.asked import Wanted
from ablab.transformer.training.callbacks import Callback


@dataclass
class Looked(abc.ABC):
    """A finished run that is looked into. A task says what its model is, and how well it does on validation."""

    planned: PlannedRun[Any]
    record: Record
    say: Say

    @property
    @abc.abstractmethod
    def model(self) -> TokenModel:
        """The model with the selected weights."""

    @abc.abstractmethod
    def loss(self, count: int) -> Callable[[], float]:
        """Return a function for the loss on a fixed subset of `count` validation items, without label smoothing."""

    def passes(self, settings: Mapping[str, Any]) -> int:
        """Return the number of passes of the model, for the progress bar."""
        if settings["analysis"] != "heads":
            return 1
        return sum(attention.num_heads for attention in attentions(self.model, settings["site"]))


Progress = Callable[[int], None]

Maker = Callable[[Any, Mapping[str, Any], Progress], Artefact]
"""A function of the run, the artefact's settings and a progress bar."""


def add(opened: Looked, makers: Mapping[str, Maker], lacking: Sequence[Wanted], callbacks: Callback) -> None:
    """Compute each missing artefact, draw it, pass its picture to the callbacks, and write it."""
    planned = opened.planned
    passes = sum(opened.passes(each.settings) for each in lacking)
    with callbacks.counting("looking inside", passes) as advance:
        for each in lacking:
            artefact = makers[each.settings["analysis"]](opened, each.settings, advance)
            made = {"code": _code(planned, each), "ended": now()}
            artefact = artefact.model_copy(update={"settings": dict(each.settings), "provenance": made})
            path = planned.folder.artefacts / f"{each.key}.json"
            picture = path.with_suffix(".png")
            draw(artefact, picture)
            caption = f"{artefact.section}: {artefact.title}"
            key, of = f"analysis/{each.key}", json_digest(dict(each.settings), 12)
            callbacks.on_picture(opened.record.cost.steps, key, partial(Path, picture), caption, of)
            # Last, so that an artefact that can be read has been drawn.
            write_artefact(path, artefact)


def _code(planned: PlannedRun[Any], wanted: Wanted) -> str:
    return code_digest("analysis", {**planned.recipe, "analysis": wanted.settings["analysis"]})


def scales(opened: Looked, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    """Return g by depth, one line per site."""
    traces = [
        Trace(
            label=site,
            x=list(range(1, len(gains) + 1)),
            y=[round(gain, 4) for gain in gains],
            names=list(opened.model.stacks) if site == FINAL else [],
        )
        for site, gains in learned_scales(opened.model).items()
    ]
    progress(1)
    return SeriesArtefact(
        title="g by depth",
        section="ScaleNorm",
        about="What training made of g in g x / |x| (Nguyen and Salazar 2019, eq. 5), one number for each norm; it "
        "starts at the square root of d_model.",
        x=Axis(title="layer"),
        y=Axis(title="g"),
        series=traces,
    )


def masked_heads(
    opened: Looked, settings: Mapping[str, Any], count: int, measured: str, progress: Progress
) -> MatrixArtefact:
    """Return the increase in loss when one head alone is masked, with layers as rows and heads as columns.

    `measured`: of what the loss is, on `count` validation items.
    """
    loss, sites = opened.loss(count), attentions(opened.model, settings["site"])
    gained = importance(sites, loss, loss(), progress)
    return MatrixArtefact(
        title=NAMES[settings["site"]],
        section="Head importance",
        order=SITES.index(settings["site"]),
        about="What the validation loss gains when one head alone is masked (after Michel et al. 2019, section 3.2, "
        f"who score translations): nats {measured}, without label smoothing. Heads that can each be spared may not be "
        "spared together.",
        x=Axis(title="head", labels=[str(head + 1) for head in range(len(gained[0]))]),
        y=Axis(title="layer", labels=[str(layer + 1) for layer in range(len(gained))]),
        value="nats per token",
        interchangeable=True,
        slices=[Slice(label="", values=[[round(value, 5) for value in row] for row in gained])],
    )


def positions(opened: Looked, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    """Return the vectors of positions."""
    progress(1)
    return heat_map(position_vectors(opened.model, settings["positions"]))


def similarity(opened: Looked, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    """Return how similar the vectors of positions are."""
    progress(1)
    return similarities(position_vectors(opened.model, settings["positions"]))
