/*
 * A report of a plan for people who have no hetviz: Markdown, and one HTML page with the timeline
 * as an inline picture, which needs no other file and links to nothing. Both are made from one list
 * of chapters.
 */
#include <math.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/io/export/gantt.h"
#include "solver/io/export/target/inside.h"
#include "solver/io/own/plan/write.h"

#define PICTURE_WIDTH_PX 1200

/** A report in one of the two forms. */
struct report {
    struct hv__exporting *x;
    struct hv_str *out;
    bool html;
};

static void add_text(const struct report *r, const char *text)
{
    if (r->html) {
        hv__export_html(r->out, text);
        return;
    }
    struct hv_str clean = {0};
    hv_text_addf(&clean, "%s", text);
    for (const char *c = hv_str_cstr(&clean); *c != '\0'; c++) { /* no markup from names */
        hv_str_adds(r->out, strchr("|*_`<>[]#\\", *c) != NULL ? "\\" : "");
        hv_str_addc(r->out, *c);
    }
    hv_str_free(&clean);
}

static void heading(const struct report *r, int level, const char *text)
{
    if (r->html) {
        hv_str_addf(r->out, "<h%d>", level);
    } else {
        hv_str_addf(r->out, "%s%.*s ", level > 1 ? "\n" : "", level, "######");
    }
    add_text(r, text);
    if (r->html) {
        hv_str_addf(r->out, "</h%d>\n", level);
    } else {
        hv_str_adds(r->out, "\n\n");
    }
}

static void paragraph(const struct report *r, const char *text)
{
    hv_str_adds(r->out, r->html ? "<p>" : "");
    add_text(r, text);
    hv_str_adds(r->out, r->html ? "</p>\n" : "\n\n");
}

/** One row of a table; `head`: of its titles. */
static void row(const struct report *r, const char *const *cells, size_t n, bool head)
{
    hv_str_adds(r->out, r->html ? "<tr>" : "|");
    for (size_t i = 0; i < n; i++) {
        hv_str_adds(r->out, !r->html ? " " : head ? "<th>" : "<td>");
        add_text(r, cells[i]);
        hv_str_adds(r->out, !r->html ? " |" : head ? "</th>" : "</td>");
    }
    hv_str_adds(r->out, r->html ? "</tr>\n" : "\n");
    for (size_t i = 0; head && !r->html && i < n; i++) {
        hv_str_addf(r->out, "%s---%s", i == 0 ? "|" : "", i + 1 < n ? "|" : "|\n");
    }
}

static void table(const struct report *r, bool begins)
{
    hv_str_adds(r->out, !r->html ? (begins ? "" : "\n") : begins ? "<table>\n" : "</table>\n");
}

/* ---- chapters ---------------------------------------------------------------------------------
 */

static void add_figures(const struct report *r)
{
    const struct hv_verdict *v = r->x->s->verdict;
    const struct hv_metrics *m = &v->metrics;
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], d[HV_FMT_CAP];
    struct hv_str text = {0};
    if (!hv_known(m->iteration_s) || m->iteration_s <= 0) {
        return;
    }
    heading(r, 2, "Figures");
    hv_str_addf(
        &text, "One iteration takes %s: %s tokens/s, %s of the time of its devices is idle.",
        hv_fmt_seconds(a, sizeof a, m->iteration_s), hv_fmt_count(b, sizeof b, m->tokens_per_s),
        hv_fmt_percent(c, sizeof c, m->bubble_frac));
    if (v->bound_why != NULL && hv_known(m->bound_s) && m->bound_s > 0) {
        hv_str_addf(&text, " No plan%s takes less than %s.", v->bound_some ? " like this" : "",
                    hv_fmt_seconds(d, sizeof d, m->bound_s));
    }
    paragraph(r, hv_str_cstr(&text));
    hv_str_free(&text);
    table(r, true);
    row(r, (const char *const[]){"where the time goes", "seconds", "share"}, 3, true);
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        double part_s = m->breakdown_s[i];
        if (part_s > 0) {
            row(r,
                (const char *const[]){hv_breakdown_help((enum hv_breakdown)i),
                                      hv_fmt_seconds(a, sizeof a, part_s),
                                      hv_fmt_percent(b, sizeof b, part_s / m->iteration_s)},
                3, false);
        }
    }
    table(r, false);
}

