/*
 * Making and checking schedules. The orders themselves come from sched_*.c, the table of
 * names from table.c; durations belong to solver/sim/pipeline/pipeline.c.
 */
#include "solver/sim/schedule/schedule.h"

#include "solver/sim/schedule/schedule_int.h"
#include <stdlib.h>
#include <string.h>

/* grows the list of ops; a list that began in the arena moves to the heap */
static void grow(struct hv_schedule_builder *b)
{
    if (b->reserved && b->ops.items == b->reserved) {
        size_t n = b->ops.n;
        b->ops.items = NULL;
        b->ops.cap = 0;
        hv_vec_reserve(&b->ops, 2 * n + 1);
        memcpy(b->ops.items, b->reserved, n * sizeof *b->reserved);
    }
    hv_vec_reserve(&b->ops, b->ops.n + 1);
}

void hv__add(struct hv_schedule_builder *b, enum hv_op_kind kind, int32_t stage, int32_t mb)
{
    struct hv_op op = {.kind = (uint8_t)kind,
                       .pipe = b->pipe,
                       .slice = b->slice,
                       .stage = stage,
                       .mb = mb,
                       .group = b->pairing ? b->n_groups : -1};
    if (b->ops.n == b->ops.cap) {
        grow(b);
    }
    b->ops.items[b->ops.n++] = op;
}

void hv__pair_begin(struct hv_schedule_builder *b)
{
    b->pairing = true;
}

void hv__pair_end(struct hv_schedule_builder *b)
{
    b->pairing = false;
    b->n_groups++;
}

void hv__rank_done(struct hv_schedule_builder *b)
{
    hv_vec_push(&b->rank_end, b->ops.n);
}

static void place_looped(struct hv_schedule_builder *b)
{
    for (int32_t s = 0; s < b->n_stages; s++) {
        b->stage_to_rank[s] = s % b->n_ranks;
    }
}

void hv__place_zigzag(struct hv_schedule_builder *b)
{
    for (int32_t s = 0; s < b->n_stages; s++) {
        int32_t pass = s / b->n_ranks, r = s % b->n_ranks;
        b->stage_to_rank[s] = pass % 2 ? b->n_ranks - 1 - r : r;
    }
}

void hv__set_pipes(struct hv_schedule_builder *b, int32_t n_pipes)
{
    b->n_pipes = n_pipes;
    b->stage_to_rank = hv_xrealloc(b->stage_to_rank, (size_t)n_pipes * (size_t)b->n_stages,
                                   sizeof *b->stage_to_rank);
    memset(b->stage_to_rank, 0, (size_t)n_pipes * (size_t)b->n_stages * sizeof *b->stage_to_rank);
}

static enum hv_status check_sizes(const struct hv_schedule_input *in, struct hv_err *err)
{
    const struct hv_schedule_row *row = in->row;
    if (in->ranks < 1 || in->micro_batches < 1 || in->chunks < 1) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule %s: ranks, micro-batches and chunks must be at least 1, found "
                          "p = %d, m = %d, v = %d",
                          row->name, in->ranks, in->micro_batches, in->chunks);
    }
    if (in->ranks > HV_SCHEDULE_RANKS_MAX || in->micro_batches > HV_SCHEDULE_MB_MAX ||
        in->chunks > HV_SCHEDULE_CHUNKS_MAX) {
        return hv_err_set(err, HV_ELIMIT,
                          "schedule %s: at most %d ranks, %d micro-batches and %d chunks, found "
                          "p = %d, m = %d, v = %d",
                          row->name, HV_SCHEDULE_RANKS_MAX, HV_SCHEDULE_MB_MAX,
                          HV_SCHEDULE_CHUNKS_MAX, in->ranks, in->micro_batches, in->chunks);
    }
    if (!(row->flags & HV_SCHEDULE_CHUNKS) && in->chunks != row->chunks) {
        return hv_err_set(
            err, HV_EUSAGE,
            "schedule %s works with exactly %d chunk%s per rank, found v = %d; use v = %d",
            row->name, row->chunks, row->chunks == 1 ? "" : "s", in->chunks, row->chunks);
    }
    if ((row->flags & HV_SCHEDULE_NEEDS_CHUNKS) && in->chunks < 2) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule %s needs at least 2 chunks; use v = 2 (found v = %d)",
                          row->name, in->chunks);
    }
    double slices = 1;
    if (row->flags & HV_SCHEDULE_SLICES && hv__has_option(row, "slices")) {
        slices = (double)hv__option(in, "slices");
    }
    double ops = (double)in->ranks * in->chunks * in->micro_batches * slices *
                 (row->flags & (HV_SCHEDULE_SPLIT | HV_SCHEDULE_RECOMPUTE) ? 3 : 2);
    if (ops > (double)HV_SCHEDULE_OPS_MAX) {
        return hv_err_set(err, HV_ELIMIT,
                          "schedule %s would have %.0f operations, the limit is %zu", row->name,
                          ops, HV_SCHEDULE_OPS_MAX);
    }
    return HV_OK;
}

