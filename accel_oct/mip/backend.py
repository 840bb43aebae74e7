"""The interface to a solver, and the registry of backends."""

from __future__ import annotations

import importlib.util
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from accel_oct.mip.certificates import reconcile
from accel_oct.mip.cutloop import decide_again
from accel_oct.mip.errors import (
    BackendUnavailableError,
    HandlerError,
    LicenceError,
    MipError,
    ModelError,
    UnknownBackendError,
    UnsupportedError,
)
from accel_oct.mip.exchange import Event, FoundSolution, Handler, MipResult, Termination, Validity
from accel_oct.mip.model import MipModel, ModelArrays
from accel_oct.mip.options import SolveOptions
from accel_oct.mip.rows import Rows
from accel_oct.mip.session import SolveSession
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.support.stopping import run_interruptibly


class Support(Enum):
    """How a backend supports a capability."""

    NO = "no"
    EMULATED = "emulated"
    """By the shared cut loop."""
    NATIVE = "native"

    def __bool__(self) -> bool:
        return self is not Support.NO


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a backend. Requests for others raise `UnsupportedError`; nothing is dropped silently."""

    lazy_rows: Support = Support.NO
    user_cuts: Support = Support.NO
    relaxation_points: Support = Support.NO
    injection: Support = Support.NO
    start: Support = Support.NO
    branch_priorities: Support = Support.NO
    duals: Support = Support.NO
    node_bounds: Support = Support.NO
    local_cuts: Support = Support.NO
    log: Support = Support.NO
    basis: Support = Support.NO
    continuous_columns: Support = Support.NATIVE


@dataclass(frozen=True)
class Availability:
    """Whether a backend's package is installed and a licence was found."""

    installed: bool
    licensed: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.installed and self.licensed


