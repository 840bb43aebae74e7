"""Finding backends: unknown names, missing packages, and what the list says."""

from __future__ import annotations

import importlib.util
from importlib.metadata import EntryPoint

import pytest

from accel_oct.mip import (
    BackendUnavailableError,
    InvalidCutError,
    MipError,
    ModelError,
    UnknownBackendError,
    backend,
    backend_availability,
    backend_class,
    backend_names,
    candidate_backends,
    create_backend,
    list_backends,
    registered_names,
)


def test_the_shipped_backends_are_registered() -> None:
    """Names come from entry points, and each class carries the name it is registered under."""
    assert {"gurobi", "highs", "mock"} <= set(registered_names())
    for name in registered_names():
        assert backend_class(name).name == name


def test_an_unknown_backend_lists_the_known_ones_and_the_extras() -> None:
    """The message helps with a typo and with a solver that is not installed."""
    with pytest.raises(UnknownBackendError) as caught:
        create_backend("gorubi")
    message = str(caught.value)
    assert "'gorubi'" in message and all(name in message for name in registered_names())
    assert all(f"accel-oct[{extra}]" in message for extra in ("gurobi", "scip", "pyomo", "copt", "xpress", "cplex"))
    assert isinstance(caught.value, ValueError)


def test_a_backend_is_asked_for_by_name() -> None:
    """An object that is no name, and a variant of a backend that has none, are errors."""
    with pytest.raises(UnknownBackendError, match="must be a name, got int"):
        create_backend(3)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="'highs' has no variants, got highs:fast"):
        create_backend("highs:fast")


@pytest.mark.parametrize(
    ("name", "package", "advice"),
    [("gurobi", "gurobipy", "pip install 'accel-oct[gurobi]'"), ("highs", "highspy", "pip install highspy")],
)
def test_a_missing_package_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, advice: str
) -> None:
    """Creation says which package is missing and how to get it; the list says the same and goes on."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda wanted, *rest: None if wanted == package else find(wanted))
    with pytest.raises(BackendUnavailableError) as caught:
        create_backend(name)
    assert f"'{package}', which is not installed" in str(caught.value) and advice in str(caught.value)
    assert not backend_class(name).is_available()
    info = {info.name: info for info in list_backends()}
    assert not info[name].installed and not info[name].licensed and advice in info[name].reason
    assert info["mock"].installed and info["mock"].licensed


def test_a_backend_that_cannot_be_imported_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken third-party entry point is one unavailable line of the list."""
    broken = EntryPoint("broken", "no_such_module:Backend", backend.ENTRY_POINT_GROUP)
    known = backend._registered()
    monkeypatch.setattr(backend, "_registered", lambda: {**known, "broken": broken})
    with pytest.raises(BackendUnavailableError, match=r"'broken' cannot be imported.*no_such_module"):
        create_backend("broken")
    info = {info.name: info for info in list_backends()}
    assert not info["broken"].installed and "no_such_module" in info["broken"].reason and info["mock"].licensed


def test_auto_takes_the_ranked_backends_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one from elsewhere; those without a rank, not installed or that cannot be imported are left out."""

    class Other(backend_class("mock")):  # type: ignore[misc]
        name = "other"
        auto_rank = 15

    class Missing(Other):
        name = "missing"
        package = "no_such_module"

    broken = EntryPoint("broken", "no_such_module:Backend", backend.ENTRY_POINT_GROUP)
    installed = [name for name in ("gurobi", "cplex", "xpress", "scip", "highs") if backend_class(name).is_available()]
    assert [backend.name for backend in candidate_backends("auto")] == installed
    classes = {"other": Other, "missing": Missing}
    known = {**backend._registered(), "broken": broken, **dict.fromkeys(classes, broken)}
    find = backend.backend_class
    monkeypatch.setattr(backend, "_registered", lambda: known)
    monkeypatch.setattr(backend, "backend_class", lambda name: classes.get(name) or find(name))
    expected = sorted([*installed, "other"], key=["gurobi", "other", "cplex", "xpress", "scip", "highs"].index)
    assert [backend.name for backend in candidate_backends("auto")] == expected


def test_a_backend_that_fails_while_it_is_imported_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises, or when the class is not there: the others go on."""
    known = backend._registered()
    wrong = EntryPoint("wrong", "accel_oct_backends.mock:NoSuchBackend", backend.ENTRY_POINT_GROUP)
    monkeypatch.setattr(backend, "_registered", lambda: {**known, "wrong": wrong})
    with pytest.raises(BackendUnavailableError, match=r"'wrong' cannot be imported.*NoSuchBackend"):
        create_backend("wrong")
    assert candidate_backends("auto")


def test_availability_of_a_named_backend() -> None:
    """Every listed name can be asked for, variants included, and creation agrees with the answer."""
    assert backend_availability("highs") and backend_availability("highs").reason == ""
    assert {info.name for info in list_backends()} == set(backend_names())
    for name in backend_names():
        found = backend_availability(name)
        if found:
            assert create_backend(name).name == name.partition(":")[0]
        else:
            assert found.reason
            with pytest.raises(BackendUnavailableError) as caught:
                create_backend(name)
                raise BackendUnavailableError(found.reason)  # a licence may be asked for only when a model is solved
            assert str(caught.value) == found.reason


def test_availability_of_what_is_no_backend() -> None:
    """A name that nothing is registered under is an error, not an unavailable backend."""
    with pytest.raises(UnknownBackendError, match="gorubi"):
        backend_availability("gorubi")
    with pytest.raises(UnknownBackendError, match="must be a name, got int"):
        backend_availability(3)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="'highs' has no variants, got highs:fast"):
        backend_availability("highs:fast")


def test_a_variant_whose_solver_is_missing_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyomo alone is not enough: each solver behind it is looked for, and its absence has a reason."""
    solvers = pytest.importorskip("accel_oct_backends.pyomo_solvers")
    pytest.importorskip("pyomo", reason="the extra accel-oct[pyomo] is not installed")
    monkeypatch.setattr(solvers, "_availability", lambda *_: False)
    found = backend_availability("pyomo:glpk")
    assert not found and not found.installed and "glpk-utils" in found.reason
    info = {info.name: info for info in list_backends()}
    assert not info["pyomo:glpk"].installed and info["pyomo:glpk"].reason == found.reason
    assert info["highs"].installed and "pyomo" not in info


def test_errors_share_a_base() -> None:
    """Everything raised at the seam can be caught as one type."""
    for kind in (ModelError, UnknownBackendError, BackendUnavailableError, InvalidCutError):
        assert issubclass(kind, MipError)
