/*
 * Schedules with several chunks per rank, placed round and round (stage s on rank s mod p):
 * interleaved 1F1B, breadth-first, and PipeOffload's group interleaving.
 */
#include "solver/base/whole.h"
#include "solver/sim/schedule/schedule_int.h"

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

struct interleave {
    int32_t p, m, v, group;
};

/* a walk over the forwards of interleaving: micro-batches in groups, each group through every chunk
 */
struct walk {
    int32_t first, size, chunk, i; /* the group, and where in it */
};

static struct walk walk_begin(const struct interleave *x)
{
    return (struct walk){.size = min32(x->group, x->m)};
}

static void walk_next(const struct interleave *x, struct walk *w)
{
    if (++w->i < w->size) {
        return;
    }
    w->i = 0;
    if (++w->chunk == x->v) {
        w->chunk = 0;
        w->first += w->size;
        w->size = min32(x->group, x->m - w->first);
    }
}

/* adds the op of the walk and moves on; backwards take the chunks the other way round */
static void add_next(struct hv_schedule_builder *b, const struct interleave *x, int32_t rank,
                     enum hv_op_kind kind, struct walk *w)
{
    int32_t chunk = kind == HV_OP_F ? w->chunk : x->v - 1 - w->chunk;
    hv__add(b, kind, chunk * x->p + rank, w->first + w->i);
    walk_next(x, w);
}

/* true where groups of n leave no remainder, or a last group that is large enough */
static bool suits(int32_t n, int32_t m, int32_t p)
{
    return n >= min32(p, m) && n <= m && (m % n == 0 || m % n >= p);
}

/* the valid group size nearest to the requested one; m is always valid */
static int32_t nearest_group(int64_t asked, int32_t m, int32_t p)
{
    for (int32_t d = 1; d < m; d++) {
        if (asked - d > 0 && asked - d <= m && suits((int32_t)(asked - d), m, p)) {
            return (int32_t)(asked - d);
        }
        if (asked + d <= m && suits((int32_t)(asked + d), m, p)) {
            return (int32_t)(asked + d);
        }
    }
    return m;
}

/* picks N: the option, or Megatron's p where p | m, else m shared out over as many rounds as fit */
static enum hv_status pick_group(const struct hv_schedule_input *in, int32_t *out,
                                 struct hv_err *err)
{
    int32_t p = in->ranks, m = in->micro_batches;
    int64_t asked = hv__option(in, "group");
    if (asked == 0 && in->chunks == 1) { /* one chunk: no interleaving */
        *out = m;
        return HV_OK;
    }
    if (asked == 0) {
        int32_t rounds = m / p > 1 ? m / p : 1;
        if (m % rounds != 0) {
            return hv_err_set(
                err, HV_EUSAGE,
                "schedule %s: m = %d micro-batches do not fall into %d equal groups of "
                "at least p = %d; use m = %d or m = %d, or group = %d",
                in->row->name, m, rounds, p, m / p * p, (m / p + 1) * p, nearest_group(p, m, p));
        }
        *out = m / rounds;
        return HV_OK;
    }
    if (asked < min32(p, m) || asked > m) {
        return hv_err_set(
            err, HV_EUSAGE,
            "schedule %s: group must lie between %d (ranks, or all micro-batches) and "
            "m = %d, found %lld; use group = %d",
            in->row->name, min32(p, m), m, (long long)asked, nearest_group(asked, m, p));
    }
    int32_t rest = m % (int32_t)asked;
    if (rest != 0 && rest < p) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule %s: with group = %lld the last group has %d micro-batches, it "
                          "needs none or at least p = %d; use group = %d",
                          in->row->name, (long long)asked, rest, p, nearest_group(asked, m, p));
    }
    *out = (int32_t)asked;
    return HV_OK;
}

/* Megatron-LM (SC'21, section 2.2) with the group size of its later versions */
enum hv_status hv__gen_interleaved(const struct hv_schedule_input *in,
                                   struct hv_schedule_builder *b, struct hv_err *err)
{
    struct interleave x = {in->ranks, in->micro_batches, in->chunks, 0};
    enum hv_status st = pick_group(in, &x.group, err);
    if (st != HV_OK) {
        return st;
    }
    int32_t total = x.m * x.v;
    for (int32_t r = 0; r < x.p; r++) {
        int32_t warm = min32(total, 2 * (x.p - r - 1) + (x.v - 1) * x.group);
        struct walk f = walk_begin(&x), w = f;
        for (int32_t k = -warm; k < total; k++) {
            if (k + warm < total) {
                add_next(b, &x, r, HV_OP_F, &f);
            }
            if (k >= 0) {
                add_next(b, &x, r, HV_OP_BW, &w);
            }
        }
        hv__rank_done(b);
    }
    return HV_OK;
}

/*
 * ZB-H1 (Zero Bubble, ICLR'24, section 2; interleaved as in PyTorch): warm-up F's, then pairs (F,
 * B); from the r-th B on rank r every B is followed by one W, oldest first, so that W lags r
 * behind.
 */
