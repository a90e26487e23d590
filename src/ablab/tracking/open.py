"""Opening of the tracker that a configuration names."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ablab.config.options import Logger, WandbLogger
from ablab.plan import Planned
from ablab.tracking.events import Events
from ablab.tracking.sending import Sent
from ablab.tracking.tracker import RunCard, Tracker, closing


@contextmanager
def open_tracker(planned: Planned, say: Callable[[str], None]) -> Iterator[Tracker]:
    """Open the run's tracker; it is always closed, and learns whether the run ended well."""
    config = planned.config
    arms = {**planned.composed.choices, "layerdrop": config.layerdrop, "seed": config.seed}
    named = {} if config.logger.arm is None else {"arm": config.logger.arm}
    with opened(
        config.logger,
        planned.folder.path,
        say,
        run_id=planned.run_id,
        name=planned.name,
        config={**arms, **named, "run_id": planned.run_id, "recipe": planned.recipe},
        tags=[*named.values(), *(["smoke"] if config.smoke else [])],
    ) as tracker:
        yield tracker


@contextmanager
def opened(
    logger: Logger,
    folder: Path,
    say: Callable[[str], None],
    *,
    run_id: str,
    name: str,
    config: Mapping[str, Any],
    tags: Sequence[str],
    group: str | None = None,
    job_type: str | None = None,
) -> Iterator[Tracker]:
    """Open the tracker of the run or study in `folder`; with `mode=online`, its events are sent on at once."""
    if not isinstance(logger, WandbLogger):
        yield Tracker()
        return
    card = RunCard(
        run_id=run_id,
        name=name,
        config=dict(config),
        tags=list(tags),
        project=logger.project,
        entity=logger.entity,
        group=group or logger.group,
        job_type=job_type,
    )
    online = logger.mode == "online"
    with closing(Sent(folder, card, say) if online else Events(folder, card, say)) as tracker:
        yield tracker
