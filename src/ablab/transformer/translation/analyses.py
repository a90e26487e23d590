"""The artefacts that an analysis of a run must produce, from which stored text, and those missing; without torch.

The choice of test sentences depends only on the test set, so that every arm shows the same ones.
"""

from collections.abc import Sequence

from ablab.errors import UserError
from ablab.store.records import Record
from ablab.store.shared import StoredText, is_stored_text, stored_text
from ablab.transformer.config.options import SITES
from ablab.transformer.config.schema import PlannedTranslation
from ablab.transformer.data.keys import has_both_sides
from ablab.transformer.stages.asked import (
    LOOKED_INTO,
    Asked,
    Wanted,
    evaluated,
    of_positions,
    of_scales,
    wanted_of,
)
from ablab.transformer.translation.texts import METRICS, WITHOUT_TEXTS

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
    sizes = {number: max(len(side.encode()) for side in pair) for pair, number in first.items() if has_both_sides(pair)}
    ordered = sorted(sizes, key=lambda number: (sizes[number], number))
    short = [number for number in ordered if sizes[number] <= LONGEST]
    if len(short) < count:
        return ordered[:count]
    return [short[(2 * part + 1) * len(short) // (2 * count)] for part in range(count)]


def wanted(planned: PlannedTranslation, record: Record, asked: Asked) -> list[Wanted]:
    """Return the artefacts that this run requires."""
    found = [*of_scales(planned), *of_positions(planned), *_of_sentences(planned, asked)]
    scored = {"evaluation": planned.evaluation_id, "references": evaluated(planned).references}
    metrics = METRICS if planned.folder.translations(planned.evaluation_id).exists() else WITHOUT_TEXTS
    found += [wanted_of(f"{metric}_by_length", "by_length", metric=metric, **scored) for metric in metrics]
    if asked.text is not None:
        source = planned.config.data.as_read([(asked.text, "")])[0][0]
        decoding = planned.evaluation["decoding"]
        search = {key: decoding[key] for key in SEARCH if key in decoding}  # greedy search has no length penalty
        found.append(wanted_of("next_token_of_text", "next_token", source=source, search=search))
    if asked.heads is not None:
        valid = record.data["valid"]
        on = {"corpus": record.data["corpus"], "sentences": min(asked.heads, valid["pairs"] - valid["dropped_empty"])}
        found += [wanted_of(f"heads_{site}", "heads", site=site, **on) for site in SITES]
    return found


SEARCH = ("beam_size", "length_penalty", "max_extra_tokens")
"""Settings of the search that decide the best translation."""


def _of_sentences(planned: PlannedTranslation, asked: Asked) -> list[Wanted]:
    found = []
    sources, references = read_test_text(planned)
    for place, number in enumerate(readable_pairs(sources, references), 1):
        pair = {"source": sources[number], "reference": references[number]}
        found.append(wanted_of(f"attention_{place}", "attention", **pair))
        if asked.attention == "all" or (asked.attention == "heads" and place == LOOKED_INTO):
            found += [wanted_of(f"attention_{site}_{place}", "single_heads", site=site, **pair) for site in SITES]
        if place == LOOKED_INTO:
            found += [wanted_of("next_token", "next_token", **pair), wanted_of("uncertainty", "uncertainty", **pair)]
    return found


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
