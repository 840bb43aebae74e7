// Counting of the rows that have all columns of a set, for all sets of limited size, by bit operations.
//
// Rows come as words with a bit per column. For every column f in turn, the rows that have it are picked out and
// transposed, so that each smaller column is a string of bits over these rows; the rest is bit counts of conjunctions of
// such strings. So the work of all sets with f goes with the rows that have f, and a block of rows stays in the cache.
#pragma once

#include "base.hpp"

constexpr i64 WORD_BITS = 64, STRING_STEP = 8;  // strings of bits are padded to 8 words

struct SetCounter {
    const Array<u64>& rows;  // (n, words of a row)
    const Array<i64>& starts;  // (depth + 2,) where the sets of each size begin in `counts`
    const Array<i64>& choose;  // (n_columns + 1, depth + 1) binomial coefficients
    i64 weight;
    const Array<u64>& columns;  // (n_columns or more, words) room for n bits in whole steps
    const Array<u64>& found;  // (depth, words) room
    const Array<i64>& counts;
    Poll& poll;

    // In every square of 2 * half rows and bits, the upper bits of the first rows change places with the lower bits of
    // the others.
    template <i64 half>
    static void exchange(u64* square) {
        constexpr u64 mask = ~u64(0) / ((u64(1) << half) + 1);
        for (i64 first = 0; first < WORD_BITS; first += 2 * half)
            for (i64 row = first; row < first + half; row++) {
                u64 swap = ((square[row] >> half) ^ square[row + half]) & mask;
                square[row + half] ^= swap;
                square[row] ^= swap << half;
            }
    }

    // Up to 64 rows as bits: a word of each column.
    void transpose(const i64* chosen, i64 held, i64 f, i64 place) const {
        u64 square[WORD_BITS];
        for (i64 part = 0; part * WORD_BITS < f; part++) {
            for (i64 row = 0; row < WORD_BITS; row++) square[row] = row < held ? rows(chosen[row], part) : 0;
            exchange<32>(square);
            exchange<16>(square);
            exchange<8>(square);
            exchange<4>(square);
            exchange<2>(square);
            exchange<1>(square);
            for (i64 c = WORD_BITS * part; c < min_of(f, WORD_BITS * (part + 1)); c++)
                columns(c, place) = square[c - WORD_BITS * part];
        }
    }

    // Strings of bits of all columns below f over the rows that have f; returns how many rows these are.
    i64 select(i64 f) const {
        i64 chosen[WORD_BITS + 1], held = 0, size = 0;
        poll(rows.shape[0] * (2 + f / WORD_BITS));
        for (i64 row = 0; row < rows.shape[0]; row++) {
            chosen[held] = row;
            held += i64((rows(row, f / WORD_BITS) >> (f % WORD_BITS)) & 1);
            if (held == WORD_BITS) {
                transpose(chosen, held, f, size / WORD_BITS);
                size += held;
                held = 0;
            }
        }
        i64 last = size / WORD_BITS;
        if (held) {
            transpose(chosen, held, f, last++);
            size += held;
        }
        for (; last % STRING_STEP; last++)
            for (i64 c = 0; c < f; c++) columns(c, last) = 0;
        return size;
    }

    // The conjunction of two strings; whether anything is left.
    static bool both(const u64* first, const u64* second, u64* result, i64 stop) {
        u64 some = 0;
        for (i64 word = 0; word < stop; word++) {
            result[word] = first[word] & second[word];
            some |= result[word];
        }
        return some != 0;
    }

    // Bit counts of a string (null: of all rows) together with every column below some, four columns at a time.
    void add_words(const u64* given, i64 below, i64 stop, i64 offset) const {
        const i64 width = columns.shape[1];
        i64 c = 0;
        for (; c + 4 <= below; c += 4) {
            const u64* first = columns.data + c * width;
            Vector<u64> n0 = {}, n1 = {}, n2 = {}, n3 = {};
            for (i64 word = 0; word < stop; word += LANES<u64>) {
                Vector<u64> mine = given ? load(given + word) : ~Vector<u64>{};
                n0 += bits_set(mine & load(first + word));
                n1 += bits_set(mine & load(first + width + word));
                n2 += bits_set(mine & load(first + 2 * width + word));
                n3 += bits_set(mine & load(first + 3 * width + word));
            }
            u64 totals[4] = {};
            for (i64 lane = 0; lane < LANES<u64>; lane++) {
                totals[0] += n0[lane];
                totals[1] += n1[lane];
                totals[2] += n2[lane];
                totals[3] += n3[lane];
            }
            for (i64 i = 0; i < 4; i++) counts[offset + c + i] += weight * i64(totals[i]);
        }
        for (; c < below; c++) {
            i64 total = 0;
            for (i64 word = 0; word < stop; word++)
                total += __builtin_popcountll(columns(c, word) & (given ? given[word] : ~u64(0)));
            counts[offset + c] += weight * total;
        }
    }

    // All sets of two columns or more whose largest is path[0]; the path goes down from there. False when stopped.
    bool add_below(i64* path, i64 depth, i64 n_rows) const {
        const i64 width = columns.shape[1], step = WORD_BITS * STRING_STEP;
        const i64 stop = (n_rows + step - 1) / step * STRING_STEP;
        add_words(nullptr, path[0], stop, starts[2] + choose(path[0], 2));
        for (i64 level = 1; level < depth; level++) path[level] = 0;
        for (i64 level = 1; level && depth > 2;) {
            // At level s the path has the columns 0 .. s, and counts are of sets of s + 2.
            i64 column = ++path[level];
            if (column >= path[level - 1]) {
                level--;
                continue;
            }
            if (poll(1 + stop * column / LANES<u64>)) return false;
            i64 offset = starts[level + 2];
            for (i64 place = 0; place <= level; place++) offset += choose(path[place], level + 2 - place);
            const u64* own = columns.data + column * width;
            if (level == 1)
                add_words(own, column, stop, offset);
            else {
                const u64* above = level == 2 ? columns.data + path[1] * width : found.data + (level - 1) * width;
                u64* here = found.data + level * width;
                if (!both(above, own, here, stop)) continue;
                add_words(here, column, stop, offset);
            }
            if (level + 2 < depth) path[++level] = 0;
        }
        return true;
    }
};

// Add `weight` to the counts of every set of columns of every row; sets have at most `depth` columns, at most 64. False
// when stopped.
inline bool add_sets(const SetCounter& counter, i64 n_columns) {
    const i64 depth = counter.starts.shape[0] - 2;
    i64 path[64] = {};
    counter.counts[0] += counter.weight * counter.rows.shape[0];
    for (i64 f = 0; f < (depth ? n_columns : 0); f++) {
        i64 size = counter.select(f);
        counter.counts[counter.starts[1] + f] += counter.weight * size;
        if (size && f && depth > 1) {
            path[0] = f;
            if (!counter.add_below(path, depth, size)) return false;
        }
    }
    return !counter.poll.stopped;
}
