"""`ablab check`: every part that ablab ships keeps the laws of its kind, and a part that breaks one is found."""

import pytest

from ablab.commands.cli import main
from ablab.config import compose
from ablab.config.groups import groups
from ablab.transformer.stages.schedules import schedules
from ablab.transformer.translation.contracts import of_corpora, of_model, of_pruning, of_training
from ablab.transformer.translation.contracts.laws import BrokenError
from ablab.transformer.translation.verbs.check import _broken
from tests.parts.conftest import DYT, study

__all__ = ["study"]

GROUPS = ("norm", "placement", "embedding", "attention_norm", "feed_forward", "position", "init")
OFTEN = ("norm=scalenorm", "placement=sandwich", "attention_norm=qk", "feed_forward=swiglu", "position=rope")
"""Checked in every run of the tests; the others among the slow ones. tests/model has laws of its own."""

NEEDS = {"placement=deepnorm": "init=deepnorm"}
SIZE = (
    *("model.d_model=16", "model.d_ff=24", "model.num_heads=4", "model.encoder_layers=2", "model.decoder_layers=3"),
)


@pytest.mark.parametrize("law", of_model.LAWS, ids=lambda law: law.sentence)
@pytest.mark.parametrize(
    "word",
    [
        word if word in OFTEN else pytest.param(word, marks=pytest.mark.slow)
        for word in (f"{group}={option}" for group in GROUPS for option in groups()[group])
    ],
)
def test_every_part_of_ours_keeps_the_law(word, law):
    law.check(compose([word, *([NEEDS[word]] if word in NEEDS else []), *SIZE]).config)


