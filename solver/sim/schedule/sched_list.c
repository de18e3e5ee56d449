/*
 * Zero bubbles for stages that differ: list scheduling (R. L. Graham, Bell System Technical Journal
 * 45, 1966) of forwards, input gradients and weight gradients by their real times, on one chunk per
 * rank or on chunks that run over the ranks and back. The rank that can begin first takes, of what
 * is ready, a backward, else a forward that its memory allows, else a weight gradient. A forward of
 * the first chunk reserves room for all chunks of its rank, so no micro-batch that has begun is
 * ever blocked by memory. Two runs: ties go to the older micro-batch, or to the later stage; the
 * shorter run is used. O(ops · (log ranks + chunks)).
 */
#include "solver/sim/schedule/schedule_int.h"
#include <math.h>
#include <string.h>

enum kind { F, B, W, N_KINDS };

/* the next op of a rank, and its earliest start */
struct next {
    double at;
    int32_t stage; /* -1: nothing is ready or will be by itself */
    enum kind kind;
};

struct rank {
    double free_at;
    int32_t held, limit; /* chunks whose activations it keeps or has promised room for */
    struct next next;
    size_t n_ops;
};

struct list {
    const struct hv_schedule_input *in;
    int32_t p, v, m, n_stages;
    bool late_first;
    struct rank *ranks;
    int32_t *done[N_KINDS]; /* [n_stages] micro-batches */
    double *end[2];         /* [n_stages × m] of F and B */
    /* The rank that begins first, by halves of the ranks: entry 1 is of all, 2 i and 2 i + 1 are
     * the halves of entry i, the ranks themselves begin at `leaves`; -1: no rank. Of equals the
     * lowest. */
    int32_t *first, leaves;
    struct hv_op *ops; /* [p × 3vm] */
};

static int32_t stage_of(const struct list *l, int32_t chunk, int32_t rank)
{
    return chunk * l->p + (chunk % 2 == 0 ? rank : l->p - 1 - rank);
}

static int32_t rank_of(const struct list *l, int32_t stage)
{
    int32_t turn = stage / l->p, at = stage % l->p;
    return turn % 2 == 0 ? at : l->p - 1 - at;
}

static double *end_of(const struct list *l, enum kind k, int32_t stage, int32_t mb)
{
    return &l->end[k][(size_t)stage * (size_t)l->m + (size_t)mb];
}

/* arrival at stage `to` of the result of stage `from`; infinity while it is not known */
static double arrival(const struct list *l, enum kind k, int32_t from, int32_t to, int32_t mb)
{
    if (mb >= l->done[k][from]) {
        return HUGE_VAL;
    }
    bool same = rank_of(l, from) == rank_of(l, to);
    double hop = same ? 0 : hv__hop(l->in, from < to ? from : to, from > to);
    return *end_of(l, k, from, mb) + hop;
}

/* earliest start of the next op of a kind on a stage by its inputs, as if the rank were free */
static double ready(const struct list *l, enum kind k, int32_t s)
{
    int32_t mb = l->done[k][s];
    if (mb >= l->m) {
        return HUGE_VAL;
    }
    switch (k) {
    case F:
        return s == 0 ? 0 : arrival(l, F, s - 1, s, mb);
    case B:
        if (mb >= l->done[F][s]) {
            return HUGE_VAL;
        }
        return s + 1 < l->n_stages ? arrival(l, B, s + 1, s, mb) : *end_of(l, F, s, mb);
    case W:
    case N_KINDS:
        break;
    }
    return mb < l->done[B][s] ? *end_of(l, B, s, mb) : HUGE_VAL;
}

/* true where (k, s) is preferred to `than`, both ready */
static bool goes_first(const struct list *l, enum kind k, int32_t s, const struct next *than)
{
    if (than->stage < 0 || k != than->kind) {
        return than->stage < 0 || k < than->kind;
    }
    int32_t a = l->done[k][s], b = l->done[k][than->stage];
    return l->late_first || a == b ? s > than->stage : a < b;
}

static void look(struct list *l, int32_t r)
{
    struct rank *rank = &l->ranks[r];
    bool room = rank->held + l->v <= rank->limit;
    double first = HUGE_VAL;
    for (int32_t c = 0; c < l->v; c++) {
        for (enum kind k = F; k < N_KINDS; k++) {
            if (k != F || c > 0 || room) {
                first = fmin(first, ready(l, k, stage_of(l, c, r)));
            }
        }
    }
    rank->next = (struct next){.at = fmax(first, rank->free_at), .stage = -1};
    static const enum kind order[] = {B, F, W};
    for (int i = 0; i < N_KINDS && first < HUGE_VAL && rank->next.stage < 0; i++) {
        struct next best = {.at = rank->next.at, .stage = -1};
        for (int32_t c = 0; c < l->v; c++) {
            int32_t s = stage_of(l, c, r);
            bool may = order[i] != F || c > 0 || room;
            if (may && ready(l, order[i], s) <= best.at && goes_first(l, order[i], s, &best)) {
                best.stage = s;
                best.kind = order[i];
            }
        }
        rank->next = best;
    }
}

