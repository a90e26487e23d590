"""A reader of W&B's files of a run on disk, so that a resumed run neither loses nor repeats rows.

A .wandb file is 7 bytes of header and then records framed as in LevelDB's log: blocks of 32 KiB that hold pieces with a
checksum, a length and a kind (whole, first, middle, last). A kill cuts off the end; complete records still count.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FILE_HEADER, BLOCK, PIECE_HEADER = 7, 32768, 7
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4

STEP = "step"
AXIS = "axis/"
"""Prefix of the name of an axis other than our step."""

Row = tuple[float | None, frozenset[str]]
"""The position on its axis, and the keys that were logged there."""


def rows_on_disk(wandb: Path) -> set[Row]:
    """Return the rows of all W&B sessions of a run, offline or online, from its folder `wandb`."""
    return {row for file in wandb.glob("*run-*/run-*.wandb") for row in _rows(file)}


def row_of(items: Mapping[str, Any]) -> Row:
    """Return the identity of a row. W&B splits an image or a table into `key.path`, `key.size` and more."""
    place = next((float(value) for key, value in items.items() if _is_place(key)), None)
    return place, frozenset(key.partition(".")[0] for key in items if not key.startswith("_"))


def _rows(file: Path) -> Iterator[Row]:
    from google.protobuf.message import DecodeError
    from wandb.proto.wandb_internal_pb2 import Record

    for content in _records(file.read_bytes()):
        record = Record()
        try:
            record.ParseFromString(content)
        except DecodeError:
            return
        if record.HasField("history"):
            items = {item.key or ".".join(item.nested_key): item.value_json for item in record.history.item}
            yield row_of({key: json.loads(value) if _is_place(key) else value for key, value in items.items()})


def _is_place(key: str) -> bool:
    return key == STEP or key.startswith(AXIS)


def _records(data: bytes) -> Iterator[bytes]:
    place, parts = FILE_HEADER, b""
    while place + PIECE_HEADER <= len(data):
        if BLOCK - place % BLOCK < PIECE_HEADER:
            place += BLOCK - place % BLOCK  # a rest too short for a header is padding
            continue
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        piece = data[place + PIECE_HEADER : place + PIECE_HEADER + length]
        if kind not in (WHOLE, FIRST, MIDDLE, LAST) or len(piece) < length:
            return
        place += PIECE_HEADER + length
        parts = piece if kind in (WHOLE, FIRST) else parts + piece
        if kind in (WHOLE, LAST):
            yield parts
