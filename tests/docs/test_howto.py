"""Each section of docs/howto.md is a whole study: its files and lines, typed into an empty folder, end in a verdict."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, typed

PAGE = (ROOT / "docs" / "howto.md").read_text(encoding="utf-8")
SECTIONS = {text.splitlines()[0]: text for text in PAGE.split("\n## ")[1:]}
FILE = re.compile(r"# (\S+\.(?:py|yaml))\n")
NEEDS = {"A Hugging Face Trainer": ("transformers", "accelerate")}


def files(text):
    """The files of a section, by their paths."""
    return {match[1]: content for _, content in blocks(text) if (match := FILE.match(content))}


def test_every_section_is_one_screen_with_an_experiment_and_the_lines_to_type():
    for name, text in SECTIONS.items():
        assert any(path.endswith(".yaml") for path in files(text)), name
        assert [line.split()[1] for line in typed(text) if line.startswith("ablab")][-2:] == ["train", "report"]
        assert len(text.splitlines()) <= 75, name


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_ends_in_the_verdict_that_it_shows(name, tmp_path):
    if lacking := [module for module in NEEDS.get(name, ()) if find_spec(module) is None]:
        pytest.skip(f"needs {', '.join(lacking)}")
    for path, content in files(SECTIONS[name]).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    script = "\n".join(
        ["set -e", f'ablab() {{ {sys.executable} -m ablab "$@"; }}', "export -f ablab", *typed(SECTIONS[name])]
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "WANDB_MODE": "disabled"}
    ended = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (report,) = (tmp_path / "outputs" / "reports").glob("*/report.json")
    document = json.loads(report.read_text())
    (claim,) = document["claims"]
    if document["metric"] == "seconds" and claim["outcome"] == "not testable":
        assert "more than the seed differed" in claim["reason"]
        return
    assert claim["outcome"] in SECTIONS[name].split("```")[-1].lower()
    assert claim["exploratory"] is None
