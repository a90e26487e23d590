"""What seeds can tell about claims: those of a study before they are trained, and those of a new one."""

import itertools
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

from ablab.errors import UserError
from ablab.fields import flatten
from ablab.judge.contrasts import ROUNDING, sharing
from ablab.judge.lines import Advice
from ablab.judge.registration import Registered
from ablab.judge.selection import SelectedArms
from ablab.statistics.conditions import steady
from ablab.statistics.convergence import TWO_VALIDATIONS, validations_at_the_end
from ablab.statistics.diverged import DIVERGED, FEWEST_RANKED, compare_ranks, compare_shares
from ablab.statistics.moderated import Moderated
from ablab.statistics.paired import MINIMUM_SEEDS
from ablab.statistics.power import MOST_SEEDS, POWER, Layout, sd_range, seeds_for, seen
from ablab.statistics.verdict import ALPHA, Verdict
from ablab.store.index import index_of
from ablab.store.records import AnyEvaluation, Record
from ablab.store.run_folder import RunFolder, all_runs
from ablab.study.cells import compared_recipes
from ablab.study.claims import Settled
from ablab.study.study import Study
from ablab.study.tuning import TUNED
from ablab.tasks.score import Recipe, Score, unlike
from ablab.tasks.task import FAILURES
from ablab.text import exactly, how_many, percent

BOUNDED = ("equal", "not_worse")
"""Expectations that a difference lies within the margin."""

FEWEST = 4
"""Degrees of freedom below which noise is hardly known, so that nothing is called hopeless for it."""

POOR = 0.2
"""Chance below which such a claim is called hopeless."""

KIND = ("schema", "data.digest", "model.d_model", "model.encoder_layers", "model.decoder_layers", "training.max_steps")
"""Fields of a recipe that runs of like kind share. Those without data of ours, such as of programs, share all fields
but the seed and what the study varies: a score of another program may be called the same.
"""


class ScoredRun(NamedTuple):
    """A trained run and the evaluation that the study would make, if it has it."""

    folder: RunFolder
    record: Record
    evaluation: AnyEvaluation | None


@dataclass(frozen=True)
class Noise:
    """The standard deviation of a run's score within arms. `runs`: that show it; `origin`: where they lie.

    `df`: degrees of freedom. `is_paired`: it is that of the claim's difference within pairs, brought
    down to one run, so that what runs with the same seed have in common is left out; `runs` are then pairs.
    """

    sd: float
    runs: int
    origin: str
    df: float = inf
    is_paired: bool = False

    @property
    def words(self) -> str:
        """Say how large it is, and how that is known."""
        hardly = ": hardly known" if self.df < FEWEST else ""
        beside = " beside its pair" if self.is_paired else ""
        return f"a run's standard deviation{beside} is {self.sd:.3g}, over {self.runs} {self.origin}{hardly}"


def known_noise(study: Study, metrics: Iterable[str]) -> dict[str, Noise]:
    """Return the noise of metrics from the finished runs of this study, or else of its store's like runs.

    A metric is left out where no arm has two. Arms with a diverged run, or that scatter wildly, say nothing about the
    others.
    """
    own, index = defaultdict(list), index_of(study.outputs)
    usual = flatten(study.cells[0].planned.recipe)
    for cell in study.runs.values():
        folder, record = cell.planned.folder, cell.planned.folder.record()
        if record is not None:
            own[cell.arm].append(ScoredRun(folder, record, index.evaluation(folder, cell.planned.evaluation_id)))
    scores = {metric: study.task.scores[metric] for metric in metrics}
    arms = list(own.values())  # of those that share runs, as where they differ by decoding, one counts
    arms = [arms[places[0]] for places in sharing([{run.folder.run_id for run in arm} for arm in arms])]
    found = {metric: _pooled(arms, score, "runs of this study", usual) for metric, score in scores.items()}
    if None in found.values():
        alike = _like_runs(study)
        found = {
            metric: noise or _pooled(alike, scores[metric], "like runs of the store", usual)
            for metric, noise in found.items()
        }
    return {metric: noise for metric, noise in found.items() if noise is not None}


