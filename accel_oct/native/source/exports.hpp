// What the functions that Python calls share. Every pointer was checked there, see accel_oct/native/__init__.py.
// Functions that may take long have an argument `may_go_on` and return how they ended.
#pragma once

#include "base.hpp"

// Records of counters of any type have one layout: a function reads them as those of the type that it is given.
template <class Record>
inline const Record& as(const void* record) {
    return *static_cast<const Record*>(record);
}

// Whether all numbers are places of an array of some length. Functions return OUT_OF_RANGE where some index is not.
inline bool within(const Array<i64>& indices, i64 length) {
    bool good = true;
    for (i64 i = 0; i < indices.shape[0]; i++) good &= u64(indices[i]) < u64(length);
    return good;
}

constexpr int32_t DONE = 0, OUT_OF_RANGE = 1, OUT_OF_MEMORY = 2, STOPPED = 3;

// How a call ended that fails without memory, or when it was stopped.
inline int32_t ended(bool finished, const Poll& poll) {
    return finished ? DONE : poll.stopped ? STOPPED : OUT_OF_MEMORY;
}
