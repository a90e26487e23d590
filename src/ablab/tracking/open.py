"""Opening of the tracker that a configuration names."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ablab.config.options import Logger, WandbLogger
from ablab.errors import UserError
from ablab.plan import Planned
from ablab.tracking.card import card, card_of_run
from ablab.tracking.events import Events
from ablab.tracking.sending import Sent
from ablab.tracking.tracker import RunCard, Tracker, closing


@contextmanager
def open_tracker(planned: Planned, say: Callable[[str], None]) -> Iterator[Tracker]:
    """Open the run's tracker; it is always closed, and learns whether the run ended well."""
    with _opened(planned.config.logger, planned.folder.path, say, lambda logger: card_of_run(planned, logger)) as found:
        yield found


@contextmanager
def opened(logger: Logger, folder: Path, say: Callable[[str], None], **about: Any) -> Iterator[Tracker]:
    """Open the tracker of the study in `folder`; `about`: as `card.card` takes it."""
    with _opened(logger, folder, say, lambda logger: card(logger, folder, **about)) as found:
        yield found


@contextmanager
def _opened(
    logger: Logger, folder: Path, say: Callable[[str], None], make: Callable[[WandbLogger], RunCard]
) -> Iterator[Tracker]:
    """Open a tracker; with `mode=online`, its events are sent on at once. A disk without room for its id ends none."""
    tracker = Tracker()
    if isinstance(logger, WandbLogger):
        try:
            found = make(logger)
        except (OSError, UserError) as error:
            say(f"W&B is told nothing of {folder.name} ({error})")
        else:
            tracker = (Sent if logger.mode == "online" else Events)(folder, found, say)
    with closing(tracker):
        yield tracker
