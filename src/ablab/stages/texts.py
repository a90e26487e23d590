"""The test text and scores that a run's own evaluation stored; without torch."""

from ablab.errors import UserError
from ablab.files import read_lines
from ablab.plan import Planned
from ablab.store.records import Evaluation


def evaluated(planned: Planned) -> Evaluation:
    """Return the run's evaluation on this test set with this search; UserError if there is none."""
    evaluation = planned.folder.evaluation(planned.evaluation_id)
    if evaluation is None:
        raise UserError(
            f"{planned.run_id} has not translated {planned.evaluation['test']['name']}; type its train line again, "
            "with the words that name this test set"
        )
    return evaluation


def read_test_text(planned: Planned) -> tuple[list[str], list[str]]:
    """Return sources and references as the evaluation stored them; neither the corpus nor a network is needed."""
    folder = planned.outputs / "corpora" / evaluated(planned).references
    try:
        sources, references = (read_lines(folder / f"{name}.txt") for name in ("sources", "references"))
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror}); its test text is needed") from None
    return sources, references
