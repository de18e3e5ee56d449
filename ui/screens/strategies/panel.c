/** Text and charts about one strategy and its latest run. Starts and stops nothing. */

#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "ui/screens/facts/details.h"
#include "ui/screens/strategies/pen.h"
#include "ui/screens/strategies/strategies_int.h"

#define CHART_MIN_H 7
#define LOG_MIN_H   3

/** What it asks of the inputs. */
static void add_needs(const struct hv_plugin *plugin, struct hv_str *out)
{
    const char *const needs[] = {plugin->needs_model, plugin->needs_jobs, plugin->needs_mode};
    static const char *const names[] = {"model", "jobs", "mode"};
    for (size_t i = 0; i < HV_COUNT(needs); i++) {
        if (needs[i] != NULL) {
            hv_str_addf(out, "%s%s %s", out->n > 0 ? ", " : "", names[i], needs[i]);
        }
    }
}

/** "zero.stage 1, sync.overlap yes". */
static void add_fixes(const struct hv_plugin *plugin, struct hv_str *out)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)plugin->sets, key, value)
    {
        char text[128];
        hv_str_addf(out, "%s%s %s", out->n > 0 ? ", " : "", key,
                    hv_option_text(value, text, sizeof text));
    }
}

/** Knobs that it fixes and searches, and the need of inputs. */
static void put_knobs(struct hv_pen *p, const struct hv_plugin *plugin, int most)
{
    struct hv_str text = {0};
    add_fixes(plugin, &text);
    hv_pen_put_labelled(p, "fixes", hv_str_cstr(&text), most);
    hv_str_clear(&text);
    for (size_t i = 0; i < plugin->n_searches; i++) {
        hv_str_addf(&text, "%s%s", i > 0 ? ", " : "", plugin->searches[i]);
    }
    hv_pen_put_labelled(p, "searches", hv_str_cstr(&text), most);
    hv_str_clear(&text);
    add_needs(plugin, &text);
    hv_pen_put_labelled(p, "needs", hv_str_cstr(&text), 1);
    hv_str_free(&text);
}

/** Where the filter found its text; nothing where that is seen in the list. */
static void put_found(struct hv_pen *p, const struct hv_strategies *st,
                      const struct hv_plugin *plugin)
{
    struct hv_str where = {0};
    if (st->filter[0] != '\0') {
        (void)hv_strategy_match(plugin, st->filter, &where);
        hv_pen_put_labelled(p, "found in", hv_str_cstr(&where), 2);
    }
    hv_str_free(&where);
}

static void put_broken(struct hv_pen *p, const struct hv_plugin *plugin)
{
    struct hv_str text = {0};
    hv_pen_put(p, plugin->error, 8, HV_STYLE_WARNING);
    hv_pen_skip(p, 1);
    hv_str_addf(&text, "file %s", plugin->path);
    hv_pen_put(p, hv_str_cstr(&text), 2, HV_STYLE_DIM);
    hv_str_free(&text);
}

static void put_about(struct hv_pen *p, const struct hv_strategies *st,
                      const struct hv_plugin *plugin, bool has_run)
{
    bool roomy = p->r.h >= 24;
    struct hv_str cite = {0};
    hv_pen_put(p, plugin->title != NULL ? plugin->title : plugin->name, 1, HV_STYLE_TITLE);
    if (plugin->error != NULL) {
        put_broken(p, plugin);
        return;
    }
    hv_plugin_cite(plugin, &cite);
    hv_pen_put(p, hv_str_cstr(&cite), roomy || !has_run ? 3 : 2, HV_STYLE_DIM);
    hv_pen_put(p, plugin->summary != NULL ? plugin->summary : "",
               roomy     ? 6
               : has_run ? 2
                         : 3,
               HV_STYLE_TEXT);
    hv_str_free(&cite);
    put_found(p, st, plugin);
    hv_pen_skip(p, p->r.h >= 20);
    put_knobs(p, plugin, roomy ? 4 : 2);
}

