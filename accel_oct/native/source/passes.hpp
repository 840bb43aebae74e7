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

// The score of a leaf in table units; a single signed channel is the difference of two classes.
template <class T>
inline T leaf_score(const T* sums, i64 channels, bool is_signed) {
    if (is_signed) return T(sums[0] < 0 ? -sums[0] : sums[0]);
    T best = 0;
    for (i64 k = 0; k < channels; k++) best = max_of(best, sums[k]);
    return best;
}

// The best score with at most two leaves of sets with a difference, from the largest and the smallest part of a split.
template <class V>
inline V best_split(V difference, V largest, V smallest) {
    V high = largest - (difference - largest), low = smallest - (difference - smallest);
    return most(most(difference, -difference), most(most(high, -high), most(low, -low)));
}

// ---------------------------------------------------------------- local rules

// Fill `below` and `usable` for a path over the features f and g, which may be equal.
template <class T>
void path_limits(const Limits<T>& limits, i64 f, i64 g, T* below, uint8_t* usable) {
    for (i64 c = 0; c < limits.lanes.shape[0]; c++)
        below[c] = max_of(limits.lanes[c], max_of(limits.rows(f, c), limits.rows(g, c)));
    for (i64 b = 0; b < limits.rows.shape[0]; b++) usable[b] = below[b] == limits.least[0];
}

// What the rules say of a set, by its masses (P,) and their total; without rules everything is allowed.
template <bool RULED, class T>
struct Allowed {
    const PathLimits<T>& path;
    const T* masses;
    i64 c;
    Vector<T> mass0 = {}, mass1 = {};  // of the sides of c, and the LANES - 1 features after it
    bool splits = true;  // whether some lane that may follow the path has a side that is heavy enough for two leaves

    Allowed(const PathLimits<T>& path_, const T* masses_, const T* total, i64 c_) : path(path_), masses(masses_), c(c_) {
        if constexpr (RULED) {
            const T enough = path.limits->least[0];
            mass1 = load(masses + c);
            mass0 = spread(*total) - mass1;
            splits = false;
            for (i64 lane = 0; lane < LANES<T>; lane++)
                splits |= path.below[c + lane] == enough && max_of(mass1[lane], mass0[lane]) - enough >= enough;
        }
    }

    // A split b of both sides, with `mass` where b = c = 1: its scores where both its parts are heavy enough, else zero.
    void keep(i64 b, Vector<T> mass, Vector<T> need, Vector<T>& score0, Vector<T>& score1) const {
        if constexpr (RULED) {
            Vector<T> rest = spread(masses[b]) - mass;
            score1 = least(mass, mass1 - mass) >= need ? score1 : Vector<T>{};
            score0 = least(rest, mass0 - rest) >= need ? score0 : Vector<T>{};
        }
    }

    // The scores of a side, in a row of results.
    void write(Vector<T> leaf, Vector<T> two, i64 side, const Scores<T>& scores, i64 row) const {
        i64 place = (row + side) * scores.one_leaf.shape[1] + c;
        if constexpr (RULED) {
            Vector<T> mass = side ? mass1 : mass0, need = load(path.below + c), lowest = spread(path.limits->lowest[0]);
            leaf = mass >= need ? leaf : lowest;
            two = mass >= need ? two : lowest;
        }
        store(scores.one_leaf.data + place, leaf);
        store(scores.two_leaves.data + place, two);
    }
};

// A vector of a table of masses, and the least masses below b and the lanes from c on: only under rules.
template <bool RULED, class T>
inline Vector<T> mass_at(const T* table, i64 offset) {
    if constexpr (RULED) return load(table + offset);
    return Vector<T>{};
}

template <bool RULED, class T>
inline Vector<T> need_at(const PathLimits<T>& path, i64 b, i64 c) {
    if constexpr (RULED) {
        const i64 F = path.limits->rows.shape[0];
        return load(path.limits->blocked.data + column_start<T>(0, 0, c, 0, F) + b * BLOCK<T>);
    }
    return Vector<T>{};
}

// ---------------------------------------------------------------- one signed table

// A set with differences `single` (P,) and its sides under a vector of features c: extremes over all splits b.
template <bool RULED, class T>
struct SignedSides {
    const T *single, *total;  // with rules, masses come after them
    Allowed<RULED, T> allowed;
    Vector<T> most0 = {}, least0 = {}, most1 = {}, least1 = {};

    SignedSides(const PathLimits<T>& path, const T* single_, const T* total_, i64 width, i64 c)
        : single(single_), total(total_), allowed(path, single_ + width, total_ + 1, c) {}

