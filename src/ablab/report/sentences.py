"""A report with its sentences: what was judged, the notes at its top, words on each claim, the methods, the cost."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import floor, log10, nan

from ablab.config.labels import listed
from ablab.judge.build import findings
from ablab.judge.document import Document, DriftLine, Setup
from ablab.judge.evidence import chosen
from ablab.judge.flaws import MOST_NAMED, named
from ablab.judge.lines import ClaimLine
from ablab.judge.metrics import Measure
from ablab.judge.runs import ArmRun
from ablab.judge.selection import SelectedArms
from ablab.judge.tuned import tuning_lines
from ablab.report.claim_words import with_words
from ablab.report.names import labels_of
from ablab.statistics.moderated import VERSION
from ablab.store.pack import has_no_texts
from ablab.study.tuning import TUNING
from ablab.tasks.own_metrics import own_metrics
from ablab.tasks.score import Score
from ablab.tasks.task import FAILURES
from ablab.text import counted, duration, have, how_many, p_words, program, signed


def document_of(selection: SelectedArms, resamples: int, advance: Callable[[], None] = lambda: None) -> Document:
    """Judge a selection and say what was found. `advance` is called after each arm has been compared."""
    found = findings(selection, resamples, advance)
    titles = {measure.title for measure in _compared(selection)}
    lines = [line for line in found.drift if line.title in titles]
    said = {
        "notes": [
            *notes(selection, found.claims),
            *(drifted(line) for line in lines if line.found),
            *trained_on(found),
            *found.notes,
        ],
        "claims": with_words(found.claims, selection.labels),
        "methods": [*methods(selection, tests(found)), *on_drift(lines)],
        "labels": labels_of(found, selection.labels),
    }
    return found.model_copy(update=said)


def notes(selection: SelectedArms, claims: Sequence[ClaimLine]) -> list[str]:
    """Return what every output says beside its figures: flaws, departures, exploratory claims, missing runs."""
    said = [*selection.flaws, *selection.notes, *_exploratory(selection, claims)]
    if selection.origin is not None and not any(note.startswith(selection.origin) for note in said):
        said.append(f"{selection.origin}: the figures are not from runs of a store")
    if selection.origin is not None and len(selection.rows) == 1:
        said.append("there is one arm, so that nothing is compared")
    states = Counter(run.state for arm in selection.rows for run in arm.runs)
    total = sum(states.values())
    missing = {state: n for state, n in states.items() if state not in ("finished", "diverged")}
    if missing:
        states_text = ", ".join(f"{n} {state}" for state, n in missing.items())
        count = sum(missing.values())
        which = "" if set(missing) == {"missing"} else f": {states_text}"
        said.append(f"{count} of {how_many(total, 'run')} {'is' if count == 1 else 'are'} missing{which}")
    trained = (arm for arm in selection.arms if arm.finished and not arm.diverged)
    seeds = {frozenset(run.seed for run in arm.finished) for arm in trained}
    if len(seeds) > 1 and selection.looks is None:
        averages = ", and averages over those that all have" if selection.within is not None else ""
        said.append(f"arms have different seeds; differences are taken over the seeds that both have{averages}")
    if selection.where(lambda run: run.record is not None and run.record.config.get("smoke") is True):
        said.append("smoke runs: every stage ran, but on a sliver of data, so that the scores mean nothing")
    said += _unread(selection)
    registered = selection.registered
    is_open = bool(selection.as_registered.awaited)
    waiting = [one for one in selection.claims if is_open or registered is None or not registered.asks(one)]
    if selection.awaited and waiting and selection.looks is None:
        awaited = {run.folder.path for run in selection.awaited}
        expected = awaited | {run.folder.path for run in selection.where(lambda run: run.has_ended)}
        which = "" if is_open else " on claims that came after the first launch"
        or_else = f", or are given up ({program('study')} close='the reason')" if selection.origin is None else ""
        said.append(
            f"provisional: {len(awaited)} of {how_many(len(expected), 'run')} {have(len(awaited))} not ended; there "
            f"are estimates and no verdicts{which} until they have{or_else}"
        )
    edges = {f"{one.arm}: {', '.join(one.edges)}" for one in tuning_lines(selection) if one.edges}
    if edges:
        said.append(f"tuned to an end of what was tried, so a better value may lie beyond: {'; '.join(sorted(edges))}")
    said += [
        f"{name}: {metric.target} of {metric.part.file.name} ({metric.part.code}) computes it from the translations"
        for name, metric in own_metrics().items()
        if name in {selection.metric, *(claim.metric for claim in selection.claims)}
    ]
    said += _averaged(selection)
    said += _hidden(selection) if selection.origin is None and selection.task.has_own_scores else ()
    if selection.origin is not None:
        said.append(f"taken as better: {', '.join(dict.fromkeys(map(_better, _compared(selection))))}")
    if registered is not None and selection.error == "moderated" and registered.moderated_test < VERSION:
        said.append(OLDER_TEST)
    return said


def _hidden(selection: SelectedArms) -> Iterator[str]:
    """Yield notes on scores of a program in which all runs are alike as far as their digits show."""
    for measure in {one.title: one for one in _compared(selection)}.values():
        found = [measure.value(run) for arm in selection.arms for run in arm.finished]
        values = [value for value in found if value is not None]
        spread = max(values, default=0.0) - min(values, default=0.0)
        if 0 < spread < 10**-measure.digits:
            hidden = f"{measure.title}: its values differ by {spread:.1g} at most, which {measure.digits} digits hide"
            yield f"{hidden}; digits: {2 - floor(log10(spread))} among its scores would show it"


def _unread(selection: SelectedArms) -> Iterator[str]:
    """Yield notes on files of runs that cannot be read, are gone, or were not packed."""
    damage = [line for run in selection.where(lambda run: bool(run.damage)) for line in run.damage]
    if damage:
        more = f"; and {len(damage) - MOST_NAMED} more" if len(damage) > MOST_NAMED else ""
        yield f"what cannot be read is left out: {'; '.join(damage[:MOST_NAMED])}{more}"
    for what, gone in (
        ("translations", selection.where(lambda run: run.has_lost_translations and not has_no_texts(run.folder))),
        ("training curves", selection.where(lambda run: run.record is not None and not run.folder.metrics.exists())),
    ):
        if gone:
            yield f"the {what} of {how_many(len(gone), 'run')} are gone: {named([run.folder.run_id for run in gone])}"
    if without := selection.where(lambda run: run.has_lost_translations and has_no_texts(run.folder)):
        yield f"the translations of {how_many(len(without), 'run')} were not packed"


def _averaged(selection: SelectedArms) -> Iterator[str]:
    """Yield a note on runs whose weights validate far worse since they were averaged.

    Far: twice what a settled curve moves, since the last of the averaged weights may be the best of several by chance.
    """
    averaged = selection.where(lambda run: run.selected is not None and len(run.selected.steps) > 1)
    if not averaged:
        return
    score = selection.task.watched
    gaps = [_lost_by_averaging(run, score) for run in averaged]
    if lost := [gap for gap in gaps if gap > 2 * score.enough]:
        yield (
            f"averaged weights are worse on validation than the last of them in {len(lost)} of "
            f"{how_many(len(gaps), 'run')}, by {sum(lost) / len(lost):.{score.digits}f} {score.unit} on average"
        )


def _lost_by_averaging(run: ArmRun, score: Score) -> float:
    """Return by how much the last of the averaged weights is better than their mean; nan where it is not known."""
    assert run.record is not None
    assert run.selected is not None
    last = next((row for row in run.record.validations if row["step"] == run.selected.steps[-1]), {})
    gap = last.get(score.key, nan) - run.selected.scores.get(score.key, nan)
    return gap if score.higher_is_better else -gap


SEEN = 0.01
"""Share of a test set that may be in training too before every output says so."""


def trained_on(found: Document) -> Iterator[str]:
    """Yield a note on each test set of which training has more than SEEN."""
    for line in [] if found.setup is None else found.setup.corpora:
        shared = line.overlap.get("test in training")
        if shared is not None and shared.sources > SEEN * shared.of:
            what = found.nouns.items if found.nouns.trained == found.nouns.items else "sources"
            yield (
                f"{shared.sources:,} of {shared.of:,} test {what} ({line.test}) are in the training text too: "
                "a score may reward memory"
            )


def drifted(line: DriftLine) -> str:
    """Return a note on a baseline that was not the same over the study."""
    meaning = "the machine changed, for all arms alike where their runs alternate"
    if not line.is_share:
        meaning = "something besides the seed may have changed while the study ran"
    return f"{line.title} of {line.arm} drifted by {change_words(line)} from the first run to the last: {meaning}"


def on_drift(lines: Sequence[DriftLine]) -> Iterator[str]:
    """Yield a sentence on the tests of the baseline's costs against the order of the runs."""
    costs = [line for line in lines if line.is_share]
    if costs:
        several = len({line.arm for line in costs}) > 1
        told = [f"{line.title}{f' of {line.arm}' * several} {change_words(line)}" for line in costs]
        yield f"The baseline changed over the order of the runs: {', '.join(told)}."


