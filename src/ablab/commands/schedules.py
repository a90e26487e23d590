"""The part of `analyse` that needs no run: `schedule=true` and the words of a train line."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ablab.commands.options.models import AnalyseOptions
from ablab.errors import UserError


def asks_to_draw(word: str) -> bool:
    """Return whether a word is `schedule=true`. `schedule` is also a group of the configuration, with its options."""
    key, _, value = word.partition("=")
    try:
        return key == "schedule" and TypeAdapter(bool).validate_python(value)
    except ValidationError:
        return False


def draw_schedules(words: Sequence[str]) -> int:
    """Draw learning rate and DropHead rate of the run that the words describe, once, and say where."""
    for word in words:
        key = word.partition("=")[0]
        if key in AnalyseOptions.model_fields and key not in ("schedule", "outputs"):
            raise UserError(
                f"{word}: not with schedule=true, which draws a run before it is trained; allowed: the words of a "
                "train line"
            )
    from ablab.config import compose
    from ablab.console import Console
    from ablab.text import program
    from ablab.transformer.stages.schedules import schedules, write

    composed = compose(words)
    console = Console()
    drawn = schedules(composed.config)
    folder = Path(composed.config.outputs) / "schedules"
    table, picture = (folder / f"{drawn.name}.{kind}" for kind in ("csv", "png"))
    for line in (*drawn.titles, *drawn.notes):
        console.say(line)
    if table.exists() and picture.exists():
        console.say("these schedules were drawn before: nothing is drawn again")
    else:
        write(drawn, table, picture)
    console.say(f"Next: {program('train')} {' '.join(words)}".rstrip())
    console.say(f"Results: {picture}, {table}")
    return 0
