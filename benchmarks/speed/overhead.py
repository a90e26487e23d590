"""What a training step costs beside forward, backward and Adam: Lightning's loop, logging, batching, looks at the loss.

    python -m benchmarks.speed.overhead data.path=../multi30k [steps=300]

One run of the tiny model, as typed, with its own step timed; the rest of the run's training time is overhead.
"""

import statistics
import tempfile
import time

from ablab.commands.cli import main as ablab
from ablab.transformer.training.module import TrainingModule
from benchmarks.speed.field import Field


def main() -> None:
    """Milliseconds a step."""
    options, field = Field.typed(steps="300")
    steps = int(options["steps"])
    begun, ended = [], []
    step = TrainingModule.training_step

    def timed(self: TrainingModule, *arguments: object) -> None:
        begun.append(time.perf_counter())
        step(self, *arguments)  # type: ignore[arg-type]
        ended.append(time.perf_counter())

    TrainingModule.training_step = timed  # type: ignore[method-assign,assignment]
    with tempfile.TemporaryDirectory() as folder:
        short = ["data.valid_pairs=4", "data.test_pairs=4", f"training.max_steps={steps}", "pruning=none"]
        run = ["data=multi30k", *field.words, *short, f"training.valid_every={steps}", "trainer.progress=false"]
        ablab(["train", *run, f"trainer.threads={field.threads}", f"outputs={folder}"])
    between = [1000 * (after - before) for before, after in zip(ended[9:-1], begun[10:], strict=True)]
    inside = [1000 * (after - before) for before, after in zip(begun[10:], ended[10:], strict=True)]
    print(f"the step itself {statistics.median(inside):.2f} ms, all else {statistics.median(between):.2f} ms (medians)")
    print(f"mean {statistics.fmean(inside):.2f} ms, all else {statistics.fmean(between):.2f} ms")


if __name__ == "__main__":
    main()
