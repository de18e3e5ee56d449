/** Breakdown of time and memory of a plan, as lines of a panel. Stateless. */
#include "ui/screens/facts/details.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/eval/verdict/band.h"

/* Shares of the iteration below this are left out of the breakdown. */
#define LEAST_SHARE 0.0005

/** One line of a panel: a heading, words (frac unknown), or a bar. */
struct line {
    char name[40], text[400];
    double frac;
    unsigned style;
};

struct lines {
    HV_VEC(struct line) v;
    int w; /**< columns of the panel: words are wrapped to it */
};

static struct line *add_line(struct lines *ls, const char *name, double frac, unsigned style)
{
    struct line l = {.frac = frac, .style = style};
    (void)snprintf(l.name, sizeof l.name, "%s", name);
    hv_vec_push(&ls->v, l);
    return &ls->v.items[ls->v.n - 1];
}

static void add_words(struct lines *ls, const char *text, unsigned style)
{
    while (*text != '\0') {
        size_t n = hv_text_wrap(text, ls->w > 10 ? ls->w : 10);
        struct line *l = add_line(ls, "", HV_UNKNOWN, style);
        (void)snprintf(l->text, sizeof l->text, "%.*s", (int)n, text);
        text += n;
        text += *text == ' ' || *text == '\n';
    }
}

static void add_claim(struct lines *ls, const struct hv_plan_facts *f)
{
    char claimed[HV_FMT_CAP], judged[HV_FMT_CAP], text[160];
    double c = hv_plan_value(f, HV_PLAN_CLAIMED), x = hv_plan_value(f, HV_PLAN_ITERATION);
    if (!hv_known(c)) {
        return;
    }
    if (!hv_known(x)) {
        (void)snprintf(text, sizeof text, "claimed %s/iter, not simulated",
                       hv_fmt_seconds(claimed, sizeof claimed, c));
        add_words(ls, text, HV_STYLE_TEXT);
        return;
    }
    (void)snprintf(text, sizeof text, "claimed %s/iter, simulated %s (%+.1f%%)",
                   hv_fmt_seconds(claimed, sizeof claimed, c),
                   hv_fmt_seconds(judged, sizeof judged, x), (x / c - 1) * 100);
    add_words(ls, text, HV_STYLE_TEXT);
}

/** Adds where the time of a real iteration is in four cases of five. */
static void add_band(struct lines *ls, const struct hv_metrics *m)
{
    char low[HV_FMT_CAP], high[HV_FMT_CAP], text[160];
    if (m->band.cover <= 0) {
        return;
    }
    (void)snprintf(text, sizeof text, "band: %s to %s hold %.0f%% of real iterations",
                   hv_fmt_seconds(low, sizeof low, m->band.low_s),
                   hv_fmt_seconds(high, sizeof high, m->band.high_s), 100 * m->band.cover);
    add_words(ls, text, HV_STYLE_TEXT);
}

/** Adds a line where the plan is not exact. */
static void add_exactness(struct lines *ls, const struct hv_metrics *m)
{
    char text[160], pc[HV_FMT_CAP];
    if (!m->exact && m->dropped_frac > 0) {
        (void)snprintf(text, sizeof text, "~ not exact: drops %s of the tokens",
                       hv_fmt_percent(pc, sizeof pc, m->dropped_frac));
        add_words(ls, text, HV_STYLE_WARNING);
    } else if (!m->exact) {
        (void)snprintf(text, sizeof text, "~ not exact: stale weights, up to %d updates old",
                       m->staleness);
        add_words(ls, text, HV_STYLE_WARNING);
    }
}

static void add_breakdown(struct lines *ls, const struct hv_verdict *v)
{
    char s[HV_FMT_CAP], pc[HV_FMT_CAP];
    double all = v->metrics.iteration_s;
    if (!hv_known(all) || all <= 0) {
        return;
    }
    add_words(ls, "parts of the iteration time", HV_STYLE_HEADER);
    for (size_t i = 0; i < HV_BREAKDOWN_N; i++) {
        double frac = v->metrics.breakdown_s[i] / all;
        if (!(frac >= LEAST_SHARE)) {
            continue;
        }
        unsigned style = i == HV_TIME_BUBBLE || i == HV_TIME_IMBALANCE ? HV_STYLE_DIM
                         : i == HV_TIME_COMPUTE                        ? HV_STYLE_GOOD
                                                                       : HV_STYLE_BAR;
        struct line *l = add_line(ls, hv_breakdown_name((enum hv_breakdown)i), frac, style);
        (void)snprintf(l->text, sizeof l->text, "%s %7s", hv_fmt_percent(pc, sizeof pc, frac),
                       hv_fmt_seconds(s, sizeof s, v->metrics.breakdown_s[i]));
    }
}

static void add_memory(struct lines *ls, const struct hv_verdict *v)
{
    char used[HV_FMT_CAP], limit[HV_FMT_CAP], name[32];
    if (v->n_memory > 0) {
        add_words(ls, "memory per stage (worst device)", HV_STYLE_HEADER);
    }
    bool many = v->n_memory > 0 && v->memory[v->n_memory - 1].replica > 0;
    for (size_t i = 0; i < v->n_memory; i++) {
        const struct hv_stage_memory *m = &v->memory[i];
        double frac = m->peak_bytes / m->limit_bytes;
        if (many) {
            (void)snprintf(name, sizeof name, "r%zu s%zu", m->replica, m->stage);
        } else {
            (void)snprintf(name, sizeof name, "s%zu", m->stage);
        }
        struct line *l =
            add_line(ls, name, frac, frac > 1 ? HV_STYLE_MEMORY_OVER : HV_STYLE_MEMORY);
        (void)snprintf(l->text, sizeof l->text, "%s of %s%s",
                       hv_fmt_bytes(used, sizeof used, m->peak_bytes),
                       hv_fmt_bytes(limit, sizeof limit, m->limit_bytes), frac > 1 ? " !" : "");
    }
}

