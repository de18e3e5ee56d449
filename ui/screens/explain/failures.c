/** Throughput of a plan under failures, as rows of the Explain screen. */
#include "solver/base/units.h"
#include "ui/screens/explain/explain_int.h"

void hv_explain_failures(struct hv_explain_data *d)
{
    const struct hv_verdict *v = d->facts.verdict;
    const struct hv_goodput *g = &v->goodput;
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    if (!g->known) {
        return;
    }
    struct hv_explain_row *r = hv_explain_add(
        d, HV_ID_FAILURES, 0,
        hv_arena_printf(&d->arena, "With failures: %s tokens/s (%s), $%s per Mtoken",
                        hv_fmt_count(a, sizeof a, g->tokens_per_s),
                        hv_fmt_percent(b, sizeof b, g->tokens_per_s / v->metrics.tokens_per_s),
                        hv_fmt_fixed(c, sizeof c, g->usd_per_mtoken, 3)));
    r->folds = true;
    r->open = hv_explain_is_open(d, HV_ID_FAILURES);
    r->style = HV_STYLE_TITLE;
    if (!r->open) {
        return;
    }
    if (!(g->failures_per_h > 0)) {
        hv_explain_add(d, HV_ID_FAILURES + 2000000, 1, "no node fails or is preempted")->detail =
            "All rates of the cluster and of `failures` in the job are 0.";
        return;
    }
    const char *const lines[] = {
        hv_arena_printf(&d->arena, "one failure every %s on %zu nodes",
                        hv_fmt_seconds(a, sizeof a, 3600 / g->failures_per_h), g->n_nodes),
        hv_arena_printf(
            &d->arena, "each failure costs %s of detection, %s of rollback and %s of restart",
            hv_fmt_seconds(a, sizeof a, g->detect_s), hv_fmt_seconds(b, sizeof b, g->rollback_s),
            hv_fmt_seconds(c, sizeof c, g->restore_s)),
        g->from == HV_RECOVER_PEERS
            ? "states are fetched from peers; the other nodes continue"
            : hv_arena_printf(&d->arena, "a checkpoint takes %s, every %s of work (optimal: %s)",
                              hv_fmt_seconds(a, sizeof a, g->write_s),
                              hv_fmt_seconds(b, sizeof b, g->interval_s),
                              hv_fmt_seconds(c, sizeof c, g->best_interval_s)),
    };
    for (size_t i = 0; i < HV_COUNT(lines); i++) {
        hv_explain_add(d, HV_ID_FAILURES + 2000000 + i, 1, lines[i])->detail =
            "The preemption rates come from the cluster, the times from `failures` in the job. "
            "`hetviz failures` also plans for the remaining nodes.";
    }
}
