"""The metrics of a table of results: title, unit, digits and direction, as declared, as known, or by their noise."""

import math
import re
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field

from ablab.errors import UserError
from ablab.judge.failures import RANK, SHARE
from ablab.judge.metrics import Items, Measure
from ablab.judge.results_table import Results
from ablab.judge.runs import ArmRun
from ablab.statistics.paired import vary
from ablab.statistics.products import AnyFloat
from ablab.statistics.student import Floats
from ablab.study.experiment import Declared
from ablab.tasks.registry import known_scores
from ablab.tasks.score import COSTS
from ablab.text import is_one_line

MOST_DIGITS = 9
"""Digits after the decimal point that a report shows at most."""

ENDINGS = (
    *("loss", "losses", "error", "errors", "perplexity", "entropy", "latency", "regret", "divergence", "distance"),
    *("deviation", "runtime", "memory", "cost", "time", "seconds"),
)
WORDS = frozenset(
    (
        *("ppl", "nll", "bpc", "bpb", "bpw", "ter", "wer", "cer", "per", "der", "eer", "mer", "err", "mae", "mse"),
        *("rmse", "mape", "nrmse", "msle", "fid", "kid", "lpips", "ece", "brier", "kl", "fpr", "fnr", "fdr", "flops"),
    )
)
"""What names of metrics that are better when lower end in, and words that such names contain."""


def _one_line(text: str) -> str:
    if not is_one_line(text):
        raise ValueError("allowed: text on one line")
    return text


class TableMetric(Declared):
    """What the report has to know of a metric that ablab does not. `digits`: after the decimal point; by its noise."""

    title: Annotated[str, AfterValidator(_one_line)] | None = None
    unit: Annotated[str, AfterValidator(_one_line)] = ""
    digits: Annotated[int, Field(ge=0, le=MOST_DIGITS)] | None = None
    lower_is_better: bool = False


def measure_of(name: str, declared: TableMetric | None, results: Results) -> Measure:
    """Return a metric as a measure. Raises UserError where its direction is unclear, or no digits show its noise."""
    about = about_metric(name, declared, results.lower.get(name))
    if (title := about.title or name) in (SHARE.title, RANK.title):
        raise UserError(
            f"metric {name}: {title} is what arms with diverged runs are compared by; allowed: another name"
        )
    arms = [[one.scores[name] for one in runs.values() if one and name in one.scores] for runs in results.runs.values()]
    if about.unit == "%" and all(abs(score) <= 1 for scores in arms for score in scores):  # an accuracy, as a share
        own = declared.model_dump(exclude_unset=True) if declared else {}
        about = about.model_copy(update={"unit": "", "digits": None, **own})

    def score(run: ArmRun) -> float | None:
        return None if run.given is None else run.given.scores.get(name)

    def items(run: ArmRun) -> Floats | None:
        values = None if run.given is None else run.given.items.get(name)
        return None if values is None else np.stack([values, np.ones_like(values)], axis=1)

    said = None if declared is None else declared.digits
    digits = max(about.digits or 0, _digits(name, arms)) if said is None else said
    has_items = any(given and name in given.items for runs in results.runs.values() for given in runs.values())
    return Measure(
        about.title or name,
        about.unit,
        digits,
        not about.lower_is_better,
        None,
        score,
        of_machine=name in known_scores() and known_scores()[name].place in COSTS,
        items=Items(items, _mean_of_sums) if has_items else None,
    )


def about_metric(name: str, said: TableMetric | None, lower: bool | None = None) -> TableMetric:
    """Return what is declared of a metric, and for the rest what ablab knows of it. `lower`: what its table says."""
    declared = said or TableMetric()
    own = {field: getattr(declared, field) for field in declared.model_fields_set}
    if (known := known_scores().get(name)) is not None:
        # A table's own `memory` or `test_loss` may be of anything, in any unit, and its accuracy of anything, too.
        is_told = known.place not in COSTS and not known.unit.startswith("nats")
        told = {"title": known.title, "unit": known.unit, "digits": known.digits} if is_told else {}
        if known.unit == "%":
            del told["title"]
        return TableMetric.model_validate({**told, "lower_is_better": not known.higher_is_better, **own})
    if lower is not None:
        return TableMetric.model_validate({"lower_is_better": lower, **own})
    if _sounds_lower(name) and "lower_is_better" not in own:
        raise UserError(
            f"better: missing, and by its name {name} may be better when lower; allowed: lower, higher, beside the "
            "metric that arms are compared by, or on the line of a table without a file, as in better=lower; of any "
            f"other metric, metrics.{name}.lower_is_better: true or false"
        )
    return declared


def _sounds_lower(name: str) -> bool:
    """Return whether the name has a word of `WORDS`, or one that ends as those of `ENDINGS`: `valLoss`, `test_ppl`."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    return any(word in WORDS or word.endswith(ENDINGS) for word in words)


def _digits(name: str, arms: list[list[float]]) -> int:
    """Return the digits after the point that show the noise within arms to two places; without noise, the scores.

    An arm of far lower scores and noise than others have, as beside one that blew up, keeps a digit of its scores.
    """
    own = [_noise(scores) for scores in arms]
    sds = [sd for sd in own if sd]
    sizes = [max(sd, float(np.mean(np.abs(scores))) / 10) for sd, scores in zip(own, arms, strict=True) if scores]
    usual = float(np.median(sds)) if sds else 0.0
    size = min(filter(None, [usual, *sizes]), default=0.0)
    if 0 < (usual or size) < 10**-MOST_DIGITS:
        raise UserError(
            f"metrics.{name}: its values differ by about {size:.1g}, which the {MOST_DIGITS} digits of a report do not "
            "show; allowed: values in a smaller unit, such as 1e12 times as high"
        )
    return min(MOST_DIGITS, max(0 if sds else 2, 1 - math.floor(math.log10(size)))) if size else 2


def _noise(scores: Sequence[float]) -> float:
    return float(np.std(scores, ddof=1)) if len(scores) > 1 and vary(np.array(scores)) else 0.0


def _mean_of_sums(sums: npt.NDArray[AnyFloat]) -> Floats:
    """Return the mean over items from the sums of their values and of their numbers, [..., 2]."""
    mean: Floats = np.asarray(sums[..., 0] / sums[..., 1], dtype=np.float64)
    return mean
