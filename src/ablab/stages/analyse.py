"""Computation of the artefacts of an analysis, one at a time, so that an interruption loses at most one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from ablab.analysis import attentions, cross_attention, importance, learned_scales
from ablab.analysis.inspect import FINAL
from ablab.analysis.plot import draw
from ablab.build import load_model, set_threads
from ablab.data.batches import Sentences
from ablab.data.prepared import nested_subsample, prepare
from ablab.data.tokenizer import Tokenizer
from ablab.model.tokens import BOS, EOS
from ablab.model.transformer import Transformer
from ablab.plan import Planned
from ablab.provenance import code_digest
from ablab.stages.analyses import SITES, Wanted
from ablab.store.artefacts import Artefact, Axis, MatrixArtefact, SeriesArtefact, Slice, Trace, write_artefact
from ablab.store.records import Record, now
from ablab.store.saved_model import of_run
from ablab.training.callbacks import Callback
from ablab.training.validation import true_loss

END = "</s>"


def add_artefacts(planned: Planned, record: Record, lacking: Sequence[Wanted], callbacks: Callback) -> None:
    """Compute each missing artefact, draw it, pass its picture to the callbacks, and write it."""
    opened = _Opened.of(planned, record, callbacks.on_message)
    passes = sum(opened.passes(each.settings) for each in lacking)
    with callbacks.counting("looking inside", passes) as advance:
        for each in lacking:
            artefact = MAKERS[each.settings["analysis"]](opened, each.settings, advance)
            made = {"code": code_digest("analysis"), "ended": now()}
            artefact = artefact.model_copy(update={"settings": dict(each.settings), "provenance": made})
            path = planned.folder.artefacts / f"{each.key}.json"
            picture = path.with_suffix(".png")
            draw(artefact, picture)
            caption = f"{artefact.section}: {artefact.title}"
            callbacks.on_picture(record.cost.steps, f"analysis/{each.key}", partial(Path, picture), caption)
            # Last, so that an artefact that can be read has been drawn.
            write_artefact(path, artefact)


@dataclass
class _Opened:
    """A finished run's model and tokenizers, and its validation set on demand."""

    planned: Planned
    say: Callable[[str], None]
    model: Transformer
    tokenizers: tuple[Tokenizer, Tokenizer]

    @classmethod
    def of(cls, planned: Planned, record: Record, say: Callable[[str], None]) -> "_Opened":
        device = set_threads(planned.config.trainer)
        return cls(planned, say, *load_model(of_run(planned.folder, record), device))

    def passes(self, settings: Mapping[str, Any]) -> int:
        """Return the number of passes of the model, for the progress bar."""
        if settings["analysis"] != "heads":
            return 1
        return sum(attention.num_heads for attention in attentions(self.model, settings["site"]))

    @cached_property
    def valid(self) -> tuple[Sentences, Sentences]:
        """Source and target ids of the validation set."""
        return prepare(self.planned.config.data, self.planned.outputs / "corpora", self.say).valid

    def loss(self, count: int) -> Callable[[], float]:
        """Return a function for the loss on a fixed subset of `count` validation pairs.

        The loss is in nats per target token, without label smoothing.
        """
        src, tgt = self.valid
        rows = nested_subsample(len(src), count)
        chosen = src.chosen(rows), tgt.chosen(rows)
        return lambda: true_loss(self.model, *chosen)


def _scales(opened: _Opened, settings: Mapping[str, Any], progress: Callable[[int], None]) -> Artefact:
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


def _attention(opened: _Opened, settings: Mapping[str, Any], progress: Callable[[int], None]) -> Artefact:
    """Return the cross-attention of each reference token, averaged over heads, for all layers and for each."""
    (source, target), device = opened.tokenizers, next(opened.model.parameters()).device
    src, tgt = source.encode([settings["source"]])[0], target.encode([settings["reference"]])[0]
    layers_and_heads = cross_attention(
        opened.model, torch.tensor([[*src, EOS]], device=device), torch.tensor([[BOS, *tgt]], device=device)
    )
    maps = torch.stack([heads.mean(dim=0) for heads in layers_and_heads])
    layers = {f"layer {number}": weights for number, weights in enumerate(maps, 1)}
    progress(1)
    return MatrixArtefact(
        title=settings["source"],
        section="Cross-attention",
        about="How much the position that predicts each token of the reference (down) attends to each token of the "
        "source (across): the mean over heads. The model reads the reference, so that all arms say the same; each row "
        "sums to 1.",
        x=Axis(title="source", labels=[*source.readable(src), END]),
        y=Axis(title="reference", labels=[*target.readable(tgt), END]),
        value="attention weight",
        slices=[
            Slice(label=label, values=_rounded(weights.tolist(), 4))
            for label, weights in {"all layers": maps.mean(dim=0), **layers}.items()
        ],
    )


TITLES = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}


def _heads(opened: _Opened, settings: Mapping[str, Any], progress: Callable[[int], None]) -> Artefact:
    """Return the increase in loss when one head alone is masked, with layers as rows and heads as columns."""
    loss, sites = opened.loss(settings["sentences"]), attentions(opened.model, settings["site"])
    gained = importance(sites, loss, loss(), progress)
    return MatrixArtefact(
        title=TITLES[settings["site"]],
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


MAKERS: dict[str, Callable[[_Opened, Mapping[str, Any], Callable[[int], None]], Artefact]] = {
    "scalenorm_g": _scales,
    "attention": _attention,
    "heads": _heads,
}


def _rounded(rows: Sequence[Sequence[float]], digits: int) -> list[list[float]]:
    return [[round(value, digits) for value in row] for row in rows]
