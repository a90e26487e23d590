"""What is wrong with a word that Hydra's grammar does not take, and where: its parser speaks of tokens and rules."""

import re
from collections.abc import Iterator

CLOSING = {"(": ")", "[": "]", "{": "}"}
_PLAIN = re.compile(r"[\w \t./\-+%*@?|:$\\,]", re.ASCII)
"""What a value may hold without quotes, beside brackets in pairs."""


def malformed(word: str) -> str:
    """Return the error message for a word `key=value` that is not one: what is wrong, where, and what is allowed."""
    key, _, value = word.partition("=")
    if not re.fullmatch(r"[\w./@:+~$-]+", key, re.ASCII) or re.search(r"^\W*\.|\.\.|\.$", key):
        return f"{word!r}: not an override: {key!r} is no key; allowed: key=value, such as layerdrop=0.2 (see --help)"
    is_call = re.match(r"\w+\(", value)
    unclear = "this function does not take these values" if is_call else "it needs quotes"
    wrong, place = next(_wrong(value), (unclear, None))
    where = "" if place is None else f" at character {len(key) + 2 + place}"
    return (
        f"{word!r}: not an override: {wrong}{where}; allowed: key=value, special characters in quotes "
        f"that the shell leaves alone: '{key}=\"...\"'"
    )


def _wrong(value: str) -> Iterator[tuple[str, int]]:
    """Yield what is wrong in a value, from left to right, with its place; then what never ends."""
    opened: list[tuple[str, int]] = []
    quote: tuple[str, int] | None = None
    end_of_quote = -1
    for place, each in enumerate(value):
        if quote is not None:
            if each == quote[0] and value[place - 1] != "\\":
                quote, end_of_quote = None, place
            continue
        if 0 <= end_of_quote == place - 1 and (each.isalnum() or each in "\"'"):
            yield "something follows the closing quote", place
        if each in "\"'":
            quote = (each, place)
        elif each in CLOSING:
            opened.append((each, place))
        elif each in CLOSING.values():
            if not opened or CLOSING[opened[-1][0]] != each:
                yield f"{each} closes nothing", place
            else:
                opened.pop()
        elif each == "=":
            yield "a second =", place
        elif not _PLAIN.match(each):
            yield f"{each!r} needs quotes", place
    if quote is not None:
        yield "a quote is never closed, opened", quote[1]
    for bracket, place in opened:
        yield f"{bracket} is never closed, opened", place
    for found in re.finditer(r"(?<![\w$])\(|(?<!\$)\{(?=[^:}]*\})|(?<=\w)[\[{]|(?<=[\]}])\w", value):
        yield f"{value[found.start()]!r} needs quotes", found.start()
