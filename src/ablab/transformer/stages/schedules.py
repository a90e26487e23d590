"""Learning rate and DropHead rate at every step of a run that is not trained yet, as a table and a picture.

The rates are the parts that training calls, so that torch is loaded only if one of them needs it, as plateau does,
which reads validations. A test compares the rates with training's at each step.
"""

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablab.code.load import construct
from ablab.config.kinds import chosen_part
from ablab.errors import UserError
from ablab.files import COLOURS, folder_name, json_digest, write_picture, write_text
from ablab.transformer.config.training import TransformerConfig

Rate = Callable[[int], float]
"""A function from the optimiser step, from 1, to a rate."""

VERSION = 1
"""Raised when the same settings would be drawn otherwise."""

MOST_ROWS = 100_000
"""Maximum rows of the table: of longer trainings evenly spaced steps, the last one included."""


def _place(config: TransformerConfig) -> dict[str, Any]:
    """Return the place for which a DropHead rate is drawn that asks for one: of the first stack."""
    return {"stack": next(iter(config.layers)), "layer": 1, "sublayer": "self_attention"}


@dataclass(frozen=True)
class Schedules:
    """Both rates by step. `settings`: everything that decides them. `notes`: what they cannot show.

    `by_validation`: the learning rate is the one before any validation.
    """

    settings: Mapping[str, Any]
    steps: range
    learning_rate: Rate
    drophead: Rate
    titles: tuple[str, str]
    notes: list[str]
    by_validation: bool

    @property
    def name(self) -> str:
        """Stem of the files: the kinds, and a digest of all settings."""
        kinds = (self.settings[group]["kind"] for group in ("schedule", "drophead"))
        return folder_name("-".join([*kinds, json_digest({**self.settings}, 8)]))

    def rows(self) -> Iterator[tuple[int, float, float]]:
        """Yield step, learning rate and DropHead rate."""
        last = self.steps.stop - 1
        for step in (*self.steps, *([] if self.steps[-1] == last else [last])):
            yield step, float(self.learning_rate(step)), float(self.drophead(step))


def schedules(config: TransformerConfig) -> Schedules:
    """Return both schedules from step 1 to `training.max_steps`; UserError without that."""
    last = config.training.max_steps
    if last is None:
        raise UserError("training.max_steps=null: schedules are drawn up to a last step; allowed: a number of steps")
    facts = {**config.model.sizes, "peak": config.peak_rate, "total": last}
    # What decides the rates: the options with their fields, the digest of a part from outside, and what they ask for.
    learning = {"kind": config.schedule.kind, "peak": config.peak_rate, **config.schedule.own}
    dropping = {"kind": config.drophead.kind, **config.drophead.own}
    dropping.pop("sites", None)
    settings = {"version": VERSION, "facts": facts, "schedule": learning, "drophead": dropping}
    codes = {group: getattr(getattr(config, group), "code", None) for group in ("schedule", "drophead")}
    schedule = construct(chosen_part(config.schedule), {**facts, **config.schedule.own})
    by_validation = not callable(schedule)
    return Schedules(
        {**settings, "codes": codes},
        range(1, last + 1, -(-last // MOST_ROWS)),
        (lambda step: schedule.rate(step, [])) if by_validation else schedule,
        construct(chosen_part(config.drophead), {**facts, **_place(config), **config.drophead.own}),
        (_said("Learning rate", learning), _said("DropHead", dropping)),
        list(_notes(config, by_validation=by_validation)),
        by_validation,
    )


def _said(what: str, settings: Mapping[str, Any]) -> str:
    kind, *fields = settings.items()
    named = ", ".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in fields)
    return f"{what}: {kind[1]}" + (f" ({named})" if named else "")


def _notes(config: TransformerConfig, *, by_validation: bool) -> Iterator[str]:
    if by_validation:
        decay = config.schedule.own.get("decay")
        stalls = "" if decay is None else f"; it is multiplied by {decay:g} at each stall"
        yield (
            f"schedule={config.schedule.kind}: this is the rate until validation first stalls{stalls}, so the rest "
            "depends on validation"
        )
    place = _place(config)
    if chosen_part(config.drophead).signature.parameters.keys() & place.keys():
        where = f"the {place['stack']}'s first self-attention"
        yield f"drophead={config.drophead.kind}: it differs by place; drawn for {where}"
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
    from matplotlib.figure import Figure

    steps, *rates = zip(*rows, strict=True)
    figure = Figure(figsize=(8, 6), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    labels = ("learning rate", "probability that a head is dropped")
    for number, (panel, values, title, label) in enumerate(zip(axes, rates, drawn.titles, labels, strict=True)):
        depends = number == 0 and drawn.by_validation
        panel.plot(steps, values, "--" if depends else "-", color=COLOURS[number], linewidth=1.8)
        panel.set_title(title, fontsize="medium")
        panel.set_ylabel(label)
        most = max(*values, 0.0) or 1.0
        panel.set_ylim(-0.03 * most, 1.08 * most)
        panel.grid(alpha=0.25)
    axes[0].ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    notes = [line for note in drawn.notes for line in textwrap.wrap(note, 100)]
    axes[1].set_xlabel("\n".join(["optimiser step", *notes]))
    write_picture(path, figure)