def change_words(line: DriftLine) -> str:
    """Format as `+12 % (p = 0.003)`, or `-0.012 nats (p = 0.610)`."""
    amount = f"{100 * line.change:+.0f} %" if line.is_share else f"{signed(line.change, line.digits)} {line.unit}"
    return f"{amount.rstrip()} ({p_words(line.p)})"


def _exploratory(selection: SelectedArms, claims: Sequence[ClaimLine]) -> Iterator[str]:
    """Yield how many claims are exploratory, and why, where no other note says why."""
    reasons = [claim.exploratory for claim in claims if claim.exploratory is not None]
    if not reasons:
        return
    every = {1: "the claim is", 2: "both claims are"}.get(len(claims), f"all {len(claims)} claims are")
    some = f"{len(reasons)} of {len(claims)} claims {'is' if len(reasons) == 1 else 'are'}"
    which = every if len(reasons) == len(claims) else some
    told = {selection.departed, "; ".join(selection.flaws)}
    why = "; ".join(reason for reason in dict.fromkeys(reasons) if reason not in told)
    yield f"{which} exploratory" + (f": {why}" if why else ", for what is said above")


NOISE = {
    "moderated": "moderated t (after Smyth 2004)",
    "Welch's": "Welch's t (no other arm lends noise)",
    "paired": "paired t",
}
"""The method of differences, by how a study estimates their noise."""

