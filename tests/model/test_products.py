"""Products by oneDNN: those of PyTorch up to rounding, with their gradients, and only where they are meant."""

import pytest
import torch
import torch.nn.functional as F

from ablab.transformer.data.batches import Batch
from ablab.transformer.model import products
from ablab.transformer.model.products import Linear, add_product, linear, mkl_is_slow, product
from ablab.transformer.training.loss import token_loss
from tests.model.arms import NO_DROPOUT, build, source, stir, target

TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}
"""Of products of some dozens of terms in float32. Rounded to bfloat16, they would miss it a hundredfold."""


needs_onednn = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this build of PyTorch has no products of oneDNN"
)


@pytest.fixture
def by_onednn(monkeypatch):
    """Give all products in float32 to oneDNN, whatever the processor; return the shapes that it got."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this build of PyTorch has no products of oneDNN")
    shapes, compute = [], products._onednn

    def counted(x, weight, bias=None):
        shapes.append((tuple(x.shape), tuple(weight.shape)))
        return compute(x, weight, bias)

    monkeypatch.setattr(products, "_onednn", counted)
    monkeypatch.setattr(products, "mkl_is_slow", lambda: True)
    monkeypatch.setattr(products, "LEAST", 1)
    return shapes


@pytest.mark.parametrize("batch", [(7,), (3, 5), (2, 1, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_has_the_values_and_gradients_of_float64(by_onednn, batch, bias):
    layer = Linear(33, 18, bias=bias)
    x = torch.randn(*batch, 33, requires_grad=True)
    wanted_of = [each.detach().double().requires_grad_() for each in (x, *layer.parameters())]
    wanted = F.linear(*wanted_of)
    weights = torch.randn_like(wanted)
    found = layer(x)
    torch.testing.assert_close(found.double(), wanted, **TOLERANCE)
    got = torch.autograd.grad((found * weights.float()).sum(), (x, *layer.parameters()))
    expected = torch.autograd.grad((wanted * weights).sum(), wanted_of)
    torch.testing.assert_close([each.double() for each in got], list(expected), **TOLERANCE)
    assert len(by_onednn) == 3  # forward, towards the input, towards the weights


def test_what_needs_no_gradient_is_not_computed(by_onednn):
    weight = torch.randn(8, 6, requires_grad=True)
    linear(torch.randn(5, 6), weight).sum().backward()
    assert by_onednn == [((5, 6), (8, 6)), ((6, 5), (8, 5))]
    torch.testing.assert_close(weight.grad[0], weight.grad[1])


@pytest.mark.parametrize("rows", [5, 37])
def test_second_derivatives_are_those_of_float64(by_onednn, rows):
    def second(multiply, x, weight):
        (first,) = torch.autograd.grad(multiply(x, weight).pow(3).sum(), x, create_graph=True)
        return torch.autograd.grad(first.pow(2).sum(), (x, weight))

    x, weight = torch.randn(rows, 6, requires_grad=True), torch.randn(8, 6, requires_grad=True)
    wanted = second(F.linear, *(each.detach().double().requires_grad_() for each in (x, weight)))
    got = second(linear, x, weight)
    torch.testing.assert_close([each.double() for each in got], list(wanted), rtol=1e-4, atol=1e-2)
    assert by_onednn


def test_a_frozen_weight_keeps_no_input(by_onednn):
    x = torch.randn(5, 6, requires_grad=True)
    saved, kept = products._Linear.apply(x, torch.randn(8, 6), None).grad_fn.saved_tensors
    assert saved is None
    assert kept.shape == (8, 6)


def _with_gaps(x):
    """Return the same numbers, of which every second one in memory is used."""
    return torch.stack([x, torch.full_like(x, torch.nan)], dim=-1)[..., 0]


FORMS = {"as it is": lambda x: x, "transposed": lambda x: x.T.contiguous().T, "with gaps": _with_gaps}


@pytest.mark.parametrize("of_left", FORMS)
@pytest.mark.parametrize("of_right", FORMS)
def test_products_are_those_of_float64_in_every_layout(by_onednn, of_left, of_right):
    left, right, bias = FORMS[of_left](torch.randn(39, 40)), FORMS[of_right](torch.randn(40, 12)), torch.randn(12)
    wanted = left.double() @ right.double()
    torch.testing.assert_close(product(left, right).double(), wanted, **TOLERANCE)
    torch.testing.assert_close(linear(left, right.T, _with_gaps(bias)).double(), wanted + bias.double(), **TOLERANCE)
    torch.testing.assert_close(linear(left, right.T, bias[:1].expand(12)).double(), wanted + bias[0], **TOLERANCE)
    assert len(by_onednn) == 3


def test_a_product_has_gradients(by_onednn):
    left, right = torch.randn(37, 6, requires_grad=True), torch.randn(6, 8, requires_grad=True)
    weights = torch.randn(37, 8)
    got = torch.autograd.grad((product(left, right) * weights).sum(), (left, right))
    torch.testing.assert_close(got, (weights @ right.detach().T, left.detach().T @ weights), **TOLERANCE)
    assert len(by_onednn) == 3


@pytest.mark.parametrize("wide", [5, 50])
def test_a_product_is_added_over_rows(by_onednn, wide):
    total, left, right = torch.randn(9, wide), torch.randn(37, 9), torch.randn(37, wide)
    wanted = total.double() + left.double().T @ right.double()
    add_product(total, left, right)
    torch.testing.assert_close(total.double(), wanted, **TOLERANCE)
    assert len(by_onednn) == 1
    precise = wanted.clone()
    add_product(precise, left, right)
    assert len(by_onednn) == 1
    torch.testing.assert_close(precise, wanted + left.double().T @ right.double(), **TOLERANCE)


def test_one_vector_is_multiplied_as_pytorch_does(by_onednn):
    x, weight = torch.randn(6), torch.randn(8, 6)
    assert linear(x, weight).equal(F.linear(x, weight))
    assert not by_onednn


def test_any_numbers_of_rows_make_few_shapes(by_onednn):
    """oneDNN keeps a kernel for each: 16 between 512 and 1,024, and no row added where there are few."""
    weight = torch.randn(3, 2)
    for rows in range(513, 1025):
        assert len(linear(torch.ones(rows, 2), weight)) == rows
    assert {x[0] for x, _ in by_onednn} == set(range(544, 1025, 32))
    by_onednn.clear()
    for rows in range(1, 33):
        product(torch.ones(rows, 2), weight.T)
    assert [x[0] for x, _ in by_onednn] == list(range(1, 33))


@pytest.mark.parametrize("norm", ["pre", "fixnorm"])
def test_a_step_of_a_model_has_its_loss_and_gradients(by_onednn, norm):
    model = build(norm, NO_DROPOUT)
    stir(model)
    batch = Batch.of(source(5, 7, 3), target(6, 4, 7), target(6, 4, 7, seed=50))

    def step():
        loss = token_loss(model, batch, 0.1).total
        return loss, torch.autograd.grad(loss, list(model.parameters()))

    model.double()
    loss, gradients = step()
    assert not by_onednn
    model.float()
    torch.testing.assert_close(step(), (loss.float(), tuple(each.float() for each in gradients)), rtol=1e-4, atol=1e-4)
    assert len(by_onednn) > 30


OTHERWISE = {
    "a small product": {"LEAST": 4 * 6 * 8 + 1},
    "another processor": {"mkl_is_slow": lambda: False},
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_elsewhere_products_are_pytorchs_own_to_the_bit(by_onednn, case, monkeypatch):
    for name, value in OTHERWISE[case].items():
        monkeypatch.setattr(products, name, value)
    x, weight, bias = torch.randn(4, 6), torch.randn(8, 6), torch.randn(8)
    assert linear(x, weight, bias).equal(F.linear(x, weight, bias))
    assert product(x, weight.T).equal(x @ weight.T)
    total = torch.randn(4, 8)
    wanted = torch.addmm(total, x, weight.T)
    add_product(total, x.T, weight.T)
    assert total.equal(wanted)
    assert not by_onednn


def test_a_product_of_the_least_size_goes_to_onednn(by_onednn, monkeypatch):
    monkeypatch.setattr(products, "LEAST", 4 * 6 * 8)
    product(torch.randn(4, 6), torch.randn(6, 8))
    linear(torch.randn(2, 2, 6), torch.randn(8, 6))
    assert len(by_onednn) == 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_pytorchs(by_onednn, dtype):
    x, weight = torch.randn(4, 6, dtype=dtype), torch.randn(8, 6, dtype=dtype)
    assert linear(x, weight).equal(F.linear(x, weight))
    assert product(x, weight.T).equal(x @ weight.T)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x.float(), weight.float()).dtype == torch.bfloat16
    assert not by_onednn


def test_memory_for_the_result_is_used_where_pytorch_computes_it():
    out = torch.empty(4, 8)
    assert product(torch.randn(4, 6), torch.randn(6, 8), out=out) is out


ZEN_5 = {"avx512_f": True, "avx_vnni": True, "amx_tile": False, "cpu_name": "AMD EPYC"}


@needs_onednn
@pytest.mark.parametrize(
    ("change", "slow"),
    [
        ({}, True),
        ({"cpu_name": "AMD Ryzen 9 9950X 16-Core Processor"}, True),
        ({"cpu_name": "Intel(R) Xeon(R)"}, False),
        ({"avx_vnni": False}, False),  # Zen 4
        ({"avx512_f": False}, False),
        ({"amx_tile": True}, False),
    ],
)
def test_mkl_is_slow_on_zen_5_alone(change, slow, monkeypatch):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {**ZEN_5, **change}, raising=False)
    assert mkl_is_slow.__wrapped__() is slow


def test_an_arm_processor_has_none_of_these(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"neon": True}, raising=False)
    assert mkl_is_slow.__wrapped__() is False


def test_without_mkl_nothing_is_slow(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: ZEN_5, raising=False)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert mkl_is_slow.__wrapped__() is False


def test_a_compiled_product_is_the_compilers(by_onednn, monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    x, weight = torch.randn(4, 6), torch.randn(8, 6)
    assert linear(x, weight).equal(F.linear(x, weight))
    assert not by_onednn
