"""Seeds of one arm side by side on one GPU against one after another, with CUDA's multi-process service and without.

    python -m benchmarks.gpu.seeds [seeds=4] [steps=400] [words of ablab train]

Whole sweeps are timed, from the line to its end, as people wait for them; the corpus is prepared before. The service
(`nvidia-cuda-mps-control`) is started for the sweeps that use it and ended after them; where it is not installed, these
are left out.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from ablab.store.run_folder import all_runs
from ablab.text import aligned
from benchmarks.speed.machine import conditions
from benchmarks.speed.task import ROOT

RESULTS = Path(__file__).parents[1] / "results" / "gpu_seeds.json"
SERVICE = "nvidia-cuda-mps-control"


@contextmanager
def service(folder: Path) -> Iterator[dict[str, str]]:
    """Run the multi-process service; yield the environment of those who use it."""
    places = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}
    for place in places.values():
        Path(place).mkdir()
    environment = {**os.environ, **places}
    subprocess.run([SERVICE, "-d"], env=environment, check=True)
    try:
        yield environment
    finally:
        subprocess.run([SERVICE], input="quit\n", text=True, env=environment, check=False)


def sweep(words: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Seconds of a sweep."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "ablab", "train", "-m", *words, f"outputs={folder}"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return time.perf_counter() - began


def main() -> None:
    """Time the sweeps, print a table, and write the results."""
    options = {"seeds": "4", "steps": "400"}
    words = [word for word in sys.argv[1:] if word.partition("=")[0] not in options]
    options |= dict(word.split("=", 1) for word in sys.argv[1:] if word not in words)
    count = int(options["seeds"])
    line = [
        *("trainer=gpu", "trainer.threads=2", f"training.max_steps={options['steps']}", "logger=none", "pruning=none"),
        *("trainer.progress=false", *words, f"seed={','.join(map(str, range(1, count + 1)))}"),
    ]
    seconds: dict[str, float] = {}
    digests: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        sweep(
            [*line[:-1], "seed=1", "training.max_steps=2", "training.valid_every=2"], folder / "first", dict(os.environ)
        )
        for name, jobs, serviced in (
            ("one after another", 1, False),
            ("side by side", count, False),
            ("side by side, multi-process service", count, True),
        ):
            if serviced and shutil.which(SERVICE) is None:
                print(f"{SERVICE} is not installed", flush=True)
                continue
            store = folder / f"store{len(seconds)}"
            shutil.copytree(folder / "first" / "corpora", store / "corpora")
            places = [f"hydra.launcher.jobs={jobs}", f"hydra.launcher.per_gpu={jobs}"]
            if serviced:
                (folder / "service").mkdir()
                with service(folder / "service") as environment:
                    seconds[name] = sweep([*line, *places], store, environment)
            else:
                seconds[name] = sweep([*line, *places], store, dict(os.environ))
            records = {run.run_id: record for run in all_runs(store) if (record := run.record()) is not None}
            digests[name] = [str(records[each].selected and records[each].selected.sha256) for each in sorted(records)]
            print(f"{name}: {seconds[name]:.1f} s, {len(records)} runs", flush=True)
    usual = seconds["one after another"]
    equal = {name: found == digests["one after another"] for name, found in digests.items()}
    table = [["seeds of one arm", "seconds", "times as fast", "equal weights"]]
    table += [[name, f"{value:.1f}", f"{usual / value:.2f}", str(equal[name])] for name, value in seconds.items()]
    print("\n".join(aligned(table, left=1)))
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    content = {
        **conditions(torch.get_num_threads()),
        "device": torch.cuda.get_device_name(),
        "seconds": seconds,
        "equal": equal,
    }
    RESULTS.write_text(json.dumps({**known, " ".join(sys.argv[1:]) or "default": content}, indent=1) + "\n")
    print(f"Results: {RESULTS}")


if __name__ == "__main__":
    main()