def _like_runs(study: Study) -> list[list[ScoredRun]]:
    """Return the store's trained runs of the study's kind, by arm."""
    first = study.cells[0].planned
    alike, index = defaultdict(list), index_of(study.outputs)
    recipes = [flatten(cell.planned.recipe) for cell in study.cells]
    usual = recipes[0]
    free = {key for recipe in recipes for key in usual.keys() | recipe.keys() if recipe.get(key) != usual.get(key)}
    kind = _kind(first.recipe, free)
    for folder in all_runs(study.outputs):
        try:
            record = folder.record()
            is_alike = record is not None and _kind(folder.recipe(), free) == kind
        except UserError:  # what cannot be read says nothing of noise
            continue
        if record is not None and is_alike:
            evaluation = index.evaluation(folder, first.evaluation_id)
            alike[record.condition_id].append(ScoredRun(folder, record, evaluation))
    return list(alike.values())


def _kind(recipe: Mapping[str, object], free: Collection[str]) -> Mapping[str, object]:
    """Return what decides the kind of a run. `free`: fields that vary in the study."""
    flat = flatten(recipe)
    if "data.digest" in flat:
        return {key: flat.get(key) for key in KIND}
    return {key: value for key, value in flat.items() if key not in free and key != "seed"}


def _pooled(arms: Iterable[Iterable[ScoredRun]], score: Score, origin: str, usual: Recipe) -> Noise | None:
    """Return the noise of the arms whose values are in one measure with those of the usual recipe."""
    known = {}
    for number, runs in enumerate(arms):
        values, trained = [], None
        for folder, record, evaluation in runs:
            if record.state == "diverged":
                break
            trained, value = folder, score.value(record, evaluation)
            values += [] if value is None else [value]
        else:
            if len(values) > 1 and trained and score.unlike([usual, flatten(trained.recipe())]) is None:
                known[str(number)] = np.array(values)
    known = steady(known)
    df = sum(values.size - 1 for values in known.values())
    if not df:
        return None
    squares = sum((values.size - 1) * float(values.var(ddof=1)) for values in known.values())
    return Noise((squares / df) ** 0.5, sum(values.size for values in known.values()), origin, df)


def _within_pairs(study: Study, claim: Settled) -> Noise | None:
    """Return the noise of a claim that is judged by its pairs, from pairs that have ended; None of fewer than three."""
    score, index = study.task.scores[claim.metric], index_of(study.outputs)
    values: dict[int, dict[str, float]] = defaultdict(dict)
    for cell in study.cells:
        folder = cell.planned.folder
        if cell.arm in claim.weights and (record := folder.record()) is not None and record.state != "diverged":
            value = score.value(record, index.evaluation(folder, cell.planned.evaluation_id))
            values[cell.seed] |= {} if value is None else {cell.arm: value}
    whole = [pair for pair in values.values() if pair.keys() == claim.weights.keys()]
    if (n := len(whole)) < MINIMUM_SEEDS:
        return None
    found = [sum(weight * pair[arm] for arm, weight in claim.weights.items()) for pair in whole]
    of_a_run = _layout(study, claim).sd(statistics.stdev(found) / n**0.5, n)
    return Noise(of_a_run, n, "pairs of this study", n - 1, is_paired=True)


@dataclass(frozen=True)
class Prospect:
    """What can be expected of a claim, in words. `is_hopeless`: it can hardly be answered, whatever is true.

    `caveat`: what becomes of it should a run diverge; empty where that could still decide it.
    """

    claim: Settled
    words: str
    is_hopeless: bool = False
    caveat: str = ""


