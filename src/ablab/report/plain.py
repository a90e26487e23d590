"""The report for files that other programs read: Markdown, LaTeX, CSV."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ablab.report.document import Document
from ablab.report.printed import Picture, curves, forest
from ablab.report.tables import Table, tables


def markdown(document: Document) -> str:
    """For a pull request or a wiki."""
    lines = [f"# {document.name}", "", document.question, ""]
    lines += [f"Source: {document.source}", ""] if document.source else []
    lines += [line for note in document.notes for line in (f"> {note}", "")]
    lines += [f"- {claim.words}" + _exploratory(claim.exploratory) for claim in document.claims]
    lines += [""] if document.claims else []
    lines += [line for picture in forest(document) for line in _markdown_picture(picture)]
    for table in tables(document):
        lines += [f"## {table.title}", "", *_markdown_table(table), ""]
    for picture in curves(document):
        lines += [f"## {picture.title}", "", *_markdown_picture(picture)]
    lines += ["## Methods", "", *(f"- {method}" for method in document.methods), *_signatures(document, "`"), ""]
    return "\n".join(lines)


def latex(document: Document) -> str:
    """Tables with booktabs and the pictures beside it, in a document that compiles as it stands."""
    floats = [_latex_table(document, part) for table in tables(document) for part in _parts(table)]
    floats += [_latex_picture(document, picture) for picture in [*forest(document), *curves(document)]]
    parts = [
        "\\documentclass{article}",
        "\\usepackage[T1]{fontenc}",
        "\\IfFileExists{lmodern.sty}{\\usepackage{lmodern}}{}",
        "\\usepackage[a4paper,landscape,margin=1.5cm]{geometry}",
        "\\usepackage{booktabs,graphicx}",
        "\\begin{document}",
        *_latex_words(document),
        "\n\n".join(floats),
        "\\end{document}",
        "",
    ]
    return "\n".join(parts)


def comma_separated(table: Table) -> str:
    """One table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return text.getvalue()


def _exploratory(reason: str | None) -> str:
    return "" if reason is None else f" *Exploratory: {reason}.*"


def _signatures(document: Document, quote: str) -> list[str]:
    return [f"- {name}: {quote}{signature}{quote}" for name, signature in document.signatures.items()]


def _markdown_picture(picture: Picture) -> list[str]:
    return [f"![{picture.title}]({picture.key}.png)", "", picture.caption, ""]


def _markdown_table(table: Table) -> list[str]:
    marks = ["---" if number < table.left else "---:" for number in range(len(table.columns))]
    rows = [table.columns, marks, *table.rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return [*lines, *(["", *table.notes] if table.notes else [])]


@cache
def _escaped(text: str) -> str:
    """For any LaTeX, whatever characters people write."""
    escaped: str = _encoder().unicode_to_latex(text)
    return escaped


@cache
def _encoder() -> Any:
    from pylatexenc.latexencode import UnicodeToLatexEncoder

    return UnicodeToLatexEncoder(unknown_char_policy="replace", unknown_char_warning=False)


def _latex_table(document: Document, table: Table) -> str:
    columns = "l" * table.left + "r" * (len(table.columns) - table.left)
    caption = [f"{document.name}: {table.title.lower()}.", *table.notes]
    if table.key == "arms":
        caption += [f"{name}: {signature}." for name, signature in document.signatures.items()]
    if table.key == "claims" or (not document.claims and table.key == "arms"):
        caption += document.methods
    return "\n".join(
        [
            "\\begin{table}",
            "\\centering",
            "\\resizebox{\\textwidth}{!}{%",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            _latex_row(table.columns),
            "\\midrule",
            *(_latex_row(row) for row in table.rows),
            "\\bottomrule",
            "\\end{tabular}}",
            f"\\caption{{{_escaped(' '.join(caption))}}}",
            f"\\label{{tab:{_label(document.name)}-{table.key}}}",
            "\\end{table}",
        ]
    )


def _latex_words(document: Document) -> list[str]:
    """What Markdown says above its tables."""
    said = [document.question, f"Source: {document.source}" if document.source else "", *document.notes]
    claims = [
        claim.words + (f" Exploratory: {claim.exploratory}." if claim.exploratory else "") for claim in document.claims
    ]
    items = ["\\begin{itemize}", *(f"\\item {_escaped(words)}" for words in claims), "\\end{itemize}"]
    paragraphs = [f"{_escaped(words)}\n" for words in said if words]
    return [f"\\section*{{{_escaped(document.name)}}}", *paragraphs, *(items if claims else [])]


LONGEST = 30
"""Rows of a LaTeX table: what does not fit onto its page is lost."""


def _parts(table: Table) -> Iterator[Table]:
    for begun in range(0, len(table.rows), LONGEST):
        more = "" if not begun else f", from row {begun + 1}"
        rows, notes = table.rows[begun : begun + LONGEST], [] if begun else table.notes
        key = table.key + (f"-{begun + 1}" if begun else "")
        yield replace(table, key=key, title=f"{table.title}{more}", rows=rows, notes=notes)


def _latex_picture(document: Document, picture: Picture) -> str:
    caption = f"{document.name}: {picture.title}. {picture.caption}"
    return "\n".join(
        [
            "\\begin{figure}",
            "\\centering",
            f"\\includegraphics[width=16cm,height=0.8\\textheight,keepaspectratio]{{{picture.key}.pdf}}",
            f"\\caption{{{_escaped(caption)}}}",
            f"\\label{{fig:{_label(document.name)}-{_label(picture.key)}}}",
            "\\end{figure}",
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(_escaped(cell) for cell in cells) + " \\\\"


def _label(name: str) -> str:
    return "".join(character if character.isalnum() else "-" for character in name)
