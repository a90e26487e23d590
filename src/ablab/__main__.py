"""`python -m ablab <verb>`."""

import sys

from ablab.cli import main

sys.exit(main())
