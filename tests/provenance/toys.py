"""A small package on disk, its code digest, and edits of it."""

from pathlib import Path

from ablab.code.definitions import Digested, Sources, code_of, reached
from ablab.code.modules import Package

MODEL = '''
"""Layers."""
import math
import numpy as np
from numpy import sqrt as root
from toy.parts.norms import NORMS, LayerNorm
from toy.screen import Screen
from toy import seeding

WIDTH: int = 4
EPS, DELTA = 1e-9, 0.5

class Layer(LayerNorm):
    """A layer."""
    depth: int = 2

    def __init__(self, width: int, *, bias=True) -> None:
        self.width = width * WIDTH

    @property
    def scale(self) -> float:
        """Of the rows."""
        return root(self.width) + EPS

    def forward(self, x):
        def add(y):
            return y + seeding.derive(x)
        return [add(row) for row in x if row > DELTA]

def train(screen: Screen, kind="scale", rows=[]):
    """Train."""
    # A comment.
    layer = Layer(3)
    rate: float = 0.1
    screen.say(f"training {layer.width}")
    if layer.width < 1:
        raise ValueError(f"width={layer.width}: too small")
    for row in rows:
        seeding.derive(row)
    seen = Screen()
    return NORMS[kind](layer) * -rate, np.exp(layer.scale)
'''

NORMS = '''
from toy.seeding import derive

class LayerNorm:
    """x."""
    def norm(self, x):
        return x / derive(x)

class ScaleNorm:
    def norm(self, x):
        return x

def bare(x):
    return x

NORMS = {"layer": LayerNorm, "scale": ScaleNorm, "bare": bare}
"""By name."""
'''

FILES = {
    "__init__.py": "",
    "model.py": MODEL,
    "parts/__init__.py": "from toy.parts.norms import LayerNorm\n",
    "parts/norms.py": NORMS,
    "seeding.py": "import hashlib\n\ndef derive(x):\n    return hashlib.md5(x)\n\ndef unused(x):\n    return 1\n",
    "screen.py": "class Screen:\n    def say(self, line):\n        print(line)\n",
    "latex.py": "def table():\n    return 1\n",
}


def written(folder: Path, files: dict[str, str]) -> Path:
    """The package `toy` in `folder`."""
    for name, text in files.items():
        path = folder / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "toy"


def code_in(package: Path, *roots: str, outside: tuple[str, ...] = ("toy.screen",)) -> Digested:
    """Of the package in a folder, by the roots given or `train`."""
    sources = Sources(Package(package), outside, silent=("toy.screen.Say", "toy.screen.Screen.say"))
    return code_of(reached(sources, roots or ("toy.model.train",)))


def edited(name: str, before: str, after: str) -> dict[str, str]:
    """The files with one edit, that must be possible."""
    assert FILES[name].count(before) == 1, (name, before)
    return {**FILES, name: FILES[name].replace(before, after)}
