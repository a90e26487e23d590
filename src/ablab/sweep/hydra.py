"""The entry point of `train.py -m`: Hydra chooses the sweeper and the launcher, and ours carry out the line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ablab.code.folders import PRIMARY
from ablab.config import Config
from ablab.config.values import own_hydra
from ablab.errors import DONE, UserError
from ablab.search.settings import Settings
from ablab.study.definition import define
from ablab.study.search import define_search
from ablab.sweep.hydra_words import check_hydra, hydra_words
from ablab.sweep.launchers.task import perform
from ablab.sweep.search_sweep import search_trials
from ablab.sweep.sweep import Launch, policy_of, sweep
from ablab.tracking.console import Console


class RunLauncher(Protocol):
    """What a line asks of the launcher that Hydra has made for it. `at_a_time`: trials of a search."""

    @property
    def at_a_time(self) -> int: ...

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
        code = sweep(study, launch, policy, console)
        if study.is_tuning and not code:
            code = sweep(define(self.words), launch, policy, console)
        return code


def multirun(words: Sequence[str]) -> int:
    """Run the whole sweep and return its exit code."""
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException

    of_hydra = hydra_words(words)
    own = tuple(word for word in words if word not in of_hydra)
    settings = check_hydra(of_hydra)
    is_ours = _is_ours(of_hydra)
    if not is_ours:
        policy_of(own)
        if define_search(own, settings) is None:
            define(own)
    with own_hydra():
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        try:
            code = hydra.multirun(PRIMARY, TypedLine(own), list(of_hydra if is_ours else words))
        except HydraException as error:  # another sweeper than ours takes the words as they are
            raise UserError(f"{' '.join(words)}: {' '.join(str(error).split())}") from None
    return code if isinstance(code, int) else DONE


def _is_ours(of_hydra: Sequence[str]) -> bool:
    """Return whether the chosen sweeper is one of ours."""
    chosen = [word.partition("=")[2] for word in of_hydra if word.partition("=")[0] == "hydra/sweeper"]
    return not chosen or chosen[-1] in ("study", "optuna")
