"""The phase of branch and cut: the master problem on a MIP solver, if the other phases found no proof."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Any

from accel_oct.constraints.base import BoundConstraint, is_built_in
from accel_oct.cuts.no_goods import NoGoods
from accel_oct.cuts.strict import StrictCuts
from accel_oct.errors import InvalidInputError, shown
from accel_oct.formulation import Component, ComponentFactory, Master, Site, TreeHandler
from accel_oct.formulation.agreement import Agreement
from accel_oct.formulation.components import CheckedComponent
from accel_oct.mip import (
    AUTO,
    Backend,
    InvalidCutError,
    LicenceError,
    MipResult,
    SolveOptions,
    Termination,
    Validity,
)
from accel_oct.objectives import StrictScore
from accel_oct.solving.config import FAMILIES
from accel_oct.solving.priced_rows import add_priced_rows
from accel_oct.solving.problem import BoundRounding
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.tree.sample_trees import some_trees

logger = logging.getLogger(__name__)

_STOPPED_BY: dict[Termination, Status] = {
    Termination.TIME_LIMIT: "time_limit",
    Termination.NODE_LIMIT: "node_limit",
    Termination.INTERRUPTED: "interrupted",
    Termination.STOPPED: "stopped",
    Termination.SOLVER_FAILED: "solver_failed",
}


@dataclass(frozen=True)
class SolverStatistics:
    """Figures of the solver and the model."""

    columns: int
    rows: int
    rounds: int
    handler_seconds: float
    lift_seconds: float
    seconds: float
    injections_accepted: int
    rejected_candidates: int


class IntegerProgram:
    """Branch and cut on the first backend whose licence suffices.

    Parameters
    ----------
    backends : sequence of Backend
        To try in turn; only ``solver="auto"`` gives more than one.
    factories : sequence of (name, factory)
        Components of the user; see `prepare`.
    """

    name = "branch and cut"

    def __init__(self, backends: Sequence[Backend], factories: Sequence[tuple[str, ComponentFactory]] = ()) -> None:
        self._backends = tuple(backends)
        self._factories = tuple(factories)
        self._built: tuple[Master, list[Component], Agreement] | None = None

    def prepare(self, search: Search) -> None:
        """Build the components of the user, and the rows of constraints without a form, and check them on a few trees.

        So their errors show before any work is done, also where no solver has to run. The rows of other constraints
        are checked when the master is built; see `_master`.
        """
        problem = search.problem
        rows = [each for each in problem.constraints if not is_built_in(each) and _writes_rows(each)]
        if problem.max_depth > 0 and (self._factories or rows):
            self._built = self._master(search)
            search.agreement = self._built[2]
            search.check()

    def applies(self, search: Search) -> bool:
        return True

    def run(self, search: Search) -> Status | None:
        for backend in self._backends[:-1]:
            try:
                return self._run_on(backend, search)
            except LicenceError as error:
                logger.info("backend %r is passed over: %s", backend.name, error)
        return self._run_on(self._backends[-1], search)

    def _run_on(self, backend: Backend, search: Search) -> Status | None:
        problem, left = search.problem, search.clock.left
        if left is not None and not self._built:
            needed = Master.seconds_to_build(problem.dataset, problem.max_depth)
            if needed > left:
                logger.info("no branch and cut: building its model may take %.1f s, and %.1f s are left", needed, left)
                return "time_limit"
        search.reporter.step("building the model")
        master, own, search.agreement = self._built or self._master(search)
        self._built = None
        search.check()
        rounding = problem.rounding(master.scale)
        search.slack = rounding.slack
        with search.agreement.written_by_the_library():
            if search.priced is not None and search.config.price_rows:
                rows_added = add_priced_rows(master, search.priced, search.incumbent, rounding.next_above)
                search.statistics["price_rows"] = replace(rows_added, bound=problem.reported(rows_added.bound))
            built_in = _built_in(master, backend, search)

        def on_bound(bound: float) -> bool:
            search.reporter.beat()
            return search.tighten(rounding.valid(bound)) or search.reporter.stop_requested

        handler = TreeHandler(
            master,
            [*built_in, *own],
            search.incumbent,
            on_bound,
            search.agreement,
        )
        search.reporter.describe(handler.describe)
        search.agreement.check_unchanged()
        backend.load(master.model)
        if backend.capabilities.start and search.incumbent.tree is not None:
            backend.set_start(master.lift(search.incumbent.tree))
        solved = backend.solve(_options(backend, master, search), handler)
        if search.backend_name == AUTO:
            search.backend_name = backend.name
        search.nodes = solved.nodes
        _report(solved, master, handler, search)
        return _take(solved, master, rounding, search)

    def _master(self, search: Search) -> tuple[Master, list[Component], Agreement]:
        """Return the master with all constraints, the user's components, and the record of their parts.

        Third-party parts are checked on a few trees.
        """
        problem, score = search.problem, search.problem.score
        master = Master(
            problem.dataset,
            problem.max_depth,
            problem.leaf_price,
            integral_predictions=search.config.benders.strengthened or bool(problem.constraints) or problem.is_strict,
            original=problem.original,
            counted=score.checked_counted if isinstance(score, StrictScore) else None,
        )
        agreement = Agreement(master)
        for constraint in problem.constraints:
            with agreement.written_by(f"constraints: `{constraint.name}`", constraint):
                constraint.add_to(master)
            master.couple_subtrees(constraint.name)
        own: list[Component] = []
        if isinstance(score, StrictScore):
            master.couple_subtrees(score.name)
            author = f"objective: `{score.name}`"
            with agreement.written_by(author):
                cuts = score.cuts(master)
            own.append(StrictCuts(master, None if cuts is None else CheckedComponent(cuts, author, agreement)))
        own += [_own_component(name, factory, master, agreement) for name, factory in self._factories]
        if own or not all(map(is_built_in, problem.constraints)):
            for tree in some_trees(problem.original, problem.max_depth):
                agreement.probe(tree)
        return master, own, agreement


def _writes_rows(constraint: BoundConstraint) -> bool:
    """Return whether a constraint without a form has rows of its own."""
    own, default = type(constraint), BoundConstraint
    return not constraint.traits.has_form and (own.add_to, own.forbid) != (default.add_to, default.forbid)


def _own_component(name: str, factory: ComponentFactory, master: Master, agreement: Agreement) -> Component:
    """Build one, and refuse what would make the other phases wrong."""
    couplings = master.couplings
    with agreement.written_by(name):
        component = factory(master)
    missing = [attribute for attribute in ("name", "needs", "respond") if not hasattr(component, attribute)]
    if missing:
        raise InvalidInputError(f"{name} built no component: it has no {', '.join(missing)}")
    if Validity.REQUIRED in component.needs.cuts or master.couplings != couplings:
        raise InvalidInputError(
            f"{name} decides which trees are allowed, of which tables, warm start and polishing would know nothing: "
            "hand it to constraints= instead (docs/write-a-constraint.md)"
        )
    if Validity.OPTIMALITY in component.needs.cuts and couplings:
        raise InvalidInputError(
            f"{name} makes OPTIMALITY cuts, which choose subtrees one by one and are wrong together with "
            f"{', '.join(couplings)}"
        )
    return CheckedComponent(component, name, agreement)


def _built_in(master: Master, backend: Backend, search: Search) -> list[Component]:
    """The families that are switched on; cuts first, heuristics last."""
    site = Site(
        master,
        search.subtrees,
        shows_relaxations=bool(backend.capabilities.relaxation_points),
        threads=search.options.threads,
        deadline=search.clock.deadline,
    )
    components = [family.component(site, search.config) for family in FAMILIES]
    built = [component for component in components if component is not None]
    if search.problem.constraints:
        built.insert(0, NoGoods(master, search.problem.constraints, search.agreement))
    if search.config.path_bound.enabled and master.couplings:
        search.notes["path_bound"] = f"switched off: {'; '.join(master.couplings)}"
    return built


def _options(backend: Backend, master: Master, search: Search) -> SolveOptions:
    options = search.options
    use_priorities = search.config.branch_priorities and backend.capabilities.branch_priorities
    priorities = master.branch_priorities if use_priorities else None
    return replace(options, time_limit=search.clock.left, branch_priorities=priorities)


def _report(solved: MipResult, master: Master, handler: TreeHandler, search: Search) -> None:
    search.statistics |= handler.statistics
    search.statistics["solver"] = SolverStatistics(
        columns=master.model.n_columns,
        rows=master.model.rows.n_rows,
        rounds=solved.statistics.rounds,
        handler_seconds=solved.statistics.seconds,
        lift_seconds=handler.lift_seconds,
        seconds=solved.seconds,
        injections_accepted=solved.statistics.injections_accepted,
        rejected_candidates=solved.statistics.rejected_candidates,
    )
    search.statistics["subtree_cache"] = search.subtrees.statistics


def _take(solved: MipResult, master: Master, rounding: BoundRounding, search: Search) -> Status | None:
    """Offer the solver's tree to the incumbent, and tighten the bound by the solver's, rounded to a valid one."""
    if solved.termination is Termination.INFEASIBLE:
        _check_infeasible(search)
        search.tighten(-math.inf)
        return None
    if solved.x is not None:
        tree = master.decode(solved.x)
        search.incumbent.offer(tree.relabelled(search.problem.dataset))
        search.incumbent.offer(tree)
    search.tighten(rounding.valid(solved.bound))
    stopped = _STOPPED_BY.get(solved.termination)
    return "gap_limit" if stopped is None and search.options.gap > 0.0 else stopped


def _check_infeasible(search: Search) -> None:
    """Raise InvalidCutError if a solver reports infeasibility although a feasible tree is known."""
    if not search.problem.constraints:
        raise InvalidCutError("the solver reports that no tree is feasible, but a single leaf is: some cut is invalid")
    if search.incumbent.tree is not None:
        names = ", ".join(constraint.name for constraint in search.problem.constraints)
        raise InvalidCutError(
            f"the solver reports that no tree is feasible, but a known tree satisfies {names}: "
            "some cut is invalid, or the rows of a constraint forbid a tree that its `violation` allows"
        )


# ---------------------------------------------------------------- components of the user


ENTRY_POINT_GROUP = "accel_oct.components"


def component_factories(components: Any) -> list[tuple[str, ComponentFactory]]:
    """Return the factories of the argument `components`, each with its name for error messages.

    Registered components are used only if the user names them, so that a solve does not depend on installed packages.
    """
    if components is None:
        return []
    if isinstance(components, str) or not isinstance(components, Sequence):
        raise InvalidInputError(f"components must be a list of factories or names, got {shown(components)}")
    return [_factory(value, f"components[{place}]") for place, value in enumerate(components)]


def _factory(value: Any, where: str) -> tuple[str, ComponentFactory]:
    if isinstance(value, str):
        return f"{where} ({value!r})", _registered(value, where)
    if not callable(value):
        raise InvalidInputError(
            f"{where} must be a factory (master -> component), usually the component's class, got {shown(value)}"
        )
    return f"{where} ({getattr(value, '__name__', type(value).__name__)})", value


def _registered(name: str, where: str) -> ComponentFactory:
    known = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise InvalidInputError(f"{where}: no installed package registers a component {name!r}; registered are {names}")
    try:
        factory: ComponentFactory = known[name].load()
    except ImportError as error:
        raise InvalidInputError(f"{where}: the component {name!r} cannot be imported: {error}") from error
    return factory
