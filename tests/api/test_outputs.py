"""What is printed with format=json is JSON alone, and what its documented schema says."""

import json

import pytest
from jsonschema import Draft202012Validator

from ablab.commands.cli import main
from ablab.tasks.verbs import VERBS, options_of
from ablab.transformer.translation.task import Translation
from benchmarks import outputs

LINES = {
    "study": ["experiment=tried.yaml"],
    "report": ["experiment=tried.yaml", "resamples=1000"],
    "ls": [],
    "show": ["run={}"],
    "diff": ["{}", "{}"],
    "rm": ["run={}", "dry_run=true"],
    "verify": ["run={}"],
    "sync": ["dry_run=true"],
}
"""Lines that need no model. Those of prune, analyse, generate and check are in the tests of the verbs."""


def test_the_documented_schemas_are_those_of_the_code():
    assert outputs.text() == outputs.PLACE.read_text(encoding="utf-8"), "run python -m benchmarks.outputs"


def test_every_verb_that_offers_json_has_a_schema():
    fields = {verb: options_of(verb).model_fields.get("format") for verb in VERBS}
    offering = {verb for verb, field in fields.items() if field is not None and "json" in str(field.annotation)}
    assert offering - {"dashboard"} == set(outputs.models())  # that prints a specification, which is W&B's


@pytest.mark.parametrize("verb", LINES)
def test_outputs_are_what_their_schema_says(verb, place, ids, capsys, monkeypatch):
    monkeypatch.setattr("ablab.commands.report.write_pictures", lambda document, folder: None)
    words = [word.format(run) for word, run in zip(LINES[verb], ids, strict=False)]
    as_text = main([verb, *words])
    capsys.readouterr()
    assert main([verb, *words, "format=json"]) == as_text
    schema = json.loads(outputs.PLACE.read_text(encoding="utf-8"))[verb]
    Draft202012Validator(schema).validate(json.loads(capsys.readouterr().out))


def test_check_says_which_laws_hold(capsys, monkeypatch):
    monkeypatch.setattr(Translation, "laws", lambda task, chosen, line: iter(()))
    assert main(["check", "norm=pre", "format=json"]) == 0
    Draft202012Validator(json.loads(outputs.PLACE.read_text())["check"]).validate(json.loads(capsys.readouterr().out))
