"""Write docs/results/seeds.md: how many seeds an ablation needs, from the runs of the published reports."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt

from ablab.config.labels import levels_in
from ablab.files import COLOURS, read_json, write_text
from ablab.judge.document import Document, SetLine
from ablab.judge.sensitivity import seeds_to_tell
from ablab.report.plain_words import OPEN
from ablab.statistics.anova import one_way
from ablab.statistics.conditions import steady
from ablab.statistics.power import Layout, seeds_for
from ablab.text import duration

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PLACEBO = ROOT / "benchmarks" / "results" / "placebo.json"

TWO_ARMS = Layout((1.0, -1.0), 0)
"""A study of two arms, which have no others to borrow noise from."""

COUNTS = (3, 5, 10)
HALF = 0.5
"""BLEU: a gain that papers report."""

SEEN = range(2, 21)

APART = 1.125
"""Factor between two labels of the picture, so that they can be read."""

LEADER = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.6, "relpos": (0, 0.5)}
"""The line from a label, at its left, to what it names."""

ONE_RUN = ("one run each, at least 0.5 BLEU apart", "one run each, test over sentences, p below 5 %")
"""What placebo.json calls two ways to compare one run with another."""


class Noise(NamedTuple):
    """The standard deviation of a run's test BLEU within arms, over so many runs; of so many test sets the mean."""

    study: str
    sd: float
    runs: int
    sets: int

    def seen(self, seeds: int) -> float:
        """Return the difference that so many seeds of each of two arms see with 80 % power, at 5 %."""
        return TWO_ARMS.detectable(self.sd, seeds)

    @property
    def needed(self) -> int | None:
        return seeds_for("greater", HALF, self.sd, TWO_ARMS)


class Shared(NamedTuple):
    """The correlation of scores across arms under equal seeds, pooled over pairs of arms."""

    study: str
    score: float
    loss: float | None
    pairs: int


def page(reports: Mapping[str, Document]) -> str:
    """Return the page of these reports, by their names."""
    noises = sorted(_noises(reports), key=lambda one: one.sd)
    noise = (_answer(reports, noises), _one_run(), _noise(noises))
    sections = (*noise, _metric(reports), _sets(reports), _time(reports), _sequential(reports))
    return "\n".join(
        [line for each in (*sections, _twice(reports), _pairing(reports)) for line in (*each, "") if each] + WHAT_TO_DO
    )


WHAT_TO_DO = [
    "## What to do",
    "",
    "1. Train three seeds of the baseline first. `ablab study` then says what the planned seeds can see.",
    "2. Declare the difference that matters, and the metric, before the runs. Where a loss will do, it mostly sees "
    "more.",
    "3. Let seeds be added while claims are open (`seeds: {from: 3, to: 10}`): clear cases stop at three.",
    "4. Report *inconclusive* as such, with the seeds that would decide it. A report of ablab says both.",
    "",
]


def _answer(reports: Mapping[str, Document], noises: Sequence[Noise]) -> list[str]:
    least, most = noises[0], noises[-1]
    dashed = "; dashed: with one test set" * any(one.sets == 1 for one in noises)
    return [
        "# How many seeds does an ablation need?",
        "",
        f"![The difference in test BLEU that two arms must have to be seen, by seeds of each{dashed}](seeds.png)",
        "",
        f"More than one, and for half a point of BLEU {_in_the_middle(noises)}; from {least.needed} in the quietest "
        f"to {_count(most.needed)} in the noisiest. With three seeds, they see a difference of {least.seen(3):.1f} to "
        f"{most.seen(3):.1f} BLEU in four of five cases, and what is smaller by luck. The metric matters as much: "
        f"{_losses(reports)}",
        "",
        "All runs are small, and noise at other sizes is another: `ablab study` says what your own seeds can tell, "
        "before they are trained. This page is made of the reports by `make results`.",
    ]


