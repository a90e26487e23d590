"""Training beside others on a GPU, in one process and in turns: translation at `base`, a language model at `gpt2`.

    RACE_MODEL=base RACE_DEVICE=gpu python -m benchmarks.gpu.race data=text ... [rounds=3] [steps=20] [in=bf16,fp32]
    RACE_DEVICE=gpu python -m benchmarks.gpu.race nanogpt=<checkout> task=language_model model=gpt2 ...

Everybody reads text of its own batching, with pinned batches of shapes that come as they come, and takes whole steps:
forward, backward, clipped gradients, a fused Adam. The first round of each is not counted: it builds kernels, and takes
memory. A word of ablab's own goes to ablab. Rates are target tokens a second, those of a language model all tokens.
nanoGPT is a model of as many layers and words, its model.py in the folder that is named. RACE_DEVICE=cpu tries it out.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ablab.config import compose
from ablab.tasks.plan import plan
from ablab.text import aligned
from ablab.tracking.console import Console
from ablab.transformer.data.prepared import prepare
from ablab.transformer.language_model.training import _prepare as prepare_text
from ablab.transformer.model.modes import compile_layers
from ablab.transformer.model.streams import reseed
from ablab.transformer.stages.builders import Trainable, build_objective, limit
from ablab.transformer.training.state import TrainingState
from ablab.transformer.translation.training import TranslationTrainable
from benchmarks.speed.field import Field
from benchmarks.speed.machine import conditions
from benchmarks.speed.peers import torch_nn
from benchmarks.speed.peers.plain import PLACE, Loop
from benchmarks.speed.task import DEVICE

RESULTS = Path(__file__).parents[1] / "results" / "gpu_race.json"

Step = Callable[[], int]
"""Takes a step; returns its tokens."""


class Ours:
    """A run of ablab: the steps that its training module takes."""

    def __init__(self, words: list[str], *, compiled: bool = False) -> None:
        planned = plan(compose(words))
        config: Any = planned.config
        trainable = self.trainable(planned)
        self.model = trainable.model().to(PLACE).train()
        self.steps = limit(trainable.steps(), config)
        self.objective = build_objective(config, TrainingState(kind=trainable.validation))
        self.optimizer = self.objective.optimizer(list(self.model.named_parameters()))
        self.bf16 = config.training.precision == "bf16"
        if compiled:
            compile_layers(self.model.stacks.values())
        self.batches = self._batches()

    def trainable(self, planned: Any) -> Trainable[Any]:
        """What is trained, on prepared text."""
        if hasattr(planned.config.model, "context"):
            return prepare_text(planned, Console())
        return TranslationTrainable(
            planned.config, prepare(planned.config.data, planned.outputs / "corpora", print), None
        )

    def _batches(self) -> Iterator[tuple[int, Any]]:
        for number in range(1_000_000):
            (batch,) = self.steps[number]
            yield number, batch

    def step(self) -> int:
        """Take the next step."""
        number, batch = next(self.batches)
        parts = [part.pin_memory() if DEVICE == "gpu" else part for part in batch]
        moved = type(batch)(*(part.to(PLACE, non_blocking=True) for part in parts))
        reseed(self.model, 1, step=number + 1, micro_batch=0)
        with torch.autocast(PLACE.type, torch.bfloat16, enabled=self.bf16):
            found = self.objective.loss(self.model, moved)
        (found.total / batch.tokens).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = 1e-5
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return int(batch.tokens)


def of_loop(model: nn.Module, parameters: list[torch.Tensor], folder: Path, *, bf16: bool) -> Step:
    """The step of a tutorial's loop."""
    loop = Loop(model, parameters, folder, bf16=bf16)
    return lambda: loop.step()[0]


def translators(words: list[str], folder: Path, precision: str) -> dict[str, Callable[[], Step]]:
    """Name -> what makes its step."""
    bf16 = precision == "bf16"
    line = [*words, f"training.precision={precision}"]
    everywhere = [f"model.{place}_dropout=0.1" for place in ("attention", "activation")]

    def plain(dropout_in: str, *, compiled: bool = False) -> Step:
        model = torch_nn.Model(dropout_in).train().to(PLACE)
        called: Any = torch.compile(model, dynamic=True) if compiled else model
        return of_loop(called, list(model.parameters()), folder, bf16=bf16)

    def marian() -> Step:
        from benchmarks.speed.peers.marian import build

        logits, parameters = build()
        return of_loop(logits, parameters, folder, bf16=bf16)  # type: ignore[arg-type]

    return {
        "ablab": lambda: Ours(line).step,
        "ablab, all dropout": lambda: Ours([*line, *everywhere]).step,
        "ablab compiled": lambda: Ours(line, compiled=True).step,
        "torch.nn": lambda: plain("sublayers"),
        "torch.nn, all dropout": lambda: plain("everywhere"),
        "torch.nn compiled": lambda: plain("sublayers", compiled=True),
        "Hugging Face Marian": marian,
    }


