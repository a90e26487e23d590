"""A part that was written for the names that ablab's modules had: it imports, and its runs keep their ids."""

import sys
from importlib import import_module

import pytest

from ablab.code import find
from ablab.config import compose
from ablab.former import FORMER, MERGED, current, former
from ablab.tasks import identity

HALVED = "class Halved(ScaleNorm):\n    def forward(self, x):\n        return super().forward(x) / 2\n"


@pytest.fixture
def moved(monkeypatch):
    """The model lay in the attic once."""
    monkeypatch.setattr("ablab.former.FORMER", {"ablab.attic": "ablab.transformer.model"})
    yield
    for name in [name for name in sys.modules if name.startswith("ablab.attic")]:
        monkeypatch.delitem(sys.modules, name)


def test_a_former_name_leads_to_the_module_itself(moved):
    assert import_module("ablab.attic.norms") is import_module("ablab.transformer.model.norms")
    assert import_module("ablab.attic") is import_module("ablab.transformer.model")
    assert import_module("ablab.transformer.model.norms").__spec__.name == "ablab.transformer.model.norms"


@pytest.mark.parametrize(
    ("dotted", "today"),
    [
        ("ablab.attic", "ablab.transformer.model"),
        ("ablab.attic.norms.ScaleNorm", "ablab.transformer.model.norms.ScaleNorm"),
        ("ablab.attics.norms", "ablab.attics.norms"),
        ("torch.nn", "torch.nn"),
    ],
)
def test_only_what_lies_below_a_former_name_is_renamed(moved, dotted, today):
    assert current(dotted) == today
    assert former(today) == dotted


def test_what_neither_is_nor_was_is_missing(moved):
    with pytest.raises(ModuleNotFoundError, match="cellar"):
        import_module("ablab.attic.cellar")
    with pytest.raises(ModuleNotFoundError, match="cellar"):
        import_module("ablab.cellar")


def test_a_part_of_ours_by_a_former_target_is_ours(study, moved):
    study("", {"norm/again": "_target_: ablab.attic.norms.ScaleNorm\nlearn_g: true\n"})
    ours = identity.recipe(compose(["norm=scalenorm"]).config)
    assert identity.recipe(compose(["norm=again"]).config) == ours


def test_a_part_that_derives_from_ours_has_its_fields_and_one_code_by_either_name(study, moved):
    study(
        f"from ablab.attic.norms import ScaleNorm\n\n{HALVED}",
        {"norm/then": "_target_: parts.Halved\n", "norm/now": "_target_: halved_now.Halved\n"},
        halved_now=f"from ablab.transformer.model.norms import ScaleNorm\n\n{HALVED}",
    )
    then, now = (compose([f"norm={option}", "norm.learn_g=false"]).config.norm for option in ("then", "now"))
    assert (then.learn_g, now.learn_g) == (False, False)
    assert then.code == now.code


def test_a_module_taken_in_is_found_by_each_of_its_names(monkeypatch, moved):
    monkeypatch.setattr("ablab.former.MERGED", {"ablab.transformer.model.scales": "ablab.transformer.model.norms"})
    for name in ("ablab.attic.scales", "ablab.transformer.model.scales"):
        assert import_module(name) is import_module("ablab.transformer.model.norms")
        assert current(f"{name}.ScaleNorm") == "ablab.transformer.model.norms.ScaleNorm"
        assert former(f"{name}.ScaleNorm") == "ablab.attic.scales.ScaleNorm"
        monkeypatch.delitem(sys.modules, name)
    assert former("ablab.transformer.model.norms.ScaleNorm") == "ablab.attic.norms.ScaleNorm"


def test_a_part_that_names_a_module_taken_in_keeps_the_code_it_had_before(study):
    text = "from {} import DropHead\n\n\nclass Mine(DropHead):\n    pass\n"
    today = text.format("ablab.transformer.model.drophead")
    then = study(text.format("ablab.model.drophead"), {}, mine_today=today)
    assert find.find_part(f"{then}.Mine").code == find.find_part("mine_today.Mine").code == "bf4deb8bb4bf"


@pytest.mark.parametrize(
    ("then", "name"),
    [
        ("lines", "read_lines"),
        ("wording", "how_many"),
        ("fonts", "write_picture"),
        ("program", "program"),
    ],
)
def test_what_parts_imported_from_single_modules_is_there(then, name):
    assert callable(getattr(import_module(f"ablab.{then}"), name))


def test_every_former_name_leads_somewhere():
    for name, today in (FORMER | MERGED).items():
        assert import_module(name) is import_module(today)
        assert find.OWN.file_of(name) == find.OWN.file_of(today)
