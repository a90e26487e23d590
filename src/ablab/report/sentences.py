"""A report with its sentences: what was judged, the notes at its top, words on each claim, the methods, the cost."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ablab.console import duration
from ablab.judge.build import findings
from ablab.judge.document import ClaimLine, Document, Setup
from ablab.judge.evidence import chosen
from ablab.judge.flaws import MOST_NAMED, named
from ablab.judge.metrics import Measure
from ablab.judge.selection import SelectedArms
from ablab.judge.tuned import tuning_lines
from ablab.report.claim_words import with_words
from ablab.statistics.looks import Looks
from ablab.statistics.ranks import FEWEST_RANKED
from ablab.store.own_metrics import own_metrics
from ablab.store.records import NOTHING_LEARNT
from ablab.tasks.task import FAILURES
from ablab.text import how_many, program


def document_of(selection: SelectedArms, resamples: int, advance: Callable[[], None] = lambda: None) -> Document:
    """Judge a selection and say what was found. `advance` is called after each arm has been compared."""
    found = findings(selection, resamples, advance)
    said = {
        "notes": [*notes(selection, found.claims), *found.notes],
        "claims": with_words(found.claims),
        "methods": [*methods(selection, resamples), *([SENSITIVITY] if found.metrics else [])],
    }
    return found.model_copy(update=said)


def notes(selection: SelectedArms, claims: Sequence[ClaimLine]) -> list[str]:
    """Return what every output says beside its figures: flaws, departures, exploratory claims, missing runs."""
    said = [*selection.flaws, *selection.notes, *_exploratory(selection, claims)]
    if selection.origin is not None and not any(note.startswith(selection.origin) for note in said):
        said.append(f"{selection.origin}: the figures are not from runs of a store")
    states = Counter(run.state for arm in selection.rows for run in arm.runs)
    total = sum(states.values())
    missing = {state: n for state, n in states.items() if state not in ("finished", "diverged")}
    if missing:
        states_text = ", ".join(f"{n} {state}" for state, n in missing.items())
        said.append(f"{sum(missing.values())} of {total} runs are missing: {states_text}")
    seeds = {frozenset(run.seed for run in arm.finished) for arm in selection.arms if not arm.diverged}
    if len(seeds) > 1 and selection.looks is None:
        said.append("arms have different seeds; differences are taken over the seeds that both have")
    if selection.where(lambda run: run.record is not None and run.record.config.get("smoke") is True):
        said.append("smoke runs: every stage ran, on a sliver of data the scores mean nothing")
    damage = [line for run in selection.where(lambda run: bool(run.damage)) for line in run.damage]
    if damage:
        more = f"; and {len(damage) - MOST_NAMED} more" if len(damage) > MOST_NAMED else ""
        said.append(f"what cannot be read is left out: {'; '.join(damage[:MOST_NAMED])}{more}")
    for what, gone in (
        ("translations", selection.where(lambda run: run.has_lost_translations)),
        ("training curves", selection.where(lambda run: run.record is not None and not run.folder.metrics.exists())),
    ):
        if gone:
            runs = named([run.folder.run_id for run in gone])
            said.append(f"the {what} of {how_many(len(gone), 'run')} are gone: {runs}")
    if selection.awaited and selection.claims and selection.looks is None:
        awaited = {run.folder.path for run in selection.awaited}
        expected = awaited | {run.folder.path for run in selection.where(lambda run: run.has_ended)}
        which = "" if selection.as_registered.awaited else " on claims that came after the first launch"
        said.append(
            f"provisional: {len(awaited)} of {len(expected)} runs have not ended; there are estimates and no "
            f"verdicts{which} until they have, or are given up ({program('study')} close='the reason')"
        )
    edges = {f"{one.arm}: {', '.join(one.edges)}" for one in tuning_lines(selection) if one.edges}
    if edges:
        said.append(f"tuned to an end of what was tried, so a better value may lie beyond: {'; '.join(sorted(edges))}")
    said += [
        f"{name}: {metric.target} of {metric.part.file.name} ({metric.part.code}) computes it from the translations"
        for name, metric in own_metrics().items()
        if name in {selection.metric, *(claim.metric for claim in selection.claims)}
    ]
    if selection.origin is not None:
        said.append(f"taken as better: {', '.join(dict.fromkeys(map(_better, _compared(selection))))}")
    return said


def _exploratory(selection: SelectedArms, claims: Sequence[ClaimLine]) -> Iterator[str]:
    """Yield how many claims are exploratory, and why, where no other note says why."""
    reasons = [claim.exploratory for claim in claims if claim.exploratory is not None]
    if not reasons:
        return
    every = "the claim is" if len(claims) == 1 else f"all {len(claims)} claims are"
    some = f"{len(reasons)} of {len(claims)} claims {'is' if len(reasons) == 1 else 'are'}"
    which = every if len(reasons) == len(claims) else some
    told = {selection.departed, "; ".join(selection.flaws)}
    why = "; ".join(reason for reason in dict.fromkeys(reasons) if reason not in told)
    yield f"{which} exploratory" + (f": {why}" if why else ", for what is said above")


NOISE = {
    "moderated": "Noise of claims: each arm's variance is moderated towards the mean over the study's arms, but "
    "never below what the arm shows (after Smyth 2004), with Welch and Satterthwaite's degrees of freedom. Speeds and "
    "pruned models: paired t.",
    "paired": "Noise of claims: paired t over seeds, as the experiment declares or its registration says.",
}

CONDITION = {
    "moderated": "where noise is alike in the arms that are compared",
    "paired": "where noise is symmetric or alike in the arms that are compared",
}
"""When the error rate holds. Noise borrowed from other arms must have about their size."""

REGISTER = (
    "Register: the store enters each result and registration in a line that holds a digest of the line before. So it "
    "shows a result or a registration that was edited, deleted, made again or put in by hand. It cannot show that it "
    "was itself written anew to fit; only a stamp of it that others hold can."
)


SENSITIVITY = (
    "Which metric sees best: the standard deviation between the means of arms, without the noise in them, over that of "
    "runs within an arm; F and omega squared of a one-way analysis of variance (Fisher 1925; Hays 1963). Of arms with "
    "two seeds or more, none of which diverged or nearly failed. This is for the next study: to choose the metric "
    "after looking is exploratory."
)


def methods(selection: SelectedArms, resamples: int) -> Iterator[str]:
    """Yield a sentence or two on each statistical method that this report uses."""
    if selection.origin is None:
        yield "Seeds are paired: under one seed, shared parameters start from the same draws, and batches are equal."
    yield "Arms: mean over seeds with a 95 % t interval. Differences: 95 % paired t interval, two-sided p, uncorrected."
    if selection.claims:
        together = selection.as_registered.claims or selection.claims
        primary = [claim for claim in together if not claim.secondary]
        secondary = len(together) - len(primary)
        if selection.looks is None:
            yield f"Claims: {_errors(len(primary), secondary, CONDITION[selection.error])} At least 3 seeds."
        else:
            yield _looks(selection.looks, len(primary), secondary)
        if len(together) < len(selection.claims):
            yield "Claims that came after the first launch are judged apart, at an error rate of their own."
        yield "Equivalence: two one-sided tests at 5 % within the margin. Not worse: one such test, against the margin."
        yield NOISE[selection.error]
    if selection.measure.items is not None:
        yield (
            f"Crossed: bootstrap over seeds and sentences together ({resamples:,} resamples, one resample of sentences "
            "for all runs). Test set alone: approximate randomisation of the same runs."
        )
    if selection.choosing is not None:
        yield selection.choosing
    if selection.origin is None:
        yield "Weights were chosen on validation."
    if selection.stamp is not None:
        yield REGISTER
    if any(arm.diverged for arm in selection.arms):
        yield (
            "An arm with diverged runs has no mean: all runs are ranked, diverged ones last, and compared by the exact "
            "test of Wilcoxon, Mann and Whitney (worst-rank scores, Lachin 1999). Arms of fewer than "
            f"{FEWEST_RANKED} planned runs are compared by their shares of failures (Boschloo 1970)."
        )
        yield (
            "Diverged: a loss that is not a number, or a validation loss that never fell "
            f"{100 * NOTHING_LEARNT:g} % below what word frequencies alone give, or rose there again by the end in an "
            "arm whose last weights count."
        )
    compared = _compared(selection)
    for measure in dict.fromkeys(compared):
        if any(chosen(measure, arm, arm) for arm in selection.arms):
            yield (
                f"The weights were chosen by {measure.title}, as the best of several validations: that flatters every "
                "arm, and is no estimate for new data."
            )
    if any(measure.of_machine for measure in compared):
        yield "Speeds and memory are of the machine as it was: seeds are no repetitions of what else it had to do."
    if lower := dict.fromkeys(measure.title for measure in compared if not measure.higher_is_better):
        yield f"Lower is better: {', '.join(lower)}."


def _better(measure: Measure) -> str:
    return f"{'higher' if measure.higher_is_better else 'lower'} {measure.title}"


def _compared(selection: SelectedArms) -> list[Measure]:
    """Return the report's metric and those of the claims, without shares of failures."""
    claims = [claim for claim in selection.claims if claim.metric != FAILURES]
    return [selection.measure, *map(selection.measure_of, claims)]


