"""Hydra's grammar of words `key=value`, in which a field of text takes the text that was typed, and what it refuses.

By itself the grammar makes a number of `1.10` and a truth of `true`, whichever field they are for. Its parser speaks of
tokens and rules, where a user asks what is wrong.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from antlr4 import CommonTokenStream, InputStream  # type: ignore[import-untyped]
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.overrides_visitor import HydraErrorListener, HydraOverrideVisitor
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.grammar.gen.OverrideLexer import OverrideLexer
from hydra.grammar.gen.OverrideParser import OverrideParser

from ablab.config.groups import groups
from ablab.config.keys import key_of_now, text_of
from ablab.fields import TextShape, as_typed

CLOSING = {"(": ")", "[": "]", "{": "}"}

_PLAIN = re.compile(r"[\w \t./\-+%*@?|:$\\,]", re.ASCII)
"""What a value may hold without quotes, beside brackets in pairs."""


class Grammar(OverridesParser):
    """The grammar, with values of text fields, and names of options and experiments, as they were typed.

    In a field that may be null, `null` is no text, unless it stands in quotes.
    """

    def parse_rule(self, s: str, rule_name: str) -> Any:
        """Return what the text means under a rule, as Hydra's own parser does."""
        key = key_of_now(s.partition("=")[0].lstrip("+~"))
        if rule_name != "override" or text_of(key) is None:
            return super().parse_rule(s, rule_name)
        listener = HydraErrorListener()
        lexer = OverrideLexer(InputStream(s))
        parser = OverrideParser(CommonTokenStream(lexer))
        for reader in (lexer, parser):
            reader.removeErrorListeners()
            reader.addErrorListener(listener)
        visitor = _Name(self.functions) if key in groups() or key == "experiment" else _AsTyped(self.functions)
        override: Override = visitor.visit(parser.override())
        override.input_line = s
        override.validate()
        return override


class _AsTyped(HydraOverrideVisitor):
    def _createPrimitive(self, ctx: Any) -> Any:  # noqa: N802 - Hydra's name
        value = super()._createPrimitive(ctx)
        return ctx.getText().strip() if isinstance(value, bool | int | float) else value


class _Name(_AsTyped):
    def _createPrimitive(self, ctx: Any) -> Any:  # noqa: N802 - Hydra's name
        value = super()._createPrimitive(ctx)
        return ctx.getText().strip() if value is None else value


def spelled(key: str, value: object) -> str:
    """Return what stands after `key=` for a value: text in quotes only where the grammar would read it otherwise.

    Interpolations stay what they are. Text for a field that is none is taken for a value as typed, such as `1e-3`.
    """
    kind = text_of(key)
    if isinstance(value, str):
        is_other = kind in (TextShape.ONE, TextShape.ONE_OR_MORE) and _read(key, value) != value
        return quoted(value) if is_other else value
    if isinstance(value, list):
        return f"[{','.join(quoted(each) if _needs_quotes(each) else as_typed(each) for each in value)}]"
    return as_typed(value)


def store_words(outputs: str) -> list[str]:
    """Return the word that names a store; none for the usual one, as the file of a study may name another."""
    return [] if outputs == "outputs" else [f"outputs={spelled('outputs', outputs)}"]


def _needs_quotes(element: object) -> bool:
    return isinstance(element, str) and (not element or "\\" in element or _read("logger.name", element) != element)


@cache
def grammar() -> OverridesParser:
    """Return the parser of words whose groups have no globs: making one takes time."""
    return Grammar.create()


def _read(key: str, text: str) -> object:
    """Return what the grammar makes of text without quotes; None where that is nothing, or null."""
    try:
        return grammar().parse_override(f"{key}={text}").value()
    except HydraException:
        return None


def quoted(text: str) -> str:
    r"""Return text in quotes: backslashes count double before a quote, and there alone."""
    inside = re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text)
    return f"'{inside}'"


def literal(text: str) -> str:
    r"""Return text in quotes of which nothing is an interpolation: `${x}` as `\${x}`."""
    return quoted(re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + r"\${", text))


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
