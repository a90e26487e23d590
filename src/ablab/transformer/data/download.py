"""Download of single files, kept only when complete and with the expected text."""

import http.client
import logging
import os
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

from ablab.errors import UserError
from ablab.transformer.data.text_files import CHUNK, content_digest

TIMEOUT = 30
"""Seconds without a byte before a download fails."""

log = logging.getLogger(__name__)


def fetch(url: str, target: Path, checksum: str) -> None:
    """Download `url` to `target`, which is written only if its sentences have this SHA-256; else raise UserError.

    Two processes may fetch the same file at once: each writes a file of its own, and the last rename wins.
    """
    log.info("downloading %s", url)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".part-", suffix=target.suffix)
    except OSError as error:
        raise UserError(f"{target.parent} cannot be written: {error.strerror or error}.") from None
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            _stream(url, file)
        if (received := content_digest(part)) != checksum:
            raise UserError(f"its text has SHA-256 {received[:12]}..., expected {checksum[:12]}...")
        part.replace(target)
    except urllib.error.HTTPError as error:
        error.close()
        raise UserError(f"{url} cannot be downloaded: the server says {error.code} {error.reason}.") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise UserError(f"{url} cannot be downloaded: {reason}.") from None
    except UserError as error:
        raise UserError(f"{url} came damaged: {str(error).replace(str(part), 'it')}") from None
    finally:
        part.unlink(missing_ok=True)


def _stream(url: str, file: IO[bytes]) -> None:
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        expected, received = answer.headers.get("Content-Length"), 0
        while chunk := answer.read(CHUNK):
            received += file.write(chunk)
        if expected is not None and received < int(expected):
            raise UserError(f"{received} of {expected} bytes arrived.")
