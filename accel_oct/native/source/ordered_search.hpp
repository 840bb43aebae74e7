// Optimal trees over every threshold of ordered columns: branch and bound with two facts about nested sets.
//
// C_d(S) is the least cost of a tree of depth at most d on the samples S. For S' within S
//     C_d(S') <= C_d(S) <= C_d(S') + weight(S - S').
// (The second holds under limits on the mass of leaves too; the first does not.) So known costs of the sides of some
// thresholds bound those of all thresholds between them, and a column is searched by bisection: see `Bracket` for depth two,
// and `Board` for deeper trees.
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

// Let another thread run on this processor.
inline void yield_processor() {
#if defined(_WIN32)
    SwitchToThread();
#else
    sched_yield();
#endif
}

struct SpinLock {
    int32_t taken;

    void lock() {
        while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE))
            // The thread that holds it may wait for this processor.
            for (i64 turn = 0; __atomic_load_n(&taken, __ATOMIC_RELAXED); turn++)
                if (turn >= 100) yield_processor();
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
    const Line<T>* line;
    i64 low, high;
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

// A threshold of a line whose sides have known costs, or bounds on them.
struct Known {
    i64 index;      // -1 and the number of thresholds: the ends of the column
    End end;
    i64 stump[2];   // costs of the sides with at most one split, or -1
    int32_t next;   // of the line, in the order of thresholds
    bool is_busy;   // a worker looks at it
};

// A line while it is searched. Thresholds that may be better than what is known are open; of the runs of open thresholds
// one is to be looked at next.
template <class T>
struct Track {
    Line<T> line;
    int32_t first;         // of the known thresholds
    i64 guess;             // orders tracks with equal bounds
    i64 hint;              // threshold to look at first, or -1
    i64 limit;             // for which the rest was found
    i64 bound;             // on all thresholds
    i64 least, low, high;  // bound and extent of the next run; low > high: there is none
};

