// The functions that Python calls, see accel_oct/native/__init__.py. Every pointer was checked there. Functions that may
// take long have an argument `may_go_on` and return how they ended.
#include "base.hpp"
#include "cells.hpp"
#include "counts.hpp"
#include "cpu.hpp"
#include "groups.hpp"
#include "levels.hpp"
#include "ordered.hpp"
#include "outcomes.hpp"
#include "passes.hpp"
#include "set_counts.hpp"
#include "tree_counts.hpp"

// Records of counters of any type have one layout: a function reads them as those of the type that it is given.
template <class Record>
static const Record& as(const void* record) {
    return *static_cast<const Record*>(record);
}

// Which sources this was compiled from, see accel_oct/native/digest.py: a library of other sources is not loaded.
EXPORT const char* built_from() { return SOURCE_DIGEST; }

EXPORT i64 machine_level() { return cpu_level(); }

// Work between two questions whether to go on; for tests, which ask often.
EXPORT void set_poll_interval(i64 work) { Poll::interval = work; }

// Whether all numbers are places of an array of some length. Functions return OUT_OF_RANGE where some index is not.
static bool within(const Array<i64>& indices, i64 length) {
    bool good = true;
    for (i64 i = 0; i < indices.shape[0]; i++) good &= u64(indices[i]) < u64(length);
    return good;
}

constexpr int32_t DONE = 0, OUT_OF_RANGE = 1, OUT_OF_MEMORY = 2, STOPPED = 3;

// How a call ended that fails without memory, or when it was stopped.
static int32_t ended(bool finished, const Poll& poll) {
    return finished ? DONE : poll.stopped ? STOPPED : OUT_OF_MEMORY;
}

// ---------------------------------------------------------------- levels

EXPORT int32_t level_two(
    int32_t counter, const Array<i64>* members, const Entries* entries, const Words* words, const void* table, i64 base,
    MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        PairCounter<T>::count(members->data, members->shape[0], *entries, *words, as<Array<T>>(table), 0, base, poll);
    });
    return ended(!poll.stopped, poll);
}

EXPORT int32_t level_two_sparse(int32_t counter, const void* ones, const void* table, i64 base, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        scatter_pairs(as<Ones<T>>(ones), as<Array<T>>(table), base, poll);
    });
    return ended(!poll.stopped, poll);
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

EXPORT int32_t level_three(
    int32_t counter, i64 f, int32_t is_signed, const Array<i64>* members, const Entries* entries, const void* sets,
    const void* whole, const void* with_f, const void* work, const void* best, const void* limits,
    MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        Samples<T> samples = {*members, entries, static_cast<const Sets<T>*>(sets)};
        level_three(
            f, is_signed, samples, as<Counts<T>>(whole), as<Array<T>>(with_f), as<Work<T>>(work), as<Array<T>>(best),
            static_cast<const Limits<T>*>(limits), poll);
    });
    return ended(!poll.stopped, poll);
}

EXPORT int32_t level_four(
    int32_t counter, i64 first, i64 count, int32_t is_signed, const Array<uint8_t>* wanted,
    const Array<i64>* members, const Entries* entries, const void* sets, const void* whole, const void* tables,
    const void* work, const void* best, const void* limits, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        Samples<T> samples = {*members, entries, static_cast<const Sets<T>*>(sets)};
        level_four(
            first, count, is_signed, *wanted, samples, as<Counts<T>>(whole), as<Array<T>>(tables),
            as<Work<T>>(work), as<Array<T>>(best), static_cast<const Limits<T>*>(limits), poll);
    });
    return ended(!poll.stopped, poll);
}

EXPORT int32_t first_tree(
    int32_t counter, const Array<i64>* samples, const void* setup, int32_t is_signed, double leaf_price, i64 max_depth,
    FirstTree* tree, MayGoOn may_go_on) {
    int32_t status = OUT_OF_RANGE;
    Poll poll = {may_go_on};
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        const DepthTwo<T>& own = as<DepthTwo<T>>(setup);
        if (!within(*samples, own.by_row.shape[0])) return;
        if (first_tree(*samples, own, is_signed, leaf_price, max_depth, *tree, poll))
            status = DONE;
        else if (poll.stopped)
            status = STOPPED;
    });
    return status;
}

// ---------------------------------------------------------------- groups of columns

EXPORT int32_t count_triples(
    int32_t counter, const void* samples, const void* counts, const void* work, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        count_triples(as<GroupSamples<T>>(samples), as<GroupCounts<T>>(counts), as<GroupWork<T>>(work), poll);
    });
    return ended(!poll.stopped, poll);
}

// Tables of both sides of a root, or of all samples where it is negative.
EXPORT int32_t group_tables(
    int32_t counter, i64 root, const void* samples, const void* counts, const void* work, const void* tables,
    MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        const GroupSamples<T>& own = as<GroupSamples<T>>(samples);
        const GroupCounts<T>& counted = as<GroupCounts<T>>(counts);
        if (root < 0)
            tables_of_all(own, counted, as<GroupWork<T>>(work), as<GroupTables<T>>(tables), poll);
        else
            tables_of_root(root, own, counted, as<GroupWork<T>>(work), as<GroupTables<T>>(tables), poll);
    });
    return ended(!poll.stopped, poll);
}

