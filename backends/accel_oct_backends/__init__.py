"""Solver backends of accel_oct: one module per native API, found by entry point, never imported directly."""
