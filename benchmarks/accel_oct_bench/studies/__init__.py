"""Programs whose figures the documentation quotes, each run by ``python -m accel_oct_bench.studies.NAME``."""
