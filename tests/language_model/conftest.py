"""One tiny run with everything in it, shared by the tests of a run."""

import random

import pytest

from tests.made_once import made_once
from tests.run.conftest import Store, typed

WORDS = ("the", "a", "cat", "dog", "bird", "sees", "hears", "old", "small", "tree", "and", "house")
TINY = (
    *("task=language_model", "data=documents", "data.separator=blank_line", "data.tokenizer=byte"),
    *("model.d_model=16", "model.d_ff=16", "model.num_heads=2", "model.decoder_layers=3", "model.context=32"),
    *("trainer.threads=1", "trainer.progress=false", "smoke=true", "logger=none", "optim.lr=0.01"),
)


def text(documents: int = 60, seed: int = 1) -> str:
    stream = random.Random(seed)
    sentences = (" ".join(stream.choices(WORDS, k=stream.randint(2, 12))) for _ in range(documents))
    return "\n\n".join(sentences) + "\n"


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """A run with LayerDrop, DropHead and a pruning curve, on documents of the user's own."""

    def make(folder):
        (folder / "text.txt").write_text(text())
        line = (*TINY, f"data.train={folder / 'text.txt'}", "layerdrop=0.2", "drophead=constant")
        said = typed(*line, f"outputs={folder}")
        assert said.code == 0, said.out
        (first,) = [path.name for path in (folder / "smoke" / "runs").iterdir() if path.is_dir()]
        return Store(folder / "smoke", line, said, first)

    copy, made = made_once("language_model", make, tmp_path_factory)
    return Store(copy / "smoke", (*made.words, f"outputs={copy}"), made.said, made.first)
