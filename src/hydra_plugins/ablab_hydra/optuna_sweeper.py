"""hydra/sweeper=optuna: searches the keys that have several values, trial by trial."""

from typing import Any

from hydra.core.config_store import ConfigStore

from hydra_plugins.ablab_hydra.study_sweeper import StudySweeper


class OptunaSweeper(StudySweeper):
    """Hydra's face of ablab.study.searches.story. Its settings are those of ablab.search.settings."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = settings

    def _work(self, arguments: tuple[str, ...], policy: Any, screen: Any) -> int:
        from ablab.search.settings import of_hydra
        from ablab.study.definition import define_search

        search = define_search(arguments, of_hydra(self.settings))
        assert search is not None
        return self._search(search, policy, screen)


ConfigStore.instance().store(
    group="hydra/sweeper",
    name="optuna",
    node={
        "_target_": f"{__name__}.{OptunaSweeper.__name__}",
        "trials": 20,
        "sampler": "tpe",
        "stopping": "none",
        "objectives": ["valid_loss"],
        "seed": 1,
        "training_seed": 1,
        "storage": None,
    },
    provider="ablab",
)
