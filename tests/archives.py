"""Archives of the tests, unpacked as safely as the running Python can."""

import tarfile
from pathlib import Path

SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python before 3.11.4, such as Debian's, has no filters."""


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack all of an archive."""
    archive.extractall(folder, **SAFELY)
