// Levels of the profile computation: all pairs, all triples, all quadruples of features; and the depth-two subroutine.
//
// Level two gives the best scores of depth two on all samples, level three those of depth two on every side of every
// feature, level four on every side of every pair of features. The set reached by several splits does not depend on
// their order, so level four visits unordered triples (f < g < c) and serves all three pairs inside it: the number of
// visits is F**3 / 6, each a pass over all fourth features b.
//
// Counts follow by inclusion and exclusion: only samples with f = g = 1 are counted for a pair (f, g), and every other
// sign pattern follows from the tables of f, of g and of all samples.
#pragma once

#include "base.hpp"
#include "counts.hpp"
#include "passes.hpp"

// A set of samples that can be counted: rows, or a tally in which counts are looked up.
template <class T>
struct Samples {
    Array<i64> members;  // entries of the set
    const Entries* entries;  // null for a tally
    const Sets<T>* sets;  // null for rows
};

// What one thread writes to on levels three and four.
template <class T>
struct Work {
    Words words;
    Array<i64> chosen;  // (features that share a sweep, E + 1) entries that have one feature
    Array<i64> chosen2;  // (E + 1,) entries that have two
    Array<T> table;  // of a set that is counted
    Array<T> rest;  // of a set that follows by subtraction
    Array<T> singles;  // (4, channels, P) counts of features, by side of the pair
    Array<T> sums;  // (4, channels) counts of all, by side of the pair
    Scores<T> scores;  // of eight sides
    Array<T> below;  // (P,) under local rules, see PathLimits
    Array<uint8_t> usable;  // (F,)
};

template <class T>
inline PathLimits<T> path_of(const Limits<T>* limits, i64 f, i64 g, const Work<T>& work) {
    if (limits) path_limits(*limits, f, g, work.below.data, work.usable.data);
    return PathLimits<T>{limits, work.below.data, work.usable.data};
}

// result = whole - part, from a lane on.
template <class T>
void subtract(const Array<T>& whole, const Array<T>& part, const Array<T>& result, i64 first_lane) {
    const i64 blocks = result.shape[1], block = result.shape[2] * BLOCK<T>, first = first_lane / BLOCK<T>;
    for (i64 k = 0; k < result.shape[0]; k++) {
        i64 place = (k * blocks + first) * block;
        subtract(whole.data + place, part.data + place, result.data + place, (blocks - first) * block);
    }
}

// The scores of a set whose counts of features and of all are those of a side of the work.
template <class T>
void pass_side(
    const Array<T>& table, i64 side, bool is_signed, const Work<T>& work, i64 first_lane, const PathLimits<T>& path) {
    const i64 channels = table.shape[0], width = work.scores.one_leaf.shape[1];
    Counts<T> counts = {
        table,
        {work.singles.data + side * channels * width, {channels, width}},
        {work.sums.data + side * channels, {channels}},
    };
    pass_set(counts, work.scores, first_lane, 0, 2 * side, is_signed, path);
}

// Sets of one feature f and both its values; `with_f` receives the table of f = 1. Where that is the work's own table
// nobody needs the lanes before f.
//
// `best` (2, 3, P): best scores of depth two with two to four leaves by side and feature. False when stopped.
template <class T>
bool level_three(
    i64 f, bool is_signed, const Samples<T>& samples, const Counts<T>& whole, const Array<T>& with_f,
    const Work<T>& work, const Array<T>& best, const Limits<T>* limits, Poll& poll) {
    const i64 channels = whole.table.shape[0], width = whole.table.shape[1] * BLOCK<T>;
    // Lanes before f were served when their own turn as f came.
    const i64 first_lane = f / BLOCK<T> * BLOCK<T>;
    const i64 from = with_f.data == work.table.data ? first_lane : 0;
    bool ones = true;  // whether the samples with f = 1 are counted: the smaller side is
    if (samples.sets)
        look_up(*samples.sets, f, f, with_f, from);
    else {
        const i64 *members = samples.members.data, n_members = samples.members.shape[0];
        i64 size = select(members, n_members, samples.entries->rows, f, 1, work.chosen.data);
        ones = 2 * size <= n_members;
        if (!ones) size = select(members, n_members, samples.entries->rows, f, 0, work.chosen.data);
        const Array<T>& counted = ones ? with_f : work.rest;
        if (!PairCounter<T>::count(work.chosen.data, size, *samples.entries, work.words, counted, from, 0, poll))
            return false;
    }
    subtract(whole.table, ones ? with_f : work.rest, ones ? work.rest : with_f, from);
    T *singles = work.singles.data, *sums = work.sums.data;
    for (i64 k = 0; k < channels; k++) {
        sums[channels + k] = whole.single(k, f);
        sums[k] = T(whole.totals[k] - whole.single(k, f));
        for (i64 c = 0; c < width; c++) {
            T with = at(whole.table, k, f, c);
            singles[(channels + k) * width + c] = with;
            singles[k * width + c] = T(whole.single(k, c) - with);
        }
    }
    PathLimits<T> path = path_of(limits, f, f, work);
    for (i64 side = 0; side < 2; side++)
        pass_side(side ? with_f : work.rest, side, is_signed, work, first_lane, path);
    for (i64 side = 0; side < 2; side++) {
        fold(work.scores, side, 2 + side, best.data + side * 3 * width, first_lane);
        fold_over_lanes(work.scores, 2 * side, 2 * side + 1, best.data + side * 3 * width + f, first_lane);
    }
    return true;
}

