"""A solver-agnostic layer for mixed-integer models with cuts and injected solutions; it knows nothing of trees."""

from accel_oct.mip.backend import Availability, Backend, Capabilities, Support
from accel_oct.mip.cutloop import CutLoop
from accel_oct.mip.engine import BranchingEngine, IntegerRequest, LoopEngine, Run, RunStatus
from accel_oct.mip.errors import (
    BackendUnavailableError,
    HandlerError,
    InvalidCutError,
    LicenceError,
    MipError,
    ModelError,
    SolverError,
    UnknownBackendError,
    UnsupportedError,
)
from accel_oct.mip.exchange import (
    BoundListener,
    BoundReport,
    Cuts,
    Event,
    FunctionHandler,
    Handler,
    Needs,
    Point,
    Reply,
    Validity,
)
from accel_oct.mip.model import FEASIBILITY_TOLERANCE, BoolArray, ColumnBlock, MipModel, ModelArrays
from accel_oct.mip.options import SolveOptions
from accel_oct.mip.pool import CutPool
from accel_oct.mip.registry import (
    AUTO,
    BackendInfo,
    backend_availability,
    backend_class,
    backend_names,
    candidate_backends,
    create_backend,
    list_backends,
    registered_names,
)
from accel_oct.mip.result import (
    HandlerStatistics,
    MipResult,
    SolutionStatus,
    Termination,
    relative_gap,
)
from accel_oct.mip.rows import FloatArray, IntArray, Rows
from accel_oct.mip.session import SolveSession, Verdict

__all__ = [
    "AUTO",
    "FEASIBILITY_TOLERANCE",
    "Availability",
    "Backend",
    "BackendInfo",
    "BackendUnavailableError",
    "BoolArray",
    "BoundListener",
    "BoundReport",
    "BranchingEngine",
    "Capabilities",
    "ColumnBlock",
    "CutLoop",
    "CutPool",
    "Cuts",
    "Event",
    "FloatArray",
    "FunctionHandler",
    "Handler",
    "HandlerError",
    "HandlerStatistics",
    "IntArray",
    "IntegerRequest",
    "InvalidCutError",
    "LicenceError",
    "LoopEngine",
    "MipError",
    "MipModel",
    "MipResult",
    "ModelArrays",
    "ModelError",
    "Needs",
    "Point",
    "Reply",
    "Rows",
    "Run",
    "RunStatus",
    "SolutionStatus",
    "SolveOptions",
    "SolveSession",
    "SolverError",
    "Support",
    "Termination",
    "UnknownBackendError",
    "UnsupportedError",
    "Validity",
    "Verdict",
    "backend_availability",
    "backend_class",
    "backend_names",
    "candidate_backends",
    "create_backend",
    "list_backends",
    "registered_names",
    "relative_gap",
]
