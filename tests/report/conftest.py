"""One synthetic study of four arms and five seeds, with claims, and its report as a person would ask for it."""

import contextlib
import io
import json
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest

from ablab.commands.cli import main
from ablab.study.definition import define
from ablab.study.ledger import register
from ablab.study.study import Study
from tests.made_once import made_once
from tests.report.synthetic import fill

EXPERIMENT = """
question: Is an arm that errs less a better arm?
source: nobody
common: [smoke=false, logger=none]
factors:
  layerdrop: [0, 0.1, 0.2, 0.5]
design: one_at_a_time
seeds: [1, 2, 3, 4, 5]
claims:
  - {arm: layerdrop=0.1, expect: greater, margin: 0.5, published: +2 BLEU, source: here}
  - {arm: layerdrop=0.2, expect: greater, margin: 2}
  - {arm: layerdrop=0.2, expect: equal, margin: 8}
  - {arm: layerdrop=0.5, expect: greater, margin: 1}
  - {arm: layerdrop=0.5, expect: greater, metric: failures}
  - {arm: layerdrop=0.1, expect: less, metric: depth, fall: 5}
  - {arm: layerdrop=0.1, expect: greater, metric: pruned_bleu, layers: 2}
"""
ERRORS = {"layerdrop=0": 0.3, "layerdrop=0.1": 0.15, "layerdrop=0.2": 0.3, "layerdrop=0.5": 0.5}


@dataclass(frozen=True)
class Reported:
    """What was typed, printed and written."""

    study: Study
    words: tuple[str, ...]
    code: int
    out: str
    folder: Path

    @property
    def data(self):
        return json.loads((self.folder / "report.json").read_text())

    def text(self, name):
        return (self.folder / name).read_text(encoding="utf-8")


def typed(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["report", *words])
    return code, out.getvalue(), err.getvalue()


def _make_reported(place: Path) -> Reported:
    (place / "claims.yaml").write_text(EXPERIMENT)
    outputs = place / "outputs"
    words = (f"experiment={place / 'claims.yaml'}",)
    study = define((*words, f"outputs={outputs}"))
    register(study)
    fill(words, ERRORS, outputs=outputs, diverged=frozenset({("layerdrop=0.5", 4)}), pruned=True)
    code, out, err = typed(*words, f"outputs={outputs}", "resamples=1000")
    assert err == "", err
    return Reported(study, (*words, f"outputs={outputs}"), code, out, outputs / "reports" / study.name)


@pytest.fixture(scope="session")
def reported(tmp_path_factory):
    copy, made = made_once("reported", _make_reported, tmp_path_factory)
    there = made.folder.parents[2]
    words = tuple(word.replace(str(there), str(copy)) for word in made.words)
    out = made.out.replace(str(there), str(copy))
    return Reported(define(words), words, made.code, out, copy / made.folder.relative_to(there))


def unclaimed(document):
    """The same report had it no claims: each difference has the interval at 95 % of the method that would decide."""
    lines = []
    for line in document.differences:
        plain = line.uncorrected
        figures = {} if plain is None else {"interval": plain.interval, "p": plain.p}
        lines.append(line.model_copy(update={**figures, "claim": None, "uncorrected": None}))
    return document.model_copy(update={"claims": [], "differences": lines})


@pytest.fixture
def undrawn(monkeypatch):
    """Most of a report's time is its pictures, which only the tests of pictures look at."""
    for write in ("write_pictures", "write_column_picture"):
        monkeypatch.setattr(f"ablab.commands.report.{write}", lambda document, folder: None)


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch):
    connect = socket.socket.connect

    def to_here(self, address):
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError("a report needs no network")
        return connect(self, address)

    monkeypatch.setattr("socket.socket.connect", to_here)
