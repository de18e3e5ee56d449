/** When the last backward pass of a stage has made the gradients of its blocks and ends: by the
 * milestones of the pass, since a head or an uneven layer takes time of its own. */
#include "solver/eval/exchange/exchange_int.h"

/** Times that differ by less than this share are equal. */
#define ROUNDING 1e-12

/** Seconds of the last backward from a milestone of its pass, counted from the end of the pass. */
static double before_end_s(const struct hv__holder *h, double before_s)
{
    const struct hv_pass *p = h->pass;
    double all_s = p->input_grad_s + p->weight_grad_s + p->recompute_s;
    return all_s > 0 ? h->duration_s * fmin(1, before_s / all_s) : 0;
}

static bool of_blocks(const struct hv_milestone *m)
{
    return m->range.to2 > m->range.from2;
}

/** The run of equal blocks that holds a place, from the last answer on downwards or upwards; −1:
 * the pass lists none. */
static int64_t run_at(struct hv__holder *h, double at2)
{
    const struct hv_pass *p = h->pass;
    int64_t n = (int64_t)p->n_milestones, best = -1;
    int64_t i = h->milestone < p->n_milestones ? (int64_t)h->milestone : n - 1;
    while (i + 1 < n && (!of_blocks(&p->milestones[i]) || p->milestones[i].range.to2 < at2)) {
        i++;
    }
    for (; i >= 0; i--) {
        best = of_blocks(&p->milestones[i]) ? i : best;
        if (of_blocks(&p->milestones[i]) && p->milestones[i].range.from2 <= at2) {
            break;
        }
    }
    h->milestone = best >= 0 ? (size_t)best : 0;
    return best;
}

/** A time of the pass as planned, with the delays of what comes before it. */
static struct hv__arrival delayed(const struct hv__holder *h, double planned_s)
{
    const struct hv__delays *d = h->delays;
    double by_s = 0;
    for (size_t i = d != NULL ? d->n : 0; i-- > 0;) {
        if (d->items[i].after_s < planned_s * (1 - ROUNDING)) {
            by_s = d->items[i].by_s;
            break;
        }
    }
    bool certain = d == NULL || !(d->known_until_s < planned_s * (1 - ROUNDING));
    return (struct hv__arrival){planned_s + by_s, by_s, certain};
}

struct hv__arrival hv__arrival(struct hv__holder *h, double at2)
{
    const struct hv_pass *p = h->pass;
    int64_t i = run_at(h, at2);
    if (i < 0) {
        double span = (double)(h->g->range.to2 - h->g->range.from2);
        double above = span > 0 ? (at2 - h->g->range.from2) / span : 0;
        return delayed(h, h->ready_s - h->duration_s * above);
    }
    const struct hv_milestone *m = &p->milestones[i];
    double all_s = p->input_grad_s + p->weight_grad_s + p->recompute_s;
    double above_s = (size_t)i + 1 < p->n_milestones ? m[1].before_end_s : all_s;
    double within = (at2 - m->range.from2) / (double)(m->range.to2 - m->range.from2);
    double before_s = m->before_end_s + (above_s - m->before_end_s) * fmin(1, fmax(0, within));
    return delayed(h, h->ready_s - before_end_s(h, before_s));
}

int hv__run_below(struct hv__holder *h, int end2)
{
    int64_t i = run_at(h, end2 - 0.5);
    return i >= 0 ? h->pass->milestones[i].range.from2 : h->g->range.from2;
}

struct hv__arrival hv__end_arrival(const struct hv__lowered *l, const struct hv__holder *h, int end)
{
    const struct hv_pass *p = h->pass;
    size_t leaf = hv__end_leaf(end);
    bool head = hv__end_is_head(end);
    int first2 = 2 * (int)l->leaves.items[leaf].first;
    int next2 = leaf + 1 < l->leaves.n ? 2 * (int)l->leaves.items[leaf + 1].first : INT32_MAX;
    const struct hv_milestone *mark = NULL; /* an embedding lies below its blocks, a head above */
    for (size_t i = 0; i < p->n_milestones; i++) {
        const struct hv_milestone *m = &p->milestones[i];
        if (of_blocks(m) && m->range.from2 >= (head ? next2 : first2)) {
            break;
        }
        bool below = head && of_blocks(m);
        bool same = !of_blocks(m) && (m->range.from2 == HV_MILESTONE_HEAD) == head;
        mark = below ? NULL : same && (!head || mark == NULL) ? m : mark;
    }
    if (mark == NULL) {
        return delayed(h, head ? h->ready_s - h->duration_s : h->ready_s);
    }
    return delayed(h, h->ready_s - before_end_s(h, mark->before_end_s));
}
