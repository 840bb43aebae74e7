// The best of many sets of groups of columns, for trees of depth three, or of depth four root by root.
//
// Columns lie in layers: layer j holds the column number j of every group that has one, group a in lane a. So the best
// split of every group at once is a maximum over layers, lane by lane, and the columns of a group are found by stepping
// from layer to layer. Numbers are in table units, see passes.hpp.
#pragma once

#include "passes.hpp"

template <class T>
struct GroupSamples {
    Array<T> numbers;  // (rows, width) signed weight where the row has the column of that place
    Array<uint8_t> ones;  // (columns, rows)
    Array<i64> channel;  // (rows,)
    Array<T> amounts;  // (rows,) signed weights
    Array<i64> place;  // (columns,) where in the width a column lies: layer * lanes + group
    Array<i64> layers;  // (layers,) number of groups with that many columns
    i64 lanes;  // groups, padded to whole blocks
    i64 n_channels;
};

// Weights of all samples by channel and column: of all that have one, two or three columns.
template <class T>
struct GroupCounts {
    Array<T> totals;  // (channels,)
    Array<T> once;  // (channels, width)
    Array<T> twice;  // (columns, channels, width)
    Array<T> triples;  // (pairs of columns, channels, width)
};

template <class T>
struct GroupWork {
    Array<i64> chosen, chosen2, chosen3;  // (rows + 1,)
    Array<T> once;  // (2, channels, width), by side of the root
    Array<T> with_root, without_root;  // (columns, channels, width)
    Array<T> both, rest;  // (channels, width)
    Array<T> sums;  // (2, 5, channels), by side of the root
};

// Scores on one set of samples, or on each side of a root (`halves`).
template <class T>
struct GroupTables {
    Array<T> leaves;  // (halves, pairs, 4)
    Array<T> stumps;  // (halves, pairs, lanes, 4), flat
    Array<T> singles;  // (halves, columns, 2)
    Array<T> whole;  // (halves, 1)
    Array<double> reach;  // (halves, columns, 2, lanes), flat
};

// Number of a pair of columns g < c.
inline i64 pair_number(i64 g, i64 c, i64 n_columns) { return g * (2 * n_columns - g - 1) / 2 + c - g - 1; }

// Vectors of a row of numbers, as work to be counted.
template <class T>
inline i64 size_of(const GroupSamples<T>& samples) {
    return 1 + samples.numbers.shape[1] / LANES<T>;
}

// Rows with a column, of `size` rows of a list (null: of all rows); returns how many.
inline i64 rows_with(const i64* rows, i64 size, const Array<uint8_t>& ones, i64 column, i64* chosen) {
    i64 found = 0;
    for (i64 position = 0; position < size; position++) {
        i64 row = rows ? rows[position] : position;
        chosen[found] = row;
        found += ones(column, row);
    }
    return found;
}

// Add up the columns of some rows (null: all rows), by channel: counts (channels, width).
template <class T>
void count_columns(const i64* rows, i64 size, const GroupSamples<T>& samples, T* counts) {
    const i64 width = samples.numbers.shape[1];
    const T* numbers = samples.numbers.data;
    if (samples.n_channels == 1) {
        for (i64 lane = 0; lane < width; lane += LANES<T>) {
            Vector<T> total = {};
            for (i64 position = 0; position < size; position++)
                total += load(numbers + (rows ? rows[position] : position) * width + lane);
            store(counts + lane, total);
        }
        return;
    }
    __builtin_memset(counts, 0, size_t(samples.n_channels * width) * sizeof(T));
    for (i64 position = 0; position < size; position++) {
        i64 row = rows ? rows[position] : position;
        T* base = counts + samples.channel[row] * width;
        for (i64 lane = 0; lane < width; lane += LANES<T>)
            store(base + lane, load(base + lane) + load(numbers + row * width + lane));
    }
}

// Counts of all columns together with nothing else, with one other column, and with two. False when stopped.
template <class T>
bool count_triples(
    const GroupSamples<T>& samples, const GroupCounts<T>& counts, const GroupWork<T>& work, Poll& poll) {
    const i64 n_columns = samples.ones.shape[0], n_rows = samples.amounts.shape[0];
    const i64 size = samples.n_channels * samples.numbers.shape[1];
    count_columns<T>(nullptr, n_rows, samples, counts.once.data);
    i64 pair = 0;
    for (i64 g = 0; g < n_columns; g++) {
        if (poll(n_rows * size_of(samples))) return false;
        i64 found = rows_with(nullptr, n_rows, samples.ones, g, work.chosen.data);
        count_columns(work.chosen.data, found, samples, counts.twice.data + g * size);
        for (i64 c = g + 1; c < n_columns; c++, pair++) {
            if (poll(found * size_of(samples))) return false;
            i64 found2 = rows_with(work.chosen.data, found, samples.ones, c, work.chosen2.data);
            count_columns(work.chosen2.data, found2, samples, counts.triples.data + pair * size);
        }
    }
    return true;
}

