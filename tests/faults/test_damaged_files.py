"""Every file that an interrupted or a finished run leaves is damaged in turn: what follows is right, or is one line."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ablab.store.run_folder import all_runs
from tests.faults.conftest import LINE, result_of
from tests.faults.disturber import KILL

pytestmark = pytest.mark.faults


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


DAMAGE = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
    "flipped": _flip,
}

OF_NO_FIGURE = {"manifest.json", "cross_attention.json", "cross_attention.png", "spent.json"}
"""Files on which no figure rests: a later run makes the first anew, two show one sentence's attention, and the last
says where the run's time went.
"""

COMMANDS = (("train",), ("verify",), ("report",), ("study",))
"""What is typed afterwards: the same line, and what reads the store."""


@pytest.fixture(scope="module")
def stores(disturber, tmp_path_factory) -> dict[str, Path]:
    """A finished store, and one that was killed after its first checkpoint."""
    found = {}
    for name in ("finished", "interrupted"):
        outputs = tmp_path_factory.mktemp(name)
        at = 0 if name == "finished" else 100
        while not any(outputs.glob("smoke/runs/*/checkpoints/last.pt")):
            shutil.rmtree(outputs)
            outputs.mkdir()
            ended = disturber.run(*LINE, "logger=none", f"outputs={outputs}", below=outputs, at=at, how=KILL)
            assert ended.code == (-9 if at else 0), ended.said
            at += 20
        found[name] = outputs
    return found


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("state", ["finished", "interrupted"])
def test_a_damaged_file_is_right_again_or_named(state, damage, stores, disturber, undisturbed, tmp_path):
    original = stores[state]
    files = sorted(path.relative_to(original) for path in original.rglob("*") if path.is_file())
    files = [file for file in files if not file.name.endswith((".lock", ".pulse", ".owner"))]
    unnoticed = []
    for number, file in enumerate(files):
        outputs = shutil.copytree(original, tmp_path / str(number))
        DAMAGE[damage](outputs / file)
        for command in COMMANDS:
            words = (*command, *LINE[1:], f"outputs={outputs}", *(["logger=none"] if command == ("train",) else []))
            ended = disturber.run(*words, below=outputs)
            told = f"{file} {damage}, then {command[0]} ended with {ended.code}:\n{ended.said}"
            assert "Traceback" not in ended.said, told
            assert ended.code in (0, 1, 2), told
            if ended.code == 2:
                assert ended.said.splitlines()[-1].startswith("error: "), told
            if command == ("train",) and ended.code:
                assert file.name in ended.said or "allowed: rerun=true" in ended.said, told
                break
            if command == ("train",) and file.name in ended.said:
                break
            is_sound = command == ("verify",) and ended.code == 0 and any(all_runs(outputs / "smoke"))
            if is_sound and _numbers(result_of(outputs)) != _numbers(undisturbed[1]):
                unnoticed.append(file.name)
        shutil.rmtree(outputs)
    assert set(unnoticed) <= OF_NO_FIGURE
    assert len(files) > 15


def _numbers(result: dict[str, Any]) -> dict[str, Any]:
    """Leave out how often something was made: what was gone is made again, and the register says so."""
    return {
        key: {name: part for name, part in value.items() if name not in ("twice", "anew")}
        if isinstance(value, dict)
        else value
        for key, value in result.items()
    }
