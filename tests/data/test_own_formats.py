"""Own text in one file, and its splitting: equal text is one corpus, and no sentence is in two parts."""

import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from ablab.errors import UserError
from ablab.fields import Role
from ablab.tasks.identity import evaluation
from ablab.transformer.data.corpus import Corpus, Pair, digest_of
from ablab.transformer.data.keys import key
from ablab.transformer.data.scoring import Scoring, bleu, score
from ablab.transformer.data.splitting import hold_out
from ablab.transformer.data.text_files import digest_of_pair
from ablab.transformer.data.tokenizer import given_tokenizer
from ablab.transformer.data.vocabulary import train_tokenizer
from ablab.transformer.model.tokens import EOS, PAD, SPECIAL, UNK
from tests.data import plain

Configured = Callable[..., Corpus]
PAIRS = [(f"one {n}", f"Eins {n}") for n in range(20)] + [("one 3", "noch eins"), ("", "leer")]


def _written(folder: Path) -> dict[str, str]:
    """Write the pairs in every format; return the value of data.train by format."""
    for side, language in enumerate(("en", "de")):
        (folder / f"two.{language}").write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    tsv = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    (folder / "one.tsv").write_text(tsv)
    (folder / "one.tsv.gz").write_bytes(gzip.compress(tsv.encode()))
    records = [{"en": source, "de": target, "id": 1} for source, target in PAIRS]
    (folder / "flat.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "nested.jsonl").write_text("".join(json.dumps({"translation": record}) + "\n" for record in records))
    names = ("two", "one.tsv", "one.tsv.gz", "flat.jsonl", "nested.jsonl")
    return {name: str(folder / name) for name in names}


def test_equal_text_is_one_corpus_in_every_format(tmp_path: Path, configured: Configured) -> None:
    corpora = [configured("text", train=path, split=[3, 4]) for path in _written(tmp_path).values()]
    assert len({(corpus.train_digest(), corpus.test_digest()) for corpus in corpora}) == 1
    for corpus in corpora:
        corpus.check()
        corpus.check_pairs()
        assert corpus.train_split().pairs == corpora[0].train_split().pairs
        assert corpus.test_split().pairs == corpora[0].test_split().pairs
        assert [corpus.pairs_in(split) for split in ("valid", "test")] == [3, 4]


def _split(pairs: list[Pair], sizes: list[int]) -> list[list[Pair]]:
    held = hold_out(pairs, sizes)
    return [[pair for pair in pairs if held.leaves(pair)], *held.parts]


@settings(max_examples=200, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.sampled_from("abcdefgh ") | st.text(max_size=2), st.sampled_from(["", "x", "y"]))),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=2),
)
def test_pairs_are_held_out_as_if_all_were_in_memory(pairs: list[Pair], sizes: list[int]) -> None:
    found = []
    for split in (_split, plain.split_pairs):
        try:
            found.append(split(pairs, sizes))
        except UserError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_no_source_sentence_is_in_two_parts_whatever_the_order() -> None:
    parts = _split(PAIRS, [3, 4])
    sources = [{source for source, _ in part} for part in parts]
    assert not sources[0] & sources[1] | sources[0] & sources[2] | sources[1] & sources[2]
    assert list(map(len, parts[1:])) == [3, 4]
    backwards = _split(PAIRS[::-1], [3, 4])
    assert [{source for source, _ in part} for part in backwards] == sources
    assert _split(PAIRS, [6, 4])[2] == parts[2]  # the test set stays when the validation set grows
    with pytest.raises(UserError, match="20 different source sentences"):
        _split(PAIRS, [10, 10])


def test_validation_alone_is_split_off_beside_a_test_set(tmp_path: Path, configured: Configured) -> None:
    path = _written(tmp_path)["one.tsv"]
    corpus = configured("text", train=path, test=path, split=[3])
    corpus.check()
    assert len(corpus.valid_split().pairs) == 3
    assert len(corpus.test_split().pairs) == len(PAIRS)
    with pytest.raises(UserError, match=r"data.split takes the test pairs"):
        configured("text", train=path, test=path, split=[3, 3]).check()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.tsv", b"a\tb\na\tb\tc\n", "line 2: 3 columns; allowed: 2"),
        ("x.tsv", b"a\tb\n\xff\tb\n", "line 2 is not UTF-8"),
        ("x.tsv", b"", "is empty"),
        ("x.tsv", b"\tb\n", "has an empty side"),
        ("x.jsonl", b'{"en": "a", "de": "b"}\n[]\n', "line 2: no JSON object"),
        ("x.jsonl", b"{\n", "line 1: not readable as JSON"),
        ("x.jsonl", b'{"en": "a", "fr": "b"}\n', "line 1: no text in the field de"),
        (
            "x.jsonl",
            b'{"en": "a", "de": "b"}\n{"en": "\\ud83d", "de": "b"}\n',
            "line 2: half a surrogate pair in the field en",
        ),
    ],
)
def test_a_bad_line_is_named_before_anything_is_prepared(
    tmp_path: Path, configured: Configured, name: str, content: bytes, told: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=told):
        configured("text", train=str(tmp_path / name), split=[1, 1]).train_digest()


