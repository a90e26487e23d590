"""The report for a paper, in LaTeX: a table, a figure and methods for one column, and everything on wide pages."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

from ablab.errors import is_installed
from ablab.judge.document import Document
from ablab.judge.lines import ArmLine, ClaimLine, DifferenceLine, interval_text
from ablab.report.claim_words import answers, exploratory_words
from ablab.report.columns import ReportTable
from ablab.report.forest import MARKS, column_panels, fitting
from ablab.report.pictures import DRAWS, Picture, curves, differences
from ablab.report.plain_words import plain_words, spoken
from ablab.report.tables import arms_by_effect, levels, tables
from ablab.text import how_many, number, signed


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
    about = [document.question, f"Source: {document.source}" if document.source else ""]
    texts = [*about, *document.notes, answers(document.claims) if document.claims else ""]
    items = [
        breakable(answers(document.claims)),
        "\\begin{itemize}\\sloppy",
        *(_item(document, claim) for claim in document.claims),
        "\\end{itemize}",
    ]
    paragraphs = [f"{breakable(words)}\n" for words in texts if words]
    title = f"\\section*{{\\raggedright {breakable(document.name)}}}"
    return [title, "\\begin{sloppypar}", *paragraphs, "\\end{sloppypar}", *(items if document.claims else [])]


def _item(document: Document, claim: ClaimLine) -> str:
    said = breakable(plain_words(claim, document.metric))
    return f"\\item {{}}\\textbf{{{said}}} {breakable(claim.judged + exploratory_words(claim))}"


LONGEST, WIDEST = 30, 703
"""Maximum rows of a LaTeX table, and its width in points: longer and wider ones would run off the page."""


def _parts(table: ReportTable) -> Iterator[ReportTable]:
    for columns in _that_fit(table):
        is_first = columns[:2] in ([0], [0, 1])
        for begun in range(0, len(table.rows), LONGEST):
            more = ["", *([] if is_first else ["continued"]), *([f"from row {begun + 1}"] if begun else [])]
            numbers = [*([] if is_first else [f"column-{columns[1] + 1}"]), *([str(begun + 1)] if begun else [])]
            yield replace(
                table,
                key="-".join([table.key, *numbers]),
                title=table.title + ", ".join(more),
                columns=[table.columns[place] for place in columns],
                rows=[[row[place] for place in columns] for row in table.rows[begun : begun + LONGEST]],
                left=sum(place < table.left for place in columns),
            )


def _that_fit(table: ReportTable) -> list[list[int]]:
    """Return the columns of each part of a table: the first, and as many of the others as a page has room for."""
    widths = [
        BROKEN[name] * 2.845 if name in BROKEN else LETTER * max(map(len, (name, *(row[place] for row in table.rows))))
        for place, name in enumerate(table.columns)
    ]
    parts, left = [[0]], WIDEST - widths[0] - BESIDE
    for place in range(1, len(widths)):
        if widths[place] + BESIDE > left and len(parts[-1]) > 1:
            parts.append([0])
            left = WIDEST - widths[0] - BESIDE
        parts[-1].append(place)
        left -= widths[place] + BESIDE
    return parts


LETTER, BESIDE = 3.9, 12
"""Points: of a letter in footnotesize on average, and between two columns."""

BROKEN = {"claim": 60, "notes": 45, "published": 45}
"""Columns that hold sentences, and their widths in mm: on one line they would leave no room for the rest."""


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
    content = [
        "\\centering\\footnotesize",
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        _row(map(escaped, table.columns)),
        "\\midrule",
        *(_row(map(escaped, row)) for row in table.rows),
        "\\bottomrule",
        "\\end{tabular}}",
    ]
    return _float("table", content, escaped(" ".join(caption)), f"{label(document.name)}-{table.key}")


def _picture(document: Document, picture: Picture) -> str:
    caption = f"{document.name}: {picture.title}. {picture.caption}"
    content = ["\\centering", f"\\includegraphics[width=16cm,height=11cm,keepaspectratio]{{{picture.key}.pdf}}"]
    return _float("figure", content, escaped(caption), f"{label(document.name)}-{label(picture.key)}")


def _float(kind: str, content: Sequence[str], caption: str, name: str, place: str = "") -> str:
    """Return a table or figure; its label begins with `tab:` or `fig:`."""
    ends = f"\\caption{{{caption}}}", f"\\label{{{kind[:3]}:{name}}}", f"\\end{{{kind}}}"
    return "\n".join([f"\\begin{{{kind}}}{place}", *content, *ends])


def _row(cells: Iterable[str]) -> str:
    # {}: otherwise [ or * at the start of a row would be read as an option of the \\ that ends the row above.
    return "{}" + " & ".join(cells) + " \\\\"


COLUMN = 219
"""Points: the width of a column of ACL's style, 7.7 cm."""

