"""Which artefacts an analysis of a run should leave, and which of them it already has; no torch.

Which test sentences are looked at is a function of the test set alone, so that every arm shows the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablab.config.options import ScaleNorm
from ablab.errors import UserError
from ablab.files import read_lines
from ablab.plan import Planned
from ablab.store.artefacts import comparable_artefacts
from ablab.store.records import Evaluation, Record

PAIRS = 4
LONGEST = 80
"""Bytes of UTF-8 of the longer side: some 14 words of English or German, 40 Cyrillic or 26 Chinese characters."""


def readable_pairs(sources: Sequence[str], references: Sequence[str], count: int = PAIRS) -> list[int]:
    """Numbers of `count` pairs whose maps can be read, from short to long.

    Pairs with an empty side and repeated ones are left out. The others with at most `LONGEST` bytes are ordered by
    those bytes, then by number, and cut into `count` equal parts: the middle one of each. Where fewer are as short,
    the shortest `count` of all.
    """
    first = {pair: number for number, pair in reversed(list(enumerate(zip(sources, references, strict=True))))}
    sizes = {number: max(map(_bytes, pair)) for pair, number in first.items() if all(side.strip() for side in pair)}
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
"""Raised when the same settings would give other numbers, so that what is there is computed anew."""


@dataclass(frozen=True)
class Wanted:
    """An artefact by the name of its file, and all that decides its numbers beside the weights."""

    key: str
    settings: Mapping[str, Any]


def wanted(planned: Planned, record: Record, heads: int | None) -> list[Wanted]:
    """Of this run. `heads`: on how many validation sentences head importance is measured; None: it is not."""
    found = []
    norm = planned.config.norm
    if isinstance(norm, ScaleNorm) and norm.learn_g:
        found.append(Wanted("scalenorm_g", _settings("scalenorm_g")))
    sources, references = _test_text(planned)
    for place, number in enumerate(readable_pairs(sources, references), 1):
        pair = {"source": sources[number], "reference": references[number]}
        found.append(Wanted(f"attention_{place}", _settings("attention", **pair)))
    if heads is not None:
        valid = record.data["valid"]
        on = {"corpus": record.data["corpus"], "sentences": min(heads, valid["pairs"] - valid["dropped_empty"])}
        found += [Wanted(f"heads_{site}", _settings("heads", site=site, **on)) for site in SITES]
    return found


def missing(planned: Planned, wanted: list[Wanted]) -> list[Wanted]:
    """Those that are not there, or were computed from other settings."""
    there = {key: artefact.settings for key, artefact in comparable_artefacts(planned.folder.artefacts).items()}
    return [each for each in wanted if there.get(each.key) != each.settings]


def _settings(analysis: str, **others: Any) -> dict[str, Any]:
    return {"analysis": analysis, "version": VERSION, **others}


def _test_text(planned: Planned) -> tuple[list[str], list[str]]:
    """What the run's own evaluation has kept of its test set: neither the corpus nor a network is needed."""
    evaluation: Evaluation | None = planned.folder.evaluation(planned.evaluation_id)
    if evaluation is None:
        raise UserError(
            f"{planned.run_id} has not translated {planned.evaluation['test']['name']}; type its train line again, "
            "with the words that name this test set"
        )
    folder = planned.outputs / "corpora" / evaluation.references
    try:
        sources, references = (read_lines(folder / f"{name}.txt") for name in ("sources", "references"))
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror}); its test text is needed") from None
    return sources, references
