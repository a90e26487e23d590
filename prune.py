"""Quality against depth of a finished run: `python prune.py run=<id> pruning=search`; see --help."""

import sys

from ablab.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["prune", *sys.argv[1:]]))
