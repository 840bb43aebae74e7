// Counts of all pairs of features over a set of samples, channel by channel.
//
// A table has shape (channels, blocks, F, L), with the second feature c split into a block and one of L lanes: entry
// (k, c / L, b, c % L) is the weight of the samples of channel k with b = c = 1. The passes run through all b for one
// block, so that is what lies together in memory. Whole weights are counted by bit operations, a word of samples and a
// lane per feature c at a time; real weights are added row by row. Only blocks from `first_lane` on are filled. A table
// may hold some of the blocks only: `base` is its first lane.
#pragma once

#include "base.hpp"

// Samples one by one: an entry per row and bit of its weight (accel_oct/exact/layout.py).
struct Entries {
    Array<uint8_t> rows;  // (E, P)
    Array<int32_t> channel, plane;  // (E,)
    Array<uint8_t> marked;  // (E,)
    Array<double> numbers;  // (E, P), or empty
};

// The sums of a tally in place of samples: weights of all samples that have all columns of a set.
template <class T>
struct Sets {
    Array<T> values;  // (channels, all sets) by size of the sets
    Array<i64> starts;  // where each size begins
    Array<i64> choose;  // (all columns, sizes) binomial coefficients
    Array<i64> columns;  // (F,) which column of the tally each feature is, increasing
};

// The ones of sparse samples as lists, by feature and by entry.
template <class T>
struct Ones {
    Array<i64> entries, entries_start;  // those that have feature 0, feature 1, ...
    Array<i64> features, features_start;  // those of entry 0, entry 1, ...
    Array<int32_t> channel;  // (E,)
    Array<T> amounts;  // (E,)
};

template <class T>
struct Counts {
    Array<T> table;  // (channels, blocks, F, L)
    Array<T> single;  // (channels, P)
    Array<T> totals;  // (channels,)
};

// Room for samples packed into words.
struct Words {
    Array<uint8_t> words;  // bytes of (some words, P) words as wide as the counters
    Array<uint8_t> masks;  // bytes of (some words,)
};

template <class T>
struct WordOf;
template <>
struct WordOf<int16_t> {
    typedef uint16_t type;
};
template <>
struct WordOf<int32_t> {
    typedef uint32_t type;
};

// Entry (k, c / L, b, c % L) of a table.
template <class T>
inline T& at(const Array<T>& table, i64 k, i64 b, i64 c) {
    return table.data[((k * table.shape[1] + c / BLOCK<T>) * table.shape[2] + b) * BLOCK<T> + c % BLOCK<T>];
}

// target = whole - part.
template <class T>
inline void subtract(const T* whole, const T* part, T* target, i64 size) {
    for (i64 place = 0; place < size; place += LANES<T>) store(target + place, load(whole + place) - load(part + place));
}

template <class T>
inline void clear_table(const Array<T>& table, i64 first, i64 last, i64 first_lane) {
    i64 block = table.shape[2] * table.shape[3], channel = table.shape[1] * block;
    i64 start = first_lane / table.shape[3] * block;
    for (i64 k = first; k < last; k++)
        if (channel > start) __builtin_memset(table.data + k * channel + start, 0, size_t(channel - start) * sizeof(T));
}

// Samples start .. stop - 1 of the list as words laid out [word][feature]; returns how many of them are marked.
template <class W>
inline i64 pack_words(const i64* members, i64 size, const Entries& entries, W* words, W* masks) {
    const i64 width = entries.rows.shape[1], per_word = 8 * sizeof(W);
    i64 n_marked = 0;
    for (i64 first = 0, word = 0; first < size; first += per_word, word++) {
        W* __restrict__ target = words + word * width;
        __builtin_memset(target, 0, size_t(width) * sizeof(W));
        W mask = 0;
        for (i64 shift = 0; shift < min_of(per_word, size - first); shift++) {
            i64 entry = members[first + shift];
            if (entries.marked[entry]) {
                mask = W(mask | W(1) << shift);
                n_marked++;
            }
            const uint8_t* __restrict__ row = entries.rows.data + entry * width;
            for (i64 c = 0; c < width; c++) target[c] = W(target[c] | W(W(row[c]) << shift));
        }
        masks[word] = mask;
    }
    return n_marked;
}

// Carry-save addition of three bit vectors: their sum is `low` plus twice the result.
template <class V>
inline V carry(V& low, V a, V b) {
    V half = a ^ b;
    V high = (a & b) | (half & low);
    low = half ^ low;
    return high;
}

