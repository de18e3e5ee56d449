/** Dispatch, printing and the pieces that several commands share. */
#include "ui/cli/cli.h"
#include "ui/cli/claim_text.h"
#include "ui/cli/goodput_text.h"
#include "ui/cli/stage_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "solver/base/file.h"
#include "solver/base/units.h"

typedef enum hv_status command_fn(struct hv_args *args, struct hv_err *err);

static command_fn *const functions[HV_CMD_N] = {
#define X(id, name) [HV_CMD_##id] = hv_cli_##name,
    HV_COMMAND_MAP(X)
#undef X
};

int hv_cli_fail(const struct hv_err *err)
{
    char buf[sizeof err->text + sizeof err->file + 64];
    if (err->text[0] != '\0') {
        struct hv_str text = {0};
        hv_cli_clean_lines(&text, hv_err_format(err, buf, sizeof buf));
        (void)fprintf(stderr, "hetviz: %s\n", hv_str_cstr(&text));
        hv_str_free(&text);
    }
    return hv_status_exit_code(err->status);
}

void hv_cli_clean_lines(struct hv_str *out, const char *text)
{
    for (size_t n = strcspn(text, "\n");; n = strcspn(text, "\n")) {
        hv_text_clean(out, text, n);
        text += n;
        if (*text == '\0') {
            return;
        }
        hv_str_addc(out, '\n');
        text++;
    }
}

int hv_cli_run(const struct hv_command *command, int argc, char **argv)
{
    struct hv_err err = {0};
    struct hv_args args = {0};
    enum hv_status st = hv_args_parse(&args, command, argc, (const char *const *)argv, &err);
    if (st == HV_OK && args.wants_help) {
        struct hv_str text = {0};
        hv_command_help(&text, command);
        st = hv_cli_print(&text, &err);
        hv_str_free(&text);
    } else if (st == HV_OK) {
        st = functions[command->id](&args, &err);
    }
    hv_args_free(&args);
    if (st == HV_OK) {
        return 0;
    }
    err.status = st;
    return hv_cli_fail(&err);
}

int hv_cli_columns(int otherwise)
{
    struct winsize w;
    bool told = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0;
    return told ? w.ws_col : otherwise;
}

enum hv_status hv_cli_print(const struct hv_str *text, struct hv_err *err)
{
    return hv_file_write("-", hv_str_cstr(text), text->n, err);
}

