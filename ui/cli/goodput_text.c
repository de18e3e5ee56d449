/** What failures leave of a plan, as text. */
#include "ui/cli/goodput_text.h"

#include "solver/base/units.h"

void hv_cli_goodput_text(const struct hv_goodput *g, double tokens_per_s, struct hv_str *out)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    hv_str_addf(out, "  tokens/s         %s (%s of what it does without)\n",
                hv_fmt_count(a, sizeof a, g->tokens_per_s),
                hv_fmt_percent(b, sizeof b, g->tokens_per_s / tokens_per_s));
    hv_str_addf(out, "  USD per Mtoken   %s (spot prices of nodes that are preempted)\n",
                hv_fmt_fixed(a, sizeof a, g->usd_per_mtoken, 3));
    if (!(g->failures_per_h > 0)) {
        hv_str_addf(out, "  failures         none: no rate of its %zu nodes is above 0\n",
                    g->n_nodes);
        return;
    }
    hv_str_addf(out, "  a failure every  %s, of %zu nodes; each costs\n",
                hv_fmt_seconds(a, sizeof a, 3600 / g->failures_per_h), g->n_nodes);
    hv_str_addf(out, "    detection        %s\n", hv_fmt_seconds(a, sizeof a, g->detect_s));
    hv_str_addf(out, "    rollback         %s\n", hv_fmt_seconds(a, sizeof a, g->rollback_s));
    hv_str_addf(out, "    reinstantiation  %s%s\n", hv_fmt_seconds(a, sizeof a, g->restore_s),
                g->from == HV_RECOVER_PEERS
                    ? ", when a node goes and when it is back; states come from peers"
                    : "");
    if (g->from == HV_RECOVER_CHECKPOINT) {
        hv_str_addf(out, "  checkpoints      %s in %s",
                    hv_fmt_bytes(a, sizeof a, g->checkpoint_bytes),
                    hv_fmt_seconds(b, sizeof b, g->write_s));
        hv_str_addf(out, " every %s", hv_fmt_seconds(a, sizeof a, g->interval_s));
        if (g->interval_s != g->best_interval_s) {
            hv_str_addf(out, "; best every %s", hv_fmt_seconds(c, sizeof c, g->best_interval_s));
        }
        hv_str_adds(out, "\n");
    } else {
        hv_str_addf(out, "  nodes away       %s of the time\n",
                    hv_fmt_percent(a, sizeof a, g->away_frac));
    }
}
