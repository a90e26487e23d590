"""The end of a study: its comparison as a table and pictures in its folder, and as a W&B run of its own."""

import csv
import io
from collections.abc import Mapping

from ablab.files import write_text
from ablab.mirror import RunCard, WandbMirror
from ablab.study.definition import Study
from ablab.study.ledger import RESULTS, Entry
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
    done = sum(entry.state in RESULTS for entry in entries.values())
    config = {"question": None if study.experiment is None else study.experiment.question, "seeds": list(study.seeds)}
    card = RunCard(
        run_id=f"study-{study.digest}",
        name=study.name,
        config={**config, "baseline": study.baseline, "runs": sorted(study.runs)},
        tags=["study"],
        folder=study.folder,
        group=study.name,
        job_type="study",
    )
    mirror = WandbMirror(card, mode=logger.mode, project=logger.project, entity=logger.entity)
    mirror.table(done, "study/arms", COLUMNS, rows)
    for name in drawn:
        mirror.picture(done, f"study/{name}", study.folder / f"{name}.png", f"{study.name}: {name.replace('_', ' ')}")
    mirror.finish(failed=False)
