// Max-plus passes: from tables of pair counts to the best leaf and the best two leaves of every set.
//
// A pass looks at sets of samples S and, for all features c at once (the lanes), at both sides of S under c. For each
// of these it writes `one_leaf` (the score as a leaf) and `two_leaves` (the best score over all splits b).
//
// Two classes need one signed table only, of d, the weight of class 1 minus that of class 0. A leaf scores
// (N + |d|) / 2 and leaves partition the samples, so maximising the score is maximising the sum of |d|, the table's
// unit. Over all splits of a set with difference d into x and d - x the best is max(|d|, |x - (d - x)|), so the largest
// and the smallest x over b are all that is kept (2x itself might not fit into a counter). More classes need one table
// of counts per class.
//
// Local rules (leaves of a least mass, features that must stay apart): the last channel of a table holds masses. Split
// b of a side is allowed where both its parts are heavy enough, which `Limits` says lane by lane. One that is not
// allowed counts as no split, which is worth a leaf: with one signed table a difference of zero on one side, with
// several tables nothing at all. So what is written for a side is its best score with at most two leaves where it may
// be a leaf itself, and else `lowest` for both: it may not be reached at all.
#pragma once

#include "base.hpp"
#include "counts.hpp"

// Best scores in table units, with one leaf and with at most two, of both sides of every feature.
template <class T>
struct Scores {
    Array<T> one_leaf, two_leaves;  // (sides of sets, P)
};

// Local rules in the units of the last channel; where two features must stay apart the least mass exceeds the total.
template <class T>
struct Limits {
    Array<T> blocked;  // (P / L, F, L) least mass of a leaf below a split on b and one on c, laid out like a table
    Array<T> rows;  // (F, P) the same
    Array<T> lanes;  // (P,) least mass of a leaf below c
    Array<T> least;  // (1,) least mass of any leaf
    Array<T> lowest;  // (1,) stands for minus infinity: negative when added to any score, and doubled it still fits
};

// What the path above a set asks of splits below it.
template <class T>
struct PathLimits {
    const Limits<T>* limits;  // null without rules
    const T* below;  // (P,) least masses below the path and c
    const uint8_t* usable;  // (F,) features that may follow the path
};

// Where the numbers of lanes c .. c + LANES - 1 begin in a table whose first lane is `base`, for b = 0.
template <class T>
inline i64 column_start(i64 channel, i64 height, i64 c, i64 base, i64 n_features) {
    i64 lane = c - base;
    return (channel * height + lane / BLOCK<T> * BLOCK<T>) * n_features + lane % BLOCK<T>;
}

// Leaf and two-leaf scores of one vector of sets from their differences and extreme splits.
template <class T>
inline void finish_signed(
    Vector<T> difference, Vector<T> largest, Vector<T> smallest, const Scores<T>& scores, i64 place) {
    Vector<T> leaf = most(difference, -difference);
    Vector<T> high = largest - (difference - largest), low = smallest - (difference - smallest);
    store(scores.one_leaf.data + place, leaf);
    store(scores.two_leaves.data + place, most(leaf, most(most(high, -high), most(low, -low))));
}

template <class T>
void pass_signed(const Counts<T>& counts, const Scores<T>& scores, i64 first_lane, i64 base, i64 row) {
    const i64 F = counts.table.shape[2], width = scores.one_leaf.shape[1], height = counts.table.shape[1] * BLOCK<T>;
    const T* single = counts.single.data;
    for (i64 c = first_lane; c < base + height; c += LANES<T>) {
        const T* column = counts.table.data + column_start<T>(0, height, c, base, F);
        Vector<T> most1 = {}, least1 = {}, most0 = {}, least0 = {};
        for (i64 b = 0; b < F; b++) {
            Vector<T> x = load(column + b * BLOCK<T>), z = spread(single[b]) - x;
            most1 = most(most1, x);
            least1 = least(least1, x);
            most0 = most(most0, z);
            least0 = least(least0, z);
        }
        Vector<T> d1 = load(single + c);
        finish_signed<T>(spread(counts.totals[0]) - d1, most0, least0, scores, row * width + c);
        finish_signed<T>(d1, most1, least1, scores, (row + 1) * width + c);
    }
}