@pytest.mark.parametrize(
    "words",
    [
        "norm=scalenorm layerdrop=0.2 drophead=vshape",
        pytest.param("schedule=cosine optim.lr=0.01 drophead=rising", marks=pytest.mark.slow),
        pytest.param("optim=plateau drophead=falling", marks=pytest.mark.slow),
        pytest.param("data=numbers", marks=pytest.mark.slow),
        pytest.param("pruning=search", marks=pytest.mark.slow),
        *(
            pytest.param(f"pruning={option}", marks=pytest.mark.slow)
            for option in groups()["pruning"]
            if option not in ("none", "data_driven", "search")
        ),
    ],
)
def test_the_command_says_that_every_law_holds(words, capsys):
    assert main(["check", *words.split()]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"{words}: every check passed"
    assert len(said) >= 3
    assert all(line.startswith("holds ") for line in said[:-1])


HEAD = "import torch\nfrom torch import nn\n\nclass Part(nn.Module):\n    def __init__(self, d_model: int):\n"
BROKEN = {
    "looks at the future": ("super().__init__()", "x - x.mean(dim=1, keepdim=True)", "the future changes nothing"),
    "looks at padding": ("super().__init__()", "x + 0.1 * x[:, -1:]", "padding changes nothing"),
    "draws in evaluation": ("super().__init__()", "x + 0.1 * torch.rand_like(x)", "evaluation draws nothing"),
    "draws at rate 0": (
        "super().__init__()",
        "x + 0.1 * torch.rand_like(x) * self.training",
        "training at rate 0 equals evaluation, bit for bit",
    ),
    "draws from the system": (
        "super().__init__()",
        "x + 0.1 * torch.rand(1, generator=torch.Generator().manual_seed(torch.seed() % 2**60)) * self.training",
        "a seed and a step decide every draw",
    ),
    "keeps a number beside its state": (
        "super().__init__(); self.scale = torch.rand(()).item() + torch.seed() % 2**20",
        "x * self.scale",
        "a seed decides the initial weights, and weights can be saved and loaded",
    ),
    "has the wrong shape": (
        "super().__init__()",
        "x[..., :1]",
        "logits and gradients have the right shapes and are finite",
    ),
    "has no use for a weight": (
        "super().__init__(); self.unused = nn.Parameter(torch.ones(d_model))",
        "x",
        "logits and gradients have the right shapes and are finite",
    ),
    "overflows": ("super().__init__()", "x / 0", "logits and gradients have the right shapes and are finite"),
    "loses digits": ("super().__init__()", "(x + 1e6) - 1e6", "float64, float32 and bfloat16 agree"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_part_that_breaks_a_law_is_found(what, study, capsys):
    constructor, forward, law = BROKEN[what]
    study(
        HEAD + f"        {constructor}\n    def forward(self, x):\n        return {forward}\n",
        {"norm/mine": "_target_: parts.Part\n"},
    )
    (checked,) = [each for each in of_model.LAWS if each.sentence == law]
    config = compose(["norm=mine", *SIZE]).config
    assert _broken(checked, config) is not None
    if what != "has the wrong shape":  # which fails before it reaches the law
        with pytest.raises(BrokenError):
            checked.check(config)


def test_no_cast_of_the_whole_model_hides_a_precision(study):
    """A run leaves buffers as a part makes them."""
    study(
        "import torch\nfrom ablab.transformer.model.positions import AttentionPosition\n\nclass "
        "Part(AttentionPosition):\n"
        "    def __init__(self, d_head: int):\n        super().__init__()\n"
        "        self.scale = torch.nn.Buffer(torch.full((d_head,), 0.5).double())\n"
        "    def rotate(self, x, start):\n"
        "        return x * self.scale\n",
        {"position/mine": "_target_: parts.Part\n"},
    )
    (law,) = [each for each in of_model.LAWS if each.sentence == "float64, float32 and bfloat16 agree"]
    assert _broken(law, compose(["position=mine", *SIZE]).config) is not None


def test_a_broken_part_fails_the_command_and_its_own_error_names_its_line(study, capsys):
    name = study(DYT.replace("torch.tanh", "torch.nosuch"), {"norm/mine": "_target_: parts.DyT\n"})
    assert main(["check", "norm=mine"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-1].startswith("norm=mine: ")
    assert said[-1].endswith(" checks failed")
    assert f"{name}.py, line 18: AttributeError" in said[0]


TRAINING = """
import torch
from ablab.fields import DropProbability
from ablab.transformer.training.optimisers import Named

def falling(step: int, *, peak: float) -> float:
    return peak * (1 - step / 25)

def sinking(step: int, *, peak: float) -> float:
    return -peak if step == 5 else peak

def once(step: int, *, peak: float) -> float:
    return -5.0 if step == 30 else peak

def deep(step: int, *, p: DropProbability = 0.2, layer: int) -> float:
    return p * layer**3 / 8

class Decaying(torch.optim.SGD):
    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.mul_(0.999)
        super().step()

def decaying(parameters: Named):
    return Decaying([parameter for _, parameter in parameters], lr=0.1)

class Idle(torch.optim.SGD):
    def step(self):
        pass

def idle(parameters: Named):
    return Idle([parameter for _, parameter in parameters], lr=0.1)

def none(parameters: Named):
    return None
"""


@pytest.mark.parametrize(
    ("word", "law", "why"),
    [
        ("schedule=falling", "every rate is", "the learning rate at step 800 of 8 is -"),
        ("schedule=once", "every rate is", "the learning rate at step 30 of 40 is -5.0"),
        ("drophead=deep", "every rate is", "decoder layer 3, is 0.675"),
        ("optim=decaying", "a step moves", "moves without a gradient"),
        ("optim=idle", "a step moves", "no parameter moves"),
        ("optim=none", "a step moves", ".none is a NoneType; allowed: an optimiser of torch.optim"),
    ],
)
def test_training_that_breaks_a_law_is_found(word, law, why, study):
    group, _, option = word.partition("=")
    own = {"optim": "clip: 1.0\n", "drophead": "sites: [encoder, decoder, cross]\n"}.get(group, "")
    study(TRAINING, {f"{group}/{option}": f"_target_: parts.{option}\n{own}"})
    laws = of_training.laws([], of_model.built, of_optimiser=group == "optim")
    (checked,) = [each for each in laws if each.sentence.startswith(law)]
    assert why in _broken(checked, compose([word, *SIZE, "training.max_steps=8"]).config)


def test_a_rate_out_of_its_range_ends_training_in_a_line(study, capsys):
    study(TRAINING, {"schedule/sinking": "_target_: parts.sinking\n"})
    line = ["train", "smoke=true", "pruning=none", "logger=none", "trainer.threads=1", "schedule=sinking"]
    assert main(line) == 2
    assert "the learning rate at step 5 is -" in capsys.readouterr().err


BY_OTHERS = """
import numpy as np
import torch

def wave(step: int, *, peak: float, total: int) -> float:
    return peak * (1 + np.cos(np.pi * min(1.0, step / total))) / 2

def sinking(step: int, *, p: float = 0.2) -> float:
    return p * torch.sigmoid(torch.tensor(-float(step)))
"""


def test_rates_may_be_numbers_of_numpy_and_torch(study):
    """A checkpoint holds the learning rate, and refuses what it does not know; metrics.csv holds both."""
    options = {
        "schedule/wave": "_target_: parts.wave\n",
        "drophead/sinking": "_target_: parts.sinking\nsites: [decoder]\n",
    }
    study(BY_OTHERS, options)
    words = ["schedule=wave", "drophead=sinking", "pruning=none", "logger=none", "smoke=true", *SIZE]
    config = compose(words).config
    for law in of_training.laws(words, of_model.built, of_optimiser=False):
        assert _broken(law, config) is None
    assert {tuple(map(type, row)) for row in schedules(config).rows()} == {(int, float, float)}


def test_a_rule_that_fails_at_another_depth_is_found(study):
    study(
        "from ablab.transformer.pruning.strategies import Rule\n\nclass Odd(Rule):\n"
        "    def layers(self, depth: int, keep: int, stack: str) -> tuple[int, ...]:\n"
        "        return tuple(range(keep)) if depth < 4 else (0,) * keep\n",
        {"pruning/odd": "_target_: parts.Odd\ncurves: [decoder]\ndepths: null\n"},
    )
    (law,) = of_pruning.LAWS
    assert "layers (0, 0, 0, 0) are no 4 of 4" in _broken(law, compose(["pruning=odd", *SIZE]).config)


UNORDERED = """
from ablab.transformer.data.corpus import Corpus, Split, digest_of

class Words(Corpus):
    @property
    def test_names(self) -> list[str]:
        return ["test"]

    def train_digest(self) -> str:
        return digest_of([self.src, self.tgt])

    def test_digest(self) -> str:
        return digest_of([self.src, self.tgt, "test"])

    def train_split(self) -> Split:
        return Split("train", [(word, word) for word in WORDS])

    valid_split = train_split

    def test_splits(self) -> list[Split]:
        return [Split("test", [("one", "one")])]
"""
OF_WORDS = """# @package _global_
data:
  _target_: parts.Words
  src: words
  tgt: copies
  vocab_size: 20
  joint_vocab: true
  max_tokens: 64
  normalization: auto
  bleu_tokenizer: null
  train_pairs: null
  valid_pairs: null
  test_pairs: null
training:
  max_steps: 10
  valid_every: 5
"""


@pytest.mark.parametrize("kind", ["set", "list"])
def test_a_corpus_in_the_order_of_a_set_is_found(kind, study):
    words = f"WORDS = {kind}('the quick brown fox jumps over the lazy dog'.split())\n"
    study(UNORDERED + words, {"data/words": OF_WORDS})
    law = of_corpora.laws(["data=words"])[-1]
    found = _broken(law, compose(["data=words"]).config)
    assert (found is None) == (kind == "list"), found
    if kind == "set":
        assert found == "the train, valid split is another in a second process (by the order of a set?)"


def test_code_that_leaves_breaks_the_law(study, capsys):
    name = study(
        "from torch import nn\n\nclass Part(nn.Module):\n    def __init__(self):\n        raise SystemExit(0)\n",
        {"norm/mine": "_target_: parts.Part\n"},
    )
    assert main(["check", "norm=mine"]) == 1
    assert f"{name}.py, line 5: RuntimeError: sys.exit(0)" in capsys.readouterr().out


def test_a_tracker_has_no_law(capsys):
    assert main(["check", "logger=none"]) == 2
    assert "trackers have no law; allowed: ablab train smoke=true logger=none" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["", "seed=2", "norm=nosuch", "data=text"])
def test_what_names_no_part_is_refused(words, capsys):
    assert main(["check", *words.split()]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_new_study_is_ready_to_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my_study"]) == 0
    assert main(["new", "my_study"]) == 2
    assert "exists and is not empty" in capsys.readouterr().err
    monkeypatch.chdir("my_study")
    assert main(["study", "experiment=softsign"]) == 0
    assert "6 runs: 6 planned" in capsys.readouterr().out
    for words in (["new"], ["new", "a=b"], ["new", "x", "y=1"]):
        assert main(words) == 2


HASHED = """
from torch import nn

class Hashed(nn.Module):
    def __init__(self, d_model: int):
        super().__init__()
        self.gain = 1 + hash("d_model") % 2**40 / 2**30
        self.own = nn.LayerNorm(d_model)

    def forward(self, x):
        return self.own(x) * self.gain
"""


def test_a_part_that_is_another_one_in_another_process_is_found(study):
    study(HASHED, {"norm/hashed": "_target_: parts.Hashed\n"})
    words = ["norm=hashed", *SIZE]
    law = of_model.laws(words)[-1]
    assert law.sentence == "another process computes the same"
    assert "in a second process" in _broken(law, compose(words).config)
    assert _broken(of_model.laws([*SIZE])[-1], compose([*SIZE]).config) is None


def test_an_optimiser_that_leaves_parameters_out_is_found(study):
    source = """
import torch

def matrices(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD([each for _, each in parameters if each.ndim == 2], lr=0.0)
"""
    study(source, {"optim/matrices": "_target_: parts.matrices\nclip: 1.0\n"})
    (law,) = [
        each for each in of_training.laws([], of_model.built, of_optimiser=True) if "a step moves" in each.sentence
    ]
    assert "has a gradient and does not move" in _broken(law, compose(["optim=matrices", *SIZE]).config)
