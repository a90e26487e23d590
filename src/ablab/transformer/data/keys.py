"""Keys of sentences: equal for sentences that a model reads alike, or nearly so; without torch and SentencePiece.

A key folds all that SentencePiece's usual normalisation (nmt_nfkc) folds: sentences that it makes equal have one key.
It also leaves out what nobody sees, such as soft hyphens and joiners. Sentences that `identity` makes equal have one
key, too, unless they hold U+000B or U+001C to U+001F, which it reads as spaces; keys leave them out, as nmt_nfkc does.
What an existing model folds beyond nmt_nfkc, such as case, and what its vocabulary lacks, stay apart in keys.
"""

import re
import unicodedata
from collections.abc import Sequence

_UNSEEN = r"\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u180e\u200d\u202a-\u202e\u2060-\u2064\u2066-\u206f"
_SPACES = r"\u061c\u200b\u200c\u200e\u200f\u2581\ufeff\ufffd"
"""Characters that are left out, and those that count as a space besides the rest of Python's white space.

Python counts U+000B and U+001C to U+001F as white space; they are among those left out.
"""

_LEFT_OUT, _AS_SPACE = re.compile(f"[{_UNSEEN}]+"), re.compile(f"[{_SPACES}]+")
_NO_WORD = re.compile(r"[\W_]")


def key(sentence: str) -> str:
    """Return the sentence in NFKC with single spaces, without characters that nobody sees."""
    if not (sentence.isascii() and sentence.isprintable()):
        sentence = unicodedata.normalize("NFKC", _AS_SPACE.sub(" ", _LEFT_OUT.sub("", sentence)))
    return " ".join(sentence.split())


def near_key(sentence: str) -> str:
    """Return the key without case, punctuation and spaces; the key itself if nothing else is in it."""
    whole = key(sentence)
    return _NO_WORD.sub(_unless_punctuation, whole.casefold().replace(" ", "")) or whole


def _unless_punctuation(found: re.Match[str]) -> str:
    """Return a sign or a mark, such as a vowel sign of Hindi, as it is."""
    return "" if unicodedata.category(found[0])[0] in "PZC" else found[0]


def is_blank(sentence: str) -> bool:
    """Return whether there is nothing to read: no characters, spaces alone, or characters that nobody sees."""
    return not sentence[:1].isalnum() and not key(sentence)


def has_both_sides(pair: Sequence[str]) -> bool:
    """Return whether there is something to read on either side of a pair."""
    return not any(map(is_blank, pair))


def readable(sentence: str) -> str:
    """Return the sentence, or an empty one in place of characters that nobody sees.

    What is blank for Python's `strip` stays, as it always counted as empty: the digest of a text must not change.
    """
    return "" if is_blank(sentence) and sentence.strip() else sentence
