"""Runs as other tools keep them, by the words that they were given: which words are the arm, and which is the seed."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from ablab.errors import UserError, choices
from ablab.judge.results_table import Results, RunScores, named, results_of_scores, seed_in
from ablab.judge.table_claims import TableExperiment
from ablab.judge.table_metrics import about_metric
from ablab.tasks.score import LARGEST_SCORE
from ablab.text import how_many

Points = Sequence[tuple[int, float]]
"""Step and value of a metric, in the order of the steps; some may not be finite."""

FOLDER = "folder"
"""The word for what the path of a run says besides its seed and `key=value`."""

SEEDS = ("seed", "random_seed", "rng_seed", "global_seed", "manual_seed", "train_seed", "training_seed", "random_state")
"""What the word that is the seed is mostly called, behind the last dot or slash of its name."""

ABSENT = "none"
"""The level of a run that lacks a word which others have."""


@dataclass(frozen=True)
class ToolRun:
    """A run as another tool keeps it.

    `where`: what errors call it. `words`: what it was told, by name. `points`, `items`: of a metric, its values by step
    and by test item. `lower`: whether lower is better, of the metrics of which the tool knows. `state`: FINISHED, or
    what the tool says instead. `began`: in Unix seconds; None where that is unknown. `corpora`, `shots`: by
    metric, what it was measured on, in words that differ where that differs, and the examples in the prompt; as known.
    `not_seeds`: words that are no seed of a training unless someone says so, such as those of an evaluation.
    """

    where: str
    words: Mapping[str, str]
    metrics: Collection[str]
    points: Callable[[str], Points]
    items: Callable[[str], Mapping[str, float]] = lambda metric: {}
    lower: Mapping[str, bool] = field(default_factory=dict)
    state: str = "FINISHED"
    began: float | None = None
    corpora: Mapping[str, str] = field(default_factory=dict)
    shots: Mapping[str, str] = field(default_factory=dict)
    not_seeds: Collection[str] = ()

    @property
    def has_finished(self) -> bool:
        return self.state == "FINISHED"

    @property
    def so_far(self) -> str:
        """The state of one that has not finished, as a ledger calls it."""
        return "running" if self.state in ("RUNNING", "SCHEDULED") else "failed"


def kept(runs: Sequence[ToolRun], where: Mapping[str, str], place: str) -> list[ToolRun]:
    """Return the runs that have these words. Raises UserError for a word that no run has."""
    for word, level in where.items():
        levels = {run.words[word] for run in runs if word in run.words}
        if runs and not levels:
            raise UserError(f"where.{word}={level}: {place}: {choices(word, _names(runs))}")
        if runs and level not in levels:
            raise UserError(f"where.{word}={level}: {place}: {choices(level, levels)}")
    return having(runs, where)


def having(runs: Sequence[ToolRun], where: Mapping[str, str]) -> list[ToolRun]:
    """Return the runs that have these words."""
    return [run for run in runs if all(run.words.get(word) == level for word, level in where.items())]


def results_of_runs(place: str, found: Sequence[ToolRun], asked: TableExperiment) -> Results:
    """Return the results of runs of another tool. Raises UserError for what is missing, unclear or there twice."""
    runs = kept(found, asked.where, place)
    if not runs:
        raise UserError(f"{place}: has no runs; allowed: a run for each arm and seed")
    metrics = _metrics(place, runs, asked.named_metrics)
    seed = _seed_word(place, runs, asked.seed if "seed" in asked.model_fields_set else None)
    every, runs = runs, _seeded(runs, seed, metrics)
    chosen, notes = arm_words(place, [run.words for run in runs], seed, asked.arm)
    if left := len(every) - len(runs):
        notes.append(f"{how_many(left, 'run')} with neither {seed} nor {' or '.join(metrics)} left out")
    arms = {id(run): named(_arm(run, chosen, bool(asked.arm)), "arm", run.where) for run in runs}
    scores: dict[str, dict[int, RunScores]] = {arm: {} for arm in arms.values()}
    counted: dict[Cell, ToolRun] = {}
    steps: dict[str, set[int]] = {}
    for run in sorted(runs, key=lambda run: not run.has_finished):  # what failed counts where nothing else finished
        arm, number = arms[id(run)], seed_in(run.words[seed], run.where)
        if (other := counted.get((arm, number))) is not None:
            if not run.has_finished:
                continue
            raise UserError(
                f"{run.where}: {arm}, seed {number} is also {other.where}; allowed: one run of each arm and seed, such "
                "as with where: {<word>: <level>} in the file of claims"
            )
        told = [metric for metric in metrics if metric in run.metrics] if run.has_finished else []
        points = {metric: _point(run, metric, asked) for metric in told}
        own = {metric: value for metric, (_, value) in points.items()}
        if run.has_finished and not own:
            raise UserError(f"{run.where}: has no {' and no '.join(metrics)}; {choices(metrics[0], run.metrics)}")
        counted[arm, number] = run
        for metric, (step, value) in points.items():
            if not math.isnan(value):
                steps.setdefault(metric, set()).add(step)
        scores[arm][number] = _run_scores(run, own)
    _keep_items_of_all(scores)
    if asked.at == "best":
        notes.append("each run counts with the best of its values; the choice of the best favours what scatters more")
    finished = {cell: run for cell, run in counted.items() if run.has_finished}
    if asked.at == "last":
        notes += _of_steps(steps)
    notes += _of_shots(finished, metrics)
    return results_of_scores(
        place,
        metrics,
        scores,
        unfinished={cell: run.so_far for cell, run in counted.items() if not run.has_finished},
        lower={metric: lower for run in runs for metric, lower in run.lower.items()},
        corpora=_corpora(finished, metrics),
        notes=notes,
        began=min((run.began for run in counted.values() if run.began is not None), default=None),
    )


def _seeded(runs: Sequence[ToolRun], seed: str, metrics: Sequence[str]) -> list[ToolRun]:
    """Return the runs with a seed. One without, and without any of the metrics, is none, as one that compares others.

    Raises UserError for one that has a metric.
    """
    for run in runs:
        if seed not in run.words and not set(metrics).isdisjoint(run.metrics):
            raise UserError(
                f"{run.where}: has no {seed}; allowed: a seed of each run, or where: {{<word>: <level>}} in the file "
                "of claims, which leaves the others out"
            )
    return [run for run in runs if seed in run.words]


Cell = tuple[str, int]
"""Arm and seed."""


def _corpora(runs: Mapping[Cell, ToolRun], metrics: Sequence[str]) -> dict[str, str]:
    """Return what each arm was measured on, of the metrics that all runs have. UserError where an arm has several."""
    found: dict[str, str] = {}
    shared = [metric for metric in metrics if all(metric in run.metrics for run in runs.values())]
    for metric in (metric for metric in metrics if metric not in shared):
        several = list(dict.fromkeys(run.corpora.get(metric) or "" for run in runs.values() if metric in run.metrics))
        if len(several) > 1:
            raise UserError(
                f"metric={metric}: measured on {'; '.join(map(str, several))}; allowed: runs of one of them"
            )
    for (arm, _), run in runs.items():
        corpus = "; ".join(filter(None, dict.fromkeys(run.corpora.get(metric) for metric in shared)))
        if corpus and (other := found.setdefault(arm, corpus)) != corpus:
            raise UserError(f"{run.where}: measured on {corpus}, and other runs of {arm} on {other}; allowed: the same")
    return found


def _of_steps(steps: Mapping[str, set[int]]) -> Iterator[str]:
    """Yield a note on each metric whose last values are of different steps."""
    for metric, ends in steps.items():
        if len(ends) > 1:
            yield f"the last values of {metric} are of different steps, {min(ends)} to {max(ends)}; at: <step> says one"


def _of_shots(runs: Mapping[Cell, ToolRun], metrics: Sequence[str]) -> Iterator[str]:
    """Yield a note where arms had different numbers of examples in their prompts."""
    for metric in metrics:
        shots: dict[str, dict[str, None]] = {}
        for (arm, _), run in runs.items():
            if metric in run.metrics:
                shots.setdefault(run.shots.get(metric) or "", {})[arm] = None
        if len(shots) > 1:
            each = (f"{number or 'unknown'} in {', '.join(arms)}" for number, arms in shots.items())
            yield f"the examples in prompts of {metric} differ: {'; '.join(each)}"


def _names(runs: Sequence[ToolRun]) -> list[str]:
    return list(dict.fromkeys(word for run in runs for word in run.words))


def _metrics(place: str, runs: Sequence[ToolRun], asked: Sequence[str]) -> list[str]:
    known = list(dict.fromkeys(metric for run in runs for metric in run.metrics))
    if not known:
        raise UserError(f"{place}: its runs have no metrics; allowed: one number for each run, at least")
    if not asked and len(known) > 1:
        raise UserError(f"metric: missing, and {place} has several; {choices('', known)}")
    for metric in asked:
        if metric not in known:
            raise UserError(f"metric={metric}: {place} has none; {choices(metric, known)}")
    return list(asked) or known


def _seed_word(place: str, runs: Sequence[ToolRun], asked: str | None) -> str:
    names = _names(runs)
    if asked is not None:
        if asked not in names:
            raise UserError(f"seed={asked}: {place}: {choices(asked, names)}")
        return asked
    others = {word for run in runs for word in run.not_seeds}
    likely = [name for name in names if name not in others and re.split(r"[./]", name)[-1].lower() in SEEDS]
    if "seed" in likely:
        return "seed"
    if len(likely) != 1:
        which = "several words may be the seed" if likely else "no word is called seed"
        raise UserError(f"seed: missing, and {which} in {place}; {choices('', likely or names)}")
    return likely[0]


def arm_words(
    place: str, runs: Sequence[Mapping[str, str]], seed: str, asked: Sequence[str]
) -> tuple[Sequence[str], list[str]]:
    """Return the words that tell arms apart, and a note on them where nobody has said which. `runs`: their words.

    They are the words in which runs differ, but for those that follow from the seed or are of one run alone, such as
    folders of outputs. Without such a word it is the run's folder.
    """
    names = [name for name in dict.fromkeys(word for run in runs for word in run) if name != seed]
    for word in asked:
        if word not in names:
            raise UserError(f"arm={word}: {place}: {choices(word, names)}")
    if asked:
        return asked, []
    differing = [name for name in names if len({run.get(name) for run in runs}) > 1]
    telling = [name for name in differing if name != FOLDER and _tells_arms_apart(runs, name, seed)]
    telling = [name for name in telling if not _is_measured(runs, name)] or telling
    chosen = telling or [name for name in differing if name == FOLDER]
    if differing and not chosen:
        raise UserError(f"arm: missing, and no word of {place} tells arms apart for certain; {choices('', differing)}")
    tell = "tell" if len(chosen) > 1 else "tells"
    said = f"{' and '.join(chosen) or 'nothing'} {tell} arms apart, and {seed} is the seed"
    return chosen, [f"taken from the words of {place}: {said}; name others by arm and seed"]


def _tells_arms_apart(runs: Sequence[Mapping[str, str]], name: str, seed: str) -> bool:
    levels = [run.get(name) for run in runs]
    seeds = {run.get(seed) for run in runs}
    if len(seeds) == 1:
        return True
    pairs = {(run.get(seed), run.get(name)) for run in runs}
    return len(set(levels)) < len(runs) and len(pairs) > len(seeds)


def _is_measured(runs: Sequence[Mapping[str, str]], name: str) -> bool:
    """Return whether a word looks like a measurement: a number, and mostly another one, as the seconds of runs are."""
    counts = Counter(run.get(name) for run in runs)
    alone = sum(count == 1 for count in counts.values())
    return 2 * alone > len(runs) and all(re.fullmatch(r"-?\d+(\.\d*)?", level or "") for level in counts)


def _arm(run: ToolRun, words: Sequence[str], is_asked: bool) -> str:
    """Return the name of a run's arm, `norm=pre,layers=6`; where that is the folder alone, its name."""
    if is_asked and (lacking := [word for word in words if word not in run.words]):
        raise UserError(f"{run.where}: {lacking[0]} is missing, so that the run has no arm; allowed: a level")
    if list(words) == [FOLDER]:
        return run.words.get(FOLDER, ABSENT)
    return ",".join(f"{word}={run.words.get(word, ABSENT)}" for word in words) or "all"


