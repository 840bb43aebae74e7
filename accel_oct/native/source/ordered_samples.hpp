// Samples with ordered columns: sets of samples, their splits, and the best tree with one split on both sides of one.
//
// A column is an order of the samples: ranks 0, 1, 2, ..., equal for equal values. A split sends ranks up to a threshold
// to the left. Costs are whole numbers: `unit` times the weight of the errors, plus `price` per leaf.
//
// Depth two is searched for many splits of a set at once, one per lane of a vector: see `Sides`.
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
    typedef int16_t mask;
    typedef uint16_t id;
};
template <>
struct LaneOf<int32_t> {
    typedef int32_t mask;
    typedef uint32_t id;
};
template <>
struct LaneOf<double> {
    typedef int64_t mask;
    typedef uint32_t id;
};
template <class T>
using Mask = typename LaneOf<T>::mask;  // as wide as T: what comparisons give
template <class T>
using Id = typename LaneOf<T>::id;

// A member of a set in the order of a column.
template <class T>
struct Entry {
    Id<T> id, rank;
};

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

// A set of samples. Its members have numbers of their own, 0 to size - 1; so arrays over them are small.
template <class T>
struct Node {
    i64 size, columns;
    const int32_t* column;     // [columns] index in the table
    const Entry<T>* entries;   // [columns][size] members in the order of the column
    const Id<T>* thresholds;   // [columns][size] positions at which a value ends and another begins
    const T* prefix;           // [columns][size] SIGNED: sums up to each threshold
    const int32_t* counts;     // [columns] of thresholds
    const Id<T>* steps;        // [columns][STEP * size], see `find_steps`; or null
    const T* step_sums;        // [columns][size] sums up to each step
    const int32_t* n_steps;    // [columns]
    const Id<T>* members;      // [size] sample in the table
    const T* values;           // SIGNED, LABELLED: [size]; GAINS: [classes][size]
    const int32_t* labels;     // LABELLED: [size]
    const T* masses;           // [masses][size]
    const i64* totals;         // SIGNED: the sum of signs; else per class
    const i64* mass_totals;
    const uint8_t* forbidden;  // [columns of the table] ruled out by the path, or null
    const u64* bits;           // the members, a bit each
    Key key;                   // of the samples and of the columns that are ruled out
    i64 weight, unavoidable;   // in units
    i64 leaf;                  // cost of a single leaf; IMPOSSIBLE where it is too light
    i64 stump;                 // cost of the best tree with at most one split, or -1 where it was not counted
    const Node* parent;        // the set that it is a side of
    const Id<T>* fresh;        // [size of the parent] numbers of its members here, or -1

    static constexpr i64 STEP = 4;
    static constexpr T TIED = T(INT16_MIN);  // sums of signs are larger

    const Entry<T>* order(i64 c) const { return entries + c * size; }
    const Id<T>* ends(i64 c) const { return thresholds + c * size; }
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

    // A bound on the cost of a set with these sums, for trees of a depth: a class has a leaf of its own, or all of it is
    // lost. So with k classes that have leaves the cost is at least k prices and the weight of the other classes.
    i64 least_cost(const i64* totals, i64 weight, i64 depth) const {
        const i64 price = table.price;
        if (statistic == SIGNED) return price + min_of(table.unit * errors(totals, weight), price);
        if (statistic == GAINS) return price;
        i64 result = table.unit * weight, before = INT64_MAX, place = -1;
        for (i64 leaf = 0; leaf < table.classes && (depth > 30 || leaf < i64(1) << depth); leaf++) {
            // The largest sum that was not taken yet.
            i64 best = -1;
            for (i64 k = 0; k < table.classes; k++) {
                const bool is_left = totals[k] < before || (totals[k] == before && k > place);
                if (is_left && (best < 0 || totals[k] > totals[best])) best = k;
            }
            if (best < 0 || (leaf && table.unit * totals[best] <= price)) break;
            result -= table.unit * totals[best] - price;
            before = totals[best], place = best;
        }
        return result;
    }

    bool heavy(const i64* masses) const {
        for (i64 r = 0; r < table.masses; r++)
            if (masses[r] < table.least[r]) return false;
        return true;
    }

    // Add a member of a set to sums.
    void add(i64* totals, const Node<T>& node, i64 id) const {
        if (statistic == LABELLED)
            totals[node.labels[id]] += i64(node.values[id]);
        else
            for (i64 k = 0; k < n_values(); k++) totals[k] += i64(node.values[k * node.size + id]);
    }

    void add_masses(i64* masses, const Node<T>& node, i64 id) const {
        for (i64 r = 0; r < table.masses; r++) masses[r] += i64(node.masses[r * node.size + id]);
    }

    // ------------------------------------------------------------ building

