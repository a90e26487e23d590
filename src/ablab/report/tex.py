"""Text in LaTeX: escaped for any engine, with real minus signs, and with places where long names may break."""

import re
import unicodedata
from functools import cache
from typing import Any

LONG = 12
"""Characters of a word that fit any column; longer ones may break after punctuation."""


@cache
def escaped(text: str) -> str:
    """Escape any text for any LaTeX engine; a hyphen before a number becomes a minus sign.

    Letters that the usual fonts lack become their code points, so that the document compiles and names stay distinct.
    """
    printable = "".join(f"(U+{ord(one):04X})" if _is_foreign(one) else one for one in text)
    found: str = _encoder().unicode_to_latex(printable)
    return re.sub(r"(?<![\w.\-)\]}])-(?=\d)", "$-$", found)


def breakable(text: str) -> str:
    """Escape, and allow a line to break within long words, which would stick out of a narrow column."""
    words = [re.sub(r"([|:=,_/]|[.-](?!\d))(?=[\w.+-])", "\\1\0", w) if len(w) > LONG else w for w in text.split(" ")]
    return "\\allowbreak{}".join(escaped(part) for part in " ".join(words).split("\0"))


def label(name: str) -> str:
    """Return a name with which LaTeX can refer to a float."""
    return "".join(character if character.isalnum() else "-" for character in name)


def _is_foreign(character: str) -> bool:
    """Return whether the character is a letter neither Latin nor Greek, which the usual fonts lack."""
    return character.isalpha() and not unicodedata.name(character, "").startswith(("LATIN", "GREEK", "MICRO"))


@cache
def _encoder() -> Any:
    from pylatexenc.latexencode import UnicodeToLatexEncoder

    return UnicodeToLatexEncoder(unknown_char_policy="replace", unknown_char_warning=False)