// Add the bit counts of packed samples of weight 2 ** bit to one channel.
//
// popcount(x ^ m) - popcount(m), with m the marked samples, is the number of unmarked minus marked samples in x. Eight
// words share four bit counts: the others are added up bit by bit. False when stopped.
template <class T>
bool add_words(
    const typename WordOf<T>::type* words, const typename WordOf<T>::type* masks, i64 n_words, i64 width, i64 n_marked,
    i64 bit, const Array<T>& table, i64 k, i64 first_lane, i64 base, bool fresh, Poll& poll) {
    typedef typename WordOf<T>::type W;
    const i64 blocks = table.shape[1], F = table.shape[2];
    for (i64 block = first_lane / BLOCK<T>; block < blocks; block++) {
        if (poll(F * n_words * (BLOCK<T> / LANES<T>))) return false;
        for (i64 lane = 0; lane < BLOCK<T>; lane += LANES<T>) {
            const W* column = words + base + block * BLOCK<T> + lane;
            T* target = table.data + (k * blocks + block) * F * BLOCK<T> + lane;
            for (i64 b = 0; b < F; b++) {
                const W* other = words + b;
                auto at = [&](i64 word) {
                    return (load(column + word * width) & spread(other[word * width])) ^ spread(masks[word]);
                };
                Vector<W> total = {}, ones = {}, twos = {}, fours = {};
                i64 word = 0;
                for (; word + 8 <= n_words; word += 8) {
                    Vector<W> two_a = carry(ones, at(word), at(word + 1));
                    Vector<W> two_b = carry(ones, at(word + 2), at(word + 3));
                    Vector<W> four_a = carry(twos, two_a, two_b);
                    two_a = carry(ones, at(word + 4), at(word + 5));
                    two_b = carry(ones, at(word + 6), at(word + 7));
                    Vector<W> four_b = carry(twos, two_a, two_b);
                    total += bits_set(carry(fours, four_a, four_b));
                }
                if (word) total = 8 * total + 4 * bits_set(fours) + 2 * bits_set(twos) + bits_set(ones);
                for (; word < n_words; word++) total += bits_set(at(word));
                total -= spread(W(n_marked));
                total = total << W(bit);
                T* place = target + b * BLOCK<T>;
                Vector<W> sum = fresh ? total : total + load(reinterpret_cast<W*>(place));
                store(reinterpret_cast<W*>(place), sum);
            }
        }
    }
    return true;
}

// Fill a table with the counts over some entries. False when stopped.
template <class T>
struct PairCounter {
    static bool count(
        const i64* members, i64 size, const Entries& entries, const Words& room, const Array<T>& table, i64 first_lane,
        i64 base, Poll& poll) {
        typedef typename WordOf<T>::type W;
        W* words = reinterpret_cast<W*>(room.words.data);
        W* masks = reinterpret_cast<W*>(room.masks.data);
        const i64 width = entries.rows.shape[1], limit = room.masks.shape[0] * 8;
        i64 untouched = 0, start = 0;
        while (start < size) {
            // A run of entries of the same channel and the same bit of the weights.
            i64 k = entries.channel[members[start]], bit = entries.plane[members[start]], stop = start + 1;
            while (stop < size && stop - start < limit && entries.channel[members[stop]] == k &&
                   entries.plane[members[stop]] == bit)
                stop++;
            i64 n_marked = pack_words(members + start, stop - start, entries, words, masks);
            i64 n_words = (stop - start + 8 * i64(sizeof(W)) - 1) / (8 * i64(sizeof(W)));
            bool fresh = k >= untouched;
            if (fresh) {
                clear_table(table, untouched, k, first_lane);
                untouched = k + 1;
            }
            if (!add_words(words, masks, n_words, width, n_marked, bit, table, k, first_lane, base, fresh, poll))
                return false;
            start = stop;
        }
        clear_table(table, untouched, table.shape[0], first_lane);
        return true;
    }
};

