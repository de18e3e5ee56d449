/*
 * Reads the figures that a publication's formula predicts for a plan: `claimed`.
 */
#include "solver/io/own/plan/claim_file.h"

#include "solver/base/units.h"
#include "solver/io/own/plan/read.h"

#include <string.h>

/* A number, null (unknown), or a list of numbers, of which the largest counts (peak memory per
 * stage). */
static enum hv_status read_figure(const struct hv_jp *p, double *out, struct hv_err *err)
{
    *out = HV_UNKNOWN;
    if (hv_jp_none(p)) {
        return HV_OK;
    }
    if (!json_is_array(p->v)) {
        return hv_jp_number(p, -HUGE_VAL, HUGE_VAL, out, err);
    }
    for (size_t i = 0; i < json_array_size(p->v); i++) {
        struct hv_jp e = hv_jp_at(p, i);
        double v = HV_UNKNOWN;
        if (!hv_jp_none(&e)) {
            HV_TRY(hv_jp_number(&e, -HUGE_VAL, HUGE_VAL, &v, err));
        }
        *out = hv_known(*out) && !(v > *out) ? *out : v;
    }
    return HV_OK;
}

/* Figures of an object into parallel arrays, but not the words and `terms`. */
static enum hv_status read_figures(struct hv_plan_reader *rd, const struct hv_jp *p,
                                   const char ***keys, double **values, size_t *n,
                                   struct hv_err *err)
{
    if (!json_is_object(p->v)) {
        return hv_jp_expected(p, err, "an object of figures");
    }
    *keys = hv_arena_new(rd->arena, const char *, json_object_size(p->v));
    *values = hv_arena_new(rd->arena, double, json_object_size(p->v));
    const char *key = NULL;
    json_t *v = NULL;
    json_object_foreach(p->v, key, v)
    {
        if (strcmp(key, "formula") == 0 || strcmp(key, "leaves_out") == 0 ||
            strcmp(key, "warnings") == 0 || strcmp(key, "terms") == 0 ||
            strncmp(key, "x-", 2) == 0) {
            continue;
        }
        struct hv_jp e = hv_jp_get(p, key);
        HV_TRY(read_figure(&e, &(*values)[*n], err));
        (*keys)[(*n)++] = hv_arena_strdup(rd->arena, key);
    }
    return HV_OK;
}

/* The texts about what a search left out or missed. */
static enum hv_status read_warnings(struct hv_plan_reader *rd, const struct hv_jp *claimed,
                                    struct hv_claim *c, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(claimed, "warnings");
    size_t n = 0;
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(hv_jp_array(&p, &n, err));
    c->warnings = hv_arena_new(rd->arena, const char *, n);
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        const char *text = NULL;
        HV_TRY(hv_jp_string(&e, &text, err));
        c->warnings[c->n_warnings++] = hv_arena_strdup(rd->arena, text);
    }
    return HV_OK;
}

enum hv_status hv_plan_read_claimed(struct hv_plan_reader *rd, const struct hv_jp *plan,
                                    struct hv_err *err)
{
    struct hv_claim *c = &rd->plan->claimed;
    struct hv_jp p = hv_jp_get(plan, "claimed");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(read_figures(rd, &p, &c->keys, &c->values, &c->n, err));
    const char *formula = NULL, *leaves_out = NULL;
    HV_TRY(hv_jp_opt_string(&p, "formula", &formula, err));
    HV_TRY(hv_jp_opt_string(&p, "leaves_out", &leaves_out, err));
    c->formula = hv_arena_strdup(rd->arena, formula);
    c->leaves_out = hv_arena_strdup(rd->arena, leaves_out);
    HV_TRY(read_warnings(rd, &p, c, err));
    struct hv_jp terms = hv_jp_get(&p, "terms");
    if (!hv_jp_none(&terms)) {
        HV_TRY(read_figures(rd, &terms, &c->term_keys, &c->term_values, &c->n_terms, err));
    }
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->keys[i], "iteration_s") == 0) {
            c->iteration_s = c->values[i];
        } else if (strcmp(c->keys[i], "tokens_per_s") == 0) {
            c->tokens_per_s = c->values[i];
        }
    }
    return HV_OK;
}

enum hv_status hv_claim_check(const json_t *claim, struct hv_err *err)
{
    struct hv_arena arena = {0};
    struct hv_plan plan = {0};
    struct hv_plan_reader rd = {.arena = &arena, .plan = &plan};
    struct hv_json doc = {.root = json_pack("{sO}", "claimed", claim)};
    struct hv_jp root = hv_jp_root(&doc);
    enum hv_status s = hv_plan_read_claimed(&rd, &root, err);

    json_decref(doc.root);
    hv_arena_free(&arena);
    return s;
}
