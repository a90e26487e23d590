"""Each verb as users see it: its usage, what it does, and its options with their types, defaults and descriptions.

Both the commands and the help pages read them here. Nothing heavy is imported, so that help comes at once.
"""

from collections.abc import Mapping

from ablab.commands.options.base import Options
from ablab.commands.options.experiments import ReportOptions, StudyOptions, TrainOptions
from ablab.commands.options.models import AnalyseOptions, ExportOptions, PruneOptions, TranslateOptions
from ablab.commands.options.stored import (
    DashboardOptions,
    DiffOptions,
    LsOptions,
    PackOptions,
    RmOptions,
    ShowOptions,
    SyncOptions,
    VerifyOptions,
)
from ablab.commands.options.tools import CheckOptions, CompletionOptions, NewOptions, SelfcheckOptions

OPTIONS: Mapping[str, type[Options]] = {
    "train": TrainOptions,
    "study": StudyOptions,
    "report": ReportOptions,
    "prune": PruneOptions,
    "translate": TranslateOptions,
    "analyse": AnalyseOptions,
    "export": ExportOptions,
    "ls": LsOptions,
    "show": ShowOptions,
    "diff": DiffOptions,
    "rm": RmOptions,
    "sync": SyncOptions,
    "dashboard": DashboardOptions,
    "verify": VerifyOptions,
    "pack": PackOptions,
    "new": NewOptions,
    "check": CheckOptions,
    "selfcheck": SelfcheckOptions,
    "completion": CompletionOptions,
}
"""The options of each verb, in the order of the overview."""