template <>
struct PairCounter<double> {
    static bool count(
        const i64* members, i64 size, const Entries& entries, const Words& room, const Array<double>& table,
        i64 first_lane, i64 base, Poll& poll) {
        const i64 blocks = table.shape[1], F = table.shape[2], width = entries.numbers.shape[1];
        clear_table(table, 0, table.shape[0], first_lane);
        i64* ones = reinterpret_cast<i64*>(room.words.data);  // a row of words has room for F of them
        for (i64 position = 0; position < size; position++) {
            i64 entry = members[position], k = entries.channel[entry], found = 0;
            const uint8_t* row = entries.rows.data + entry * entries.rows.shape[1];
            // A list first: a branch per feature would be mispredicted half of the time.
            for (i64 b = 0; b < F; b++) {
                ones[found] = b * BLOCK<double>;
                found += row[b];
            }
            if (poll(F + found * (blocks - first_lane / BLOCK<double>))) return false;
            for (i64 block = first_lane / BLOCK<double>; block < blocks; block++) {
                const double* number = entries.numbers.data + entry * width + base + block * BLOCK<double>;
                double* start = table.data + (k * blocks + block) * F * BLOCK<double>;
                Vector<double> added[BLOCK<double> / LANES<double>];
                for (i64 part = 0; part < BLOCK<double> / LANES<double>; part++)
                    added[part] = load(number + part * LANES<double>);
                for (i64 one = 0; one < found; one++)
                    for (i64 part = 0; part < BLOCK<double> / LANES<double>; part++) {
                        double* place = start + ones[one] + part * LANES<double>;
                        store(place, load(place) + added[part]);
                    }
            }
        }
        return true;
    }
};

// The same from lists of ones, for data that are nearly all zeros.
template <class T>
bool scatter_pairs(const Ones<T>& ones, const Array<T>& table, i64 base, Poll& poll) {
    const i64 blocks = table.shape[1], F = table.shape[2];
    clear_table(table, 0, table.shape[0], 0);
    for (i64 c = base; c < min_of(base + blocks * BLOCK<T>, F); c++) {
        i64 block = (c - base) / BLOCK<T>, lane = (c - base) % BLOCK<T>;
        for (i64 place = ones.entries_start[c]; place < ones.entries_start[c + 1]; place++) {
            i64 entry = ones.entries[place];
            if (poll(1 + ones.features_start[entry + 1] - ones.features_start[entry])) return false;
            T* target = table.data + (ones.channel[entry] * blocks + block) * F * BLOCK<T> + lane;
            for (i64 other = ones.features_start[entry]; other < ones.features_start[entry + 1]; other++)
                target[ones.features[other] * BLOCK<T>] += ones.amounts[entry];
        }
    }
    return true;
}

// Those of the listed entries on one side of the feature; returns how many. `chosen` has room for one more.
inline i64 select(const i64* members, i64 size, const Array<uint8_t>& rows, i64 feature, uint8_t side, i64* chosen) {
    i64 found = 0;
    for (i64 position = 0; position < size; position++) {
        i64 entry = members[position];
        chosen[found] = entry;
        found += rows(entry, feature) == side;
    }
    return found;
}

// Counts of the sets {f, g, b, c} of a tally, some of which may be equal, for all b and for c from a lane on; f <= g.
template <class T>
void look_up(const Sets<T>& sets, i64 f, i64 g, const Array<T>& table, i64 first_lane) {
    const i64 channels = table.shape[0], blocks = table.shape[1], F = table.shape[2];
    const Array<i64>& choose = sets.choose;
    for (i64 b = 0; b < F; b++) {
        i64 base[3];
        i64 one = sets.columns[f], two = sets.columns[g], three = sets.columns[b];
        i64 low = min_of(one, three), high = max_of(two, three), middle = one + two + three - low - high;
        i64 size = 1;
        base[0] = low;
        if (middle != low) base[size++] = middle;
        if (high != middle) base[size++] = high;
        i64 own = sets.starts[size], place = sets.starts[size + 1];
        for (i64 i = 0; i < size; i++) {
            own += choose(base[i], i + 1);
            place += choose(base[i], i + 2);
        }
        i64 rank = 0;
        for (i64 c = first_lane; c < F; c++) {
            i64 column = sets.columns[c];
            while (rank < size && base[rank] < column) {
                // This one comes before c now.
                place += choose(base[rank], rank + 1) - choose(base[rank], rank + 2);
                rank++;
            }
            i64 found = rank < size && base[rank] == column ? own : place + choose(column, rank + 1);
            for (i64 k = 0; k < channels; k++) at(table, k, b, c) = sets.values(k, found);
        }
        for (i64 c = max_of(first_lane, F); c < blocks * BLOCK<T>; c++)
            for (i64 k = 0; k < channels; k++) at(table, k, b, c) = 0;
    }
}
