"""The artefacts that an analysis of a language model must produce, from which text; without torch.

The choice of the text depends only on the test set, so that every arm shows the same.
"""

from collections.abc import Iterable
from itertools import islice

from ablab.errors import UserError
from ablab.store.records import Record
from ablab.transformer.data.corpus import Corpus
from ablab.transformer.data.documents.texts import text_of
from ablab.transformer.language_model.schema import STACK, PlannedLanguageModel
from ablab.transformer.stages.asked import (
    LOOKED_INTO,
    Asked,
    Wanted,
    evaluated,
    of_positions,
    of_scales,
    wanted_of,
)

TEXTS, LONGEST = 4, 60
"""Beginnings of documents that are shown, and the most characters of each."""

AMONG = 1000
"""Test documents from which these are taken: a long test text is not read to its end."""


def beginnings(documents: Iterable[str]) -> list[str]:
    """Return the beginnings, up to a space, of `TEXTS` documents that lie evenly among the first; equal ones once."""
    heads = (document.strip()[: LONGEST + 1] for document in islice(documents, AMONG))
    cut = (head if len(head) <= LONGEST else head[:LONGEST].rpartition(" ")[0] or head[:LONGEST] for head in heads)
    found = list(dict.fromkeys(filter(None, cut)))
    if len(found) <= TEXTS:
        return found
    return [found[(2 * part + 1) * len(found) // (2 * TEXTS)] for part in range(TEXTS)]


def wanted(planned: PlannedLanguageModel, record: Record, asked: Asked) -> list[Wanted]:
    """Return the artefacts that this run requires; UserError for one that has not been scored on this test text."""
    if asked.attention == "cross":
        raise UserError("attention=cross: a language model attends to its own text alone; allowed: heads, all")
    evaluated(planned)
    found = [*of_scales(planned), *of_positions(planned)]
    tests = (document for _, documents in text_of(planned.config.data).tests() for document in documents)
    for place, text in enumerate(beginnings(tests), 1):
        found.append(wanted_of(f"attention_{place}", "attention", text=text))
        if asked.attention == "all" or place == LOOKED_INTO:
            found.append(wanted_of(f"attention_{STACK}_{place}", "single_heads", text=text))
        if place == LOOKED_INTO:
            found += [wanted_of(each, each, text=text) for each in ("next_token", "uncertainty")]
    if asked.text is not None:
        data = planned.config.data
        text = data.as_read([(asked.text, "")])[0][0] if isinstance(data, Corpus) else asked.text
        found.append(wanted_of("next_token_of_text", "next_token", text=text))
    if asked.heads is not None:
        documents = min(asked.heads, record.data["valid"]["documents"])
        on = {"corpus": record.data["corpus"], "documents": documents, "site": STACK}
        found.append(wanted_of(f"heads_{STACK}", "heads", **on))
    return found
