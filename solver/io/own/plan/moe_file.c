/*
 * Reads the expert-parallel knobs of a stage (`moe`): one object for all blocks, or a list of them
 * with `layers` and `ep`.
 */
#include "solver/base/units.h"
#include "solver/io/own/plan/read.h"
#include <string.h>

static enum hv_status read_degree(const struct hv_jp *moe, struct hv_moe_knobs *k,
                                  struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(moe, "degree");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    struct hv_jp at[2] = {p, p};
    if (json_is_array(p.v)) {
        if (json_array_size(p.v) != 2) {
            return hv_jp_expected(&p, err, "a degree or [forward, backward]");
        }
        at[0] = hv_jp_at(&p, 0);
        at[1] = hv_jp_at(&p, 1);
    }
    int64_t v[2] = {0, 0};
    for (size_t i = 0; i < HV_COUNT(at); i++) {
        HV_TRY(hv_jp_int(&at[i], 1, HV_PLAN_CHUNKS_MAX, &v[i], err));
    }
    k->degree_forward = (int)v[0];
    k->degree_backward = (int)v[1];
    return HV_OK;
}

/* A member name that is an expert's number, or -1. */
static int expert_number(const char *key)
{
    int v = 0;
    if (key[0] == '\0' || strlen(key) > 7 || (key[0] == '0' && key[1] != '\0')) {
        return -1;
    }
    for (; *key != '\0'; key++) {
        if (*key < '0' || *key > '9') {
            return -1;
        }
        v = v * 10 + (*key - '0');
    }
    return v;
}

/* Member `copies` of knobs or of a recorded placement. */
static enum hv_status read_copies(struct hv_plan_reader *rd, const struct hv_jp *of,
                                  struct hv_expert_copies **copies, size_t *n_copies,
                                  struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(of, "copies");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if (!json_is_object(p.v)) {
        return hv_jp_expected(&p, err, "an object { expert number: [ranks] or \"*\" }");
    }
    *copies = hv_arena_new(rd->arena, struct hv_expert_copies, json_object_size(p.v));
    const char *key = NULL;
    json_t *v = NULL;
    json_object_foreach(p.v, key, v)
    {
        struct hv_jp e = hv_jp_get(&p, key);
        struct hv_expert_copies *c = &(*copies)[(*n_copies)++];
        c->expert = expert_number(key);
        if (c->expert < 0) {
            return hv_jp_fail(&e, err, "expected the number of an expert as key, found \"%s\"",
                              key);
        }
        c->everywhere = json_is_string(v) && strcmp(json_string_value(v), "*") == 0;
        if (c->everywhere) {
            continue;
        }
        HV_TRY(hv_plan_read_ints(rd, &e, 0, HV_PLAN_DEGREE_MAX, &c->ranks, &c->n_ranks, err));
    }
    return HV_OK;
}

static enum hv_status read_owners(struct hv_plan_reader *rd, const struct hv_jp *of, int **owners,
                                  size_t *n, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(of, "owners");
    return hv_jp_none(&p) ? HV_OK
                          : hv_plan_read_ints(rd, &p, 0, HV_PLAN_DEGREE_MAX, owners, n, err);
}

static enum hv_status read_placement(struct hv_plan_reader *rd, const struct hv_jp *p,
                                     struct hv_placement *out, struct hv_err *err)
{
    struct hv_jp at;
    int64_t iteration = 0;
    out->from = out->to = -1;
    HV_TRY(hv_plan_read_object(p, HV_PLAN_OBJECT_placement, err));
    HV_TRY(hv_jp_need(p, "iteration", "the first iteration of the placement", &at, err));
    HV_TRY(hv_jp_int(&at, 0, HV_PLAN_DEGREE_MAX, &iteration, err));
    out->iteration = (int)iteration;
    HV_TRY(hv_plan_read_span(p, &out->from, &out->to, err));
    HV_TRY(read_owners(rd, p, &out->owners, &out->n_owners, err));
    return read_copies(rd, p, &out->copies, &out->n_copies, err);
}

/* A recorded placement per line, each from its iteration on. */
static enum hv_status read_placements(struct hv_plan_reader *rd, const struct hv_jp *adapt,
                                      struct hv_adapting *a, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(adapt, "placements");
    size_t n = 0;
    if (hv_jp_none(&p) && a->policy == HV_ADAPT_RECORD) {
        return hv_jp_expected(adapt, err, "`placements` for the policy \"record\"");
    }
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(hv_jp_array(&p, &n, err));
    a->placements = hv_arena_new(rd->arena, struct hv_placement, n + 1);
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        HV_TRY(read_placement(rd, &e, &a->placements[i], err));
        if (i > 0 && a->placements[i].iteration < a->placements[i - 1].iteration) {
            return hv_jp_fail(&e, err,
                              "expected placements in the order of iterations, found %d after %d",
                              a->placements[i].iteration, a->placements[i - 1].iteration);
        }
    }
    a->n_placements = n;
    return HV_OK;
}