// Tables of a pair of features (f, g): of all samples, of f = 1, of g = 1, of f = g = 1, and their sums by side.
template <class T>
struct PairTables {
    const Array<T>&all, &with_f, &with_g, &both;
    const T* singles;  // (4, channels, P), sides numbered 2 f + g
    const T* totals;  // (4, channels)
};

// The four sets of a pair at once; result rows are numbered 4 f + 2 g + c.
template <class T>
void pass_signed_pair(const PairTables<T>& pair, const Scores<T>& scores, i64 first_lane) {
    const i64 F = pair.both.shape[2], width = scores.one_leaf.shape[1];
    for (i64 c = first_lane; c < width; c += LANES<T>) {
        i64 start = column_start<T>(0, width, c, 0, F);
        // The sides of f one after the other: eight running extremes stay in sixteen registers.
        for (i64 f = 0; f < 2; f++) {
            const T *low = pair.singles + 2 * f * width, *high = low + width;
            Vector<T> m0 = {}, m1 = {}, m2 = {}, m3 = {}, l0 = {}, l1 = {}, l2 = {}, l3 = {};
            for (i64 b = 0; b < F; b++) {
                i64 place = start + b * BLOCK<T>;
                Vector<T> x3 = load(pair.both.data + place), x1, in_f = load(pair.with_f.data + place);
                if (f)
                    x1 = in_f - x3;
                else {
                    x3 = load(pair.with_g.data + place) - x3;
                    x1 = load(pair.all.data + place) - in_f - x3;
                }
                Vector<T> z3 = spread(high[b]) - x3, z1 = spread(low[b]) - x1;
                m0 = most(m0, z1), l0 = least(l0, z1), m1 = most(m1, x1), l1 = least(l1, x1);
                m2 = most(m2, z3), l2 = least(l2, z3), m3 = most(m3, x3), l3 = least(l3, x3);
            }
            Vector<T> d1 = load(low + c), d3 = load(high + c);
            finish_signed<T>(spread(pair.totals[2 * f]) - d1, m0, l0, scores, 4 * f * width + c);
            finish_signed<T>(d1, m1, l1, scores, (4 * f + 1) * width + c);
            finish_signed<T>(spread(pair.totals[2 * f + 1]) - d3, m2, l2, scores, (4 * f + 2) * width + c);
            finish_signed<T>(d3, m3, l3, scores, (4 * f + 3) * width + c);
        }
    }
}

template <class T>
void pass_classes(const Counts<T>& counts, const Scores<T>& scores, i64 first_lane, i64 base, i64 row) {
    const i64 channels = counts.table.shape[0], F = counts.table.shape[2], width = scores.one_leaf.shape[1];
    const i64 height = counts.table.shape[1] * BLOCK<T>;
    const T *single = counts.single.data, *totals = counts.totals.data;
    for (i64 c = first_lane; c < base + height; c += LANES<T>) {
        Vector<T> leaf1 = {}, leaf0 = {};
        for (i64 k = 0; k < channels; k++) {
            Vector<T> at_c = load(single + k * width + c);
            leaf1 = most(leaf1, at_c);
            leaf0 = most(leaf0, spread(totals[k]) - at_c);
        }
        Vector<T> best1 = leaf1, best0 = leaf0;
        for (i64 b = 0; b < F; b++) {
            Vector<T> c11 = {}, c10 = {}, c01 = {}, c00 = {};
            for (i64 k = 0; k < channels; k++) {
                Vector<T> x = load(counts.table.data + column_start<T>(k, height, c, base, F) + b * BLOCK<T>);
                Vector<T> at_c = load(single + k * width + c), x01 = spread(single[k * width + b]) - x;
                c11 = most(c11, x);
                c10 = most(c10, at_c - x);
                c01 = most(c01, x01);
                c00 = most(c00, spread(totals[k]) - at_c - x01);
            }
            best1 = most(best1, c11 + c10);
            best0 = most(best0, c01 + c00);
        }
        store(scores.one_leaf.data + row * width + c, leaf0);
        store(scores.two_leaves.data + row * width + c, best0);
        store(scores.one_leaf.data + (row + 1) * width + c, leaf1);
        store(scores.two_leaves.data + (row + 1) * width + c, best1);
    }
}

