"""The private Slurm of the tests: its nodes are machines of their own to ablab, and nothing of it is left behind."""

import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.launchers.slurm_cluster import NODES, cluster, is_possible

pytestmark = pytest.mark.skipif(not is_possible(), reason="needs root, slurm-wlm and munge")

TOLD = "hostname; cat /proc/sys/kernel/random/boot_id; sleep 60"


def test_each_node_is_a_machine_of_its_own_and_nothing_outlives_it():
    with tempfile.TemporaryDirectory(prefix="slurm") as made, cluster(Path(made)) as slurm:
        out = Path(made) / "told"
        for node in NODES:
            slurm.said("sbatch", "-w", node, "-o", f"{out}.{node}", "--wrap", TOLD)
        slurm.until(lambda: all(len(_lines(f"{out}.{node}")) == 2 for node in NODES))
        told = [_lines(f"{out}.{node}") for node in NODES]
        assert sorted(slurm.jobs().values()) == ["RUNNING", "RUNNING"]
    assert [host for host, _ in told] == list(NODES)
    here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert len({here, *(boot for _, boot in told)}) == 1 + len(NODES)
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert made not in processes


def _lines(path):
    return Path(path).read_text().split() if Path(path).exists() else []
