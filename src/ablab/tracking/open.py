"""Opening of the tracker that a configuration names; whatever it raises ends the tracking, not the run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ablab.code.load import construct, load
from ablab.config.kinds import part_of
from ablab.config.options import Logger
from ablab.errors import UserError
from ablab.store.run_folder import RunFolder
from ablab.tasks.plan import Planned
from ablab.tracking.card import card, card_of_run
from ablab.tracking.tracker import RunCard, Tracker, closing

Say = Callable[[str], None]


@contextmanager
def open_tracker(planned: Planned, say: Say) -> Iterator[Tracker]:
    """Open the run's tracker; it is always closed, and learns whether the run ended well."""
    logger = planned.config.logger
    with closing(_opened(logger, planned.folder.path, say, lambda: card_of_run(planned, logger))) as tracker:
        yield tracker


@contextmanager
def opened(logger: Logger, folder: Path, say: Say, **about: Any) -> Iterator[Tracker]:
    """Open the tracker of the study in `folder`; `about`: as `card.card` takes it."""
    with closing(_opened(logger, folder, say, lambda: card(logger, folder, **about))) as tracker:
        yield tracker


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
    kind = tracker_of(logger)
    with _guarded(kind, logger, say):
        kind.check(logger)


def ready(logger: Logger, say: Say) -> None:
    """Check what a sweep needs of the tracker, once for all its runs."""
    kind = tracker_of(logger)
    with _guarded(kind, logger, say):
        kind.ready(logger, say)


@contextmanager
def _guarded(kind: type[Tracker], logger: Logger, say: Say) -> Iterator[None]:
    """Let UserErrors of a check pass, and say any other error in a line: it is the tracker's, and ends no run."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        say(f"{kind.title or logger.kind} does not check its settings ({_words(error)})")


def join(logger: Logger, study: str, runs: Iterable[tuple[RunFolder, str]], say: Say) -> None:
    """Let the tracker show finished runs in this study too, each under its arm."""
    kind = tracker_of(logger)
    try:
        kind.join(logger, study, runs, say)
    except UserError:
        raise
    except Exception as error:
        say(f"{kind.title or logger.kind} does not learn which earlier runs are in {study} ({_words(error)})")


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
            return Guarded(construct(part, {**logger.own, **given}), title, say)
        except UserError:
            raise
        except Exception as error:
            problem = error
    say(f"{title} is told nothing of {folder.name} ({_words(problem)})")
    return Tracker()


class Guarded(Tracker):
    """A tracker whose first error is said in a line and ends the tracking. UserErrors are the run's own, and pass."""

    def __init__(self, tracker: Tracker, title: str, say: Say) -> None:
        self._tracker, self.title, self._say = tracker, title, say
        self.shows_pictures = tracker.shows_pictures

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._tell("log", step, values)

    def along(self, axis: str, x: float, values: Mapping[str, float]) -> None:
        self._tell("along", axis, x, values)

    def table(
        self, step: int, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, of: str = ""
    ) -> None:
        self._tell("table", step, key, columns, rows, of=of)

    def picture(self, step: int, key: str, path: Path, caption: str, *, of: str = "") -> None:
        self._tell("picture", step, key, path, caption, of=of)

    def chart(self, step: int, key: str, figure: Mapping[str, Any]) -> None:
        self._tell("chart", step, key, figure)

    def summary(self, values: Mapping[str, Any]) -> None:
        self._tell("summary", values)

    def model(self, kind: str, name: str, files: Sequence[Path], digest: str) -> None:
        self._tell("model", kind, name, files, digest)

    def dataset(self, name: str, about: Mapping[str, Any]) -> None:
        self._tell("dataset", name, about)

    def keep(self) -> None:
        self._tell("keep")

    def finish(self, *, failed: bool) -> None:
        self._tell("finish", failed=failed)

    def _tell(self, method: str, *values: Any, **named: Any) -> None:
        try:
            getattr(self._tracker, method)(*values, **named)
        except UserError:
            raise
        except Exception as error:
            self._tracker, self.shows_pictures = Tracker(), False
            self._say(f"{self.title} misses the rest ({_words(error)})")


def _words(error: Exception) -> str:
    words = " ".join(str(error).split())[:200]
    return words if isinstance(error, (OSError, UserError)) and words else f"{type(error).__name__}: {words}"
