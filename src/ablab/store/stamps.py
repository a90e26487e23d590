"""Stamps of a register that others hold: a line to publish, a request to a time authority, and what these give back.

Whoever can write the store can write its register anew. A stamp that lies where they cannot change it, such as in a
paper, a pushed commit, the answer of a time authority (RFC 3161) or a proof of OpenTimestamps, shows that they did.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ablab.errors import UserError
from ablab.files import write_bytes, write_text
from ablab.store.chain import Chain
from ablab.store.register import DIGITS

TRAILER = "Ablab-Register"
"""Key of the line that holds a stamp, in the form of a trailer of a git commit."""

STAMP = re.compile(rf"(?<![0-9a-zA-Z:])[1-9][0-9]*:[0-9a-f]{{{DIGITS}}}(?![0-9a-zA-Z])")
"""A stamp in any text: the number of lines of a register, and the digest of the last."""

LARGEST = 1 << 26
"""Bytes of a file in which stamps are looked for."""


def line_of(stamp: str) -> str:
    """Return the line to publish, whose SHA-256 time authorities stamp: `Ablab-Register: 57:3f9a1c0d2b4e5f60`."""
    return f"{TRAILER}: {stamp}\n"


def imprint_of(stamp: str) -> bytes:
    """Return the SHA-256 of a stamp's line."""
    return hashlib.sha256(line_of(stamp).encode()).digest()


def request_of(stamp: str) -> bytes:
    """Return a request to a time authority, which answers with its certificate (TimeStampReq, RFC 3161, in DER)."""
    imprint = bytes.fromhex("3031300d060960864801650304020105000420") + imprint_of(stamp)  # SHA-256, and 32 bytes of it
    return bytes.fromhex("3039020101") + imprint + bytes.fromhex("0101ff")


def write_stamp(path: Path, stamp: str) -> tuple[Path, Path]:
    """Write the line and the request beside `path`, with endings of their own; return their paths."""
    line, request = path.with_suffix(".stamp"), path.with_suffix(".tsq")
    write_text(line, line_of(stamp))
    write_bytes(request, request_of(stamp))
    return line, request


@dataclass(frozen=True)
class HeldStamp:
    """A stamp from outside of the store. `said`: where it is from.

    `stamp`: None where only the SHA-256 of its line is known, `imprint`. `unchecked`: how to check who gave it, and
    when; empty where that is for the reader to know.
    """

    said: str
    stamp: str | None = None
    imprint: bytes | None = None
    unchecked: str = ""

    def line_in(self, chain: Chain) -> int | None:
        """Return the number of the line with which the register once ended so; None if it never did."""
        if self.stamp is not None:
            return int(self.stamp.partition(":")[0]) if chain.bears(self.stamp) else None
        stamps = (f"{number}:{digest}" for number, digest in enumerate(chain.digests, 1))
        return next((number for number, stamp in enumerate(stamps, 1) if imprint_of(stamp) == self.imprint), None)


def held_stamps(given: str) -> list[HeldStamp]:
    """Return the stamps that are given, or that are in the file of this name. Raises UserError where there are none."""
    if STAMP.fullmatch(typed := given.strip().removeprefix(f"{TRAILER}:").removeprefix("register").strip()):
        return [HeldStamp(f"stamp {typed}", typed)]
    path = Path(given)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST)
    except OSError:
        allowed = "a stamp such as 57:3f9a1c0d2b4e5f60, or a file with stamps (text, .tsr, .ots)"
        raise UserError(f"stamp={given}: no stamp, and no file that can be read; allowed: {allowed}") from None
    found = list(_in(path, content))
    if not found:
        raise UserError(f"stamp={given}: there is no stamp in it; allowed: text, .tsr of RFC 3161, .ots, with SHA-256")
    return found


def _in(path: Path, content: bytes) -> Iterator[HeldStamp]:
    line = path.with_name(f"{path.name.removesuffix('.ots').removesuffix('.tsr').removesuffix('.stamp')}.stamp")
    stamped, held = shlex.quote(str(line)), shlex.quote(str(path))
    if (proof := PROOF.match(content)) is not None:
        yield HeldStamp(f"{path}, of OpenTimestamps", imprint=proof[1], unchecked=f"ots verify -f {stamped} {held}")
    elif (answer := IMPRINT.search(content)) is not None:
        if (when := _time(content[answer.end() :])) is None:
            raise UserError(f"stamp={path}: a request to a time authority; allowed: its answer")
        yield HeldStamp(
            f"{path}, of a time authority, which says {when}",
            imprint=answer[1],
            unchecked=f"openssl ts -verify -data {stamped} -in {held} -CAfile <its certificate>",
        )
    else:
        texts = dict.fromkeys(STAMP.findall(content.decode(errors="replace")))
        yield from (HeldStamp(f"stamp {stamp} of {path}", stamp) for stamp in texts)


PROOF = re.compile(rb"\x00OpenTimestamps\x00\x00Proof\x00\xbf\x89\xe2\xe8\x84\xe8\x92\x94\x01\x08(.{32})", re.DOTALL)
"""How a proof of OpenTimestamps begins: its name, version 1, and a SHA-256."""

IMPRINT = re.compile(rb"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01(?:\x05\x00)?\x04\x20(.{32})", re.DOTALL)
"""In DER: the SHA-256 that a time authority was asked about, which comes first in its answer (RFC 3161, 2.4)."""

TIME = re.compile(rb"\x02.{1,64}?\x18.(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)[.\d]*Z", re.DOTALL)
"""In DER: the serial number of an answer, and its time."""


def _time(after: bytes) -> str | None:
    """Return the time of an answer, from what follows its imprint; None where none does."""
    if (found := TIME.match(after)) is None:
        return None
    year, month, day, hour, minute, second = (part.decode() for part in found.groups())
    return f"{year}-{month}-{day} {hour}:{minute}:{second} UTC"
