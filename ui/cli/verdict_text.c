/** A verdict as text: figures, breakdown, claim, failures, stages. The figures come from the
 * verdict; nothing is computed here. */
#include "ui/cli/verdict_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/plan/parts.h"

void hv_cli_verdict_line(const struct hv_verdict *v, struct hv_str *out)
{
    const struct hv_metrics *m = &v->metrics;
    char it[HV_FMT_CAP], tok[HV_FMT_CAP], mfu[HV_FMT_CAP], bubble[HV_FMT_CAP], gap[HV_FMT_CAP];
    if (v->serving != NULL) {
        hv_text_addf(out, "serves %s tokens/s, first token after %s, then one every %s",
                     hv_fmt_count(tok, sizeof tok, m->tokens_per_s),
                     hv_fmt_seconds(it, sizeof it, v->serving->first_token_s),
                     hv_fmt_seconds(gap, sizeof gap, v->serving->next_token_s));
        return;
    }
    if (v->jobs != NULL) {
        hv_text_addf(out, "%zu jobs, %s tokens/s together", v->jobs->n,
                     hv_fmt_count(tok, sizeof tok, m->tokens_per_s));
        return;
    }
    hv_text_addf(out, "iteration %s, %s tokens/s, MFU %s, bubble %s, %s above the bound",
                 hv_fmt_seconds(it, sizeof it, m->iteration_s),
                 hv_fmt_count(tok, sizeof tok, m->tokens_per_s),
                 hv_fmt_percent(mfu, sizeof mfu, m->mfu),
                 hv_fmt_percent(bubble, sizeof bubble, m->bubble_frac),
                 hv_fmt_percent(gap, sizeof gap, m->gap_frac));
}

/* ---- claims ---- */

/** Claims that deviate by less than this share are not commented on. */
#define CLOSE_FRAC 0.1

/** Whose claim the plan of a composition "a+b" has: that of a, for the plan that b changed. Nothing
 * for a plan of one strategy. */
static void add_claimant(const char *strategy, struct hv_str *out)
{
    const char *plus = strategy != NULL ? strchr(strategy, '+') : NULL;
    if (plus != NULL) {
        hv_str_adds(out, " (the formula of ");
        hv_text_clean(out, strategy, (size_t)(plus - strategy));
        hv_str_adds(out, " for the plan as changed by ");
        hv_text_clean(out, plus + 1, strlen(plus + 1));
        hv_str_adds(out, ")");
    }
}

/* The lines of a plan's claim: what the search left out or missed, the figure, its formula, and
 * what the formula leaves out. Nothing where nothing is claimed. */
static void add_claim(const struct hv_claim *c, const char *strategy, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    bool time = hv_known(c->iteration_s);

    for (size_t i = 0; i < c->n_warnings; i++) {
        hv_str_adds(out, "warning        ");
        hv_text_clean(out, c->warnings[i], strlen(c->warnings[i]));
        hv_str_addc(out, '\n');
    }
    if (!time && !hv_known(c->tokens_per_s)) {
        return;
    }
    hv_text_addf(out, "claimed        %s%s",
                 time ? hv_fmt_seconds(buf, sizeof buf, c->iteration_s)
                      : hv_fmt_count(buf, sizeof buf, c->tokens_per_s),
                 time ? "" : " tokens/s");
    if (c->formula != NULL) {
        hv_str_adds(out, " by ");
        hv_text_clean(out, c->formula, strlen(c->formula));
    }
    add_claimant(strategy, out);
    hv_str_addc(out, '\n');
    if (c->leaves_out != NULL) {
        hv_str_adds(out, "  leaves out   ");
        hv_text_clean(out, c->leaves_out, strlen(c->leaves_out));
        hv_str_addc(out, '\n');
    }
}

