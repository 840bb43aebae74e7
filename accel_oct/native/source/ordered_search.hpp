// Optimal trees over every threshold of ordered columns: branch and bound with two facts about nested sets.
//
// C_d(S) is the least cost of a tree of depth at most d on the samples S. For S' within S
//     C_d(S') <= C_d(S) <= C_d(S') + weight(S - S').
// (The second holds under limits on the mass of leaves too; the first does not.) So known costs of the sides of some
// thresholds bound those of all thresholds between them, and a column is searched by bisection: see `Bracket`.
#pragma once

#include "ordered_samples.hpp"

namespace ordered {

// What is known of a set: its least cost, or a bound on it, and the split of a tree with that cost.
struct Found {
    i64 value;
    int32_t exact;                      // whether `value` is the least cost; else a lower bound
    int32_t column, rank;               // split of a tree with that cost; none: a leaf, or a tree with one split
    int32_t left_leaves, right_leaves;  // limits of the sides, 0: none
};

struct SpinLock {
    int32_t taken;

    void lock() {
        while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE))
            while (__atomic_load_n(&taken, __ATOMIC_RELAXED)) {
            }
    }
    void unlock() { __atomic_store_n(&taken, 0, __ATOMIC_RELEASE); }
};

// What is known of sets, by key. Full tables forget: an old entry makes room for a new one.
struct Memory {
    struct Entry {
        Key key;
        Found found;
    };
    struct Shard {
        SpinLock lock;
        i64 room, count;
        Entry* entries;
    };
    static constexpr i64 SHARDS = 64, PROBES = 8;
    Shard shards[SHARDS];
    i64 bytes, limit;

    bool find(const Key& key, Found& found) {
        Shard& shard = shards[key.b % SHARDS];
        bool is_known = false;
        shard.lock.lock();
        if (shard.room)
            for (i64 probe = 0; probe < PROBES; probe++) {
                const Entry& entry = shard.entries[(key.a + u64(probe)) & u64(shard.room - 1)];
                if (entry.key == key) {
                    found = entry.found;
                    is_known = true;
                    break;
                }
            }
        shard.lock.unlock();
        return is_known;
    }

    void put(const Key& key, const Found& found) {
        Shard& shard = shards[key.b % SHARDS];
        shard.lock.lock();
        if (2 * shard.count >= shard.room) grow(shard);
        if (shard.room) insert(shard, key, found);
        shard.lock.unlock();
    }

    void clear() {
        for (Shard& shard : shards) free(shard.entries);
    }

private:
    static void insert(Shard& shard, const Key& key, const Found& found) {
        Entry* place = nullptr;
        for (i64 probe = 0; probe < PROBES; probe++) {
            Entry& entry = shard.entries[(key.a + u64(probe)) & u64(shard.room - 1)];
            const bool is_free = !entry.key.a && !entry.key.b;
            if (entry.key == key) {
                const bool is_better = found.exact ? !entry.found.exact : !entry.found.exact && found.value > entry.found.value;
                if (is_better) entry.found = found;
                return;
            }
            if (is_free) {
                place = &entry;
                shard.count++;
                break;
            }
        }
        if (!place) place = &shard.entries[(key.a + (key.b >> 60) % PROBES) & u64(shard.room - 1)];
        *place = Entry{key, found};
    }

    void grow(Shard& shard) {
        const i64 room = shard.room ? 2 * shard.room : 256, size = room * i64(sizeof(Entry));
        if (__atomic_load_n(&bytes, __ATOMIC_RELAXED) + size > limit) return;
        Entry* entries = static_cast<Entry*>(calloc(size_t(room), sizeof(Entry)));
        if (!entries) return;
        __atomic_fetch_add(&bytes, size - shard.room * i64(sizeof(Entry)), __ATOMIC_RELAXED);
        Shard larger = {shard.lock, room, 0, entries};
        for (i64 i = 0; i < shard.room; i++)
            if (shard.entries[i].key.a || shard.entries[i].key.b) insert(larger, shard.entries[i].key, shard.entries[i].found);
        free(shard.entries);
        shard.room = room, shard.count = larger.count, shard.entries = entries;
    }
};

// A column of a set with limits on the leaves of both sides, and its thresholds.
template <class T>
struct Line {
    i64 column;                         // place in the set
    int32_t left_leaves, right_leaves;  // 0: no limit
    i64 count;                          // of thresholds
    const Id<T>* position;              // of the last sample on the left
    const i64* weights;                 // cost of all samples on the left; null where all samples cost `each`
    i64 each;

    i64 weight(i64 index) const { return weights ? weights[index] : (i64(position[index]) + 1) * each; }

