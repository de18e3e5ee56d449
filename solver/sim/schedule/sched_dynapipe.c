/*
 * DynaPipe (EuroSys'24, section 5): cyclic scheduling of micro-batches of unequal length. In every
 * cycle a rank runs the ops ready at its beginning, one op per pass, backwards and forwards in turn
 * and lower micro-batches first; results can be used from the next cycle on. Neighbouring stages on
 * one rank count as one. The order is that of
 * the wait-free variant: nothing waits for the end of a cycle. O(cycles · stages · chunks).
 */
#include "solver/sim/schedule/schedule_int.h"
#include <math.h>
#include <string.h>

struct cycle {
    int32_t m, n_stages;
    const int32_t *stage_to_rank;
    int32_t *n_f, *n_b;     /* [n_stages] passes run */
    int32_t *old_f, *old_b; /* the same at the beginning of the cycle */
    double *room;           /* [p] activations (of one stage) that a rank may still take */
};

/* micro-batch that the pass of a stage can run in this cycle, −1 = none */
static int32_t available(const struct cycle *c, int32_t s, bool back)
{
    int32_t mb = back ? c->old_b[s] : c->old_f[s], given = c->m;
    if (!back) {
        given = s > 0 ? c->old_f[s - 1] : c->m;
    } else {
        given = s + 1 < c->n_stages ? c->old_b[s + 1] : c->old_f[s];
    }
    return mb < given ? mb : -1;
}

/* the stage that follows on the same rank, and therefore runs right behind, −1 = none */
static int32_t joined(const struct cycle *c, int32_t s, bool back)
{
    int32_t next = back ? s - 1 : s + 1;
    bool same = next >= 0 && next < c->n_stages && c->stage_to_rank[next] == c->stage_to_rank[s];
    return same ? next : -1;
}

/* stages that a forward of stage s runs through before the rank is free again */
static int32_t width(const struct cycle *c, int32_t s)
{
    int32_t n = 1;
    while ((s = joined(c, s, false)) >= 0) {
        n++;
    }
    return n;
}

/* the next op of rank r among its backwards or forwards: the lowest micro-batch, then the pass that
 * comes first. False when none is left in this cycle */
static bool next_op(const struct cycle *c, int32_t r, bool back, struct hv_op *out)
{
    out->mb = -1;
    for (int32_t k = 0; k < c->n_stages; k++) {
        int32_t s = back ? c->n_stages - 1 - k : k;
        bool fresh = back ? c->n_b[s] == c->old_b[s] : c->n_f[s] == c->old_f[s];
        bool head = c->stage_to_rank[s] == r && fresh &&
                    (k == 0 || c->stage_to_rank[back ? s + 1 : s - 1] != r);
        int32_t mb = head ? available(c, s, back) : -1;
        if (mb >= 0 && (out->mb < 0 || mb < out->mb)) {
            *out = (struct hv_op){.kind = back ? HV_OP_BW : HV_OP_F, .stage = s, .mb = mb};
        }
    }
    return out->mb >= 0;
}

/* plays the cycle on rank r; ops go to ops[*n…] */
static void play_rank(struct cycle *c, int32_t r, struct hv_op *ops, size_t *n)
{
    bool any = true;
    while (any) {
        struct hv_op op = {0};
        any = false;
        for (int back = 1; back >= 0; back--) {
            if (!next_op(c, r, back == 1, &op) || (!back && c->room[r] < width(c, op.stage))) {
                continue;
            }
            for (int32_t s = op.stage; s >= 0; s = joined(c, s, back == 1)) {
                (back ? c->n_b : c->n_f)[s]++;
                c->room[r] += back ? 1 : -1;
                op.stage = s;
                ops[(*n)++] = op;
            }
            any = true;
        }
    }
}

static size_t ops_per_rank(const struct hv_schedule_input *in)
{
    return 2 * (size_t)in->micro_batches * (size_t)in->chunks;
}

/* plays cycles until everything has run; limits can make it stop before */
static enum hv_status play(const struct hv_schedule_input *in, struct cycle *c, struct hv_op *ops,
                           size_t *n, struct hv_err *err)
{
    size_t p = (size_t)in->ranks, width = ops_per_rank(in), left = p * width, last = left + 1;
    while (left > 0 && left < last) {
        last = left;
        memcpy(c->old_f, c->n_f, 2 * (size_t)c->n_stages * sizeof *c->n_f);
        for (size_t r = 0; r < p; r++) {
            size_t before = n[r];
            play_rank(c, (int32_t)r, ops + r * width, &n[r]);
            left -= n[r] - before;
        }
    }
    if (left == 0) {
        return HV_OK;
    }
    return hv_err_set(err, HV_ENO,
                      "schedule dynapipe: within these limits the ranks deadlock; allow every rank "
                      "one more micro-batch");
}

enum hv_status hv__gen_dynapipe(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                                struct hv_err *err)
{
    double cycles = in->micro_batches + 2.0 * b->n_stages;
    enum hv_status st = hv__check_work(in, 4 * cycles * in->ranks * b->n_stages, err);
    if (st != HV_OK) {
        return st;
    }
    if (hv__option(in, "placement") == 1) {
        hv__place_zigzag(b);
    }
    size_t n_stages = (size_t)b->n_stages, p = (size_t)in->ranks;
    struct hv_op *ops = hv_xcalloc(p * ops_per_rank(in), sizeof *ops);
    size_t *n = hv_xcalloc(p, sizeof *n);
    int32_t *counts = hv_xcalloc(4 * n_stages, sizeof *counts);
    struct cycle c = {.m = in->micro_batches,
                      .n_stages = b->n_stages,
                      .stage_to_rank = b->stage_to_rank,
                      .n_f = counts,
                      .n_b = counts + n_stages,
                      .old_f = counts + 2 * n_stages,
                      .old_b = counts + 3 * n_stages,
                      .room = hv_xcalloc(p, sizeof *c.room)};
    for (int32_t r = 0; r < in->ranks; r++) {
        c.room[r] = floor(in->chunks * hv__limit(in, r, (double)INFINITY));
    }
    st = play(in, &c, ops, n, err);
    for (size_t r = 0; r < p && st == HV_OK; r++) {
        for (size_t i = 0; i < n[r]; i++) {
            const struct hv_op *op = &ops[r * ops_per_rank(in) + i];
            hv__add(b, (enum hv_op_kind)op->kind, op->stage, op->mb);
        }
        hv__rank_done(b);
    }
    free(c.room);
    free(counts);
    free(ops);
    free(n);
    return st;
}
