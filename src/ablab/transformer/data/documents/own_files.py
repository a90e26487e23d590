"""A corpus of the user's own files of text."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from ablab.errors import UserError
from ablab.fields import RUNTIME
from ablab.transformer.data.documents.reading import (
    FILE,
    SPLITS,
    check_readable,
    files_of,
    has_line,
    is_json,
    read_documents,
    unpacked_name,
)
from ablab.transformer.data.documents.text_corpus import HELD_OUT, Facts, TextCorpus

FIELD = "text"
"""The field of JSON that holds the text unless one is named."""


class Documents(TextCorpus):
    """Files of text: plain, `.gz` or `.zst`; `.jsonl` has a document in the `field` of each line.

    `train`, `valid` and `test` are files, folders or patterns. `separator`: what parts the documents of other files:
    `file`, each is one; `blank_line`, `line`, or a line of its own, such as `<|endoftext|>`. Both are runtime, as the
    digests cover the documents.
    """

    kind: Literal["documents"]
    separator: Annotated[str, Field(min_length=1), RUNTIME]
    field: Annotated[str, Field(min_length=1), RUNTIME]

    def check_places(self) -> None:
        splits = {split: self._places(split) for split in ("train", *HELD_OUT)}
        files = []
        for split, places in splits.items():
            try:
                files += files_of(places)
            except UserError as error:
                raise UserError(f"data.{split}={','.join(places)}: {error}") from None
        for path in files:
            check_readable(path)
            if unpacked_name(path).endswith(".json"):
                raise UserError(f"{path}: JSON has more than text; allowed: .jsonl, which has an object in each line")
        if self.separator != FILE and all(map(is_json, files)):
            raise UserError(f"data.separator={self.separator}: each line of JSON is a document; allowed: {FILE}")
        if self.field != FIELD and not any(map(is_json, files)):
            raise UserError(
                f"data.field={self.field}: names what .jsonl files have, and there are none; allowed: {FIELD}"
            )

    def read(self, names: Sequence[str]) -> Iterator[str]:
        for path in files_of(names):
            yield from read_documents(path, self.separator, self.field)

    def facts(self, names: Sequence[str]) -> Facts:
        """Raise UserError, too, for a separator that parts nothing, as one that is misspelt does."""
        found, files = super().facts(names), [path for path in files_of(names) if not is_json(path)]
        may_be_one = self.separator not in SPLITS and files and found.documents <= len(files_of(names))
        if may_be_one and not any(has_line(path, self.separator) for path in files):
            raise UserError(
                f"data.separator={self.separator}: no line of {', '.join(names)} is this, so that each file would be "
                f"one document; allowed: {', '.join(SPLITS)}, or a line that stands between documents"
            )
        return found

    def paths(self, names: Sequence[str]) -> list[Path]:
        return files_of(names)

    def reading(self, names: Sequence[str]) -> Sequence[str | None]:
        return self.separator, self.field

    def name_of(self, place: str) -> str:
        """Return the path's last part."""
        return Path(place).name
