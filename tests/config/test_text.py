"""Text stays the text that was typed, whichever field it is for and whichever way it takes to the configuration."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from ablab.config import compose
from ablab.config.grammar import literal, quoted, spelled
from ablab.config.groups import file_of, groups, is_shipped
from ablab.config.keys import text_fields
from ablab.config.overrides import parse
from ablab.config.plain_yaml import read_yaml
from ablab.errors import UserError
from ablab.fields import TextShape, as_typed, text_type
from ablab.study.design import arms_of
from ablab.study.experiment import read
from ablab.study.study import Cell, Study

NASTY = ["1.10", "1e3", "true", "null", "no", "0x10", "1_000", "~", "a=b", "[a]", "'q'", '"', "ä", " lead"]
NASTY += ["2024-01-01", "12:30", "a,b", "a\\", "\\'", "{a: b}", "-0", "", "#1", "$\\lambda$", "a  b", "range(1,3)"]
NASTY += ["line\nline"]
"""Text that some grammar on the way takes for something else."""

INTERPOLATIONS = ["${x}", "${seed}", "${", "$${x}", "\\${x}", "${\\cal L}_{0.2}", "${oc.env:HOME}", "${model.d_ff}"]

TEXTS = st.sampled_from([*NASTY, *INTERPOLATIONS]) | st.text("ab1.\\'\"${}[](),= :~_äé|%#?*\n", max_size=12)


def value_of(word):
    return parse([word])[0].value()


@pytest.mark.parametrize("text", ["1.10", "1_0", "1e3", "true", "False", "no", "0x10", "12:30", "2024-01-01", "-0"])
@pytest.mark.parametrize("key", ["experiment", "data.tgt", "data", "outputs", "logger.name"])
def test_a_field_of_text_takes_what_was_typed(key, text):
    assert value_of(f"{key}={text}") == value_of(f"{key}='{text}'") == text


def test_elements_of_a_list_and_values_of_a_sweep_are_what_was_typed():
    assert value_of("data.test=[1.10,true,null,'null']") == ["1.10", "true", None, "null"]
    assert list(parse(["data.tgt=1.10,1.1"])[0].sweep_string_iterator()) == ["1.10", "1.1"]


def test_other_fields_are_read_as_values():
    assert value_of("layerdrop=1e-1") == 0.1
    assert value_of("logger.name=null") is None
    assert value_of("rerun=true") is True


@given(TEXTS)
@settings(deadline=None)
def test_a_spelling_means_the_text(text):
    assert value_of(f"logger.name={spelled('logger.name', text)}") == text
    assert value_of(f"data.test={spelled('data.test', [text, 'b'])}") == [text, "b"]
    assert value_of(f"logger.name={quoted(text)}") == text


@given(TEXTS)
@settings(deadline=None)
def test_a_literal_has_no_interpolation(text):
    config = OmegaConf.create({"name": value_of(f"logger.name={literal(text)}"), "seed": 1})
    assert config.name == text


@pytest.mark.parametrize("text", NASTY)
def test_a_level_or_word_of_a_file_is_the_text_in_the_configuration(tmp_path, text):
    path = tmp_path / "x.yaml"
    content = {"question": "?", "seeds": [1], "factors": {"logger.notes": [text, "b"], "logger.tags": [["b", "c"]]}}
    path.write_text(yaml.safe_dump(content, allow_unicode=True))
    arm = next(iter(arms_of(read(path))[0])) if text.isprintable() and text else None
    words = arm.words if arm else (f"logger.notes={spelled('logger.notes', text)}",)
    assert compose(words).config.logger.notes == text


@pytest.mark.parametrize("text", ["1.10", "1e3", "true", "no", "0x10", "2024-01-01", "12:30", "-0"])
def test_text_of_an_experiment_needs_no_quotes(tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_text(
        f"question: {text}\nseeds: [1]\nfactors: {{logger.notes: [{text}, b], logger.tags: [[{text}]]}}\n"
        f"baseline: {{logger.notes: {text}}}\nclaims: [{{arm: {text}, expect: less}}]\n"
    )
    found = read(path)
    assert found.question == found.claims[0].arm == found.baseline["logger.notes"] == text
    assert found.factors == {"logger.notes": [text, "b"], "logger.tags": [[text]]}


@pytest.mark.parametrize("name", [text for text in [*NASTY, *INTERPOLATIONS] if text.strip() and text.isprintable()])
def test_names_of_study_and_arm_arrive_in_the_run(name, tmp_path):
    planned = _planned()
    cell = Cell(name, 1, ("seed=1",), planned)
    study = Study(name, [], "other", [1], [cell])
    logger = compose(study.words_of(cell)).config.logger
    assert (logger.study, logger.arm, logger.name) == (name, name, f"{name}, seed 1")


def _planned():
    from ablab.tasks.plan import plan

    return plan(compose([]))


def test_an_option_file_of_ones_own_is_read_by_yaml_1_2(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf" / "data").mkdir(parents=True)
    for name, language in (("1.10", "no"), ("unclear", "1.10")):
        (tmp_path / "conf" / "data" / f"{name}.yaml").write_text(f"defaults: [numbers]\ntgt: {language}\n")
    assert compose(["data=1.10"]).config.data.tgt == "no"
    with pytest.raises(UserError, match=r"^data\.tgt=1\.1: allowed: text, which in YAML needs quotes here$"):
        compose(["data=unclear"])


def test_both_versions_of_yaml_read_the_shipped_options_alike():
    for group, options in groups().items():
        for file in (file_of(group, option) for option in options if is_shipped(group, option)):
            assert read_yaml(file.read_text()) == OmegaConf.to_container(OmegaConf.load(file))


def test_display_names_are_readable_and_lists_of_text_clear():
    assert as_typed(["dä/test", "a b"]) == "[dä/test,a b]"
    assert as_typed(["a,b"]) != as_typed(["a", "b"])
    assert as_typed([1, 0.5, None, True]) == "[1,0.5,null,true]"


def test_the_kind_of_text_follows_from_the_type():
    assert text_type(str | None) is TextShape.ONE
    assert text_type(list[str]) is TextShape.LIST
    assert text_type(str | list[str]) is TextShape.ONE_OR_MORE
    assert [text_type(kind) for kind in (int, float | str, bool, list[int], type(None))] == [None] * 5
    assert {"data.tgt", "experiment", "outputs", "logger.arm", "drophead.sites"} <= set(text_fields())
    assert not {"layerdrop", "seed", "rerun", "optim.lr", "pruning.depths"} & set(text_fields())