def test_bytes_that_are_no_text_are_found_by_the_digest(tmp_path: Path, configured: Configured) -> None:
    path = _written(tmp_path)["two"]
    (tmp_path / "two.de").write_bytes(b"good\n" * 3 + b"b\xe4d\n")
    with pytest.raises(UserError, match=r"two.de: line 4 is not UTF-8 \(byte 0xe4"):
        configured("text", train=path, split=[1, 1]).train_digest()


def test_defaults_that_came_later_are_in_no_recipe(tmp_path: Path, configured: Configured) -> None:
    path = _written(tmp_path)["two"]
    recipe = configured("text", train=path, valid=path, test=path).part(Role.RECIPE)
    assert not recipe.keys() & {"tokenizer", "lowercase", "bleu_tokenizer", "split", "columns"}
    assert "vocab_size" in recipe


def _model(path: Path, **options: int | str | list[str]) -> None:
    written = io.BytesIO()
    text = [side for pair in PAIRS for side in pair if side]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_writer=written, vocab_size=26, minloglevel=3, **options
    )
    path.write_bytes(written.getvalue())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pad_id": 3},
        {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3},
        {"user_defined_symbols": ["<pad>"]},
        {"user_defined_symbols": ["<pad>"], "model_type": "bpe"},
        {"user_defined_symbols": ["<s>", "</s>"], "bos_id": -1, "eos_id": -1, "model_type": "bpe"},
        {"pad_id": 3, "pad_piece": "[PAD]", "eos_piece": "[SEP]"},
    ],
)
def test_an_existing_model_cuts_text_as_it_did(tmp_path: Path, options: dict[str, int | str | list[str]]) -> None:
    path = tmp_path / "spm.model"
    _model(path, **options)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = given_tokenizer(path)
    processor = ours._processor
    assert (processor.unk_id(), processor.pad_id(), processor.bos_id(), processor.eos_id()) == SPECIAL
    for sentence in ("one 17", "Eins 3", "unseen %", "one <pad> 3"):
        (ids,) = ours.encode([sentence])
        known = [theirs.id_to_piece(i) for i in theirs.encode(sentence) if not theirs.is_unknown(i)]
        assert [piece for piece, i in zip(ours.pieces(ids), ids, strict=True) if i != UNK] == known
        assert not {PAD, EOS} & set(ids)
    assert ours.decode(ours.encode(["one 17"])) == ["one 17"]


def test_the_content_of_a_model_decides_not_its_path(tmp_path: Path, configured: Configured) -> None:
    path = _written(tmp_path)["two"]
    for name, size in (("a", {}), ("b", {}), ("c", {"pad_id": 3})):
        _model(tmp_path / f"{name}.model", **size)

    def recipe(name: str) -> object:
        model = str(tmp_path / f"{name}.model")
        corpus = configured("text", train=path, split=[1, 1], tokenizer=model)
        corpus.check()
        return corpus.effective().part(Role.RECIPE)

    assert recipe("a") == recipe("b") != recipe("c")
    with pytest.raises(UserError, match="no such file"):
        recipe("d")


def test_characters_are_a_vocabulary_of_their_own() -> None:
    tokenizer = train_tokenizer(["ab ba"] * 10, 8000, "char")
    assert len(tokenizer) == 4 + 3  # a, b and the space
    assert tokenizer.decode(tokenizer.encode(["ba ab"])) == ["ba ab"]


def test_scores_are_those_of_sacrebleu_and_say_so() -> None:
    hypotheses, references = (
        ["我爱北京天安门", "Guten Tag Welt und Mond"],
        ["我爱北京天安门", "guten tag Welt und Mond"],
    )
    chinese = score(hypotheses[:1], references[:1], Scoring(tokenizer="zh"))
    assert chinese.bleu == pytest.approx(100)
    assert "tok:zh" in chinese.signatures["bleu"]
    caseless = score(hypotheses[1:], references[1:], Scoring(lowercase=True))
    assert caseless.bleu == pytest.approx(100)
    assert "case:lc" in caseless.signatures["bleu"]
    assert score(hypotheses[1:], references[1:]).bleu < 100
    assert bleu(hypotheses[:1], references[:1]) < 100  # 13a sees one word


def test_lower_case_is_that_of_text_and_of_scores(tmp_path: Path, configured: Configured) -> None:
    corpus = configured("text", train=_written(tmp_path)["two"], split=[3, 4], lowercase=True)
    assert all(target == target.lower() for _, target in corpus.as_read(PAIRS))
    assert corpus.scoring == {"lowercase": True}


