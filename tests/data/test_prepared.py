"""Preparation: deterministic, shared, repaired, and honest about what it drops."""

import json
import multiprocessing
from itertools import pairwise
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from ablab.errors import UserError
from ablab.store.former import _tokens_per_character
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.normalization import SPACE
from ablab.transformer.data.preparation import unigram_loss
from ablab.transformer.data.prepared import SPELT_OUT, PerCharacter, nested_subsample, prepare
from ablab.transformer.data.text import Text
from ablab.transformer.model.tokens import UNK

WORDS = ["red", "green", "blue", "black", "white", "small", "large", "old", "new", "round", "house", "tree"]


def _corpus(folder: Path, *, count=200, **changes) -> Text:
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    for name, size in (("train", count), ("valid", 20), ("test", 20)):
        if (folder / f"{name}.en").exists():
            continue
        lines = [" ".join(rng.choice(WORDS, size=rng.integers(2, 9))) for _ in range(size)]
        (folder / f"{name}.en").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{name}.de").write_text("".join(f"{line.upper()}\n" for line in lines))
    options = {
        "kind": "text",
        "src": "en",
        "tgt": "de",
        "vocab_size": 90,
        "joint_vocab": True,
        "max_tokens": 60,
        "train_pairs": None,
        "valid_pairs": None,
        "test_pairs": None,
        "train": str(folder / "train"),
        "valid": str(folder / "valid"),
        "test": str(folder / "test"),
        **changes,
    }
    return Text.model_validate(options)


def _quiet(line: str) -> None:
    pass


def test_the_same_corpus_comes_out_the_same_byte_for_byte(tmp_path):
    corpus = _corpus(tmp_path / "text")
    one, other = (prepare(corpus, tmp_path / name, _quiet) for name in ("a", "b"))
    files = sorted(path.name for path in one.folder.iterdir())
    assert files == sorted(path.name for path in other.folder.iterdir())
    assert all((one.folder / name).read_bytes() == (other.folder / name).read_bytes() for name in files)


def test_ids_decode_to_the_text(tmp_path):
    corpus = _corpus(tmp_path / "text")
    prepared = prepare(corpus, tmp_path / "store", _quiet)
    src, tgt = prepared.train
    pairs = corpus.train_split().pairs
    for side, sentences in enumerate((src, tgt)):
        rows = [sentences.tokens[a:b].tolist() for a, b in zip(sentences.offsets, sentences.offsets[1:], strict=False)]
        assert prepared.tokenizers[side].decode(rows) == [pair[side] for pair in pairs]
    assert prepared.valid_text == corpus.valid_split().pairs