void hv_cli_claim_note(const char *strategy, const json_t *plan, struct hv_str *out)
{
    const json_t *claim = json_object_get(plan, "claimed");
    const char *words = json_string_value(json_object_get(claim, "leaves_out"));
    double said = json_number_value(json_object_get(claim, "iteration_s"));
    double is =
        json_number_value(json_object_get(json_object_get(plan, "simulated"), "iteration_s"));
    const json_t *warnings = json_object_get(claim, "warnings");
    char a[HV_FMT_CAP], b[HV_FMT_CAP];

    for (size_t i = 0; i < json_array_size(warnings); i++) {
        const char *text = json_string_value(json_array_get(warnings, i));
        hv_text_addf(out, "%s: ", strategy);
        hv_text_clean(out, text, strlen(text));
        hv_str_addc(out, '\n');
    }
    if (words == NULL || !(said > 0) || !(is > 0) || fabs(is / said - 1) <= CLOSE_FRAC) {
        return;
    }
    hv_text_addf(out, "%s claims %s", strategy, hv_fmt_seconds(a, sizeof a, said));
    add_claimant(strategy, out);
    hv_text_addf(out, " and the simulation gives %s: the formula leaves out ",
                 hv_fmt_seconds(b, sizeof b, is));
    hv_text_clean(out, words, strlen(words));
    hv_str_addc(out, '\n');
}

/* ---- failures ---- */

void hv_cli_goodput_text(const struct hv_goodput *g, double tokens_per_s, struct hv_str *out)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    hv_text_addf(out, "  tokens/s         %s (%s of the rate without failures)\n",
                 hv_fmt_count(a, sizeof a, g->tokens_per_s),
                 hv_fmt_percent(b, sizeof b, g->tokens_per_s / tokens_per_s));
    hv_text_addf(out, "  USD per Mtoken   %s (spot prices of nodes that are preempted)\n",
                 hv_fmt_fixed(a, sizeof a, g->usd_per_mtoken, 3));
    if (!(g->failures_per_h > 0)) {
        hv_text_addf(out, "  failures         none: the failure rates of all %zu nodes are 0\n",
                     g->n_nodes);
        return;
    }
    hv_text_addf(out, "  a failure every  %s on %zu nodes; each costs\n",
                 hv_fmt_seconds(a, sizeof a, 3600 / g->failures_per_h), g->n_nodes);
    hv_text_addf(out, "    detection        %s\n", hv_fmt_seconds(a, sizeof a, g->detect_s));
    hv_text_addf(out, "    rollback         %s\n", hv_fmt_seconds(a, sizeof a, g->rollback_s));
    hv_text_addf(out, "    reinstantiation  %s%s\n", hv_fmt_seconds(a, sizeof a, g->restore_s),
                 g->from == HV_RECOVER_PEERS
                     ? ", once per loss and once per return of a node; states come from peers"
                     : "");
    if (g->from == HV_RECOVER_CHECKPOINT) {
        hv_text_addf(out, "  checkpoints      %s in %s",
                     hv_fmt_bytes(a, sizeof a, g->checkpoint_bytes),
                     hv_fmt_seconds(b, sizeof b, g->write_s));
        hv_text_addf(out, " every %s", hv_fmt_seconds(a, sizeof a, g->interval_s));
        if (g->interval_s != g->best_interval_s) {
            hv_text_addf(out, "; optimal every %s",
                         hv_fmt_seconds(c, sizeof c, g->best_interval_s));
        }
        hv_str_adds(out, "\n");
    } else {
        hv_text_addf(out, "  nodes away       %s of the time\n",
                     hv_fmt_percent(a, sizeof a, g->away_frac));
    }
}

/* ---- stages: equal ones share a line, so that a hundred fit a screen ---- */

/* Parts with degrees of their own that a row names. */
#define PARTS 3

/* Tensor shards that a row names. */
#define SHARDS 8

/* Stages first … last of one replica with equal text. */
struct run {
    size_t replica, first, last;
    char text[160];
};

/* "tp8 dp2": the degrees above one of a stage or of a part of it. */
static void put_one_set(const struct hv_stage *s, struct hv_str *out)
{
    const struct {
        const char *name;
        int degree;
    } all[] = {{"tp", s->tp.degree},
               {"cp", s->cp.degree},
               {"dp", s->dp},
               {"ep", hv_stage_experts_over(s)}};
    size_t before = out->n;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].degree > 1) {
            hv_text_addf(out, "%s%s%d", out->n > before ? " " : "", all[i].name, all[i].degree);
        }
    }
    if (out->n == before) {
        hv_str_addc(out, '-');
    }
}

