/*
 * Figures of the documents and of rows, from the cache. Not for how they are computed
 * (row/judged.c).
 */
#include "ui/session/session_int.h"

struct hv_cost *hv_session_cost(struct hv_session *s)
{
    return hv__cache_cost(s->cache, s->docs);
}

struct hv_bound hv_session_bound(struct hv_session *s)
{
    return hv__cache_bound(s->cache, s->docs);
}

/* The row of that id when it has a plan, or NULL and why. */
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
