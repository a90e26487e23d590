"""Whether a register once ended as stamps say that others hold, and what of a study it had by then."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from ablab.store.chain import Chain
from ablab.store.records import Strict
from ablab.store.stamps import HeldStamp
from ablab.text import how_many
from ablab.tracking.console import Console


class StampVerified(Strict):
    """A stamp, and the number of the register's line that it is of; None: this register never ended so.

    `later`: the number of lines since.
    """

    stamp: str
    line: int | None
    later: int | None = None

    @property
    def holds(self) -> bool:
        return self.line is not None


@dataclass(frozen=True)
class Reported:
    """A register, and what is reported: studies by their folders, and ids of runs."""

    chain: Chain
    studies: Sequence[Path]
    runs: Set[str]


def verify_stamps(stamps: Sequence[HeldStamp], of: Reported, console: Console) -> list[StampVerified]:
    """Print and return what each stamp shows of a register."""
    chain, found = of.chain, []
    for one in stamps:
        line = one.line_in(chain)
        if line is None:
            console.say(f"{one.said}: this register never had it: it was cut, replaced or written anew since")
            found.append(StampVerified(stamp=one.said, line=None))
            continue
        then, later = chain.up_to(line), len(chain.digests) - line
        state = "broken before that line" if then.broken or then.unreadable else "as it was then"
        console.say(f"{one.said}: the register up to line {line} is {state}; {how_many(later, 'line')} came after")
        for words in _by_then(then, of):
            console.say(f"  {words}")
        if one.unchecked:
            console.say(f"  not checked: who gave it, and when; {one.unchecked}")
        found.append(StampVerified(stamp=one.said, line=line, later=later))
    return found


def _by_then(then: Chain, of: Reported) -> Iterator[str]:
    """Yield what a stamp is good for: that claims came before results is shown by one that lies between them."""
    ended = f"{len(then.ended & of.runs)} of {how_many(len(of.runs), 'run')} had ended"
    for study in of.studies:
        entries, in_all = (len(chain.of_study(study.name, "registered")) for chain in (then, of.chain))
        times = f" ({entries} of {in_all} times)" if 0 < entries < in_all else ""
        yield f"by then {study.name} was {'registered' if entries else 'not registered'}{times}, and {ended}"
    if not of.studies:
        yield f"by then {ended}"
