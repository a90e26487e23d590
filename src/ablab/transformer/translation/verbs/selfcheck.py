"""The `selfcheck` command: a test on this machine that a run killed repeatedly ends with bit-identical results."""

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ablab.config import compose_arm
from ablab.errors import UserError, choices
from ablab.files import sha256
from ablab.store.metrics import read_metrics
from ablab.store.records import Record
from ablab.store.run_folder import SELECTED, RunFolder, all_runs
from ablab.tasks.verbs import read_words
from ablab.tracking.console import Console
from ablab.transformer.translation.verbs.options import SelfcheckOptions

LINE = (
    *("layerdrop=0.2", "drophead=vshape", "model.word_dropout=0.1", "trainer.micro_batches=2"),
    *("model.d_model=64", "model.d_ff=128", "training.max_steps=300", "training.valid_every=50", "training.patience=9"),
    *("training.select=averaged", "training.average_last=3", "data.train_size=4000", "data.valid_size=100"),
    *("data.test_size=100", "data.vocab_size=500", "optim.batch_tokens=1024", "schedule.warmup_steps=100"),
    "logger=none",
)
"""Settings with every random component active and with gradient accumulation."""

OF_TIME = ("seconds", "tokens_per_second")
"""Columns of curves."""

SOURCE = "import sys; from ablab.commands.cli import main; sys.exit(main(['train', *sys.argv[1:]]))"
KINDS = ("resume",)


def selfcheck(arguments: Sequence[str]) -> int:
    """Run `selfcheck resume`; return 0 if all results are equal."""
    kind, *rest = arguments or [""]
    if kind not in KINDS:
        raise UserError(f"selfcheck {kind!r}: no such check; {choices(kind, KINDS)}")
    options = read_words(SelfcheckOptions, rest)
    own = options.words.split()
    unread = compose_arm([*LINE, *own]).unread
    line = [*(word for word in LINE if word not in unread), *own]
    console = Console()
    with tempfile.TemporaryDirectory(prefix="ablab-selfcheck-") as folder:
        whole, seconds = _undisturbed(line, Path(folder) / "whole", console)
        killed = _killed(line, Path(folder) / "killed", _record(whole), seconds, options, console)
        return _verdict(whole, killed, console)


def _undisturbed(line: Sequence[str], outputs: Path, console: Console) -> tuple[RunFolder, float]:
    began = time.monotonic()
    done = subprocess.run(_command(line, outputs), capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr or done.stdout).strip().splitlines()[-1].removeprefix("error: ")
        raise UserError(f"the undisturbed run failed: {why}")
    seconds = time.monotonic() - began
    console.say(f"undisturbed: {seconds:.0f} s")
    return _the_run(outputs), seconds


def _killed(
    line: Sequence[str], outputs: Path, whole: Record, seconds: float, options: SelfcheckOptions, console: Console
) -> RunFolder:
    """Kill the run with SIGKILL at random moments, spread so that it progresses between them; then let it finish."""
    moments = random.Random(options.seed)
    training = min(seconds, whole.cost.seconds)
    for number in range(1, options.kills + 1):
        process = subprocess.Popen(_command(line, outputs), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait = 0.6 * (seconds - training) + moments.uniform(0, 2) * training / options.kills
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            console.say(f"kill {number} of {options.kills}: after {wait:.1f} s")
        else:
            console.say(f"kill {number} of {options.kills}: the run was over before")
            break
    if number == 1 and process.returncode != -signal.SIGKILL:
        raise UserError(
            "the run was over before the first kill: nothing is proved; type it again, or with another seed"
        )
    subprocess.run(_command(line, outputs), stdout=subprocess.DEVNULL, check=False)
    return _the_run(outputs)


def _verdict(whole: RunFolder, killed: RunFolder, console: Console) -> int:
    ours, theirs = _compared(killed), _compared(whole)
    differing = {name for name in ours if ours[name] != theirs[name]}
    for name in (name for name in ours if name != "translations" or any(ours[name])):
        console.say(f"{name:<13} {'DIFFER' if name in differing else 'equal, bit for bit'}")
    return 1 if differing else 0


def _compared(run: RunFolder) -> dict[str, Any]:
    evaluations = sorted(run.evaluations(), key=lambda each: each.evaluation_id)  # which end in any order
    return {
        "weights": sha256(run.checkpoints / SELECTED),
        "record": _timeless(_record(run)),
        "curves": [{key: row[key] for key in row if key not in OF_TIME} for row in read_metrics(run.metrics)],
        "translations": [each.hypotheses for each in evaluations],
        "evaluations": [(each.scores, each.items) for each in evaluations],
    }


def _record(run: RunFolder) -> Record:
    record = run.record()
    assert record is not None
    return record


def _timeless(record: Record) -> dict[str, Any]:
    """Return the record without times and facts about the machine, and without the digest of curves that have them."""
    others = {"ended", "provenance", "runtime", "config", "stretches", "metrics"}
    content: dict[str, Any] = record.model_dump(exclude=others)
    content["cost"] = {
        key: content["cost"][key] for key in ("steps", "epochs", "tokens", "parameters", "flops_per_token")
    }
    return content


def _command(line: Sequence[str], outputs: Path) -> list[str]:
    return [sys.executable, "-c", SOURCE, *line, f"outputs={outputs}"]


def _the_run(outputs: Path) -> RunFolder:
    runs = list(all_runs(outputs))
    if len(runs) != 1 or runs[0].record() is None:
        raise UserError(f"{outputs}: the run has not finished; run the line yourself to see why")
    return runs[0]
