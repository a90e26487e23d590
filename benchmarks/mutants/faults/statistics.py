"""Faults of tests, intervals and verdicts."""

from benchmarks.mutants.fault import Fault

MULTIPLE = ("statistics/test_multiple.py",)
PAIRED = ("statistics/test_paired.py",)
RESAMPLING = ("statistics/test_resampling.py",)
VERDICT = ("statistics/test_verdict.py",)
MODERATED = ("statistics/test_moderated.py",)
SCATTER = ("statistics/test_scatter.py",)

STATISTICS = [
    Fault(
        "paired t: degrees of freedom n, not n - 1",
        "statistics/paired.py",
        "student.two_sided(t, values.size - 1)",
        "student.two_sided(t, values.size)",
        PAIRED,
    ),
    Fault(
        "equivalence: the smaller of the two p-values",
        "statistics/paired.py",
        "(margin - abs(difference)) / standard_error",
        "(margin + abs(difference)) / standard_error",
        PAIRED,
    ),
    Fault(
        "Holm: m - k",
        "statistics/multiple.py",
        "np.maximum.accumulate((count - np.arange(count)) * p[order])",
        "np.maximum.accumulate((count - 1 - np.arange(count)) * p[order])",
        MULTIPLE,
    ),
    Fault(
        "Holm: a larger p may end with a smaller adjusted one",
        "statistics/multiple.py",
        "np.maximum.accumulate((count - np.arange(count)) * p[order])",
        "(count - np.arange(count)) * p[order]",
        MULTIPLE,
    ),
    Fault(
        "crossed bootstrap: the variance over seeds by n, not n - 1",
        "statistics/resampling.py",
        "from_seeds = float(observed.var(ddof=1)) / seeds",
        "from_seeds = float(observed.var(ddof=0)) / seeds",
        RESAMPLING,
    ),
    Fault(
        "crossed bootstrap: the interaction counts more than once",
        "statistics/resampling.py",
        "max(0.0, float(drawn.mean(axis=1).var(ddof=1)) - interaction)",
        "float(drawn.mean(axis=1).var(ddof=1))",
        RESAMPLING,
    ),
    Fault(
        "randomisation: ties do not count",
        "statistics/resampling.py",
        "least = abs(observed) - ROUNDING",
        "least = abs(observed) + ROUNDING",
        RESAMPLING,
    ),
    Fault(
        "not worse: ranks with the margin taken off, not added",
        "statistics/diverged.py",
        "raised = _shifted(ours, margin, theirs)",
        "raised = _shifted(ours, -margin, theirs)",
        VERDICT,
    ),
    Fault(
        "factorial: against the mean of all levels, not the usual one",
        "statistics/anova.py",
        "usual = cells.take([0], axis=axis)",
        "usual = cells.mean(axis=axis, keepdims=True)",
        ("statistics/test_factorial.py",),
    ),
    Fault(
        "verdict: *less* is judged as *greater*",
        "statistics/verdict.py",
        'sign == (1 if expect == "greater" else -1)',
        "sign == 1",
        VERDICT,
    ),
    Fault(
        "verdict: failures speak for the arm that has them",
        "statistics/verdict.py",
        "sign = compared.better if failures.higher_is_better else -compared.better",
        "sign = -compared.better if failures.higher_is_better else compared.better",
        VERDICT,
    ),
    Fault(
        "ranks: diverged runs stand first",
        "statistics/diverged.py",
        "DIVERGED = -np.inf",
        "DIVERGED = np.inf",
        ("statistics/test_ranks.py",),
    ),
    Fault(
        "ranks: a difference exceeds any margin",
        "statistics/diverged.py",
        "beyond = max(p, _two_sided(shifted, theirs))",
        "beyond = p",
        ("statistics/test_ranks.py",),
    ),
    Fault(
        "moderated t: a noisy arm counts as steady as the others",
        "statistics/moderated.py",
        "variances = np.maximum(own, (degrees * own + weight * rest) / (degrees + weight))",
        "variances = (degrees * own + weight * rest) / (degrees + weight)",
        MODERATED,
    ),
    Fault(
        "contrasts: each arm counts once, whatever its weight",
        "statistics/moderated.py",
        "parts = shares**2 * variances / seeds",
        "parts = variances / seeds",
        MODERATED,
    ),
    Fault(
        "not worse: the margin lies on the better side",
        "statistics/verdict.py",
        'above = found.difference + margin if expect == "not_less" else margin - found.difference',
        'above = found.difference - margin if expect == "not_less" else -margin - found.difference',
        VERDICT,
    ),
    Fault(
        "claims: secondary ones take from the primary",
        "judge/claims.py",
        "members = [number for number, claim in enumerate(claims) if claim.secondary == secondary]",
        "members = [] if secondary else list(range(len(claims)))",
        ("report/test_contrasts.py",),
    ),
    Fault(
        "interactions: cells must compare along the first factor",
        "judge/contrasts.py",
        "    if minus and not any(part.is_of_length for part in parts):",
        "    if False:",
        ("report/test_contrasts.py",),
    ),
    Fault(
        "moderated t: one other arm lends as much as many",
        "statistics/moderated.py",
        "return min(PRIOR, spare / 2)",
        "return PRIOR",
        MODERATED,
    ),
    Fault(
        "moderated t: degrees of freedom of the pair alone",
        "statistics/moderated.py",
        "(parts**2 / (degrees + lent)).sum(axis=-1)",
        "(parts**2 / degrees).sum(axis=-1)",
        MODERATED,
    ),
    Fault(
        "near-failures: the best run is named",
        "statistics/conditions.py",
        "np.argmin(values) if higher_is_better else np.argmax(values)",
        "np.argmax(values) if higher_is_better else np.argmin(values)",
        SCATTER,
    ),
    Fault(
        "moderated t: an arm that scatters far more keeps all that it borrowed",
        "statistics/moderated.py",
        "likeness = np.minimum((LOUD * rest / own) ** 2, own / (QUIET * rest))",
        "likeness = np.minimum(1.0, own / (QUIET * rest))",
        MODERATED,
    ),
    Fault(
        "moderated t: three runs that agree by chance count as steady",
        "statistics/moderated.py",
        "likeness = np.minimum((LOUD * rest / own) ** 2, own / (QUIET * rest))",
        "likeness = (LOUD * rest / own) ** 2",
        MODERATED,
    ),
    Fault(
        "moderated t: compared arms lend each other their scatter",
        "statistics/moderated.py",
        "rest = float(degrees @ lenders / spare) if lending else 0.0",
        "rest = float(np.mean([*scores.var(axis=1, ddof=1), *lenders]))",
        MODERATED,
    ),
    Fault(
        "moderated t: an arm that scatters wildly lends its noise",
        "statistics/moderated.py",
        "lending = list(compress(lending, ~(ratios([*values, *lending])[len(values) :] > WILD)))",
        "lending = list(lending)",
        MODERATED,
    ),
    Fault(
        "near-failures: a run of an arm that scatters as widely is named",
        "statistics/conditions.py",
        "if short > FAR * usual and short > FAR * float(rest.std(ddof=1)):",
        "if short > FAR * usual:",
        SCATTER,
    ),
    Fault(
        "moderated t: arms with failures lend their scatter",
        "judge/estimates.py",
        "if other.diverged or len(other.finished) < 2 or other.folders & own:",
        "if len(other.finished) < 2 or other.folders & own:",
        ("report/test_estimates.py",),
    ),
    Fault(
        "claims: equivalence is shown with the interval of a difference",
        "statistics/verdict.py",
        "return self.narrow if self.within else self.interval",
        "return self.interval",
        ("report/test_estimates.py",),
    ),
]