def _errors(primary: int, secondary: int, condition: str) -> str:
    if primary + secondary == 1:
        return f"an error rate of 5 %, {condition}."
    rate = f"one error rate of 5 % over all {primary + secondary} of them, {condition}"
    if secondary and primary:
        rate = f"an error rate of 5 % over {primary} primary, and another over {secondary} secondary ones, {condition}"
    return (
        f"{rate}. Each begins at an equal share of it, which "
        "passes on to the others when nothing is left to decide about the claim: without margins that is Holm's "
        "procedure, with them a stricter one."
    )


def _looks(looks: Looks, primary: int, secondary: int) -> str:
    families = [f"{count} {kind}" for count, kind in ((primary, "primary"), (secondary, "secondary")) if count]
    return (
        f"Claims: looked at after each of {looks.first} to {looks.last} seeds. Each has an equal share of an error "
        f"rate of 5 % ({' and '.join(families)} claims), which its boundaries hold over all looks: p at most c n / "
        f"{looks.last} after n seeds, with c from simulations (a family of Wang and Tsiatis 1987). Intervals of claims "
        "are repeated confidence intervals (Jennison and Turnbull 1989), which hold at any stop. Seeds are added to "
        "the arms of claims that are open."
    )


def command(made: Setup) -> str:
    """Return the command that trained the runs."""
    return f"{program('train')} -m {' '.join(made.typed)}"


def cost_words(made: Setup) -> str:
    """Return sentences on what the runs cost, and on what a fixed number of seeds would have."""
    spent = made.training_seconds + made.evaluation_seconds
    words = f"{made.runs} runs took {duration(spent)} of machine time"
    if made.tuning_runs:
        words += f", and {made.tuning_runs} runs of tuning another {duration(made.tuning_seconds)}"
    if made.fixed_seeds is None:
        return f"{words}."
    each = spent / made.runs
    return (
        f"{words}. A fixed design with {made.fixed_seeds} seeds of each arm would have needed {made.fixed_runs} runs, "
        f"about {duration(made.fixed_runs * each)}."
    )
