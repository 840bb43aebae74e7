"""The handler of the master: who is asked, which trees reach the solver, and when the solve may end."""

from __future__ import annotations

import numpy as np
import pytest
from accel_oct_backends.mock import MockBackend

from accel_oct.data import BinaryDataset
from accel_oct.formulation import Incumbent, Master, Response, TreeHandler, TreePoint
from accel_oct.mip import BoundReport, Event, Needs, Point, Termination
from accel_oct.tree import DecisionTree

DATASET = BinaryDataset.from_arrays(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 0, 1, 1]))
PRICE = 0.25
LEAF = DecisionTree.leaf(0, 1)
BEST = DecisionTree(np.array([0, -1, -1]), np.array([-1, 0, 1]))
OTHER = DecisionTree(np.array([1, -1, -1]), np.array([-1, 0, 0]))


class Recorder:
    """A component that remembers what it saw and proposes given trees."""

    def __init__(self, *events: Event, trees: tuple[DecisionTree, ...] = ()) -> None:
        self.name = "recorder"
        self.needs = Needs(events, injects=bool(trees))
        self.trees = trees
        self.seen: list[Event] = []

    def respond(self, point: TreePoint) -> Response | None:
        self.seen.append(point.point.event)
        return Response(trees=self.trees) if self.trees else None


def handler(*components: Recorder, proven_below: float = -np.inf) -> TreeHandler:
    master = Master(DATASET, 1, PRICE)
    incumbent = Incumbent(DATASET, PRICE)
    assert incumbent.offer(LEAF)
    return TreeHandler(master, components, incumbent, lambda bound: bound < proven_below)


def shown(asked: TreeHandler, tree: DecisionTree, event: Event = Event.CANDIDATE, bound: float = 9.0) -> Point:
    """The tree as a solver may come across it: every theta at one, far above what the tree is worth."""
    x = asked.master.lift(tree)
    asked.master.theta.view(x)[:] = 1.0
    return Point(event, x, 0.0, None, bound, 0.0)


def test_the_tree_of_a_candidate_is_offered() -> None:
    """Whatever its theta says, its tree becomes the incumbent if it is better, and is handed to the solver."""
    asked = handler()
    reply = asked(shown(asked, BEST))
    assert asked.incumbent.tree == BEST and asked.incumbent.value == 4 - 2 * PRICE
    assert [x.tolist() for x in reply.solutions] == [asked.master.lift(BEST).tolist()]


def test_a_relaxation_offers_nothing() -> None:
    """Its branches are no tree, even where they happen to be integral."""
    asked = handler()
    assert asked(shown(asked, BEST, Event.RELAXATION)).solutions == () and asked.incumbent.tree == LEAF


def test_a_tree_is_injected_once_and_only_if_it_is_better() -> None:
    """The solver has the start and every tree that it was given."""
    asked = handler()
    assert asked(shown(asked, OTHER)).solutions == ()
    assert len(asked(shown(asked, BEST)).solutions) == 1
    assert asked(shown(asked, BEST)).solutions == () and asked(shown(asked, OTHER)).solutions == ()


@pytest.mark.parametrize("event", list(Event))
def test_components_are_asked_about_what_they_want(event: Event) -> None:
    """One that wants only the other event is left alone; what the one asked proposes is injected and counted."""
    (other,) = set(Event) - {event}
    asked = handler(wants := Recorder(event, trees=(BEST,)))
    assert len(asked(shown(asked, LEAF, event)).solutions) == 1
    assert wants.seen == [event] and asked.statistics["recorder"].trees == 1
    asked = handler(unwilling := Recorder(other, trees=(BEST,)))
    assert asked(shown(asked, LEAF, event)).solutions == () and unwilling.seen == []


def test_a_proof_ends_the_solve() -> None:
    """Every bound is passed on, and the reply says stop when it proves the incumbent."""
    asked = handler(proven_below=3.75)
    assert not asked(shown(asked, BEST, bound=3.8)).stop
    assert asked(shown(asked, BEST, bound=3.7)).stop


def test_a_proof_between_points_ends_the_solve() -> None:
    """The handler declares that it wants bounds, and each is passed on."""
    heard: list[float] = []
    asked = TreeHandler(
        Master(DATASET, 1, PRICE),
        [],
        Incumbent(DATASET, PRICE),
        lambda bound: heard.append(bound) or bound < 3.75,
    )
    assert asked.needs.bounds
    assert [bool(asked.on_bound(BoundReport(bound, None, 0, 0.0)).stop) for bound in (3.8, 3.7)] == [False, True]
    assert heard == [3.8, 3.7]


@pytest.mark.parametrize("proven", [False, True])
def test_the_solver_ends_when_a_bound_proves_the_incumbent(proven: bool) -> None:
    """In a solve: bounds that come with no point are heard, and the rest of the script is not played."""
    asked = handler(proven_below=3.75 if proven else -np.inf)
    backend = MockBackend(script=[3.9, 3.7, (Event.CANDIDATE, asked.master.lift(BEST))])
    backend.load(asked.master.model)
    result = backend.solve(handler=asked)
    assert [report.bound for report in backend.reports[:2]] == [3.9, 3.7]
    assert result.termination is (Termination.STOPPED if proven else Termination.NODE_LIMIT)
    assert len(backend.points) == (0 if proven else 1) and result.bound == 3.7
