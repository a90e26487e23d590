"""How many hidden vectors the loss turns into logits at a time: the evidence for ablab.transformer.training.loss.

    python -m benchmarks.speed.chunks [precision=fp32] [threads=1] [rounds=5] [tokens=2048] [shapes=8000x256,...]

Forward and backward of the loss, all choices in turns. Processor time of the fastest round, in which neighbours show
least; with more threads it counts those that wait too.
"""

import sys
import time

import torch

from ablab.text import aligned
from ablab.transformer.training import loss
from ablab.transformer.training.loss import loss_rows, projected_cross_entropy

DEFAULTS = {
    "precision": "fp32",
    "threads": "1",
    "rounds": "5",
    "tokens": "2048",
    "shapes": "1000x128,8000x256,32000x512",
}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
CHOICES = [32 << doubled for doubled in range(7)]


def main() -> None:
    """A row for each shape."""
    options = DEFAULTS | dict(word.split("=", 1) for word in sys.argv[1:])
    torch.set_num_threads(int(options["threads"]))
    rows = [["vocabulary x d_model", *(str(choice) for choice in CHOICES), "taken"]]
    for shape in options["shapes"].split(","):
        vocab, d_model = map(int, shape.split("x"))
        times = measured(vocab, d_model, int(options["tokens"]), DTYPES[options["precision"]], int(options["rounds"]))
        fastest = min(times)
        cells = [f"{1e3 * seconds:.0f} ms ({seconds / fastest:.2f})" for seconds in times]
        rows.append([shape, *cells, str(loss_rows(vocab, torch.device("cpu")))])
    print(f"{options['precision']}, {options['tokens']} tokens, {options['threads']} threads; times the fastest")
    for line in aligned(rows, left=1):
        print(line.rstrip())


def measured(vocab: int, d_model: int, tokens: int, dtype: torch.dtype, rounds: int) -> list[float]:
    """Seconds of each choice."""
    torch.manual_seed(0)
    hidden = torch.randn(tokens, d_model).to(dtype).requires_grad_()
    matrix = (torch.randn(vocab, d_model) * d_model**-0.5).requires_grad_()
    labels = torch.randint(vocab, (tokens,))
    found = [float("inf")] * len(CHOICES)
    for _ in range(rounds):
        for number, choice in enumerate(CHOICES):
            loss.loss_rows = lambda *_, rows=choice: rows
            began = time.process_time()
            projected_cross_entropy(hidden, matrix, labels, 0.1)[0].backward()
            found[number] = min(found[number], time.process_time() - began)
    return found


if __name__ == "__main__":
    main()
