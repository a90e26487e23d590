"""Words for people: no list of values longer than a person reads, and nothing that moves what a screen shows."""

from pathlib import Path
from types import SimpleNamespace
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.commands.cli import main
from ablab.report.sentences import command
from ablab.text import SCRIPTS, counted, digits_apart, digits_beside, how_many, p_text, program, shortened, visible


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


@pytest.mark.parametrize(
    ("value", "mark", "digits"),
    [(0.47, 0.0, 2), (0.004, 0.0, 3), (-0.004, 0.0, 3), (-15.0004, 15.0, 4), (15.0, 15.0, 2), (1e-9, 0.0, 2)],
)
def test_a_number_beside_a_mark_has_the_digits_that_tell_them_apart(value, mark, digits):
    """Up to four more: what is nearer is told from it by no reader."""
    assert digits_apart(2, [value, 1.0], [mark]) == digits


@pytest.mark.parametrize(("declared", "digits"), [(0, 0), (2, 2), (3, 3), (4, 3), (5, 5), (7, 7)])
def test_a_table_of_several_scores_has_the_digits_that_were_declared(declared, digits):
    """Four are what a score has for which none are declared."""
    assert digits_beside(declared) == digits


def test_a_command_to_type_again_is_quoted_for_a_shell():
    made = SimpleNamespace(typed=["experiment=my study.yaml", "data.test=[a,b]", "seed=1"])
    assert command(made).endswith(" -m 'experiment=my study.yaml' 'data.test=[a,b]' seed=1")


@given(st.one_of(st.floats(0.01, 1.0), st.floats(0.0495, 0.0505)))
def test_no_p_value_reads_as_the_level_unless_it_is_the_level(p):
    assert abs(float(p_text(p)) - p) <= 0.0005 + 1e-12
    if abs(p - 0.05) > 1e-7:  # what is nearer, no reader tells from it
        assert float(p_text(p)) != 0.05
    assert p_text(0.05) == "0.050"


def test_one_thing_is_not_several():
    assert [how_many(number, "arm") for number in (0, 1, 2, 1000)] == ["0 arms", "1 arm", "2 arms", "1,000 arms"]


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


@given(st.text())
def test_what_is_shown_moves_nothing_on_the_screen(text):
    """Printable text stays as it is; what controls a terminal is written out, and can be told from it."""
    shown = visible(text)
    assert not any(category(each) == "Cc" and each not in "\n\t" for each in shown)
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u202c\u2066\u2067\u2068\u2069")
    plain = "".join(each for each in text if each.isprintable())
    assert visible(plain) == plain


def test_a_colour_is_written_out():
    assert visible("a\x1b[31mb\x07\u202e") == r"a\x1b[31mb\x07\u202e"


def test_a_line_to_type_names_a_script_only_where_there_is_one(monkeypatch):
    monkeypatch.setattr("sys.argv", ["train.py"])
    assert [program(verb) for verb in (*SCRIPTS, "generate")] == [
        *(f"python {verb}.py" for verb in SCRIPTS),
        "ablab generate",
    ]
    assert all((Path(__file__).parents[1] / f"{verb}.py").is_file() for verb in SCRIPTS)
