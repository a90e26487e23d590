"""What a terminal shows: tables that fit it."""

import pytest

from ablab.text import aligned

ROWS = [
    ["arm", "differs from the baseline by", "test BLEU"],
    ["norm=scalenorm_fixnorm", "norm.kind=scalenorm, embedding.kind=fixnorm, norm.learn_g=true", "75.21"],
    ["norm=pre", "-", "7.48"],
]


def _words(lines: list[str]) -> list[str]:
    return sorted("".join(lines).replace(" ", "").replace(",", ""))


@pytest.mark.parametrize("columns", [60, 80])
def test_a_table_is_folded_to_the_terminal_and_loses_nothing(columns, monkeypatch):
    whole = list(aligned(ROWS, left=2))
    assert max(map(len, whole)) > 80
    monkeypatch.setattr("ablab.text.terminal_columns", lambda: columns)
    folded = list(aligned(ROWS, left=2))
    assert max(map(len, folded)) <= columns
    assert _words(folded) == _words(whole)
    assert {line.rstrip()[-5:] for line in folded} >= {"75.21", " 7.48"}


def test_wide_letters_and_marks_take_the_columns_that_a_terminal_gives_them():
    """Two each, and none."""
    assert [*aligned([["结果", "1"], ["emile", "2"], ["e\u0301mile", "3"]], left=1)] == [
        "结果   1",
        "emile  2",
        "e\u0301mile  3",
    ]


def test_a_pipe_gets_a_line_a_row(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert len(list(aligned(ROWS, left=2))) == len(ROWS)
