"""The report for files that other programs read: Markdown, LaTeX, CSV."""

import csv
import io
from collections.abc import Sequence

from ablab.report.document import Document
from ablab.report.printed import Picture, curves, forest
from ablab.report.tables import Table, tables


def markdown(document: Document) -> str:
    """For a pull request or a wiki."""
    lines = [f"# {document.name}", "", document.question, ""]
    lines += [f"Source: {document.source}", ""] if document.source else []
    lines += [f"> {note}" for note in document.notes] + ([""] if document.notes else [])
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
    floats = [_latex_table(document, table) for table in tables(document)]
    floats += [_latex_picture(document, picture) for picture in [*forest(document), *curves(document)]]
    parts = [
        "\\documentclass{article}",
        "\\usepackage[T1]{fontenc}",
        "\\usepackage[a4paper,landscape,margin=1.5cm]{geometry}",
        "\\usepackage{booktabs,graphicx}",
        "\\begin{document}",
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


SPECIAL = {
    "\\": "\\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
}


def _escaped(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in text)


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