class Backend(ABC):
    """A solver. Subclasses implement `_solve`; this class checks all arguments.

    Attributes
    ----------
    name : str
    package : str or None
        Import name of the solver package, imported only when it is used.
    extra : str or None
        Extra of this distribution that installs the package; None: it is installed by its own name.
    auto_rank : int or None
        Rank among the backends that ``"auto"`` tries; the smallest, for the strongest solver, is first. None: never
        chosen automatically. The ranks of the shipped backends are multiples of ten.
    plain_options : mapping
        Native options, for the conformance suite, that switch off presolve, cuts and heuristics by which the solver
        would solve tiny models before it reaches a relaxation.
    """

    name: ClassVar[str]
    package: ClassVar[str | None] = None
    extra: ClassVar[str | None] = None
    auto_rank: ClassVar[int | None] = None
    plain_options: ClassVar[Mapping[str, Any]] = {}
    capabilities: Capabilities = Capabilities()

    def __init__(self) -> None:
        self._arrays: ModelArrays | None = None
        self._start: FloatArray | None = None
        self._found: tuple[FoundSolution, ...] = ()

    @classmethod
    def create(cls, variant: str | None = None, **settings: Any) -> Backend:
        """Create an instance; `variant` is the part after the colon in names such as ``pyomo:glpk``."""
        if variant is not None:
            raise ModelError(f"backend {cls.name!r} has no variants, got {cls.name}:{variant}")
        cls.require_package()
        return cls(**settings)

    @classmethod
    def variants(cls) -> tuple[str, ...]:
        """Return all variants, installed or not; the conformance suite runs each of them."""
        return ()

    @classmethod
    def is_available(cls) -> bool:
        """Return whether the solver package is installed; does not take a licence."""
        return cls.package is None or importlib.util.find_spec(cls.package) is not None

    @classmethod
    def availability(cls) -> Availability:
        """Return whether the solver is installed and licensed; may take a licence for a moment."""
        if not cls.is_available():
            return Availability(False, False, cls._missing_package())
        try:
            cls.check_licence()
        except LicenceError as error:
            return Availability(True, False, str(error))
        return Availability(True, True)

    @classmethod  # noqa: B027 most solvers need none
    def check_licence(cls) -> None:
        """Raise `LicenceError` if the installed solver has no licence; by default it needs none."""

    @classmethod
    def variant_availability(cls, variant: str | None) -> Availability:
        """Like `availability`, for one variant; None is the default variant."""
        if variant is not None:
            raise ModelError(f"backend {cls.name!r} has no variants, got {cls.name}:{variant}")
        return cls.availability()

    @classmethod
    def require_package(cls) -> None:
        """Raise `BackendUnavailableError` if the solver package is missing."""
        if not cls.is_available():
            raise BackendUnavailableError(cls._missing_package())

    @classmethod
    def _missing_package(cls) -> str:
        what = cls.package if cls.extra is None else f"'accel-oct[{cls.extra}]'"
        return f"backend {cls.name!r} needs the package {cls.package!r}, which is not installed: pip install {what}"

    def load(self, model: MipModel) -> None:
        """Copy the model, replacing any earlier one."""
        self._accept(ModelArrays.of(model))
        self._start, self._found = None, ()

    def _accept(self, arrays: ModelArrays) -> None:
        """Use a model from now on, or raise `UnsupportedError`."""
        if not self.capabilities.continuous_columns and not arrays.integer.all():
            raise UnsupportedError(f"backend {self.name!r} supports models with integer columns only")
        self._arrays = arrays

    def add_rows(self, rows: Rows) -> None:
        """Add rows to the loaded model permanently."""
        arrays = self._loaded
        rows.check(arrays.n_columns)
        self._arrays = arrays.with_rows(rows)

    def add_columns(
        self,
        count: int,
        *,
        lower: npt.ArrayLike = 0.0,
        upper: npt.ArrayLike = 1.0,
        integer: npt.ArrayLike = False,
        objective: npt.ArrayLike = 0.0,
        row: npt.ArrayLike = (),
        column: npt.ArrayLike = (),
        value: npt.ArrayLike = (),
    ) -> IntArray:
        """Append columns to the loaded model permanently; returns their indices.

        Parameters
        ----------
        count : int
        lower, upper, integer, objective : array-like
            Scalars, or one per new column.
        row, column, value : array-like
            Coefficients of the new columns in the rows of the model, as triples in any order; the new columns are
            counted from 0.
        """
        arrays, block = self._loaded, MipModel()
        block.add_block("new", count, lower=lower, upper=upper, integer=integer, objective=objective)
        entries = Rows.from_entries(row, column, value, n_rows=arrays.rows.n_rows)
        entries.check(count, "coefficients of new columns")
        self._accept(arrays.with_columns(block, entries))
        new = np.clip(np.zeros(count), block.lower, block.upper)
        self._found = tuple(FoundSolution(0.0, np.concatenate([found.x, new])) for found in self._found)
        self._start = None if self._start is None else np.concatenate([self._start, new])
        return np.arange(arrays.n_columns, arrays.n_columns + count, dtype=np.int64)

    def set_objective(self, objective: npt.ArrayLike) -> None:
        """Replace the objective coefficients of the loaded model; its direction stays."""
        arrays, coefficients = self._loaded, np.array(objective, dtype=np.float64)
        if coefficients.shape != (arrays.n_columns,):
            raise ModelError(
                f"`objective` has shape {coefficients.shape}, but the model has {arrays.n_columns} columns"
            )
        if not np.isfinite(coefficients).all():
            raise ModelError("`objective` holds a NaN or infinite value")
        self._accept(replace(arrays, objective=coefficients))

    def set_start(self, x: npt.ArrayLike | None) -> None:
        """Set a full solution from which the next solves start; None removes it."""
        if x is None:
            self._start = None
            return
        if not self.capabilities.start:
            raise UnsupportedError(f"backend {self.name!r} does not support a start")
        start = np.array(x, dtype=np.float64)
        if start.shape != (self._loaded.n_columns,):
            raise ModelError(f"the start has shape {start.shape}, but the model has {self._loaded.n_columns} columns")
        if not np.isfinite(start).all():
            raise ModelError("the start holds a NaN or infinite value")
        self._start = start

    def solve(self, options: SolveOptions | None = None, handler: Handler | None = None) -> MipResult:
        """Solve the loaded model, calling the handler on its declared events.

        Ctrl-C and the time limit end the solve early with the incumbent and a valid bound. With `SolveOptions.warm` it
        begins with the solutions of the last solve of this backend, where they are still feasible, and with the basis
        of its LP, where the capability `basis` says so.
        """
        options = options or SolveOptions()
        self._check_options(options)
        if handler is not None:
            self._check_needs(handler)
        session = SolveSession(self._loaded, options, handler)
        outcome: list[MipResult] = []

        def work() -> None:
            if self._start is not None:
                session.offer_start(self._start)
            for found in self._found if options.warm else ():
                session.offer_start(found.x, is_found=True)
            termination, nodes = self._solve(session)
            termination = decide_again(session, termination)
            reconcile(session)
            outcome.append(session.result(termination, nodes))

        run_interruptibly(work, lambda: session.request_stop(Termination.INTERRUPTED))
        self._found = outcome[0].solutions
        return outcome[0]

    @property
    def _loaded(self) -> ModelArrays:
        if self._arrays is None:
            raise MipError(f"backend {self.name!r}: no model is loaded")
        return self._arrays

    def _check_options(self, options: SolveOptions) -> None:
        if options.log is not None and not self.capabilities.log:
            raise UnsupportedError(f"backend {self.name!r} does not pass on the solver's log")
        if options.warm and not self.capabilities.start:
            raise UnsupportedError(f"backend {self.name!r} does not support a start, hence no warm solves")
        if options.branch_priorities is None:
            return
        if not self.capabilities.branch_priorities:
            raise UnsupportedError(f"backend {self.name!r} does not support branch priorities")
        if np.shape(options.branch_priorities) != (self._loaded.n_columns,):
            raise ModelError(
                f"`branch_priorities` has shape {np.shape(options.branch_priorities)}, "
                f"but the model has {self._loaded.n_columns} columns"
            )

    def _check_needs(self, handler: Handler) -> None:
        needs, able = handler.needs, self.capabilities
        if len(needs.keeps) > 1:
            raise HandlerError(
                f"OPTIMALITY cuts that choose by different rules ({', '.join(sorted(needs.keeps))}) may together "
                "remove every optimum, so they cannot be used in one solve"
            )
        if needs.bounds and not callable(getattr(handler, "on_bound", None)):
            raise HandlerError("the handler's needs declare `bounds`, but it has no method `on_bound`")
        if (needs.duals or needs.node_bounds) and Event.RELAXATION not in needs.events:
            raise HandlerError("duals and node bounds come with relaxation points, which the handler's needs lack")
        missing = []
        if Event.RELAXATION in needs.events and not able.relaxation_points:
            missing.append("relaxation points")
        if (Event.CANDIDATE in needs.events or needs.cuts) and not able.lazy_rows:
            missing.append("lazy rows")
        if Validity.IMPLIED in needs.cuts and Event.RELAXATION in needs.events and not able.user_cuts:
            missing.append("user cuts")
        if needs.duals and not able.duals:
            missing.append("duals at relaxation points")
        if needs.node_bounds and not able.node_bounds:
            missing.append("depth and column bounds of nodes")
        if needs.local_cuts and not able.local_cuts:
            missing.append("local cuts")
        if needs.injects and not able.injection:
            missing.append("injection of solutions")
        if missing:
            raise UnsupportedError(
                f"backend {self.name!r} does not support what the handler needs: {', '.join(missing)}"
            )

    @abstractmethod
    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        """Build the native model from `session.model` and solve it, reporting to the session.

        Returns the reason of the end and the number of nodes.
        """


