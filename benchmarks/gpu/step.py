"""What a training step costs on a GPU, what of that is padding, copying and launching, and by which size of a chunk.

    python -m benchmarks.gpu.step data=text ... [models=base,tiny] [steps=20] [rounds=3]

Each variant trains the same batches of a run in this process, in turns; times are medians of steps that wait for the
device at their end alone. `no mask`: padding is attended to, which shows what masks cost; `graph`: forward and
backward of one batch, without dropout, from a CUDA graph and without.
"""

import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from ablab.config import compose
from ablab.tasks.plan import plan
from ablab.text import aligned
from ablab.transformer.data.documents.prepared import prepare as prepare_text
from ablab.transformer.data.prepared import prepare
from ablab.transformer.language_model.schema import LanguageModelConfig
from ablab.transformer.language_model.training import TextTrainable
from ablab.transformer.model import transformer
from ablab.transformer.model.modes import compile_layers
from ablab.transformer.model.streams import reseed
from ablab.transformer.stages.builders import Trainable, build_objective, limit
from ablab.transformer.training import loss
from ablab.transformer.training.state import TrainingState
from ablab.transformer.translation.training import TranslationTrainable
from benchmarks.speed.machine import conditions
from benchmarks.speed.peers.plain import PLACE

RESULTS = Path(__file__).parents[1] / "results" / "gpu_step.json"
SEEN = 3
"""Batches of the graph's warm-up."""

Step = Callable[[int], object]


class Training:
    """A run's model, batches and optimiser in this process."""

    def __init__(self, words: list[str]) -> None:
        planned = plan(compose(words))
        config: Any = planned.config
        trainable = trainable_of(planned)
        self.model = trainable.model().to(PLACE).train()
        self.batches = limit(trainable.steps(), config)
        self.objective = build_objective(config, TrainingState(kind=trainable.validation))
        self.optimizer = self.objective.optimizer(list(self.model.named_parameters()))
        self.bf16 = config.training.precision == "bf16"

    def batch(self, index: int, *, pinned: bool) -> Any:
        """The first micro-batch of a step, on the device."""
        (batch,) = self.batches[index]
        parts = [part.pin_memory() if pinned else part for part in batch]
        return type(batch)(*(part.to(PLACE, non_blocking=True) for part in parts))

    def forward_backward(self, batch: Any) -> torch.Tensor:
        """The loss of a batch, with gradients."""
        with torch.autocast(PLACE.type, torch.bfloat16, enabled=self.bf16):
            found = self.objective.loss(self.model, batch)
        (found.total / batch.tokens).backward()
        return found.true.detach()

    def step(self, index: int, *, pinned: bool = False) -> int:
        """One optimiser step, as the training module takes it; return its tokens."""
        batch = self.batch(index, pinned=pinned)
        reseed(self.model, 1, step=index + 1, micro_batch=0)
        self.forward_backward(batch)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = 1e-6
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return int(batch.tokens)


def trainable_of(planned: Any) -> Trainable[Any]:
    """What the run of either task trains, on prepared data."""
    config, corpora = planned.config, planned.outputs / "corpora"
    if isinstance(config, LanguageModelConfig):
        return TextTrainable(config, prepare_text(config.data, corpora, print), None)
    return TranslationTrainable(config, prepare(config.data, corpora, print), None)


@contextlib.contextmanager
def of_chunk(logits: int) -> Iterator[None]:
    """A loss that holds so many logits."""
    with patch.object(loss, "LOGITS_ON_GPU", logits):
        yield


@contextlib.contextmanager
def no_mask() -> Iterator[None]:
    """Attention that looks at padding."""
    stacks = (transformer.Encoder, transformer.Decoder)
    encoder, decoder = (patch.object(stack, "forward", _unmasked(stack.forward)) for stack in stacks)
    with encoder, decoder:
        yield


