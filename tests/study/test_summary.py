"""The table that a sweep ends with says what a mean does not."""

from ablab.store.records import Stretch
from ablab.study.ledger import ledger
from ablab.study.summary import COLUMNS, figures_of, rows_of, table_lines
from tests.study.pretend import pretend

MACHINE = {"versions": {}, "threads": 1, "device": "x", "devices": 1, "micro_batches": 1, "compile": False}


def test_runs_that_changed_code_on_the_way_are_counted(study):
    for cell in study.cells:
        pretend(cell, 1.0)
    folder = study.cells[0].planned.folder
    codes = [Stretch(code=code, first_step=1, last_step=1, **MACHINE) for code in "ab"]
    folder.write_record(folder.record().model_copy(update={"stretches": codes}))
    entries = ledger(study)
    assert "1 mixed" in table_lines(study, entries)[1]
    (row,) = rows_of(study, entries)
    assert dict(zip(COLUMNS, figures_of(row), strict=True))["mixed"] == 1
