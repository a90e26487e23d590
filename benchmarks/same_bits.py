"""Whether two checkouts give equal ids and bits: 20 steps of eleven arms, with translations, pruning and analyses.

    python benchmarks/same_bits.py [another checkout ...] [unless=training.precision=bf16]

Without another checkout it prints the bits of this one. Equal bits under different digests of a component of the code
are worth an entry in `src/ablab/code/equal.json`, which is printed; the proof holds for this machine and these
libraries. With `unless`, a component that a rewrite meant to change, its arms are left out, and the entry says so.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]

ARMS = {
    "default": (),
    "scalenorm, LayerDrop, DropHead": ("norm=scalenorm", "layerdrop=0.2", "drophead=constant"),
    "muon": ("optim=muon",),
    "bfloat16": ("training.precision=bf16",),
    "post-norm, word dropout": ("norm=post", "model.word_dropout=0.1", "trainer.micro_batches=2"),
    "fixnorm, xavier, learned": ("norm=fixnorm", "init=xavier", "position=learned", "training.select=averaged"),
    "rmsnorm, rope, swiglu, qk": ("norm=rmsnorm", "position=rope", "feed_forward=swiglu", "attention_norm=qk"),
    "sandwich, dyt, gelu, cosine": (
        *("placement=sandwich", "norm=dyt", "feed_forward=gelu", "optim=adamw"),
        *("schedule=cosine", "optim.lr=0.001"),
    ),
    "deepnorm, valdecay, two tables": (
        *(
            "placement=deepnorm",
            "init=deepnorm",
            "schedule=valdecay",
            "optim.lr=0.001",
            "model.tie=none",
            "data.joint_vocab=false",
        ),
        "model.output_bias=true",
    ),
    "rates, V-shape, wsd, mean": (
        *("layerdrop=0.3", "layerdrop_rates=linear", "drophead=vshape", "schedule=wsd", "optim.lr=0.001"),
        *("training.select=averaged_last", "training.average_every=5", "training.patience=9", "data.lowercase=true"),
    ),
    "plateau": ("schedule=plateau", "schedule.decay_patience=1"),
}
LINE = (
    *("training.max_steps=20", "training.valid_every=10", "optim.batch_tokens=512"),
    "training.monitor=loss",  # BLEU is 0 in so short a training, and equal BLEU was not always ordered by the loss
    *("data.train_size=1000", "data.valid_size=20", "data.test_size=20", "data.vocab_size=300"),
    *("model.d_model=64", "model.d_ff=128", "trainer.threads=1", "trainer.progress=false"),
    *("decoding.max_extra_tokens=10", "pruning=none", "logger=none"),
)
WARM_UP = "optim.warmup_steps=10"
"""Of every arm but that of a schedule that has none."""

PROGRAM = """
import hashlib, json, sys
from pathlib import Path
try:
    from ablab.commands.cli import main
except ImportError:  # a checkout of a time when it stood at the top
    from ablab.cli import main
try:
    from ablab.code.code import code
except ImportError:  # a checkout of before the package had two wings
    from ablab.provenance.code import code
from ablab.store.run_folder import RunFolder

if main(["train", *sys.argv[2:]]):
    sys.exit(1)
import torch

(run,) = (path for path in (Path(sys.argv[1]) / "runs").iterdir() if path.is_dir())
digest = hashlib.sha256()

def add(name, value):
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            add(f"{name}.{key}", value[key])
    elif isinstance(value, torch.Tensor):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, (list, tuple)):
        add(name, dict(enumerate(value)))
    else:
        digest.update(f"{name} {value!r}".encode())

record = json.loads((run / "record.json").read_text())
last = torch.load(run / "checkpoints" / "last.pt", weights_only=True)
add("model", last["model"])
add("optimizer", last["optimizer"]["state"])
add("validations", [[each[key] for key in ("step", "loss", "bleu")] for each in record["validations"]])
bits = [digest.hexdigest()[:16]]
(whole,) = (path for path in (run / "evaluations").glob("*.txt"))
add("translations", whole.read_text())
bits.append(digest.hexdigest()[:16])
words = [f"run={run}", f"outputs={sys.argv[1]}", "logger=none", "trainer.progress=false"]
if main(["prune", *words, "pruning=greedy", "save=none"]):
    sys.exit(1)
