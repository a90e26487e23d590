"""A run that fails to learn is a result: recorded, kept, never scored on the test set when it has no weights."""

from ablab.store.run_folder import all_runs
from tests.run.conftest import make_store, typed
from tests.run.test_interruption import LINE


def test_a_loss_that_is_not_a_number_is_a_diverged_run(tmp_path):
    # Weights of this size overflow single precision in the next forward pass.
    store = make_store(tmp_path, "optim.lr=1e30", "optim.clip=null", "logger=none")
    record = store.record
    assert record.state == "diverged"
    assert "not a number" in record.reason
    assert record.selected is None
    assert not (store.run.path / "evaluations").exists()
    assert f"diverged    {record.reason}" in store.said.out
    assert "Next: a smaller optim.lr" in store.said.out
    assert "every stage ran" not in store.said.out


def test_a_run_at_the_unigram_loss_is_diverged_but_scored(tmp_path):
    line = (*LINE, "training.max_steps=40", "training.valid_every=20", "optim.lr=1e-9", "pruning=none")
    assert typed(*line, f"outputs={tmp_path}").code == 0
    (run,) = all_runs(tmp_path)
    record = run.record()
    assert record.state == "diverged"
    assert "unigram" in record.reason
    assert record.selected.scores["loss"] > record.data["unigram_loss"]
    assert list((run.path / "evaluations").glob("*.json"))


def test_a_smoke_run_may_learn_nothing(tmp_path):
    """In eight steps hardly any does; that it ran is what counts."""
    store = make_store(tmp_path, "optim.lr=1e-9", "logger=none", "pruning=none")
    assert store.record.state == "finished"
    assert store.record.selected.scores["loss"] > store.record.data["unigram_loss"]


def test_a_record_with_n_best_lists_them(tmp_path):
    store = make_store(tmp_path, "decoding.n_best=2", "logger=none", "pruning=none")
    (path,) = (store.run.path / "evaluations").glob("*.n_best.tsv")
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [int(row[0]) for row in rows] == [number for number in range(16) for _ in range(2)]
    best = [row[2] for row in rows[::2]]
    assert best == (path.parent / f"{path.name.partition('.')[0]}.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert all(float(a[1]) >= float(b[1]) for a, b in zip(rows[::2], rows[1::2], strict=True))
