"""How a report's numbers were made: for a caption, or a paper's appendix."""

from collections.abc import Iterator

from ablab.report.evidence import measure_of
from ablab.report.measures import MEASURES, Measure
from ablab.report.selection import Selection
from ablab.store.records import NOTHING_LEARNT


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
    compared = _compared(selection)
    if any(measure.of_machine for measure in compared):
        yield "Speeds are of the machine as it was: seeds are no repetitions of what else it had to do."
    if lower := dict.fromkeys(measure.title for measure in compared if not measure.higher_is_better):
        yield f"Lower is better: {', '.join(lower)}."


def _compared(selection: Selection) -> list[Measure]:
    """The report's metric, and what claims are about; shares of failures speak for themselves."""
    claims = [claim for claim in selection.claims if claim.metric != "failures"]
    return [MEASURES[selection.metric], *(measure_of(claim) for claim in claims)]


def _errors(claims: int) -> str:
    if claims == 1:
        return "an error rate of 5 %."
    return (
        f"one error rate of 5 % over all {claims} of them. Each begins at an equal share of it, which passes on to the "
        "others when nothing is left to decide about the claim: without margins that is Holm's procedure, with them a "
        "stricter one."
    )