/** The knobs in which the plan differs from that of the baseline. */
static void put_unlike(struct hv_pen *p, const struct hv_strategies_data *d, size_t plugin)
{
    size_t base = hv_strategies_baseline(d);
    if (base == HV_NO_STRATEGY || base == plugin || !d->facts[plugin].judged) {
        return;
    }
    struct hv_plan_facts pair[2] = {hv_plan_facts(d->s, d->facts[base].row),
                                    hv_plan_facts(d->s, d->facts[plugin].row)};
    struct hv_str text = {0}, head = {0};
    if (pair[0].plan != NULL && pair[1].plan != NULL) {
        hv_strategies_unlike(pair, &text);
        hv_str_addf(&head, "%s %s", text.n > 0 ? "unlike" : "the knobs of", d->plugins[base].id);
        hv_pen_put(p, hv_str_cstr(&head), 1, HV_STYLE_HEADER);
        hv_pen_put(p, hv_str_cstr(&text), p->r.h >= 20 ? 9 : 4, HV_STYLE_TEXT);
    }
    hv_str_free(&text);
    hv_str_free(&head);
}

/** How far its plan is simulated whole, with what is approximated, and the numbers of its
 * publication that its self-tests check. */
static void put_trust(struct hv_pen *p, const struct hv_strategies_data *d, size_t plugin)
{
    const struct hv_plugin *about = &d->plugins[plugin];
    const struct hv_strategy_facts *f = &d->facts[plugin];
    struct hv_str text = {0};
    if (f->judged) {
        hv_strategies_add_trust(d, plugin, &text);
    }
    if (about->n_verified > 0) {
        hv_str_addf(&text, "%s%zu number%s checked by self-tests", text.n > 0 ? "; " : "",
                    about->n_verified, about->n_verified == 1 ? "" : "s");
    }
    hv_pen_put_labelled(p, "trust", hv_str_cstr(&text), 2);
    const struct hv_verdict *v =
        f->n_approximated > 0 ? hv_session_verdict(d->s, f->row->id, false, NULL) : NULL;
    for (size_t i = 0; v != NULL && i < v->n_approximated; i++) {
        hv_pen_put_labelled(p, " ~", v->approximated[i], 2);
    }
    hv_str_free(&text);
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

static void put_state(struct hv_pen *p, const struct hv_session *s, const struct hv_row *row)
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
    hv_pen_put(p, hv_str_cstr(&text), 1, state_style(row->state));
    if (row->state == HV_ROW_RUNNING && p->r.h > 0) {
        hv_progress_draw(p->g, (struct hv_rect){p->r.x, p->r.y, p->r.w, 1}, row->progress_frac,
                         HV_STYLE_BAR);
        hv_pen_skip(p, 1);
        hv_pen_put(p, row->progress_text, 1, HV_STYLE_TEXT);
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

static void put_figures(struct hv_pen *p, struct hv_session *s, const struct hv_row *row)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    struct hv_str text = {0};
    const struct hv_verdict *v =
        row->plan != NULL ? hv_session_verdict(s, row->id, false, NULL) : NULL;
    double bound = bound_of(s, row), best = v != NULL ? v->metrics.iteration_s : best_of(row);
    if (!hv_known(best)) { /* without a best time there is no gap; the details show the reason */
        if (row->state == HV_ROW_RUNNING && hv_known(bound)) {
            hv_str_addf(&text, "no plan yet  bound %s", hv_fmt_seconds(b, sizeof b, bound));
            hv_pen_put(p, hv_str_cstr(&text), 1, HV_STYLE_TEXT);
        }
        hv_str_free(&text);
        return;
    }
    hv_str_addf(&text, "best %s  bound %s  gap %s", hv_fmt_seconds(a, sizeof a, best),
                hv_fmt_seconds(b, sizeof b, bound), hv_fmt_percent(c, sizeof c, best / bound - 1));
    hv_pen_put(p, hv_str_cstr(&text), 2, HV_STYLE_TEXT);
    if (v != NULL) {
        hv_str_clear(&text);
        hv_str_addf(&text, "%s tokens/s  MFU %s  bubble %s",
                    hv_fmt_count(a, sizeof a, v->metrics.tokens_per_s),
                    hv_fmt_percent(b, sizeof b, v->metrics.mfu),
                    hv_fmt_percent(c, sizeof c, v->metrics.bubble_frac));
        hv_pen_put(p, hv_str_cstr(&text), 2, HV_STYLE_TEXT);
    }
    hv_str_free(&text);
}

static void put_chart(struct hv_pen *p, struct hv_session *s, const struct hv_row *row, int h)
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
        hv_pen_skip(p, h);
    }
    hv_vec_free(&best);
}

