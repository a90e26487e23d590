"""Files as earlier code wrote them: their shape, and what the rest of the store tells of what they lack."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.files import read_lines
from ablab.store.records import Record

Content = dict[str, Any]


def reshaped(kind: str, content: Any) -> Content | None:
    """Return the content of a file that has its scores as fields in the shape of today; None where it is no such file.

    kind: the class that reads the file.
    """
    try:
        return SHAPES[kind](content)
    except (KeyError, TypeError, AttributeError):
        return None


def _record(content: Content) -> Content | None:
    selected = content["selected"]
    if "scores" in selected:
        return None
    names = ("loss", "perplexity", "bleu", "loss_per_character")
    return {**content, "selected": _gathered(selected, "scores", names)}


def _evaluation(content: Content) -> Content:
    found = _gathered(content, "scores", ("bleu", "chrf", "loss", "loss_per_character"))
    statistics = found.pop("statistics")
    return {**found, "items": {"bleu": statistics}}


def _curve(content: Content) -> Content:
    return {**content, "points": [_point(point) for point in content["points"]]}


def _point(content: Content) -> Content:
    return _gathered(_validated(content), "scores", ("bleu", "chrf"))


BESIDE = {"test_chrf": ("test chrF", 2), "test_loss": ("test loss", 3), "valid_loss": ("validation loss", 3)}
"""Title and digits of what reports showed beside the metric."""


def _report(content: Content) -> Content | None:
    if "worth" in content:
        lines = [_worth(line) for line in content["worth"]]
        content = {**content, "worth": [line for line in lines if line is not None]}
    if "beside" in content:
        return content
    beside = [{"name": name, "title": title, "digits": digits} for name, (title, digits) in BESIDE.items()]
    arms = [_arm(arm) for arm in content["arms"]]
    gone = ["effect", "seeds_needed", "seconds_needed"]
    differences = [_without(line, gone) for line in content["differences"]]
    lacking: Content = {name: [] for name in ("test_sets", "metrics", "series", "artefacts", "differing")}
    return {**lacking, **content, "beside": beside, "loss": beside[-1], "arms": arms, "differences": differences}


def _worth(content: Content) -> Content | None:
    """Leave out where an arm's curve first came to the baseline's end, as it may by luck; None where that was all."""
    if "bound" not in content:
        return content
    is_more = content["low"] is not None or content["refused"] is not None
    return {**_without(content, ["bent", "bound", "bound_interval"]), "at_least": None} if is_more else None


def _arm(content: Content) -> Content:
    named = {**_without(content, ["chrf"]), "test_chrf": content["chrf"]}
    runs = [{**_without(run, ["valid_loss"]), "loss": run["valid_loss"]} for run in content["runs"]]
    return {**_gathered(named, "scores", [*BESIDE]), "runs": runs}


def _validated(content: Content) -> Content:
    """Gather the scores of validation, whose names had a prefix."""
    prefix = "valid_"
    valid = {name: content[f"{prefix}{name}"] for name in ("loss", "bleu")}
    return {**_without(content, [f"{prefix}{name}" for name in valid]), "valid": valid}


def _gathered(content: Content, field: str, names: Sequence[str]) -> Content:
    """Return the content with these fields, as far as they have a value, in a mapping of their own."""
    scores = {name: content[name] for name in names if content.get(name) is not None}
    return {**_without(content, names), field: scores}


def _without(content: Content, names: Sequence[str]) -> Content:
    return {key: value for key, value in content.items() if key not in names}


SHAPES: Mapping[str, Callable[[Content], Content | None]] = {
    "Record": _record,
    "Evaluation": _evaluation,
    "Curve": _curve,
    "ModelCard": _validated,
    "Document": _report,
}
"""The change of shape of each kind of file."""


def completed(record: Record, store: Path) -> Record:
    """Return a record from before there were losses per character with them, if its prepared corpus is still there."""
    selected, corpus = record.selected, record.data.get("corpus")
    if selected is None or PER_CHARACTER in selected.scores or not isinstance(corpus, str):
        return record
    loss = selected.scores.get("loss")
    if loss is None or (per := _tokens_per_character(store.resolve() / "corpora" / corpus)) is None:
        return record
    with_it = [{**one, PER_CHARACTER: one["loss"] * per} for one in record.validations]
    chosen = selected.model_copy(update={"scores": {**selected.scores, PER_CHARACTER: loss * per}})
    return record.model_copy(update={"selected": chosen, "validations": with_it})


PER_CHARACTER = "loss_per_character"

UNKNOWN = 0
"""The token that stands for what a vocabulary lacks."""


@cache
def _tokens_per_character(corpus: Path) -> float | None:
    """Return the `tokens` of `Prepared.valid_per_character`; None where they cannot be read, and where the vocabulary
    lacks a character: how many, only its tokenizer knows.
    """
    import numpy as np  # only records from before need it, and lists of runs are to be quick

    try:
        tokens = np.load(corpus / "valid.tgt.tokens.npy", mmap_mode="r")
        if (tokens == UNKNOWN).any():
            return None
        return float(tokens.size / sum(map(len, read_lines(corpus / "valid.tgt.txt"))))
    except (OSError, ValueError, ZeroDivisionError, UserError):
        return None
