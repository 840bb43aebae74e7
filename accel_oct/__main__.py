"""``python -m accel_oct``: the command line."""

import sys

from accel_oct.cli import main

sys.exit(main())