/* The degrees of a stage, where all its layers have the same. */
static void put_degrees(const struct hv_stage *s, struct hv_str *out)
{
    int end2 = s->n_ranges > 0 ? hv_stage_part_end(s, s->ranges[0].from2, s->ranges[0].to2) : 0;
    bool one = s->n_degrees == 0 || (s->n_ranges == 1 && end2 == s->ranges[0].to2);
    if (one && s->n_ranges > 0) {
        struct hv_range range = s->ranges[0];
        const struct hv_stage part = hv_stage_part(s, &range);
        put_one_set(&part, out);
    } else if (one) {
        put_one_set(s, out);
    } else {
        hv_str_adds(out, "by layer");
    }
}

/* ", layers 0-11 dp16, 12-23 tp8 dp2" where layers have degrees of their own; of many the first. */
static void put_parts(const struct hv_stage *s, struct hv_str *out)
{
    int n = 0;
    for (size_t c = 0; c < s->n_ranges && s->n_degrees > 0; c++) {
        int to2 = s->ranges[c].to2;
        for (int at2 = s->ranges[c].from2; at2 < to2 && n <= PARTS; n++) {
            struct hv_range range = {at2, hv_stage_part_end(s, at2, to2)};
            const struct hv_stage part = hv_stage_part(s, &range);
            if (n == PARTS) {
                hv_str_adds(out, ", ...");
            } else {
                hv_text_addf(out, ", %s%d-%d ", n == 0 ? "layers " : "", range.from2 / 2,
                             (range.to2 - 1) / 2);
                put_one_set(&part, out);
            }
            at2 = range.to2;
        }
    }
}

/* ", shards 5:4:7" where tensor parallelism cuts unevenly; of many the first. */
static void put_shards(const struct hv_tp *tp, struct hv_str *out)
{
    for (int t = 0; tp->shares != NULL && t < tp->degree && t < SHARDS; t++) {
        hv_text_addf(out, "%s%d", t == 0 ? ", shards " : ":", tp->shares[t]);
    }
    if (tp->shares != NULL && tp->degree > SHARDS) {
        hv_str_adds(out, ":...");
    }
}

/* "8 A100-SXM-80GB", or "8 of 2 kinds" where they differ. */
static void put_devices(const struct hv_plan *plan, const struct hv_replica *r,
                        const struct hv_stage *s, struct hv_str *out)
{
    size_t n_kinds = 0;
    const struct hv_device_kind *kinds[8];
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct hv_device_kind *kind = hv_cluster_device(plan->cluster, s->devices[i]).kind;
        size_t k = 0;
        while (k < n_kinds && kinds[k] != kind) {
            k++;
        }
        if (k == n_kinds && n_kinds < sizeof kinds / sizeof *kinds) {
            kinds[n_kinds++] = kind;
        }
    }
    size_t each = s->n_devices / (size_t)(r->count > 0 ? r->count : 1);
    if (n_kinds == 1) {
        hv_text_addf(out, "%zu %s", each, kinds[0]->name);
    } else {
        hv_text_addf(out, "%zu of %zu kinds", each, n_kinds);
    }
}

/* Number of blocks; a stage without any holds an end of the model. */
static void put_blocks(const struct hv_stage *s, size_t stage, struct hv_str *out)
{
    int halves = 0;
    for (size_t i = 0; i < s->n_ranges; i++) {
        halves += s->ranges[i].to2 - s->ranges[i].from2;
    }
    if (halves > 0) {
        hv_text_addf(out, "%g", halves / 2.0);
    } else {
        hv_str_adds(out, stage == 0 ? "embed" : "head");
    }
}

