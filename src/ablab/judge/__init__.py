"""What the runs show: selection, evidence, differences, claims and their verdicts. Called, it judges a data frame.

`ablab.judge(frame, ...)` is `ablab.api.judge_frame`: a package that can be called, since both have this name.
"""

import sys
from types import ModuleType
from typing import Any


class _Judge(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        from ablab.api.judging import judge_frame

        return judge_frame(*arguments, **named)


sys.modules[__name__].__class__ = _Judge
