// Best priced values of sets of a tally: trees of depth at most two below every pair of columns, or below every column.
//
// Sums come by sets of columns, in the order of accel_oct/data/column_sets.py. Their channels are what every class but
// the first earns more than the first, and, last, a mass where leaves must have one. So a leaf is worth the largest
// channel, or nothing, and values are those above what the first class would earn everywhere.
#pragma once

#include "base.hpp"

// Sums of the samples that have all columns of a set, by size of the sets, and what leaves cost and need.
struct CellSums {
    Array<double> none;  // (1, M)
    Array<double> one;  // (F, M)
    Array<double> two, three, four;  // (number of sets, M); empty where trees are too shallow for them
    Array<i64> choose;  // (F + 1, 5) binomial coefficients
    Array<uint8_t> apart;  // (F, F)
    i64 n_rewards;  // channels before the mass
    double leaf_price;
    double least;  // mass that a leaf must have, minus infinity where none is needed
};

// Sums of one set over pairs of columns, columns, and all.
struct CellSet {
    double *both, *single, *totals;  // (C, C, M), (C, M), (M,)
};

inline double cell_leaf(const double* sums, i64 channels, const CellSums& cells) {
    if (channels > cells.n_rewards && sums[cells.n_rewards] < cells.least) return -INFINITE;
    double best = 0.0;
    for (i64 m = 0; m < cells.n_rewards; m++) best = max_of(best, sums[m]);
    return best - cells.leaf_price;
}

// The best value of a set with a tree of depth at most `height`, one or two, and `sides` (C, 2), those of the sides of
// columns. `quarter` (4, M) is room, `stride` the number of columns that the arrays of the set have room for.
inline double best_two(
    const CellSet& set, i64 stride, const i64* columns, i64 n_columns, i64 height, const CellSums& cells, i64 M,
    double* quarter, double* sides) {
    for (i64 c = 0; c < n_columns; c++) {
        for (i64 m = 0; m < M; m++) quarter[m] = set.totals[m] - set.single[c * M + m];
        sides[2 * c] = cell_leaf(quarter, M, cells);
        sides[2 * c + 1] = cell_leaf(set.single + c * M, M, cells);
    }
    for (i64 c = 0; c < (height > 1 ? n_columns : 0); c++)
        for (i64 d = c + 1; d < n_columns; d++) {
            if (cells.apart(columns[c], columns[d])) continue;
            for (i64 m = 0; m < M; m++) {
                double x = set.both[(c * stride + d) * M + m], at_c = set.single[c * M + m], at_d = set.single[d * M + m];
                quarter[3 * M + m] = x;
                quarter[2 * M + m] = at_c - x;
                quarter[M + m] = at_d - x;
                quarter[m] = set.totals[m] - at_c - at_d + x;
            }
            double leaf[4];
            for (i64 t = 0; t < 4; t++) leaf[t] = cell_leaf(quarter + t * M, M, cells);
            sides[2 * c] = max_of(sides[2 * c], leaf[0] + leaf[1]);
            sides[2 * c + 1] = max_of(sides[2 * c + 1], leaf[2] + leaf[3]);
            sides[2 * d] = max_of(sides[2 * d], leaf[0] + leaf[2]);
            sides[2 * d + 1] = max_of(sides[2 * d + 1], leaf[1] + leaf[3]);
        }
    double best = cell_leaf(set.totals, M, cells);
    for (i64 c = 0; c < n_columns; c++) best = max_of(best, sides[2 * c] + sides[2 * c + 1]);
    return best;
}

inline i64 place2(const Array<i64>& choose, i64 c, i64 d) {
    return c < d ? choose(c, 1) + choose(d, 2) : choose(d, 1) + choose(c, 2);
}

// Of columns c < d and another one.
inline i64 place3(const Array<i64>& choose, i64 a, i64 c, i64 d) {
    if (a < c) return choose(a, 1) + choose(c, 2) + choose(d, 3);
    if (a < d) return choose(c, 1) + choose(a, 2) + choose(d, 3);
    return choose(c, 1) + choose(d, 2) + choose(a, 3);
}

// Of columns a < b and c < d.
inline i64 place4(const Array<i64>& choose, i64 a, i64 b, i64 c, i64 d) {
    return choose(c, 1 + (a < c) + (b < c)) + choose(d, 2 + (a < d) + (b < d)) + choose(a, 1 + (c < a) + (d < a)) +
           choose(b, 2 + (c < b) + (d < b));
}

// Sums of the sets without and with column a.
inline void fill_one(i64 a, const i64* columns, i64 n_columns, i64 stride, const CellSums& cells, i64 M, CellSet* sets) {
    const Array<i64>& choose = cells.choose;
    for (i64 m = 0; m < M; m++) {
        sets[1].totals[m] = cells.one(a, m);
        sets[0].totals[m] = cells.none(0, m) - cells.one(a, m);
    }
    for (i64 i = 0; i < n_columns; i++) {
        i64 c = columns[i], place = place2(choose, a, c);
        for (i64 m = 0; m < M; m++) {
            sets[1].single[i * M + m] = cells.two(place, m);
            sets[0].single[i * M + m] = cells.one(c, m) - cells.two(place, m);
        }
        for (i64 j = i + 1; j < n_columns; j++) {
            i64 d = columns[j], triple = place3(choose, a, c, d), outer = place2(choose, c, d);
            for (i64 m = 0; m < M; m++) {
                sets[1].both[(i * stride + j) * M + m] = cells.three(triple, m);
                sets[0].both[(i * stride + j) * M + m] = cells.two(outer, m) - cells.three(triple, m);
            }
        }
    }
}

