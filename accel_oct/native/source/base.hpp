// Types that every kernel uses: arrays as Python passes them, vectors, and an arena for what grows.
//
// No standard library, exceptions or RTTI: a kernel is a plain C function over pointers, so that one binary serves
// every Python. Python checks dtypes, shapes and ranges before it passes a pointer (accel_oct/native/records.py).
#pragma once

#include <stdint.h>
#include <stdlib.h>
#if defined(_WIN32)
extern "C" __declspec(dllimport) int __stdcall SwitchToThread(void);
#else
#include <sched.h>
#endif

typedef int64_t i64;
typedef uint64_t u64;

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

// A C-contiguous array of at most five axes.
template <class T>
struct Array {
    T* data;
    i64 shape[5];

    T& operator[](i64 i) const { return data[i]; }
    T& operator()(i64 i, i64 j) const { return data[i * shape[1] + j]; }
    T& operator()(i64 i, i64 j, i64 k) const { return data[(i * shape[1] + j) * shape[2] + k]; }
};

template <class T>
inline T max_of(T a, T b) {
    return a > b ? a : b;
}

template <class T>
inline T min_of(T a, T b) {
    return a < b ? a : b;
}

inline double absolute(double x) { return __builtin_fabs(x); }

constexpr double INFINITE = __builtin_inf();

// ---------------------------------------------------------------- vectors

// Tables are laid out in blocks of 64 bytes; a machine works through a block in vectors of its own width.
constexpr i64 BLOCK_BYTES = 64;
#if defined(__AVX512BW__)
constexpr i64 VECTOR_BYTES = 64;
#elif defined(__AVX2__)
constexpr i64 VECTOR_BYTES = 32;
#else
constexpr i64 VECTOR_BYTES = 16;
#endif

template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
constexpr i64 BLOCK = BLOCK_BYTES / i64(sizeof(T));  // lanes of a block
template <class T>
constexpr i64 LANES = VECTOR_BYTES / i64(sizeof(T));  // lanes of a vector

template <class T>
inline Vector<T> load(const T* place) {
    Vector<T> result;
    __builtin_memcpy(&result, place, VECTOR_BYTES);
    return result;
}

template <class T>
inline void store(T* place, Vector<T> vector) {
    __builtin_memcpy(place, &vector, VECTOR_BYTES);
}

template <class T>
inline Vector<T> spread(T number) {
    return Vector<T>{} + number;
}

template <class V>
inline V most(V a, V b) {
    return a > b ? a : b;
}

template <class V>
inline V least(V a, V b) {
    return a < b ? a : b;
}

// Bits set, lane by lane.
template <class V>
inline V bits_set(V x) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_popcount)
    return __builtin_elementwise_popcount(x);
#define HAS_VECTOR_POPCOUNT
#endif
#endif
#if !defined(HAS_VECTOR_POPCOUNT)
    V result = {};
    for (unsigned lane = 0; lane < sizeof(V) / sizeof(x[0]); lane++) result[lane] = __builtin_popcountll(x[lane]);
    return result;
#endif
}

// ---------------------------------------------------------------- two features

// The four parts of a set by two features a and b, numbered 2 * (side of a) + (side of b).
template <class V>
struct Quarters {
    V part[4];
};

// Counts or sums of all four, by inclusion and exclusion: of all samples, those with a, with b, and with both.
template <class V>
inline Quarters<V> quarters(V all, V with_a, V with_b, V both) {
    V only_b = V(with_b - both);
    return {{V(all - with_a - only_b), only_b, V(with_a - both), both}};
}

// Raise the best values of the sides of a and of b: a side of one is split by the other.
inline void raise_sides(const double* part, double& a0, double& a1, double& b0, double& b1) {
    a0 = max_of(a0, part[0] + part[1]);
    a1 = max_of(a1, part[2] + part[3]);
    b0 = max_of(b0, part[0] + part[2]);
    b1 = max_of(b1, part[1] + part[3]);
}

// The first of the largest sums: the class of a leaf.
template <class T>
inline i64 first_best(const T* sums, i64 n_classes) {
    i64 best = 0;
    for (i64 k = 1; k < n_classes; k++)
        if (sums[k] > sums[best]) best = k;
    return best;
}

// ---------------------------------------------------------------- memory

// Memory of one call or one store: given back all at once, never more than `limit` bytes.
struct Arena {
    struct Chunk {
        Chunk* next;
    };
    Chunk* first;
    i64 used, limit;

    // Null where the limit or the machine has no more. Aligned to 16 bytes.
    void* take(i64 bytes) {
        if (bytes < 0 || bytes > limit - used) return nullptr;
        Chunk* chunk = static_cast<Chunk*>(malloc(size_t(bytes) + 16));
        if (!chunk) return nullptr;
        used += bytes;
        chunk->next = first;
        first = chunk;
        return reinterpret_cast<char*>(chunk) + 16;
    }

    template <class T>
    T* array(i64 size) {
        if (size < 0 || size > INT64_MAX / i64(sizeof(T))) return nullptr;
        return static_cast<T*>(take(size * i64(sizeof(T))));
    }

    template <class T>
    T* zeros(i64 size) {
        T* result = array<T>(size);
        if (result) __builtin_memset(result, 0, size_t(size) * sizeof(T));
        return result;
    }

    void clear() {
        while (first) {
            Chunk* next = first->next;
            free(first);
            first = next;
        }
        used = 0;
    }
};

// ---------------------------------------------------------------- stopping

// Python's answer, after a look at its clock and its signals: zero where the call shall end.
typedef int32_t (*MayGoOn)();

// Asks Python now and then, by the work that was done. A unit of work is one step of an innermost loop, about a
// nanosecond. A kernel that was stopped returns at once; what it wrote until then means nothing.
struct Poll {
    static inline i64 interval = 20'000'000;

    MayGoOn may_go_on;
    i64 left = interval;
    bool stopped = false;

    // Count some work that comes next; true once the call shall end.
    bool operator()(i64 work) {
        left -= work;
        if (left < 0) {
            left = interval;
            stopped = stopped || !may_go_on();
        }
        return stopped;
    }
};

// Types of counters, as Python names them.
enum Counter { INT16 = 0, INT32 = 1, REAL = 2 };

template <class T>
struct Tag {
    typedef T type;
};

// Call `body` with a tag of the type of the counters.
template <class Body>
inline void with_counter(int32_t counter, Body body) {
    if (counter == INT16)
        body(Tag<int16_t>{});
    else if (counter == INT32)
        body(Tag<int32_t>{});
    else
        body(Tag<double>{});
}
