"""The end of a study: its comparison as a table and pictures in its folder, and as a W&B run of its own."""

import csv
import io
import time
from collections.abc import Mapping

from ablab.files import write_text
from ablab.study.arms import Study
from ablab.study.ledger import Entry
from ablab.study.mirrored import mirrored
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
    # Steps of its own, that rise: the comparison of a study that has changed comes after the earlier one.
    moment = int(time.time())
    with mirrored(study) as mirror:
        mirror.table(moment, "study/arms", COLUMNS, rows)
        for name in drawn:
            about = f"{study.name}: {name.replace('_', ' ')}"
            mirror.picture(moment, f"study/{name}", study.folder / f"{name}.png", about)
