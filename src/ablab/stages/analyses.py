"""The artefacts that an analysis of a run must produce, and those still missing; without torch.

The choice of test sentences depends only on the test set, so that every arm shows the same ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablab.errors import UserError
from ablab.files import read_lines
from ablab.plan import Planned
from ablab.store.artefacts import comparable_artefacts
from ablab.store.records import Evaluation, Record

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
"""Raised when the same settings would give other numbers, so that existing artefacts are computed again."""


@dataclass(frozen=True)
class Wanted:
    """A required artefact: its file name, and all settings that decide its numbers beside the weights."""

    key: str
    settings: Mapping[str, Any]


def wanted(planned: Planned, record: Record, heads: int | None) -> list[Wanted]:
    """Return the artefacts that this run requires.

    `heads`: number of validation sentences on which head importance is measured; None: it is not measured.
    """
    found = []
    norm = planned.config.norm
    if norm.kind == "scalenorm" and norm.own["learn_g"]:
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
    """Return the artefacts that do not exist or were computed from other settings."""
    there = {key: artefact.settings for key, artefact in comparable_artefacts(planned.folder.artefacts).items()}
    return [each for each in wanted if there.get(each.key) != each.settings]


def _settings(analysis: str, **others: Any) -> dict[str, Any]:
    return {"analysis": analysis, "version": VERSION, **others}


def _test_text(planned: Planned) -> tuple[list[str], list[str]]:
    """Return the test sentences that the run's own evaluation stored; neither the corpus nor a network is needed."""
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
