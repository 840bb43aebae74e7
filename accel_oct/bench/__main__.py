"""``python -m accel_oct.bench run SUITE`` and ``python -m accel_oct.bench report FILE``."""

import sys

from accel_oct.bench.command import main

sys.exit(main())
