"""A study of 16 runs, its process tree killed at random moments, the same command each time; then the comparison.

    python benchmarks/kills.py [kills] [folder]

Every run must end exactly once, with the weights of a study that nobody disturbed.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from safetensors.torch import load_file

ROOT = Path(__file__).parents[1]
STUDY = (
    *("norm=pre,post,scalenorm,scalenorm_fixnorm", "layerdrop=0,0.2", "seed=1,2", "hydra.launcher.jobs=2"),
    *("drophead=vshape", "model.word_dropout=0.1", "model.d_model=32", "model.d_ff=64", "model.num_heads=2"),
    *("training.max_steps=200", "training.valid_every=40", "training.average_last=2", "training.select=averaged"),
    *("data.train_size=2000", "data.valid_size=50", "data.test_size=50", "data.vocab_size=300", "logger=none"),
    *("optim.batch_tokens=1024", "schedule.warmup_steps=50", "hydra.launcher.threads=1"),
)
RANDOM = random.Random(1)


def command(outputs: Path) -> list[str]:
    """What a person types."""
    return [sys.executable, str(ROOT / "train.py"), "-m", *STUDY, f"outputs={outputs}"]


def kill_tree(process: "subprocess.Popen[str]") -> None:
    """SIGKILL to the launcher and everything below it, runs in groups of their own included."""
    below = [process.pid]
    for pid in below:
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
        below += [int(child) for child in listed.stdout.split()]
    for pid in below:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


def records(outputs: Path) -> dict[str, int]:
    """When each record was written, by run: one that is written again would show."""
    return {path.parent.name: path.stat().st_mtime_ns for path in (outputs / "runs").glob("r*/record.json")}


def compare(disturbed: Path, undisturbed: Path) -> dict[str, int]:
    """The records of both stores: the same runs, each once, with equal weights."""
    ours, theirs = records(disturbed), records(undisturbed)
    assert set(ours) == set(theirs)
    assert len(ours) == 16
    assert not (disturbed / "superseded").exists()
    for run in ours:
        one, other = (
            load_file(outputs / "runs" / run / "checkpoints" / "selected.safetensors")
            for outputs in (disturbed, undisturbed)
        )
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one), run
    return ours


def main() -> None:
    """Both studies, and what they say of each other."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp(prefix="kills."))
    began = time.monotonic()
    subprocess.run(command(folder / "undisturbed"), check=True, capture_output=True)
    whole = time.monotonic() - began
    print(f"undisturbed: {whole:.0f} s")
    seen: dict[str, int] = {}
    done = 0
    while done < kills:
        process = subprocess.Popen(
            command(folder / "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            code = process.wait(RANDOM.uniform(1.0, max(10.0, 2.2 * whole / kills)))
        except subprocess.TimeoutExpired:
            kill_tree(process)
            done += 1
        else:
            print(f"over after {done} kills, exit code {code}")
            break
        now = records(folder / "killed")
        again = [run for run, at in seen.items() if now.get(run) != at]
        assert not again, f"records that were written again: {again}"
        seen = now
        print(f"kill {done}: {len(now)} records")
    ended = subprocess.run(command(folder / "killed"), capture_output=True, text=True, check=False)
    print(ended.stdout[-1500:], ended.stderr[-500:], f"exit code {ended.returncode}")
    ours = compare(folder / "killed", folder / "undisturbed")
    assert all(ours[run] == at for run, at in seen.items())
    print(f"{done} kills: all {len(ours)} runs ended once, all weights are equal, bit for bit")


if __name__ == "__main__":
    main()
