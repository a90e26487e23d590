"""Every byte of a prepared corpus is that of the plain way, which holds all of it in memory and trains on sentences."""

import json
import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablab.commands.cli import main
from ablab.errors import LostError, UserError
from ablab.transformer.data import blocks, encoding, preparation, processes, vocabulary
from ablab.transformer.data.encoding import WordEncoder
from ablab.transformer.data.prepared import check_vocabulary, prepare
from ablab.transformer.data.tokenizer import Tokenizer
from ablab.transformer.data.vocabulary import TrainingTask, train_on_counts, train_tokenizer, write_counts
from tests.data import plain

WORDS = ["rot", "Grün", "blue", "black", "weiß", "small", "large", "ﬁne", "①", "e\u0301té", "new", "中文", "가", "<s>"]
ODD = ["", " ", "\t", "\u2585 reserved", "\u2581", "\ufeff", "\u200b", "a\u2028b", "🏽👍", "tab\there", "x" * 90]
PIECES = [*WORDS, "\u2585", "\u2581", " ", "\t", "\r", "\0", "\x01", "\u3000", "</s>", "<unk>", "ㄱㅏ", "ｶﾞ", "a", "b"]
RULES = st.sampled_from(["nmt_nfkc", "identity"])


def _write(folder, form, count=120):
    folder.mkdir(exist_ok=True)
    rng = random.Random(1)
    for name, size in (("train", count), ("valid", 20), ("test", 5)):
        sides = [
            [" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) if rng.random() < 0.9 else rng.choice(ODD) for _ in "12"]
            for _ in range(size)
        ]
        if form == "lines":
            for side, language in enumerate(("en", "de")):
                lines = "".join(f"{pair[side]}\n" for pair in sides)
                (folder / f"{name}.{language}").write_text(lines, newline="")
        elif form == "tsv":
            rows = ("\t".join(side.replace("\t", " ") for side in pair) for pair in sides)
            (folder / f"{name}.tsv").write_text("".join(f"{row}\n" for row in rows), newline="")
        else:
            rows = (json.dumps(dict(zip(("en", "de"), pair, strict=True))) for pair in sides)
            (folder / f"{name}.jsonl").write_text("".join(f"{row}\n" for row in rows))


def _corpus(configured, folder, form="lines", **changes):
    _write(folder, form)
    ending = {"lines": "", "tsv": ".tsv", "jsonl": ".jsonl"}[form]
    places = {name: f"{folder / name}{ending}" for name in ("train", "valid", "test")}
    for name in ("valid", "test")[: len(changes.get("split", []))]:
        del places[name]
    return configured("text", src="en", tgt="de", **{"vocab_size": 110, "max_tokens": 60, **places, **changes})


def _agree(corpus, store):
    made = prepare(corpus, store, lambda _: None).folder
    expected = plain.prepared(corpus)
    assert {path.name for path in made.iterdir()} == set(expected)
    for name, content in expected.items():
        assert (made / name).read_bytes() == content, name


CHANGES = {
    "two vocabularies": {"joint_vocab": False, "vocab_size": 90},
    "characters": {"tokenizer": "char", "vocab_size": 30},
    "in lower case": {"lowercase": True},
    "normalised": {"normalization": "nmt_nfkc"},
    "overlong pairs": {"max_tokens": 12},
    "some pairs": {"train_pairs": 77, "valid_pairs": 9},
    "split": {"form": "tsv", "split": [5, 4]},
    "split, and some pairs": {"form": "jsonl", "split": [5, 4], "train_pairs": 50, "lowercase": True},
    "a split for validation": {"form": "jsonl", "split": [5]},
}


@pytest.fixture
def short_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "PAIRS", 9)


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_corpus_is_prepared_as_the_plain_way_does(changes, configured, tmp_path, short_blocks, monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 1)
    _agree(_corpus(configured, tmp_path / "text", **changes), tmp_path / "store")


@pytest.mark.parametrize("changes", [{}, {"joint_vocab": False, "vocab_size": 90, "max_tokens": 12, "train_pairs": 99}])
def test_several_processes_prepare_the_same(changes, configured, tmp_path, short_blocks, monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 3)
    monkeypatch.setattr(vocabulary, "MANY", 5)
    _agree(_corpus(configured, tmp_path / "text", **changes), tmp_path / "store")


