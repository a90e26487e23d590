"""A table, a figure and a paragraph of methods in LaTeX, for one column of a two-column paper."""

from collections.abc import Sequence

from ablab.judge.document import ArmLine, DifferenceLine, Document
from ablab.judge.format import interval_text, number, signed
from ablab.report.forest import COLUMN_ROWS, MARKS, column_rows
from ablab.report.order import arms_by_effect
from ablab.report.spoken import spoken
from ablab.report.tex import breakable, escaped, label
from ablab.text import how_many

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
    head = {"mean": "mean", "sd": "sd", "n": "$n$", "difference": "$\\Delta$", "interval": "95\\,\\% interval"}
    alignment = "".join("l" if column == "interval" else "r" for column in columns)
    return "\n".join(
        [
            "\\begin{table}[t]",
            f"\\centering\\{size}\\setlength{{\\tabcolsep}}{{3pt}}",
            f"\\begin{{tabularx}}{{\\columnwidth}}{{@{{}}>{{\\raggedright\\arraybackslash\\hangindent=0.8em}}X{alignment}@{{}}}}",
            "\\toprule",
            _row(["arm", *(head[column] for column in columns)]),
            "\\midrule",
            *(_line(arm, row, columns) for arm, row in zip(arms, rows, strict=False)),
            "\\bottomrule",
            "\\end{tabularx}",
            f"\\caption{{{_caption(document, columns, arms)}}}",
            f"\\label{{tab:{label(document.name)}}}",
            "\\end{table}",
            "",
        ]
    )


def column_figure(document: Document) -> str:
    """Return the figure of `column_figure.pdf`; empty where there is nothing to draw."""
    about, rows = column_rows(document)
    if not rows:
        return ""
    marks = [words for words, is_drawn in MARKS if any(map(is_drawn, rows))]
    first = f" The first {COLUMN_ROWS} of {len(rows)}." if len(rows) > COLUMN_ROWS else ""
    caption = f"Differences in {about}: {'; '.join(marks)}.{first}"
    return "\n".join(
        [
            "\\begin{figure}[t]",
            "\\centering",
            "\\includegraphics[width=\\columnwidth]{column_figure.pdf}",
            f"\\caption{{{breakable(caption)}}}",
            f"\\label{{fig:{label(document.name)}}}",
            "\\end{figure}",
            "",
        ]
    )


def column_methods(document: Document) -> str:
    """Return a paragraph on the statistics, with the signatures of the scores and the stamp of the register."""
    signatures = [f"{name}: {signature}." for name, signature in document.signatures.items()]
    sentences = [
        *map(breakable, [*document.methods, *signatures]),
        *(f"{escaped(words)}." for words in document.custody),
    ]
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


def _row(cells: Sequence[str]) -> str:
    # {}: otherwise [ at the start of a row would be read as an option of the \\ that ends the row above.
    return "{}" + " & ".join(cells) + " \\\\"


def _caption(document: Document, columns: Sequence[str], arms: Sequence[ArmLine]) -> str:
    where = "" if document.test_set is None else f" on {document.test_set} ({document.size})"
    counts = {arm.finished for arm in arms}
    seeds = how_many(max(counts), "seed") if len(counts) == 1 else "n seeds"
    over = "mean and standard deviation" if "sd" in columns else "mean"
    said = [f"{document.title[:1].upper()}{document.title[1:]}{where}: {over} over {seeds}."]
    text = breakable(said[0])
    if "difference" in columns:
        baseline = document.baselines if document.within else spoken(document.baseline)
        interval = ", with its paired $t$ interval, uncorrected" if "interval" in columns else ""
        shared = {line.n for line in document.differences if line.difference is not None} == counts
        paired = "paired by seed" if shared else "paired by seed, over those that both have"
        text += f" $\\Delta$: difference from {breakable(baseline)}, {paired}{interval}."
    return text + (f" The first {MOST_ARMS} of {len(arms)} arms." if len(arms) > MOST_ARMS else "")
