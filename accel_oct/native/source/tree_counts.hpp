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

inline i64 first_best(const i64* sums, i64 n_classes) {
    i64 best = 0;
    for (i64 k = 1; k < n_classes; k++)
        if (sums[k] > sums[best]) best = k;
    return best;
}

// Gains of one set: of every class over the samples that have both of two columns, and over all.
struct Gains {
    const Array<i64>& both;  // (K, C, C)
    const Array<i64>& totals;  // (K,)

    i64 n_classes() const { return both.shape[0]; }
    i64 n_columns() const { return both.shape[1]; }
    i64 side(i64 k, i64 c, i64 side) const { return side ? both(k, c, c) : totals[k] - both(k, c, c); }
    i64 inner(i64 k, i64 c, i64 side, i64 d) const { return side ? both(k, c, d) : both(k, d, d) - both(k, c, d); }
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

// Gains (K, C, C) over the points that have both of two columns.
//
// `words` (C, W) has the points of every column as bits. Gains are given in binary digits: where masks(m, w) has a bit,
// class label[m] gains two to the power of plane[m]. `own` (C, W) is room. False when stopped.
inline bool pair_gains(
    const Array<u64>& words, const Array<u64>& masks, const Array<i64>& label, const Array<i64>& plane,
    const Array<u64>& own, const Array<i64>& result, Poll& poll) {
    const i64 C = words.shape[0], W = words.shape[1];
    for (i64 m = 0; m < label.shape[0]; m++) {
        i64 n_words = 0;
        for (i64 w = 0; w < W; w++)
            if (masks(m, w)) {  // sorted sets of points have few words
                for (i64 c = 0; c < C; c++) own(c, n_words) = words(c, w) & masks(m, w);
                n_words++;
            }
        for (i64 c = 0; c < C; c++) {
            if (poll((C - c) * n_words)) return false;
            for (i64 d = c; d < C; d++) {
                i64 found = 0;
                for (i64 w = 0; w < n_words; w++) found += __builtin_popcountll(own(c, w) & own(d, w));
                result(label[m], c, d) += found << plane[m];
            }
        }
    }
    for (i64 k = 0; k < result.shape[0]; k++)
        for (i64 c = 0; c < C; c++)
            for (i64 d = 0; d < c; d++) result(k, c, d) = result(k, d, c);
    return true;
}

// Best values (3, C) of trees of depth at most one on both sides of every column, and of both with the column.
//
// The last are of trees in which no two sibling leaves have the same class; `none` stands for no such tree. `room`
// (2, K). False when stopped.
inline bool two_sides(
    const Gains& gains, i64 price, bool any_label, i64 none, const Array<i64>& room, const Array<i64>& result,
    Poll& poll) {
    const i64 K = gains.n_classes(), C = gains.n_columns();
    i64 *zero = room.data, *one = zero + K;
    for (i64 c = 0; c < C; c++) {
        i64 branched[2], best[2];
        for (i64 side = 0; side < 2; side++) {
            if (poll(4 * C * K)) return false;
            branched[side] = none;
            i64 top = 0;
            for (i64 k = 0; k < K; k++) top = max_of(top, gains.side(k, c, side));
            for (i64 d = 0; d < C; d++) {
                i64 left = 0, right = 0;
                for (i64 k = 0; k < K; k++) {
                    one[k] = gains.inner(k, c, side, d);
                    zero[k] = gains.side(k, c, side) - one[k];
                    left += zero[k];
                    right += one[k];
                }
                if (left > 0 && right > 0)
                    branched[side] =
                        max_of(branched[side], different_labels(zero, one, K, any_label, none) - 2 * price);
            }
            best[side] = max_of(top - price, branched[side]);
        }
        for (i64 k = 0; k < K; k++) {
            one[k] = gains.side(k, c, 1);
            zero[k] = gains.side(k, c, 0);
        }
        i64 split = max_of(branched[0] + best[1], best[0] + branched[1]);
        split = max_of(split, different_labels(zero, one, K, any_label, none) - 2 * price);
        result(0, c) = best[0];
        result(1, c) = best[1];
        result(2, c) = max_of(split, none);
    }
    return true;
}

// Add the trees of depth at most one on one side of column c that are worth at least `threshold`.
//
// A split counts where both its sides have samples, that is a positive sum. `room` (2, K). False without memory.
inline bool add_stumps(
    CountStore& store, const Gains& gains, const Array<i64>& multiplicity, i64 price, bool any_label, i64 c, i64 side,
    i64 threshold, i64* room) {
    const i64 K = gains.n_classes(), C = gains.n_columns();
    i64 *zero = room, *one = room + K;
    for (i64 k = 0; k < K; k++) zero[k] = gains.side(k, c, side);
    i64 best = first_best(zero, K);
    for (i64 k = 0; k < K; k++)
        if (zero[k] - price >= threshold && (any_label || k == best) && !store.add(zero[k] - price, 1)) return false;
    for (i64 d = 0; d < C; d++) {
        if (d == c) continue;
        i64 left = 0, right = 0;
        for (i64 k = 0; k < K; k++) {
            one[k] = gains.inner(k, c, side, d);
            zero[k] = gains.side(k, c, side) - one[k];
            left += zero[k];
            right += one[k];
        }
        i64 best_zero = first_best(zero, K), best_one = first_best(one, K);
        if (zero[best_zero] + one[best_one] - 2 * price < threshold || left == 0 || right == 0) continue;
        for (i64 k = 0; k < K; k++)
            for (i64 m = 0; m < K; m++) {
                i64 value = zero[k] + one[m] - 2 * price;
                if (k != m && value >= threshold && (any_label || (k == best_zero && m == best_one)) &&
                    !store.add(value, multiplicity[d]))
                    return false;
            }
    }
    return true;
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
// Column c stands for multiplicity[c] features. `scratch` is an empty store, `room` (4, K). False without memory, or
// when stopped.
inline bool count_two(
    CountStore& store, const Gains& gains, const Array<i64>& multiplicity, i64 price, i64 threshold, bool any_label,
    const Array<i64>& room, CountStore& scratch, Poll& poll) {
    const i64 K = gains.n_classes(), C = gains.n_columns();
    i64 *sums = room.data, *zero_sums = sums + 2 * K, *one_sums = sums + 3 * K;
    const i64 best_leaf = first_best(gains.totals.data, K);
    for (i64 k = 0; k < K; k++)
        if (gains.totals[k] - price >= threshold && (any_label || k == best_leaf) &&
            !store.add(gains.totals[k] - price, 1))
            return false;
    // The best value of a side, as a leaf or with a further split of any kind.
    auto best_of = [&](i64 c, i64 side) {
        i64 leaf = 0, two = INT64_MIN / 2;
        for (i64 k = 0; k < K; k++) leaf = max_of(leaf, gains.side(k, c, side));
        for (i64 d = 0; d < C; d++) {
            i64 top_zero = 0, top_one = 0;
            for (i64 k = 0; k < K; k++) {
                i64 one = gains.inner(k, c, side, d);
                top_one = max_of(top_one, one);
                top_zero = max_of(top_zero, gains.side(k, c, side) - one);
            }
            two = max_of(two, top_zero + top_one);
        }
        return max_of(leaf - price, two - 2 * price);
    };
    for (i64 c = 0; c < C; c++) {
        if (poll(8 * C * K * K)) return false;
        i64 top[2] = {best_of(c, 0), best_of(c, 1)};
        if (top[0] + top[1] < threshold) continue;
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
