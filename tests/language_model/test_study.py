"""A study of two norms on a text file of one's own: what the page on language models tells its reader to type."""

import json

import pytest

from ablab.commands.cli import main
from tests.language_model.conftest import TINY, text

LINE = (*TINY, "data.train=mytext.txt", "norm=pre,rmsnorm", "seed=1,2,3", "pruning=none", "hydra.launcher.jobs=1")


@pytest.mark.slow
def test_two_norms_are_compared_in_three_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mytext.txt").write_text(text(200))
    assert main(["train", "-m", *LINE]) == 0
    said = capsys.readouterr().out
    assert "test bits per byte" in said
    assert main(["report", *LINE[:-1], "format=json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "bits" in json.dumps(found)
    assert found["nouns"] == {"items": "documents", "trained": "documents", "tokens": "tokens"}
    page = next((tmp_path / "outputs").rglob("checklist.md")).read_text()
    assert "training documents" in page
    assert "sentences" not in page.partition("## ")[0]
    run = next((tmp_path / "outputs" / "smoke" / "runs").iterdir()).name
    assert main(["generate", f"run={run}", "outputs=outputs/smoke", "prompt=the old cat", "max_tokens=5"]) == 0
    assert capsys.readouterr().out.startswith("the old cat")
