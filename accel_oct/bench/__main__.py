"""``python -m accel_oct.bench run SUITE`` and its other commands: ``accel-oct bench``."""

import sys

from accel_oct.bench.command import main

sys.exit(main())
