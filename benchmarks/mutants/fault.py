"""What a deliberate fault is: one piece of text of the product, and the wrong one in its place."""

from dataclasses import dataclass
from pathlib import Path

TESTS = "tests/"


@dataclass(frozen=True)
class Fault:
    """`file` lies below src/ablab and holds `right` exactly once; `tests` are those that concern it, below tests/."""

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]

    @property
    def path(self) -> str:
        """From the root of the repository."""
        return f"src/ablab/{self.file}"

    @property
    def test_paths(self) -> list[str]:
        """As pytest takes them, from the root of the repository."""
        return [TESTS + test for test in self.tests]

    def misfit(self, root: Path) -> str | None:
        """Why it does not apply to the sources below `root`, if it does not."""
        found = (root / self.path).read_text(encoding="utf-8").count(self.right)
        if found != 1:
            return f"{self.path} has the text to replace {found} times, not once: {self.right!r}"
        return "the replacement is the text itself" if self.wrong == self.right else None

    def applied(self, source: str) -> str:
        """The faulty source."""
        return source.replace(self.right, self.wrong)