static void put_row(const struct hv_plan *plan, const struct hv_verdict *v, size_t i,
                    struct run *row)
{
    const struct hv_stage_memory *mem = &v->memory[i];
    const struct hv_stage_metrics *m = &v->stages[i];
    const struct hv_replica *r = &plan->replicas[mem->replica];
    const struct hv_stage *s = &r->stages[mem->stage];
    char f[HV_FMT_CAP], b[HV_FMT_CAP], busy[HV_FMT_CAP], peak[HV_FMT_CAP], limit[HV_FMT_CAP];
    struct hv_str devices = {0}, blocks = {0}, degrees = {0}, shards = {0};
    put_shards(&s->tp, &shards);
    put_parts(s, &shards);
    put_devices(plan, r, s, &devices);
    put_degrees(s, &degrees);
    put_blocks(s, mem->stage, &blocks);
    (void)snprintf(row->text, sizeof row->text, "%-18.18s %6s %-11.11s %8s %8s %6s  %s of %s%s%s",
                   hv_str_cstr(&devices), hv_str_cstr(&blocks), hv_str_cstr(&degrees),
                   hv_fmt_seconds(f, sizeof f, m->forward_s),
                   hv_fmt_seconds(b, sizeof b, m->backward_s),
                   hv_fmt_percent(busy, sizeof busy, m->busy_frac),
                   hv_fmt_bytes(peak, sizeof peak, mem->peak_bytes),
                   hv_fmt_bytes(limit, sizeof limit, mem->limit_bytes),
                   mem->peak_bytes > mem->limit_bytes ? " !" : "", hv_str_cstr(&shards));
    row->replica = mem->replica;
    row->first = row->last = mem->stage;
    hv_str_free(&devices);
    hv_str_free(&blocks);
    hv_str_free(&degrees);
    hv_str_free(&shards);
}

/* The runs of every replica, in order; returns their number. */
static size_t collect(const struct hv_plan *plan, const struct hv_verdict *v, struct run *runs)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n_stages; i++) {
        struct run *row = &runs[n];
        put_row(plan, v, i, row);
        if (n > 0 && row[-1].replica == row->replica && row[-1].last + 1 == row->first &&
            strcmp(row[-1].text, row->text) == 0) {
            row[-1].last = row->first;
        } else {
            n++;
        }
    }
    return n;
}

static size_t end_of_replica(const struct run *runs, size_t n, size_t from)
{
    size_t end = from;
    while (end < n && runs[end].replica == runs[from].replica) {
        end++;
    }
    return end;
}

static bool same_stages(const struct run *a, const struct run *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (a[i].first != b[i].first || a[i].last != b[i].last ||
            strcmp(a[i].text, b[i].text) != 0) {
            return false;
        }
    }
    return true;
}

static void put_span(size_t first, size_t last, struct hv_str *out)
{
    hv_text_addf(out, "%zu", first);
    if (last > first) {
        hv_text_addf(out, "-%zu", last);
    }
}

static void add_stage_table(const struct hv_plan *plan, const struct hv_verdict *v,
                            struct hv_str *out)
{
    hv_str_adds(out, "\nreplica/stage, devices     blocks degrees      forward backward   busy"
                     "  worst memory\n");
    struct run *runs = hv_xcalloc(v->n_stages, sizeof *runs);
    size_t n = collect(plan, v, runs);
    for (size_t from = 0; from < n;) {
        size_t end = end_of_replica(runs, n, from), next = end, last = runs[from].replica;
        while (next < n) {
            size_t stop = end_of_replica(runs, n, next);
            if (stop - next != end - from || !same_stages(&runs[from], &runs[next], end - from)) {
                break;
            }
            last = runs[next].replica;
            next = stop;
        }
        for (size_t i = from; i < end; i++) {
            struct hv_str id = {0};
            put_span(runs[i].replica, last, &id);
            hv_str_addc(&id, '/');
            put_span(runs[i].first, runs[i].last, &id);
            hv_text_addf(out, "  %-10s %s\n", hv_str_cstr(&id), runs[i].text);
            hv_str_free(&id);
        }
        from = next;
    }
    free(runs);
}

/* ---- the whole ---- */

/** Where the time of a real iteration is in four cases of five. */
static void add_band(const struct hv_band *b, struct hv_str *out)
{
    char low[HV_FMT_CAP], high[HV_FMT_CAP];
    if (b->cover > 0) {
        hv_text_addf(out, "band           %s to %s holds a real iteration in %.0f%% of all cases\n",
                     hv_fmt_seconds(low, sizeof low, b->low_s),
                     hv_fmt_seconds(high, sizeof high, b->high_s), 100 * b->cover);
    }
}

