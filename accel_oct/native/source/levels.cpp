// Functions for trees over binary columns by pair counts: whole levels, single passes and a first tree.
#include "exports.hpp"
#include "levels.hpp"

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