enum hv_status hv__gen_zb_h1(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                             struct hv_err *err)
{
    struct interleave x = {in->ranks, in->micro_batches, in->chunks, 0};
    enum hv_status st = pick_group(in, &x.group, err);
    if (st != HV_OK) {
        return st;
    }
    int32_t total = x.m * x.v;
    for (int32_t r = 0; r < x.p; r++) {
        int32_t warm = min32(total, (x.p - 1 - r) + (x.v - 1) * x.group);
        struct walk f = walk_begin(&x), g = f, w = f;
        for (int32_t j = -warm; j < total + r; j++) {
            if (j + warm < total) {
                add_next(b, &x, r, HV_OP_F, &f);
            }
            if (j >= 0 && j < total) {
                add_next(b, &x, r, HV_OP_B, &g);
            }
            if (j >= r) {
                add_next(b, &x, r, HV_OP_W, &w);
            }
        }
        hv__rank_done(b);
    }
    return HV_OK;
}

/* a round of the breadth-first order on one rank: n micro-batches from `from` on */
static void add_breadth_first(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              int32_t rank, int32_t from, int32_t n)
{
    for (int32_t c = 0; c < in->chunks; c++) {
        for (int32_t i = from; i < from + n; i++) {
            hv__add(b, HV_OP_F, c * in->ranks + rank, i);
        }
    }
    for (int32_t c = in->chunks - 1; c >= 0; c--) {
        for (int32_t i = from + n - 1; i >= from; i--) {
            hv__add(b, HV_OP_BW, c * in->ranks + rank, i);
        }
    }
}

/* Breadth-first pipeline parallelism (MLSys'23): all micro-batches through a chunk before the next;
 * in rounds of those that the ranks may hold */
enum hv_status hv__gen_breadth_first(const struct hv_schedule_input *in,
                                     struct hv_schedule_builder *b, struct hv_err *err)
{
    (void)err;
    int32_t m = in->micro_batches, round = hv__round(in);
    for (int32_t r = 0; r < in->ranks; r++) {
        for (int32_t from = 0; from < m; from += round) {
            add_breadth_first(in, b, r, from, min32(round, m - from));
        }
        hv__rank_done(b);
    }
    return HV_OK;
}

/* ---- group interleaving
 * -------------------------------------------------------------------------- */

/* one op with its place on the unit-time grid of the repeated building block */
struct placed {
    int64_t at;
    uint8_t kind;
    int32_t chunk, mb;
};

static int by_place(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    return (a->at > b->at) - (a->at < b->at);
}

/*
 * PipeOffload's generalised interleaving: a building block of `group` micro-batches is repeated
 * every 3·group·v slots (F, B, W of one unit each). A chunk starts `lead` groups of 3·group slots
 * after the one before; where v and lead share a factor, the chunks behind each v/gcd-th shift by
 * one group more, so that no two ops share a slot. Forwards move one slot per rank, backwards
 * three.
 */
enum hv_status hv__gen_group_interleaved(const struct hv_schedule_input *in,
                                         struct hv_schedule_builder *b, struct hv_err *err)
{
    (void)err;
    int32_t p = in->ranks, m = in->micro_batches, v = in->chunks;
    int32_t group = (int32_t)hv__option(in, "group");
    group = group == 0 ? (p + 1) / 2 : group;
    int32_t least = (p + 1) / 2;
    int32_t lead = (least + group - 1) / group;
    int32_t per_shift = v / (int32_t)hv_gcd(v, lead);
    int64_t unit = 3 * (int64_t)group;
    int64_t last_chunk = unit * lead * (v - 1) + unit * ((v - 1) / per_shift);
    struct placed *ops = hv_xcalloc((size_t)m * (size_t)v * 3, sizeof *ops);
    for (int32_t r = 0; r < p; r++) {
        size_t n = 0;
        int64_t first_b = last_chunk + r + 1 + 3 * (int64_t)(p - 1 - r);
        for (int32_t i = 0; i < m; i++) {
            int64_t base = unit * v * (i / group) + 3 * (i % group);
            for (int32_t c = 0; c < v; c++) {
                int64_t at = base + unit * lead * c + unit * (c / per_shift);
                ops[n++] = (struct placed){at + r, HV_OP_F, c, i};
                ops[n++] = (struct placed){at + first_b, HV_OP_B, v - 1 - c, i};
                ops[n++] = (struct placed){at + first_b + 1, HV_OP_W, v - 1 - c, i};
            }
        }
        qsort(ops, n, sizeof *ops, by_place);
        for (size_t k = 0; k < n; k++) {
            hv__add(b, (enum hv_op_kind)ops[k].kind, ops[k].chunk * p + r, ops[k].mb);
        }
        hv__rank_done(b);
    }
    free(ops);
    return HV_OK;
}