enum hv_status hv_cli_print_json(json_t *v, struct hv_err *err)
{
    struct hv_str text = {0};
    hv_json_write(&text, v, true);
    json_decref(v);
    enum hv_status st = hv_cli_print(&text, err);
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_write(const struct hv_args *args, const struct hv_str *text,
                            struct hv_err *err)
{
    return hv_file_write(hv_args_text(args, "out", "-"), hv_str_cstr(text), text->n, err);
}

enum hv_status hv_cli_judge(const struct hv_args *args, bool timeline, struct hv_judged *out,
                            struct hv_err *err)
{
    *out = (struct hv_judged){0};
    enum hv_status st = hv_plan_doc_read(
        &out->plan, args->positional[0], hv_args_text(args, "cluster", NULL),
        hv_args_text(args, "model", NULL), hv_args_text(args, "job", NULL), &out->inputs, err);
    if (st != HV_OK) {
        return st;
    }
    out->cost =
        hv_cost_new(out->inputs.cluster.cluster, out->inputs.model.model, &out->inputs.job.job);
    size_t n = out->plan.plan->n_jobs;
    out->jobs = hv_job_costs_new(&out->inputs, out->inputs.own, n);
    struct hv_eval_options o = {.timeline = timeline, .jobs = out->jobs};
    return hv_eval(out->cost, out->plan.plan, &o, &out->arena, &out->verdict, err);
}

void hv_judged_free(struct hv_judged *j)
{
    hv_job_costs_free(j->jobs, j->inputs.n_own);
    hv_cost_free(j->cost);
    hv_plan_doc_free(&j->plan);
    hv_inputs_free(&j->inputs);
    hv_arena_free(&j->arena);
    *j = (struct hv_judged){0};
}

void hv_cli_verdict_line(const struct hv_verdict *v, struct hv_str *out)
{
    const struct hv_metrics *m = &v->metrics;
    char it[HV_FMT_CAP], tok[HV_FMT_CAP], mfu[HV_FMT_CAP], bubble[HV_FMT_CAP], gap[HV_FMT_CAP];
    if (v->serving != NULL) {
        hv_str_addf(out, "serves %s tokens/s, first token after %s, then one every %s",
                    hv_fmt_count(tok, sizeof tok, m->tokens_per_s),
                    hv_fmt_seconds(it, sizeof it, v->serving->first_token_s),
                    hv_fmt_seconds(gap, sizeof gap, v->serving->next_token_s));
        return;
    }
    if (v->jobs != NULL) {
        hv_str_addf(out, "%zu jobs, %s tokens/s together", v->jobs->n,
                    hv_fmt_count(tok, sizeof tok, m->tokens_per_s));
        return;
    }
    hv_str_addf(out, "iteration %s, %s tokens/s, MFU %s, bubble %s, %s above the bound",
                hv_fmt_seconds(it, sizeof it, m->iteration_s),
                hv_fmt_count(tok, sizeof tok, m->tokens_per_s),
                hv_fmt_percent(mfu, sizeof mfu, m->mfu),
                hv_fmt_percent(bubble, sizeof bubble, m->bubble_frac),
                hv_fmt_percent(gap, sizeof gap, m->gap_frac));
}

static void add_figures(const struct hv_metrics *m, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    hv_str_addf(out, "iteration      %s%s\n", hv_fmt_seconds(buf, sizeof buf, m->iteration_s),
                m->exact ? "" : " (steady state, stale weights)");
    hv_str_addf(out, "tokens/s       %s\n", hv_fmt_count(buf, sizeof buf, m->tokens_per_s));
    hv_str_addf(out, "MFU            %s\n", hv_fmt_percent(buf, sizeof buf, m->mfu));
    hv_str_addf(out, "bubble         %s\n", hv_fmt_percent(buf, sizeof buf, m->bubble_frac));
    hv_str_addf(out, "lower bound    %s", hv_fmt_seconds(buf, sizeof buf, m->bound_s));
    hv_str_addf(out, " (gap %s)\n", hv_fmt_percent(buf, sizeof buf, m->gap_frac));
    hv_str_addf(out, "USD per Mtoken %s\n", hv_fmt_fixed(buf, sizeof buf, m->usd_per_mtoken, 3));
    hv_str_addf(out, "devices used   %zu\n", m->n_devices_used);
    if (!m->exact) {
        hv_str_addf(out, "staleness      %d updates\n", m->staleness);
    }
}

static void add_breakdown(const struct hv_metrics *m, struct hv_str *out)
{
    char s[HV_FMT_CAP], p[HV_FMT_CAP];
    const double rounding_frac = 1e-9; /* what sums of doubles leave is no loss */
    hv_str_adds(out, "\nwhere the time goes (average device)\n");
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        if (m->breakdown_s[i] > rounding_frac * m->iteration_s) {
            hv_str_addf(out, "  %-10s %10s %7s  %s\n", hv_breakdown_name((enum hv_breakdown)i),
                        hv_fmt_seconds(s, sizeof s, m->breakdown_s[i]),
                        hv_fmt_percent(p, sizeof p, m->breakdown_s[i] / m->iteration_s),
                        hv_breakdown_help((enum hv_breakdown)i));
        }
    }
}

