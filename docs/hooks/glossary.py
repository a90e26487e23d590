"""Links to the glossary: on each page, a word of its list is one where it first stands in a sentence."""

import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

PAGE = "glossary.md"
WORD = re.compile(r'^\| <a id="([\w-]+)"></a>([\w ]+) \|', re.MULTILINE)
KEPT = re.compile(r"```.*?```|`[^`\n]*`|^#.*?$|^\|.*?$|!?\[[^\]]*\]\([^)]*\)|<[^>]+>", re.DOTALL | re.MULTILINE)
"""What holds no link: code, headings, tables, links, tags."""


EVERYDAY = frozenset({"stack", "condition", "look", "family", "worth", "curve", "run", "register"})
"""Words that most sentences use in their usual sense: a link would give them another one."""


@cache
def words() -> dict[str, str]:
    """Return the anchor of each word that is linked."""
    text = (Path(__file__).parents[1] / PAGE).read_text(encoding="utf-8")
    return {word: anchor for anchor, word in WORD.findall(text) if word not in EVERYDAY}


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Link the first occurrence of each word on a page, but for the glossary's own."""
    if page.file.src_uri == PAGE:
        return markdown
    place = posixpath.relpath(PAGE, posixpath.dirname(page.file.src_uri) or ".")
    return linked(markdown, place)


def linked(markdown: str, place: str) -> str:
    """Return a page with its links to the glossary at `place`."""
    left = dict(words())

    def answered(found: re.Match[str]) -> str:
        word = next(each for each in (found[0], found[0].removesuffix("s")) if each in words())
        anchor = left.pop(word, None)
        return found[0] if anchor is None else f"[{found[0]}]({place}#{anchor})"

    longest_first = sorted(map(re.escape, words()), key=len, reverse=True)
    every = re.compile(rf"\b(?:{'|'.join(longest_first)})s?\b")
    parts, end = [], 0
    for kept in KEPT.finditer(markdown):
        parts += [every.sub(answered, markdown[end : kept.start()]), kept[0]]
        end = kept.end()
    return "".join([*parts, every.sub(answered, markdown[end:])])
