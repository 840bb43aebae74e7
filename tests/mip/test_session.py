"""The session: verdicts on candidates and injections, incumbent and bound, and what a handler may not do."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from accel_oct.mip import (
    BoundReport,
    Cuts,
    Event,
    FunctionHandler,
    HandlerError,
    InvalidCutError,
    MipModel,
    ModelArrays,
    Needs,
    Point,
    Reply,
    Rows,
    SolutionStatus,
    SolveOptions,
    SolveSession,
    Termination,
    Validity,
    relative_gap,
)

EVERYTHING = Needs(list(Event), list(Validity), injects=True, keeps="some")
ONES, ZEROS = np.ones(3), np.zeros(3)


def session(
    reply: Reply | None = None,
    *,
    needs: Needs = EVERYTHING,
    maximise: bool = True,
    on_bound: Callable[[BoundReport], Reply | None] | None = None,
    **options: object,
) -> SolveSession:
    """A session on three binary columns with objective 1, 2, 3, whose handler always gives the same reply."""
    model = MipModel(maximise=maximise)
    model.add_block("x", 3, integer=True, objective=[1.0, 2.0, 3.0])
    handler = FunctionHandler(lambda point: reply, needs, on_bound)
    return SolveSession(ModelArrays.of(model), SolveOptions(**options), handler)  # type: ignore[arg-type]


def at_most(limit: float, validity: Validity = Validity.REQUIRED) -> Cuts:
    keeps = "some" if validity is Validity.OPTIMALITY else None
    return Cuts(Rows.single([0, 1, 2], 1.0, upper=limit), validity, "at most", keeps=keeps)


@pytest.mark.parametrize("validity", list(Validity))
def test_only_optimality_cuts_leave_a_candidate_feasible(validity: Validity) -> None:
    """A violated REQUIRED or IMPLIED cut rejects the candidate; a violated OPTIMALITY cut does not."""
    state = session(Reply(cuts=(at_most(2.0, validity),)))
    verdict = state.consult(Event.CANDIDATE, ONES)
    assert verdict.rejected is (validity is not Validity.OPTIMALITY)
    assert state.incumbent == (6.0 if validity is Validity.OPTIMALITY else None)
    assert len(verdict.cuts) == 1


def test_a_cut_that_holds_does_not_reject() -> None:
    """Cuts that come with a candidate but hold there are added, and the candidate stands."""
    state = session(Reply(cuts=(at_most(3.0),)))
    assert not state.consult(Event.CANDIDATE, ONES).rejected and state.incumbent == 6.0


def test_a_candidate_cut_off_earlier_is_rejected_without_a_new_cut() -> None:
    """What an earlier cut rejects stays rejected, also when the handler has nothing to add."""
    state = session(None)
    assert state.consult(Event.CANDIDATE, ONES, cut_off=True).rejected and state.incumbent is None
    assert state.statistics.rejected_candidates == 1


def test_a_candidate_cut_off_earlier_is_rejected_whatever_the_handler_says() -> None:
    """Cuts and solutions in the reply, none of them against the candidate, do not bring it back."""
    state = session(Reply(cuts=(at_most(3.0),), solutions=(ZEROS,)))
    assert state.consult(Event.CANDIDATE, ONES, cut_off=True).rejected
    assert state.incumbent == 0.0 and state.statistics.rejected_candidates == 1


def test_candidates_are_rounded_and_relaxations_are_not() -> None:
    """Separation at a candidate works on exact integers; a relaxation is shown as it is. Neither can be written to."""
    seen: list[Point] = []
    state = session()
    state.handler = FunctionHandler(lambda point: seen.append(point), EVERYTHING)
    x = np.array([1.0 - 1e-7, 0.0, 1e-7])
    state.consult(Event.CANDIDATE, x)
    state.consult(Event.RELAXATION, x)
    assert seen[0].x.tolist() == [1.0, 0.0, 0.0] and seen[1].x.tolist() == x.tolist()
    assert not seen[0].x.flags.writeable and not seen[1].x.flags.writeable and x.flags.writeable
    assert seen[1].incumbent == 1.0  # the candidate was accepted


def test_a_better_injection_becomes_incumbent_and_is_queued() -> None:
    """It is vetted by model and handler, counted, and kept for the solver."""
    state = session(Reply(solutions=(ONES,)))
    state.consult(Event.RELAXATION, np.full(3, 0.5))
    assert state.incumbent == 6.0 and len(state.pending) == 1
    assert state.statistics.injections_accepted == 1


def test_what_is_proposed_while_an_injection_is_vetted_is_vetted_too() -> None:
    """The handler improves its own proposal when it sees it: each step becomes the incumbent and is queued."""
    steps = [np.array([1.0, 0, 0]), np.array([0.0, 1, 0]), np.array([0.0, 1, 1])]
    state = session()
    answers = iter(Reply(solutions=(step,)) for step in steps)
    state.handler = FunctionHandler(lambda point: next(answers, None), EVERYTHING)
    state.consult(Event.RELAXATION, np.full(3, 0.5))
    assert state.incumbent == 5.0 and [x.tolist() for x in state.pending] == [step.tolist() for step in steps]
    assert state.statistics.injections_accepted == 3


@pytest.mark.parametrize("x", [[2.0, 0, 0], [0.5, 0, 0], [np.nan, 0, 0], [np.inf, 0, 0]])
def test_an_infeasible_injection_is_rejected_and_counted(x: list[float]) -> None:
    """A bound, integrality and NaN are checked before anything else sees the point."""
    state = session(Reply(solutions=(np.array(x),)))
    state.consult(Event.RELAXATION, np.full(3, 0.5))
    assert state.incumbent is None and not state.pending
    assert state.statistics.injections_offered == state.statistics.injections_rejected == 1


def test_an_injection_is_put_before_the_handler() -> None:
    """The handler's own REQUIRED cuts reject an injection, and those cuts are part of the verdict."""
    state = session(Reply(cuts=(at_most(2.0),), solutions=(ONES,)))
    verdict = state.consult(Event.RELAXATION, np.full(3, 0.9))
    assert state.incumbent is None and state.statistics.injections_rejected >= 1
    assert len(verdict.cuts) >= 2 and not verdict.rejected