/** What single requests see of it. */
static void add_queue(const struct hv_serving *s, struct hv_str *out)
{
    const struct hv_request_figures *q = &s->queue;
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    hv_str_addf(out, "arrivals       %s requests/s, %s of what it serves (Poisson, estimated)\n",
                hv_fmt_fixed(a, sizeof a, s->arrivals_per_s, 3),
                hv_fmt_percent(b, sizeof b, q->load_frac));
    if (q->n == 0) {
        hv_str_adds(out, "  wait         grows without end: they come faster than they go\n");
        return;
    }
    hv_str_addf(out, "  wait         %s in the mean, %s by formula, for one of %.0f slots\n",
                hv_fmt_seconds(a, sizeof a, q->mean_wait_s),
                hv_fmt_seconds(b, sizeof b, q->formula_wait_s), s->slots);
    if (q->no_room_frac > 0) {
        hv_str_addf(out, "  full caches  hold back %s of them, %s of the mean wait\n",
                    hv_fmt_percent(a, sizeof a, q->no_room_frac),
                    hv_fmt_seconds(b, sizeof b, q->room_wait_s));
    }
    hv_str_addf(out, "  first token  %s for half of them, %s for 99%%\n",
                hv_fmt_seconds(a, sizeof a, q->first_p50_s),
                hv_fmt_seconds(b, sizeof b, q->first_p99_s));
    hv_str_addf(out, "  request      %s for half of them, %s for 99%%\n",
                hv_fmt_seconds(a, sizeof a, q->whole_p50_s),
                hv_fmt_seconds(b, sizeof b, q->whole_p99_s));
}

/** Figures of a serving plan: what passes, how long a request takes, stage by stage. */
static void add_serving(const struct hv_plan *plan, const struct hv_verdict *v, struct hv_str *out)
{
    const struct hv_serving *s = v->serving;
    const struct hv_metrics *m = &v->metrics;
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], d[HV_FMT_CAP], e[HV_FMT_CAP];
    hv_str_addf(out, "tokens/s       %s (max flow of the placement %s)\n",
                hv_fmt_count(a, sizeof a, m->tokens_per_s),
                hv_fmt_count(b, sizeof b, s->max_tokens_per_s));
    hv_str_addf(out, "upper bound    %s: %s\n", hv_fmt_count(a, sizeof a, s->bound_tokens_per_s),
                s->bound_why);
    hv_str_addf(out, "requests/s     %s, %.0f in flight\n",
                hv_fmt_fixed(a, sizeof a, s->requests_per_s, 3), ceil(s->requests_in_flight));
    hv_str_addf(out, "first token    %s\n", hv_fmt_seconds(a, sizeof a, s->first_token_s));
    if (s->output_tokens > 0) {
        hv_str_addf(out, "next token     %s\n", hv_fmt_seconds(a, sizeof a, s->next_token_s));
        hv_str_addf(out, "request        %s, with %.0f tokens generated\n",
                    hv_fmt_seconds(a, sizeof a, s->request_s), s->output_tokens);
    }
    if (s->slots > 0) {
        add_queue(s, out);
    }
    hv_str_addf(out, "MFU            %s\n", hv_fmt_percent(a, sizeof a, m->mfu));
    hv_str_addf(out, "USD per Mtoken %s\n", hv_fmt_fixed(a, sizeof a, m->usd_per_mtoken, 3));
    hv_str_addf(out, "devices used   %zu\n", m->n_devices_used);
    hv_str_adds(out, "\nreplica/stage, device          tokens/s      of most   prompts      token"
                     "     cache        memory\n");
    for (size_t i = 0; i < s->n_stages; i++) {
        const struct hv_serve_stage *x = &s->stages[i];
        const struct hv_stage_memory *mem = &v->memory[i];
        struct hv_device_ref ref = hv_cluster_device(plan->cluster, mem->device);
        hv_str_addf(out, "  %2zu/%-2zu %-18.18s %12s %12s %9s %10s %9s", x->replica, x->stage,
                    ref.kind->name, hv_fmt_count(a, sizeof a, x->flow_tokens_per_s),
                    hv_fmt_count(b, sizeof b, x->capacity_tokens_per_s),
                    hv_fmt_seconds(c, sizeof c, x->prompt_s),
                    hv_fmt_seconds(d, sizeof d, x->token_s),
                    hv_fmt_bytes(e, sizeof e, x->cache_bytes));
        hv_str_addf(out, " %10s of %-9s%s\n", hv_fmt_bytes(a, sizeof a, mem->peak_bytes),
                    hv_fmt_bytes(b, sizeof b, mem->limit_bytes),
                    mem->peak_bytes > mem->limit_bytes ? " !" : "");
    }
}

