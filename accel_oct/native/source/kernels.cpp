// The functions that Python calls, see accel_oct/native/__init__.py. Every pointer was checked there.
#include "base.hpp"
#include "cells.hpp"
#include "counts.hpp"
#include "cpu.hpp"
#include "groups.hpp"
#include "levels.hpp"
#include "outcomes.hpp"
#include "passes.hpp"
#include "set_counts.hpp"
#include "tree_counts.hpp"

// Records of counters of any type have one layout: a function reads them as those of the type that it is given.
template <class Record>
static const Record& as(const void* record) {
    return *static_cast<const Record*>(record);
}

// Raised by Python whenever a record or a function changes, so that a library of other sources is not loaded.
EXPORT i64 interface_version() { return 1; }

EXPORT i64 machine_level() { return cpu_level(); }

// Whether all numbers are places of an array of some length. Functions return OUT_OF_RANGE where some index is not.
static bool within(const Array<i64>& indices, i64 length) {
    bool good = true;
    for (i64 i = 0; i < indices.shape[0]; i++) good &= u64(indices[i]) < u64(length);
    return good;
}

constexpr int32_t DONE = 0, OUT_OF_RANGE = 1, OUT_OF_MEMORY = 2;

// ---------------------------------------------------------------- levels

EXPORT void level_two(
    int32_t counter, const Array<i64>* members, const Entries* entries, const Words* words, const void* table,
    i64 base) {
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        PairCounter<T>::count(members->data, members->shape[0], *entries, *words, as<Array<T>>(table), 0, base);
    });
}

EXPORT void level_two_sparse(int32_t counter, const void* ones, const void* table, i64 base) {
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        scatter_pairs(as<Ones<T>>(ones), as<Array<T>>(table), base);
    });
}

EXPORT void pass_block(
    int32_t counter, const void* counts, const void* scores, i64 base, int32_t is_signed, const void* limits,
    const Array<uint8_t>* usable) {
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        const Limits<T>* rules = static_cast<const Limits<T>*>(limits);
        PathLimits<T> path = {rules, rules ? rules->lanes.data : nullptr, usable->data};
        pass_set(as<Counts<T>>(counts), as<Scores<T>>(scores), base, base, 0, is_signed, path);
    });
}

EXPORT void level_three(
    int32_t counter, i64 f, int32_t is_signed, const Array<i64>* members, const Entries* entries, const void* sets,
    const void* whole, const void* with_f, const void* work, const void* best, const void* splits, const void* limits) {
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        Samples<T> samples = {*members, entries, static_cast<const Sets<T>*>(sets)};
        level_three(
            f, is_signed, samples, as<Counts<T>>(whole), as<Array<T>>(with_f), as<Work<T>>(work), as<Array<T>>(best),
            as<Array<T>>(splits), static_cast<const Limits<T>*>(limits));
    });
}

EXPORT int32_t level_four(
    int32_t counter, i64 first, i64 count, int32_t is_signed, int32_t symmetric, const Array<uint8_t>* wanted,
    const Array<i64>* members, const Entries* entries, const void* sets, const void* whole, const void* tables,
    const void* work, const void* best, const void* limits, const volatile int32_t* stop) {
    bool done = false;
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        Samples<T> samples = {*members, entries, static_cast<const Sets<T>*>(sets)};
        done = level_four(
            first, count, is_signed, symmetric, *wanted, samples, as<Counts<T>>(whole), as<Array<T>>(tables),
            as<Work<T>>(work), as<Array<T>>(best), static_cast<const Limits<T>*>(limits), stop);
    });
    return done;
}

EXPORT int32_t first_tree(
    int32_t counter, const Array<i64>* samples, const void* setup, int32_t is_signed, double leaf_price, i64 max_depth,
    FirstTree* tree) {
    int32_t status = OUT_OF_RANGE;
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        const DepthTwo<T>& own = as<DepthTwo<T>>(setup);
        // A sample twice would need more entries than there is room for.
        if (!within(*samples, own.by_row.shape[0]) || samples->shape[0] > own.by_row.shape[0]) return;
        first_tree(*samples, own, is_signed, leaf_price, max_depth, *tree);
        status = DONE;
    });
    return status;
}

// ---------------------------------------------------------------- groups of columns

EXPORT void count_triples(int32_t counter, const void* samples, const void* counts, const void* work) {
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        count_triples(as<GroupSamples<T>>(samples), as<GroupCounts<T>>(counts), as<GroupWork<T>>(work));
    });
}

// Tables of both sides of a root, or of all samples where it is negative.
EXPORT void group_tables(
    int32_t counter, i64 root, const void* samples, const void* counts, const void* work, const void* tables) {
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        const GroupSamples<T>& own = as<GroupSamples<T>>(samples);
        if (root < 0)
            tables_of_all(own, as<GroupCounts<T>>(counts), as<GroupWork<T>>(work), as<GroupTables<T>>(tables));
        else
            tables_of_root(root, own, as<GroupCounts<T>>(counts), as<GroupWork<T>>(work), as<GroupTables<T>>(tables));
    });
}

EXPORT void fill_reach(
    int32_t counter, const void* tables, const Array<i64>* place, i64 broad, i64 root, double price) {
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        fill_reach(as<GroupTables<T>>(tables), *place, broad, root, price);
    });
}

EXPORT i64 best_set(
    int32_t counter, const Array<i64>* sets, i64 first, i64 last, const Array<i64>* column, i64 root,
    const void* tables, i64 broad, double price, double* best, const Array<double>* room, const Array<i64>* columns) {
    i64 chosen = -1;
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        chosen = best_set(
            *sets, first, last, *column, root, as<GroupTables<T>>(tables), broad, price, *best, *room, *columns);
    });
    return chosen;
}