// Counts of the four sides of a pair: their totals and, for every feature c, the part with c = 1.
template <class T>
void count_sides(i64 f, i64 g, const Counts<T>& whole, const T* with_f, const Work<T>& work) {
    const i64 channels = whole.table.shape[0], blocks = whole.table.shape[1], F = whole.table.shape[2];
    const i64 width = blocks * BLOCK<T>;
    T *singles = work.singles.data, *sums = work.sums.data;
    for (i64 k = 0; k < channels; k++) {
        Quarters<T> sum = quarters(whole.totals[k], whole.single(k, f), whole.single(k, g), at(whole.table, k, f, g));
        for (i64 side = 0; side < 4; side++) sums[side * channels + k] = sum.part[side];
        for (i64 block = 0; block < blocks; block++) {
            i64 start = (k * blocks + block) * F * BLOCK<T>, c = block * BLOCK<T>;
            for (i64 lane = 0; lane < BLOCK<T>; lane += LANES<T>) {
                Vector<T> together = load(with_f + start + g * BLOCK<T> + lane);
                Vector<T> in_f = load(whole.table.data + start + f * BLOCK<T> + lane);
                Vector<T> in_g = load(whole.table.data + start + g * BLOCK<T> + lane);
                Vector<T> all = load(whole.single.data + k * width + c + lane);
                Quarters<Vector<T>> four = quarters(all, in_f, in_g, together);
                for (i64 side = 0; side < 4; side++)
                    store(singles + (side * channels + k) * width + c + lane, four.part[side]);
            }
        }
    }
}

// The four sets of a pair with a table per class; overwrites the table of f = g = 1.
template <class T>
void pass_classes_pair(
    const Array<T>& all, const Array<T>& with_f, const Array<T>& with_g, const Work<T>& work, i64 first_lane,
    const PathLimits<T>& path) {
    pass_side(work.table, 3, false, work, first_lane, path);
    subtract(with_f, work.table, work.rest, first_lane);
    pass_side(work.rest, 2, false, work, first_lane, path);
    subtract(with_g, work.table, work.rest, first_lane);
    pass_side(work.rest, 1, false, work, first_lane, path);
    subtract(all, with_f, work.table, first_lane);
    subtract(work.table, work.rest, work.rest, first_lane);
    pass_side(work.rest, 0, false, work, first_lane, path);
}