EXPORT int32_t fill_reach(
    int32_t counter, const void* tables, const Array<i64>* place, i64 broad, i64 root, double price,
    MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        fill_reach(as<GroupTables<T>>(tables), *place, broad, root, price, poll);
    });
    return ended(!poll.stopped, poll);
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

EXPORT void arena_free(Arena* arena) {
    arena->clear();
    free(arena);
}

// `points` or (`table` and `priced`) are null.
EXPORT int32_t outcomes_two(
    const Array<i64>* points, const CellTable* table, const Priced* priced, const Array<i64>* columns, i64 height,
    double slack, i64 most_pairs, const Rewards* rewards, Arena* arena, Found* found, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    if (points && !within(*points, rewards->X.shape[0])) return OUT_OF_RANGE;
    if (!within(*columns, rewards->apart.shape[0])) return OUT_OF_RANGE;
    outcomes_two(PricedSet{points, table}, priced, *columns, height, slack, most_pairs, *rewards, *arena, *found, poll);
    return ended(!poll.stopped, poll);
}

EXPORT int32_t best_sides(
    const Array<i64>* points, const Array<i64>* columns, i64 height, const Rewards* rewards, Arena* arena,
    const Array<double>* result, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    if (!within(*points, rewards->X.shape[0]) || !within(*columns, rewards->apart.shape[0])) return OUT_OF_RANGE;
    return ended(best_sides(*points, *columns, height, *rewards, *arena, *result, poll), poll);
}

EXPORT int32_t joined(
    const Array<double>* lost, const Array<i64>* sides, const Array<double>* losses, const Array<double>* results,
    const Array<double>* leaves, double slack, i64 most_pairs, const Array<double>* per_grain, Arena* arena,
    Found* found, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    for (i64 s = 0; s < sides->shape[0]; s++)
        for (i64 t = 0; t < 3; t++) {
            i64 place = (*sides)(s, t);
            if (place < (t ? (*sides)(s, t - 1) : 0) || place > losses->shape[0]) return OUT_OF_RANGE;
        }
    joined(*lost, *sides, *losses, *results, *leaves, slack, most_pairs, *per_grain, *arena, *found, poll);
    return ended(!poll.stopped, poll);
}

EXPORT int32_t best_pair(
    const Array<double>* zero, const Array<double>* zero_results, const Array<double>* one,
    const Array<double>* one_results, double slack, const Array<double>* limits, double below, i64 after_zero,
    i64 after_one, BestPair* state, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    best_pair(*zero, *zero_results, *one, *one_results, slack, *limits, below, after_zero, after_one, *state, poll);
    return ended(!poll.stopped, poll);
}

EXPORT int32_t cell_values(
    i64 a, const Array<i64>* columns, i64 height, i64 begin, const CellSums* cells, Arena* arena,
    const Array<double>* result, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    if (a >= cells->n_columns() || !within(*columns, cells->n_columns())) return OUT_OF_RANGE;
    return ended(cell_values(a, *columns, height, begin, *cells, *arena, *result, poll), poll);
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

EXPORT int32_t count_store_sorted(
    const CountStore* store, const Array<i64>* values, const Array<i64>* counts, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    return ended(store->sorted(values->data, counts->data, poll), poll);
}

EXPORT int32_t count_two(
    CountStore* store, const SetGains* set, const Array<i64>* multiplicity, const Array<i64>* bests, i64 price,
    i64 threshold, int32_t any_label, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    Arena arena = {nullptr, 0, store->arena.limit};
    CountStore scratch;
    Gains gains(*set);
    bool finished =
        scratch.begin(store->arena.limit) &&
        count_two(*store, gains, *multiplicity, *bests, price, threshold, any_label, arena, scratch, poll);
    scratch.arena.clear();
    arena.clear();
    return ended(finished, poll);
}

EXPORT int32_t count_joined(
    CountStore* store, const Array<i64>* zero, const Array<i64>* zero_counts, const Array<i64>* one,
    const Array<i64>* one_counts, i64 threshold, i64 factor, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    bool finished = add_joined(
        *store, zero->data, zero_counts->data, zero->shape[0], one->data, one_counts->data, one->shape[0], threshold,
        factor, poll);
    return ended(finished, poll);
}

EXPORT int32_t column_gains(const SetGains* set, const Array<i64>* result, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    Arena arena = {nullptr, 0, INT64_MAX};
    Gains gains(*set);
    bool finished = gains.begin(arena, poll);
    if (finished) __builtin_memcpy(result->data, gains.single, size_t(gains.K * gains.C) * sizeof(i64));
    arena.clear();
    return ended(finished, poll);
}

EXPORT int32_t two_sides(
    const SetGains* set, i64 price, int32_t any_label, i64 none, const Array<i64>* result, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    Arena arena = {nullptr, 0, INT64_MAX};
    Gains gains(*set);
    bool finished = two_sides(gains, price, any_label, none, arena, *result, poll);
    arena.clear();
    return ended(finished, poll);
}

EXPORT int32_t add_sets(
    const Array<u64>* rows, i64 n_columns, const Array<i64>* starts, const Array<i64>* choose, i64 weight,
    const Array<u64>* columns, const Array<u64>* found, const Array<i64>* counts, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    SetCounter counter = {*rows, *starts, *choose, weight, *columns, *found, *counts, poll};
    return ended(add_sets(counter, n_columns), poll);
}
