"""The words of a line that configure Hydra: its launcher and its sweeper. All others would have no effect."""

from collections.abc import Sequence
from typing import Any

from ablab.code.folders import PRIMARY
from ablab.config.grammar import malformed
from ablab.errors import UserError, choices
from ablab.search import settings as search_settings
from ablab.search.settings import Settings

OURS = "hydra_plugins.ablab_hydra."
"""The package of the launchers that check their settings on construction."""

GROUPS = ("hydra/launcher", "hydra/sweeper")
"""The groups of Hydra whose options and settings a study reads."""

READ = "hydra/launcher=OPTION, hydra/sweeper=OPTION, and settings below hydra.launcher and hydra.sweeper"

OPTUNA = "hydra_plugins.ablab_hydra.sweepers.OptunaSweeper"
"""Hydra's name of the sweeper that searches."""


def hydra_words(words: Sequence[str]) -> list[str]:
    """Return the words that configure Hydra, not the runs."""
    return [word for word in words if word.lstrip("+~").startswith(("hydra.", "hydra/"))]


def check_hydra(words: Sequence[str]) -> Settings | None:
    """Validate the words for Hydra; return the search settings if the sweeper searches, else None.

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
        get_class(launcher)(**settings)
    return search_settings.of_hydra(sweeper) if sweeper._target_ == OPTUNA else None


def _composed(words: Sequence[str]) -> Any:
    """Return the configuration with Hydra's part under these words; UserError in our words for what it refuses."""
    from hydra import compose
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from ablab.config.values import own_hydra

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
            return compose(PRIMARY, overrides=list(words), return_hydra_config=True)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        cause: Any = error.__cause__ or error
        unknown = next((word for word in words if getattr(cause, "full_key", None) == word.partition("=")[0]), None)
        if unknown is not None and isinstance(cause, AttributeError):
            raise UserError(f"{unknown}: {_no_setting(words, unknown)}") from None
        raise UserError(f"{' '.join(words)}: {str(cause).splitlines()[0]}") from None


def _options(group: str) -> list[str]:
    from hydra.core.global_hydra import GlobalHydra

    from ablab.config.values import own_hydra

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
    return f"no such setting; {choices(key, [f'{of}.{name}' for name in having])}"


def _check_read(words: Sequence[str]) -> None:
    """Refuse settings of Hydra that our launchers do not read: they would have no effect."""
    for word in words:
        key = word.partition("=")[0].lstrip("+~")
        if not (key in GROUPS or key.startswith(tuple(f"{group.replace('/', '.')}." for group in GROUPS))):
            other = "; results lie in outputs=FOLDER" if "dir" in key else ""
            raise UserError(f"{word} has no effect; allowed: {READ}{other}")
