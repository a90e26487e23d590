"""What is written is what is read; what is one run's alone is nobody else's; damage is said in one line."""

import json

import pytest

from ablab.errors import UserError
from ablab.store.artefacts import (
    Axis,
    MatrixArtefact,
    SeriesArtefact,
    Slice,
    Trace,
    comparable_artefacts,
    write_artefact,
)

SERIES = SeriesArtefact(
    title="gain",
    section="Norms",
    settings={"analysis": "norms"},
    x=Axis(title="layer"),
    y=Axis(title="g"),
    series=[Trace(label="decoder", x=[1, 2], y=[0.1, -3.25]), Trace(label="last", x=[1], y=[2], names=["end"])],
)
MATRIX = MatrixArtefact(
    title="weights",
    section="Attention",
    x=Axis(title="source", labels=["ä", "ä"]),
    y=Axis(title="head", labels=["1"]),
    value="weight",
    interchangeable=True,
    slices=[Slice(label="all", values=[[0.5, 0.5]]), Slice(label="one", values=[[1.0, 0.0]])],
)


def test_artefacts_come_back_as_they_went(tmp_path):
    for name, artefact in (("b", SERIES), ("a", MATRIX)):
        write_artefact(tmp_path / f"{name}.json", artefact)
    assert comparable_artefacts(tmp_path) == {"a": MATRIX, "b": SERIES}
    assert list(comparable_artefacts(tmp_path)) == ["a", "b"]
    assert comparable_artefacts(tmp_path / "none") == {}


def test_what_names_no_section_is_its_runs_alone(tmp_path):
    write_artefact(tmp_path / "own.json", SERIES.model_copy(update={"section": None}))
    (tmp_path / "older.json").write_text('{"kind": "series", "title": "as earlier versions wrote it"}')
    assert comparable_artefacts(tmp_path) == {}


@pytest.mark.parametrize(
    "content",
    ["{", "[1]", json.dumps({**SERIES.model_dump(), "kind": "cube"}), json.dumps({**SERIES.model_dump(), "new": 1})],
)
def test_damage_is_said_in_one_line(content, tmp_path):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UserError, match=r"x\.json: (cannot be read as an artefact|not readable as JSON)") as raised:
        comparable_artefacts(tmp_path)
    assert "\n" not in str(raised.value)
