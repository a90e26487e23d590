"""A report's tables and pictures in W&B, in the run of its study."""

import time

from ablab.report.charts import charts
from ablab.report.document import Document
from ablab.report.tables import tables
from ablab.study.arms import Study
from ablab.study.mirrored import mirrored


def mirror_report(document: Document, study: Study) -> None:
    """Under `report/`, and the verdicts in the summary too, where lists of runs show them."""
    moment = int(time.time())  # later than the comparison with which the study has ended
    with mirrored(study) as mirror:
        for table in tables(document):
            mirror.table(moment, f"report/{table.key}", table.columns, table.rows)
        for key, chart in charts(document).items():
            mirror.chart(moment, f"report/{key}", chart)
        mirror.summary({f"report/verdicts/{number}": claim.words for number, claim in enumerate(document.claims, 1)})
