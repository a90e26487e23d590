"""Records of runs that nobody trained."""

from ablab.store.records import Cost, Record, Selected


def pretend(cell, loss, state="finished"):
    """The record of this cell with this validation loss; the rest of it means nothing."""
    selected = Selected(steps=[1], scores={"loss": loss, "perplexity": 1.0, "bleu": -loss})
    cost = Cost(
        **dict.fromkeys(("steps", "tokens", "peak_memory_bytes", "parameters"), 1),
        **dict.fromkeys(("epochs", "seconds", "train_seconds", "tokens_per_second", "flops_per_token"), 1.0),
    )
    record = Record(
        run_id=cell.planned.run_id,
        condition_id="c",
        name="x",
        choices={},
        state=state,
        reason="steps",
        time_limited=False,
        selected=None if state == "diverged" else selected,
        validations=[],
        cost=cost,
        data={},
        runtime={},
        provenance={"code": "x"},
        config={},
        ended="now",
    )
    cell.planned.folder.path.mkdir(parents=True, exist_ok=True)
    cell.planned.folder.write_record(record)
