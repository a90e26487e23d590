"""Tab completes what may be typed, in each shell, parts of one's own included."""

import os
import shutil
import subprocess
import sys

import pytest

from ablab.commands.cli import main
from ablab.commands.completion import SHELLS, candidates
from ablab.config.groups import groups
from ablab.tasks.verbs import VERBS
from tests.parts.conftest import DYT, study

__all__ = ["study"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ablab tra", ["train", "translate"]),
        ("ablab translate nor", []),  # it takes no words of a train line
        ("ablab train norm=sc", ["norm=scalenorm", "norm=scalenorm_fixnorm"]),
        ("ablab train -m norm=pre,sca", ["norm=pre,scalenorm", "norm=pre,scalenorm_fixnorm"]),
        ("ablab train model.ti", ["model.tie="]),
        ("ablab train model.tie=s", ["model.tie=source_target"]),
        ("ablab train norm.l", []),
        ("ablab train norm=scalenorm norm.l", ["norm.learn_g="]),
        ("ablab train norm=scalenorm norm.learn_g=", ["norm.learn_g=true", "norm.learn_g=false"]),
        ("ablab train experiment=low", ["experiment=low_resource"]),
        ("ablab train training.select=bes", ["training.select=best_or_averaged", "training.select=best"]),
        ("ablab train norm.kind", []),
        ("ablab train layerdrop=", []),
        ("ablab analyse attention=c", ["attention=cross"]),
        ("ablab report ver", ["verify="]),
        ("ablab train --c", ["--cfg", "--config-dir"]),
        ("ablab nosuch norm", []),
        ("ablab train layerd", ["layerdrop_rates=", "layerdrop_encoder=", "layerdrop_decoder=", "layerdrop="]),
        ("ablab train smok", ["smoke="]),
        ("ablab train smoke=", ["smoke=true", "smoke=false"]),
        ("ablab  train  norm=sc", ["norm=scalenorm", "norm=scalenorm_fixnorm"]),
        ("ablab report exp", ["experiment="]),
        ("ablab verify experiment=low", ["experiment=low_resource"]),
        ("ablab pack norm=scalenorm_", ["norm=scalenorm_fixnorm"]),
        ("ablab confirm experiment=low", ["experiment=low_resource"]),
        ("ablab try experi", ["experiment="]),
        ("ablab train --cfg job norm=sc", ["norm=scalenorm", "norm=scalenorm_fixnorm"]),
    ],
)
def test_what_may_follow(line, expected):
    assert candidates(line) == expected


def test_all_verbs_groups_and_options_are_there():
    assert candidates("ablab ") == list(VERBS)
    assert {f"{group}=" for group in groups()} <= set(candidates("ablab train "))
    for group, options in groups().items():
        assert candidates(f"ablab train {group}=") == [f"{group}={option}" for option in options]


def test_a_part_of_ones_own_is_completed_like_ours(study):
    study(DYT, {"norm/mine": "_target_: parts.DyT\n"})
    assert candidates("ablab train norm=mi") == ["norm=mine"]
    assert candidates("ablab train norm=mine norm.") == ["norm.alpha="]


def test_what_completes_is_valid():
    """Each value that is offered is one that the line takes."""
    from ablab.config import compose_arm

    for field in candidates("ablab train model."):
        for word in candidates(f"ablab train {field}"):
            compose_arm([word])


@pytest.mark.parametrize("words", [["tcsh"], [], ["bash", "x=1"]])
def test_what_is_no_shell_is_refused(words, capsys):
    assert main(["completion", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


ASK = {
    "bash": """
        eval "$(ablab completion bash)"
        ask() {{
            COMP_LINE="$1" COMP_POINT="${{#1}}" COMP_WORDS=() COMP_CWORD=0
            _ablab 2>/dev/null
            printf '%s\\n' "${{COMPREPLY[@]}}"
        }}
        ask '{}'
    """,
    "fish": "ablab completion fish | source; complete -C '{}'",
}


@pytest.mark.parametrize("shell", ASK)
def test_the_shell_asks_and_understands(shell, tmp_path):
    """Bash completes what follows "=" alone; zsh has no way to ask without a terminal."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    ablab = tmp_path / "ablab"
    ablab.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ablab "$@"\n')
    ablab.chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}

    def asked(line: str) -> list[str]:
        done = subprocess.run(
            [shell, "-c", ASK[shell].format(line)], capture_output=True, text=True, env=env, check=True
        )
        return sorted(done.stdout.split())

    start = "" if shell == "bash" else "norm="
    assert asked("ablab train norm=sc") == [f"{start}scalenorm", f"{start}scalenorm_fixnorm"]
    assert asked("ablab trai") == ["train"]
    assert asked("ablab train --cf") == ["--cfg"]


def test_every_shell_has_its_script(capsys):
    for shell in SHELLS:
        assert main(["completion", shell]) == 0
        assert "ablab completion" in capsys.readouterr().out
