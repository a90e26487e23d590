"""Whether the parts that a train line names keep the laws of their kinds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ablab.code.load import as_error, failure_of
from ablab.config import compose, compose_arm
from ablab.config.kinds import outside_parts
from ablab.config.schema import Config, part_groups
from ablab.errors import DONE, FAILED, UserError
from ablab.tasks.registry import task_of_option
from ablab.tasks.verbs import LawChecked, PartsChecked, say_json
from ablab.text import how_many
from ablab.tracking.console import Console
from ablab.transformer.stages.task import TransformerTask

if TYPE_CHECKING:
    from ablab.transformer.translation.contracts.laws import Law

SMALL = ("smoke=true", "pruning=none", "logger=none", "trainer.threads=1", "trainer.progress=false")
"""A run that takes a second, with the task's model that does; the words of the user go before these."""


def check(words: Sequence[str], *, as_json: bool) -> int:
    """Run every law of the parts that the words choose; return 0 if all hold."""
    chosen = {word.partition("=")[0].partition(".")[0] for word in words} & part_groups().keys()
    if not chosen:
        raise UserError(
            "check: no part; allowed: the words of a train line that choose one, such as norm=scalenorm, or "
            "experiment=NAME"
        )
    if chosen == {"logger"}:
        tracker = next(word for word in words if word.startswith("logger"))
        raise UserError(f"check {tracker}: trackers have no law; allowed: ablab train smoke=true {tracker}, to try it")
    task = task_of_option(compose_arm(words).config.task)  # before words are added that the user did not type
    if not isinstance(task, TransformerTask):
        raise UserError(f"task={task.name}: has no parts to check; allowed: task=translation, task=language_model")
    typed = {word.partition("=")[0] for word in words}
    line = [*words, *(word for word in (*task.small, *SMALL) if word.partition("=")[0] not in typed)]
    config = compose(line).config
    task.check(config)
    console = Console(stderr=as_json)
    reasons: list[str] = []
    laws = []
    for law in task.laws(chosen, line):
        reason = _broken(law, config)
        said = "as above" if reason in reasons else reason
        console.say(f"holds   {law.sentence}" if reason is None else f"BROKEN  {law.sentence}: {said}")
        laws.append(LawChecked(law=law.sentence, broken=reason))
        reasons += [] if reason is None else [reason]
    count = f"{how_many(len(reasons), 'check')} failed" if reasons else "every check passed"
    console.say(f"{' '.join(words)}: {count}")
    if as_json:
        say_json(PartsChecked(holds=not reasons, laws=laws))
    return FAILED if reasons else DONE


def _broken(law: "Law", config: Config) -> str | None:
    """Return what breaks the law, or None. An error breaks it too; its line is named if it is the part's own."""
    from ablab.transformer.translation.contracts.laws import BrokenError

    try:
        law.check(config)
    except BrokenError as error:
        return str(error)
    except SystemExit as error:
        return failure_of(as_error(error), outside_parts(config).values())
    except Exception as error:
        return failure_of(error, outside_parts(config).values())
    return None
