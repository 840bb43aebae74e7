// Enumeration at given prices: outcomes of all subtrees of a set that lose no more than some slack.
//
// The *loss* of a choice is the best priced value at its place minus the best priced value after it. An *outcome* is a
// value and the use of every limit; of outcomes with equal uses the one with the best value is kept. `outcomes_two` goes
// through the trees of depth at most two on one set of points, or one set of a tally; `joined` combines the outcomes of
// the sides of several splits; `best_pair` finds the best pair that keeps the limits. See accel_oct/pricing/closing.py.
#pragma once

#include "set_sums.hpp"
#include "stores.hpp"

// Points, and what predicting a class there earns and uses: n points, K classes, J limits; R = 1 + J results.
//
// Of a tally: n cells, and what a unit of their counts earns and uses; X is empty.
struct Rewards {
    Array<uint8_t> X;  // (n, F)
    Array<double> weights;  // (n, K) priced
    Array<double> amounts;  // (n, K * R) class by class: value, then uses
    Array<double> fixed;  // (R,) the same for a leaf
    Array<double> per_grain;  // (J,) grains in a unit of each limit
    Array<double> mass;  // (n,)
    Array<uint8_t> apart;  // (F, F) features that may not share a path
    double leaf_price;  // priced
    double least;  // mass that a leaf must have
};

// Counts of a set of a tally by cell: of both of two columns, of columns, of all.
struct CellTable {
    Array<double> both;  // (C, C, n)
    Array<double> single;  // (C, n)
    Array<double> totals;  // (n,)
};

// Priced sums of one set, as Python passes them: of both of all pairs of columns, of columns, of all.
struct Priced {
    Array<double> both;  // (C, C, K + 1), columns by place; the mass is the last channel
    Array<double> single;  // (C, K + 1)
    Array<double> totals;  // (K + 1,)
};

// What an enumeration found, in the memory of its arena.
struct Found {
    double* loss;  // (size,)
    double* results;  // (size, R)
    int32_t* choice;  // (size, numbers of a choice)
    i64 size, made;
};

constexpr i64 TOO_MANY = -1, NO_MEMORY = -2;

// ---------------------------------------------------------------- a table of outcomes

// A growing table in which outcomes with equal uses meet; uses are equal when they are the same number of grains.
struct Store {
    Arena* arena;
    i64 n_results, n_choices, room, size;
    double *loss, *results, *keys;
    int32_t* choice;
    Slots slots;

    bool begin(Arena& memory, i64 results_, i64 choices_, i64 room_) {
        arena = &memory;
        n_results = results_;
        n_choices = choices_;
        size = 0;
        return take(room_);
    }

    bool take(i64 room_) {
        room = room_;
        loss = arena->array<double>(room);
        results = arena->array<double>(room * n_results);
        keys = arena->array<double>(room * n_results);
        choice = arena->array<int32_t>(room * n_choices);
        return slots.take(*arena, room) && loss && results && keys && choice;
    }

    i64 find(const double* key) const {
        u64 hash = 1469598103934665603u;
        for (i64 j = 0; j < n_results - 1; j++) {
            u64 bits;
            double number = key[j] + 0.0;  // no negative zero
            __builtin_memcpy(&bits, &number, 8);
            hash = mixed(hash, bits);
        }
        return slots.find(hash, [&](i64 place) {
            const double* other = keys + place * n_results;
            i64 j = 0;
            while (j < n_results - 1 && other[j] == key[j]) j++;
            return j == n_results - 1;
        });
    }

    bool grow() {
        Store old = *this;
        if (!take(2 * room)) return false;
        __builtin_memcpy(loss, old.loss, size_t(size) * sizeof(double));
        __builtin_memcpy(results, old.results, size_t(size * n_results) * sizeof(double));
        __builtin_memcpy(keys, old.keys, size_t(size * n_results) * sizeof(double));
        __builtin_memcpy(choice, old.choice, size_t(size * n_choices) * sizeof(int32_t));
        for (i64 place = 0; place < size; place++) slots.put(find(keys + place * n_results), place);
        return true;
    }

    // Add an outcome, or keep the better one of equal uses. False without memory.
    bool insert(double own_loss, const double* result, const int32_t* how, const Array<double>& per_grain) {
        if (size == room && !grow()) return false;
        double* key = keys + size * n_results;  // the next free place; it stays free if the uses are known
        for (i64 j = 0; j < n_results - 1; j++) key[j] = __builtin_rint(result[j + 1] * per_grain[j]);
        i64 slot = find(key), place = slots.place(slot);
        if (place < 0) {
            place = size++;
            slots.put(slot, place);
        } else if (result[0] <= results[place * n_results])
            return true;
        loss[place] = own_loss;
        __builtin_memcpy(results + place * n_results, result, size_t(n_results) * sizeof(double));
        __builtin_memcpy(choice + place * n_choices, how, size_t(n_choices) * sizeof(int32_t));
        return true;
    }