def _unmasked(forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *inputs: forward(self, *inputs[:-1], None)


def variants(training: Training) -> dict[str, tuple[Step, Callable[[], Any]]]:
    """Name -> the step, and what holds during it."""
    pinned: Step = lambda index: training.step(index, pinned=True)  # noqa: E731
    sizes = {
        f"chunks of 2^{power} logits, pinned": (pinned, lambda power=power: of_chunk(1 << power))
        for power in (25, 26, 29)
    }
    return {
        "as it is": (training.step, contextlib.nullcontext),
        "pinned": (pinned, contextlib.nullcontext),
        "no mask, pinned": (pinned, no_mask),
        "cuDNN's attention, pinned": (pinned, cudnn),
        **sizes,
    }


def timed(step: Step, first: int, steps: int) -> float:
    """Seconds a step, the device waited for at both ends."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for index in range(first, first + steps):
        step(index)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps


def launched(training: Training, steps: int) -> dict[str, float]:
    """Seconds of forward and backward of one batch without dropout, launched and from a graph."""
    for module in training.model.modules():
        if hasattr(module, "drop_prob"):
            module.drop_prob = 0.0
    batch = training.batch(0, pinned=False)
    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(SEEN):
            training.optimizer.zero_grad(set_to_none=True)
            training.forward_backward(batch)
    torch.cuda.synchronize()
    eager = timed(lambda _: training.forward_backward(batch) and None, 0, steps)
    training.optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        training.forward_backward(batch)
    return {"launched, no dropout": eager, "graph, no dropout": timed(lambda _: graph.replay(), 0, steps)}


def kernels(training: Training) -> tuple[float, list[tuple[str, float]]]:
    """Seconds a step in which the device computes, and the kernels that take most of them, by share."""
    from torch.profiler import ProfilerActivity, profile

    steps = 3
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        timed(lambda index: training.step(index, pinned=True), 0, steps)
    spent = {each.key: each.self_device_time_total / 1e6 for each in found.key_averages()}
    whole = sum(spent.values())
    most = sorted(spent.items(), key=lambda item: -item[1])[:14]
    return whole / steps, [(name[:90], value / whole) for name, value in most]


def first_seen(training: Training, steps: int) -> dict[str, float]:
    """Seconds a step where each batch has a shape that was not seen before, with cuDNN's attention and without."""
    found = {}
    for number, (name, enabled) in enumerate({"new shapes": False, "new shapes, cuDNN's attention": True}.items()):
        torch.backends.cuda.enable_cudnn_sdp(enabled)
        found[name] = timed(lambda index: training.step(index, pinned=True), 50 * (number + 1), steps)
    torch.backends.cuda.enable_cudnn_sdp(False)
    return found


def cudnn() -> contextlib.AbstractContextManager[None]:
    """Attention as PyTorch chooses it."""

    @contextlib.contextmanager
    def chosen() -> Iterator[None]:
        torch.backends.cuda.enable_cudnn_sdp(True)
        yield
        torch.backends.cuda.enable_cudnn_sdp(False)

    return chosen()


def compiled(words: list[str], steps: int) -> dict[str, float]:
    """Seconds a step with compiled layers."""
    training = Training(words)
    compile_layers(training.model.stacks.values())
    for _ in range(2):
        timed(lambda index: training.step(index, pinned=True), 0, steps)
    return {"compiled layers, pinned": timed(lambda index: training.step(index, pinned=True), 0, steps)}


def main() -> None:
    """Print a table for each model, and write the results."""
    options = {"models": "base,tiny", "steps": "20", "rounds": "3"}
    words = [word for word in sys.argv[1:] if word.partition("=")[0] not in options]
    options |= dict(word.split("=", 1) for word in sys.argv[1:] if word not in words)
    steps, found = int(options["steps"]), {}
    for model in options["models"].split(","):
        for precision in ("bf16", "fp32"):
            name, line = f"{model}, {precision}", [*words, f"model={model}", f"training.precision={precision}"]
            found[name] = of(Training(line), steps, int(options["rounds"]))
            found[name]["seconds"] |= compiled(line, steps)
            torch.cuda.empty_cache()
            print(name, json.dumps(found[name]), flush=True)
    for name, rows in found.items():
        table = [[name, "ms", "times as it is"]]
        usual = rows["seconds"]["as it is"]
        table += [[each, f"{1000 * value:.2f}", f"{value / usual:.2f}"] for each, value in rows["seconds"].items()]
        print("\n".join(aligned(table, left=1)))
        print(
            f"busy {rows['busy']:.0%}, padding {rows['padding']:.1%}, {rows['tokens_per_second']:,.0f} target tokens/s"
        )
        print("\n".join(f"  {share:6.1%} {kernel}" for kernel, share in rows["kernels"]))
    content = {**conditions(torch.get_num_threads()), "device": torch.cuda.get_device_name(), "rows": found}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    print(f"Results: {RESULTS}")


def of(training: Training, steps: int, rounds: int) -> dict[str, Any]:
    """All figures of one model."""
    every = variants(training)
    times: dict[str, list[float]] = {name: [] for name in every}
    for number in range(rounds + 1):
        for name, (step, during) in every.items():
            with during():
                seconds = timed(step, 0, steps)
            if number:  # the first round chooses kernels and allocates memory
                times[name].append(seconds)
    seconds = {name: statistics.median(of_all) for name, of_all in times.items()}
    tokens = sum(part.tokens for index in range(steps) for part in training.batches[index]) / steps
    busy, most = kernels(training)
    seconds |= first_seen(training, steps)
    return {
        "seconds": {**seconds, **launched(training, steps)},
        "tokens_per_second": tokens / seconds["as it is"],
        "busy": busy,
        "padding": training.batches.padding_share(),
        "kernels": most,
        "memory": torch.cuda.max_memory_allocated(),
    }


if __name__ == "__main__":
    main()
