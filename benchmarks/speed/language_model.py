"""A language model's training beside nanoGPT's own code: tokens a second and memory in turns, and losses of whole runs.

    python -m benchmarks.speed.language_model nanogpt=<checkout> [rounds=5] [steps=300] [seeds=1,2] [in=fp32,bf16]

The task is nanoGPT's character-level Shakespeare at the size that its README gives for a CPU: 4 layers, width 128, 4
heads, context 64, 12 rows a step, 2,000 steps, no dropout. nanoGPT runs its train.py, which computes in fp32 on a CPU;
its data/shakespeare_char must be prepared. ablab trains the same characters as it is typed, validation not counted.
`seeds`: whole runs of both, with the loss of the last weights on the held-out text, for both on the same windows of 64
characters that do not overlap; empty: none. rounds=0 leaves out the races, and keeps what is known of them.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from ablab.code.machine import cores
from ablab.store.metrics import read_metrics
from ablab.store.records import Record
from ablab.store.run_folder import RunFolder, all_runs
from ablab.text import aligned
from ablab.transformer.language_model.build import load_language_model
from ablab.transformer.pruning.saved_model import of_run
from benchmarks.speed.machine import conditions
from benchmarks.speed.task import LOOK, ROOT

RESULTS = Path(__file__).parents[1] / "results" / "language_model.json"
ROWS, CONTEXT, LAYERS, WIDTH, HEADS, STEPS = 12, 64, 4, 128, 4, 2000
TIMED = re.compile(r"iter (\d+): loss [\d.]+, time ([\d.]+)ms")

THEIRS = (
    "config/train_shakespeare_char.py",
    *(f"--{key}={value}" for key, value in {"device": "cpu", "compile": False, "dtype": "float32"}.items()),
    *(f"--{key}={value}" for key, value in {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH}.items()),
    *(f"--{key}={value}" for key, value in {"block_size": CONTEXT, "batch_size": ROWS, "dropout": 0.0}.items()),
    *("--log_interval=1", "--eval_iters=1", "--always_save_checkpoint=True"),
)
OURS = (
    *("task=language_model", "data=documents", "data.tokenizer=char", f"model.context={CONTEXT}", "model=tiny"),
    *(f"model.d_model={WIDTH}", f"model.d_ff={4 * WIDTH}", f"model.num_heads={HEADS}"),
    *(f"model.decoder_layers={LAYERS}", "model.dropout=0", "model.attention_bias=none", "position=learned"),
    *("norm=pre", "feed_forward=gelu", "embedding=plain", "optim=adamw", "schedule=cosine", "optim.lr=1e-3"),
    *("schedule.min_lr=1e-4", "optim.beta1=0.9", "optim.beta2=0.99", "optim.eps=1e-8"),
    *("optim.weight_decay=0.1", f"optim.batch_tokens={ROWS * CONTEXT}", "pruning=none", "logger=none"),
    *("trainer.progress=false", "training.select=last"),
)


class Race(NamedTuple):
    """Tokens a second, look by look, and the peak of memory in bytes."""

    rates: list[float]
    memory: int


def run(command: list[str], folder: Path) -> tuple[str, int]:
    """Return what a command prints, and the peak of its memory in bytes."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src"), str(folder)]),
        "OMP_NUM_THREADS": str(cores()),
    }
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=out, stderr=errors, env=environment, cwd=folder) as started:
            _, status, usage = os.wait4(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if started.returncode:
            sys.exit(f"error: {' '.join(command)}\n{errors.read()[-2000:]}")
        return out.read(), usage.ru_maxrss * 1024


def theirs(nanogpt: Path, steps: int) -> Race:
    """Time nanoGPT's own loop, whose printed times leave out evaluation."""
    with tempfile.TemporaryDirectory() as out:
        words = [*THEIRS, f"--out_dir={out}", f"--max_iters={steps}", f"--eval_interval={10 * steps}"]
        said, memory = run([sys.executable, "train.py", *words], nanogpt)
    times = [float(found[2]) / 1000 for found in TIMED.finditer(said)][1:]
    looks = [times[begun : begun + LOOK] for begun in range(LOOK, len(times) - LOOK + 1, LOOK)]
    return Race([ROWS * CONTEXT * len(look) / sum(look) for look in looks], memory)


def ours(text: Path, store: Path, steps: int, precision: str, *more: str) -> tuple[Race, RunFolder]:
    """Train as it is typed."""
    words = [f"data.train={text / 'train.txt'}", f"data.valid={text / 'valid.txt'}", f"data.test={text / 'valid.txt'}"]
    own = [f"training.max_steps={steps}", f"training.valid_every={steps}", f"training.precision={precision}", *more]
    own.append(f"schedule.warmup_steps={min(100, steps // 2)}")
    line = [*OURS, *words, *own, f"trainer.threads={cores()}", f"outputs={store}"]
    _, memory = run([sys.executable, "train.py", *line], ROOT)
    folder = max(all_runs(store), key=lambda each: each.path.stat().st_mtime)
    rows = [row["tokens_per_second"] for row in read_metrics(folder.metrics) if "tokens_per_second" in row]
    return Race(rows[1 : steps // LOOK], memory), folder


def write_text(nanogpt: Path, folder: Path) -> None:
    """Write the two parts that nanoGPT's preparation makes: the first nine tenths, and the rest."""
    text = (nanogpt / "data" / "shakespeare_char" / "input.txt").read_text()
    cut = int(len(text) * 0.9)
    for name, part in (("train", text[:cut]), ("valid", text[cut:])):
        (folder / f"{name}.txt").write_text(part)


def loss_of_theirs(nanogpt: Path, seed: int) -> dict[str, float]:
    """Train nanoGPT to its end under a seed; its last weights' loss on windows that do not overlap."""
    with tempfile.TemporaryDirectory() as out:
        words = [*THEIRS, f"--max_iters={STEPS}", f"--lr_decay_iters={STEPS}", f"--eval_interval={STEPS}"]
        wrapper = ROOT / "examples" / "nanogpt" / "seeded.py"
        run([sys.executable, str(wrapper), str(seed), out, f"{out}/result.json", *words], nanogpt)
        kept = torch.load(Path(out) / "ckpt.pt", map_location="cpu", weights_only=False)
    sys.path.insert(0, str(nanogpt))
    from model import GPT, GPTConfig  # type: ignore[import-not-found]

    model = GPT(GPTConfig(**kept["model_args"]))
    model.load_state_dict(kept["model"])
    model.eval()
    held = np.fromfile(nanogpt / "data" / "shakespeare_char" / "val.bin", dtype=np.uint16).astype(np.int64)
    with torch.inference_mode():
        return _windows(held, lambda x, y: model(x, y)[0])


def loss_of_ours(text: Path, folder: RunFolder, record: Record) -> dict[str, float]:
    """Return the selected weights' loss on the same windows; the vocabulary has two tokens more, which share in it."""
    model, tokenizer = load_language_model(of_run(folder, record, record.task), torch.device("cpu"))
    model.eval()
    held = np.asarray(tokenizer.encode((text / "valid.txt").read_text())).astype(np.int64)
    with torch.inference_mode():
        return _windows(held, lambda x, _: model.logits(model(x)))


def _windows(held: Any, logits: Any) -> dict[str, float]:
    """Mean loss in nats of each token but the first, given those before it in windows that do not overlap."""
    count = (len(held) - 1) // CONTEXT
    x, y = (torch.from_numpy(held[begun : begun + count * CONTEXT]).view(count, CONTEXT) for begun in (0, 1))
    total = 0.0
    for part in range(0, count, 64):
        found = logits(x[part : part + 64], y[part : part + 64])
        total += float(F.cross_entropy(found.flatten(0, 1).double(), y[part : part + 64].flatten(), reduction="sum"))
    return {"loss": total / (count * CONTEXT)}


def main() -> None:
    """Races in turns, then whole runs."""
    options = {"nanogpt": "", "rounds": "5", "steps": "300", "seeds": "1,2", "in": "fp32,bf16"}
    options |= dict(word.split("=", 1) for word in sys.argv[1:])
    nanogpt, steps = Path(options["nanogpt"]), int(options["steps"])
    if not (nanogpt / "data" / "shakespeare_char" / "val.bin").exists():
        sys.exit("error: nanogpt=: a checkout with prepared data/shakespeare_char is needed; allowed: its folder")
    precisions = [each for each in options["in"].split(",") if each]
    rates: dict[str, list[float]] = {"nanoGPT, fp32": [], **{f"ablab, {each}": [] for each in precisions}}
    memory: dict[str, list[int]] = {name: [] for name in rates}
    losses: dict[str, dict[str, float]] = {"nanoGPT": {}, "ablab": {}}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_text(nanogpt, folder)
        if int(options["rounds"]):
            ours(folder, folder / "store", 20, precisions[0])
        for number in range(1, int(options["rounds"]) + 1):
            for name in rates:
                precision = name.rpartition(", ")[2]
                race = (
                    theirs(nanogpt, steps)
                    if name.startswith("nanoGPT")
                    else ours(folder, folder / "store", steps, precision, f"seed={number}")[0]
                )
                rates[name] += race.rates
                memory[name].append(race.memory)
                print(f"round {number}  {name}: {statistics.median(race.rates):,.0f} tokens/s", flush=True)
        for seed in [each for each in options["seeds"].split(",") if each]:
            losses["nanoGPT"][seed] = loss_of_theirs(nanogpt, int(seed))["loss"]
            _, found = ours(folder, folder / "store", STEPS, "fp32", f"seed={seed}")
            record = found.record()
            assert record is not None
            losses["ablab"][seed] = loss_of_ours(folder, found, record)["loss"]
            both = ", ".join(f"{name} {found_of[seed]:.4f}" for name, found_of in losses.items())
            print(f"seed {seed}  validation loss: {both}", flush=True)
    _tell(rates, memory, losses)


def _tell(rates: dict[str, list[float]], memory: dict[str, list[int]], losses: dict[str, dict[str, float]]) -> None:
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not all(rates.values()):
        RESULTS.write_text(json.dumps({**known, "losses": losses}, indent=1) + "\n")
        return
    medians = {name: statistics.median(found) for name, found in rates.items()}
    most = {name: statistics.median(found) for name, found in memory.items()}
    usual = "nanoGPT, fp32"
    rows = [["system", "tokens/s", "lowest", "highest", "times nanoGPT", "memory, MB", "times nanoGPT"]]
    for name, found in rates.items():
        own = [
            f"{medians[name]:,.0f}",
            f"{min(found):,.0f}",
            f"{max(found):,.0f}",
            f"{medians[name] / medians[usual]:.2f}",
        ]
        rows.append([name, *own, f"{most[name] / 1e6:,.0f}", f"{most[name] / most[usual]:.2f}"])
    for line in aligned(rows, left=1):
        print(line.rstrip())
    losses = losses if any(losses.values()) else known.get("losses", losses)
    content = {**conditions(cores()), "medians": medians, "memory": most, "losses": losses, "rates": rates}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    print(f"Results: {RESULTS}")


if __name__ == "__main__":
    main()