    // Sums over the members; false where memory ends.
    bool begin(Node<T>& node, const Id<T>* members, i64 size, Stack& stack) const {
        const i64 V = n_values(), R = table.masses;
        i64* totals = stack.array<i64>(n_totals());
        i64* mass_totals = stack.array<i64>(max_of<i64>(1, R));
        u64* bits = stack.array<u64>(words());
        T* values = stack.array<T>(V * size);
        T* masses = stack.array<T>(R * size);
        int32_t* labels = statistic == LABELLED ? stack.array<int32_t>(size) : nullptr;
        if (stack.failed) return false;
        for (i64 k = 0; k < n_totals(); k++) totals[k] = 0;
        for (i64 r = 0; r < R; r++) mass_totals[r] = 0;
        for (i64 w = 0; w < words(); w++) bits[w] = 0;
        node.size = size;
        node.columns = 0;
        node.members = members;
        node.values = values;
        node.masses = masses;
        node.labels = labels;
        node.bits = bits;
        node.totals = totals;
        node.mass_totals = mass_totals;
        node.weight = node.unavoidable = 0;
        node.stump = -1;
        for (i64 i = 0; i < size; i++) {
            const i64 sample = members[i];
            bits[sample / 64] |= u64(1) << sample % 64;
            for (i64 k = 0; k < V; k++) values[k * size + i] = table.value[k * table.n + sample];
            for (i64 r = 0; r < R; r++) masses[r * size + i] = table.mass[r * table.n + sample];
            if (statistic == LABELLED) labels[i] = table.label[sample];
            add(totals, node, i);
            add_masses(mass_totals, node, i);
            node.weight += table.weight[sample];
            node.unavoidable += table.unavoidable[sample];
        }
        node.leaf = heavy(mass_totals) ? table.unit * errors(totals, node.weight) + table.price : IMPOSSIBLE;
        return true;
    }

    // Room for the arrays of at most `columns` columns; false where memory ends.
    bool begin_columns(Node<T>& node, i64 columns, Stack& stack) const {
        const i64 size = node.size;
        node.columns = 0;
        node.entries = stack.array<Entry<T>>(columns * size);
        node.thresholds = stack.array<Id<T>>(columns * size);
        node.prefix = statistic == SIGNED ? stack.array<T>(columns * size) : nullptr;
        node.column = stack.array<int32_t>(max_of<i64>(1, columns));
        node.counts = stack.array<int32_t>(max_of<i64>(1, columns));
        node.steps = nullptr;
        if (has_steps()) {
            // Dummies are written beyond the last step.
            node.steps = stack.array<Id<T>>(Node<T>::STEP * (columns * size + 1));
            node.step_sums = stack.array<T>(columns * size);
            node.n_steps = stack.array<int32_t>(max_of<i64>(1, columns));
        }
        return !stack.failed;
    }

    // Whether columns are searched for splits in steps.
    bool has_steps() const { return is_plain() && sizeof(T) == 2 && !table.apart; }

    // A walk through a column from one of its ends to the last threshold. A split is the same from both ends, so the walk
    // leaves out the larger of the groups of equal values at the ends: of a column with two values it visits the fewer.
    struct Walk {
        const Entry<T>* from;
        i64 stride, length;
        bool is_down;
    };

    Walk walk(const Node<T>& node, i64 c, i64 count) const {
        const i64 size = node.size, first = node.ends(c)[0], last = node.ends(c)[count - 1];
        const bool is_down = first + 1 > size - 1 - last;
        return is_down ? Walk{node.order(c) + size - 1, -1, size - 1 - first, true} : Walk{node.order(c), 1, last + 1, false};
    }

    // Put the members into steps of at most STEP, in the order of a walk, so that thresholds inside of steps need no look
    // for the best split of any subset: there the samples before and after are of one class, so the sum of signs up to it
    // lies between those of the thresholds around it, and only the extremes count. Steps are filled up with a dummy.
    // A step that ends between equal values has the sum TIED: no split is there.
    i64 find_steps(Node<T>& node, i64 c, i64 count) const {
        const i64 size = node.size, STEP = Node<T>::STEP;
        const Walk walk = this->walk(node, c, count);
        Id<T>* to = const_cast<Id<T>*>(node.steps) + STEP * c * size;
        T* sums = const_cast<T*>(node.step_sums) + c * size;
        Id<T> dummies[STEP];
        for (i64 g = 0; g < STEP; g++) dummies[g] = Id<T>(size);
        i64 next = 0;
        T sum = T(0);
        const Entry<T>* at = walk.from;
        T value = node.values[at->id];
        // No branch to guess in here; the last threshold has a sample behind it.
        unsigned was_tied = 0, is_tied = at[0].rank == at[walk.stride].rank;
        for (i64 i = 0; i < walk.length; i++, at += walk.stride) {
            to[next] = at->id;
            __builtin_memcpy(to + next + 1, dummies, sizeof(dummies));
            sum += value;
            sums[next / STEP] = is_tied ? Node<T>::TIED : sum;
            next++;
            const Entry<T>& after = at[walk.stride];
            const i64 beyond = i + 1 < walk.length ? 2 * walk.stride : 0;
            const T next_value = node.values[after.id];
            const unsigned ties_follow = after.rank == at[beyond].rank, turns = (value < T(0)) != (next_value < T(0));
            const i64 is_needed = (is_tied ^ 1) & (was_tied | ties_follow | turns);
            next += -next & (STEP - 1) & -is_needed;
            was_tied = is_tied, is_tied = ties_follow, value = next_value;
        }
        return (next + STEP - 1) / STEP;
    }