/** Figures of a serving plan, which has no iteration. */
static void add_serving(struct lines *ls, const struct hv_serving *s)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], text[200];
    (void)snprintf(text, sizeof text, "serves up to %s tokens/s, %s requests/s; bound %s tokens/s",
                   hv_fmt_count(a, sizeof a, s->max_tokens_per_s),
                   hv_fmt_double(b, sizeof b, round(s->requests_per_s * 100) / 100),
                   hv_fmt_count((char[HV_FMT_CAP]){0}, HV_FMT_CAP, s->bound_tokens_per_s));
    add_words(ls, text, HV_STYLE_TEXT);
    (void)snprintf(text, sizeof text, "first token after %s, then one per %s",
                   hv_fmt_seconds(a, sizeof a, s->first_token_s),
                   hv_fmt_seconds(b, sizeof b, s->next_token_s));
    add_words(ls, text, HV_STYLE_TEXT);
}

static struct lines details(const struct hv_plan_facts *f, int w)
{
    struct lines ls = {.w = w};
    struct hv_str text = {0};
    hv_str_addf(&text, "%s%s%s", hv_row_state_name(f->row->state),
                f->row->outdated ? ", made before an edit" : "",
                hv_plan_fits(f)      ? ""
                : f->verdict != NULL ? ", breaks a rule"
                                     : "");
    add_words(&ls, hv_str_cstr(&text), HV_STYLE_TEXT);
    if (f->row->note[0] != '\0') {
        hv_str_clear(&text);
        hv_str_addf(&text, "note: %s", f->row->note);
        add_words(&ls, hv_str_cstr(&text), HV_STYLE_TITLE);
    }
    if (f->verdict == NULL || f->verdict->findings.n == 0) {
        hv_str_clear(&text);
        hv_plan_trouble(f->row, f->verdict, &text);
        if (text.n > 0) {
            add_words(&ls, hv_str_cstr(&text), HV_STYLE_WARNING);
        }
    }
    for (size_t i = 0; f->verdict != NULL && i < f->verdict->findings.n; i++) {
        hv_str_clear(&text);
        hv_str_addf(&text, "! %s", f->verdict->findings.items[i].text);
        add_words(&ls, hv_str_cstr(&text), HV_STYLE_WARNING);
    }
    if (f->verdict != NULL) {
        add_exactness(&ls, &f->verdict->metrics);
        add_claim(&ls, f);
        if (f->verdict->serving != NULL) {
            add_serving(&ls, f->verdict->serving);
        }
        add_breakdown(&ls, f->verdict);
        add_memory(&ls, f->verdict);
        add_band(&ls, &f->verdict->metrics);
        if (f->verdict->bound_why != NULL && f->verdict->bound_why[0] != '\0') {
            hv_str_clear(&text);
            hv_str_addf(&text, "bound: %s", f->verdict->bound_why);
            add_words(&ls, hv_str_cstr(&text), HV_STYLE_DIM);
        }
    }
    hv_str_free(&text);
    return ls;
}

size_t hv_plan_details_lines(const struct hv_plan_facts *f, int w)
{
    struct lines ls = details(f, w);
    size_t n = ls.v.n;
    hv_vec_free(&ls.v);
    return n;
}

static void draw_line(const struct line *l, struct hv_grid *g, struct hv_rect row)
{
    if (!hv_known(l->frac)) {
        hv_grid_put_field(g, row, HV_LEFT, l->text, l->style);
        return;
    }
    int text_w = hv_text_width(l->text), name_w = 10, bar_w = row.w - name_w - text_w - 2;
    hv_grid_put_field(g, (struct hv_rect){row.x, row.y, name_w, 1}, HV_LEFT, l->name,
                      HV_STYLE_TEXT);
    if (bar_w > 0) {
        hv_grid_bar(g, row.x + name_w + 1, row.y, bar_w, l->frac, l->style);
    }
    hv_grid_put_field(g, (struct hv_rect){row.x + row.w - text_w, row.y, text_w, 1}, HV_RIGHT,
                      l->text, l->frac > 1 ? HV_STYLE_WARNING : HV_STYLE_TEXT);
}

static void draw_lines(struct lines *ls, size_t top, struct hv_grid *g, struct hv_rect r)
{
    size_t h = r.h > 0 ? (size_t)r.h : 0, last = ls->v.n > h ? ls->v.n - h : 0;
    struct hv_rect old = hv_grid_clip(g, r);
    top = top < last ? top : last;
    for (size_t i = top; i < ls->v.n && i - top < h; i++) {
        draw_line(&ls->v.items[i], g, (struct hv_rect){r.x, r.y + (int)(i - top), r.w, 1});
    }
    hv_grid_unclip(g, old);
    hv_vec_free(&ls->v);
}

void hv_plan_details_draw(const struct hv_plan_facts *f, size_t top, struct hv_grid *g,
                          struct hv_rect r)
{
    struct lines ls = details(f, r.w);
    draw_lines(&ls, top, g, r);
}
