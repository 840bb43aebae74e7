"""Compiled code: what numba turns into machine code, and the arrays it works on.

Importing this package loads nothing; its modules load numba, which is optional and takes half a second, so they are
imported where compiled code is used next (see `accel_oct.subtree.engine`).
"""