    // Write the thresholds of a column from its order and ranks; their number.
    i64 find_ends(Node<T>& node, i64 c) const {
        const Entry<T>* order = node.order(c);
        Id<T>* ends = const_cast<Id<T>*>(node.ends(c));
        T* prefix = const_cast<T*>(node.prefix) + c * node.size;
        i64 count = 0;
        T sum = T(0);
        for (i64 i = 0; i + 1 < node.size; i++) {
            ends[count] = Id<T>(i);
            if (statistic == SIGNED) prefix[count] = sum += node.values[order[i].id];
            count += order[i].rank != order[i + 1].rank;
        }
        return count;
    }

    // Keep the column whose arrays were written, if it has anything to split.
    void keep_column(Node<T>& node, int32_t column, i64 count) const {
        if (!count) return;
        if (node.steps) const_cast<int32_t*>(node.n_steps)[node.columns] = int32_t(find_steps(node, node.columns, count));
        const_cast<int32_t*>(node.counts)[node.columns] = int32_t(count);
        const_cast<int32_t*>(node.column)[node.columns++] = column;
    }

    // All samples; `forbidden` is null.
    bool root(Node<T>& node, Stack& stack) const {
        const i64 n = table.n;
        Id<T>* members = stack.array<Id<T>>(n);
        i64* place = stack.array<i64>(n + 1);
        if (!members || !place) return false;
        node.key = Key{0, 0};
        for (i64 i = 0; i < n; i++) members[i] = Id<T>(i), node.key.add(random_key(u64(i)));
        if (!begin(node, members, n, stack) || !begin_columns(node, table.columns, stack)) return false;
        node.forbidden = nullptr;
        node.parent = nullptr;
        for (i64 j = 0; j < table.columns; j++) {
            const int32_t* rank = table.rank + j * n;
            Entry<T>* order = const_cast<Entry<T>*>(node.order(node.columns));
            for (i64 i = 0; i <= n; i++) place[i] = 0;
            for (i64 i = 0; i < n; i++) place[rank[i] + 1]++;
            for (i64 i = 0; i < n; i++) place[i + 1] += place[i];
            for (i64 i = 0; i < n; i++) order[place[rank[i]]++] = Entry<T>{Id<T>(i), Id<T>(rank[i])};
            keep_column(node, int32_t(j), find_ends(node, node.columns));
        }
        return true;
    }

