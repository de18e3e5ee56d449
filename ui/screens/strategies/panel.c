/** Text and charts about one strategy and its latest run. Starts and stops nothing. */
#include "ui/screens/strategies/panel.h"

#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "ui/screens/facts/details.h"

#define CHART_MIN_H 7
#define LOG_MIN_H   3

/** Remaining rectangle of the panel. */
struct pen {
    struct hv_grid *g;
    struct hv_rect r;
};

static void advance(struct pen *p, int lines)
{
    lines = lines > p->r.h ? p->r.h : lines;
    p->r.y += lines;
    p->r.h -= lines;
}

/** Puts text over as many lines as it needs, at most `most`. */
static void put_wrapped(struct pen *p, const char *text, int most, unsigned style)
{
    struct hv_str line = {0};
    for (int i = 0; i < most && *text != '\0' && p->r.h > 0 && p->r.w > 1; i++) {
        size_t n = hv_text_wrap(text, p->r.w);
        hv_str_clear(&line);
        hv_str_add(&line, text, i + 1 == most ? strcspn(text, "\n") : n);
        hv_grid_put_field(p->g, (struct hv_rect){p->r.x, p->r.y, p->r.w, 1}, HV_LEFT,
                          hv_str_cstr(&line), style);
        advance(p, 1);
        text += n;
        text += *text == ' ' || *text == '\n';
    }
    hv_str_free(&line);
}

const struct hv_row *hv_strategy_latest(const struct hv_session *s, const char *id)
{
    size_t n = 0, len = strlen(id);
    const struct hv_row *best = NULL;
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    for (size_t i = 0; i < n; i++) {
        const char *name = rows[i]->strategy;
        bool same = strncmp(name, id, len) == 0 && (name[len] == '\0' || name[len] == '+');
        if (same && (best == NULL || rows[i]->id > best->id)) {
            best = rows[i];
        }
    }
    return best;
}

static void put_about(struct pen *p, const struct hv_plugin *plugin, bool has_run)
{
    struct hv_str text = {0};
    int room = p->r.h >= 24 ? 6 : has_run ? 1 : 4;
    hv_str_addf(&text, "%s", plugin->title != NULL ? plugin->title : plugin->name);
    put_wrapped(p, hv_str_cstr(&text), 1, HV_STYLE_TITLE);
    if (plugin->error != NULL) {
        put_wrapped(p, plugin->error, 8, HV_STYLE_WARNING);
        advance(p, 1);
        hv_str_clear(&text);
        hv_str_addf(&text, "file %s", plugin->path);
        put_wrapped(p, hv_str_cstr(&text), 2, HV_STYLE_DIM);
        hv_str_free(&text);
        return;
    }
    hv_str_clear(&text);
    hv_plugin_cite(plugin, &text);
    put_wrapped(p, hv_str_cstr(&text), p->r.h >= 24 || !has_run ? 3 : 1, HV_STYLE_DIM);
    put_wrapped(p, plugin->summary != NULL ? plugin->summary : "", room, HV_STYLE_TEXT);
    hv_str_clear(&text);
    const char *const needs[] = {plugin->needs_model, plugin->needs_jobs, plugin->needs_mode};
    static const char *const names[] = {"model", "jobs", "mode"};
    for (size_t i = 0; i < HV_COUNT(needs); i++) {
        if (needs[i] != NULL) {
            hv_str_addf(&text, "%s%s %s", text.n > 0 ? ", " : "needs ", names[i], needs[i]);
        }
    }
    put_wrapped(p, hv_str_cstr(&text), 1, HV_STYLE_DIM);
    hv_str_free(&text);
    advance(p, p->r.h >= 16);
}