    void add(i64 b, Vector<T> x, Vector<T> mass, Vector<T> need) {
        Vector<T> z = spread(single[b]) - x;
        allowed.keep(b, mass, need, z, x);
        most1 = most(most1, x);
        least1 = least(least1, x);
        most0 = most(most0, z);
        least0 = least(least0, z);
    }

    void write(const Scores<T>& scores, i64 row) const {
        Vector<T> d1 = load(single + allowed.c), d0 = spread(*total) - d1;
        allowed.write(most(d0, -d0), best_split(d0, most0, least0), 0, scores, row);
        allowed.write(most(d1, -d1), best_split(d1, most1, least1), 1, scores, row);
    }
};

template <bool RULED, class T>
void pass_signed(
    const Counts<T>& counts, const Scores<T>& scores, i64 first_lane, i64 base, i64 row, const PathLimits<T>& path) {
    const i64 F = counts.table.shape[2], width = scores.one_leaf.shape[1], height = counts.table.shape[1] * BLOCK<T>;
    for (i64 c = first_lane; c < base + height; c += LANES<T>) {
        const T* column = counts.table.data + column_start<T>(0, height, c, base, F);
        SignedSides<RULED, T> set(path, counts.single.data, counts.totals.data, width, c);
        for (i64 b = 0; b < (set.allowed.splits ? F : 0); b++) {
            if (RULED && !path.usable[b]) continue;
            const T* place = column + b * BLOCK<T>;
            set.add(b, load(place), mass_at<RULED>(place, height * F), need_at<RULED>(path, b, c));
        }
        set.write(scores, row);
    }
}

// Tables of a pair of features (f, g): of all samples, of f = 1, of g = 1, of f = g = 1, and their sums by side.
template <class T>
struct PairTables {
    const Array<T>&all, &with_f, &with_g, &both;
    const T* singles;  // (4, channels, P), sides numbered 2 f + g
    const T* totals;  // (4, channels)

    // Counts at one place of the tables of g = 1 and of g = 0, on one side of f.
    void sides_of_g(i64 f, i64 place, Vector<T>& with, Vector<T>& without) const {
        Vector<T> together = load(both.data + place), in_f = load(with_f.data + place);
        if (f) {
            with = together;
            without = in_f - together;
        } else {
            with = load(with_g.data + place) - together;
            without = load(all.data + place) - in_f - with;
        }
    }
};

// The four sets of a pair at once; result rows are numbered 4 f + 2 g + c.
template <bool RULED, class T>
void pass_signed_pair(const PairTables<T>& pair, const Scores<T>& scores, i64 first_lane, const PathLimits<T>& path) {
    const i64 F = pair.both.shape[2], width = scores.one_leaf.shape[1], channels = 1 + RULED;
    for (i64 c = first_lane; c < width; c += LANES<T>)
        // The sides of f one after the other: eight running extremes stay in sixteen registers.
        for (i64 f = 0; f < 2; f++) {
            const T *single = pair.singles + 2 * f * channels * width, *total = pair.totals + 2 * f * channels;
            SignedSides<RULED, T> low(path, single, total, width, c);
            SignedSides<RULED, T> high(path, single + channels * width, total + channels, width, c);
            // Sides that are too light to split are cheap.
            for (i64 b = 0; b < (low.allowed.splits || high.allowed.splits ? F : 0); b++) {
                if (RULED && !path.usable[b]) continue;
                i64 place = column_start<T>(0, 0, c, 0, F) + b * BLOCK<T>;
                Vector<T> with, without, mass_with = {}, mass_without = {}, need = need_at<RULED>(path, b, c);
                pair.sides_of_g(f, place, with, without);
                if constexpr (RULED) pair.sides_of_g(f, place + width * F, mass_with, mass_without);
                low.add(b, without, mass_without, need);
                high.add(b, with, mass_with, need);
            }
            low.write(scores, 4 * f);
            high.write(scores, 4 * f + 2);
        }
}

// ---------------------------------------------------------------- a table per class