def test_a_second_call_makes_nothing(tmp_path):
    corpus = _corpus(tmp_path / "text")
    said: list[str] = []
    prepared = prepare(corpus, tmp_path / "store", said.append)
    before = (prepared.folder / "manifest.json").stat().st_mtime_ns
    prepare(corpus, tmp_path / "store", said.append)
    assert len(said) == 1
    assert (prepared.folder / "manifest.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("damaged", ["train.src.tokens.npy", "src.model", "valid.tgt.txt", "manifest.json"])
@pytest.mark.parametrize("how", ["truncated", "missing", "changed"])
def test_a_damaged_folder_is_made_anew(tmp_path, damaged, how):
    corpus = _corpus(tmp_path / "text")
    folder = prepare(corpus, tmp_path / "store", _quiet).folder
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    path = folder / damaged
    content = path.read_bytes()
    match how:
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "missing":
            path.unlink()
        case "changed":
            # In the manifest, a digit of a checksum; elsewhere, the last byte.
            position = content.rindex(b'"') - 1 if damaged.endswith(".json") else len(content) - 1
            path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
    prepare(corpus, tmp_path / "store", _quiet)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_a_kill_left_half_made_is_removed(tmp_path):
    """Of this corpus alone: another may be in the making."""
    corpus, store = _corpus(tmp_path / "text"), tmp_path / "store"
    prepared = prepare(corpus, store, _quiet)
    (prepared.folder / "manifest.json").unlink()
    left, other = (store / f".{name}.abcd1234" for name in (prepared.folder.name, "another"))
    for half in (left, other):
        half.mkdir()
        (half / "src.model").touch()
    prepare(corpus, store, _quiet)
    assert not left.exists()
    assert other.exists()


def test_arrays_are_written_as_numpy_writes_them(tmp_path):
    sentences = Sentences.of([[5, 6, 7], [8]])
    for name in sentences.save(tmp_path, "ours"):
        np.save(tmp_path / "theirs.npy", sentences.tokens if "tokens" in name else sentences.offsets)
        assert (tmp_path / name).read_bytes() == (tmp_path / "theirs.npy").read_bytes()


def _prepare_elsewhere(folder: str, store: str, queue) -> None:
    said: list[str] = []
    prepare(_corpus(Path(folder)), Path(store), said.append)
    queue.put(len(said))


@pytest.mark.slow
def test_processes_at_once_make_it_once(tmp_path):
    _corpus(tmp_path / "text")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [
        context.Process(target=_prepare_elsewhere, args=(str(tmp_path / "text"), str(tmp_path / "store"), queue))
        for _ in range(3)
    ]
    for process in processes:
        process.start()
    made = [queue.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert sorted(made) == [0, 0, 1]


def test_empty_and_overlong_pairs_are_dropped_and_counted(tmp_path):
    folder = tmp_path / "text"
    corpus = _corpus(folder, max_tokens=40)
    lines = (folder / "train.en").read_text().splitlines()
    lines[3], lines[5] = "", " ".join(WORDS * 5)
    (folder / "train.en").write_text("".join(f"{line}\n" for line in lines))
    counts = prepare(corpus, tmp_path / "store", _quiet).manifest["train"]
    assert counts["dropped_empty"] == 1
    assert counts["dropped_overlong"] >= 1
    assert counts["kept"] + counts["dropped_empty"] + counts["dropped_overlong"] == counts["chosen"] == 200
    src, _ = prepare(corpus, tmp_path / "store", _quiet).train
    assert src.lengths.max() <= 40


def test_a_corpus_prepared_when_unseen_sides_were_kept_is_prepared_anew(tmp_path, monkeypatch):
    """Its runs had the ids of today, and one id must not have two training texts."""
    corpus, store = _corpus(tmp_path / "text"), tmp_path / "store"
    lines = (tmp_path / "text" / "train.en").read_text().splitlines()
    lines[3] = "\u200b"
    (tmp_path / "text" / "train.en").write_text("".join(f"{line}\n" for line in lines))
    with monkeypatch.context() as then:
        then.setattr("ablab.transformer.data.prepared.PREPARATION", 2)
        then.setattr("ablab.transformer.data.blocks.has_both_sides", lambda pair: True)
        assert prepare(corpus, store, _quiet).manifest["train"]["kept"] == 200
    assert prepare(corpus, store, _quiet).manifest["train"]["kept"] == 199


def test_a_smaller_subsample_lies_within_a_larger():
    samples = [set(nested_subsample(1000, wanted)) for wanted in (10, 100, 500, 1000)]
    assert [len(sample) for sample in samples] == [10, 100, 500, 1000]
    assert all(small < large for small, large in pairwise(samples))
    assert nested_subsample(50, None) == nested_subsample(50, 80) == list(range(50))


def test_a_vocabulary_too_large_is_said_with_the_largest(tmp_path):
    with pytest.raises(UserError, match=r"data\.vocab_size=90000: .*\d"):
        prepare(_corpus(tmp_path / "text", vocab_size=90_000), tmp_path / "store", _quiet)
    assert not any(path.is_dir() for path in (tmp_path / "store").iterdir())


def test_two_vocabularies_are_two(tmp_path):
    prepared = prepare(_corpus(tmp_path / "text", joint_vocab=False, vocab_size=60), tmp_path / "store", _quiet)
    src, tgt = prepared.tokenizers
    assert src is not tgt
    assert src.model != tgt.model
    joint = prepare(_corpus(tmp_path / "text"), tmp_path / "store", _quiet).tokenizers
    assert joint[0] is joint[1]


@pytest.mark.parametrize(("size", "is_whole"), [(6, False), (60, True)])
def test_what_a_vocabulary_lacks_is_spelt_out(tmp_path, size, is_whole):
    corpus = _corpus(tmp_path / "text", tokenizer="char", vocab_size=size, hard_vocab_limit=False)
    prepared = prepare(corpus, tmp_path / "store", _quiet)
    target, texts = prepared.tokenizers[1], [tgt for _, tgt in prepared.valid_text]
    count, known = len("".join(texts)), {*target.pieces(range(len(target)))}
    lacking = sum(character not in known for text in texts for character in SPACE + text.replace(" ", SPACE))
    assert (lacking == 0) == is_whole
    assert prepared.valid_per_character == PerCharacter(
        len(prepared.valid[1].tokens) / count, pytest.approx(lacking * SPELT_OUT / count)
    )
    assert prepared.valid_per_character(0.0) == prepared.valid_per_character.unknown
    assert _tokens_per_character(prepared.folder) == (prepared.valid_per_character.tokens if is_whole else None)


def test_unknown_characters_are_those_of_the_normalised_text(tmp_path):
    """As a token of several, which SentencePiece makes of a run, says nothing of how many."""
    target = prepare(_corpus(tmp_path / "text"), tmp_path / "store", _quiet).tokenizers[1]
    assert target.encode(["é日"])[0].count(UNK) == 1
    assert [target.unknown_characters([text]) for text in ("é日", "é 日", "\u337f", "", "A")] == [2, 2, 4, 0, 0]
    assert target.unknown_characters(["é日", "\u337f"]) == 6


def test_a_vocabulary_that_reads_nothing_does_not_win(tmp_path):
    """Not even where each of its tokens is foreseen, against guesses among those of a vocabulary that reads all."""
    losses = []
    for size, loss in ((6, 0.0), (60, log(60))):
        corpus = _corpus(tmp_path / "text", tokenizer="char", vocab_size=size, hard_vocab_limit=False)
        losses.append(prepare(corpus, tmp_path / "store", _quiet).valid_per_character(loss))
    assert losses[0] > 2 * losses[1]


def test_runs_of_unknown_characters_have_probabilities_that_sum_to_1():
    characters = sum(not 0xD800 <= code < 0xE000 for code in range(0x110000))
    each_more = characters * exp(-SPELT_OUT)
    assert sum(each_more**length for length in range(1, 60)) == pytest.approx(1)


def test_unigram_loss_is_the_entropy_where_both_sides_agree():
    train = Sentences.of([[10] * 3999, [11] * 3999])
    valid = Sentences.of([[10] * 40, [11] * 40])
    # Two words and the end of sentence, one added to each count: 4000, 4000 and 3 of 8003.
    expected = (80 * np.log(8003 / 4000) + 2 * np.log(8003 / 3)) / 82
    assert unigram_loss(train, valid) == pytest.approx(expected)


def test_the_manifest_is_plain_json(tmp_path):
    manifest = prepare(_corpus(tmp_path / "text"), tmp_path / "store", _quiet).manifest
    assert json.loads(json.dumps(manifest)) == manifest
