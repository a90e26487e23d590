"""Words for people: numbers, things counted, times, aligned rows and the name of the program."""

import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from math import isclose
from pathlib import Path

from rich.cells import cell_len, chop_cells

Say = Callable[[str], None]
"""Tells a person a line. Code digests leave out a statement that only calls a parameter of this type."""

RANGE_FROM = 6
"""Consecutive numbers from which they are named by the first and the last."""
MOST_LISTED = 20
"""Numbers that a line lists."""

_REVERSING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
"""Unicode's marks that change the order of what follows on the line."""


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


def _named(consecutive: list[int]) -> list[str]:
    few = len(consecutive) < RANGE_FROM
    return list(map(str, consecutive)) if few else [f"{consecutive[0]} to {consecutive[-1]}"]


def how_many(number: int, thing: str) -> str:
    """Return a number of things in words: `1 arm`, `2 arms`, `1,000 arms`."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def have(number: int) -> str:
    """Return the verb that goes with so many things."""
    return "has" if number == 1 else "have"


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
    return "".join(each.encode("unicode_escape").decode("ascii") if _is_control(each) else each for each in text)


def _is_control(character: str) -> bool:
    is_format = unicodedata.bidirectional(character) in _REVERSING
    return is_format or (unicodedata.category(character) == "Cc" and character not in "\n\t")


def size_of(count: int) -> str:
    """Format bytes as `12.3 MB`."""
    value, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if round(value, 1) < 1000:  # 999,960 is 1.0 MB
            break
        value, unit = value / 1000, larger
    return how_many(count, "byte") if unit == "bytes" else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """Format seconds as `48 s`, `9 min 58 s` or `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def digits_beside(declared: int) -> int:
    """Return the digits of a score in a table of several: three at most, or more than four if they are declared."""
    return declared if declared > 4 else min(3, declared)


def aligned(rows: Sequence[Sequence[str]], *, left: int | Collection[int]) -> Iterator[str]:
    """Yield rows with aligned columns: the first `left`, or those, to the left, others right. Nothing is cut off.

    On a terminal that is too narrow, texts are folded within their columns.
    """
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    texts = range(min(left, len(widths))) if isinstance(left, int) else left
    _narrow(widths, texts)
    for row in rows:
        folded = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
        for number in range(max(map(len, folded))):
            cells = [lines[number] if number < len(lines) else "" for lines in folded]
            spaces = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
            yield "  ".join(
                cell + space if column in texts else space + cell
                for column, (cell, space) in enumerate(zip(cells, spaces, strict=True))
            ).rstrip()


NARROWEST = 14
"""Columns below which no text is folded."""


def terminal_columns() -> int | None:
    """Return the width of the terminal; None for a file or a pipe, which have none, whatever COLUMNS says."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _narrow(widths: list[int], texts: Collection[int]) -> None:
    """Take from the widest columns of text what the terminal lacks."""
    columns = terminal_columns()
    if columns is None:
        return
    lacking = sum(widths) + 2 * (len(widths) - 1) - columns
    while lacking > 0 and texts and max(widths[column] for column in texts) > NARROWEST:
        widths[max(texts, key=lambda column: widths[column])] -= 1
        lacking -= 1


def _folded(cell: str, width: int) -> list[str]:
    """Return the lines of a cell, folded after spaces and commas, or anywhere in a word that is too long."""
    lines = [""]
    for piece in re.findall(r"[^\s,]*[\s,]+|[^\s,]+", cell):
        word = piece.rstrip()
        if lines[-1] and cell_len(lines[-1] + word) > width:
            lines.append("")
        begun = chop_cells(lines[-1] + word, width)
        lines[-1:] = [*begun[:-1], begun[-1] + piece[len(word) :]]
    return [line.rstrip() for line in lines]


def number(value: float | None, digits: int) -> str:
    """Format as `1,234.50`, and what rounds to 0 without a sign; empty for None."""
    return "" if value is None else f"{_rounded(value, digits):,.{digits}f}"


def exactly(value: float) -> str:
    """Format with the fewest digits that say which number it is: `0.5`, `1,234,567`."""
    short = f"{value:g}"
    return short if float(short) == value else f"{value:,.15g}"


def signed(value: float | None, digits: int) -> str:
    """Format with a sign, which is + where the value rounds to 0; empty for None."""
    return "" if value is None else f"{_rounded(value, digits):+,.{digits}f}"


def _rounded(value: float, digits: int) -> float:
    return 0.0 if float(f"{value:.{digits}f}") == 0 else value


def digits_apart(digits: int, values: Sequence[float], marks: Sequence[float]) -> int:
    """Return `digits`, or up to six more, with which no value reads as one of the marks on which a verdict hangs."""

    def are_apart(more: int) -> bool:
        return not any(f"{value:.{more}f}" == f"{mark:.{more}f}" for value, mark in pairs)

    # "-0.00" is to read as 0; and a value may be a mark, but for rounding.
    pairs = [(abs(one), abs(mark)) for one in values for mark in marks if not isclose(one, mark, abs_tol=1e-12)]
    return next(filter(are_apart, range(digits, digits + 7)), digits)


def p_text(p: float | None) -> str:
    """Format a p-value, with `< 0.0001` instead of 0, which no test can show; empty for None."""
    if p is None:
        return ""
    return "< 0.0001" if p < 0.0001 else f"{p:.{4 if p < 0.01 else digits_apart(3, [p], [0.05])}f}"


def p_words(p: float, of_what: str = "") -> str:
    """Format as `p = 0.282` or `p < 0.0001`."""
    text = p_text(p)
    return f"p{of_what} {text}" if text.startswith("<") else f"p{of_what} = {text}"


def percent(chance: float) -> str:
    """Format a chance as `45 %`, `less than 1 %` or `more than 99 %`."""
    if chance < 0.01 or chance > 0.99:
        return "less than 1 %" if chance < 0.01 else "more than 99 %"
    return f"{100 * chance:.0f} %"


SHAPING = dict.fromkeys((0xA0, 0x202F, 0x200C, 0x200D))
"""Blanks that join words, and marks that join letters or keep them apart, as Persian and some emoji need them."""


def is_one_line(text: str) -> bool:
    """Return whether a table can show a text as it is: no line ends, controls or marks that turn its direction."""
    return text.translate(SHAPING).isprintable()


SCRIPTS = ("train", "study", "report", "prune", "translate")
"""Verbs with a script at the root of a checkout."""


def is_script() -> bool:
    """Return whether one of the scripts of a checkout was started, and not the installed command."""
    return Path(sys.argv[0]).name in {f"{verb}.py" for verb in SCRIPTS}


def in_store(outputs: Path | str) -> str:
    """Return ` outputs=elsewhere`, by which a line to type names its store; empty for the usual one."""
    return "" if str(outputs) == "outputs" else f" outputs={shlex.quote(str(outputs))}"


def program(verb: str) -> str:
    """Return `python train.py` where the scripts of a checkout are in use and the verb has one, else `ablab train`."""
    return f"python {verb}.py" if is_script() and verb in SCRIPTS else f"ablab {verb}"
