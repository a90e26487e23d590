"""Subword tokenizers: trained once per corpus, deterministic, with the same special token ids everywhere."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ablab.errors import UserError
from ablab.model.tokens import BOS, EOS, PAD, UNK

FILES = ("src.model", "tgt.model")

SPACE = "\u2581"
"""SentencePiece's symbol for the space before a word."""


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
    folder.mkdir(parents=True, exist_ok=True)
    for name, tokenizer in zip(FILES, tokenizers, strict=True):
        (folder / name).write_bytes(tokenizer.model)
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


def train_tokenizer(sentences: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train byte-pair encoding on raw text (Sennrich et al. 2016), covering every character.

    Raises UserError if the text does not support `vocab_size`.
    """
    import sentencepiece

    written = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=written,
            vocab_size=vocab_size,
            model_type="bpe",
            character_coverage=1.0,
            num_threads=1,
            unk_id=UNK,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            # Longer sentences would be skipped silently, so the limit is beyond any sentence.
            max_sentence_length=1 << 24,
            minloglevel=3,
        )
    except RuntimeError as error:
        raise UserError(_size_problem(vocab_size, str(error))) from None
    return Tokenizer(written.getvalue())


def _size_problem(vocab_size: int, message: str) -> str:
    """Return the error message for a `vocab_size` that training refused, with SentencePiece's reason.

    SentencePiece knows the limits only after reading the text; its reason follows the source line in `message`.
    """
    reason = " ".join(message.rpartition("] ")[2].split())
    return f"data.vocab_size={vocab_size}: the corpus does not support it ({reason})"
