from ablab.api import Error as Error
from ablab.api import open as open
from ablab.api.judging import judge_frame as judge

__all__ = ["Error", "__version__", "judge", "open"]

__version__: str
