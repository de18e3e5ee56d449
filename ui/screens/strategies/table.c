/** Cells, marks and styles of the list of strategies. Draws nothing by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/io/own/plan_trust.h"
#include "ui/screens/strategies/strategies_int.h"

enum column { COL_ID, COL_STATE, COL_ITERATION, COL_TRUST, COL_YEAR, COL_KIND, COL_TITLE, COL_N };

static const struct hv_column columns[COL_N] = {
    {"STRATEGY", HV_LEFT, 17, 1}, {"STATE", HV_LEFT, 8, 0}, {"S/ITER", HV_RIGHT, 7, 0},
    {"TRUST", HV_LEFT, 7, 2},     {"YEAR", HV_LEFT, 4, 0},  {"KIND", HV_LEFT, 14, 1},
    {"TITLE", HV_LEFT, 12, 8},
};

const struct hv_table_look hv_strategies_look = {
    .columns = columns,
    .n_columns = COL_N,
    .focused = true,
    .empty = "no strategy holds this text; Esc clears the filter",
};

enum hv_strategies_sort hv_strategies_sort_of(size_t column)
{
    switch (column) {
    case COL_ID:
        return HV_STRATEGIES_BY_ID;
    case COL_ITERATION:
        return HV_STRATEGIES_BY_TIME;
    case COL_YEAR:
        return HV_STRATEGIES_BY_YEAR;
    case COL_TRUST:
        return HV_STRATEGIES_BY_TRUST;
    default:
        return HV_STRATEGIES_SORT_N;
    }
}

/** Decimals of a time in seconds that leave three digits. */
static int decimals(double s)
{
    return s >= 99.95 ? 0 : s >= 9.995 ? 1 : s >= 0.9995 ? 2 : 3;
}

void hv_strategies_add_time(const struct hv_strategies_data *d, double s, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    if (!hv_known(s)) {
        return;
    }
    if (d->in_seconds && s >= 0.001 && s < 1e5) {
        hv_str_addf(out, "%.*f s", decimals(s), s);
    } else {
        hv_str_adds(out, hv_fmt_seconds(buf, sizeof buf, s));
    }
}

/* ---- strategies ---- */

/** "line 7" of "plugins/a.lua:7: …", else the error itself. */
static void add_error_line(const char *error, struct hv_str *out)
{
    for (const char *at = strchr(error, ':'); at != NULL; at = strchr(at + 1, ':')) {
        size_t n = strspn(at + 1, "0123456789");
        if (n > 0 && at[1 + n] == ':') {
            hv_str_addf(out, "line %.*s", (int)n, at + 1);
            return;
        }
    }
    hv_str_adds(out, error);
}

void hv_strategies_add_trust(const struct hv_strategies_data *d, size_t plugin, struct hv_str *out)
{
    const struct hv_plugin *p = &d->plugins[plugin];
    const struct hv_strategy_facts *f = &d->facts[plugin];
    if (p->error != NULL) {
        add_error_line(p->error, out);
    } else if (f->row != NULL && f->row->state == HV_ROW_NOT_APPLICABLE) {
        hv_str_adds(out, f->row->reason);
    } else if (f->same != HV_NO_STRATEGY) {
        hv_str_addf(out, "= %s", d->plugins[f->same].id);
    } else if (f->judged) {
        hv_plan_trust(f->n_approximated, out);
    }
}

static void add_state(const struct hv_plugin *p, const struct hv_strategy_facts *f,
                      struct hv_str *out)
{
    if (p->error != NULL) {
        hv_str_adds(out, "broken");
    } else if (f->row == NULL) {
        return;
    } else if (f->row->state == HV_ROW_RUNNING && hv_known(f->row->progress_frac)) {
        hv_str_addf(out, "RUN %.0f%%", f->row->progress_frac * 100);
    } else if (f->row->state == HV_ROW_RUNNING) {
        hv_str_adds(out, "RUN");
    } else if (f->row->state == HV_ROW_NOT_APPLICABLE) {
        hv_str_adds(out, "not for");
    } else if (f->row->state == HV_ROW_INFEASIBLE) {
        hv_str_adds(out, "no plan");
    } else if (f->row->state == HV_ROW_CANCELLED) {
        hv_str_adds(out, "stopped");
    } else if (f->row->state == HV_ROW_DONE && f->judged && !f->fits) {
        hv_str_adds(out, "misfit");
    } else {
        hv_str_adds(out, hv_row_state_name(f->row->state));
    }
}

