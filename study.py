"""Plan and state of a study: `python study.py experiment=norms`; see --help."""

import sys

from ablab.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["study", *sys.argv[1:]]))
