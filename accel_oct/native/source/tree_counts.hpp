// Counting of trees: how many there are of every value, down to a threshold.
//
// Values are whole numbers. A set of samples has a table from values to numbers of trees: `count_two` fills it for the
// trees of depth at most two on one set, `count_joined` adds the trees of a split whose sides are known.
#pragma once

#include "stores.hpp"

// Values and their numbers of trees.
struct CountStore {
    Arena arena;
    i64 room, size;
    i64 *values, *counts;
    Slots slots;

    bool begin(i64 limit) {
        arena = Arena{nullptr, 0, limit};
        size = 0;
        return take(64);
    }

    bool take(i64 room_) {
        room = room_;
        values = arena.array<i64>(room);
        counts = arena.array<i64>(room);
        return slots.take(arena, room) && values && counts;
    }

    i64 find(i64 value) const {
        return slots.find(mixed(0, u64(value)), [&](i64 place) { return values[place] == value; });
    }

    bool grow() {
        CountStore old = *this;
        arena = Arena{nullptr, 0, old.arena.limit - old.arena.used};
        if (!take(2 * room)) {
            arena.clear();
            *this = old;
            return false;
        }
        for (i64 place = 0; place < size; place++) {
            values[place] = old.values[place];
            counts[place] = old.counts[place];
            slots.put(find(values[place]), place);
        }
        arena.limit = old.arena.limit;
        old.arena.clear();
        return true;
    }

    bool add(i64 value, i64 count) {
        i64 slot = find(value);
        if (slots.place(slot) >= 0) {
            counts[slots.place(slot)] += count;
            return true;
        }
        if (size == room) {
            if (!grow()) return false;
            slot = find(value);
        }
        values[size] = value;
        counts[size] = count;
        slots.put(slot, size++);
        return true;
    }

    // Forget everything, at the cost of what is in it.
    void forget() {
        // Slots are found in any order while the values are still there, so all are found before any is freed.
        for (i64 place = 0; place < size; place++) counts[place] = find(values[place]);
        for (i64 place = 0; place < size; place++) slots.put(counts[place], -1);
        size = 0;
    }

    // Write values, largest first, and their counts to arrays with room for them. False when stopped.
    bool sorted(i64* to_values, i64* to_counts, Poll& poll) const {
        if (!in_order(to_counts, size, [&](i64 a, i64 b) { return values[a] > values[b]; }, poll)) return false;
        for (i64 rank = 0; rank < size; rank++) {
            i64 place = to_counts[rank];
            to_values[rank] = values[place];
            to_counts[rank] = counts[place];
        }
        return true;
    }
};

// What predictions earn on one set of samples, in whole numbers.
//
// Gains over the samples that have both of two columns are given, or follow from points: `words` has those of every
// column as bits, and where masks(m, w) has a bit class label[m] gains amount[m].
struct SetGains {
    Array<i64> totals;  // (K,) of every class over all samples
    Array<i64> both;  // (K, C, C), or (K, 0, 0)
    Array<u64> words;  // (C, W)
    Array<u64> masks;  // (M, W)
    Array<i64> label, amount;  // (M,)
};

// The same with one column c at a time: over the samples that have c and any other column.
struct Gains {
    const SetGains& set;
    const i64 K, C, M;
    i64 *single, *row, *found;  // (K, C), (K, C), (C,)
    u64* own;  // by mask and word that it has a bit in: (C,)
    i64* n_words;  // (M,)

    explicit Gains(const SetGains& set_)
        : set(set_), K(set_.totals.shape[0]), C(set_.words.shape[0]), M(set_.label.shape[0]) {}

    // False without memory, or when stopped.
    bool begin(Arena& arena, Poll& poll) {
        const i64 W = set.words.shape[1];
        single = arena.zeros<i64>(K * C);
        row = arena.array<i64>(K * C);
        found = arena.array<i64>(C);
        own = arena.array<u64>(M * W * C);
        n_words = arena.array<i64>(M);
        if (!single || !row || !found || !own || !n_words) return false;
        for (i64 c = 0; c < (given() ? C : 0); c++)
            for (i64 k = 0; k < K; k++) single[k * C + c] = set.both(k, c, c);
        u64* next = own;
        for (i64 m = 0; m < M; m++) {
            if (poll(W * C)) return false;
            n_words[m] = 0;
            for (i64 w = 0; w < W; w++) {
                if (!set.masks(m, w)) continue;
                n_words[m]++;
                i64* sums = single + set.label[m] * C;
                for (i64 c = 0; c < C; c++, next++) {
                    *next = set.words(c, w) & set.masks(m, w);
                    sums[c] += __builtin_popcountll(*next) * set.amount[m];
                }
            }
        }
        return true;
    }

    bool given() const { return set.both.shape[1] > 0; }