// Sums of the four sets of columns a < b: neither, b, a, both.
inline void fill_two(
    i64 a, i64 b, const i64* columns, i64 n_columns, i64 stride, const CellSums& cells, i64 M, CellSet* sets) {
    const Array<i64>& choose = cells.choose;
    i64 own = place2(choose, a, b);
    for (i64 m = 0; m < M; m++) {
        double x = cells.two(own, m), at_a = cells.one(a, m), at_b = cells.one(b, m);
        sets[3].totals[m] = x;
        sets[2].totals[m] = at_a - x;
        sets[1].totals[m] = at_b - x;
        sets[0].totals[m] = cells.none(0, m) - at_a - at_b + x;
    }
    for (i64 i = 0; i < n_columns; i++) {
        i64 c = columns[i], low = place2(choose, a, c), high = place2(choose, b, c), place = place3(choose, c, a, b);
        for (i64 m = 0; m < M; m++) {
            double x = cells.three(place, m), at_a = cells.two(low, m), at_b = cells.two(high, m);
            sets[3].single[i * M + m] = x;
            sets[2].single[i * M + m] = at_a - x;
            sets[1].single[i * M + m] = at_b - x;
            sets[0].single[i * M + m] = cells.one(c, m) - at_a - at_b + x;
        }
        for (i64 j = i + 1; j < n_columns; j++) {
            i64 d = columns[j], all = place4(choose, a, b, c, d), outer = place2(choose, c, d);
            i64 with_a = place3(choose, a, c, d), with_b = place3(choose, b, c, d), at = (i * stride + j) * M;
            for (i64 m = 0; m < M; m++) {
                double x = cells.four(all, m), at_a = cells.three(with_a, m), at_b = cells.three(with_b, m);
                sets[3].both[at + m] = x;
                sets[2].both[at + m] = at_a - x;
                sets[1].both[at + m] = at_b - x;
                sets[0].both[at + m] = cells.two(outer, m) - at_a - at_b + x;
            }
        }
    }
}

// Best values below column a, or of all samples where it is negative.
//
// `height` is that of trees on all samples. Writes `result` (C, 2, 2): with a height of four, by another column from the
// one at place `begin` on, trees of depth two on the set with a side of a and a side of the other; with a height of
// three, in (0, side, 0), those of a side of a; with less, in (c, 0, side), both sides of every column. Minus infinity
// elsewhere. False without memory, or when stopped.
inline bool cell_values(
    i64 a, const Array<i64>& columns, i64 height, i64 begin, const CellSums& cells, Arena& arena,
    const Array<double>& result, Poll& poll) {
    const i64 C = columns.shape[0], M = cells.none.shape[1], n_sets = a < 0 ? 1 : height == 4 ? 4 : 2;
    CellSet sets[4];
    i64* others = arena.array<i64>(C);
    double *sides = arena.array<double>(2 * C), *quarter = arena.array<double>(4 * M);
    if (!others || !sides || !quarter) return false;
    for (i64 t = 0; t < n_sets; t++) {
        sets[t] = {arena.array<double>(C * C * M), arena.array<double>(C * M), arena.array<double>(M)};
        if (!sets[t].both || !sets[t].single || !sets[t].totals) return false;
    }
    for (i64 i = 0; i < 4 * C; i++) result[i] = -INFINITE;
    if (a < 0) {
        for (i64 m = 0; m < M; m++) sets[0].totals[m] = cells.none(0, m);
        for (i64 i = 0; i < C; i++) {
            for (i64 m = 0; m < M; m++) sets[0].single[i * M + m] = cells.one(columns[i], m);
            for (i64 j = i + 1; j < (height > 1 ? C : 0); j++) {
                i64 place = place2(cells.choose, columns[i], columns[j]);
                for (i64 m = 0; m < M; m++) sets[0].both[(i * C + j) * M + m] = cells.two(place, m);
            }
        }
        best_two(sets[0], C, columns.data, C, height, cells, M, quarter, sides);
        for (i64 c = 0; c < C; c++) {
            result(c, 0, 0) = sides[2 * c];
            result(c, 0, 1) = sides[2 * c + 1];
        }
        return true;
    }
    // Columns that may stand below two.
    auto below = [&](i64 b) {
        i64 found = 0;
        for (i64 i = 0; i < C; i++) {
            i64 c = columns[i];
            if (c != a && c != b && !cells.apart(a, c) && !cells.apart(b, c)) others[found++] = c;
        }
        return found;
    };
    if (height == 3) {
        i64 n_others = below(a);
        fill_one(a, others, n_others, C, cells, M, sets);
        for (i64 side = 0; side < 2; side++)
            result(0, side, 0) = best_two(sets[side], C, others, n_others, 2, cells, M, quarter, sides);
        return true;
    }
    for (i64 p = begin; p < C; p++) {
        i64 b = columns[p];
        if (b == a || cells.apart(a, b)) continue;
        i64 n_others = below(b);
        if (poll(16 * M * n_others * n_others)) return false;
        fill_two(min_of(a, b), max_of(a, b), others, n_others, C, cells, M, sets);
        for (i64 t = 0; t < 4; t++) {
            double best = best_two(sets[t], C, others, n_others, 2, cells, M, quarter, sides);
            if (a < b)
                result(p, t >> 1, t & 1) = best;
            else
                result(p, t & 1, t >> 1) = best;
        }
    }
    return true;
}
