"""The test text and scores that a run's own evaluation stored; without torch."""

from ablab.errors import UserError
from ablab.plan import Planned
from ablab.store.records import Evaluation
from ablab.store.stored_text import StoredText, is_stored_text, stored_text


def evaluated(planned: Planned) -> Evaluation:
    """Return the run's evaluation on this test set with this search; UserError if there is none."""
    evaluation = planned.folder.evaluation(planned.evaluation_id)
    if evaluation is None:
        raise UserError(
            f"{planned.run_id} has not translated {planned.evaluation['test']['name']}; type its train line again, "
            "with the words that name this test set"
        )
    return evaluation


def read_test_text(planned: Planned) -> StoredText:
    """Return sources and references as the evaluation stored them; UserError if they are gone or were changed."""
    evaluation = evaluated(planned)
    folder = planned.outputs / "corpora" / evaluation.references
    text = stored_text(planned.outputs, evaluation.references)
    if text is None:
        raise UserError(f"{folder}: is gone, and the analysis needs its test text")
    if not is_stored_text(planned.outputs, evaluation.test_name, evaluation.references):
        raise UserError(f"{folder}: is not the test text that {planned.run_id} translated; it was changed or damaged")
    return text
