"""docs/extending.md: every file written and every command typed in an empty folder, with the package from its wheel."""

import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
RUN = [title for title, body in SECTIONS.items() if "```console" in body]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The contents of the wheel, as pip would install them."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def run(site: Path, folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    program, *words = shlex.split(line)
    assert program == "ablab"
    environment = {**os.environ, "PYTHONPATH": str(site), "WANDB_MODE": "offline"}
    environment.pop("ABLAB_CONFIG_DIR", None)
    command = [sys.executable, "-m", "ablab", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def blocks(body: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", body, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "title", [each if each == "Corpus" else pytest.param(each, marks=pytest.mark.slow) for each in RUN]
)
def test_a_part_of_each_kind_works_as_the_page_says(title, wheel, tmp_path):
    body = SECTIONS[title]
    for text in (*blocks(body, "python"), *blocks(body, "yaml")):
        path = tmp_path / text.partition("\n")[0].removeprefix("# ")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.partition("\n")[2])
    lines = [line.removeprefix("$ ") for block in blocks(body, "console") for line in block.splitlines()]
    assert lines
    for line in lines:
        done = run(wheel, tmp_path, line)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        assert ("every check passed" if " check " in line else "Results: ") in done.stdout
        assert "python " not in done.stdout, "there are no scripts here"


def test_the_page_has_every_kind_and_every_name_that_is_given():
    from ablab.config.schema import part_groups

    titles = " ".join(SECTIONS).lower()
    for kind in ("norm", "placement", "position", "feed-forward", "initial", "learning-rate", "drophead", "optimiser"):
        assert kind in titles
    for kind in ("loss", "corpus", "pruning", "metric"):
        assert kind in titles
    for parts in part_groups().values():
        for name in parts.supplied:
            assert f"`{name}`" in SECTIONS["How it works"], name


@pytest.mark.slow
def test_what_a_new_study_says_to_type_works(wheel, tmp_path):
    assert run(wheel, tmp_path, "ablab new my_study").returncode == 0
    for line in (
        "ablab check norm=softsign",
        "ablab train norm=softsign smoke=true",
        "ablab study experiment=softsign",
    ):
        assert run(wheel, tmp_path / "my_study", line).returncode == 0


def test_help_from_a_wheel_names_no_script(wheel, tmp_path):
    for verb in ("train", "report", "prune", "translate", "study"):
        done = run(wheel, tmp_path, f"ablab {verb} --help")
        assert done.stdout.startswith(f"ablab {verb} ")
        assert ".py" not in done.stdout.replace("parts.py", "")