def test_a_given_tokenizer_too(configured, tmp_path, short_blocks, monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 1)
    model = tmp_path / "theirs.model"
    model.write_bytes(plain.trained([" ".join(WORDS)] * 9, 60))
    _agree(_corpus(configured, tmp_path / "text", tokenizer=str(model)), tmp_path / "store")


@settings(max_examples=150, deadline=None)
@given(
    sentences=st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), min_size=1, max_size=30),
    kind=st.sampled_from(["bpe", "char"]),
    size=st.integers(10, 90),
    rule=RULES,
)
def test_the_counts_of_words_give_the_model_of_the_sentences(sentences, kind, size, rule):
    try:
        expected = plain.trained(sentences, size, kind, rule)
    except RuntimeError:
        with pytest.raises(UserError, match=rf"data\.vocab_size={size}"):
            train_tokenizer(sentences, size, kind, rule)
    else:
        assert train_tokenizer(sentences, size, kind, rule).model == expected


@settings(max_examples=150, deadline=None)
@given(
    text=st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), min_size=1, max_size=30),
    other=st.lists(st.lists(st.sampled_from([*PIECES, "é", "日", "z"]), max_size=12).map("".join), max_size=30),
    kind=st.sampled_from(["bpe", "char"]),
    size=st.integers(6, 90),
    most=st.sampled_from([0, 10, 1000]),
    rule=RULES,
)
def test_words_in_a_row_are_encoded_as_sentences_are(text, other, kind, size, most, rule):
    """Also where the space before a word is unknown, as in a small vocabulary of characters."""
    try:
        tokenizer = Tokenizer(plain.trained(text, size, kind, rule))
    except RuntimeError:
        return
    encoder = WordEncoder(tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "MOST", most)
        for lines in (text, other, [], text[::-1]):
            tokens, lengths = encoder.encode(lines)
            expected = tokenizer.encode(lines)
            assert lengths.tolist() == list(map(len, expected))
            assert tokens.tolist() == [token for line in expected for token in line]


def test_an_unknown_space_joins_unknown_words():
    tokenizer = Tokenizer(plain.trained(["aaaa bbbb cccc"], 6, "char"))
    lines = ["aa xx yy bb", "x y", "", "z aa"]
    tokens, lengths = WordEncoder(tokenizer).encode(lines)
    assert tokens.tolist() == [token for line in tokenizer.encode(lines) for token in line]
    assert lengths.tolist() == list(map(len, tokenizer.encode(lines)))


def test_counts_that_are_written_in_parts_add_up(tmp_path, monkeypatch):
    monkeypatch.setattr(vocabulary, "MANY", 2)
    sentences = ["one two three", "three three four", "one five"] * 3
    write_counts(tmp_path / "words", ({word: 1} for sentence in sentences for word in sentence.split()))
    assert len((tmp_path / "words").read_text().splitlines()) > 5
    assert train_on_counts(TrainingTask(tmp_path / "words", 25, "bpe")) == plain.trained(sentences, 25)


MANY = ["".join(chr(0x4E00 + (7 * n + k) % 200) for k in range(9)) for n in range(200)]


@pytest.mark.parametrize(
    ("sentences", "size", "told", "nearest"),
    [
        (
            MANY,
            50,
            r"the text needs 205 pieces for its characters alone; allowed: 205 or more, or data",
            205,
        ),
        (["ab ba"] * 9, 50, r"the text gives 13 pieces at most; allowed: up to 13", 13),
    ],
)
def test_a_size_that_the_text_does_not_support_is_refused_or_the_nearest_is_taken(
    sentences, size, told, nearest, tmp_path
):
    path = tmp_path / "words"
    write_counts(path, [vocabulary.count_words(sentences)])
    for train in (lambda: train_on_counts(TrainingTask(path, size, "bpe")), lambda: train_tokenizer(sentences, size)):
        with pytest.raises(UserError, match=rf"data\.vocab_size={size}: {told}"):
            train()
    soft = train_on_counts(TrainingTask(path, size, "bpe", hard=False))
    assert len(Tokenizer(soft)) == nearest
    supported = [train_on_counts(TrainingTask(path, nearest, "bpe", hard=hard)) for hard in (True, False)]
    assert supported[0] == supported[1]


