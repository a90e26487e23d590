"""What the source of a part does not show: files that it reads, which it names in `needs_files`, and hidden imports."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ablab.code.definitions import Definition, Key
from ablab.errors import UserError

NEEDS_FILES = "needs_files"
"""Names, in the class or beside the function, the files that a part reads: paths relative to its own, or patterns."""

IMPORTS = (
    *("importlib.import_module", "importlib.reload", "importlib.util", "importlib.machinery", "builtins.__import__"),
    *("runpy", "imp", "pkgutil", "builtins.exec", "builtins.eval", "builtins.compile", "builtins.__loader__"),
)
"""What runs code that the source does not name."""

READS = (
    *("builtins.open", "builtins.__file__", ".__file__", "io.open", "io.FileIO", "os.open", "os.fdopen", "os.popen"),
    *("os.system", "subprocess", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "zipfile", "tarfile", "mmap"),
    *("fileinput", "linecache", "shelve", "sqlite3", "dbm", "importlib.resources", "importlib_resources"),
    *(".read_text", ".read_bytes", ".open"),
    *("inspect.getsource", "inspect.getsourcelines", "inspect.getsourcefile", "inspect.getfile", "inspect.getcomments"),
    *("numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile", "numpy.memmap", "numpy.fromregex"),
    *("torch.load", "torch.from_file", "torch.jit.load", "torch.hub", "safetensors", "joblib.load"),
    *("pandas.read_csv", "pandas.read_json", "pandas.read_parquet", "pandas.read_table", "pandas.read_pickle"),
    *("urllib.request", "requests", "huggingface_hub"),
)
"""What reads a file, or other text from outside. What begins with a dot is an attribute of whatever has it."""


def hidden(definitions: Mapping[Key, Definition], *, reads: bool) -> Iterator[tuple[str, int, str]]:
    """Yield what the source of these definitions hides: the module, the line, and what it does there, in words.

    `reads`: whether to yield what reads files.
    """
    for key, definition in definitions.items():
        for name, line in definition.others.items():
            words = name.removeprefix("builtins").removeprefix(".")
            if _is_among(name, IMPORTS):
                yield key.module, line, f"{words} runs code that this source does not name"
            elif reads and _is_among(name, READS):
                yield key.module, line, f"{words} reads what this source does not hold"


def needed_files(target: str, patterns: object, beside: Path, folder: Path) -> dict[str, Path]:
    """Return the files that the patterns name, by their path relative to `folder`; UserError if one names none.

    `beside`: the file that defines the part, from which the patterns start.
    """
    if not isinstance(patterns, Sequence) or isinstance(patterns, str) or not all(map(_is_pattern, patterns)):
        raise UserError(
            f'_target_={target}: {NEEDS_FILES}={patterns!r}; allowed: a list of paths or patterns, as in ["gain.txt"]'
        )
    found: dict[str, Path] = {}
    for pattern in patterns:
        files = sorted(path for path in beside.parent.glob(pattern) if path.is_file())
        if not files:
            raise UserError(f"_target_={target}: {NEEDS_FILES}: there is no file {pattern} in {beside.parent}")
        found |= {path.relative_to(folder).as_posix(): path for path in files}
    return found


def _is_pattern(each: object) -> bool:
    return isinstance(each, str) and bool(each) and not Path(each).is_absolute() and ".." not in Path(each).parts


def _is_among(name: str, places: Sequence[str]) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)
