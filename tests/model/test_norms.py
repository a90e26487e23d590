import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from ablab.config import compose
from ablab.errors import UserError
from ablab.transformer.model.norms import DyT, LayerNorm, RMSNorm, ScaleNorm
from ablab.transformer.model.residual import DeepNorm, PostNorm, PreNorm, Sandwich
from tests.model.arms import NORMS, build
from tests.shipped import shipped

KINDS = shipped("norm")

D = 12
CLOSE = {"rtol": 0, "atol": 1e-12}


def vectors(*shape: int) -> torch.Tensor:
    return 3 * torch.randn(*shape, D, dtype=torch.float64) + 1


def scalenorm(g: float | None = None, *, learned: bool = True) -> ScaleNorm:
    norm = ScaleNorm(D, learn_g=learned).double()
    if g is not None:
        norm.g.data.fill_(g)
    return norm


def sites(model: nn.Module) -> list[nn.Module]:
    return [module for module in model.modules() if isinstance(module, tuple(KINDS.values()))]


@pytest.mark.parametrize("g", [0.3, 1.0, 7.0])
def test_scalenorm_gives_every_vector_the_norm_g(g):
    x = vectors(2, 5)
    out = scalenorm(g)(x)
    assert_close(torch.linalg.vector_norm(out, dim=-1), torch.full((2, 5), g, dtype=torch.float64), **CLOSE)
    assert_close(out, g * x / (x * x).sum(-1, keepdim=True).sqrt(), **CLOSE)


@given(factor=st.floats(1e-3, 1e6))
def test_scalenorm_and_rmsnorm_ignore_the_scale_of_their_input(factor):
    x = vectors(3)
    assert_close(scalenorm()(factor * x), scalenorm()(x), **CLOSE)
    rms = nn.RMSNorm(D, eps=0.0).double()
    assert_close(rms(factor * x), rms(x), **CLOSE)


@pytest.mark.parametrize("learned", [True, False])
def test_scalenorm_of_zero_is_zero_with_a_finite_gradient(learned):
    norm = scalenorm(learned=learned)
    x = torch.zeros(2, D, dtype=torch.float64, requires_grad=True)
    out = norm(x)
    assert torch.equal(out, torch.zeros_like(out))
    out.sum().backward()
    assert x.grad.isfinite().all()
    if learned:
        assert norm.g.grad.isfinite()


@pytest.mark.parametrize("learned", [True, False])
def test_scalenorms_g_starts_at_the_root_of_the_width_and_is_learned_or_fixed(learned):
    norm = ScaleNorm(D, learn_g=learned)
    assert norm.g.shape == ()
    assert norm.g.item() == pytest.approx(math.sqrt(D))
    assert len(list(norm.parameters())) == learned
    assert set(norm.state_dict()) == {"g"}  # a checkpoint holds it either way


