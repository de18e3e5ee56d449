/*
 * Reads the degrees of a stage: tp, cp, dp with its deal and shares, zero, and those of some blocks
 * (`degrees`).
 */
#include "solver/io/own/plan/read.h"
#include <string.h>

/* Shares of the tensor ranks; without a degree there are as many as shares. */
static enum hv_status read_tp_shares(struct hv_plan_reader *rd, const struct hv_jp *o,
                                     struct hv_tp *tp, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(o, "shares"), degree = hv_jp_get(o, "degree");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    size_t n = 0;
    HV_TRY(hv_plan_read_ints(rd, &p, 1, HV_PLAN_BATCH_MAX, &tp->shares, &n, err));
    if (hv_jp_none(&degree) && n > 0 && n <= HV_PLAN_DEGREE_MAX) {
        tp->degree = (int)n;
    }
    if (n != (size_t)tp->degree) {
        return hv_jp_fail(&p, err, "expected %d shares, one per tp rank, found %zu", tp->degree, n);
    }
    return HV_OK;
}

static enum hv_status read_tp(struct hv_plan_reader *rd, const struct hv_jp *stage,
                              struct hv_tp *tp, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "tp");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if (json_is_number(p.v)) {
        return hv_plan_read_int(stage, "tp", 1, HV_PLAN_DEGREE_MAX, &tp->degree, err);
    }
    if (!json_is_object(p.v)) {
        return hv_jp_expected(&p, err, "a degree or an object { scheme, degree, … }");
    }
    HV_TRY(hv_plan_read_object(&p, HV_PLAN_OBJECT_tp, err));
    HV_TRY_WORD(&p, "scheme", hv_tp_scheme, tp->scheme);
    HV_TRY(hv_plan_read_int(&p, "degree", 1, HV_PLAN_DEGREE_MAX, &tp->degree, err));
    HV_TRY(hv_plan_read_int(&p, "depth", 1, HV_PLAN_DEGREE_MAX, &tp->depth, err));
    HV_TRY(hv_jp_opt_bool(&p, "regather", &tp->regather, err));
    return read_tp_shares(rd, &p, tp, err);
}

/* `zigzag` and `striped` as scheme are the ring with that layout. */
static enum hv_status read_cp_scheme(const struct hv_jp *p, struct hv_cp *cp, struct hv_err *err)
{
    HV_TRY_WORD(p, "layout", hv_cp_layout, cp->layout);
    struct hv_jp scheme = hv_jp_get(p, "scheme");
    if (json_is_string(scheme.v)) {
        for (int w = HV_CP_ZIGZAG; w < hv_cp_layout_N; w++) {
            if (strcmp(json_string_value(scheme.v), hv_cp_layout_words[w]) == 0) {
                cp->layout = (enum hv_cp_layout)w;
                return HV_OK;
            }
        }
    }
    HV_TRY_WORD(p, "scheme", hv_cp_scheme, cp->scheme);
    return HV_OK;
}

static enum hv_status read_cp(struct hv_plan_reader *rd, const struct hv_jp *stage,
                              struct hv_cp *cp, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "cp");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if (json_is_number(p.v)) {
        return hv_plan_read_int(stage, "cp", 1, HV_PLAN_DEGREE_MAX, &cp->degree, err);
    }
    if (!json_is_object(p.v)) {
        return hv_jp_expected(&p, err, "a degree or an object { scheme, degree, … }");
    }
    HV_TRY(hv_plan_read_object(&p, HV_PLAN_OBJECT_cp, err));
    HV_TRY(read_cp_scheme(&p, cp, err));
    HV_TRY(hv_plan_read_int(&p, "degree", 1, HV_PLAN_DEGREE_MAX, &cp->degree, err));
    HV_TRY(hv_plan_read_int(&p, "ulysses", 1, HV_PLAN_DEGREE_MAX, &cp->ulysses, err));
    HV_TRY(hv_plan_read_int(&p, "inner", 1, HV_PLAN_DEGREE_MAX, &cp->inner, err));
    HV_TRY(hv_plan_read_int(&p, "tile", 1, HV_PLAN_DEGREE_MAX, &cp->tile, err));
    HV_TRY_WORD(&p, "order", hv_cp_order, cp->order);
    HV_TRY_WORD(&p, "backward", hv_cp_backward, cp->backward);
    struct hv_jp dims = hv_jp_get(&p, "dims");
    if (hv_jp_none(&dims)) {
        return HV_OK;
    }
    const char **names = NULL;
    HV_TRY(hv_plan_read_strings(rd, &dims, &names, &cp->n_dims, err));
    cp->dims = names;
    return HV_OK;
}

