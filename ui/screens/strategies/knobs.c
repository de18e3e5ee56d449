/** The knobs in which two plans differ, a short line each. Draws nothing. */
#include <string.h>

#include "solver/base/units.h"
#include "solver/io/own/plan/write.h"
#include "ui/screens/strategies/strategies_int.h"

/* Stages whose values are told one by one. */
#define STAGES 8

/** Appends the value of a stage. */
typedef void stage_knob(const struct hv_plan *p, const struct hv_stage *s, struct hv_str *out);

/** The value of all stages where they agree, else of each: "none|attention". */
static void add_stages(const struct hv_plan *p, stage_knob *knob, struct hv_str *out)
{
    struct hv_str first = {0}, all = {0}, one = {0};
    size_t n = 0;
    bool same = true;
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            hv_str_clear(&one);
            knob(p, &p->replicas[i].stages[k], &one);
            if (n++ == 0) {
                hv_str_adds(&first, hv_str_cstr(&one));
            }
            same = same && strcmp(hv_str_cstr(&first), hv_str_cstr(&one)) == 0;
            if (n <= STAGES) {
                hv_str_addf(&all, "%s%s", n > 1 ? "|" : "", hv_str_cstr(&one));
            }
        }
    }
    hv_str_adds(out, hv_str_cstr(same ? &first : &all));
    hv_str_adds(out, !same && n > STAGES ? "|…" : "");
    hv_str_free(&first);
    hv_str_free(&all);
    hv_str_free(&one);
}

static void stage_micro_batch(const struct hv_plan *p, const struct hv_stage *s, struct hv_str *out)
{
    int own = s->micro_batch;
    for (size_t i = 0; i < p->n_replicas && own == 0; i++) {
        const struct hv_replica *r = &p->replicas[i];
        own = s >= r->stages && s < r->stages + r->n_stages ? r->micro_batch : 0;
    }
    hv_str_addf(out, "%d", own > 0 ? own : p->micro_batch);
}

static void stage_zero(const struct hv_plan *p, const struct hv_stage *s, struct hv_str *out)
{
    (void)p;
    hv_str_addf(out, "%d", s->zero.stage);
    if (s->zero.stage > 0 && s->zero.shard_group > 0) {
        hv_str_addf(out, " in %d", s->zero.shard_group);
    }
}

static void stage_recompute(const struct hv_plan *p, const struct hv_stage *s, struct hv_str *out)
{
    (void)p;
    if (s->n_recompute_per > 0) {
        hv_str_adds(out, "by block");
    } else {
        hv_recompute_format(s->recompute, out);
    }
}

static void stage_context(const struct hv_plan *p, const struct hv_stage *s, struct hv_str *out)
{
    (void)p;
    hv_str_addf(out, "%d", s->cp.degree);
    if (s->cp.degree < 2) {
        return;
    }
    hv_str_addf(out, " %s", hv_cp_scheme_words[s->cp.scheme]);
    if (s->cp.ulysses > 1) {
        hv_str_addf(out, " %d heads", s->cp.ulysses);
    }
    if (s->cp.inner > 1) {
        hv_str_addf(out, " inner %d", s->cp.inner);
    }
    if (s->cp.layout != HV_CP_CONTIGUOUS) {
        hv_str_addf(out, " %s", hv_cp_layout_words[s->cp.layout]);
    }
    if (s->cp.backward != HV_CP_KV) {
        hv_str_addf(out, " %s", hv_cp_backward_words[s->cp.backward]);
    }
}

static void stage_tensor(const struct hv_plan *p, const struct hv_stage *s, struct hv_str *out)
{
    (void)p;
    hv_str_adds(out, s->tp.degree > 1 ? hv_tp_scheme_words[s->tp.scheme] : "none");
    if (s->tp.degree > 1 && s->tp.depth > 1) {
        hv_str_addf(out, " depth %d", s->tp.depth);
    }
}

