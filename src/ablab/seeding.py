"""One seed, and from it an independent stream for every named purpose and moment.

Nothing is drawn from a state that someone else may have moved: a draw is a function of (seed, name, step,
micro-batch). So turning one regulariser off moves no other draw, and a resumed run has no state to restore.
"""

import hashlib


def derive(seed: int, *names: str | int) -> int:
    """A 63-bit seed for the stream that bears these names; equal names give equal streams on every machine."""
    text = "\0".join(str(name) for name in (seed, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
