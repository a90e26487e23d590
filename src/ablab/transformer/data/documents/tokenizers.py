"""Tokenizers of plain text: characters, bytes, subwords that are trained here, and those of two libraries."""

import abc
import base64
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ablab.errors import UserError, choices
from ablab.files import read_json, write_json
from ablab.transformer.data.normalization import SPACE
from ablab.transformer.model.tokens import EOS

FILE = "text_tokenizer.json"

MANY = 1 << 14
"""Lines that are cut in one call: Python's own integers take much memory."""

Ids = npt.NDArray[np.uint32]

REPLACED = "\ufffd"
"""What stands in a text for a character that the vocabulary lacks, and for bytes that are no text."""


class TextTokenizer(abc.ABC):
    """Text -> ids and back. `end`: the id that ends a document, and begins the next; `unknown`: of characters.

    `is_exact`: every text comes back from its ids, unknown characters aside.
    """

    kind: ClassVar[str]
    is_exact: ClassVar[bool] = True
    end: int
    unknown: int | None = None

    @abc.abstractmethod
    def __len__(self) -> int:
        """Return the number of ids."""

    @abc.abstractmethod
    def encode(self, text: str) -> Ids:
        """Return the ids of a text, without an end."""

    def encode_all(self, texts: Sequence[str]) -> list[Ids]:
        """Return the ids of each text."""
        return [self.encode(text) for text in texts]

    @abc.abstractmethod
    def bytes_of(self, ids: Sequence[int]) -> bytes:
        """Return what the ids stand for in UTF-8, of which a token may be a part; ends stand for nothing."""

    @abc.abstractmethod
    def content(self) -> dict[str, Any]:
        """Return what `load_tokenizer` makes it of."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text; what is no UTF-8 is replaced."""
        return self.bytes_of(ids).decode("utf-8", errors="replace")

    def shown(self, ids: Sequence[int]) -> list[str]:
        """Return each token for display: a line end as an arrow, the end of a document as a full block."""
        tokens = (self.bytes_of([i]).decode("utf-8", errors="replace") for i in ids)
        marked = (token.replace("\n", "\u21b5").replace(" ", SPACE) for token in tokens)
        return ["\u2588" if i == self.end else token for i, token in zip(ids, marked, strict=True)]

    def unknown_in(self, ids: Ids) -> int:
        """Return the number of unknown characters."""
        return 0 if self.unknown is None else int(np.count_nonzero(ids == self.unknown))


class Characters(TextTokenizer):
    """An id for each character, in the order of Unicode, then one for all others, then the end."""

    kind = "char"

    def __init__(self, characters: str) -> None:
        self.characters = "".join(sorted(set(characters)))
        self.unknown, self.end = len(self.characters), len(self.characters) + 1
        self._codes = _codes(self.characters)

    def __len__(self) -> int:
        return self.end + 1

    def encode(self, text: str) -> Ids:
        codes = _codes(text)
        found = np.searchsorted(self._codes, codes)
        known = self._codes[np.minimum(found, len(self._codes) - 1)] == codes
        return np.where(known, found, self.end - 1).astype(np.uint32)

    def bytes_of(self, ids: Sequence[int]) -> bytes:
        known = f"{self.characters}{REPLACED}"
        return "".join(known[i] for i in ids if i != self.end).encode()

    def content(self) -> dict[str, Any]:
        return {"characters": self.characters}


def _codes(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")


class Bytes(TextTokenizer):
    """The bytes of UTF-8, and the end."""

    kind = "byte"
    end = 256

    def __len__(self) -> int:
        return 257

    def encode(self, text: str) -> Ids:
        return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.uint32)

    def bytes_of(self, ids: Sequence[int]) -> bytes:
        return bytes(i for i in ids if i != self.end)

    def content(self) -> dict[str, Any]:
        return {}


