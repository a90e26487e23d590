"""What each part of the ablation costs or saves in a training step: arms in turns on the same batches.

    python -m benchmarks.speed.parts data.path=../multi30k [steps=30] [deep_steps=20]

Forward, backward, clipping and Adam, without Lightning.
"""

import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from ablab.config import compose
from ablab.text import aligned
from ablab.tracking.console import Console
from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.data.prepared import Prepared, prepare
from ablab.transformer.data.steps import TrainingSteps
from ablab.transformer.model.dropout import DropHead
from ablab.transformer.model.layers import DecoderLayer, EncoderLayer
from ablab.transformer.model.streams import reseed
from ablab.transformer.model.transformer import Transformer
from ablab.transformer.stages.models import build_model
from ablab.transformer.training.loss import token_loss
from ablab.transformer.translation.training import build_steps
from benchmarks.speed.field import Field
from benchmarks.speed.machine import name_of_machine

WARM = 3
RESULTS = Path(__file__).parents[1] / "results" / "parts.json"
SMALL = {
    "LayerNorm, PreNorm (1)": (),
    "PostNorm": ("norm=post",),
    "RMSNorm": ("norm=rmsnorm",),
    "ScaleNorm": ("norm=scalenorm",),
    "FixNorm": ("norm=fixnorm",),
    "ScaleNorm and FixNorm": ("norm=scalenorm_fixnorm",),
    "DropHead 0.2": ("drophead=constant", "drophead.p=0.2"),
    "word dropout 0.1": ("model.word_dropout=0.1",),
    "no dropout": ("model.dropout=0",),
}
DEEP = {
    "deep, 12 + 6 layers (1)": (),
    "LayerDrop 0.2": ("layerdrop=0.2",),
    "LayerDrop 0.5": ("layerdrop=0.5",),
    "LayerDrop 0.2, learned": ("layerdrop=0.2", "layerdrop_rates=learned"),
}


class Trained:
    """A model in training."""

    def __init__(self, config: TranslationConfig, prepared: Prepared, steps: TrainingSteps) -> None:
        src, tgt = (len(tokenizer) for tokenizer in prepared.tokenizers)
        torch.manual_seed(1)
        self.model: Transformer = build_model(config, src_vocab=src, tgt_vocab=tgt).train()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)
        self.config, self.steps = config, steps
        self.ran = 0
        for module in self.model.modules():
            if isinstance(module, DropHead):
                module.drop_prob = config.drophead.p
            if isinstance(module, (EncoderLayer, DecoderLayer)):
                module.register_forward_hook(self._count)

    def _count(self, *_: object) -> None:
        self.ran += 1

    def step(self, number: int) -> float:
        """Seconds."""
        began = time.perf_counter()
        reseed(self.model, 1, step=number, micro_batch=0)
        loss = token_loss(self.model, self.steps[number][0], 0.1)
        (loss.total / loss.tokens).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - began


class Row(NamedTuple):
    """Median seconds of a step; times the first arm's, as median of ratios and as ratio of sums; share of layers that
    ran.
    """

    seconds: float
    ratio: float
    of_sums: float
    layers: float


def main() -> None:
    """Both tables."""
    options, field = Field.typed(steps="30", deep_steps="20")
    torch.set_num_threads(field.threads)
    deep = [word for word in field.line if not word.startswith(("model=", "optim.batch_tokens="))]
    found = {
        "small": ratios(SMALL, field.line, int(options["steps"])),
        "deep": ratios(DEEP, [*deep, "model=deep", "optim.batch_tokens=512"], int(options["deep_steps"])),
    }
    for title, rows in found.items():
        table = [[f"model={title}", "ms a step", "times (1), median", "in all", "layers that ran"]]
        table += [
            [name, f"{1000 * row.seconds:.0f}", f"{row.ratio:.3f}", f"{row.of_sums:.3f}", f"{row.layers:.3f}"]
            for name, row in rows.items()
        ]
        for line in aligned(table, left=1):
            print(line.rstrip())
    RESULTS.parent.mkdir(exist_ok=True)
    content = {
        "machine": name_of_machine(),
        "threads": field.threads,
        "rows": {title: {name: row._asdict() for name, row in rows.items()} for title, rows in found.items()},
    }
    RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    print(f"Results: {RESULTS}")


def ratios(arms: dict[str, tuple[str, ...]], line: Sequence[str], steps: int) -> dict[str, Row]:
    """For each arm. LayerDrop's steps differ from each other by design: there sums are to be compared, not medians."""
    configs = {name: compose([*line, *words]).config for name, words in arms.items()}
    first = next(iter(configs.values()))
    prepared = prepare(first.data, Path(first.outputs) / "corpora", Console().say)
    data = build_steps(first, prepared)
    trained = {name: Trained(config, prepared, data) for name, config in configs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in trained}
    for number in range(1, WARM + steps + 1):
        for name, each in trained.items():
            spent = each.step(number)
            if number <= WARM:
                each.ran = 0
            else:
                seconds[name].append(spent)
    base_name, base = next(iter(seconds.items()))
    return {
        name: Row(
            statistics.median(own),
            statistics.median(a / b for a, b in zip(own, base, strict=True)),
            sum(own) / sum(base),
            trained[name].ran / trained[base_name].ran,
        )
        for name, own in seconds.items()
    }


if __name__ == "__main__":
    main()
