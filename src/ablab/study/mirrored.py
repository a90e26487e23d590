"""A study's own run in W&B, beside the runs of its arms."""

from collections.abc import Iterator
from contextlib import contextmanager

from ablab.config.options import WandbLogger
from ablab.study.arms import Study
from ablab.tracking.tracker import Mirror, NoMirror, RunCard, WandbMirror, closing


@contextmanager
def mirrored(study: Study) -> Iterator[Mirror]:
    """Opened and closed, on failure too; nobody is told where the study's runs tell nobody."""
    logger = study.cells[0].planned.config.logger
    if not isinstance(logger, WandbLogger):
        yield NoMirror()
        return
    card = RunCard(
        run_id=f"study-{study.digest}",
        name=study.name,
        config={
            "question": None if study.experiment is None else study.experiment.question,
            "seeds": list(study.seeds),
            "baseline": study.baseline,
            "runs": sorted({cell.planned.run_id for cell in study.cells}),
        },
        tags=["study"],
        folder=study.folder,
        group=study.name,
        job_type="study",
    )
    with closing(WandbMirror(card, mode=logger.mode, project=logger.project, entity=logger.entity)) as mirror:
        yield mirror
