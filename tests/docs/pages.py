"""The documentation as tests read it: pages, their commands, and the files that a reader is told to write."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "docs/results")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted((ROOT / folder).glob("*.md")))]
SCRIPTS = {f"{verb}.py": verb for verb in ("train", "study", "report", "prune", "translate")}

_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_QUICK = re.compile(r"<!-- tested with (\S+) -> (\S+) -->")
_FILE = re.compile(r"# (\S+\.yaml)\n")


class Command(NamedTuple):
    """A line that a reader types. `words`: of ablab, with the verb first; empty for other programs."""

    page: str
    line: str
    words: list[str]


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page: language and content."""
    return [(match[1], match[2]) for match in _BLOCK.finditer(text)]


def typed(text: str) -> list[str]:
    """The lines that a page tells its reader to type: after `$ ` in a block, with their continuations."""
    joined = [re.sub(r"\\\n\s*", "", content) for _, content in blocks(text)]
    return [line[2:] for content in joined for line in content.splitlines() if line.startswith("$ ")]


def shown(text: str) -> list[str]:
    """All lines of blocks that begin with one of our commands, typed or listed."""
    joined = [re.sub(r"\\\n\s*", "", content) for language, content in blocks(text) if language in ("", "console")]
    lines = [line.strip().removeprefix("$ ") for content in joined for line in content.splitlines()]
    return [line for line in lines if re.match(r"(python \w+\.py|ablab [a-z]+)( |$)", line)]


def words_of(line: str) -> list[str]:
    """The verb and its words, without what a shell or a reader adds: pipes, redirections, comments, `...`."""
    bare = re.split(r" [|<>&] |  +#|   +|# ", line)[0]
    parts = shlex.split(bare)
    verb, rest = (SCRIPTS.get(parts[1], ""), parts[2:]) if parts[0] == "python" else (parts[1], parts[2:])
    return [verb, *rest]


def commands(pages: list[Path] = PAGES) -> list[Command]:
    """Every command of ablab that the pages show."""
    return [
        Command(str(page.relative_to(ROOT)), line, words_of(line))
        for page in pages
        for line in shown(page.read_text(encoding="utf-8"))
        if "..." not in line and "<" not in line.split(" | ")[0].split(" > ")[0]
    ]


def quick(text: str) -> str:
    """A page with the replacements that it declares in comments, so that its commands end in seconds."""
    for before, after in _QUICK.findall(text):
        text = text.replace(before, after)
    return text


def files(text: str) -> dict[str, str]:
    """The files that a page shows whole: YAML blocks that begin with a comment of their path."""
    return {match[1]: content for _, content in blocks(text) if (match := _FILE.match(content))}
