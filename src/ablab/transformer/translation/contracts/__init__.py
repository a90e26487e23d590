"""Contracts: the laws that every part of a kind keeps, ablab's own and those of users, checked by running it."""

from collections.abc import Collection, Iterator

from ablab.transformer.translation.contracts import of_corpora, of_losses, of_model, of_pruning, of_training
from ablab.transformer.translation.contracts.laws import Law

OF_NO_MODEL = ("schedule", "optim", "loss", "data", "pruning", "logger")
"""Groups whose parts are not in the model."""


def laws(chosen: Collection[str], line: list[str]) -> Iterator[Law]:
    """Yield the laws of the chosen groups; `line` describes the run that is stopped and continued."""
    if "data" in chosen:
        yield from of_corpora.laws(line)
    if set(chosen).difference((*OF_NO_MODEL, "task")):
        yield from of_model.laws(line)
    if "loss" in chosen:
        yield from of_losses.LAWS
    if "pruning" in chosen:
        yield from of_pruning.LAWS
    yield from of_training.laws(line, of_model.built, of_optimiser="optim" in chosen)
