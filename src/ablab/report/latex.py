"""The report for a paper: tables and pictures in LaTeX."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ablab.report.document import Document
from ablab.report.pictures import Picture, curves, differences
from ablab.report.tables import Table, tables


def latex(document: Document) -> str:
    """Return a LaTeX document that compiles as it stands, with booktabs tables and the pictures in its folder."""
    floats = [_table(document, part) for table in tables(document) for part in _parts(table)]
    floats += [_picture(document, picture) for picture in [*differences(document), *curves(document)]]
    parts = [
        "\\documentclass{article}",
        "\\usepackage[T1]{fontenc}",
        "\\IfFileExists{lmodern.sty}{\\usepackage{lmodern}}{}",
        "\\usepackage[a4paper,landscape,margin=1.5cm]{geometry}",
        "\\usepackage{amssymb,array,booktabs,graphicx}",
        "\\begin{document}",
        *_words(document),
        "\\clearpage",
        "\n\n".join(floats),
        "\\end{document}",
        "",
    ]
    return "\n".join(parts)


def _words(document: Document) -> list[str]:
    """Return the text that Markdown has above its tables."""
    texts = [document.question, f"Source: {document.source}" if document.source else "", *document.notes]
    claims = [
        claim.words + (f" Exploratory: {claim.exploratory}." if claim.exploratory else "") for claim in document.claims
    ]
    items = ["\\begin{itemize}", *(f"\\item {{}}{_escaped(words)}" for words in claims), "\\end{itemize}"]
    paragraphs = [f"{_escaped(words)}\n" for words in texts if words]
    return [f"\\section*{{{_escaped(document.name)}}}", *paragraphs, *(items if claims else [])]


LONGEST = 30
"""Maximum rows of a LaTeX table; longer ones would run off the page."""


def _parts(table: Table) -> Iterator[Table]:
    for begun in range(0, len(table.rows), LONGEST):
        more = "" if not begun else f", from row {begun + 1}"
        key = table.key + (f"-{begun + 1}" if begun else "")
        yield replace(table, key=key, title=f"{table.title}{more}", rows=table.rows[begun : begun + LONGEST])


BROKEN = {"claim": 60, "notes": 45, "published": 45}
"""Columns that hold sentences, and their widths in mm: on one line they would make the rest too small to read."""


def _column(table: Table, number: int) -> str:
    if width := BROKEN.get(table.columns[number]):
        return f">{{\\raggedright\\arraybackslash}}p{{{width}mm}}"
    return "l" if number < table.left else "r"


def _table(document: Document, table: Table) -> str:
    columns = "".join(_column(table, number) for number in range(len(table.columns)))
    caption = [f"{document.name}: {table.title.lower()}."]
    if table.key == "arms":
        caption += [f"{name}: {signature}." for name, signature in document.signatures.items()]
    if table.key == "claims" or (not document.claims and table.key == "arms"):
        caption += [*document.methods, *(f"{words}." for words in document.custody)]
    return "\n".join(
        [
            "\\begin{table}",
            "\\centering",
            "\\resizebox{\\textwidth}{!}{%",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            _row(table.columns),
            "\\midrule",
            *(_row(row) for row in table.rows),
            "\\bottomrule",
            "\\end{tabular}}",
            f"\\caption{{{_escaped(' '.join(caption))}}}",
            f"\\label{{tab:{_label(document.name)}-{table.key}}}",
            "\\end{table}",
        ]
    )


def _picture(document: Document, picture: Picture) -> str:
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


def _row(cells: Sequence[str]) -> str:
    # {}: otherwise [ or * at the start of a row would be read as an option of the \\ that ends the row above.
    return "{}" + " & ".join(_escaped(cell) for cell in cells) + " \\\\"


def _label(name: str) -> str:
    return "".join(character if character.isalnum() else "-" for character in name)


@cache
def _escaped(text: str) -> str:
    """Escape any text for any LaTeX engine.

    Letters that the usual fonts lack become their code points, so that the document compiles and names stay distinct.
    """
    printable = "".join(f"(U+{ord(one):04X})" if _is_foreign(one) else one for one in text)
    escaped: str = _encoder().unicode_to_latex(printable)
    return escaped


def _is_foreign(character: str) -> bool:
    """Return whether the character is a letter neither Latin nor Greek, which the usual fonts lack."""
    return character.isalpha() and not unicodedata.name(character, "").startswith(("LATIN", "GREEK", "MICRO"))


@cache
def _encoder() -> Any:
    from pylatexenc.latexencode import UnicodeToLatexEncoder

    return UnicodeToLatexEncoder(unknown_char_policy="replace", unknown_char_warning=False)
