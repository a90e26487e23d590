"""One tiny run with everything in it, shared by the tests of a run; and how to type a command."""

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.store.records import Record
from ablab.store.run_folder import RunFolder
from tests.made_once import made_once

TINY = (
    "trainer.threads=1",
    "model.d_model=16",
    "model.d_ff=16",
    "model.num_heads=2",
    "model.encoder_layers=2",
    "model.decoder_layers=1",
    "layerdrop=0.2",
    "drophead=vshape",
    "optim.lr=0.01",
)


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str


def typed(*words: str) -> Said:
    """`python train.py <words>`, in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(["train", *words])
    return Said(code, out.getvalue())


@dataclass(frozen=True)
class Store:
    """A store with one finished run."""

    outputs: Path
    words: tuple[str, ...]
    said: Said
    first: str

    @property
    def runs(self) -> list[RunFolder]:
        return [RunFolder(path) for path in sorted((self.outputs / "runs").iterdir()) if path.is_dir()]

    @property
    def run(self) -> RunFolder:
        """The first run, whatever others tests have added."""
        return RunFolder(self.outputs / "runs" / self.first)

    @property
    def record(self) -> Record:
        found = self.run.record()
        assert found is not None
        return found


def make_store(folder: Path, *words: str) -> Store:
    line = ("smoke=true", *TINY, f"outputs={folder}", *words)
    said = typed(*line)
    assert said.code == 0
    (first,) = [path.name for path in (folder / "smoke" / "runs").iterdir() if path.is_dir()]
    return Store(folder / "smoke", line, said, first)


def shared_store(name: str, tmp_path_factory: pytest.TempPathFactory, *words: str) -> Store:
    """A copy of a store that one process of the tests makes, as if it had been made where the copy lies."""
    copy, made = made_once(name, lambda folder: make_store(folder, *words), tmp_path_factory)
    there = str(made.outputs.parent)
    said = Said(made.said.code, made.said.out.replace(there, str(copy)))
    return Store(copy / "smoke", tuple(word.replace(there, str(copy)) for word in made.words), said, made.first)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return shared_store("store", tmp_path_factory)
