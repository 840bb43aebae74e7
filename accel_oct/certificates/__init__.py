"""Certificates: files with a proof that a tree is optimal, which a program of its own can check.

The format is in docs/certificates.md, the program that checks is ``accel_oct_checker.py``.
"""

from accel_oct.certificates.claim import Claim, Column, FeatureProblem
from accel_oct.certificates.document import Certificate, write_certificate

__all__ = ["Certificate", "Claim", "Column", "FeatureProblem", "write_certificate"]