// All lines of a set.
template <class T>
struct Board {
    SpinLock lock;
    Track<T>* tracks;
    i64 n_tracks;
    List<Known> known;
    i64 limit;   // cost that is to be beaten
    i64 n_busy;  // workers that look at thresholds
};

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

    // Costs of the sides of a threshold with at most one split each.
    struct Counted {
        i64 column, index, left, right;
    };

    // What a search at depth two saw.
    struct Survey {
        Guess* guesses;  // per column
        List<Counted> counted;
    };

    // The root
    Node<T> root;
    i64 depth;
    Board<T> board;
    i64 closed;  // bound on trees that are not on the board
    Found best;
    i64 version;  // raised with every better tree
    List<TreeNode> tree;
    i64 root_lower;   // a bound on trees of `depth` that was known before
    Survey survey;    // at depth two
    Found root_two;   // of depth two
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
        const Id<T>* position = node.ends(c);
        const Entry<T>* order = node.order(c);
        i64* weight = nullptr;
        if (!table.uniform) {
            weight = stack.array<i64>(count);
            if (!weight) return false;
            i64 sum = 0;
            for (i64 t = 0, i = 0; t < count; t++) {
                for (; i <= position[t]; i++) sum += table.weight[node.members[order[i].id]];
                weight[t] = table.unit * sum;
            }
        }
        line = Line<T>{c, 0, 0, count, position, weight, table.unit * table.uniform};
        return true;
    }

    // ------------------------------------------------------------ depth two

    i64 one_level(const Node<T>& node, i64 split, i64 leaves) const {
        return leaves == 1 ? node.leaf : min_of(node.leaf, split);
    }

    // The best tree of depth two. `survey`: where to put what was seen, or null.
    Found two_levels(const Node<T>& node, i64 leaves, i64 budget, Worker& worker, Survey* survey) {
        worker.counters.sets++;
        Stack& stack = worker.stack;
        const Stack::Mark mark = stack.mark();
        const i64 ways = leaves == 3 ? 2 : 1;
        const bool may_split = leaves != 1 && node.leaf < IMPOSSIBLE, may_go_on = may_split && leaves != 2;
        i64 *costs = stack.array<i64>(node.columns + 1), *left = stack.array<i64>(node.size);
        i64* right = stack.array<i64>(node.size);
        Line<T>* lines = stack.array<Line<T>>(node.columns * ways);
        Found best = {node.leaf, 1, -1, -1, 0, 0};
        bool good = costs && left && right && lines;
        i64 limit = min_of(node.leaf, budget), lower = IMPOSSIBLE, split = IMPOSSIBLE;
        List<Bracket<T>> queue = {nullptr, 0, 0};
        auto push_column = [&](i64 c) {
            for (i64 way = 0; way < ways && good; way++) {
                Line<T>& line = lines[c * ways + way];
                good = make_line(line, node, c, stack);
                // Sides have at most one split; the limit is said, for deeper searches ask with it again.
                if (leaves) line.left_leaves = line.right_leaves = 2;
                if (ways == 2) line.left_leaves = int32_t(1 + way), line.right_leaves = int32_t(2 - way);
                good = good && push_runs(queue, node, line, left, right, limit, lower);
            }
        };
        const bool is_plain = samples.is_plain();
        for (i64 c = 0; c < node.columns && good; c++) {
            const i64 errors = is_plain ? samples.fewest_errors(node, c) : samples.bound_sides(node, c, left, right, stack);
            good = errors >= 0;
            costs[c] = table.unit * errors + 2 * table.price;
            if (survey) survey->guesses[c] = Guess{costs[c], -1};
            if (!may_split) continue;
            split = min_of(split, costs[c]);
            limit = min_of(limit, split);
            if (!is_plain && may_go_on) push_column(c);
        }
        if (may_split) best.value = min_of(node.leaf, split);
        const i64 three = 3 * table.price + table.unit * node.unavoidable;
        if (is_plain && may_go_on && three < limit) {
            // With two classes the bounds are four prices at most: they are counted where that can close anything.
            const bool may_close = 4 * table.price >= limit;
            if (!may_close)
                for (i64 t = 0; t < node.size; t++) left[t] = right[t] = table.price;
            for (i64 c = 0; c < node.columns && good; c++) {
                if (may_close) samples.bound_sides(node, c, left, right, stack);
                push_column(c);
            }
        }
        if (!may_go_on || !good) {
            // No further split is allowed, or memory ended.
        } else if (three >= limit) {
            lower = three;
        } else {
            search_lines(node, queue, split, costs, best, limit, lower, worker, survey);
        }
        queue.clear();
        if (!good) stack.failed = true;
        stack.release(mark);
        if (lower < best.value) best.value = lower, best.exact = 0;
        return best;
    }

    // A threshold that a pass looks at, and the bracket that it is in.
    struct Point {
        i64 bracket, index;
    };

    // Push the runs of thresholds that bounds on both sides leave open.
    bool push_runs(
        List<Bracket<T>>& queue, const Node<T>& node, const Line<T>& line, const i64* left, const i64* right, i64 limit,
        i64& lower) const {
        const i64 none = table.price;
        for (i64 t = 0; t < line.count;) {
            for (; t < line.count && left[t] + right[t] >= limit; t++) lower = min_of(lower, left[t] + right[t]);
            if (t == line.count) break;
            Bracket<T> run = {0, &line, t, t, {0, none, none}, {table.unit * node.weight, none, none}};
            if (t) run.below = End{line.weight(t - 1), left[t - 1], right[t - 1]};
            while (t < line.count && left[t] + right[t] < limit) t++;
            run.high = t - 1;
            if (t < line.count) run.above = End{line.weight(t), left[t], right[t]};
            if (!queue.push(run)) return false;
        }
        return true;
    }

    // The brackets of all columns, both sides with at most one split more: bracket by bracket, in rounds, with a
    // threshold in each lane. `split`: cost of the best split; `costs`: of each column.
    void search_lines(
        const Node<T>& node, List<Bracket<T>>& queue, i64 split, const i64* costs, Found& best, i64& limit, i64& lower,
        Worker& worker, Survey* survey) {
        Stack& stack = worker.stack;
        const i64 B = Own::MOST_LANES;
        const Bounds<T> rules = bounds();
        typename Own::Sides sides;
        Bracket<T>* taken = stack.array<Bracket<T>>(B);
        Point* points = stack.array<Point>(B);
        const i64 n_first = queue.size;
        i64* first = stack.array<i64>(n_first + 1);  // brackets, those of good columns first
        int32_t *order = stack.array<int32_t>(node.columns), *starts = stack.array<int32_t>(node.columns + 1);
        if (!taken || !points || !first || !order || !starts || !samples.begin_sides(sides, node, stack)) return;
        for (i64 i = 0; i < n_first; i++) {
            Bracket<T>& bracket = queue.data[i];
            // A side costs at least what the whole set costs with one split, less the weight of the other side.
            const Line<T>& line = *bracket.line;
            bracket.below.right = max_of(
                bracket.below.right, one_level(node, split, line.right_leaves) - bracket.below.weight);
            bracket.above.left = max_of(
                bracket.above.left,
                one_level(node, split, line.left_leaves) - (table.unit * node.weight - bracket.above.weight));
        }
        for (i64 c = 0, i = 0; c <= node.columns; c++) {
            if (c < node.columns) starts[c] = int32_t(i);
            while (i < n_first && queue.data[i].line->column == c) i++;
            if (c == node.columns) starts[c] = int32_t(n_first);
        }
        for (i64 c = 0; c < node.columns; c++) {
            i64 place = c;
            for (; place && costs[order[place - 1]] > costs[c]; place--) order[place] = order[place - 1];
            order[place] = int32_t(c);
        }
        for (i64 o = 0, filled = 0; o < node.columns; o++)
            for (i64 i = starts[order[o]]; i < starts[order[o] + 1]; i++) first[filled++] = i;
        bool good = true;
        for (i64 next = 0; good && next < queue.size && !is_stopped(worker);) {
            i64 n_taken = 0;
            for (; next < queue.size && n_taken < B; next++) {
                taken[n_taken] = queue.data[next < n_first ? first[next] : next];
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
                samples.set_side(sides, node, p, line.column, points[p].index);
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
                    if (survey && value < survey->guesses[line.column].value)
                        survey->guesses[line.column] = Guess{value, rank_at(node, line, index)};
                    if (survey && line.left_leaves == line.right_leaves)
                        good = good && survey->counted.push(Counted{line.column, index, here.left, here.right});
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
        if (!good) stack.failed = true;
    }

    int32_t rank_at(const Node<T>& node, const Line<T>& line, i64 index) const {
        return int32_t(node.order(line.column)[line.position[index]].rank);
    }

    // ------------------------------------------------------------ boards

    i64 left_at(const Known& before, const Known& after, i64 weight) const {
        const i64 nested = table.limited() ? table.price : before.end.left;
        return max_of(nested, after.end.left - (after.end.weight - weight));
    }
    i64 right_at(const Known& before, const Known& after, i64 weight) const {
        const i64 nested = table.limited() ? table.price : after.end.right;
        return max_of(nested, before.end.right - (weight - before.end.weight));
    }

    // Note bounds on the sides of a threshold, and what follows for those that are known. Its place, or -1 where there is
    // no memory.
    int32_t note(Board<T>& board, Track<T>& track, i64 index, i64 left, i64 right) const {
        int32_t place = track.first;
        while (board.known.data[board.known.data[place].next].index <= index) place = board.known.data[place].next;
        if (board.known.data[place].index != index) {
            const Known &before = board.known.data[place], &after = board.known.data[before.next];
            const i64 weight = track.line.weight(index);
            const End end = {weight, left_at(before, after, weight), right_at(before, after, weight)};
            const Known fresh = {index, end, {-1, -1}, before.next, false};
            if (!board.known.push(fresh)) return -1;
            board.known.data[place].next = int32_t(board.known.size - 1);
            place = int32_t(board.known.size - 1);
        }
        Known& here = board.known.data[place];
        if (left <= here.end.left && right <= here.end.right) return place;
        here.end.left = max_of(here.end.left, left), here.end.right = max_of(here.end.right, right);
        const bool nested = !table.limited();
        for (int32_t p = track.first; p >= 0; p = board.known.data[p].next) {
            Known& other = board.known.data[p];
            const i64 between = other.end.weight - here.end.weight;
            if (other.index < index) {
                other.end.left = max_of(other.end.left, here.end.left + between);
                if (nested) other.end.right = max_of(other.end.right, here.end.right);
            } else if (other.index > index) {
                if (nested) other.end.left = max_of(other.end.left, here.end.left);
                other.end.right = max_of(other.end.right, here.end.right - between);
            }
        }
        return place;
    }

    // Find the bound of a track and its next run: that with the least bound, and of these the longest.
    void summarize(const Board<T>& board, Track<T>& track) const {
        const Bounds<T> rules = bounds();
        track.limit = board.limit;
        track.bound = track.least = IMPOSSIBLE;
        track.low = 0, track.high = -1;
        i64 low = 0, high = -1, least = IMPOSSIBLE;  // of the run that goes on
        auto end_run = [&]() {
            const bool is_better = least < track.least || (least == track.least && high - low > track.high - track.low);
            if (low <= high && is_better) track.least = least, track.low = low, track.high = high;
            low = 0, high = -1, least = IMPOSSIBLE;
        };
        auto extend_run = [&](i64 from, i64 to, i64 bound) {
            if (low > high) low = from;
            high = to, least = min_of(least, bound);
        };
        for (const Known* before = board.known.data + track.first; before->next >= 0;) {
            const Known* after = board.known.data + before->next;
            if (before->index + 1 < after->index) {
                const i64 from = before->index + 1, to = after->index - 1;
                Bracket<T> gap = {0, &track.line, from, to, before->end, after->end};
                if (rules.tighten(gap, board.limit, track.bound)) {
                    if (gap.low > from) end_run();
                    extend_run(gap.low, gap.high, gap.bound);
                    if (gap.high < to) end_run();
                    track.bound = min_of(track.bound, gap.bound);
                } else
                    end_run();
            }
            if (after->next >= 0) {
                const i64 value = after->end.left + after->end.right;
                track.bound = min_of(track.bound, value);
                if (value < board.limit && !after->is_busy)
                    extend_run(after->index, after->index, value);
                else
                    end_run();
            }
            before = after;
        }
        end_run();
    }

    // The track with the run of the least bound, or null.
    Track<T>* choose(const Board<T>& board) const {
        while (true) {
            Track<T>* best = nullptr;
            for (i64 i = 0; i < board.n_tracks; i++) {
                Track<T>& track = board.tracks[i];
                if (track.low > track.high) continue;
                if (!best || track.least < best->least || (track.least == best->least && track.guess < best->guess))
                    best = &track;
            }
            if (!best || best->limit == board.limit) return best;
            summarize(board, *best);
        }
    }

    // Where to look in the next run of a track: in the middle, or near it where something was counted.
    i64 chosen(const Board<T>& board, const Track<T>& track) const {
        if (track.hint >= track.low && track.hint <= track.high) return track.hint;
        const Line<T>& line = track.line;
        const Bracket<T> run = {0, &line, track.low, track.high, {}, {}};
        i64 index = divided(run, 1, 2);
        const i64 middle = line.weight(index);
        i64 nearest = (line.weight(track.high) - line.weight(track.low)) / 4;
        for (int32_t p = track.first; p >= 0; p = board.known.data[p].next) {
            const Known& known = board.known.data[p];
            if (known.index < track.low || known.index > track.high || known.stump[0] < 0) continue;
            const i64 distance = known.end.weight < middle ? middle - known.end.weight : known.end.weight - middle;
            if (distance < nearest) nearest = distance, index = known.index;
        }
        return index;
    }

    // A threshold that a worker looks at, in a run of open ones.
    struct Task {
        Track<T>* track;
        int32_t place;
        i64 index, low, high, limit;
        End end;
        i64 stump[2];
    };

    // Take a threshold of the next run of a track; false where there is no memory.
    bool take(Board<T>& board, Track<T>& track, Task& task) const {
        const i64 index = chosen(board, track), low = track.low, high = track.high;
        const int32_t place = note(board, track, index, 0, 0);
        if (place < 0) return false;
        Known& known = board.known.data[place];
        known.is_busy = true;
        board.n_busy++;
        task = Task{&track, place, index, low, high, board.limit, known.end, {known.stump[0], known.stump[1]}};
        summarize(board, track);
        return true;
    }

    // Note what was found out about a threshold that was taken.
    void give_back(Board<T>& board, const Task& task, i64 left, i64 right) const {
        board.known.data[task.place].is_busy = false;
        board.n_busy--;
        note(board, *task.track, task.index, left, right);
        summarize(board, *task.track);
    }

    // Put all lines of a set on a board. `below`: a bound on the cost of the set one level less deep; `depth`: of the
    // trees that are searched.
    bool open(
        Board<T>& board, const Node<T>& node, i64 depth, i64 leaves, i64 below, const Survey& survey, Stack& stack) const {
        const i64 ways = leaves ? leaves - 1 : 1;
        board.n_tracks = 0;
        board.known.size = 0;
        board.tracks = stack.array<Track<T>>(node.columns * ways);
        if (!board.tracks) return false;
        for (i64 c = 0; c < node.columns; c++) {
            Line<T> line;
            if (!make_line(line, node, c, stack)) return false;
            const Guess& guess = survey.guesses[c];
            i64 hint = -1;
            if (guess.rank >= 0 && guess.value <= board.limit + table.price)
                for (i64 t = 0; t < line.count && hint < 0; t++)
                    if (rank_at(node, line, t) >= guess.rank) hint = t;
            const i64 first_track = board.n_tracks;
            for (i64 way = 0; way < ways; way++) {
                Track<T>& track = board.tracks[board.n_tracks++];
                track = Track<T>{line, int32_t(board.known.size), guess.value, hint, 0, 0, 0, 0, 0};
                if (leaves)
                    track.line.left_leaves = int32_t(way + 1), track.line.right_leaves = int32_t(leaves - way - 1);
                const int32_t last = int32_t(board.known.size + 1);
                const Known ends[2] = {
                    {-1, {0, table.price, below}, {-1, -1}, last, false},
                    {line.count, {table.unit * node.weight, below, table.price}, {-1, -1}, -1, false}};
                if (!board.known.push(ends[0]) || !board.known.push(ends[1])) return false;
            }
            if (!note_counted(board, first_track, node, depth, survey, stack)) return false;
            for (i64 t = first_track; t < board.n_tracks; t++) summarize(board, board.tracks[t]);
        }
        return true;
    }

    // Note trees with one split that were counted on sides of a column, and what the classes of the sides cost at least.
    bool note_counted(
        Board<T>& board, i64 first_track, const Node<T>& node, i64 depth, const Survey& survey, Stack& stack) const {
        const Line<T>& line = board.tracks[first_track].line;
        const Stack::Mark mark = stack.mark();
        const i64 K = samples.n_totals();
        i64* totals = stack.array<i64>(2 * K);
        const Counted** at = stack.array<const Counted*>(line.count);
        if (!totals || !at) return false;
        for (i64 t = 0; t < line.count; t++) at[t] = nullptr;
        for (i64 i = 0; i < survey.counted.size; i++)
            if (survey.counted.data[i].column == line.column) at[survey.counted.data[i].index] = survey.counted.data + i;
        for (i64 k = 0; k < K; k++) totals[k] = 0, totals[K + k] = node.totals[k];
        const i64 step = statistic == LABELLED ? max_of<i64>(1, line.count / 32) : line.count;
        bool good = true;
        i64 weight = 0, unavoidable = 0;
        for (i64 t = 0, i = 0; t < line.count && good; t++) {
            for (; i <= line.position[t]; i++) {
                const i64 id = node.order(line.column)[i].id, sample = node.members[id];
                samples.add(totals, node, id);
                weight += table.weight[sample], unavoidable += table.unavoidable[sample];
            }
            if (!at[t] && (t + 1) % step) continue;
            for (i64 k = 0; k < K; k++) totals[K + k] = node.totals[k] - totals[k];
            const i64 left = lower_bound(totals, weight, unavoidable, depth - 1, at[t] ? at[t]->left : -1);
            const i64 right = lower_bound(
                totals + K, node.weight - weight, node.unavoidable - unavoidable, depth - 1, at[t] ? at[t]->right : -1);
            for (i64 track = first_track; track < board.n_tracks && good; track++) {
                const int32_t place = note(board, board.tracks[track], t, left, right);
                good = place >= 0;
                if (!good || !at[t]) continue;
                board.known.data[place].stump[0] = at[t]->left, board.known.data[place].stump[1] = at[t]->right;
            }
        }
        stack.release(mark);
        return good;
    }

    // A bound on the cost of a set by its sums and by the best tree with at most one split, if that is known: any other
    // has three leaves.
    i64 lower_bound(const i64* totals, i64 weight, i64 unavoidable, i64 depth, i64 stump) const {
        if (stump == IMPOSSIBLE) return IMPOSSIBLE;
        const i64 least = samples.least_cost(totals, weight, depth);
        return stump < 0 ? least : min_of(stump, max_of(least, 3 * table.price + table.unit * unavoidable));
    }

    // Count trees with at most one split on the sides of the thresholds that come next. The first was taken already; the
    // caller holds the lock.
    bool count(Board<T>& board, const Node<T>& node, i64 depth, const Task& first, Worker& worker) {
        constexpr i64 MOST = LANES<T>;
        Task tasks[MOST];
        tasks[0] = first;
        i64 n_tasks = 1;
        bool good = true;
        for (; n_tasks < MOST && good; n_tasks++) {
            Track<T>* track = choose(board);
            if (!track) break;
            good = take(board, *track, tasks[n_tasks]);
            if (!good) break;
            if (tasks[n_tasks].stump[0] >= 0) {
                give_back(board, tasks[n_tasks], 0, 0);
                break;
            }
        }
        board.lock.unlock();
        Stack& stack = worker.stack;
        const Stack::Mark mark = stack.mark();
        const i64 K = samples.n_totals();
        typename Own::Sides sides;
        i64* totals = stack.array<i64>(K);
        good = good && totals && samples.begin_sides(sides, node, stack);
        if (good) {
            samples.clear_sides(sides, node, n_tasks);
            for (i64 i = 0; i < n_tasks; i++) {
                const Line<T>& line = tasks[i].track->line;
                samples.set_side(sides, node, i, line.column, tasks[i].index);
            }
            samples.run(sides, node);
            worker.counters.passes++;
        }
        board.lock.lock();
        for (i64 i = 0; i < n_tasks; i++) {
            const Task& task = tasks[i];
            i64 bound[2] = {0, 0};
            for (i64 side = 0; side < 2 && good; side++) {
                const i64 units = task.track->line.weight(task.index) / table.unit;
                const i64 weight = side ? node.weight - units : units;
                const i64 stump = samples.cost_of_side(sides, i, side, weight, 0);
                for (i64 k = 0; k < K; k++) totals[k] = samples.total_of_side(sides, i, side, k);
                bound[side] = lower_bound(totals, weight, 0, depth - 1, stump);
                board.known.data[task.place].stump[side] = stump;
            }
            give_back(board, task, bound[0], bound[1]);
        }
        stack.release(mark);
        return good;
    }

    // Look at thresholds of a board until none is open, together with other workers. `best`: where to put a better tree;
    // null at the root.
    void explore(Board<T>& board, const Node<T>& node, i64 depth, Found* best, Worker& worker) {
        while (!is_stopped(worker)) {
            board.lock.lock();
            Track<T>* track = choose(board);
            if (!track) {
                const bool others = board.n_busy > 0;
                board.lock.unlock();
                if (!others) return;
                yield_processor();
                continue;  // another worker may leave open thresholds behind
            }
            Task task;
            bool good = take(board, *track, task);
            if (good && task.stump[0] < 0 && counts_first(task.limit)) {
                good = count(board, node, depth, task, worker);
                board.lock.unlock();
                if (!good) worker.stack.failed = true;
                continue;
            }
            board.lock.unlock();
            if (!good) {
                worker.stack.failed = true;
                continue;
            }
            End here = {0, 0, 0};
            evaluate(node, depth, task, here, worker);
            const i64 value = here.left + here.right;
            const Line<T>& line = track->line;
            const Found found = {
                value, 1, node.column[line.column], rank_at(node, line, task.index), line.left_leaves, line.right_leaves};
            bool is_better = !worker.stopped && value < task.limit;
            if (is_better && !best) is_better = improve(found, depth, worker);
            board.lock.lock();
            if (is_better && value < board.limit) {
                board.limit = value;
                if (best) *best = found;
            }
            if (track->hint == task.index) track->hint = -1;
            give_back(board, task, worker.stopped ? 0 : here.left, worker.stopped ? 0 : here.right);
            board.lock.unlock();
        }
    }

    // Whether trees with one split are worth counting first: where they decide, because leaves cost much or because
    // there are many classes.
    bool counts_first(i64 limit) const { return statistic == LABELLED || limit <= 7 * table.price; }

    // ------------------------------------------------------------ any depth

    static Key key_of(const Node<T>& node, i64 depth, i64 leaves) {
        Key key = node.key;
        key.add(random_key(u64(1) << 62 | u64(depth) << 32 | u64(leaves)));
        return key;
    }

    static constexpr i64 ANY_DEPTH = (i64(1) << 29) - 1;

    // The least cost of a tree: exact where it is below the budget, else exact or a bound of at least the budget.
    // Trees that are so deep that they cost at least `needed` are not searched, so a bound may be as low as that.
    // Columns of a side are there while the call lasts.
    Found solve(Node<T>& node, i64 depth, i64 leaves, i64 budget, i64 needed, Worker& worker) {
        Found leaf = {node.leaf, 1, -1, -1, 0, 0};
        if (depth == 0 || leaves == 1 || node.leaf == IMPOSSIBLE) return leaf;
        const i64 unavoidable = table.unit * node.unavoidable;
        const i64 least = max_of(2 * table.price + unavoidable, samples.least_cost(node.totals, node.weight, depth));
        if (node.leaf <= least) return leaf;
        if (least >= needed) return Found{least, 0, -1, -1, 0, 0};
        // A tree of this cost has few leaves, so it is not deep.
        i64 allowed = depth, beyond = IMPOSSIBLE;
        if (table.price > 0) {
            const i64 most = (min_of(needed, node.leaf) - unavoidable - 1) / table.price;
            if (most - 1 < depth) allowed = most - 1, beyond = (most + 1) * table.price + unavoidable;
        }
        if (leaves && allowed < 31 && leaves >= i64(1) << allowed) leaves = 0;
        if (leaves && leaves - 1 < allowed) allowed = leaves - 1;
        Stack& stack = worker.stack;
        const Stack::Mark mark = stack.mark();
        Found found = leaf;
        if (allowed == 1) {
            found.value = node.stump;
            if (node.stump < 0 && (!node.parent || samples.fill(node, stack))) {
                found.value = min_of(node.leaf, samples.best_split(node, stack));
            }
            stack.release(mark);
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
            found = leaf;
            if (!node.parent || samples.fill(node, stack)) {
                if (node.columns)
                    found = allowed == 2 ? two_levels(node, leaves, budget, worker, nullptr)
                                         : deep(node, allowed, leaves, budget, worker);
                stack.release(mark);
            }
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

    // Costs of a threshold's sides, exact or bounds; their sum is below the limit only if both are exact.
    void evaluate(const Node<T>& node, i64 depth, const Task& task, End& here, Worker& worker) {
        worker.counters.evaluations++;
        Stack& stack = worker.stack;
        const Stack::Mark outer = stack.mark();
        const Line<T>& line = task.track->line;
        const i64 limit = task.limit, left_size = line.position[task.index] + 1;
        // Costs beyond the limit, found at little more effort, close thresholds nearby.
        const i64 wide = i64(slack * double(line.weight(task.high) - line.weight(task.low)));
        const i64 extra = min_of(wide, table.price);
        const i64 caps[2] = {line.left_leaves, line.right_leaves};
        i64 low[2] = {task.end.left, task.end.right}, least[2];
        bool is_exact[2] = {false, false};
        Node<T> sides[2];
        for (i64 side = 0; side < 2; side++) {
            Node<T>& child = sides[side];
            if (!samples.side(child, node, line.column, left_size, side == 0, stack)) {
                is_stopped(worker);
                return;
            }
            child.stump = task.stump[side];
            least[side] = child.leaf;
            if (child.leaf < IMPOSSIBLE) least[side] = samples.least_cost(child.totals, child.weight, depth - 1);
            low[side] = max_of(low[side], least[side]);
        }
        Seen& seen = worker.seen[min_of(depth, Worker::DEPTHS - 1)];
        bool remembers = !table.limited() && !table.apart && depth < Worker::DEPTHS;
        remembers = remembers && (seen.ring || seen.begin(table.columns, samples.words(), stack.limit / 16));
        if (remembers && low[0] + low[1] < limit) {
            for (i64 side = 0; side < 2; side++)
                low[side] = bound_by_seen(
                    seen, sides[side].bits, table.unit * sides[side].weight, low[side], limit + wide - low[!side], caps[side]);
            if (low[0] + low[1] >= limit) worker.counters.spared++;
        }
        const bool right_first = left_size > node.size - left_size;
        // Search the shallow trees of both sides first. A deeper tree costs at least `beyond`, by its number of leaves.
        for (i64 levels = 2; levels < depth && !worker.stopped; levels++)
            for (i64 turn = 0; turn < 2 && low[0] + low[1] < limit; turn++) {
                const bool right = right_first != (turn == 1);
                Node<T>& child = sides[right];
                if (is_exact[right]) continue;
                const bool is_last = levels == depth - 1;
                i64 beyond = IMPOSSIBLE;
                if (!is_last) {
                    beyond = max_of(least[right], (levels + 2) * table.price + table.unit * child.unavoidable);
                    if (beyond <= low[right]) continue;
                }
                const i64 budget = min_of(beyond, limit + wide - low[!right]);
                const i64 needed = min_of(beyond, limit - low[!right] + extra);
                const Found found = solve(child, levels, caps[right], budget, needed, worker);
                if (is_stopped(worker)) break;
                is_exact[right] = is_last || (found.exact && found.value <= beyond);
                low[right] = max_of(low[right], min_of(found.value, beyond));
                if (is_exact[right] && remembers)
                    seen.add(node.column[line.column], child.bits, table.unit * child.weight, found.value, caps[right]);
            }
        stack.release(outer);
        here = End{line.weight(task.index), min_of(low[0], IMPOSSIBLE), min_of(low[1], IMPOSSIBLE)};
    }

    Found deep(const Node<T>& node, i64 depth, i64 leaves, i64 budget, Worker& worker) {
        Stack& stack = worker.stack;
        const Stack::Mark mark = stack.mark();
        Found best = {node.leaf, 1, -1, -1, 0, 0};
        Survey survey = {stack.array<Guess>(node.columns), {nullptr, 0, 0}};
        if (!survey.guesses) return best;
        const Found shallow = two_levels(node, leaves, budget, worker, &survey);
        if (is_stopped(worker)) {
            survey.counted.clear();
            return shallow;
        }
        i64 closed = IMPOSSIBLE;
        if (shallow.exact)
            best = shallow;
        else
            best = Found{IMPOSSIBLE, 1, -1, -1, 0, 0}, closed = shallow.value;
        const i64 four = 4 * table.price + table.unit * node.unavoidable;
        const i64 limit = min_of(best.value, budget);
        if (four >= limit) {
            closed = min_of(closed, four);
        } else {
            Board<T> board = {};
            board.limit = limit;
            // One level less deep the set costs at least this.
            const i64 below = depth == 3 ? shallow.value : min_of(shallow.value, four);
            if (open(board, node, depth, leaves, below, survey, stack))
                explore(board, node, depth, &best, worker);
            else
                stack.failed = true, is_stopped(worker);
            for (i64 i = 0; i < board.n_tracks; i++) closed = min_of(closed, board.tracks[i].bound);
            board.known.clear();
        }
        survey.counted.clear();
        stack.release(mark);
        if (closed < best.value) best = Found{closed, 0, -1, -1, 0, 0};
        return best;
    }

    // ------------------------------------------------------------ the root

    // A bound on all trees of the depth that is searched; the caller holds the lock.
    i64 bound() const {
        i64 result = min_of(closed, best.value);
        for (i64 i = 0; i < board.n_tracks; i++) result = min_of(result, board.tracks[i].bound);
        return max_of(result, root_lower);
    }

    // Number of columns with open thresholds; the caller holds the lock.
    i64 n_open() const {
        i64 result = 0;
        for (i64 i = 0; i < board.n_tracks; i++) result += board.tracks[i].low <= board.tracks[i].high;
        return result;
    }

    // Limit on leaves at a depth; 0 where it limits nothing.
    i64 leaves_at(i64 at) const { return max_leaves && (at >= 31 || max_leaves < i64(1) << at) ? max_leaves : 0; }

    // Begin the search at a depth: up to depth two it is finished at once, deeper by `work`. `lower`: a bound on trees of
    // this depth; `shallower`: a bound on trees that are one level less deep.
    bool begin_depth(i64 wanted, i64 lower, i64 shallower) {
        Worker& worker = workers[0];
        worker.stopped = false;
        board.lock.lock();
        depth = wanted;
        board.n_tracks = 0;
        root_lower = closed = lower;
        board.lock.unlock();
        const i64 leaves = leaves_at(depth);
        if (depth <= 1 || leaves == 1 || leaves == 2 || !root.columns) {
            const Found found = solve(root, min_of<i64>(depth, 1), leaves == 2 ? 0 : leaves, IMPOSSIBLE, IMPOSSIBLE, worker);
            if (worker.stopped) return false;
            return finish_depth(found, found.value, 1, worker);
        }
        if (!survey.guesses) {
            survey.guesses = worker.stack.template array<Guess>(root.columns);
            if (!survey.guesses) return !is_stopped(worker);
            root_two = two_levels(root, leaves_at(2), best.value, worker, &survey);
            if (is_stopped(worker)) {
                survey.guesses = nullptr;
                return false;
            }
            if (!finish_depth(root_two, lower, 2, worker)) return false;
        }
        const i64 four = 4 * table.price + table.unit * root.unavoidable;
        if (depth == 2 || leaves == 3 || four >= best.value)
            return finish_depth(root_two, depth == 2 || leaves == 3 ? root_two.value : min_of(root_two.value, four), 2, worker);
        const i64 below = max_of(shallower, depth == 3 ? root_two.value : min_of(root_two.value, four));
        Board<T> opened = {};
        opened.limit = best.value;
        if (!open(opened, root, depth, leaves, below, survey, worker.stack)) {
            opened.known.clear();
            worker.stack.failed = true;
            return !is_stopped(worker);
        }
        board.lock.lock();
        board.known.clear();
        board.known = opened.known, board.tracks = opened.tracks, board.n_tracks = opened.n_tracks;
        board.limit = opened.limit;
        closed = root_two.value;
        board.lock.unlock();
        return true;
    }

    // Note what a whole depth gave: a tree, and a bound on all.
    bool finish_depth(const Found& found, i64 lower, i64 at_depth, Worker& worker) {
        if (found.exact && !improve(found, at_depth, worker)) return false;
        board.lock.lock();
        closed = lower;
        board.lock.unlock();
        return true;
    }

    // Keep a tree if it is better; false where there is no memory for it. The lock is not held while it is made.
    bool improve(const Found& found, i64 at_depth, Worker& worker) {
        board.lock.lock();
        const bool wanted = found.value < best.value;
        board.lock.unlock();
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
        board.lock.lock();
        if (good && found.value < best.value) {
            const List<TreeNode> old = tree;
            tree = next, next = old;
            best = found;
            version++;
        }
        board.lock.unlock();
        next.clear();
        return good;
    }

    // Work through the thresholds of the root until none is open, together with other workers.
    void work(i64 number) {
        workers[number].stopped = false;
        explore(board, root, depth, nullptr, workers[number]);
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
            if (!samples.fill(child, stack)) return -1;
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
