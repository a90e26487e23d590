"""Records as earlier code wrote them, completed where the rest of the store tells what they lack."""

from functools import cache
from pathlib import Path

from ablab.errors import UserError
from ablab.files import read_lines
from ablab.store.records import Record


def completed(record: Record, store: Path) -> Record:
    """Return a record from before there were losses per character with them, if its prepared corpus is still there."""
    selected, corpus = record.selected, record.data.get("corpus")
    if selected is None or selected.loss_per_character is not None or not isinstance(corpus, str):
        return record
    if (per := _tokens_per_character(store.resolve() / "corpora" / corpus)) is None:
        return record
    with_it = [{**one, "loss_per_character": one["loss"] * per} for one in record.validations]
    chosen = selected.model_copy(update={"loss_per_character": selected.loss * per})
    return record.model_copy(update={"selected": chosen, "validations": with_it})


@cache
def _tokens_per_character(corpus: Path) -> float | None:
    """Return what `Prepared.valid_tokens_per_character` is of a prepared corpus; None where it cannot be read."""
    import numpy as np  # only records from before need it, and lists of runs are to be quick

    try:
        tokens = np.load(corpus / "valid.tgt.tokens.npy", mmap_mode="r").size
        return float(tokens / sum(map(len, read_lines(corpus / "valid.tgt.txt"))))
    except (OSError, ValueError, ZeroDivisionError, UserError):
        return None
