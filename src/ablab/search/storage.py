"""Storage of trials: a journal file that survives kills, or any database that Optuna supports."""

import json
import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ablab.errors import UserError
from ablab.files.disk import end_of_lines, keep_names, lock_at, writing_in

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.storages.journal import JournalFileBackend

JOURNAL = "trials.journal"


def open_storage(url: str | None, folder: Path) -> "BaseStorage":
    """Open the storage at `url`, or the journal in `folder`; UserError in one line if that fails."""
    import optuna
    from optuna.storages import JournalStorage

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if url is None:
        journal = _journal(folder / JOURNAL)
        try:
            return JournalStorage(journal)
        except Exception as error:  # any error from JSON lines with other content
            raise _unreadable(folder / JOURNAL, f"{type(error).__name__}: {' '.join(str(error).split())}") from None
    try:
        # Alembic, with which Optuna creates its tables, logs too much.
        logging.getLogger("alembic").setLevel(logging.ERROR)
        return optuna.storages.RDBStorage(_with_driver(url))
    except Exception as error:
        message = " ".join(str(error).split()).partition(" (Background on")[0][:300]
        raise UserError(f"storage={masked(url)}: cannot be used ({type(error).__name__}: {masked(message)})") from None


def masked(text: str) -> str:
    """Return the text with passwords in URLs masked."""
    return re.sub(r"(://[^:/@\s]+):[^@\s]+@", r"\1:***@", text)


def _with_driver(url: str) -> str:
    """Choose psycopg for PostgreSQL if psycopg2 is missing: by default, SQLAlchemy uses psycopg2."""
    from importlib.util import find_spec

    plain = url.startswith(("postgresql://", "postgres://"))
    if plain and find_spec("psycopg2") is None and find_spec("psycopg") is not None:
        return f"postgresql+psycopg://{url.partition('://')[2]}"
    return url


def repair_journal(path: Path) -> None:
    """Remove an unfinished last line, left by a killed writer; appending to it would corrupt the file for good.

    Call it only with the lock held: otherwise a process may still be writing the line.
    """
    with suppress(FileNotFoundError), path.open("rb+") as file:
        if (end := end_of_lines(file)) < file.seek(0, os.SEEK_END):
            file.truncate(end)


def _check(path: Path) -> None:
    """Raise UserError for a line that is not JSON. Optuna would skip it at the end and fail once others follow."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                json.loads(line)
            except ValueError:
                raise _unreadable(path, f"line {number}") from None


def _unreadable(path: Path, where: str) -> UserError:
    return UserError(
        f"{path}: cannot be read as the trials of a search ({where}); restore it, or remove it: "
        "the search then begins anew, and finished runs are not trained again"
    )


def _journal(path: Path) -> "JournalFileBackend":
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    class RepairingLock(JournalFileOpenLock):
        """A lock of the operating system, which a kill releases; Optuna's own lock would remain and cost 30 s."""

        def __init__(self) -> None:
            self._lock = lock_at(Path(f"{path}.lock"))

        def acquire(self) -> bool:
            self._lock.acquire()
            repair_journal(path)
            return True

        def release(self) -> None:
            self._lock.release()

    with writing_in(path.parent):
        lock = RepairingLock()
        backend = JournalFileBackend(str(path), lock_obj=lock)
        keep_names(path.parent)  # Optuna syncs what it appends, and not that there is a file
        lock.acquire()
        try:
            _check(path)  # under the lock: otherwise a line may be half written
        finally:
            lock.release()
        return backend
