"""Sentences a second in translating a test set, beam 4, beside others; medians, everybody in turns.

    python -m benchmarks.speed.decoding run=<id> outputs=outputs data.path=../multi30k [rounds=3] [peers=...]

The model is a finished run's of the race's own size (see benchmarks/speed/task.py; without run= the line that trains
one is printed). CTranslate2 and JoeyNMT get the same weights, so that their translations can be compared with ours.
Loading is not counted.
"""

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ablab.console import aligned
from ablab.store.finished import find_run
from ablab.store.run_folder import SELECTED, RunFolder
from benchmarks.speed.field import CACHE, Field, python_of
from benchmarks.speed.machine import name_of_machine
from benchmarks.speed.peers.handed import hand_over
from benchmarks.speed.task import WORDS

RESULTS = Path(__file__).parents[1] / "results" / "decoding.json"
SPEED = "sentences_per_second"
Race = Callable[[], dict[str, float]]
"""Sentences a second, and BLEU."""


def main() -> None:
    """Rounds of everybody."""
    options, field = Field.typed(rounds="3", peers="ctranslate2,joeynmt", run="", outputs="outputs")
    if not options["run"]:
        sys.exit(f"error: run=: first type\npython train.py {' '.join((*WORDS, *field.words))} training.max_steps=800")
    folder = find_run(options["run"], Path(options["outputs"]))
    racers = _racers(field, folder, options["peers"].split(","))
    found: dict[str, list[dict[str, float]]] = {name: [] for name in racers}
    for number in range(1, int(options["rounds"]) + 1):
        for name, race in racers.items():
            found[name].append(race())
            print(f"round {number}  {name}: {found[name][-1][SPEED]:.0f} sentences/s", flush=True)
    _tell(found, field.threads)


def _racers(field: Field, folder: RunFolder, peers: list[str]) -> dict[str, Race]:
    def ablab(backend: str) -> dict[str, float]:
        return field.said(["-m", "benchmarks.speed.translating", backend, str(folder.path), str(exported)])

    exported = CACHE / "ctranslate2" / folder.run_id
    racers: dict[str, Race] = {"ablab": lambda: ablab("ablab")}
    if "ctranslate2" in peers:
        for kind in ("float32", "int8"):
            made = exported / kind
            if not made.exists():
                field.run(
                    [
                        "-c",
                        "import sys; from ablab.cli import main; sys.exit(main(sys.argv[1:]))",
                        "export",
                        f"run={folder.path}",
                        f"quantization={kind}",
                        f"folder={made}",
                        "check=0",
                    ]
                )
            for processes in (1, field.threads):
                shape = f"{processes} x {field.threads // processes} threads"
                racers[f"CTranslate2, {kind}, {shape}"] = partial(ablab, f"{kind}:{processes}")
    if "joeynmt" in peers:
        field.prepared()
        python, checkpoint = python_of("joeynmt"), field.work / "joeynmt" / "handed.ckpt"
        hand_over(folder.checkpoints / SELECTED, checkpoint)
        command = ["-m", "benchmarks.speed.peers.joeynmt", "decode", str(field.work), str(checkpoint)]
        racers["JoeyNMT"] = lambda: field.said(command, python)
    return racers


def _tell(found: dict[str, list[dict[str, float]]], threads: int) -> None:
    medians = {name: statistics.median(one[SPEED] for one in all_) for name, all_ in found.items()}
    rows = [["system", "sentences/s", "lowest", "highest", "ablab's share", "BLEU"]]
    for name, rounds in found.items():
        speeds, bleu = [one[SPEED] for one in rounds], f"{rounds[0]['bleu']:.2f}"
        share = f"{medians['ablab'] / medians[name]:.2f}"
        rows.append([name, f"{medians[name]:.0f}", f"{min(speeds):.0f}", f"{max(speeds):.0f}", share, bleu])
    for line in aligned(rows, left=1):
        print(line.rstrip())
    RESULTS.parent.mkdir(exist_ok=True)
    content = {"machine": name_of_machine(), "threads": threads, "rounds": found, "medians": medians}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    print(f"Results: {RESULTS}")


if __name__ == "__main__":
    main()