// ---------------------------------------------------------------- under local rules

// Fill `below` and `usable` for a path over the features f and g, which may be equal.
template <class T>
void path_limits(const Limits<T>& limits, i64 f, i64 g, T* below, uint8_t* usable) {
    for (i64 c = 0; c < limits.lanes.shape[0]; c++)
        below[c] = max_of(limits.lanes[c], max_of(limits.rows(f, c), limits.rows(g, c)));
    for (i64 b = 0; b < limits.rows.shape[0]; b++) usable[b] = below[b] == limits.least[0];
}

// Whether some lane that may follow the path has a side that is heavy enough for two leaves.
template <class T>
bool can_split(const T* masses, T total, const T* below, i64 place, T least) {
    for (i64 c = place; c < place + LANES<T>; c++)
        if (below[c] == least && max_of(masses[c], T(total - masses[c])) - least >= least) return true;
    return false;
}

// The extreme splits with one more: where both its parts are heavy enough.
template <class T>
inline void widen(
    Vector<T>& largest, Vector<T>& smallest, Vector<T> x, Vector<T> mass, Vector<T> whole, Vector<T> need) {
    x = least(mass, whole - mass) >= need ? x : Vector<T>{};
    largest = most(largest, x);
    smallest = least(smallest, x);
}

template <class T>
inline void finish_ruled(
    Vector<T> leaf, Vector<T> two, Vector<T> mass, Vector<T> need, T lowest, const Scores<T>& scores, i64 place) {
    store(scores.one_leaf.data + place, mass >= need ? leaf : spread(lowest));
    store(scores.two_leaves.data + place, mass >= need ? two : spread(lowest));
}

template <class T>
inline void finish_ruled_signed(
    Vector<T> difference, Vector<T> largest, Vector<T> smallest, Vector<T> mass, Vector<T> need, T lowest,
    const Scores<T>& scores, i64 place) {
    Vector<T> leaf = most(difference, -difference);
    Vector<T> high = largest - (difference - largest), low = smallest - (difference - smallest);
    Vector<T> two = most(leaf, most(most(high, -high), most(low, -low)));
    finish_ruled<T>(leaf, two, mass, need, lowest, scores, place);
}

template <class T>
void ruled_signed(
    const Counts<T>& counts, const Scores<T>& scores, i64 first_lane, i64 base, i64 row, const PathLimits<T>& path) {
    const i64 F = counts.table.shape[2], width = scores.one_leaf.shape[1], height = counts.table.shape[1] * BLOCK<T>;
    const T *single = counts.single.data, *totals = counts.totals.data;
    const T enough = path.limits->least[0], lowest = path.limits->lowest[0];
    for (i64 c = first_lane; c < base + height; c += LANES<T>) {
        Vector<T> mass1 = load(single + width + c), mass0 = spread(totals[1]) - mass1;
        Vector<T> most1 = {}, least1 = {}, most0 = {}, least0 = {};
        if (can_split(single + width, totals[1], path.below, c, enough))
            for (i64 b = 0; b < F; b++) {
                if (!path.usable[b]) continue;
                Vector<T> need = load(path.limits->blocked.data + column_start<T>(0, 0, c, 0, F) + b * BLOCK<T>);
                Vector<T> x = load(counts.table.data + column_start<T>(0, height, c, base, F) + b * BLOCK<T>);
                Vector<T> m = load(counts.table.data + column_start<T>(1, height, c, base, F) + b * BLOCK<T>);
                widen<T>(most1, least1, x, m, mass1, need);
                widen<T>(most0, least0, spread(single[b]) - x, spread(single[width + b]) - m, mass0, need);
            }
        Vector<T> need = load(path.below + c), d1 = load(single + c);
        i64 place = row * width + c;
        finish_ruled_signed<T>(spread(totals[0]) - d1, most0, least0, mass0, need, lowest, scores, place);
        finish_ruled_signed<T>(d1, most1, least1, mass1, need, lowest, scores, place + width);
    }
}