// A single channel is a difference of two classes.
template <class T>
inline T group_score(const T* sums, i64 channels) {
    return leaf_score(sums, channels, channels == 1);
}

template <class T>
void leaf_scores(const GroupSamples<T>& samples, const GroupWork<T>& work, i64 half, const GroupTables<T>& tables) {
    const i64 channels = samples.n_channels, width = samples.numbers.shape[1];
    const T* once = work.once.data + half * channels * width;
    T* sums = work.sums.data + half * 5 * channels;
    tables.whole[half] = group_score(sums + 4 * channels, channels);
    for (i64 g = 0; g < samples.place.shape[0]; g++) {
        for (i64 k = 0; k < channels; k++) {
            sums[channels + k] = once[k * width + samples.place[g]];
            sums[k] = T(sums[4 * channels + k] - sums[channels + k]);
        }
        for (i64 side = 0; side < 2; side++)
            tables.singles(half, g, side) = group_score(sums + side * channels, channels);
    }
}

// Four vectors of groups, so that the four numbers of a group lie together.
template <class T>
inline void store_by_group(T* place, const Vector<T>* four) {
    for (i64 lane = 0; lane < LANES<T>; lane++)
        for (i64 side = 0; side < 4; side++) place[4 * lane + side] = four[side][lane];
}

// The four sides of a pair of columns, on one side of the root.
template <class T>
void pair_tables(
    const GroupSamples<T>& samples, const GroupWork<T>& work, i64 half, const T* both, const Array<T>& with_one, i64 g,
    i64 c, const GroupTables<T>& tables, i64 pair) {
    const i64 channels = samples.n_channels, width = samples.numbers.shape[1], size = channels * width;
    const i64 broad = samples.lanes, n_layers = samples.layers.shape[0];
    const T *once = work.once.data + half * size, *with_g = with_one.data + g * size, *with_c = with_one.data + c * size;
    T* sums = work.sums.data + half * 5 * channels;
    for (i64 k = 0; k < channels; k++) {
        T at_g = once[k * width + samples.place[g]], at_c = once[k * width + samples.place[c]];
        T together = with_g[k * width + samples.place[c]];
        Quarters<T> four = quarters(sums[4 * channels + k], at_g, at_c, together);
        for (i64 side = 0; side < 4; side++) sums[side * channels + k] = four.part[side];
    }
    const i64 n_pairs = tables.leaves.shape[1];
    for (i64 side = 0; side < 4; side++)
        tables.leaves(half, pair, side) = group_score(sums + side * channels, channels);
    T* stumps = tables.stumps.data + (half * n_pairs + pair) * 4 * broad;
    auto parts = [&](i64 place) {
        return quarters(load(once + place), load(with_g + place), load(with_c + place), load(both + place));
    };
    for (i64 lane = 0; lane < broad; lane += LANES<T>) {
        Vector<T> best[4] = {};
        if (channels == 1) {
            Vector<T> largest[4] = {}, smallest[4] = {};
            for (i64 layer = 0; layer < n_layers && lane < samples.layers[layer]; layer++) {
                Quarters<Vector<T>> x = parts(layer * broad + lane);
                for (i64 side = 0; side < 4; side++) {
                    largest[side] = most(largest[side], x.part[side]);
                    smallest[side] = least(smallest[side], x.part[side]);
                }
            }
            for (i64 side = 0; side < 4; side++)
                best[side] = best_split(spread(sums[side]), largest[side], smallest[side]);
        } else
            for (i64 layer = 0; layer < n_layers && lane < samples.layers[layer]; layer++) {
                Vector<T> ones[4] = {}, zeros[4] = {};
                for (i64 k = 0; k < channels; k++) {
                    Quarters<Vector<T>> x = parts(k * width + layer * broad + lane);
                    for (i64 side = 0; side < 4; side++) {
                        ones[side] = most(ones[side], x.part[side]);
                        zeros[side] = most(zeros[side], spread(sums[side * channels + k]) - x.part[side]);
                    }
                }
                for (i64 side = 0; side < 4; side++) best[side] = most(best[side], ones[side] + zeros[side]);
            }
        store_by_group(stumps + 4 * lane, best);
    }
}

