"""The digests of this package's own sources, under edits of a copy; and the table of those that are one."""

import ast
import json
import re
import shutil
from pathlib import Path

import pytest

import ablab
from ablab.code.code import CHOSEN, FORMERLY, GROUPS, OUTSIDE, ROOTS, SILENT, UNUSED, code, code_from, roots
from ablab.code.definitions import Sources, reached
from ablab.code.differences import (
    TABLE,
    RecordedCode,
    equals,
    joined,
    numerical_versions,
    of_other_version,
    other_code,
    other_judge,
    other_origin,
    same_code,
)
from ablab.code.folders import shipped_conf
from ablab.code.machine import provenance
from ablab.code.modules import Package
from ablab.config import compose
from ablab.tasks import identity
from ablab.transformer.config.schema import TranslationConfig

RECIPE = identity.recipe(compose(["pruning=none"]).config)


class Copy:
    """Of the package and its options, to be edited."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.conf = folder / "ablab", folder / "conf"
        unneeded = shutil.ignore_patterns("__pycache__", "page")
        shutil.copytree(Path(ablab.__file__).parent, self.folder, ignore=unneeded)
        shutil.copytree(shipped_conf(), self.conf)
        monkeypatch.setattr("ablab.code.code.shipped_targets", self._targets)

    def _targets(self, group: str) -> dict[str, str]:
        texts = [path.read_text(encoding="utf-8") for path in (self.conf / group).glob("*.yaml")]
        found = (re.search(r"_target_: *(\S+)\s+kind: *(\S+)", text) for text in texts)
        return {each[2]: each[1] for each in found if each}

    def digests(self, **recipe) -> tuple[str, str]:
        """Of training and of evaluation."""
        sources = Sources(Package(self.folder), OUTSIDE, SILENT, registries=CHOSEN)
        found = [code_from(sources, stage, {**RECIPE, **recipe}) for stage in ("training", "evaluation")]
        return found[0].digest, found[1].digest

    def edit(self, name: str, before: str, after: str) -> None:
        text = (self.folder / name).read_text(encoding="utf-8")
        assert before in text
        (self.folder / name).write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    return Copy(tmp_path, monkeypatch)


NOW = (code("training", RECIPE).digest, code("evaluation", RECIPE).digest)


def test_reports_screens_and_names_of_modules_are_no_part_of_it(copy):
    copy.edit("report/latex.py", '"""', '"""Another word. ')
    copy.edit("tracking/console.py", 'self._progress("step",', 'self._progress("at step",')
    copy.edit("transformer/model/dropout.py", "import torch", "# A comment.\nimport torch")
    (copy.folder / "transformer" / "model" / "dropout.py").rename(
        copy.folder / "transformer" / "model" / "dropped_units.py"
    )
    for path in copy.folder.rglob("*.py"):
        path.write_text(
            path.read_text(encoding="utf-8").replace(
                "ablab.transformer.model.dropout", "ablab.transformer.model.dropped_units"
            )
        )
    assert copy.digests() == NOW


def test_only_a_call_that_tells_a_person_something_is_left_out(copy):
    copy.edit("transformer/data/prepared.py", "preparing {corpus.kind}", "now preparing {corpus.kind}")
    assert copy.digests() == NOW
    copy.edit("transformer/data/prepared.py", "store: Path, say: Say", "store: Path, say: Counting")
    assert copy.digests()[0] != NOW[0]


def test_training_and_evaluation_are_told_apart(copy):
    copy.edit("transformer/decoding/search.py", "2 * size", "3 * size")
    training, evaluation = copy.digests()
    assert training == NOW[0]
    assert evaluation != NOW[1]


def test_the_model_is_part_of_both(copy):
    copy.edit("transformer/model/embedding.py", "return", "return 2 *")
    assert all(one != other for one, other in zip(copy.digests(), NOW, strict=True))


def test_an_option_that_the_recipe_does_not_name_is_no_part_of_it(copy):
    """A new norm, an edit of another one, an option that is gone, and a new entry of a dictionary of kinds."""
    text = (copy.folder / "transformer/model/norms.py").read_text(encoding="utf-8")
    (copy.folder / "transformer/model/norms.py").write_text(
        f"{text}\n\nclass Unused(LayerNorm):\n    pass\n", encoding="utf-8"
    )
    (copy.conf / "norm/unused.yaml").write_text("_target_: ablab.transformer.model.norms.Unused\nkind: unused\n")
    copy.edit("transformer/model/norms.py", "self.eps", "2 * self.eps")
    (copy.conf / "norm/dyt.yaml").unlink()
    copy.edit("transformer/model/layerdrop.py", "RATES = {", 'RATES = {"none": learned_rates, ')
    copy.edit("transformer/training/optimisers.py", "ITERATIONS = ", "ITERATIONS = 1 + ")
    assert copy.digests() == NOW
    rates = {"layerdrop": {"encoder": 0.1, "decoder": 0.1, "rates": "none"}}
    assert copy.digests(**rates)[0] not in (NOW[0], copy.digests()[0])


@pytest.mark.parametrize(
    ("recipe", "edit"),
    [
        ({"norm": {"kind": "rmsnorm"}}, ("transformer/model/norms.py", "self.eps", "2 * self.eps")),
        ({"optim": {"kind": "muon"}}, ("transformer/training/optimisers.py", "ITERATIONS = ", "ITERATIONS = 1 + ")),
        (
            {"layerdrop": {"rates": "linear"}},
            ("transformer/model/layerdrop.py", "def linear_rates", "@print\ndef linear_rates"),
        ),
    ],
)
def test_an_option_that_the_recipe_names_is_part_of_it(recipe, edit, copy):
    before = copy.digests(**recipe)
    assert before[0] != NOW[0]
    copy.edit(*edit)
    assert copy.digests(**recipe)[0] != before[0]


def test_the_rates_of_layers_that_never_drop_are_part_of_it(copy):
    copy.edit("transformer/model/layerdrop.py", "def uniform_rates", "@print\ndef uniform_rates")
    assert copy.digests()[0] != NOW[0]


def test_a_kind_that_recipes_leave_out_is_known():
    marked = {group: TranslationConfig.marks()[group].formerly for groups in GROUPS.values() for group in groups}
    assert {group: mark.value["kind"] for group, mark in marked.items() if mark is not None} == FORMERLY


def test_every_dictionary_of_kinds_is_chosen_from_by_a_setting():
    """A dictionary whose values are definitions would bring all of them into every digest that names it."""
    sources = Sources(Package(Path(ablab.__file__).parent), OUTSIDE, SILENT, registries=CHOSEN)
    for stage, spine in ROOTS.items():
        for key in reached(sources, spine, UNUSED.get(stage, ())):
            for each in sources.statements(key):
                value = getattr(each, "value", None)
                if isinstance(each, (ast.Assign, ast.AnnAssign)) and isinstance(value, ast.Dict):
                    own = [used.name for used in sources.definition(key).uses if used.name != key.name]
                    assert not own, f"{key.dotted} names {own}: name it in CHOSEN, with the setting that chooses"


def test_no_function_has_the_name_of_another_in_its_module():
    """A digest reaches a definition by its name: those that `singledispatch` registers as `_` would be in none."""
    for path in Path(ablab.__file__).parent.rglob("*.py"):
        names = [each.name for each in ast.parse(path.read_text()).body if isinstance(each, ast.FunctionDef)]
        overloads = path.read_text().count("@overload")
        assert len(names) - len(set(names)) <= overloads, path


def test_a_part_from_outside_brings_what_it_uses_of_ablab(copy, tmp_path, monkeypatch):
    (tmp_path / "study").mkdir()
    monkeypatch.chdir(tmp_path / "study")
    text = "from ablab.transformer.model import norms\n\nclass Mine(norms.RMSNorm):\n    pass\n"
    Path("own_norms_of_a_study.py").write_text(text)
    recipe = {"norm": {"_target_": "own_norms_of_a_study.Mine", "code": "0"}}
    before = copy.digests(**recipe)
    copy.edit("transformer/model/norms.py", "self.eps", "2 * self.eps")
    assert copy.digests(**recipe)[0] != before[0]


# What differs, in words


def test_another_task_of_ours_has_its_own_code_and_that_of_the_parts_that_its_recipe_names(monkeypatch):
    norm = "ablab.transformer.model.norms.ScaleNorm"
    targets = {"task": {"other": "ablab.tasks.own.OwnTask"}, "norm": {"scalenorm": norm}}
    monkeypatch.setattr("ablab.code.code.shipped_targets", lambda group: targets.get(group, {}))
    recipe = {"task": {"kind": "other"}, "norm": {"kind": "scalenorm"}, "seed": 1}
    sources = Sources(Package(Path(ablab.__file__).parent), OUTSIDE, SILENT, registries=CHOSEN)
    for stage in ROOTS:
        found = roots(stage, recipe, sources)
        assert found["spine"] == ("ablab.tasks.own.OwnTask",)
        assert set(found) <= {"spine", "norm=scalenorm"}, "no part that only translation has"


def test_nothing_is_said_of_what_is_the_same():
    assert other_origin(provenance(RECIPE), RECIPE) is None
    assert other_judge(provenance(RECIPE), RECIPE) is None


def test_other_code_is_named_by_what_changed():
    definitions = dict(code("training", RECIPE).definitions)
    del definitions["derive"]
    assert other_code("training", RECIPE, RecordedCode("2:0"), definitions) == "code differs in derive (training)"
    many = dict.fromkeys(definitions, "00000000")
    assert re.fullmatch(
        r"code differs in ([^,]+, ){3}\S+ and \d+ more \(training\)",
        other_code("training", RECIPE, RecordedCode("2:0"), many),
    )
    assert other_code("training", RECIPE, RecordedCode("2:0"), {}) == "code 2:0 (training)"
    assert other_code("training", RECIPE, RecordedCode(NOW[0]), {}) is None


def test_a_record_of_other_code_comes_from_elsewhere():
    recorded = {"code": "2:a", "evaluation_code": "2:a", "commit": "b" * 40, "versions": numerical_versions()}
    assert other_origin(recorded, RECIPE) == f"code 2:a (training) (commit {'b' * 8})"
    assert other_judge(recorded, RECIPE) is not None
    assert of_other_version(recorded["code"]) is None


def test_a_digest_of_an_older_version_cannot_be_compared_which_is_not_changed():
    recorded = {"code": "a" * 12, "versions": numerical_versions()}
    assert other_origin(recorded, RECIPE) is None
    assert other_judge(recorded, RECIPE) is None
    assert of_other_version(recorded["code"]) == "code that cannot be compared (digest version 1)"


def test_two_recipes_are_of_one_code_if_all_that_they_share_is():
    one, other = (code("training", {**RECIPE, "norm": {"kind": kind}}) for kind in ("layernorm", "scalenorm"))
    assert one.digest != other.digest
    assert same_code(RecordedCode(one.digest, one.components), RecordedCode(other.digest, other.components))
    for name in ("spine", "optim=adam"):
        assert not same_code(
            RecordedCode(one.digest, {**one.components, name: "2:0"}), RecordedCode(other.digest, other.components)
        )


def test_only_libraries_that_decide_numbers_count():
    recorded = provenance(RECIPE)
    recorded["versions"] = {**recorded["versions"], "wandb": "0.0.1", "hydra-core": "0.0.1"}
    assert other_origin(recorded, RECIPE) is None
    recorded["versions"]["numpy"] = "0.0.1"
    assert other_origin(recorded, RECIPE) == "numpy 0.0.1"


# Digests that are proved to be one


def test_entries_that_share_a_digest_are_one():
    classes = joined([{"digests": ["a", "b"]}, {"digests": ["c", "d"]}, {"digests": ["b", "e"]}])
    assert classes["a"] == classes["b"] == classes["e"] == {"a", "b", "e"}
    assert classes["c"] == {"c", "d"}


def test_what_the_table_says_is_one_is_not_elsewhere(monkeypatch):
    components = code("training", RECIPE).components
    recorded = {**provenance(RECIPE), "code": "2:0", "components": {"training": {**components, "spine": "2:1"}}}
    assert other_origin(recorded, RECIPE) is not None
    entries = [{"digests": ["2:1", components["spine"]]}]
    monkeypatch.setattr("ablab.code.differences.equals", lambda _: joined(entries))
    assert other_origin(recorded, RECIPE) is None


def test_a_rewrite_that_changes_numbers_with_one_component_is_equal_without_it(monkeypatch, tmp_path):
    table = tmp_path / "equal.json"
    table.write_text(json.dumps([{"digests": ["2:1", "2:2"], "unless": ["training.precision=bf16"]}]), encoding="utf-8")
    monkeypatch.setattr("ablab.code.differences.TABLE", table)
    equals.cache_clear()
    one, other = ({"spine": digest, "training.precision=fp32": "2:3"} for digest in ("2:1", "2:2"))
    rounded, anew = ({"spine": digest, "training.precision=bf16": "2:4"} for digest in ("2:1", "2:2"))
    codes = [RecordedCode(name, each) for name, each in zip("abcd", (one, other, rounded, anew), strict=True)]
    plain, plain_anew, in_half, in_half_anew = codes
    assert same_code(plain, plain_anew)
    assert not same_code(in_half, in_half_anew)
    assert not same_code(plain, in_half_anew)
    assert same_code(plain, in_half)
    equals.cache_clear()


def test_the_table_that_ships_can_be_read():
    for entry in json.loads(TABLE.read_text(encoding="utf-8")):
        assert set(entry) - {"unless"} == {"stage", "digests", "proof"}
        assert entry["stage"] in ROOTS
        assert len(set(entry["digests"])) == len(entry["digests"]) > 1
        assert all(re.fullmatch("(2:)?[0-9a-f]{12}", digest) for digest in entry["digests"])
        assert entry["proof"]
