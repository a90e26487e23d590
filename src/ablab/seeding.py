"""Seeds: an independent random stream for every named purpose and moment, all derived from one seed.

No draw depends on a shared state that other code may have moved: a draw is a function of (seed, name, step,
micro-batch). Hence turning one regulariser off moves no other draw, and a resumed run has no state to restore.
"""

import hashlib


def derive(seed: int, *names: str | int) -> int:
    """Return a 63-bit seed for the stream with these names; equal names give equal streams on every machine."""
    text = "\0".join(str(name) for name in (seed, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