def test_case_alone_does_not_part_sentences_that_are_read_in_lower_case(tmp_path: Path, configured: Configured) -> None:
    for language in ("en", "de"):
        (tmp_path / f"x.{language}").write_text("".join(f"One {n}\none {n}\n" for n in range(20)))
    cased, lowered = (
        configured("text", train=str(tmp_path / "x"), split=[3, 4], lowercase=lowercase) for lowercase in (False, True)
    )
    read = lowered.read_train, lambda: lowered.valid_split().pairs, lambda: lowered.test_split().pairs
    parts = [{source.lower() for source, _ in of()} for of in read]
    assert [len(part) for part in parts] == [13, 3, 4]
    assert len(set().union(*parts)) == 20
    assert lowered.pairs_in("train") == 26
    assert cased.train_digest() != lowered.train_digest()
    assert cased.test_digest() != lowered.test_digest()


def test_only_unusual_scoring_names_an_evaluation() -> None:
    from ablab.config import compose

    assert "scoring" not in evaluation(compose([]).config)
    assert evaluation(compose(["data.bleu_tokenizer=zh"]).config)["scoring"] == {"tokenizer": "zh"}


def test_the_target_language_names_the_tokenizer_of_bleu_unless_one_is_given(configured: Configured) -> None:
    thai = configured("numbers", tgt="th", bleu_tokenizer=None)
    assert thai.scoring == {"tokenizer": "char"}
    assert thai.part(Role.RECIPE)["bleu_tokenizer"] == "char"
    assert configured("numbers", tgt="th", bleu_tokenizer="13a").scoring == {}
    german = configured("numbers", tgt="de", bleu_tokenizer=None)
    assert "bleu_tokenizer" not in german.part(Role.RECIPE)


TWINS = ("{} {}", " {}  {}", "{}\u00a0{}", "{}\t{}", "{}\u200b{}", "{} {}\u00ad")


def _two(folder: Path, pairs: Sequence[Pair]) -> str:
    for side, language in enumerate(("en", "de")):
        (folder / f"twins.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), newline="")
    return str(folder / "twins")


def test_sentences_that_are_read_alike_are_in_one_part() -> None:
    pairs = [(form.format("word", n), f"Wort {n}") for form in TWINS for n in range(30)]
    parts = _split(pairs, [6, 8])
    read = [{key(source) for source, _ in part} for part in parts]
    assert list(map(len, read)) == [16, 6, 8]
    assert len(set().union(*read)) == 30
    assert len(parts[0]) == 16 * len(TWINS)
    backwards = _split(pairs[::-1], [6, 8])
    assert [set(part) for part in backwards] == [set(part) for part in parts]


def test_twins_alone_give_a_split_another_digest(tmp_path: Path, configured: Configured) -> None:
    """Twins of sentences that are trained on stay where they are, and change no digest."""
    held = {source for part in _split(PAIRS, [3, 4])[1:] for source, _ in part}
    trained = next(source for source, _ in PAIRS if source not in held)

    def digests(twin: str) -> tuple[bool, bool]:
        path = _two(tmp_path, [*PAIRS, (twin, "x")])
        corpus = configured("text", train=path, split=[3, 4])
        plainly = digest_of_pair(Path(f"{path}.en"), Path(f"{path}.de"))
        test = digest_of({"split": [3, 4], "of": plainly})
        return corpus.train_digest() == digest_of([plainly]), corpus.test_digest() == test

    assert digests(min(held)) == digests(f"  {trained}") == digests(f"{trained}\u00a0") == (True, True)
    assert digests(f"{min(held)}\u00ad") == (False, False)


def test_a_text_of_its_own_has_no_twins_beside_a_split(tmp_path: Path, configured: Configured) -> None:
    path = _two(tmp_path, [(form.format("word", 1), "Wort") for form in TWINS])
    corpus = configured("text", train=path, valid=path, test=path)
    plainly = digest_of_pair(Path(f"{path}.en"), Path(f"{path}.de"))
    assert corpus.train_digest() == digest_of([plainly, plainly])
    assert corpus.test_digest() == plainly


def test_a_line_of_what_nobody_sees_is_an_empty_line(tmp_path: Path, configured: Configured) -> None:
    """In lines, TSV and JSON; the run is that of the text with an empty line."""
    found = []
    for unseen in ("", "\u200b", " \u00ad\u200d"):
        pairs = [*PAIRS, (unseen, "x")]
        path = _two(tmp_path, pairs)
        (tmp_path / "one.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
        records = [json.dumps(dict(zip(("en", "de"), pair, strict=True))) for pair in pairs]
        (tmp_path / "one.jsonl").write_text("".join(f"{record}\n" for record in records))
        for train in (path, str(tmp_path / "one.tsv"), str(tmp_path / "one.jsonl")):
            corpus = configured("text", train=train, valid=train, test=train)
            found.append((corpus.train_digest(), corpus.test_digest(), tuple(corpus.read_train())))
    assert len(set(found)) == 1
