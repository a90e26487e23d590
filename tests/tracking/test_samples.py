"""What trackers show of a test set, the same items of every run, and of the data: what identifies it, not its text."""

import json

import pytest

import ablab
from ablab.config import compose
from ablab.store.run_folder import RunFolder
from ablab.store.shared import stored_text
from ablab.tasks.plan import plan
from ablab.tasks.registry import task_named
from ablab.transformer.data.scoring import sentence_chrf
from tests.api.conftest import ids, made, place  # noqa: F401
from tests.run.conftest import TINY, typed
from tests.tracking.seen import Seen


def table_of(found, most):
    return task_named().samples(found.evaluation, found.folder, most)


@pytest.mark.parametrize("most", [1, 7, 10_000])
def test_rows_are_of_the_whole_test_set_and_the_same_of_every_run(most, place, ids):  # noqa: F811
    store = ablab.open("outputs")
    found = [store.run(name) for name in ids[:3]]
    tables = [table_of(each, most)[1] for each in found]
    number = found[0].evaluation.sentences
    numbers = [row[0] for row in tables[0]]
    assert len(numbers) == min(most, number)
    assert numbers == sorted(set(numbers))
    gaps = {later - earlier for earlier, later in zip(numbers, [*numbers[1:], number + 1], strict=True)}
    assert max(gaps) - min(gaps) <= 1, "as many from the end as from the beginning"
    assert all([row[:3] for row in table] == [row[:3] for row in tables[0]] for table in tables)
    text = stored_text(found[1].folder.outputs, found[1].evaluation.references)
    for at, source, reference, translation, chrf in tables[1]:
        assert (source, reference) == (text.sources[at - 1], text.references[at - 1])
        assert translation == found[1].hypotheses()[at - 1]
        assert chrf == round(sentence_chrf(translation, reference), 2)


def test_where_the_texts_are_gone_there_is_no_table(place, ids):  # noqa: F811
    found = ablab.open("outputs").run(ids[0])
    for path in (found.folder.outputs / "corpora").rglob("*"):
        if path.is_file():
            path.unlink()
    assert table_of(found, 3) == ((), ())


def seen_of(tmp_path, *words) -> Seen:
    assert typed("smoke=true", *TINY, "pruning=none", f"outputs={tmp_path}", *words).code == 0
    (folder,) = [path for path in (tmp_path / "smoke" / "runs").iterdir() if path.is_dir()]
    assert RunFolder(folder).latest_evaluation() is not None
    return Seen.of(folder)


def test_a_run_tells_its_data_and_some_of_its_translations(tmp_path):
    seen = seen_of(tmp_path, "logger=wandb", "logger.samples=4")
    (table,) = [event for event in seen.kind("table") if event["key"] == "test/samples"]
    assert table["columns"] == ["number", "source", "reference", "translation", "chrF"]
    assert [row[0] for row in table["rows"]] == [1, 5, 9, 13]
    (dataset,) = seen.kind("dataset")
    assert dataset["key"] == "numbers"
    assert dataset["about"]["digest"] == seen.card.config["recipe"]["data"]["digest"]
    assert not set(json.dumps(dataset["about"]).split('"')) & {row[1] for row in table["rows"]}


def test_without_samples_there_is_no_table(tmp_path):
    seen = seen_of(tmp_path, "logger=wandb", "logger.samples=0")
    assert "test/samples" not in seen.keys


@pytest.mark.parametrize("task", ["translation", "language_model"])
def test_the_data_set_is_named_by_its_digest(task):
    planned = plan(compose([f"task={task}"]))
    found, about = planned.task.dataset(planned)
    assert found == "numbers"
    assert about == planned.recipe["data"]
    assert about["digest"] != plan(compose([f"task={task}", "data.train_size=77"])).recipe["data"]["digest"]
