"""At a terminal `translate` says that it reads, and answers each line; what is piped is one batch."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from ablab.transformer.translation.verbs import translate as verb


class _Typed(io.BytesIO):
    """Standard input that notes how much was answered when each line was read."""

    def __init__(self, content: bytes, answered: list[int], batches: list[list[str]]) -> None:
        super().__init__(content)
        self.answered, self.batches = answered, batches

    def __next__(self) -> bytes:
        line = super().__next__()
        self.answered.append(len(self.batches))
        return line


def test_a_line_that_is_no_text_is_named_and_the_session_goes_on(monkeypatch, capsys):
    stdin = SimpleNamespace(buffer=io.BytesIO(b"One\n\xff\nTwo\n"), isatty=lambda: True)
    saved = SimpleNamespace(name="r1", former=None, lowercase=False)
    monkeypatch.setattr(verb, "find_model", lambda *_: saved)
    monkeypatch.setattr(verb, "_translator", lambda *_: lambda texts: [[(0.0, text[::-1])] for text in texts])
    monkeypatch.setattr("sys.stdin", stdin)
    assert verb.translate(["run=r1", f"outputs={Path()}"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "enO\nowT\n"
    assert "standard input: line 2 is not UTF-8 (byte 0xff" in shown.err


@pytest.mark.parametrize("lowercase", [False, True])
def test_each_line_is_answered_before_the_next_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lowercase: bool
) -> None:
    outputs = {}
    for is_terminal in (True, False):
        answered: list[int] = []
        batches: list[list[str]] = []

        def loaded(*_: object, batches: list[list[str]] = batches) -> Callable[[Sequence[str]], object]:
            def translated(sentences: Sequence[str]) -> object:
                batches.append(list(sentences))
                return [[(0.0, sentence[::-1])] for sentence in sentences]

            return translated

        stdin = SimpleNamespace(buffer=_Typed(b"One\nTwo\n", answered, batches), isatty=lambda here=is_terminal: here)
        saved = SimpleNamespace(name="r1", former=None, lowercase=lowercase)
        monkeypatch.setattr(verb, "find_model", lambda *_, saved=saved: saved)
        monkeypatch.setattr(verb, "_translator", loaded)
        monkeypatch.setattr("sys.stdin", stdin)
        assert verb.translate(["run=r1", f"outputs={Path()}"]) == 0
        shown = capsys.readouterr()
        outputs[is_terminal] = shown.out
        assert ("Ctrl-D" in shown.err) == is_terminal
        assert len(batches) == (2 if is_terminal else 1)
        assert answered == ([0, 1] if is_terminal else [])
    assert outputs[True] == outputs[False] == ("eno\nowt\n" if lowercase else "enO\nowT\n")
