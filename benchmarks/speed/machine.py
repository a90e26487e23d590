"""What the machine can do at best: the matrix products of a training step, and nothing else.

python -m benchmarks.speed.machine fp32|bf16      one JSON line
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from ablab.transformer.model.products import add_product, product
from benchmarks.speed.task import BATCH_TOKENS, D_FF, D_MODEL, DEVICE, LAYERS, ROOT, VOCAB

SECONDS = 0.6


def products() -> Iterator[tuple[int, int, int, int]]:
    """(tokens, in, out, how often in a step) of every linear map; attention's own products are left out."""
    yield BATCH_TOKENS, D_MODEL, 3 * D_MODEL, 2 * LAYERS  # queries, keys and values of self-attention
    yield BATCH_TOKENS, D_MODEL, D_MODEL, 4 * LAYERS  # outputs of all attention, queries of cross-attention
    yield BATCH_TOKENS, D_MODEL, 2 * D_MODEL, LAYERS  # keys and values of cross-attention
    yield BATCH_TOKENS, D_MODEL, D_FF, 2 * LAYERS
    yield BATCH_TOKENS, D_FF, D_MODEL, 2 * LAYERS
    yield BATCH_TOKENS, D_MODEL, VOCAB, 1


def main() -> None:
    """Seconds of all products, forward, and backward to inputs and weights, each at its best."""
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[sys.argv[1]]
    seconds = flops = 0.0
    for tokens, inner, outer, often in products():
        x, y, weight = (
            torch.randn(shape).to("cuda" if DEVICE == "gpu" else "cpu", dtype)
            for shape in ((tokens, inner), (tokens, outer), (outer, inner))
        )
        total = torch.zeros_like(weight)
        for each in (
            lambda x=x, w=weight: product(x, w.T),
            lambda y=y, w=weight: product(y, w),
            lambda x=x, y=y, total=total: add_product(total, y, x),
        ):
            seconds += often * best(each)
            flops += often * 2 * tokens * inner * outer
    print(json.dumps({"tokens_per_second": BATCH_TOKENS / seconds, "gflops": flops / seconds / 1e9}))


def conditions(threads: int) -> dict[str, object]:
    """The machine, the threads, PyTorch's version and the commit, for the results of a race."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "machine": name_of_machine(),
        "threads": threads,
        "torch": torch.__version__,
        "commit": commit.stdout.strip(),
        "load": os.getloadavg()[0],
    }


def name_of_machine() -> str:
    """The processor's name, as Linux tells it."""
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text().splitlines() if cpus.exists() else []
    names = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    return ", ".join(sorted(names)) or platform.processor()


def best(work: object) -> float:
    """Seconds of the fastest of many: what the machine does when left alone."""
    assert callable(work)
    fastest, end = float("inf"), time.perf_counter() + SECONDS / 3
    while time.perf_counter() < end:
        began = time.perf_counter()
        work()
        if DEVICE == "gpu":
            torch.cuda.synchronize()
        fastest = min(fastest, time.perf_counter() - began)
    return fastest


if __name__ == "__main__":
    main()