static enum hv_status read_shares(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                  struct hv_stage *s, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "shares");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    size_t n = 0;
    HV_TRY(hv_plan_read_ints(rd, &p, 0, HV_PLAN_BATCH_MAX, &s->shares, &n, err));
    if (n != (size_t)s->dp) {
        return hv_jp_fail(&p, err, "expected %d shares, one per dp rank, found %zu", s->dp, n);
    }
    if (s->deal == HV_DEAL_TURNS) {
        return hv_jp_expected(&p, err,
                              "no shares: with deal turns every rank takes whole micro-batches");
    }
    return HV_OK;
}

static enum hv_status read_zero(const struct hv_jp *stage, struct hv_zero *z, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "zero");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if (json_is_number(p.v)) {
        HV_TRY(hv_plan_read_int(stage, "zero", 0, 3, &z->stage, err));
        z->reduce = hv_zero_default_reduce(z->stage, 0);
        return HV_OK;
    }
    if (!json_is_object(p.v)) {
        return hv_jp_expected(&p, err, "0, 1, 2, 3 or an object { stage, … }");
    }
    HV_TRY(hv_plan_read_object(&p, HV_PLAN_OBJECT_zero, err));
    HV_TRY(hv_plan_read_int(&p, "stage", 0, 3, &z->stage, err));
    HV_TRY(hv_plan_read_int(&p, "shard_group", 1, HV_PLAN_DEGREE_MAX, &z->shard_group, err));
    z->reduce = hv_zero_default_reduce(z->stage, z->shard_group);
    HV_TRY_WORD(&p, "unit", hv_zero_unit, z->unit);
    HV_TRY(hv_jp_opt_bool(&p, "reshard", &z->reshard, err));
    HV_TRY(hv_plan_read_int(&p, "prefetch", 0, HV_PLAN_BLOCKS_MAX, &z->prefetch, err));
    HV_TRY(hv_plan_read_int(&p, "limit", 1, HV_PLAN_BLOCKS_MAX, &z->limit, err));
    HV_TRY_WORD(&p, "gather", hv_zero_gather, z->gather);
    HV_TRY_WORD(&p, "gather_at", hv_zero_gather_at, z->gather_at);
    HV_TRY_WORD(&p, "reduce", hv_zero_reduce, z->reduce);
    return HV_OK;
}

/* One entry of `degrees`; what it does not give has the default of a stage. */
static enum hv_status read_entry(struct hv_plan_reader *rd, const struct hv_jp *p,
                                 struct hv_degrees *d, struct hv_err *err)
{
    struct hv_jp layers = hv_jp_get(p, "layers");
    struct hv_stage plain = {0};
    hv_stage_defaults(&plain);
    *d = (struct hv_degrees){.tp = plain.tp, .cp = plain.cp, .dp = plain.dp, .zero = plain.zero};
    HV_TRY(hv_plan_read_object(p, HV_PLAN_OBJECT_degrees_item, err));
    if (hv_jp_none(&layers)) {
        return hv_jp_expected(p, err, "layers: the range [from, to) of blocks with these degrees");
    }
    HV_TRY(hv_plan_read_span(p, &d->from, &d->to, err));
    HV_TRY(read_tp(rd, p, &d->tp, err));
    HV_TRY(hv_jp_opt_bool(p, "sequence_parallel", &d->sequence_parallel, err));
    HV_TRY(read_cp(rd, p, &d->cp, err));
    HV_TRY(hv_plan_read_int(p, "dp", 1, HV_PLAN_DEGREE_MAX, &d->dp, err));
    return read_zero(p, &d->zero, err);
}

static enum hv_status read_degrees(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                   struct hv_stage *s, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "degrees");
    size_t n = 0;
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(hv_jp_array(&p, &n, err));
    s->degrees = hv_arena_new(rd->arena, struct hv_degrees, n + 1);
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        HV_TRY(read_entry(rd, &e, &s->degrees[i], err));
    }
    s->n_degrees = n;
    return HV_OK;
}

enum hv_status hv_plan_read_parallel(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                     struct hv_stage *s, struct hv_err *err)
{
    HV_TRY(read_tp(rd, stage, &s->tp, err));
    HV_TRY(hv_jp_opt_bool(stage, "sequence_parallel", &s->sequence_parallel, err));
    HV_TRY(read_cp(rd, stage, &s->cp, err));
    HV_TRY(hv_plan_read_int(stage, "dp", 1, HV_PLAN_DEGREE_MAX, &s->dp, err));
    HV_TRY_WORD(stage, "deal", hv_deal, s->deal);
    HV_TRY(read_shares(rd, stage, s, err));
    HV_TRY(hv_plan_read_int(stage, "ep", 1, HV_PLAN_DEGREE_MAX, &s->ep, err));
    HV_TRY(read_zero(stage, &s->zero, err));
    return read_degrees(rd, stage, s, err);
}
