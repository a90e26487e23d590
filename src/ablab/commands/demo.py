"""The `demo` command: a verdict on runs that are shipped, without training anything."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ablab.code.folders import shipped_experiments
from ablab.commands.options import DemoOptions
from ablab.errors import UserError
from ablab.store.pack import unpack, unpacked
from ablab.tasks.verbs import read_words
from ablab.text import in_store, program
from ablab.tracking.console import Console

ARCHIVE = "demo.zip"
"""Ten random forests on handwritten digits: the study of examples/digits, as `ablab pack` wrote it."""


def demo(arguments: Sequence[str]) -> int:
    """Unpack the archive as a store, unless it is there, and report its study."""
    from ablab.commands.report import report  # statistics, which help pages do without

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
    if index is None:
        raise UserError(f"to={store}: it is no demo any more; allowed: a folder that is not there yet")
    code = report([f"experiment={index.name}", f"outputs={store}"])
    console = Console()
    console.say(f"\nNothing was trained: these are runs of {index.made[:10]} (examples/digits). Look at them:")
    for line in (
        f"{program('ls')}{in_store(store)}",
        f"{program('verify')} experiment={index.name}{in_store(store)}",
        f"{program('new')} my_study kind=command     # a study of your own program, which runs in a minute",
    ):
        console.say(f"  {line}")
    return code
