"""A part that was written for the names that ablab's modules had: it imports, and its runs keep their ids."""

import sys
from importlib import import_module

import pytest

from ablab import identity
from ablab.code import find
from ablab.config import compose
from ablab.former import FORMER, current, former

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


def test_every_former_name_leads_somewhere():
    for name, today in FORMER.items():
        assert import_module(name) is import_module(today)
        assert find.OWN.file_of(name) == find.OWN.file_of(today)
