/*
 * Chimera (SC'21, sections 3.1 to 3.5): pipelines in opposite directions, merged so that the
 * bubbles of one hold the passes of the other. Of 2f pipes the first f run down the ranks, the k-th
 * starting at rank k·p/f, the others run up, mirrored.
 */
#include "solver/sim/schedule/schedule_int.h"
#include <string.h>

enum { DIRECT, DOUBLING, HALVING };

struct chimera {
    struct hv_schedule_builder *b;
    int32_t p, m, pipes;
    int32_t per_pipe; /* micro-batches of one pipe in a unit of p */
    bool halves;      /* an mb here is half a micro-batch */
};

/* the stage of a pipe that rank r holds */
static int32_t stage_on(const struct chimera *c, int32_t pipe, int32_t r)
{
    int32_t f = c->pipes / 2, shift = pipe % f * (c->p / f);
    return (pipe < f ? c->p + r - shift : 2 * c->p - 1 - r - shift) % c->p;
}

static void place(struct chimera *c)
{
    hv__set_pipes(c->b, c->pipes);
    for (int32_t d = 0; d < c->pipes; d++) {
        for (int32_t r = 0; r < c->p; r++) {
            c->b->stage_to_rank[(size_t)d * (size_t)c->p + (size_t)stage_on(c, d, r)] = r;
        }
    }
    for (int32_t r = 0; r < c->p; r++) {
        c->b->weight_versions[r] = c->pipes;
    }
}

/*
 * Direct concatenation: with equal slots the k-th micro-batch of a pipe runs forward on stage s in
 * slot 2k + s of its unit and backward in slot 2k + 2p − 1 − s; units follow every 2p slots, so
 * that the next one starts in the tail of the last. No two meet in a slot.
 */
static void add_direct(struct chimera *c)
{
    size_t n = 2 * ((size_t)c->m + 2 * (size_t)c->p);
    struct hv_op *slots = hv_xcalloc(n, sizeof *slots);
    for (int32_t r = 0; r < c->p; r++) {
        memset(slots, 0xff, n * sizeof *slots);
        for (int32_t i = 0; i < c->m; i++) {
            int32_t d = i % c->p / c->per_pipe, k = i % c->per_pipe, unit = i / c->p;
            int32_t s = stage_on(c, d, r);
            struct hv_op op = {.kind = HV_OP_F, .pipe = (uint8_t)d, .stage = s, .mb = i};
            slots[2 * c->p * unit + 2 * k + s] = op;
            op.kind = HV_OP_BW;
            slots[2 * c->p * unit + 2 * k + 2 * c->p - 1 - s] = op;
        }
        for (size_t t = 0; t < n; t++) {
            if (slots[t].kind < HV_OP_KIND_N) {
                c->b->pipe = slots[t].pipe;
                hv__add(c->b, (enum hv_op_kind)slots[t].kind, slots[t].stage, slots[t].mb);
            }
        }
        hv__rank_done(c->b);
    }
    free(slots);
}

/*
 * Doubling and halving: a forward carries two micro-batches (or halves of one), a backward one, so
 * that both take one slot. The order is played on the grid of slots: backwards first, then what is
 * furthest along, then the lower micro-batch.
 */
struct player {
    struct chimera *c;
    int32_t *n_f, *n_b;   /* [pipes × p] passes done of (pipe, stage) */
    struct hv_op *played; /* [p × width]: one F represents two */
    size_t *n, width;
};

/* micro-batches (or halves) of a pipe */
static int32_t share_of(const struct chimera *c, int32_t pipe)
{
    int32_t rest = c->m - pipe * c->per_pipe, unit = c->pipes * c->per_pipe;
    int32_t last = rest % unit < c->per_pipe ? rest % unit : c->per_pipe;
    return rest <= 0 ? 0 : rest / unit * c->per_pipe + last;
}

/* the k-th micro-batch of a pipe */
static int32_t nth_mb(const struct chimera *c, int32_t pipe, int32_t k)
{
    return k / c->per_pipe * c->pipes * c->per_pipe + pipe * c->per_pipe + k % c->per_pipe;
}

/* the best pass that rank r may run, with the counts of the slot before; false = none */
static bool pick(const struct player *y, const int32_t *n_f, const int32_t *n_b, int32_t r,
                 struct hv_op *best)
{
    const struct chimera *c = y->c;
    bool found = false;
    for (int32_t d = 0; d < c->pipes; d++) {
        int32_t s = stage_on(c, d, r), share = share_of(c, d);
        size_t at = (size_t)d * (size_t)c->p + (size_t)s;
        bool f = 2 * n_f[at] < share && (s == 0 || n_f[at - 1] > n_f[at]);
        bool b = s + 1 < c->p ? n_b[at + 1] > n_b[at] : 2 * n_f[at] > n_b[at];
        bool better = !found || best->kind == HV_OP_F;
        if (b && n_b[at] < share &&
            (better || s < best->stage || (s == best->stage && n_b[at] < best->mb))) {
            *best = (struct hv_op){HV_OP_BW, (uint8_t)d, -1, s, n_b[at], -1};
            found = true;
        } else if (f &&
                   (!found || (best->kind == HV_OP_F &&
                               (s > best->stage || (s == best->stage && n_f[at] < best->mb))))) {
            *best = (struct hv_op){HV_OP_F, (uint8_t)d, -1, s, n_f[at], -1};
            found = true;
        }
    }
    return found;
}

