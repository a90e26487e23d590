"""A run is its recipe: what decides the weights names it, and nothing else does."""

import gzip
import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from ablab.config import compose
from ablab.config.groups import default_choices
from ablab.config.keys import all_fields
from ablab.fields import Role, flatten
from ablab.tasks import identity
from ablab.tasks.identity import differing
from ablab.transformer.data.numbers import Numbers
from tests.variants import variants

ROOT = Path(__file__).parents[1]

CHANGES = {
    # recipe field -> a change of it, after words that give it an effect where the default arm has none
    "seed": "seed=2",
    "layerdrop": "layerdrop=0.1",
    "layerdrop_encoder": "layerdrop_encoder=0.1",
    "layerdrop_decoder": "layerdrop_decoder=0.1",
    "layerdrop_rates": "layerdrop=0.2 | layerdrop_rates=linear",
    "data.kind": None,  # a corpus of its own, with digests of its own
    "init_from": None,  # known by what lies there: see test_a_run_is_named_by_the_weights_that_it_starts_from
    "data.src": "data.src=fr",
    "data.tgt": "data.tgt=fr",
    "data.vocab_size": "data.vocab_size=999",
    "data.joint_vocab": "model.tie=none | data.joint_vocab=false",
    "data.max_tokens": "data.max_tokens=99",
    "data.side": "data.side=src",
    "data.tokenizer": "data.tokenizer=char",
    "data.lowercase": "data.lowercase=true",
    "data.normalization": "data.normalization=identity",
    "data.overlap": "data.overlap=drop",
    "data.bleu_tokenizer": "data.bleu_tokenizer=intl",
    "data.train_pairs": "data.train_pairs=99",
    "data.valid_pairs": "data.valid_pairs=99",
    "data.train_size": "data.train_size=99",
    "data.valid_size": "data.valid_size=99",
    "data.corpus_seed": "data.corpus_seed=2",
    "model.d_model": "model.d_model=64",
    "model.d_ff": "model.d_ff=64",
    "model.num_heads": "model.num_heads=2",
    "model.encoder_layers": "model.encoder_layers=2",
    "model.decoder_layers": "model.decoder_layers=2",
    "model.dropout": "model.dropout=0.2",
    "model.embedding_dropout": "model.embedding_dropout=0.2",
    "model.attention_dropout": "model.attention_dropout=0.2",
    "model.activation_dropout": "model.activation_dropout=0.2",
    "model.word_dropout": "model.word_dropout=0.2",
    "model.attention_bias": "model.attention_bias=none",
    "model.output_bias": "model.output_bias=true",
    "model.tie": "model.tie=none",
    "placement.kind": "placement=post",
    "norm.kind": "norm=rmsnorm",
    "norm.learn_g": "norm=scalenorm | norm.learn_g=false",
    "norm.alpha": "norm=dyt | norm.alpha=0.8",
    "embedding.kind": "embedding=fixnorm",
    "embedding.initial": "embedding=fixnorm | embedding.initial=normal",
    "attention_norm.kind": "attention_norm=qk",
    "attention_norm.length": "attention_norm=qk | attention_norm.length=30",
    "feed_forward.kind": "feed_forward=swiglu",
    "init.kind": "init=xavier",
    "position.kind": "position=learned",
    "position.base": "position=rope | position.base=500.0",
    "position.max_length": "position=learned | position.max_length=99",
    "drophead.kind": "drophead=rising",
    "drophead.p": "drophead=vshape | drophead.p=0.2",
    "drophead.sites": "drophead=vshape | drophead.sites=[encoder]",
    "drophead.warmup_steps": "drophead=vshape | drophead.warmup_steps=99",
    "drophead.total_steps": "drophead=rising | drophead.total_steps=1100",
    "optim.kind": "optim=adamw",
    "optim.weight_decay": "optim=adamw | optim.weight_decay=0.1",
    "optim.momentum": "optim=muon | optim.momentum=0.9",
    "schedule.decay_share": "schedule=wsd | schedule.decay_share=0.5",
    "schedule.kind": "optim.lr=1e-3 | schedule=plateau",
    "optim.lr": "optim.lr=1e-3",
    "schedule.warmup_steps": "optim.lr=1e-3 | schedule.warmup_steps=99",
    "schedule.decay": "optim=plateau optim.lr=1e-3 | optim.decay=0.5",
    "schedule.decay_patience": "optim=plateau optim.lr=1e-3 | optim.decay_patience=9",
    "schedule.decay_monitor": "optim=plateau optim.lr=1e-3 | schedule.decay_monitor=bleu",
    "schedule.min_lr": "optim=plateau optim.lr=1e-3 | optim.min_lr=1e-5",
    "optim.beta1": "optim.beta1=0.8",
    "optim.beta2": "optim.beta2=0.99",
    "optim.eps": "optim.eps=1e-8",
    "optim.clip": "optim.clip=null",
    "optim.batch_tokens": "optim.batch_tokens=999",
    "training.max_steps": "training.max_steps=99",
    "training.max_epochs": "training.max_epochs=9",
    "training.max_minutes": "training.max_minutes=9",
    "training.patience": "training.patience=9",
    "training.valid_every": "training.valid_every=9",
    "training.monitor": "training.monitor=loss",
    "training.select": "training.select=last",
    "training.average_last": "training.select=averaged | training.average_last=2",
    "training.average_every": "training.select=averaged_last | training.average_every=9",
    "training.max_extra_tokens": "training.max_extra_tokens=90",
    "training.precision": "training.precision=bf16",
    "training.label_smoothing": "training.label_smoothing=0.2",
}

