"""Flaws of a selection: where runs and registrations are not what the store's register has of them.

Each flaw is one line. It marks the claims as exploratory, and stands at the top of the report.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ablab.errors import UserError
from ablab.files import read_json
from ablab.report.flaws_of_runs import FROM_ELSEWHERE, is_another, lies, named, of_runs
from ablab.report.selection import SelectedArms
from ablab.store.chain import Chain
from ablab.store.register import OF_STUDIES

NO_REGISTER = "the store has no register: it is older than registers, or its register was deleted"
OLDER = "the study was registered before the register began"


def checked(selection: SelectedArms) -> SelectedArms:
    """Return the selection with its flaws and the register's stamp.

    Runs must have been read before the register is: one that ends now is then missing, and not unknown.
    """
    chain = Chain.of(selection.outputs)
    lost = [stamp for stamp in _stamps(selection.folder / "report.json") if not chain.bears(stamp)]
    flaws = [
        *([] if chain.digests else [NO_REGISTER]),
        *map(_lost, lost),
        *(
            [OLDER]
            if selection.study is not None and _place(selection.study, "registered") in chain.older_files
            else []
        ),
        *broken(chain, [] if selection.study is None else [selection.study]),
        *of_runs(chain, selection),
    ]
    return replace(selection, flaws=flaws, stamp=chain.stamp, lost_stamps=lost)


def broken(chain: Chain, studies: Iterable[Path]) -> Iterator[str]:
    """Yield where a register does not hold, and where what studies keep beside their runs is not what was entered."""
    if chain.unreadable:
        yield f"lines of the register cannot be read: {named(chain.unreadable)}"
    if chain.broken:
        yield (
            "the register is broken, since lines do not follow those before them, of which some were changed, moved, "
            f"removed or put in: {named(chain.broken)}"
        )
    for study in studies if chain.digests else ():
        for what in OF_STUDIES:
            yield from _of_file(chain, study, what)


def _stamps(report: Path) -> list[str]:
    """Return the stamps of earlier reports of the same name: of the last one, and those that it had missed itself."""
    try:
        earlier = read_json(report)
        return list(dict.fromkeys([*earlier.get("lost_stamps", []), *filter(None, [earlier.get("stamp")])]))
    except (OSError, UserError, AttributeError):
        return []


def _lost(stamp: str) -> str:
    return (
        f"an earlier report of this name bears register {stamp}, which this register never had: its end was cut, or "
        "it was replaced"
    )


def _of_file(chain: Chain, study: Path, what: str) -> Iterator[str]:
    path, entries = study / f"{what}.json", chain.of_study(study.name, what)
    digest = chain.files.get(_place(study, what))
    when = f" on {entries[0].at[:10]}" if entries else ""
    if digest is None:
        if path.exists():
            yield f"{path.name} was never entered in the register: it {FROM_ELSEWHERE}"
    elif not lies(path, digest):
        yield f"{path.name} is gone, and the study was {what}{when}"
    elif is_another(path, digest):
        yield f"{path.name} is not what was entered: it was edited"
    elif path.exists() and (there := len(read_json(path))) < len(entries):
        yield f"{path.name} was made anew: the study was {what}{when}, and {there} of {len(entries)} entries are left"


def _place(study: Path, what: str) -> str:
    return f"studies/{study.name}/{what}.json"
