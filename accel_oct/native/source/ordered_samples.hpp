// Samples with ordered columns: sets of samples, their splits, and the best tree with one split on both sides of one.
//
// A column is an order of the samples: ranks 0, 1, 2, ..., equal for equal values. A split sends ranks up to a threshold
// to the left. Costs are whole numbers: `unit` times the weight of the errors, plus `price` per leaf.
//
// Columns lie side by side in the lanes of vectors: at [block][position][lane] is the sample at that position in the
// lane's own order. So one loop over the positions carries the running sums of all columns, without shuffles.
#pragma once

#include "base.hpp"

namespace ordered {

// What is summed up over samples.
enum Statistic {
    SIGNED = 0,    // two classes: a signed weight, positive for the second class
    LABELLED = 1,  // a class and a weight
    GAINS = 2,     // per class what a leaf with its label earns
};

template <class T>
struct LaneOf;
template <>
struct LaneOf<int16_t> {
    typedef int16_t rank;
    typedef uint16_t id;
};
template <>
struct LaneOf<int32_t> {
    typedef int32_t rank;
    typedef uint32_t id;
};
template <>
struct LaneOf<double> {
    typedef int64_t rank;
    typedef uint32_t id;
};
template <class T>
using Rank = typename LaneOf<T>::rank;  // as wide as T, so that comparisons give masks for T
template <class T>
using Id = typename LaneOf<T>::id;

// A random number for a counter.
inline u64 mixed(u64 x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Identifies a set: the sum of random keys of its members, in 128 bits.
struct Key {
    u64 a, b;

    void add(const Key& other) { a += other.a, b += other.b; }
    bool operator==(const Key& other) const { return a == other.a && b == other.b; }
};

inline Key random_key(u64 number) { return Key{mixed(2 * number + 1), mixed(~(2 * number))}; }

// Memory in the order of a stack, for what lives as long as a call.
struct Stack {
    struct Chunk {
        Chunk* below;
        i64 size, used;
    };
    Chunk *top, *spare;  // `spare` was released last: calls in a row use it again
    i64 taken, limit;    // bytes
    bool failed;

    struct Mark {
        Chunk* chunk;
        i64 used;
    };

    static constexpr i64 HEADER = 64, LEAST = 1 << 20;

    void* take(i64 bytes) {
        bytes = (bytes + 63) / 64 * 64;
        if (!top || top->size - top->used < bytes) {
            if (!raise(max_of(bytes, LEAST) + HEADER)) {
                failed = true;
                return nullptr;
            }
        }
        void* result = reinterpret_cast<char*>(top) + top->used;
        top->used += bytes;
        return result;
    }

    template <class T>
    T* array(i64 size) {
        return static_cast<T*>(take(size * i64(sizeof(T))));
    }

    Mark mark() const { return Mark{top, top ? top->used : 0}; }

    void release(Mark mark) {
        while (top != mark.chunk) {
            Chunk* below = top->below;
            if (spare && spare->size >= top->size) {
                drop(top);
            } else {
                if (spare) drop(spare);
                spare = top;
            }
            top = below;
        }
        if (top) top->used = mark.used;
    }

    void clear() {
        release(Mark{nullptr, 0});
        if (spare) drop(spare);
        spare = nullptr;
    }

private:
    bool raise(i64 size) {
        Chunk* chunk = spare;
        if (spare && spare->size >= size) {
            spare = nullptr;
        } else {
            chunk = size > limit - taken ? nullptr : static_cast<Chunk*>(aligned(size));
            if (!chunk) return false;
            chunk->size = size;
            taken += size;
        }
        chunk->below = top, chunk->used = HEADER;
        top = chunk;
        return true;
    }

    void drop(Chunk* chunk) {
        taken -= chunk->size;
        unaligned(chunk);
    }

    // Memory aligned to 64 bytes; malloc alone is portable, so the start is kept in front of it.
    static void* aligned(i64 size) {
        char* raw = static_cast<char*>(malloc(size_t(size) + 64 + sizeof(void*)));
        if (!raw) return nullptr;
        u64 place = (u64(raw) + sizeof(void*) + 63) / 64 * 64;
        reinterpret_cast<void**>(place)[-1] = raw;
        return reinterpret_cast<void*>(place);
    }
    static void unaligned(void* memory) { free(static_cast<void**>(memory)[-1]); }
};

// An array that grows; `false` where there is no memory.
template <class T>
struct List {
    T* data;
    i64 size, room;

    bool push(const T& item) {
        if (size == room) {
            const i64 wanted = room ? 2 * room : 64;
            T* larger = static_cast<T*>(realloc(data, size_t(wanted) * sizeof(T)));
            if (!larger) return false;
            data = larger, room = wanted;
        }
        data[size++] = item;
        return true;
    }
    void clear() {
        free(data);
        data = nullptr, size = room = 0;
    }
};

// The table as Python passes it, and what follows from it.
template <class T>
struct Table {
    i64 n, columns, classes, masses;
    const int32_t* rank;       // [columns][n]
    const T* value;            // SIGNED, LABELLED: [n]; GAINS: [classes][n]
    const int32_t* label;      // LABELLED: [n]
    const i64* weight;         // [n] most that the sample can cost, in units
    const i64* unavoidable;    // [n] what no tree can avoid, in units: summed over a set of whole points
    const T* mass;             // [masses][n]
    const i64* least;          // [masses] of every leaf
    const uint8_t* apart;      // [columns][columns] not on one path, or null
    i64 unit, price;
    i64 uniform;               // weight of every sample, or 0 where they differ

    bool limited() const { return masses > 0; }
};

// A set of samples.
template <class T>
struct Node {
    i64 size, columns, copies, blocks;  // copies: how often all columns lie side by side
    const int32_t* column;              // [columns] index in the table
    const Id<T>* thresholds;            // [columns][size] positions at which a value ends and another begins
    const int32_t* counts;              // [columns] of thresholds
    const Id<T>* ids;                   // [blocks][size][lanes], and so the following
    const Rank<T>* ends;                // all ones where a value ends and another begins
    const T* values;                    // SIGNED, LABELLED: one array; GAINS: one per class
    const Rank<T>* labels;              // LABELLED
    const T* masses;                    // one array per mass
    const i64* totals;                  // SIGNED: the sum of signs; else per class
    const i64* mass_totals;
    const uint8_t* forbidden;           // [columns of the table] ruled out by the path, or null
    const u64* bits;                    // the members, a bit each
    Key key;                            // of the samples and of the columns that are ruled out
    i64 weight, unavoidable;            // in units
    i64 leaf;                           // cost of a single leaf; IMPOSSIBLE where it is too light

    i64 stride;                         // from an array of values or masses to the next

    i64 lanes() const { return blocks * LANES<T>; }
    i64 area() const { return blocks * size * LANES<T>; }
    i64 place(i64 lane, i64 position) const {
        return (lane / LANES<T> * size + position) * LANES<T> + lane % LANES<T>;
    }
};

constexpr i64 IMPOSSIBLE = i64(1) << 61;

template <class T, Statistic statistic>
struct Samples {
    const Table<T>& table;

    i64 n_totals() const { return statistic == SIGNED ? 1 : table.classes; }
    i64 n_values() const { return statistic == GAINS ? table.classes : 1; }

    i64 words() const { return (table.n + 63) / 64; }

    // Weight of the errors of a leaf, in units.
    i64 errors(const i64* totals, i64 weight) const {
        if (statistic == SIGNED) return (weight - (totals[0] < 0 ? -totals[0] : totals[0])) / 2;
        i64 most = totals[0];
        for (i64 k = 1; k < table.classes; k++) most = max_of(most, totals[k]);
        return weight - most;
    }

    int32_t best_label(const i64* totals) const {
        if (statistic == SIGNED) return totals[0] > 0;
        int32_t best = 0;
        for (i64 k = 1; k < table.classes; k++)
            if (totals[k] > totals[best]) best = int32_t(k);
        return best;
    }

    bool heavy(const i64* masses) const {
        for (i64 r = 0; r < table.masses; r++)
            if (masses[r] < table.least[r]) return false;
        return true;
    }

    void add(i64* totals, i64 id, i64 sign) const {
        if (statistic == SIGNED)
            totals[0] += sign * i64(table.value[id]);
        else if (statistic == LABELLED)
            totals[table.label[id]] += sign * i64(table.value[id]);
        else
            for (i64 k = 0; k < table.classes; k++) totals[k] += sign * i64(table.value[k * table.n + id]);
    }

    void add_masses(i64* masses, i64 id) const {
        for (i64 r = 0; r < table.masses; r++) masses[r] += i64(table.mass[r * table.n + id]);
    }

    // ------------------------------------------------------------ building

    // Sums over the members, and room for the arrays of at most `columns` columns; false where memory ends.
    bool begin(Node<T>& node, const Id<T>* members, i64 size, i64 columns, Stack& stack) const {
        const i64 L = LANES<T>;
        i64* totals = stack.array<i64>(n_totals());
        i64* mass_totals = stack.array<i64>(max_of<i64>(1, table.masses));
        if (!totals || !mass_totals) return false;
        for (i64 k = 0; k < n_totals(); k++) totals[k] = 0;
        for (i64 r = 0; r < table.masses; r++) mass_totals[r] = 0;
        u64* bits = stack.array<u64>(words());
        if (!bits) return false;
        for (i64 w = 0; w < words(); w++) bits[w] = 0;
        i64 weight = 0, unavoidable = 0;
        for (i64 i = 0; i < size; i++) {
            const i64 id = members[i];
            bits[id / 64] |= u64(1) << id % 64;
            add(totals, id, 1);
            add_masses(mass_totals, id);
            weight += table.weight[id];
            unavoidable += table.unavoidable[id];
        }
        node.size = size;
        node.bits = bits;
        node.totals = totals;
        node.mass_totals = mass_totals;
        node.weight = weight;
        node.unavoidable = unavoidable;
        node.leaf = heavy(mass_totals) ? table.unit * errors(totals, weight) + table.price : IMPOSSIBLE;
        node.blocks = (columns + L - 1) / L;
        node.stride = node.area();
        node.ids = stack.array<Id<T>>(node.stride);
        node.ends = stack.array<Rank<T>>(node.stride);
        node.values = stack.array<T>(node.stride * n_values());
        node.labels = statistic == LABELLED ? stack.array<Rank<T>>(node.stride) : nullptr;
        node.masses = stack.array<T>(node.stride * table.masses);
        node.column = stack.array<int32_t>(max_of<i64>(1, columns));
        node.counts = stack.array<int32_t>(max_of<i64>(1, columns));
        node.thresholds = stack.array<Id<T>>(columns * size);
        node.columns = 0;
        return !stack.failed;
    }

    // The next column of the node, from the samples in its order.
    void add_column(Node<T>& node, int32_t column, const Id<T>* order) const {
        const i64 L = LANES<T>, size = node.size, at = node.place(node.columns, 0);
        const int32_t* rank = table.rank + i64(column) * table.n;
        int32_t here = rank[order[0]];
        if (here == rank[order[size - 1]]) return;  // one value: nothing to split
        Id<T>* ids = const_cast<Id<T>*>(node.ids) + at;
        Rank<T>* ends = const_cast<Rank<T>*>(node.ends) + at;
        T* values = const_cast<T*>(node.values) + at;
        Id<T>* thresholds = const_cast<Id<T>*>(node.thresholds) + node.columns * size;
        i64 count = 0;
        for (i64 i = 0; i + 1 < size; i++) {
            const i64 id = order[i];
            const int32_t next = rank[order[i + 1]];
            const bool is_end = here != next;
            ids[i * L] = Id<T>(id);
            ends[i * L] = Rank<T>(-Rank<T>(is_end));
            values[i * L] = table.value[id];
            thresholds[count] = Id<T>(i);
            count += is_end;
            here = next;
        }
        const i64 last = order[size - 1];
        ids[(size - 1) * L] = Id<T>(last);
        ends[(size - 1) * L] = 0;
        values[(size - 1) * L] = table.value[last];
        for (i64 k = 1; k < n_values(); k++)
            for (i64 i = 0; i < size; i++) values[k * node.stride + i * L] = table.value[k * table.n + order[i]];
        if (statistic == LABELLED) {
            Rank<T>* labels = const_cast<Rank<T>*>(node.labels) + at;
            for (i64 i = 0; i < size; i++) labels[i * L] = Rank<T>(table.label[order[i]]);
        }
        for (i64 r = 0; r < table.masses; r++) {
            T* masses = const_cast<T*>(node.masses) + r * node.stride + at;
            for (i64 i = 0; i < size; i++) masses[i * L] = table.mass[r * table.n + order[i]];
        }
        const_cast<int32_t*>(node.counts)[node.columns] = int32_t(count);
        const_cast<int32_t*>(node.column)[node.columns++] = column;
    }

    // Copies of few columns fill the lanes of a vector; lanes that are left over have no ends.
    void finish(Node<T>& node) const {
        const i64 L = LANES<T>, columns = node.columns;
        node.blocks = (columns + L - 1) / L;
        node.copies = 1;
        if (!columns) return;
        if (columns < L) node.copies = L / columns;
        for (i64 lane = columns; lane < node.lanes(); lane++) {
            const bool used = lane < columns * node.copies;
            const i64 to = node.place(lane, 0), from = node.place(lane % columns, 0);
            copy_lane(const_cast<Id<T>*>(node.ids), to, from, node.size);
            copy_lane(const_cast<Rank<T>*>(node.ends), to, from, node.size);
            if (!used)
                for (i64 i = 0; i < node.size; i++) const_cast<Rank<T>*>(node.ends)[to + i * L] = 0;
            for (i64 k = 0; k < n_values(); k++)
                copy_lane(const_cast<T*>(node.values) + k * node.stride, to, from, node.size);
            if (statistic == LABELLED) copy_lane(const_cast<Rank<T>*>(node.labels), to, from, node.size);
            for (i64 r = 0; r < table.masses; r++)
                copy_lane(const_cast<T*>(node.masses) + r * node.stride, to, from, node.size);
        }
    }

    template <class E>
    static void copy_lane(E* array, i64 to, i64 from, i64 size) {
        for (i64 i = 0; i < size; i++) array[to + i * LANES<T>] = array[from + i * LANES<T>];
    }

    // All samples; `forbidden` is null.
    bool root(Node<T>& node, Stack& stack) const {
        const i64 n = table.n;
        Id<T>* members = stack.array<Id<T>>(n);
        if (!members) return false;
        Key key = {0, 0};
        for (i64 i = 0; i < n; i++) members[i] = Id<T>(i), key.add(random_key(u64(i)));
        if (!begin(node, members, n, table.columns, stack)) return false;
        node.key = key;
        node.forbidden = nullptr;
        i64* place = stack.array<i64>(n + 1);
        Id<T>* order = stack.array<Id<T>>(n);
        if (!place || !order) return false;
        for (i64 j = 0; j < table.columns; j++) {
            const int32_t* rank = table.rank + j * n;
            for (i64 i = 0; i <= n; i++) place[i] = 0;
            for (i64 i = 0; i < n; i++) place[rank[i] + 1]++;
            for (i64 i = 0; i < n; i++) place[i + 1] += place[i];
            for (i64 i = 0; i < n; i++) order[place[rank[i]]++] = Id<T>(i);
            add_column(node, int32_t(j), order);
        }
        finish(node);
        return true;
    }

    // One side of a split: the first `left` positions of a lane, or the others. `flags` has room for all samples.
    bool side(Node<T>& child, const Node<T>& node, i64 lane, i64 left, bool is_left, uint8_t* flags, Stack& stack) const {
        const i64 L = LANES<T>, n = table.n;
        const i64 size = is_left ? left : node.size - left;
        const Id<T>* order = node.ids + node.place(lane, 0);
        Id<T>* members = stack.array<Id<T>>(size + 1);  // one more is written and not kept
        if (!members) return false;
        Key key = {0, 0};
        i64 filled = 0;
        for (i64 i = 0; i < node.size; i++) {
            const Id<T> id = order[i * L];
            const bool kept = (i < left) == is_left;
            flags[id] = kept;
            if (kept) members[filled++] = id, key.add(random_key(id));
        }
        if (!begin(child, members, size, node.columns, stack)) return false;
        const uint8_t* forbidden = node.forbidden;
        if (table.apart) {
            const uint8_t* apart = table.apart + i64(node.column[lane]) * table.columns;
            uint8_t* more = stack.array<uint8_t>(table.columns);
            if (!more) return false;
            for (i64 j = 0; j < table.columns; j++) {
                more[j] = apart[j] || (forbidden && forbidden[j]);
                if (more[j]) key.add(random_key(u64(n + j)));
            }
            forbidden = more;
        }
        child.key = key;
        child.forbidden = forbidden;
        for (i64 c = 0; c < node.columns; c++) {
            if (forbidden && forbidden[node.column[c]]) continue;
            const Id<T>* from = node.ids + node.place(c, 0);
            i64 next = 0;
            // Written in any case, kept where the place moves on: no branch to guess.
            for (i64 i = 0; i < node.size; i++) {
                const Id<T> id = from[i * L];
                members[next] = id;
                next += flags[id];
            }
            add_column(child, node.column[c], members);
        }
        finish(child);
        return true;
    }

    // ------------------------------------------------------------ trees with one split

    // What a pass leaves behind per lane: the extremes of prefix sums, or the best sums of both leaves.
    struct Extremes {
        T* left_high;  // SIGNED: the largest prefix sum; else: the most that two leaves earn
        T* left_low;   // SIGNED
        T* right_high;
        T* right_low;
        T* left_sum;  // SIGNED: the sum of the left side
        T* sums;  // room for the running sums of a block: 2 * (classes + masses) vectors
    };

    // Scalars of the sets on both sides of a threshold, spread over the lanes; not used by SIGNED without masses.
    struct Sides {
        const T* left_totals;  // [classes][lanes]
        const T* right_totals;
        const T* left_masses;  // [masses][lanes]
        const T* right_masses;
    };

    // Run down the positions of all lanes. `masked`: samples whose rank in another column is at most that of the
    // lane's threshold are on the left; else all are.
    template <bool masked, bool limited>
    void pass(const Node<T>& node, const Rank<T>* ranks, const Rank<T>* thresholds, const Sides& sides, const Extremes& out)
        const {
        typedef Vector<T> V;
        typedef Vector<Rank<T>> M;
        const i64 L = LANES<T>, K = table.classes, R = table.masses;
        for (i64 b = 0; b < node.blocks; b++) {
            const i64 base = b * node.size * L, lane = b * L;
            const M at = masked ? load(thresholds + lane) : M{};
            V x = {}, y = {}, xh = {}, xl = {}, yh = {}, yl = {};
            V *xs = reinterpret_cast<V*>(out.sums), *ys = xs + K, *xm = ys + K, *ym = xm + R;
            if (statistic != SIGNED || limited)
                for (i64 k = 0; k < 2 * (K + R); k++) xs[k] = V{};
            for (i64 i = 0; i < node.size; i++) {
                const i64 q = base + i * L;
                const M left = masked ? M(load(ranks + q) <= at) : ~M{};
                M end = load(node.ends + q), end_x = end, end_y = end;
                if (limited)
                    for (i64 r = 0; r < R; r++) {
                        const V mass = load(node.masses + r * node.stride + q);
                        const V here = V(M(mass) & left);
                        const V least = spread<T>(T(table.least[r]));
                        xm[r] += here;
                        end_x &= M(xm[r] >= least) & M(load(sides.left_masses + r * node.lanes() + lane) - xm[r] >= least);
                        if (masked) {
                            ym[r] += mass - here;
                            end_y &=
                                M(ym[r] >= least) & M(load(sides.right_masses + r * node.lanes() + lane) - ym[r] >= least);
                        }
                    }
                if (statistic == SIGNED) {
                    const V value = load(node.values + q), here = V(M(value) & left);
                    x += here;
                    const V p = V(M(x) & end_x);
                    xh = most(xh, p), xl = least(xl, p);
                    if (masked) {
                        y += value - here;
                        const V o = V(M(y) & end_y);
                        yh = most(yh, o), yl = least(yl, o);
                    }
                } else {
                    V value = {}, best_x = {}, rest_x = {}, best_y = {}, rest_y = {};
                    M label = {};
                    if (statistic == LABELLED) value = load(node.values + q), label = load(node.labels + q);
                    for (i64 k = 0; k < K; k++) {
                        const V gain = statistic == LABELLED
                                           ? V(M(value) & M(label == spread<Rank<T>>(Rank<T>(k))))
                                           : load(node.values + k * node.stride + q);
                        const V here = V(M(gain) & left);
                        xs[k] += here;
                        best_x = most(best_x, xs[k]);
                        rest_x = most(rest_x, load(sides.left_totals + k * node.lanes() + lane) - xs[k]);
                        if (masked) {
                            ys[k] += gain - here;
                            best_y = most(best_y, ys[k]);
                            rest_y = most(rest_y, load(sides.right_totals + k * node.lanes() + lane) - ys[k]);
                        }
                    }
                    xh = most(xh, V(M(best_x + rest_x) & end_x));
                    if (masked) yh = most(yh, V(M(best_y + rest_y) & end_y));
                }
            }
            store(out.left_high + lane, xh);
            if (masked) store(out.right_high + lane, yh);
            if (statistic == SIGNED) {
                store(out.left_low + lane, xl);
                if (masked) store(out.right_low + lane, yl), store(out.left_sum + lane, x);
            }
        }
    }

    template <bool masked>
    void run_pass(const Node<T>& node, const Rank<T>* ranks, const Rank<T>* thresholds, const Sides& sides, const Extremes& out)
        const {
        if (table.limited())
            pass<masked, true>(node, ranks, thresholds, sides, out);
        else
            pass<masked, false>(node, ranks, thresholds, sides, out);
    }

    // Numbers that `Extremes::sums` has room for.
    i64 n_sums() const { return 2 * (table.classes + table.masses) * LANES<T>; }

    // Errors of two leaves with these extremes, in units. `total`: the sum of the signs (SIGNED).
    i64 split_errors(T high, T low, i64 total, i64 weight) const {
        if (statistic != SIGNED) return weight - i64(high);
        return (weight - max_of(total < 0 ? -total : total, max_of(2 * i64(high) - total, total - 2 * i64(low)))) / 2;
    }

    // Cost of the best split of each column, in `costs`; of all of them, in the result.
    i64 best_split(const Node<T>& node, i64* costs, Stack& stack) const {
        const Stack::Mark mark = stack.mark();
        const i64 lanes = node.lanes();
        i64 best = IMPOSSIBLE;
        T* out = stack.array<T>(lanes * (2 + n_totals() + table.masses));
        T* sums = stack.array<T>(n_sums());
        if (out && sums && node.columns) {
            T *totals = out + 2 * lanes, *masses = totals + n_totals() * lanes;
            for (i64 k = 0; k < n_totals(); k++)
                for (i64 lane = 0; lane < lanes; lane++) totals[k * lanes + lane] = T(node.totals[k]);
            for (i64 r = 0; r < table.masses; r++)
                for (i64 lane = 0; lane < lanes; lane++) masses[r * lanes + lane] = T(node.mass_totals[r]);
            const Extremes extremes = {out, out + lanes, nullptr, nullptr, nullptr, sums};
            run_pass<false>(node, nullptr, nullptr, Sides{totals, nullptr, masses, nullptr}, extremes);
            for (i64 c = 0; c < node.columns; c++) {
                const i64 errors = split_errors(out[c], out[lanes + c], node.totals[0], node.weight);
                costs[c] = table.unit * errors + 2 * table.price;
                best = min_of(best, costs[c]);
            }
        }
        stack.release(mark);
        return node.leaf == IMPOSSIBLE ? IMPOSSIBLE : best;
    }
};

}  // namespace ordered
