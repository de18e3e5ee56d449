/** Texts of a verdict: names of the causes of time, description of stale synchronization,
 * approximated knobs. */
#include "solver/eval/verdict/verdict.h"

#include "solver/base/units.h"

#include <math.h>

static const char *const breakdown_names[HV_BREAKDOWN_N] = {
#define X(c, key, help) key,
    HV_BREAKDOWN_MAP(X)
#undef X
};

static const char *const breakdown_helps[HV_BREAKDOWN_N] = {
#define X(c, key, help) help,
    HV_BREAKDOWN_MAP(X)
#undef X
};

const char *hv_breakdown_name(enum hv_breakdown b)
{
    return breakdown_names[b];
}

const char *hv_breakdown_help(enum hv_breakdown b)
{
    return breakdown_helps[b];
}

void hv__add_approximated(struct hv_verdict *out, struct hv_arena *arena, const char *text)
{
    const char **items = hv_arena_new(arena, const char *, out->n_approximated + 1);
    for (size_t i = 0; i < out->n_approximated; i++) {
        items[i] = out->approximated[i];
    }
    items[out->n_approximated++] = text;
    out->approximated = items;
}

static void add_groups(const struct hv_stale_sync *a, struct hv_str *out)
{
    char x[HV_FMT_CAP], w[HV_FMT_CAP];
    if (a->kind == HV_SYNC_PARTIAL) {
        hv_str_addf(out, "%zu workers average in groups of %d in the order in which they are ready",
                    a->n_workers, a->group);
        if (a->clock_distance > 0) {
            hv_str_addf(out, ", no worker more than %d step%s ahead of the slowest",
                        a->clock_distance, a->clock_distance == 1 ? "" : "s");
        }
        if (a->mean_group < a->group) {
            hv_str_addf(out, "; a group waits a limited time, so its mean size is %.2f",
                        a->mean_group);
        }
    } else {
        hv_str_addf(out, "each of %zu workers averages with one other worker", a->n_workers);
    }
    hv_str_addf(out,
                "; an average takes %s, and a worker takes part in one every %s; the members are "
                "%.2f steps apart on average; the spectral gap is %.3f (rho %.3f: at 0 all models "
                "agree after one average, at 1 never)",
                hv_fmt_seconds(x, sizeof x, a->exchange_s), hv_fmt_seconds(w, sizeof w, a->wave_s),
                a->staleness_clocks, fmax(0, 1 - a->rho), a->rho);
}

void hv_eval_stale_sync_text(const struct hv_stale_sync *a, struct hv_str *out)
{
    char x[HV_FMT_CAP], w[HV_FMT_CAP];
    if (hv_known(a->rho)) {
        add_groups(a, out);
    } else {
        hv_str_addf(out, "%zu worker%s with waves of %s", a->n_workers,
                    a->n_workers == 1 ? "" : "s", hv_fmt_seconds(w, sizeof w, a->wave_s));
        if (a->kind == HV_SYNC_WSP || a->kind == HV_SYNC_PS) {
            hv_str_addf(out, ", no worker more than %d wave%s ahead of the slowest (%s)",
                        a->clock_distance + 1, a->clock_distance == 0 ? "" : "s",
                        hv_sync_kind_words[a->kind]);
        }
        if (a->exchange_s > 0) {
            hv_str_addf(out, "; exchanges take %s and overlap with the next wave",
                        hv_fmt_seconds(x, sizeof x, a->exchange_s));
        }
        if (a->own_staleness > 0) {
            hv_str_addf(out, "; %d micro-batch%s of a worker run without its own last updates",
                        a->own_staleness, a->own_staleness == 1 ? "" : "es");
        }
    }
    if (a->n_workers > 1) {
        hv_str_addf(out, "; workers wait for each other %s of the time",
                    hv_fmt_percent(x, sizeof x, a->wait_frac));
    }
}
