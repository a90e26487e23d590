"""Learning rate and DropHead rate at every step of a run that is not trained yet, as a table and a picture.

Without torch: the rates are the pure functions that training calls. A test compares them with training's at each step.
"""

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ablab.config import Config
from ablab.config.options import Plateau
from ablab.errors import UserError
from ablab.files import json_digest, replacing, write_text
from ablab.training.schedules import DROP_SCHEDULES, cosine, inverse_sqrt

Rate = Callable[[int], float]
"""A function from the optimiser step, from 1, to a rate."""

VERSION = 1
"""Raised when the same settings would be drawn otherwise."""

MOST_ROWS = 100_000
"""Maximum rows of the table: of longer trainings evenly spaced steps, the last one included."""


def _noam(config: Config) -> Rate:
    return partial(inverse_sqrt, peak=config.peak_rate, **config.schedule.own)


def _cosine(config: Config) -> Rate:
    return partial(cosine, total=_last_step(config), peak=config.peak_rate, **config.schedule.own)


def _plateau(config: Config) -> Rate:
    return lambda step: config.peak_rate


LEARNING_RATES: Mapping[str, Callable[[Config], Rate]] = {"noam": _noam, "cosine": _cosine, "plateau": _plateau}
"""Learning rates as `build.training` builds them; of plateau the one before validation first stalls."""


@dataclass(frozen=True)
class Schedules:
    """Both rates by step. `settings`: everything that decides them. `notes`: what they cannot show."""

    settings: Mapping[str, Any]
    steps: range
    learning_rate: Rate
    drophead: Rate
    titles: tuple[str, str]
    notes: list[str]

    @property
    def name(self) -> str:
        """Stem of the files: the kinds, and a digest of all settings."""
        kinds = (self.settings[group]["kind"] for group in ("schedule", "drophead"))
        return "-".join([*kinds, json_digest({**self.settings}, 8)])

    def rows(self) -> Iterator[tuple[int, float, float]]:
        """Yield step, learning rate and DropHead rate."""
        last = self.steps.stop - 1
        for step in (*self.steps, *([] if self.steps[-1] == last else [last])):
            yield step, self.learning_rate(step), self.drophead(step)


def schedules(config: Config) -> Schedules:
    """Return both schedules from step 1 to `training.max_steps`; UserError without that."""
    last, drophead = _last_step(config), config.drophead
    own = {name: value for name, value in drophead.own.items() if name != "sites"}
    learning = {"kind": config.schedule.kind, "peak": config.peak_rate, **config.schedule.own}
    dropping = {"kind": drophead.kind, **own}
    return Schedules(
        {"version": VERSION, "max_steps": last, "schedule": learning, "drophead": dropping},
        range(1, last + 1, -(-last // MOST_ROWS)),
        LEARNING_RATES[config.schedule.kind](config),
        partial(DROP_SCHEDULES[drophead.kind], **own),
        (_said("Learning rate", learning), _said("DropHead", dropping)),
        list(_notes(config)),
    )


def _last_step(config: Config) -> int:
    last = config.training.max_steps
    if last is None:
        raise UserError("training.max_steps=null: schedules are drawn up to a last step; allowed: a number of steps")
    return last


def _said(what: str, settings: Mapping[str, Any]) -> str:
    kind, *fields = settings.items()
    named = ", ".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in fields)
    return f"{what}: {kind[1]}" + (f" ({named})" if named else "")


def _notes(config: Config) -> Iterator[str]:
    if isinstance(config.schedule, Plateau):
        yield (
            f"schedule=plateau: this is the rate until validation first stalls; it is multiplied by "
            f"{config.schedule.decay:g} at each stall, so the rest depends on validation"
        )
    training = config.training
    ends = [f"training.{name}" for name in ("max_epochs", "max_minutes", "patience") if getattr(training, name)]
    if ends:
        yield f"training may end before training.max_steps={training.max_steps}: {', '.join(ends)}"


def write(drawn: Schedules, table: Path, picture: Path) -> None:
    """Write the picture, and then the table: a table that exists has its picture."""
    rows = list(drawn.rows())
    _draw(drawn, rows, picture)
    lines = [f"{step},{rate!r},{drop!r}" for step, rate, drop in rows]
    write_text(table, "\n".join(["step,learning_rate,drophead_rate", *lines, ""]))


def _draw(drawn: Schedules, rows: list[tuple[int, float, float]], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    steps, *rates = zip(*rows, strict=True)
    figure = Figure(figsize=(8, 6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 1, sharex=True)
    labels = ("learning rate", "probability that a head is dropped")
    for number, (panel, values, title, label) in enumerate(zip(axes, rates, drawn.titles, labels, strict=True)):
        depends = number == 0 and drawn.settings["schedule"]["kind"] == "plateau"
        panel.plot(steps, values, "--" if depends else "-", color=f"C{number}", linewidth=1.8)
        panel.set_title(title, fontsize="medium")
        panel.set_ylabel(label)
        most = max(*values, 0.0) or 1.0
        panel.set_ylim(-0.03 * most, 1.08 * most)
        panel.grid(alpha=0.25)
    axes[0].ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    notes = [line for note in drawn.notes for line in textwrap.wrap(note, 100)]
    axes[1].set_xlabel("\n".join(["optimiser step", *notes]))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as written:
        figure.savefig(written, format="png", dpi=110)
