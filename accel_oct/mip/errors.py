"""What can go wrong at the seam to a solver, each as a type of its own."""

from __future__ import annotations

from accel_oct.errors import AccelOctError, InvalidInputError


class MipError(AccelOctError):
    """Base of every error that the MIP layer raises."""


class ModelError(MipError, InvalidInputError):
    """A model, a batch of rows or a start vector is malformed."""


class HandlerError(MipError):
    """A handler replied with something it had not declared, or with something malformed."""


class InvalidCutError(MipError):
    """A cut cannot be right: it removed a solution that is known to be feasible, or cuts that should together keep an
    optimum removed everything."""


class UnsupportedError(MipError):
    """The backend cannot do what was asked, and the cut loop cannot stand in for it."""


class UnknownBackendError(MipError, InvalidInputError):
    """No backend of that name is registered."""


class BackendUnavailableError(MipError):
    """The backend is registered, but its solver package is not installed."""


class LicenceError(BackendUnavailableError):
    """The solver is installed, but has no licence, or one too small for the model."""


class SolverError(MipError):
    """The solver itself failed."""
