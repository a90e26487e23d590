"""The report for a paper, in LaTeX: a table, a figure and methods for one column, and everything on wide pages."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ablab.errors import is_installed
from ablab.judge.document import Document
from ablab.judge.lines import ArmLine, ClaimLine, DifferenceLine, digits_shown, interval_text
from ablab.report.claim_words import answers, exploratory_words
from ablab.report.columns import ReportTable
from ablab.report.forest import MARKS, column_panels
from ablab.report.pictures import DRAWS, Picture, curves, differences
from ablab.report.plain_words import plain_words
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


PAGE, PAGE_LINES = 703, 30
"""Points: the width of a wide page; and the lines of a table that leave space for its caption."""

SIZES = (("footnotesize", 4.4), ("scriptsize", 3.9))
"""Sizes of letters, 8 and 7 points, and how wide one is."""

WHOLE, MOST_BROKEN = 15, 9
"""Characters of cells that stay on one line; and the most lines that longer ones are given."""


def _parts(table: ReportTable) -> Iterator[ReportTable]:
    """Split a table that would run off the page."""
    _, widths = _widths(table)
    begun, filled = 0, 0
    for end, row in enumerate([*table.rows, None]):
        lines = 0 if row is None else max(-(-len(cell) // width) for cell, width in zip(row, widths, strict=True)) or 1
        if row is None or (filled + lines > PAGE_LINES and end > begun):
            more = "" if not begun else f", from row {begun + 1}"
            key = table.key + (f"-{begun + 1}" if begun else "")
            yield replace(table, key=key, title=f"{table.title}{more}", rows=table.rows[begun:end])
            begun, filled = end, 0
        filled += lines


def _widths(table: ReportTable) -> tuple[str, list[int]]:
    """Return the size of letters, and of each column the width in letters with which long cells need fewest lines."""
    columns = list(zip(table.columns, *table.rows, strict=True))
    for size, letter in SIZES:
        for lines in range(1, MOST_BROKEN + 1):
            widths = [_width(cells, lines) for cells in columns]
            if letter * sum(widths) + APART * len(widths) <= PAGE:
                return size, widths
    return size, widths


def _width(cells: Sequence[str], lines: int) -> int:
    longest = max(map(len, cells))
    pieces = (piece for cell in cells for piece in re.split(rf" (?!{END})|\0", _broken(cell)))
    return max(longest if longest <= WHOLE else max(map(len, pieces)), -(-longest // lines))


END = r"[^\s\[]+\]"
"""The end of an interval, which stays on one line with its begin."""


def _column(table: ReportTable, number: int, width: int, letter: float) -> str:
    is_left = number < table.left
    if max(len(table.columns[number]), *(len(row[number]) for row in table.rows)) <= width:
        return "l" if is_left else "r"
    return f">{{\\ragged{'right' if is_left else 'left'}\\arraybackslash}}p{{{letter * width:.0f}pt}}"


def _table(document: Document, table: ReportTable) -> str:
    size, widths = _widths(table)
    columns = "".join(_column(table, number, width, dict(SIZES)[size]) for number, width in enumerate(widths))
    caption = [f"{document.name}: {table.title[:1].lower()}{table.title[1:]}."]
    if table.key == "arms":
        caption += [f"{name}: {signature}." for name, signature in document.signatures.items()]
    if table.key == "claims" or (not document.claims and table.key == "arms"):
        caption += [f"{words}." for words in document.custody]
    content = [
        f"\\centering\\{size}\\setlength{{\\tabcolsep}}{{{APART / 2:g}pt}}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        _row(map(breakable, table.columns)),
        "\\midrule",
        *(re.sub(rf" (?={END})", "~", _row(map(breakable, row))) for row in table.rows),
        "\\bottomrule",
        "\\end{tabular}",
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
    columns, size = _fitting(rows, counts={arm.counted for arm in arms})
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
    rows = [row for panel in panels.values() for row in panel]
    if not rows or not is_installed(DRAWS):
        return ""
    marks = [words for words, is_drawn in MARKS if any(map(is_drawn, rows))]
    every = len(document.claims or document.differences)
    some = f" {len(rows)} of {how_many(every, 'claim' if document.claims else 'difference')}." * (len(rows) < every)
    caption = f"Differences in {' and in '.join(panels)}: {'; '.join(marks)}.{some}{_notes(document)}"
    content = ["\\centering", "\\includegraphics[width=\\columnwidth]{column_figure.pdf}"]
    return _float("figure", content, breakable(caption), label(document.name), "[t]") + "\n"


def column_methods(document: Document) -> str:
    """Return a paragraph on the statistics, with the signatures of the scores and the stamp of the register."""
    signatures = [f"The signature of {name} is {signature}." for name, signature in document.signatures.items()]
    custody = [f"Custody of the results: {words}." for words in document.custody]
    sentences = map(breakable, [*document.methods, *signatures, *custody, _notes(document).strip()])
    return "\n".join(["\\paragraph{Statistics.}\\begin{sloppypar}", *sentences, "\\end{sloppypar}", ""])


def _cells(document: Document, arm: ArmLine, line: DifferenceLine | None) -> dict[str, str]:
    digits = document.digits
    of_difference = digits if line is None else digits_shown(line.difference, line.interval, digits)
    return {
        "mean": number(arm.mean, digits),
        "sd": number(arm.sd, digits),
        "n": str(arm.counted),
        "difference": "" if line is None else signed(line.difference, of_difference),
        "interval": "" if line is None else interval_text(line.interval, of_difference),
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
    name = breakable(arm.name)
    if arm.mean is None:
        said = "no score" if arm.finished else "no finished run"
        if arm.diverged:
            said = f"{arm.diverged} of {arm.planned} runs diverged"
        return _row([name, f"\\multicolumn{{{len(columns)}}}{{l@{{}}}}{{{said}}}"])
    return _row([name, *(escaped(row[column]) for column in columns)])


def _caption(document: Document, columns: Sequence[str], arms: Sequence[ArmLine]) -> str:
    where = "" if document.test_set is None else f" on {document.test_set} ({document.size})"
    counts = {arm.counted for arm in arms}
    seeds = how_many(max(counts), "seed") if len(counts) == 1 else "n seeds"
    over = "mean and standard deviation" if "sd" in columns else "mean"
    text = breakable(f"{document.title[:1].upper()}{document.title[1:]}{where}: {over} over {seeds}.")
    if "difference" in columns:
        baseline = document.baselines if document.within else document.baseline
        interval = f", with {breakable(_intervals(document))}" if "interval" in columns else ""
        shared = {line.n for line in document.differences if line.difference is not None} == counts
        over = "" if shared else " over the seeds that both have"
        text += f" $\\Delta$: difference from {breakable(baseline)}{over}{interval}."
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


WITHOUT_COMMAND = frozenset("\u1fd3ŉƕƞəɛɸʔʞΐϒ҂҈҉ΐ‑⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞↜↝⇅⇵∟∬∭∯∰∱∻∾≆≋≌≙≛≸≹⊧⊨⊫⊶⊷⊹⊾⋘⋙⋨⋰⌆⌕♩♭♮♯⨏⨖")
"""Characters whose command no package of the preamble has, or that are mathematics without saying so: the test compiles
all others."""

PLAIN = {"\N{NON-BREAKING HYPHEN}": "-", "\N{HYPHEN}": "-", "\N{FRACTION SLASH}": "/"}
"""Signs of writing that have a plain form, as have fractions such as a third."""


@cache
def escaped(text: str) -> str:
    """Escape any text for any LaTeX engine; a hyphen before a number becomes a minus sign.

    Letters that the usual fonts lack, and signs without a command, become their code points, so that the document
    compiles and names stay distinct.
    """
    plain = "".join(map(_plain, text))
    printable = "".join(_code_point(one) if _is_foreign(one) else one for one in plain)
    found: str = _encoder().unicode_to_latex(printable)
    signed = re.sub(r"(?<![\w.\-)\]}])-(?=\d)", "$-$", found)
    return re.sub("-(?=-)", "-{}", signed)  # two are no dash


def _plain(character: str) -> str:
    """Return a fraction as `1/3`, other hyphens as the usual one, and any other character as it is."""
    is_fraction = "VULGAR FRACTION" in unicodedata.name(character, "")
    spelt = unicodedata.normalize("NFKC", character) if is_fraction else character
    return "".join(PLAIN.get(each, each) for each in spelt)


def _code_point(character: str) -> str:
    return f"(U+{ord(character):04X})"


def breakable(text: str) -> str:
    """Escape, and allow a line to break within long words, which would stick out of a narrow column."""
    return "\\allowbreak{}".join(map(escaped, _broken(text).split("\0")))


def _broken(text: str) -> str:
    """Return the text with zero bytes where its long words may break."""
    words = [re.sub(r"([|:=,_/]|[.-](?!\d))(?=[\w.+-])", "\\1\0", w) if len(w) > LONG else w for w in text.split(" ")]
    return " ".join(words)


def label(name: str) -> str:
    """Return a name with which LaTeX can refer to a float."""
    return "".join(character if character.isalnum() else "-" for character in name)


def _is_foreign(character: str) -> bool:
    """Return whether the usual fonts lack the character: a letter neither Latin nor Greek, or one without a command."""
    if character in WITHOUT_COMMAND:
        return True
    return character.isalpha() and not unicodedata.name(character, "").startswith(("LATIN", "GREEK", "MICRO"))


@cache
def _encoder() -> Any:
    from pylatexenc.latexencode import UnicodeToLatexEncoder

    return UnicodeToLatexEncoder(unknown_char_policy=_code_point, unknown_char_warning=False)
