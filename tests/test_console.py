"""What a terminal shows: tables that fit it, and no list of values longer than a person reads."""

import pytest

from ablab.cli import main
from ablab.console import aligned
from ablab.lines import counted, shortened

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
    monkeypatch.setattr("ablab.console.terminal_columns", lambda: columns)
    folded = list(aligned(ROWS, left=2))
    assert max(map(len, folded)) <= columns
    assert _words(folded) == _words(whole)
    assert {line.rstrip()[-5:] for line in folded} >= {"75.21", " 7.48"}


def test_a_pipe_gets_a_line_a_row(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert len(list(aligned(ROWS, left=2))) == len(ROWS)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([1, 2, 3], "1, 2, 3"),
        (range(1, 301), "1 to 300"),
        ([*range(1, 11), 20], "1 to 10, 20"),
        ([], ""),
        (range(1, 100, 2), "1, 3, 5, ..., 99 (50 in all)"),
    ],
)
def test_numbers_as_a_person_would_list_them(numbers, text):
    assert counted(numbers) == text


@pytest.mark.parametrize("words", [["layerdrop={}"], ["seed=[{}]"], ["seed=[{}"], ["nothing={}"]])
def test_a_thousand_values_are_not_printed_back(words, capsys):
    values = ",".join(map(str, range(3000)))
    assert main(["train", *(word.format(values) for word in words)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert len(err) < 1000


def test_a_long_path_is_repeated_whole():
    message = f"no file {'/folder' * 60}/x.en"
    assert shortened(message) == message
