"""Makers of the artefacts that look inside: positions, single heads, the next token, and quality by length."""

from collections.abc import Callable, Mapping
from typing import Any

from ablab.store.artefacts import Artefact
from ablab.transformer.analysis import attention_maps
from ablab.transformer.analysis.heads import single_heads
from ablab.transformer.analysis.next_token import TOP, distributions, table, uncertainty
from ablab.transformer.analysis.positions import heat_map, position_vectors, similarities
from ablab.transformer.build import build_search
from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.tokens import EOS
from ablab.transformer.stages.by_length import by_length
from ablab.transformer.stages.opened import Opened
from ablab.transformer.stages.texts import evaluated, read_test_text

Progress = Callable[[int], None]

Maker = Callable[[Opened, Mapping[str, Any], Progress], Artefact]
"""A function of the run, the artefact's settings and a progress bar."""


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
    return by_length(
        settings["metric"],
        *read_test_text(opened.planned),
        opened.planned.folder.hypotheses(evaluation.evaluation_id),
        evaluation.statistics,
    )


LOOKS: dict[str, Maker] = {
    "positions": _positions,
    "similarity": _similarity,
    "single_heads": _single_heads,
    "next_token": _next_token,
    "uncertainty": _uncertainty,
    "by_length": _by_length,
}
