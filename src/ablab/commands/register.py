"""The `register` command: claims about a table, entered in the register of a store before there are results."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from ablab.commands.options import RegisterOptions
from ablab.errors import DONE, UserError
from ablab.judge.registered_claims import Registrations, check_complete, register_claims
from ablab.judge.selection_of_table import rows_in
from ablab.judge.table_claims import read_claims
from ablab.judge.table_rows import READERS
from ablab.tasks.verbs import read_words
from ablab.text import counted, how_many, in_store, program
from ablab.tracking.console import Console


def register(arguments: Sequence[str]) -> int:
    """Enter the claims, and print their digest and the line that reports them."""
    name, *rest = arguments or [""]
    options = read_words(RegisterOptions, rest)
    if not name or "=" in name:
        raise UserError(f"register {name!r}: no name of a file of claims; allowed: ablab register claims.yaml")
    file, store = Path(name), Path(options.outputs)
    experiment = read_claims(file)
    check_complete(file, experiment)
    table = options.table or _beside(file)
    known = len(Registrations.of(store).known)
    found = register_claims(file, experiment, table, 0 if table is None else rows_in(table, experiment), store)
    registrations = Registrations.of(store)
    console = Console()
    again = " already" if len(registrations.known) == known else ""
    console.say(
        f"{file}: {how_many(len(experiment.claims), 'claim')} about {experiment.metric}, against "
        f"{experiment.baseline}, on seeds {counted(experiment.seeds or ())}: registered{again} on {found.day}"
    )
    console.say(f"Digest: {found.digest}, the first digits of the file's SHA-256")
    if found.rows:
        console.say(f"Note: {table} had {how_many(found.rows, 'row')} of results by then: the claims are exploratory")
    for flaw in registrations.flaws:
        console.say(f"Note: {flaw}")
    console.say(f"Stamp: register {registrations.stamp}")
    places = f"table={shlex.quote(table) if table else '<file>'} claims={shlex.quote(str(file))}"
    console.say(f"Report: {program('report')} {places}{in_store(options.outputs)}")
    return DONE


def _beside(file: Path) -> str | None:
    """Return the table of which a file is the claims by its name, if that is there."""
    there = [place for ending in ("", *READERS) if (place := file.with_suffix(ending)).exists()]
    return str(there[0]) if there and there[0] != file else None
