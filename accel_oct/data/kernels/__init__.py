"""Compiled code of the data layer; importing its modules loads numba, see `accel_oct.compiled`."""
