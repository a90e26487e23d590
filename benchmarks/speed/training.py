"""Target tokens a second in training, beside others: medians, everybody in turns, the machine's limit in the same run.

    python -m benchmarks.speed.training data.path=../multi30k [rounds=3] [steps=40] [systems=ablab,torch] [in=fp32]
    RACE_MODEL=tiny python -m benchmarks.speed.training data.path=../multi30k
    RACE_MODEL=base RACE_DEVICE=gpu python -m benchmarks.speed.training data=text ... systems=ablab,compiled,torch

ablab runs as it is typed: through Lightning, with logging, Weights & Biases offline and checkpoints; validation is not
counted. Plain loops use the fused Adam. Two pairs are alike: ablab's presets and torch.nn with dropout after sublayers
alone, and both with dropout of attention weights and activations besides (`all dropout`). `compiled`: both by
torch.compile, ablab's layers and the whole of the other.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from ablab.store.metrics import read_metrics
from ablab.text import aligned
from benchmarks.speed.field import Field, python_of
from benchmarks.speed.machine import conditions
from benchmarks.speed.task import DEVICE, DROPOUT, LOOK, MODEL

RESULTS = Path(__file__).parents[1] / "results" / f"training_{MODEL}{'_gpu' * (DEVICE == 'gpu')}.json"
LIMIT = "matrix products alone"
KEY = "tokens_per_second"

ALL = ", all dropout"
COMPILED = " compiled"
EVERYWHERE = tuple(f"model.{place}_dropout={DROPOUT}" for place in ("attention", "activation"))

Race = Callable[[], list[float]]
"""Target tokens a second, look by look."""


def main() -> None:
    """Rounds of everybody."""
    usual = {"systems": "ablab,torch,transformers,fairseq,joeynmt", "in": "fp32,bf16"}
    options, field = Field.typed(rounds="3", steps="40", **usual)
    prepared, steps = str(field.prepared()), int(options["steps"])
    racers = _racers(field, prepared, steps, options["systems"].split(","), options["in"].split(","))
    rates: dict[str, list[float]] = {name: [] for name in racers}
    for number in range(1, int(options["rounds"]) + 1):
        for name, race in racers.items():
            found = race()
            rates[name] += found
            print(f"round {number}  {name}: {statistics.median(found):,.0f} target tokens/s", flush=True)
    _tell(rates, field.threads)


def _racers(field: Field, prepared: str, steps: int, systems: list[str], precisions: list[str]) -> dict[str, Race]:
    def peer(module: str, *arguments: str, python: Path | str = sys.executable) -> list[float]:
        rates: list[float] = field.said(["-m", f"benchmarks.speed.peers.{module}", *arguments], python)[KEY]
        return rates

    def limit(precision: str) -> list[float]:
        return [field.said(["-m", "benchmarks.speed.machine", precision])[KEY]]

    many = str(steps)
    every: dict[str, dict[str, Race]] = {
        "ablab": {
            **{f"ablab, {p}": partial(_ablab, field, steps, p) for p in precisions},
            **{f"ablab{ALL}, {p}": partial(_ablab, field, steps, p, *EVERYWHERE) for p in precisions},
        },
        "torch": {
            **{f"torch.nn, {p}": partial(peer, "torch_nn", prepared, many, p, "sublayers") for p in precisions},
            **{f"torch.nn{ALL}, {p}": partial(peer, "torch_nn", prepared, many, p, "everywhere") for p in precisions},
        },
        "compiled": {
            **{f"ablab{COMPILED}, {p}": partial(_ablab, field, steps, p, "trainer.compile=true") for p in precisions},
            **{
                f"torch.nn{COMPILED}, {p}": partial(peer, "torch_nn", prepared, many, p, "sublayers", "compile")
                for p in precisions
            },
        },
        "transformers": {
            f"Hugging Face Marian, {p}": lambda p=p: peer("marian", prepared, many, p, python=python_of("transformers"))
            for p in (precisions if DEVICE == "gpu" else ["fp32"])
        },
        "fairseq": {"fairseq, fp32": lambda: peer("fairseq", prepared, many, "fp32", python=python_of("fairseq"))},
        "joeynmt": {
            "JoeyNMT, fp32": lambda: peer("joeynmt", "train", str(field.work), many, python=python_of("joeynmt"))
        },
    }
    chosen = {name: race for system in systems for name, race in every[system].items()}
    chosen |= {f"{LIMIT}, {p}": partial(limit, p) for p in precisions}
    return {name: race for name, race in chosen.items() if name.endswith(tuple(precisions))}


def _ablab(field: Field, steps: int, precision: str, *more: str) -> list[float]:
    """Of every LOOK steps but the first, from the run's own curves."""
    with tempfile.TemporaryDirectory(dir=field.work) as folder:
        corpora = Path(folder) / "corpora"
        corpora.symlink_to(field.outputs / "corpora")
        words = [word for word in field.line if not word.startswith("outputs=")]
        short = ["data.valid_pairs=4", "data.test_pairs=4", f"training.max_steps={steps}"]
        field.run(
            [
                "train.py",
                *words,
                *short,
                *more,
                f"training.valid_every={steps}",
                f"training.precision={precision}",
                f"outputs={folder}",
            ]
        )
        (metrics,) = Path(folder).glob("runs/*/metrics.csv")
        rows = [row[KEY] for row in read_metrics(metrics) if KEY in row]
    return rows[1 : steps // LOOK]


def _tell(rates: dict[str, list[float]], threads: int) -> None:
    medians = {name: statistics.median(found) for name, found in rates.items()}
    rows = [["system", "target tokens/s", "lowest", "highest", "times torch.nn", "share of the matrix products' limit"]]
    for name, found in rates.items():
        limit = medians[f"{LIMIT}, {name.rpartition(', ')[2]}"]
        rows.append(
            [
                name,
                f"{medians[name]:,.0f}",
                f"{min(found):,.0f}",
                f"{max(found):,.0f}",
                f"{medians[name] / medians[base]:.2f}" if (base := _alike(name)) in medians else "",
                f"{100 * medians[name] / limit:.0f} %",
            ]
        )
    for line in aligned(rows, left=1):
        print(line.rstrip())
    device = {"device": torch.cuda.get_device_name()} if DEVICE == "gpu" else {}
    content = {**conditions(threads), **device, "rates": rates, "medians": medians}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    print(f"Results: {RESULTS}")


def _alike(name: str) -> str:
    """Return torch.nn with dropout at the same places, in single precision."""
    return f"torch.nn{ALL * (ALL in name)}, fp32"


if __name__ == "__main__":
    main()
