"""The definitions behind a code digest lie in a store once, and a record without them says all but their names."""

import hashlib
import json
import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pytest

from ablab.code.code import code
from ablab.code.differences import other_judge, other_origin
from ablab.code.machine import provenance
from ablab.store.run_folder import RunFolder
from ablab.store.shared import is_stored_code, keep_code
from tests.test_record import _record

RECIPE = {"norm": {"kind": "layernorm"}}
OTHER = "2:000000000000"


def made_by_other_code():
    """The provenance of a run that was made when `derive` was another, and `average` did not exist."""
    found = provenance(RECIPE)
    training = {name: digest for name, digest in found["definitions"]["training"].items() if name != "average"}
    evaluation = {**found["definitions"]["evaluation"], "attend": "0" * 8}
    return {
        **found,
        **{"code": OTHER, "evaluation_code": OTHER, "components": {}, "diff": None},
        "definitions": {"training": {**training, "derive": "0" * 8}, "evaluation": evaluation},
    }


@pytest.fixture
def run(tmp_path) -> RunFolder:
    folder = RunFolder(tmp_path / "outputs" / "runs" / "r1")
    folder.write_record(_record(folder.run_id, provenance=made_by_other_code()))
    return folder


def stored(run):
    (path,) = (run.outputs / "code").glob("*.json")
    return path


def test_a_record_names_its_definitions_and_is_read_with_them(run):
    entries = json.loads((run.path / "record.json").read_text())["provenance"]
    assert "definitions" not in entries
    assert stored(run).stem == entries["definitions_digest"]
    assert hashlib.sha256(stored(run).read_bytes()).hexdigest().startswith(stored(run).stem)
    assert (run.path / "record.json").stat().st_size < stored(run).stat().st_size
    there = run.record().provenance
    assert there == {**made_by_other_code(), "definitions_digest": stored(run).stem}
    assert other_origin(there, RECIPE).startswith("code differs in average, derive (training)")
    assert "code differs in attend, derive (evaluation)" in other_judge(there, RECIPE)


def test_runs_of_one_code_share_them(run):
    before = stored(run).stat().st_ino
    for number in range(2, 5):
        folder = RunFolder(run.path.parent / f"r{number}")
        folder.write_record(_record(folder.run_id, provenance=made_by_other_code()))
        assert folder.record().provenance["definitions"] is run.record().provenance["definitions"]
    assert stored(run).stat().st_ino == before


def test_a_record_that_is_read_and_written_names_the_same(run):
    text = (run.path / "record.json").read_text()
    run.write_record(run.record())
    assert (run.path / "record.json").read_text() == text
    assert stored(run)


def _cut(path):
    path.write_bytes(path.read_bytes()[:100])


def _other_content(path):
    path.write_text('{"training": {"derive": "00000000"}}\n')


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), _cut, _other_content])
def test_without_them_code_is_still_told_to_differ(damage, run):
    damage(stored(run))
    record = run.record()
    assert "definitions" not in record.provenance
    assert record.provenance["components"] == {}
    assert other_origin(record.provenance, RECIPE).startswith(f"code {OTHER} (training)")
    assert f"code {OTHER} (evaluation)" in other_judge(record.provenance, RECIPE)


def test_they_are_written_anew_where_they_are_damaged_and_what_a_kill_left_goes(run):
    path = stored(run)
    whole = path.read_bytes()
    _cut(path)
    left = path.with_name(f".{path.name}.abcdefgh")
    left.write_text("{")
    assert is_stored_code(run.outputs, path.stem) is False
    assert keep_code(run.outputs, made_by_other_code()["definitions"]) == path.stem
    assert path.read_bytes() == whole
    assert not left.exists()


def test_the_order_of_definitions_does_not_matter(tmp_path):
    definitions = provenance(RECIPE)["definitions"]
    turned = {stage: dict(reversed(each.items())) for stage, each in reversed(definitions.items())}
    assert keep_code(tmp_path, definitions) == keep_code(tmp_path, turned)


def _kept(arguments):
    return keep_code(*arguments)


def test_many_that_write_them_at_once_leave_one_whole_file(tmp_path):
    definitions = made_by_other_code()["definitions"]
    with ThreadPoolExecutor(8) as pool:
        digests = {*pool.map(_kept, 16 * [(tmp_path, definitions)])}
    with multiprocessing.get_context("fork").Pool(4) as processes:
        digests |= {*processes.map(_kept, 8 * [(tmp_path / "fork", definitions)])}
    (digest,) = digests
    for outputs in (tmp_path, tmp_path / "fork"):
        assert [path.name for path in (outputs / "code").iterdir()] == [f"{digest}.json"]
        assert is_stored_code(outputs, digest)


def test_current_code_needs_no_names(run):
    """Whether code differs is in the record: with the digest of today, nothing is said though nothing is stored."""
    found = provenance(RECIPE)
    del found["definitions"]
    assert found["code"] == code("training", RECIPE).digest
    assert other_origin(found, RECIPE) is None


def test_a_run_that_was_set_aside_still_has_them(run):
    aside = RunFolder(run.set_aside())
    assert aside.record().provenance["definitions"] == made_by_other_code()["definitions"]
