import subprocess
import sys
from copy import deepcopy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from ablab.seeding import derive
from ablab.transformer.model.attention import SelfAttention
from ablab.transformer.model.dropout import DropHead, Dropout, WordDropout
from ablab.transformer.model.layerdrop import LayerDrop
from ablab.transformer.model.place import Place
from ablab.transformer.model.streams import SeededModule, reseed
from tests.model.arms import ALL_RATES, build, source, target

names = st.lists(st.one_of(st.text(max_size=5), st.integers(0, 10**6)), max_size=3)

PLACE = Place("encoder", 1, "self_attention")


def draws(model: nn.Module) -> dict[str, Tensor]:
    """The next draw of every stream, the default one included."""
    own = {name: m.generator for name, m in model.named_modules() if isinstance(m, SeededModule)}
    return {name: torch.rand(3, generator=generator) for name, generator in {**own, "": None}.items()}


def equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> set[str]:
    """The streams that drew the same."""
    assert ours.keys() == theirs.keys()
    return {name for name in ours if torch.equal(ours[name], theirs[name])}


def drawn(model: nn.Module, seed: int = 1, step: int = 0, micro_batch: int = 0) -> dict[str, Tensor]:
    reseed(model, seed, step=step, micro_batch=micro_batch)
    return draws(model)


def test_a_draw_is_a_function_of_seed_step_and_micro_batch():
    model = build(changes=ALL_RATES)
    first = drawn(model, step=3, micro_batch=1)
    draws(model)
    assert equal(first, drawn(model, step=3, micro_batch=1)) == set(first)
    per_step = {"encoder.layerdrop", "decoder.layerdrop"}
    assert equal(first, drawn(model, step=3, micro_batch=0)) == per_step
    assert equal(first, drawn(model, step=4, micro_batch=1)) == set()
    assert equal(first, drawn(model, seed=2, step=3, micro_batch=1)) == set()


def test_no_two_streams_draw_the_same():
    values = [tuple(values.tolist()) for values in drawn(build(changes=ALL_RATES, drophead=0.3)).values()]
    own = 2 + 1 + 8  # LayerDrop, word dropout, DropHead
    dropout = 13 + 2 + 5 + 8  # of sublayers, inputs, activations, attention
    assert len(set(values)) == len(values) == 1 + own + dropout  # and the default one


def test_a_stream_does_not_notice_what_the_others_draw():
    model = build(changes=ALL_RATES)
    alone = drawn(model)
    reseed(model, 1, step=0, micro_batch=0)
    backwards = [(name, m) for name, m in model.named_modules() if isinstance(m, SeededModule)][::-1]
    torch.rand(100)
    for name, module in backwards:
        assert torch.equal(torch.rand(3, generator=module.generator), alone[name])


@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (LayerDrop([0.5] * 8), ()),
        (WordDropout(0.5), (source(9, 7),)),
        (DropHead(4, PLACE), (torch.ones(3, 4, 2, 2),)),
        (Dropout(0.5), (torch.ones(3, 4),)),
        (SelfAttention(8, 2, bias="all", dropout=Dropout(0.5), drophead=nn.Identity()), (torch.ones(2, 3, 8),)),
    ],
)
def test_a_stochastic_module_draws_from_its_own_stream_alone(module, inputs):
    (stream,) = (part for part in module.modules() if isinstance(part, SeededModule))
    stream.drop_prob = 0.5
    default, own = torch.get_rng_state(), stream.generator.get_state()
    module(*inputs)
    assert torch.equal(torch.get_rng_state(), default)
    assert not torch.equal(stream.generator.get_state(), own)


def test_a_training_pass_is_a_function_of_seed_step_and_micro_batch():
    model = build(changes=ALL_RATES, drophead=0.5).train()
    batch = source(5, 2), target(4, 6)

    def run(step: int, micro_batch: int) -> Tensor:
        reseed(model, 1, step=step, micro_batch=micro_batch)
        return model(*batch)

    first = run(2, 1)
    assert not torch.equal(run(2, 0), first)
    assert not torch.equal(run(3, 1), first)
    assert torch.equal(run(2, 1), first)


def test_a_copied_model_computes_the_same_and_is_independent():
    model = build(changes=ALL_RATES, drophead=0.5).train()
    copy = deepcopy(model)
    batch = source(5, 2), target(4, 6)
    outputs = []
    for each in (model, copy):
        reseed(each, 1, step=0, micro_batch=0)
        outputs.append(each(*batch))
    assert torch.equal(*outputs)
    assert not {id(p) for p in model.parameters()} & {id(p) for p in copy.parameters()}


@pytest.mark.parametrize("module", [LayerDrop([0.5] * 8), DropHead(4, PLACE), WordDropout(0.5), Dropout(0.5)])
def test_a_copy_shares_nothing_with_the_original(module):
    module.reseed(1)
    expected = torch.rand(4, generator=module.generator)
    module.reseed(1)
    copy = deepcopy(module)
    torch.rand(9, generator=copy.generator)
    copy.eval()
    copy.register_forward_hook(lambda *_: None)
    if isinstance(module, LayerDrop):
        copy.drop_probs[0] = 1.0
        assert module.drop_probs == [0.5] * 8
    assert torch.equal(torch.rand(4, generator=module.generator), expected)
    assert module.training
    assert not module._forward_hooks


@given(seed=st.integers(0, 2**63 - 1), path=names)
def test_a_derived_seed_fits_a_generator(seed, path):
    derived = derive(seed, *path)
    assert 0 <= derived < 2**63
    assert derived == derive(seed, *path)
    torch.Generator().manual_seed(derived)


def test_different_paths_give_different_seeds():
    paths = [
        (1,),
        (2,),
        (1, "a"),
        (1, "b"),
        (1, "a", 0),
        (1, "a", 1),
        (1, "a", 0, 0),
        (1, "a0"),
        (1, "a", "0", 1),
    ]
    paths += [(11,), (1, 1), (1, 11), (1, 1, 1), (1, "init", "x"), (1, "x", "init")]
    assert len({derive(*path) for path in paths}) == len(paths)


def test_a_derived_seed_is_the_same_in_another_process():
    """Python's own hash() is salted per process; this one must not be."""
    code = "from ablab.seeding import derive; print(derive(1, 'encoder.layerdrop', 3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == derive(1, "encoder.layerdrop", 3)