// Counts at one place of the tables of g = 1 and of g = 0, on one side of f.
template <class T>
inline void sides_of_g(const PairTables<T>& pair, i64 f, i64 place, Vector<T>& with_g, Vector<T>& without_g) {
    Vector<T> both = load(pair.both.data + place), in_f = load(pair.with_f.data + place);
    with_g = f ? both : load(pair.with_g.data + place) - both;
    without_g = f ? in_f - both : load(pair.all.data + place) - in_f - with_g;
}

// The four sets of a pair of features; sides of f that are too light to split are cheap.
template <class T>
void ruled_signed_pair(
    const PairTables<T>& pair, const Scores<T>& scores, i64 first_lane, const PathLimits<T>& path) {
    const i64 F = pair.both.shape[2], width = scores.one_leaf.shape[1];
    const T enough = path.limits->least[0], lowest = path.limits->lowest[0];
    for (i64 c = first_lane; c < width; c += LANES<T>)
        for (i64 f = 0; f < 2; f++) {
            const T *low = pair.singles + 4 * f * width, *high = low + 2 * width;  // g = 0 and g = 1: score, mass
            const T *low_total = pair.totals + 4 * f, *high_total = low_total + 2;
            Vector<T> mass1 = load(low + width + c), mass3 = load(high + width + c);
            Vector<T> mass0 = spread(low_total[1]) - mass1, mass2 = spread(high_total[1]) - mass3;
            Vector<T> m0 = {}, l0 = {}, m1 = {}, l1 = {}, m2 = {}, l2 = {}, m3 = {}, l3 = {};
            if (can_split(low + width, low_total[1], path.below, c, enough) ||
                can_split(high + width, high_total[1], path.below, c, enough))
                for (i64 b = 0; b < F; b++) {
                    if (!path.usable[b]) continue;
                    i64 place = column_start<T>(0, 0, c, 0, F) + b * BLOCK<T>;
                    Vector<T> need = load(path.limits->blocked.data + place), x3, x1, n3, n1;
                    sides_of_g<T>(pair, f, place, x3, x1);
                    sides_of_g<T>(pair, f, place + width * F, n3, n1);
                    widen<T>(m1, l1, x1, n1, mass1, need);
                    widen<T>(m3, l3, x3, n3, mass3, need);
                    widen<T>(m0, l0, spread(low[b]) - x1, spread(low[width + b]) - n1, mass0, need);
                    widen<T>(m2, l2, spread(high[b]) - x3, spread(high[width + b]) - n3, mass2, need);
                }
            Vector<T> need = load(path.below + c), d1 = load(low + c), d3 = load(high + c);
            i64 place = 4 * f * width + c;
            finish_ruled_signed<T>(spread(low_total[0]) - d1, m0, l0, mass0, need, lowest, scores, place);
            finish_ruled_signed<T>(d1, m1, l1, mass1, need, lowest, scores, place + width);
            finish_ruled_signed<T>(spread(high_total[0]) - d3, m2, l2, mass2, need, lowest, scores, place + 2 * width);
            finish_ruled_signed<T>(d3, m3, l3, mass3, need, lowest, scores, place + 3 * width);
        }
}

