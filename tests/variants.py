"""One text in the forms that editors and systems give it."""

from codecs import BOM_UTF8
from collections.abc import Sequence


def variants(lines: Sequence[str]) -> dict[str, bytes]:
    """By the name of a file, which is packed where it ends in `.gz`."""
    content = "".join(f"{line}\n" for line in lines).encode()
    windows = content.replace(b"\n", b"\r\n")
    kept = {
        "plain.en": content,
        "packed.en.gz": content,
        "windows.en": windows,
        "marked.en": BOM_UTF8 + content,
        "windows_marked.en.gz": BOM_UTF8 + windows,
    }
    if lines[-1]:  # without its end, an empty last line would be none
        kept |= {"open.en": content[:-1], "windows_open.en": windows[:-2], "windows_half_open.en": windows[:-1]}
    return kept
