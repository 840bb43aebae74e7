"""``python -m accel_oct_bench run SUITE`` and its other commands: ``accel-oct bench``."""

import sys

from accel_oct_bench.command import main

sys.exit(main())