static void add_figures(const struct hv_verdict *v, struct hv_str *out)
{
    const struct hv_metrics *m = &v->metrics;
    const struct hv_runtime_row *r = hv_runtime_row(v->runtime);
    char buf[HV_FMT_CAP];
    if (v->runtime != HV_RUNTIME_HETVIZ) {
        hv_text_addf(out, "runtime        %s: %s; %s\n", hv_runtime_name(v->runtime),
                     hv_runtime_sends_text(r->sends), hv_runtime_reduction_text(r->reduction));
    }
    hv_text_addf(out, "iteration      %s%s\n", hv_fmt_seconds(buf, sizeof buf, m->iteration_s),
                 m->exact ? "" : " (steady state, stale weights)");
    add_band(&m->band, out);
    hv_text_addf(out, "tokens/s       %s\n", hv_fmt_count(buf, sizeof buf, m->tokens_per_s));
    hv_text_addf(out, "MFU            %s\n", hv_fmt_percent(buf, sizeof buf, m->mfu));
    hv_text_addf(out, "bubble         %s\n", hv_fmt_percent(buf, sizeof buf, m->bubble_frac));
    hv_text_addf(out, "lower bound    %s", hv_fmt_seconds(buf, sizeof buf, m->bound_s));
    hv_text_addf(out, " (gap %s)\n", hv_fmt_percent(buf, sizeof buf, m->gap_frac));
    hv_text_addf(out, "USD per Mtoken %s\n", hv_fmt_fixed(buf, sizeof buf, m->usd_per_mtoken, 3));
    hv_text_addf(out, "devices used   %zu\n", m->n_devices_used);
    if (!m->exact) {
        hv_text_addf(out, "staleness      %d updates\n", m->staleness);
    }
}

static void add_breakdown(const struct hv_metrics *m, struct hv_str *out)
{
    char s[HV_FMT_CAP], p[HV_FMT_CAP];
    const double rounding_frac = 1e-9; /* rounding of double sums is no loss */
    hv_str_adds(out, "\nparts of the iteration time (mean over devices)\n");
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        if (m->breakdown_s[i] > rounding_frac * m->iteration_s) {
            hv_text_addf(out, "  %-10s %10s %7s  %s\n", hv_breakdown_name((enum hv_breakdown)i),
                         hv_fmt_seconds(s, sizeof s, m->breakdown_s[i]),
                         hv_fmt_percent(p, sizeof p, m->breakdown_s[i] / m->iteration_s),
                         hv_breakdown_help((enum hv_breakdown)i));
        }
    }
}

/** Arrivals, waiting times and latencies of single requests. */
static void add_queue(const struct hv_serving *s, struct hv_str *out)
{
    const struct hv_request_figures *q = &s->queue;
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    hv_text_addf(out, "arrivals       %s requests/s, %s of the capacity (Poisson, estimated)\n",
                 hv_fmt_fixed(a, sizeof a, s->arrivals_per_s, 3),
                 hv_fmt_percent(b, sizeof b, q->load_frac));
    if (q->n == 0) {
        hv_str_adds(out, "  wait         unbounded: requests arrive faster than they are served\n");
        return;
    }
    hv_text_addf(out, "  wait         mean %s, %s by the queueing formula, for one of %.0f slots\n",
                 hv_fmt_seconds(a, sizeof a, q->mean_wait_s),
                 hv_fmt_seconds(b, sizeof b, q->formula_wait_s), s->slots);
    if (q->no_room_frac > 0) {
        hv_text_addf(out, "  full caches  delay %s of the requests, %s of the mean wait\n",
                     hv_fmt_percent(a, sizeof a, q->no_room_frac),
                     hv_fmt_seconds(b, sizeof b, q->room_wait_s));
    }
    hv_text_addf(out, "  first token  median %s, 99th percentile %s\n",
                 hv_fmt_seconds(a, sizeof a, q->first_p50_s),
                 hv_fmt_seconds(b, sizeof b, q->first_p99_s));
    hv_text_addf(out, "  request      median %s, 99th percentile %s\n",
                 hv_fmt_seconds(a, sizeof a, q->whole_p50_s),
                 hv_fmt_seconds(b, sizeof b, q->whole_p99_s));
}

