"""Computation of the artefacts of an analysis, one at a time, so that an interruption loses at most one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ablab.code.code import code_digest
from ablab.files import json_digest
from ablab.store.artefacts import Artefact, Axis, MatrixArtefact, SeriesArtefact, Slice, Trace, write_artefact
from ablab.store.records import Record, now
from ablab.text import Say
from ablab.transformer.analysis import attention_maps, attentions, cross_attention, importance, learned_scales
from ablab.transformer.analysis.inspect import FINAL, NAMES, single_heads
from ablab.transformer.analysis.next_token import TOP, distributions, table, uncertainty
from ablab.transformer.analysis.plot import draw
from ablab.transformer.analysis.positions import heat_map, position_vectors, similarities
from ablab.transformer.build import load_model, set_threads
from ablab.transformer.config.schema import PlannedTranslation
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.prepared import nested_subsample, prepare
from ablab.transformer.data.tokenizer import Tokenizer
from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.tokens import BOS, EOS
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.pruning.saved_model import of_run
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.translation.analyses import SITES, Wanted, evaluated, read_test_text
from ablab.transformer.translation.evaluate import build_search
from ablab.transformer.translation.texts import by_length
from ablab.transformer.translation.validation import loss_of_pairs

BEGIN, END = "<s>", "</s>"


@dataclass
class Opened:
    """A finished run, with its model, its tokenizers and its validation set on demand."""

    planned: PlannedTranslation
    record: Record
    say: Say

    @cached_property
    def _loaded(self) -> tuple[Transformer, tuple[Tokenizer, Tokenizer]]:
        return load_model(of_run(self.planned.folder, self.record), set_threads(self.planned.config.trainer))

    @property
    def model(self) -> Transformer:
        """The model with the selected weights."""
        return self._loaded[0]

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Those of source and target."""
        return self._loaded[1]

    def passes(self, settings: Mapping[str, Any]) -> int:
        """Return the number of passes of the model, for the progress bar."""
        if settings["analysis"] != "heads":
            return 1
        return sum(attention.num_heads for attention in attentions(self.model, settings["site"]))

    def source_ids(self, text: str) -> Tensor:
        """Return the ids that the encoder reads, [1, src_len]."""
        return self._row([*self.tokenizers[0].encode([text])[0], EOS])

    def target_ids(self, text: str) -> list[int]:
        """Return the ids of a target sentence, without begin and end."""
        return self.tokenizers[1].encode([text])[0]

    def pair(self, settings: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Return the source, and the reference as the decoder reads it: [1, src_len] and [1, tgt_len]."""
        return self.source_ids(settings["source"]), self._row([BOS, *self.target_ids(settings["reference"])])

    def axes(self, settings: Mapping[str, Any]) -> dict[str, Axis]:
        """Return the axes of the pair's attention: source tokens, reference tokens to predict, and those read."""
        source, target = self.tokenizers
        src = source.readable(source.encode([settings["source"]])[0])
        tgt = target.readable(self.target_ids(settings["reference"]))
        return {
            "source": Axis(title="source", labels=[*src, END]),
            "reference": Axis(title="reference", labels=[*tgt, END]),
            "read": Axis(title="reference so far", labels=[BEGIN, *tgt]),
        }

    def readable_target(self, ids: Sequence[int]) -> list[str]:
        """Return the texts of target pieces, special tokens included."""
        texts = self.tokenizers[1].readable(ids)
        return [END if number == EOS else text for number, text in zip(ids, texts, strict=True)]

    def _row(self, ids: Sequence[int]) -> Tensor:
        return torch.tensor([list(ids)], device=next(self.model.parameters()).device)

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
        return lambda: loss_of_pairs(self.model, *chosen)


Progress = Callable[[int], None]

Maker = Callable[[Opened, Mapping[str, Any], Progress], Artefact]
"""A function of the run, the artefact's settings and a progress bar."""


def add_artefacts(planned: PlannedTranslation, record: Record, lacking: Sequence[Wanted], callbacks: Callback) -> None:
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


def _code(planned: PlannedTranslation, wanted: Wanted) -> str:
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


def _positions(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    progress(1)
    return heat_map(position_vectors(opened.model, settings["positions"]))


def _similarity(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    progress(1)
    return similarities(position_vectors(opened.model, settings["positions"]))


SIDES = {"encoder": ("source", "source"), "decoder": ("read", "reference"), "cross": ("source", "reference")}
"""Axes across and down, by site."""


def _single_heads(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    site, axes = settings["site"], opened.axes(settings)
    across, down = (axes[side] for side in SIDES[site])
    maps = attention_maps(opened.model, site, *opened.pair(settings))
    progress(1)
    return single_heads(site, maps, settings["source"], across, down)


def _next_token(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    """Return the distributions along the reference, or along the model's own translation where there is none."""
    src = opened.source_ids(settings["source"])
    if "reference" in settings:
        ids, along = opened.target_ids(settings["reference"]), "the reference"
    else:
        with evaluating(opened.model):
            ids = build_search(opened.planned.config).best(opened.model, src)[0]
        along = "the model's own best translation"
    logs = distributions(opened.model, src, ids)
    progress(1)
    return table(
        logs,
        [*ids, EOS],
        opened.readable_target,
        title=settings["source"],
        about=f"Of the {logs.size(-1):,} types of the target vocabulary, the {TOP} most probable at each position, and "
        f"all others together. The decoder has read {along} up to the position. Entropy: of the whole distribution.",
    )


def _uncertainty(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    ids = opened.target_ids(settings["reference"])
    logs = distributions(opened.model, opened.source_ids(settings["source"]), ids)
    progress(1)
    return uncertainty(logs, [*ids, EOS], opened.readable_target)


def _by_length(opened: Opened, settings: Mapping[str, Any], progress: Progress) -> Artefact:
    evaluation = evaluated(opened.planned)
    progress(1)
    hypotheses = opened.planned.folder.hypotheses(evaluation.evaluation_id)
    return by_length(settings["metric"], *read_test_text(opened.planned), hypotheses, evaluation.items)


LOOKS: dict[str, Maker] = {
    "positions": _positions,
    "similarity": _similarity,
    "single_heads": _single_heads,
    "next_token": _next_token,
    "uncertainty": _uncertainty,
    "by_length": _by_length,
}
"""Makers by the name of the analysis. A code digest names an entry by the dictionary that writes it out."""

MAKERS: dict[str, Maker] = {"scalenorm_g": _scales, "attention": _attention, "heads": _heads, **LOOKS}


def _rounded(rows: Sequence[Sequence[float]], digits: int) -> list[list[float]]:
    return [[round(value, digits) for value in row] for row in rows]
