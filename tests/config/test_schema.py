"""The schema and the YAML files say the same, and every field is placed deliberately."""

import re
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from ablab.code.folders import shipped_conf
from ablab.config import compose
from ablab.config.compose import validate
from ablab.config.groups import TARGET, default_choices, file_of, groups, kinds, option_values
from ablab.config.keys import all_fields
from ablab.config.kinds import class_of
from ablab.config.schema import part_groups
from ablab.errors import UserError
from ablab.fields import Group, Role
from ablab.tasks.registry import task_of_option
from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.data.corpus import Corpus
from ablab.transformer.language_model.schema import Stack
from tests.shipped import shipped

RUNTIME = {
    "outputs",
    "smoke",
    "rerun",
    *("experiment", "retry_failed", "fail_fast", "search_trial", "mixed", "wait"),
    *(f"trainer.{name}" for name in ("accelerator", "devices", "threads", "micro_batches")),
    *(f"trainer.{name}" for name in ("checkpoint_every", "compile", "progress")),
    *(f"logger.{name}" for name in ("kind", "mode", "project", "entity", "name", "tags")),
    *(
        f"logger.{name}"
        for name in (
            "notes",
            "artifacts",
            "samples",
            "offline",
            "group",
            "study",
            "arm",
            "label",
            "experiment",
            "tracking_uri",
        )
    ),
}
EVALUATION = {
    *(f"decoding.{name}" for name in ("beam_size", "length_penalty", "n_best", "max_extra_tokens")),
    *("decoding.engine", "decoding.precision", "decoding.quantization"),
    *(f"pruning.{name}" for name in ("kind", "what", "curves", "depths", "heads", "seed")),
    *(f"pruning.{name}" for name in ("exhaustive", "beam", "budget", "finalists", "together")),
}
OF_CORPUS = {
    "numbers": {Role.EVALUATION: {"test", "test_size"}, Role.RUNTIME: set()},
    "multi30k": {Role.EVALUATION: {"test"}, Role.RUNTIME: {"path", "url"}},
    "text": {Role.EVALUATION: set(), Role.RUNTIME: {"train", "valid", "test", "columns"}},
    "mtdata": {Role.EVALUATION: {"test"}, Role.RUNTIME: {"path"}},
    "documents": {Role.EVALUATION: set(), Role.RUNTIME: {"train", "valid", "test", "separator", "field"}},
    "huggingface": {
        Role.EVALUATION: set(),
        Role.RUNTIME: {"train", "valid", "test", "name", "config", "revision", "field"},
    },
}
"""Everything not named here decides the weights. A new field that does not must be put here on purpose."""

CHOICES = [(group, option) for group, options in groups().items() for option in options]
OF_DOCUMENTS = ("documents", "huggingface")
OVERLAYS = {
    "model": ("optim.", "schedule.", "training.", "position."),
    "task": ("training.",),
    "data": ("training.",),
    "schedule": ("optim.",),
    "norm": ("placement.", "embedding."),
}
"""What a size or a corpus may set beside its own fields."""


def _flat(content, prefix=""):
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _yaml(group, option):
    own = {f"{group}.{name}" for name in option_values(group, option)}
    content = OmegaConf.to_container(OmegaConf.load(file_of(group, option)))
    content.pop("defaults", None)
    return own | set(_flat(content if group in content or not content else {group: content}))


def _words(group, option, tmp_path):
    """What one must type besides, for an option that nobody can guess."""
    if option == "multi30k":
        for split in ("train", "val", "test_2016_flickr"):
            for language in ("en", "de"):
                (tmp_path / f"{split}.{language}").write_text("one\n")
        return [f"data.path={tmp_path}"]
    if (group, option) == ("placement", "deepnorm"):
        return ["init=deepnorm"]
    return {"plateau": ["optim.lr=1e-3"], "data_driven": ["layerdrop=0.2", "layerdrop_rates=learned"]}.get(option, [])


def test_every_field_is_of_exactly_one_kind():
    leaves = {name: role for name, role in all_fields().items() if not name.startswith(("data.", "task."))}
    assert {name for name, role in leaves.items() if role is Role.RUNTIME} == RUNTIME
    assert {name for name, role in leaves.items() if role is Role.EVALUATION} == EVALUATION


@pytest.mark.parametrize("kind", sorted(kinds("data")))
def test_every_field_of_a_corpus_is_of_exactly_one_kind(kind):
    fields = dict(class_of("data", kind).walk())
    for role, names in OF_CORPUS[kind].items():
        unit = "pairs" if issubclass(class_of("data", kind), Corpus) else "documents"
        own = names | {f"test_{unit}" if role is Role.EVALUATION else "hard_vocab_limit"}
        assert {name for name, given in fields.items() if given is role} == own


