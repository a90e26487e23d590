"""`python -m ablab <verb>`, the same as `ablab <verb>`."""

import sys

from ablab.cli import main

if __name__ == "__main__":
    sys.exit(main())