INDIFFERENT = [
    "outputs=elsewhere",
    "rerun=true",
    "rerun=stale",
    "retry_failed=true",
    "fail_fast=true",
    "wait=true",
    "search_trial=outputs/studies/x:3",
    "mixed=true",
    "trainer.threads=1",
    "trainer.checkpoint_every=1",
    "trainer.micro_batches=2",
    "trainer.compile=true",
    "trainer.progress=false",
    "trainer=gpu",
    "trainer=ddp trainer.devices=3",
    "logger=none",
    "logger=mlflow logger.experiment=x logger.tracking_uri=file:x",
    "logger.mode=online",
    "logger.project=x",
    "logger.entity=x",
    "logger.group=x",
    "logger.arm=x",
    "logger.label=x",
    "logger.study=x",
    "logger.name=x",
    "logger.tags=[x,y]",
    "logger.notes=x",
    "logger.artifacts=all",
    "logger.samples=0",
    "logger.offline=wandb",
    "pruning=search",
    "pruning.curves=[encoder]",
    "pruning.depths=[1]",
    "pruning=random pruning.seed=2",
    "pruning=importance",
    "pruning=random pruning.what=heads",
    "pruning=random pruning.what=heads pruning.heads=[20]",
    "pruning=search pruning.exhaustive=9",
    "pruning=search pruning.beam=9",
    "pruning=search pruning.budget=9",
    "pruning=search pruning.finalists=9",
    "pruning=greedy pruning.together=true",
    "decoding=greedy",
    "decoding.beam_size=9",
    "decoding.n_best=2",
    "decoding.length_penalty=1.0",
    "decoding.max_extra_tokens=9",
    "decoding.engine=ctranslate2",
    "decoding.engine=ctranslate2 decoding.quantization=int8",
    "decoding.precision=bf16",
    "data.hard_vocab_limit=false",
    "data.test_pairs=9",
    "data.test_size=99",
]

