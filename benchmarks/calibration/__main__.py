"""Do the tests err as often as they say? Simulated studies whose truth is known, put to every method of the report.

    python -m benchmarks.calibration [quick] [calibration.json]

A Markdown table, and the same rows as JSON. `quick`: three repetitions of each, to see that it works. Ends with 1
when a row that promises a range is outside it by more than simulation error (2.6 standard errors) explains.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.progress import Progress

from benchmarks.calibration.choices import over_choices
from benchmarks.calibration.claims import over_claims
from benchmarks.calibration.contrasts import over_interactions
from benchmarks.calibration.effects import planted, planted_in_words
from benchmarks.calibration.failures import over_failures
from benchmarks.calibration.nulls import over_seeds, over_sentences, over_sentences_alone
from benchmarks.calibration.rows import Row, table
from benchmarks.calibration.tuning import over_tuning


def run(share: float) -> Iterator[Row]:
    """All rows, with this share of the repetitions."""
    nulls = (over_seeds, over_sentences, over_sentences_alone)
    makers = (*nulls, over_claims, over_interactions, over_failures, over_tuning, over_choices, planted)
    jobs = [*(job for make in makers for job in make()), *planted_in_words(share)]
    with Progress() as progress:
        bar = progress.add_task("calibration", total=len(jobs))
        for job in jobs:
            progress.update(bar, description=f"{job.scenario}, n={job.n}")
            yield from job.rows(share)
            progress.advance(bar)


def main() -> None:
    """Both outputs, and the exit code."""
    words = sys.argv[1:]
    target = Path(next((word for word in words if word.endswith(".json")), "calibration.json"))
    rows = list(run(0.0 if "quick" in words else 1.0))
    target.write_text(
        json.dumps([{**asdict(row), "error": row.error, "kept": row.kept} for row in rows], indent=1) + "\n",
        encoding="utf-8",
    )
    print(table(rows))
    if "quick" not in words and not all(row.kept for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