// ---------------------------------------------------------------- outcomes

EXPORT Arena* arena_new(i64 limit) {
    Arena* arena = static_cast<Arena*>(malloc(sizeof(Arena)));
    if (arena) *arena = Arena{nullptr, 0, limit};
    return arena;
}

EXPORT void arena_clear(Arena* arena) { arena->clear(); }

EXPORT void arena_free(Arena* arena) {
    arena->clear();
    free(arena);
}

// `points` or (`table` and `priced`) are null.
EXPORT int32_t outcomes_two(
    const Array<i64>* points, const CellTable* table, const Priced* priced, const Array<i64>* columns, i64 height,
    double slack, i64 most_pairs, const Rewards* rewards, Arena* arena, Found* found) {
    if (points && !within(*points, rewards->X.shape[0])) return OUT_OF_RANGE;
    if (!within(*columns, rewards->apart.shape[0])) return OUT_OF_RANGE;
    outcomes_two(PricedSet{points, table}, priced, *columns, height, slack, most_pairs, *rewards, *arena, *found);
    return DONE;
}

EXPORT int32_t best_sides(
    const Array<i64>* points, const Array<i64>* columns, i64 height, const Rewards* rewards, Arena* arena,
    const Array<double>* result) {
    if (!within(*points, rewards->X.shape[0]) || !within(*columns, rewards->apart.shape[0])) return OUT_OF_RANGE;
    return best_sides(*points, *columns, height, *rewards, *arena, *result) ? DONE : OUT_OF_MEMORY;
}

EXPORT int32_t joined(
    const Array<double>* lost, const Array<i64>* sides, const Array<double>* losses, const Array<double>* results,
    const Array<double>* leaves, double slack, i64 most_pairs, const Array<double>* per_grain, Arena* arena,
    Found* found) {
    for (i64 s = 0; s < sides->shape[0]; s++)
        for (i64 t = 0; t < 3; t++) {
            i64 place = (*sides)(s, t);
            if (place < (t ? (*sides)(s, t - 1) : 0) || place > losses->shape[0]) return OUT_OF_RANGE;
        }
    joined(*lost, *sides, *losses, *results, *leaves, slack, most_pairs, *per_grain, *arena, *found);
    return DONE;
}

EXPORT void best_pair(
    const Array<double>* zero, const Array<double>* zero_results, const Array<double>* one,
    const Array<double>* one_results, double slack, const Array<double>* limits, double below, i64 after_zero,
    i64 after_one, i64 most_pairs, BestPair* state) {
    best_pair(
        *zero, *zero_results, *one, *one_results, slack, *limits, below, after_zero, after_one, most_pairs, *state);
}

EXPORT int32_t cell_values(
    i64 a, const Array<i64>* columns, i64 height, i64 begin, const CellSums* cells, Arena* arena,
    const Array<double>* result) {
    if (a >= cells->one.shape[0] || !within(*columns, cells->one.shape[0])) return OUT_OF_RANGE;
    return cell_values(a, *columns, height, begin, *cells, *arena, *result) ? DONE : OUT_OF_MEMORY;
}

// ---------------------------------------------------------------- counting

EXPORT CountStore* count_store_new(i64 limit) {
    CountStore* store = static_cast<CountStore*>(malloc(sizeof(CountStore)));
    if (store && !store->begin(limit)) {
        store->arena.clear();
        free(store);
        return nullptr;
    }
    return store;
}

EXPORT void count_store_free(CountStore* store) {
    store->arena.clear();
    free(store);
}

EXPORT i64 count_store_size(const CountStore* store) { return store->size; }

EXPORT void count_store_sorted(const CountStore* store, const Array<i64>* values, const Array<i64>* counts) {
    store->sorted(values->data, counts->data);
}

EXPORT i64 count_two(
    CountStore* store, const Array<i64>* both, const Array<i64>* totals, const Array<i64>* multiplicity, i64 price,
    i64 threshold, int32_t any_label, i64 first, i64 most_pairs, const Array<i64>* room) {
    CountStore scratch;
    i64 next = -2;
    if (scratch.begin(store->arena.limit))
        next = count_two(
            *store, Gains{*both, *totals}, *multiplicity, price, threshold, any_label, first, most_pairs, *room, scratch);
    scratch.arena.clear();
    return next;
}

EXPORT i64 count_joined(
    CountStore* store, const Array<i64>* zero, const Array<i64>* zero_counts, const Array<i64>* one,
    const Array<i64>* one_counts, i64 threshold, i64 factor, i64 first, i64 most_pairs) {
    i64 made = 0;
    return add_joined(
        *store, zero->data, zero_counts->data, zero->shape[0], one->data, one_counts->data, one->shape[0], threshold,
        factor, first, most_pairs, made);
}

EXPORT void pair_gains(
    const Array<u64>* words, const Array<u64>* masks, const Array<i64>* label, const Array<i64>* plane,
    const Array<u64>* own, const Array<i64>* result) {
    pair_gains(*words, *masks, *label, *plane, *own, *result);
}

EXPORT void two_sides(
    const Array<i64>* both, const Array<i64>* totals, i64 price, int32_t any_label, i64 none, const Array<i64>* room,
    const Array<i64>* result) {
    two_sides(Gains{*both, *totals}, price, any_label, none, *room, *result);
}

EXPORT void add_sets(
    const Array<u64>* rows, i64 n_columns, const Array<i64>* starts, const Array<i64>* choose, i64 weight,
    const Array<u64>* columns, const Array<u64>* found, const Array<i64>* counts) {
    add_sets(SetCounter{*rows, *starts, *choose, weight, *columns, *found, *counts}, n_columns);
}
