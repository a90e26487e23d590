"""Nothing that is typed is ignored: what changes nothing is refused, with what would give it an effect."""

import pytest

from ablab.commands.cli import main
from ablab.config import compose, compose_arm
from ablab.config.groups import groups, option_values
from ablab.config.keys import fields_of_options, readers
from ablab.config.kinds import class_of
from ablab.config.schema import part_groups
from ablab.errors import UserError
from ablab.fields import Role
from ablab.tasks import identity

IDLE = {
    # words typed -> the word that has no effect, and what the line must say of it
    "drophead.p=0.3": ("drophead.p=0.3", "drophead=none; allowed with drophead=constant, falling, rising, vshape"),
    "drophead=constant drophead.total_steps=99": ("drophead.total_steps=99", "drophead=falling, rising, vshape"),
    "drophead=rising drophead.warmup_steps=9": ("drophead.warmup_steps=9", "drophead=vshape"),
    "optim.decay=0.5": ("optim.decay=0.5", "schedule=noam; allowed with schedule=plateau"),
    "optim.min_lr=1e-6": ("optim.min_lr=1e-6", "allowed with schedule=cosine, plateau"),
    "optim=plateau optim.warmup_steps=9": ("optim.warmup_steps=9", "allowed with schedule=cosine, noam"),
    "norm.learn_g=false": ("norm.learn_g=false", "norm=pre; allowed with norm=scalenorm, scalenorm_fixnorm"),
    "position.max_length=9": ("position.max_length=9", "allowed with position=learned"),
    "layerdrop_rates=linear": (
        "layerdrop_rates=linear",
        "layerdrop_encoder=0.0 and layerdrop_decoder=0.0; allowed with layerdrop above 0",
    ),
    "layerdrop=0.1 layerdrop_encoder=0.2 layerdrop_decoder=0.3": ("layerdrop=0.1", "beside layerdrop_encoder"),
    "training.select=best training.average_last=2": ("training.average_last=2", "training.select=averaged"),
    "training.select=last training.monitor=loss": ("training.monitor=loss", "training.patience"),
    "decoding=greedy decoding.length_penalty=1.0": (
        "decoding.length_penalty=1.0",
        "beam_size=1; allowed with decoding.beam_size above 1",
    ),
    "pruning.beam=9": ("pruning.beam=9", "pruning=every_other; allowed with pruning=search"),
    "pruning=none pruning.curves=[both]": ("pruning.curves=[both]", "pruning=none"),
    "pruning=greedy pruning.curves=[decoder] pruning.together=true": ("pruning.together=true", "both in"),
    "pruning=random pruning.heads=[9]": ("pruning.heads=[9]", "pruning.what=layers; allowed with pruning.what=heads"),
    "pruning=random pruning.what=heads pruning.depths=[2]": ("pruning.depths=[2]", "allowed with pruning.what=layers"),
    "pruning=greedy pruning.budget=9": ("pruning.budget=9", "allowed with pruning.what=heads"),
    "pruning=search pruning.what=heads pruning.together=true": ("pruning.together=true", "pruning.what=layers and"),
    "pruning=every_other pruning.what=heads": ("pruning.what=heads", "with pruning=greedy, importance, random, search"),
    "logger=none logger.mode=online": ("logger.mode=online", "allowed with logger=wandb"),
    "data.path=x": ("data.path=x", "data=numbers; allowed with data=mtdata, multi30k"),
}

LEGAL = [
    "drophead=constant drophead.p=0",
    "drophead=constant drophead.sites=[] drophead.p=0.3",
    "layerdrop=0",
    "layerdrop=0.2 layerdrop_encoder=0",
    "layerdrop=0.2 layerdrop_rates=linear",
    "training.select=last training.patience=3 training.monitor=loss",
    "training.select=averaged training.average_last=2",
]


@pytest.mark.parametrize("typed", IDLE)
def test_a_single_run_refuses_what_has_no_effect(typed):
    word, said = IDLE[typed]
    with pytest.raises(UserError) as refused:
        compose(typed.split())
    assert str(refused.value).startswith(f"{word} has no effect")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("typed", IDLE)
def test_without_it_the_run_is_the_same(typed):
    """What is called idle is idle: one arm of many is composed as if the word were not there."""
    word, _ = IDLE[typed]
    words = typed.split()
    lenient = compose_arm(words)
    assert list(lenient.unread) == [word]
    plain = compose([other for other in words if other != word])
    assert identity.recipe(lenient.config) == identity.recipe(plain.config)
    assert identity.evaluation(lenient.config) == identity.evaluation(plain.config)
    assert identity.curve(lenient.config) == identity.curve(plain.config)


@pytest.mark.parametrize("typed", LEGAL)
def test_a_value_under_which_a_part_does_nothing_stays_legal(typed):
    assert not compose(typed.split()).unread


@pytest.mark.parametrize("typed", LEGAL[:3])
def test_and_stays_the_plain_run(typed):
    assert identity.recipe(compose(typed.split()).config) == identity.recipe(compose([]).config)


@pytest.mark.parametrize("group", part_groups())
def test_an_option_has_no_field_of_another(group):
    """The recipe and the YAML hold what the kind reads, and nothing else."""
    for name in groups()[group]:
        kind = option_values(group, name)["kind"]
        own = set(class_of(group, kind).model_fields)
        assert set(option_values(group, name)) <= own
        for key, role in fields_of_options().items():
            if key.startswith(f"{group}.") and role is Role.RECIPE:
                assert (name in readers(key)) == (key.partition(".")[2] in own)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("data.train_pairs=30000", "data.train_pairs=30000: the corpus has 20,000"),
        pytest.param(*("data.vocab_size=60000", "data.vocab_size=60000: the text gives"), marks=pytest.mark.slow),
    ],
)
def test_smoke_refuses_what_the_real_run_would_refuse(typed, said, tmp_path, capsys):
    assert main(["train", "smoke=true", typed, f"outputs={tmp_path}"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")
