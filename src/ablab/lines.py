r"""Reading and writing of sentences as lines of text, the same for every source.

A line ends with `\n`, with `\r\n`, or with the text; no other character ends one, whatever Unicode or Python call a
line end. A `\r` that is left stands inside a sentence. It becomes a space, as some tools would end a line there. A byte
order mark before a sentence is no part of it: files that were joined have some in the middle.
"""

import codecs
import re
from collections.abc import Iterable

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


def canonical(content: bytes) -> bytes:
    r"""Return the lines as `text_of` would write them, equal for texts that differ only in line ends and marks.

    Lines are independent of each other, so that a long text may be given in parts that end with `\n`.
    """
    if b"\r" in content:
        content = content.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b" ")
    if codecs.BOM_UTF8 in content:
        content = _MARKS.sub(b"", content)
    return content if not content or content.endswith(b"\n") else content + b"\n"