static void play(struct player *y)
{
    const struct chimera *c = y->c;
    size_t n = (size_t)c->pipes * (size_t)c->p;
    int32_t *old = hv_xcalloc(2 * n, sizeof *old);
    for (bool busy = true; busy;) {
        busy = false;
        memcpy(old, y->n_f, n * sizeof *old);
        memcpy(old + n, y->n_b, n * sizeof *old);
        for (int32_t r = 0; r < c->p; r++) {
            struct hv_op op;
            if (pick(y, old, old + n, r, &op)) {
                size_t at = (size_t)op.pipe * (size_t)c->p + (size_t)op.stage;
                (op.kind == HV_OP_F ? y->n_f : y->n_b)[at]++;
                y->played[(size_t)r * y->width + y->n[r]++] = op;
                busy = true;
            }
        }
    }
    free(old);
}

/* adds the k-th micro-batch of a pipe, or the corresponding half of one */
static void add_one(struct chimera *c, const struct hv_op *op, int32_t k)
{
    c->b->pipe = op->pipe;
    if (!c->halves) {
        hv__add(c->b, (enum hv_op_kind)op->kind, op->stage, nth_mb(c, op->pipe, k));
        return;
    }
    int32_t half = op->kind == HV_OP_F ? k % 2 : 1 - k % 2;
    c->b->slice = (int16_t)half;
    hv__add(c->b, (enum hv_op_kind)op->kind, op->stage, nth_mb(c, op->pipe, k) / 2);
    c->b->slice = -1;
}

static void add_played(struct chimera *c)
{
    size_t p = (size_t)c->p, n = (size_t)c->pipes * p;
    struct player y = {.c = c, .width = 2 * (size_t)c->m};
    y.n_f = hv_xcalloc(2 * n, sizeof *y.n_f);
    y.n_b = y.n_f + n;
    y.played = hv_xcalloc(p * y.width, sizeof *y.played);
    y.n = hv_xcalloc(p, sizeof *y.n);
    play(&y);
    for (size_t r = 0; r < p; r++) {
        for (size_t i = 0; i < y.n[r]; i++) {
            const struct hv_op *op = &y.played[r * y.width + i];
            add_one(c, op, op->kind == HV_OP_F ? 2 * op->mb : op->mb);
            if (op->kind == HV_OP_F) {
                add_one(c, op, 2 * op->mb + 1);
            }
        }
        hv__rank_done(c->b);
    }
    free(y.n_f);
    free(y.played);
    free(y.n);
}

static enum hv_status check(const struct hv_schedule_input *in, int32_t pipes, struct hv_err *err)
{
    int32_t p = in->ranks, m = in->micro_batches;
    enum hv_status st = hv__check_even_ranks(in, "runs over the ranks both ways", err);
    if (st != HV_OK) {
        return st;
    }
    if (pipes % 2 != 0 || p % pipes != 0) {
        int32_t near = pipes < p ? pipes : p;
        while (near > 2 && (near % 2 != 0 || p % near != 0)) {
            near--;
        }
        return hv_err_set(err, HV_EUSAGE,
                          "schedule chimera: pipes must be even and divide p = %d, found %d; use "
                          "pipes = %d",
                          p, pipes, near);
    }
    if (hv__option(in, "mode") == DOUBLING && m % 2 != 0) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule chimera: forward doubling needs an even number of "
                          "micro-batches, found m = %d; use m = %d",
                          m, m + 1);
    }
    return HV_OK;
}

enum hv_status hv__gen_chimera(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                               struct hv_err *err)
{
    int32_t pipes = (int32_t)hv__option(in, "pipes");
    int64_t mode = hv__option(in, "mode");
    enum hv_status st = check(in, pipes, err);
    if (st == HV_OK) {
        double slots = 3.0 * in->micro_batches + 4.0 * in->ranks;
        st = hv__check_work(in, slots * in->ranks * (mode == DIRECT ? 1 : pipes), err);
    }
    if (st != HV_OK) {
        return st;
    }
    struct chimera c = {.b = b, .p = in->ranks, .m = in->micro_batches, .pipes = pipes};
    c.per_pipe = c.p / pipes;
    place(&c);
    if (mode == DIRECT) {
        add_direct(&c);
    } else {
        c.halves = mode == HALVING;
        b->n_slices = c.halves ? 2 : 1;
        c.m *= c.halves ? 2 : 1;
        c.per_pipe *= 2;
        add_played(&c);
    }
    b->pipe = 0;
    return HV_OK;
}
