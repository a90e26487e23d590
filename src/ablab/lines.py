r"""Reading and writing of sentences as lines of text, the same for every source.

A line ends with `\n`, with `\r\n`, or with the text; no other character ends one, whatever Unicode or Python call a
line end. A `\r` that is left stands inside a sentence. It becomes a space, as some tools would end a line there. A byte
order mark before a sentence is no part of it: files that were joined have some in the middle.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterable, Sized

from ablab.errors import UserError

_MARKS = re.compile(rb"^(?:%b)+" % codecs.BOM_UTF8, re.MULTILINE)


def lines_of(content: bytes, name: object) -> list[str]:
    """Return the lines of a text. If it is not UTF-8, raise UserError with `name` and the number of the line."""
    whole = canonical(content)
    try:
        return whole.decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError as error:
        line = whole.count(b"\n", 0, error.start) + 1
        wrong = f"byte 0x{whole[error.start]:02x}, {error.reason}"
        raise UserError(f"{name}: line {line} is not UTF-8 ({wrong})") from None


def text_of(sentences: Iterable[str]) -> str:
    """Join sentences into a text that `lines_of` reads as the same number of lines."""
    return "".join(f"{one_line(sentence)}\n" for sentence in sentences)


def one_line(sentence: str) -> str:
    """Return the sentence with line ends replaced by spaces and without leading byte order marks."""
    return sentence.replace("\r\n", " ").replace("\r", " ").replace("\n", " ").lstrip("\ufeff")


def counted(numbers: Iterable[int]) -> str:
    """Return numbers as a person would list them: `1, 2, 3`, `1 to 300`, and of many others the first and the last."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    listed = [text for each in ranges for text in _named(each)]
    total = sum(map(len, ranges))
    return ", ".join(listed if len(listed) <= MOST_LISTED else [*listed[:3], "...", f"{listed[-1]} ({total} in all)"])


def number_of(things: Sized, name: str) -> str:
    """Return how many there are, with their name: `1 arm`, `2 arms`."""
    return f"{len(things):,} {name}{'s' * (len(things) != 1)}"


def _named(consecutive: list[int]) -> list[str]:
    few = len(consecutive) < RANGE_FROM
    return list(map(str, consecutive)) if few else [f"{consecutive[0]} to {consecutive[-1]}"]


RANGE_FROM = 6
"""Consecutive numbers from which they are named by the first and the last."""
MOST_LISTED = 20
"""Numbers that a line lists."""


def shortened(message: str) -> str:
    """Return a message in which no list of values is repeated whole: people know what they typed."""
    values = re.sub(r"\S{200,}", lambda found: f"{found[0][:120]}..." if "," in found[0] else found[0], message)
    return re.sub(r"((?:[-+.\w]+, ){20})(?:[-+.\d]+, ){20,}[-+.\d]+", r"\1...", values)


def visible(text: str) -> str:
    r"""Return a text for a screen: what would move its cursor, colour it or reverse its order is written out, as \x1b.

    Names and questions come from files that others may have written.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written_out(each) if _is_control(each) else each for each in text)


def _is_control(character: str) -> bool:
    is_format = unicodedata.bidirectional(character) in _REVERSING
    return is_format or (unicodedata.category(character) == "Cc" and character not in "\n\t")


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


_REVERSING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
"""Unicode's marks that change the order of what follows on the line."""


def canonical(content: bytes) -> bytes:
    r"""Return the lines as `text_of` would write them, equal for texts that differ only in line ends and marks.

    Lines are independent of each other, so that a long text may be given in parts that end with `\n`.
    """
    if b"\r" in content:
        content = content.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b" ")
    if codecs.BOM_UTF8 in content:
        content = _MARKS.sub(b"", content)
    return content if not content or content.endswith(b"\n") else content + b"\n"
