"""What may be said to the user in one line, without a traceback."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Bad input: says what is wrong, what came and what is allowed. Scripts print it and exit with 2."""


def choices(given: object, allowed: Iterable[str]) -> str:
    """`allowed: a, b, c; did you mean b?` for an unknown name, the nearest first where there is one."""
    names = sorted(allowed)
    near = get_close_matches(str(given), names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"allowed: {', '.join(names)}{hint}"
