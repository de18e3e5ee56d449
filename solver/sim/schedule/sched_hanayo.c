/*
 * Hanayo (SC'23, section 3): one copy of the weights, the stages laid over the ranks in W waves.
 * The authors' order is not public; this one follows the rule of the paper's figures: backwards
 * first, then the pass furthest along, then the lower micro-batch, with a backward twice as long as
 * a forward. O(slots · p · chunks).
 */
#include "solver/sim/schedule/schedule_int.h"
#include <string.h>

/* a stage on the grid: passes begun, and for each micro-batch the slot at which its pass ends */
struct stage {
    int32_t n_f, n_b;
    int32_t *f_end, *b_end; /* [m] */
};

struct wave {
    int32_t p, m, n_stages;
    struct stage *stages;
};

/* the stages of rank r: one per pass over the ranks */
static int32_t stage_on(const struct wave *w, int32_t pass, int32_t r)
{
    return pass * w->p + (pass % 2 == 0 ? r : w->p - 1 - r);
}

static bool can_forward(const struct wave *w, int32_t s, int32_t t)
{
    const struct stage *x = &w->stages[s];
    return x->n_f < w->m && (s == 0 || (x[-1].n_f > x->n_f && x[-1].f_end[x->n_f] <= t));
}

static bool can_backward(const struct wave *w, int32_t s, int32_t t)
{
    const struct stage *x = &w->stages[s];
    if (x->n_b >= w->m) {
        return false;
    }
    return s + 1 < w->n_stages ? x[1].n_b > x->n_b && x[1].b_end[x->n_b] <= t
                               : x->n_f > x->n_b && x->f_end[x->n_b] <= t;
}

/* the op that rank r runs at slot t; false = none */
static bool pick(const struct wave *w, int32_t r, int32_t t, struct hv_op *out)
{
    bool found = false;
    for (int32_t pass = 0; pass * w->p < w->n_stages; pass++) {
        int32_t s = stage_on(w, pass, r);
        if (can_backward(w, s, t) && (!found || out->kind == HV_OP_F)) {
            *out = (struct hv_op){.kind = HV_OP_BW, .stage = s, .mb = w->stages[s].n_b};
            found = true;
        } else if (can_forward(w, s, t) && (!found || out->kind == HV_OP_F)) {
            *out = (struct hv_op){.kind = HV_OP_F, .stage = s, .mb = w->stages[s].n_f};
            found = true;
        }
    }
    return found;
}

/* plays the grid; ops of rank r from r · width on, n[r] of them */
static void play(struct wave *w, struct hv_op *ops, size_t width, size_t *n)
{
    size_t left = (size_t)w->p * width;
    int32_t *free_at = hv_xcalloc((size_t)w->p, sizeof *free_at);
    for (int32_t t = 0; left > 0; t++) {
        for (int32_t r = 0; r < w->p; r++) {
            struct hv_op op;
            if (free_at[r] > t || !pick(w, r, t, &op)) {
                continue;
            }
            struct stage *x = &w->stages[op.stage];
            if (op.kind == HV_OP_F) {
                x->f_end[x->n_f++] = free_at[r] = t + 1;
            } else {
                x->b_end[x->n_b++] = free_at[r] = t + 2;
            }
            ops[(size_t)r * width + n[r]++] = op;
            left--;
        }
    }
    free(free_at);
}

static void generate(const struct hv_schedule_input *in, struct hv_schedule_builder *b)
{
    struct wave w = {.p = in->ranks, .m = in->micro_batches, .n_stages = b->n_stages};
    size_t n_stages = (size_t)w.n_stages, m = (size_t)w.m, p = (size_t)w.p;
    size_t width = 2 * m * (size_t)in->chunks;
    int32_t *ends = hv_xcalloc(2 * n_stages * m, sizeof *ends);
    struct hv_op *ops = hv_xcalloc(p * width, sizeof *ops);
    size_t *n = hv_xcalloc(p, sizeof *n);
    w.stages = hv_xcalloc(n_stages, sizeof *w.stages);
    for (size_t s = 0; s < n_stages; s++) {
        w.stages[s].f_end = ends + 2 * s * m;
        w.stages[s].b_end = ends + (2 * s + 1) * m;
    }
    play(&w, ops, width, n);
    for (size_t r = 0; r < p; r++) {
        for (size_t i = 0; i < n[r]; i++) {
            const struct hv_op *op = &ops[r * width + i];
            hv__add(b, (enum hv_op_kind)op->kind, op->stage, op->mb);
        }
        hv__rank_done(b);
    }
    free(ends);
    free(ops);
    free(n);
    free(w.stages);
}

enum hv_status hv__gen_hanayo(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              struct hv_err *err)
{
    int64_t waves = hv__option(in, "waves");
    if (in->chunks % 2 != 0) {
        return hv_err_set(
            err, HV_EUSAGE,
            "schedule hanayo: a wave runs over the ranks and back, so v must be even, "
            "found v = %d; use v = %d or v = %d",
            in->chunks, in->chunks - 1, in->chunks + 1); /* v is at least 2 */
    }
    if (waves > 0 && 2 * waves != in->chunks) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule hanayo: waves = %lld means %lld chunks per rank, found v = %d; "
                          "use v = %lld or waves = %d",
                          (long long)waves, 2 * (long long)waves, in->chunks, 2 * (long long)waves,
                          in->chunks / 2);
    }
    double slots = 3.0 * in->chunks * ((double)in->micro_batches + in->ranks);
    enum hv_status st = hv__check_work(in, slots * b->n_stages, err);
    if (st == HV_OK) {
        hv__place_zigzag(b);
        generate(in, b);
    }
    return st;
}