// Tables of all samples: see `tables_of_root`.
template <class T>
bool tables_of_all(
    const GroupSamples<T>& samples, const GroupCounts<T>& counts, const GroupWork<T>& work,
    const GroupTables<T>& tables, Poll& poll) {
    const i64 channels = samples.n_channels, size = channels * samples.numbers.shape[1];
    for (i64 k = 0; k < channels; k++) work.sums[4 * channels + k] = counts.totals[k];
    __builtin_memcpy(work.once.data, counts.once.data, size_t(size) * sizeof(T));
    leaf_scores(samples, work, 0, tables);
    i64 pair = 0;
    for (i64 g = 0; g < samples.place.shape[0]; g++)
        for (i64 c = g + 1; c < samples.place.shape[0]; c++, pair++) {
            if (poll(4 * channels * size_of(samples))) return false;
            pair_tables(samples, work, 0, counts.triples.data + pair * size, counts.twice, g, c, tables, pair);
        }
    return true;
}

// Depth one on the four sides of every pair of columns, on both sides of a root, for every group.
//
// Writes, by side of the root, `leaves` and `stumps`: scores of one leaf, and of the best two leaves by group; sides of
// a pair are numbered 2 * (side of the first column) + (side of the second). `singles` and `whole`: scores of the sides
// of every column, and of all, as one leaf. Pairs with the root itself are left out. False when stopped.
template <class T>
bool tables_of_root(
    i64 root, const GroupSamples<T>& samples, const GroupCounts<T>& counts, const GroupWork<T>& work,
    const GroupTables<T>& tables, Poll& poll) {
    const i64 n_columns = samples.ones.shape[0], channels = samples.n_channels, width = samples.numbers.shape[1];
    const i64 size = channels * width;
    for (i64 k = 0; k < channels; k++) {
        work.sums[9 * channels + k] = counts.once[k * width + samples.place[root]];
        work.sums[4 * channels + k] = T(counts.totals[k] - work.sums[9 * channels + k]);
    }
    __builtin_memcpy(work.once.data + size, counts.twice.data + root * size, size_t(size) * sizeof(T));
    subtract(counts.once.data, counts.twice.data + root * size, work.once.data, size);
    for (i64 side = 0; side < 2; side++) leaf_scores(samples, work, side, tables);
    // With the root and one more column: side 1 is a triple that was counted, side 0 the rest of a pair.
    for (i64 g = 0; g < n_columns; g++)
        if (g != root) {
            const T* triple = counts.triples.data + pair_number(min_of(g, root), max_of(g, root), n_columns) * size;
            __builtin_memcpy(work.with_root.data + g * size, triple, size_t(size) * sizeof(T));
            subtract(counts.twice.data + g * size, triple, work.without_root.data + g * size, size);
        }
    i64 own = rows_with(nullptr, samples.amounts.shape[0], samples.ones, root, work.chosen.data), pair = -1;
    for (i64 g = 0; g < n_columns; g++) {
        i64 found = g == root ? 0 : rows_with(work.chosen.data, own, samples.ones, g, work.chosen2.data);
        for (i64 c = g + 1; c < n_columns; c++) {
            pair++;
            if (g == root || c == root) continue;
            if (poll((found + 8 * channels) * size_of(samples))) return false;
            i64 found3 = rows_with(work.chosen2.data, found, samples.ones, c, work.chosen3.data);
            count_columns(work.chosen3.data, found3, samples, work.both.data);
            subtract(counts.triples.data + pair * size, work.both.data, work.rest.data, size);
            pair_tables<T>(samples, work, 0, work.rest.data, work.without_root, g, c, tables, pair);
            pair_tables<T>(samples, work, 1, work.both.data, work.with_root, g, c, tables, pair);
        }
    }
    return true;
}

// Values of the four sides of a pair as a leaf, or with two leaves by a column of some groups (null: of the first n).
template <class T>
inline void pair_values(
    const GroupTables<T>& tables, i64 half, i64 pair, const i64* groups, i64 n, i64 broad, double price, double* four) {
    const T* stumps = tables.stumps.data + (half * tables.leaves.shape[1] + pair) * 4 * broad;
    T two[4];
    for (i64 side = 0; side < 4; side++) two[side] = stumps[(groups ? 4 * groups[0] : 0) + side];
    for (i64 a = 1; a < n; a++)
        for (i64 side = 0; side < 4; side++)
            two[side] = max_of(two[side], stumps[4 * (groups ? groups[a] : a) + side]);
    for (i64 side = 0; side < 4; side++)
        four[side] = max_of(double(two[side]) - 2 * price, double(tables.leaves(half, pair, side)) - price);
}

