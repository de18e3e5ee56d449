/** The critical path of a timeline in words. Draws nothing. */
#include <string.h>

#include "solver/base/units.h"
#include "ui/view/gantt/timeline.h"

/* Holders that are named; the others are added up. Shares below this are not worth a name. */
enum { NAMED = 4 };
#define NAMED_FRAC 0.001

static bool has_replicas(const struct hv_timeline *t)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        if (t->rows[i].replica > 0) {
            return true;
        }
    }
    return false;
}

/* Time held by a row, or by transfers: the one behind the rows. */
static double held_s(const struct hv_timeline *t, size_t i)
{
    return i < t->n_rows ? t->path.row_s[i] : t->path.links_s;
}

/* The holder after `before` in the order of time held, the longest first, of equals the first row.
 */
static size_t next_holder(const struct hv_timeline *t, size_t before)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i <= t->n_rows; i++) {
        bool later = before == SIZE_MAX || held_s(t, i) < held_s(t, before) ||
                     (!(held_s(t, i) > held_s(t, before)) && i > before);
        if (later && (best == SIZE_MAX || held_s(t, i) > held_s(t, best))) {
            best = i;
        }
    }
    return best;
}

static void add_name(const struct hv_timeline *t, size_t i, struct hv_str *out)
{
    if (i == t->n_rows) {
        hv_str_adds(out, "transfers");
    } else if (has_replicas(t)) {
        hv_str_addf(out, "r%zu s%zu", t->rows[i].replica, t->rows[i].stage);
    } else {
        hv_str_addf(out, "s%zu", t->rows[i].stage);
    }
}

void hv_gantt_path_text(const struct hv_timeline *t, struct hv_str *out)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    if (t->path.lanes.n == 0) {
        return;
    }
    size_t n = 0;
    double rest_s = t->end_s;
    for (size_t i = next_holder(t, SIZE_MAX); i != SIZE_MAX && n < NAMED; i = next_holder(t, i)) {
        if (!(held_s(t, i) > NAMED_FRAC * t->end_s)) {
            break;
        }
        hv_str_adds(out, n > 0 ? ", " : "");
        add_name(t, i, out);
        hv_fmt_seconds(a, sizeof a, held_s(t, i));
        if (n == 0) {
            hv_str_addf(out, " %s %s of %s", i == t->n_rows ? "hold" : "holds", a,
                        hv_fmt_seconds(b, sizeof b, t->end_s));
        } else {
            hv_str_addf(out, " %s", a);
        }
        rest_s -= held_s(t, i);
        n++;
    }
    if (rest_s > NAMED_FRAC * t->end_s) {
        hv_str_addf(out, ", others %s", hv_fmt_seconds(a, sizeof a, rest_s));
    }
}
