"""Samplers and stopping rules. What is drawn for a trial is a function of the seed, its number and the trials told."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

if TYPE_CHECKING:
    from optuna.study import Study

POPULATION = 10
"""Of NSGA-II (Deb et al. 2002). Optuna's 50 would make most searches of trainings random ones."""


class _OrderedNSGAII(NSGAIISampler):
    """Optuna's hands over parents as they were selected the first time, and by their numbers from then on.

    A trial that is asked for again after a kill would get other values.
    """

    def get_parent_population(self, study: "Study", generation: int) -> list[FrozenTrial]:
        """By number, always."""
        return sorted(super().get_parent_population(study, generation), key=lambda trial: trial.number)


class StatelessSampler(BaseSampler):
    """A fresh sampler for every draw, seeded by the search's seed, the trial's number and the key.

    Optuna stores no sampler's state: one that is seeded once makes the same early suggestions after every restart.
    Here a restart changes nothing, and a trial that lost some of its values to a kill gets those it would have had.
    """

    def __init__(self, kind: str, seed: int, *, several_at_a_time: bool) -> None:
        self.kind, self.seed, self.several_at_a_time = kind, seed, several_at_a_time

    def _fresh(self, trial: FrozenTrial, key: str = "") -> BaseSampler:
        text = f"{self.seed} {trial.number} {key}"
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        if self.kind == "tpe":
            # Running trials count as poor ones, so that those that run at a time differ.
            return TPESampler(seed=seed, constant_liar=self.several_at_a_time)
        if self.kind == "nsga2":
            return _OrderedNSGAII(seed=seed, population_size=POPULATION)
        return RandomSampler(seed=seed)

    def infer_relative_search_space(self, study: "Study", trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """As the fresh one does."""
        return self._fresh(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: "Study", trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """As the fresh one does."""
        return self._fresh(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: "Study", trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """As the fresh one does."""
        return self._fresh(trial, param_name).sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: "Study", trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """As the fresh one does."""
        self._fresh(trial).after_trial(study, trial, state, values)


def stopping_rule(kind: str, *, first_step: int, last_step: int | None) -> BasePruner:
    """Which trials are poor, by validations at equal steps.

    `median`: worse than the median of the finished ones, as soon as five of them are there; no trial is judged
    before a third of its steps, since what learns fast at first is not what ends best. `hyperband`: outside the best
    third at a rung of its bracket; brackets differ in where the rungs begin (Li et al. 2018).
    """
    if kind == "median":
        return MedianPruner(n_startup_trials=5, n_warmup_steps=(last_step or 0) // 3)
    if kind == "hyperband":
        return HyperbandPruner(min_resource=first_step, max_resource=last_step or "auto", reduction_factor=3)
    return NopPruner()
