"""LaTeX that compiles as it stands, whatever people write, and says what Markdown says."""

import re
import shutil
import subprocess

import pytest

from ablab.report.document import Document
from ablab.report.latex import _escaped, latex
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
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_it_says_what_markdown_says_and_no_table_is_longer_than_a_page(document):
    many = document.model_copy(update={"notes": ["1 of 20 runs is missing"], "arms": document.arms * 20})
    written = latex(many)
    for said in (document.question, document.source, *many.notes, *(claim.words for claim in document.claims)):
        assert _escaped(said) in written
    tabulars = re.findall(r"\\midrule(.*?)\\bottomrule", written, flags=re.S)
    assert max(table.count(r"\\") for table in tabulars) <= 30
    assert sum(table.count(r"\\") for table in tabulars) == sum(len(table.rows) for table in tables(many))


def test_names_in_any_script_stay_apart_and_need_no_fonts(document):
    arms = [document.arms[0].model_copy(update={"name": name}) for name in ("norm=中", "norm=日", "[base]", "Опыт")]
    written = latex(document.model_copy(update={"arms": arms, "claims": [], "differences": []}))
    assert written.isascii()
    assert "norm=(U+4E2D)" in written
    assert "norm=(U+65E5)" in written
    assert "CYR" not in written
    # An opening bracket after a rule or the end of a row would be its option.
    assert not re.search(r"(\\\\|\\midrule|\\item) *\n? *[\[*]", written)
