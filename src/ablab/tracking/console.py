"""Console output of a run: progress bars, a line per validation, and a table of results at the end."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from rich import progress as bars
from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from ablab.store.records import Record
from ablab.store.run_folder import RunFolder
from ablab.tasks.task import Task
from ablab.text import aligned, in_store, visible


class Output(RichConsole):
    """Where lines go. Their reader may leave early, as `head` does: what was asked for is done all the same."""

    def on_broken_pipe(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


class Console:
    """One console for all output, so that lines and bars do not overwrite each other. No bars without a terminal."""

    def __init__(self, *, bars: bool = True, stderr: bool = False) -> None:
        self.rich = Output(highlight=False, soft_wrap=True, stderr=stderr)
        self.bars = bars and self.rich.is_terminal

    def say(self, line: str) -> None:
        """Print one plain line."""
        self.rich.print(Text(visible(line)))

    def say_all(self, lines: Iterable[str]) -> None:
        """Print many plain lines, some hundreds at a time, which takes a fifth of the time."""
        written = map(visible, lines)
        while block := list(islice(written, 200)):
            self.rich.print(Text("\n".join(block)))

    @contextmanager
    def training_bar(self) -> Iterator["TrainingBar"]:
        """Show a bar for training steps."""
        with self._progress("step", TextColumn("{task.fields[shown]}")) as progress:
            yield TrainingBar(progress)

    @contextmanager
    def counting(self, title: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Show a bar that counts items, and yield the function that advances it; `total`: None if it is unknown."""
        with self._progress(title) as progress:
            yield partial(progress.advance, progress.add_task("", total=total))

    def _progress(self, title: str, *more: ProgressColumn) -> Progress:
        count, bar = TextColumn(f"{title} {{task.completed:,.0f}}"), BarColumn(bar_width=30)
        columns = (count, bar, _Total(), *more, TimeRemainingColumn())
        return Progress(*columns, console=self.rich, disable=not self.bars, transient=True)

    def result(
        self, task: Task, folder: RunFolder, record: Record, evaluation: Any, curve: Any, *, smoke: bool
    ) -> None:
        """Print the results of a run, its cost, its folder and suggested next commands."""
        smoke = smoke and record.state == "finished"  # of one that diverged, not every stage ran
        self.rich.print()
        for key, value in _rows(task, record, evaluation, smoke=smoke):
            self.rich.print(Text.assemble((f"{key:<11} ", "bold"), value))
        self.rich.print()
        if curve is not None:
            self.curve(task, curve)
        where, lines = in_store(folder.outputs), [] if smoke else task.next_lines(record)
        lines = [f"{line}{where}" if f"run={record.run_id}" in line else line for line in lines]
        self.say_all(["Next: the same line without smoke=true"] if smoke else lines)
        self.say(f"Results: {folder.path}")

    def curve(self, task: Task, curve: Any) -> None:
        """Print a further curve as a table, and what there is to say of it."""
        table, left = task.curve_table(curve)
        self.say_all((*aligned(table, left=left), *task.notes_on_curve(curve)))
        self.rich.print()


class TrainingBar:
    """A progress bar with step, loss, tokens per second and time left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, shown="")

    def show(self, step: int, total: int | None) -> None:
        self._progress.update(self._task, completed=step, total=total)

    def describe(self, text: str) -> None:
        """Show a text, such as loss and speed, on the bar."""
        self._progress.update(self._task, shown=text)


class _Total(ProgressColumn):
    def render(self, task: bars.Task) -> Text:
        return Text("" if task.total is None else f"of {task.total:,.0f}")


def _rows(task: Task, record: Record, evaluation: Any, *, smoke: bool) -> Iterator[tuple[str, str]]:
    yield "run", f"{record.run_id}  {record.name}"
    if smoke:
        yield "smoke", task.smoke
    elif record.state == "diverged":
        yield "diverged", record.reason
    if record.mixed is not None:
        yield "mixed", f"{record.mixed} changed while it was trained, in {len(record.stretches)} stretches"
    yield from task.rows(record, evaluation)