WITHOUT_EFFECT = {
    "the usual limit of validation": ("", "training.max_extra_tokens=50"),
    "drophead p=0": ("", "drophead=vshape drophead.p=0"),
    "drophead nowhere": ("", "drophead=rising drophead.sites=[]"),
    "drophead of one head": ("model.num_heads=1", "model.num_heads=1 drophead=vshape"),
    "rates that rise over one layer": (
        "layerdrop=0.2 model.encoder_layers=1 model.decoder_layers=1",
        "layerdrop=0.2 model.encoder_layers=1 model.decoder_layers=1 layerdrop_rates=linear",
    ),
    "drophead's order of sites": (
        "drophead=vshape drophead.sites=[encoder,cross]",
        "drophead=vshape drophead.sites=[cross,encoder,cross]",
    ),
    "the default snapshots": (
        "training.select=averaged_last training.valid_every=9",
        "training.select=averaged_last training.valid_every=9 training.average_every=9",
    ),
    "the default rate": ("optim.lr=null", f"optim.lr={(128 * 400) ** -0.5!r}"),
    "layerdrop by its parts": ("layerdrop=0.2", "layerdrop_encoder=0.2 layerdrop_decoder=0.2"),
    "norms by their parts": ("norm=scalenorm_fixnorm", "norm=scalenorm embedding=fixnorm"),
    "PostNorm by its placement": ("norm=post", "placement=post"),
    "former words": ("schedule=plateau schedule.decay=0.5", "optim=plateau optim.decay=0.5"),
    "a former key of a group": ("schedule=cosine placement=post", "optim.schedule=cosine norm.placement=post"),
    "the default options": ("", "norm=pre data=numbers layerdrop=0.0"),
    "integers for numbers": ("layerdrop=0.0", "layerdrop=0"),
}


def _recipe(typed: str):
    return identity.recipe(compose(typed.split()).config)


def _id(typed: str) -> str:
    return identity.run_id(_recipe(typed))


def _name(typed: str) -> str:
    return identity.display_name(compose(typed.split()), default_choices())


def _shuffled(content):
    if not isinstance(content, dict):
        return content
    keys = list(content)
    random.Random(3).shuffle(keys)
    return {key: _shuffled(content[key]) for key in keys}


@pytest.mark.parametrize(
    ("theirs", "ours", "found"),
    [
        ([], ["norm=scalenorm", "seed=2"], {"norm.kind": "scalenorm", "norm.learn_g": True}),
        (["norm=scalenorm"], ["norm=rmsnorm"], {"norm.kind": "rmsnorm"}),
        (["norm=scalenorm"], ["norm=scalenorm", "norm.learn_g=false"], {"norm.learn_g": False}),
        (["model.output_bias=true"], [], {"model.output_bias": None}),
    ],
)
def test_recipes_differ_in_what_both_have_or_the_second_adds(theirs, ours, found):
    recipes = (flatten(identity.recipe(compose(words).config)) for words in (theirs, ours))
    assert identity.differing(*recipes) == found


def test_every_recipe_field_has_a_change_to_try():
    numbers = {f"data.{name}" for name, _ in Numbers.walk()}
    fields = {name for name, role in all_fields().items() if role is Role.RECIPE}
    fields -= {"loss.kind"}  # tests/training/test_own_losses.py: there is one of ours
    fields -= {"model.context"}  # tests/language_model/test_task.py: a translation has none
    fields = {name for name in fields if not name.startswith("task.")}  # tests/tasks/test_command.py
    assert set(CHANGES) == {name for name in fields if name in numbers or not name.startswith("data.")}


@pytest.mark.parametrize("field", [field for field, change in CHANGES.items() if change])
def test_a_recipe_field_names_another_run(field):
    context, _, change = CHANGES[field].rpartition("|")
    assert _id(f"{context} {change}") != _id(context)


def test_no_two_changes_give_one_name():
    ids = [_id(change.replace("|", " ")) for change in CHANGES.values() if change]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("word", INDIFFERENT)
def test_where_and_how_it_is_judged_name_nothing(word):
    assert _id(word) == _id("")
    assert _name(word) == _name("")


def test_every_field_that_names_nothing_was_tried():
    tried = {word.partition("=")[0] for line in INDIFFERENT for word in line.split()}
    numbers = {f"data.{name}" for name, _ in Numbers.walk()}
    fields = {name for name, role in all_fields().items() if role is not Role.RECIPE}
    fields = {name for name in fields if name in numbers or not name.startswith(("data.", "task."))}
    untried = {
        "smoke",
        "experiment",
        "trainer.accelerator",
        "trainer.devices",
        "logger.kind",
        "pruning.kind",
        "data.test",
    }  # by group, or of one value
    assert fields <= tried | untried


