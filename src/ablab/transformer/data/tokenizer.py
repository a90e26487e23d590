"""Subword tokenizers: SentencePiece models with the same special token ids everywhere, read, written and renumbered."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.files import write_bytes
from ablab.transformer.data.keys import is_blank
from ablab.transformer.data.normalization import SPACE
from ablab.transformer.model.tokens import BOS, EOS, PAD, SPECIAL, UNK

FILES = ("src.model", "tgt.model")


class Tokenizer:
    """A SentencePiece model: sentence -> ids without specials, and ids -> detokenised sentence."""

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self.model = model
        self._processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)

    def __len__(self) -> int:
        size: int = self._processor.get_piece_size()
        return size

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of each sentence, without BOS or EOS."""
        ids: list[list[int]] = self._processor.encode(list(sentences))
        return ids

    def unknown_characters(self, sentences: Sequence[str]) -> int:
        """Return how many characters of the normalised sentences the vocabulary lacks: a run of them is one UNK."""
        cut = zip(self.encode(sentences), self._processor.encode(list(sentences), out_type=str), strict=True)
        return sum(len(piece) for pair in cut for i, piece in zip(*pair, strict=True) if i == UNK)

    def encode_text(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of each sentence to translate: none of a blank one, whatever the model makes of it."""
        return self.encode(["" if is_blank(sentence) else sentence for sentence in sentences])

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the plain text of each sequence; PAD, BOS and EOS are left out."""
        words = [[i for i in sequence if i not in (PAD, BOS, EOS)] for sequence in ids]
        text: list[str] = self._processor.decode(words)
        return text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the subwords as SentencePiece writes them, for figures."""
        return [self._processor.id_to_piece(int(i)) for i in ids]

    def readable(self, ids: Sequence[int]) -> list[str]:
        """Return the subwords for display: no mark before a word or a sign, a dot before a subword within a word."""
        return [_readable(piece) for piece in self.pieces(ids)]


def _readable(piece: str) -> str:
    if piece.startswith(SPACE):
        return piece.removeprefix(SPACE) or SPACE
    return f"·{piece}" if any(character.isalnum() for character in piece) else piece


def save_tokenizers(folder: Path, tokenizers: tuple[Tokenizer, Tokenizer]) -> list[str]:
    """Write the source and target tokenizers and return the names of the files."""
    for name, tokenizer in zip(FILES, tokenizers, strict=True):
        write_bytes(folder / name, tokenizer.model)
    return list(FILES)


def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Return the source and target tokenizers, the same object when the vocabulary is joint.

    Raises UserError if one is missing or damaged.
    """
    src, tgt = (_load(folder / name) for name in FILES)
    return src, src if src.model == tgt.model else tgt


def _load(path: Path) -> Tokenizer:
    try:
        model = path.read_bytes()
        if not model:
            raise RuntimeError("it is empty")  # SentencePiece takes that for a model to be loaded later
        return Tokenizer(model)
    except FileNotFoundError:
        raise UserError(f"{path}: the tokenizer is gone, and the model cannot be used without it") from None
    except RuntimeError as error:
        raise UserError(f"{path}: not readable as a tokenizer ({' '.join(str(error).split())})") from None


def given_tokenizer(path: Path) -> Tokenizer:
    """Return an existing SentencePiece model with our ids of the special tokens; UserError if it is none."""
    tokenizer = _load(path)
    processor = tokenizer._processor
    theirs = (processor.unk_id(), processor.pad_id(), processor.bos_id(), processor.eos_id())
    return tokenizer if theirs == SPECIAL else Tokenizer(_renumbered(tokenizer.model, theirs))


def _renumbered(model: bytes, theirs: Sequence[int]) -> bytes:
    """Return a model whose special tokens come first, in our order; those that it lacks are added.

    The other pieces keep their order and their scores, so that text is cut into the same pieces. One of them may have
    the name of a token that is lacking, as `<pad>` does where it is a symbol of the user's.
    """
    from sentencepiece import sentencepiece_model_pb2 as proto

    content = proto.ModelProto()
    content.ParseFromString(model)
    pieces = list(content.pieces)
    names = {UNK: "<unk>", PAD: "<pad>", BOS: "<s>", EOS: "</s>"}
    taken = {piece.piece for piece in pieces}
    special, kind = [], proto.ModelProto.SentencePiece.CONTROL
    for ours, their in zip(SPECIAL, theirs, strict=True):
        name = f"<special:{names[ours]}>" if names[ours] in taken else names[ours]
        added = proto.ModelProto.SentencePiece(piece=name, score=0.0, type=kind)
        special.append(pieces[their] if their >= 0 else added)
    others = [piece for number, piece in enumerate(pieces) if number not in theirs]
    del content.pieces[:]
    content.pieces.extend([*special, *others])
    spec = content.trainer_spec
    spec.unk_id, spec.pad_id, spec.bos_id, spec.eos_id = UNK, PAD, BOS, EOS
    for field, piece in zip(("unk_piece", "pad_piece", "bos_piece", "eos_piece"), special, strict=True):
        if getattr(spec, field) != piece.piece:
            setattr(spec, field, piece.piece)
    spec.vocab_size = len(content.pieces)
    renumbered: bytes = content.SerializeToString()
    return renumbered