/* rows whose number of ops is known fill the arena directly, without a copy */
static void reserve(struct hv_arena *a, const struct hv_schedule_input *in,
                    struct hv_schedule_builder *b)
{
    const unsigned unknown = HV_SCHEDULE_RECOMPUTE | HV_SCHEDULE_SLICES | HV_SCHEDULE_OVERLAP |
                             HV_SCHEDULE_ORDER | HV_SCHEDULE_TWO_WAY | HV_SCHEDULE_PARTS;
    if (in->row->flags & unknown) {
        return;
    }
    size_t kinds = in->row->flags & HV_SCHEDULE_SPLIT ? 3 : 2;
    b->ops.cap = (size_t)b->n_stages * (size_t)in->micro_batches * kinds;
    b->ops.items = b->reserved = hv_arena_new(a, struct hv_op, b->ops.cap);
}

static void chain_graph(struct hv_arena *a, int32_t n_stages, struct hv_stage_graph *out)
{
    int32_t n = n_stages - 1;
    int32_t *from = hv_arena_new(a, int32_t, (size_t)n + 1);
    int32_t *to = hv_arena_new(a, int32_t, (size_t)n + 1);
    for (int32_t i = 0; i < n; i++) {
        from[i] = i;
        to[i] = i + 1;
    }
    *out = (struct hv_stage_graph){.n_edges = n, .from = from, .to = to};
}

static enum hv_status copy_graph(struct hv_arena *a, const struct hv_stage_graph *g,
                                 int32_t n_stages, struct hv_stage_graph *out, struct hv_err *err)
{
    for (int32_t e = 0; e < g->n_edges; e++) {
        if (g->from[e] < 0 || g->from[e] >= g->to[e] || g->to[e] >= n_stages) {
            return hv_err_set(err, HV_EUSAGE,
                              "stage edge %d → %d: stages run from 0 to %d and feed later ones",
                              g->from[e], g->to[e], n_stages - 1);
        }
    }
    size_t n = (size_t)g->n_edges;
    out->n_edges = g->n_edges;
    out->from = hv_arena_copy(a, g->from, n, sizeof *g->from);
    out->to = hv_arena_copy(a, g->to, n, sizeof *g->to);
    return HV_OK;
}

