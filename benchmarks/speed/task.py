"""The task of every system: Multi30k, English to German, or another text that is named; a Transformer of some size.

The variable RACE_MODEL says which: `small`, or `tiny`, what people start with, or `base`. RACE_DEVICE says where: `cpu`
or `gpu`.
"""

import os
from pathlib import Path

SIZES = {"small": (256, 1024, 4, 3, 4096), "tiny": (128, 256, 4, 4, 1024), "base": (512, 2048, 8, 6, 25000)}
"""Model -> width, inner width, heads, layers of encoder and decoder, padded target tokens a step."""

MODEL = os.environ.get("RACE_MODEL", "small")
D_MODEL, D_FF, HEADS, LAYERS, BATCH_TOKENS = SIZES[MODEL]
DEVICE = os.environ.get("RACE_DEVICE", "cpu")
VOCAB = {"base": 32000}.get(MODEL, 8000)
DROPOUT, SMOOTHING = 0.1, 0.1
PEAK_RATE, WARMUP = 1e-3, 200
LOOK = 10
"""Steps between two measurements."""

ROOT = Path(__file__).parents[2]
WORDS = (
    *("data=multi30k", f"data.vocab_size={VOCAB}", f"model={MODEL}", f"optim.batch_tokens={BATCH_TOKENS}"),
    *(f"schedule.warmup_steps={WARMUP}", f"optim.lr={PEAK_RATE}", "pruning=none", "trainer.progress=false"),
    f"trainer={DEVICE}",
)
"""The same as overrides of ablab, whose models have the sizes above."""