/** Experts: ranks that share them, and where these are more than one how they exchange, compute and
 * are placed. */
static void stage_experts(const struct hv_plan *p, const struct hv_stage *s, struct hv_str *out)
{
    (void)p;
    hv_str_addf(out, "%d", s->ep);
    const struct hv_moe_knobs *m = s->n_moe > 0 ? &s->moe[0] : NULL;
    if (m == NULL) {
        return;
    }
    hv_str_addf(out, " %s %s", hv_a2a_words[m->all_to_all], hv_moe_kernel_words[m->kernel]);
    if (m->degree_forward > 1) {
        hv_str_addf(out, " in %d", m->degree_forward);
    }
    if (m->capacity_factor > 0) {
        hv_str_addf(out, " capacity %g", m->capacity_factor);
    }
    if (m->adapt.n_placements > 0) {
        hv_str_addf(out, " placed %zu times", m->adapt.n_placements);
    } else if (m->n_copies > 0 || m->n_owners > 0) {
        hv_str_adds(out, m->n_copies > 0 ? " copies" : " owners");
    }
}

/** How gradients are synchronised. */
static void plan_sync(const struct hv_plan *p, struct hv_str *out)
{
    const struct hv_sync *s = &p->sync;
    hv_str_addf(out, "%s %.3g MiB", hv_sync_kind_words[s->kind], s->bucket_bytes[0] / HV_MIB);
    if (s->n_buckets > 1) {
        hv_str_addf(out, ", then %.3g", s->bucket_bytes[1] / HV_MIB);
    }
    if (s->chunk_bytes > 0) {
        hv_str_addf(out, " in %.3g", s->chunk_bytes / HV_MIB);
    }
    if (s->cycle_s > 0) {
        hv_str_addf(out, " each %.3g ms", s->cycle_s * 1e3);
    }
    hv_str_adds(out, s->overlap ? "" : " behind passes");
}

/** Knobs of stages: name, value. Those before them are fields of the table of plans. */
static const struct {
    const char *name;
    stage_knob *value;
} knobs[] = {
    {"micro-b.", stage_micro_batch}, {"zero", stage_zero},       {"recomp.", stage_recompute},
    {"tensor", stage_tensor},        {"context", stage_context}, {"ep", stage_experts},
};
static const struct {
    const char *name;
    enum hv_plan_field field;
} fields[] = {{"schedule", HV_PLAN_SCHEDULE},
              {"cut", HV_PLAN_LAYERS},
              {"tp/pp/dp", HV_PLAN_DEGREES},
              {"GPUs", HV_PLAN_GPUS}};

/** Appends "name from -> to" where the two differ. */
static void add_change(const char *name, const struct hv_str two[2], struct hv_str *out)
{
    const char *from = hv_str_cstr(&two[0]), *to = hv_str_cstr(&two[1]);
    if (strcmp(from, to) != 0) {
        hv_str_addf(out, " %-8s %s -> %s\n", name, from, to);
    }
}

void hv_strategies_unlike(const struct hv_plan_facts pair[2], struct hv_str *out)
{
    struct hv_str two[2] = {{0}, {0}};
    for (size_t i = 0; i < HV_COUNT(fields) + HV_COUNT(knobs); i++) {
        bool whole = i < HV_COUNT(fields);
        size_t knob = i - HV_COUNT(fields);
        for (int k = 0; k < 2; k++) {
            hv_str_clear(&two[k]);
            if (whole) {
                hv_plan_text(&pair[k], fields[i].field, &two[k]);
            } else {
                add_stages(pair[k].plan, knobs[knob].value, &two[k]);
            }
        }
        add_change(whole ? fields[i].name : knobs[knob].name, two, out);
    }
    for (int k = 0; k < 2; k++) {
        hv_str_clear(&two[k]);
        plan_sync(pair[k].plan, &two[k]);
    }
    add_change("sync", two, out);
    hv_str_free(&two[0]);
    hv_str_free(&two[1]);
}
