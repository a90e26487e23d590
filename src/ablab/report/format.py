"""How a report writes numbers: in one way, in every table, sentence and picture."""

import re

from ablab.report.document import Span


def number(value: float | None, digits: int) -> str:
    """`1,234.50`; nothing where there is nothing."""
    return "" if value is None else f"{value:,.{digits}f}"


def signed(value: float | None, digits: int) -> str:
    """With its sign."""
    return "" if value is None else f"{value:+,.{digits}f}"


def interval_text(interval: Span | None, digits: int, *, sign: bool = True) -> str:
    """`[-0.31, +0.52]`."""
    if interval is None:
        return ""
    write = signed if sign else number
    return f"[{write(interval.low, digits)}, {write(interval.high, digits)}]"


def p_text(p: float | None) -> str:
    """Never 0: no test can say that."""
    if p is None:
        return ""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.3f}"


def p_said(p: float, of_what: str = "") -> str:
    """`p = 0.282`, `p < 0.0001`."""
    text = p_text(p)
    return f"p{of_what} {text}" if text.startswith("<") else f"p{of_what} = {text}"


def wrapped(name: str, width: int) -> str:
    """Lines of at most so many characters, broken after commas and spaces where that can be."""
    lines = [""]
    for piece in re.findall(rf"[^, ]{{0,{width - 1}}}[, ]|[^, ]{{1,{width}}}", name):
        if len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)
