"""The command line: verbs, help in no time, exit codes."""

import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from ablab.cli import VERBS, main
from ablab.config import Config
from ablab.config.groups import default_choices, groups
from ablab.data.corpora import CORPORA

ROOT = Path(__file__).parents[1]


def _process(*words: str, cwd: Path) -> tuple[subprocess.CompletedProcess[str], float]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    return done, time.perf_counter() - began


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview_names_every_verb(words, capsys):
    assert main(words) == 0
    out = capsys.readouterr().out
    for verb in VERBS:
        assert f"ablab {verb}" in out


def test_an_unknown_verb(capsys):
    assert main(["trian"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ablab trian: no such verb; allowed: analyse, export, ")
    assert err.endswith("; did you mean train?\n")


def test_the_package_is_a_command_too(tmp_path):
    done, _ = _process("-m", "ablab", "trian", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_the_help_of_train_names_every_group_option_and_field(capsys):
    assert main(["train", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for group, options in groups().items():
        (line,) = [line for line in lines if line.split()[:1] == [group] and default_choices()[group] + "*" in line]
        shown = [word.strip(" ,") for word in line.split()[1:]]
        assert sorted(shown) == sorted([*set(options) - {default_choices()[group]}, default_choices()[group] + "*"])
    words = {line.split(":")[0].strip() for line in lines}
    fields = {name for name, _ in Config.walk()} | {f"data.{name}" for name, _ in CORPORA["numbers"].walk()}
    assert {field.rpartition(".")[2] for field in fields} <= words


@pytest.mark.parametrize("verb", ["analyse", "translate", "export", "selfcheck", "sync"])
def test_the_help_names_every_key(verb, capsys):
    assert main([verb, "--help"]) == 0
    out = capsys.readouterr().out
    for key in import_module(f"ablab.commands.{verb}").Options.model_fields:
        assert f"  {key} " in out or f"{key}=" in out


@pytest.mark.parametrize("script", ["train.py", "study.py", "prune.py", "translate.py"])
def test_help_loads_nothing_heavy_and_writes_nothing(script, tmp_path):
    done, seconds = _process("-X", "importtime", str(ROOT / script), "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert script in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "ablab.commands.help" in loaded
    assert not loaded & {"torch", "pytorch_lightning", "wandb", "matplotlib", "hydra", "sacrebleu"}
    assert seconds < 5  # under 1 on a quiet machine; this one is shared
    assert not list(tmp_path.iterdir())


def test_an_interrupt_anywhere_is_one_word(capsys, monkeypatch):
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("ablab.commands.train.train", interrupted)
    assert main(["train"]) == 130
    assert capsys.readouterr().err == "stopped\n"


def test_a_programming_error_is_not_dressed_as_bad_input(monkeypatch):
    def wrong(_: object) -> int:
        raise ValueError("a bug")

    monkeypatch.setattr("ablab.commands.train.train", wrong)
    with pytest.raises(ValueError, match="a bug"):
        main(["train"])
