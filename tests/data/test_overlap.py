"""Overlap of splits: counted for any two, and left out of training where that is asked for."""

import pytest

from ablab.errors import UserError
from ablab.transformer.data.keys import near_key
from ablab.transformer.data.overlap import Overlap, TrainingPairs, hashes
from ablab.transformer.data.prepared import corpus_id, prepare

TRAIN = [(f"The dog {n} runs.", f"Der Hund {n} läuft.") for n in range(60)]


@pytest.fixture
def corpus_of(tmp_path, configured, write):
    def build(valid, test=(("other", "anderes"),), train=TRAIN, **options):
        for name, pairs in (("train", train), ("valid", valid), ("test", test)):
            for side, language in enumerate(("en", "de")):
                write(tmp_path / f"{name}.{language}", [pair[side] for pair in pairs])
        places = {name: str(tmp_path / name) for name in ("train", "valid", "test")}
        return configured("text", **{**places, "vocab_size": 60, **options})

    return build


@pytest.mark.parametrize(
    ("held", "pairs", "sources", "near"),
    [
        (("The dog 1 runs.", "Der Hund 1 läuft."), 1, 1, 1),
        (("The  dog\u200b1 runs.", "Der Hund 1\u00a0läuft."), 1, 1, 1),
        (("The dog 1 runs.", "anders"), 0, 1, 1),
        (("the DOG 1, runs", "Der Hund 1 läuft."), 0, 0, 1),
        (("The dog 1 ran.", "Der Hund 1 läuft."), 0, 0, 0),
        (("Der Hund 1 läuft.", "The dog 1 runs."), 0, 0, 0),
    ],
)
def test_pairs_sources_and_near_twins_are_counted(held, pairs, sources, near):
    found = Overlap.between(hashes([("x", "y"), held]), hashes(TRAIN))
    assert found == Overlap(of=2, pairs=pairs, sources=sources, near=near)
    assert (found.told("test", "training") is None) == (near == 0)


def test_what_is_shared_is_told_in_one_line():
    said = [Overlap(500, *counts).told("validation", "training") for counts in ((3, 12, 32), (0, 12, 12), (0, 0, 1))]
    assert said == [
        "12 of 500 validation sources are training sources too, 3 with the same target; 20 more differ from one in "
        "case, punctuation or spaces alone",
        "12 of 500 validation sources are training sources too, 0 with the same target",
        "1 of 500 validation sources differ from training sources in case, punctuation or spaces alone",
    ]


def test_a_prepared_corpus_compares_any_pairs_with_training_and_validation(corpus_of, tmp_path):
    valid = [TRAIN[0], ("the dog 1 runs", "x"), ("new", "neu")]
    prepared = prepare(corpus_of(valid), tmp_path / "store", lambda _: None)
    assert prepared.overlap == Overlap(of=3, pairs=1, sources=1, near=2)
    found = prepared.overlaps([TRAIN[0], TRAIN[9], ("NEW!", "neu")])
    assert found == {"train": Overlap(3, 2, 2, 2), "valid": Overlap(3, 1, 1, 2)}
    (prepared.folder / "train.keys.npy").unlink()
    assert prepared.overlaps([TRAIN[0]]) is None


def test_a_corpus_that_was_prepared_before_says_nothing(corpus_of, tmp_path):
    prepared = prepare(corpus_of([TRAIN[0]]), tmp_path / "store", lambda _: None)
    del prepared.manifest["overlap"]
    assert prepared.overlap is None


def test_pairs_that_are_not_trained_on_share_nothing(corpus_of, tmp_path):
    long = ("word " * 50, "Wort")
    prepared = prepare(corpus_of([long], train=[*TRAIN, long], max_tokens=40), tmp_path / "store", lambda _: None)
    assert prepared.overlap == Overlap(of=1, pairs=0, sources=0, near=0)


def test_held_out_sources_and_near_twins_are_dropped_from_training(corpus_of, tmp_path):
    valid, test = [TRAIN[0], ("the DOG 1 runs", "x")], [("The dog 2\u00a0runs!", "y"), ("", "leer")]
    keep, drop = (corpus_of(valid, test, train=[*TRAIN, ("", "z")], overlap=what) for what in ("keep", "drop"))
    assert list(TrainingPairs(keep)) == list(keep.read_train())
    pairs = TrainingPairs(drop)
    held = {near_key(source) for source, _ in [*valid, *test[:1]]}
    assert list(pairs) == [pair for pair in drop.read_train() if near_key(pair[0]) not in held]
    assert pairs.dropped == 3
    counts = prepare(drop, tmp_path / "store", lambda _: None).manifest["train"]
    assert (counts["pairs"], counts["dropped_overlap"], counts["dropped_empty"], counts["kept"]) == (61, 3, 1, 57)
    assert "dropped_overlap" not in prepare(keep, tmp_path / "store", lambda _: None).manifest["train"]


def test_nothing_left_to_train_on_is_refused(corpus_of):
    with pytest.raises(UserError, match=r"data\.overlap=drop: each training source is in validation or test"):
        list(TrainingPairs(corpus_of(TRAIN, overlap="drop")))


def test_the_test_set_belongs_to_the_recipe_only_where_it_is_dropped(corpus_of):
    found = {}
    for overlap in ("keep", "drop"):
        corpora = [corpus_of([("v", "v")], [(text, "x")], overlap=overlap) for text in ("one", "two")]
        digests = []
        for corpus, text in zip(corpora, ("one", "two"), strict=True):
            corpus_of([("v", "v")], [(text, "x")])
            digests.append((str(corpus.digests()), corpus_id(corpus)))
        found[overlap] = digests[0] == digests[1]
    assert found == {"keep": True, "drop": False}
