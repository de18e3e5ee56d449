/* Waits between operations: neighbours in a compute lane, and both ends of transfers. */
#include "ui/view/gantt/waits.h"

#include <math.h>

/* Transfers of a link that are looked at, and operations between the arrival of a result and its
 * use. */
enum { NEAR = 256 };
/* Times that differ by less than this share of the iteration are equal. */
#define SAME_REL 1e-9

static const struct hv_lane *compute_of(const struct hv_timeline *t, size_t row)
{
    return &t->lanes.items[t->rows[row].compute_lane];
}

/* True where passes of this kind need (or give) a result of this direction. */
static bool takes(uint8_t kind, bool backward)
{
    bool is_backward = kind == HV_SPAN_B || kind == HV_SPAN_BW;
    return kind == HV_SPAN_PAIR || (backward ? is_backward : kind == HV_SPAN_F);
}

static const struct hv_timeline_hop *hop_of(const struct hv_timeline *t, const struct hv_span *s)
{
    return s->kind == HV_SPAN_HOP ? &t->hops[t->ops[s->id].paired] : NULL;
}

/* The operation of a row whose result arrives at a time: the last of its micro-batch that ended
 * before. (The transfer may be drawn shorter than it takes, behind others on its link.) */
static const struct hv_span *sender(const struct hv_timeline *t, size_t row, double arrives_s,
                                    bool backward, int32_t micro_batch)
{
    const struct hv_lane *l = compute_of(t, row);
    int32_t i = hv_lane_prev(l, arrives_s);
    for (int n = 0; i >= 0 && n < NEAR; i--, n++) {
        const struct hv_span *s = &l->spans[i];
        if (s->item == micro_batch && takes(s->kind, backward) && s->end_s < arrives_s) {
            return s;
        }
    }
    return NULL;
}

/* The operation of a row that uses what arrived. */
static const struct hv_span *receiver(const struct hv_timeline *t, size_t row, double at_s,
                                      bool backward, int32_t micro_batch)
{
    const struct hv_lane *l = compute_of(t, row);
    int32_t i = hv_lane_next(l, at_s - SAME_REL * t->end_s);
    for (int n = 0; i >= 0 && (size_t)i < l->n_spans && n < NEAR; i++, n++) {
        if (l->spans[i].item == micro_batch && takes(l->spans[i].kind, backward)) {
            return &l->spans[i];
        }
    }
    return NULL;
}

/* Takes the transfer of a link that arrived last before the operation, where it is later. */
static void look_back(const struct hv_timeline *t, const struct hv_timeline_link *link,
                      const struct hv_span *s, struct hv_gantt_end *out)
{
    const struct hv_lane *l = &t->lanes.items[link->lane];
    int32_t i = hv_lane_prev(l, s->start_s + SAME_REL * t->end_s);
    for (int n = 0; i >= 0 && n < NEAR; i--, n++) {
        const struct hv_span *x = &l->spans[i];
        const struct hv_timeline_hop *hop = hop_of(t, x);
        if (hop == NULL || x->item != s->item || !takes(s->kind, hop->backward)) {
            continue;
        }
        double spare = fmax(0, s->start_s - x->end_s);
        const struct hv_span *from = sender(t, link->from_row, x->end_s, hop->backward, s->item);
        if (from != NULL && (out->span == NULL || spare < out->spare_s)) {
            *out = (struct hv_gantt_end){link->from_row, from, x->end_s - from->end_s, spare};
        }
        return;
    }
}

/* Takes the transfer of a link that the operation sends, where its receiver begins earlier. */
static void look_ahead(const struct hv_timeline *t, const struct hv_timeline_link *link,
                       const struct hv_span *s, struct hv_gantt_end *out)
{
    const struct hv_lane *l = &t->lanes.items[link->lane];
    int32_t i = hv_lane_next(l, s->start_s);
    for (int n = 0; i >= 0 && (size_t)i < l->n_spans && n < NEAR; i++, n++) {
        const struct hv_span *x = &l->spans[i];
        const struct hv_timeline_hop *hop = hop_of(t, x);
        if (hop == NULL || x->item != s->item || !takes(s->kind, hop->backward) ||
            sender(t, link->from_row, x->end_s, hop->backward, s->item) != s) {
            continue;
        }
        const struct hv_span *to = receiver(t, link->to_row, x->end_s, hop->backward, s->item);
        if (to != NULL && (out->span == NULL || to->start_s < out->span->start_s)) {
            *out = (struct hv_gantt_end){link->to_row, to, x->end_s - s->end_s,
                                         fmax(0, to->start_s - x->end_s)};
        }
        return;
    }
}

struct hv_gantt_waits hv_gantt_waits_for(const struct hv_timeline *t, size_t row,
                                         const struct hv_span *s)
{
    struct hv_gantt_waits w = {.here = {.row = row}};
    const struct hv_lane *l = compute_of(t, row);
    int32_t before = hv_lane_prev(l, s->start_s);
    if (before >= 0) {
        w.here.span = &l->spans[before];
        w.here.spare_s = fmax(0, s->start_s - w.here.span->end_s);
    }
    for (size_t k = 0; k < t->n_links; k++) {
        if (t->links[k].to_row == row && t->links[k].place == NULL) {
            look_back(t, &t->links[k], s, &w.other);
        }
    }
    return w;
}

struct hv_gantt_waits hv_gantt_lets_start(const struct hv_timeline *t, size_t row,
                                          const struct hv_span *s)
{
    struct hv_gantt_waits w = {.here = {.row = row}};
    const struct hv_lane *l = compute_of(t, row);
    int32_t after = hv_lane_next(l, s->start_s);
    if (after >= 0) {
        w.here.span = &l->spans[after];
        w.here.spare_s = fmax(0, w.here.span->start_s - s->end_s);
    }
    for (size_t k = 0; k < t->n_links; k++) {
        if (t->links[k].from_row == row && t->links[k].place == NULL) {
            look_ahead(t, &t->links[k], s, &w.other);
        }
    }
    return w;
}

const struct hv_gantt_end *hv_gantt_first_end(const struct hv_gantt_waits *w)
{
    if (w->here.span == NULL || w->other.span == NULL) {
        return w->here.span != NULL ? &w->here : w->other.span != NULL ? &w->other : NULL;
    }
    return w->other.spare_s < w->here.spare_s ? &w->other : &w->here;
}
