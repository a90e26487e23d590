"""One run: `python train.py norm=scalenorm layerdrop=0.2`; see --help."""

import sys

from ablab.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