logger = logging.getLogger(__name__)

ENTRY_POINT_GROUP = "accel_oct.backends"

#: The name with which the library chooses a backend.
AUTO = "auto"


@dataclass(frozen=True)
class BackendInfo:
    """Availability and capabilities of a backend, or of one of its variants."""

    name: str
    installed: bool
    licensed: bool
    reason: str
    capabilities: Capabilities


def registered_names() -> list[str]:
    """Return the names of all registered backends, installed or not."""
    return sorted(_registered())


def backend_names() -> list[str]:
    """Like `registered_names`, with all variants: ``"pyomo:highs"``, ``"pyomo:cbc"`` for ``"pyomo"``."""
    return [full for name in registered_names() for full in _with_variants(name)]


def backend_class(name: str) -> type[Backend]:
    """Return the class registered under a name without a variant."""
    registered = _registered()
    if name not in registered:
        raise UnknownBackendError(
            f"unknown backend {name!r}; known are {', '.join(sorted(registered))}. {_how_to_install()}".strip()
        )
    try:
        return cast(type[Backend], registered[name].load())
    except Exception as error:  # a third-party backend may raise anything
        raise BackendUnavailableError(f"backend {name!r} cannot be imported: {error}") from error


def create_backend(name: str, **settings: Any) -> Backend:
    """Create a backend from its name, such as ``"highs"``, ``"gurobi"`` or ``"pyomo:glpk"``."""
    if not isinstance(name, str):
        raise UnknownBackendError(f"`backend` must be a name, got {type(name).__name__}")
    base, _, variant = name.partition(":")
    return backend_class(base).create(variant or None, **settings)


