"""An archive of a study, unpacked, is a store: the same report comes out of it, and nothing is trained again."""

import zipfile

import pytest

from ablab.commands.cli import main
from ablab.judge.selection_of_study import of_study
from ablab.report.sentences import document_of
from ablab.study.definition import define
from ablab.study.ledger import RESULTS, ledger
from tests.report.test_tuned import tuned_study

SHOWN = ("claims", "tuning", "arms", "seeds")


@pytest.mark.parametrize("text", ["true", "false"])
def test_a_tuned_study_goes_on_from_its_archive(text, tmp_path):
    found = tuned_study(tmp_path, {"layerdrop=0": (0.4, 0.2), "layerdrop=0.1": (0.2, 0.2)})
    file, path, elsewhere = tmp_path / "t.yaml", tmp_path / "a.zip", tmp_path / "elsewhere"
    line = (f"experiment={file}", f"outputs={tmp_path / 'outputs'}")
    waiting = tmp_path / "outputs/studies/t/tracking/picture.png"
    waiting.parent.mkdir(parents=True, exist_ok=True)
    waiting.write_bytes(b"for a tracker")
    picture = tmp_path / "outputs/studies/t/forest.png"
    picture.write_bytes(b"of the report")
    assert main(["pack", *line, f"to={path}", f"text={text}"]) == 0
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        archive.extractall(elsewhere)
    assert any(name.endswith(".txt") for name in names) == (text == "true")
    assert ("studies/t/forest.png" in names) == (text == "true")
    assert not any("/tracking/" in name for name in names)
    study = define((f"experiment={file}", f"outputs={elsewhere}"))
    assert not study.is_tuning
    assert {entry.state for entry in ledger(study).values()} <= {*RESULTS}
    again = document_of(of_study(study), resamples=1000)
    assert found.claims  # verdicts, of arms that were tuned
    for part in SHOWN:
        assert getattr(again, part) == getattr(found, part), part
