"""Where the tree comes from: data, settings, versions."""

from __future__ import annotations

import inspect
import platform
from importlib import metadata
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from accel_oct._version import __version__
from accel_oct.data.labels import as_weights
from accel_oct.encoding.columns import Table
from accel_oct.encoding.fingerprint import table_fingerprint
from accel_oct.errors import shown
from accel_oct.report.markup import Content, Markup, element
from accel_oct.report.wording import count

__all__ = ["provenance_section", "same_counts"]

_PACKAGES = ("numpy", "scikit-learn", "scipy", "highspy")


def provenance_section(model: Any, X: Any, y: Any, sample_weight: Any, test: tuple[Any, Any] | None) -> Markup:
    """Three tables of names and values."""
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
    said = (
        "The fingerprint is a SHA-256 of names, cells and classes in their order: two reports with the same one are on "
        "the same table. Versions are those that wrote this report."
    )
    return element(
        "section",
        element("h2", "Data, settings, versions", id="provenance-title"),
        element("p", said),
        element("h3", "Data"),
        element("dl", _pairs(data), class_="pairs"),
        element("h3", "Settings of ", type(model).__name__),
        element("dl", _pairs(_settings(model)), class_="pairs settings"),
        element("h3", "Versions"),
        element("dl", _pairs(versions), class_="pairs settings"),
        id="provenance-section",
        aria_labelledby="provenance-title",
    )


def same_counts(model: Any, X: Any, sample_weight: Any) -> bool:
    """Whether rows (of weight above 0) come to the nodes in the numbers in which the training rows did."""
    path = model.decision_path(X)
    if sample_weight is not None:
        path = path[as_weights(sample_weight, path.shape[0]) > 0]
    return bool(np.array_equal(np.asarray(path.sum(axis=0)).reshape(-1), model.tree_.n_node_samples))


def _pairs(pairs: list[tuple[str, Content]]) -> list[Markup]:
    return [element("div", element("dt", term), element("dd", value)) for term, value in pairs]


def _settings(model: Any) -> list[tuple[str, Content]]:
    """Parameters, those first that are not as they are by default; and what cross-validation chose."""
    defaults = {name: entry.default for name, entry in inspect.signature(type(model)).parameters.items()}
    own: list[tuple[str, Content]] = []
    rest: list[tuple[str, Content]] = []
    for name, value in model.get_params(deep=False).items():
        if _same(value, defaults.get(name)):
            rest.append((name, element("span", _told(value), " (default)", class_="quiet")))
        else:
            own.append((name, _told(value)))
    chosen = [
        (f"{name} (chosen)", _told(getattr(model, name)))
        for name in ("max_depth_", "leaf_penalty_")
        if hasattr(model, name)
    ]
    return [*chosen, *own, *rest]


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and isinstance(value, str | int | float | None) and value == default


def _told(value: Any) -> str:
    """A setting in a line: nothing that is different each time, such as an address in memory."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_told, value)) or "none"
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
