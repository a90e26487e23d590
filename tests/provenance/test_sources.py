"""The digests of this package's own sources, under edits of a copy; and the table of those that are one."""

import json
import re
import shutil
from pathlib import Path

import pytest

import ablab
from ablab.provenance import numerical_versions, other_code, other_judge, other_origin, provenance
from ablab.provenance.code import code
from ablab.provenance.equal import TABLE, joined, same_code
from ablab.provenance.roots import OUTSIDE, ROOTS, SILENT, UNUSED, roots
from ablab.syntax.definitions import Sources, code_of, reached
from ablab.syntax.modules import Package


class Copy:
    """Of the package, to be edited."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "ablab"
        unneeded = shutil.ignore_patterns("__pycache__", "page")
        shutil.copytree(Path(ablab.__file__).parent, self.folder, ignore=unneeded)

    def digests(self) -> tuple[str, str]:
        """Of training and of evaluation."""
        sources = Sources(Package(self.folder), OUTSIDE, SILENT)
        found = [code_of(reached(sources, roots(s), UNUSED.get(s, ()))) for s in ("training", "evaluation")]
        return found[0].digest, found[1].digest

    def edit(self, name: str, before: str, after: str) -> None:
        text = (self.folder / name).read_text(encoding="utf-8")
        assert before in text
        (self.folder / name).write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


NOW = (code("training").digest, code("evaluation").digest)


def test_reports_screens_and_names_of_modules_are_no_part_of_it(copy):
    copy.edit("report/latex.py", '"""', '"""Another word. ')
    copy.edit("console.py", "step {task.completed:,.0f}", "at step {task.completed:,.0f}")
    copy.edit("model/layerdrop.py", "import torch", "# A comment.\nimport torch")
    (copy.folder / "model" / "layerdrop.py").rename(copy.folder / "model" / "dropped_layers.py")
    for path in copy.folder.rglob("*.py"):
        path.write_text(path.read_text(encoding="utf-8").replace("ablab.model.layerdrop", "ablab.model.dropped_layers"))
    assert copy.digests() == NOW


def test_only_a_call_that_tells_a_person_something_is_left_out(copy):
    copy.edit("data/prepared.py", "preparing {corpus.kind}", "now preparing {corpus.kind}")
    assert copy.digests() == NOW
    copy.edit("data/prepared.py", "store: Path, say: Say", "store: Path, say: Counting")
    assert copy.digests()[0] != NOW[0]


def test_training_and_evaluation_are_told_apart(copy):
    copy.edit("decoding/beam.py", "2 * size", "3 * size")
    training, evaluation = copy.digests()
    assert training == NOW[0]
    assert evaluation != NOW[1]


def test_the_model_is_part_of_both(copy):
    copy.edit("model/norms.py", "self.eps", "2 * self.eps")
    assert all(one != other for one, other in zip(copy.digests(), NOW, strict=True))


# What differs, in words


def test_nothing_is_said_of_what_is_the_same():
    assert other_origin(provenance()) is None
    assert other_judge(provenance()) is None


def test_other_code_is_named_by_what_changed():
    definitions = dict(code("training").definitions)
    del definitions["derive"]
    assert other_code("training", "0" * 12, definitions) == "code differs in derive (training)"
    many = dict.fromkeys(definitions, "00000000")
    assert re.fullmatch(r"code differs in ([^,]+, ){3}\S+ and \d+ more \(training\)", other_code("training", "0", many))
    assert other_code("training", "0" * 12, {}) == f"code {'0' * 12} (training)"
    assert other_code("training", NOW[0], {}) is None


def test_a_record_of_an_older_version_comes_from_elsewhere():
    recorded = {"code": "a" * 12, "commit": "b" * 40, "versions": numerical_versions()}
    assert other_origin(recorded) == f"code {'a' * 12} (training) (commit {'b' * 8})"
    assert other_judge(recorded) is not None


def test_only_libraries_that_decide_numbers_count():
    recorded = provenance()
    recorded["versions"] = {**recorded["versions"], "wandb": "0.0.1", "hydra-core": "0.0.1"}
    assert other_origin(recorded) is None
    recorded["versions"]["numpy"] = "0.0.1"
    assert other_origin(recorded) == "numpy 0.0.1"


# Digests that are proved to be one


def test_entries_that_share_a_digest_are_one():
    classes = joined([{"digests": ["a", "b"]}, {"digests": ["c", "d"]}, {"digests": ["b", "e"]}])
    assert classes["a"] == classes["b"] == classes["e"] == {"a", "b", "e"}
    assert classes["c"] == {"c", "d"}


def test_what_the_table_says_is_one_is_not_elsewhere(monkeypatch):
    recorded = {**provenance(), "code": "0" * 12}
    assert not same_code("0" * 12, NOW[0])
    assert other_origin(recorded) is not None
    monkeypatch.setattr("ablab.provenance.equal.equals", lambda: joined([{"digests": ["0" * 12, NOW[0]]}]))
    assert other_origin(recorded) is None


def test_the_table_that_ships_can_be_read():
    for entry in json.loads(TABLE.read_text(encoding="utf-8")):
        assert set(entry) == {"stage", "digests", "proof"}
        assert entry["stage"] in ROOTS
        assert len(set(entry["digests"])) == len(entry["digests"]) > 1
        assert all(re.fullmatch("[0-9a-f]{12}", digest) for digest in entry["digests"])
        assert entry["proof"]
