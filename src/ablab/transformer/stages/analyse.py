"""Computation of the artefacts of an analysis, one at a time, so that an interruption loses at most one."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ablab.code.code import code_digest
from ablab.files import json_digest
from ablab.plan import Planned
from ablab.store.artefacts import Artefact, Axis, MatrixArtefact, SeriesArtefact, Slice, Trace, write_artefact
from ablab.store.records import Record, now
from ablab.transformer.analysis import attentions, cross_attention, importance, learned_scales
from ablab.transformer.analysis.heads import NAMES
from ablab.transformer.analysis.inspect import FINAL
from ablab.transformer.analysis.plot import draw
from ablab.transformer.stages.analyses import SITES, Wanted
from ablab.transformer.stages.looks import LOOKS, Maker, Progress
from ablab.transformer.stages.opened import Opened
from ablab.transformer.training.callbacks import Callback


def add_artefacts(planned: Planned, record: Record, lacking: Sequence[Wanted], callbacks: Callback) -> None:
    """Compute each missing artefact, draw it, pass its picture to the callbacks, and write it."""
    opened = Opened(planned, record, callbacks.on_message)
    passes = sum(opened.passes(each.settings) for each in lacking)
    with callbacks.counting("looking inside", passes) as advance:
        for each in lacking:
            artefact = MAKERS[each.settings["analysis"]](opened, each.settings, advance)
            made = {"code": _code(planned, each), "ended": now()}
            artefact = artefact.model_copy(update={"settings": dict(each.settings), "provenance": made})
            path = planned.folder.artefacts / f"{each.key}.json"
            picture = path.with_suffix(".png")
            draw(artefact, picture)
            caption = f"{artefact.section}: {artefact.title}"
            key, of = f"analysis/{each.key}", json_digest(dict(each.settings), 12)
            callbacks.on_picture(record.cost.steps, key, partial(Path, picture), caption, of)
            # Last, so that an artefact that can be read has been drawn.
            write_artefact(path, artefact)


def _code(planned: Planned, wanted: Wanted) -> str:
    return code_digest("analysis", {**planned.recipe, "analysis": wanted.settings["analysis"]})


def _scales(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    """Return g by depth, one line per site."""
    traces = [
        Trace(
            label=site,
            x=list(range(1, len(gains) + 1)),
            y=[round(gain, 4) for gain in gains],
            names=["encoder", "decoder"] if site == FINAL else [],
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


def _attention(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    """Return the cross-attention of each reference token, averaged over heads, for all layers and for each."""
    layers_and_heads = cross_attention(opened.model, *opened.pair(settings))
    maps, axes = torch.stack([heads.mean(dim=0) for heads in layers_and_heads]), opened.axes(settings)
    layers = {f"layer {number}": weights for number, weights in enumerate(maps, 1)}
    progress(1)
    return MatrixArtefact(
        title=settings["source"],
        section="Cross-attention",
        about="How much the position that predicts each token of the reference (down) attends to each token of the "
        "source (across): the mean over heads. The model reads the reference, so that all arms say the same; each row "
        "sums to 1.",
        x=axes["source"],
        y=axes["reference"],
        value="attention weight",
        slices=[
            Slice(label=label, values=_rounded(weights.tolist(), 4))
            for label, weights in {"all layers": maps.mean(dim=0), **layers}.items()
        ],
    )


def _heads(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    """Return the increase in loss when one head alone is masked, with layers as rows and heads as columns."""
    loss, sites = opened.loss(settings["sentences"]), attentions(opened.model, settings["site"])
    gained = importance(sites, loss, loss(), progress)
    return MatrixArtefact(
        title=NAMES[settings["site"]],
        section="Head importance",
        order=SITES.index(settings["site"]),
        about="What the validation loss gains when one head alone is masked (after Michel et al. 2019, section 3.2, "
        "who take BLEU): nats per target token, without label smoothing, the reference as prefix, on "
        f"{settings['sentences']:,} sentences. Heads that can each be spared may not be spared together.",
        x=Axis(title="head", labels=[str(head + 1) for head in range(len(gained[0]))]),
        y=Axis(title="layer", labels=[str(layer + 1) for layer in range(len(gained))]),
        value="nats per target token",
        interchangeable=True,
        slices=[Slice(label="", values=_rounded(gained, 5))],
    )


MAKERS: dict[str, Maker] = {"scalenorm_g": _scales, "attention": _attention, "heads": _heads, **LOOKS}


def _rounded(rows: Sequence[Sequence[float]], digits: int) -> list[list[float]]:
    return [[round(value, digits) for value in row] for row in rows]
