"""How long the preparation of a corpus takes, and how much memory, beside SentencePiece alone; and a run's start.

    python -m benchmarks.corpora [pairs=300000,1000000,4500000] [vocab=32000] [result=benchmarks/results/corpora.json]

The text is made: 25 words a side on average, as in WMT14, of words that are as frequent as in Zipf's law. Each
measurement is a process of its own, so that its peak of memory and its processor time, its children's included, are
its own. `sentencepiece` trains and encodes the same text with two threads and writes nothing.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

DEFAULTS = {
    "pairs": "300000,1000000,4500000",
    "vocab": "32000",
    "types": "60000",
    "batch_tokens": "25000",
    "measure": "prepare,sentencepiece,start,start again,resume",
    "result": "benchmarks/results/corpora.json",
}
SEED = 1
CHUNK = 50_000
RESUMED = (5, 20)
LETTERS = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))


def words(rng: np.random.Generator, types: int) -> np.ndarray:
    """Return different words, the frequent ones short."""
    found: dict[str, None] = {}
    weights = 1.0 / np.arange(1, len(LETTERS) + 1)
    while len(found) < types:
        size = int(rng.poisson(1 + 2 * np.log10(len(found) + 2))) + 1
        found.setdefault("".join(rng.choice(LETTERS, size=size, p=weights / weights.sum())))
    return np.array(list(found))


def write_text(folder: Path, pairs: int, types: int) -> None:
    """Write train, valid and test in two languages."""
    folder.mkdir(parents=True)
    for number, language in enumerate(("en", "de")):
        rng = np.random.default_rng([SEED, number])
        vocabulary = words(rng, types)
        ranked = np.cumsum(1.0 / (np.arange(types) + 2.7))
        for name, count in (("train", pairs), ("valid", 2000), ("test", 100)):
            with (folder / f"{name}.{language}").open("w") as file:
                for begun in range(0, count, CHUNK):
                    lengths = np.clip(rng.lognormal(3.05, 0.6, size=min(CHUNK, count - begun)), 1, 180).astype(int)
                    drawn = vocabulary[np.searchsorted(ranked, rng.random(lengths.sum()) * ranked[-1])]
                    file.writelines(" ".join(line) + ".\n" for line in np.split(drawn, np.cumsum(lengths)[:-1]))


def corpus_of(folder: Path, vocab: int) -> Any:
    from ablab.transformer.data.text import Text

    places = {name: str(folder / "text" / name) for name in ("train", "valid", "test")}
    options = {"kind": "text", "src": "en", "tgt": "de", "vocab_size": vocab, "joint_vocab": True, "max_tokens": 250}
    return Text.model_validate({**options, "train_pairs": None, "valid_pairs": None, "test_pairs": None, **places})


def prepared_in(folder: Path, vocab: int) -> Any:
    from ablab.transformer.data.prepared import prepare

    corpus = corpus_of(folder, vocab)
    corpus.check_pairs()
    return prepare(corpus, folder / "store", lambda _: None)


def alone(folder: Path, vocab: int) -> None:
    """Train SentencePiece and encode, as its own documentation says, with two threads and a bounded memory."""
    import sentencepiece

    sides = [folder / "text" / f"train.{language}" for language in ("en", "de")]
    model = folder / "alone"
    sentencepiece.SentencePieceTrainer.train(
        **{"input": [str(side) for side in sides], "model_prefix": str(model), "vocab_size": vocab},
        **{"model_type": "bpe", "character_coverage": 1.0, "num_threads": 2, "minloglevel": 3},
        **{"max_sentence_length": 1 << 24},
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=f"{model}.model")
    for side in sides:
        for lines in chunks(side):
            processor.encode(lines, num_threads=2)


def chunks(path: Path) -> Iterator[list[str]]:
    with path.open() as file:
        while lines := file.readlines(1 << 22):
            yield lines


def child(what: str, folder: Path, vocab: int, batch_tokens: int) -> dict[str, float]:
    """Do one thing in this process; return seconds, processor seconds and GB."""
    from ablab.transformer.data.prepared import Prepared

    began, used = time.perf_counter(), processor()
    extra: dict[str, float] = {}
    if what == "prepare":
        prepared_in(folder, vocab)
    elif what == "sentencepiece":
        alone(folder, vocab)
    else:
        import torch  # noqa: F401, that its import does not count

        (made,) = (path for path in (folder / "store").iterdir() if (path / "manifest.json").exists())
        began, used = time.perf_counter(), processor()
        if what.startswith("start"):
            prepared_in(folder, vocab)
            steps_of(Prepared(made), batch_tokens).padding_share()
        else:
            epoch = int(what.removeprefix("resume "))
            step = int(epoch * extra_steps(made, batch_tokens)) + 1
            began, used = time.perf_counter(), processor()
            steps = steps_of(Prepared(made), batch_tokens)
            steps[step]
            extra["epoch"] = steps.epoch_of(step)
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "processor_seconds": round(processor() - used, 2),
        "peak_gb": round(peak() / 1e9, 3),
        **extra,
    }


def steps_of(prepared: Any, batch_tokens: int) -> Any:
    try:
        from ablab.transformer.data.steps import TrainingSteps
    except ImportError:  # a checkout of a time when it stood elsewhere
        from ablab.transformer.data.batches import TrainingSteps

    src, tgt = prepared.train
    return TrainingSteps(src, tgt, batch_tokens=batch_tokens, seed=1, micro_batches=1, total=1 << 40)


def extra_steps(made: Path, batch_tokens: int) -> float:
    """Return the steps of an epoch, nearly: no epoch has a step more or less than another by much."""
    from ablab.transformer.data.prepared import Prepared

    return float(steps_of(Prepared(made), batch_tokens).steps_in(1))


def processor() -> float:
    return sum(usage.ru_utime + usage.ru_stime for usage in (own(), children()))


def peak() -> float:
    """Return the largest sum seen of this process and its children; without /proc, of their separate peaks."""
    return 1024.0 * (own().ru_maxrss + children().ru_maxrss)


def own() -> Any:
    return resource.getrusage(resource.RUSAGE_SELF)


def children() -> Any:
    return resource.getrusage(resource.RUSAGE_CHILDREN)


def measured(what: str, folder: Path, options: dict[str, str]) -> dict[str, float]:
    """Return what a process of its own measured, with the highest sum of memory of it and its children."""
    command = [sys.executable, "-m", "benchmarks.corpora", "child", what, str(folder)]
    process = subprocess.Popen([*command, options["vocab"], options["batch_tokens"]], stdout=subprocess.PIPE, text=True)
    highest = 0
    while process.poll() is None:
        highest = max(highest, together(process.pid))
        time.sleep(0.05)
    assert process.stdout is not None
    told = process.stdout.read()
    if process.returncode:
        sys.exit(f"error: {what} ended with {process.returncode}")
    found: dict[str, float] = json.loads(told.splitlines()[-1])
    if highest:
        found["together_gb"] = round(highest / 1e9, 3)
    return found


def together(pid: int) -> int:
    """Return the memory of a process and its children, shared pages counted once; 0 without /proc."""
    total = 0
    pids = [str(pid)]
    for each in pids:
        try:
            pids += Path(f"/proc/{each}/task/{each}/children").read_text().split()
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in rollup if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return total


def name_of_machine() -> str:
    """Return the processor's name, as Linux tells it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return ", ".join(sorted({line.partition(":")[2].strip() for line in lines if line.startswith("model name")}))


