"""Why counting and listing end early."""

from __future__ import annotations


class Stopped(Exception):
    """The time is up, or the caller wants to stop."""


class OutOfMemory(Exception):
    """What is kept would take more memory than allowed."""
