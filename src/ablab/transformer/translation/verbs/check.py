"""Whether the parts that a train line names keep the laws of their kinds."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from ablab.code.load import failure_of
from ablab.config import compose, compose_arm
from ablab.config.kinds import outside_parts
from ablab.config.schema import part_groups
from ablab.errors import DONE, FAILED, UserError
from ablab.tasks.verbs import LawChecked, PartsChecked, say_json
from ablab.tracking.console import Console
from ablab.transformer.config.schema import TranslationConfig, settings_of_translation

if TYPE_CHECKING:
    from ablab.transformer.translation.contracts.laws import Law

SMALL = (
    *("model.d_model=16", "model.d_ff=24", "model.num_heads=4", "model.encoder_layers=2", "model.decoder_layers=3"),
    *("smoke=true", "pruning=none", "logger=none", "trainer.threads=1", "trainer.progress=false"),
)
"""A model and a run that take a second; the words of the user go before these."""

OF_NO_MODEL = ("schedule", "optim", "loss", "data", "pruning", "logger")
"""Groups whose parts are not in the model."""


def check(words: Sequence[str], *, as_json: bool) -> int:
    """Run every law of the parts that the words choose; return 0 if all hold."""
    chosen = {word.partition("=")[0].partition(".")[0] for word in words} & part_groups().keys()
    if not chosen:
        raise UserError(
            "check: no part; allowed: the words of a train line that choose one, such as norm=scalenorm, or "
            "experiment=NAME"
        )
    settings_of_translation(compose_arm(words).config)  # before words are added that the user did not type
    typed = {word.partition("=")[0] for word in words}
    line = [*words, *(word for word in SMALL if word.partition("=")[0] not in typed)]
    config = settings_of_translation(compose(line).config)
    config.data.check()
    console = Console(stderr=as_json)
    reasons: list[str] = []
    laws = []
    for law in _laws(chosen, line):
        reason = _broken(law, config)
        said = "as above" if reason in reasons else reason
        console.say(f"holds   {law.sentence}" if reason is None else f"BROKEN  {law.sentence}: {said}")
        laws.append(LawChecked(law=law.sentence, broken=reason))
        reasons += [] if reason is None else [reason]
    console.say(f"{' '.join(words)}: {_count(len(reasons))}")
    if as_json:
        say_json(PartsChecked(holds=not reasons, laws=laws))
    return FAILED if reasons else DONE


def _laws(chosen: Collection[str], line: list[str]) -> Iterator["Law"]:
    """Yield the laws of the chosen groups; `line` describes the run that is stopped and continued."""
    from ablab.transformer.translation.contracts import (  # torch from here on
        of_corpora,
        of_losses,
        of_model,
        of_pruning,
        of_training,
    )

    if "data" in chosen:
        yield from of_corpora.LAWS
    if set(chosen).difference(OF_NO_MODEL):
        yield from of_model.LAWS
    if "loss" in chosen:
        yield from of_losses.LAWS
    if "pruning" in chosen:
        yield from of_pruning.LAWS
    yield from of_training.laws(line)


def _broken(law: "Law", config: TranslationConfig) -> str | None:
    """Return what breaks the law, or None. An error breaks it too; its line is named if it is the part's own."""
    from ablab.transformer.translation.contracts.laws import BrokenError

    try:
        law.check(config)
    except BrokenError as error:
        return str(error)
    except Exception as error:
        return failure_of(error, outside_parts(config).values())
    return None


def _count(broken: int) -> str:
    return "every law holds" if not broken else "a law is broken" if broken == 1 else f"{broken} laws are broken"
