"""Console output of a run: progress bars, a line per validation, and a table of results at the end."""

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from ablab.store.records import Curve, Evaluation, Point, Record
from ablab.store.run_folder import RunFolder
from ablab.text import program, visible
from ablab.transformer.data.corpus import EXTRA_TOKENS


class Console:
    """One console for all output, so that lines and bars do not overwrite each other. No bars without a terminal."""

    def __init__(self, *, bars: bool = True, stderr: bool = False) -> None:
        self.rich = RichConsole(highlight=False, soft_wrap=True, stderr=stderr)
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
        columns = (
            TextColumn("step {task.completed:,.0f}"),
            BarColumn(bar_width=30),
            _Total(),
            TextColumn("{task.fields[shown]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.rich, disable=not self.bars, transient=True) as progress:
            yield TrainingBar(progress)

    @contextmanager
    def counting_bar(self, title: str, total: int | None) -> Iterator["CountingBar"]:
        """Show a bar that counts items; `total` is None if their number is unknown."""
        columns = (
            TextColumn(f"{title} {{task.completed:,.0f}}"),
            BarColumn(bar_width=30),
            _Total(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.rich, disable=not self.bars, transient=True) as progress:
            yield CountingBar(progress, total)

    @contextmanager
    def counting(self, title: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Show a bar that counts items, and yield the function that advances it."""
        with self.counting_bar(title, total) as bar:
            yield bar.advance

    def result(
        self, folder: RunFolder, record: Record, evaluation: Evaluation | None, curve: Curve | None, *, smoke: bool
    ) -> None:
        """Print the results of a run, its cost, its folder and suggested next commands."""
        self.rich.print()
        for key, value in _rows(record, evaluation, smoke=smoke).items():
            self.rich.print(Text.assemble((f"{key:<12}", "bold"), value))
        self.rich.print()
        if curve is not None:
            self.curve(curve)
        for line in _next_lines(record, evaluation, smoke=smoke):
            self.say(line)
        self.say(f"Results: {folder.path}")

    def curve(self, curve: Curve) -> None:
        """Print the points of a pruning curve as a table: layers counted from 1, or numbers of heads."""
        full = curve.points[0]
        kept = ["encoder", "decoder", "cross"] if curve.of_heads else ["encoder", "decoder"]
        heading = [curve.label, *kept, "parameters", "test BLEU", "chrF", "sentences/s", "speed"]
        rows = [
            [
                *(_of_heads(point) if curve.of_heads else _of_layers(point, full)),
                f"{point.parameters:,}",
                f"{point.bleu:.2f}",
                f"{point.chrf:.2f}",
                f"{point.sentences_per_second:,.0f}",
                f"{point.speed_ratio:.2f}x",
            ]
            for point in curve.points
        ]
        for line in aligned([heading, *rows], left=1 + len(kept)):
            self.say(line)
        if curve.combinations:
            what = "heads" if curve.of_heads else "layers"
            self.say(f"Chosen on validation among {curve.combinations} sets of {what}: searching overfits")
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


class CountingBar:
    """A progress bar that counts completed items."""

    def __init__(self, progress: Progress, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total)

    def advance(self, count: int) -> None:
        self._progress.advance(self._task, count)


class _Total(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"of {task.total:,.0f}")


def _of_layers(point: Point, full: Point) -> list[str]:
    """Return the curve, and the layers that remain of each stack."""
    return [
        {"both": "both stacks"}.get(point.curve, f"{point.curve} alone"),
        _layers(point.encoder, len(full.encoder)),
        _layers(point.decoder, len(full.decoder)),
    ]


def _of_heads(point: Point) -> list[str]:
    """Return how many heads remain: in all, and in each layer of each site."""
    assert point.heads is not None
    each = [[len(heads) for heads in layers] for layers in point.heads.values()]
    return [f"{sum(map(sum, each))} heads", *(" ".join(map(str, counts)) for counts in each)]


def _layers(kept: Sequence[int], depth: int) -> str:
    return "all" if len(kept) == depth else " ".join(str(layer + 1) for layer in kept)


def aligned(rows: Sequence[Sequence[str]], *, left: int) -> Iterator[str]:
    """Yield rows with aligned columns: the first `left` to the left, the others to the right. Nothing is cut off.

    On a terminal that is too narrow, texts are folded within their columns.
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    _narrow(widths, left)
    for row in rows:
        folded = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
        for number in range(max(map(len, folded))):
            cells = [lines[number] if number < len(lines) else "" for lines in folded]
            yield "  ".join(
                cell.ljust(width) if column < left else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
            )


NARROWEST = 14
"""Columns below which no text is folded."""


def terminal_columns() -> int | None:
    """Return the width of the terminal; None for a file or a pipe, which have none, whatever COLUMNS says."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _narrow(widths: list[int], left: int) -> None:
    """Take from the widest columns of text what the terminal lacks."""
    columns = terminal_columns()
    if columns is None:
        return
    lacking = sum(widths) + 2 * (len(widths) - 1) - columns
    texts = range(min(left, len(widths)))
    while lacking > 0 and texts and max(widths[column] for column in texts) > NARROWEST:
        widths[max(texts, key=lambda column: widths[column])] -= 1
        lacking -= 1


def _folded(cell: str, width: int) -> list[str]:
    """Return the lines of a cell, folded after spaces and commas, or anywhere in a word that is too long."""
    lines = [""]
    for piece in re.findall(r"[^\s,]*[\s,]+|[^\s,]+", cell):
        if lines[-1] and len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return [line.rstrip() for line in lines]


def _rows(record: Record, evaluation: Evaluation | None, *, smoke: bool) -> Mapping[str, str]:
    rows = {"run": f"{record.run_id}  {record.name}"}
    if smoke:
        rows["smoke"] = "every stage ran on a sliver of data, with a small vocabulary: the scores mean nothing"
    elif record.state == "diverged":
        rows["diverged"] = record.reason
    if record.mixed is not None:
        rows["mixed"] = f"{record.mixed} changed while it was trained, in {len(record.stretches)} stretches"
    if evaluation is not None:
        rows["test"] = f"{evaluation.test_name}, {evaluation.sentences:,} sentences, {_search(evaluation)}"
        rows["BLEU"] = f"{evaluation.bleu:.2f}   {evaluation.signatures['bleu']}"
        rows["chrF"] = f"{evaluation.chrf:.2f}   {evaluation.signatures['chrf']}"
        if evaluation.loss is not None:
            rows["test loss"] = f"{evaluation.loss:.3f} nats per token"
    if record.selected is not None:
        chosen = record.selected
        rows["validation"] = (
            f"loss {chosen.loss:.3f}, perplexity {chosen.perplexity:.2f}, BLEU {chosen.bleu:.2f} "
            f"({_how_selected(chosen.steps)})"
        )
    if cut := list(_cut(record, evaluation)):
        rows["cut off"] = "; ".join(cut)
    cost = record.cost
    rows["parameters"] = f"{cost.parameters:,}"
    rows["training"] = (
        f"{cost.steps:,} steps, {cost.epochs:.1f} epochs in {duration(cost.seconds)}, "
        f"{cost.tokens_per_second:,.0f} target tokens/s"
        + (
            ""
            if record.share_of_limit is None
            else f", {100 * record.share_of_limit:.0f} % of a large matrix product's speed"
        )
    )
    kinds = ("empty", "overlong", "overlap")
    dropped = {kind: number for kind in kinds if (number := record.data["train"].get(f"dropped_{kind}"))}
    if dropped:
        said = ", ".join(f"{number:,} {DROPPED[kind]}" for kind, number in dropped.items())
        rows["dropped"] = f"training pairs: {said}"
    return rows


DROPPED = {"empty": "empty", "overlong": "overlong", "overlap": "with a held-out source, or nearly"}
"""Training pairs that a manifest counts as left out, in words."""


def _cut(record: Record, evaluation: Evaluation | None) -> Iterator[str]:
    """Yield how many translations reached the length limit, and the setting that raises it, where there are some."""
    if evaluation is not None and evaluation.at_limit:
        extra = evaluation.settings["decoding"]["max_extra_tokens"]
        yield (
            f"{evaluation.at_limit:,} of {evaluation.sentences:,} test translations reached the limit, {extra} tokens "
            f"beyond the source; decoding.max_extra_tokens={2 * extra or EXTRA_TOKENS} raises it"
        )
    if record.selected is not None and record.selected.at_limit:
        yield f"{record.selected.at_limit:,} validation translations did; training.max_extra_tokens raises theirs"


def _search(evaluation: Evaluation) -> str:
    beam = evaluation.settings["decoding"]["beam_size"]
    speed = f"{evaluation.sentences_per_second:,.0f} sentences/s"
    return f"{'greedy' if beam == 1 else f'beam {beam}'}, {speed}"


def _how_selected(steps: Sequence[int]) -> str:
    if len(steps) == 1:
        return f"step {steps[0]}"
    return f"mean of steps {', '.join(str(step) for step in steps)}"


def _next_lines(record: Record, evaluation: Evaluation | None, *, smoke: bool) -> list[str]:
    if smoke:
        return ["Next: the same line without smoke=true"]
    if record.selected is None:
        return ["Next: a smaller optim.lr, a longer schedule.warmup_steps, or norm=pre"]
    return [
        f"Next: echo 'a sentence' | {program('translate')} run={record.run_id}",
        "      the same line with seed=2, or with another norm= layerdrop= drophead=",
    ]


def duration(seconds: float) -> str:
    """Format seconds as `48 s`, `9 min 58 s` or `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