CONDITION = {
    "moderated": "if seeds are independent, equal seeds not negatively correlated, and noise alike and near normal",
    "paired": "if seeds are independent, and differences near normal",
}
"""When the error rate holds."""

WITHIN_LEVELS = ", for effects no more alike within a level than between"
"""Of equal seeds, where several arms have a weight of one sign."""

CHANGES = "Tuning changes a verdict: the differences differ, at 5 % over all claims made both ways (Holm)."

OLDER_TEST = (
    "the claims were registered under an earlier version of the moderated t test, and are judged by the present one, "
    "in which an arm borrows only from arms that are not compared with it, and less the less it scatters like them"
)


OF_DIVERGED = {
    "worst ranks (Lachin 1999)": ("Wilcoxon-Mann-Whitney", "ranked last"),
    "shares of failures (Boschloo 1970)": ("Boschloo",),
}
"""The methods for arms with diverged runs, and how tests and refusals name them."""


def tests(found: Document) -> list[str]:
    """Return the methods by which claims were judged, or differences where nothing is claimed; diverged arms, all."""
    used = {(line.test or "").partition(" ")[0] for line in found.claims or found.differences}
    told = " ".join(
        filter(None, [*(claim.test for claim in found.claims), *(line.refused for line in found.differences)])
    )
    ways = [way for way, names in OF_DIVERGED.items() if any(name in told for name in names)]
    return [*(name for name in NOISE if name in used), *ways]