for path in sorted((run / "evaluations").glob("*.txt")):
    add("pruned", path.read_text())
add("kept", json.loads((run / "validated_layers.json").read_text()))
bits.append(digest.hexdigest()[:16])
if main(["analyse", *words, "heads=true", "sentences=10"]):
    sys.exit(1)
for path in sorted((run / "artefacts").glob("*.json")):
    found = json.loads(path.read_text())
    if found.get("settings"):
        add(path.name, {key: found.get(key) for key in ("series", "slices")})
bits.append(digest.hexdigest()[:16])
stages = ("training", "evaluation", "curve", "analysis")
try:
    recipe = {**RunFolder(run).recipe(), "pruning": {"kind": "greedy"}, "analysis": "heads"}
    codes = [dict(code(stage, recipe).components) for stage in stages]
except TypeError:  # a checkout of a time when all recipes had one digest
    codes = [{"all": code(stage).digest} for stage in stages]
print(json.dumps({"bits": [record["run_id"], *bits], "codes": codes}))
"""


def main() -> int:
    """A line for each arm and checkout; 1 where they are not equal."""
    unless = [word.partition("=")[2] for word in sys.argv[1:] if word.startswith("unless=")]
    checkouts = [HERE, *(Path(word).resolve() for word in sys.argv[1:] if not word.startswith("unless="))]
    found = {checkout: _of(checkout) for checkout in checkouts}
    compared = [arm for arm in ARMS if not any(_holds(arms[arm]["codes"], unless) for arms in found.values())]
    for arm in ARMS:
        for checkout, arms in found.items():
            left_out = "" if arm in compared else "  left out"
            print(f"{arm:<32}{'  '.join(arms[arm]['bits'])}  {checkout}{left_out}", flush=True)
    if len({str([arms[arm]["bits"][0] for arm in ARMS]) for arms in found.values()}) > 1:
        print("run ids: NOT EQUAL")
        return 1
    for number, stage in enumerate(("training", "evaluation", "curve", "analysis")):
        bits = [[arms[arm]["bits"][1 + number] for arm in compared] for arms in found.values()]
        same = all(each == bits[0] for each in bits)
        print(f"{stage}: {'equal bits' if same else 'NOT EQUAL'}")
        if not same:
            return 1
        for digests in _changed([arms[arm]["codes"][number] for arms in found.values()] for arm in compared):
            entry: dict[str, Any] = {"stage": stage, "digests": digests}
            entry |= {"proof": f"benchmarks/same_bits.py: 20 steps of {len(compared)} arms"}
            of_stage = [arms[arm]["codes"][number] for arms in found.values() for arm in ARMS]
            print(json.dumps(entry | ({"unless": unless} if _holds(of_stage, unless) else {})))
    return 0


def _holds(stages: Sequence[Mapping[str, str]], components: Iterable[str]) -> bool:
    """Return whether a stage of an arm has one of these components."""
    return any(each in components_of for each in components for components_of in stages)


def _changed(arms: Iterable[Sequence[Mapping[str, str]]]) -> list[list[str]]:
    """Return the digests of each component of the code that differs between the checkouts."""
    found = []
    for checkouts in arms:
        for name in sorted(set.intersection(*map(set, checkouts))):
            digests = sorted({components[name] for components in checkouts})
            if len(digests) > 1 and digests not in found:
                found.append(digests)
    return found


def _of(checkout: Path) -> dict[str, dict[str, Any]]:
    """By arm: the run id with the bits up to each stage, and the digests of the code's components for each stage."""
    found = {}
    for arm, words in ARMS.items():
        with tempfile.TemporaryDirectory(prefix="ablab-same-bits-") as outputs:
            warm = () if "schedule=plateau" in words else (WARM_UP,)
            command = [sys.executable, "-c", PROGRAM, outputs, *LINE, *warm, *words, f"outputs={outputs}"]
            environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
            done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=checkout, check=False)
        if done.returncode:
            sys.exit(f"error: {checkout}, {arm}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
        found[arm] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
