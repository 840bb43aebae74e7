"""A call of every compiled kernel on small random data, for tests of the border to Python.

A `Call` has its arguments as a flat dictionary of arrays and numbers, so that each can be changed on its own before the
records are made of them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_oct import frontier, native
from accel_oct.exact.counts import Layout, layout

Arguments = dict[str, Any]
ShouldStop = Callable[[], bool]

KINDS = ("unit", "wide", "real")
"""Weights that are counted in 16 bits, in 32 bits, and as real numbers."""


@dataclass(frozen=True)
class Call:
    """A kernel, arguments that are good, and how to call it; returns all that it writes."""

    name: str
    arguments: Arguments
    function: Callable[[Arguments, ShouldStop], list[Any]]

    def __call__(self, should_stop: ShouldStop = lambda: False, **changed: Any) -> list[Any]:
        """Call with fresh copies of the arguments: some are written to."""
        given = {
            name: value.copy() if isinstance(value, np.ndarray) and name not in changed else value
            for name, value in {**self.arguments, **changed}.items()
        }
        return self.function(given, should_stop)


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, bit for bit."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return np.array_equal(np.asarray(one), np.asarray(other), equal_nan=np.asarray(one).dtype.kind == "f")


def spread_of(rng: np.random.Generator, kind: str, n_classes: int, n: int = 60, F: int = 40) -> Layout:
    """Samples laid out for counters of 16 bits, of 32 bits (ten rows or more), or for real numbers.

    All counts are far from the end of their type: changed arguments, which contradict each other, must not overflow.
    """
    X, y = rng.random((n, F)) < 0.4, rng.integers(0, n_classes, n)
    heavy = rng.integers(2**12, 2**13, n).astype(float)
    weights = {"unit": np.ones(n), "wide": heavy, "real": rng.integers(1, 9, n) / 8}
    return layout(X, y, weights[kind], n_classes)


def entries_of(spread: Layout) -> native.Entries:
    return native.Entries(spread.entries, spread.channel, spread.plane, spread.marked, spread.numbers)


def _record(kind: Any, given: Mapping[str, Any], prefix: str) -> Any:
    """The record of the arguments that begin with a prefix; records in it were made before."""
    return kind(**{name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)})


def _flat(prefix: str, **parts: Any) -> Arguments:
    return {prefix + name: value for name, value in parts.items()}


# ---------------------------------------------------------------- levels


def _entries(spread: Layout) -> Arguments:
    return _flat(
        "entries.",
        rows=spread.entries,
        channel=spread.channel,
        plane=spread.plane,
        marked=spread.marked,
        numbers=spread.numbers,
    )


def _words(spread: Layout) -> Arguments:
    room = spread.words()
    return _flat("words.", words=room.words, masks=room.masks)


def _counted(spread: Layout) -> Arguments:
    """Counts of all entries."""
    table = np.zeros(spread.table_shape, spread.dtype)
    native.level_two(np.arange(len(spread.entries)), entries_of(spread), spread.words(), table, 0)
    diagonal, lanes = np.arange(spread.n_features), table.shape[3]
    single = np.zeros((spread.n_channels, spread.width), spread.dtype)
    single[:, : spread.n_features] = table[:, diagonal // lanes, diagonal, diagonal % lanes]
    totals = np.bincount(spread.channel, spread.signs, spread.n_channels).astype(spread.dtype)
    return _flat("whole.", table=table, single=single, totals=totals)


def level_two(rng: np.random.Generator, spread: Layout) -> Call:
    def call(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        entries, words = _record(native.Entries, given, "entries."), _record(native.Words, given, "words.")
        native.level_two(given["members"], entries, words, given["table"], given["base"], should_stop)
        return [given["table"]]

    own = {"members": np.arange(len(spread.entries)), "table": np.zeros(spread.table_shape, spread.dtype), "base": 0}
    return Call("level_two", own | _entries(spread) | _words(spread), call)


def level_two_sparse(rng: np.random.Generator, spread: Layout) -> Call:
    def call(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        native.level_two_sparse(_record(native.Ones, given, "ones."), given["table"], given["base"], should_stop)
        return [given["table"]]

    rows, features = np.nonzero(spread.entries)
    by_feature = np.argsort(features, kind="stable")

    def starts(numbers: Any, size: int) -> Any:
        return np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=size))])

    own = _flat(
        "ones.",
        entries=rows[by_feature],
        entries_start=starts(features, spread.width),
        features=features,
        features_start=starts(rows, len(spread.entries)),
        channel=spread.channel,
        amounts=spread.signs.astype(spread.dtype),
    )
    return Call("level_two_sparse", own | {"table": np.zeros(spread.table_shape, spread.dtype), "base": 0}, call)


def pass_block(rng: np.random.Generator, spread: Layout) -> Call:
    def call(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        scores = _record(native.Scores, given, "scores.")
        native.pass_block(_record(native.Counts, given, "whole."), scores, given["base"], given["signed"], None)
        return [scores.one_leaf, scores.two_leaves]

    scores = native.Scores.of(2, spread.width, spread.dtype)
    own = _flat("scores.", one_leaf=scores.one_leaf, two_leaves=scores.two_leaves)
    return Call("pass_block", own | _counted(spread) | {"base": 0, "signed": spread.n_channels == 1}, call)


def level_three(rng: np.random.Generator, spread: Layout) -> Call:
    width, dtype = spread.width, spread.dtype

    def call(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        entries, whole = _record(native.Entries, given, "entries."), _record(native.Counts, given, "whole.")
        level = native.level_three(given["signed"], given["members"], entries, whole, None)
        level(given["f"], given["with_f"], spread.work(), given["best"], should_stop)
        return [given["with_f"], given["best"]]

    own: Arguments = {"signed": spread.n_channels == 1, "members": np.arange(len(spread.entries))}
    own |= {"f": int(rng.integers(spread.n_features)), "best": np.zeros(6 * width, dtype)}
    return Call(
        "level_three",
        own | {"with_f": np.zeros(spread.table_shape, dtype)} | _entries(spread) | _counted(spread),
        call,
    )


def level_four(rng: np.random.Generator, spread: Layout) -> Call:
    F, width, dtype, signed = spread.n_features, spread.width, spread.dtype, spread.n_channels == 1

    def call(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        entries, whole = _record(native.Entries, given, "entries."), _record(native.Counts, given, "whole.")
        level = native.level_four(
            given["signed"], given["members"], entries, whole, None, given["tables"], given["wanted"]
        )
        level(given["first"], given["count"], spread.work(), given["best"], should_stop)
        return [given["best"]]

    counted, members = _counted(spread), np.arange(len(spread.entries))
    tables = np.zeros((F, *spread.table_shape), dtype)
    three = native.level_three(signed, members, entries_of(spread), _record(native.Counts, counted, "whole."), None)
    for f in range(F):
        three(f, tables[f], spread.work(), np.zeros(6 * width, dtype))
    own = {"signed": signed, "members": members, "tables": tables, "wanted": np.ones((F, F), np.uint8)}
    own |= {"first": 0, "count": min(4, F), "best": np.zeros(F * 12 * width, dtype)}
    return Call("level_four", own | _entries(spread) | counted, call)


def first_tree(rng: np.random.Generator, spread: Layout) -> Call:
    def call(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        entries, words = _record(native.Entries, given, "entries."), _record(native.Words, given, "words.")
        scores, whole = native.Scores.of(2, spread.width, spread.dtype), _record(native.Counts, given, "whole.")
        room = given["room"], given["sums"], entries, words, whole, scores
        setup = native.DepthTwo(given["by_row"], given["amounts"], *room)
        return list(native.first_tree(given["samples"], setup, given["signed"], given["price"], given["depth"]))

    own = {"by_row": spread.by_row, "amounts": spread.signs, "room": np.zeros(len(spread.entries) + 1, np.int64)}
    own |= {"sums": np.zeros((3, spread.n_channels)), "samples": np.arange(spread.n_rows), "price": 0.5, "depth": 2}
    own |= {"signed": spread.n_channels == 1}
    return Call("first_tree", own | _entries(spread) | _words(spread) | _counted(spread), call)


# ---------------------------------------------------------------- groups of columns


def groups(rng: np.random.Generator, spread: Layout) -> list[Call]:
    """Calls that count, make tables, bounds and choose a set: each with what the ones before it give."""
    dtype, n_rows, n_groups = spread.dtype, 30, int(rng.integers(1, 5))
    channels = 1 if spread.n_channels == 1 else 3
    lanes = 64 // dtype.itemsize
    layers = np.array([n_groups, max(1, n_groups - 1)])
    place = np.concatenate([np.arange(layers[0]), lanes + np.arange(layers[1])])
    columns, size = place.size, channels * 2 * lanes
    pairs = columns * (columns - 1) // 2
    ones = (rng.random((columns, n_rows)) < 0.4).astype(np.uint8)
    amounts = rng.integers(1, 9, n_rows).astype(dtype)
    numbers = np.zeros((n_rows, 2 * lanes), dtype)
    numbers[:, place] = ones.T * amounts[:, None]
    channel = rng.integers(0, channels, n_rows)
    samples = _flat(
        "samples.",
        numbers=numbers,
        ones=ones,
        channel=channel,
        amounts=amounts,
        place=place,
        layers=layers,
        lanes=lanes,
        n_channels=channels,
    )
    counts = _flat(
        "counts.",
        totals=np.bincount(channel, amounts, channels).astype(dtype),
        once=np.zeros(size, dtype),
        twice=np.zeros(columns * size, dtype),
        triples=np.zeros(pairs * size, dtype),
    )
    chosen = np.zeros(n_rows + 1, np.int64)
    work = _flat(
        "work.",
        **{name: chosen.copy() for name in ("chosen", "chosen2", "chosen3")},
        once=np.zeros(2 * size, dtype),
        **{name: np.zeros(columns * size, dtype) for name in ("with_root", "without_root")},
        **{name: np.zeros(size, dtype) for name in ("both", "rest")},
        sums=np.zeros(10 * channels, dtype),
    )
    tables = _flat(
        "tables.",
        leaves=np.zeros((2, pairs, 4), dtype),
        stumps=np.zeros(2 * pairs * 4 * lanes, dtype),
        singles=np.zeros((2, columns, 2), dtype),
        whole=np.zeros((2, 1), dtype),
        reach=np.zeros(2 * columns * 2 * lanes),
    )

    def parts(given: Arguments) -> tuple[Any, Any, Any]:
        kinds = (native.GroupSamples, "samples."), (native.GroupCounts, "counts."), (native.GroupWork, "work.")
        one, two, three = (_record(kind, given, prefix) for kind, prefix in kinds)
        return one, two, three

    def count(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        own = parts(given)
        native.count_triples(*own, should_stop)
        return [own[1].once, own[1].twice, own[1].triples]

    counting = Call("count_triples", samples | counts | work, count)
    counted = dict(zip(("once", "twice", "triples"), counting(), strict=True))
    counts |= _flat("counts.", **counted)

    def fill(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        made = _record(native.GroupTables, given, "tables.")
        native.group_tables(given["root"], *parts(given), made, should_stop)
        # Lanes beyond the groups hold a leaf or nothing, as it comes with the width of a vector.
        stumps = made.stumps.reshape(2, pairs, lanes, 4)[:, :, :n_groups]
        return [made.leaves, stumps, made.singles, made.whole]

    filling = Call("group_tables", samples | counts | work | tables | {"root": 0}, fill)
    native.group_tables(0, *parts(samples | counts | work), _record(native.GroupTables, tables, "tables."))

    def reach(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        made = _record(native.GroupTables, given, "tables.")
        native.fill_reach(made, parts(given)[0], given["root"], given["price"], should_stop)
        return [made.reach]

    reaching = Call("fill_reach", samples | counts | work | tables | {"root": 0, "price": 0.5}, reach)
    tables["tables.reach"] = reaching()[0]
    column = np.full((n_groups, 2), -1)
    column[place % lanes, place // lanes] = np.arange(columns)
    sets = np.stack([rng.permutation(n_groups) for _ in range(5)])

    def choose(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        made = _record(native.GroupTables, given, "tables.")
        given_ = given["sets"], given["first"], given["last"], given["column"], given["root"], made, given["lanes"]
        return list(native.best_set(*given_, given["price"], given["best"]))

    own = {"sets": sets, "first": 0, "last": 5, "column": column, "root": 0, "lanes": lanes, "price": 0.5}
    choosing = Call("best_set", own | {"best": -1e9} | tables, choose)
    return [counting, filling, reaching, choosing]


# ---------------------------------------------------------------- outcomes


def _rewards(rng: np.random.Generator, n: int, F: int, points: bool) -> Arguments:
    gains = rng.integers(0, 9, (n, 2)) / 8
    amounts = np.stack([gains, rng.integers(0, 3, (n, 2)) / 2], axis=2).reshape(n, -1)
    return _flat(
        "rewards.",
        X=(rng.random((n if points else 0, F)) < 0.5).astype(np.uint8),
        weights=gains,
        amounts=np.ascontiguousarray(amounts),
        fixed=np.array([-0.125, 0.0]),
        per_grain=np.array([2.0]),
        mass=np.ones(n if points else 0),
        apart=np.triu(rng.random((F, F)) < 0.1, 1).astype(np.uint8),
        leaf_price=0.125,
        least=0.0,
    )


def outcomes(rng: np.random.Generator, spread: Layout) -> list[Call]:
    n, F = 25, int(rng.integers(1, 7))
    priced = _rewards(rng, n, F, True)
    limits = {"height": 2, "slack": 1.5, "most": 10**6, "memory": 2**28}

    def two(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        rewards = _record(native.Rewards, given, "rewards.")
        where = given["points"], given["columns"], given["height"], given["slack"], given["most"]
        found = native.outcomes_two(*where, rewards, given["memory"], should_stop)
        return [] if found is None else list(found)

    def sides(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        rewards = _record(native.Rewards, given, "rewards.")
        return [native.best_sides(given["points"], given["columns"], given["height"], rewards, should_stop)]

    where = {"points": np.arange(n), "columns": np.arange(F)}
    calls = [
        Call("outcomes_two", where | limits | priced, two),
        Call("best_sides", where | {"height": 2} | priced, sides),
    ]
    cells, columns = 4, np.arange(F)
    counted = np.zeros((F, F, cells))
    single, totals = rng.integers(2, 9, (F, cells)).astype(float), np.full(cells, 12.0)
    for c in range(F):
        for d in range(F):
            counted[c, d] = single[c] if c == d else np.minimum(single[c], single[d]) - 1
    tallied = _rewards(rng, cells, F, False)
    channels = np.column_stack([tallied["rewards.weights"], np.ones(cells)])
    tables = _flat("table.", both=counted, single=single, totals=totals)
    tables |= _flat("priced.", both=counted @ channels, single=single @ channels, totals=totals @ channels)

    def cell_two(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        table, sums = _record(native.CellTable, given, "table."), _record(native.Priced, given, "priced.")
        rest = given["columns"], given["height"], given["slack"], given["most"]
        rewards = _record(native.Rewards, given, "rewards.")
        found = native.cell_outcomes_two(table, sums, *rest, rewards, given["memory"], should_stop)
        return [] if found is None else list(found)

    calls.append(
        Call("cell_outcomes_two", tables | {"columns": columns} | limits | {"slack": 20.0} | tallied, cell_two)
    )

    def join(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        names = "lost", "sides", "losses", "results", "leaves", "slack", "most", "per_grain", "memory"
        found = native.joined(*(given[name] for name in names), should_stop)
        return [] if found is None else list(found)

    losses, results = np.sort(rng.integers(0, 9, 12) / 8), rng.integers(0, 9, (12, 2)) / 4
    own = {"lost": np.array([0.0, 0.125]), "sides": np.array([[0, 3, 6], [6, 9, 12]]), "losses": losses}
    own |= {"results": results, "leaves": rng.random((2, 3)), "per_grain": np.array([4.0])} | limits
    calls.append(Call("joined", own, join))

    def pair(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        names = "zero", "zero_results", "one", "one_results", "slack", "limits", "above", "last"
        return list(native.best_pair(*(given[name] for name in names), should_stop))

    own = {"zero": losses[:6], "zero_results": results[:6], "one": losses[6:], "one_results": results[6:]}
    own |= {"slack": 2.0, "limits": np.array([3.0]), "above": -1.0, "last": (math.inf, -1, -1)}
    calls.append(Call("best_pair", own, pair))
    return calls


def cell_values(rng: np.random.Generator, spread: Layout) -> Call:
    F, M = int(rng.integers(1, 7)), 3
    height = int(rng.integers(3, 5))
    sizes = [math.comb(F, size) for size in range(5)]
    parts = {
        name: rng.random((size, M)) for name, size in zip(("none", "one", "two", "three", "four"), sizes, strict=True)
    }
    choose = np.array([[math.comb(c, size) for size in range(5)] for c in range(F + 1)])
    apart = np.zeros((F, F), np.uint8)
    sums = _flat("sums.", **parts, choose=choose, apart=apart, n_rewards=2, leaf_price=0.1, least=0.2)

    def call(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        own = _record(native.CellSums, given, "sums.")
        return [native.cell_values(given["a"], given["columns"], given["height"], given["begin"], own, should_stop)]

    return Call("cell_values", {"a": 0, "columns": np.arange(F), "height": height, "begin": 0} | sums, call)


# ---------------------------------------------------------------- counting


def counting(rng: np.random.Generator, spread: Layout) -> list[Call]:
    K, C, n = 2, int(rng.integers(1, 9)), 90
    bits, label = rng.random((C, n)) < 0.5, rng.integers(0, K, n)

    def words(rows: Any) -> Any:
        padded = np.zeros((len(rows), 128), bool)
        padded[:, :n] = rows
        return np.packbits(padded, axis=1).view(np.uint64)

    masks = np.stack([label == 0, label == 1, (label == 1) & (rng.random(n) < 0.5)])
    totals = np.array([int((label == 0).sum()), int((label == 1).sum() + 8 * masks[2].sum())])
    none = np.zeros((K, 0, 0), np.int64)
    own = {"words": words(bits), "masks": words(masks), "label": np.array([0, 1, 1]), "amount": np.array([1, 1, 8])}
    parts = _flat("gains.", totals=totals, both=none, **own)

    def gains(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        return [native.column_gains(_record(native.SetGains, given, "gains."), should_stop)]

    def sides(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        own = _record(native.SetGains, given, "gains.")
        return [native.two_sides(own, given["price"], given["any_label"], given["none"], should_stop)]

    siding = Call("two_sides", parts | {"price": 3, "any_label": True, "none": -(10**12)}, sides)

    def two(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        store, own = native.TreeCounts(given["memory"]), _record(native.SetGains, given, "gains.")
        names = "multiplicity", "bests", "price", "threshold", "any_label"
        store.add_two(own, *(given[name] for name in names), should_stop)
        return list(store.sorted(should_stop))

    own = {"multiplicity": np.ones(C, np.int64), "bests": siding()[0][:2].copy(), "price": 3, "any_label": True}
    counting_two = Call("count_two", parts | own | {"threshold": int(totals.max()) - 20, "memory": 2**28}, two)

    def join(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        store = native.TreeCounts(given["memory"])
        names = "zero", "zero_counts", "one", "one_counts", "threshold", "factor"
        store.add_joined(*(given[name] for name in names), should_stop)
        return list(store.sorted(should_stop))

    values = [np.sort(rng.choice(1000, 40, replace=False))[::-1].copy() for _ in range(2)]
    counts = [rng.integers(1, 9, 40) for _ in range(2)]
    own = {"zero": values[0], "zero_counts": counts[0], "one": values[1], "one_counts": counts[1]}
    joining = Call("count_joined", own | {"threshold": 500, "factor": 2, "memory": 2**28}, join)
    return [Call("column_gains", parts, gains), siding, counting_two, joining]


def add_sets(rng: np.random.Generator, spread: Layout) -> Call:
    n, F, depth = 70, int(rng.integers(1, 8)), int(rng.integers(0, 5))
    rows = rng.integers(0, 2**F, (n, 1)).astype(np.uint64)
    starts = np.concatenate([[0], np.cumsum([math.comb(F, size) for size in range(depth + 1)])])
    choose = np.array([[math.comb(c, size) for size in range(depth + 1)] for c in range(F + 1)])

    def call(given: Arguments, should_stop: ShouldStop) -> list[Any]:
        names = "rows", "F", "starts", "choose", "weight", "columns", "found", "counts"
        native.add_sets(*(given[name] for name in names), should_stop)
        return [given["counts"]]

    own = {"rows": rows, "F": F, "starts": starts, "choose": choose, "weight": 3}
    own |= {"columns": np.zeros((F, 8), np.uint64), "found": np.zeros((max(1, depth), 8), np.uint64)}
    return Call("add_sets", own | {"counts": np.zeros(int(starts[-1]), np.int64)}, call)


def calls(rng: np.random.Generator, spread: Layout | None = None) -> dict[str, Call]:
    """One call of every kernel."""
    if spread is None:
        sizes = int(rng.integers(10, 40)), int(rng.integers(1, 40))
        spread = spread_of(rng, str(rng.choice(KINDS)), int(rng.integers(2, 4)), *sizes)
    made = [level_two, level_two_sparse, pass_block, level_three, level_four, first_tree, cell_values, add_sets]
    alone = [maker(rng, spread) for maker in made]
    together = [*groups(rng, spread), *outcomes(rng, spread), *counting(rng, spread)]
    return {call.name: call for call in [*alone, *together]}


def digest() -> str:
    """What every kernel computes on some data, in short; run in processes of other CPU levels."""
    seen: list[Any] = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        spread = spread_of(rng, KINDS[seed % 3], 2 + seed % 2, n=200)
        seen += [[np.asarray(part).tolist() for part in call()] for call in calls(rng, spread).values()]
    for n_classes, scale in [(2, 1), (3, 0.1)]:
        X, y = rng.random((90, 37)) < 0.4, rng.integers(0, n_classes, 90)
        weights = np.round(rng.integers(1, 4, 90) * scale, 3)
        seen.append(frontier(X, y, max_depth=4, sample_weight=weights).scores.tolist())
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()
