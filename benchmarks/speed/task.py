"""The task that all are given: Multi30k, English to German, a Transformer of 3 + 3 layers, 4,096 tokens a step."""

from pathlib import Path

D_MODEL, D_FF, HEADS, LAYERS, VOCAB = 256, 1024, 4, 3, 8000
DROPOUT, SMOOTHING, BATCH_TOKENS = 0.1, 0.1, 4096
PEAK_RATE, WARMUP = 1e-3, 200
LOOK = 10
"""Steps between two looks at the clock."""

ROOT = Path(__file__).parents[2]
WORDS = (
    *("data=multi30k", f"data.vocab_size={VOCAB}", "model=small", f"optim.batch_tokens={BATCH_TOKENS}"),
    *(f"schedule.warmup_steps={WARMUP}", f"optim.lr={PEAK_RATE}", "pruning=none", "trainer.progress=false"),
)
"""The same in ablab's words; `model=small` has the sizes above."""
