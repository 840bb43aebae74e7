// Functions that count trees and sets of columns.
#include "exports.hpp"
#include "set_counts.hpp"
#include "tree_counts.hpp"

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