def prospects(study: Study) -> Iterator[Prospect]:
    """Yield a prospect for each claim: what its seeds would see, from the noise known so far.

    Of a registered claim, these are the seeds and arms of the registration: later ones decide only what came with them.
    """
    metrics = {claim.metric for claim in study.claims} & set(study.task.scores)
    noises: dict[frozenset[str] | None, dict[str, Noise]] = {}
    registered = Registered.of(study.folder)
    first = study
    if registered is not None and study.looks is None:
        few = MINIMUM_SEEDS <= len(registered.seeds) < len(study.seeds)
        seeds = [seed for seed in study.seeds if seed in registered.seeds] if few else study.seeds
        first = replace(study, seeds=seeds, arms=[arm for arm in study.arms if registered.has(arm.name)])
    for claim in study.claims:
        decides = first if registered is not None and registered.asks(claim) else study
        if (reason := _off_scale(decides, claim) or _few_validations(decides, claim)) is not None:
            yield Prospect(claim, f"cannot be judged: {reason}", True)
            continue
        share, levels = ALPHA / _family(study, claim, registered), _levels(study, claim)
        if levels not in noises:
            noises[levels] = known_noise(_on_scale(study, levels), metrics)
        found, caveat = (
            _prospect(decides, claim, noises[levels].get(claim.metric), share),
            _if_runs_diverge(decides, claim, share),
        )
        yield replace(found, words=found.words + _if_chosen(decides, claim), caveat=caveat)


def _prospect(study: Study, claim: Settled, noise: Noise | None, share: float) -> Prospect:
    """Return a prospect; `share`: the claim's of the error rate."""
    seeds, level = len(study.seeds), _level(study, share)
    by = f"by {how_many(seeds, 'seed')}"
    if seeds < MINIMUM_SEEDS:
        return Prospect(claim, f"cannot be judged {by}; a claim needs at least {MINIMUM_SEEDS}", True)
    if claim.expect == "equal" and not claim.margin:
        needed = "" if claim.metric == "failures" else "; to be supported it needs a margin above 0"
        return Prospect(claim, f"can only be refuted{needed}", True)
    if claim.metric == "failures":
        p = compare_shares((seeds, seeds), (0, seeds)).p
        if p > level:
            words = f"cannot be shown {by}: even all failing against none has p = {p:.3f}, and it needs"
            return Prospect(claim, f"{words} {level:.3g}", True)
        return Prospect(claim, f"all failing against none would be seen (p = {p:.3f}; it needs {level:.3g})")
    if claim.metric not in study.task.scores:
        return Prospect(claim, "its noise is known only from the study itself")
    if not _borrows(study):
        noise = _within_pairs(study, claim) or noise
    if noise is None:
        return Prospect(claim, "noise unknown: no arm has two finished runs, here or of like kind in the store")
    if not noise.sd:
        return Prospect(claim, f"noise unknown: in each arm, the {noise.runs} {noise.origin} score alike")
    is_one_sided = claim.expect in BOUNDED
    return _from_noise(study, claim, noise, _level(study, share, is_one_sided=is_one_sided))


def _family(study: Study, claim: Settled, registered: Registered | None) -> int:
    """Return the number of claims that share an error rate with this one, as they are judged."""
    family = study.claims
    if registered is not None:
        own = registered.asks(claim)
        family = registered.claims if own else [one for one in study.claims if not registered.asks(one)]
    return sum(one.secondary == claim.secondary for one in family)


def _level(study: Study, share: float, *, is_one_sided: bool = False) -> float:
    """Return the level at which a claim with this share of the error rate is tested, of several looks at the last.

    An earlier one may decide it, too: what the last one can see is a little less than what all of them can.
    """
    if (looks := study.looks) is None:
        return share
    return looks.level(share, looks.last) if is_one_sided else 2 * looks.level(share / 2, looks.last)


