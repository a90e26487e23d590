"""How a report's numbers were made: for a caption, or a paper's appendix."""

from collections.abc import Iterator

from ablab.record import NOTHING_LEARNT
from ablab.report.measures import MEASURES
from ablab.report.selection import Selection


def methods(selection: Selection, resamples: int) -> Iterator[str]:
    """A sentence or two on each, of what this report has."""
    yield "Seeds are paired: under one seed, shared parameters start from the same draws, and batches are equal."
    yield "Arms: mean over seeds with a 95 % t interval. Differences: 95 % paired t interval, two-sided p, uncorrected."
    if selection.claims:
        errors = _errors(len(selection.claims))
        yield f"Claims: {errors} Equivalence by two one-sided tests within the margin; at least 3 seeds."
    if selection.metric == "test_bleu":
        yield (
            f"Crossed: bootstrap over seeds and sentences together ({resamples:,} resamples, one resample of sentences "
            "for all runs). Test set alone: approximate randomisation of the same runs."
        )
    if selection.choosing is not None:
        yield selection.choosing
    yield "Weights were chosen on validation. An arm with diverged runs is compared by their share."
    if any(arm.diverged for arm in selection.arms):
        yield (
            "Diverged: a loss that is not a number, or chosen weights with a validation loss not "
            f"{100 * NOTHING_LEARNT:g} % below what word frequencies alone give."
        )
    compared = {selection.metric, *(claim.metric for claim in selection.claims)}
    if any(MEASURES[name].of_machine for name in compared if name in MEASURES):
        yield "Speeds are of the machine as it was: seeds are no repetitions of what else it had to do."
    if not MEASURES[selection.metric].higher_is_better:
        yield f"Lower is better: {MEASURES[selection.metric].title}."


def _errors(claims: int) -> str:
    if claims == 1:
        return "an error rate of 5 %."
    return (
        f"one error rate of 5 % over all {claims} of them. Each begins at an equal share of it, which passes on to the "
        "others when nothing is left to decide about the claim: without margins that is Holm's procedure, with them a "
        "stricter one."
    )
