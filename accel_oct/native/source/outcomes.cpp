// Functions for all outcomes within a slack.
#include "exports.hpp"
#include "cells.hpp"
#include "outcomes.hpp"

EXPORT Arena* arena_new(i64 limit) {
    Arena* arena = static_cast<Arena*>(malloc(sizeof(Arena)));
    if (arena) *arena = Arena{nullptr, 0, limit};
    return arena;
}

EXPORT void arena_free(Arena* arena) {
    arena->clear();
    free(arena);
}

// `points` or (`table` and `priced`) are null.
EXPORT int32_t outcomes_two(
    const Array<i64>* points, const CellTable* table, const Priced* priced, const Array<i64>* columns, i64 height,
    double slack, i64 most_pairs, const Rewards* rewards, Arena* arena, Found* found, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    if (points && !within(*points, rewards->X.shape[0])) return OUT_OF_RANGE;
    if (!within(*columns, rewards->apart.shape[0])) return OUT_OF_RANGE;
    outcomes_two(PricedSet{points, table}, priced, *columns, height, slack, most_pairs, *rewards, *arena, *found, poll);
    return ended(!poll.stopped, poll);
}

EXPORT int32_t best_sides(
    const Array<i64>* points, const Array<i64>* columns, i64 height, const Rewards* rewards, Arena* arena,
    const Array<double>* result, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    if (!within(*points, rewards->X.shape[0]) || !within(*columns, rewards->apart.shape[0])) return OUT_OF_RANGE;
    return ended(best_sides(*points, *columns, height, *rewards, *arena, *result, poll), poll);
}

EXPORT int32_t joined(
    const Array<double>* lost, const Array<i64>* sides, const Array<double>* losses, const Array<double>* results,
    const Array<double>* leaves, double slack, i64 most_pairs, const Array<double>* per_grain, Arena* arena,
    Found* found, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    for (i64 s = 0; s < sides->shape[0]; s++)
        for (i64 t = 0; t < 3; t++) {
            i64 place = (*sides)(s, t);
            if (place < (t ? (*sides)(s, t - 1) : 0) || place > losses->shape[0]) return OUT_OF_RANGE;
        }
    joined(*lost, *sides, *losses, *results, *leaves, slack, most_pairs, *per_grain, *arena, *found, poll);
    return ended(!poll.stopped, poll);
}

EXPORT int32_t best_pair(
    const Array<double>* zero, const Array<double>* zero_results, const Array<double>* one,
    const Array<double>* one_results, double slack, const Array<double>* limits, double below, i64 after_zero,
    i64 after_one, BestPair* state, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    best_pair(*zero, *zero_results, *one, *one_results, slack, *limits, below, after_zero, after_one, *state, poll);
    return ended(!poll.stopped, poll);
}

EXPORT int32_t cell_values(
    i64 a, const Array<i64>* columns, i64 height, i64 begin, const CellSums* cells, Arena* arena,
    const Array<double>* result, MayGoOn may_go_on) {
    Poll poll = {may_go_on};
    if (a >= cells->n_columns() || !within(*columns, cells->n_columns())) return OUT_OF_RANGE;
    return ended(cell_values(a, *columns, height, begin, *cells, *arena, *result, poll), poll);
}
