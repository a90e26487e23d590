"""Whether ablab does on a GPU what it does on the CPU: every arm, resume, decoding, pruning, several runs at a time.

    python -m benchmarks.gpu.check [device=gpu] [only=arms,resume] [steps=20] [jobs=1]

Each line types ablab's own commands in a store of its own, on the device and on the CPU, with dropout off, and compares
what the runs left. Commands are forked from a process that has imported what they import, which takes longer than most
of them; sweeps and what is killed start as they are typed. `jobs`: commands at a time, each with one thread.
`device=cpu` compares the CPU with itself, where everything must hold. Exit code 1 if anything does not. Results of a
GPU are written with the machine and the commit.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Semaphore
from typing import NamedTuple

import torch

from ablab.commands.cli import main as command_line
from ablab.store.metrics import read_metrics
from ablab.store.run_folder import RunFolder, all_runs
from ablab.text import aligned
from benchmarks.speed.machine import conditions
from benchmarks.speed.task import ROOT

RESULTS = Path(__file__).parents[1] / "results" / "gpu_check.json"

LINE = (
    *("data.train_size=2000", "data.valid_size=40", "data.test_size=40", "data.vocab_size=300", "model.d_model=64"),
    *("model.d_ff=128", "model.dropout=0", "training.valid_every=2", "schedule.warmup_steps=10", "logger=none"),
    *("decoding.max_extra_tokens=10", "trainer.progress=false", "trainer.threads=1"),
)
LANGUAGE_MODEL = (
    *("task=language_model", "data.train_size=2000", "data.valid_size=40", "data.test_size=40", "data.tokenizer=char"),
    *("model.d_model=64", "model.d_ff=128", "model.dropout=0", "model.context=64", "optim.batch_tokens=1024"),
    *("training.valid_every=2", "schedule.warmup_steps=10", "logger=none"),
    *("trainer.progress=false", "trainer.threads=1"),
)
ARMS = {
    **{f"norm={norm}": (f"norm={norm}",) for norm in ("pre", "post", "scalenorm", "fixnorm", "scalenorm_fixnorm")},
    **{f"norm={norm}": (f"norm={norm}",) for norm in ("rmsnorm", "dyt", "qk", "deepnorm")},
    **{f"position={kind}": (f"position={kind}",) for kind in ("learned", "none", "rope")},
    **{f"feed_forward={kind}": (f"feed_forward={kind}",) for kind in ("gelu", "swiglu")},
    "placement=sandwich": ("placement=sandwich",),
    "two micro-batches": ("trainer.micro_batches=2",),
    "optim=muon": ("optim=muon",),
}
LANGUAGE_MODELS = {
    "a language model": (),
    "a language model like Llama": ("norm=rmsnorm", "position=rope", "feed_forward=swiglu"),
    "a language model like GPT-2": ("position=learned", "feed_forward=gelu_tanh", "embedding=plain"),
}
TOLERANCE = {"fp32": 1e-3, "bf16": 3e-2}
"""Largest relative difference of a validation loss within the first steps: rounding grows with each of them."""

SENTENCES = "".join(f"{one} {two} {three}\n" for one in "abc" for two in "12345" for three in ("one", "ninety", "x"))
"""What the devices translate: whatever the model makes of it, it must be the same."""

DRAWN = ("layerdrop=0.2", "drophead=constant", "model.dropout=0.1", "model.attention_dropout=0.1")
"""What draws random numbers: those of a GPU are others, so that losses are compared loosely."""

LOOSE = 0.1


class Found(NamedTuple):
    """A line of the table."""

    check: str
    holds: bool
    figure: str


class FailedError(Exception):
    """A command that should have worked."""


COMMAND = (sys.executable, "-m", "ablab")
FORKED = multiprocessing.get_context("forkserver")
IMPORTED = [
    *("pytorch_lightning", "sacrebleu", "ablab.commands.cli", "benchmarks.speed.machine"),
    *("ablab.transformer.translation.training", "ablab.transformer.translation.evaluate"),
    "ablab.transformer.language_model.training",
]
"""Modules that the commands import, once for all of them."""

WRITTEN = os.O_WRONLY | os.O_CREAT


def _forked(words: list[str], given: Path, out: Path, errors: Path) -> None:
    """Be the command `ablab` with these words, its streams in files."""
    os.chdir(ROOT)
    for stream, (path, flags) in enumerate(((given, os.O_RDONLY), (out, WRITTEN), (errors, WRITTEN))):
        os.dup2(os.open(path, flags, 0o600), stream)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(stream, mode) for stream, mode in enumerate("rww"))
    sys.exit(command_line(words))


class Bench:
    """Types commands on the device or on the CPU, each in a store of its own."""

    def __init__(self, device: str, steps: int, folder: Path, jobs: int) -> None:
        self.device, self.folder = device, folder
        self.length = f"training.max_steps={steps}"
        self._count, self._places = count(), Semaphore(jobs)

    def line(self, *words: str, device: str, store: Path) -> list[str]:
        """Return the words of a training."""
        places = () if any(word.startswith("trainer=") for word in words) else (f"trainer={device}",)
        usual = () if words[: len(LANGUAGE_MODEL)] == LANGUAGE_MODEL else LINE
        return ["train", *usual, self.length, *places, *words, f"outputs={store}"]

    def start(self, words: list[str]) -> None:
        """Run a command as it is typed; FailedError if it fails."""
        with self._places:
            done = subprocess.run(
                [*COMMAND, *words], capture_output=True, text=True, env=environment(), check=False, cwd=ROOT
            )
        if done.returncode:
            raise FailedError((done.stderr.strip().splitlines() or ["no word"])[-1])

    def new_store(self) -> Path:
        return self.folder / str(next(self._count))

    def train(self, *words: str, device: str | None = None) -> RunFolder:
        """Train a run and return its folder."""
        store = self.new_store()
        self.run(self.line(*words, "pruning=none", device=device or self.device, store=store))
        (found,) = all_runs(store)
        return found

    def run(self, words: list[str], *, fails: bool = False, typed: str = "") -> str:
        """Return what a command prints; FailedError if it fails. With `fails` it must, and its errors are returned."""
        place = self.new_store()
        place.mkdir()
        given, out, errors = (place / name for name in ("given", "out", "errors"))
        given.write_text(typed)
        with self._places:
            process = FORKED.Process(target=_forked, args=(words, given, out, errors))
            process.start()
            process.join()
        if bool(process.exitcode) != fails:
            said = errors.read_text().strip().splitlines() or out.read_text().strip().splitlines()
            raise FailedError((said or ["no word"])[-1])
        return out.read_text() + errors.read_text() * fails


def environment() -> dict[str, str]:
    """Return that of every command: this checkout's code, before whatever else is named."""
    places = [str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places)}


