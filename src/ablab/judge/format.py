"""Formatting of numbers, the same in every table, sentence and picture."""

import re

from ablab.console import duration
from ablab.judge.document import Advice, Span
from ablab.statistics.power import MOST_SEEDS


def number(value: float | None, digits: int) -> str:
    """Format as `1,234.50`; empty for None."""
    return "" if value is None else f"{value:,.{digits}f}"


def signed(value: float | None, digits: int) -> str:
    """Format with a sign; empty for None."""
    return "" if value is None else f"{value:+,.{digits}f}"


def interval_text(interval: Span | None, digits: int, *, sign: bool = True) -> str:
    """Format as `[-0.31, +0.52]`; empty for None."""
    if interval is None:
        return ""
    write = signed if sign else number
    return f"[{write(interval.low, digits)}, {write(interval.high, digits)}]"


def p_text(p: float | None) -> str:
    """Format a p-value, with `< 0.0001` instead of 0, which no test can show; empty for None."""
    if p is None:
        return ""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.3f}"


def p_words(p: float, of_what: str = "") -> str:
    """Format as `p = 0.282` or `p < 0.0001`."""
    text = p_text(p)
    return f"p{of_what} {text}" if text.startswith("<") else f"p{of_what} = {text}"


def advice_words(advice: Advice, expect: str) -> str:
    """Format as `a new study of 33 seeds (14 to 80) would detect the margin with 80 % power, in 2 h of machine time`.

    A claim that something does not differ is supported, if that is so.
    """
    few, seeds, many = (
        f"more than {MOST_SEEDS}" if number is None else str(number)
        for number in (advice.fewest, advice.seeds, advice.most)
    )
    extent = f" ({few} to {many})" if few != many else ""
    cost = "" if not advice.seconds else f", in {duration(advice.seconds)} of machine time"
    study = f"a new study of {seeds} seeds{extent} would"
    if expect in ("greater", "less"):
        return f"{study} detect the margin with 80 % power{cost}"
    return f"if nothing differs, {study} support the claim with 80 % power{cost}"


def wrapped(name: str, width: int) -> str:
    """Break a name into lines of at most `width` characters, after commas and spaces where possible."""
    lines = [""]
    for piece in re.findall(rf"[^, ]{{0,{width - 1}}}[, ]|[^, ]{{1,{width}}}", name):
        if len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)
