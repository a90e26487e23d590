"""The field of a race: everybody's environment, and one corpus for all."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablab.code.machine import cores
from ablab.config import compose
from ablab.files import write_lines
from ablab.tracking.console import Console
from ablab.transformer.data.corpus import Corpus
from ablab.transformer.data.prepared import prepare
from benchmarks.speed.task import DEVICE, MODEL, ROOT, WORDS

CACHE = Path.home() / ".cache" / "ablab" / "benchmarks"
TORCH = "torch==2.13.0"
PACKAGES = {
    # It names neither importlib_metadata nor setuptools, and fails with newer SentencePiece.
    "joeynmt": ("joeynmt==2.3.0", "importlib_metadata", "setuptools", "sentencepiece<0.2.1"),
    "transformers": ("transformers==5.23.0", "numpy"),
    "fairseq": ("fairseq==0.12.2", "numpy<2"),
}
"""What each peer's environment holds, beside torch."""


@dataclass(frozen=True)
class Field:
    """Where the race is run. `words`: those that say where the corpus lies; `threads`: of everybody."""

    words: tuple[str, ...]
    threads: int
    work: Path = field(default=CACHE / f"work_{MODEL}")

    @classmethod
    def typed(cls, **usual: str) -> tuple[dict[str, str], "Field"]:
        """A command's own options, these unless typed otherwise, and the field that its other words describe."""
        own = [word for word in sys.argv[1:] if word.partition("=")[0] in usual]
        words = tuple(word for word in sys.argv[1:] if word not in own)
        return usual | dict(word.split("=", 1) for word in own), cls(words, threads=cores())

    @property
    def outputs(self) -> Path:
        """ablab's own store."""
        return self.work / "outputs"

    @property
    def line(self) -> tuple[str, ...]:
        """ablab's words, but for what a race adds."""
        return (*WORDS, *self.words, f"outputs={self.outputs}", f"trainer.threads={self.threads}")

    @property
    def corpus(self) -> Corpus:
        """As ablab reads it."""
        return compose(self.line).config.data

    def prepared(self) -> Path:
        """The folder of the encoded corpus, made now if it is not there; and the raw text, for who encodes it anew."""
        corpus = self.corpus
        found = prepare(corpus, self.outputs / "corpora", Console().say)
        for name, split in (("train", corpus.train_split), ("valid", corpus.valid_split), ("test", corpus.test_split)):
            if not (self.work / f"{name}.tgt").exists():
                pairs = split().pairs
                for side in (0, 1):
                    write_lines(self.work / f"{name}.{('src', 'tgt')[side]}", [pair[side] for pair in pairs])
        (self.work / "spm.model").write_bytes((found.folder / "src.model").read_bytes())
        tokenizer = found.tokenizers[0]
        pieces = "".join(f"{piece}\n" for piece in tokenizer.pieces(range(len(tokenizer))))
        (self.work / "vocabulary.txt").write_text(pieces, encoding="utf-8")
        return found.folder

    def run(self, command: list[str], python: Path | str = sys.executable, **variables: str) -> str:
        """What a command prints; its errors, and this command's end, where it fails."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
            "OMP_NUM_THREADS": str(self.threads),
            "GOMP_SPINCOUNT": "5000",  # ablab's own setting, for everybody: a busy neighbour costs all alike
            "TOKENIZERS_PARALLELISM": "false",
            **variables,
        }
        done = subprocess.run([str(python), *command], capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            sys.exit(f"error: {' '.join(command)}\n{done.stderr[-2000:]}")
        return done.stdout

    def said(self, command: list[str], python: Path | str = sys.executable, **variables: str) -> dict[str, Any]:
        """The last line of what a command prints, as JSON."""
        found: dict[str, Any] = json.loads(self.run(command, python, **variables).strip().splitlines()[-1])
        return found


def python_of(peer: str) -> Path:
    """The interpreter of a peer's environment, which is made the first time: some minutes and a gigabyte."""
    if DEVICE == "gpu":  # what was installed with the build of torch for it
        return Path(sys.executable)
    folder = CACHE / peer
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"{peer}: making its environment in {folder} ...", flush=True)
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "-q", "pip<24.1"],  # newer ones refuse the OmegaConf of fairseq
            [str(python), "-m", "pip", "install", "-q", TORCH],
            [str(python), "-m", "pip", "install", "-q", *PACKAGES[peer]],
        ):
            subprocess.run(command, check=True)
        (folder / "ready").touch()
    return python