def losses(folder: RunFolder) -> list[float]:
    """Return the validation losses of a run."""
    rows = read_metrics(folder.metrics)
    return [float(row["valid_loss"]) for row in rows if row.get("valid_loss") is not None]


def apart(ours: RunFolder, other: RunFolder) -> float:
    """Return the largest relative difference of the validation losses of two runs."""
    return max(abs(a - b) / abs(b) for a, b in zip(losses(ours), losses(other), strict=True))


def arms(bench: Bench) -> Iterator[Found]:
    """Every arm in both precisions against the CPU in the same precision."""
    every: dict[str, tuple[tuple[str, ...], float | None]] = {name: (words, None) for name, words in ARMS.items()}
    every |= {name: ((*LANGUAGE_MODEL, *words), None) for name, words in LANGUAGE_MODELS.items()}
    every["dropout, LayerDrop, DropHead"] = (DRAWN, LOOSE)
    asked = [
        (f"{name}, {precision}", (*words, f"training.precision={precision}"), most or usual)
        for precision, usual in TOLERANCE.items()
        for name, (words, most) in every.items()
    ]
    with ThreadPoolExecutor(len(asked)) as pool:
        for found in pool.map(lambda one: list(_safely(one[0], lambda bench: [_compared(bench, *one)], bench)), asked):
            yield from found


def _compared(bench: Bench, name: str, words: tuple[str, ...], most: float) -> Found:
    difference = apart(bench.train(*words), bench.train(*words, device="cpu"))
    return Found(name, difference <= most, f"losses within {difference:.2g} (allowed {most:g})")


def compiled(bench: Bench) -> Iterator[Found]:
    """`trainer.compile=true` against the same device without."""
    difference = apart(bench.train("trainer.compile=true"), bench.train())
    yield Found("trainer.compile=true", difference <= TOLERANCE["fp32"], f"losses within {difference:.2g}")


def repeated(bench: Bench) -> Iterator[Found]:
    """The same line in two stores."""
    difference = apart(bench.train(*DRAWN), bench.train(*DRAWN))
    yield Found("the same line twice", difference == 0, f"losses within {difference:.2g} (allowed 0)")


def resume(bench: Bench) -> Iterator[Found]:
    """A run that is killed after a checkpoint goes on, and ends as an undisturbed one."""
    whole, store = bench.train(*DRAWN), bench.new_store()
    words = bench.line("pruning=none", *DRAWN, device=bench.device, store=store)
    nothing = subprocess.DEVNULL
    with subprocess.Popen([*COMMAND, *words], env=environment(), cwd=ROOT, stdout=nothing, stderr=nothing) as going:
        while going.poll() is None and not list(store.glob("runs/*/checkpoints/last.pt")):
            time.sleep(0.02)
        going.send_signal(signal.SIGKILL)
    bench.run(words)
    (found,) = all_runs(store)
    record = found.record()
    times = 0 if record is None else len(record.stretches)
    difference = apart(found, whole)
    yield Found("killed and resumed", difference == 0, f"{times} stretches, losses within {difference:.2g} (allowed 0)")