/** Every job in a line, then what they are together. */
static void add_jobs(const struct hv_verdict *v, struct hv_str *out)
{
    const struct hv_jobs_verdict *j = v->jobs;
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], d[HV_FMT_CAP], e[HV_FMT_CAP];
    hv_str_addf(out, "%-16s %9s %9s %9s %9s %12s %7s %8s %8s\n", "job", "wait", "start", "end",
                "iteration", "tokens/s", "MFU", "devices", "USD");
    for (size_t i = 0; i < j->n; i++) {
        const struct hv_job_verdict *x = &j->items[i];
        const struct hv_metrics *m = &x->verdict.metrics;
        hv_str_addf(out, "%-16s %9s %9s", x->name, hv_fmt_seconds(a, sizeof a, x->wait_s),
                    hv_fmt_seconds(b, sizeof b, x->start_s));
        hv_str_addf(out, " %9s %9s %12s %7s",
                    isfinite(x->end_s) ? hv_fmt_seconds(a, sizeof a, x->end_s) : "–",
                    hv_fmt_seconds(b, sizeof b, m->iteration_s),
                    hv_fmt_count(c, sizeof c, m->tokens_per_s),
                    hv_fmt_percent(d, sizeof d, m->mfu));
        hv_str_addf(out, " %8zu %8s\n", m->n_devices_used, hv_fmt_fixed(e, sizeof e, x->usd, 2));
    }
    hv_str_addf(out, "\ntokens/s       %s, %s\n",
                hv_fmt_count(a, sizeof a, v->metrics.tokens_per_s),
                hv_known(j->makespan_s) ? "mean until the last job has ended"
                                        : "of all jobs that run without end");
    hv_str_addf(out, "USD per hour   %s\n", hv_fmt_fixed(a, sizeof a, v->metrics.usd_per_h, 2));
    hv_str_addf(out, "USD per Mtoken %s\n",
                hv_fmt_fixed(a, sizeof a, v->metrics.usd_per_mtoken, 3));
    hv_str_addf(out, "devices used   %zu\n", v->metrics.n_devices_used);
    hv_str_addf(out, "mean wait      %s\n", hv_fmt_seconds(a, sizeof a, j->mean_wait_s));
    if (hv_known(j->makespan_s)) {
        hv_str_addf(out, "mean completion %s, last end %s\n",
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
        add_figures(&v->metrics, out);
        if (v->stale_sync != NULL) {
            hv_str_adds(out, "sync           ");
            hv_eval_stale_sync_text(v->stale_sync, out);
            hv_str_addc(out, '\n');
        }
    }
    hv_cli_claim_text(&plan->claimed, out);
    if (v->n_stages > 0) {
        add_breakdown(&v->metrics, out);
        if (v->goodput.known) {
            hv_str_adds(out, "\nwith failures and preemptions\n");
            hv_cli_goodput_text(&v->goodput, v->metrics.tokens_per_s, out);
        }
        hv_cli_stage_table(plan, v, out);
    }
    for (size_t i = 0; i < v->n_rough; i++) {
        hv_str_addf(out, "%sapproximated: %s\n", i == 0 ? "\n" : "", v->rough[i]);
    }
    for (size_t i = 0; i < v->findings.n; i++) {
        const struct hv_violation *x = &v->findings.items[i];
        hv_str_addf(out, "%sviolation %s at %s: %s\n", i == 0 ? "\n" : "",
                    hv_violation_name(x->code), x->where, x->text);
    }
}
