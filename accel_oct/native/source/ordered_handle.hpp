// What Python holds of a search over ordered columns, see accel_oct/native/ordered.py: the search and its functions.
#pragma once

#include "ordered_search.hpp"

using ordered::Search, ordered::Statistic;

// A table as Python passes it; T is the type of the counters.
template <class T>
struct OrderedTable {
    Array<const int32_t> ranks;      // (columns, samples)
    Array<const T> values;           // (1 or classes, samples)
    Array<const int32_t> labels;     // (samples) or empty
    Array<const i64> weights;        // (samples)
    Array<const i64> unavoidable;    // (samples)
    Array<const T> masses;           // (masses, samples)
    Array<const i64> least;          // (masses)
    Array<const uint8_t> apart;      // (columns, columns) or empty
};

struct OrderedOptions {
    int32_t statistic, threads;
    i64 classes, unit, price, max_leaves, memory, start;  // start: cost of a tree that is known, or IMPOSSIBLE
    double slack;
};

// What is known while the search runs.
struct OrderedState {
    i64 value, bound, depth, version, sets, passes, evaluations, spared, open, out_of_memory;
};

// The types of searches are known only in the sources that compile them, one per statistic: that takes seconds.
struct OrderedHandle {
    void* search;
    void (*free_search)(void* search);
    bool (*begin_depth)(void* search, i64 depth, i64 lower, i64 shallower);
    void (*work)(void* search, int32_t worker);
    void (*read_state)(void* search, OrderedState& state);
    i64 (*copy_tree)(void* search, const Array<int32_t>& rows);
};

template <class T, Statistic statistic>
inline void free_search(Search<T, statistic>* search) {
    for (i64 w = 0; w < search->n_workers; w++) {
        search->workers[w].stack.clear();
        for (ordered::Seen& seen : search->workers[w].seen) seen.clear();
    }
    free(search->workers);
    search->memory.clear();
    search->board.known.clear();
    search->survey.counted.clear();
    search->tree.clear();
    free(search);
}

template <class T, Statistic statistic>
inline Search<T, statistic>* new_search(
    const OrderedTable<T>& own, const OrderedOptions& options, const volatile int32_t* stop) {
    typedef Search<T, statistic> Kind;
    Kind* search = static_cast<Kind*>(calloc(1, sizeof(Kind)));
    if (!search) return nullptr;
    i64 uniform = own.weights[0];
    for (i64 i = 1; i < own.weights.shape[0]; i++)
        if (own.weights[i] != uniform) uniform = 0;
    const ordered::Table<T> table = {
        own.ranks.shape[1], own.ranks.shape[0], options.classes,
        own.masses.shape[0], own.ranks.data, own.values.data,
        own.labels.data, own.weights.data, own.unavoidable.data,
        own.masses.data, own.least.data, own.apart.shape[0] ? own.apart.data : nullptr,
        options.unit, options.price, uniform};
    // `samples` holds a reference, so the search stays where it is.
    Kind made = {table, {search->table}, options.max_leaves, options.slack, {}, stop, nullptr, 0, {}, 0, {}, 0,
                 {options.start, 1, -1, -1, 0, 0}, 0, {nullptr, 0, 0}, 0, {}, {}, false};
    __builtin_memcpy(static_cast<void*>(search), &made, sizeof(Kind));
    search->closed = 0;
    search->workers = static_cast<ordered::Worker*>(calloc(size_t(options.threads), sizeof(ordered::Worker)));
    if (!search->workers) {
        free(search);
        return nullptr;
    }
    search->n_workers = options.threads;
    search->memory.limit = options.memory / 2;
    for (i64 w = 0; w < search->n_workers; w++) search->workers[w].stack.limit = options.memory / 2 / search->n_workers;
    const bool good = search->samples.root(search->root, search->workers[0].stack);
    if (!good) {
        free_search(search);
        return nullptr;
    }
    return search;
}

template <class T, Statistic statistic>
inline void read_state(const Search<T, statistic>* search, OrderedState& state) {
    state = OrderedState{
        search->best.value, search->bound(), search->depth, search->version, 0, 0, 0, 0,
        search->n_open(), search->out_of_memory};
    for (i64 w = 0; w < search->n_workers; w++) {
        state.sets += search->workers[w].counters.sets;
        state.passes += search->workers[w].counters.passes;
        state.evaluations += search->workers[w].counters.evaluations;
        state.spared += search->workers[w].counters.spared;
    }
}

// Copy the best tree, rows (column, rank, left, right, label); the number of its nodes, which may exceed the room.
template <class T, Statistic statistic>
inline i64 copy_tree(const Search<T, statistic>* search, const Array<int32_t>& rows) {
    const i64 size = search->tree.size;
    for (i64 i = 0; i < size && i < rows.shape[0]; i++) {
        const ordered::TreeNode& node = search->tree.data[i];
        const int32_t row[5] = {node.column, node.rank, node.left, node.right, node.label};
        for (i64 k = 0; k < 5; k++) rows(i, k) = row[k];
    }
    return size;
}

// A search with its functions; `search` is null without memory.
template <class T, Statistic statistic>
inline OrderedHandle new_handle(
    const OrderedTable<T>& table, const OrderedOptions& options, const volatile int32_t* stop) {
    typedef Search<T, statistic> Kind;
    return OrderedHandle{
        new_search<T, statistic>(table, options, stop),
        [](void* search) { free_search(static_cast<Kind*>(search)); },
        [](void* search, i64 depth, i64 lower, i64 shallower) {
            return static_cast<Kind*>(search)->begin_depth(depth, lower, shallower);
        },
        [](void* search, int32_t worker) { static_cast<Kind*>(search)->work(worker); },
        [](void* search, OrderedState& state) {
            Kind* own = static_cast<Kind*>(search);
            own->board.lock.lock();
            read_state(own, state);
            own->board.lock.unlock();
        },
        [](void* search, const Array<int32_t>& rows) {
            Kind* own = static_cast<Kind*>(search);
            own->board.lock.lock();
            const i64 size = copy_tree(own, rows);
            own->board.lock.unlock();
            return size;
        }};
}

template <Statistic statistic>
inline OrderedHandle new_handle(
    int32_t counter, const void* table, const OrderedOptions& options, const volatile int32_t* stop) {
    OrderedHandle handle = {};
    with_counter(counter, [&](auto tag) {
        typedef typename decltype(tag)::type T;
        handle = new_handle<T, statistic>(*static_cast<const OrderedTable<T>*>(table), options, stop);
    });
    return handle;
}

typedef OrderedHandle NewHandle(
    int32_t counter, const void* table, const OrderedOptions& options, const volatile int32_t* stop);

// In sources of their own.
NewHandle new_signed_handle, new_labelled_handle, new_gains_handle;
