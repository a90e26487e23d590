"""Seconds that a report takes, of so many records of 1,000 sentences.

    python benchmarks/report_size.py [records]

The records are made up, with real statistics per sentence; nothing is trained.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.report import synthetic  # noqa: E402

SEEDS = 10


def main() -> None:
    """Write the records, then type the line of a report three times, with few and with the usual resamples."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    outputs = Path(tempfile.mkdtemp(prefix="records."))
    rates = ",".join(f"{number / 1000:g}" for number in range(1, records // SEEDS + 1))
    words = (f"layerdrop={rates}", f"seed={','.join(map(str, range(1, SEEDS + 1)))}")
    synthetic.SENTENCES = 1000
    began = time.perf_counter()
    errors = {f"layerdrop={rate}": 0.3 for rate in rates.split(",")}
    synthetic.fill(words, errors, outputs=outputs)
    print(f"{records} records made in {time.perf_counter() - began:.0f} s in {outputs}")
    line = [sys.executable, str(ROOT / "report.py"), *words, f"outputs={outputs}"]
    for resamples in (1000, 10_000):
        seconds = sorted(_seconds([*line, f"resamples={resamples}"]) for _ in range(3))
        print(f"report with {resamples:,} resamples: {seconds[1]:.1f} s ({seconds[0]:.1f} to {seconds[2]:.1f})")


def _seconds(line: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
