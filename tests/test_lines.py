"""Lines: what is written is read as just as many sentences, by us and by others; equal text is equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.errors import UserError
from ablab.files import canonical, lines_of, one_line, read_lines, text_of, write_lines

ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""All that `str.splitlines` calls a line end."""

text = st.text(st.one_of(st.sampled_from(f"{ENDS}\ufeff a"), st.characters(exclude_categories=("Cs",))))
sentences = st.lists(text)


@given(sentences)
def test_as_many_sentences_are_read_as_were_written(written):
    read = lines_of(text_of(written).encode(), "it")
    assert read == [one_line(sentence) for sentence in written]
    assert lines_of(text_of(read).encode(), "it") == read


@given(sentences)
def test_a_reader_that_ends_lines_at_carriage_returns_counts_the_same(written):
    text = text_of(written)
    assert text.replace("\r\n", "\n").replace("\r", "\n").count("\n") == len(written)


@given(text.filter(lambda sentence: not set(sentence) & {"\n", "\r", "\ufeff"}))
def test_other_sentences_are_left_as_they_are(sentence):
    assert one_line(sentence) == sentence


@given(sentences, st.data())
def test_a_text_may_be_given_in_parts_that_end_with_a_newline(lines, data):
    content = "\n".join(lines).encode()
    newlines = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    cut = data.draw(st.sampled_from([0, *newlines]))
    assert canonical(content[:cut]) + canonical(content[cut:]) == canonical(content)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one", ["one"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\ntwo", ["one", "two"]),
        (b"one\rhalf\ntwo\n", ["one half", "two"]),
        (b"one\r\r\ntwo\n", ["one ", "two"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "two"]),
        ("one\u2028half\x85\x0c\ntwo\n".encode(), ["one\u2028half\x85\x0c", "two"]),
    ],
)
def test_what_ends_a_line(content, lines):
    assert lines_of(content, "it") == lines


def test_a_line_that_is_no_text_is_named(tmp_path):
    with pytest.raises(UserError, match=r"^it: line 3 is not UTF-8 \(byte 0xe9, invalid continuation byte\)$"):
        lines_of(b"\xef\xbb\xbfone\r\ntwo\r\ncaf\xe9\r\n", "it")


@pytest.mark.parametrize("end", ENDS)
def test_a_file_of_ours_holds_a_line_for_each_sentence(tmp_path, end):
    write_lines(tmp_path / "sentences", [f"one{end}half", "two", f"{end}three{end}"])
    assert len(read_lines(tmp_path / "sentences")) == 3
    with (tmp_path / "sentences").open(encoding="utf-8") as file:
        assert sum(1 for _ in file) == 3
