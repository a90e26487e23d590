"""Text in, text out: `python translate.py run=<id> < in.txt > out.txt`; see --help."""

import sys

from ablab.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["translate", *sys.argv[1:]]))
