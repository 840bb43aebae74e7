"""Data in pieces in the place of X: read before anything else is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accel_oct.data.encoded_table import EncodedTable
from accel_oct.errors import InvalidInputError
from accel_oct.pieces.recognising import is_in_pieces
from accel_oct.support.arguments import checked_depth

__all__ = ["read_pieces"]


def read_pieces(
    X: Any, y: Any, sample_weight: Any, *, max_depth: Any, groups: Sequence[str] = (), client: Any = None
) -> tuple[Any, Any, Any]:
    """Return X, y and weights: an encoded table as its data, binary columns in pieces gathered, others as they are.

    Parameters
    ----------
    X, y, sample_weight
        As handed to `solve`: of data in pieces y and the weights are names of columns, y for dask also a collection
        beside X. An `EncodedTable` holds both.
    max_depth : int
        Of the solve: a tally must be deep enough.
    groups : sequence of str
        Columns that constraints name: their values are told apart.
    client : distributed.Client, optional
        Whose workers read the pieces.
    """
    if isinstance(X, EncodedTable):
        for argument, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise InvalidInputError(f"{argument} must be None when X is an EncodedTable, which holds it already")
        return X.data, None, None
    if not is_in_pieces(X, y):
        return X, y, sample_weight
    if y is None:
        raise InvalidInputError("y must be the name of the column with the classes where X is data in pieces, got None")
    # Loads scikit-learn, which solves on arrays do without.
    from accel_oct.pieces.gathering import gather

    depth = checked_depth(max_depth)
    found = gather(
        X,
        y,
        sample_weight=sample_weight,
        sensitive_features=list(groups) or None,
        encoder=None,
        depth=depth,
        client=client,
    )
    return found.data, None, None
