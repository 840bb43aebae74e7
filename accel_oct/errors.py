"""The exceptions that the library raises on purpose."""

from __future__ import annotations

__all__ = ["AccelOctError", "InvalidInputError"]


class AccelOctError(Exception):
    """Base class of every error that accel_oct raises on purpose."""


class InvalidInputError(AccelOctError, ValueError):
    """An argument cannot be used; the message names the argument and says what was found in it."""