def test_a_role_in_two_places_would_be_noticed():
    """Two marks on one field would let the first win in silence."""

    def classes(kind):
        yield kind
        for field in kind.model_fields.values():
            if isinstance(field.annotation, type) and issubclass(field.annotation, Group):
                yield from classes(field.annotation)

    options = [class_of(group, kind) for group in part_groups() for kind in kinds(group)]
    for kind in [*classes(TranslationConfig), *options]:
        for name, field in kind.model_fields.items():
            assert sum(isinstance(mark, Role) for mark in field.metadata) <= 1, (kind, name)


@pytest.mark.parametrize(("group", "option"), CHOICES)
def test_every_option_composes_and_validates(group, option, tmp_path):
    if option in OF_DOCUMENTS:
        with pytest.raises(UserError, match=f"data={option}: allowed: a corpus of sentence pairs"):
            compose([f"data={option}"])
        return
    composed = compose([f"{group}={option}", *_words(group, option, tmp_path)])
    assert composed.choices[group] == option
    if hasattr(composed.config, "data") and option not in ("mtdata", "text"):
        task_of_option(composed.config.task).check(composed.config)


@pytest.mark.parametrize(("group", "option"), CHOICES)
def test_a_yaml_file_sets_every_field_of_its_group_and_nothing_else(group, option):
    kind = class_of(group, option_values(group, option).get("kind")) if group in part_groups() else None
    kind = kind or TranslationConfig.model_fields[group].annotation
    keys = _yaml(group, option)
    own = {key for key in keys if key.startswith(f"{group}.") and not key.endswith(TARGET)}
    fields = {f"{group}.{name}" for name, _ in kind.walk()}
    if group == "model":
        fields |= {f"model.{name}" for name, _ in Stack.walk()}
    assert own <= fields
    if group in ("optim", "schedule"):  # a size brings what suits it, and every size does
        own |= fields & set.intersection(*(_yaml("model", size) for size in groups()["model"]))
    assert own >= fields
    keys = {key for key in keys if not key.endswith(TARGET)}
    assert all(key.startswith(OVERLAYS.get(group, ())) for key in keys - own)
    assert keys - own <= set(all_fields())


def test_the_schema_needs_every_key(tmp_path):
    """No default hides in the code: leave any key out, and the error names it. What came later has its former value."""
    config = compose([]).config
    values = config.model_dump(serialize_as_any=True)
    leaves = list(_flat(values))
    assert set(leaves) >= {name for name, _ in TranslationConfig.walk() if not name.startswith("data.")}
    for leaf in leaves:
        *path, last = leaf.split(".")
        broken = {key: dict(value) if isinstance(value, dict) else value for key, value in values.items()}
        inner = broken
        for part in path:
            inner = inner[part]
        del inner[last]
        group = getattr(config, path[0]) if path else config
        if (formerly := type(group).marks()[last].formerly) is not None:
            assert getattr(getattr(validate(broken), path[0]), last) == formerly.value
            continue
        with pytest.raises(UserError, match=rf"^{re.escape(leaf)}\b"):
            validate(broken)


def test_every_group_has_a_default_that_exists():
    assert set(default_choices()) == set(groups())
    assert all(option in groups()[group] for group, option in default_choices().items())


def test_every_kind_of_ours_that_is_built_names_its_part_once():
    """The YAML files are the registry: a kind without a part could be chosen and not built."""
    for group in (
        "norm",
        "placement",
        "embedding",
        "feed_forward",
        "init",
        "position",
        "drophead",
        "schedule",
        "optim",
        "data",
    ):
        assert shipped(group).keys() == kinds(group), group
        targets = [path for path in (shipped_conf() / group).glob("*.yaml") if f"{TARGET}:" in path.read_text()]
        assert len(targets) == len(kinds(group)), group


def test_the_rates_of_the_schema_are_those_of_the_registry():
    from typing import get_args

    from ablab.transformer.model.layerdrop import RATES

    assert set(get_args(TranslationConfig.model_fields["layerdrop_rates"].annotation)) == set(RATES)


def test_no_file_asks_the_clock_or_a_die():
    """An interpolation names another key; a resolver such as now: would give each call another run."""
    for path in shipped_conf().rglob("*.yaml"):
        for found in re.findall(r"\$\{([^}]*)\}", path.read_text()):
            assert re.fullmatch(r"(oc\.select:)?[a-z_.]+(,\d+)?", found), f"{path}: {found}"


def test_composing_twice_gives_the_same():
    one, other = compose(["norm=scalenorm"]), compose(["norm=scalenorm"])
    assert one == other


def test_smoke_only_makes_smaller_and_has_a_store_of_its_own():
    plain, smoke = compose(["outputs=x"]).config, compose(["outputs=x", "smoke=true"]).config
    assert smoke.outputs == str(Path("x") / "smoke")
    assert smoke.training.max_steps < plain.training.max_steps
    assert plain.data.hard_vocab_limit
    assert not smoke.data.hard_vocab_limit
    assert compose(["smoke=true", "training.max_steps=2"]).config.training.max_steps == 2
    assert smoke.model == plain.model
    assert smoke.norm == plain.norm
