"""Writes docs/architecture.md from the sources; with `--check` it only says whether the page is stale.

With `--numbers` it prints the numbers of the house beside their limits instead.

python -m benchmarks.architecture [--check | --numbers]
"""

import sys
from collections.abc import Sequence

from benchmarks.architecture.numbers import table
from benchmarks.architecture.page import page
from benchmarks.architecture.sources import ROOT, StaleNameError

PAGE = ROOT / "docs" / "architecture.md"


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with --check compare it; 1 where it is stale or cannot be made."""
    try:
        text = table() if "--numbers" in arguments else page()
    except StaleNameError as error:
        print(error, file=sys.stderr)
        return 1
    if "--numbers" in arguments:
        print(text)
        return 0
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print("docs/architecture.md is stale: run python -m benchmarks.architecture", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
