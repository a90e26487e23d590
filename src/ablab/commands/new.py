"""The `new` command: a folder for a study of one's own, of a part or of a command, with a test, that runs."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from ablab.commands.options import NewOptions
from ablab.errors import DONE, UserError
from ablab.files import write_text
from ablab.tasks.verbs import read_words
from ablab.tracking.console import Console

TEMPLATES = Path(__file__).parent / "template"
NEXT = {
    "part": "ablab check norm=softsign && ablab train -m experiment=softsign",
    "command": "ablab check experiment=schedule && ablab train -m experiment=schedule",
}
"""What to type first, by the kind of the study."""

SUFFIX = ".txt"
"""Of the template's files, so that nothing takes them for modules or options of ablab."""


def new(arguments: Sequence[str]) -> int:
    """Write the folder; UserError if it exists and is not empty."""
    name, *rest = arguments or [""]
    kind = read_words(NewOptions, rest).kind
    folder = Path(name)
    if not name or "=" in name or name.startswith("-"):
        raise UserError(f"new {name!r}: no name of a folder; allowed: ablab new my_study")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: exists and is not empty; allowed: a new folder")
    console = Console()
    for source in sorted((TEMPLATES / kind).rglob(f"*{SUFFIX}")):
        place = folder / source.relative_to(TEMPLATES / kind).with_suffix("")
        write_text(place, source.read_text(encoding="utf-8"))
        console.say(f"wrote {place}")
    console.say(f"Next: cd {shlex.quote(str(folder))} && {NEXT[kind]}")
    return DONE
