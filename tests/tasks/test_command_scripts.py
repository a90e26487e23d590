"""Which scripts a command runs, however it names them: those that are no input are told."""

from pathlib import Path

import pytest

from ablab.tasks.command.inputs import undeclared, version_of


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Two folders side by side, of which the first is the working folder."""
    for path, content in {
        "here/train.py": "import helper, pkg.model\n",
        "here/helper.py": "import json\n",
        "here/pkg/__init__.py": "",
        "here/pkg/train.py": "from pkg import model\nfrom .data import read\n",
        "here/pkg/model.py": "",
        "here/pkg/__main__.py": "",
        "here/pkg/deep/__init__.py": "",
        "here/pkg/deep/run.py": "from . import steps\nfrom ..model import nothing\n",
        "here/pkg/deep/steps.py": "",
        "here/run.sh": "#!/bin/sh\npython train.py\n",
        "here/bin/python": "#!/bin/sh\n",
        "here/bin/torchrun": "#!/usr/bin/python\n",
        "here/data.txt": "text\n",
        "there/train.py": "import beside\n",
        "there/beside.py": "import helper\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


PACKAGE = ["pkg/__init__.py", "pkg/model.py"]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("python train.py {seed}", ["helper.py", *PACKAGE, "train.py"]),
        ("python -m pkg.train {seed}", [*PACKAGE, "pkg/train.py"]),
        ("python -u -m pkg --seed {seed}", ["pkg/__init__.py", "pkg/__main__.py"]),
        ("python -m pkg.deep.run {seed}", [*PACKAGE, "pkg/deep/__init__.py", "pkg/deep/run.py", "pkg/deep/steps.py"]),
        ("python -m no.module {seed}", []),
        ("python ../there/train.py {seed}", ["../there/beside.py", "../there/train.py", "helper.py"]),
        ("./run.sh {seed}", ["run.sh"]),
        ("sh run.sh {seed}", ["run.sh"]),
        ("bin/torchrun train.py {seed}", ["helper.py", *PACKAGE, "train.py"]),
        ("bin/torchrun {seed} data.txt nothing.py", []),
    ],
)
def test_scripts_are_found_however_they_are_named(command, found, project):
    assert undeclared(command.split(), []) == sorted(found)


def test_an_absolute_path_is_the_same_script(project):
    assert undeclared(["python", str(project / "here/train.py")], []) == undeclared(["python", "train.py"], [])


def test_what_is_declared_is_not_told(project):
    assert undeclared(["python", "-m", "pkg.train"], ["pkg"]) == []
    assert undeclared(["./run.sh"], ["run.sh"]) == []


def test_a_folder_or_a_name_that_is_too_long_is_no_script(project):
    assert undeclared(["pkg", "x" * 5000, "{seed}", ""], []) == []
    assert Path("pkg").is_dir()


@pytest.mark.parametrize(
    ("name", "is_asked"), [("python3.11", True), ("node", True), ("node_bench.sh", False), ("python_train.sh", False)]
)
def test_only_an_interpreter_is_asked_for_its_version(tmp_path, name, is_asked):
    """Any other program would run while a study is planned."""
    program = tmp_path / name
    program.write_text("#!/bin/sh\necho asked\n")
    program.chmod(0o755)
    assert version_of(str(program)) == ("asked" if is_asked else None)


def test_scripts_of_other_languages_are_found_by_their_ending(project):
    for name in ("fit.R", "fit.jl", "job.sh", "nb.ipynb", "t.js"):
        Path(name).write_text("")
    command = ["Rscript", "fit.R", "fit.jl", "job.sh", "nb.ipynb", "t.js", "a\0b", "{seed}"]
    assert undeclared(command, ["job.sh"]) == ["fit.R", "fit.jl", "nb.ipynb", "t.js"]