def growth(rows: list[dict[str, Any]], what: str, key: str) -> dict[str, float]:
    """Return the line through the measurements: a constant, and so much for a million pairs."""
    pairs = np.array([row["pairs"] for row in rows]) / 1e6
    values = np.array([row[what][key] for row in rows])
    slope, constant = np.polyfit(pairs, values, 1)
    return {"constant": round(float(constant), 3), "per_million": round(float(slope), 3)}


def main() -> None:
    """Measure each size, print a line for each measurement, and write the result."""
    if sys.argv[1:2] == ["child"]:
        what, folder, vocab, batch_tokens = sys.argv[2:]
        print(json.dumps(child(what, Path(folder), int(vocab), int(batch_tokens))))
        return
    options = DEFAULTS | dict(word.split("=", 1) for word in sys.argv[1:])
    asked = options["measure"].split(",")
    rows: list[dict[str, Any]] = []
    for pairs in map(int, options["pairs"].split(",")):
        folder = Path(tempfile.mkdtemp(prefix="ablab-corpora-"))
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        try:
            write_text(folder / "text", pairs, int(options["types"]))
            row: dict[str, Any] = {"pairs": pairs}
            for what in [each for each in ("prepare", "sentencepiece", "start", "start again") if each in asked]:
                row[what] = measured(what, folder, options)
                print(f"{pairs:>9,} {what:<14} {row[what]}", flush=True)
            for epoch in RESUMED if "resume" in asked else ():
                row[f"resume {epoch}"] = measured(f"resume {epoch}", folder, options)
                print(f"{pairs:>9,} {f'resume {epoch}':<14} {row[f'resume {epoch}']}", flush=True)
            rows.append(row)
            write_result(rows, options)
        finally:
            shutil.rmtree(folder)


def write_result(rows: list[dict[str, Any]], options: dict[str, str]) -> None:
    """Write what has been measured so far, with the growth where there are several sizes."""
    result: dict[str, Any] = {"machine": name_of_machine(), "cores": os.cpu_count()}
    result |= {"options": {key: options[key] for key in ("vocab", "types", "batch_tokens")}, "rows": rows}
    if len(rows) > 1:
        kinds, keys = [what for what in rows[0] if what != "pairs"], ("seconds", "processor_seconds", "together_gb")
        result["growth"] = {what: {key: growth(rows, what, key) for key in keys} for what in kinds}
    Path(options["result"]).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