def candidate_backends(name: str) -> list[Backend]:
    """Return the backends to try in turn: the named one, or for ``"auto"`` the installed ones by `auto_rank`.

    Whether a licence is large enough is known only when a model is solved; the caller then tries the next backend.
    """
    if name != AUTO:
        return [create_backend(name)]
    ranked = [(cls.auto_rank, cls.name, cls) for cls in _classes() if cls.auto_rank is not None and cls.is_available()]
    return [cls.create() for _, _, cls in sorted(ranked, key=lambda entry: entry[:2])]


def backend_availability(name: str) -> Availability:
    """Return whether a solve with this backend can start here, and if not, the reason.

    Parameters
    ----------
    name : str
        As for `create_backend`, with or without a variant.

    Returns
    -------
    Availability
        True in a condition if the package is installed, the solver of a variant is found, and there is a licence. A
        licence is taken from solvers that need one, and returned.

    Examples
    --------
    >>> backend_availability("highs")
    Availability(installed=True, licensed=True, reason='')
    """
    if not isinstance(name, str):
        raise UnknownBackendError(f"`backend` must be a name, got {type(name).__name__}")
    base, _, variant = name.partition(":")
    try:
        cls = backend_class(base)
    except BackendUnavailableError as error:
        return Availability(False, False, str(error))
    return cls.variant_availability(variant or None)


def list_backends() -> list[BackendInfo]:
    """Return every registered backend in every variant; licences are taken and returned."""
    infos = []
    for name in backend_names():
        found = backend_availability(name)
        infos.append(BackendInfo(name, found.installed, found.licensed, found.reason, _capabilities(name)))
    return infos


def _classes() -> Iterator[type[Backend]]:
    """Yield the class of every registered backend that can be imported."""
    for name in registered_names():
        try:
            yield backend_class(name)
        except BackendUnavailableError as error:
            logger.info("%s", error)


def _how_to_install() -> str:
    extras = sorted({f"'accel-oct[{cls.extra}]'" for cls in _classes() if cls.extra is not None})
    if not extras:
        return ""
    return f"Some solvers come as extras: pip install {' or '.join(extras)}"


def _with_variants(name: str) -> list[str]:
    try:
        variants = backend_class(name).variants()
    except BackendUnavailableError:  # its module cannot be imported
        return [name]
    return [f"{name}:{variant}" for variant in variants] or [name]


def _capabilities(name: str) -> Capabilities:
    try:
        return backend_class(name.partition(":")[0]).capabilities
    except BackendUnavailableError:
        return Capabilities()


@lru_cache(maxsize=1)
def _registered() -> dict[str, EntryPoint]:
    # Cached: scanning every installed distribution took half of the time of a tiny solve.
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
