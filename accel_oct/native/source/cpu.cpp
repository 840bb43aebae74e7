// A library of its own, which runs on every processor and tells which of the others this one can run: CPU level 2, 3 or
// 4 of x86-64-v2, v3, v4; 0 where the processor has less; 1 on other architectures.

#include "base.hpp"

#if defined(__x86_64__)
struct CpuId {
    uint32_t a, b, c, d;
};

static CpuId cpu_id(uint32_t leaf, uint32_t part) {
    CpuId id;
    __asm__ volatile("cpuid" : "=a"(id.a), "=b"(id.b), "=c"(id.c), "=d"(id.d) : "a"(leaf), "c"(part));
    return id;
}

static i64 cpu_level() {
    auto all = [](uint32_t word, uint32_t bits) { return (word & bits) == bits; };
    const uint32_t most = cpu_id(0, 0).a;
    const CpuId one = cpu_id(1, 0);
    const uint32_t sse3 = 1u << 0, ssse3 = 1u << 9, cx16 = 1u << 13, sse41 = 1u << 19, sse42 = 1u << 20, popcnt = 1u << 23;
    if (!all(one.c, sse3 | ssse3 | cx16 | sse41 | sse42 | popcnt)) return 0;
    const uint32_t fma = 1u << 12, movbe = 1u << 22, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    if (most < 7 || !all(one.c, fma | movbe | osxsave | avx | f16c)) return 2;
    uint32_t state, unused;  // registers that the operating system saves
    __asm__ volatile("xgetbv" : "=a"(state), "=d"(unused) : "c"(0));
    const CpuId seven = cpu_id(7, 0), extended = cpu_id(0x80000001u, 0);
    const uint32_t bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8, lzcnt = 1u << 5;
    if (!all(state, 0x6) || !all(seven.b, bmi1 | avx2 | bmi2) || !all(extended.c, lzcnt)) return 2;
    const uint32_t f = 1u << 16, dq = 1u << 17, cd = 1u << 28, bw = 1u << 30, vl = 1u << 31;
    return all(state, 0xe6) && all(seven.b, f | dq | cd | bw | vl) ? 4 : 3;
}
#else
static i64 cpu_level() { return 1; }
#endif

EXPORT i64 machine_level() { return cpu_level(); }