/** Figures of a serving plan: throughput, latency, and a line per stage. */
static void add_serving(const struct hv_plan *plan, const struct hv_verdict *v, struct hv_str *out)
{
    const struct hv_serving *s = v->serving;
    const struct hv_metrics *m = &v->metrics;
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], d[HV_FMT_CAP], e[HV_FMT_CAP];
    hv_text_addf(out, "tokens/s       %s (max flow of the placement %s)\n",
                 hv_fmt_count(a, sizeof a, m->tokens_per_s),
                 hv_fmt_count(b, sizeof b, s->max_tokens_per_s));
    hv_text_addf(out, "upper bound    %s: %s\n", hv_fmt_count(a, sizeof a, s->bound_tokens_per_s),
                 s->bound_why);
    hv_text_addf(out, "requests/s     %s, %.0f in flight\n",
                 hv_fmt_fixed(a, sizeof a, s->requests_per_s, 3), ceil(s->requests_in_flight));
    hv_text_addf(out, "first token    %s\n", hv_fmt_seconds(a, sizeof a, s->first_token_s));
    if (s->output_tokens > 0) {
        hv_text_addf(out, "next token     %s\n", hv_fmt_seconds(a, sizeof a, s->next_token_s));
        hv_text_addf(out, "request        %s, with %.0f tokens generated\n",
                     hv_fmt_seconds(a, sizeof a, s->request_s), s->output_tokens);
    }
    if (s->slots > 0) {
        add_queue(s, out);
    }
    hv_text_addf(out, "MFU            %s\n", hv_fmt_percent(a, sizeof a, m->mfu));
    hv_text_addf(out, "USD per Mtoken %s\n", hv_fmt_fixed(a, sizeof a, m->usd_per_mtoken, 3));
    hv_text_addf(out, "devices used   %zu\n", m->n_devices_used);
    hv_str_adds(out, "\nreplica/stage, device          tokens/s      of most   prompts      token"
                     "     cache        memory\n");
    for (size_t i = 0; i < s->n_stages; i++) {
        const struct hv_serve_stage *x = &s->stages[i];
        const struct hv_stage_memory *mem = &v->memory[i];
        struct hv_device_ref ref = hv_cluster_device(plan->cluster, mem->device);
        hv_text_addf(out, "  %2zu/%-2zu %-18.18s %12s %12s %9s %10s %9s", x->replica, x->stage,
                     ref.kind->name, hv_fmt_count(a, sizeof a, x->flow_tokens_per_s),
                     hv_fmt_count(b, sizeof b, x->capacity_tokens_per_s),
                     hv_fmt_seconds(c, sizeof c, x->prompt_s),
                     hv_fmt_seconds(d, sizeof d, x->token_s),
                     hv_fmt_bytes(e, sizeof e, x->cache_bytes));
        hv_text_addf(out, " %10s of %-9s%s\n", hv_fmt_bytes(a, sizeof a, mem->peak_bytes),
                     hv_fmt_bytes(b, sizeof b, mem->limit_bytes),
                     mem->peak_bytes > mem->limit_bytes ? " !" : "");
    }
}

/** One line per job, then the totals. */
static void add_jobs(const struct hv_verdict *v, struct hv_str *out)
{
    const struct hv_jobs_verdict *j = v->jobs;
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], d[HV_FMT_CAP], e[HV_FMT_CAP];
    hv_text_addf(out, "%-16s %9s %9s %9s %9s %12s %7s %8s %8s\n", "job", "wait", "start", "end",
                 "iteration", "tokens/s", "MFU", "devices", "USD");
    for (size_t i = 0; i < j->n; i++) {
        const struct hv_job_verdict *x = &j->items[i];
        const struct hv_metrics *m = &x->verdict.metrics;
        hv_text_addf(out, "%-16s %9s %9s", x->name, hv_fmt_seconds(a, sizeof a, x->wait_s),
                     hv_fmt_seconds(b, sizeof b, x->start_s));
        hv_text_addf(out, " %9s %9s %12s %7s",
                     isfinite(x->end_s) ? hv_fmt_seconds(a, sizeof a, x->end_s) : "–",
                     hv_fmt_seconds(b, sizeof b, m->iteration_s),
                     hv_fmt_count(c, sizeof c, m->tokens_per_s),
                     hv_fmt_percent(d, sizeof d, m->mfu));
        hv_text_addf(out, " %8zu %8s\n", m->n_devices_used, hv_fmt_fixed(e, sizeof e, x->usd, 2));
    }
    hv_text_addf(out, "\ntokens/s       %s, %s\n",
                 hv_fmt_count(a, sizeof a, v->metrics.tokens_per_s),
                 hv_known(j->makespan_s) ? "mean over the makespan"
                                         : "sum of all jobs, which run indefinitely");
    hv_text_addf(out, "USD per hour   %s\n", hv_fmt_fixed(a, sizeof a, v->metrics.usd_per_h, 2));
    hv_text_addf(out, "USD per Mtoken %s\n",
                 hv_fmt_fixed(a, sizeof a, v->metrics.usd_per_mtoken, 3));
    hv_text_addf(out, "devices used   %zu\n", v->metrics.n_devices_used);
    hv_text_addf(out, "mean wait      %s\n", hv_fmt_seconds(a, sizeof a, j->mean_wait_s));
    if (hv_known(j->makespan_s)) {
        hv_text_addf(out, "mean completion %s, last end %s\n",
                     hv_fmt_seconds(a, sizeof a, j->mean_completion_s),
                     hv_fmt_seconds(b, sizeof b, j->makespan_s));
    }
}