    // Places of the outcomes, least loss first, equal ones by place. Null without memory, or when stopped.
    i64* order(Poll& poll) const {
        i64* places = arena->array<i64>(size);
        auto before = [&](i64 a, i64 b) { return loss[a] < loss[b] || (loss[a] == loss[b] && a < b); };
        return places && in_order(places, size, before, poll) ? places : nullptr;
    }

    void give(Found& found, i64 made) const { found = Found{loss, results, choice, size, made}; }
};

// ---------------------------------------------------------------- sums

inline LeafValue leaf_value(const Rewards& rewards) {
    const i64 K = rewards.weights.shape[1];
    return {K, K + 1, -INFINITE, rewards.leaf_price, rewards.least};
}

// Priced sums of some points; the mass is the last channel. False without memory, or when stopped.
inline bool priced_sums(
    const Array<i64>& points, const Array<i64>& columns, const Rewards& rewards, Arena& arena, SetSums& sums,
    Poll& poll) {
    const i64 K = rewards.weights.shape[1], C = columns.shape[0], M = K + 1;
    i64* ones = arena.array<i64>(C + 1);
    double* own = arena.array<double>(M);
    if (!ones || !own || !sums.take(arena, C, M)) return false;
    __builtin_memset(sums.both, 0, size_t(C * C * M) * sizeof(double));
    __builtin_memset(sums.totals, 0, size_t(M) * sizeof(double));
    for (i64 position = 0; position < points.shape[0]; position++) {
        i64 p = points[position], found = 0;
        for (i64 k = 0; k < K; k++) own[k] = rewards.weights(p, k);
        own[K] = rewards.mass[p];
        for (i64 c = 0; c < C; c++) {
            ones[found] = c;
            found += rewards.X(p, columns[c]);
        }
        if (poll(C + found * found * M / 2)) return false;
        for (i64 k = 0; k < M; k++) sums.totals[k] += own[k];
        for (i64 i = 0; i < found; i++)
            for (i64 j = i; j < found; j++) {
                double* target = sums.pair(ones[i], ones[j]);
                for (i64 k = 0; k < M; k++) target[k] += own[k];
            }
    }
    for (i64 c = 0; c < C; c++)
        for (i64 k = 0; k < M; k++) sums.single[c * M + k] = sums.pair(c, c)[k];
    return true;
}

// Best priced values (C, 2, C + 1) of both sides of every column: split by another one, and, last, the best of all.
//
// Further splits count where the height is two. `room` (4, K + 1). False when stopped.
inline bool side_values(
    const SetSums& sums, const Array<i64>& columns, i64 height, const Rewards& rewards, double* room, double* values,
    Poll& poll) {
    const i64 C = columns.shape[0], size = C + 1;
    const LeafValue leaf = leaf_value(rewards);
    for (i64 side = 0; side < 2 * C; side++) {
        for (i64 d = 0; d < C; d++) values[side * size + d] = -INFINITE;
        sums.half(side / 2, side % 2, room);
        values[side * size + C] = leaf(room);
    }
    if (height < 2) return true;
    return each_pair(sums, columns.data, C, rewards.apart, leaf, room, poll, [&](i64 c, i64 d, const double* four) {
        double *of_c = values + 2 * c * size, *of_d = values + 2 * d * size;
        raise_sides(four, of_c[d], of_c[size + d], of_d[c], of_d[size + c]);
        raise_sides(four, of_c[C], of_c[size + C], of_d[C], of_d[size + C]);
    });
}

// ---------------------------------------------------------------- trees of depth two

// A set of samples: points, or counts of a tally.
struct PricedSet {
    const Array<i64>* points;  // null for a tally
    const CellTable* table;  // null for points
};