static void strategy_cell(const struct hv_strategies_data *d, const struct hv_strategies_line *line,
                          enum column column, struct hv_str *out)
{
    const struct hv_plugin *p = &d->plugins[line->plugin];
    const struct hv_strategy_facts *f = &d->facts[line->plugin];
    switch (column) {
    case COL_ID:
        hv_str_addf(out, "%s%s", hv_strategies_is_plain(line->kind) ? "" : "  ",
                    p->id != NULL ? p->id : p->name);
        break;
    case COL_STATE:
        add_state(p, f, out);
        break;
    case COL_ITERATION:
        hv_strategies_add_time(d, f->iteration_s, out);
        break;
    case COL_TRUST:
        hv_strategies_add_trust(d, line->plugin, out);
        break;
    case COL_YEAR:
        if (p->year > 0) {
            hv_str_addf(out, "%d", p->year);
        }
        break;
    case COL_KIND:
        hv_str_adds(out, p->kind != NULL ? p->kind : "");
        break;
    case COL_TITLE:
        hv_str_adds(out, p->error != NULL ? p->error : p->title != NULL ? p->title : "");
        break;
    case COL_N:
        break;
    }
}

/* ---- headings ---- */

/** " data           8": the count stands at the right of the column. */
static void add_heading(const struct hv_strategies_data *d, enum hv_kind kind, struct hv_str *out)
{
    char n[24];
    const char *name = hv_strategies_heading(kind);
    (void)snprintf(n, sizeof n, "%zu", d->kinds[kind].n_shown);
    int gap = d->name_w - 1 - (int)strlen(name) - (int)strlen(n);
    hv_str_addf(out, " %s%*s%s", name, gap > 1 ? gap : 1, "", n);
}

/** "RUN 4" of those that ended, "11 no" where none applies, "6 of 20". */
static void add_heading_state(const struct hv_heading_facts *h, struct hv_str *out)
{
    if (h->n_active > 0) {
        hv_str_addf(out, "RUN %zu", h->n_run);
    } else if (h->n_not > 0 && h->n_not == h->n_run) {
        hv_str_addf(out, "%zu no", h->n_not);
    } else if (h->n_run > 0) {
        hv_str_addf(out, "%zu of %zu", h->n_run, h->n_shown);
    }
}

const char *hv_strategies_about(enum hv_kind kind)
{
    return kind < HV_KIND_N ? hv_kind_about(kind) : "plugins that cannot be used";
}

static void heading_cell(const struct hv_strategies_data *d, enum hv_kind kind, enum column column,
                         struct hv_str *out)
{
    const struct hv_heading_facts *h = &d->kinds[kind];
    bool has_best = h->best != HV_NO_STRATEGY;
    if (column == COL_ID) {
        add_heading(d, kind, out);
    } else if (column == COL_STATE) {
        add_heading_state(h, out);
    } else if (column == COL_ITERATION && has_best) {
        hv_strategies_add_time(d, d->facts[h->best].iteration_s, out);
    } else if (column == COL_TRUST) {
        hv_str_adds(out, has_best ? d->plugins[h->best].id : h->reason != NULL ? h->reason : "");
    } else if (column == COL_TITLE) {
        hv_str_adds(out, hv_strategies_about(kind));
    }
}

/* ---- the source ---- */

static void cell(const void *ctx, size_t row, size_t column, struct hv_str *out)
{
    const struct hv_strategies_data *d = ctx;
    const struct hv_strategies_line *line = hv_strategies_line_at(d, row);
    if (line->plugin == HV_NO_STRATEGY) {
        heading_cell(d, line->kind, (enum column)column, out);
    } else {
        strategy_cell(d, line, (enum column)column, out);
    }
}

static unsigned strategy_flags(const struct hv_plugin *p, const struct hv_strategy_facts *f)
{
    if (p->error != NULL) {
        return HV_ROW_PROBLEM;
    }
    if (f->row == NULL) {
        return 0;
    }
    switch ((int)f->row->state) {
    case HV_ROW_DONE:
        return f->judged && !f->fits ? HV_ROW_PROBLEM : HV_ROW_CHECK;
    case HV_ROW_FAILED:
    case HV_ROW_INFEASIBLE:
        return HV_ROW_PROBLEM;
    case HV_ROW_QUEUED:
    case HV_ROW_RUNNING:
        return 0;
    default:
        return HV_ROW_DIM;
    }
}

