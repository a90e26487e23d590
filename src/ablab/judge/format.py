"""Formatting of numbers, the same in every table, sentence and picture."""

from ablab.judge.document import Span


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


def percent(chance: float) -> str:
    """Format a chance as `45 %` or `less than 1 %`."""
    return "less than 1 %" if chance < 0.01 else f"{100 * chance:.0f} %"