DIGIT, APART, NAME = 5.0, 6, 58
"""Points: of a figure in footnotesize, between two columns of a table, and the least that names of arms need."""

MOST_ARMS = 45
"""Rows of a table that fits on a page."""


def column_files(document: Document) -> dict[str, str]:
    """Return the files to include in a paper, by name; none that would be empty."""
    files = {
        "column_table.tex": column_table(document),
        "column_figure.tex": column_figure(document),
        "column_methods.tex": column_methods(document),
    }
    return {name: text for name, text in files.items() if text}


def column_table(document: Document) -> str:
    """Return arms by effect: mean and standard deviation over seeds, and the paired difference from the baseline."""
    arms = arms_by_effect(document)
    differences = {line.arm: line for line in document.differences}
    rows = [_cells(document, arm, differences.get(arm.name)) for arm in arms[:MOST_ARMS]]
    columns, size = _fitting(rows, counts={arm.finished for arm in arms})
    found = levels(document.differences)
    interval = f"{found[0]}\\,\\% interval" if len(found) == 1 else "interval"
    head = {"mean": "mean", "sd": "sd", "n": "$n$", "difference": "$\\Delta$", "interval": interval}
    alignment = "".join("l" if column == "interval" else "r" for column in columns)
    content = [
        f"\\centering\\{size}\\setlength{{\\tabcolsep}}{{3pt}}",
        f"\\begin{{tabularx}}{{\\columnwidth}}{{@{{}}>{{\\raggedright\\arraybackslash\\hangindent=0.8em}}X{alignment}@{{}}}}",
        "\\toprule",
        _row(["arm", *(head[column] for column in columns)]),
        "\\midrule",
        *(_line(arm, row, columns) for arm, row in zip(arms, rows, strict=False)),
        "\\bottomrule",
        "\\end{tabularx}",
    ]
    return _float("table", content, _caption(document, columns, arms), label(document.name), "[t]") + "\n"


def column_figure(document: Document) -> str:
    """Return the figure of `column_figure.pdf`; empty where there is nothing to draw."""
    panels = column_panels(document)
    if not panels or not is_installed(DRAWS):
        return ""
    shown = fitting(panels)
    rows, every = (sum(map(len, each.values())) for each in (shown, panels))
    marks = [words for words, is_drawn in MARKS if any(map(is_drawn, chain(*shown.values())))]
    first = f" The first {rows} of {every}." if every > rows else ""
    caption = f"Differences in {', in '.join(shown)}: {'; '.join(marks)}.{first}{_notes(document)}"
    content = ["\\centering", "\\includegraphics[width=\\columnwidth]{column_figure.pdf}"]
    return _float("figure", content, breakable(caption), label(document.name), "[t]") + "\n"


def column_methods(document: Document) -> str:
    """Return a paragraph on the statistics, with the signatures of the scores and the stamp of the register."""
    signatures = [f"The signature of {name} is {signature}." for name, signature in document.signatures.items()]
    stamps = [f"The stamp of these results is {words}." for words in document.custody]
    sentences = map(breakable, [*document.methods, *signatures, *stamps, _notes(document).strip()])
    return "\n".join(["\\paragraph{Statistics.}\\begin{sloppypar}", *sentences, "\\end{sloppypar}", ""])


def _cells(document: Document, arm: ArmLine, line: DifferenceLine | None) -> dict[str, str]:
    digits = document.digits
    return {
        "mean": number(arm.mean, digits),
        "sd": number(arm.sd, digits),
        "n": str(arm.finished),
        "difference": "" if line is None else signed(line.difference, digits),
        "interval": "" if line is None else interval_text(line.interval, digits),
    }


def _fitting(rows: Sequence[dict[str, str]], counts: set[int]) -> tuple[list[str], str]:
    """Return the columns and the size of letters that fit: no deviation, then small letters, where figures are long.

    The number of seeds stands where arms have different ones.
    """
    every = ["mean", "sd", *(["n"] if len(counts) > 1 else []), "difference", "interval"]
    every = [column for column in every if any(row[column] for row in rows)]
    fewer = [column for column in every if column != "sd"]
    for columns in (every, fewer):
        wide = sum(DIGIT * max(len(row[column]) for row in rows) + APART for column in columns)
        if COLUMN - wide >= NAME:
            return columns, "footnotesize"
    return fewer, "scriptsize"


