"""The `demo` command: a verdict on runs that are shipped, without training anything."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ablab.code.folders import shipped_experiments
from ablab.commands.options import DemoOptions, ReportOptions
from ablab.errors import UserError
from ablab.store.pack import unpack, unpacked
from ablab.study.experiment import is_there
from ablab.tasks.verbs import read_words
from ablab.text import in_store, program
from ablab.tracking.console import Console

ARCHIVE = "demo.zip"
"""Ten random forests on handwritten digits: the study of examples/digits, as `ablab pack` wrote it."""


def demo(arguments: Sequence[str]) -> int:
    """Unpack the archive as a store, unless it is there, and report its study."""
    # Statistics, which help pages do without.
    from ablab.commands.report import report_on
    from ablab.judge.selection_of_kept import of_store

    options = read_words(DemoOptions, arguments)
    store, archive = Path(options.to), shipped_experiments() / ARCHIVE
    if store.exists():
        if unpacked(store) is None:
            raise UserError(f"to={store}: it is there, and no demo; allowed: a folder that is not there yet")
    else:
        store.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=store.parent, prefix=f".{store.name}.") as made:
            unpack(archive, Path(made) / "store")
            (Path(made) / "store").rename(store)
    index = unpacked(store)
    selection = None if index is None else of_store(index.name, store)
    if index is None or selection is None:
        raise UserError(f"to={store}: it is no demo any more; allowed: a folder that is not there yet")
    code = report_on(selection, ReportOptions(outputs=str(store)))
    named = f"run={index.runs[0]}" if is_there(index.name) else f"experiment={index.name}"
    console = Console()
    console.say(f"\nNothing was trained: these are runs of {index.made[:10]} (examples/digits). Look at them:")
    for line in (
        f"{program('ls')}{in_store(store)}",
        f"{program('verify')} {named}{in_store(store)}",
        f"{program('new')} my_study kind=command     # a study of your own program, which runs in a minute",
    ):
        console.say(f"  {line}")
    return code
