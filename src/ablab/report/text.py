"""The report in formats that other programs read: Markdown and CSV."""

import re
from collections.abc import Sequence
from typing import Any

from ablab.files import csv_text, no_formula
from ablab.judge.document import Document
from ablab.judge.lines import ClaimLine
from ablab.report.claim_words import answers
from ablab.report.columns import PageTable, ReportTable, page_table
from ablab.report.pictures import Picture, curves, differences
from ablab.report.plain_words import plain_words
from ablab.report.sentences import command, cost_words
from ablab.report.tables import OTHERWISE, next_metric, tables
from ablab.text import counted, how_many


def markdown(document: Document) -> str:
    """Return the report in Markdown, for a pull request or a wiki: question, figure, answers, tables, cost, methods."""
    lines = [f"# {escaped(one_line(document.question or document.name))}", "", f"{_about(document)}", ""]
    lines += [line for note in document.notes for line in (f"> {escaped(note)}", "")]
    lines += [line for picture in differences(document) for line in _markdown_picture(picture)]
    if document.claims:
        lines += [answers(document.claims), ""]
    for claim in document.claims:
        said = f"**{escaped(plain_words(claim, document.metric))}** {escaped(claim.judged)}"
        lines.append(f"- {said}{_published(claim)}{_exploratory(claim.exploratory)}")
    lines += [""] if document.claims else []
    every = [(table, page_table(table)) for table in tables(document)]
    parts = [(table.title, part) for table, part in every if table.key != OTHERWISE]
    for title, part in parts:
        lines += [f"## {escaped(title)}", "", *_markdown_part(part), ""]
        lines += [escaped(said), ""] if part.key == "metrics" and (said := next_metric(document)) else []
    if (made := document.setup) is not None:
        typed = ["```sh", command(made), "```", ""] if made.typed else []
        cost = f"{cost_words(made)} Machine: {'; '.join(made.machines)}."
        lines += ["## How it was made", "", *typed, cost, ""]
    for picture in curves(document):
        lines += [f"## {escaped(picture.title)}", "", *_markdown_picture(picture)]
    aside = [(table.title, part) for table, part in every if table.key == OTHERWISE]
    if more := [*((title, part.rest) for title, part in parts if part.rest), *aside]:
        lines += ["## Further figures", ""]
        lines += [line for title, rest in more for line in (f"### {escaped(title)}", "", *_markdown_part(rest), "")]
    signatures = [f"{escaped(name)}: `{signature}`" for name, signature in document.signatures.items()]
    methods = [*map(escaped, document.methods), *signatures, *map(escaped, document.custody)]
    lines += ["## Methods", "", *(f"- {method}" for method in methods), ""]
    return "\n".join(lines)


def _about(document: Document) -> str:
    """Return a line on what was compared: name, source, arms, seeds, test set."""
    seeds = f"{how_many(len(document.arms), 'arm')}, seeds {counted(document.seeds)}"
    test_set = f"{document.test_set}, {document.size}" if document.test_set else ""
    name = document.name if document.question else ""
    return " · ".join(escaped(part) for part in (name, one_line(document.source or ""), seeds, test_set) if part)


def comma_separated(document: Document, table: ReportTable) -> str:
    """Return one table as CSV, its figures as plain numbers; each row ends with the notes of the report, and with what
    vouches for its figures.
    """
    vouching = [words for words in (document.origin, document.stamp) if words]
    ends = [("report says", "; ".join(document.notes)), ("register", "; ".join(vouching))]
    rows = [[*row, *ends] for row in table.data]
    head = [_plain(name) for name, _ in rows[0]]
    return csv_text([head, *([_plain(cell) for _, cell in row] for row in rows)])


def _plain(cell: Any) -> Any:
    """Return a cell that programs read: ten digits of a number."""
    return f"{cell:.10g}" if isinstance(cell, float) else no_formula(cell)


def _published(claim: ClaimLine) -> str:
    source = escaped(one_line(claim.source)) if claim.source else ""
    if claim.published is None:
        return f" Source: {source}." if source else ""
    return f" Published: {escaped(one_line(claim.published))}{f' ({source})' if source else ''}."


def one_line(text: str) -> str:
    """Return what may be written over several lines, as in blocks of YAML, as one: a line break ends an item here."""
    return " ".join(text.split())


def _exploratory(reason: str | None) -> str:
    return "" if reason is None else f" *Exploratory: {escaped(reason)}.*"


def _markdown_picture(picture: Picture) -> list[str]:
    return [f"![{escaped(picture.title)}]({picture.key}.png)", "", escaped(picture.caption), ""]


def markdown_table(table: ReportTable) -> list[str]:
    """Return the lines of one table in Markdown."""
    return grid(table.columns, table.rows, [number < table.left for number in range(len(table.columns))])


def _markdown_part(part: PageTable) -> list[str]:
    """Return the lines of a table, with its notes below it."""
    rows = [[_noted(row.cells[0], row.notes), *row.cells[1:]] for row in part.rows]
    words = [column.holds_words for column in part.columns]
    notes = [f"{number}. {escaped(note)}" for number, note in enumerate(part.notes, 1)]
    return [*grid([column.title for column in part.columns], rows, words), *([""] if notes else []), *notes]


def _noted(cell: str, notes: list[int]) -> str:
    return f"{cell} [{', '.join(map(str, notes))}]" if notes else cell


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[bool]) -> list[str]:
    """Return the lines of a table in Markdown. `words`: of each column, whether it holds words, not figures."""
    marks = ["---" if holds_words else "---:" for holds_words in words]
    return ["| " + " | ".join(map(escaped, row)) + " |" for row in (columns, marks, *rows)]


MARKUP = re.compile(
    r"([|*`]|<(?=[a-zA-Z/!])|&(?=#?\w+;)|~(?=~)|(?<=~)~|(?<![^\W_])_|_(?![^\W_])|\[(?=[^\[\]]*\]\()|\\(?=[!-/:-@\[-`{-~]))"
)
"""Among them `_` at the edge of a word, `[` of a link, and a backslash before punctuation."""


def escaped(text: str) -> str:
    """Escape characters that Markdown would read as markup."""
    return MARKUP.sub(r"\\\1", text)
