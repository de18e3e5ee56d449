/* Words about the hops of a ring; the figures are those of the timeline. */
#include "solver/eval/timeline/ring_text.h"

#include <math.h>

#include "solver/base/units.h"

/* Hops that hide all but this share of the ring are called hidden: rounding of sums. */
#define HIDDEN_FRAC 1e-9

const struct hv_timeline_ring *hv_timeline_ring_most(const struct hv_timeline_row *row,
                                                     enum hv_timeline_ring_pass pass, int chunk)
{
    const struct hv_timeline_ring *best = NULL;
    double most_s = 0;
    for (size_t i = 0; i < row->n_rings; i++) {
        const struct hv_timeline_ring *x = &row->rings[i];
        bool asked = pass == HV_RING_ANY || (pass == HV_RING_BACKWARD) == x->ring->backward;
        double exposed_s = hv_timeline_ring_exposed_s(x);
        if (asked && (chunk < 0 || (size_t)chunk == x->chunk) &&
            (best == NULL || exposed_s > most_s)) {
            best = x;
            most_s = exposed_s;
        }
    }
    return best;
}

/** The step that waited longest for its hop; n where what follows the last step takes longer. */
static size_t longest_wait(const struct hv_why_ring *r)
{
    size_t best = r->n;
    double most_s = r->after_s;
    for (size_t i = 0; i < r->n; i++) {
        if (r->steps[i].waited_s > most_s) {
            best = i;
            most_s = r->steps[i].waited_s;
        }
    }
    return best;
}

static void add_hidden(const struct hv_why_ring *r, struct hv_str *out)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    double hop_s = 0, work_s = 0;
    for (size_t i = 0; i < r->n; i++) {
        hop_s = fmax(hop_s, r->steps[i].hop_to_s - r->steps[i].hop_from_s);
        work_s = fmax(work_s, r->steps[i].done_s - r->steps[i].work_s);
    }
    hv_str_addf(out, "%s ring of %zu: all hops hidden, up to %s beside steps of %s (%s)",
                r->backward ? "backward" : "forward", r->n, hv_fmt_seconds(a, sizeof a, hop_s),
                hv_fmt_seconds(b, sizeof b, work_s), r->what);
}

void hv_timeline_ring_text(const struct hv_timeline_ring *x, struct hv_str *out)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    const struct hv_why_ring *r = x->ring;
    double all_s = hv_timeline_ring_exposed_s(x);
    size_t at = longest_wait(r);
    if (r->n == 0 || !(all_s > HIDDEN_FRAC * x->times * r->steps[r->n - 1].done_s)) {
        add_hidden(r, out);
        return;
    }
    double waited_s = at < r->n ? r->steps[at].waited_s : r->after_s;
    hv_str_addf(out, "%s ring of %zu: ", r->backward ? "backward" : "forward", r->n);
    if (at < r->n) {
        hv_str_addf(out, "hop %zu of %zu%s", at, r->n - 1,
                    r->steps[at].outer ? ", between rings," : "");
    } else {
        hv_str_adds(out, "return of sums");
    }
    hv_str_addf(out, " not hidden, %s a layer, %s a pass", hv_fmt_seconds(a, sizeof a, waited_s),
                hv_fmt_seconds(b, sizeof b, waited_s * x->times));
    hv_str_addf(out, " (%s; all hops %s)", r->what, hv_fmt_seconds(c, sizeof c, all_s));
}

void hv_timeline_ring_step_text(const struct hv_timeline_ring *x, size_t step, struct hv_str *out)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], d[HV_FMT_CAP], e[HV_FMT_CAP];
    const struct hv_why_step *s = &x->ring->steps[step];
    hv_str_addf(out, "step %zu  work %s to %s", step, hv_fmt_seconds(a, sizeof a, s->work_s),
                hv_fmt_seconds(b, sizeof b, s->done_s));
    if (s->hop_to_s > 0) {
        hv_str_addf(out, "  %s %s to %s", s->outer ? "hop between rings" : "hop",
                    hv_fmt_seconds(c, sizeof c, s->hop_from_s),
                    hv_fmt_seconds(d, sizeof d, s->hop_to_s));
    }
    if (s->waited_s > 0) {
        hv_str_addf(out, "  waited %s", hv_fmt_seconds(e, sizeof e, s->waited_s));
    }
}
