"""What a study found: `python report.py experiment=norms`; see --help."""

import sys

from ablab.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["report", *sys.argv[1:]]))
