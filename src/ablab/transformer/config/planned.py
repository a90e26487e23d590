"""A plan and its settings as those of a translation run, which the platform knows as those of some task."""

from typing import cast

from ablab.config.schema import DEFAULT, Config
from ablab.errors import UserError
from ablab.plan import PlannedRun
from ablab.transformer.config.schema import TranslationConfig

PlannedTranslation = PlannedRun[TranslationConfig]
"""The plan of a translation run."""


def settings_of_translation(config: Config) -> TranslationConfig:
    """Return settings as those of a translation run; UserError for those of another task."""
    if not isinstance(config, TranslationConfig):
        raise UserError(f"task={config.task.kind}: no run in translation; allowed: task={DEFAULT}")
    return config


def plan_of_translation(planned: PlannedRun[Config]) -> PlannedTranslation:
    """Return a plan as that of a translation run; UserError for one of another task."""
    settings_of_translation(planned.config)
    return cast(PlannedTranslation, planned)