def _line(arm: ArmLine, row: dict[str, str], columns: Sequence[str]) -> str:
    name = breakable(spoken(arm.name))
    if arm.mean is None:
        said = "no score" if arm.finished else "no finished run"
        if arm.diverged:
            said = f"{arm.diverged} of {arm.planned} runs diverged"
        return _row([name, f"\\multicolumn{{{len(columns)}}}{{l@{{}}}}{{{said}}}"])
    return _row([name, *(escaped(row[column]) for column in columns)])


def _caption(document: Document, columns: Sequence[str], arms: Sequence[ArmLine]) -> str:
    where = "" if document.test_set is None else f" on {document.test_set} ({document.size})"
    counts = {arm.finished for arm in arms}
    seeds = how_many(max(counts), "seed") if len(counts) == 1 else "n seeds"
    over = "mean and standard deviation" if "sd" in columns else "mean"
    said = [f"{document.title[:1].upper()}{document.title[1:]}{where}: {over} over {seeds}."]
    text = breakable(said[0])
    if "difference" in columns:
        baseline = document.baselines if document.within else spoken(document.baseline)
        interval = f", with {breakable(_intervals(document))}" if "interval" in columns else ""
        shared = {line.n for line in document.differences if line.difference is not None} == counts
        paired = "paired by seed" if shared else "paired by seed, over those that both have"
        text += f" $\\Delta$: difference from {breakable(baseline)}, {paired}{interval}."
    text += f" The first {MOST_ARMS} of {len(arms)} arms." if len(arms) > MOST_ARMS else ""
    return text + breakable(_notes(document))


def _intervals(document: Document) -> str:
    """Return which intervals the differences have, `the interval of its claim (97.5 to 98.75 %)`."""
    lines = [(line.interval, line) for line in document.differences if line.interval]
    plain = dict.fromkeys((line.test or "paired t").partition(",")[0] for _, line in lines if line.claim is None)
    levels = sorted({interval.level for interval, line in lines if line.claim is not None})
    alone = [f"an uncorrected 95 % interval ({' and '.join(plain)})"] if plain else []
    found = dict.fromkeys(f"{100 * level:.4g}" for level in (*levels[:1], *levels[-1:]))
    return ", or else ".join([*([f"the interval of its claim ({' to '.join(found)} %)"] if found else []), *alone])


def _notes(document: Document) -> str:
    """Return what must stand beside the figures, with the space before it."""
    return f" Note: {'; '.join(document.notes)}." if document.notes else ""


LONG = 12
"""Characters of a word that fit any column; longer ones may break after punctuation."""


@cache
def escaped(text: str) -> str:
    """Escape any text for any LaTeX engine; a hyphen before a number becomes a minus sign.

    Letters that the usual fonts lack become their code points, so that the document compiles and names stay distinct.
    """
    printable = "".join(f"(U+{ord(one):04X})" if _is_foreign(one) else one for one in text)
    found: str = _encoder().unicode_to_latex(printable)
    return re.sub(r"(?<![\w.\-)\]}])-(?=\d)", "$-$", found)


def breakable(text: str) -> str:
    """Escape, and allow a line to break within long words, which would stick out of a narrow column."""
    words = [re.sub(r"([|:=,_/]|[.-](?!\d))(?=[\w.+-])", "\\1\0", w) if len(w) > LONG else w for w in text.split(" ")]
    return "\\allowbreak{}".join(escaped(part) for part in " ".join(words).split("\0"))


def label(name: str) -> str:
    """Return a name with which LaTeX can refer to a float."""
    return "".join(character if character.isalnum() else "-" for character in name)


def _is_foreign(character: str) -> bool:
    """Return whether the character is a letter neither Latin nor Greek, which the usual fonts lack."""
    return character.isalpha() and not unicodedata.name(character, "").startswith(("LATIN", "GREEK", "MICRO"))


@cache
def _encoder() -> Any:
    from pylatexenc.latexencode import UnicodeToLatexEncoder

    return UnicodeToLatexEncoder(unknown_char_policy="replace", unknown_char_warning=False)
