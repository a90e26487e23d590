"""Seconds that a report takes, of so many records of 1,000 sentences, and its page in a browser.

    python benchmarks/report_size.py [records]

The records are made up, with real statistics per sentence; nothing is trained. The page is opened in Chromium, if there
is one: until its load event, until the first paint, and its height.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.report import synthetic  # noqa: E402
from tests.report.browser import CHROMIUM, Browser  # noqa: E402

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
    if CHROMIUM is not None:
        (page,) = outputs.glob("reports/*/report.html")
        opened = [_opened(page) for _ in range(5)]
        load, paint, height = (median(values) for values in zip(*opened, strict=True))
        size = page.stat().st_size / 1e6
        print(f"page of {size:.1f} MB: load {load:.0f} ms, first paint {paint:.0f} ms, {height:,.0f} pixels high")


def _opened(page: Path) -> tuple[float, float, float]:
    """Open a page in a new browser; return milliseconds to its load event and first paint, and its height in pixels."""
    browser = Browser(Path(tempfile.mkdtemp(prefix="profile.")))
    try:
        browser.show(1280)
        browser.open(page)
        time.sleep(2)  # what is drawn at once is drawn by then
        load = browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd")
        paint = browser.value("performance.getEntriesByName('first-paint')[0].startTime")
        return load, paint, browser.value("document.documentElement.scrollHeight")
    finally:
        browser.close()


def _seconds(line: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
