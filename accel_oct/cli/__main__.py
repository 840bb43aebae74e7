"""``python -m accel_oct.cli``."""

import sys

from accel_oct.cli import main

sys.exit(main())
