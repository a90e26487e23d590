"""The entry point of `train.py -m`: Hydra chooses the sweeper and the launcher, and ours carry out the line.

Words of the line configure Hydra's two.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Protocol

from ablab.code.folders import PRIMARY
from ablab.config import Config
from ablab.config.grammar import malformed
from ablab.config.values import own_hydra
from ablab.errors import DONE, UserError, choices
from ablab.search import settings as search_settings
from ablab.search.settings import Settings
from ablab.study.definition import define
from ablab.study.search import define_search
from ablab.sweep.launchers.task import perform
from ablab.sweep.search_sweep import search_trials
from ablab.sweep.sweep import Launch, policy_of, sweep
from ablab.tasks.registry import task_in_words
from ablab.tracking.console import Console


class RunLauncher(Protocol):
    """What a line asks of the launcher that Hydra has made for it. `at_a_time`: trials of a search. `is_here`: runs
    are made on this machine.
    """

    @property
    def at_a_time(self) -> int: ...
    @property
    def is_here(self) -> bool: ...

    def check(self, configs: Iterable[Config]) -> None:
        """Raise UserError for runs that it cannot make, before anything is written."""

    def launching(self, fail_fast: bool, jobs: int | None = None) -> Launch:
        """Return a function that makes runs, at most `jobs` at a time."""


@dataclass(frozen=True)
class TypedLine:
    """The words of a sweep, without those of Hydra; the job that Hydra gives its sweeper and its launcher.

    Hydra would apply the words to the default options before our sweeper could choose the options they are meant for:
    `experiment=x data.path=y`, where x chooses data=multi30k.
    """

    words: tuple[str, ...]

    def __call__(self, config: Any) -> int:
        """Make one run, for a launcher of Hydra's own; return its exit code."""
        from hydra.core.hydra_config import HydraConfig

        return perform(list(HydraConfig.get().overrides.task), log=None)

    def sweep(self, launcher: RunLauncher, settings: Settings | None = None) -> int:
        """Make all runs that are missing, and return the exit code. `settings`: of a typed search.

        The search or the tuning that an experiment needs comes first, then the study itself.
        """
        policy, console = policy_of(self.words), Console()
        search = define_search(self.words, settings)
        if search is not None:
            launcher.check([search.base.config])
            jobs = launcher.at_a_time
            launch = launcher.launching(policy.fail_fast, jobs)
            code = search_trials(search, launch, policy, console, jobs=jobs)
            if code or settings is not None:
                return code
        study = define(self.words)
        launcher.check(cell.planned.config for cell in study.cells)
        launch = launcher.launching(policy.fail_fast)
        if policy.rerun and study.trials is not None:
            # Settings that other code chose are chosen anew, by runs that are made as those were.
            study = replace(study.trials, typed=self.words)
        code = sweep(study, launch, policy, console, is_here=launcher.is_here)
        if study.is_tuning and not code:
            code = sweep(define(self.words), launch, policy, console, is_here=launcher.is_here)
        return code


def multirun(words: Sequence[str]) -> int:
    """Run the whole sweep and return its exit code."""
    of_hydra = hydra_words(words)
    own = tuple(word for word in words if word not in of_hydra)
    settings = check_hydra(of_hydra, own)
    is_ours = _is_ours(of_hydra)
    if not is_ours:
        policy_of(own)
        if define_search(own, settings) is None:
            define(own)
    return carry_out(TypedLine(own), of_hydra if is_ours else words)


def carry_out(line: TypedLine, words: Sequence[str]) -> int:
    """Let Hydra make the launcher that these words choose and carry out the line with it; return the exit code."""
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException

    with own_hydra():
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        try:
            code = hydra.multirun(PRIMARY, line, _for_hydra(words))
        except HydraException as error:  # another sweeper than ours takes the words as they are
            raise UserError(f"{' '.join(words)}: {' '.join(str(error).split())}") from None
    return code if isinstance(code, int) else DONE


def _is_ours(of_hydra: Sequence[str]) -> bool:
    """Return whether the chosen sweeper is one of ours."""
    chosen = [word.partition("=")[2] for word in of_hydra if word.partition("=")[0] == "hydra/sweeper"]
    return not chosen or chosen[-1] in ("study", "optuna")


OURS = "hydra_plugins.ablab_hydra."
"""The package of the launchers that check their settings on construction."""

GROUPS = ("hydra/launcher", "hydra/sweeper")
"""The groups of Hydra whose options and settings a study reads."""

ANY_NAMES = ("hydra.launcher.additional_parameters.", "hydra.launcher.runtime_env.")
"""Settings whose names are those of another program: sbatch, Ray."""

