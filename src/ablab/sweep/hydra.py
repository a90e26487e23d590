"""The entry point of `train.py -m`: every run is composed and validated here, then Hydra sweeps and launches."""

import sys
from collections.abc import Sequence
from typing import Any

from ablab.code.folders import PRIMARY, shipped_conf
from ablab.errors import DONE, FAILED
from ablab.launchers.task import perform
from ablab.study.definition import define
from ablab.study.search_definition import define_search
from ablab.sweep.hydra_words import check_hydra, hydra_words
from ablab.sweep.sweep import policy_of

typed: tuple[str, ...] | None = None
"""The words of the sweep that this process was started for, without those of Hydra.

Hydra would apply them to the default options before our sweeper could choose the options they are meant for:
`experiment=x data.path=y`, where x chooses data=multi30k.
"""

raised: Exception | None = None
"""What ended the sweep. Hydra would answer any exception with a traceback, so it goes past Hydra."""


def multirun(words: Sequence[str]) -> int:
    """Run the whole sweep and return its exit code."""
    global typed, raised
    of_hydra = hydra_words(words)
    own = [word for word in words if word not in of_hydra]
    settings = check_hydra(of_hydra)
    policy_of(own)
    if define_search(own, settings) is None:
        define(tuple(own))
    from hydra import main

    from ablab.config.values import BEHAVIOUR

    typed = tuple(own)
    before, sys.argv = sys.argv, [sys.argv[0], "--multirun", *(of_hydra if _is_ours(of_hydra) else words)]
    try:
        main(config_path=str(shipped_conf()), config_name=PRIMARY, **BEHAVIOUR)(task)()
    except SystemExit as ended:
        if raised is not None:
            raise raised from None
        return ended.code if isinstance(ended.code, int) else FAILED
    finally:
        sys.argv, typed, raised = before, None, None
    return DONE


def _is_ours(of_hydra: Sequence[str]) -> bool:
    """Return whether the chosen sweeper is one of ours."""
    chosen = [word.partition("=")[2] for word in of_hydra if word.partition("=")[0] == "hydra/sweeper"]
    return not chosen or chosen[-1] in ("study", "optuna")


def task(config: Any) -> int:
    """Run one job when a launcher of Hydra's own calls it; return its exit code."""
    from hydra.core.hydra_config import HydraConfig

    return perform(list(HydraConfig.get().overrides.task), log=None)
