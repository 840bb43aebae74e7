"""The exceptions that the library raises on purpose."""

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
    "as_invalid_input",
    "did_you_mean",
    "shown",
]

_MOST_BITS = 256


class AccelOctError(Exception):
    """Base class of every error that accel_oct raises on purpose."""


class InvalidInputError(AccelOctError, ValueError):
    """An argument cannot be used; the message names the argument and says what was found in it."""


class InvalidTypeError(InvalidInputError, TypeError):
    """An argument is of a type that cannot be used; a TypeError too, where scikit-learn's conventions ask for one."""


class ClusterError(AccelOctError, RuntimeError):
    """A cluster that was to compute something cannot go on; what was found by then is in the checkpoint, if any."""


class SingleLeafWarning(UserWarning):
    """The best tree is a single leaf, which predicts one class whatever the row."""


class MissingKernelsError(AccelOctError, ImportError):
    """The compiled kernels are missing or cannot be loaded on this machine; the message says how to get them."""


class NoTreeError(AccelOctError, RuntimeError):
    """A tree was asked for where none was found: no tree keeps the constraints, or none was met in time.

    Attributes
    ----------
    status : str
        "infeasible" where it is proven that there is none, over the splits and to the depth that the message names;
        else what ended the search, such as "time_limit", which proves nothing.
    """

    def __init__(self, message: str, status: str = "infeasible") -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type[NoTreeError], tuple[str, str]]:
        return type(self), (str(self), self.status)


@contextmanager
def as_invalid_input(argument: str | None = None) -> Iterator[None]:
    """Turn what another library says about the user's data into our own error, with the same words.

    For calls that do nothing but check what the user passed: elsewhere it would pass our own bugs off as the user's.

    Parameters
    ----------
    argument : str, optional
        Named in front, where those words do not name it.
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
    """A value for an error message: short, whatever its size or depth."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "a huge whole number"
    try:
        text = reprlib.repr(value)
    except Exception:  # whatever a foreign __repr__ does, or a number that is too long to be written
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """``; did you mean 'class'?`` where something of that kind is known, else nothing."""
    texts = [str(each) for each in known]
    same = [text for text in texts if text.lower() == str(name).lower()]
    near = same or get_close_matches(str(name), texts, n=2)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
