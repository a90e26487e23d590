"""The report in formats that other programs read: Markdown and CSV."""

import csv
import io
import re

from ablab.report.document import Document
from ablab.report.pictures import Picture, curves, differences
from ablab.report.plain_words import plain_words
from ablab.report.tables import Table, tables


def markdown(document: Document) -> str:
    """Return the report in Markdown, for a pull request or a wiki."""
    lines = [f"# {escaped(document.name)}", "", escaped(document.question), ""]
    lines += [f"Source: {escaped(document.source)}", ""] if document.source else []
    lines += [line for note in document.notes for line in (f"> {escaped(note)}", "")]
    for claim in document.claims:
        said = f"**{escaped(plain_words(claim, document.metric))}** {escaped(claim.words)}"
        lines.append(f"- {said}{_exploratory(claim.exploratory)}")
    lines += [""] if document.claims else []
    lines += [line for picture in differences(document) for line in _markdown_picture(picture)]
    for table in tables(document):
        lines += [f"## {escaped(table.title)}", "", *markdown_table(table), ""]
    for picture in curves(document):
        lines += [f"## {escaped(picture.title)}", "", *_markdown_picture(picture)]
    methods = [*map(escaped, document.methods), *_signatures(document), *map(escaped, document.custody)]
    lines += ["## Methods", "", *(f"- {method}" for method in methods), ""]
    return "\n".join(lines)


def comma_separated(table: Table, custody: str) -> str:
    """Return one table as CSV, with what vouches for its figures as the last column of each row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*map(_no_formula, table.columns), "register"])
    writer.writerows([*map(_no_formula, row), custody] for row in table.rows)
    return text.getvalue()


def _no_formula(cell: str) -> str:
    """Return a cell that a spreadsheet shows and does not compute: others may have written the names of the arms."""
    is_figure = re.fullmatch(r"[+-]\d+(\.\d+)?( ?%| [A-Za-z, ]+)?", cell)  # such as +1.2 BLEU
    return f"'{cell}" if cell != "-" and cell.startswith(("=", "@", "+", "-")) and not is_figure else cell


def _exploratory(reason: str | None) -> str:
    return "" if reason is None else f" *Exploratory: {escaped(reason)}.*"


def _signatures(document: Document) -> list[str]:
    return [f"{escaped(name)}: `{signature}`" for name, signature in document.signatures.items()]


def _markdown_picture(picture: Picture) -> list[str]:
    return [f"![{escaped(picture.title)}]({picture.key}.png)", "", escaped(picture.caption), ""]


def markdown_table(table: Table) -> list[str]:
    """Return the lines of one table in Markdown."""
    marks = ["---" if number < table.left else "---:" for number in range(len(table.columns))]
    rows = [table.columns, marks, *table.rows]
    return ["| " + " | ".join(map(escaped, row)) + " |" for row in rows]


def escaped(text: str) -> str:
    """Escape characters that Markdown would read as markup."""
    return re.sub(r"([|*`]|<(?=[a-zA-Z/!]))", r"\\\1", text)
