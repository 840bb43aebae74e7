"""What the seam costs: cuts handed to a solver, and a handler that does nothing.

    python benchmarks/handoff.py

Part one hands 5,000 cuts of 100 non-zeros to each backend as one batch, and compares the time from the handler's return
to the end of the native call with the same solver's own bulk call on arrays that are ready for it. Part two solves a
model of some seconds without a handler and with one that asks for every event and answers nothing.

Times are CPU times of this process, medians of repeated, interleaved runs, one thread.
"""

from __future__ import annotations

import argparse
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
    """Its first relaxation and its first candidate have every column at one but the last, a half and zero."""
    model = MipModel(maximise=True)
    model.add_block("x", N_COLUMNS, integer=True, objective=1.0)
    model.add_rows(Rows.single([N_COLUMNS - 1], 2.0, upper=1.0))
    return model


class Arrived(Exception):
    """Ends a solve as soon as the cuts are in: what follows is the solver's own business."""


def through_the_seam(name: str, event: Event, rows: Rows, owner: Any, native_call: str) -> float:
    """Seconds from the handler's return until the native call, wrapped here to read the clock, is through."""
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


def seconds_of_solve(name: str, model: MipModel, handler: FunctionHandler | None) -> float:
    backend = create_backend(name)
    backend.load(model)
    began = clock()
    backend.solve(SolveOptions(), handler)
    return clock() - began


def compare(label: str, base: Callable[[], float], tested: Callable[[], float], repeats: int, limit: float) -> None:
    """Measure both in turn and print a line of the table."""
    pairs = [(base(), tested()) for _ in range(repeats)]
    first, second = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = second / first
    print(f"{label:44} {first:9.4f} s {second:9.4f} s {ratio:7.3f} {limit:6.2f}  {'ok' if ratio <= limit else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    has_gurobi = bool(backend_class("gurobi").availability())
    print(f"{'':44} {'without':>11} {'with':>11} {'ratio':>7} {'limit':>6}")
    for order in ("sorted", "shuffled"):
        rows = cuts(order == "sorted")
        ways = [("highs", Event.RELAXATION, highs_backend, "_add_rows", highs_own_call)]
        ways += [("highs", Event.CANDIDATE, highs_backend, "_add_rows", highs_own_call)]
        if has_gurobi:
            ways += [("gurobi", Event.CANDIDATE, gurobi_backend._NativeModel, "_add_lazy", gurobi_own_call)]
        for name, event, owner, call, own in ways:
            compare(
                f"{name}: 5,000 cuts at a {event.value}, {order}",
                lambda own=own, rows=rows: own(rows),  # type: ignore[misc]
                lambda a=(name, event, rows, owner, call): through_the_seam(*a),  # type: ignore[misc]
                repeats,
                2.0,
            )
    idle = FunctionHandler(lambda point: None, Needs(list(Event)))
    for name in ("highs", "gurobi") if has_gurobi else ("highs",):
        model = hard_knapsack(35, 5)
        compare(
            f"{name}: a handler that does nothing",
            lambda name=name, model=model: seconds_of_solve(name, model, None),  # type: ignore[misc]
            lambda name=name, model=model: seconds_of_solve(name, model, idle),  # type: ignore[misc]
            max(repeats // 2, 3),
            1.05,
        )


if __name__ == "__main__":
    main()
