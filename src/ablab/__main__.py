"""Entry point of `python -m ablab <verb>`, equivalent to `ablab <verb>`."""

import sys

from ablab.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