static enum hv_status finish(struct hv_arena *a, const struct hv_schedule_input *in,
                             struct hv_schedule_builder *b, struct hv_schedule *out,
                             struct hv_err *err)
{
    size_t *rank_at = hv_arena_new(a, size_t, (size_t)b->n_ranks + 1);
    bool stashes = false;
    for (int32_t r = 0; r < b->n_ranks; r++) {
        stashes |= b->stash[r] > 0;
    }
    for (size_t r = 0; r < b->rank_end.n; r++) {
        rank_at[r + 1] = b->rank_end.items[r];
    }
    *out = (struct hv_schedule){
        .n_ranks = b->n_ranks,
        .n_stages = b->n_stages,
        .n_micro_batches = in->micro_batches,
        .n_slices = b->n_slices,
        .n_pipes = b->n_pipes,
        .n_groups = b->n_groups,
        .rank_at = rank_at,
        .stage_to_rank =
            hv_arena_copy(a, b->stage_to_rank, (size_t)b->n_pipes * (size_t)b->n_stages,
                          sizeof *b->stage_to_rank),
        .ops = b->ops.items == b->reserved && b->reserved
                   ? b->reserved
                   : hv_arena_copy(a, b->ops.items, b->ops.n, sizeof *b->ops.items),
        .weight_versions =
            hv_arena_copy(a, b->weight_versions, (size_t)b->n_ranks, sizeof *b->weight_versions),
        .stash = stashes ? hv_arena_copy(a, b->stash, (size_t)b->n_ranks, sizeof *b->stash) : NULL,
        .parts = b->parts,
        .wait_at = b->wait_at.n > 0
                       ? hv_arena_copy(a, b->wait_at.items, b->wait_at.n, sizeof *b->wait_at.items)
                       : NULL,
        .waits = b->wait_at.n > 0
                     ? hv_arena_copy(a, b->waits.items, b->waits.n, sizeof *b->waits.items)
                     : NULL,
        .free_adjacent_recompute = b->free_adjacent_recompute,
        .recompute_waits = b->recompute_waits,
        .async = (in->row->flags & HV_SCHEDULE_ASYNC) != 0,
    };
    if (!in->graph) {
        chain_graph(a, b->n_stages, &out->graph);
        return HV_OK;
    }
    return copy_graph(a, in->graph, b->n_stages, &out->graph, err);
}

static enum hv_status make_whole(struct hv_arena *a, const struct hv_schedule_input *in,
                                 struct hv_schedule *out, struct hv_err *err)
{
    enum hv_status st = check_sizes(in, err);
    st = st == HV_OK ? hv__check_room(in, err) : st;
    if (st != HV_OK) {
        return st;
    }
    struct hv_schedule_builder b = {
        .n_ranks = in->ranks, .n_stages = in->ranks * in->chunks, .n_slices = 1, .slice = -1};
    b.weight_versions = hv_xcalloc(2 * (size_t)in->ranks, sizeof *b.weight_versions);
    b.stash = b.weight_versions + in->ranks;
    for (int32_t r = 0; r < in->ranks; r++) {
        b.weight_versions[r] = 1;
    }
    hv__set_pipes(&b, 1);
    place_looped(&b);
    reserve(a, in, &b);
    st = in->row->generate(in, &b, err);
    if (st == HV_OK && b.rank_end.n != (size_t)in->ranks) {
        HV_BUG("schedule %s filled %zu of %d ranks", in->row->name, b.rank_end.n, in->ranks);
    }
    if (st == HV_OK) {
        st = finish(a, in, &b, out, err);
    }
    st = st == HV_OK ? hv__keep_limits(a, in, out, err) : st;
    st = st == HV_OK ? hv__share_resources(a, in, out, err) : st;
    if (b.ops.items != b.reserved) {
        hv_vec_free(&b.ops);
    }
    hv_vec_free(&b.rank_end);
    hv_vec_free(&b.wait_at);
    hv_vec_free(&b.waits);
    free(b.stage_to_rank);
    free(b.weight_versions);
    return st;
}

enum hv_status hv_schedule_make(struct hv_arena *a, const struct hv_schedule_input *in,
                                struct hv_schedule *out, struct hv_err *err)
{
    struct hv_schedule_input whole_in;
    struct hv_schedule whole;
    if (in->splits == NULL) {
        return make_whole(a, in, out, err);
    }
    enum hv_status st = hv__check_splits(in, err);
    if (st == HV_OK && hv__has_two_way_turns(in)) {
        return hv__two_way_turns(a, in, make_whole, out, err);
    }
    if (st == HV_OK) {
        hv__whole_input(a, in, &whole_in);
        st = make_whole(a, &whole_in, &whole, err);
    }
    if (st == HV_OK && whole.n_pipes > 1) { /* an order written out: others were refused before */
        return hv_err_set(err, HV_ENO,
                          "schedule %s: an order of two directions cannot have ranks that take "
                          "micro-batches in turns; write the order of every rank, each as a stage",
                          in->row->name);
    }
    if (st == HV_OK) {
        hv__split(a, in, &whole, out);
    }
    return st;
}