READ = "hydra/launcher=OPTION, hydra/sweeper=OPTION, and settings below hydra.launcher and hydra.sweeper"

OPTUNA = "hydra_plugins.ablab_hydra.sweepers.OptunaSweeper"
"""Hydra's name of the sweeper that searches."""


def hydra_words(words: Sequence[str]) -> list[str]:
    """Return the words that configure Hydra, not the runs."""
    return [word for word in words if word.lstrip("+~").startswith(("hydra.", "hydra/"))]


def _for_hydra(words: Sequence[str]) -> list[str]:
    """Return the words with Hydra's sign for new names where a setting takes any: nobody can know that it needs one."""
    return [f"++{word}" if f"{word.partition('=')[0]}.".startswith(ANY_NAMES) else word for word in words]


def check_hydra(words: Sequence[str], others: Sequence[str]) -> Settings | None:
    """Validate the words for Hydra; return the search settings if the sweeper searches, else None.

    others: the words of the runs, whose task knows what can be searched for.

    Raises UserError with one line. Hydra itself would print many lines, and only after a run.
    """
    from hydra.utils import get_class
    from omegaconf import OmegaConf

    if "hydra/sweeper=optuna" in words:
        search_settings.check_keys(words)
    composed = _composed(words)
    settings: Any = OmegaConf.to_container(composed.hydra.launcher, resolve=True)
    launcher, sweeper = settings.pop("_target_"), composed.hydra.sweeper
    if launcher.startswith(OURS):
        _check_read(words)
        _check_fields(get_class(launcher), settings)
        get_class(launcher)(**settings)
    return search_settings.of_hydra(sweeper, task_in_words(others)) if sweeper._target_ == OPTUNA else None


def _composed(words: Sequence[str]) -> Any:
    """Return the configuration with Hydra's part under these words; UserError in our words for what it refuses."""
    from hydra import compose
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    for word in words:
        key, _, value = word.partition("=")
        try:
            OverridesParser.create().parse_overrides([word])
        except HydraException:
            raise UserError(malformed(word)) from None
        if key in GROUPS and value not in (options := _options(key)):
            raise UserError(f"{word}: unknown option; {choices(value, options)}")
        if key in (group.replace("/", ".") for group in GROUPS):
            raise UserError(f"{word}: not one setting; allowed: {key.replace('.', '/')}=OPTION, {key}.NAME=VALUE")
    try:
        with own_hydra():
            return compose(PRIMARY, overrides=_for_hydra(words), return_hydra_config=True)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        cause: Any = error.__cause__ or error
        unknown = next((word for word in words if getattr(cause, "full_key", None) == word.partition("=")[0]), None)
        if unknown is not None and isinstance(cause, AttributeError):
            raise UserError(f"{unknown}: {_no_setting(words, unknown)}") from None
        raise UserError(f"{' '.join(words)}: {str(cause).splitlines()[0]}") from None


def _options(group: str) -> list[str]:
    from hydra.core.global_hydra import GlobalHydra

    with own_hydra():
        return sorted(GlobalHydra.instance().config_loader().get_group_options(group))


def _no_setting(words: Sequence[str], unknown: str) -> str:
    """Return what is allowed in place of a setting that the chosen launcher or sweeper does not have."""
    key = unknown.partition("=")[0]
    of = ".".join(key.split(".")[:2])
    if of.replace(".", "/") not in GROUPS:
        return f"no such setting; allowed: {READ}"
    chosen = [word for word in words if word.partition("=")[0] in GROUPS]
    having = [str(name) for name in _composed(chosen).hydra[of.partition(".")[2]] if not str(name).startswith("_")]
    if not having:
        return f"{of} has no settings; allowed with hydra/sweeper=optuna, or in search: of an experiment file"
    return f"no such setting; {choices(key, [f'{of}.{name}' for name in having])}"


def _check_fields(launcher: type, settings: Mapping[str, Any]) -> None:
    """Refuse settings that were added with `+` and are none of the launcher's."""
    known = signature(launcher).parameters
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return  # it passes them on to whoever knows
    for name in sorted(settings.keys() - known.keys()):
        allowed = choices(f"hydra.launcher.{name}", [f"hydra.launcher.{each}" for each in known])
        raise UserError(f"hydra.launcher.{name}: no such setting; {allowed}")


def _check_read(words: Sequence[str]) -> None:
    """Refuse settings of Hydra that our launchers do not read: they would have no effect."""
    for word in words:
        key = word.partition("=")[0].lstrip("+~")
        if not (key in GROUPS or key.startswith(tuple(f"{group.replace('/', '.')}." for group in GROUPS))):
            other = "; results lie in outputs=FOLDER" if "dir" in key else ""
            raise UserError(f"{word} has no effect; allowed: {READ}{other}")