static unsigned row_flags(const void *ctx, size_t row)
{
    const struct hv_strategies_data *d = ctx;
    const struct hv_strategies_line *line = hv_strategies_line_at(d, row);
    if (line->plugin != HV_NO_STRATEGY) {
        return strategy_flags(&d->plugins[line->plugin], &d->facts[line->plugin]);
    }
    unsigned problem = line->kind == HV_KIND_N ? HV_ROW_PROBLEM : 0;
    return problem | (hv_strategies_is_open(d->st, line->kind) ? HV_ROW_OPENED : HV_ROW_CLOSED);
}

static unsigned heading_style(const struct hv_heading_facts *h, enum column column)
{
    static const unsigned styles[COL_N] = {
        [COL_ID] = HV_STYLE_TITLE,  [COL_STATE] = HV_STYLE_TEXT, [COL_ITERATION] = HV_STYLE_GOOD,
        [COL_TRUST] = HV_STYLE_DIM, [COL_YEAR] = HV_STYLE_DIM,   [COL_KIND] = HV_STYLE_DIM,
        [COL_TITLE] = HV_STYLE_DIM};
    if (column == COL_STATE && h->n_active > 0) {
        return HV_STYLE_BAR;
    }
    bool none = h->n_not > 0 && h->n_not == h->n_run;
    return column == COL_STATE && none ? HV_STYLE_WARNING : styles[column];
}

static unsigned cell_style(const void *ctx, size_t row, size_t column)
{
    const struct hv_strategies_data *d = ctx;
    const struct hv_strategies_line *line = hv_strategies_line_at(d, row);
    if (line->plugin == HV_NO_STRATEGY) {
        return heading_style(&d->kinds[line->kind], (enum column)column);
    }
    if (column != COL_STATE) {
        return 0;
    }
    const struct hv_row *run = d->facts[line->plugin].row;
    return d->plugins[line->plugin].error != NULL        ? HV_STYLE_ERROR
           : run != NULL && run->state == HV_ROW_RUNNING ? HV_STYLE_BAR
                                                         : 0;
}

/** "kind data: 8 strategies, 8 run, best 4.02 s zero2" in place of the cells of a heading. */
static bool words(const void *ctx, size_t row, struct hv_str *out)
{
    const struct hv_strategies_data *d = ctx;
    const struct hv_strategies_line *line = hv_strategies_line_at(d, row);
    if (line->plugin != HV_NO_STRATEGY) {
        return false;
    }
    const struct hv_heading_facts *h = &d->kinds[line->kind];
    hv_str_addf(out, "kind %s: %zu strateg%s, %zu run", hv_strategies_heading(line->kind),
                h->n_shown, h->n_shown == 1 ? "y" : "ies", h->n_run);
    if (h->n_active > 0) {
        hv_str_addf(out, ", %zu running or queued", h->n_active);
    }
    if (h->best != HV_NO_STRATEGY) {
        hv_str_adds(out, ", best ");
        hv_strategies_add_time(d, d->facts[h->best].iteration_s, out);
        hv_str_addf(out, " %s", d->plugins[h->best].id);
    } else if (h->reason != NULL) {
        hv_str_addf(out, ", %zu do not apply: %s", h->n_not, h->reason);
    }
    return true;
}

static uint64_t row_id(const void *ctx, size_t row)
{
    const struct hv_strategies_line *line = hv_strategies_line_at(ctx, row);
    return (uint64_t)line->kind << 32 | (line->plugin == HV_NO_STRATEGY ? 0 : line->plugin + 1);
}

struct hv_table_source hv_strategies_source(const struct hv_strategies_data *d)
{
    return (struct hv_table_source){.ctx = d,
                                    .n_rows = d->lines.n,
                                    .cell = cell,
                                    .flags = row_flags,
                                    .style = cell_style,
                                    .words = words,
                                    .id = row_id,
                                    .version = hv_hash(d->version, &d->name_w, sizeof d->name_w)};
}
