"""Whatever of a run is missing: training, the evaluation, the depth-quality curve; mirrored as one W&B run."""

from typing import Any

from ablab.console import Console
from ablab.plan import Planned
from ablab.stages.evaluate import evaluate
from ablab.stages.prune_curve import add_curve
from ablab.stages.train import begin, train
from ablab.store.heartbeat import Heartbeat
from ablab.store.records import Evaluation, Record
from ablab.tracking.open import open_tracker


def complete(planned: Planned, console: Console, beating: Heartbeat) -> Record | None:
    """The record, with all that was asked for beside it; None when training was interrupted."""
    folder = planned.folder
    folder.tidy()
    record = folder.record()
    work = begin(planned, console) if record is None else None
    with open_tracker(planned, console.say) as tracker:
        if work is not None:
            beating.tell(stage="training")
            record = train(work, console, tracker, beating)
        if record is None:
            return None
        beating.tell(stage="evaluating")
        evaluation = folder.evaluation(planned.evaluation_id)
        if evaluation is None and record.selected is not None:
            evaluation = evaluate(planned, record, console)
        tracker.summary(_summary(record, evaluation))
        if planned.lacks_curve(record):
            beating.tell(stage="pruning")
            add_curve(planned, record, console, tracker)
    return record


def _summary(record: Record, evaluation: Evaluation | None) -> dict[str, Any]:
    """The figures by which a dashboard compares runs."""
    figures: dict[str, Any] = {"state": record.state, "reason": record.reason, "padding": record.data["padding"]}
    figures |= {key: getattr(record.cost, key) for key in ("steps", "tokens_per_second", "parameters")}
    if record.mixed is not None:
        figures["mixed"] = record.mixed
    if record.selected is not None:
        figures |= {f"selected/{key}": getattr(record.selected, key) for key in ("loss", "perplexity", "bleu")}
    if evaluation is not None:
        figures |= {"test/name": evaluation.test_name, "test/bleu": evaluation.bleu, "test/chrf": evaluation.chrf}
        figures |= {f"test/{metric}_signature": text for metric, text in evaluation.signatures.items()}
    return figures