    // The first threshold of `low` to `high` - 1 with at least so much weight on the left; `high` where there is none.
    i64 first_from(i64 wanted, i64 low, i64 high) const {
        while (low < high) {
            const i64 middle = (low + high) / 2;
            if (weight(middle) < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
};

// Costs of the sides of a threshold, or bounds on them.
struct End {
    i64 weight, left, right;
};

// Thresholds `low` to `high` of a line that may be better than what is known. `below` and `above` are thresholds
// around them (or the ends of the column) whose sides have known costs, or bounds on them.
template <class T>
struct Bracket {
    i64 bound;  // on every threshold
    i64 guess;  // orders brackets with equal bounds
    const Line<T>* line;
    i64 low, high, first;  // `first`: where to look first, or -1
    End below, above;
};

// The costs of nested sets bound each other.
template <class T>
struct Bounds {
    bool nested;  // a subset costs at most as much: not under limits on masses
    i64 least;    // cost of any set

    i64 left(const Bracket<T>& bracket, i64 weight) const {
        return max_of(nested ? bracket.below.left : least, bracket.above.left - (bracket.above.weight - weight));
    }
    i64 right(const Bracket<T>& bracket, i64 weight) const {
        return max_of(nested ? bracket.above.right : least, bracket.below.right - (weight - bracket.below.weight));
    }
    i64 at(const Bracket<T>& bracket, i64 index) const {
        const i64 weight = bracket.line->weight(index);
        return left(bracket, weight) + right(bracket, weight);
    }

    // Drop thresholds at both ends that cannot be cheaper than `limit`; `closed` is lowered to their bounds.
    //
    // As the weight w on the left grows, the bound of the left side is constant and then rises as fast as w, that of
    // the right side falls as fast and is then constant. So the sum falls, is constant, and rises, and the thresholds
    // below the limit lie between two weights.
    bool tighten(Bracket<T>& bracket, i64 limit, i64& closed) const {
        const Line<T>& line = *bracket.line;
        const End &below = bracket.below, &above = bracket.above;
        const i64 left_least = nested ? below.left : least, right_least = nested ? above.right : least;
        const i64 flat = max_of(left_least + right_least, above.left + below.right - (above.weight - below.weight));
        i64 low = bracket.high + 1, high = bracket.low - 1;
        if (flat < limit) {
            low = line.first_from(below.weight + left_least + below.right - limit + 1, bracket.low, bracket.high + 1);
            high = line.first_from(above.weight - above.left - right_least + limit, bracket.low, bracket.high + 1) - 1;
        } else {
            closed = min_of(closed, flat);
        }
        if (flat < limit && low > bracket.low) closed = min_of(closed, at(bracket, low - 1));
        if (flat < limit && high < bracket.high) closed = min_of(closed, at(bracket, high + 1));
        bracket.low = low, bracket.high = high;
        if (low > high) return false;
        // Costs of the left side grow, those of the right side fall.
        bracket.bound = left(bracket, line.weight(low)) + right(bracket, line.weight(high));
        return true;
    }
};

// The first of some thresholds at which at least a share of the weight is on the left.
template <class T>
inline i64 divided(const Bracket<T>& bracket, i64 part, i64 parts) {
    const Line<T>& line = *bracket.line;
    const i64 first = line.weight(bracket.low), wanted = first + (line.weight(bracket.high) - first) / parts * part;
    i64 low = line.first_from(wanted, bracket.low, bracket.high);
    if (low > bracket.low && wanted - line.weight(low - 1) < line.weight(low) - wanted) low--;
    return low;
}

struct TreeNode {
    int32_t column, rank;  // column -1: a leaf
    int32_t left, right, label;
};

struct Counters {
    i64 sets, passes, evaluations, spared;
};

// Sets of one depth that were looked at lately, by the column that they were split off with, and bounds on their costs.
// Any two sets bound each other: C(S) >= C(S') - weight(S' - S), as C(S) >= C(S and S') >= C(S') - weight(S' - S).
// So a side that differs little from one that was seen often needs no search of its own.
struct Seen {
    i64 ring, words, columns;  // ring: sets per column
    u64* bits;                 // [columns][ring][words]
    i64* value;                // [columns][ring]
    i64* weight;               // [columns][ring] cost of all members
    int32_t* leaves;           // [columns][ring] limit that the bound holds for, 0: any
    int32_t* next;             // [columns]

    static constexpr i64 MOST_SETS = 16, MOST_BYTES = 1 << 26;

    bool begin(i64 n_columns, i64 n_words, i64 bytes) {
        ring = min_of(MOST_SETS, min_of(MOST_BYTES, bytes) / max_of<i64>(1, n_columns * n_words * 8));
        words = n_words, columns = n_columns;
        if (ring < 2) return false;
        bits = static_cast<u64*>(malloc(size_t(columns * ring * words) * 8));
        value = static_cast<i64*>(calloc(size_t(columns * ring), 8));
        weight = static_cast<i64*>(calloc(size_t(columns * ring), 8));
        leaves = static_cast<int32_t*>(calloc(size_t(columns * ring), 4));
        next = static_cast<int32_t*>(calloc(size_t(columns), 4));
        if (bits && value && weight && leaves && next) return true;
        clear();
        return false;
    }

    void clear() {
        free(bits), free(value), free(weight), free(leaves), free(next);
        *this = Seen{};
    }

    void add(i64 column, const u64* set, i64 cost, i64 bound, i64 limit) {
        const i64 place = column * ring + next[column];
        next[column] = int32_t((next[column] + 1) % ring);
        value[place] = bound, weight[place] = cost, leaves[place] = int32_t(limit);
        __builtin_memcpy(bits + place * words, set, size_t(words) * 8);
    }
};

// What a thread works with.
struct Worker {
    static constexpr i64 DEPTHS = 16;  // deeper ones are not remembered
    Seen seen[DEPTHS];

    Stack stack;
    bool steady;   // finishes what is known already: not to be stopped
    bool stopped;  // what was returned is not to be used
    bool is_busy;
    i64 bound;  // of the bracket that it works on
    Counters counters;
};

template <class T, Statistic statistic>
struct Search {
    typedef Samples<T, statistic> Own;

    Table<T> table;
    Own samples;
    i64 max_leaves;  // 0: no limit
    double slack;
    Memory memory;
    const volatile int32_t* stop;
    Worker* workers;
    i64 n_workers;

    // Per column the best split that was looked at.
    struct Guess {
        i64 value, rank;
    };

    // The root
    Node<T> root;
    i64 depth;
    List<Bracket<T>> heap;
    i64 closed;  // least bound of thresholds that were closed
    Found best;
    i64 version;  // raised with every better tree
    List<TreeNode> tree;
    i64 root_lower;   // a bound on trees of `depth` that was known before
    Guess* guesses;   // per column the best split of depth two
    Found root_two;   // of depth two
    SpinLock lock;
    bool out_of_memory;

    Bounds<T> bounds() const { return Bounds<T>{!table.limited(), table.price}; }

    bool is_stopped(Worker& worker) {
        if (worker.stack.failed) __atomic_store_n(&out_of_memory, true, __ATOMIC_RELAXED);
        if (worker.stack.failed || (!worker.steady && *stop)) worker.stopped = true;
        return worker.stopped;
    }

    // ------------------------------------------------------------ lines

    // Thresholds of a column.
    bool make_line(Line<T>& line, const Node<T>& node, i64 c, Stack& stack) const {
        const i64 count = node.counts[c];
        const Id<T>*position = node.ends(c), *order = node.order(c);
        i64* weight = nullptr;
        if (!table.uniform) {
            weight = stack.array<i64>(count);
            if (!weight) return false;
            i64 sum = 0;
            for (i64 t = 0, i = 0; t < count; t++) {
                for (; i <= position[t]; i++) sum += table.weight[node.members[order[i]]];
                weight[t] = table.unit * sum;
            }
        }
        line = Line<T>{c, 0, 0, count, position, weight, table.unit * table.uniform};
        return true;
    }

    // All thresholds of a line: an empty side at each end, and the whole set on the other side of it.
    Bracket<T> whole(const Node<T>& node, const Line<T>& line, i64 left_whole, i64 right_whole) const {
        return Bracket<T>{
            0, 0, &line, 0, line.count - 1, -1, {0, table.price, right_whole},
            {table.unit * node.weight, left_whole, table.price}};
    }

    // ------------------------------------------------------------ depth two

    i64 one_level(const Node<T>& node, i64 split, i64 leaves) const {
        return leaves == 1 ? node.leaf : min_of(node.leaf, split);
    }

    // The best tree of depth two. `guesses`: per column the best split that was looked at.
    Found two_levels(const Node<T>& node, i64 leaves, i64 budget, Worker& worker, Guess* guesses) {
        worker.counters.sets++;
        Stack& stack = worker.stack;
        const Stack::Mark mark = stack.mark();
        i64* costs = stack.array<i64>(node.columns + 1);
        Found best = {node.leaf, 1, -1, -1, 0, 0};
        if (!costs) return best;
        const i64 split = samples.best_split(node, costs, stack);
        best.value = one_level(node, split, leaves);
        if (guesses)
            for (i64 c = 0; c < node.columns; c++) guesses[c] = Guess{costs[c], -1};
        i64 limit = min_of(best.value, budget), lower = IMPOSSIBLE;
        const i64 three = 3 * table.price + table.unit * node.unavoidable;
        if (leaves == 1 || leaves == 2 || split == IMPOSSIBLE || !node.columns) {
            // No further split is allowed, or possible.
        } else if (three >= limit) {
            lower = three;
        } else {
            search_lines(node, leaves, split, costs, best, limit, lower, worker, guesses);
        }
        stack.release(mark);
        if (lower < best.value) best.value = lower, best.exact = 0;
        return best;
    }

    // A threshold that a pass looks at, and the bracket that it is in.
    struct Point {
        i64 bracket, index;
    };

    // All thresholds of all columns, both sides with at most one split more: bracket by bracket, in rounds, with a
    // threshold in each lane. `costs`: of the best split of each column.
    void search_lines(
        const Node<T>& node, i64 leaves, i64 split, const i64* costs, Found& best, i64& limit, i64& lower, Worker& worker,
        Guess* guesses) {
        Stack& stack = worker.stack;
        const i64 B = Own::MOST_LANES, ways = leaves == 3 ? 2 : 1;
        const Bounds<T> rules = bounds();
        typename Own::Sides sides;
        int32_t* order = stack.array<int32_t>(node.columns);
        Line<T>* lines = stack.array<Line<T>>(node.columns * ways);
        Bracket<T>* taken = stack.array<Bracket<T>>(B);
        Point* points = stack.array<Point>(B);
        if (!order || !lines || !taken || !points || !samples.begin_sides(sides, node, stack)) return;
        for (i64 c = 0; c < node.columns; c++) {
            i64 place = c;
            for (; place && costs[order[place - 1]] > costs[c]; place--) order[place] = order[place - 1];
            order[place] = int32_t(c);
        }
        List<Bracket<T>> queue = {nullptr, 0, 0};
        bool good = true;
        for (i64 o = 0; o < node.columns; o++)
            for (i64 way = 0; way < ways; way++) {
                Line<T>& line = lines[o * ways + way];
                good = good && make_line(line, node, order[o], stack);
                if (!good) break;
                // Sides have at most one split; the limit is said, for deeper searches ask with it again.
                if (leaves) line.left_leaves = line.right_leaves = 2;
                if (ways == 2) line.left_leaves = int32_t(1 + way), line.right_leaves = int32_t(2 - way);
                good = queue.push(whole(
                    node, line, one_level(node, split, line.left_leaves), one_level(node, split, line.right_leaves)));
            }
        for (i64 next = 0; good && next < queue.size && !is_stopped(worker);) {
            i64 n_taken = 0;
            for (; next < queue.size && n_taken < B; next++) {
                taken[n_taken] = queue.data[next];
                n_taken += rules.tighten(taken[n_taken], limit, lower);
            }
            if (!n_taken) break;
            // Few brackets are looked at in several places each.
            const i64 parts = n_taken <= LANES<T> ? LANES<T> / n_taken : 1;
            i64 n_points = 0;
            for (i64 b = 0; b < n_taken; b++)
                for (i64 part = 1; part <= parts; part++) {
                    const i64 index = divided(taken[b], part, parts + 1);
                    if (part > 1 && points[n_points - 1].bracket == b && points[n_points - 1].index >= index) continue;
                    points[n_points++] = Point{b, index};
                }
            samples.clear_sides(sides, node, n_points);
            for (i64 p = 0; p < n_points; p++) {
                const Line<T>& line = *taken[points[p].bracket].line;
                samples.set_side(sides, node, p, line.column, line.position[points[p].index]);
            }
            samples.run(sides, node);
            worker.counters.passes++;
            for (i64 p = 0; p < n_points;) {
                const i64 b = points[p].bracket;
                Bracket<T> rest = taken[b];
                const Line<T>& line = *rest.line;
                for (; p < n_points && points[p].bracket == b; p++) {
                    const i64 index = points[p].index, weight = line.weight(index), units = weight / table.unit;
                    const End here = {
                        weight, samples.cost_of_side(sides, p, 0, units, line.left_leaves),
                        samples.cost_of_side(sides, p, 1, node.weight - units, line.right_leaves)};
                    const i64 value = min_of(IMPOSSIBLE, here.left + here.right);
                    if (guesses && value < guesses[line.column].value)
                        guesses[line.column] = Guess{value, rank_at(node, line, index)};
                    if (value < limit) {
                        best = Found{
                            value, 1, node.column[line.column], rank_at(node, line, index), line.left_leaves,
                            line.right_leaves};
                        limit = value;
                    } else
                        lower = min_of(lower, value);
                    Bracket<T> part = rest;
                    part.high = index - 1, part.above = here;
                    if (part.low <= part.high) good = good && queue.push(part);
                    rest.low = index + 1, rest.below = here;
                }
                if (rest.low <= rest.high) good = good && queue.push(rest);
            }
        }
        queue.clear();
        if (!good) stack.failed = true;
    }

    int32_t rank_at(const Node<T>& node, const Line<T>& line, i64 index) const {
        const i64 sample = node.members[node.order(line.column)[line.position[index]]];
        return table.rank[i64(node.column[line.column]) * table.n + sample];
    }

    // ------------------------------------------------------------ any depth

    static Key key_of(const Node<T>& node, i64 depth, i64 leaves) {
        Key key = node.key;
        key.add(random_key(u64(1) << 62 | u64(depth) << 32 | u64(leaves)));
        return key;
    }

    static constexpr i64 ANY_DEPTH = (i64(1) << 29) - 1;

    // The least cost of a tree: exact where it is below the budget, else exact or a bound of at least the budget.
    // Trees that are so deep that they cost at least `needed` are not searched, so a bound may be as low as that.
    Found solve(const Node<T>& node, i64 depth, i64 leaves, i64 budget, i64 needed, Worker& worker) {
        Found leaf = {node.leaf, 1, -1, -1, 0, 0};
        const i64 unavoidable = table.unit * node.unavoidable, two = 2 * table.price + unavoidable;
        if (depth == 0 || leaves == 1 || node.leaf <= two || node.leaf == IMPOSSIBLE || !node.columns) return leaf;
        if (two >= needed) return Found{two, 0, -1, -1, 0, 0};
        // A tree of this cost has few leaves, so it is not deep.
        i64 allowed = depth, beyond = IMPOSSIBLE;
        if (table.price > 0) {
            const i64 most = (min_of(needed, node.leaf) - unavoidable - 1) / table.price;
            if (most - 1 < depth) allowed = most - 1, beyond = (most + 1) * table.price + unavoidable;
        }
        if (leaves && allowed < 31 && leaves >= i64(1) << allowed) leaves = 0;
        if (leaves && leaves - 1 < allowed) allowed = leaves - 1;
        Found found;
        if (allowed == 1) {
            const Stack::Mark mark = worker.stack.mark();
            i64* costs = worker.stack.array<i64>(node.columns);
            found = leaf;
            if (costs) found.value = min_of(node.leaf, samples.best_split(node, costs, worker.stack));
            worker.stack.release(mark);
            is_stopped(worker);
        } else {
            const bool is_any = beyond < IMPOSSIBLE;  // no deeper tree is cheaper
            const Key any = key_of(node, ANY_DEPTH, leaves), own = key_of(node, allowed, leaves);
            if (memory.find(any, found)) {
                // A tree of this cost may be deeper than allowed here, unless it has too few leaves for that.
                const bool fits = table.price > 0 && (found.value - unavoidable) / table.price <= depth + 1;
                if (found.exact && !fits) found = Found{found.value, 0, -1, -1, 0, 0};
                if (found.exact || found.value >= needed) return found;
            }
            if (memory.find(own, found) && (found.exact || found.value >= needed)) {
                // It is about trees that are no deeper than allowed; all others cost at least `beyond`.
                return found.value <= beyond ? found : Found{beyond, 0, -1, -1, 0, 0};
            }
            found = allowed == 2 ? two_levels(node, leaves, budget, worker, nullptr)
                                 : deep(node, allowed, leaves, budget, worker);
            if (is_stopped(worker)) return found;  // not to be remembered: memory may have ended on the way
            memory.put(own, found);
            if (is_any) {
                Found wider = found;
                if (beyond < wider.value) wider = Found{beyond, 0, -1, -1, 0, 0};
                memory.put(any, wider);
                return wider;
            }
        }
        if (beyond < found.value) found = Found{beyond, 0, -1, -1, 0, 0};
        return found;
    }

    // A bound on the cost of a set from those that were seen; at least `wanted` is enough.
    i64 bound_by_seen(const Seen& seen, const u64* set, i64 cost, i64 low, i64 wanted, i64 leaves) const {
        for (i64 place = 0; place < seen.columns * seen.ring && low < wanted; place++) {
            const i64 value = seen.value[place], limit = seen.leaves[place];
            // A set that is heavier by so much differs by as much at least.
            if (value - max_of<i64>(0, seen.weight[place] - cost) <= low) continue;
            if (limit && (!leaves || leaves > limit)) continue;
            const u64* other = seen.bits + place * seen.words;
            const i64 room = (value - low - 1) / table.unit;  // a larger difference gives nothing
            i64 weight = 0;
            for (i64 w = 0; w < seen.words && weight <= room; w++) {
                u64 rest = other[w] & ~set[w];
                if (table.uniform)
                    weight += table.uniform * __builtin_popcountll(rest);
                else
                    for (; rest; rest &= rest - 1) weight += table.weight[w * 64 + __builtin_ctzll(rest)];
            }
            if (weight <= room) low = value - table.unit * weight;
        }
        return low;
    }

    // Costs of a threshold's sides, exact or bounds; their sum is below `limit` only if both are exact.
    void evaluate(
        const Node<T>& node, i64 depth, const Bracket<T>& bracket, i64 index, i64 limit, End& here, Worker& worker) {
        worker.counters.evaluations++;
        const Line<T>& line = *bracket.line;
        const Bounds<T> rules = bounds();
        const i64 weight = line.weight(index), left_size = line.position[index] + 1;
        i64 low[2] = {rules.left(bracket, weight), rules.right(bracket, weight)};
        // Costs beyond the limit, found at little more effort, close thresholds nearby.
        const i64 wide = i64(slack * double(line.weight(bracket.high) - line.weight(bracket.low)));
        const i64 extra = min_of(wide, table.price);
        const i64 caps[2] = {line.left_leaves, line.right_leaves};
        const bool remembers = rules.nested && !table.apart && depth < Worker::DEPTHS;
        const Stack::Mark outer = worker.stack.mark();
        u64* sets[2] = {nullptr, nullptr};
        Seen& seen = worker.seen[min_of(depth, Worker::DEPTHS - 1)];
        if (remembers && (seen.ring || seen.begin(table.columns, samples.words(), worker.stack.limit / 16))) {
            const i64 words = samples.words();
            sets[0] = worker.stack.template array<u64>(2 * words);
            if (!sets[0]) {
                is_stopped(worker);
                return;
            }
            sets[1] = sets[0] + words;
            const Id<T>* order = node.order(line.column);
            for (i64 w = 0; w < words; w++) sets[0][w] = 0;
            for (i64 i = 0; i < left_size; i++) {
                const i64 sample = node.members[order[i]];
                sets[0][sample / 64] |= u64(1) << sample % 64;
            }
            for (i64 w = 0; w < words; w++) sets[1][w] = node.bits[w] & ~sets[0][w];
            for (i64 side = 0; side < 2; side++)
                low[side] = bound_by_seen(
                    seen, sets[side], side ? table.unit * node.weight - weight : weight, low[side], limit + wide - low[!side], caps[side]);
            if (low[0] + low[1] >= limit) worker.counters.spared++;
        }
        const bool right_first = left_size > node.size - left_size;
        for (i64 turn = 0; turn < 2 && low[0] + low[1] < limit; turn++) {
            const bool right = right_first != (turn == 1);
            const Stack::Mark mark = worker.stack.mark();
            Node<T> child;
            if (samples.side(child, node, line.column, left_size, !right, worker.stack)) {
                const i64 budget = limit + wide - low[!right];
                const Found found = solve(child, depth - 1, caps[right], budget, limit - low[!right] + extra, worker);
                if (!worker.stopped) {
                    low[right] = max_of(low[right], found.value);
                    if (sets[0]) seen.add(node.column[line.column], sets[right], table.unit * child.weight, found.value, caps[right]);
                }
            }
            worker.stack.release(mark);
            if (is_stopped(worker)) break;
        }
        worker.stack.release(outer);
        here = End{weight, min_of(low[0], IMPOSSIBLE), min_of(low[1], IMPOSSIBLE)};
    }

    static bool comes_before(const Bracket<T>& a, const Bracket<T>& b) {
        return a.bound < b.bound || (a.bound == b.bound && a.guess < b.guess);
    }

    static bool push(List<Bracket<T>>& heap, const Bracket<T>& bracket) {
        if (!heap.push(bracket)) return false;
        i64 place = heap.size - 1;
        while (place) {
            const i64 parent = (place - 1) / 2;
            if (!comes_before(bracket, heap.data[parent])) break;
            heap.data[place] = heap.data[parent];
            place = parent;
        }
        heap.data[place] = bracket;
        return true;
    }

    static Bracket<T> pop(List<Bracket<T>>& heap) {
        const Bracket<T> first = heap.data[0], last = heap.data[--heap.size];
        i64 place = 0;
        while (2 * place + 1 < heap.size) {
            i64 child = 2 * place + 1;
            if (child + 1 < heap.size && comes_before(heap.data[child + 1], heap.data[child])) child++;
            if (!comes_before(heap.data[child], last)) break;
            heap.data[place] = heap.data[child];
            place = child;
        }
        if (heap.size) heap.data[place] = last;
        return first;
    }

    // Brackets of all lines of a set; `below`: a bound on the cost of the set one level less deep.
    bool open(
        List<Bracket<T>>& heap, const Node<T>& node, i64 leaves, i64 below, const Guess* guesses, i64 limit, i64& closed,
        Stack& stack) const {
        const Bounds<T> rules = bounds();
        const i64 ways = leaves ? leaves - 1 : 1;
        Line<T>* lines = stack.array<Line<T>>(node.columns * ways);
        if (!lines) return false;
        for (i64 c = 0; c < node.columns; c++) {
            Line<T> line;
            if (!make_line(line, node, c, stack)) return false;
            i64 first = -1;
            if (guesses[c].rank >= 0 && guesses[c].value <= limit + table.price)
                for (i64 t = 0; t < line.count && first < 0; t++)
                    if (rank_at(node, line, t) >= guesses[c].rank) first = t;
            for (i64 way = 0; way < ways; way++) {
                Line<T>& own = lines[c * ways + way];
                own = line;
                if (leaves) own.left_leaves = int32_t(way + 1), own.right_leaves = int32_t(leaves - way - 1);
                Bracket<T> bracket = whole(node, own, below, below);
                bracket.guess = guesses[c].value, bracket.first = first;
                if (rules.tighten(bracket, limit, closed) && !push(heap, bracket)) return false;
            }
        }
        return true;
    }

    static i64 chosen(const Bracket<T>& bracket) {
        const bool is_known = bracket.first >= bracket.low && bracket.first <= bracket.high;
        return is_known ? bracket.first : divided(bracket, 1, 2);
    }

    // Put back what is left of a bracket after a threshold in it was looked at.
    bool split_bracket(List<Bracket<T>>& heap, const Bracket<T>& bracket, i64 index, const End& here, i64 limit, i64& closed)
        const {
        const Bounds<T> rules = bounds();
        Bracket<T> low = bracket, high = bracket;
        low.high = index - 1, low.above = here;
        high.low = index + 1, high.below = here;
        bool good = true;
        if (low.low <= low.high && rules.tighten(low, limit, closed)) good &= push(heap, low);
        if (high.low <= high.high && rules.tighten(high, limit, closed)) good &= push(heap, high);
        return good;
    }

    Found deep(const Node<T>& node, i64 depth, i64 leaves, i64 budget, Worker& worker) {
        Stack& stack = worker.stack;
        const Stack::Mark mark = stack.mark();
        Guess* guesses = stack.array<Guess>(node.columns);
        Found best = {node.leaf, 1, -1, -1, 0, 0};
        if (!guesses) return best;
        Found shallow = two_levels(node, leaves, budget, worker, guesses);
        if (is_stopped(worker)) return shallow;
        i64 closed = IMPOSSIBLE;
        if (shallow.exact)
            best = shallow;
        else
            best = Found{IMPOSSIBLE, 1, -1, -1, 0, 0}, closed = shallow.value;
        const i64 four = 4 * table.price + table.unit * node.unavoidable;
        i64 limit = min_of(best.value, budget);
        if (four >= limit) {
            closed = min_of(closed, four);
        } else {
            List<Bracket<T>> heap = {nullptr, 0, 0};
            // One level less deep the set costs at least this.
            const i64 below = depth == 3 ? shallow.value : min_of(shallow.value, four);
            bool good = open(heap, node, leaves, below, guesses, limit, closed, stack);
            while (good && heap.size && !worker.stopped) {
                Bracket<T> bracket = pop(heap);
                if (!bounds().tighten(bracket, limit, closed)) continue;
                const i64 index = chosen(bracket);
                End here = {0, 0, 0};
                evaluate(node, depth, bracket, index, limit, here, worker);
                if (worker.stopped) break;
                const i64 value = here.left + here.right;
                if (value < limit) {
                    const Line<T>& line = *bracket.line;
                    best = Found{
                        value, 1, node.column[line.column], rank_at(node, line, index), line.left_leaves, line.right_leaves};
                    limit = value;
                } else
                    closed = min_of(closed, value);
                good = split_bracket(heap, bracket, index, here, limit, closed);
            }
            heap.clear();
            if (!good) stack.failed = true, is_stopped(worker);
        }
        stack.release(mark);
        if (closed < best.value) best = Found{closed, 0, -1, -1, 0, 0};
        return best;
    }

    // ------------------------------------------------------------ the root

    // A bound on all trees of the depth that is searched; the caller holds the lock.
    i64 bound() const {
        i64 result = min_of(closed, best.value);
        if (heap.size) result = min_of(result, heap.data[0].bound);
        for (i64 w = 0; w < n_workers; w++)
            if (workers[w].is_busy) result = min_of(result, workers[w].bound);
        return max_of(result, root_lower);
    }

    // Limit on leaves at a depth; 0 where it limits nothing.
    i64 leaves_at(i64 at) const { return max_leaves && (at >= 31 || max_leaves < i64(1) << at) ? max_leaves : 0; }

    // Begin the search at a depth: up to depth two it is finished at once, deeper by `work`. `lower`: a bound on trees of
    // this depth; `shallower`: a bound on trees that are one level less deep.
    bool begin_depth(i64 wanted, i64 lower, i64 shallower) {
        Worker& worker = workers[0];
        worker.stopped = false;
        lock.lock();
        depth = wanted;
        heap.size = 0;
        root_lower = closed = lower;
        lock.unlock();
        const i64 leaves = leaves_at(depth);
        if (depth <= 1 || leaves == 1 || leaves == 2 || !root.columns) {
            const Found found = solve(root, min_of<i64>(depth, 1), leaves == 2 ? 0 : leaves, IMPOSSIBLE, IMPOSSIBLE, worker);
            if (worker.stopped) return false;
            return finish_depth(found, found.value, 1, worker);
        }
        if (!guesses) {
            guesses = worker.stack.template array<Guess>(root.columns);
            if (!guesses) return !is_stopped(worker);
            root_two = two_levels(root, leaves_at(2), best.value, worker, guesses);
            if (is_stopped(worker)) {
                guesses = nullptr;
                return false;
            }
            if (!finish_depth(root_two, lower, 2, worker)) return false;
        }
        const i64 four = 4 * table.price + table.unit * root.unavoidable;
        if (depth == 2 || leaves == 3 || four >= best.value)
            return finish_depth(root_two, depth == 2 || leaves == 3 ? root_two.value : min_of(root_two.value, four), 2, worker);
        const i64 below = max_of(shallower, depth == 3 ? root_two.value : min_of(root_two.value, four));
        i64 first_closed = root_two.value;
        const Stack::Mark mark = worker.stack.mark();
        List<Bracket<T>> opened = {nullptr, 0, 0};
        if (!open(opened, root, leaves, below, guesses, best.value, first_closed, worker.stack)) {
            opened.clear();
            worker.stack.release(mark);
            worker.stack.failed = true;
            return !is_stopped(worker);
        }
        lock.lock();
        heap.clear();
        heap = opened;
        closed = first_closed;
        lock.unlock();
        return true;
    }

    // Note what a whole depth gave: a tree, and a bound on all.
    bool finish_depth(const Found& found, i64 lower, i64 at_depth, Worker& worker) {
        if (found.exact && !improve(found, at_depth, worker)) return false;
        lock.lock();
        closed = lower;
        lock.unlock();
        return true;
    }

    // Keep a tree if it is better; false where there is no memory for it. The lock is not held while it is made.
    bool improve(const Found& found, i64 at_depth, Worker& worker) {
        lock.lock();
        const bool wanted = found.value < best.value;
        lock.unlock();
        if (!wanted) return true;
        List<TreeNode> next = {nullptr, 0, 0};
        const bool was_steady = worker.steady;
        worker.steady = true;
        const bool good = rebuild(next, root, at_depth, leaves_at(at_depth), found, worker) >= 0;
        worker.steady = was_steady;
        if (!good) {
            worker.stack.failed = true;
            is_stopped(worker);
        }
        lock.lock();
        if (good && found.value < best.value) {
            const List<TreeNode> old = tree;
            tree = next, next = old;
            best = found;
            version++;
        }
        lock.unlock();
        next.clear();
        return good;
    }

    // Work through the brackets of the root until there are none, together with other workers.
    void work(i64 number) {
        Worker& worker = workers[number];
        worker.stopped = false;
        while (true) {
            lock.lock();
            Bracket<T> bracket;
            bool is_taken = false;
            while (heap.size && !is_taken) {
                bracket = pop(heap);
                is_taken = bounds().tighten(bracket, best.value, closed);
            }
            bool others = false;
            for (i64 w = 0; w < n_workers; w++) others |= w != number && workers[w].is_busy;
            if (is_taken) worker.is_busy = true, worker.bound = bracket.bound;
            const i64 limit = best.value;
            lock.unlock();
            if (!is_taken) {
                if (!others || is_stopped(worker)) return;
                continue;  // another worker may leave brackets behind
            }
            const i64 index = chosen(bracket);
            End here = {0, 0, 0};
            evaluate(root, depth, bracket, index, limit, here, worker);
            const i64 value = here.left + here.right;
            const Line<T>& line = *bracket.line;
            bool good = true;
            if (!worker.stopped && value < limit) {
                const Found found = {
                    value, 1, root.column[line.column], rank_at(root, line, index), line.left_leaves, line.right_leaves};
                good = improve(found, depth, worker);
            }
            lock.lock();
            if (worker.stopped) {
                good = push(heap, bracket) && good;
            } else {
                if (value >= best.value) closed = min_of(closed, value);
                good = good && split_bracket(heap, bracket, index, here, best.value, closed);
            }
            if (!good) closed = min_of(closed, worker.bound), worker.stack.failed = true;
            worker.is_busy = false;
            lock.unlock();
            if (is_stopped(worker)) return;
        }
    }

    // ------------------------------------------------------------ trees

    i64 place_of(const Node<T>& node, int32_t column) const {
        for (i64 c = 0; c < node.columns; c++)
            if (node.column[c] == column) return c;
        return -1;
    }

    // Samples on the left of a split.
    i64 left_size(const Node<T>& node, i64 c, int32_t rank) const {
        const int32_t* ranks = table.rank + i64(node.column[c]) * table.n;
        i64 count = 0;
        for (i64 i = 0; i < node.size; i++) count += ranks[node.members[i]] <= rank;
        return count;
    }

    // Write the tree that stands behind an exact cost; its place in the list, or -1.
    i64 rebuild(List<TreeNode>& out, const Node<T>& node, i64 depth, i64 leaves, const Found& found, Worker& worker) {
        const i64 place = out.size;
        if (!out.push(TreeNode{-1, -1, -1, -1, samples.best_label(node.totals)})) return -1;
        if (found.value == node.leaf) return place;
        Stack& stack = worker.stack;
        const Stack::Mark mark = stack.mark();
        Found split = found;
        if (split.column < 0 && !stump(node, found.value, split, stack)) {
            // The split was forgotten: search again, with the cost known.
            split = depth <= 2 ? two_levels(node, leaves, found.value + 1, worker, nullptr)
                               : deep(node, depth, leaves, found.value + 1, worker);
            if (split.column < 0 && !stump(node, found.value, split, stack)) return -1;
        }
        const i64 c = place_of(node, split.column);
        if (c < 0) return -1;
        const i64 left = left_size(node, c, split.rank);
        i64 known = 0;
        for (i64 side = 0; side < 2; side++) {
            const Stack::Mark inner = stack.mark();
            Node<T> child;
            if (!samples.side(child, node, c, left, side == 0, stack)) return -1;
            const i64 cap = side == 0 ? split.left_leaves : split.right_leaves;
            const i64 needed = found.value - known + 1;
            const Found below = solve(child, depth - 1, cap, needed, needed, worker);
            if (!below.exact || worker.stack.failed) return -1;
            known += below.value;
            const i64 at = rebuild(out, child, depth - 1, cap, below, worker);
            if (at < 0) return -1;
            (side == 0 ? out.data[place].left : out.data[place].right) = int32_t(at);
            stack.release(inner);
        }
        if (known != found.value) return -1;  // never: a tree that is not worth what was claimed is not kept
        out.data[place].column = split.column, out.data[place].rank = split.rank;
        stack.release(mark);
        return place;
    }

    // The first split into two leaves with this cost.
    bool stump(const Node<T>& node, i64 value, Found& split, Stack& stack) const {
        i64 at = -1;
        for (i64 c = 0; c < node.columns && at < 0; c++) {
            samples.each_split(node, c, stack, [&](i64 t, i64 errors) {
                if (at < 0 && table.unit * errors + 2 * table.price == value) at = t;
            });
            if (at < 0) continue;
            Line<T> line = {c, 0, 0, node.counts[c], node.ends(c), nullptr, 0};
            split.column = node.column[c], split.rank = rank_at(node, line, at);
            split.left_leaves = split.right_leaves = 1;
        }
        return at >= 0;
    }
};

}  // namespace ordered