template <class T>
void ruled_classes(
    const Counts<T>& counts, const Scores<T>& scores, i64 first_lane, i64 base, i64 row, const PathLimits<T>& path) {
    const i64 last = counts.table.shape[0] - 1, F = counts.table.shape[2], width = scores.one_leaf.shape[1];
    const i64 height = counts.table.shape[1] * BLOCK<T>;
    const T *single = counts.single.data, *totals = counts.totals.data;
    const T enough = path.limits->least[0], lowest = path.limits->lowest[0];
    for (i64 c = first_lane; c < base + height; c += LANES<T>) {
        Vector<T> leaf1 = {}, leaf0 = {}, zero = {};
        for (i64 k = 0; k < last; k++) {
            Vector<T> at_c = load(single + k * width + c);
            leaf1 = most(leaf1, at_c);
            leaf0 = most(leaf0, spread(totals[k]) - at_c);
        }
        Vector<T> mass1 = load(single + last * width + c), mass0 = spread(totals[last]) - mass1;
        Vector<T> best1 = leaf1, best0 = leaf0;
        if (can_split(single + last * width, totals[last], path.below, c, enough))
            for (i64 b = 0; b < F; b++) {
                if (!path.usable[b]) continue;
                Vector<T> need = load(path.limits->blocked.data + column_start<T>(0, 0, c, 0, F) + b * BLOCK<T>);
                Vector<T> m1 = load(counts.table.data + column_start<T>(last, height, c, base, F) + b * BLOCK<T>);
                Vector<T> m0 = spread(single[last * width + b]) - m1;
                Vector<T> c11 = {}, c10 = {}, c01 = {}, c00 = {};
                for (i64 k = 0; k < last; k++) {
                    Vector<T> x = load(counts.table.data + column_start<T>(k, height, c, base, F) + b * BLOCK<T>);
                    Vector<T> at_c = load(single + k * width + c), x01 = spread(single[k * width + b]) - x;
                    c11 = most(c11, x);
                    c10 = most(c10, at_c - x);
                    c01 = most(c01, x01);
                    c00 = most(c00, spread(totals[k]) - at_c - x01);
                }
                best1 = most(best1, least(m1, mass1 - m1) >= need ? c11 + c10 : zero);
                best0 = most(best0, least(m0, mass0 - m0) >= need ? c01 + c00 : zero);
            }
        Vector<T> need = load(path.below + c);
        finish_ruled<T>(leaf0, best0, mass0, need, lowest, scores, row * width + c);
        finish_ruled<T>(leaf1, best1, mass1, need, lowest, scores, (row + 1) * width + c);
    }
}

// ---------------------------------------------------------------- both

// One set: rows `row` (side 0) and `row + 1` (side 1) of the scores, for the lanes from `base` on in the table.
template <class T>
void pass_set(
    const Counts<T>& counts, const Scores<T>& scores, i64 first_lane, i64 base, i64 row, bool is_signed,
    const PathLimits<T>& path) {
    if (path.limits) {
        if (is_signed)
            ruled_signed(counts, scores, first_lane, base, row, path);
        else
            ruled_classes(counts, scores, first_lane, base, row, path);
    } else if (is_signed)
        pass_signed(counts, scores, first_lane, base, row);
    else
        pass_classes(counts, scores, first_lane, base, row);
}

// Raise, lane by lane, the best scores with two, three and four leaves at best[0], best[width], ... by one split.
template <class T>
void fold(const Scores<T>& scores, i64 side0, i64 side1, T* best, i64 first_lane) {
    const i64 width = scores.one_leaf.shape[1];
    for (i64 c = first_lane; c < width; c += LANES<T>) {
        Vector<T> leaf0 = load(scores.one_leaf.data + side0 * width + c);
        Vector<T> leaf1 = load(scores.one_leaf.data + side1 * width + c);
        Vector<T> two0 = load(scores.two_leaves.data + side0 * width + c);
        Vector<T> two1 = load(scores.two_leaves.data + side1 * width + c);
        T *two = best + c, *three = two + width, *four = three + width;
        store(two, most(load(two), leaf0 + leaf1));
        store(three, most(load(three), most(two0 + leaf1, leaf0 + two1)));
        store(four, most(load(four), two0 + two1));
    }
}

// The same with the maximum over all lanes, for one set: best[0], best[width] and best[2 * width].
template <class T>
void fold_over_lanes(const Scores<T>& scores, i64 side0, i64 side1, T* best, i64 first_lane) {
    const i64 width = scores.one_leaf.shape[1];
    Vector<T> two = {}, three = {}, four = {};
    for (i64 c = first_lane; c < width; c += LANES<T>) {
        Vector<T> leaf0 = load(scores.one_leaf.data + side0 * width + c);
        Vector<T> leaf1 = load(scores.one_leaf.data + side1 * width + c);
        Vector<T> two0 = load(scores.two_leaves.data + side0 * width + c);
        Vector<T> two1 = load(scores.two_leaves.data + side1 * width + c);
        two = most(two, leaf0 + leaf1);
        three = most(three, most(two0 + leaf1, leaf0 + two1));
        four = most(four, two0 + two1);
    }
    for (i64 lane = 0; lane < LANES<T>; lane++) {
        best[0] = max_of(best[0], T(two[lane]));
        best[width] = max_of(best[width], T(three[lane]));
        best[2 * width] = max_of(best[2 * width], T(four[lane]));
    }
}