// Bounds on a side of a column if the next column is of some group, and the last of any; writes `reach`. False when
// stopped.
template <class T>
bool fill_reach(
    const GroupTables<T>& tables, const Array<i64>& place, i64 broad, i64 root, double price, Poll& poll) {
    const i64 halves = tables.singles.shape[0], n_columns = tables.singles.shape[1];
    double* reach = tables.reach.data;
    for (i64 at = 0; at < tables.reach.shape[0]; at++) reach[at] = -INFINITE;
    for (i64 half = 0; half < halves; half++) {
        i64 pair = -1;
        for (i64 g = 0; g < n_columns; g++)
            for (i64 c = g + 1; c < n_columns; c++) {
                pair++;
                if (g == root || c == root) continue;
                if (poll(4 * broad)) return false;
                double four[4];
                pair_values(tables, half, pair, nullptr, broad, broad, price, four);
                double* of_g = reach + (half * n_columns + g) * 2 * broad + place[c] % broad;
                double* of_c = reach + (half * n_columns + c) * 2 * broad + place[g] % broad;
                raise_sides(four, of_g[0], of_g[broad], of_c[0], of_c[broad]);
            }
    }
    return true;
}

// The best value of depth three with these columns, in rising order, of some groups. `two` (columns, 2) is room.
template <class T>
double group_depth_three(
    const GroupTables<T>& tables, i64 half, const i64* columns, i64 n_columns, const i64* groups, i64 n_groups,
    i64 broad, double price, double* two) {
    const i64 total = tables.singles.shape[1];
    for (i64 i = 0; i < n_columns; i++)
        for (i64 side = 0; side < 2; side++)
            two[2 * i + side] = double(tables.singles(half, columns[i], side)) - price;
    for (i64 i = 0; i < n_columns; i++) {
        i64 row = pair_number(columns[i], 0, total);
        double zero = two[2 * i], one = two[2 * i + 1];
        for (i64 j = i + 1; j < n_columns; j++) {
            double four[4];
            pair_values(tables, half, row + columns[j], groups, n_groups, broad, price, four);
            raise_sides(four, zero, one, two[2 * j], two[2 * j + 1]);
        }
        two[2 * i] = zero;
        two[2 * i + 1] = one;
    }
    double value = double(tables.whole[half]) - price;
    for (i64 i = 0; i < n_columns; i++) value = max_of(value, two[2 * i] + two[2 * i + 1]);
    return value;
}

// A bound on `group_depth_three`: the last column is of any group.
template <class T>
double group_cap(
    const GroupTables<T>& tables, i64 half, const i64* columns, i64 n_columns, const i64* groups, i64 n_groups,
    i64 broad, double price) {
    const i64 total = tables.singles.shape[1];
    double value = double(tables.whole[half]) - price;
    for (i64 i = 0; i < n_columns; i++) {
        double zero = double(tables.singles(half, columns[i], 0)) - price;
        double one = double(tables.singles(half, columns[i], 1)) - price;
        const double* reach = tables.reach.data + (half * total + columns[i]) * 2 * broad;
        for (i64 a = 0; a < n_groups; a++) {
            zero = max_of(zero, reach[groups[a]]);
            one = max_of(one, reach[broad + groups[a]]);
        }
        value = max_of(value, zero + one);
    }
    return value;
}

// The best of the sets number `first` to `last`, if it is better than `best`; returns its number, or -1.
//
// `sets` (sets, length): groups, then -1. `column` (groups, layers): columns of every group, then -1; that of the root
// is left out. `room` (3, all columns) is written to.
template <class T>
i64 best_set(
    const Array<i64>& sets, i64 first, i64 last, const Array<i64>& column, i64 root, const GroupTables<T>& tables,
    i64 broad, double price, double& best, const Array<double>& room, const Array<i64>& columns) {
    const i64 length = sets.shape[1], halves = tables.whole.shape[0];
    i64 chosen = -1;
    for (i64 number = first; number < last; number++) {
        const i64* groups = sets.data + number * length;
        i64 n_groups = 0, n_columns = 0;
        for (; n_groups < length && groups[n_groups] >= 0; n_groups++)
            for (i64 layer = 0; layer < column.shape[1]; layer++) {
                i64 found = column(groups[n_groups], layer);
                if (found < 0) break;
                if (found == root) continue;
                // Few columns, nearly in order: put into their place one by one.
                i64 place = n_columns++;
                for (; place > 0 && columns[place - 1] > found; place--) columns[place] = columns[place - 1];
                columns[place] = found;
            }
        double value = 0.0, caps[2] = {0.0, 0.0};
        for (i64 half = 0; half < halves; half++) {
            caps[half] = group_cap(tables, half, columns.data, n_columns, groups, n_groups, broad, price);
            value += caps[half];
        }
        for (i64 half = 0; half < halves && value > best; half++) {
            value -= caps[half];
            value += group_depth_three(
                tables, half, columns.data, n_columns, groups, n_groups, broad, price, room.data);
        }
        if (value > best) {
            best = value;
            chosen = number;
        }
    }
    return chosen;
}
