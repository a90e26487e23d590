"""Which sentences are looked at: by the text alone, short enough to read."""

import random

import pytest

from ablab.transformer.translation.analyses import LONGEST, readable_pairs


def bytes_of(pair):
    return max(len(side.encode()) for side in pair)


@pytest.fixture
def text():
    rng = random.Random(3)
    pairs = [("ä" * rng.randint(1, 70), "b" * rng.randint(1, 130)) for _ in range(200)]
    return [*pairs, *pairs[:20], ("", "no source"), ("no reference", " ")]


def chosen(pairs, count=4):
    return readable_pairs([src for src, _ in pairs], [tgt for _, tgt in pairs], count)


def test_they_can_be_read_differ_and_go_from_short_to_long(text):
    found = [text[number] for number in chosen(text)]
    assert len(set(found)) == 4
    assert sorted(found, key=bytes_of) == found
    assert bytes_of(found[-1]) <= LONGEST
    short = sorted(
        bytes_of(pair) for pair in {*text} if all(side.strip() for side in pair) and bytes_of(pair) <= LONGEST
    )
    assert [bytes_of(pair) for pair in found] == [short[(2 * part + 1) * len(short) // 8] for part in range(4)]


def test_a_repeated_pair_counts_once_where_it_stands_first(text):
    repeated = [*text[:200], *text[:200], *text[:200]]
    assert chosen(repeated) == chosen(text[:200])


def test_a_small_or_long_winded_test_set_gives_its_shortest(text):
    long = [("x" * (LONGEST + number), "y") for number in range(9, 0, -1)]
    assert chosen(long) == [8, 7, 6, 5]
    assert chosen(long[:2]) == [1, 0]
    assert chosen([("", "")]) == []
