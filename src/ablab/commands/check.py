"""The `check` command: whether the parts of a line keep the laws of their kinds, or the arms of a study run."""

from collections.abc import Sequence
from importlib import import_module

from ablab.commands.options import CheckOptions
from ablab.config.schema import part_groups
from ablab.errors import DONE, FAILED, UserError
from ablab.study.definition import define
from ablab.study.search import define_search
from ablab.study.study import Study
from ablab.sweep.check import NO_ARMS, said_of, try_out
from ablab.tasks.verbs import TRANSLATION, LawChecked, PartsChecked, say_json, split_words
from ablab.tracking.console import Console


def check(arguments: Sequence[str]) -> int:
    """Check a study if the words name one, else the parts that they choose; return 0 if all is well."""
    options, words = split_words(CheckOptions, arguments)
    as_json = options.format == "json"
    if not _name_a_study(words):
        laws = import_module(f"{TRANSLATION}.check")
        code: int = laws.check(words, as_json=as_json)
        return code
    return _check_study(study_of(words), as_json=as_json)


def study_of(words: Sequence[str]) -> Study:
    """Return the study whose arms the words name; UserError for a search, which has none."""
    if define_search(tuple(words)) is not None:
        raise UserError(NO_ARMS)
    return define(tuple(words))


def _name_a_study(words: Sequence[str]) -> bool:
    """Return whether arms are to be tried out: those of an experiment, or of a task none of whose parts are named."""
    named = {word.partition("=")[0].partition(".")[0] for word in words}
    return "experiment" in named or ("task" in named and not named & part_groups().keys() - {"task", "logger"})


def _check_study(study: Study, *, as_json: bool) -> int:
    found = try_out(study, Console(stderr=as_json))
    broken = {arm: result.get("error") for arm, result in found.items()}
    holds = not any(broken.values())
    if as_json:
        works = {arm: arm if error else f"{arm}: {said_of(found[arm])}" for arm, error in broken.items()}
        laws = [LawChecked(law=works[arm], broken=error) for arm, error in broken.items()]
        say_json(PartsChecked(holds=holds, laws=laws))
    return DONE if holds else FAILED
