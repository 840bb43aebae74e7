"""The log of a solver: to a function, a logger or a file, or nowhere."""

from __future__ import annotations

import copy
import io
import logging
import pickle

import pytest
from accel_oct_backends.mock import MockBackend

from accel_oct.mip import (
    ModelArrays,
    ModelError,
    SolveOptions,
    Solver,
    SolveSession,
    Support,
    UnsupportedError,
)
from accel_oct.mip.conformance.suite import cardinality


def test_a_log_goes_to_a_function_a_logger_or_a_file(caplog: pytest.LogCaptureFixture) -> None:
    """Lines are passed on whole, also if they come in parts; without a log, to a logger that records DEBUG."""
    lines, file, logger = list[str](), io.StringIO(), logging.getLogger("a test")
    arrays = ModelArrays.of(cardinality())
    for log in (lines.append, file, logger):
        with caplog.at_level(logging.INFO):
            stream = SolveSession(arrays, SolveOptions(log=log), None).log_stream(logger)
        assert stream is not None
        with caplog.at_level(logging.INFO):
            stream.write("one\ntw")
            stream.write("o\n")
            stream.flush()
    assert lines == ["one", "two"] and file.getvalue() == "one\ntwo\n"
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("INFO", "one"), ("INFO", "two")]
    session = SolveSession(arrays, SolveOptions(), None)
    with caplog.at_level(logging.INFO):
        assert session.log_stream(logger) is None
    with caplog.at_level(logging.DEBUG):
        stream = session.log_stream(logger)
        assert stream is not None
        stream.write("three\n")
    assert caplog.records[-1].levelname == "DEBUG" and caplog.records[-1].getMessage() == "three"


def test_a_log_must_take_lines() -> None:
    """Anything else is an error that names the argument, as is a log of a backend that has none."""
    for make in (SolveOptions, Solver):
        with pytest.raises(ModelError, match="`log` must be a function of a line"):
            make(log="file.txt")  # type: ignore[arg-type, operator]
    mute = MockBackend(log=Support.NO)
    mute.load(cardinality())
    with pytest.raises(UnsupportedError, match="does not pass on the solver's log"):
        mute.solve(SolveOptions(log=print))
    lines: list[str] = []
    mock = MockBackend()
    mock.load(cardinality())
    mock.solve(Solver("mock", log=lines.append).solve_options())
    assert lines == ["4096 of 4096 points satisfy bounds and rows"]


def test_copies_of_a_solver_share_the_log_and_pickles_have_none() -> None:
    """As estimators are cloned, and sent to other processes."""
    file = io.TextIOWrapper(io.BytesIO())
    solver = Solver("scip", seed=3, options={"a": [1]}, log=file)
    copied = copy.deepcopy(solver)
    assert copied.log is file and copied == solver and copied.options["a"] is not solver.options["a"]
    read = pickle.loads(pickle.dumps(solver))
    assert read.log is None and read == solver and hash(read) == hash(solver)
