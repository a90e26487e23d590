"""How many examples are tried, and a place to try them in."""

import importlib
import os
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ablab.tasks.verbs import VERBS, module_of

IMPORTED = (
    *(f"{package}.{module_of(verb)}" for verb, package in VERBS.items()),
    *(
        "ablab.run",
        "ablab.tasks.plan",
        "ablab.sweep.hydra",
        "ablab.sweep.search_sweep",
        "ablab.transformer.stages.schedules",
        "hydra.main",
    ),
    *("hydra.core.plugins", "optuna", "ablab.search.trials", "matplotlib.pyplot"),
)
"""What a fork should not have to import again."""


def examples(share: float = 1.0, *, most: int | None = None) -> settings:
    """Settings of a property: that share of ABLAB_EXAMPLES, which is 40 by default, and at least 5."""
    wanted = max(5, int(share * int(os.environ.get("ABLAB_EXAMPLES", "40"))))
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    count = wanted if most is None else min(wanted, most)
    return settings(max_examples=count, suppress_health_check=checks, database=None)


@pytest.fixture(scope="session")
def warm() -> None:
    """Import and compose once, in the process from which every example is forked."""
    from hydra.core.plugins import Plugins

    from ablab.config import compose
    from ablab.study.definition import define

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in IMPORTED:
            importlib.import_module(name)
        Plugins.instance()
    compose(["norm=scalenorm"])
    define(("norm=pre,post",))


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory, warm: None) -> Path:
    """A working directory with an experiment of one's own."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "mine.yaml").write_text("question: q\nfactors: {layerdrop: [0, 0.1]}\nseeds: [1, 2]\n")
    return folder
