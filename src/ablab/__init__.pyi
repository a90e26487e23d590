from ablab.api import Error as Error
from ablab.api import open as open

__version__: str
