"""The interface that a solver is reached through."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from accel_oct.mip.cutloop import decide_again
from accel_oct.mip.errors import BackendUnavailableError, HandlerError, MipError, ModelError, UnsupportedError
from accel_oct.mip.exchange import Event, Handler, Validity
from accel_oct.mip.model import MipModel, ModelArrays
from accel_oct.mip.options import SolveOptions
from accel_oct.mip.reconciliation import reconcile
from accel_oct.mip.result import MipResult, Termination
from accel_oct.mip.rows import FloatArray, Rows
from accel_oct.mip.session import SolveSession
from accel_oct.support.stopping import run_interruptibly


class Support(Enum):
    """How a backend does something."""

    NO = "no"
    EMULATED = "emulated"
    """By the shared cut loop."""
    NATIVE = "native"

    def __bool__(self) -> bool:
        return self is not Support.NO


@dataclass(frozen=True)
class Capabilities:
    """What a backend can do. What it cannot do raises `UnsupportedError`; nothing is dropped silently."""

    lazy_rows: Support = Support.NO
    user_cuts: Support = Support.NO
    relaxation_points: Support = Support.NO
    injection: Support = Support.NO
    start: Support = Support.NO
    branch_priorities: Support = Support.NO
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
    """A solver. Subclasses implement `_solve`; everything is checked here, once.

    Attributes
    ----------
    name : str
    package : str or None
        Import name of the solver package, imported only when it is used.
    extra : str or None
        Name of the extra of this distribution that installs the package; None: it is installed by its own name.
    auto_rank : int or None
        Place among the backends that ``"auto"`` tries: the smallest is tried first, so stronger solvers have smaller
        ranks. None: never chosen by itself. The shipped ones are tens, to leave room between them.
    plain_options : mapping
        Native options that switch presolve, cuts and heuristics off as far as the solver solves tiny models with them
        before it comes to a relaxation. For the conformance suite.
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

    @classmethod
    def create(cls, variant: str | None = None, **settings: Any) -> Backend:
        """Make an instance; `variant` is what follows the colon in names such as ``pyomo:glpk``."""
        if variant is not None:
            raise ModelError(f"backend {cls.name!r} has no variants, got {cls.name}:{variant}")
        cls.require_package()
        return cls(**settings)

    @classmethod
    def variants(cls) -> tuple[str, ...]:
        """What may follow the colon in the backend's name, installed or not; the conformance suite runs them all."""
        return ()

    @classmethod
    def is_available(cls) -> bool:
        """Whether the solver package is installed. Takes no licence."""
        return cls.package is None or importlib.util.find_spec(cls.package) is not None

    @classmethod
    def availability(cls) -> Availability:
        """Installed and licensed? May take a licence for a moment."""
        if not cls.is_available():
            return Availability(False, False, cls._missing_package())
        return Availability(True, True)

    @classmethod
    def variant_availability(cls, variant: str | None) -> Availability:
        """As `availability`, of one variant (None: of what the name alone stands for)."""
        if variant is not None:
            raise ModelError(f"backend {cls.name!r} has no variants, got {cls.name}:{variant}")
        return cls.availability()

    @classmethod
    def require_package(cls) -> None:
        """Raise `BackendUnavailableError`, with the reason, where the solver's package is missing."""
        if not cls.is_available():
            raise BackendUnavailableError(cls._missing_package())

    @classmethod
    def _missing_package(cls) -> str:
        what = cls.package if cls.extra is None else f"'accel-oct[{cls.extra}]'"
        return f"backend {cls.name!r} needs the package {cls.package!r}, which is not installed: pip install {what}"

    def load(self, model: MipModel) -> None:
        """Take a copy of the model; an earlier one is forgotten."""
        arrays = ModelArrays.of(model)
        if not self.capabilities.continuous_columns and not arrays.integer.all():
            raise UnsupportedError(f"backend {self.name!r} takes models with integer columns only")
        self._arrays, self._start = arrays, None

    def add_rows(self, rows: Rows) -> None:
        """Add rows to the loaded model for good."""
        arrays = self._loaded
        rows.check(arrays.n_columns)
        joined = Rows.concatenate([arrays.rows, rows.scaled_up()])
        self._arrays = ModelArrays(
            arrays.maximise, arrays.objective, arrays.lower, arrays.upper, arrays.integer, joined
        )

    def set_start(self, x: npt.ArrayLike | None) -> None:
        """Begin the next solves from a full solution (None: from nothing)."""
        if x is None:
            self._start = None
            return
        if not self.capabilities.start:
            raise UnsupportedError(f"backend {self.name!r} cannot begin from a start")
        start = np.array(x, dtype=np.float64)
        if start.shape != (self._loaded.n_columns,):
            raise ModelError(f"the start has shape {start.shape}, but the model has {self._loaded.n_columns} columns")
        if not np.isfinite(start).all():
            raise ModelError("the start holds a NaN or infinite value")
        self._start = start

    def solve(self, options: SolveOptions | None = None, handler: Handler | None = None) -> MipResult:
        """Solve the loaded model, consulting the handler on the events it declared.

        Ctrl-C and the time limit end the solve early with the incumbent and a valid bound.
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
            termination, nodes = self._solve(session)
            termination = decide_again(session, termination)
            reconcile(session)
            outcome.append(session.result(termination, nodes))

        run_interruptibly(work, lambda: session.request_stop(Termination.INTERRUPTED))
        return outcome[0]

    @property
    def _loaded(self) -> ModelArrays:
        if self._arrays is None:
            raise MipError(f"backend {self.name!r}: no model is loaded")
        return self._arrays

    def _check_options(self, options: SolveOptions) -> None:
        if options.branch_priorities is None:
            return
        if not self.capabilities.branch_priorities:
            raise UnsupportedError(f"backend {self.name!r} has no branch priorities")
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
        missing = []
        if Event.RELAXATION in needs.events and not able.relaxation_points:
            missing.append("relaxation points")
        if (Event.CANDIDATE in needs.events or needs.cuts) and not able.lazy_rows:
            missing.append("lazy rows")
        if Validity.IMPLIED in needs.cuts and Event.RELAXATION in needs.events and not able.user_cuts:
            missing.append("user cuts")
        if needs.injects and not able.injection:
            missing.append("injection of solutions")
        if missing:
            raise UnsupportedError(f"the handler needs what backend {self.name!r} cannot do: {', '.join(missing)}")

    @abstractmethod
    def _solve(self, session: SolveSession) -> tuple[Termination, int]:
        """Build the native model from `session.model` and run, reporting to the session.

        Returns why it ended and how many nodes it took.
        """
