"""The artefacts that an analysis of a run must produce, from which stored text, and those missing; without torch.

The choice of test sentences depends only on the test set, so that every arm shows the same ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablab.errors import UserError
from ablab.store.artefacts import comparable_artefacts
from ablab.store.records import Evaluation, Record
from ablab.store.shared import StoredText, is_stored_text, stored_text
from ablab.transformer.config.schema import PlannedTranslation
from ablab.transformer.data.keys import has_both_sides
from ablab.transformer.translation.texts import metrics_of

PAIRS = 4
LONGEST = 80
"""Maximum bytes of UTF-8 of the longer side: some 14 English or German words, 40 Cyrillic or 26 Chinese characters."""


def readable_pairs(sources: Sequence[str], references: Sequence[str], count: int = PAIRS) -> list[int]:
    """Return the numbers of `count` pairs whose attention maps are readable, from short to long.

    Pairs with an empty side and repeated pairs are left out. Those with at most `LONGEST` bytes are ordered by bytes,
    then by number, and cut into `count` equal parts; the middle pair of each part is taken. If there are fewer than
    `count`, the `count` shortest of all are taken.
    """
    first = {pair: number for number, pair in reversed(list(enumerate(zip(sources, references, strict=True))))}
    sizes = {number: max(map(_bytes, pair)) for pair, number in first.items() if has_both_sides(pair)}
    ordered = sorted(sizes, key=lambda number: (sizes[number], number))
    short = [number for number in ordered if sizes[number] <= LONGEST]
    if len(short) < count:
        return ordered[:count]
    return [short[(2 * part + 1) * len(short) // (2 * count)] for part in range(count)]


def _bytes(text: str) -> int:
    return len(text.encode())


SITES = ("encoder", "decoder", "cross")
"""The kinds of attention, as DropHead names them."""

VERSION = 1
"""Raised when the same settings would give other numbers, so that existing artefacts are computed again."""


POSITIONS = 64
"""Positions shown; of a learned table that has fewer, all."""

HAVE_VECTORS = ("sinusoidal", "learned")
"""Kinds of positions that add a vector to the input, which can be shown."""

LOOKED_INTO = 1
"""Place of the sentence whose single heads and next tokens are shown: the shortest, so that the picture is readable."""


@dataclass(frozen=True)
class Wanted:
    """A required artefact: its file name, and all settings that decide its numbers beside the weights."""

    key: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """What a user can ask for.

    `attention`: `cross`, the mean over heads of cross-attention; `heads`, also every single head of all kinds of
    attention on one sentence; `all`, on all of them. `heads`: number of validation sentences on which head importance
    is measured; None: it is not measured. `text`: a source sentence whose next tokens are shown.
    """

    attention: str = "heads"
    heads: int | None = None
    text: str | None = None


def wanted(planned: PlannedTranslation, record: Record, asked: Asked) -> list[Wanted]:
    """Return the artefacts that this run requires."""
    norm = planned.config.norm
    learns_g = norm.kind == "scalenorm" and norm.own["learn_g"]
    sites = {"outputs": True} if planned.config.placement.kind == "sandwich" else {}
    found = [_wanted("scalenorm_g", "scalenorm_g", **sites)] if learns_g else []
    found += [*_of_positions(planned), *_of_sentences(planned, asked)]
    scored = {"evaluation": planned.evaluation_id, "references": evaluated(planned).references}
    has_translations = planned.folder.translations(planned.evaluation_id).exists()
    found += [
        _wanted(f"{metric}_by_length", "by_length", metric=metric, **scored)
        for metric in metrics_of(translations=has_translations)
    ]
    if asked.text is not None:
        search = {key: planned.evaluation["decoding"][key] for key in SEARCH}
        found.append(_wanted("next_token_of_text", "next_token", source=asked.text, search=search))
    if asked.heads is not None:
        valid = record.data["valid"]
        on = {"corpus": record.data["corpus"], "sentences": min(asked.heads, valid["pairs"] - valid["dropped_empty"])}
        found += [_wanted(f"heads_{site}", "heads", site=site, **on) for site in SITES]
    return found


SEARCH = ("beam_size", "length_penalty", "max_extra_tokens")
"""Settings of the search that decide the best translation."""


def _of_positions(planned: PlannedTranslation) -> list[Wanted]:
    position = planned.config.position
    if position.kind not in HAVE_VECTORS:
        return []
    count = min(POSITIONS, position.own.get("max_length", POSITIONS))
    return [
        _wanted("position_vectors", "positions", positions=count),
        _wanted("position_similarity", "similarity", positions=count),
    ]


def _of_sentences(planned: PlannedTranslation, asked: Asked) -> list[Wanted]:
    found = []
    sources, references = read_test_text(planned)
    for place, number in enumerate(readable_pairs(sources, references), 1):
        pair = {"source": sources[number], "reference": references[number]}
        found.append(_wanted(f"attention_{place}", "attention", **pair))
        if asked.attention == "all" or (asked.attention == "heads" and place == LOOKED_INTO):
            found += [_wanted(f"attention_{site}_{place}", "single_heads", site=site, **pair) for site in SITES]
        if place == LOOKED_INTO:
            found += [_wanted("next_token", "next_token", **pair), _wanted("uncertainty", "uncertainty", **pair)]
    return found


def missing(planned: PlannedTranslation, wanted: list[Wanted]) -> list[Wanted]:
    """Return the artefacts that do not exist or were computed from other settings."""
    there = {key: artefact.settings for key, artefact in comparable_artefacts(planned.folder.artefacts).items()}
    return [each for each in wanted if there.get(each.key) != each.settings]


def _wanted(key: str, analysis: str, **others: Any) -> Wanted:
    return Wanted(key, {"analysis": analysis, "version": VERSION, **others})


def evaluated(planned: PlannedTranslation) -> Evaluation:
    """Return the run's evaluation on this test set with this search; UserError if there is none."""
    evaluation = planned.folder.evaluation(planned.evaluation_id)
    if evaluation is None:
        raise UserError(
            f"{planned.run_id} has not translated {planned.evaluation['test']['name']}; type its train line again, "
            "with the words that name this test set"
        )
    return evaluation


def read_test_text(planned: PlannedTranslation) -> StoredText:
    """Return sources and references as the evaluation stored them; UserError if they are gone or were changed."""
    evaluation = evaluated(planned)
    folder = planned.outputs / "corpora" / evaluation.references
    text = stored_text(planned.outputs, evaluation.references)
    if text is None:
        raise UserError(f"{folder}: is gone, and the analysis needs its test text")
    if not is_stored_text(planned.outputs, evaluation.test_name, evaluation.references):
        raise UserError(f"{folder}: is not the test text that {planned.run_id} translated; it was changed or damaged")
    return text
