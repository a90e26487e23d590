"""The judge: what the runs of a study show, as data, computed from their records without torch.

It can be called: `ablab.judge(frame, ...)` judges a data frame. That is `ablab.api.judging.judge_frame`, which writes
sentences, so that nothing here imports it; the package and the function have one name.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Judge(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return import_module("ablab.api.judging").judge_frame(*arguments, **named)


sys.modules[__name__].__class__ = _Judge
