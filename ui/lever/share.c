/*
 * Redistribution of the layers of a plan over its stages, for levers at their present values: the
 * linear program of solver/eval/balance.h on the evaluated plan, rounded to whole layers, evaluated
 * again.
 */
#include "ui/lever/lever_int.h"

#include "solver/base/units.h"
#include "solver/eval/balance.h"
#include <stdlib.h>
#include <string.h>

enum hv_status hv_levers_set_layers(const struct hv_levers *l, const struct hv_balance *b,
                                    const int *layers, double *values, struct hv_err *err)
{
    int first = 0;
    for (size_t j = 1; j < b->n; j++) {
        first += layers[j - 1];
        const struct hv_lever *x = hv_levers_find(l, HV_LEVER_LAYERS, b->replica, j);
        if (x == NULL) {
            return hv_err_set(err, HV_ENO, "layers cannot be moved between these stages");
        }
        values[x - l->items] = first;
    }
    return HV_OK;
}

/* "22|20": the layers per stage before and after the redistribution, and whether they differ. */
static void add_numbers(const struct hv_balance *b, const int *whole, struct hv_share *out)
{
    struct hv_str was = {0}, now = {0};
    out->moved = false;
    for (size_t i = 0; i < b->n; i++) {
        hv_str_addf(&was, "%s%.0f", i > 0 ? "|" : "", b->stages[i].layers);
        hv_str_addf(&now, "%s%d", i > 0 ? "|" : "", whole[i]);
        out->moved |= whole[i] != (int)b->stages[i].layers;
    }
    (void)snprintf(out->was, sizeof out->was, "%s", hv_str_cstr(&was));
    (void)snprintf(out->now, sizeof out->now, "%s", hv_str_cstr(&now));
    hv_str_free(&was);
    hv_str_free(&now);
}

/* Solves for an evaluated plan; sets the levers of the layers in `values`. */
static enum hv_status share(const struct hv_levers *l, const struct hv_trial *t, double *values,
                            struct hv_share *out, struct hv_err *err)
{
    struct hv_arena arena = {0};
    struct hv_balance b = {0};
    const struct hv_verdict *v = hv_trial_verdict(t);
    enum hv_status st =
        hv_eval_balance(v, hv_trial_plan(t), hv_eval_slowest_entry(v), &arena, &b, err);
    int *whole = st == HV_OK ? hv_arena_new(&arena, int, b.n) : NULL;
    if (st == HV_OK && !hv_balance_whole(&b, SIZE_MAX, whole)) {
        st = hv_err_set(err, HV_ENO, "the layers do not fit into memory in any distribution");
    }
    if (st == HV_OK) {
        add_numbers(&b, whole, out);
        st = hv_levers_set_layers(l, &b, whole, values, err);
    }
    hv_arena_free(&arena);
    return st;
}

enum hv_status hv_levers_share(struct hv_session *s, const struct hv_levers *l, double *values,
                               struct hv_share *out, struct hv_err *err)
{
    struct hv_trial *t = NULL;
    *out = (struct hv_share){0};
    enum hv_status st = hv_trial_new(s, l, values, false, &t, err);
    if (st == HV_OK) {
        st = share(l, t, values, out, err);
    }
    hv_trial_free(t);
    if (st == HV_OK) {
        st = hv_levers_try(s, l, values, false, &out->figures, err);
    }
    return st;
}
