"""The end of a study: its comparison as a table and pictures in its folder, and as a W&B run of its own."""

import csv
import io
import time
from collections.abc import Mapping

from ablab.files import write_text
from ablab.mirror import RunCard, WandbMirror, closing
from ablab.study.arms import Study
from ablab.study.ledger import Entry
from ablab.study.pictures import draw_depths, draw_learning
from ablab.study.table import COLUMNS, figures_of, rows_of

COMPARISON = "arms.csv"
PICTURES = {"learning_curves": draw_learning, "depth_quality": draw_depths}


def close(study: Study, entries: Mapping[str, Entry]) -> None:
    """Write arms.csv, learning_curves.png and depth_quality.png, and mirror them. What cannot be drawn is left out."""
    rows = [figures_of(row) for row in rows_of(study, entries)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *rows])
    write_text(study.folder / COMPARISON, text.getvalue())
    drawn = [name for name, draw in PICTURES.items() if draw(study, entries, study.folder / f"{name}.png")]
    logger = study.cells[0].planned.config.logger
    if logger.kind != "wandb":
        return
    config = {"question": None if study.experiment is None else study.experiment.question, "seeds": list(study.seeds)}
    card = RunCard(
        run_id=f"study-{study.digest}",
        name=study.name,
        config={**config, "baseline": study.baseline, "runs": sorted({cell.planned.run_id for cell in study.cells})},
        tags=["study"],
        folder=study.folder,
        group=study.name,
        job_type="study",
    )
    # Steps of its own, that rise: the comparison of a study that has changed comes after the earlier one.
    moment = int(time.time())
    with closing(WandbMirror(card, mode=logger.mode, project=logger.project, entity=logger.entity)) as mirror:
        mirror.table(moment, "study/arms", COLUMNS, rows)
        for name in drawn:
            about = f"{study.name}: {name.replace('_', ' ')}"
            mirror.picture(moment, f"study/{name}", study.folder / f"{name}.png", about)