static void add_clock(struct hv_str *out, double s)
{
    long whole = s > 0 && s < 1e9 ? (long)s : 0;
    if (s < 10) {
        hv_str_addf(out, "%.1f s", s > 0 ? s : 0);
    } else if (whole < 3600) {
        hv_str_addf(out, "%02ld:%02ld", whole / 60, whole % 60);
    } else {
        hv_str_addf(out, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    }
}

static unsigned state_style(enum hv_row_state st)
{
    if (st == HV_ROW_DONE) {
        return HV_STYLE_GOOD;
    }
    return st == HV_ROW_FAILED || st == HV_ROW_INFEASIBLE ? HV_STYLE_WARNING : HV_STYLE_TITLE;
}

static void put_state(struct pen *p, const struct hv_session *s, const struct hv_row *row)
{
    struct hv_str text = {0};
    struct hv_session_limits limits = hv_session_limits(s);
    hv_str_addf(&text, "%s  %s", row->name[0] != '\0' ? row->name : row->strategy,
                hv_row_state_name(row->state));
    if (row->state != HV_ROW_QUEUED) {
        hv_str_adds(&text, "  ");
        add_clock(&text, row->elapsed_s);
    }
    if (row->state == HV_ROW_RUNNING && limits.time_limit_s > 0) {
        hv_str_adds(&text, " of ");
        add_clock(&text, limits.time_limit_s);
    }
    put_wrapped(p, hv_str_cstr(&text), 1, state_style(row->state));
    if (row->state == HV_ROW_RUNNING && p->r.h > 0) {
        hv_progress_draw(p->g, (struct hv_rect){p->r.x, p->r.y, p->r.w, 1}, row->progress_frac,
                         HV_STYLE_BAR);
        advance(p, 1);
        put_wrapped(p, row->progress_text, 1, HV_STYLE_TEXT);
    }
    hv_str_free(&text);
}

/** The search's own bound, else that of the inputs. */
static double bound_of(struct hv_session *s, const struct hv_row *row)
{
    return hv_known(row->bound_s) ? row->bound_s : hv_session_bound(s).spread_s;
}

static double best_of(const struct hv_row *row)
{
    double best = HV_UNKNOWN;
    for (size_t i = 0; i < row->n_points; i++) {
        double x = row->points[i].iteration_s;
        best = hv_known(x) ? x : best;
    }
    return best;
}

static void put_figures(struct pen *p, struct hv_session *s, const struct hv_row *row)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    struct hv_str text = {0};
    const struct hv_verdict *v =
        row->plan != NULL ? hv_session_verdict(s, row->id, false, NULL) : NULL;
    double bound = bound_of(s, row), best = v != NULL ? v->metrics.iteration_s : best_of(row);
    if (!hv_known(best)) { /* without a best time there is no gap; the details show the reason */
        if (row->state == HV_ROW_RUNNING && hv_known(bound)) {
            hv_str_addf(&text, "no plan yet  bound %s", hv_fmt_seconds(b, sizeof b, bound));
            put_wrapped(p, hv_str_cstr(&text), 1, HV_STYLE_TEXT);
        }
        hv_str_free(&text);
        return;
    }
    hv_str_addf(&text, "best %s  bound %s  gap %s", hv_fmt_seconds(a, sizeof a, best),
                hv_fmt_seconds(b, sizeof b, bound), hv_fmt_percent(c, sizeof c, best / bound - 1));
    put_wrapped(p, hv_str_cstr(&text), 2, HV_STYLE_TEXT);
    if (v != NULL) {
        hv_str_clear(&text);
        hv_str_addf(&text, "%s tokens/s  MFU %s  bubble %s",
                    hv_fmt_count(a, sizeof a, v->metrics.tokens_per_s),
                    hv_fmt_percent(b, sizeof b, v->metrics.mfu),
                    hv_fmt_percent(c, sizeof c, v->metrics.bubble_frac));
        put_wrapped(p, hv_str_cstr(&text), 2, HV_STYLE_TEXT);
    }
    hv_str_free(&text);
}