def test_an_injection_no_better_than_the_incumbent_is_dropped() -> None:
    """It is neither accepted nor rejected, so a handler may repeat itself without end."""
    state = session(Reply(solutions=(ZEROS,)))
    for _ in range(3):
        state.consult(Event.RELAXATION, np.full(3, 0.5))
    assert state.statistics.injections_offered >= 3
    assert state.statistics.injections_accepted == 1 and state.statistics.injections_rejected == 0


@pytest.mark.parametrize("maximise", [True, False])
def test_incumbent_and_bound_move_one_way(maximise: bool) -> None:
    """A worse point does not replace the incumbent, nor a looser bound the bound, in either direction."""
    state = session(maximise=maximise)
    better, worse = (ONES, ZEROS) if maximise else (ZEROS, ONES)
    tight, loose = (7.0, 9.0) if maximise else (-1.0, -3.0)
    assert state.accept(better) and not state.accept(worse) and not state.accept(better)
    for bound in (loose, tight, loose, math.inf, math.nan):
        state.tighten(bound)
    assert state.bound == tight and not state.is_proven
    result = state.result(Termination.TIME_LIMIT, 0)
    assert result.objective == state.model.value(better) and result.status is SolutionStatus.FEASIBLE


def test_a_gap_of_zero_asks_for_a_proof() -> None:
    """The requested gap is relative to the incumbent."""
    for gap, bound, proven in ((0.0, 6.0, True), (0.0, 6.1, False), (0.05, 6.2, True), (0.05, 6.4, False)):
        state = session(gap=gap)
        state.accept(ONES)
        state.tighten(bound)
        assert state.is_proven is proven


