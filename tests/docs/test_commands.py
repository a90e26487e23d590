"""What the documentation tells people to type can be typed."""

import os
import subprocess
import sys

import pytest

from ablab.config import compose
from ablab.config.groups import groups
from ablab.config.keys import all_fields
from ablab.config.overrides import parse
from ablab.config.schema import OF_A_SWEEP
from ablab.tasks.verbs import VERBS, options_of, read_words, split_words
from tests.docs.pages import PAGES, ROOT, commands, files, quick, typed

RUNS = ("train", "study", "report", "verify", "pack", "analyse", "check", "prune", "dashboard")
"""Verbs that take words of a run beside their own options."""


COMPOSED = [page for page in PAGES if page.name != "extending.md"]
"""That page names parts that its reader writes first; tests/parts executes its commands."""

MADE = "norm=softsign"
"""An option that `ablab new` makes; its commands are executed below."""


@pytest.mark.parametrize("command", commands(COMPOSED), ids=lambda command: f"{command.page}: {command.line[:60]}")
def test_a_command_of_the_docs_is_one(command):
    verb, *words = command.words
    assert verb in VERBS
    words = [
        word
        for word in words
        if word not in ("-m", "--help", "schedule=true") and not word.startswith(("hydra.", "hydra/"))
    ]
    if verb in ("new", "completion", "selfcheck"):
        return
    if verb == "diff":  # takes two runs without a key, too
        words = [word for word in words if "=" in word]
        words += [] if any(word.startswith("runs=") for word in words) else ["runs=a,b"]
    if verb == "register":  # takes the file of claims without a key
        words = words[1:]
    kind = options_of(verb)
    if verb == "try":  # its change is of any loop's task
        assert split_words(kind, words)[1]
        return
    if verb not in RUNS:
        read_words(kind, words)
        return
    rest = split_words(kind, words)[1] if "schedule=true" not in command.words else words
    overrides = parse(rest)
    if verb == "train" and "-m" not in command.words and MADE not in words:
        compose([word for word in rest if not word.startswith("init_from=")])
    known = {*groups(), *all_fields(), *OF_A_SWEEP, "experiment"}
    of_task = "task." if any(word.startswith("task=") for word in rest) else "\0"
    for override in overrides:
        assert override.key_or_group in known or override.key_or_group.startswith(of_task), override.key_or_group


@pytest.mark.slow
@pytest.mark.timeout(900)  # fifteen processes, nine of which train: many minutes beside other work
def test_the_commands_of_the_start_end_well_one_after_the_other(tmp_path):
    """In a home of their own, where the page makes its folder."""
    text = quick((ROOT / "docs" / "start.md").read_text(encoding="utf-8"))
    for path, content in files(text).items():
        (tmp_path / "first" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "first" / path).write_text(content, encoding="utf-8")
    script = "\n".join(["set -e", f'ablab() {{ {sys.executable} -m ablab "$@"; }}', "export -f ablab", *typed(text)])
    home = {**os.environ, "HOME": str(tmp_path)}
    ended = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=home, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
