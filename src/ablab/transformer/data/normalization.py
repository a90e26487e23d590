"""Normalisation of text before it is cut into subwords, and which text SentencePiece's own leaves as it is."""

import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

Rule = Literal["auto", "identity", "nmt_nfkc"]
"""Values of `data.normalization`."""

USUAL: Literal["nmt_nfkc"] = "nmt_nfkc"
"""SentencePiece's default: NFKC, without control characters and with a space for most characters of no width."""

IDENTITY: Literal["identity"] = "identity"
"""Every character stays as it is but white space, of which each character becomes a space."""

SPACE = "\u2581"
"""SentencePiece's symbol for a space."""

SENTENCES = 1000
"""Sentences that are looked at in a row: calls for single ones would take most of the time."""


def is_plain(sentences: Iterable[str]) -> bool:
    """Return whether `nmt_nfkc` leaves these sentences as they are, white space apart.

    It does if they are in NFC and it keeps each of their characters by itself: what NFKC composes, NFC has composed.
    """
    seen: set[str] = set()
    for part in _parts(iter(sentences)):
        if not unicodedata.is_normalized("NFC", part):
            return False
        seen.update(part)
    return all(map(_is_kept, seen))


def _parts(sentences: Iterator[str]) -> Iterator[str]:
    while part := "\n".join(islice(sentences, SENTENCES)):
        yield part


@cache
def _is_kept(character: str) -> bool:
    return character.isspace() or character == SPACE or normalizer(USUAL).normalize(character) == f"{SPACE}{character}"


@cache
def normalizer(rule: Rule) -> Any:
    """Return SentencePiece's normalizer of a rule: it begins each word with SPACE and has no other white space."""
    import sentencepiece

    if rule == USUAL:
        return sentencepiece.SentencePieceNormalizer(rule_name=USUAL)
    sentencepiece.set_min_log_level(2)  # it tells each rule that it reads
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "white_space.tsv"
        table.write_text("".join(f"{ord(character):X}\t20\n" for character in _white_space()), encoding="ascii")
        return sentencepiece.SentencePieceNormalizer(rule_tsv=str(table))


def spec_of(rule: Rule) -> Any:
    """Return a rule as a model holds it, a NormalizerSpec of SentencePiece."""
    from sentencepiece import sentencepiece_model_pb2 as proto

    content = proto.ModelProto()
    content.ParseFromString(normalizer(rule).serialized_model_proto())
    spec = content.normalizer_spec
    if rule != USUAL:
        spec.name = rule
        spec.ClearField("normalization_rule_tsv")  # the path of a file that is gone
    return spec


def _white_space() -> list[str]:
    """Return what Unicode calls white space, without the space itself, and SentencePiece's own symbol for it."""
    return [*(c for c in map(chr, range(0x3001)) if c.isspace() and c not in " \n"), SPACE]