def test_a_proof_at_the_time_limit_is_a_proof() -> None:
    """When incumbent and bound meet, the result is optimal whatever ended the solve."""
    state = session()
    state.accept(ONES)
    state.tighten(6.0)
    result = state.result(Termination.TIME_LIMIT, 0)
    assert result.termination is Termination.OPTIMAL and result.status is SolutionStatus.OPTIMAL and result.gap == 0.0


def test_a_gap_that_was_asked_for_is_not_a_proof() -> None:
    """Incumbent and bound as close as asked for end a solve, but only a gap of zero makes the result optimal."""
    state = session(gap=0.05)
    state.accept(ONES)
    state.tighten(6.2)
    result = state.result(Termination.TIME_LIMIT, 0)
    assert result.termination is Termination.TIME_LIMIT and result.status is SolutionStatus.FEASIBLE


def test_an_interrupt_is_the_reason_given() -> None:
    """The first reason to stop is the one reported, with incumbent and bound."""
    state = session()
    state.accept(ZEROS)
    state.tighten(9.0)
    state.request_stop(Termination.INTERRUPTED)
    state.request_stop(Termination.STOPPED)
    result = state.result(Termination.TIME_LIMIT, 4)
    assert result.termination is Termination.INTERRUPTED and result.objective == 0.0 and result.bound == 9.0


def test_a_proven_bound_below_an_accepted_solution_is_an_invalid_cut() -> None:
    """An optimum that is worse than a point known to be feasible cannot be; solver noise can."""
    state = session()
    state.accept(ONES)
    state.tighten(5.0)
    with pytest.raises(InvalidCutError, match=r"bound 5\.0, but a feasible solution has objective 6\.0.*check_cuts"):
        state.result(Termination.OPTIMAL, 0)
    state = session()
    state.accept(ONES)
    state.tighten(6.0 - 1e-8)
    assert state.result(Termination.OPTIMAL, 0).bound == 6.0


@pytest.mark.parametrize("excess", [1.0, 1e-4])
@pytest.mark.parametrize("validity", list(Validity))
def test_a_cut_that_contradicts_the_incumbent_is_named(validity: Validity, excess: float) -> None:
    """So is, with check_cuts, a REQUIRED or IMPLIED cut that it violates a little; an OPTIMALITY cut may do that."""
    state = session(Reply(cuts=(at_most(3.0 - excess, validity),)), check_cuts=excess < 1.0)
    state.accept(ONES)
    state.consult(Event.RELAXATION, np.full(3, 0.5))
    if validity is Validity.OPTIMALITY:
        assert not state.failed
        return
    with pytest.raises(InvalidCutError, match=rf"row 0 of the {validity.name} cuts 'at most'.*objective 6\.0"):
        state.result(Termination.STOPPED, 0)


@pytest.mark.parametrize(
    ("needs", "reply", "message"),
    [
        (Needs([Event.CANDIDATE]), Reply(cuts=(at_most(1.0),)), "REQUIRED cuts .'at most'., which its needs"),
        (Needs([Event.CANDIDATE]), Reply(solutions=(ZEROS,)), "do not declare `injects`"),
        (
            Needs([Event.CANDIDATE], [Validity.OPTIMALITY], keeps="another"),
            Reply(cuts=(at_most(1.0, Validity.OPTIMALITY),)),
            "by the rule 'some', which the handler's needs do not declare",
        ),
        (EVERYTHING, Reply(solutions=(np.zeros(4),)), r"solution of shape \(4,\); the model has 3 columns"),
        (EVERYTHING, "cut", "must return a Reply or None, got str"),
    ],
)
def test_a_reply_must_be_what_was_declared(needs: Needs, reply: Reply, message: str) -> None:
    """An undeclared or malformed reply stops the solve, and nothing of it is used."""
    state = session(reply, needs=needs)
    verdict = state.consult(Event.CANDIDATE, ONES)
    assert state.stop_requested and verdict.cuts == () and state.incumbent is None
    with pytest.raises(HandlerError, match=message):
        state.result(Termination.STOPPED, 0)


