"""Answers for the checklists of venues: what the records say, and a mark where they say nothing."""

import re

import pytest

from ablab.judge.document import Document
from ablab.judge.selection_of_study import of_study
from ablab.report.checklist import FILL, UNKNOWN, checklist, facts
from ablab.report.sentences import trained_on
from ablab.store.records import SharedSentences
from ablab.tasks.task import Nouns


@pytest.fixture(scope="module")
def document(reported):
    return Document.model_validate(reported.data)


def test_its_figures_are_those_of_the_records(document, reported):
    runs = {run.folder.path: run for arm in of_study(reported.study).arms for run in arm.runs}.values()
    said = dict(facts(document))
    assert said["Runs"].startswith("4 arms, 5 seeds (1, 2, 3, 4, 5): 20 of 20 planned runs ended, 1 of them")
    hours = sum(run.record.cost.seconds for run in runs) / 3600
    assert f"{hours:,.1f} device hours" in said["Compute"]
    assert f"over {len(runs)} runs, {sum(run.record.cost.tokens for run in runs):,} target tokens" in said["Compute"]
    assert said["Parameters"] == "1,000,000 in every model."
    assert "220 sentences in test" in said["Data"]
    recipe = next(iter(runs)).recipe
    assert f"`optim.lr={recipe['optim.lr']}`" in said["Settings"].partition("Varied")[0]
    assert "`layerdrop.encoder=[0.0, 0.1, 0.2, 0.5]`" in said["Settings"].partition("Varied")[2]
    assert all(signature in said["Scores"] for signature in document.signatures.values())


def test_what_vouches_for_the_figures_is_the_stamp_and_else_nothing(document):
    stamped, bare = (document.model_copy(update={"stamp": stamp, "origin": None}) for stamp in ("57:3f9a", None))
    assert dict(facts(stamped))["Custody"] == "register 57:3f9a"
    assert dict(facts(bare))["Custody"] == "The store has no register."


def test_overlap_of_splits_is_said_or_unknown(document):
    (line,) = document.setup.corpora
    shared = SharedSentences(of=1200, pairs=2, sources=3, near=7)
    known = line.model_copy(update={"overlap": {**line.overlap, "test in training": shared}})
    told = [
        dict(facts(document.model_copy(update={"setup": document.setup.model_copy(update={"corpora": [each]})})))
        for each in (known, line, line.model_copy(update={"overlap": {}}))
    ]
    assert "test in training 3 of 1,200 sources (2 with the target; 4 more nearly)" in told[0]["Overlap"]
    assert "validation in training unknown; test in training unknown; test in validation unknown" in told[1]["Overlap"]
    assert f"{line.languages}: unknown." in told[2]["Overlap"]


def test_a_test_set_that_was_trained_on_is_told_beside_every_figure(document):
    (line,) = document.setup.corpora

    def told(shared, nouns=document.nouns):
        known = line.model_copy(update={"overlap": {**line.overlap, "test in training": shared}})
        made = document.setup.model_copy(update={"corpora": [known]})
        return [*trained_on(document.model_copy(update={"setup": made, "nouns": nouns}))]

    seen = SharedSentences(of=1200, pairs=2, sources=13, near=400)
    said = f"13 of 1,200 test sources ({line.test}) are in the training text too: a score may reward memory"
    assert told(seen) == [said]
    assert told(seen, Nouns("documents", "documents", "tokens")) == [said.replace("sources", "documents")]
    assert told(SharedSentences(of=1200, pairs=12, sources=12, near=400)) == []
    assert told(None) == []


def test_what_no_record_holds_is_to_be_filled_in(document):
    without = dict(facts(document.model_copy(update={"setup": None})))
    for topic in ("Parameters", "Compute", "Machines", "Data", "Settings", "Search", "Software"):
        assert without[topic].startswith(FILL)
    licences = [line for line in checklist(document).splitlines() if "icence" in line]
    assert licences
    assert all(FILL in line for line in licences)


def test_every_topic_that_an_item_refers_to_is_there(document, reported):
    text = reported.text("checklist.md")
    assert text == checklist(document)
    topics = {topic for topic, _ in facts(document)}
    items = text.partition("## ACL")[2]
    assert set(re.findall(r"\*([A-Z][a-z]+(?: [a-z]+)*)\*(?!\*)", items)) <= topics
    arr, neurips = items.split("## NeurIPS")
    assert re.findall(r"\*\*([A-E]\d?) ", arr) == [
        *("A1", "A2", "B1", "B2", "B3", "B4", "B5", "B6", "C1", "C2", "C3", "C4", "D", "E1")
    ]
    assert re.findall(r"\*\*(\d+) ", neurips) == [str(number) for number in range(1, 17)]


def test_searched_settings_stand_with_their_bounds(tmp_path):
    from ablab.study.definition import define
    from tests.report.conftest import EXPERIMENT

    tuned = EXPERIMENT.replace("seeds: [1", "tune: {key: optim.lr, values: [0.001, 0.002], seeds: [101]}\nseeds: [1")
    (tmp_path / "x.yaml").write_text(tuned)
    searched = of_study(define((f"experiment={tmp_path / 'x.yaml'}", f"outputs={tmp_path}"))).searched
    assert searched[0] == "optim.lr: 0.001, 0.002."
    assert "chosen among 2 values on validation loss, with seeds 101" in searched[1]


def test_of_a_program_nothing_is_said_that_its_records_do_not_hold(document):
    """No parameters, tokens or selection: a command tells scores alone."""
    made = document.setup
    settings, varied = (
        {key: value for key, value in values.items() if not key.startswith("training.")}
        for values in (made.settings, made.varied)
    )
    told = made.model_copy(
        update={"parameters": [0, 0], "tokens": 0, "settings": settings, "varied": varied, "versions": {"torch": "2"}}
    )
    said = dict(facts(document.model_copy(update={"setup": told})))
    for topic in ("Parameters", "Data", "Overlap", "Selection"):
        assert said[topic].startswith(FILL)
    assert "tokens" not in said["Compute"]
    assert said["Software"].startswith("ablab ran beside")
    assert said["Software"].endswith(f"torch 2. {FILL} what the program itself used.")


def test_of_a_table_nothing_is_known_of_how_weights_were_chosen(document):
    said = dict(facts(document.model_copy(update={"setup": None})))
    for topic in ("Parameters", "Data", "Selection", "Search"):
        assert said[topic] == UNKNOWN
