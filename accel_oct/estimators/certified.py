"""Claims of fitted classifiers, for their certificates."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from accel_oct.certificates import Claim, Column, FeatureProblem
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.encoding.conditions import missing_values
from accel_oct.encoding.orders import Order
from accel_oct.errors import InvalidInputError
from accel_oct.estimators.every_split import TableSearch
from accel_oct.estimators.training import CheckedRows
from accel_oct.objectives import LinearScore


def claim_of(model: Any, X: Any, y: Any, given: tuple[Any, Any, Any]) -> Claim:
    """Return the claim that a classifier's tree is optimal, for its training data.

    Over every split, where the classifier searched every split; else over its binary features.

    Raises
    ------
    InvalidInputError
        If the classifier has no proof, or a problem of this kind cannot be certified yet.
    """
    if model.status_ != "optimal":
        raise InvalidInputError(f"only an optimal tree has a certificate, and this one is {model.status_!r}")
    if model.close_to is not None:
        raise InvalidInputError("a tree that was chosen by close_to has no certificate: others may be better")
    base = clone(model)  # reading a table sets attributes
    source = base._source(X, y, given, in_memory="a certificate")
    if isinstance(source, EncodedTable):
        raise InvalidInputError("a certificate of a classifier needs the raw table; of an EncodedTable use solve")
    assert isinstance(source, CheckedRows)
    search = TableSearch.of(base, source)
    if search is None:
        data = base._encoded_data(source, model.encoder_)
        plain = isinstance(data.score, LinearScore) and data.score.amounts is None
        name = "accuracy" if plain else str(model.objective or model.class_weight)
        constraints = tuple(each.bind(data.dataset) for each in base._all_constraints(data))
        problem = FeatureProblem(data.dataset, model.max_depth, model.leaf_penalty, constraints, name)
        return problem.claim(model.tree_.tree)
    score = search.space.score
    if not isinstance(score, LinearScore) or score.amounts is not None:
        raise InvalidInputError(f"a certificate cannot yet be written for the objective {score.name!r}")
    tree = search._ordered(model.tree_.tree, model.encoder_.conditions_)
    if tree is None:
        raise InvalidInputError("X must be the training data: the tree's conditions are no splits of these columns")
    cells: dict[str, list[str]] = {}
    columns = [_column(order, search, cells) for order in search.orders.orders]
    return Claim.of_table(
        search.data.dataset,
        columns,
        dict(cells),
        search.space.ranks,
        tree,
        model.max_depth,
        model.leaf_penalty,
        search.space.bound_constraints,
    )


def _column(order: Order, search: TableSearch, cells: dict[str, list[str]]) -> Column:
    """Return how the checker reads an order, and add the cells of its column."""
    column = next(each for each in search.orders.columns if each.index == order.column)
    name = str(search.checked.table.name(order.column))
    absent = missing_values(column.values)
    if name not in cells:
        pairs = zip(column.values.tolist(), absent.tolist(), strict=True)
        cells[name] = ["" if gone else _text(value) for value, gone in pairs]
    texts = cells[name]
    if order.distinct is not None:
        if any(float(text) != value for text, value in zip(texts, column.values.tolist(), strict=True) if text):
            raise InvalidInputError(f"a certificate cannot hold the numbers of column {name!r} exactly")
        return Column(name, "number", (order.missing,) if order.missing else ())
    groups: list[set[str]] = [set() for _ in range(order.n_cuts + 1)]
    for text, rank in zip(texts, order.ranks.tolist(), strict=True):
        groups[rank].add(text)
    return Column(name, "groups", ([sorted(group) for group in groups],))


def _text(value: Any) -> str:
    """Return a cell of a CSV file."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value).strip()
