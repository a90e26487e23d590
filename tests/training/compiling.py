"""Compiles models, and prints what came of it as JSON: in a process of its own, where no shapes are checked.

The checks of shapes that tests run with are wrapped around every layer, and Dynamo would trace them too.
"""

import json
import random
import sys
from typing import Any

import torch
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch._dynamo.utils import counters

from ablab.transformer.data.batches import Batch
from ablab.transformer.model.dropout import DropHead
from ablab.transformer.model.modes import as_written, compile_layers
from ablab.transformer.model.streams import reseed
from ablab.transformer.training.loss import token_loss
from tests.model.arms import ALL_RATES, NO_DROPOUT, build, source, target

STEPS = 12
COUNTED = ("pre", "scalenorm_fixnorm")
COMPARED = ("post", "scalenorm_fixnorm", "qk", "rope")


def main() -> None:
    """All of it; with `drophead`, what takes longest alone."""
    if sys.argv[1:] == ["drophead"]:
        found: object = graphs("pre", drophead=0.5)
    else:
        found = {
            "graphs": {norm: graphs(norm, drophead=0.0) for norm in COUNTED},
            "largest difference": {norm: largest_difference(norm) for norm in COMPARED},
            "graphs as written": graphs_as_written(),
        }
    sys.stdout.write(json.dumps(found))


def graphs(norm: str, *, drophead: float) -> dict[str, Any]:
    """Graphs compiled until each step, on a device that has shapes and no values: there nothing draws on the CPU."""
    is_enabled, torch.is_autocast_enabled = torch.is_autocast_enabled, lambda _: False
    counter = _fresh()
    model = build(norm, ALL_RATES).float().to("meta").train()
    _compile(model, counter)
    draw, found = random.Random(0), []
    for step in range(1, STEPS + 1):
        for module in model.modules():
            if isinstance(module, DropHead):
                module.drop_prob = drophead * step / STEPS
        reseed(model, 1, step=step, micro_batch=0)
        there = Batch(*(side.to("meta") for side in batch(draw, step)))
        token_loss(model, there, 0.1).total.backward()
        found.append(counter.frame_count)
    torch.is_autocast_enabled = is_enabled
    return {"until": found, "breaks": sum(counters["graph_break"].values())}


def largest_difference(norm: str) -> float:
    """Of the loss and of any gradient, from the model as written; in float64."""
    _fresh()
    there, found = batch(random.Random(3), 1), []
    for compiles in (False, True):
        model = build(norm, NO_DROPOUT).train()
        names = list(model.state_dict())
        if compiles:
            _compile(model, "eager")
        loss = token_loss(model, there, 0.1)
        loss.total.backward()
        assert list(model.state_dict()) == names
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        found.append(torch.cat([loss.true[None], *(gradient.flatten() for gradient in gradients)]))
    return float((found[1] - found[0]).abs().max())


def graphs_as_written() -> int:
    """Of compiled layers, used as they were written."""
    counter = _fresh()
    model = build("pre", NO_DROPOUT).eval()
    _compile(model, counter)
    with as_written():
        token_loss(model, batch(random.Random(3), 1), 0.1)
    return counter.frame_count


def batch(draw: random.Random, step: int) -> Batch:
    """Of any size."""
    lengths = [draw.randint(2, 9) for _ in range(draw.randint(2, 5))]
    return Batch.of(source(*lengths, seed=step), target(*lengths, seed=50 + step), target(*lengths, seed=step))


def _fresh() -> CompileCounter:
    torch.compiler.reset()
    counters.clear()
    return CompileCounter()


def _compile(model: nn.Module, backend: Any) -> None:
    """By the function that runs use, and a compiler that does not take half a minute."""
    usual = nn.Module.compile
    nn.Module.compile = lambda layer, **how: usual(layer, backend=backend, **how)
    compile_layers(model.stacks.values())
    nn.Module.compile = usual


if __name__ == "__main__":
    main()
