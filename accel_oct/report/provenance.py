"""The section on data, settings and versions."""

from __future__ import annotations

import inspect
import platform
from importlib import metadata
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from accel_oct._version import __version__
from accel_oct.data.weights import as_weights
from accel_oct.encoding.tables import Table, table_fingerprint
from accel_oct.errors import shown
from accel_oct.report.markup import Content, Markup, count, element, section, terms

_PACKAGES = ("numpy", "scikit-learn", "scipy", "highspy")
#: Attributes that cross-validation sets.
_CHOSEN = ("max_depth_", "leaf_penalty_")


def provenance_section(model: Any, X: Any, y: Any, sample_weight: Any, test: tuple[Any, Any] | None) -> Markup:
    """Return three tables of names and values."""
    table = Table.read(X)
    data: list[tuple[str, Content]] = [
        ("Training table", f"{count(len(table), 'row')}, {count(len(table.columns), 'column')}"),
        ("Its fingerprint", element("code", table_fingerprint(table, y, sample_weight))),
    ]
    if test is not None:
        held_out = Table.read(test[0])
        data.append(("Test table", f"{count(len(held_out), 'row')}, {count(len(held_out.columns), 'column')}"))
        data.append(("Its fingerprint", element("code", table_fingerprint(held_out, test[1]))))
    versions: list[tuple[str, Content]] = [("accel_oct", __version__), ("Python", platform.python_version())]
    versions += [(package, version) for package in _PACKAGES if (version := _version(package))]
    explanation = (
        "The fingerprint is a SHA-256 of names, cells and classes in their order: reports with equal fingerprints are "
        "on the same table. Versions are those that wrote this report."
    )
    return section(
        "provenance",
        "Data, settings, versions",
        element("p", explanation),
        element("h3", "Data"),
        terms(data, "pairs"),
        element("h3", "Settings of ", type(model).__name__),
        terms(_settings(model), "pairs settings"),
        element("h3", "Versions"),
        terms(versions, "pairs settings"),
    )


def same_counts(model: Any, X: Any, sample_weight: Any) -> bool:
    """Return whether each node has as many rows (of positive weight) as in training."""
    path = model.decision_path(X)
    if sample_weight is not None:
        path = path[as_weights(sample_weight, path.shape[0]) > 0]
    return bool(np.array_equal(np.asarray(path.sum(axis=0)).reshape(-1), model.tree_.n_node_samples))


def settings_of(model: Any) -> list[tuple[str, str]]:
    """Return the values chosen by cross-validation, and all parameters."""
    chosen = [(name, _setting(getattr(model, name))) for name in _CHOSEN if hasattr(model, name)]
    return [*chosen, *((name, _setting(value)) for name, value in model.get_params(deep=False).items())]


def _settings(model: Any) -> list[tuple[str, Content]]:
    """Return the values chosen by cross-validation, then changed parameters, then defaults."""
    defaults = {name: entry.default for name, entry in inspect.signature(type(model)).parameters.items()}
    own: list[tuple[str, Content]] = []
    rest: list[tuple[str, Content]] = []
    for name, value in model.get_params(deep=False).items():
        if _same(value, defaults.get(name)):
            rest.append((name, element("span", _setting(value), " (default)", class_="quiet")))
        else:
            own.append((name, _setting(value)))
    chosen = [(f"{name} (chosen)", _setting(getattr(model, name))) for name in _CHOSEN if hasattr(model, name)]
    return [*chosen, *own, *rest]


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and isinstance(value, str | int | float | None) and value == default


def _setting(value: Any) -> str:
    """Return a setting in one line, without parts that vary between runs, such as memory addresses."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value)) or "none"
    if isinstance(value, BaseEstimator) or hasattr(value, "__dataclass_fields__") or value is None:
        return " ".join(repr(value).split())
    if isinstance(value, str | int | float | dict | np.generic | np.ndarray):
        return shown(value)
    return f"a {type(value).__name__}"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
