"""Any data set of the library `datasets`, by its name on the Hugging Face Hub or its folder."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ablab.errors import MachineError, UserError, choices, is_installed
from ablab.fields import RUNTIME
from ablab.transformer.data.documents.text_corpus import HELD_OUT, TextCorpus

BATCH = 1000
"""Rows that are read at a time."""

SAVED = ("dataset_dict.json", "state.json")
"""Files by which a folder of `save_to_disk` is known, of several splits and of one."""


class HuggingFace(TextCorpus):
    """A data set of `datasets`: each row's `field` is a document.

    `name`: on the Hub, or a folder: one of files that `datasets` reads, or one of `save_to_disk`. `config` and
    `revision`: as `load_dataset` takes them. `train`, `valid` and `test` name splits of it, such as `train[:10%]`. All
    are runtime, as the digests are of the documents: whatever the place, the version and the format, equal text is
    one run, and text that changed on the Hub another.
    """

    kind: Literal["huggingface"]
    name: Annotated[str | None, RUNTIME]
    config: Annotated[str | None, RUNTIME]
    revision: Annotated[str | None, RUNTIME]
    field: Annotated[str, Field(min_length=1), RUNTIME]

    def check_places(self) -> None:
        if self.name is None:
            raise UserError(
                "data.name is needed: a data set of the Hugging Face Hub or a folder, such as "
                "data.name=roneneldan/TinyStories"
            )
        if not is_installed("datasets"):
            raise MachineError("data=huggingface: datasets is needed; pip install 'ablab[huggingface]' brings it")
        for split in ("train", *HELD_OUT):
            for place in self._places(split):
                columns = self._set(place).column_names
                if self.field not in columns:
                    raise UserError(
                        f"data.field={self.field}: no such field of {self.name}; {choices(self.field, columns)}"
                    )

    def read(self, names: Sequence[str]) -> Iterator[str]:
        for name in names:
            for rows in self._set(name).select_columns([self.field]).iter(BATCH):
                for text in rows[self.field]:
                    if not isinstance(text, str | None):
                        raise UserError(
                            f"data.field={self.field}: {type(text).__name__} in place of text; allowed: a field of text"
                        )
                    if text and not text.isspace():
                        yield text

    def paths(self, names: Sequence[str]) -> list[Path]:
        """Return the Arrow files of these splits."""
        files = [Path(file["filename"]) for name in names for file in self._set(name).cache_files]
        return list(dict.fromkeys(files))

    def reading(self, names: Sequence[str]) -> Sequence[str | None]:
        """Return the field, and which rows these splits are: slices of one split have the same files."""
        return self.field, *names, *(self._set(name)._fingerprint for name in names)

    def name_of(self, place: str) -> str:
        """Return the name of the split."""
        return place

    def _set(self, split: str) -> Any:
        return _loaded(str(self.name), self.config, self.revision, split)


@lru_cache(maxsize=16)
def _loaded(name: str, config: str | None, revision: str | None, split: str) -> Any:
    """Return a split of a data set; UserError where there is none."""
    import datasets

    datasets.disable_progress_bars()
    folder = Path(name).expanduser()
    place = str(folder) if folder.is_dir() else name
    is_saved = any((folder / file).is_file() for file in SAVED)
    for key, value in (("config", config), ("revision", revision)):
        if is_saved and value is not None:
            raise UserError(f"data.{key}={value}: {name} is a folder of save_to_disk, which has none; allowed: null")
    try:
        if not is_saved:
            return datasets.load_dataset(place, config, revision=revision, split=split)
        found = datasets.load_from_disk(place)
    except Exception as error:  # of the network, the format or a name: of any type
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"data.name={name}: datasets cannot load the split {split}: {reason}") from None
    splits = {"train": found} if isinstance(found, datasets.Dataset) else found
    if split in splits:
        return splits[split]
    try:
        parts = datasets.ReadInstruction.from_spec(split).to_absolute({part: len(splits[part]) for part in splits})
    except (ValueError, AssertionError):
        known = choices(split, list(splits), also=", and slices")
        raise UserError(f"data.name={name}: no split {split}; {known}") from None
    rows = [splits[part.splitname].select(range(part.from_, part.to)) for part in parts]
    return datasets.concatenate_datasets(rows)
