"""Differences of each arm from the baseline: paired by seed, tested over sentences, and shown on sentences."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from ablab.judge.document import DifferingSentences
from ablab.judge.estimates import by_both
from ablab.judge.evidence import Pairs, observed, pairs
from ablab.judge.lines import ClaimLine, DifferenceLine, EffectLine, OtherTest, SeedDifference, Span
from ablab.judge.metrics import Items
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.judge.selection import SelectedArms
from ablab.statistics.diverged import Shares
from ablab.statistics.interval import NotTestable
from ablab.statistics.moderated import Moderated
from ablab.statistics.power import seen
from ablab.statistics.resampling import ResampledScores, Resamples, Swaps, crossed
from ablab.statistics.student import Floats
from ablab.statistics.verdict import Failures
from ablab.study.study import marked, names_of
from ablab.tasks.task import Example
from ablab.text import p_words

Figures = TypeVar("Figures", DifferenceLine, EffectLine)

SEED = 20190527
"""Seed of the resampling, fixed so that the same records give the same report."""


class OnSentences:
    """Tests on one test set: over seeds and sentences, or other items, and over these alone.

    They are drawn once, and a baseline is read and scored once for all arms that are compared with it.
    """

    def __init__(self, items: Items, sentences: int, resamples: int) -> None:
        self._items = items
        self._resamples = Resamples(sentences, resamples, np.random.default_rng(SEED))
        self._swaps = Swaps(sentences, resamples, np.random.default_rng(SEED))
        self._baselines: dict[tuple[int, ...], tuple[Floats, ResampledScores]] = {}

    def fields(self, both: Pairs) -> dict[str, Any]:
        """Return the fields of a `DifferenceLine` that these tests fill."""
        seeds = tuple(run.seed for run in both.baseline)
        try:
            if seeds not in self._baselines:
                self._baselines[seeds] = self._scored(both.baseline)
            arm = self._statistics(both.arm)
        except NotTestable as reason:
            return {"crossed_refused": str(reason), "randomisation_refused": str(reason)}
        baseline, baseline_scores = self._baselines[seeds]
        fields: dict[str, Any] = {}
        try:
            ours = self._resamples.scores(arm, self._items.score)
            found = crossed(ours, baseline_scores, sentences=arm.shape[1])
            fields |= {"crossed": Span.of(found.interval), "crossed_p": found.p}
        except NotTestable as reason:
            fields["crossed_refused"] = str(reason)
        try:
            fields["randomisation_p"] = self._swaps.judge(arm, baseline, self._items.score)
        except NotTestable as reason:
            fields["randomisation_refused"] = str(reason)
        return fields

    def _scored(self, runs: Sequence[ArmRun]) -> tuple[Floats, ResampledScores]:
        statistics = self._statistics(runs)
        return statistics, self._resamples.scores(statistics, self._items.score)

    def _statistics(self, runs: Sequence[ArmRun]) -> Floats:
        """Return sufficient statistics [seeds, sentences, k]. Raises NotTestable unless all runs have as many items."""
        found = [self._items.read(run) for run in runs]
        counts = {0 if one is None else len(one) for one in found} | {self._resamples.sentences}
        if len(counts) > 1:
            raise NotTestable(f"its runs have different numbers of items: {', '.join(map(str, sorted(counts)))}")
        return np.array(found)


def difference_line(
    selection: SelectedArms,
    arm: ArmRuns,
    baseline: ArmRuns,
    on_sentences: OnSentences | None,
) -> DifferenceLine:
    """Compare an arm with the baseline in the metric, as if no claim were made of them.

    `on_sentences`: tests over sentences; None where the metric has none.
    """
    measure = selection.measure
    found = observed(arm, baseline, measure)
    both = pairs(arm, baseline)
    own = baseline.name if selection.within else None
    if isinstance(found, Failures):
        return DifferenceLine(arm=arm.name, baseline=own, n=len(both.arm), refused=_failures(arm, baseline, found))
    if isinstance(found, NotTestable):
        return DifferenceLine(arm=arm.name, baseline=own, n=len(both.arm), refused=str(found))
    fields = _over_seeds(selection, (arm, baseline), found)
    if on_sentences is not None:
        fields |= on_sentences.fields(both)
    if "refused" in fields:
        fields.pop("crossed_refused", None)  # the crossed bootstrap needs even more seeds
    fields["per_seed"] = [
        SeedDifference(seed=run.seed, difference=float(one)) for run, one in zip(both.arm, found, strict=True)
    ]
    return DifferenceLine(arm=arm.name, baseline=own, n=len(found), difference=float(np.mean(found)), **fields)


def _failures(arm: ArmRuns, baseline: ArmRuns, found: Failures) -> str:
    """Return in words how arms with diverged runs compare: a share or a rank is no figure of the metric."""
    counts = f"{len(arm.diverged)} of {len(arm.runs)} runs diverged, {len(baseline.diverged)} of {len(baseline.runs)}"
    counts += " in the baseline"
    compared = found.compared
    if isinstance(compared, Shares):
        return f"{counts} (Boschloo {p_words(compared.p)})"
    won, lost = 100 * compared.won, 100 * compared.lost
    return f"{counts} (ranked last: {won:.0f} % of pairs won, {lost:.0f} % lost, {p_words(compared.p)})"


def _over_seeds(selection: SelectedArms, arms: Sequence[ArmRuns], differences: Sequence[float]) -> dict[str, Any]:
    """Return interval, p and detectable difference by the method that would decide a claim, and the other interval."""
    try:
        found = by_both(selection, arms, (1.0, -1.0), selection.measure, differences)
    except NotTestable as reason:
        return {"refused": str(reason)}
    decisive = found.decisive
    moderated = decisive if isinstance(decisive, Moderated) else None
    detectable = seen((1.0, -1.0), moderated, decisive.standard_error, decisive.n)
    return {**found.figures, "detectable": detectable}


def decided(line: DifferenceLine, claims: Sequence[ClaimLine], selection: SelectedArms) -> DifferenceLine:
    """Return the line with the figures that decide the claim made of its pair; as it is where there is none.

    Of several claims the first that counts most does. A claim that was settled by a look stands on its seeds, and what
    else was computed over others is left out.
    """
    sides = line.arm, line.baseline or selection.baseline_row.name
    found = {place: one for place, claim in enumerate(claims) if (one := _about(claim, sides, selection.metric))}
    if not found:
        return line
    place = first_of(found, claims)
    claim = found[place]
    seen = line.detectable if claim.detectable is None else claim.detectable
    figures: dict[str, Any] = {"per_seed": claim.per_seed, "detectable": seen}
    if [one.seed for one in claim.per_seed] != [one.seed for one in line.per_seed]:
        figures |= {**dict.fromkeys(OVER_SEEDS), "other": claim.other}
    return of_claim(line, claim, place).model_copy(update=figures)


OVER_SEEDS = ("uncorrected", "crossed", "crossed_p", "crossed_refused", "randomisation_p", "randomisation_refused")
"""What else is computed of a difference, over all seeds that both arms have."""


def first_of(places: Iterable[int], claims: Sequence[ClaimLine]) -> int:
    """Return the place of the claim that counts most: registered before added later, primary before secondary."""
    return min(places, key=lambda place: (claims[place].later, claims[place].secondary))


def of_claim(line: Figures, claim: ClaimLine, place: int) -> Figures:
    """Return the line with the figures of a claim. `place`: among all claims."""
    uncorrected = None
    if line.interval is not None and claim.interval is not None and claim.interval.level != line.interval.level:
        uncorrected = OtherTest(test=line.test or "", interval=line.interval, p=line.p)
    figures = {name: getattr(claim, name) for name in ("n", "difference", "interval", "test")}
    return line.model_copy(update={**figures, "p": claim.corrected, "claim": place, "uncorrected": uncorrected})


def _about(claim: ClaimLine, sides: Sequence[str], metric: str) -> ClaimLine | None:
    """Return a claim that compares these rows in the metric, by an interval, turned round if it is; None for others."""
    if claim.metric != metric or claim.title != claim.about or claim.interval is None:
        return None
    if _are((claim.arm, claim.baseline), sides):
        return claim
    return _turned(claim) if _are((claim.baseline, claim.arm), sides) else None


def _are(named: Sequence[str], sides: Sequence[str]) -> bool:
    return all(set(names_of(own)) <= set(names_of(row)) for own, row in zip(named, sides, strict=True))


def _turned(claim: ClaimLine) -> ClaimLine:
    """Return a claim with the figures of its baseline less its arm."""
    figures = {
        "difference": None if claim.difference is None else -claim.difference,
        "interval": _negative(claim.interval),
        "per_seed": [one.model_copy(update={"difference": -one.difference}) for one in claim.per_seed],
        "other": claim.other and claim.other.model_copy(update={"interval": _negative(claim.other.interval)}),
    }
    return claim.model_copy(update=figures)


def _negative(span: Span | None) -> Span | None:
    return span and span.model_copy(update={"low": -span.high, "high": -span.low})


MOST_ARMS = 8


def differing_sentences(selection: SelectedArms) -> list[DifferingSentences]:
    """Return the differing sentences of each arm and the baseline, under the first seed that both have."""
    found = []
    for arm in [arm for arm in selection.rows if arm is not selection.baseline_of(arm)][:MOST_ARMS]:
        baseline = selection.baseline_of(arm)
        both = pairs(arm, baseline)
        if both.arm and (lines := _lines(selection, both.arm[0], both.baseline[0])):
            arm_marked, baseline_marked = (marked(one.name, one.mark(len(one.finished))) for one in (arm, baseline))
            names = {"arm": arm.name, "arm_marked": arm_marked, "baseline_marked": baseline_marked}
            found.append(DifferingSentences(**names, seed=both.arm[0].seed, lines=lines, baseline=baseline.name))
    return found


def _lines(selection: SelectedArms, arm: ArmRun, baseline: ArmRun) -> list[Example]:
    if arm.evaluation is None or baseline.evaluation is None:
        return []
    evaluations, texts = (arm.evaluation, baseline.evaluation), (arm.hypotheses(), baseline.hypotheses())
    return list(selection.task.differing(evaluations, texts, selection.outputs))
