"""Exceptions of the library, and helpers for error messages."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

__all__ = [
    "AccelOctError",
    "ClusterError",
    "InvalidInputError",
    "InvalidTypeError",
    "MissingKernelsError",
    "NoTreeError",
    "SingleLeafWarning",
    "StoppedError",
    "as_invalid_input",
    "did_you_mean",
    "shown",
]

_MOST_BITS = 256


class AccelOctError(Exception):
    """Base class of all exceptions of accel_oct."""


class InvalidInputError(AccelOctError, ValueError):
    """An argument is invalid; the message names the argument and the value."""


class InvalidTypeError(InvalidInputError, TypeError):
    """An argument has an invalid type; also a TypeError, where scikit-learn's conventions require one."""


class ClusterError(AccelOctError, RuntimeError):
    """A computation on a cluster failed; the checkpoint, if any, has its results so far."""


class SingleLeafWarning(UserWarning):
    """The best tree is a single leaf, which predicts the same class for every row."""


class MissingKernelsError(AccelOctError, ImportError):
    """The compiled kernels are missing or cannot be loaded; the message says how to install them."""


class NoTreeError(AccelOctError, RuntimeError):
    """There is no tree: no tree satisfies the constraints, or none was found in time.

    Attributes
    ----------
    status : str
        "infeasible" if it is proven that there is no tree, over the splits and the depth that the message names.
        Otherwise the reason why the search ended, such as "time_limit", which proves nothing.
    """

    def __init__(self, message: str, status: str = "infeasible") -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type[NoTreeError], tuple[str, str]]:
        return type(self), (str(self), self.status)


class StoppedError(AccelOctError, RuntimeError):
    """A computation without a partial result was stopped by its time limit or by Ctrl-C."""


@contextmanager
def as_invalid_input(argument: str | None = None) -> Iterator[None]:
    """Convert an error of another library about the user's data to InvalidInputError, with the same message.

    Only for calls that check user input: around other code, it would report bugs as invalid input.

    Parameters
    ----------
    argument : str, optional
        Prefix of the message, if the message does not name the argument.
    """
    prefix = "" if argument is None else f"{argument}: "
    try:
        yield
    except AccelOctError:
        raise
    except TypeError as error:
        raise InvalidTypeError(f"{prefix}{error}") from error
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(f"{prefix}{error}") from error


def shown(value: object) -> str:
    """Return a short text of a value for an error message."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "a huge whole number"
    try:
        text = reprlib.repr(value)
    except Exception:  # any error of a foreign __repr__, or a number that is too long to be formatted
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return a suggestion such as ``; did you mean 'class'?``, or an empty string."""
    texts = [str(each) for each in known]
    same = [text for text in texts if text.lower() == str(name).lower()]
    near = same or get_close_matches(str(name), texts, n=2)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
