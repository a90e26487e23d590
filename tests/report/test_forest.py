"""The forest plot's caption: which intervals these are, and why not those of the claims."""

import pytest

from ablab.report.document import Document
from ablab.report.forest import forest_caption


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "at the level that Holm leaves it (9"),
        ({"interval": None, "difference": None}, "uncorrected; no claim about test BLEU has an interval."),
        ({"title": "share of failures"}, "uncorrected; no claim about test BLEU has an interval."),
        ({"metric": "failures"}, "uncorrected; the claims are not about test BLEU."),
        (None, "uncorrected."),
    ],
)
def test_it_tells_which_intervals_it_shows(reported, change, said):
    document = Document.model_validate(reported.data)
    claims = [] if change is None else [claim.model_copy(update=change) for claim in document.claims]
    assert said in forest_caption(document.model_copy(update={"claims": claims}))