// Amounts of one side of the column at place c (c < 0: of the whole set), in all and with each of some columns; and
// which of these split it. `whole` (K R), `at_one` (n_close, K R), `splits` (n_close,). False when stopped.
inline bool side_amounts(
    const PricedSet& set, const Array<i64>& columns, i64 c, i64 side, const i64* close, i64 n_close,
    const Rewards& rewards, double* whole, double* at_one, uint8_t* splits, i64* ones, Poll& poll) {
    const i64 size_of = rewards.amounts.shape[1];
    for (i64 r = 0; r < size_of; r++) whole[r] = 0.0;
    if (at_one)
        for (i64 i = 0; i < n_close * size_of; i++) at_one[i] = 0.0;
    if (set.points) {
        for (i64 i = 0; i < n_close; i++) ones[i] = 0;
        i64 size = 0;
        for (i64 position = 0; position < set.points->shape[0]; position++) {
            i64 p = (*set.points)[position];
            if (c >= 0 && rewards.X(p, columns[c]) != side) continue;
            size++;
            if (poll(n_close * (1 + (at_one ? size_of : 0)))) return false;
            const double* own = &rewards.amounts(p, 0);
            for (i64 r = 0; r < size_of; r++) whole[r] += own[r];
            for (i64 i = 0; i < n_close; i++)
                if (rewards.X(p, columns[close ? close[i] : i])) {
                    ones[i]++;
                    if (at_one)
                        for (i64 r = 0; r < size_of; r++) at_one[i * size_of + r] += own[r];
                }
        }
        for (i64 i = 0; i < n_close; i++) splits[i] = ones[i] != 0 && ones[i] != size;
        return true;
    }
    const CellTable& table = *set.table;
    double size = 0.0;
    for (i64 n = 0; n < table.totals.shape[0]; n++) {
        double count = c < 0 ? table.totals[n] : side ? table.single(c, n) : table.totals[n] - table.single(c, n);
        size += count;
        for (i64 r = 0; r < size_of; r++) whole[r] += count * rewards.amounts(n, r);
    }
    for (i64 i = 0; i < n_close; i++) {
        i64 d = close ? close[i] : i;
        if (poll(table.totals.shape[0] * (1 + (at_one ? size_of : 0)))) return false;
        double sum = 0.0;
        for (i64 n = 0; n < table.totals.shape[0]; n++) {
            double count = c < 0 ? table.single(d, n)
                                 : side ? table.both(c, d, n) : table.single(d, n) - table.both(c, d, n);
            sum += count;
            if (at_one)
                for (i64 r = 0; r < size_of; r++) at_one[i * size_of + r] += count * rewards.amounts(n, r);
        }
        splits[i] = sum != 0.0 && sum != size;
    }
    return true;
}

// Outcomes of one side of the column at place c: a leaf or one split. `values` are the side's, see `side_values`.
//
// A choice is (split, class, class); the split is -1 for a leaf, else a feature. Returns their order by loss, or null
// without memory, or when stopped.
inline i64* stump_outcomes(
    const PricedSet& set, const Array<i64>& columns, i64 c, i64 side, const double* values, double slack,
    const SetSums& sums, const Rewards& rewards, Arena& arena, Store& store, Poll& poll) {
    const i64 C = columns.shape[0], K = rewards.weights.shape[1], R = rewards.fixed.shape[0], size_of = K * R;
    const double best = values[C], price = rewards.leaf_price;
    i64 *close = arena.array<i64>(C + 1), n_close = 0;
    if (!close) return nullptr;
    for (i64 d = 0; d < C; d++)
        if (best - values[d] <= slack) close[n_close++] = d;
    double* whole = arena.array<double>(size_of);
    double* at_one = arena.array<double>(n_close * size_of);
    uint8_t* splits = arena.array<uint8_t>(n_close);
    i64* ones = arena.array<i64>(n_close);
    double *room = arena.array<double>(4 * (K + 1)), *result = arena.array<double>(R);
    if (!whole || !at_one || !splits || !ones || !room || !result || !store.begin(arena, R, 3, 16)) return nullptr;
    if (!side_amounts(set, columns, c, side, close, n_close, rewards, whole, at_one, splits, ones, poll))
        return nullptr;
    for (i64 i = 0; i <= n_close; i++) {
        const bool split = i < n_close;  // the leaf comes last
        const double *zero = room, *one = room;
        if (split) {
            const i64 d = close[i];
            if (!splits[i]) continue;
            sums.quarter(min_of(c, d), max_of(c, d), room);
            zero += (K + 1) * (c < d ? 2 * side : side);
            one = zero + (K + 1) * (c < d ? 1 : 2);
        } else {
            sums.half(c, side, room);
            if (zero[K] < rewards.least) continue;
        }
        for (i64 k = 0; k < K; k++)
            for (i64 m = split ? 0 : k; m < (split ? K : k + 1); m++) {
                double loss = best - (split ? zero[k] + one[m] - 2 * price : zero[k] - price);
                if (!(loss <= slack)) continue;
                for (i64 r = 0; r < R; r++) {
                    double here = whole[k * R + r] + rewards.fixed[r];
                    if (split)
                        here += at_one[i * size_of + m * R + r] - at_one[i * size_of + k * R + r] + rewards.fixed[r];
                    result[r] = here;
                }
                int32_t how[3] = {split ? int32_t(columns[close[i]]) : -1, int32_t(k), int32_t(m)};
                if (!store.insert(loss, result, how, rewards.per_grain)) return nullptr;
            }
    }
    return store.order(poll);
}

