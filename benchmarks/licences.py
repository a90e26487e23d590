"""Writes docs/licences.md: what installs with ablab, and under which licences, by the packages' own metadata.

python -m benchmarks.licences
"""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PAGE = Path(__file__).parent.parent / "docs" / "licences.md"

SHORT = 60
"""Characters of a field `License` that names one; some packages put its whole text there."""

HEAD = """# Licences of what installs with ablab

`pip install '.[train]'` installs these packages beside it, and `pip install .` those that judging takes. The
licences are those that each package's own metadata name. ablab itself is under Apache-2.0.

    python -m benchmarks.licences      # writes this page from what is installed
    make audit                         # asks PyPI which of them have known vulnerabilities

| package | licence | asked for by |
| --- | --- | --- |
"""


def dependencies(name: str = "ablab") -> dict[str, set[str]]:
    """Return all packages that a package needs on this machine, directly or not, and who asks for each."""
    asked: dict[str, set[str]] = {}
    left = [(name, frozenset({"train"}))]
    seen = set(left)
    while left:
        package, extras = left.pop()
        for text in distribution(package).requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
                continue
            needed = (_canonical(requirement.name), frozenset(requirement.extras))
            try:
                distribution(needed[0])
            except PackageNotFoundError:
                continue  # CUDA's packages come with another build of torch
            asked.setdefault(needed[0], set()).add(_canonical(package))
            if needed not in seen:
                seen.add(needed)
                left.append(needed)
    return asked


def licence(package: Distribution) -> str:
    """Return the licence that the metadata name: as an SPDX expression, in a word, or in classifiers."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    word = " ".join(str(metadata.get("License", "")).split())
    classified = [
        value.rpartition(" :: ")[2]
        for value in metadata.get_all("Classifier", [])
        if value.startswith("License ::") and value.count("::") > 1
    ]
    return ", ".join(classified) or (word if 0 < len(word) <= SHORT else "not named")


def main() -> None:
    """Write the page."""
    asked = dependencies()
    rows = [f"| {name} | {licence(distribution(name))} | {', '.join(sorted(asked[name]))} |" for name in sorted(asked)]
    PAGE.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
