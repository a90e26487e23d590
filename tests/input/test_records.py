"""Stores that others wrote: whatever stands in their files, it is shown, marked, or refused in one line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ablab.errors import UserError
from ablab.store.records import Record
from ablab.study.definition import define
from ablab.study.ledger import register
from ablab.tasks.plan import Planned
from ablab.transformer.stages.asked import Wanted, missing
from tests.input.conftest import examples
from tests.input.experiments import ANYTHING, changed
from tests.input.forked import typed
from tests.input.laws import assert_no_fault_of_ours, assert_told_in_one_line, moving
from tests.report.synthetic import fill

EXPERIMENT = """
question: Is an arm that errs less a better arm?
common: [smoke=false, logger=none]
factors: {layerdrop: [0, 0.1]}
seeds: [1, 2]
claims: [{arm: layerdrop=0.1, expect: greater, margin: 0.5}]
"""
FILES = (
    *("runs/*/record.json", "runs/*/evaluations/*.json", "runs/*/curves/*.json", "runs/*/artefacts/*.json"),
    *("studies/*/registered.json", "register.jsonl", "runs/*/failure.json", "runs/*/recipe.yaml"),
    *("runs/*/metrics.csv", "runs/*/evaluations/*.txt", "corpora/*/references.txt", "studies/*/closed.json"),
    "studies/*/extended.json",
)
"""Every kind of file that a store has, as patterns."""

DEEP = b"[" * 100_000
HUGE = b'{"schema_version": 2, "run_id": ' + b"9" * 5000 + b"}"
BYTES = st.sampled_from(
    (b"", b"{", b"[]", b"null", b'"x"', b"NaN", HUGE, b"\xff\xfe", b"\x00", b"\xef\xbb\xbf{}")
)  # fmt: skip


def _none_missing(planned: Planned, wanted: Sequence[Wanted]) -> list[Wanted]:
    lacking = missing(planned, wanted)
    if lacking:
        raise UserError(f"{lacking[0].key}: is not computed here; allowed: artefacts that are there")
    return []


QUICK = {
    "ablab.commands.report.write_pictures": lambda document, folder: None,
    "ablab.transformer.translation.verbs.analyse.missing": _none_missing,
}
"""In place of what takes longer than reading a store does."""
COMMANDS = (
    *("report experiment", "report where", "report runs", "study", "prune", "translate", "analyse", "export"),
    *("ls", "ls where", "ls json", "show", "show json", "diff", "rm"),
)


@dataclass(frozen=True)
class Theirs:
    """A store in `outputs` of this place, and of each kind of file the first one, as it was made."""

    place: Path
    files: dict[str, tuple[Path, bytes | None]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, warm: None) -> Theirs:
    """A study of two arms and two seeds, registered, with curves and artefacts."""
    place = tmp_path_factory.mktemp("theirs")
    (place / "theirs.yaml").write_text(EXPERIMENT)
    words = (f"experiment={place / 'theirs.yaml'}",)
    register(define((*words, f"outputs={place / 'outputs'}")))
    fill(words, {"layerdrop=0": 0.3, "layerdrop=0.1": 0.1}, outputs=place / "outputs", pruned=True)
    return Theirs(place, {pattern: _first(place / "outputs", pattern) for pattern in FILES})


def _first(outputs: Path, pattern: str) -> tuple[Path, bytes | None]:
    """Return the first file of a kind and its content, or where it would be and None."""
    for path in sorted(outputs.glob(pattern)):
        return path, path.read_bytes()
    folder, _, name = pattern.rpartition("/")
    return next(place for place in sorted(outputs.glob(folder)) if place.is_dir()) / name, None


def _words(command: str, run: str, other: str) -> list[str]:
    verb, _, how = command.partition(" ")
    quick = ["resamples=1000"] * (verb == "report")
    as_json = ["format=json"] * (how == "json")
    if verb == "ls":
        return [verb, *(["where=layerdrop.encoder>=0 test_bleu>0"] if how == "where" else []), *as_json]
    if verb == "diff":
        return [verb, f"runs={run},{other}"]
    if verb in ("show", "rm"):
        return [verb, f"run={run}", *as_json, *(["dry_run=true"] if verb == "rm" else [])]
    if verb == "study" or how == "experiment":
        return [verb, "experiment=theirs.yaml", *quick]
    if verb == "report":
        return [verb, "where=model=tiny" if how == "where" else f"runs={run}", *quick]
    return [verb, f"run={run}"]


def _hold(command: str, pattern: str, content: bytes, store: Theirs) -> None:
    """Assert that a command keeps the laws while a file has this content."""
    (path, whole), outputs = store.files[pattern], store.place / "outputs"
    runs = sorted(place.name for place in (outputs / "runs").glob("r*"))
    run = path.relative_to(outputs).parts[1] if "runs" in path.parts else runs[0]
    path.write_bytes(content)
    try:
        ended = typed(_words(command, run, runs[-1]), store.place, instead=QUICK)
    finally:
        path.unlink() if whole is None else path.write_bytes(whole)
    assert_no_fault_of_ours(ended)
    assert_told_in_one_line(ended)
    assert moving(ended.out, allowed="\n\t") == []


@st.composite
def _damage(draw: st.DrawFn, store: Theirs) -> tuple[str, bytes]:
    """Draw a kind of file and what stands in it: mostly what stood there, with one entry changed."""
    pattern = draw(st.sampled_from(FILES))
    path, whole = store.files[pattern]
    if whole is None or draw(st.integers(0, 5)) == 0:
        return pattern, draw(BYTES | st.binary(max_size=40))
    if path.suffix == ".json":
        content = draw(changed({"file": json.loads(whole)}))
        return pattern, json.dumps(content.get("file"), ensure_ascii=draw(st.booleans())).encode("utf-8", "replace")
    lines = whole.decode().splitlines()
    number = draw(st.integers(0, len(lines) - 1))
    if path.suffix == ".jsonl" and draw(st.booleans()):
        key = draw(st.sampled_from(("at", "what", "run", "study", "file", "digest", "runs", "files", "before")))
        lines[number] = json.dumps({**json.loads(lines[number]), key: draw(ANYTHING)})
    else:
        lines[number] = draw(st.text(max_size=20))
    return pattern, "\n".join([*lines, ""]).encode("utf-8", "replace")


@examples(0.1)
@given(data=st.data(), command=st.sampled_from(COMMANDS))
def test_any_change_of_a_file_is_shown_marked_or_refused(data: st.DataObject, command: str, store: Theirs) -> None:
    pattern, content = data.draw(_damage(store))
    _hold(command, pattern, content, store)


@pytest.mark.parametrize(
    "command", ["study", *(pytest.param(how, marks=pytest.mark.slow) for how in ("report experiment", "report where"))]
)
@pytest.mark.parametrize("pattern", ["runs/*/record.json", "runs/*/recipe.yaml", "register.jsonl"])
def test_what_nests_without_bound_is_refused_or_left_aside(pattern: str, command: str, store: Theirs) -> None:
    _hold(command, pattern, DEEP, store)


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        ("provenance", "commit", {}),
        ("provenance", "versions", []),
        ("provenance", "versions", {"torch": {}}),
        ("runtime", "device", []),
        ("runtime", "threads", "two"),
        ("provenance", "machine", {"processor": []}),
    ],
)
def test_a_fact_of_another_type_is_refused_where_the_record_is_read(
    where: str, key: str, value: object, store: Theirs
) -> None:
    _, whole = store.files["runs/*/record.json"]
    assert whole is not None
    content = json.loads(whole)
    content[where][key] = value
    with pytest.raises(ValidationError, match="Value error"):
        Record.model_validate(content)
    _hold("report runs", "runs/*/record.json", json.dumps(content).encode(), store)


@pytest.mark.parametrize("value", [None, "greedy", []])
def test_a_curve_without_a_strategy_is_shown_marked_or_refused(value: object, store: Theirs) -> None:
    _, whole = store.files["runs/*/curves/*.json"]
    assert whole is not None
    content = json.loads(whole)
    content["settings"]["pruning"] = value
    for command in ("prune", "report runs", "show"):
        _hold(command, "runs/*/curves/*.json", json.dumps(content).encode(), store)