ZEROS = ["layerdrop", "layerdrop_encoder", "training.label_smoothing", "schedule.min_lr", "optim.weight_decay"]
ZEROS += [f"model.{which}dropout" for which in ("", "embedding_", "attention_", "activation_", "word_")]
OPTIONS_OF_ZEROS = {"schedule.min_lr": "schedule=plateau", "optim.weight_decay": "optim=adamw"}


@pytest.mark.parametrize("key", ZEROS)
def test_zero_has_no_sign(key):
    option = OPTIONS_OF_ZEROS.get(key, "")
    assert _id(f"{option} {key}=-0.0") == _id(f"{option} {key}=0.0") == _id(f"{option} {key}=0")
    assert "-0.0" not in _name(f"{option} {key}=-0.0")


def test_zero_has_no_sign_in_an_evaluation():
    one, other = (compose([f"decoding.length_penalty={zero}"]).config for zero in ("-0.0", "0"))
    assert identity.evaluation(one) == identity.evaluation(other)
    assert str(one.decoding.length_penalty) == "0.0"


@pytest.mark.parametrize("case", WITHOUT_EFFECT)
def test_a_setting_without_effect_names_nothing(case):
    one, other = WITHOUT_EFFECT[case]
    assert _recipe(one) == _recipe(other)
    assert _id(one) == _id(other)


def test_a_run_is_named_by_the_weights_that_it_starts_from():
    config = compose([]).config
    contents = [identity.recipe(config, origin) for origin in (None, "aa", "ab")]
    assert len({identity.run_id(content) for content in contents}) == 3
    assert "init_from" not in contents[0]


CURVES = {
    "other layers": ("", "pruning=first", True),
    "other depths": ("", "pruning.depths=[1]", True),
    "another search for layers": ("pruning=search", "pruning.beam=9", True),
    "another search, of both stacks at once": ("pruning=search", "pruning.together=true", True),
    "a greedy one, of both stacks at once": ("pruning=greedy", "pruning.together=true", True),
    "another draw": ("pruning=random", "pruning.seed=2", True),
    "another search for translations": ("", "decoding=greedy", True),
    "another model": ("", "norm=post", False),
}


@pytest.mark.parametrize("case", CURVES)
def test_a_curve_is_named_by_how_layers_are_chosen_and_judged(case):
    context, change, names = CURVES[case]
    ids = [
        identity.curve_id(identity.curve(compose(typed.split()).config)) for typed in (context, f"{context} {change}")
    ]
    assert (ids[0] != ids[1]) == names


@pytest.mark.parametrize(
    ("of", "letter"),
    [
        (identity.run_id, "r"),
        (identity.condition_id, "c"),
        (identity.evaluation_id, "e"),
        (identity.curve_id, "p"),
    ],
)
def test_an_id_is_a_letter_and_the_first_digits_of_a_digest(of, letter):
    """A shorter one would be another in every store that there is."""
    digest = hashlib.sha256(b'{"a": 1}').hexdigest()
    assert of({"a": 1}) == letter + digest[:11]


def test_the_condition_is_the_run_without_its_seed():
    assert identity.condition_id(_recipe("seed=1")) == identity.condition_id(_recipe("seed=2"))
    assert _id("seed=1") != _id("seed=2")
    assert identity.condition_id(_recipe("norm=post")) != identity.condition_id(_recipe(""))


def test_the_order_of_keys_names_nothing():
    content = _recipe("layerdrop=0.2 drophead=vshape")
    shuffled = _shuffled(content)
    assert list(shuffled) != list(content)
    assert identity.run_id(shuffled) == identity.run_id(content)
    assert identity.condition_id(shuffled) == identity.condition_id(content)


def test_a_recipe_is_plain_values():
    content = _recipe("norm=scalenorm")
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_an_evaluation_is_named_by_search_and_text_alone():
    def evaluation(typed):
        return identity.evaluation_id(identity.evaluation(compose(typed.split()).config))

    for word in ("decoding=greedy", "decoding.length_penalty=1.0", "data.test_pairs=9", "data.test_size=99"):
        assert evaluation(word) != evaluation("")
    for word in ("norm=post", "seed=2", "outputs=elsewhere", "trainer.threads=1", "layerdrop=0.2"):
        assert evaluation(word) == evaluation("")


