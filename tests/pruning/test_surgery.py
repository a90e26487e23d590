"""A pruned model is the full one with layers left out, bit for bit, in memory and on disk."""

import pytest
import torch
from safetensors.torch import save_file

from ablab.transformer.decoding.search import beam_search
from ablab.transformer.model.layerdrop import LayerDrop
from ablab.transformer.pruning.saved_model import SavedModel
from ablab.transformer.pruning.search import all_combinations
from ablab.transformer.pruning.strategies import Depths, Kept
from ablab.transformer.pruning.surgery import prune, prune_weights
from ablab.transformer.stages.models import build_model, with_weights
from tests.model.arms import EVALUATED_ARMS, VARIANTS, VOCAB, Arm, composed, source, stir, target, vary

KEPT = [Kept((0, 1), (0, 2)), Kept((1,), (0, 1, 2)), Kept((0,), (2,)), Kept((0, 1), (0, 1, 2))]
LEARNED = Arm("pre", 0.2, changes={"layerdrop_rates": "learned"})


class Only(LayerDrop):
    """The same layers in every pass."""

    def __init__(self, kept):
        super().__init__([0.0] * (max(kept) + 1))
        self.kept = list(kept)

    def forward(self):
        return self.kept


def stirred(arm):
    torch.manual_seed(1)
    model = arm.build()
    stir(model)
    return model.eval()


def outputs(model):
    """All that a model says: hidden vectors, logits, the steps of a search."""
    with torch.no_grad():
        hidden = model(source(5, 3), target(4, 6))
        found = beam_search(model, source(5, 3, 7), beam_size=2, alpha=0.6, max_extra_tokens=4)
        return hidden, model.logits(hidden), [[(h.ids, h.score) for h in beams] for beams in found]


def assert_same(one, other):
    assert torch.equal(one[0], other[0])
    assert torch.equal(one[1], other[1])
    assert one[2] == other[2]


def skipping(arm, kept):
    model = stirred(arm)
    model.encoder.layerdrop, model.decoder.layerdrop = Only(kept.encoder), Only(kept.decoder)
    return model


@pytest.mark.parametrize("kept", KEPT[:1], ids=lambda kept: kept.name)
@pytest.mark.parametrize("arm", [*EVALUATED_ARMS, LEARNED], ids=lambda arm: arm.name)
def test_surgery_is_skipping(arm, kept):
    assert_same(outputs(prune(stirred(arm), kept)), outputs(skipping(arm, kept)))


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
@pytest.mark.parametrize("arm", [*(Arm(norm) for norm in VARIANTS), LEARNED], ids=lambda arm: arm.name)
def test_surgery_on_the_weights_is_surgery_on_the_model(arm, kept):
    full = stirred(arm)
    changes = {"model.encoder_layers": len(kept.encoder), "model.decoder_layers": len(kept.decoder)}
    shallow = arm.build(changes)
    shallow.load_state_dict(prune_weights(full.state_dict(), kept))
    assert_same(outputs(shallow.eval()), outputs(skipping(arm, kept)))


def test_a_pruned_model_is_loaded_whatever_scores_of_learned_rates_its_file_has(tmp_path):
    full, kept = stirred(LEARNED), KEPT[0]
    rates = {"layerdrop_encoder": 0.2, "layerdrop_decoder": 0.2, "layerdrop_rates": "learned"}
    config = vary(composed(*VARIANTS["pre"]), rates)
    weights = {name: each.contiguous() for name, each in prune_weights(full.state_dict(), kept).items()}
    assert any(".layerdrop." in name for name in weights)
    save_file(weights, tmp_path / "model.safetensors")
    saved = SavedModel("it", tmp_path / "model.safetensors", config, None, layers=kept.layers, whole=config)
    built = build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB).double()
    assert_same(outputs(with_weights(built, saved, torch.device("cpu"))), outputs(prune(full, kept)))


def test_every_way_to_remove_layers_says_something_else():
    """So that no test above passes because layers do not matter."""
    model = stirred(Arm("pre"))
    combinations = [c for d in ((1, 1), (2, 1), (1, 2), (2, 3)) for c in all_combinations(Depths(2, 3), Depths(*d))]
    logits = [outputs(prune(model, kept))[1] for kept in combinations]
    assert all(not torch.equal(a, b) for i, a in enumerate(logits) for b in logits[:i])


def test_the_full_model_stays_whole_and_shares_its_layers():
    model = stirred(Arm("pre", 0.2))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    small = prune(model, Kept((1,), (0, 2)))
    assert small.decoder.layers[1] is model.decoder.layers[2]
    assert small.words is model.words
    assert len(model.decoder.layers) == 3
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_stays(training):
    model = stirred(Arm("pre")).train(training)
    assert all(module.training == training for module in prune(model, KEPT[0]).modules())
    assert all(module.training == training for module in model.modules())


def test_drop_rates_go_with_their_layers():
    config = vary(composed(), {"layerdrop_decoder": 0.6, "layerdrop_rates": "linear"})
    small = prune(build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB), Kept((0, 1), (0, 2)))
    assert small.decoder.layerdrop.rates() == pytest.approx([0.2, 0.6])
