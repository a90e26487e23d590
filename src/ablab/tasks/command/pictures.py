"""Pictures that a command has written: whether a file is a PNG or an SVG, by what it holds and not by its name."""

import zlib
from collections.abc import Iterator
from pathlib import Path, PurePath
from xml.parsers import expat

LARGEST = 2 * 2**20
"""Bytes of the largest picture: reports hold one for each arm."""

MOST_PIXELS = 50_000_000
"""Of a PNG, which a browser unpacks: a few bytes may stand for far more."""

PNG = b"\x89PNG\r\n\x1a\n"

SVG = "http://www.w3.org/2000/svg svg"
"""Namespace and name of the outermost element."""


def read_picture(folder: Path, file: str) -> tuple[bytes, str]:
    """Return the bytes of a picture below a folder, and its suffix, .png or .svg.

    Raises ValueError for a file that lies elsewhere, is too large, or is neither.
    """
    path = (folder / file).resolve()
    if PurePath(file).is_absolute() or not path.is_relative_to(folder.resolve()):
        raise ValueError("allowed: the path of a file from {folder} on, and in it")
    if not path.is_file():
        raise ValueError("there is no such file in {folder}")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path.stat().st_size:,} bytes; allowed: at most {LARGEST:,}")
    content = path.read_bytes()
    if content.startswith(PNG):
        _check_png(content)
        return content, ".png"
    _check_svg(content)
    return content, ".svg"


def _check_png(content: bytes) -> None:
    """Raise ValueError unless the chunks are whole, from the header to the end (PNG specification, section 5)."""
    kinds: list[bytes] = []
    for kind, data in _chunks(content):
        if not kinds:
            width, height = (int.from_bytes(data[start : start + 4], "big") for start in (0, 4))
            if kind != b"IHDR" or not 0 < width * height <= MOST_PIXELS:
                raise ValueError(f"{width} x {height}; allowed: a PNG of 1 to {MOST_PIXELS:,} pixels")
        kinds.append(kind)
    if b"IDAT" not in kinds or kinds[-1] != b"IEND":
        raise ValueError("a PNG that is cut off; allowed: a whole one")


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and data of each chunk, as far as they are whole."""
    place = len(PNG)
    while place + 12 <= len(content):
        end = place + 8 + int.from_bytes(content[place : place + 4], "big")
        kind, data = content[place + 4 : place + 8], content[place + 8 : end]
        if zlib.crc32(kind + data) != int.from_bytes(content[end : end + 4], "big"):
            raise ValueError("a damaged PNG; allowed: one whose checksums hold")
        yield kind, data
        place = end + 4


def _check_svg(content: bytes) -> None:
    """Raise ValueError unless it is XML whose outermost element is svg, without entities, which may grow at will."""
    opened: list[str] = []
    parser = expat.ParserCreate(namespace_separator=" ")

    def refuse(*_: object) -> None:
        raise ValueError("an SVG with entities; allowed: one without")

    parser.StartElementHandler = lambda name, _: opened.append(name) if not opened else None
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ValueError(f"allowed: a PNG or SVG, by what the file holds ({error})") from None
    if opened[0] != SVG:
        raise ValueError(f"its outermost element is {opened[0]}; allowed: a PNG, or an svg of {SVG.partition(' ')[0]}")
