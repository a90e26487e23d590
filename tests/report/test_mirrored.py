"""The report in W&B: its tables and pictures in the run of its study, once."""

import pytest

from ablab.judge.document import Document
from ablab.report.charts import charts
from ablab.report.claim_words import exploratory_words
from ablab.report.names import named
from ablab.report.tables import tables
from ablab.study.definition import define
from ablab.study.ledger import register
from tests.report.conftest import ERRORS, EXPERIMENT, typed
from tests.report.synthetic import fill
from tests.tracking.seen import Seen


@pytest.mark.slow
def test_what_the_report_has_is_in_the_run_of_its_study_once(tmp_path):
    (tmp_path / "told.yaml").write_text(EXPERIMENT.replace("logger=none", "logger=wandb"))
    words = (f"experiment={tmp_path / 'told.yaml'}", f"outputs={tmp_path}")
    study = define(words)
    fill(words[:1], ERRORS, outputs=tmp_path)
    line = (*words, "resamples=1000")
    assert typed(*line)[0] == 0
    assert not study.folder.exists()  # never launched: there is no such run
    register(study)
    (tmp_path / "reports" / "told" / "report.json").unlink()
    assert typed(*line)[::2] == (0, "")
    assert typed(*line)[::2] == (0, "")  # nothing new
    seen = Seen.of(study.folder)
    document = Document.model_validate_json((tmp_path / "reports" / "told" / "report.json").read_text())
    wanted = {f"report/{table.key}" for table in tables(document)} | {f"report/{key}" for key in charts(document)}
    assert wanted <= seen.keys
    assert len(seen.kind("chart")) == len(charts(document))
    assert seen.card.job_type == "study"
    first = named(document).claims[0]
    assert first.exploratory is not None  # its runs were there before it was registered
    assert seen.summary["report/verdicts/1"] == first.words + exploratory_words(first)
    assert seen.summary["report/notes"] == "; ".join(document.notes)