// Sets of all pairs (f, g) that are `wanted`, with f < g and f among `count` features from `first` on.
//
// `tables` (F, channels, blocks, F, L) holds the level-three tables. `best` (F, 4, 3, P): best scores of depth two with
// two to four leaves for the pair (row, lane), by sign pattern 2 * side of the row + side of the lane. The third feature
// runs over c > g and serves all three pairs. Several f share a sweep over g because the table of g has to come from far
// away. False when stopped; `best` is then a lower bound.
template <class T>
bool level_four(
    i64 first, i64 count, bool is_signed, const Array<uint8_t>& wanted, const Samples<T>& samples,
    const Counts<T>& whole, const Array<T>& tables, const Work<T>& work, const Array<T>& best, const Limits<T>* limits,
    Poll& poll) {
    const i64 F = whole.table.shape[2], width = whole.table.shape[1] * BLOCK<T>;
    const i64 size = whole.table.shape[0] * width * F, room = work.chosen.shape[1];
    const i64 SWEEP = 16;
    i64 sizes[SWEEP];
    for (i64 j = 0; j < count; j++)
        sizes[j] = samples.sets ? 0
                                : select(samples.members.data, samples.members.shape[0], samples.entries->rows, first + j,
                                         1, work.chosen.data + j * room);
    auto table_of = [&](i64 f) {
        Array<T> table = whole.table;
        table.data = tables.data + f * size;
        return table;
    };
    for (i64 g = first + 1; g < F; g++) {
        const i64 first_lane = g / BLOCK<T> * BLOCK<T>;
        for (i64 f = first; f < min_of(g, first + count); f++) {
            if (!wanted(f, g)) continue;
            if (poll(4 * size / LANES<T>)) return false;
            if (samples.sets)
                look_up(*samples.sets, f, g, work.table, first_lane);
            else {
                const i64* with_f = work.chosen.data + (f - first) * room;
                i64 both = select(with_f, sizes[f - first], samples.entries->rows, g, 1, work.chosen2.data);
                if (!PairCounter<T>::count(
                        work.chosen2.data, both, *samples.entries, work.words, work.table, first_lane, 0, poll))
                    return false;
            }
            const Array<T> with_f = table_of(f), with_g = table_of(g);
            count_sides(f, g, whole, with_f.data, work);
            PathLimits<T> path = path_of(limits, f, g, work);
            if (!is_signed)
                pass_classes_pair(whole.table, with_f, with_g, work, first_lane, path);
            else {
                PairTables<T> pair = {whole.table, with_f, with_g, work.table, work.singles.data, work.sums.data};
                auto* pass = limits ? pass_signed_pair<true, T> : pass_signed_pair<false, T>;
                pass(pair, work.scores, first_lane, path);
            }
            // Raise the scores of the pair (f, g) over all c, and of (f, c) and (g, c) lane by lane.
            for (i64 side = 0; side < 4; side++) {
                T* of_f = best.data + (f * 4 + side) * 3 * width;
                fold_over_lanes(work.scores, 2 * side, 2 * side + 1, of_f + g, first_lane);
                i64 high = side >> 1, low = side & 1;
                fold(work.scores, 4 * high + low, 4 * high + 2 + low, of_f, first_lane);
                T* of_g = best.data + (g * 4 + side) * 3 * width;
                fold(work.scores, 2 * high + low, 4 + 2 * high + low, of_g, first_lane);
            }
        }
    }
    return true;
}

// ---------------------------------------------------------------- the first best tree of depth two

// Buffers of the depth-two subroutine, made once for many sets of samples.
template <class T>
struct DepthTwo {
    Array<i64> by_row;  // (rows, bits) entry of a row for each bit of its weight, -1 where there is none
    Array<double> amounts;  // (E,) signed weights
    Array<i64> members;  // (E + 1,) entries of a set, and one place to write to
    Array<double> sums;  // (3, channels) room
    Entries entries;
    Words words;
    Counts<T> counts;
    Scores<T> scores;
};

// The chosen tree: heap order, -1 where a node is not a branch or not a leaf.
struct FirstTree {
    double value, score, scores[4];
    i64 feature[7], label[7];
};

inline i64 label_of(const double* sums, i64 channels, bool is_signed) {
    return is_signed ? sums[0] > 0 : first_best(sums, channels);
}

// Entries of the samples, grouped by channel and bit, and their totals; returns how many, and adds up their weight. -1
// where there are more than there is room for: some sample was given twice.
template <class T>
i64 list_entries(const Array<i64>& samples, const DepthTwo<T>& setup, double& weight) {
    i64 size = 0;
    for (i64 k = 0; k < setup.counts.totals.shape[0]; k++) {
        i64 first = size;
        for (i64 bit = 0; bit < setup.by_row.shape[1]; bit++)
            for (i64 position = 0; position < samples.shape[0]; position++) {
                i64 entry = setup.by_row(samples[position], bit);
                if (size > setup.amounts.shape[0]) return -1;
                setup.members[size] = entry;
                size += entry >= 0 && setup.entries.channel[max_of(entry, i64(0))] == k;
            }
        if (size > setup.amounts.shape[0]) return -1;
        double total = 0.0;
        for (i64 position = first; position < size; position++) {
            total += setup.amounts[setup.members[position]];
            weight += absolute(setup.amounts[setup.members[position]]);
        }
        setup.counts.totals[k] = T(total);
    }
    return size;
}

