"""Slow, simple, independent answers that the library is compared with, and small data sets rich in ties."""