    // Go to column c. False when stopped.
    bool at(i64 c, Poll& poll) {
        if (given()) {
            for (i64 k = 0; k < K; k++)
                __builtin_memcpy(row + k * C, &set.both(k, c, 0), size_t(C) * sizeof(i64));
            return !poll(K * C);
        }
        __builtin_memset(row, 0, size_t(K * C) * sizeof(i64));
        const u64* word = own;
        for (i64 m = 0; m < M; m++) {
            if (poll(C * (1 + n_words[m]))) return false;
            __builtin_memset(found, 0, size_t(C) * sizeof(i64));
            for (i64 w = 0; w < n_words[m]; w++, word += C) {
                const u64 in_c = word[c];
                if (in_c)
                    for (i64 d = 0; d < C; d++) found[d] += __builtin_popcountll(word[d] & in_c);
            }
            i64* sums = row + set.label[m] * C;
            for (i64 d = 0; d < C; d++) sums[d] += found[d] * set.amount[m];
        }
        return true;
    }

    i64 side(i64 k, i64 c, i64 side) const { return side ? single[k * C + c] : set.totals[k] - single[k * C + c]; }
    // Of a side of the column that it is at, over the samples that have column d.
    i64 inner(i64 k, i64 side, i64 d) const { return side ? row[k * C + d] : single[k * C + d] - row[k * C + d]; }
};

// Largest sum of the gains of two different classes on two sides; `none` where there is no such pair.
inline i64 different_labels(const i64* zero, const i64* one, i64 n_classes, bool any_label, i64 none) {
    i64 i = first_best(zero, n_classes), j = first_best(one, n_classes);
    if (i != j) return zero[i] + one[j];
    i64 best = none;
    for (i64 k = 0; k < (any_label ? n_classes : 0); k++)
        if (k != i) best = max_of(best, max_of(zero[k] + one[j], zero[i] + one[k]));
    return best;
}

// Call `body` with every column d that splits one side of the column c that `gains` is at, until it returns false.
//
// Gains on the sides of d are in room[0 .. K - 1] and room[K .. 2 K - 1]. There are samples where a sum is positive.
template <class Body>
inline bool each_split(const Gains& gains, i64 c, i64 side, i64* room, Body body) {
    i64 *zero = room, *one = room + gains.K;
    for (i64 d = 0; d < gains.C; d++) {
        i64 left = 0, right = 0;
        for (i64 k = 0; k < gains.K; k++) {
            one[k] = gains.inner(k, side, d);
            zero[k] = gains.side(k, c, side) - one[k];
            left += zero[k];
            right += one[k];
        }
        if (left > 0 && right > 0 && !body(d)) return false;
    }
    return true;
}

// Best values of trees of depth at most one, and of those with a split; `none` where there is no split.
struct SideBest {
    i64 best, branched;
};

inline SideBest side_best(const Gains& gains, i64 c, i64 side, i64 price, bool any_label, i64 none, i64* room) {
    const i64 K = gains.K;
    i64 top = 0, branched = none;
    for (i64 k = 0; k < K; k++) top = max_of(top, gains.side(k, c, side));
    each_split(gains, c, side, room, [&](i64) {
        branched = max_of(branched, different_labels(room, room + K, K, any_label, none) - 2 * price);
        return true;
    });
    return {max_of(top - price, branched), branched};
}

// Best values (3, C) of trees of depth at most one on both sides of every column, and of both with the column.
//
// The last are of trees in which no two sibling leaves have the same class; `none` stands for no such tree. False
// without memory, or when stopped.
inline bool two_sides(
    Gains& gains, i64 price, bool any_label, i64 none, Arena& arena, const Array<i64>& result, Poll& poll) {
    const i64 K = gains.K, C = gains.C;
    i64* zero = arena.array<i64>(2 * K);
    if (!zero || !gains.begin(arena, poll)) return false;
    i64* one = zero + K;
    for (i64 c = 0; c < C; c++) {
        if (poll(8 * C * K) || !gains.at(c, poll)) return false;
        SideBest low = side_best(gains, c, 0, price, any_label, none, zero);
        SideBest high = side_best(gains, c, 1, price, any_label, none, zero);
        for (i64 k = 0; k < K; k++) {
            one[k] = gains.side(k, c, 1);
            zero[k] = gains.side(k, c, 0);
        }
        i64 split = max_of(low.branched + high.best, low.best + high.branched);
        split = max_of(split, different_labels(zero, one, K, any_label, none) - 2 * price);
        result(0, c) = low.best;
        result(1, c) = high.best;
        result(2, c) = max_of(split, none);
    }
    return true;
}