// Write one child of the root: a leaf where that is as good, else its first best split; returns its leaves.
template <class T>
i64 place_child(
    const DepthTwo<T>& setup, const Array<T>& two_leaves, i64 root, i64 side, double price, bool is_signed,
    FirstTree& tree) {
    const Counts<T>& counts = setup.counts;
    const i64 channels = counts.table.shape[0], F = counts.table.shape[2];
    const i64 node = 1 + side;
    double *here = setup.sums.data, *ones = here + channels, *zeros = ones + channels;
    for (i64 k = 0; k < channels; k++) {
        double at_root = double(counts.single(k, root));
        here[k] = side ? at_root : double(counts.totals[k]) - at_root;
    }
    double goal = double(two_leaves(side, root));
    if (double(setup.scores.one_leaf(side, root)) - price >= goal - 2 * price) {
        tree.label[node] = label_of(here, channels, is_signed);
        return 1;
    }
    for (i64 b = 0; b < F; b++) {
        for (i64 k = 0; k < channels; k++) {
            double x = double(at(counts.table, k, b, root));
            ones[k] = side ? x : double(counts.single(k, b)) - x;
            zeros[k] = here[k] - ones[k];
        }
        if (leaf_score(ones, channels, is_signed) + leaf_score(zeros, channels, is_signed) == goal) {
            tree.feature[node] = b;
            tree.label[2 * node + 1] = label_of(zeros, channels, is_signed);
            tree.label[2 * node + 2] = label_of(ones, channels, is_signed);
            break;
        }
    }
    return 2;
}

// The first of the best trees of depth at most `max_depth` on some samples, in the order of accel_oct/exact/d2s.py.
//
// Features are walked in their original order, so the first of equally good trees is met first. False when stopped, or
// where a sample was given twice and there is no room for it.
template <class T>
bool first_tree(
    const Array<i64>& samples, const DepthTwo<T>& setup, bool is_signed, double leaf_price, i64 max_depth,
    FirstTree& tree, Poll& poll) {
    const Counts<T>& counts = setup.counts;
    const i64 channels = counts.table.shape[0], F = counts.table.shape[2];
    for (i64 node = 0; node < 7; node++) tree.feature[node] = tree.label[node] = -1;
    double weight = 0.0;
    i64 size = list_entries(samples, setup, weight);
    if (size < 0) return false;
    if (!PairCounter<T>::count(setup.members.data, size, setup.entries, setup.words, counts.table, 0, 0, poll))
        return false;
    for (i64 k = 0; k < channels; k++)
        for (i64 b = 0; b < F; b++) counts.single(k, b) = at(counts.table, k, b, b);
    pass_set(counts, setup.scores, 0, 0, 0, is_signed, PathLimits<T>{nullptr, nullptr, nullptr});
    // A tree of depth one has no second split, so two leaves are worth no more than one.
    const Array<T>&one = setup.scores.one_leaf, &two = max_depth == 2 ? setup.scores.two_leaves : one;
    const double price = is_signed ? 2.0 * leaf_price : leaf_price;
    double* here = setup.sums.data;
    for (i64 k = 0; k < channels; k++) here[k] = double(counts.totals[k]);
    double cs[4], best = -INFINITE;
    cs[0] = cs[1] = cs[2] = cs[3] = leaf_score(here, channels, is_signed);
    i64 root = -1;
    for (i64 c = 0; c < (max_depth > 0 ? F : 0); c++) {
        double zero1 = double(one(0, c)), one1 = double(one(1, c)), zero2 = double(two(0, c)), one2 = double(two(1, c));
        cs[1] = max_of(cs[1], zero1 + one1);
        cs[2] = max_of(cs[2], max_of(zero1 + one2, zero2 + one1));
        cs[3] = max_of(cs[3], zero2 + one2);
        double value = max_of(zero1 - price, zero2 - 2 * price) + max_of(one1 - price, one2 - 2 * price);
        if (value > best) {
            best = value;
            root = c;
        }
    }
    cs[2] = max_of(cs[1], cs[2]);
    cs[3] = max_of(cs[2], cs[3]);
    bool is_leaf = root < 0 || cs[0] - price >= best;
    if (is_leaf) tree.label[0] = label_of(here, channels, is_signed);
    for (i64 h = 0; h < 4; h++) tree.scores[h] = is_signed ? (weight + cs[h]) / 2 : cs[h];
    if (is_leaf) {
        tree.score = tree.scores[0];
        tree.value = tree.score - leaf_price;
        return true;
    }
    tree.feature[0] = root;
    i64 leaves = 0;
    for (i64 side = 0; side < 2; side++) leaves += place_child(setup, two, root, side, price, is_signed, tree);
    tree.value = is_signed ? (weight + best) / 2 : best;
    tree.score = tree.value + double(leaves) * leaf_price;
    return true;
}
