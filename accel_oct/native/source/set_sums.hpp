// Best values of trees of depth two on one set of samples, from sums over pairs of columns.
#pragma once

#include "base.hpp"

// Sums of a set by channel: over the samples that have both of two columns c < d, one column, and over all.
struct SetSums {
    double *both, *single, *totals;  // (stride, stride, channels), (stride, channels), (channels,)
    i64 stride, channels;

    // Allocate room for some columns. False without memory.
    bool take(Arena& arena, i64 n_columns, i64 n_channels) {
        stride = n_columns, channels = n_channels;
        both = arena.array<double>(stride * stride * channels);
        single = arena.array<double>(stride * channels);
        totals = arena.array<double>(channels);
        return both && single && totals;
    }

    double* pair(i64 c, i64 d) const { return both + (c * stride + d) * channels; }

    // Sums over one side of a column.
    void half(i64 c, i64 side, double* sums) const {
        for (i64 k = 0; k < channels; k++) sums[k] = side ? single[c * channels + k] : totals[k] - single[c * channels + k];
    }

    // Sums (4, channels) over the parts by columns c < d.
    void quarter(i64 c, i64 d, double* sums) const {
        for (i64 k = 0; k < channels; k++) {
            Quarters<double> four = quarters(totals[k], single[c * channels + k], single[d * channels + k], pair(c, d)[k]);
            for (i64 t = 0; t < 4; t++) sums[t * channels + k] = four.part[t];
        }
    }
};

// The value of a leaf: its largest reward, minus a price; minus infinity where its mass, the last channel, is too small.
struct LeafValue {
    i64 n_rewards, channels;
    double nothing;  // a reward that every leaf can have
    double price, least;

    double operator()(const double* sums) const {
        if (channels > n_rewards && sums[n_rewards] < least) return -INFINITE;
        double best = nothing;
        for (i64 k = 0; k < n_rewards; k++) best = max_of(best, sums[k]);
        return best - price;
    }
};

// Call body(c, d, values of the four parts as leaves) for all pairs of columns c < d that may share a path.
//
// `room` (4, channels). False when stopped.
template <class Body>
inline bool each_pair(
    const SetSums& set, const i64* columns, i64 n_columns, const Array<uint8_t>& apart, const LeafValue& leaf,
    double* room, Poll& poll, Body body) {
    for (i64 c = 0; c < n_columns; c++) {
        if (poll(8 * (n_columns - c) * set.channels)) return false;
        for (i64 d = c + 1; d < n_columns; d++) {
            if (apart(columns[c], columns[d])) continue;
            set.quarter(c, d, room);
            double four[4];
            for (i64 t = 0; t < 4; t++) four[t] = leaf(room + t * set.channels);
            body(c, d, four);
        }
    }
    return true;
}

// Best values `sides` (C, 2) of the sides of columns with trees of depth at most `height` - 1, one or zero. False when
// stopped.
inline bool best_two_sides(
    const SetSums& set, const i64* columns, i64 n_columns, i64 height, const Array<uint8_t>& apart,
    const LeafValue& leaf, double* room, double* sides, Poll& poll) {
    for (i64 c = 0; c < n_columns; c++)
        for (i64 side = 0; side < 2; side++) {
            set.half(c, side, room);
            sides[2 * c + side] = leaf(room);
        }
    if (height < 2) return true;
    return each_pair(set, columns, n_columns, apart, leaf, room, poll, [&](i64 c, i64 d, const double* four) {
        raise_sides(four, sides[2 * c], sides[2 * c + 1], sides[2 * d], sides[2 * d + 1]);
    });
}

// The best value of a set with a tree of depth at most one more than its sides have.
inline double best_of_sides(const SetSums& set, i64 n_columns, const LeafValue& leaf, const double* sides) {
    double best = leaf(set.totals);
    for (i64 c = 0; c < n_columns; c++) best = max_of(best, sides[2 * c] + sides[2 * c + 1]);
    return best;
}