static void add_layers(const struct hv_stage *s, struct hv_str *out)
{
    for (size_t i = 0; i < s->n_ranges; i++) {
        hv_str_addf(out, "%s%g-%g", i > 0 ? ", " : "", s->ranges[i].from2 / 2.0,
                    s->ranges[i].to2 / 2.0);
    }
}

static void add_stage_row(const struct report *r, size_t i, size_t k, size_t at)
{
    const struct hv_plan *p = r->x->s->plan;
    const struct hv_verdict *v = r->x->s->verdict;
    const struct hv_stage *s = &p->replicas[i].stages[k];
    struct hv_str name = {0}, devices = {0}, layers = {0}, degrees = {0}, again = {0}, memory = {0};
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP] = "";
    hv_str_addf(&name, "r%zu s%zu", i, k);
    hv_address_format(p->cluster, s->devices, s->n_devices, " ", &devices);
    add_layers(s, &layers);
    hv_str_addf(&degrees, "%d/%d/%d", s->tp.degree, s->cp.degree, s->dp);
    hv_recompute_format(s->n_recompute_per > 0 ? s->recompute_per[0] : s->recompute, &again);
    if (at < v->n_memory) {
        hv_str_addf(&memory, "%s of %s", hv_fmt_bytes(a, sizeof a, v->memory[at].peak_bytes),
                    hv_fmt_bytes(b, sizeof b, v->memory[at].limit_bytes));
    }
    if (at < v->n_stages) {
        hv_fmt_percent(c, sizeof c, v->stages[at].busy_frac);
    }
    row(r,
        (const char *const[]){hv_str_cstr(&name), hv_str_cstr(&devices), hv_str_cstr(&layers),
                              hv_str_cstr(&degrees), hv_str_cstr(&again), hv_str_cstr(&memory), c},
        7, false);
    hv_str_free(&name);
    hv_str_free(&devices);
    hv_str_free(&layers);
    hv_str_free(&degrees);
    hv_str_free(&again);
    hv_str_free(&memory);
}

static void add_stages(const struct report *r)
{
    const struct hv_plan *p = r->x->s->plan;
    struct hv_str text = {0};
    size_t at = 0;
    heading(r, 2, "Stages");
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *e = &p->replicas[i];
        hv_str_addf(&text, "%s%d pipeline%s of %zu stage%s with %lld micro-batches each",
                    i > 0 ? "; " : "", e->count, e->count == 1 ? "" : "s", e->n_stages,
                    e->n_stages == 1 ? "" : "s", (long long)e->micro_batches);
    }
    hv_str_addf(&text, "; schedule %s.", p->schedule.name);
    paragraph(r, hv_str_cstr(&text));
    hv_str_free(&text);
    table(r, true);
    row(r,
        (const char *const[]){"stage", "devices", "layers", "tp/cp/dp", "recompute",
                              "memory at peak", "busy"},
        7, true);
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            add_stage_row(r, i, k, at++);
        }
    }
    table(r, false);
}

static void add_jobs(const struct report *r)
{
    const struct hv_plan *p = r->x->s->plan;
    if (p->n_jobs == 0) {
        return;
    }
    heading(r, 2, "Jobs");
    table(r, true);
    row(r, (const char *const[]){"job", "stages"}, 2, true);
    for (size_t i = 0; i < p->n_jobs; i++) {
        char n[HV_FMT_CAP] = "";
        size_t stages = 0;
        for (size_t k = 0; k < p->jobs[i].plan->n_replicas; k++) {
            stages += p->jobs[i].plan->replicas[k].n_stages;
        }
        hv_fmt_count(n, sizeof n, (double)stages);
        row(r, (const char *const[]){p->jobs[i].name, n}, 2, false);
    }
    table(r, false);
}