void hv_cli_verdict_text(const struct hv_plan *plan, const struct hv_verdict *v, struct hv_str *out)
{
    if (v->serving != NULL) {
        add_serving(plan, v, out);
    } else if (v->jobs != NULL) {
        add_jobs(v, out);
    } else {
        add_figures(v, out);
        if (v->stale_sync != NULL) {
            hv_str_adds(out, "sync           ");
            hv_eval_stale_sync_text(v->stale_sync, out);
            hv_str_addc(out, '\n');
        }
    }
    add_claim(&plan->claimed, plan->strategy, out);
    if (v->n_stages > 0) {
        add_breakdown(&v->metrics, out);
        if (v->goodput.known) {
            hv_str_adds(out, "\nwith failures and preemptions\n");
            hv_cli_goodput_text(&v->goodput, v->metrics.tokens_per_s, out);
        }
        add_stage_table(plan, v, out);
    }
    for (size_t i = 0; i < v->n_approximated; i++) {
        hv_str_adds(out, i == 0 ? "\n" : "");
        hv_text_addf(out, "approximated: %s\n", v->approximated[i]);
    }
    for (size_t i = 0; i < v->findings.n; i++) {
        const struct hv_violation *x = &v->findings.items[i];
        hv_str_adds(out, i == 0 ? "\n" : "");
        hv_text_addf(out, "violation %s at %s: %s\n", hv_violation_name(x->code), x->where,
                     x->text);
    }
}

/** Appends "1.54 s (+4.8%)". */
static void add_stressed(double s, double before_s, struct hv_str *out)
{
    char t[HV_FMT_CAP];
    hv_text_addf(out, "%s (%+.1f%%)\n", hv_fmt_seconds(t, sizeof t, s), 100 * (s / before_s - 1));
}

void hv_cli_stress_text(const struct hv_plan *plan, const struct hv_verdict *v,
                        const struct hv_stress *s, struct hv_str *out)
{
    double before_s = v->metrics.iteration_s;
    char full[HV_FMT_CAP], left[HV_FMT_CAP];
    const struct hv_stage_memory *m = &v->memory[s->fullest];
    struct hv_device_ref d = hv_cluster_device(plan->cluster, m->device);
    hv_str_adds(out, "\nwhere a run turns out worse\n");
    hv_str_adds(out, "  exchange 2x slower   ");
    add_stressed(s->exchange_s, before_s, out);
    hv_text_addf(out, "  memory 10%% larger    %s: stage %zu of replica %zu fills %s of its %s\n",
                 s->memory_frac > 1 ? "does not fit any more" : "fits", m->stage, m->replica,
                 hv_fmt_percent(full, sizeof full, s->memory_frac), d.kind->name);
    hv_text_addf(out, "  a node 5%% slower     ");
    add_stressed(s->node_s, before_s, out);
    if (hv_stress_is_robust(s)) {
        hv_text_addf(out, "  robust: it loses at most %s in each of the three\n",
                     hv_fmt_percent(left, sizeof left, s->worst_frac));
    } else {
        hv_text_addf(out, "  not robust: worst with %s\n", hv_stress_worst_name(s));
    }
}
