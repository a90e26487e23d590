"""LaTeX that compiles as it stands, whatever people write, and says what Markdown says."""

import re
import shutil
import subprocess
import unicodedata

import pytest

from ablab.judge.document import Document
from ablab.report.latex import breakable, column_files, escaped, latex
from ablab.report.pictures import COLUMN_LOOK, COLUMN_WIDTH, write_column_picture
from ablab.report.tables import tables


@pytest.fixture(scope="module")
def document(reported):
    return Document.model_validate(reported.data)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
@pytest.mark.parametrize("question", ["", "</b> & 100 % $arm_{x} ≥ −5 ^~\\ # ½ „é“ 日", "[x] Привет ∅ ✓ 🙂 α"])
def test_it_compiles(question, document, reported, tmp_path):
    (tmp_path / "report.tex").write_text(latex(document.model_copy(update={"question": question})), encoding="utf-8")
    for path in reported.folder.glob("*.pdf"):
        shutil.copy(path, tmp_path)
    assert "resizebox" not in (tmp_path / "report.tex").read_text()  # letters of 7 points at least
    said = compiled(tmp_path / "report.tex")
    assert question or "Overfull \\hbox" not in said


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
def test_every_character_compiles_or_is_its_code_point(document, tmp_path):
    every = (chr(code) for code in range(0xA0, 0x1FFFF) if not 0xD800 <= code < 0xE000)
    known = [one for one in every if unicodedata.name(one, "") and not escaped(one).startswith("(U+")]
    assert len(known) > 700
    head, begins, _ = latex(document).partition("\\begin{document}")
    lines = [f"x{escaped(one)}y\\par" for one in known]
    (tmp_path / "all.tex").write_text("\n".join([head + begins, *lines, "\\end{document}"]), encoding="utf-8")
    compiled(tmp_path / "all.tex")


@pytest.mark.parametrize(
    ("written", "read"),
    [("pre\u2011train", "pre-train"), ("1\u2153", "11/3"), ("\u222c", "(U+222C)"), ("\u266f", "(U+266F)")],
)
def test_characters_without_a_command_have_a_plain_form_or_a_code_point(written, read):
    assert escaped(written) == read


def compiled(path) -> str:
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", path.name]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout.decode(errors="replace")


PAPER = r"""
\documentclass[11pt,a4paper,twocolumn]{article}
\usepackage[T1]{fontenc}
\usepackage[margin=2.5cm,columnsep=0.6cm]{geometry}
\usepackage{array,booktabs,graphicx,tabularx}
\begin{document}
\input{column_table} \input{column_figure} \input{column_methods}
\end{document}
"""


@pytest.mark.parametrize(
    ("finished", "said"),
    [
        ((3, 3, 3, 3), "over 3 seeds"),
        ((1, 1, 1, 1), "over 1 seed."),
        ((3, 5, 3, 3), "over n seeds"),
        ((5, 5, 5, 5), "over 5 seeds"),
    ],
)
def test_the_table_of_a_column_says_over_how_many_seeds_its_means_are(document, finished, said):
    arms = [arm.model_copy(update={"finished": n}) for arm, n in zip(document.arms, finished, strict=True)]
    table = column_files(document.model_copy(update={"arms": arms}))["column_table.tex"]
    assert said in table
    # Differences are of 5 seeds.
    assert ("over the seeds that both have" in table) == (finished != (5, 5, 5, 5))
    assert "difference from layerdrop=0" in table


LONG = "a_name=that_is_longer,than.most=columns_of,a_paper=are_wide"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
@pytest.mark.parametrize(
    "changed",
    [
        {"name": LONG},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"digits": 4}, marks=pytest.mark.slow),
        pytest.param({"claims": []}, marks=pytest.mark.slow),
    ],
)
def test_a_column_of_a_paper_holds_them(changed, document, tmp_path):
    arms = [arm.model_copy(update={"name": f"{arm.name},{LONG}"} if "name" in changed else {}) for arm in document.arms]
    changed = document.model_copy(update={**changed, "arms": arms})
    write_column_picture(changed, tmp_path)
    for name, text in column_files(changed).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "paper.tex").write_text(PAPER)
    assert "Overfull" not in compiled(tmp_path / "paper.tex")


def test_the_figure_is_as_wide_as_a_column_and_has_no_letters_below_seven_points(document, tmp_path):
    write_column_picture(document, tmp_path)
    content = (tmp_path / "column_figure.pdf").read_bytes()
    assert f"/MediaBox [ 0 0 {COLUMN_WIDTH * 72:g} ".encode() in content
    write_column_picture(document, tmp_path)
    assert (tmp_path / "column_figure.pdf").read_bytes() == content
    assert COLUMN_LOOK["font.size"] >= 7


def test_the_column_has_the_figures_of_the_wide_tables(document):
    files = column_files(document)
    for line in document.arms:
        if line.mean is not None:
            assert f"{line.mean:.2f}" in files["column_table.tex"]
    for line in document.differences:
        if line.interval is not None:
            assert escaped(f"[{line.interval.low:+.2f}, {line.interval.high:+.2f}]") in files["column_table.tex"]
    assert all(breakable(method) in files["column_methods.tex"] for method in document.methods)


def test_numbers_have_real_minus_signs_and_names_keep_their_hyphens():
    assert escaped("-0.31 [-0.86, +0.57]") == "$-$0.31 [$-$0.86, +0.57]"
    assert escaped("OPUS-100, de-en, 10-20, a -b") == "OPUS-100, de-en, 10-20, a -b"
    assert escaped("--lr") == "-{}-lr", "two hyphens would be a dash"
    assert breakable("layerdrop=0.1,norm=pre") == r"layerdrop=\allowbreak{}0.1,\allowbreak{}norm=\allowbreak{}pre"


def test_it_says_what_markdown_says_and_no_table_is_longer_than_a_page(document):
    many = document.model_copy(update={"notes": ["1 of 20 runs is missing"], "arms": document.arms * 20})
    written = latex(many)
    for said in (document.question, document.source, *many.notes, *(claim.judged for claim in document.claims)):
        assert breakable(said) in written
    wide = written.partition(r"\begin{landscape}")[2]
    tabulars = re.findall(r"\\midrule(.*?)\\bottomrule", wide, flags=re.S)
    assert max(table.count(r"\\") for table in tabulars) <= 30
    assert sum(table.count(r"\\") for table in tabulars) == sum(len(table.rows) for table in tables(many))


def test_names_in_any_script_stay_apart_and_need_no_fonts(document):
    arms = [
        document.arms[0].model_copy(update={"name": name}) for name in ("norm=中", "norm=日", "[base]", "Опыт", "😀")
    ]
    written = latex(document.model_copy(update={"arms": arms, "claims": [], "differences": []}))
    assert written.isascii()
    assert "norm=(U+4E2D)" in written
    assert "norm=(U+65E5)" in written
    assert "(U+1F600)" in written
    assert "CYR" not in written
    # An opening bracket after a rule or the end of a row would be its option.
    assert not re.search(r"(\\\\|\\midrule|\\item) *\n? *[\[*]", written)
