"""Opening of the tracker that a configuration names; whatever it raises ends the tracking, not the run."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

from ablab.code.load import construct, load
from ablab.config.kinds import part_of
from ablab.config.options import Logger
from ablab.errors import UserError
from ablab.store.run_folder import RunFolder
from ablab.tasks.plan import Planned
from ablab.tracking.card import card, card_of_run
from ablab.tracking.tracker import RunCard, Tracker, closing

Say = Callable[[str], None]


def open_tracker(planned: Planned, say: Say) -> AbstractContextManager[Tracker]:
    """Open the run's tracker; it is always closed, and learns whether the run ended well."""
    logger = planned.config.logger
    return closing(_opened(logger, planned.folder.path, say, lambda: card_of_run(planned, logger)))


def opened(logger: Logger, folder: Path, say: Say, **about: Any) -> AbstractContextManager[Tracker]:
    """Open the tracker of the study in `folder`; `about`: as `card.card` takes it."""
    return closing(_opened(logger, folder, say, lambda: card(logger, folder, **about)))


def tracker_of(logger: Logger) -> type[Tracker]:
    """Return the class of the tracker that the option names; UserError if that is none."""
    part = part_of("logger", logger.kind)
    if part is None:
        return Tracker
    found = load(part)
    if not (isinstance(found, type) and issubclass(found, Tracker)):
        raise UserError(
            f"_target_={part.target}: no tracker; allowed: a class that derives from ablab.tracking.tracker.Tracker"
        )
    return found


def check(logger: Logger, say: Say) -> None:
    """Raise UserError for what the tracker would refuse, before a run begins."""
    with _guarded(logger, say, UNCHECKED) as kind:
        kind.check(logger)


def ready(logger: Logger, say: Say) -> None:
    """Check what a sweep needs of the tracker, once for all its runs."""
    with _guarded(logger, say, UNCHECKED) as kind:
        kind.ready(logger, say)


UNCHECKED = "does not check its settings"


@contextmanager
def _guarded(logger: Logger, say: Say, what: str) -> Iterator[type[Tracker]]:
    """Let UserErrors pass, and say of any other what the tracker does not do: it is its own, and ends no run."""
    kind = tracker_of(logger)
    try:
        yield kind
    except UserError:
        raise
    except Exception as error:
        say(f"{kind.title or logger.kind} {what} ({_words(error)})")


def join(logger: Logger, study: str, runs: Iterable[tuple[RunFolder, str]], say: Say) -> None:
    """Let the tracker show finished runs in this study too, each under its arm."""
    with _guarded(logger, say, f"does not learn which earlier runs are in {study}") as kind:
        kind.join(logger, study, runs, say)


def _opened(logger: Logger, folder: Path, say: Say, make_card: Callable[[], RunCard]) -> Tracker:
    """Open a tracker. One that cannot be opened, as on a disk without room for its id, costs a line."""
    part = part_of("logger", logger.kind)
    if part is None:
        return Tracker()
    title = tracker_of(logger).title or logger.kind
    problem: Exception
    try:
        given = {"card": make_card(), "folder": folder, "say": say}
    except Exception as error:
        problem = error
    else:
        try:
            return cast(Tracker, Guarded(construct(part, {**logger.own, **given}), title, say))
        except UserError:
            raise
        except Exception as error:
            problem = error
    say(f"{title} is told nothing of {folder.name} ({_words(problem)})")
    return Tracker()


class Guarded:
    """A tracker whose first error is said in a line and ends the tracking. UserErrors are the run's own, and pass.

    It has whatever the tracker has that it guards. `has_ended`: an error has ended the tracking.
    """

    def __init__(self, tracker: Tracker, title: str, say: Say) -> None:
        self._tracker, self._title, self._say = tracker, title, say
        self.has_ended = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tracker, name)
        return partial(self._tell, name) if callable(found) else found

    def _tell(self, method: str, *values: Any, **named: Any) -> None:
        try:
            getattr(self._tracker, method)(*values, **named)
        except UserError:
            raise
        except Exception as error:
            self._tracker, self.has_ended = Tracker(), True
            self._say(f"{self._title} misses the rest ({_words(error)})")


def _words(error: Exception) -> str:
    words = " ".join(str(error).split())[:200]
    return words if isinstance(error, (OSError, UserError)) and words else f"{type(error).__name__}: {words}"
