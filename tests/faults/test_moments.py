"""Signals at random moments, many launchers of one line, clocks that jump: the run ends as if nothing had happened."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ablab.errors import BUSY, DONE
from tests.faults.conftest import LINE, result_of

pytestmark = pytest.mark.faults

SIGNALS = {
    "KILL": (signal.SIGKILL,),
    "TERM": (signal.SIGTERM,),
    "INT": (signal.SIGINT,),
    "HUP": (signal.SIGHUP,),
    "STOP and CONT": (signal.SIGSTOP, signal.SIGCONT),
    "TERM twice": (signal.SIGTERM, signal.SIGTERM),
}

MOMENTS = 6
"""Moments at which each signal comes."""

LAUNCHERS = 50

LONGEST = 9.0
"""Seconds within which a moment is drawn: a run takes about as long, imports included."""


def started(outputs: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "ablab", *LINE, "logger=none", f"outputs={outputs}", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_at_any_moment_loses_nothing(name, disturber, undisturbed, tmp_path):
    moments = random.Random(name)
    for number in range(MOMENTS):
        outputs, moment = tmp_path / str(number), moments.uniform(0.3, LONGEST)
        process = started(outputs)
        time.sleep(moment)
        for each in SIGNALS[name]:
            process.send_signal(each)
            time.sleep(0.2)
        said, _ = process.communicate(timeout=120)
        told = f"{name} after {moment:.2f} s ended with {process.returncode}:\n{said}"
        # While Python itself starts, nothing of ours catches a signal.
        assert "Traceback" not in said or "import" in said, told
        again = disturber.run(*LINE, "logger=none", f"outputs={outputs}", below=outputs)
        assert again.code == 0, f"{told}\n{again.said}"
        assert result_of(outputs) == undisturbed[1], told


@pytest.mark.timeout(900)
def test_of_many_launchers_one_trains(undisturbed, tmp_path):
    processes = [started(tmp_path, "trainer.progress=false") for _ in range(LAUNCHERS)]
    ended = [(process.communicate(timeout=600)[0], process.returncode) for process in processes]
    for said, code in ended:
        assert code in (DONE, BUSY), said
        assert "Traceback" not in said, said
        assert (code == BUSY) == ("is being worked on by" in said), said
    trained = [said for said, code in ended if code == DONE and "nothing is trained again" not in said]
    assert len(trained) == 1
    assert result_of(tmp_path) == undisturbed[1]


@pytest.mark.parametrize("jump", [-86400.0, -60.0, 3600.0], ids=["a day back", "a minute back", "an hour on"])
def test_a_clock_that_jumps_in_mid_run_changes_no_number(jump, undisturbed, tmp_path):
    program = (
        "import sys, time\n"
        "from ablab.transformer.training.checkpoints import Checkpoints\n"
        "real, saved, ahead = time.time, Checkpoints.save, [0.0]\n"
        "time.time = lambda: real() + ahead[0]\n"
        "def save(self, *values):\n"
        f"    ahead[0] = {jump}\n"
        "    return saved(self, *values)\n"
        "Checkpoints.save = save\n"
        "from ablab.commands.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = (*LINE, "logger=none", f"outputs={tmp_path}")
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again = subprocess.run([sys.executable, "-m", "ablab", *words], capture_output=True, text=True, check=False)
    assert "nothing is trained again" in again.stdout
    assert result_of(tmp_path) == undisturbed[1]
    (record,) = tmp_path.glob("smoke/runs/*/record.json")
    assert '"seconds":-' not in record.read_text().replace(" ", "")