def _point(run: ToolRun, metric: str, asked: TableExperiment) -> tuple[int, float]:
    """Return the step and value that count; nan where training went astray, or ended beyond what a table may hold.

    MLflow's databases write infinity as the largest number there is.
    """
    points = [(step, value if abs(value) < LARGEST_SCORE else math.nan) for step, value in run.points(metric)]
    if not points:
        return 0, math.nan
    if asked.at == "last":
        return points[-1]
    if asked.at == "best":
        finite = [point for point in points if not math.isnan(point[1])]
        about = about_metric(metric, asked.declared.get(metric), run.lower.get(metric))
        return (min if about.lower_is_better else max)(finite, key=itemgetter(1), default=(0, math.nan))
    there = [point for point in points if point[0] == asked.at]
    if not there:
        near = min((step for step, _ in points), key=lambda step: abs(step - int(asked.at)))
        raise UserError(f"{run.where}: {metric} has no value at step {asked.at}; the nearest step is {near}")
    return there[-1]


def _run_scores(run: ToolRun, own: Mapping[str, float]) -> RunScores:
    scores = RunScores(has_diverged=any(map(math.isnan, own.values())))
    for metric, value in () if scores.has_diverged else own.items():
        items = run.items(metric)
        is_their_mean = bool(items) and math.isclose(math.fsum(items.values()) / len(items), value, abs_tol=1e-9)
        scores.values[metric] = dict(items) if is_their_mean else {"": value}
    return scores