def decoding(bench: Bench) -> Iterator[Found]:
    """One model's translations, by both devices."""
    folder = bench.train("training.max_steps=300", "training.valid_every=150")
    for size in (1, 4):
        asked = ["translate", f"run={folder.path}", f"beam_size={size}"]
        told = [bench.run([*asked, f"device={device}"], typed=SENTENCES) for device in (bench.device, "cpu")]
        different = sum(ours != other for ours, other in zip(*(text.splitlines() for text in told), strict=True))
        yield Found(f"translations, beam {size}", not different, f"{different} of {len(told[0].splitlines())} differ")


def curves(bench: Bench) -> Iterator[Found]:
    """A pruning curve on the device, and the same points on the CPU."""
    found = []
    for device in (bench.device, "cpu"):
        folder = bench.train(device=device)
        bench.run(["prune", f"run={folder.path}", f"trainer={device}"])
        (curve,) = folder.curves()
        found.append([point.valid["loss"] for point in curve.points])
    difference = max(abs(a - b) / abs(b) for a, b in zip(*found, strict=True))
    yield Found(
        "pruning curve", difference <= TOLERANCE["fp32"], f"{len(found[0])} models, losses within {difference:.2g}"
    )


def processes(bench: Bench) -> Iterator[Found]:
    """`trainer=ddp` with one device, and two runs of a sweep on one device."""
    if bench.device == "gpu":
        difference = apart(bench.train("trainer=ddp", "trainer.devices=1"), bench.train())
        yield Found("trainer=ddp trainer.devices=1", difference == 0, f"losses within {difference:.2g} (allowed 0)")
    store = bench.new_store()
    line = bench.line("pruning=none", "seed=1,2", "hydra.launcher.jobs=2", device=bench.device, store=store)
    per_device = ["hydra.launcher.per_gpu=2"] if bench.device == "gpu" else []
    bench.start(["train", "-m", *line[1:], *per_device])
    alone = [bench.train(f"seed={seed}") for seed in (1, 2)]
    by_seed = {folder.run_id: folder for folder in all_runs(store)}
    difference = max(apart(by_seed[one.run_id], one) for one in alone)
    yield Found("two runs at a time", difference == 0, f"losses within {difference:.2g} of each alone (allowed 0)")


def memory(bench: Bench) -> Iterator[Found]:
    """A batch that no device holds ends in one line."""
    if bench.device == "cpu":
        return
    words = ("model=big", "data.train_size=200000", "optim.batch_tokens=20000000", "pruning=none")
    said = bench.run(bench.line(*words, device=bench.device, store=bench.new_store()), fails=True)
    line = said.strip().splitlines()[-1]
    yield Found("out of memory", "Traceback" not in said and "memory" in line, line[:100])


CHECKS: dict[str, Callable[[Bench], Iterator[Found]]] = {
    **{"arms": arms, "compiled": compiled, "repeated": repeated, "resume": resume, "decoding": decoding},
    **{"curves": curves, "processes": processes, "memory": memory},
}


def main() -> int:
    """Print a line for each check as it ends."""
    options = {"device": "gpu", "only": ",".join(CHECKS), "steps": "20", "jobs": "1"}
    for word in sys.argv[1:]:
        key, _, value = word.partition("=")
        if key not in options:
            sys.exit(f"error: {word}; allowed: {', '.join(options)}")
        options[key] = value
    if options["device"] == "gpu" and not torch.cuda.is_available():
        sys.exit("error: device=gpu: PyTorch sees none; allowed: device=cpu, which compares the CPU with itself")
    found: list[Found] = []

    def told(name: str) -> None:
        for one in _safely(name, CHECKS[name], bench):
            found.append(one)
            print(f"{'holds' if one.holds else 'FAILS'}  {one.check}: {one.figure}", flush=True)

    asked = options["only"].split(",")
    os.environ.update(environment())
    FORKED.set_forkserver_preload(IMPORTED)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options["device"], int(options["steps"]), Path(folder), int(options["jobs"]))
        with ThreadPoolExecutor(len(CHECKS)) as pool:
            list(pool.map(told, [name for name in asked if name != "memory"]))
        for name in set(asked) & {"memory"}:  # alone, as it takes all that the device has
            told(name)
    failed = [one for one in found if not one.holds]
    for line in aligned([["check", "figure"], *([one.check, one.figure] for one in failed)], left=2) if failed else ():
        print(line.rstrip())
    print(f"{len(found) - len(failed)} of {len(found)} hold")
    if options["device"] == "gpu":
        _write(found)
    return 1 if failed else 0


def _write(found: list[Found]) -> None:
    checks = [one._asdict() for one in found]
    content = {**conditions(torch.get_num_threads()), "device": torch.cuda.get_device_name(), "checks": checks}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    print(f"Results: {RESULTS}")


def _safely(name: str, check: Callable[[Bench], Iterable[Found]], bench: Bench) -> Iterator[Found]:
    """Yield what a check finds; a command that fails is a line, and the other checks go on."""
    try:
        yield from check(bench)
    except FailedError as error:
        yield Found(name, False, str(error)[:200])


if __name__ == "__main__":
    sys.exit(main())