    // One side of a split: the first `left` positions of a column, or the others. `fill` adds its columns.
    bool side(Node<T>& child, const Node<T>& node, i64 c, i64 left, bool is_left, Stack& stack) const {
        const i64 n = table.n, size = is_left ? left : node.size - left;
        const Id<T> GONE = Id<T>(-1);
        const Entry<T>* order = node.order(c);
        Id<T>* members = stack.array<Id<T>>(size);
        Id<T>* fresh = stack.array<Id<T>>(node.size);  // numbers in the child
        if (!members || !fresh) return false;
        Key key = {0, 0};
        i64 filled = 0;
        for (i64 i = 0; i < node.size; i++) {
            const Id<T> id = order[i].id;
            const bool stays = (i < left) == is_left;
            fresh[id] = stays ? Id<T>(filled) : GONE;
            if (stays) members[filled++] = node.members[id], key.add(random_key(node.members[id]));
        }
        if (!begin(child, members, size, stack)) return false;
        child.parent = &node;
        child.fresh = fresh;
        const uint8_t* forbidden = node.forbidden;
        if (table.apart) {
            const uint8_t* apart = table.apart + i64(node.column[c]) * table.columns;
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
        return true;
    }

    // The columns of a side, filtered from those of the set that it is a side of.
    bool fill(Node<T>& child, Stack& stack) const {
        const Node<T>& node = *child.parent;
        const i64 size = child.size;
        const Id<T> GONE = Id<T>(-1);
        const Id<T>* fresh = child.fresh;
        const uint8_t* forbidden = child.forbidden;
        if (!begin_columns(child, node.columns, stack)) return false;
        for (i64 from = 0; from < node.columns; from++) {
            if (forbidden && forbidden[node.column[from]]) continue;
            const Entry<T>* own = node.order(from);
            Entry<T>* to = const_cast<Entry<T>*>(child.order(child.columns));
            // Written in any case, kept where the place moves on: no branch to guess.
            for (i64 i = 0, next = 0; next < size; i++) {
                const Id<T> id = fresh[own[i].id];
                to[next] = Entry<T>{id, own[i].rank};
                next += id != GONE;
            }
            const i64 count = find_ends(child, child.columns);
            keep_column(child, node.column[from], count);
        }
        return true;
    }

    // ------------------------------------------------------------ one split

    // Call `visit(t, errors)` for all thresholds of a column at which both leaves are heavy enough. Room for sums is
    // taken from the stack; false where it ends.
    template <class Visit>
    bool each_split(const Node<T>& node, i64 c, Stack& stack, Visit visit) const {
        if (statistic == SIGNED && !table.limited()) {
            for (i64 t = 0; t < node.counts[c]; t++) {
                const i64 left = i64(node.prefix[c * node.size + t]), right = node.totals[0] - left;
                visit(t, (node.weight - (left < 0 ? -left : left) - (right < 0 ? -right : right)) / 2);
            }
            return true;
        }
        const i64 K = n_totals(), R = table.masses;
        const Stack::Mark mark = stack.mark();
        i64* sums = stack.array<i64>(2 * (K + R));
        if (!sums) return false;
        i64 *left = sums, *right = sums + K, *left_mass = sums + 2 * K, *right_mass = left_mass + R;
        for (i64 i = 0; i < 2 * (K + R); i++) sums[i] = 0;
        i64 weight = 0, i = 0;
        for (i64 t = 0; t < node.counts[c]; t++) {
            for (; i <= node.ends(c)[t]; i++) {
                const i64 id = node.order(c)[i].id;
                add(left, node, id);
                add_masses(left_mass, node, id);
                weight += table.weight[node.members[id]];
            }
            for (i64 k = 0; k < K; k++) right[k] = node.totals[k] - left[k];
            for (i64 r = 0; r < R; r++) right_mass[r] = node.mass_totals[r] - left_mass[r];
            if (heavy(left_mass) && heavy(right_mass)) visit(t, errors(left, weight) + errors(right, node.weight - weight));
        }
        stack.release(mark);
        return true;
    }

    // Whether there are two classes and no limits on leaves.
    bool is_plain() const { return statistic == SIGNED && !table.limited(); }

    // Errors of the best split of a column of two classes, without limits on leaves.
    i64 fewest_errors(const Node<T>& node, i64 c) const {
        const T* prefix = node.prefix + c * node.size;
        T high = T(0), low = T(0);
        for (i64 t = 0; t < node.counts[c]; t++) high = max_of(high, prefix[t]), low = min_of(low, prefix[t]);
        const i64 total = node.totals[0], most = total < 0 ? -total : total;
        return (node.weight - max_of(most, max_of(2 * i64(high) - total, total - 2 * i64(low)))) / 2;
    }

    // Bounds on the costs of the sides of all thresholds of a column, with at most one split each (see `least_cost`), and
    // the errors of the best split in the result; -1 where memory ends.
    i64 bound_sides(const Node<T>& node, i64 c, i64* left, i64* right, Stack& stack) const {
        const i64 count = node.counts[c], size = node.size, price = table.price, unit = table.unit, K = table.classes;
        const Entry<T>* order = node.order(c);
        const Id<T>* ends = node.ends(c);
        i64 fewest = node.weight;  // more than any split has
        if (table.limited() || statistic == GAINS) {
            for (i64 t = 0; t < count; t++) left[t] = right[t] = price;
            const bool good = each_split(node, c, stack, [&](i64, i64 errors) { fewest = min_of(fewest, errors); });
            return good ? fewest : -1;
        }
        if (statistic == SIGNED) {
            const T* prefix = node.prefix + c * size;
            i64 weight = 0;
            for (i64 t = 0, i = 0; t < count; t++) {
                if (table.uniform)
                    weight = table.uniform * (i64(ends[t]) + 1);
                else
                    for (; i <= ends[t]; i++) weight += table.weight[node.members[order[i].id]];
                const i64 low = i64(prefix[t]), high = node.totals[0] - low;
                const i64 errors[2] = {
                    (weight - (low < 0 ? -low : low)) / 2, (node.weight - weight - (high < 0 ? -high : high)) / 2};
                left[t] = price + min_of(price, unit * errors[0]), right[t] = price + min_of(price, unit * errors[1]);
                fewest = min_of(fewest, errors[0] + errors[1]);
            }
            return fewest;
        }
        // The two largest sums of a side, and the class of the first.
        struct Top {
            i64 first, second, label;

            void raise(i64 k, i64 sum) {
                if (k == label)
                    first = sum;
                else if (sum > first)
                    second = first, first = sum, label = k;
                else
                    second = max_of(second, sum);
            }
        };
        auto bound = [&](const Top& top, i64 weight) {
            return price + unit * (weight - top.first) - max_of<i64>(0, unit * top.second - price);
        };
        const Stack::Mark mark = stack.mark();
        i64 *sums = stack.array<i64>(K), *most = stack.array<i64>(count);
        if (!sums || !most) return -1;
        for (i64 k = 0; k < K; k++) sums[k] = 0;
        i64 weight = 0;
        if (count * K < 2 * size) {
            for (i64 t = 0, i = 0; t < count; t++) {
                for (; i <= ends[t]; i++) {
                    const i64 id = order[i].id;
                    sums[node.labels[id]] += i64(node.values[id]), weight += i64(node.values[id]);
                }
                Top low = {0, 0, -1}, high = {0, 0, -1};
                for (i64 k = 0; k < K; k++) low.raise(k, sums[k]), high.raise(k, node.totals[k] - sums[k]);
                left[t] = bound(low, weight), right[t] = bound(high, node.weight - weight);
                fewest = min_of(fewest, node.weight - low.first - high.first);
            }
        } else {
            // From below and from above, for the largest sums only grow then.
            Top top = {0, 0, -1};
            auto step = [&](i64 id) {
                const i64 k = node.labels[id], amount = i64(node.values[id]);
                weight += amount;
                top.raise(k, sums[k] += amount);
            };
            for (i64 t = 0, i = 0; t < count; t++) {
                for (; i <= ends[t]; i++) step(order[i].id);
                left[t] = bound(top, weight), most[t] = top.first;
            }
            for (i64 k = 0; k < K; k++) sums[k] = 0;
            weight = 0, top = Top{0, 0, -1};
            for (i64 t = count - 1, i = size - 1; t >= 0; t--) {
                for (; i > ends[t]; i--) step(order[i].id);
                right[t] = bound(top, weight), fewest = min_of(fewest, node.weight - most[t] - top.first);
            }
        }
        stack.release(mark);
        return fewest;
    }

    // Cost of the best split; IMPOSSIBLE where memory ends.
    i64 best_split(const Node<T>& node, Stack& stack) const {
        i64 best = IMPOSSIBLE;
        i64 *left = stack.array<i64>(node.size), *right = stack.array<i64>(node.size);
        for (i64 c = 0; c < node.columns && left && right; c++) {
            const i64 errors = is_plain() ? fewest_errors(node, c) : bound_sides(node, c, left, right, stack);
            if (errors >= 0) best = min_of(best, table.unit * errors + 2 * table.price);
        }
        return best;
    }

    // ------------------------------------------------------------ one split on both sides of another

    // Some splits of a set, one per lane, and what both of their sides are worth.
    //
    // A pass runs down every column once. At each position it adds the member's row of `rows` to running sums: its
    // value in the lanes in which it is on the left, 0 in the others. Sums of the right sides are those of the whole set
    // minus these. So a pass reads rows one after the other, and gathers nothing.
    struct Sides {
        i64 lanes;
        bool is_narrow;  // rows are of bytes
        bool* is_flipped;  // [lanes] whether the left side has the place of the right one
        T* rows;     // [values, then masses][size and a dummy][lanes]
        T* totals;   // [totals][left, right][lanes]
        T* masses;   // [masses][left, right][lanes]
        T* most;     // [left, right][lanes] SIGNED: the largest prefix sum; else: the most that two leaves earn
        T* least;    // [left, right][lanes] SIGNED: the smallest prefix sum
        T* apart;    // [columns][lanes] all bits set where a lane may use a column, or null
        T* running;  // room for running sums: (totals + masses) vectors of lanes
        T* best;     // LABELLED: [size][left, right][lanes] room for the best leaf up to each threshold
        i64* prefix; // [totals + masses] sums over the whole set
    };

    // Vectors that a pass works through at the same time, at most.
    static constexpr i64 WIDEST = 2;
    static constexpr i64 MOST_LANES = WIDEST * LANES<T>;

    bool begin_sides(Sides& sides, const Node<T>& node, Stack& stack) const {
        const i64 B = MOST_LANES, K = n_totals(), R = table.masses;
        sides.is_flipped = stack.array<bool>(B);
        sides.rows = stack.array<T>(((n_values() + R) * node.size + 1) * B);
        sides.totals = stack.array<T>(2 * K * B);
        sides.masses = stack.array<T>(2 * R * B);
        sides.most = stack.array<T>(2 * B);
        sides.least = stack.array<T>(2 * B);
        sides.apart = table.apart ? stack.array<T>(node.columns * B) : nullptr;
        sides.running = stack.array<T>((K + R) * B);
        sides.best = statistic == LABELLED ? stack.array<T>(2 * node.size * B) : nullptr;
        sides.prefix = stack.array<i64>(K + R);
        return !stack.failed;
    }

    // Begin with as many lanes as there are splits, or a few more, which stay empty.
    void clear_sides(Sides& sides, const Node<T>& node, i64 n_splits) const {
        // Sums of signs lie between minus the number of one class and that of the other.
        const i64 most = (node.weight + (node.totals[0] < 0 ? -node.totals[0] : node.totals[0])) / 2;
        sides.is_narrow = node.steps && table.uniform == 1 && most <= INT8_MAX;
        sides.lanes = n_splits <= LANES<T> && !sides.is_narrow ? LANES<T> : MOST_LANES;
        const i64 B = sides.lanes;
        fill(sides.rows, ((n_values() + table.masses) * node.size + 1) * B / (sides.is_narrow ? 2 : 1));
        fill(sides.totals, 2 * n_totals() * B);
        fill(sides.masses, 2 * table.masses * B);
        fill(sides.most, 2 * B);
        fill(sides.least, 2 * B);
        if (table.apart) fill(sides.apart, node.columns * B);
    }

    static void fill(T* array, i64 size) { __builtin_memset(array, 0, size_t(size) * sizeof(T)); }

    // Put a split into a lane: the smaller side is written, as if it were the left one.
    void set_side(Sides& sides, const Node<T>& node, i64 lane, i64 c, i64 threshold) const {
        const i64 B = sides.lanes, size = node.size, left = i64(node.ends(c)[threshold]) + 1;
        const Entry<T>* order = node.order(c);
        const bool flip = 2 * left > size;
        const i64 from = flip ? left : 0, to = flip ? size : left;
        sides.is_flipped[lane] = flip;
        if (node.steps) {
            const T sum = node.prefix[c * size + threshold];
            sides.totals[lane] = flip ? T(node.totals[0]) - sum : sum;
            if (sides.is_narrow) {
                int8_t* rows = reinterpret_cast<int8_t*>(sides.rows) + lane;
                for (i64 i = from; i < to; i++) rows[i64(order[i].id) * B] = int8_t(node.values[order[i].id]);
            } else
                for (i64 i = from; i < to; i++) sides.rows[i64(order[i].id) * B + lane] = node.values[order[i].id];
        } else
            for (i64 i = from; i < to; i++) {
                const i64 id = order[i].id;
                for (i64 k = 0; k < n_values(); k++) {
                    const T value = node.values[k * size + id];
                    sides.rows[(k * size + id) * B + lane] = value;
                    sides.totals[(statistic == LABELLED ? node.labels[id] : k) * 2 * B + lane] += value;
                }
                for (i64 r = 0; r < table.masses; r++) {
                    const T mass = node.masses[r * size + id];
                    sides.rows[((n_values() + r) * size + id) * B + lane] = mass;
                    sides.masses[r * 2 * B + lane] += mass;
                }
            }
        for (i64 k = 0; k < n_totals(); k++)
            sides.totals[(2 * k + 1) * B + lane] = T(node.totals[k]) - sides.totals[2 * k * B + lane];
        for (i64 r = 0; r < table.masses; r++)
            sides.masses[(2 * r + 1) * B + lane] = T(node.mass_totals[r]) - sides.masses[2 * r * B + lane];
        if (!table.apart) return;
        const uint8_t* apart = table.apart + i64(node.column[c]) * table.columns;
        for (i64 j = 0; j < node.columns; j++)
            if (!apart[node.column[j]]) __builtin_memset(sides.apart + j * B + lane, 255, sizeof(T));
    }

    // Find the best split of both sides in every lane.
    void run(const Sides& sides, const Node<T>& node) const {
        if constexpr (statistic == SIGNED && sizeof(T) == 2)
            if (node.steps) {
                if (sides.is_narrow)
                    pass_steps<int8_t, 1>(sides, node);
                else if (sides.lanes == LANES<T>)
                    pass_steps<T, 1>(sides, node);
                else
                    pass_steps<T, WIDEST>(sides, node);
                return;
            }
        if (sides.lanes == LANES<T>)
            table.limited() ? pass<1, true>(sides, node) : pass<1, false>(sides, node);
        else
            table.limited() ? pass<WIDEST, true>(sides, node) : pass<WIDEST, false>(sides, node);
    }

    // The sum of a side (0: left, 1: right) in a lane, of a class.
    i64 total_of_side(const Sides& sides, i64 lane, i64 side, i64 k) const {
        return i64(sides.totals[(2 * k + (side ^ i64(sides.is_flipped[lane]))) * sides.lanes + lane]);
    }

    // Cost of a side (0: left, 1: right) in a lane, with at most one split, or none where only one leaf is allowed.
    i64 cost_of_side(const Sides& sides, i64 lane, i64 side, i64 weight, i64 leaves) const {
        const i64 B = sides.lanes;
        side ^= i64(sides.is_flipped[lane]);
        for (i64 r = 0; r < table.masses; r++)
            if (i64(sides.masses[(2 * r + side) * B + lane]) < table.least[r]) return IMPOSSIBLE;
        const T high = sides.most[side * B + lane], low = sides.least[side * B + lane];
        i64 leaf, split;
        if (statistic == SIGNED) {
            const i64 total = i64(sides.totals[side * B + lane]), most = total < 0 ? -total : total;
            leaf = (weight - most) / 2;
            split = (weight - max_of(most, max_of(2 * i64(high) - total, total - 2 * i64(low)))) / 2;
        } else {
            T most = T(0);
            for (i64 k = 0; k < table.classes; k++) most = max_of(most, sides.totals[(2 * k + side) * B + lane]);
            leaf = weight - i64(most), split = weight - i64(high);
        }
        if (leaves == 1) return table.unit * leaf + table.price;
        return min_of(table.unit * leaf + table.price, table.unit * split + 2 * table.price);
    }

private:
    typedef Vector<T> V;
    typedef Vector<Mask<T>> M;

    // The same for sums of signs, by the steps of the columns; U: what rows are of.
    template <class U, i64 W>
    void pass_steps(const Sides& sides, const Node<T>& node) const {
        typedef Vector<U> X;
        constexpr i64 L = LANES<U>, B = W * L, STEP = Node<T>::STEP;
        const U* rows = reinterpret_cast<const U*>(sides.rows);
        X high[2][W], low[2][W];  // [left, right]
        for (i64 w = 0; w < W; w++) high[0][w] = high[1][w] = low[0][w] = low[1][w] = X{};
        for (i64 c = 0; c < node.columns; c++) {
            const Id<T>* ids = node.steps + STEP * c * node.size;
            const T* sums = node.step_sums + c * node.size;
            X x[W];
            for (i64 w = 0; w < W; w++) x[w] = X{};
            for (i64 s = 0; s < node.n_steps[c]; s++) {
                for (i64 g = 0; g < STEP; g++) {
                    const U* row = rows + i64(ids[STEP * s + g]) * B;
                    for (i64 w = 0; w < W; w++) x[w] += load(row + w * L);
                }
                if (sums[s] == Node<T>::TIED) continue;
                const X all = spread<U>(U(sums[s]));
                for (i64 w = 0; w < W; w++) {
                    const X left = x[w], right = all - x[w];
                    high[0][w] = ::most(high[0][w], left), low[0][w] = ::least(low[0][w], left);
                    high[1][w] = ::most(high[1][w], right), low[1][w] = ::least(low[1][w], right);
                }
            }
        }
        for (i64 side = 0; side < 2; side++)
            for (i64 w = 0; w < W; w++)
                for (i64 l = 0; l < L; l++) {
                    sides.most[side * B + w * L + l] = T(high[side][w][l]);
                    sides.least[side * B + w * L + l] = T(low[side][w][l]);
                }
    }

    template <i64 W, bool limited>
    void pass(const Sides& sides, const Node<T>& node) const {
        const i64 L = LANES<T>, B = W * L, R = table.masses, size = node.size;
        V* running = reinterpret_cast<V*>(sides.running);
        V *sums = running, *masses = running + n_totals() * W;
        for (i64 c = 0; c < node.columns; c++) {
            const Entry<T>* order = node.order(c);
            const Id<T>* ends = node.ends(c);
            const i64 count = node.counts[c];
            const Walk walk = this->walk(node, c, count);
            const Entry<T>* at = walk.from;
            // Members that a walk has visited at its threshold t.
            auto visited = [&](i64 t) { return walk.is_down ? size - 1 - i64(ends[count - 1 - t]) : i64(ends[t]) + 1; };
            V high[2][W], low[2][W];  // [left, right]
            for (i64 w = 0; w < W; w++) high[0][w] = high[1][w] = low[0][w] = low[1][w] = V{};
            begin_sums<W>(sides);
            i64 i = 0;
            // Masks of the lanes in which both leaves are heavy enough.
            M allowed[2][W];
            auto count_masses = [&](i64 id) {
                for (i64 r = 0; r < R; r++) {
                    sides.prefix[n_totals() + r] += i64(node.masses[r * size + id]);
                    const T* row = sides.rows + ((n_values() + r) * size + id) * B;
                    for (i64 w = 0; w < W; w++) masses[r * W + w] += load(row + w * L);
                }
            };
            auto compare_masses = [&]() {
                for (i64 w = 0; w < W; w++) allowed[0][w] = allowed[1][w] = ~M{};
                for (i64 r = 0; r < R; r++) {
                    const V least = spread<T>(T(table.least[r])), all = spread<T>(T(sides.prefix[n_totals() + r]));
                    for (i64 w = 0; w < W; w++) {
                        const V mass[2] = {masses[r * W + w], all - masses[r * W + w]};
                        for (i64 side = 0; side < 2; side++) {
                            const V total = load(sides.masses + (2 * r + side) * B + w * L);
                            allowed[side][w] &= M(mass[side] >= least) & M(total - mass[side] >= least);
                        }
                    }
                }
            };
            if (statistic == SIGNED) {
                V x[W];
                for (i64 w = 0; w < W; w++) x[w] = V{};
                T all_of = T(0);
                for (i64 t = 0; t < count; t++) {
                    for (const i64 until = visited(t); i < until; i++, at += walk.stride) {
                        const T* row = sides.rows + i64(at->id) * B;
                        for (i64 w = 0; w < W; w++) x[w] += load(row + w * L);
                        all_of += node.values[at->id];
                        if (limited) count_masses(at->id);
                    }
                    const V all = spread<T>(all_of);
                    if (limited) compare_masses();
                    for (i64 w = 0; w < W; w++) {
                        V left = x[w], right = all - x[w];
                        if (limited) left = V(M(left) & allowed[0][w]), right = V(M(right) & allowed[1][w]);
                        high[0][w] = ::most(high[0][w], left), low[0][w] = ::least(low[0][w], left);
                        high[1][w] = ::most(high[1][w], right), low[1][w] = ::least(low[1][w], right);
                    }
                }
            } else if (statistic == LABELLED && count * table.classes >= size) {
                // The best leaf on one side of a threshold is never worse with more samples: one maximum suffices.
                V best[2][W];
                for (i64 w = 0; w < W; w++) best[0][w] = best[1][w] = V{};
                // What leaves that are too light earn: with those on the other side at most 0.
                const M nothing = M(spread<T>(T(-(sizeof(T) == 2 ? 32767 : 2147483647.0 * (sizeof(T) == 4 ? 1 : 1 << 30)))));
                auto step = [&](i64 id) {
                    const i64 k = node.labels[id];
                    const T* row = sides.rows + id * B;
                    const V all = spread<T>(T(sides.prefix[k] += i64(node.values[id])));
                    for (i64 w = 0; w < W; w++) {
                        V& sum = sums[k * W + w];
                        sum += load(row + w * L);
                        best[0][w] = ::most(best[0][w], sum), best[1][w] = ::most(best[1][w], all - sum);
                    }
                };
                for (i64 t = 0; t < count; t++) {
                    for (; i <= ends[t]; i++) {
                        step(order[i].id);
                        if (limited) count_masses(order[i].id);
                    }
                    if (limited) compare_masses();
                    for (i64 side = 0; side < 2; side++)
                        for (i64 w = 0; w < W; w++) {
                            V found = best[side][w];
                            if (limited) found = V((M(found) & allowed[side][w]) | (nothing & ~allowed[side][w]));
                            store(sides.best + (2 * t + side) * B + w * L, found);
                        }
                }
                begin_sums<W>(sides);
                for (i64 w = 0; w < W; w++) best[0][w] = best[1][w] = V{};
                i = size - 1;
                for (i64 t = count - 1; t >= 0; t--) {
                    for (; i > ends[t]; i--) step(order[i].id);
                    for (i64 side = 0; side < 2; side++)
                        for (i64 w = 0; w < W; w++) {
                            const V up_to = load(sides.best + (2 * t + side) * B + w * L);
                            high[side][w] = ::most(high[side][w], up_to + best[side][w]);
                        }
                }
            } else {
                const i64 K = table.classes;
                for (i64 t = 0; t < count; t++) {
                    for (const i64 until = visited(t); i < until; i++, at += walk.stride) {
                        const i64 id = at->id;
                        for (i64 v = 0; v < n_values(); v++) {
                            const i64 k = statistic == LABELLED ? node.labels[id] : v;
                            sides.prefix[k] += i64(node.values[v * size + id]);
                            const T* row = sides.rows + (v * size + id) * B;
                            for (i64 w = 0; w < W; w++) sums[k * W + w] += load(row + w * L);
                        }
                        if (limited) count_masses(id);
                    }
                    if (limited) compare_masses();
                    for (i64 w = 0; w < W; w++) {
                        V first[2] = {V{}, V{}}, second[2] = {V{}, V{}};
                        for (i64 k = 0; k < K; k++) {
                            const V here[2] = {sums[k * W + w], spread<T>(T(sides.prefix[k])) - sums[k * W + w]};
                            for (i64 side = 0; side < 2; side++) {
                                const V total = load(sides.totals + (2 * k + side) * B + w * L);
                                first[side] = ::most(first[side], here[side]);
                                second[side] = ::most(second[side], total - here[side]);
                            }
                        }
                        for (i64 side = 0; side < 2; side++) {
                            V both = first[side] + second[side];
                            if (limited) both = V(M(both) & allowed[side][w]);
                            high[side][w] = ::most(high[side][w], both);
                        }
                    }
                }
            }
            for (i64 side = 0; side < 2; side++)
                for (i64 w = 0; w < W; w++) {
                    V top = high[side][w], bottom = low[side][w];
                    if (sides.apart) {
                        const M may = M(load(sides.apart + c * B + w * L));
                        top = V(M(top) & may), bottom = V(M(bottom) & may);
                    }
                    T *to_most = sides.most + side * B + w * L, *to_least = sides.least + side * B + w * L;
                    store(to_most, ::most(load(to_most), top));
                    if (statistic == SIGNED) store(to_least, ::least(load(to_least), bottom));
                }
        }
    }

    template <i64 W>
    void begin_sums(const Sides& sides) const {
        V* sums = reinterpret_cast<V*>(sides.running);
        for (i64 k = 0; k < (n_totals() + table.masses) * W; k++) sums[k] = V{};
        for (i64 k = 0; k < n_totals() + table.masses; k++) sides.prefix[k] = 0;
    }
};

}  // namespace ordered