def test_a_path_is_no_part_of_a_name(tmp_path):
    words = _files(tmp_path, str)
    assert _name(" ".join(words)) == "data=text,s1"


def _files(folder: Path, pack) -> list[str]:
    folder.mkdir(exist_ok=True)
    for split in ("train", "valid", "test"):
        for lang in ("en", "de"):
            text = f"{split} {lang}\n".encode()
            if pack is gzip.compress:
                (folder / f"{split}.{lang}.gz").write_bytes(gzip.compress(text))
            else:
                (folder / f"{split}.{lang}").write_bytes(text)
    return ["data=text", *(f"data.{split}={folder}/{split}" for split in ("train", "valid", "test"))]


def test_the_same_text_is_the_same_run_however_it_is_packed_and_wherever_it_lies(tmp_path):
    plain, packed = _files(tmp_path / "a", str), _files(tmp_path / "b", gzip.compress)
    assert _id(" ".join(plain)) == _id(" ".join(packed))
    (tmp_path / "b" / "train.en.gz").write_bytes(gzip.compress(b"other text\n"))
    assert _id(" ".join(plain)) != _id(" ".join(packed))


def test_the_same_text_is_the_same_run_however_its_lines_end(tmp_path):
    forms, names = variants(["one", "two \x85 halves", "three"]), set()
    for form, content in forms.items():
        ending = ".gz" if form.endswith(".gz") else ""
        for file in (f"{split}.{lang}{ending}" for split in ("train", "valid", "test") for lang in ("en", "de")):
            (tmp_path / form).mkdir(exist_ok=True)
            (tmp_path / form / file).write_bytes(gzip.compress(content) if ending else content)
        words = ["data=text", *(f"data.{split}={tmp_path}/{form}/{split}" for split in ("train", "valid", "test"))]
        names.add((_id(" ".join(words)), identity.evaluation_id(identity.evaluation(compose(words).config))))
    assert len(forms) == 8
    assert len(names) == 1


def test_the_test_text_names_the_evaluation_and_not_the_run(tmp_path):
    words = " ".join(_files(tmp_path, str))
    before = _id(words), identity.evaluation(compose(words.split()).config)
    (tmp_path / "test.de").write_text("another reference\n")
    after = _id(words), identity.evaluation(compose(words.split()).config)
    assert before[0] == after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_every_process_gives_the_same_name(hash_seed):
    typed = "norm=scalenorm drophead=vshape drophead.sites=[cross,encoder]"
    program = (
        "import sys; from ablab import identity; from ablab.config import compose\n"
        "print(identity.run_id(identity.recipe(compose(sys.argv[1:]).config)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *typed.split()],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": hash_seed},
        check=True,
    )
    assert done.stdout.strip() == _id(typed)


@pytest.mark.parametrize(
    ("words", "valid", "test"),
    [
        ("", 50, 50),
        ("data.tokenizer=char", 256, 256),
        ("data.tokenizer=char data.max_tokens=40", 50, 50),
        ("data.tokenizer=char decoding.max_extra_tokens=90", 256, 90),
        ("training.max_extra_tokens=7", 7, 50),
    ],
)
def test_the_length_limit_fits_the_tokenizer(words, valid, test):
    """And stands in the identity where it is not what it always was."""
    config = compose(words.split()).config
    assert (config.valid_extra_tokens, config.test_extra_tokens) == (valid, test)
    assert identity.recipe(config)["training"].get("max_extra_tokens", 50) == valid
    assert identity.evaluation(config)["decoding"]["max_extra_tokens"] == test


def test_a_number_of_another_type_is_another_value():
    """A program may read 1, 1.0 and true in three ways."""
    for one, other in ((1, 1.0), (1, True), (1.0, True)):
        assert differing({"task.values.x": one}, {"task.values.x": other}) == {"task.values.x": other}
    assert differing({"task.values.x": 1}, {"task.values.x": 1}) == {}
