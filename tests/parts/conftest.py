"""Studies of one's own: folders with parts, options and experiments, each with a module of a name of its own."""

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import pytest

NUMBER = count()

DYT = '''
import torch
from torch import nn

from ablab.fields import Positive


class DyT(nn.Module):
    """gamma tanh(alpha x) + beta."""

    def __init__(self, d_model: int, *, alpha: Positive = 0.5):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(alpha))
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return self.gamma * torch.tanh(self.alpha.to(x.dtype) * x) + self.beta
'''

Write = Callable[..., str]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a part and its option into the current folder; returns the name of its module.

    In the texts, `parts` stands for this name: Python knows one module of a name.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ABLAB_CONFIG_DIR", raising=False)

    def write(source: str, options: Mapping[str, str], **others: str) -> str:
        name = f"parts_{next(NUMBER)}"
        Path(f"{name}.py").write_text(source)
        for place, text in options.items():
            path = Path("conf", f"{place}.yaml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("parts.", f"{name}."))
        for module, text in others.items():
            Path(f"{module}.py").write_text(text)
        return name

    return write
