"""Training beside others on a GPU, in one process and in turns: translation at `base`, a language model at `gpt2`.

    RACE_MODEL=base RACE_DEVICE=gpu python -m benchmarks.gpu.race data=text ... [rounds=3] [steps=20] [in=bf16,fp32]
    RACE_DEVICE=gpu python -m benchmarks.gpu.race nanogpt=<checkout> task=language_model model=gpt2 ...

Everybody reads text of its own batching, with pinned batches of shapes that come as they come, and takes whole steps:
forward, backward, clipped gradients, a fused Adam. The first round of each is not counted: it builds kernels, and takes
memory. A word of ablab's own goes to ablab. Rates are target tokens a second, those of a language model all tokens.
nanoGPT is its model.py, in the folder that is named, at the same sizes. Exit code 1 if anybody failed. RACE_DEVICE=cpu
tries it out.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import torch

from ablab.config import compose
from ablab.text import aligned
from ablab.transformer.model.modes import compile_layers
from benchmarks.gpu.step import Training
from benchmarks.speed.field import Field
from benchmarks.speed.machine import conditions
from benchmarks.speed.peers import torch_nn
from benchmarks.speed.peers.plain import PLACE, Loop, Model
from benchmarks.speed.task import DEVICE

RESULTS = Path(__file__).parents[1] / "results" / "gpu_race.json"

Step = Callable[[], int]
"""Takes a step; returns its tokens."""


def of_ablab(words: list[str], *, compiled: bool = False) -> Step:
    """The step of a run of ablab."""
    training, numbers = Training(words), count()
    if compiled:
        compile_layers(training.model.stacks.values())
    return lambda: training.step(next(numbers), pinned=DEVICE == "gpu")


def of_loop(model: Model, parameters: list[torch.Tensor], folder: Path, *, bf16: bool) -> Step:
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
        called = torch.compile(model, dynamic=True) if compiled else model
        return of_loop(called, list(model.parameters()), folder, bf16=bf16)

    def marian() -> Step:
        from benchmarks.speed.peers.marian import build

        logits, parameters = build()
        return of_loop(logits, parameters, folder, bf16=bf16)

    return {
        "ablab": lambda: of_ablab(line),
        "ablab, all dropout": lambda: of_ablab([*line, *everywhere]),
        "ablab compiled": lambda: of_ablab(line, compiled=True),
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

    sys.path.insert(0, str(nanogpt))

    def theirs(*, compiled: bool = False) -> Step:
        from model import GPT, GPTConfig  # type: ignore[import-not-found]

        sizes = {"n_layer": chosen.model.decoder_layers, "n_head": chosen.model.num_heads}
        sizes |= {"n_embd": chosen.model.d_model, "vocab_size": chosen.data.vocab_size, "block_size": context}
        model = GPT(GPTConfig(**sizes, dropout=0.0, bias=False)).to(PLACE).train()
        optimizer = model.configure_optimizers(0.1, 1e-5, (0.9, 0.95), PLACE.type)
        called = torch.compile(model) if compiled else model
        drawn = torch.randint(0, chosen.data.vocab_size, (rows, context + 1))

        def step() -> int:
            x, y = (drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous())
            if DEVICE == "gpu":
                x, y = (part.pin_memory().to(PLACE, non_blocking=True) for part in (x, y))
            with torch.autocast(PLACE.type, torch.bfloat16, enabled=precision == "bf16"):
                _, loss = called(x, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return rows * context

        return step

    return {
        "ablab": lambda: of_ablab(line),
        "ablab compiled": lambda: of_ablab(line, compiled=True),
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


def main() -> int:
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
    return 1 if any(content[precision]["failed"] for precision in options["in"].split(",")) else 0


if __name__ == "__main__":
    sys.exit(main())
