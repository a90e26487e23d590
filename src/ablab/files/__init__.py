r"""Text, JSON, lines and pictures, written whole, and read.

A line ends with `\n`, with `\r\n`, or with the text; no other character ends one, whatever Unicode or Python call a
line end. A `\r` that is left stands inside a sentence. It becomes a space, as some tools would end a line there. A byte
order mark before a sentence is no part of it: files that were joined have some in the middle.
"""

import codecs
import csv
import hashlib
import io
import json
import re
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.files.disk import naming, replacing, sync

LONGEST = 100
"""Maximum length of a folder's name in bytes."""


FORMULA = re.compile(r"(?![+-]?\d+(\.\d+)?(e[+-]?\d+)?$|-$)[=@+\-\t\r]", re.IGNORECASE)
"""Text that a spreadsheet takes for a formula: it begins like one, and is neither a number nor a dash."""


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file's content atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV, with the line ends of a text."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def no_formula(cell: Any) -> Any:
    """Return a cell of CSV, with a quote before text that a spreadsheet would compute: others may name the arms."""
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell


def write_text(path: Path, text: str) -> None:
    """Replace the file's content atomically."""
    write_bytes(path, text.encode())


def sealed(path: Path) -> str:
    """Return the SHA-256 of a file that is on disk when this returns, for a record that is to hold for good."""
    with naming(path):
        sync(path)
    return sha256(path)


def write_json(path: Path, content: Any) -> None:
    """Replace the file's content atomically. NaN is refused: JSON has none."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; UserError if it is not valid JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not readable as JSON ({error})") from None


def each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; ValueError for a key that it has twice, of which Python would take the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise ValueError(f"it has {twice} twice")
    return found


def write_lines(path: Path, sentences: Iterable[str]) -> None:
    """Replace the file's content atomically, with one sentence per line."""
    write_text(path, text_of(sentences))


def read_lines(path: Path) -> list[str]:
    """Return the sentences that `write_lines` wrote, in the same number; UserError if the file is not UTF-8."""
    return lines_of(path.read_bytes(), path)


def folder_name(text: str) -> str:
    """Return the text if it can name a folder; otherwise its usable characters and a digest that keeps it unique."""
    if len(text.encode()) <= LONGEST and "/" not in text and not text.startswith(".") and text.isprintable():
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    kept = "".join(character if character.isprintable() and character != "/" else "_" for character in text)
    return f"{kept.lstrip('.')[:60].encode()[:LONGEST].decode(errors='ignore')}-{digest}"


def json_digest(content: object, digits: int) -> str:
    """Return the first `digits` hex digits of the SHA-256 of plain values; the order of keys does not matter."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def sha256(path: Path) -> str:
    """Return the hex digest of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def size(folder: Path) -> int:
    """Return the bytes of all files below a folder; links count for themselves."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_symlink() or path.is_file())


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


FURTHER = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Source Han Sans SC", "WenQuanYi Zen Hei"),
    *("PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic"),
    *("Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Sans Thai", "Nirmala UI"),
    *("Arial Unicode MS", "Unifont"),
)
"""Families that have such scripts, on Linux, macOS and Windows; the first that is installed and has a sign is taken."""


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
"""Colours of Okabe and Ito (2008), distinct under any colour vision.

Brown and grey replace their yellow and black, which are hard to see on a light or a dark page.
"""


def save_figure(figure: Any, path: Path, **options: Any) -> None:
    """Save a figure of matplotlib's. A sign that no installed font has becomes a box; matplotlib would warn of each.

    What people have written, such as `cost ($) of $1`, is no mathematics; labels of ticks may be.
    """
    from matplotlib import rc_context, rcParams
    from matplotlib.text import Text

    usual = rcParams["font.family"]
    families = [*usual, *_installed()]
    for text in figure.findobj(Text):
        if text.get_fontfamily() == usual:
            text.set_fontfamily(families)
    legends = [*figure.legends, *(axes.legend_ for axes in figure.axes if axes.legend_ is not None)]
    written = [text for axes in figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)]
    for text in (*written, *(text for legend in legends for text in legend.get_texts())):
        text.set_parse_math(False)
    with rc_context({"font.family": families}), warnings.catch_warnings():  # labels of ticks are made while it draws
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        figure.savefig(path, **options)


def write_picture(path: Path, figure: Any) -> None:
    """Replace the file atomically with a figure of matplotlib's, in the format that its name ends with."""
    with replacing(path) as temporary:
        save_figure(figure, temporary, format=path.suffix.removeprefix("."), dpi=110)


@cache
def _installed() -> list[str]:
    from matplotlib.font_manager import get_font_names

    names = set(get_font_names())
    return [family for family in FURTHER if family in names]
