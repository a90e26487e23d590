"""What the papers' sizes and long sentences cost on this machine: seconds a step, memory, and a checkpoint.

    python -m benchmarks.speed.sizes [only=base,big] [vocab=32000]

The text is made up, with WMT14's lengths, and for long sentences with 12 sentences joined. Each size is a process of
its own, which does what `train.py dry_run=true` does: ablab's training loop, validation of one pair, and a checkpoint.
The first step is not counted. Memory is the process's peak.
"""

import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ablab.text import aligned
from benchmarks.corpora import peak, write_text
from benchmarks.speed.field import Field
from benchmarks.speed.machine import conditions

RESULTS = Path(__file__).parents[1] / "results" / "sizes.json"
PAIRS, TYPES, JOINED, LEFT_OUT = 100_000, 60_000, 12, 0.1
SIZES = {
    "small": (10, "short", "model=small", "optim.batch_tokens=4096"),
    "small, long sentences": (10, "long", "model=small", "optim.batch_tokens=4096"),
    "deep": (5, "short", "model=deep", "optim.batch_tokens=4096"),
    "base": (2, "short", "model=base"),
    "base in 4 parts": (2, "short", "model=base", "trainer.micro_batches=4"),
    "base, long sentences, in 4 parts": (2, "long", "model=base", "trainer.micro_batches=4"),
    "big in 4 parts": (2, "short", "model=big", "trainer.micro_batches=4"),
}
"""Name -> steps, the first of which is not counted; the text; the words of the command."""


def main() -> None:
    """Measure each size, print a line for each, and write the results."""
    if sys.argv[1:2] == ["child"]:
        print(json.dumps(child(int(sys.argv[2]), sys.argv[3:])))
        return
    options, field = Field.typed(only="", vocab="32000")
    asked = [name for name in SIZES if not options["only"] or name.split(",")[0].split()[0] in options["only"]]
    known = json.loads(RESULTS.read_text())["rows"] if options["only"] and RESULTS.exists() else {}
    folder = Path(tempfile.mkdtemp(prefix="ablab-sizes-"))
    try:
        write_pairs(folder)
        for name in asked:
            steps, text, *words = SIZES[name]
            line = [*words, *words_of(folder, text, options["vocab"]), f"trainer.threads={field.threads}"]
            known[name] = field.said(["-m", "benchmarks.speed.sizes", "child", str(steps), *line])
            print(name, known[name], flush=True)
    finally:
        shutil.rmtree(folder)
    rows = {name: known[name] for name in SIZES if name in known}
    content = {**conditions(field.threads), "vocab": int(options["vocab"]), "rows": rows}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    table = [["size", "parameters", "tokens a step", "s a step", "tokens/s", "of a product's speed", "GB", "saving, s"]]
    for name, row in rows.items():
        cells = [f"{row['parameters']:,}", f"{row['tokens']:,}", f"{row['seconds']:.1f}"]
        cells += [f"{row['tokens'] / row['seconds']:,.0f}", f"{row['share']:.2f}", f"{row['gb']:.1f}"]
        table.append([name, *cells, f"{row['saving']:.1f}"])
    for row_text in aligned(table, left=1):
        print(row_text.rstrip())
    print(f"Results: {RESULTS}")


def write_pairs(folder: Path) -> None:
    """Write text of short sentences, and the same joined to long ones; the target is the source with words left out.

    So the two sides of a pair are about as long as each other, as in translations.
    """
    write_text(folder / "short", PAIRS, TYPES)
    for name in ("train", "valid", "test"):
        source, target = (folder / "short" / f"{name}.{language}" for language in ("en", "de"))
        draw = random.Random(1).random
        lines = source.read_text().splitlines()
        kept = [[word for word in line.split()[:-1] if draw() > LEFT_OUT] + line.split()[-1:] for line in lines]
        target.write_text("".join(" ".join(words) + "\n" for words in kept))
    (folder / "long").mkdir()
    for path in (folder / "short").iterdir():
        lines = path.read_text().splitlines()
        groups = [lines[begun : begun + JOINED] for begun in range(0, len(lines), JOINED)]
        (folder / "long" / path.name).write_text("".join(" ".join(group) + "\n" for group in groups))


def words_of(folder: Path, text: str, vocab: str) -> list[str]:
    places = [f"data.{name}={folder / text / name}" for name in ("train", "valid", "test")]
    lengths = {"short": 250, "long": 512}
    sizes = [f"data.vocab_size={vocab}", f"data.max_tokens={lengths[text]}"]
    return ["data=text", *places, "data.src=en", "data.tgt=de", *sizes, "pruning=none", f"outputs={folder / 'outputs'}"]


def child(steps: int, words: list[str]) -> dict[str, Any]:
    """Try one size out in this process."""
    import torch

    from ablab.config import compose
    from ablab.tasks.plan import plan
    from ablab.transformer.data.prepared import prepare
    from ablab.transformer.stages.dry_run import dry_run
    from ablab.transformer.stages.models import build_model
    from ablab.transformer.training.checkpoints import Checkpoints
    from ablab.transformer.training.cost import flops_per_token, product_speed
    from ablab.transformer.translation.training import build_steps

    planned = plan(compose(words))
    prepared = prepare(planned.config.data, planned.outputs / "corpora", lambda _: None)
    batches = build_steps(planned.config, prepared)
    counted = [sum(part.tokens for part in batches[number]) for number in range(1, steps)]
    saving = []
    save = Checkpoints.save

    def timed(*content: Any) -> None:
        began = time.perf_counter()
        save(*content)
        saving.append(time.perf_counter() - began)

    with patch.object(Checkpoints, "save", timed):
        found, gb = dry_run(planned, steps), peak() / 1e9

    counts, sizes = prepared.manifest["train"], planned.config.model
    source, target = prepared.manifest["vocab"]
    model = build_model(planned.config, src_vocab=source, tgt_vocab=target)
    every = {"encoder": [1.0] * sizes.encoder_layers, "decoder": [1.0] * sizes.decoder_layers}
    operations = flops_per_token(model, counts["src_tokens"] / counts["tgt_tokens"], every)
    tokens = sum(counted) / len(counted)
    product = max(product_speed(torch.device("cpu"), torch.float32) for _ in range(20))
    return {
        "parameters": found.parameters,
        "tokens": round(tokens),
        "seconds": round(found.seconds_per_step, 3),
        "share": round(operations * tokens / found.seconds_per_step / product, 3),
        "gb": round(gb, 2),
        "saving": round(saving[-1], 2),
    }


if __name__ == "__main__":
    main()