def language_models(words: list[str], nanogpt: Path, precision: str) -> dict[str, Callable[[], Step]]:
    """Name -> what makes its step: ablab's, and nanoGPT's model in a loop like that of its train.py."""
    line = [*words, f"training.precision={precision}"]
    chosen: Any = compose(line).config
    context = chosen.model.context
    rows = chosen.optim.batch_tokens // context

    def theirs(*, compiled: bool = False) -> Step:
        sys.path.insert(0, str(nanogpt))
        from model import GPT, GPTConfig  # type: ignore[import-not-found]

        sizes = GPTConfig(block_size=context, vocab_size=chosen.data.vocab_size, dropout=0.0, bias=False)
        model = GPT(sizes).to(PLACE).train()
        optimizer = model.configure_optimizers(0.1, 1e-5, (0.9, 0.95), PLACE.type)
        called = torch.compile(model) if compiled else model
        drawn = torch.randint(0, chosen.data.vocab_size, (rows, context + 1))

        def step() -> int:
            x, y = (part.contiguous().pin_memory() for part in (drawn[:, :-1], drawn[:, 1:]))
            x, y = (part.to(PLACE, non_blocking=True) for part in (x, y))
            with torch.autocast(PLACE.type, torch.bfloat16, enabled=precision == "bf16"):
                _, loss = called(x, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return rows * context

        return step

    return {
        "ablab": lambda: Ours(line).step,
        "ablab compiled": lambda: Ours(line, compiled=True).step,
        "nanoGPT": theirs,
        "nanoGPT compiled": lambda: theirs(compiled=True),
    }


def rates(racers: dict[str, Callable[[], Step]], steps: int, rounds: int) -> dict[str, Any]:
    """Tokens a second by round, and seconds until the first round was done. Who fails is left out, and said."""
    made: dict[str, Step] = {}
    found: dict[str, Any] = {"rates": {}, "seconds of the first round": {}, "memory": {}, "failed": {}}
    for name, make in racers.items():
        began = time.perf_counter()
        with failing(found["failed"], name):
            made[name] = make()
            if DEVICE == "gpu":
                torch.cuda.reset_peak_memory_stats()
            held = _memory()
            _rate(made[name], steps)
            found["memory"][name] = _memory(peak=True) - held
            found["seconds of the first round"][name] = round(time.perf_counter() - began, 1)
            found["rates"][name] = []
            print(f"  {name}: first round {time.perf_counter() - began:.1f} s", flush=True)
    for _ in range(rounds):
        for name in found["rates"]:
            found["rates"][name].append(round(_rate(made[name], steps)))
    return found


@contextmanager
def failing(into: dict[str, str], name: str) -> Iterator[None]:
    """Keep the error of one racer, so that the others go on."""
    try:
        yield
    except Exception as error:
        into[name] = f"{type(error).__name__}: {str(error)[-300:]}"
        print(f"  {name}: {into[name]}", flush=True)


def _memory(*, peak: bool = False) -> int:
    """Bytes of tensors on the GPU; 0 without one."""
    if DEVICE == "cpu":
        return 0
    return torch.cuda.max_memory_allocated() if peak else torch.cuda.memory_allocated()


def _rate(step: Step, steps: int) -> float:
    wait = torch.cuda.synchronize if DEVICE == "gpu" else lambda: None
    wait()
    began = time.perf_counter()
    tokens = sum(step() for _ in range(steps))
    wait()
    return tokens / (time.perf_counter() - began)


def main() -> None:
    """Print a table for each precision, and write the results."""
    options, field = Field.typed(rounds="3", steps="20", nanogpt="", **{"in": "bf16,fp32"})
    model = "language model" if options["nanogpt"] else "translation"
    content: dict[str, Any] = {**conditions(torch.get_num_threads()), "command": " ".join(sys.argv[1:])}
    content["device"] = torch.cuda.get_device_name() if DEVICE == "gpu" else "cpu"
    for precision in options["in"].split(","):
        print(f"{model}, {precision}", flush=True)
        if options["nanogpt"]:
            racers = language_models(list(field.words), Path(options["nanogpt"]), precision)
        else:
            words = [word for word in field.line if not word.startswith("pruning=")]
            racers = translators(words, field.prepared(), precision)
        found = rates(racers, int(options["steps"]), int(options["rounds"]))
        content[precision] = found
        table = [["system", "tokens/s", "lowest", "highest", "GB"]]
        for name, measured in found["rates"].items():
            figures = (statistics.median(measured), min(measured), max(measured))
            table.append([name, *(f"{each:,.0f}" for each in figures), f"{found['memory'][name] / 1e9:.2f}"])
        print("\n".join(aligned(table, left=1)), flush=True)
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**known, model: content}, indent=1) + "\n")
        if DEVICE == "gpu":
            torch.cuda.empty_cache()
    print(f"Results: {RESULTS}")


if __name__ == "__main__":
    main()
