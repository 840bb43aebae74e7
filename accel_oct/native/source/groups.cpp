// Functions for trees over few groups of columns.
#include "exports.hpp"
#include "groups.hpp"

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
