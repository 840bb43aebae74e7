// What tables that grow while something is enumerated have in common: finding entries by their keys, and sorting them.
#pragma once

#include "base.hpp"

constexpr i64 INSERTION = 50;  // work of adding to a table, or of taking from a heap: much of it is waiting for memory

inline u64 mixed(u64 hash, u64 bits) {
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

// Places of entries by the hashes of their keys: open addressing, at most a quarter full.
struct Slots {
    i64* slots;  // place + 1, or 0
    i64 last;  // their number minus one: four times a power of two, minus one

    bool take(Arena& arena, i64 room) {
        last = 4 * room - 1;
        slots = arena.zeros<i64>(4 * room);
        return slots != nullptr;
    }

    // The slot of the entry that is the `same`, or a free one.
    template <class Same>
    i64 find(u64 hash, Same same) const {
        i64 slot = i64(hash & u64(last));
        while (slots[slot] > 0 && !same(slots[slot] - 1)) slot = (slot + 1) & last;
        return slot;
    }

    i64 place(i64 slot) const { return slots[slot] - 1; }
    void put(i64 slot, i64 place) const { slots[slot] = place + 1; }
};

// Write the places 0 .. size - 1 in the order of `before`, a total order: a heap sort. False when stopped.
template <class Before>
inline bool in_order(i64* places, i64 size, Before before, Poll& poll) {
    for (i64 place = 0; place < size; place++) places[place] = place;
    auto sift = [&](i64 root, i64 last) {
        i64 own = places[root];
        for (i64 child = 2 * root + 1; child < last; child = 2 * root + 1) {
            if (child + 1 < last && before(places[child], places[child + 1])) child++;
            if (!before(own, places[child])) break;
            places[root] = places[child];
            root = child;
        }
        places[root] = own;
    };
    for (i64 root = size / 2 - 1; root >= 0; root--) sift(root, size);
    for (i64 last = size - 1; last > 0; last--) {
        if (poll(INSERTION)) return false;
        i64 own = places[0];
        places[0] = places[last];
        places[last] = own;
        sift(0, last);
    }
    return true;
}
