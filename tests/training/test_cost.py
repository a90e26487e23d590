"""What training costs, and what the machine could do."""

from itertools import accumulate, chain, repeat

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ablab.transformer.data.batches import Batch
from ablab.transformer.model.streams import reseed
from ablab.transformer.training import cost
from ablab.transformer.training.cost import ProductTimer, cost_of, flops_per_token
from ablab.transformer.training.loss import token_loss
from ablab.transformer.training.module import TrainingModule
from ablab.transformer.training.state import TrainingState
from tests.model.arms import NO_DROPOUT, build, source, target

PRODUCTS = (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.addmm_)
HALVES = {**NO_DROPOUT, "layerdrop_encoder": 0.5, "layerdrop_decoder": 0.5}


def in_place(total: object, left: list[int], right: list[int], **_: object) -> int:
    """Operations of `total.addmm_(left, right)`, which PyTorch's counter does not know."""
    return 2 * left[0] * left[1] * right[1]


@pytest.mark.parametrize("changes", [NO_DROPOUT, HALVES], ids=["whole", "layerdrop"])
@pytest.mark.parametrize("norm", ["pre", "scalenorm_fixnorm"])
def test_operations_of_a_token_are_those_of_the_products_that_pytorch_runs(norm, changes):
    """Forward and backward, of sentences without padding; attention's own products are others."""
    model = build(norm, changes).train()
    batch = Batch.of(source(6, 6, 6), target(4, 4, 4), target(4, 4, 4, seed=50))
    reseed(model, 1, step=1, micro_batch=0)
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: in_place}) as counter:
        token_loss(model, batch, 0.1).total.backward()
    counted = counter.get_flop_counts()["Global"]

    state = TrainingState()
    state.count(1, batch.tokens, TrainingModule(model, None)._ran())
    shares = state.layer_shares()
    assert any(0 in of_stack for of_stack in shares.values()) == (changes is HALVES)
    found = flops_per_token(model, 18 / 12, shares) * batch.tokens
    assert found == sum(counted.get(product, 0) for product in PRODUCTS)


def test_each_layer_counts_as_often_as_it_ran():
    """In a share of the tokens, however many there are in a step."""
    model, state = build("pre"), TrainingState()
    never, always = ({"encoder": [ran] * 2, "decoder": [ran] * 3} for ran in (False, True))
    steps = [(300, always), (100, never), (600, {**never, "decoder": [True, False, False]})]
    for step, (tokens, ran) in enumerate(steps, start=1):
        state.count(step, tokens, ran)
    assert state.layer_shares() == {"encoder": [0.3, 0.3], "decoder": [0.9, 0.3, 0.3]}

    def of(ran):
        return flops_per_token(model, 1.2, {stack: [float(flag) for flag in flags] for stack, flags in ran.items()})

    mean = sum(tokens * of(ran) for tokens, ran in steps) / 1000
    assert flops_per_token(model, 1.2, state.layer_shares()) == pytest.approx(mean)


def test_the_speed_is_that_of_the_faster_product(monkeypatch):
    """By a clock on which they take 30 and 10 ms."""
    ticks = accumulate(chain([0.0, 0.030, 0.0, 0.010], repeat(1.0)))
    monkeypatch.setattr(cost.time, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(cost, "LARGE", 16)
    assert cost.product_speed(torch.device("cpu"), torch.float32) == pytest.approx(2 * 16**3 / 0.010)


def test_timing_leaves_the_streams_of_the_training_alone(monkeypatch):
    monkeypatch.setattr(cost, "LARGE", 16)
    before = torch.get_rng_state()
    assert ProductTimer(torch.device("cpu"), torch.bfloat16).speed() > 0
    assert torch.equal(torch.get_rng_state(), before)


def test_timing_takes_a_thousandth_of_the_training(monkeypatch):
    """Of a day with a validation every minute, where a timing takes 0.4 s; the first is made in any case."""
    now, timer, timed = [0.0], ProductTimer(torch.device("cpu"), torch.float32), []

    def product_speed(*_):
        now[0] += 0.4
        return 1.0

    monkeypatch.setattr(cost.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(cost, "product_speed", product_speed)
    for seconds in range(60, 86_400, 60):
        if timer.due(seconds):
            timer.speed()
            timed.append(seconds)
    assert timed[0] == 60
    assert 200 < len(timed) <= 216
    assert all(0.4 * count <= 0.001 * seconds + 1e-9 for count, seconds in enumerate(timed[1:], start=2))


def test_the_peak_of_memory_is_that_of_all_processes(tmp_path):
    """Of a run that was continued, the last one may have chosen weights alone."""
    (tmp_path / "metrics.csv").write_text("step\n")
    state = TrainingState(step=1, tokens=10, peak_memory=2**50)
    assert TrainingState.from_dict(state.as_dict()).peak_memory == 2**50
    content = {key: value for key, value in state.as_dict().items() if key != "peak_memory"}
    assert TrainingState.from_dict(content).peak_memory == 0, "of before it was kept"
    assert cost_of(state, 10, 1.0, torch.nn.Linear(1, 1), tmp_path / "metrics.csv").peak_memory_bytes == 2**50
