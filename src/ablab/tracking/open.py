"""Opening of the tracker that a run's configuration names."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ablab.config.options import WandbLogger
from ablab.plan import Planned
from ablab.tracking.tracker import RunCard, Tracker, WandbTracker, closing


@contextmanager
def open_tracker(planned: Planned, say: Callable[[str], None]) -> Iterator[Tracker]:
    """Open the run's tracker; it is always closed, and learns whether the run ended well."""
    with closing(_tracker(planned, say)) as tracker:
        yield tracker


def _tracker(planned: Planned, say: Callable[[str], None]) -> Tracker:
    config = planned.config
    logger = config.logger
    if not isinstance(logger, WandbLogger):
        return Tracker()
    arms = {**planned.composed.choices, "layerdrop": config.layerdrop, "seed": config.seed}
    named = {} if logger.arm is None else {"arm": logger.arm}
    card = RunCard(
        run_id=planned.run_id,
        name=planned.name,
        config={**arms, **named, "run_id": planned.run_id, "recipe": planned.recipe},
        tags=[*named.values(), *(["smoke"] if config.smoke else [])],
        folder=planned.folder.path,
        group=logger.group,
    )
    tracker = WandbTracker(card, mode=logger.mode, project=logger.project, entity=logger.entity)
    if tracker.offline_because is not None:
        say(f"W&B is out of reach ({tracker.offline_because}); the run is logged offline and can be synced later")
    return tracker