template <bool RULED, class T>
void pass_classes(
    const Counts<T>& counts, const Scores<T>& scores, i64 first_lane, i64 base, i64 row, const PathLimits<T>& path) {
    const i64 classes = counts.table.shape[0] - RULED, F = counts.table.shape[2], width = scores.one_leaf.shape[1];
    const i64 height = counts.table.shape[1] * BLOCK<T>;
    const T *single = counts.single.data, *totals = counts.totals.data;
    for (i64 c = first_lane; c < base + height; c += LANES<T>) {
        Vector<T> leaf1 = {}, leaf0 = {};
        for (i64 k = 0; k < classes; k++) {
            Vector<T> at_c = load(single + k * width + c);
            leaf1 = most(leaf1, at_c);
            leaf0 = most(leaf0, spread(totals[k]) - at_c);
        }
        Allowed<RULED, T> allowed(path, single + classes * width, totals + classes, c);
        Vector<T> best1 = leaf1, best0 = leaf0;
        for (i64 b = 0; b < (allowed.splits ? F : 0); b++) {
            if (RULED && !path.usable[b]) continue;
            Vector<T> best[4] = {};
            for (i64 k = 0; k < classes; k++) {
                Vector<T> x = load(counts.table.data + column_start<T>(k, height, c, base, F) + b * BLOCK<T>);
                Vector<T> at_c = load(single + k * width + c), at_b = spread(single[k * width + b]);
                Quarters<Vector<T>> four = quarters(spread(totals[k]), at_c, at_b, x);
                for (i64 side = 0; side < 4; side++) best[side] = most(best[side], four.part[side]);
            }
            Vector<T> two1 = best[3] + best[2], two0 = best[1] + best[0];
            const i64 masses = column_start<T>(classes, height, c, base, F) + b * BLOCK<T>;
            allowed.keep(b, mass_at<RULED>(counts.table.data, masses), need_at<RULED>(path, b, c), two0, two1);
            best1 = most(best1, two1);
            best0 = most(best0, two0);
        }
        allowed.write(leaf0, best0, 0, scores, row);
        allowed.write(leaf1, best1, 1, scores, row);
    }
}

// ---------------------------------------------------------------- both

// One set: rows `row` (side 0) and `row + 1` (side 1) of the scores, for the lanes from `base` on in the table.
template <class T>
void pass_set(
    const Counts<T>& counts, const Scores<T>& scores, i64 first_lane, i64 base, i64 row, bool is_signed,
    const PathLimits<T>& path) {
    auto* pass = is_signed ? (path.limits ? pass_signed<true, T> : pass_signed<false, T>)
                           : (path.limits ? pass_classes<true, T> : pass_classes<false, T>);
    pass(counts, scores, first_lane, base, row, path);
}

// Scores with two, three and four leaves of a vector of sets, from those of the sides of a split.
template <class T>
struct Folded {
    Vector<T> two, three, four;

    Folded(const Scores<T>& scores, i64 side0, i64 side1, i64 c) {
        const i64 width = scores.one_leaf.shape[1];
        Vector<T> leaf0 = load(scores.one_leaf.data + side0 * width + c);
        Vector<T> leaf1 = load(scores.one_leaf.data + side1 * width + c);
        Vector<T> two0 = load(scores.two_leaves.data + side0 * width + c);
        Vector<T> two1 = load(scores.two_leaves.data + side1 * width + c);
        two = leaf0 + leaf1;
        three = most(two0 + leaf1, leaf0 + two1);
        four = two0 + two1;
    }
};

// Raise, lane by lane, the best scores with two, three and four leaves at best[0], best[width], ... by one split.
template <class T>
void fold(const Scores<T>& scores, i64 side0, i64 side1, T* best, i64 first_lane) {
    const i64 width = scores.one_leaf.shape[1];
    for (i64 c = first_lane; c < width; c += LANES<T>) {
        Folded<T> here(scores, side0, side1, c);
        T *two = best + c, *three = two + width, *four = three + width;
        store(two, most(load(two), here.two));
        store(three, most(load(three), here.three));
        store(four, most(load(four), here.four));
    }
}

// The same with the maximum over all lanes, for one set: best[0], best[width] and best[2 * width].
template <class T>
void fold_over_lanes(const Scores<T>& scores, i64 side0, i64 side1, T* best, i64 first_lane) {
    const i64 width = scores.one_leaf.shape[1];
    Vector<T> two = {}, three = {}, four = {};
    for (i64 c = first_lane; c < width; c += LANES<T>) {
        Folded<T> here(scores, side0, side1, c);
        two = most(two, here.two);
        three = most(three, here.three);
        four = most(four, here.four);
    }
    for (i64 lane = 0; lane < LANES<T>; lane++) {
        best[0] = max_of(best[0], T(two[lane]));
        best[width] = max_of(best[width], T(three[lane]));
        best[2 * width] = max_of(best[2 * width], T(four[lane]));
    }
}