@pytest.mark.parametrize("validity", list(Validity))
def test_optimality_cuts_and_only_those_name_their_rule(validity: Validity) -> None:
    """Without it nobody could tell whether two families keep the same optimum."""
    keeps = None if validity is Validity.OPTIMALITY else "some"
    with pytest.raises(HandlerError, match=r"'mine'.*name the rule"):
        Cuts(Rows.single([0], 1.0, upper=0.0), validity, "mine", keeps=keeps)


def test_what_is_proposed_while_a_start_is_vetted_is_vetted_too() -> None:
    """A proposal made once, at the start, becomes the incumbent and is counted."""
    state = session()
    replies = [Reply(solutions=(ONES,))]
    state.handler = FunctionHandler(lambda point: replies.pop() if replies else None, EVERYTHING)
    state.offer_start(ZEROS)
    assert state.incumbent == 6.0 and state.statistics.injections_accepted == 1


def test_the_first_exception_is_the_one_raised() -> None:
    """A later failure, a consequence perhaps, does not hide it."""
    state = session()
    first = KeyError("first")
    state.fail(first)
    state.fail(ValueError("second"))
    with pytest.raises(KeyError) as caught:
        state.result(Termination.STOPPED, 0)
    assert caught.value is first


BOUNDS = Needs(bounds=True)


@pytest.mark.parametrize("maximise", [True, False])
def test_only_changes_are_reported_in_the_models_own_direction(maximise: bool) -> None:
    """A looser bound, the same bound and no bound are no news; a new incumbent is."""
    heard: list[BoundReport] = []
    sign = 1.0 if maximise else -1.0
    state = session(needs=BOUNDS, maximise=maximise, on_bound=heard.append)
    for bound in (math.nan, math.inf, sign * 9.0, sign * 9.0, sign * 12.0, sign * 8.0):
        state.report(bound, nodes=3)
    state.report()
    state.consult(Event.CANDIDATE, ZEROS)
    state.report(nodes=2)
    assert [report.bound for report in heard] == [sign * 9.0, sign * 8.0, sign * 8.0]
    assert [report.incumbent for report in heard] == [None, None, 0.0] and {report.nodes for report in heard} == {3}
    assert state.statistics.calls == {"bound": 3}


def test_nothing_is_reported_to_those_who_did_not_ask() -> None:
    """Bounds are taken all the same."""
    state = session(on_bound=lambda report: Reply(stop=True))
    state.report(7.0)
    state.consult(Event.CANDIDATE, ONES)
    assert state.result(Termination.NODE_LIMIT, 1).bound == 7.0 and state.statistics.calls == {"candidate": 1}