def test_rmsnorm_is_its_formula():
    norm = RMSNorm(D).double()
    nn.init.normal_(norm.weight)
    x = vectors(4)
    rms = (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    assert_close(norm(x), norm.weight * x / rms, **CLOSE)


def test_layernorm_is_its_formula():
    norm = LayerNorm(D).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x = vectors(4)
    centred = x - x.mean(-1, keepdim=True)
    std = (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    assert_close(norm(x), norm.weight * centred / std + norm.bias, **CLOSE)


@pytest.mark.parametrize("alpha", [0.5, 1.7])
def test_dyt_is_its_formula(alpha):
    norm = DyT(D, alpha=alpha).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x = vectors(2, 4)
    up, down = torch.exp(norm.alpha * x), torch.exp(-norm.alpha * x)
    assert norm.alpha.item() == pytest.approx(alpha)
    assert_close(norm(x), norm.weight * (up - down) / (up + down) + norm.bias, **CLOSE)


@pytest.mark.parametrize("alpha", [0.0, -1.0])
def test_dyt_refuses_an_alpha_that_is_not_above_0(alpha):
    with pytest.raises(UserError, match=r"norm.alpha=.*: allowed: greater than 0"):
        compose(["norm=dyt", f"norm.alpha={alpha}"])


@pytest.mark.parametrize("g", [0.5, 4.0])
def test_rmsnorm_with_one_scale_over_the_root_of_the_width_is_scalenorm(g):
    rms = RMSNorm(D).double()
    rms.weight.data.fill_(g / math.sqrt(D))
    x = vectors(4)
    assert_close(rms(x), scalenorm(g)(x), rtol=1e-5, atol=0)  # RMSNorm's eps of 1e-6 is the difference


@pytest.mark.parametrize("kind", KINDS)
def test_a_zero_vector_has_no_nan_in_value_or_gradient(kind):
    x = torch.zeros(1, D, requires_grad=True)
    out = KINDS[kind](D)(x)
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_is_normalised_by_itself(kind):
    norm = KINDS[kind](D).double()
    x = vectors(2, 5)
    assert_close(norm(x)[1, 3], norm(x[1, 3]), **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_placements_are_their_formulas(kind):
    norm, double = KINDS[kind](D).double(), lambda y: 2 * y + 1
    x = vectors(2, 5)
    assert_close(PreNorm(norm, nn.Identity())(x, double), x + double(norm(x)), **CLOSE)
    assert_close(PostNorm(norm, nn.Identity())(x, double), norm(x + double(x)), **CLOSE)
    depths = {"encoder_layers": 6, "decoder_layers": 3}
    for stack, alpha in (("encoder", 0.81 * 3888 ** (1 / 16)), ("decoder", 9 ** (1 / 4))):
        deep = DeepNorm(norm, nn.Identity(), stack=stack, **depths)
        assert_close(deep(x, double), norm(alpha * x + double(x)), **CLOSE)
    other = KINDS[kind](D).double()
    sandwich = Sandwich(norm, nn.Identity(), make_norm=lambda: other)
    assert_close(sandwich(x, double), x + other(double(norm(x))), **CLOSE)


def test_a_sandwich_has_two_norms_at_each_site_and_final_norms():
    model = build("sandwich")
    assert len(sites(model)) == 2 * (2 * 2 + 3 * 3) + 2


def test_deepnorm_keeps_the_alpha_of_the_depth_it_was_trained_at():
    """A pruned model was trained under that of the full one."""
    shallow = build("deepnorm", {"model.encoder_layers": 1, "model.decoder_layers": 1})
    before = shallow.encoder.layers[0].around_feed_forward.alpha.item()
    deep = build("deepnorm").state_dict()
    shallow.load_state_dict({name: deep[name] for name in shallow.state_dict()})
    alphas = [model.encoder.layers[0].around_feed_forward.alpha.item() for model in (build("deepnorm"), shallow)]
    assert alphas[0] == alphas[1] == pytest.approx(0.81 * (2**4 * 3) ** (1 / 16))
    assert alphas[1] != before


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("depth", [1, 6])
def test_number_of_norm_sites(norm, depth):
    model = build(norm, {"model.encoder_layers": depth, "model.decoder_layers": depth})
    finals = [stack.final_norm for stack in (model.encoder, model.decoder)]
    if norm.startswith("post") or norm == "deepnorm":
        assert len(sites(model)) == 5 * depth
        assert all(isinstance(final, nn.Identity) for final in finals)
    else:
        assert len(sites(model)) == (2 * depth + 1) + (3 * depth + 1)
        assert all(isinstance(final, tuple(KINDS.values())) for final in finals)
        assert finals[0] is not finals[1]


@pytest.mark.parametrize(
    ("norm", "per_site"),
    [
        ("post", 32),
        ("pre", 32),
        ("dyt", 33),
        ("rmsnorm", 16),
        ("scalenorm", 1),
        ("post_scalenorm", 1),
        ("scalenorm_fixed_g", 0),
    ],
)
def test_number_of_norm_parameters(norm, per_site):
    model = build(norm, {"model.encoder_layers": 6, "model.decoder_layers": 6})
    norms = nn.ModuleList(sites(model))
    assert len(norms) == (30 if norm.startswith("post") else 32)
    assert sum(parameter.numel() for parameter in norms.parameters()) == len(norms) * per_site
