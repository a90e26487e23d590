"""A study of 16 runs on a Ray cluster of two nodes of this machine, of which one is lost half-way.

    python benchmarks/node_loss.py [folder]

Every run must end exactly once, with the weights of a study that nobody disturbed.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kills import ROOT, STUDY, command, compare, records

ON_RAY = [word for word in STUDY if not word.startswith("hydra.launcher")]


def main() -> None:
    """Both studies, and what they say of each other."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="nodes."))
    began = time.monotonic()
    subprocess.run(command(folder / "undisturbed"), check=True, capture_output=True)
    print(f"undisturbed, launcher local, jobs=2: {time.monotonic() - began:.0f} s")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    outputs = folder / "lost"
    line = [sys.executable, str(ROOT / "train.py"), "-m", *ON_RAY, f"outputs={outputs}", "hydra/launcher=ray"]
    began = time.monotonic()
    with subprocess.Popen([*line, f"hydra.launcher.address={cluster.address}"]) as process:
        while len(records(outputs)) < 8 and process.poll() is None:
            time.sleep(0.2)
        cluster.remove_node(nodes[0], allow_graceful=False)
        print(f"one node removed with {len(records(outputs))} records written")
    print(f"exit code {process.returncode} after {time.monotonic() - began:.0f} s")
    ours = compare(outputs, folder / "undisturbed")
    began_again = sum(log.read_text().count("continues from step") for log in outputs.glob("runs/*/log.txt"))
    print(f"all {len(ours)} runs ended once ({began_again} continued), all weights are equal, bit for bit")
    cluster.shutdown()


if __name__ == "__main__":
    main()
