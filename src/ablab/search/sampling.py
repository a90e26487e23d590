"""Samplers, draws and stopping rules. A trial's draws depend only on the seed, its number and the completed trials."""

import hashlib
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from ablab.search.space import Space

POPULATION = 10
"""Population of NSGA-II (Deb et al. 2002). Optuna's 50 would turn most searches over training runs into random ones."""


class _OrderedNSGAII(NSGAIISampler):
    """NSGA-II with its parents always in the order of their numbers.

    Optuna returns them in order of selection the first time and by number afterwards, so that a trial asked for again
    after a kill would get other values.
    """

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        return sorted(super().get_parent_population(study, generation), key=lambda trial: trial.number)


class StatelessSampler(BaseSampler):
    """A sampler that seeds a fresh Optuna sampler for each draw, by the search's seed, the trial's number and the key.

    Optuna stores no sampler state: a sampler seeded once repeats its early suggestions after every restart. Here a
    restart changes nothing, and a trial that lost some of its values to a kill gets those it would have had.
    """

    def __init__(self, kind: str, seed: int, *, several_at_a_time: bool) -> None:
        self.kind, self.seed, self.several_at_a_time = kind, seed, several_at_a_time

    def _fresh(self, trial: FrozenTrial, key: str = "") -> BaseSampler:
        text = f"{self.seed} {trial.number} {key}"
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        if self.kind == "tpe":
            # Running trials count as poor ones, so that concurrent trials differ.
            return TPESampler(seed=seed, constant_liar=self.several_at_a_time)
        if self.kind == "nsga2":
            return _OrderedNSGAII(seed=seed, population_size=POPULATION)
        return RandomSampler(seed=seed)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._fresh(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._fresh(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._fresh(trial, param_name).sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._fresh(trial).after_trial(study, trial, state, values)


def stopping_rule(kind: str, *, first_step: int | None, last_step: int | None) -> BasePruner:
    """Return the rule that finds poor trials by their validations at equal steps.

    `median`: worse than the median of the finished trials, once there are five; no trial is judged before a third of
    its steps, since fast early learning does not predict the best end. `hyperband`: outside the best third at a rung of
    its bracket; brackets differ in where the rungs begin (Li et al. 2018).
    """
    if kind == "median":
        return MedianPruner(n_startup_trials=5, n_warmup_steps=(last_step or 0) // 3)
    if kind == "hyperband":
        return HyperbandPruner(min_resource=first_step or 1, max_resource=last_step or "auto", reduction_factor=3)
    return NopPruner()


def draws(space: Space, count: int, seed: int) -> list[tuple[str, ...]]:
    """Return the words of independent random draws; a longer list begins with the shorter one."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=StatelessSampler("random", seed, several_at_a_time=False))
    distributions = space.distributions()
    return [space.words(study.ask(distributions).params) for _ in range(count)]