class Subwords(TextTokenizer):
    """A SentencePiece model that was trained here, with bytes for all that no piece has, line ends among them.

    Each line begins with a space, so that a word is cut alike wherever it stands; decoding takes it away.
    """

    kind = "subwords"
    end = EOS

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self.model = model
        self._processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)
        byte = self._processor.piece_to_id
        self._line_end: int = byte("<0x0A>")
        # SentencePiece takes its own sign for a space to be one.
        self._sign = [byte(f"<0x{value:02X}>") for value in SPACE.encode()]

    def __len__(self) -> int:
        size: int = self._processor.get_piece_size()
        return size

    def encode(self, text: str) -> Ids:
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[Ids]:
        lines = [[f" {line}" if line else "" for line in text.split("\n")] for text in texts]
        every = [*chain.from_iterable(lines)]
        parts = (every[begin : begin + MANY] for begin in range(0, len(every), MANY))
        cut = chain.from_iterable(map(self._cut, parts))
        ended = ((*line, self._line_end) for line in cut)
        found = (chain.from_iterable(islice(ended, len(of))) for of in lines)
        return [np.fromiter(ids, dtype=np.uint32)[:-1] for ids in found]

    def _cut(self, lines: Sequence[str]) -> list[list[int]]:
        # One call for many lines and by one thread: to start threads takes longer than a line does.
        cut: list[list[int]] = self._processor.encode(list(lines), num_threads=1)
        for i, line in enumerate(lines):
            if SPACE in line:
                parts: list[list[int]] = self._processor.encode(line.split(SPACE), num_threads=1)
                cut[i] = [*chain.from_iterable((*part, *self._sign) for part in parts)][: -len(self._sign)]
        return cut

    def bytes_of(self, ids: Sequence[int]) -> bytes:
        return b"".join(self._pieces[i] for i in ids)

    def decode(self, ids: Sequence[int]) -> str:
        return "\n".join(line.removeprefix(" ") for line in super().decode(ids).split("\n"))

    @cached_property
    def _pieces(self) -> list[bytes]:
        """The text of each piece."""
        model = self._processor

        def text(i: int) -> bytes:
            piece: str = model.id_to_piece(i)
            if model.is_byte(i):
                return bytes([int(piece[3:5], 16)])
            return b"" if model.is_control(i) or model.is_unknown(i) else piece.replace(SPACE, " ").encode()

        return [text(i) for i in range(len(self))]

    def content(self) -> dict[str, Any]:
        return {"model": base64.b64encode(self.model).decode()}


ENDS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[SEP]")
"""Names of the token that ends a document, in tokenizers of the library `tokenizers`; one that has none gets one."""


class TokenizersFile(TextTokenizer):
    """A tokenizer of the library `tokenizers`, which may fold text. Special tokens are not read in a text."""

    kind = "tokenizers"
    is_exact = False

    def __init__(self, tokenizer: str) -> None:
        from tokenizers import Tokenizer

        self.text = tokenizer
        self._tokenizer: Any = Tokenizer.from_str(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True
        ids: dict[str, int] = self._tokenizer.get_vocab(with_added_tokens=True)
        self._size = max(ids.values()) + 1
        self.end = next((ids[name] for name in ENDS if name in ids), self._size)

    def __len__(self) -> int:
        return max(self._size, self.end + 1)

    def encode(self, text: str) -> Ids:
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[Ids]:
        found = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(each.ids, dtype=np.uint32) for each in found]

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode([int(i) for i in ids if i != self.end], skip_special_tokens=False)
        return text

    def bytes_of(self, ids: Sequence[int]) -> bytes:
        return self.decode(ids).encode()

    def shown(self, ids: Sequence[int]) -> list[str]:
        """Return each token with the space before it, which decoders of one token, as of a text, may leave out."""
        pieces = (self._tokenizer.id_to_token(int(i)) or "" for i in ids)
        return [
            SPACE + token if piece.startswith(SPACE) and not token.startswith(SPACE) else token
            for piece, token in zip(pieces, super().shown(ids), strict=True)
        ]

    def content(self) -> dict[str, Any]:
        return {"tokenizer": self.text}


_GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
_CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"""
    r"""\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K = (
    rf"""[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_SHORT}|"""
    r"""\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)
PATTERNS: Mapping[str, str] = {
    **dict.fromkeys(("gpt2", "r50k_base", "p50k_base"), _GPT2),
    "cl100k_base": _CL100K,
    "o200k_base": _O200K,
}
"""How tiktoken's encodings part a text into words (tiktoken_ext.openai_public, 0.14), which their files do not say."""


class TiktokenFile(TextTokenizer):
    """An encoding of the library `tiktoken`, from a file of its tokens; the end is one more."""

    kind = "tiktoken"

    def __init__(self, name: str, ranks: str) -> None:
        from tiktoken import Encoding

        self.name, self.ranks = name, ranks
        tokens = {base64.b64decode(token): int(rank) for token, rank in map(str.split, ranks.splitlines())}
        if len({*tokens.values()}) < len(tokens) or not {bytes([value]) for value in range(256)} <= tokens.keys():
            raise ValueError("a rank stands twice, or a byte has none: it is damaged, or cut short")
        self.end = max(tokens.values()) + 1
        self._encoding = Encoding(name, pat_str=PATTERNS[name], mergeable_ranks=tokens, special_tokens={})

    def __len__(self) -> int:
        return self.end + 1

    def encode(self, text: str) -> Ids:
        return np.array(self._encoding.encode_ordinary(text), dtype=np.uint32)

    def bytes_of(self, ids: Sequence[int]) -> bytes:
        return self._encoding.decode_bytes([int(i) for i in ids if i != self.end])

    def content(self) -> dict[str, Any]:
        return {"name": self.name, "ranks": self.ranks}


KINDS: Mapping[str, type[TextTokenizer]] = {
    each.kind: each for each in (Characters, Bytes, Subwords, TokenizersFile, TiktokenFile)
}


UNHEARD = "\U0010fffd"
"""A character of no vocabulary: a tokenizer that has neither an unknown token nor bytes fails at it."""


def given_tokenizer(path: Path) -> TextTokenizer:
    """Return the tokenizer of an existing file; UserError if it is none, or cannot encode every text."""
    is_ranks = path.suffix == ".tiktoken"
    if is_ranks and path.stem not in PATTERNS:
        known = choices(path.stem, PATTERNS)
        raise UserError(f"data.tokenizer={path}: tiktoken has no encoding {path.stem}, after which it is read; {known}")
    try:
        content = path.read_text(encoding="utf-8")
        made = TiktokenFile(path.stem, content) if is_ranks else TokenizersFile(content)
        made.encode(UNHEARD)
        return made
    except ModuleNotFoundError:
        raise
    except Exception as error:  # of the libraries: of any type
        raise UserError(
            f"data.tokenizer={path}: not readable as a tokenizer ({' '.join(str(error).split())})"
        ) from None


def save_tokenizer(folder: Path, tokenizer: TextTokenizer) -> list[str]:
    """Write the tokenizer and return the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE, {"kind": tokenizer.kind, **tokenizer.content()})
    return [FILE]


def load_tokenizer(folder: Path) -> TextTokenizer:
    """Return the tokenizer that `save_tokenizer` wrote; UserError if it is missing or damaged."""
    path = folder / FILE
    try:
        content = read_json(path)
        kind = content.pop("kind")
        return _made(kind, content)
    except FileNotFoundError:
        raise UserError(f"{path}: the tokenizer is gone, and the model cannot be used without it") from None
    except ModuleNotFoundError:
        raise
    except Exception as error:
        raise UserError(f"{path}: not readable as a tokenizer ({' '.join(str(error).split())})") from None


def _made(kind: str, content: Mapping[str, Any]) -> TextTokenizer:
    if kind == Subwords.kind:
        return Subwords(base64.b64decode(content["model"]))
    return KINDS[kind](**content)
