/*
 * Figures of the documents and of rows, from the cache, and the sort order of rows by them. Not for
 * their computation (row/judged.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/units.h"

struct hv_cost *hv_session_cost(struct hv_session *s)
{
    return hv__cache_cost(s->cache, s->docs);
}

struct hv_bound hv_session_bound(struct hv_session *s)
{
    return hv__cache_bound(s->cache, s->docs);
}

/* The row of that id where it has a plan, else NULL with the reason in err. */
static const struct hv_row *planned(const struct hv_session *s, uint32_t id, struct hv_err *err)
{
    const struct hv_row *r = hv__rows_get(s->rows, id);
    if (r == NULL) {
        hv_err_set(err, HV_EUSAGE, "there is no row %u", id);
    } else if (r->plan == NULL) {
        hv_err_set(err, HV_ENO, "%s has no plan%s%s", r->name, r->reason[0] ? ": " : "", r->reason);
    }
    return r != NULL && r->plan != NULL ? r : NULL;
}

const struct hv_plan *hv_session_plan(struct hv_session *s, uint32_t id, struct hv_err *err)
{
    const struct hv_row *r = planned(s, id, err);
    return r != NULL ? hv__cache_plan(s->cache, s->docs, r, err) : NULL;
}

const struct hv_verdict *hv_session_verdict(struct hv_session *s, uint32_t id, bool timeline,
                                            struct hv_err *err)
{
    const struct hv_row *r = planned(s, id, err);
    return r != NULL ? hv__cache_verdict(s->cache, s->docs, r, timeline, err) : NULL;
}

/* ---- sort order of rows -------------------------------------------------------------------- */

static double worst_memory_frac(const struct hv_verdict *v)
{
    double worst = HV_UNKNOWN;
    for (size_t i = 0; i < v->n_memory; i++) {
        double frac = v->memory[i].peak_bytes / v->memory[i].limit_bytes;
        if (hv_known(frac) && !(frac <= worst)) {
            worst = frac;
        }
    }
    return worst;
}

static double figure_of(const struct hv_verdict *v, enum hv_sort key)
{
    switch (key) {
    case HV_SORT_TIME:
        return v->metrics.iteration_s;
    case HV_SORT_TOKENS:
        return v->metrics.tokens_per_s;
    case HV_SORT_MFU:
        return v->metrics.mfu;
    case HV_SORT_COST:
        return v->metrics.usd_per_mtoken;
    case HV_SORT_MEMORY:
        return worst_memory_frac(v);
    case HV_SORT_BUBBLE:
        return v->metrics.bubble_frac;
    case HV_SORT_ENERGY:
        return v->metrics.energy_j;
    case HV_SORT_ID:
    case HV_SORT_NAME:
    case HV_SORT_STATE:
    case HV_SORT_N:
        break;
    }
    return HV_UNKNOWN;
}

/* 0: within all rules; 1: inexact though the job does not allow it; 2: with violations. */
static int group_of(const struct hv_session *s, const struct hv_verdict *v)
{
    if (v->findings.n > 0) {
        return 2;
    }
    return !v->metrics.exact && !hv__docs_nouns(s->docs)->job.job.objective.allow_stale ? 1 : 0;
}

static struct hv__rank rank(void *ctx, const struct hv_row *row, enum hv_sort key)
{
    struct hv_session *s = ctx;
    /* plans of running rows change too fast to be judged only for their place */
    bool runs = hv__rows_job(s->rows, row->id) != 0;
    const struct hv_verdict *v = runs ? NULL : hv_session_verdict(s, row->id, false, NULL);
    struct hv__rank out = {.figure = v != NULL ? figure_of(v, key) : HV_UNKNOWN};
    out.group = !hv_known(out.figure) ? 3 : group_of(s, v);
    return out;
}

void hv__session_rows_sort(struct hv_session *s)
{
    hv__rows_sort(s->rows, rank, s);
    s->sort_due = false;
}

void hv_session_sort(struct hv_session *s, enum hv_sort key, bool descending)
{
    hv__rows_set_order(s->rows, key, descending);
    hv__session_rows_sort(s);
    hv__session_moved(s);
}

enum hv_sort hv_session_sort_key(const struct hv_session *s, bool *descending)
{
    return hv__rows_order(s->rows, descending);
}

/* ---- timelines made by a thread -------------------------------------------------------------- */

enum hv_drawing hv_session_drawing(const struct hv_session *s, uint32_t id, double *frac)
{
    if (hv__rows_get(s->rows, id) != NULL) {
        return hv__cache_drawing(s->cache, id, frac);
    }
    if (frac != NULL) {
        *frac = 0;
    }
    return HV_DRAWING_NONE;
}

bool hv_session_draw_stop(struct hv_session *s, uint32_t id)
{
    bool stopped = hv__rows_get(s->rows, id) != NULL && hv__cache_draw_stop(s->cache, id);
    if (stopped) {
        hv__session_moved(s);
    }
    return stopped;
}

void hv_session_draw_again(struct hv_session *s, uint32_t id)
{
    if (hv__cache_draw_again(s->cache, id)) {
        hv__session_moved(s);
    }
}