def _keep_items_of_all(scores: Mapping[str, Mapping[int, RunScores]]) -> None:
    """Let a metric that lacks items in one run be a number in all."""
    every = [one for runs in scores.values() for one in runs.values()]
    for metric in {metric for one in every for metric in one.values}:
        of_metric = [one.values[metric] for one in every if one.values.get(metric)]
        if any("" in values for values in of_metric):
            for values in of_metric:
                mean = math.fsum(values.values()) / len(values)
                values.clear()
                values[""] = mean


OTHER_SEED = re.compile(r"(?<![^/,])[^/,=]*[_.]seed=[^/,]*", re.IGNORECASE)
"""A word such as `data_seed=0`, which is one of its own."""

SEED_IN_PATH = re.compile(r"(?<![A-Za-z0-9])seed[-_= ]?([0-9]+)(?![A-Za-z0-9])", re.IGNORECASE)


def words_of_path(parts: Sequence[str]) -> dict[str, str]:
    """Return the words in the path of a run: its seed, each `key=value`, and what is left as its folder.

    `cosine/seed1`, `cosine-seed-1`, `schedule=cosine,seed=1` and `cosine/1` have a seed.
    """
    return dict(_in_path(parts))


def _in_path(parts: Sequence[str]) -> Iterator[tuple[str, str]]:
    text = "/".join(parts)
    if (found := SEED_IN_PATH.search(OTHER_SEED.sub(lambda other: "\0" * len(other[0]), text))) is not None:
        yield "seed", found[1]
        text = text[: found.start()] + text[found.end() :]
    elif len(parts) > 1 and re.fullmatch("[0-9]+", parts[-1]):
        yield "seed", parts[-1]
        text = "/".join(parts[:-1])
    left = []
    for piece in (piece.strip("-_., ") for piece in re.split(r"[/,]", text)):
        word, equals, level = piece.partition("=")
        if word and equals and level:
            yield word, level
        elif piece:
            left.append(piece)
    if left:
        yield FOLDER, "/".join(left)