/** Breakdown of time and memory of the best plan. */
static void put_plan(struct hv_pen *p, struct hv_session *s, const struct hv_row *row, int h)
{
    struct hv_plan_facts facts = hv_plan_facts(s, row);
    int n = (int)hv_plan_details_lines(&facts, p->r.w);
    h = h < n ? h : n;
    hv_plan_details_draw(&facts, 0, p->g, (struct hv_rect){p->r.x, p->r.y, p->r.w, h});
    hv_pen_skip(p, h);
}

/** The last lines of the log that fit. */
static void put_log(struct hv_pen *p, const char *log)
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
    hv_pen_skip(p, 1);
    int lines = 1;
    size_t from = n;
    while (from > 0 && (log[from - 1] != '\n' || lines < p->r.h)) {
        from--;
        lines += log[from] == '\n';
    }
    hv_pen_put(p, log + from, p->r.h, HV_STYLE_DIM);
}

/** The latest run: state, figures, chart of the search, breakdown, log. */
static void put_run(struct hv_pen *p, struct hv_session *s, const struct hv_row *row)
{
    put_state(p, s, row);
    hv_pen_put(p, row->plan == NULL ? row->reason : "", 6, HV_STYLE_WARNING);
    put_figures(p, s, row);
    if (row->plan != NULL && row->state != HV_ROW_RUNNING) {
        hv_pen_put(p, "4 compares the plan, 5 draws its Gantt chart", 2, HV_STYLE_DIM);
    }
    bool searched = row->n_points > 1 || row->state == HV_ROW_RUNNING;
    int log_h = row->log[0] != '\0' ? LOG_MIN_H + p->r.h / 6 : 0, h = p->r.h - log_h;
    int chart_h = h > 16 ? 16 : h;
    if (searched && chart_h >= CHART_MIN_H) {
        put_chart(p, s, row, chart_h);
        h -= chart_h;
    }
    if (row->plan != NULL && h > 2) {
        put_plan(p, s, row, h);
    }
    put_log(p, row->log);
}

void hv_strategy_panel_draw(const struct hv_strategies *st, const struct hv_strategies_data *d,
                            size_t plugin, struct hv_grid *g, struct hv_rect r)
{
    struct hv_pen p = {g, r};
    struct hv_rect old = hv_grid_clip(g, r);
    const struct hv_plugin *about = &d->plugins[plugin];
    const struct hv_row *row = d->facts[plugin].row;
    put_about(&p, st, about, row != NULL);
    if (about->error == NULL) {
        put_unlike(&p, d, plugin);
        put_trust(&p, d, plugin);
        hv_pen_skip(&p, p.r.h >= 10);
    }
    if (row == NULL && about->error == NULL) {
        hv_pen_put(&p, "not run yet: Enter runs it, Space queues it, p sets its parameters", 2,
                   HV_STYLE_DIM);
    } else if (row != NULL) {
        put_run(&p, d->s, row);
    }
    hv_grid_unclip(g, old);
}