def _methods(study: Study, claim: Settled) -> set[str | None]:
    """Return the methods by which the claim's metric chooses the weights that it scores; None: it does not."""
    cells = [cell for cell in study.cells if cell.arm in claim.weights]
    return {study.task.chosen_by(claim.metric, flatten(cell.planned.recipe)) for cell in cells}


def _off_scale(study: Study, claim: Settled) -> str | None:
    """Return why the arms of a claim have no measure in common in its metric; None if they have."""
    if len(_methods(study, claim)) > 1:
        return f"its arms select weights differently, and by {claim.metric} itself"
    scores = study.task.scores
    reasons = (unlike(scores, claim.metric, recipes) for recipes in compared_recipes(claim, study.cells))
    return next((reason for reason in reasons if reason is not None), None)


def _few_validations(study: Study, claim: Settled) -> str | None:
    """Return why it will not be known whether training has converged; None where it may be, or need not."""
    score = study.task.scores.get(claim.metric)
    if score is None or study.task.converging(score) is None or claim.is_of_compute:
        return None
    for planned in (cell.planned for cell in study.cells if cell.arm in claim.weights):
        every, last = planned.task.first_and_last_step(planned.config)
        if every and last and (count := validations_at_the_end(every, last)) < 2:
            return f"{TWO_VALIDATIONS}, not {count}: one every {every} of {last} steps"
    return None


def _if_chosen(study: Study, claim: Settled) -> str:
    if _methods(study, claim) <= {None}:
        return ""
    return f"; {claim.metric} also chooses the weights, the best of several validations: it is no estimate for new data"


def _if_runs_diverge(study: Study, claim: Settled, share: float) -> str:
    """Return what a claim about quality becomes where runs diverge, if its seeds could show nothing then."""
    seeds, level = len(study.seeds), _level(study, share)
    if claim.metric in (FAILURES, *study.task.costs) or seeds < MINIMUM_SEEDS:
        return ""
    if claim.parts:
        return "should a run diverge, it cannot be tested"
    if seeds >= FEWEST_RANKED:
        p, way = compare_ranks([0.0] * seeds, [DIVERGED] * seeds).p, "all runs are ranked"
    else:
        p, way = compare_shares((0, seeds), (seeds, seeds)).p, "arms are compared by their shares of failures"
    if p <= level:
        return ""
    most = f"even all failing against none has p = {p:.3f}, and it needs {level:.3g}"
    more = f"; from {FEWEST_RANKED} seeds on, all runs are ranked" if seeds < FEWEST_RANKED else ""
    return f"should a run diverge, {way}, which cannot reach significance: {most}{more}"


def _from_noise(study: Study, claim: Settled, noise: Noise, level: float) -> Prospect:
    seeds, score = len(study.seeds), study.task.scores[claim.metric]
    layout = _layout(study, claim)
    may_be_less = layout.others is None and not noise.is_paired
    apart = "; less, where runs with the same seed vary together" if may_be_less else ""
    shown, is_known = f"({noise.words}{apart})", noise.df >= FEWEST and not may_be_less
    if claim.expect in BOUNDED:
        chance = layout.power(claim.expect, claim.margin, noise.sd, seeds, level)
        is_hopeless = is_known and chance < POOR
        words = f"if nothing differs, {seeds} seeds support it with a chance of {percent(chance)} {shown}"
    else:
        seen = layout.detectable(noise.sd, seeds, level)
        figure = f"{seen:.3g} {score.unit}".rstrip()
        words = f"{seeds} seeds see a difference of {figure} with 80 % power {shown}"
        is_hopeless = is_known and seen > score.absurd  # a claim that needs more is called hopeless
        chance = layout.power(claim.expect, claim.margin, noise.sd, seeds, level) if claim.margin else 1.0
    if not claim.margin or chance >= POWER:
        return Prospect(claim, words, is_hopeless)
    needed = seeds_for(claim.expect, claim.margin, noise.sd, layout, level)
    cost = f"more than {MOST_SEEDS} seeds" if needed is None else f"{needed} seeds"
    aim = "a chance of 80 %" if claim.expect in BOUNDED else f"its margin of {exactly(claim.margin)}"
    return Prospect(claim, f"{words}; {aim} takes {cost}", is_hopeless)