/** Rule breaks, approximated knobs, and the targets that can say the plan. */
static void add_trust(const struct report *r)
{
    const struct hv_verdict *v = r->x->s->verdict;
    heading(r, 2, "What to trust");
    if (v->bound_why != NULL) {
        paragraph(r, v->bound_why);
    }
    for (size_t i = 0; i < v->findings.n; i++) {
        paragraph(r, v->findings.items[i].text);
    }
    for (size_t i = 0; i < v->n_approximated; i++) {
        paragraph(r, v->approximated[i]);
    }
    if (v->findings.n + v->n_approximated == 0) {
        paragraph(r, "The plan breaks no rule, and nothing of it is approximated.");
    }
    heading(r, 2, "Where it runs");
    table(r, true);
    row(r, (const char *const[]){"target", "can say it"}, 2, true);
    struct hv_arena a = {0};
    for (int t = HV_TARGET_ANY + 1; t < HV_TARGET_N; t++) {
        struct hv_unsaid *found = NULL;
        struct hv_str why = {0};
        if (hv_target_row((enum hv_target_id)t)->letter == 0) {
            continue;
        }
        if (hv_plan_unsaid(r->x->s->plan, (enum hv_target_id)t, &a, &found) > 0) {
            hv_str_adds(&why, "no: ");
            hv_unsaid_text(r->x->s->plan, &found[0], &why);
        }
        row(r,
            (const char *const[]){hv_target_row((enum hv_target_id)t)->title,
                                  why.n > 0 ? hv_str_cstr(&why) : "yes"},
            2, false);
        hv_str_free(&why);
    }
    hv_arena_free(&a);
    table(r, false);
}

static void add_picture(const struct report *r)
{
    const struct hv_timeline *t = r->x->s->verdict->timeline;
    if (t == NULL || !r->html) {
        return;
    }
    struct hv_str svg = {0};
    struct hv_gantt_text text = {.title = r->x->s->name != NULL ? r->x->s->name : "plan",
                                 .subtitle = r->x->s->plan->schedule.name};
    hv_gantt_svg(t, &text, PICTURE_WIDTH_PX, &svg);
    const char *start = strstr(hv_str_cstr(&svg), "<svg"); /* behind the XML declaration */
    heading(r, 2, "Timeline");
    hv_str_adds(r->out, start != NULL ? start : "");
    hv_str_free(&svg);
}

static void write_report(const struct report *r)
{
    const struct hv_export_source *s = r->x->s;
    struct hv_str text = {0};
    heading(r, 1, s->name != NULL ? s->name : "plan");
    hv_str_addf(&text, "%s on %s, %lld sequences of %lld tokens per iteration, %s.", s->model->name,
                s->plan->cluster->name, (long long)s->job->global_batch,
                (long long)s->job->sequence, hv_precision_name(s->job->precision));
    paragraph(r, hv_str_cstr(&text));
    hv_str_free(&text);
    add_figures(r);
    add_picture(r);
    if (s->plan->n_replicas > 0) {
        add_stages(r);
    }
    add_jobs(r);
    add_trust(r);
    paragraph(r, "Written by hetviz " HV_VERSION ".");
}

enum hv_status hv__export_report(struct hv__exporting *x)
{
    write_report(&(struct report){x, hv__export_file(x, "report.md"), false});
    struct hv_str *page = hv__export_file(x, "report.html");
    hv_str_adds(page, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>");
    hv__export_html(page, x->s->name != NULL ? x->s->name : "plan");
    hv_str_adds(page, "</title>\n<style>body{font:15px sans-serif;max-width:1240px;margin:2em auto;"
                      "padding:0 1em;color:#1a1a1a}table{border-collapse:collapse}td,th{border:1px "
                      "solid #ddd;padding:.3em .6em;text-align:left}svg{max-width:100%;height:auto}"
                      "</style></head><body>\n");
    write_report(&(struct report){x, page, true});
    hv_str_adds(page, "</body></html>\n");
    return HV_OK;
}
