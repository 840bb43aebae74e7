"""Errors of the MIP layer."""

from __future__ import annotations

from accel_oct.errors import AccelOctError, InvalidInputError


class MipError(AccelOctError):
    """Base of every error that the MIP layer raises."""


class ModelError(MipError, InvalidInputError):
    """A model, a batch of rows or a start vector is malformed."""


class HandlerError(MipError):
    """A handler's reply is malformed, or was not declared in its needs."""


class InvalidCutError(MipError):
    """A cut is invalid: it removed a feasible solution, or OPTIMALITY cuts together removed every optimum."""


class UnsupportedError(MipError):
    """Neither the backend nor the cut loop supports the request."""


class UnknownBackendError(MipError, InvalidInputError):
    """No backend of that name is registered."""


class BackendUnavailableError(MipError):
    """The backend is registered, but its solver package is not installed."""


class LicenceError(BackendUnavailableError):
    """The solver is installed, but its licence is missing or too small for the model."""


class SolverError(MipError):
    """The solver itself failed."""
