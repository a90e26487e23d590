"""Experiment files that others wrote: a plan, or one line; nothing in them is executed, and none makes ablab hang."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given

from ablab.errors import UserError
from ablab.study.experiment import read
from tests.input.conftest import examples
from tests.input.experiments import TEXTS, WHOLE, _dumped, files
from tests.input.forked import forked, typed
from tests.input.laws import assert_no_fault_of_ours, assert_told_in_one_line, moving, tree


def _planned(content: bytes, place: Path) -> int:
    (place / "theirs.yaml").write_bytes(content)
    before = tree(place)
    ended = typed(["study", "experiment=theirs.yaml"], place)
    assert_no_fault_of_ours(ended)
    assert_told_in_one_line(ended)
    assert moving(ended.out, allowed="\n\t") == []
    assert tree(place) == before
    return ended.code


def test_the_file_that_the_others_are_made_of_is_accepted(place: Path) -> None:
    assert _planned(_dumped(WHOLE), place) == 0


@examples(0.2)
@given(content=files())
def test_any_file_is_a_plan_or_one_line(content: bytes, place: Path) -> None:
    _planned(content, place)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_what_is_made_to_harm_is_read_or_refused_and_never_executed(text: str, place: Path) -> None:
    (place / "theirs.yaml").write_bytes(text.encode())

    def opened() -> int:
        with suppress(UserError):
            read(Path("theirs.yaml"))
        return 0

    assert_no_fault_of_ours(forked(opened, place))
    assert not (place / "executed").exists()
