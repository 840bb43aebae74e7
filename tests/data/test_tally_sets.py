"""Sets of samples of a tally: counts at the end of paths, by single columns and by pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accel_oct.data import Tally
from accel_oct.data.tally import TallySets


@given(st.integers(0, 2**16), st.integers(1, 6), st.integers(0, 4), st.data())
def test_sets_are_those_of_the_rows(seed, n_features, depth, data):
    """Totals, singles and pairs of a path are the weights of its rows by cell, contradictory paths included."""
    rng = np.random.default_rng(seed)
    X = rng.random((30, n_features)) < 0.6
    y, groups, weights = rng.integers(0, 3, 30), rng.integers(0, 2, 30), rng.integers(0, 4, 30)
    tally = Tally.of(X, y, depth=depth, sensitive_features=groups, sample_weight=weights + (np.arange(30) == 0))
    weights = weights + (np.arange(30) == 0)
    cells = np.searchsorted(tally.classes, y) * tally.n_groups + np.searchsorted(tally.group_labels, groups)
    own = np.zeros((tally.n_cells, 30), dtype=np.int64)
    own[cells, np.arange(30)] = weights
    sets = TallySets(tally)
    for _ in range(2):  # what is kept must not change
        literal = st.tuples(st.integers(0, n_features - 1), st.booleans())
        path = tuple(data.draw(st.lists(literal, max_size=depth)))
        here = np.all([X[:, column] == side for column, side in path] + [np.ones(30, dtype=bool)], axis=0)
        assert sets.totals(path).tolist() == (own @ here).tolist()
        if len(path) < depth:
            assert sets.singles(path).tolist() == ((own * here) @ X).tolist()
        if len(path) + 1 < depth:
            assert sets.pairs(path).tolist() == np.einsum("cn,nf,ng->cfg", own * here, X, X).tolist()
            assert sets.pairs(()).tolist() == np.einsum("cn,nf,ng->cfg", own, X, X).tolist()