def _in_the_middle(noises: Sequence[Noise]) -> str:
    """Return how many seeds half a point of BLEU takes in the middle of the studies, by their number of test sets."""
    told: list[str] = []
    for sets in sorted({one.sets for one in noises}, reverse=True):
        alike = [one for one in noises if one.sets == sets]
        needed, several = _count(alike[len(alike) // 2].needed), f"{sets} test sets" if sets > 1 else "one test set"
        first = f"{needed} of each arm in the middle of our {len(alike)} studies of Multi30k that score {several}"
        others = f"that of the {len(alike)} that score" if len(alike) > 1 else "the one that scores"
        told.append(f"{needed} in {others} {several}" if told else first)
    return ", and ".join(told)


def _one_run() -> list[str]:
    content = read_json(PLACEBO)
    placebo = {(rate["method"], rate["n"]): rate["rate"] for rate in content["rates"]}
    one_run, one_test = (100 * placebo[way, 1] for way in ONE_RUN)
    return [
        "## One run each",
        "",
        f"Two runs that differ by nothing but the seed are half a point of BLEU apart in {one_run:.0f} % of the splits "
        f"of [{content['runs']} runs](placebo.md), and a test over the sentences of the test set calls {one_test:.0f} "
        "% of them different: it knows the noise of the sentences, and not that of the seed. Whoever keeps the better "
        "of two runs at each change ends with a gain out of nothing.",
    ]


def _noise(noises: Sequence[Noise]) -> list[str]:
    return [
        "## The noise of a run, and what so many seeds see",
        "",
        "Two arms, nothing else; a difference is seen with a chance of 80 %, at a level of 5 %. A study with more arms "
        "borrows noise from them and needs fewer. Arms with a diverged run, or that scatter wildly, are left out. BLEU "
        "of three test sets together has less noise than of one; models that train for a few hundred steps have more.",
        "",
        *_head(
            "study", "runs", "test sets", "sd of test BLEU", *(f"seen by {n}" for n in COUNTS), "seeds for 0.5 BLEU"
        ),
        *(
            _row(
                _linked(one.study),
                str(one.runs),
                str(one.sets),
                f"{one.sd:.2f}",
                *(f"{one.seen(n):.2f}" for n in COUNTS),
                _count(one.needed),
            )
            for one in noises
        ),
    ]


def _metric(reports: Mapping[str, Document]) -> list[str]:
    return [
        "## The metric",
        "",
        "How many times the noise of a run the arms of each study differ, by the score in which it is looked for: the "
        "standard deviation between arms over that within them. Twice as much takes about a quarter of the seeds. 0: "
        "the arms differ by no more than their noise.",
        "",
        *_table_by_metric(
            reports,
            {study: {metric: f"{of[metric]:.1f}" for metric in of} for study, of in _ratios(reports).items()},
        ),
        "",
        "To choose the metric by this table is for the next study: in this one it would be a choice by the outcome.",
    ]


def _sets(reports: Mapping[str, Document]) -> list[str]:
    """Return a section on what more test sentences tell; nothing without a study that has several test sets."""
    rows = [_row(_linked(name), *cells) for name, one in reports.items() for cells in _by_set(one)]
    if not rows:
        return []
    return [
        "## The test set",
        "",
        "The same runs, scored on each of their test sets and on all of them together. More sentences take away noise "
        "of the test set, not that of the seed.",
        "",
        *_head("study", "test set", "sentences", "sd of test BLEU", "times the noise", "seeds to tell the arms apart"),
        *rows,
    ]


def _by_set(document: Document) -> Iterator[tuple[str, ...]]:
    """Yield name, sentences, noise, signal to noise, and seeds that tell the arms apart, by test set and for all."""
    baselines = {arm.name for arm in document.arms if arm.is_baseline}
    # Where arms are compared within a language, say, those of one: between languages, scores differ by far more.
    level = {each for each in levels_in(document.baseline) if each.startswith(f"{document.within}=")}
    trained_longer = any(line.factor is not None or line.refused is not None for line in document.worth)
    asked = {*baselines, *(line.arm for line in document.worth)}
    lines = [
        line
        for line in document.test_sets
        if line.n > 1 and line.mean is not None and (line.arm in asked or not trained_longer)
        if level <= {*levels_in(line.arm)}
    ]
    found = {
        (line.test_set, line.sentences): [_as_noisy(one) for one in lines if one.test_set == line.test_set]
        for line in lines
    }
    for (name, sentences), groups in found.items():
        if len(groups) > 1:
            of_set = one_way(groups)
            yield _set_row(name, sentences, of_set.between, of_set.within, len(groups))
    whole = next((line for line in document.metrics if line.metric == document.metric), None)
    if found and whole is not None:
        yield _set_row("all", sum(sentences for _, sentences in found), whole.between, whole.within, whole.arms)


def _set_row(name: str, sentences: int, between: float, within: float, arms: int) -> tuple[str, ...]:
    needed = seeds_to_tell(between, within, arms - 2)
    return name, f"{sentences:,}", f"{within:.2f}", f"{between / within:.1f}", _count(needed)


def _as_noisy(line: SetLine) -> npt.NDArray[np.float64]:
    """Return numbers of a line's mean and standard deviation, which are all that an analysis of variance asks."""
    assert line.mean is not None
    assert line.sd is not None
    order = np.arange(line.n) - (line.n - 1) / 2
    return np.asarray(line.mean + line.sd * order / order.std(ddof=1))


def _time(reports: Mapping[str, Document]) -> list[str]:
    return [
        "## What a verdict costs",
        "",
        "The machine time until two arms that differ as those of the study do are told apart, by the score in which "
        "the difference is looked for: that of the seeds that see it with a chance of 80 %, at a level of 5 %, for "
        "both arms, three at least. A run takes what those of the study took, training and evaluation. -: the arms "
        "differ by no more than their noise.",
        "",
        *_table_by_metric(reports, _times(reports)),
    ]


def _times(reports: Mapping[str, Document]) -> dict[str, dict[str, str]]:
    """Return the machine time to a verdict in words, by study and metric."""
    found: dict[str, dict[str, str]] = {}
    for name, one in reports.items():
        if (made := one.setup) is None or not made.runs:
            continue
        of_a_run = (made.training_seconds + made.evaluation_seconds) / made.runs
        found[name] = {
            line.metric: "-" if seeds is None else duration(2 * seeds * of_a_run)
            for line in one.metrics
            for seeds in [seeds_to_tell(line.between, line.within, line.arms - 2)]
        }
    return found


def _pairing(reports: Mapping[str, Document]) -> list[str]:
    shared = sorted(_shared(reports), key=lambda one: -one.score)
    of_translation = [one for one in shared if reports[one.study].metric not in LANGUAGE]
    most = [f"{one.score:+.2f} in {_linked(one.study)}" for one in of_translation if one.score > 0.5]
    but = f" (but {' and '.join(most)})" if most else ""
    return [
        "## Pairing by seed",
        "",
        "Arms of one seed share their initial weights and their batches, as far as they have the same parameters. If "
        "that made their scores alike, a paired test would need fewer seeds. In translation it mostly does "
        f"not{but}; in the small language models it can. So arms are compared with the noise of all of them (the "
        "moderated test), unless a study declares `error: paired` or adds seeds, whose looks are at pairs.",
        "",
        *_head("study", "correlation of scores", "of validation losses", "pairs of arms"),
        *(
            _row(
                _linked(one.study),
                f"{one.score:+.2f}",
                "" if one.loss is None else f"{one.loss:+.2f}",
                str(one.pairs),
            )
            for one in shared
        ),
    ]


def _noises(reports: Mapping[str, Document]) -> Iterator[Noise]:
    """Yield the noise of each study in BLEU of Multi30k: other texts have another scale.

    Without arms that scatter wildly, which are no noise of a run; older reports still counted them.
    """
    for name, one in reports.items():
        if one.metric != "test_bleu" or not (one.test_set or "").startswith("test_2016"):
            continue
        sets = len({each.test_set for each in one.test_sets}) or 1
        line = next((line for line in one.metrics if line.metric == one.metric), None)
        scores = {arm.name: [run.score for run in arm.runs if run.score is not None] for arm in one.arms}
        several = {arm: values for arm, values in scores.items() if len(values) > 1}
        if line is not None and (alike := steady(several)) != several:
            runs = sum(map(len, alike.values()))
            squares = sum((len(values) - 1) * statistics.variance(values) for values in alike.values())
            yield Noise(name, (squares / (runs - len(alike))) ** 0.5, runs, sets)
        elif line is not None:
            yield Noise(name, line.within, line.runs, sets)
        elif len(one.arms) == 1 and one.arms[0].sd is not None:
            yield Noise(name, one.arms[0].sd, one.arms[0].finished, sets)


def _table_by_metric(reports: Mapping[str, Document], cells: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a table of cells by study and metric for translation, and one for language models."""
    titles = {line.metric: line.title for one in reports.values() for line in one.metrics}
    for metrics in (TRANSLATION, LANGUAGE):
        yield from ([""] if metrics is LANGUAGE else [])
        yield from _head("study", *(titles[metric] for metric in metrics))
        for study, of in cells.items():
            if metrics[0] in of:
                yield _row(_linked(study), *(of[metric] for metric in metrics))


def _ratios(reports: Mapping[str, Document]) -> dict[str, dict[str, float]]:
    """Return the signal to noise of each metric, by study."""
    return {name: {line.metric: line.ratio for line in one.metrics} for name, one in reports.items() if one.metrics}


def _losses(reports: Mapping[str, Document]) -> str:
    """Return how often the loss of translations tells arms apart better than their BLEU."""
    both = [of for of in _ratios(reports).values() if {"test_loss", "test_bleu"} <= of.keys()]
    better = sum(of["test_loss"] > of["test_bleu"] for of in both)
    return (
        f"in {better} of {len(both)} studies the test loss of the same runs tells the arms apart better than their "
        "BLEU does."
    )


TRANSLATION = ("test_bleu", "test_chrf", "valid_bleu", "test_loss", "valid_loss")
LANGUAGE = ("test_bits_per_byte", "test_accuracy", "test_loss", "valid_loss")


def _sequential(reports: Mapping[str, Document]) -> Iterator[str]:
    """Yield a section on what studies saved that added seeds while claims were open."""
    yield from ("## Looking after every seed", "")
    yield (
        "Studies with `seeds: {from: 3, to: 10}` look at their claims after every seed, and add one where a claim is "
        "open and not hopeless. So clear cases are cheap, and what more seeds would not settle stops early. Machine "
        "time is that of training and evaluation."
    )
    yield ""
    yield from _head("study", "claims decided", "seeds of an arm", "runs", "machine time", "if fixed", "saved")
    for name, one in reports.items():
        made = one.setup
        if made is None or not made.fixed_runs or not made.runs:
            continue
        decided = sum(claim.outcome not in OPEN for claim in one.claims)
        seeds = [arm.finished + arm.diverged for arm in one.arms]
        spent = made.training_seconds + made.evaluation_seconds
        yield _row(
            _linked(name),
            f"{decided} of {len(one.claims)}",
            f"{min(seeds)} to {max(seeds)}" if min(seeds) < max(seeds) else str(seeds[0]),
            f"{made.runs} of {made.fixed_runs}",
            duration(spent),
            duration(spent / made.runs * made.fixed_runs),
            f"{100 * (1 - made.runs / made.fixed_runs):.0f} %",
        )


def _twice(reports: Mapping[str, Document]) -> list[str]:
    """Return a section on runs of one recipe and seed that were trained twice; nothing without some of them."""
    scores: dict[str, set[float]] = {}
    for run in (run for one in reports.values() if one.metric == "test_bleu" for arm in one.arms for run in arm.runs):
        if run.score is not None:
            scores.setdefault(run.run_id, set()).add(round(run.score, 6))
    apart = [max(found) - min(found) for found in scores.values() if len(found) == 2]
    if len(apart) < 3:
        return []
    sd = float(np.sqrt(np.mean(np.square(apart)) / 2))
    return [
        "## One seed, trained twice",
        "",
        f"{len(apart)} runs were trained twice, with one recipe and seed and by two versions of the "
        "code, both of SCHEMA 2, under which equal recipes give equal numbers apart from rounding. Their test BLEU "
        f"differs by {min(apart):.2f} to {max(apart):.2f}. "
        f"That is a standard deviation of {sd:.2f}, beside those of seeds in the table above. A seed fixes a run on "
        "one machine and under one version; elsewhere it is one more run of the arm.",
    ]


def _shared(reports: Mapping[str, Document]) -> Iterator[Shared]:
    for name, one in reports.items():
        if one.metrics:  # of what older reports show, too little is known
            score, pairs = _correlation(one, "score")
            loss, _ = _correlation(one, "loss")
            if score is not None and pairs > 1:
                yield Shared(name, score, loss, pairs)


def _correlation(document: Document, key: str) -> tuple[float | None, int]:
    """Return the covariance of scores of two arms over seeds by their variance, each a mean over all pairs of arms."""
    arms = []
    for arm in document.arms:
        values = {run.seed: getattr(run, key) for run in arm.runs if run.state == "finished"}
        if not arm.diverged and None not in values.values() and len(values) > 2:
            arms.append(values)
    found = [
        np.cov([[one[seed] for seed in common], [other[seed] for seed in common]])
        for one, other in combinations(arms, 2)
        if len(common := sorted(one.keys() & other.keys())) > 2
    ]
    if not found:
        return None, 0
    spread = sum(float(np.sqrt(each[0, 0] * each[1, 1])) for each in found)
    return sum(float(each[0, 1]) for each in found) / spread, len(found)


def _head(*cells: str) -> Iterator[str]:
    """Yield the head of a table whose first column holds words, and the others figures."""
    yield from (_row(*cells), _row("---", *["---:"] * (len(cells) - 1)))


def _linked(study: str) -> str:
    return f"[{study}]({study}/report.md)"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _count(seeds: int | None) -> str:
    return "-" if seeds is None else f"{seeds:,}"


def draw(noises: Sequence[Noise], path: Path) -> None:
    """Draw what so many seeds see, a line for each study, dashed with one test set."""
    figure, axes = plt.subplots(figsize=(7.2, 5.2), layout="constrained")
    place = 0.0
    for one in noises:
        last = one.seen(SEEN[-1])
        axes.plot(
            SEEN, [one.seen(n) for n in SEEN], color=COLOURS[0], alpha=0.8, linestyle="-" if one.sets > 1 else "--"
        )
        place = max(last, place * APART)
        axes.annotate(
            one.study,
            (SEEN[-1], last),
            (SEEN[-1] + 1, place),
            va="center",
            fontsize="small",
            annotation_clip=False,
            arrowprops={**LEADER, "shrinkA": 2, "shrinkB": 0},
        )
    axes.axhline(HALF, color="#666666", linewidth=1, linestyle=":")
    axes.set(yscale="log", xlabel="seeds of each arm", ylabel="difference seen with 80 % power (BLEU)", xlim=(2, 20))
    axes.set_yticks([0.25, 0.5, 1, 2, 4, 8], ["0.25", "0.5", "1", "2", "4", "8"])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def write(reports: Mapping[str, Document]) -> Path:
    """Write the page and its picture, and return its path."""
    draw(sorted(_noises(reports), key=lambda one: one.sd), RESULTS / "seeds.png")
    write_text(RESULTS / "seeds.md", page(reports))
    return RESULTS / "seeds.md"
