"""What compiled code is made with; the code itself stands in the folders `kernels` of the layers above.

Importing this package loads nothing; `jit` and `lanes` load numba, which is optional and takes half a second, so they
are imported where compiled code is used next.
"""