// Outcomes of the trees of depth at most `height`, up to two, on a set.
//
// A choice is (feature, then for each side split, class, class); the feature is -1 for a leaf, whose class is the last
// of all. `made` counts pairs of outcomes: TOO_MANY when there are more than `most_pairs`, NO_MEMORY without memory, or
// when stopped; then the rest means nothing. `priced`: null for points, whose sums are made here.
inline void outcomes_two(
    const PricedSet& set, const Priced* given, const Array<i64>& columns, i64 height, double slack, i64 most_pairs,
    const Rewards& rewards, Arena& arena, Found& found, Poll& poll) {
    found = Found{nullptr, nullptr, nullptr, 0, NO_MEMORY};
    const i64 K = rewards.weights.shape[1], R = rewards.fixed.shape[0], all = columns.shape[0];
    const i64 C = height > 0 ? all : 0;
    SetSums sums;
    if (given)
        sums = {given->both.data, given->single.data, given->totals.data, all, K + 1};
    else if (!priced_sums(*set.points, columns, rewards, arena, sums, poll))
        return;
    double* values = arena.array<double>(all * 2 * (all + 1));
    double *room = arena.array<double>(4 * (K + 1)), *whole = arena.array<double>(K * R);
    uint8_t* splits = arena.array<uint8_t>(all);
    i64* ones = arena.array<i64>(all);
    double* result = arena.array<double>(R);
    Store store;
    if (!values || !room || !whole || !splits || !ones || !result || !store.begin(arena, R, 7, 64)) return;
    if (!side_amounts(set, columns, -1, 0, nullptr, all, rewards, whole, nullptr, splits, ones, poll)) return;
    if (!side_values(sums, columns, height, rewards, room, values, poll)) return;
    double best = leaf_value(rewards)(sums.totals);
    for (i64 c = 0; c < C; c++)
        best = max_of(best, values[2 * c * (all + 1) + all] + values[(2 * c + 1) * (all + 1) + all]);
    int32_t choice[7] = {-1, -1, -1, -1, -1, -1, -1};
    for (i64 k = 0; k < (sums.totals[K] >= rewards.least ? K : 0); k++) {
        double loss = best - (sums.totals[k] - rewards.leaf_price);
        if (!(loss <= slack)) continue;
        for (i64 r = 0; r < R; r++) result[r] = whole[k * R + r] + rewards.fixed[r];
        choice[6] = int32_t(k);
        if (!store.insert(loss, result, choice, rewards.per_grain)) return;
    }
    i64 made = 0;
    Arena scratch = {nullptr, 0, arena.limit - arena.used};
    for (i64 c = 0; c < C; c++) {
        const double *zero_values = values + 2 * c * (all + 1), *one_values = zero_values + all + 1;
        double lost = best - (zero_values[all] + one_values[all]);
        if (!(lost <= slack) || !splits[c]) continue;
        scratch.clear();
        scratch.limit = arena.limit - arena.used;
        Store zero, one;
        i64* zeros = stump_outcomes(
            set, columns, c, 0, zero_values, slack - lost, sums, rewards, scratch, zero, poll);
        i64* ones_ = stump_outcomes(
            set, columns, c, 1, one_values, slack - lost, sums, rewards, scratch, one, poll);
        if (!zeros || !ones_) {
            scratch.clear();
            return;
        }
        choice[0] = int32_t(columns[c]);
        for (i64 a = 0; a < zero.size; a++) {
            i64 i = zeros[a];
            for (i64 t = 0; t < 3; t++) choice[1 + t] = zero.choice[3 * i + t];
            for (i64 b = 0; b < one.size; b++) {
                i64 j = ones_[b];
                double loss = lost + zero.loss[i] + one.loss[j];
                if (loss > slack) break;
                made++;
                for (i64 t = 0; t < 3; t++) choice[4 + t] = one.choice[3 * j + t];
                for (i64 r = 0; r < R; r++) result[r] = zero.results[i * R + r] + one.results[j * R + r];
                if (poll(INSERTION) || !store.insert(loss, result, choice, rewards.per_grain)) {
                    scratch.clear();
                    return;
                }
            }
            if (made > most_pairs) {
                scratch.clear();
                found.made = TOO_MANY;
                return;
            }
        }
    }
    scratch.clear();
    store.give(found, made);
}

