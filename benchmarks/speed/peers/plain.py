"""A training loop as tutorials write it, for models that map padded source and target ids to logits."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks.speed.task import BATCH_TOKENS, DEVICE, LOOK, PEAK_RATE, SMOOTHING, WARMUP

PAD, BOS = 1, 2
PLACE = torch.device("cuda" if DEVICE == "gpu" else "cpu")
Model = Callable[[Tensor, Tensor], Tensor]


def sentences(folder: Path, name: str) -> list[np.ndarray]:
    """Ids of each, its end included."""
    tokens, offsets = (np.load(folder / f"{name}.{part}.npy") for part in ("tokens", "offsets"))
    return np.split(tokens, offsets[1:-1])


def batches(src: list[np.ndarray], tgt: list[np.ndarray]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Sentences of like length together, at most BATCH_TOKENS padded target tokens, in random order."""
    rng = np.random.default_rng(1)
    while True:
        order = sorted(rng.permutation(len(src)), key=lambda i: (len(tgt[i]), len(src[i])))
        found: list[list[int]] = [[]]
        for i in order:
            if found[-1] and (len(found[-1]) + 1) * len(tgt[i]) > BATCH_TOKENS:
                found.append([])
            found[-1].append(i)
        for number in rng.permutation(len(found)):
            rows = found[number]
            labels = _padded([tgt[i] for i in rows])
            begin = torch.full((len(rows), 1), BOS)
            yield _padded([src[i] for i in rows]), torch.cat([begin, labels[:, :-1]], dim=1), labels


class Loop:
    """Training of a model, step by step."""

    def __init__(self, model: Model, parameters: list[Tensor], folder: Path, *, bf16: bool) -> None:
        self.model, self.parameters, self.bf16 = model, parameters, bf16
        self.optimizer = torch.optim.Adam(parameters, lr=PEAK_RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.data = batches(sentences(folder, "train.src"), sentences(folder, "train.tgt"))
        self.steps, self.began = 0, 0.0

    def step(self) -> tuple[int, Tensor]:
        """Take one step; return its target tokens and its loss."""
        self.steps += 1
        batch = next(self.data)
        self.began = self.began or time.time()
        tokens = int((batch[2] != PAD).sum())
        src, tgt, labels = (
            each.pin_memory().to(PLACE, non_blocking=True) if DEVICE == "gpu" else each for each in batch
        )
        for group in self.optimizer.param_groups:
            group["lr"] = PEAK_RATE * min(self.steps / WARMUP, (WARMUP / self.steps) ** 0.5)
        with torch.autocast(PLACE.type, dtype=torch.bfloat16, enabled=self.bf16):
            logits = self.model(src, tgt)
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        return tokens, loss.detach()


def train(model: Model, parameters: list[Tensor], folder: Path, steps: int, *, bf16: bool) -> None:
    """Prints target tokens per second of every LOOK steps but for the first, and when it began, as one JSON line."""
    began = time.perf_counter()
    loop, rates, tokens = Loop(model, parameters, folder, bf16=bf16), [], 0
    for step in range(1, steps + 1):
        count, loss = loop.step()
        tokens += count
        if step % LOOK == 0:
            if DEVICE == "gpu":
                torch.cuda.synchronize()
            now = time.perf_counter()
            rates.append(tokens / (now - began))
            tokens, began = 0, now
    print(json.dumps({"tokens_per_second": rates[1:], "loss": float(loss), "first_step": loop.began}))


def _padded(rows: list[np.ndarray]) -> Tensor:
    filled = np.full((len(rows), max(map(len, rows))), PAD)
    for row, ids in zip(filled, rows, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(filled)
