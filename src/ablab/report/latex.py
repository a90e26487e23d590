"""The report for a paper: tables and pictures in LaTeX."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ablab.judge.document import ClaimLine, Document
from ablab.report.column import column_figure, column_methods, column_table
from ablab.report.pictures import Picture, curves, differences
from ablab.report.plain_words import plain_words
from ablab.report.tables import ReportTable, tables
from ablab.report.tex import breakable, escaped, label


def latex(document: Document) -> str:
    """Return a LaTeX document that compiles as it stands, with booktabs tables and the pictures in its folder.

    It begins with the table and figure for one column of a paper; all tables and pictures follow on wide pages.
    """
    wide = [_table(document, part) for table in tables(document) for part in _parts(table)]
    wide += [_picture(document, picture) for picture in [*differences(document), *curves(document)]]
    parts = [
        "\\documentclass[a4paper,twocolumn]{article}",
        "\\usepackage[T1]{fontenc}",
        "\\IfFileExists{lmodern.sty}{\\usepackage{lmodern}}{}",
        "\\usepackage[margin=2.5cm,columnsep=0.6cm]{geometry}",
        "\\usepackage{amssymb,array,booktabs,graphicx,tabularx}",
        "\\IfFileExists{pdflscape.sty}{\\usepackage{pdflscape}}{\\usepackage{lscape}}",
        "\\begin{document}",
        *_words(document),
        column_table(document),
        column_figure(document),
        column_methods(document),
        "\\clearpage\\onecolumn",
        "\\begin{landscape}",
        "\n\n".join(wide),
        "\\clearpage",
        "\\end{landscape}",
        "\\end{document}",
        "",
    ]
    return "\n".join(parts)


def _words(document: Document) -> list[str]:
    """Return the text that Markdown has above its tables."""
    texts = [document.question, f"Source: {document.source}" if document.source else "", *document.notes]
    items = ["\\begin{itemize}\\sloppy", *(_item(document, claim) for claim in document.claims), "\\end{itemize}"]
    paragraphs = [f"{breakable(words)}\n" for words in texts if words]
    title = f"\\section*{{\\raggedright {breakable(document.name)}}}"
    return [title, "\\begin{sloppypar}", *paragraphs, "\\end{sloppypar}", *(items if document.claims else [])]


def _item(document: Document, claim: ClaimLine) -> str:
    exploratory = f" Exploratory: {claim.exploratory}." if claim.exploratory else ""
    said = breakable(plain_words(claim, document.metric))
    return f"\\item {{}}\\textbf{{{said}}} {breakable(claim.judged + exploratory)}"


LONGEST = 30
"""Maximum rows of a LaTeX table; longer ones would run off the page."""


def _parts(table: ReportTable) -> Iterator[ReportTable]:
    for begun in range(0, len(table.rows), LONGEST):
        more = "" if not begun else f", from row {begun + 1}"
        key = table.key + (f"-{begun + 1}" if begun else "")
        yield replace(table, key=key, title=f"{table.title}{more}", rows=table.rows[begun : begun + LONGEST])


BROKEN = {"claim": 60, "notes": 45, "published": 45}
"""Columns that hold sentences, and their widths in mm: on one line they would make the rest too small to read."""


def _column(table: ReportTable, number: int) -> str:
    if width := BROKEN.get(table.columns[number]):
        return f">{{\\raggedright\\arraybackslash}}p{{{width}mm}}"
    return "l" if number < table.left else "r"


def _table(document: Document, table: ReportTable) -> str:
    columns = "".join(_column(table, number) for number in range(len(table.columns)))
    caption = [f"{document.name}: {table.title.lower()}."]
    if table.key == "arms":
        caption += [f"{name}: {signature}." for name, signature in document.signatures.items()]
    if table.key == "claims" or (not document.claims and table.key == "arms"):
        caption += [f"{words}." for words in document.custody]
    return "\n".join(
        [
            "\\begin{table}",
            "\\centering",
            "\\resizebox{\\linewidth}{!}{%",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            _row(table.columns),
            "\\midrule",
            *(_row(row) for row in table.rows),
            "\\bottomrule",
            "\\end{tabular}}",
            f"\\caption{{{escaped(' '.join(caption))}}}",
            f"\\label{{tab:{label(document.name)}-{table.key}}}",
            "\\end{table}",
        ]
    )


def _picture(document: Document, picture: Picture) -> str:
    caption = f"{document.name}: {picture.title}. {picture.caption}"
    return "\n".join(
        [
            "\\begin{figure}",
            "\\centering",
            f"\\includegraphics[width=16cm,height=11cm,keepaspectratio]{{{picture.key}.pdf}}",
            f"\\caption{{{escaped(caption)}}}",
            f"\\label{{fig:{label(document.name)}-{label(picture.key)}}}",
            "\\end{figure}",
        ]
    )


def _row(cells: Sequence[str]) -> str:
    # {}: otherwise [ or * at the start of a row would be read as an option of the \\ that ends the row above.
    return "{}" + " & ".join(escaped(cell) for cell in cells) + " \\\\"