static enum hv_status read_adapt(struct hv_plan_reader *rd, const struct hv_jp *moe,
                                 struct hv_adapting *a, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(moe, "adapt");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(hv_plan_read_object(&p, HV_PLAN_OBJECT_adapt, err));
    HV_TRY_WORD(&p, "policy", hv_adapt, a->policy);
    HV_TRY(hv_plan_read_int(&p, "interval", 1, HV_PLAN_DEGREE_MAX, &a->interval, err));
    HV_TRY(hv_plan_read_int(&p, "experts", 1, HV_PLAN_DEGREE_MAX, &a->experts, err));
    return read_placements(rd, &p, a, err);
}

static enum hv_status read_target(struct hv_plan_reader *rd, const struct hv_jp *moe,
                                  struct hv_moe_knobs *k, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(moe, "target");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    size_t n = 0;
    HV_TRY(hv_jp_array(&p, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct hv_jp row = hv_jp_at(&p, i);
        size_t len = 0;
        HV_TRY(hv_jp_array(&row, &len, err));
        if (len != n) {
            return hv_jp_fail(&row, err, "expected a square matrix of %zu columns, found %zu", n,
                              len);
        }
        if (i == 0) {
            k->target = hv_arena_new(rd->arena, double, n *n);
        }
        for (size_t c = 0; c < n; c++) {
            struct hv_jp e = hv_jp_at(&row, c);
            HV_TRY(hv_jp_number(&e, 0, HUGE_VAL, &k->target[i * n + c], err));
        }
    }
    k->n_target = n;
    return HV_OK;
}

static enum hv_status read_compress(const struct hv_jp *moe, struct hv_moe_knobs *k,
                                    struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(moe, "compress");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(hv_plan_read_object(&p, HV_PLAN_OBJECT_compress, err));
    struct hv_jp ratio;
    HV_TRY(hv_jp_need(&p, "ratio", "size / compressed size", &ratio, err));
    HV_TRY(hv_jp_number(&ratio, 0, HUGE_VAL, &k->compress_ratio, err));
    double gbps = HV_UNKNOWN;
    HV_TRY(hv_jp_opt_number(&p, "GBps", 0, HUGE_VAL, &gbps, err));
    k->compress_bytes_per_s = gbps * HV_GBPS;
    return HV_OK;
}

static enum hv_status read_knobs(struct hv_plan_reader *rd, const struct hv_jp *p,
                                 struct hv_moe_knobs *k, struct hv_err *err)
{
    hv_moe_defaults(k);
    HV_TRY(hv_plan_read_object(p, HV_PLAN_OBJECT_moe, err));
    HV_TRY(hv_plan_read_span(p, &k->from, &k->to, err));
    HV_TRY(hv_plan_read_int(p, "ep", 1, HV_PLAN_DEGREE_MAX, &k->ep, err));
    HV_TRY(hv_jp_opt_number(p, "capacity_factor", 0, HUGE_VAL, &k->capacity_factor, err));
    HV_TRY(hv_plan_read_int(p, "min_capacity", 0, HV_PLAN_DEGREE_MAX, &k->min_capacity, err));
    HV_TRY(hv_plan_read_int(p, "expert_shards", 1, HV_PLAN_DEGREE_MAX, &k->expert_shards, err));
    HV_TRY_WORD(p, "all_to_all", hv_a2a, k->all_to_all);
    HV_TRY_WORD(p, "kernel", hv_moe_kernel, k->kernel);
    HV_TRY_WORD(p, "dispatch", hv_moe_dispatch, k->dispatch);
    HV_TRY(read_degree(p, k, err));
    HV_TRY_WORD(p, "order", hv_moe_order, k->order);
    HV_TRY_WORD(p, "move", hv_moe_move, k->move);
    HV_TRY(read_owners(rd, p, &k->owners, &k->n_owners, err));
    HV_TRY(read_copies(rd, p, &k->copies, &k->n_copies, err));
    HV_TRY_WORD(p, "copy_life", hv_copy_life, k->copy_life);
    HV_TRY(hv_plan_read_int(p, "prefetch", 0, HV_PLAN_DEGREE_MAX, &k->prefetch, err));
    HV_TRY(hv_jp_opt_number(p, "off_node_frac", 0, 1, &k->off_node_frac, err));
    HV_TRY(read_target(rd, p, k, err));
    HV_TRY(read_adapt(rd, p, &k->adapt, err));
    return read_compress(p, k, err);
}

enum hv_status hv_plan_read_moe(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                struct hv_stage *s, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "moe");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    bool many = json_is_array(p.v);
    s->n_moe = many ? json_array_size(p.v) : 1;
    s->moe = hv_arena_new(rd->arena, struct hv_moe_knobs, s->n_moe);
    if (!many) {
        return read_knobs(rd, &p, &s->moe[0], err);
    }
    for (size_t i = 0; i < s->n_moe; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        HV_TRY(read_knobs(rd, &e, &s->moe[i], err));
    }
    return HV_OK;
}
