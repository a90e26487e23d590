"""Looking changes nothing, and what is seen is what the papers define."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ablab.transformer.analysis import (
    attention_maps,
    attentions,
    cross_attention,
    draw_attention,
    importance,
    learned_scales,
    masked,
)
from ablab.transformer.model.attention import attend
from ablab.transformer.model.norms import ScaleNorm
from ablab.transformer.model.residual import PreNorm, Sandwich
from ablab.transformer.translation.analyses import SITES
from tests.model.arms import build, source, stir, target

SRC, TGT = source(5, 3), target(4, 6)


def stirred(norm="pre", changes=None, **kinds):
    model = build(norm, changes, **kinds).eval()
    stir(model)
    return model


@pytest.mark.parametrize("drophead", [0.0, 0.3])
@pytest.mark.parametrize("site", SITES)
@torch.no_grad()
def test_a_masked_head_is_zeros_in_the_columns_that_read_it(site, drophead):
    model = stirred(drophead=drophead)
    whole = model(SRC, TGT)
    for attention in attentions(model, site):
        width = attention.output.in_features // attention.num_heads
        for head in range(attention.num_heads):
            with masked(attention, head):
                ours = model(SRC, TGT)
            columns = attention.output.weight[:, head * width : (head + 1) * width]
            kept = columns.clone()
            columns.zero_()
            assert_close(ours, model(SRC, TGT), rtol=0, atol=1e-12)
            columns.copy_(kept)
            assert not torch.equal(ours, whole)
    assert torch.equal(model(SRC, TGT), whole)


@torch.no_grad()
def test_a_step_of_decoding_does_without_the_head_too():
    model = stirred()
    with masked(attentions(model, "cross")[1], 2):
        state = model.start(SRC, beams=1, max_len=4)
        stepped = torch.cat([model.step(TGT[:, i, None], state) for i in range(4)], dim=1)
        assert_close(stepped, model.logits(model(SRC, TGT[:, :4])), rtol=0, atol=1e-12)


@torch.no_grad()
def test_importance_is_the_loss_without_the_head_less_the_loss_with_it():
    model, seen = stirred(), []

    def loss():
        return float(model(SRC, TGT).square().sum())

    sites = attentions(model, "decoder")
    found = importance(sites, loss, loss(), seen.append)
    assert [len(row) for row in found] == [4, 4, 4]
    assert sum(seen) == 12
    whole = loss()
    with masked(sites[2], 1):
        assert found[2][1] == loss() - whole


def test_sites_are_those_of_the_paper():
    model = stirred("scalenorm")
    found = learned_scales(model)
    assert {site: len(gains) for site, gains in found.items()} == {
        "encoder self-attention": 2,
        "encoder feed-forward": 2,
        "decoder self-attention": 3,
        "decoder cross-attention": 3,
        "decoder feed-forward": 3,
        "final norms": 2,
    }
    every = [module.g.item() for module in model.modules() if isinstance(module, ScaleNorm)]
    assert sorted(gain for gains in found.values() for gain in gains) == sorted(every)
    assert found["final norms"] == [stack.final_norm.g.item() for stack in (model.encoder, model.decoder)]
    assert found["decoder cross-attention"][1] == model.decoder.layers[1].around_cross_attention.norm.g.item()


def test_a_sandwich_has_norms_of_outputs_too():
    model = stirred("scalenorm")
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers:
            for name, old in [*layer.named_children()]:
                if isinstance(old, PreNorm):
                    setattr(layer, name, Sandwich(ScaleNorm(16), nn.Identity(), make_norm=lambda: ScaleNorm(16)))
    found = learned_scales(model)
    assert len(found) == 11
    every = [module.g.item() for module in model.modules() if isinstance(module, ScaleNorm)]
    assert sorted(gain for gains in found.values() for gain in gains) == sorted(every)


def test_pieces_with_dollars_are_no_formulas(tmp_path):
    draw_attention(torch.ones(2, 2) / 2, ["$$", "</s>"], ["$^$", "a_$"], tmp_path / "a.png", "a")
    assert (tmp_path / "a.png").exists()


def test_only_a_learned_g_is_there():
    assert "final norms" not in learned_scales(stirred("post_scalenorm"))
    assert len(learned_scales(stirred("post_scalenorm"))) == 5
    for norm in ("pre", "rmsnorm", "scalenorm_fixed_g", "fixnorm"):
        assert learned_scales(build(norm)) == {}


def test_cross_attention_is_a_distribution_over_the_source_whatever_the_batch():
    model = stirred()
    maps = torch.stack(cross_attention(model, SRC[:1], TGT[:1, :4]))
    assert maps.shape == (3, 4, 4, 5)
    assert_close(maps.sum(-1), torch.ones(3, 4, 4, dtype=maps.dtype))


@pytest.mark.parametrize("site", SITES)
@torch.no_grad()
def test_the_weights_shown_are_those_with_which_the_model_mixes_the_values(site, monkeypatch):
    model, seen = stirred(), []
    layers = attentions(model, site)
    inside = [module.register_forward_pre_hook(lambda *_: seen.append([])) for module in layers]
    outside = [module.register_forward_hook(lambda *_: seen.append(None)) for module in layers]

    def recorded(queries, keys, values, *rest, **options):
        mixed = attend(queries, keys, values, *rest, **options)
        if seen and seen[-1] is not None:
            seen[-1].append((values, mixed))
        return mixed

    monkeypatch.setattr("ablab.transformer.model.attention.attend", recorded)
    model(SRC[:1], TGT[:1, :4])
    for hook in (*inside, *outside):
        hook.remove()
    mixes = [found[0] for found in seen if found]
    maps = attention_maps(model, site, SRC[:1], TGT[:1, :4])
    assert len(mixes) == len(maps) == len(layers)
    for weights, (values, mixed) in zip(maps, mixes, strict=True):
        assert_close(weights @ values[0], mixed[0], rtol=0, atol=1e-12)
        assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        if site == "decoder":
            assert not weights.triu(1).any()


def test_layers_may_have_different_numbers_of_heads():
    model = stirred()
    attentions(model, "encoder")[1].num_heads = 2
    assert [len(heads) for heads in attention_maps(model, "encoder", SRC[:1], TGT[:1])] == [4, 2]
