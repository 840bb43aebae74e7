"""The cost of the solver interface: cuts handed to a solver, and a handler that does nothing.

    python -m accel_oct_bench.studies.handoff

Part one hands 5,000 cuts of 100 non-zeros to each backend as one batch, and compares the time from the handler's return
to the end of the native call with the same solver's own bulk call on arrays that are ready for it. Part two solves a
model of some seconds without a handler and with one that asks for every event and answers nothing.

Times are CPU times of this process, one thread; runs with and without alternate, and the ratio is the median of the
ratios of neighbours, because other load on a machine comes in bursts.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import highspy
import numpy as np
from accel_oct_backends import gurobi as gurobi_backend
from accel_oct_backends import highs as highs_backend

from accel_oct.mip import (
    Cuts,
    Event,
    FunctionHandler,
    MipModel,
    Needs,
    Point,
    Reply,
    Rows,
    SolveOptions,
    Validity,
    backend_class,
    create_backend,
)
from accel_oct.mip.conformance.suite import hard_knapsack
from accel_oct_bench.measurement import timed
from accel_oct_bench.studies.common import parser_of

N_CUTS, N_NONZEROS, N_COLUMNS = 5_000, 100, 2_000
clock = time.process_time


def cuts(sorted_columns: bool) -> Rows:
    """Rows ``sum of 100 columns <= 50``, violated where every column is one."""
    generator = np.random.default_rng(0)
    columns = np.stack([generator.permutation(N_COLUMNS)[:N_NONZEROS] for _ in range(N_CUTS)])
    if sorted_columns:
        columns.sort(axis=1)
    starts = np.arange(N_CUTS + 1) * N_NONZEROS
    return Rows(
        starts, columns.ravel(), np.ones(columns.size), np.full(N_CUTS, -np.inf), np.full(N_CUTS, N_NONZEROS / 2)
    )


def all_ones() -> MipModel:
    """Return a model whose first relaxation and candidate have every column at one, except for the last."""
    model = MipModel(maximise=True)
    model.add_block("x", N_COLUMNS, integer=True, objective=1.0)
    model.add_rows(Rows.single([N_COLUMNS - 1], 2.0, upper=1.0))
    return model


class Arrived(Exception):
    """Ends a solve as soon as the cuts are added."""


def through_the_seam(name: str, event: Event, rows: Rows, owner: Any, native_call: str) -> float:
    """Return the seconds from the return of the handler to the end of the native call, which is wrapped here."""
    returned: list[float] = []
    arrived: list[float] = []
    original = getattr(owner, native_call)

    def timed(*arguments: Any) -> None:
        original(*arguments)
        if returned:
            arrived.append(clock())
            raise Arrived

    def separate(point: Point) -> Reply:
        reply = Reply(cuts=(Cuts(rows, Validity.REQUIRED),))
        returned.append(clock())
        return reply

    backend = create_backend(name)
    backend.load(all_ones())
    setattr(owner, native_call, timed)
    try:
        backend.solve(handler=FunctionHandler(separate, Needs([event], [Validity.REQUIRED])))
    except Arrived:
        pass
    finally:
        setattr(owner, native_call, original)
    return arrived[0] - returned[0]


def highs_own_call(rows: Rows) -> float:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.addVars(N_COLUMNS, np.zeros(N_COLUMNS), np.ones(N_COLUMNS))
    highs.run()  # the loop, too, adds its rows to an LP that has been solved
    starts, columns = rows.starts[:-1].astype(np.int32), rows.columns.astype(np.int32)
    began = clock()
    highs.addRows(rows.n_rows, rows.lower, rows.upper, rows.n_nonzeros, starts, columns, rows.values)
    return clock() - began


def gurobi_own_call(rows: Rows) -> float:
    import gurobipy
    from scipy.sparse import csr_array

    matrix = csr_array((rows.values, rows.columns, rows.starts), shape=(rows.n_rows, N_COLUMNS))
    seconds: list[float] = []

    def callback(model: Any, where: int) -> None:
        if where == gurobipy.GRB.Callback.MIPSOL and not seconds:
            began = clock()
            model.cbLazy(matrix @ x, gurobipy.GRB.LESS_EQUAL, rows.upper)
            seconds.append(clock() - began)
            model.terminate()

    with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.Model(env=environment) as model:
        model.Params.LazyConstraints, model.Params.Threads = 1, 1
        x = model.addMVar(N_COLUMNS, vtype="I", ub=1.0, obj=-1.0)
        model.optimize(callback)
    return seconds[0]


def seconds_of_solve(name: str, model: MipModel, nodes: int | None, handler: FunctionHandler | None) -> float:
    backend = create_backend(name)
    backend.load(model)
    return timed(lambda: backend.solve(SolveOptions(node_limit=nodes), handler))[1].cpu


def compare(label: str, base: Callable[[], float], tested: Callable[[], float], repeats: int, limit: float) -> None:
    """Measure both in turn and print a line of the table."""
    pairs = [(base(), tested()) for _ in range(repeats)]
    first, second = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(after / before for before, after in pairs)
    verdict = "ok" if ratio <= limit else "MISSED"
    print(f"{label:52} {first:9.4f} s {second:9.4f} s {ratio:7.3f} {limit:6.2f}  {verdict}", flush=True)


def compare_handoff(solvers: tuple[str, ...], repeats: int) -> None:
    ways: list[tuple[str, Event, Any, str, Callable[[Rows], float]]] = [
        ("highs", Event.RELAXATION, highs_backend, "add_rows", highs_own_call),
        ("highs", Event.CANDIDATE, highs_backend, "add_rows", highs_own_call),
        ("gurobi", Event.CANDIDATE, gurobi_backend._GurobiModel, "_add_lazy", gurobi_own_call),
    ]
    for order in ("sorted", "shuffled"):
        rows = cuts(order == "sorted")
        for name, event, owner, call, own in ways:
            if name in solvers:
                seam = functools.partial(through_the_seam, name, event, rows, owner, call)
                label = f"{name}: 5,000 cuts at a {event.value}, {order}"
                compare(label, functools.partial(own, rows), seam, repeats, 2.0)


def compare_idle(solvers: tuple[str, ...], repeats: int) -> None:
    # The nodes of the second model take microseconds, so that the cost of a call from the solver to Python is large.
    models: dict[str, tuple[MipModel, dict[str, int]]] = {
        "60 x 300": (hard_knapsack(300, 60), {"highs": 100, "gurobi": 1500}),
        "5 x 35": (hard_knapsack(35, 5), {}),
    }
    for size, (model, nodes) in models.items():
        for name in solvers:
            for events in ([Event.CANDIDATE], list(Event)):
                solve = functools.partial(seconds_of_solve, name, model, nodes.get(name))
                idle = FunctionHandler(lambda point: None, Needs(events))
                label = f"{name}: idle at {' and '.join(event.value for event in events)}s, {size}"
                compare(label, functools.partial(solve, None), functools.partial(solve, idle), repeats, 1.05)


def main() -> None:
    parser = parser_of(__doc__, data_dir=False)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--part", choices=["handoff", "idle", "both"], default="both")
    arguments = parser.parse_args()
    solvers = ("highs", "gurobi") if backend_class("gurobi").availability() else ("highs",)
    print(f"{'':52} {'without':>11} {'with':>11} {'ratio':>7} {'limit':>6}")
    if arguments.part != "idle":
        compare_handoff(solvers, arguments.repeats)
    if arguments.part != "handoff":
        compare_idle(solvers, arguments.repeats)


if __name__ == "__main__":
    main()
