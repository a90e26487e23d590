"""Sentences a second in translating a test set, beside others with the same weights; medians of interleaved rounds.

    python -m benchmarks.speed.decoding run=<id> outputs=outputs data.path=../multi30k [rounds=3] [peers=...]
    RACE_MODEL=tiny python -m benchmarks.speed.decoding run=<id> ...

The model is a finished run's of the race's own size (see benchmarks/speed/task.py; without run= the line that trains
one is printed). CTranslate2 and JoeyNMT get the same weights. CTranslate2 stops and ranks as ablab does, and runs in
each layout of threads, in single precision and in int8. ablab translates in bfloat16, too, where the processor has it.
Loading is not counted. `before=FOLDER`: another checkout of ablab takes part.
"""

import json
import os
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ablab.code.machine import fast_bfloat16
from ablab.store.finished import find_run
from ablab.store.run_folder import SELECTED, RunFolder
from ablab.text import aligned
from benchmarks.speed.field import CACHE, Field, python_of
from benchmarks.speed.machine import conditions
from benchmarks.speed.peers.handed import hand_over
from benchmarks.speed.task import MODEL, ROOT, WORDS

RESULTS = Path(__file__).parents[1] / "results" / f"decoding_{MODEL}.json"
SPEED = "sentences_per_second"
STEPS = {"small": 1500, "tiny": 4000}
"""Steps of training to which the model is as good as converged."""

SEARCHES = {"beam 4": ("decoding=beam",), "greedy": ("decoding=greedy",)}
Race = Callable[[], dict[str, Any]]
"""Sentences a second, BLEU, and where it is ablab's, a hash of the translations."""


def main() -> None:
    """Rounds of every system, for each search."""
    options, field = Field.typed(rounds="3", peers="ctranslate2,joeynmt", run="", outputs="outputs", before="")
    if not options["run"]:
        line = f"python train.py {' '.join((*WORDS, *field.words))} training.max_steps={STEPS[MODEL]}"
        sys.exit(f"error: run=: first type\n{line} training.valid_every=250")
    folder = find_run(options["run"], Path(options["outputs"]))
    racers = _racers(field, folder, options["peers"].split(","), options["before"])
    found: dict[str, dict[str, list[dict[str, Any]]]] = {search: {} for search in SEARCHES}
    for number in range(1, int(options["rounds"]) + 1):
        for search, words in SEARCHES.items():
            for name, race in racers.items():
                if name == JOEY and search == "greedy":
                    continue
                found[search].setdefault(name, []).append(race(*words))
                print(f"round {number}  {search}, {name}: {found[search][name][-1][SPEED]:.0f} sentences/s", flush=True)
    _tell(found, field.threads)


JOEY = "JoeyNMT"


def _racers(field: Field, folder: RunFolder, peers: list[str], before: str) -> dict[str, Any]:
    def ablab(backend: str, *words: str, of: str = "") -> dict[str, Any]:
        path = {"PYTHONPATH": f"{ROOT}{os.pathsep}{of}/src"} if of else {}
        return field.said(
            ["-m", "benchmarks.speed.translating", backend, str(folder.path), str(exported), *words], **path
        )

    exported = CACHE / "ctranslate2" / folder.run_id
    racers: dict[str, Any] = {"ablab": partial(ablab, "ablab")}
    if fast_bfloat16():
        racers["ablab, bf16"] = partial(ablab, "ablab", "decoding.precision=bf16")
    if before:
        racers["ablab before"] = partial(ablab, "ablab", of=before)
    if "ctranslate2" in peers:
        for kind in ("float32", "int8"):
            made = exported / kind
            if not made.exists():
                export = "import sys; from ablab.commands.cli import main; sys.exit(main(sys.argv[1:]))"
                words = ("export", f"run={folder.path}", f"quantization={kind}", f"folder={made}", "check=0")
                field.run(["-c", export, *words])
            for workers in sorted({1, field.threads}):
                shape = f"{workers} x {field.threads // workers} threads"
                racers[f"CTranslate2 {kind}, {shape}"] = partial(ablab, f"{kind}:{workers}")
    if "joeynmt" in peers:
        field.prepared()
        python, checkpoint = python_of("joeynmt"), field.work / "joeynmt" / "handed.ckpt"
        hand_over(folder.checkpoints / SELECTED, checkpoint)
        command = ["-m", "benchmarks.speed.peers.joeynmt", "decode", str(field.work), str(checkpoint)]
        racers[JOEY] = lambda *words: field.said(command, python)
    return racers


def _tell(found: dict[str, dict[str, list[dict[str, Any]]]], threads: int) -> None:
    medians: dict[str, float] = {}
    rows = [["search", "system", "sentences/s", "lowest", "highest", "ablab's share", "BLEU", "translations"]]
    for search, systems in found.items():
        for name, rounds in systems.items():
            speeds = [one[SPEED] for one in rounds]
            medians[f"{name}, {search}"] = middle = statistics.median(speeds)
            share = medians[f"ablab, {search}"] / middle
            figures = [f"{middle:.0f}", f"{min(speeds):.0f}", f"{max(speeds):.0f}", f"{share:.2f}"]
            last = rounds[-1]
            rows.append([search, name, *figures, f"{last['bleu']:.2f}", str(last.get("translations", ""))])
    for line in aligned(rows, left=2):
        print(line.rstrip())
    RESULTS.parent.mkdir(exist_ok=True)
    content = {**conditions(threads), "rounds": found, "medians": medians}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    print(f"Results: {RESULTS}")


if __name__ == "__main__":
    main()