// Best priced values (C, 2) of both sides of every column, with one more split where the height is two. False without
// memory, or when stopped.
inline bool best_sides(
    const Array<i64>& points, const Array<i64>& columns, i64 height, const Rewards& rewards, Arena& arena,
    const Array<double>& result, Poll& poll) {
    SetSums sums;
    double* room = arena.array<double>(4 * rewards.weights.shape[1] + 4);
    return room && priced_sums(points, columns, rewards, arena, sums, poll) &&
           best_two_sides(
               sums, columns.data, columns.shape[0], height, rewards.apart, leaf_value(rewards), room, result.data,
               poll);
}

// ---------------------------------------------------------------- deeper trees

// Outcomes of a set from those of the sides of some splits, like those of `outcomes_two`.
//
// Split s loses lost[s]; it has the outcomes losses[sides(s, 0)] .. on its zero side and those from sides(s, 1) to
// sides(s, 2) on its one side, both by loss. `leaves` (K, 1 + R) are the leaves of the set: loss and results. A choice
// is (split, place, place), and (-1, class, class) for a leaf.
inline void joined(
    const Array<double>& lost, const Array<i64>& sides, const Array<double>& losses, const Array<double>& results,
    const Array<double>& leaves, double slack, i64 most_pairs, const Array<double>& per_grain, Arena& arena,
    Found& found, Poll& poll) {
    found = Found{nullptr, nullptr, nullptr, 0, NO_MEMORY};
    const i64 R = results.shape[1];
    Store store;
    double* result = arena.array<double>(R);
    if (!result || !store.begin(arena, R, 3, 64)) return;
    for (i64 k = 0; k < leaves.shape[0]; k++)
        if (leaves(k, 0) <= slack) {
            int32_t choice[3] = {-1, int32_t(k), int32_t(k)};
            if (!store.insert(leaves(k, 0), &leaves(k, 1), choice, per_grain)) return;
        }
    i64 made = 0;
    for (i64 s = 0; s < lost.shape[0]; s++)
        for (i64 i = sides(s, 0); i < sides(s, 1); i++) {
            for (i64 j = sides(s, 1); j < sides(s, 2); j++) {
                double loss = lost[s] + losses[i] + losses[j];
                if (loss > slack) break;
                made++;
                int32_t choice[3] = {int32_t(s), int32_t(i - sides(s, 0)), int32_t(j - sides(s, 1))};
                for (i64 r = 0; r < R; r++) result[r] = results(i, r) + results(j, r);
                if (poll(INSERTION) || !store.insert(loss, result, choice, per_grain)) return;
            }
            if (made > most_pairs) {
                found.made = TOO_MANY;
                return;
            }
        }
    store.give(found, made);
}

// Where a search over pairs of outcomes stands.
struct BestPair {
    double value;  // in: pairs must be worth more; out: of the best pair
    i64 zero, one;  // out: the places of the best pair, or -1
    i64 made;  // out: pairs that were looked at
};

// The first of the best pairs of outcomes of two sides that keep the limits, worth more than `state.value`.
//
// Only pairs worth less than `below`, or as much and later than (after_zero, after_one). False when stopped.
inline bool best_pair(
    const Array<double>& zero, const Array<double>& zero_results, const Array<double>& one,
    const Array<double>& one_results, double slack, const Array<double>& limits, double below, i64 after_zero,
    i64 after_one, BestPair& state, Poll& poll) {
    const i64 J = limits.shape[0], n_zero = zero.shape[0], n_one = one.shape[0];
    state.zero = state.one = -1;
    state.made = 0;
    for (i64 i = 0; i < n_zero; i++) {
        double left = slack - zero[i];
        if (left < 0) break;
        i64 low = 0, high = n_one;  // the first outcome that loses more than is left
        while (low < high) {
            i64 middle = (low + high) / 2;
            if (one[middle] <= left)
                low = middle + 1;
            else
                high = middle;
        }
        if (poll(1 + low)) return false;
        for (i64 j = 0; j < low; j++) {
            double value = zero_results(i, 0) + one_results(j, 0);
            if (!(value > state.value) || !(value <= below)) continue;
            bool keeps = value < below || i > after_zero || (i == after_zero && j > after_one);
            for (i64 k = 0; keeps && k < J; k++) keeps = zero_results(i, k + 1) + one_results(j, k + 1) <= limits[k];
            if (keeps) {
                state.value = value;
                state.zero = i;
                state.one = j;
            }
        }
        state.made += low;
    }
    return true;
}