// Add the trees of depth at most one on one side of column c that are worth at least `threshold`.
//
// `room` (2, K). False without memory.
inline bool add_stumps(
    CountStore& store, const Gains& gains, const Array<i64>& multiplicity, i64 price, bool any_label, i64 c, i64 side,
    i64 threshold, i64* room) {
    const i64 K = gains.K;
    i64 *zero = room, *one = room + K;
    for (i64 k = 0; k < K; k++) zero[k] = gains.side(k, c, side);
    i64 best = first_best(zero, K);
    for (i64 k = 0; k < K; k++)
        if (zero[k] - price >= threshold && (any_label || k == best) && !store.add(zero[k] - price, 1)) return false;
    return each_split(gains, c, side, room, [&](i64 d) {
        i64 best_zero = first_best(zero, K), best_one = first_best(one, K);
        if (zero[best_zero] + one[best_one] - 2 * price < threshold) return true;
        for (i64 k = 0; k < K; k++)
            for (i64 m = 0; m < K; m++) {
                i64 value = zero[k] + one[m] - 2 * price;
                if (k != m && value >= threshold && (any_label || (k == best_zero && m == best_one)) &&
                    !store.add(value, multiplicity[d]))
                    return false;
            }
        return true;
    });
}

// Add all pairs of two sides, values largest first, `factor` times. False without memory, or when stopped.
inline bool add_joined(
    CountStore& store, const i64* zero, const i64* zero_counts, i64 n_zero, const i64* one, const i64* one_counts,
    i64 n_one, i64 threshold, i64 factor, Poll& poll) {
    for (i64 i = 0; i < n_zero; i++)
        for (i64 j = 0; j < n_one && zero[i] + one[j] >= threshold; j++)
            if (poll(INSERTION) || !store.add(zero[i] + one[j], factor * zero_counts[i] * one_counts[j])) return false;
    return true;
}

// Count the trees of depth at most two on a set that are worth at least `threshold`.
//
// Column c stands for multiplicity[c] features; `bests` (2, C) has the best values of its sides, or is empty. `scratch`
// is an empty store. False without memory, or when stopped.
inline bool count_two(
    CountStore& store, Gains& gains, const Array<i64>& multiplicity, const Array<i64>& bests, i64 price, i64 threshold,
    bool any_label, Arena& arena, CountStore& scratch, Poll& poll) {
    const i64 K = gains.K, C = gains.C;
    i64* sums = arena.array<i64>(4 * K);
    if (!sums || !gains.begin(arena, poll)) return false;
    i64 *zero_sums = sums + 2 * K, *one_sums = sums + 3 * K;
    const i64* totals = gains.set.totals.data;
    const i64 best_leaf = first_best(totals, K);
    for (i64 k = 0; k < K; k++)
        if (totals[k] - price >= threshold && (any_label || k == best_leaf) && !store.add(totals[k] - price, 1))
            return false;
    for (i64 c = 0; c < C; c++) {
        i64 top[2];
        if (bests.shape[1]) {
            top[0] = bests(0, c), top[1] = bests(1, c);
            if (top[0] + top[1] < threshold) continue;
        }
        if (poll(8 * C * K * K) || !gains.at(c, poll)) return false;
        if (!bests.shape[1]) {
            for (i64 side = 0; side < 2; side++)
                top[side] = side_best(gains, c, side, price, any_label, INT64_MIN / 4, sums).best;
            if (top[0] + top[1] < threshold) continue;
        }
        Arena lists = {nullptr, 0, scratch.arena.limit};
        i64 *values[2], *counts[2], sizes[2];
        bool enough = true;
        for (i64 side = 0; side < 2 && enough; side++) {
            scratch.forget();
            enough = add_stumps(scratch, gains, multiplicity, price, any_label, c, side, threshold - top[1 - side], sums);
            sizes[side] = scratch.size;
            values[side] = lists.array<i64>(scratch.size);
            counts[side] = lists.array<i64>(scratch.size);
            enough = enough && values[side] && counts[side];
            if (enough) enough = scratch.sorted(values[side], counts[side], poll);
        }
        i64 factor = multiplicity[c];
        if (enough)
            enough = add_joined(
                store, values[0], counts[0], sizes[0], values[1], counts[1], sizes[1], threshold, factor, poll);
        lists.clear();
        // Pairs of leaves of the same class are no split.
        for (i64 k = 0; k < K; k++) {
            one_sums[k] = gains.side(k, c, 1);
            zero_sums[k] = gains.side(k, c, 0);
        }
        i64 best = first_best(zero_sums, K);
        for (i64 k = 0; k < K && enough; k++) {
            i64 value = zero_sums[k] + one_sums[k] - 2 * price;
            if (value >= threshold && (any_label || (k == best && k == first_best(one_sums, K))))
                enough = store.add(value, -factor);
        }
        if (!enough) return false;
    }
    return true;
}
