"""The Python API: a store opened as runs, studies and tables. `ablab.open("outputs")` is where to begin.

Nothing here loads torch before a run is asked to translate. Bad input raises `Error` with a one-line message.
"""

from ablab.api.run import Run, Scores
from ablab.api.store import Runs, Store, open
from ablab.api.tables import Rows
from ablab.errors import UserError as Error

__all__ = ["Error", "Rows", "Run", "Runs", "Scores", "Store", "open"]