def methods(selection: SelectedArms, by: Sequence[str]) -> Iterator[str]:
    """Yield a sentence on each statistical method that this report uses; docs/statistics.md has the rest.

    `by`: the methods that were used.
    """
    if selection.origin is None:
        yield from selection.task.methods
        means = {len(run.selected.steps) for run in selection.where(lambda run: True) if run.selected} - {1}
        if means:
            yield f"They are means of {counted(sorted(means))} checkpoints."
    if noise := [name for name in NOISE if name in by]:
        usual = "paired" if selection.measure.of_machine else selection.error
        told = [NOISE[name] for name in sorted(noise, key=lambda name: name != usual)]
        yield f"Differences over seeds were judged by {listed(told, 'and')}, the test set fixed."
    if selection.claims:
        yield _errors(selection)
        if selection.within == TUNING and selection.looks is None:
            yield CHANGES
    if any(claim.margin for claim in selection.claims):
        yield "Within-margin tests are one-sided (Schuirmann 1987)."
    if selection.lengths is not None:
        yield (
            f"Worth sets a gain beside what {selection.lengths.key} at half and twice its value gains, a parabola over "
            "the logarithm; steps of arms may cost more or less."
        )
    if selection.choosing is not None:
        yield selection.choosing
    if ways := [way for way in OF_DIVERGED if way in by]:
        yield f"Diverged arms were compared by {listed(ways, 'and')}."
    compared = _compared(selection)
    for measure in dict.fromkeys(compared):
        if any(chosen(measure, arm, arm) for arm in selection.arms):
            yield f"{measure.title} chose the weights, as the best of several validations, which flatters every arm."
    if any(measure.of_machine for measure in compared):
        yield "Speeds and memory are of the machine as it was."
    if lower := dict.fromkeys(measure.title for measure in compared if not measure.higher_is_better):
        yield f"Lower is better for {', '.join(lower)}."


def _better(measure: Measure) -> str:
    return f"{'higher' if measure.higher_is_better else 'lower'} {measure.title}"


def _compared(selection: SelectedArms) -> list[Measure]:
    """Return the report's metric and those of the claims, without shares of failures."""
    claims = [claim for claim in selection.claims if claim.metric != FAILURES]
    return [selection.measure, *map(selection.measure_of, claims)]


def _errors(selection: SelectedArms) -> str:
    """Return the error rate of the claims that were registered, or else of all, and when it holds."""
    together = selection.as_registered.claims or selection.claims
    secondary = sum(claim.secondary for claim in together)
    primary, several = len(together) - secondary, len(together) > 1
    shared = f" over {primary} primary and again over {secondary} secondary claims" if primary and secondary else ""
    shared = shared or f" over {len(together)} claims" * several
    apart = ", later claims apart" * (len(together) < len(selection.claims))
    looks, condition = selection.looks, CONDITION[selection.error]
    if selection.error == "moderated" and any(len(claim.weights) > 2 for claim in together):
        condition = condition.replace("correlated", f"correlated{WITHIN_LEVELS}")
    rule = " (Holm)" * several
    if looks is not None:
        rule = f", at looks after {looks.first} to {looks.last} seeds with repeated intervals (Wang and Tsiatis 1987)"
    return f"The risk of false verdicts is at most 5 %{shared}{apart}{rule}, {condition}."


def command(made: Setup) -> str:
    """Return the command that trained the runs."""
    return f"{program('train')} -m {shlex.join(made.typed)}"


def cost_words(made: Setup) -> str:
    """Return sentences on what the runs cost, and on what a fixed number of seeds would have."""
    spent = made.training_seconds + made.evaluation_seconds
    words = f"{how_many(made.runs, 'run')} took {duration(spent)} of machine time"
    if made.tuning_runs:
        words += f", and {how_many(made.tuning_runs, 'run')} of tuning another {duration(made.tuning_seconds)}"
    if made.fixed_seeds is None:
        return f"{words}."
    each = spent / made.runs
    return (
        f"{words}. A fixed design with {made.fixed_seeds} seeds of each arm would have needed {made.fixed_runs} runs, "
        f"about {duration(made.fixed_runs * each)}."
    )