static void put_chart(struct pen *p, struct hv_session *s, const struct hv_row *row, int h)
{
    HV_VEC(struct hv_point) best = {0};
    double bound = bound_of(s, row), end = row->elapsed_s;
    for (size_t i = 0; i < row->n_points; i++) {
        if (hv_known(row->points[i].iteration_s)) {
            hv_vec_push(&best, (struct hv_point){row->points[i].at_s, row->points[i].iteration_s});
        }
    }
    if (best.n > 0) {
        double last_at = best.items[best.n - 1].x;
        end = end > last_at ? end : last_at;
        struct hv_point floor_line[2] = {{0, bound}, {end, bound}};
        struct hv_series series[2] = {
            {floor_line, hv_known(bound) ? 2 : 0, HV_CHART_LINE, HV_STYLE_DIM, '.', NULL},
            {best.items, best.n, HV_CHART_STEP, HV_STYLE_BAR, '*', NULL}};
        struct hv_chart chart = {.series = series,
                                 .n_series = 2,
                                 .x_min = 0,
                                 .x_max = end,
                                 .y_min = HV_UNKNOWN,
                                 .y_max = HV_UNKNOWN,
                                 .x_label = p->r.w >= 56 ? "s of search; * best s/iter, . bound"
                                                         : "* best . bound"};
        hv_chart_draw(p->g, (struct hv_rect){p->r.x, p->r.y, p->r.w, h}, &chart);
        advance(p, h);
    }
    hv_vec_free(&best);
}

/** Breakdown of time and memory of the best plan. */
static void put_plan(struct pen *p, struct hv_session *s, const struct hv_row *row, int h)
{
    struct hv_plan_facts facts = hv_plan_facts(s, row);
    int n = (int)hv_plan_details_lines(&facts, p->r.w);
    h = h < n ? h : n;
    hv_plan_details_draw(&facts, 0, p->g, (struct hv_rect){p->r.x, p->r.y, p->r.w, h});
    advance(p, h);
}

/** The last lines of the log that fit. */
static void put_log(struct pen *p, const char *log)
{
    size_t n = strlen(log);
    while (n > 0 && (log[n - 1] == '\n' || log[n - 1] == ' ')) {
        n--;
    }
    if (n == 0 || p->r.h < 2) {
        return;
    }
    hv_grid_put_field(p->g, (struct hv_rect){p->r.x, p->r.y, p->r.w, 1}, HV_LEFT, "log",
                      HV_STYLE_HEADER);
    advance(p, 1);
    int lines = 1;
    size_t from = n;
    while (from > 0 && (log[from - 1] != '\n' || lines < p->r.h)) {
        from--;
        lines += log[from] == '\n';
    }
    put_wrapped(p, log + from, p->r.h, HV_STYLE_DIM);
}

void hv_strategy_panel_draw(struct hv_session *s, const struct hv_plugin *plugin, struct hv_grid *g,
                            struct hv_rect r)
{
    struct pen p = {g, r};
    struct hv_rect old = hv_grid_clip(g, r);
    const struct hv_row *row = plugin->error == NULL ? hv_strategy_latest(s, plugin->id) : NULL;
    put_about(&p, plugin, row != NULL);
    if (row == NULL && plugin->error == NULL) {
        put_wrapped(&p, "not run yet: Enter runs it, Space queues it, p sets its parameters", 2,
                    HV_STYLE_DIM);
    } else if (row != NULL) {
        put_state(&p, s, row);
        put_wrapped(&p, row->plan == NULL ? row->reason : "", 6, HV_STYLE_WARNING);
        put_figures(&p, s, row);
        if (row->plan != NULL && row->state != HV_ROW_RUNNING) {
            put_wrapped(&p, "4 compares the plan, 5 draws its Gantt chart", 2, HV_STYLE_DIM);
        }
        bool searched = row->n_points > 1 || row->state == HV_ROW_RUNNING;
        int log_h = row->log[0] != '\0' ? LOG_MIN_H + p.r.h / 6 : 0, h = p.r.h - log_h;
        int chart_h = h > 16 ? 16 : h;
        if (searched && chart_h >= CHART_MIN_H) {
            put_chart(&p, s, row, chart_h);
            h -= chart_h;
        }
        if (row->plan != NULL && h > 2) {
            put_plan(&p, s, row, h);
        }
        put_log(&p, row->log);
    }
    hv_grid_unclip(g, old);
}