@pytest.mark.parametrize("typed", [[], ["data.vocab_size=400"]])
def test_a_smoke_run_tells_that_a_short_text_cannot_give_the_vocabulary(typed, tmp_path, capsys):
    """It has a smaller one itself, and the runs after it would all fail."""
    for name in ("train", "valid", "test"):
        for side in ("en", "de"):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{name} {side} {number}\n" for number in range(60)))
    places = [f"data.{name}={tmp_path / name}" for name in ("train", "valid", "test")]
    words = ["data=text", *places, "data.src=en", "data.tgt=de", "smoke=true", "logger=none", *typed]
    assert main(["train", *words, f"outputs={tmp_path / 'outputs'}"]) == 2
    asked = typed[0] if typed else "data.vocab_size=8000"
    assert f"error: {asked}: the text gives" in capsys.readouterr().err


def test_a_refusal_comes_from_another_process_as_it_is(configured, tmp_path, short_blocks, monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 2)
    corpus, store = _corpus(configured, tmp_path / "text", vocab_size=90_000), tmp_path / "store"
    for call in (lambda: prepare(corpus, store, lambda _: None), lambda: check_vocabulary(corpus, store)):
        with pytest.raises(UserError, match=r"data\.vocab_size=90000: .*\d"):
            call()
    assert not any(path.is_dir() for path in store.iterdir())


def test_what_processes_import_loads_no_torch():
    """They would take seconds and 150 MB more each."""
    script = (
        "import sys, ablab.transformer.data.vocabulary, ablab.transformer.data.encoding, "
        "ablab.transformer.data.processes; print('torch' in sys.modules)"
    )
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=path).stdout == "False\n"


def _vanish(task):
    raise SystemExit(task)


def test_a_process_that_vanishes_is_told():
    with processes.Processes(100) as several:
        several.count or pytest.skip("one core")
        with pytest.raises(LostError, match="was ended with exit code 3"):
            several.call(_vanish, 3)


ENDLESS = """
import sys
from pathlib import Path
from ablab.transformer.data import blocks, preparation, prepared, processes
from tests.data.conftest import defaults
from tests.data.test_preparation import endless
from tests.shipped import shipped

processes.cores = lambda: 3
folder = Path(sys.argv[1])
places = {name: str(folder / "text" / name) for name in ("train", "valid", "test")}
options = {**defaults("text"), "src": "en", "tgt": "de", "vocab_size": 110, "max_tokens": 60, **places}
preparation.encode_block = endless
blocks.PAIRS = 9
prepared.prepare(shipped("data")["text"](**options), folder / "store", lambda _: None)
"""


def endless(task):
    time.sleep(600)


def _below(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _wait_until(holds):
    began = time.monotonic()
    while not holds():
        assert time.monotonic() < began + 300
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_a_kill_leaves_no_process_and_nothing_half_made(configured, tmp_path, short_blocks, monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 1)
    corpus, store = _corpus(configured, tmp_path / "text"), tmp_path / "store"
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path]))}
    with subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path)], env=path) as process:
        try:
            _wait_until(lambda: list(store.glob(".*/train.src.tokens.npy")))
            below = _below(process.pid)
        finally:
            process.kill()
    assert len(below) == 3
    _wait_until(lambda: not any(map(_runs, below)))
    _agree(corpus, store)
    assert [path.name for path in store.iterdir() if path.is_dir()] == [prepare(corpus, store, print).folder.name]


def test_progress_is_shown_of_each_step(configured, tmp_path, short_blocks, monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 1)
    seen = {}

    @contextmanager
    def counting(title, total):
        seen[title] = [total, 0]

        def advance(count):
            seen[title][1] += count

        yield advance

    prepare(_corpus(configured, tmp_path / "text"), tmp_path / "store", lambda _: None, counting)
    assert seen.pop("training the tokenizer") == [None, 0]
    assert seen == {title: [120, 120] for title in ("reading pairs", "counting words", "encoding pairs")}


def test_the_text_is_never_all_in_memory(configured, tmp_path, short_blocks, monkeypatch):
    """The corpus is not asked for a list of its pairs."""
    monkeypatch.setattr(processes, "cores", lambda: 1)
    corpus = _corpus(configured, tmp_path / "text")
    monkeypatch.setattr(type(corpus), "train_split", None)
    assert preparation.MANIFEST in {
        path.name for path in prepare(corpus, tmp_path / "s", lambda _: None).folder.iterdir()
    }