def _layout(study: Study, claim: Settled) -> Layout:
    """Return the layout of a claim as it will be tested: of arms that share runs, one is compared, and one lends."""
    compared = [_runs(study, arm) for arm in claim.weights]
    own, weights = set().union(*compared), list(claim.weights.values())
    groups = [[weights[place] for place in places] for places in sharing(compared)]
    merged = [[total] if abs(total := sum(group)) > ROUNDING else group for group in groups]
    levels = _levels(study, claim)
    rows = [arm for arm in study.arm_of_rows.values() if _is_of(study, arm, levels)]
    others = [runs for row in rows if (runs := _runs(study, row)).isdisjoint(own)]
    return Layout(tuple(itertools.chain(*merged)), len(sharing(others)) if _borrows(study) else None)


def _runs(study: Study, arm: str) -> frozenset[str]:
    return frozenset(cell.planned.run_id for cell in study.cells_of(arm))


def _levels(study: Study, claim: Settled) -> frozenset[str] | None:
    """Return the levels of `within` that a claim's arms have, by their baselines; None where there is no such factor.

    Arms of other levels are on another scale, and lend it nothing.
    """
    if study.experiment is None or study.experiment.within is None:
        return None
    return frozenset(study.baseline_of(arm).removesuffix(TUNED) for arm in claim.weights)


def _is_of(study: Study, arm: str, levels: frozenset[str] | None) -> bool:
    return levels is None or study.baseline_of(arm).removesuffix(TUNED) in levels


def _on_scale(study: Study, levels: frozenset[str] | None) -> Study:
    """Return the study with the arms of these levels alone."""
    if levels is None:
        return study
    return replace(study, cells=[cell for cell in study.cells if _is_of(study, cell.arm, levels)])


def _borrows(study: Study) -> bool:
    """Return whether claims are judged by the noise of all arms, and not by their pairs."""
    return study.experiment is None or study.experiment.decisive_error != "paired"


def detectable(claim: Settled, verdict: Verdict, found: Moderated | None) -> float | None:
    """Return the true difference that so many seeds, with this noise, find with 80 % power at the claim's level."""
    if verdict.standard_error is None or verdict.local is None:
        return None
    return seen(claim.weights.values(), found, verdict.standard_error, verdict.n, verdict.local)


def advice(selection: SelectedArms, claim: Settled, verdict: Verdict, found: Moderated | None) -> Advice | None:
    """Return how many seeds would decide the claim with 80 % power, in a new study of as many claims.

    A new study, because seeds added to this one decide no registered claim. None where the claim is decided, states no
    margin, or has no standard error. `found`: the moderated t test, where it decides.
    """
    error, df = verdict.standard_error, verdict.df
    if verdict.outcome != "inconclusive" or not claim.margin or error is None or df is None:
        return None
    layout = Layout.of(claim.weights.values(), found)
    sd, level = layout.sd(error, verdict.n), ALPHA / len(selection.family(claim))
    few, seeds, many = (
        seeds_for(claim.expect, claim.margin, noise, layout, level)
        for noise in (sd_range(sd, df)[0], sd, sd_range(sd, df)[1])
    )
    return Advice(seeds=seeds, fewest=few, most=many, seconds=_seconds(selection, claim, seeds))


def _seconds(selection: SelectedArms, claim: Settled, seeds: int | None) -> float | None:
    """Return the machine time of so many seeds of the claim's arms, as their runs took it."""
    arms = [arm for arm in selection.arms if arm.name in claim.weights]
    costs = [run.record.cost.seconds for arm in arms for run in arm.runs if run.record]
    return seeds * len(arms) * statistics.median(costs) if costs and seeds else None