/* the one of two entries of `first` whose rank begins first */
static int32_t earlier(const struct list *l, int32_t a, int32_t b)
{
    return b >= 0 && l->ranks[b].next.at < l->ranks[a].next.at ? b : a;
}

/* looks at a rank again, and at which rank begins first */
static void look_again(struct list *l, int32_t r)
{
    look(l, r);
    for (int32_t i = (l->leaves + r) / 2; i > 0; i /= 2) {
        l->first[i] = earlier(l, l->first[2 * i], l->first[2 * i + 1]);
    }
}

static void find_first(struct list *l)
{
    for (int32_t i = 0; i < l->leaves; i++) {
        l->first[l->leaves + i] = i < l->p ? i : -1;
    }
    for (int32_t i = l->leaves - 1; i > 0; i--) {
        l->first[i] = earlier(l, l->first[2 * i], l->first[2 * i + 1]);
    }
}

/* runs the next op of the rank, and updates the ranks that depend on it */
static void take(struct list *l, int32_t r)
{
    static const enum hv_op_kind word[] = {HV_OP_F, HV_OP_B, HV_OP_W};
    struct rank *rank = &l->ranks[r];
    struct next x = rank->next;
    struct hv_stage_cost c = hv__cost(l->in, x.stage);
    int32_t mb = l->done[x.kind][x.stage]++;
    rank->free_at = x.at + (x.kind == F ? c.f_s : x.kind == B ? c.b_s : c.w_s);
    size_t width = (size_t)N_KINDS * (size_t)l->v * (size_t)l->m;
    struct hv_op *op = &l->ops[(size_t)r * width + rank->n_ops++];
    op->kind = (uint8_t)word[x.kind];
    op->stage = x.stage;
    op->mb = mb;
    if (x.kind != W) {
        *end_of(l, x.kind, x.stage, mb) = rank->free_at;
    }
    rank->held += x.kind == F && x.stage < l->p ? l->v : x.kind == W ? -1 : 0;
    look_again(l, r);
    if (x.kind == F && x.stage + 1 < l->n_stages) {
        look_again(l, rank_of(l, x.stage + 1));
    } else if (x.kind == B && x.stage > 0) {
        look_again(l, rank_of(l, x.stage - 1));
    }
}

/* one run; returns its end */
static double play(struct list *l)
{
    int64_t room = hv__option(l->in, "memory");
    double end = 0;
    for (int k = 0; k < N_KINDS; k++) {
        memset(l->done[k], 0, (size_t)l->n_stages * sizeof *l->done[k]);
    }
    for (int32_t r = 0; r < l->p; r++) {
        double limit = hv__limit(l->in, r, room > 0 ? (double)room : (double)l->p);
        limit = fmax(1, fmin(floor(limit), l->m));
        l->ranks[r] = (struct rank){.limit = l->v * (int32_t)limit};
        look(l, r);
    }
    find_first(l);
    for (size_t left = (size_t)N_KINDS * (size_t)l->n_stages * (size_t)l->m; left > 0; left--) {
        int32_t r = l->first[1];
        take(l, r);
        end = fmax(end, l->ranks[r].free_at);
    }
    return end;
}

static void add_orders(const struct list *l, const struct hv_op *ops, struct hv_schedule_builder *b)
{
    size_t width = (size_t)N_KINDS * (size_t)l->v * (size_t)l->m;
    for (size_t r = 0; r < (size_t)l->p; r++) {
        for (size_t i = 0; i < width; i++) {
            const struct hv_op *op = &ops[r * width + i];
            hv__add(b, (enum hv_op_kind)op->kind, op->stage, op->mb);
        }
        hv__rank_done(b);
    }
}

enum hv_status hv__gen_zb_list(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                               struct hv_err *err)
{
    struct list l = {.in = in, .p = in->ranks, .v = in->chunks, .m = in->micro_batches};
    l.n_stages = l.p * l.v;
    size_t cells = (size_t)l.n_stages * (size_t)l.m, n_ops = (size_t)N_KINDS * cells;
    enum hv_status st = hv__check_work(in, 2.0 * (double)n_ops * (l.p + 9.0 * l.v), err);
    if (st != HV_OK) {
        return st;
    }
    hv__place_zigzag(b);
    struct hv_op *both = hv_xcalloc(2 * n_ops, sizeof *both);
    int32_t *done = hv_xcalloc((size_t)N_KINDS * (size_t)l.n_stages, sizeof *done);
    l.ranks = hv_xcalloc((size_t)l.p, sizeof *l.ranks);
    for (l.leaves = 1; l.leaves < l.p;) {
        l.leaves *= 2;
    }
    l.first = hv_xcalloc(2 * (size_t)l.leaves, sizeof *l.first);
    l.end[F] = hv_xcalloc(2 * cells, sizeof *l.end[F]);
    l.end[B] = l.end[F] + cells;
    for (int k = 0; k < N_KINDS; k++) {
        l.done[k] = done + k * l.n_stages;
    }
    l.ops = both;
    double early = play(&l);
    l.ops = both + n_ops;
    l.late_first = true;
    double late = play(&l);
    add_orders(&l, late < early ? both + n_ops : both, b);
    free(l.end[F]);
    free(l.ranks);
    free(l.first);
    free(done);
    free(both);
    return HV_OK;
}
