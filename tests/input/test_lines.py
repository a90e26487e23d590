"""Ten thousand command lines: none brings a traceback, none hangs, none is half done, none succeeds with nonsense."""

import json
import re
from pathlib import Path

from hypothesis import given

from ablab.config.groups import groups
from ablab.errors import BAD_INPUT
from ablab.transformer.config.former import GONE, WORDS
from tests.input.conftest import examples
from tests.input.forked import Ended, typed
from tests.input.laws import assert_no_fault_of_ours, assert_told_in_one_line, tree
from tests.input.vocabulary import lines, valid_lines

ACCEPTED = "accepted.json"


def _accept(planned: object, console: object, began: float) -> object:
    """In place of training: the configuration that would have been trained."""
    config = planned.config.model_dump(serialize_as_any=True)  # type: ignore[attr-defined]
    Path(ACCEPTED).write_text(json.dumps(config, allow_nan=False))
    return planned


def _done(*_: object, **__: object) -> int:
    return 0


def _refuse(*_: object, **__: object) -> None:
    from ablab.errors import UserError

    raise UserError("selfcheck trains")


NOT_DONE = {
    "ablab.run.run": _accept,
    "ablab.sweep.hydra.sweep": _done,
    "ablab.sweep.hydra.search_trials": _done,
    "ablab.sweep.hydra.perform": _done,
    "hydra_plugins.ablab_hydra.launchers.StudyLauncher.launch": lambda *_, **__: [],
    "ablab.commands.study.check": lambda found, console: True,
    "ablab.transformer.translation.task.Translation.laws": lambda task, chosen, line: iter(()),
    "ablab.transformer.language_model.task.LanguageModelling.laws": lambda task, chosen, line: iter(()),
    "ablab.commands.check.try_out": lambda study, console: {},
    "ablab.transformer.translation.verbs.selfcheck._undisturbed": _refuse,
    "ablab.transformer.stages.schedules.write": _done,
}
"""What trains or draws."""


def _typed(words: list[str], place: Path) -> Ended:
    before = tree(place)
    ended = typed(words, place, instead=NOT_DONE)
    assert_no_fault_of_ours(ended)
    assert_told_in_one_line(ended)
    if ended.code == BAD_INPUT:
        assert tree(place) == before
    return ended


@examples(0.3)
@given(words=lines())
def test_any_line_is_done_or_refused_in_one_line(words: list[str], place: Path) -> None:
    _typed(words, place)


@examples(0.2)
@given(words=valid_lines())
def test_a_line_that_is_accepted_has_every_word_in_its_configuration(words: list[str], place: Path) -> None:
    (place / ACCEPTED).unlink(missing_ok=True)
    ended = _typed(words, place)
    assert (ended.code == 0) == (place / ACCEPTED).exists()
    if ended.code == 0:
        config = json.loads((place / ACCEPTED).read_text())
        for key, value in dict(word.partition("=")[::2] for word in words[1:]).items():
            if config["smoke"] or key in {*groups(), *WORDS, *GONE} or not re.fullmatch(r"true|false|null|\d+", value):
                continue
            found = config
            for part in key.split("."):
                found = found[part]
            assert found == json.loads(str(int(value)) if value.isdigit() else value), (key, value, found)
