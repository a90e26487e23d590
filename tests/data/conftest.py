"""Corpora made on the spot, and the options that the YAML files give."""

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ablab.transformer.data.corpus import Corpus
from tests.shipped import shipped

CONF = Path(__file__).parents[2] / "conf" / "data"


def defaults(kind: str) -> dict[str, Any]:
    options: dict[str, Any] = yaml.safe_load((CONF / f"{kind}.yaml").read_text())["data"]
    del options["_target_"]
    return options


@pytest.fixture
def configured() -> Callable[..., Corpus]:
    """A corpus of the shipped defaults with some options replaced."""

    def build(kind: str, **options: object) -> Corpus:
        return shipped("data")[kind](**{**defaults(kind), **options})

    return build


@pytest.fixture
def write() -> Callable[[Path, Sequence[str]], None]:
    """Writes one sentence per line, packed if the name ends in `.gz`."""

    def to(path: Path, lines: Sequence[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    return to
