"""Corpora of every byte: prepared with as many sentences on one side as on the other, or refused in one line."""

import gzip
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.errors import BAD_INPUT, DONE
from tests.input.conftest import examples
from tests.input.forked import Ended, forked, typed
from tests.input.laws import assert_no_fault_of_ours, assert_told_in_one_line

PREFIXES = tuple(f"data.{name}={name}" for name in ("train", "valid", "test"))
WORDS = ("data=text", *PREFIXES, "logger=none")
FILES = tuple(f"{name}.{lang}" for name in ("train", "valid", "test") for lang in ("en", "de"))
PLAIN = b"a red house\nthe blue boat is here\nno one was at home\n"

PIECES = (
    *(b"a red house", b"", b" ", b"\t", b"\x00", b"\r", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x1a"),
    *("\u2028 \u2029 \x85", "ünï", "🐱‍👤", "a\u0301", "\ufffe", "<s> </s> <unk> <pad>", "\u2581 \u2581"),
    *(bytes(range(1, 10)), bytes(range(11, 128)), bytes(range(256)), b"x" * 5000, b"\xc3"),
)  # fmt: skip
ENDS = st.sampled_from((b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b""))
PIECE = st.sampled_from([piece.encode() if isinstance(piece, str) else piece for piece in PIECES])
TEXT = st.lists(st.tuples(PIECE | st.binary(max_size=12), ENDS), max_size=8).map(
    lambda lines: b"".join(text + end for text, end in lines)
)
UTF_8 = st.lists(st.text(max_size=12), min_size=3, max_size=3).map(
    lambda lines: "\n".join(lines).encode("utf-8", "ignore")
)


def _prepared(place: Path, *words: str) -> Ended:
    """Plan a run on the corpus in `place` and prepare it, as `ablab train` does; print what came of it."""

    def call(planned: object, console: object, began: float) -> object:
        from ablab.transformer.data.prepared import prepare

        corpus = planned.config.data  # type: ignore[attr-defined]
        made = prepare(corpus, Path("prepared"), lambda line: None)
        sides = [*made.train, *made.valid]
        corpus.test_split()
        sys.stdout.write(json.dumps({"sides": [len(side) for side in sides], "lines": len(made.valid_text)}))
        return planned

    shutil.rmtree(place / "prepared", ignore_errors=True)
    ended = typed(["train", *WORDS, *words], place, instead={"ablab.run.run": call})
    assert_no_fault_of_ours(ended)
    assert_told_in_one_line(ended)
    return ended


def _write(place: Path, contents: dict[str, bytes]) -> None:
    for name in FILES:
        for path in (place / name, place / f"{name}.gz"):
            path.unlink(missing_ok=True)
        (place / name).write_bytes(contents.get(name, 9 * PLAIN))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, warm: None) -> Path:
    import ablab.transformer.data.prepared  # noqa: F401  # so that a fork need not
    from ablab.config import compose

    compose(WORDS)

    return tmp_path_factory.mktemp("corpus")


@examples(0.15)
@given(
    contents=st.dictionaries(st.sampled_from(FILES), TEXT | UTF_8, max_size=2),
    both=st.none() | TEXT | UTF_8,
    packed=st.booleans(),
    size=st.integers(5, 300),
)
def test_any_bytes_are_prepared_with_equal_sides_or_refused(
    contents: dict[str, bytes], both: bytes | None, packed: bool, size: int, corpus: Path
) -> None:
    _write(
        corpus, {**contents, **({} if both is None else {"train.en": both + 9 * PLAIN, "train.de": both + 9 * PLAIN})}
    )
    if packed:
        (corpus / "train.en.gz").write_bytes(gzip.compress((corpus / "train.en").read_bytes()))
        (corpus / "train.en").unlink()
    ended = _prepared(corpus, f"data.vocab_size={size}")
    if ended.code == DONE:
        found = json.loads(ended.out)
        train_src, train_tgt, valid_src, valid_tgt = found["sides"]
        assert train_src == train_tgt > 0
        assert valid_src == valid_tgt == found["lines"] > 0


def test_a_plain_corpus_is_prepared(corpus: Path) -> None:
    _write(corpus, {})
    assert json.loads(_prepared(corpus, "data.vocab_size=40").out)["sides"] == [27, 27, 27, 27]


@pytest.mark.parametrize("kind", ["folder", "pipe", "endless", "dangling", "circle", "cut", "no_gzip"])
def test_what_is_no_file_of_text_is_refused_and_never_waited_for(kind: str, corpus: Path) -> None:
    _write(corpus, {})
    name = "train.en"
    path = corpus / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind in ("cut", "no_gzip"):
        whole = gzip.compress(9 * PLAIN)
        path.with_name(f"{name}.gz").write_bytes(whole[:-12] if kind == "cut" else b"text\n")
    else:
        path.symlink_to({"endless": "/dev/zero", "dangling": "nowhere", "circle": name}[kind])
    try:
        ended = _prepared(corpus, "data.vocab_size=40")
    finally:
        path.rmdir() if kind == "folder" else path.unlink(missing_ok=True)
    assert ended.code == BAD_INPUT
    assert name in ended.err


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xff" * 100, b"\x0a\x7fx", PLAIN], ids=range(5))
def test_a_tokenizer_that_is_none_is_one_line(content: bytes, corpus: Path) -> None:
    from ablab.errors import UserError
    from ablab.transformer.data.tokenizer import load_tokenizers

    for name in ("src.model", "tgt.model"):
        (corpus / name).write_bytes(content)

    def call() -> int:
        with pytest.raises(UserError, match=r"src\.model"):
            load_tokenizers(Path())
        return DONE

    assert_no_fault_of_ours(forked(call, corpus))