def test_a_stop_at_a_report_is_a_request_to_stop() -> None:
    """The solve ends for that reason with what is known; while it stops nothing is reported, at the end the last."""
    heard: list[BoundReport] = []
    state = session(needs=BOUNDS, on_bound=lambda report: heard.append(report) or Reply(stop=True))
    state.accept(ZEROS)
    state.report(9.0)
    assert state.stop_requested
    state.report(8.0)
    result = state.result(Termination.INTERRUPTED, 5)
    assert result.termination is Termination.STOPPED and result.objective == 0.0 and result.bound == 8.0
    assert [(report.bound, report.nodes) for report in heard] == [(9.0, 0), (8.0, 5)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that sessions read, to be set."""
    now = [0.0]
    monkeypatch.setattr(SolveSession, "seconds", property(lambda state: now[0]))
    return now


@pytest.mark.parametrize(("pause", "least", "most"), [(0.0, 200, 200), (0.0001, 200, 200), (0.1, 3, 10), (9.0, 2, 2)])
def test_a_slow_listener_hears_less_and_always_the_last(
    clock: list[float], pause: float, least: int, most: int
) -> None:
    """Two hundred bounds in two fifths of a second: a quick listener hears them all, a slow one holds nobody up."""
    heard: list[float] = []

    def listen(report: BoundReport) -> None:
        heard.append(report.bound)
        clock[0] += pause

    state = session(needs=BOUNDS, on_bound=listen)
    for bound in range(300, 100, -1):
        clock[0] += 0.002
        state.report(float(bound))
    state.result(Termination.NODE_LIMIT, 0)
    assert least <= len(heard) <= most
    assert heard[0] == 300.0 and heard[-1] == 101.0 and heard == sorted(heard, reverse=True)


def test_what_was_held_back_is_reported_later_with_no_news_of_its_own(clock: list[float]) -> None:
    """Once the pause is over, any call brings it; no pause is longer than a second."""
    heard: list[float] = []

    def listen(report: BoundReport) -> None:
        heard.append(report.bound)
        clock[0] += 10.0

    state = session(needs=BOUNDS, on_bound=listen)
    state.report(9.0)
    state.report(8.0)
    clock[0] = 10.9
    state.report()
    assert heard == [9.0]
    clock[0] = 11.0
    state.report()
    assert heard == [9.0, 8.0]


def test_a_report_does_not_contradict_itself() -> None:
    """A bound that rounding put below the incumbent is reported as the incumbent's value."""
    heard: list[BoundReport] = []
    state = session(needs=BOUNDS, on_bound=heard.append)
    state.accept(ONES)
    state.report(6.0 - 1e-9)
    assert [report.bound for report in heard] == [6.0]


@pytest.mark.parametrize(
    "reply", [Reply(cuts=(at_most(3.0),)), Reply(solutions=(ZEROS,)), True, Reply(solutions=(ZEROS,), stop=True)]
)
def test_a_reply_to_a_report_can_only_stop(reply: object) -> None:
    """Whatever was declared: anything else is an error, and nothing of it is used."""
    state = session(needs=EVERYTHING | BOUNDS, on_bound=lambda report: reply)  # type: ignore[arg-type, return-value]
    state.report(9.0)
    assert state.stop_requested and state.incumbent is None
    with pytest.raises(HandlerError, match=r"Reply or None, got bool|only a stop"):
        state.result(Termination.STOPPED, 0)


def test_an_exception_in_the_last_report_comes_out() -> None:
    """Also when the solver has returned already."""
    error = KeyError("late")

    def fail(report: BoundReport) -> None:
        raise error

    state = session(needs=BOUNDS, on_bound=fail)
    state.tighten(7.0)
    with pytest.raises(KeyError) as caught:
        state.result(Termination.NODE_LIMIT, 0)
    assert caught.value is error


def test_the_start_is_reported() -> None:
    """As the first incumbent, before there is a bound."""
    heard: list[BoundReport] = []
    state = session(needs=BOUNDS, on_bound=heard.append)
    state.offer_start(ZEROS)
    assert [(report.bound, report.incumbent) for report in heard] == [(math.inf, 0.0)]


def test_statistics_count_calls_and_rows_by_source() -> None:
    """Calls are counted by event, cut rows by source; empty batches are dropped."""
    state = session(Reply(cuts=(at_most(3.0), Cuts(Rows.empty(), Validity.IMPLIED, "none"))))
    state.consult(Event.CANDIDATE, ONES)
    state.consult(Event.RELAXATION, ONES)
    assert state.statistics.calls == {"candidate": 1, "relaxation": 1} and state.statistics.cuts == {"at most": 2}


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [
        (None, 1.0, math.inf),
        (4.0, 5.0, 0.25),
        (-4.0, -3.0, 0.25),
        (0.0, 0.0, 0.0),
        (0.0, 1.0, math.inf),
        (1.0, math.inf, math.inf),
    ],
)
def test_relative_gap(objective: float | None, bound: float, gap: float) -> None:
    """The distance of bound and objective in units of the objective; infinite without one."""
    assert relative_gap(objective, bound) == gap
