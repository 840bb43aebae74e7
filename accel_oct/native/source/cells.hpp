// Best priced values of sets of a tally: trees of depth at most two below every pair of columns, or below every column.
//
// Sums come by sets of columns, in the order of accel_oct/data/column_sets.py. Their channels are what every class but
// the first earns more than the first, and, last, a mass where leaves must have one. So a leaf is worth the largest
// channel, or nothing, and values are those above what the first class would earn everywhere.
#pragma once

#include "set_sums.hpp"

// Sums of the samples that have all columns of a set, by size of the sets, and what leaves cost and need.
struct CellSums {
    Array<double> sums[5];  // (number of sets, M) by size of the sets; empty where trees are too shallow for them
    Array<i64> choose;  // (F + 1, 5) binomial coefficients
    Array<uint8_t> apart;  // (F, F)
    i64 n_rewards;  // channels before the mass
    double leaf_price;
    double least;  // mass that a leaf must have, minus infinity where none is needed

    i64 n_columns() const { return sums[1].shape[0]; }
    i64 channels() const { return sums[0].shape[1]; }

    // Sums (M,) of the samples that have all of some columns, each another one.
    template <class... Columns>
    const double* of(Columns... columns) const {
        constexpr i64 size = sizeof...(columns);
        const i64 set[size + 1] = {columns...};
        i64 place = 0;
        for (i64 i = 0; i < size; i++) {
            i64 rank = 1;
            for (i64 j = 0; j < size; j++) rank += set[j] < set[i];
            place += choose(set[i], rank);
        }
        return sums[size].data + place * channels();
    }
};

// Sums over the samples that have some columns, in the parts by a path of columns a and b (negative: not there).
//
// Parts are numbered 2 * (side of a) + (side of b), or by the side of a.
template <class... Columns>
inline void part_sums(const CellSums& cells, i64 a, i64 b, double* const* parts, Columns... columns) {
    const i64 M = cells.channels();
    const double* all = cells.of(columns...);
    if (a < 0) {
        for (i64 m = 0; m < M; m++) parts[0][m] = all[m];
        return;
    }
    const double* with_a = cells.of(a, columns...);
    if (b < 0) {
        for (i64 m = 0; m < M; m++) {
            parts[1][m] = with_a[m];
            parts[0][m] = all[m] - with_a[m];
        }
        return;
    }
    const double *with_b = cells.of(b, columns...), *both = cells.of(a, b, columns...);
    for (i64 m = 0; m < M; m++) {
        Quarters<double> four = quarters(all[m], with_a[m], with_b[m], both[m]);
        for (i64 t = 0; t < 4; t++) parts[t][m] = four.part[t];
    }
}

// Sums of the sets at the ends of a path; over pairs of columns where the height is two.
inline void fill_sets(
    const CellSums& cells, i64 a, i64 b, const i64* columns, i64 n_columns, i64 height, const SetSums* sets) {
    const i64 n_sets = a < 0 ? 1 : b < 0 ? 2 : 4, M = cells.channels();
    double* parts[4];
    for (i64 t = 0; t < n_sets; t++) parts[t] = sets[t].totals;
    part_sums(cells, a, b, parts);
    for (i64 i = 0; i < n_columns; i++) {
        for (i64 t = 0; t < n_sets; t++) parts[t] = sets[t].single + i * M;
        part_sums(cells, a, b, parts, columns[i]);
        for (i64 j = i + 1; j < (height > 1 ? n_columns : 0); j++) {
            for (i64 t = 0; t < n_sets; t++) parts[t] = sets[t].pair(i, j);
            part_sums(cells, a, b, parts, columns[i], columns[j]);
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
    const i64 C = columns.shape[0], M = cells.channels();
    const LeafValue leaf = {cells.n_rewards, M, 0.0, cells.leaf_price, cells.least};
    SetSums sets[4];
    i64* others = arena.array<i64>(C);
    double *sides = arena.array<double>(2 * C), *room = arena.array<double>(4 * M);
    if (!others || !sides || !room) return false;
    for (i64 t = 0; t < (a < 0 ? 1 : height == 4 ? 4 : 2); t++)
        if (!sets[t].take(arena, C, M)) return false;
    for (i64 i = 0; i < 4 * C; i++) result[i] = -INFINITE;
    if (a < 0) {
        fill_sets(cells, -1, -1, columns.data, C, height, sets);
        if (!best_two_sides(sets[0], columns.data, C, height, cells.apart, leaf, room, sides, poll)) return false;
        for (i64 c = 0; c < C; c++)
            for (i64 side = 0; side < 2; side++) result(c, 0, side) = sides[2 * c + side];
        return true;
    }
    for (i64 p = height == 4 ? begin : 0; p < (height == 4 ? C : 1); p++) {
        const i64 b = height == 4 ? columns[p] : -1;
        if (b == a || (b >= 0 && cells.apart(a, b))) continue;
        i64 n_others = 0;  // columns that may stand below both
        for (i64 i = 0; i < C; i++) {
            i64 c = columns[i];
            if (c != a && c != b && !cells.apart(a, c) && (b < 0 || !cells.apart(b, c))) others[n_others++] = c;
        }
        if (poll(8 * M * n_others * n_others)) return false;
        fill_sets(cells, a, b, others, n_others, 2, sets);
        for (i64 t = 0; t < (b < 0 ? 2 : 4); t++) {
            if (!best_two_sides(sets[t], others, n_others, 2, cells.apart, leaf, room, sides, poll)) return false;
            double best = best_of_sides(sets[t], n_others, leaf, sides);
            (b < 0 ? result(0, t, 0) : result(p, t >> 1, t & 1)) = best;
        }
    }
    return true;
}
