/** The lines of the Strategies screen and what they show, brought up to date. Draws nothing. */
#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/io/own/plan_trust.h"
#include "ui/screens/strategies/strategies_int.h"

/* From here on times are written in seconds, so that a column has one unit. */
#define SECONDS_FROM 0.9995

const char *hv_strategies_sort_name(enum hv_strategies_sort sort)
{
    static const char *const names[] = {
#define X(c, name) name,
        HV_STRATEGIES_SORT_MAP(X)
#undef X
    };
    return names[sort];
}

bool hv_strategies_is_plain(enum hv_kind kind)
{
    return kind == HV_KIND_PLANNER || kind == HV_KIND_BASELINE;
}

bool hv_strategies_is_open(const struct hv_strategies *st, enum hv_kind kind)
{
    unsigned bit = 1U << kind;
    return hv_strategies_is_plain(kind) ||
           (st->filter[0] != '\0' ? !(st->shut & bit) : (st->open & bit) != 0);
}

const char *hv_strategies_heading(enum hv_kind kind)
{
    return kind < HV_KIND_N ? hv_kind_name(kind) : "broken";
}

const struct hv_strategies_line *hv_strategies_line_at(const struct hv_strategies_data *d,
                                                       size_t row)
{
    return row < d->lines.n ? &d->lines.items[row] : NULL;
}

const struct hv_plugin *hv_strategies_at(const struct hv_strategies_data *d, size_t row)
{
    const struct hv_strategies_line *line = hv_strategies_line_at(d, row);
    return line != NULL && line->plugin != HV_NO_STRATEGY ? &d->plugins[line->plugin] : NULL;
}

size_t hv_strategies_baseline(const struct hv_strategies_data *d)
{
    size_t *under = hv_xcalloc(d->n + 1, sizeof *under), found = HV_NO_STRATEGY;
    size_t n = hv_plugins_under(d->plugins, d->n, HV_KIND_BASELINE, under);
    for (size_t i = 0; i < n && found == HV_NO_STRATEGY; i++) {
        found = d->facts[under[i]].judged ? under[i] : HV_NO_STRATEGY;
    }
    free(under);
    return found;
}

/* ---- strategies ---- */

/** Latest run of a strategy; compositions that begin with it count. */
static const struct hv_row *latest(const struct hv_row *const *rows, size_t n, const char *id)
{
    const struct hv_row *best = NULL;
    size_t len = strlen(id);
    for (size_t i = 0; i < n; i++) {
        const char *name = rows[i]->strategy;
        bool same = strncmp(name, id, len) == 0 && (name[len] == '\0' || name[len] == '+');
        if (same && (best == NULL || rows[i]->id > best->id)) {
            best = rows[i];
        }
    }
    return best;
}

static void forget_text(struct hv_strategy_facts *f)
{
    json_decref(f->plan);
    free(f->text);
    f->plan = NULL;
    f->text = NULL;
}

/** The plan as a text, made anew only where plan or cluster changed. */
static void update_text(struct hv_strategies_data *d, struct hv_strategy_facts *f)
{
    json_t *plan = f->judged ? (json_t *)(uintptr_t)f->row->plan : NULL;
    uint64_t cluster = hv_session_generation(d->s, HV_DOC_CLUSTER);
    if (f->plan == plan && (plan == NULL || f->cluster == cluster)) {
        return;
    }
    forget_text(f);
    if (plan != NULL) {
        f->plan = json_incref(plan);
        f->cluster = cluster;
        f->text = hv_plan_same_text(hv_session_cluster(d->s)->cluster, plan);
    }
}

static void update_facts(const struct hv_strategies *st, struct hv_strategies_data *d, size_t i,
                         const struct hv_row *const *rows, size_t n_rows)
{
    const struct hv_plugin *p = &d->plugins[i];
    struct hv_strategy_facts *f = &d->facts[i];
    struct hv_str where = {0};
    f->match = st->filter[0] == '\0' ? HV_MATCH_NAME : hv_strategy_match(p, st->filter, &where);
    hv_str_free(&where);
    f->row = p->error == NULL && p->id != NULL ? latest(rows, n_rows, p->id) : NULL;
    bool has_plan = f->row != NULL && f->row->plan != NULL;
    const struct hv_verdict *v =
        has_plan ? hv_session_verdict(d->s, f->row->id, false, NULL) : NULL;
    f->judged = v != NULL;
    f->fits = v != NULL && v->findings.n == 0;
    f->exact = v != NULL && v->metrics.exact;
    f->n_approximated = v != NULL ? v->n_approximated : 0;
    f->iteration_s = v != NULL ? v->metrics.iteration_s : HV_UNKNOWN;
    f->same = HV_NO_STRATEGY;
    d->in_seconds |= hv_known(f->iteration_s) && f->iteration_s >= SECONDS_FROM;
    update_text(d, f);
}

/** Names equal plans: each gets the first before it in the order of the headings. */
static void find_equal(struct hv_strategies_data *d)
{
    size_t *under = hv_xcalloc(d->n + 1, sizeof *under), *seen = hv_xcalloc(d->n + 1, sizeof *seen);
    size_t n_seen = 0;
    for (int k = 0; k < HV_KIND_N; k++) {
        size_t n = hv_plugins_under(d->plugins, d->n, (enum hv_kind)k, under);
        for (size_t i = 0; i < n; i++) {
            struct hv_strategy_facts *f = &d->facts[under[i]];
            if (f->text == NULL || (int)d->plugins[under[i]].kinds[0] != k) {
                continue;
            }
            size_t e = 0;
            while (e < n_seen && strcmp(d->facts[seen[e]].text, f->text) != 0) {
                e++;
            }
            if (e < n_seen) {
                f->same = seen[e];
            } else {
                seen[n_seen++] = under[i];
            }
        }
    }
    free(under);
    free(seen);
}

/* ---- headings ---- */

bool hv_strategy_is_faster(const struct hv_strategies_data *d, size_t a, size_t b)
{
    const struct hv_strategy_facts *x = &d->facts[a], *y = &d->facts[b];
    if (x->exact != y->exact) {
        return x->exact;
    }
    return x->iteration_s != y->iteration_s ? x->iteration_s < y->iteration_s : a < b;
}

static void count(const struct hv_strategies_data *d, struct hv_heading_facts *h, size_t i)
{
    const struct hv_strategy_facts *f = &d->facts[i];
    h->n++;
    if (f->match == HV_MATCH_NONE) {
        return;
    }
    h->first = h->n_shown++ == 0 ? i : h->first;
    if (f->row == NULL) {
        return;
    }
    bool active = f->row->state == HV_ROW_QUEUED || f->row->state == HV_ROW_RUNNING;
    h->n_active += active;
    h->n_run += !active;
    h->n_misfit += f->judged && !f->fits;
    if (f->row->state == HV_ROW_NOT_APPLICABLE) {
        h->reason = h->n_not == 0 ? f->row->reason : h->reason;
        h->n_not++;
    }
    if (f->fits && hv_known(f->iteration_s) &&
        (h->best == HV_NO_STRATEGY || hv_strategy_is_faster(d, i, h->best))) {
        h->best = i;
    }
}

/* ---- order ---- */

/** Sort key of a strategy: lower comes first, what has none last. */
static double key_of(const struct hv_strategies *st, const struct hv_strategies_data *d, size_t i)
{
    const struct hv_strategy_facts *f = &d->facts[i];
    double key = HV_UNKNOWN;
    if (st->sort == HV_STRATEGIES_BY_TIME && f->fits) {
        key = f->iteration_s;
    } else if (st->sort == HV_STRATEGIES_BY_YEAR && d->plugins[i].year > 0) {
        key = d->plugins[i].year;
    } else if (st->sort == HV_STRATEGIES_BY_TRUST && f->judged) {
        key = (double)f->n_approximated + (f->same != HV_NO_STRATEGY ? 0.5 : 0);
    }
    return key;
}

/** True where b belongs before a. */
static bool is_behind(const struct hv_strategies *st, double a, double b)
{
    if (!hv_known(a) || !hv_known(b)) {
        return !hv_known(a) && hv_known(b);
    }
    return st->descending ? b > a : b < a;
}

/** Stable insertion sort; strategies without a key stay behind, in the order of ids. */
static void sort(const struct hv_strategies *st, const struct hv_strategies_data *d, size_t *at,
                 size_t n)
{
    for (size_t i = 1; i < n && st->sort != HV_STRATEGIES_BY_ID; i++) {
        size_t x = at[i], k = i;
        while (k > 0 && is_behind(st, key_of(st, d, at[k - 1]), key_of(st, d, x))) {
            at[k] = at[k - 1];
            k--;
        }
        at[k] = x;
    }
}

/** Strategies under a heading, those that do not pass the filter too where `all`. */
static size_t under(const struct hv_strategies *st, const struct hv_strategies_data *d,
                    enum hv_kind kind, bool all, size_t *out)
{
    size_t n = hv_plugins_under(d->plugins, d->n, kind, out), kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (all || d->facts[out[i]].match != HV_MATCH_NONE) {
            out[kept++] = out[i];
        }
    }
    if (!hv_strategies_is_plain(kind)) {
        sort(st, d, out, kept);
    }
    return kept;
}

size_t hv_strategies_under(const struct hv_strategies *st, const struct hv_strategies_data *d,
                           enum hv_kind kind, size_t *out)
{
    return under(st, d, kind, false, out);
}

struct hv_strategies_line *hv_strategies_all_lines(const struct hv_strategies *st,
                                                   const struct hv_strategies_data *d, size_t *n)
{
    size_t *at = hv_xcalloc(d->n + 1, sizeof *at);
    /* a strategy stands under HV_PLUGIN_KINDS_MAX headings at the most */
    struct hv_strategies_line *lines =
        hv_xcalloc(d->n * HV_PLUGIN_KINDS_MAX + HV_HEADINGS, sizeof *lines);
    *n = 0;
    for (int k = 0; k <= HV_KIND_N; k++) {
        enum hv_kind kind = (enum hv_kind)k;
        size_t n_at = under(st, d, kind, true, at);
        if (n_at > 0 && !hv_strategies_is_plain(kind)) {
            lines[(*n)++] = (struct hv_strategies_line){kind, HV_NO_STRATEGY};
        }
        for (size_t i = 0; i < n_at; i++) {
            lines[(*n)++] = (struct hv_strategies_line){kind, at[i]};
        }
    }
    free(at);
    return lines;
}

/** The lines that are shown. */
static void list_lines(const struct hv_strategies *st, struct hv_strategies_data *d)
{
    size_t n = 0;
    struct hv_strategies_line *all = hv_strategies_all_lines(st, d, &n);
    d->lines.n = 0;
    for (size_t i = 0; i < n; i++) {
        bool heading = all[i].plugin == HV_NO_STRATEGY;
        bool shown = heading ? d->kinds[all[i].kind].n_shown > 0
                             : hv_strategies_is_open(st, all[i].kind) &&
                                   d->facts[all[i].plugin].match != HV_MATCH_NONE;
        if (shown) {
            hv_vec_push(&d->lines, all[i]);
        }
    }
    free(all);
}

/** Hash of what the data is made from. */
static uint64_t version_of(const struct hv_strategies *st, const struct hv_session *s)
{
    const uint64_t of[] = {hv_session_changes(s), st->open, st->shut, st->sort, st->descending};
    return hv_hash(hv_hash(HV_HASH_START, of, sizeof of), st->filter, strlen(st->filter)) | 1;
}

static void count_headings(struct hv_strategies_data *d)
{
    size_t *at = hv_xcalloc(d->n + 1, sizeof *at);
    for (int k = 0; k <= HV_KIND_N; k++) {
        d->kinds[k] = (struct hv_heading_facts){.best = HV_NO_STRATEGY, .first = HV_NO_STRATEGY};
        size_t n = hv_plugins_under(d->plugins, d->n, (enum hv_kind)k, at);
        for (size_t i = 0; i < n; i++) {
            count(d, &d->kinds[k], at[i]);
        }
    }
    free(at);
}

/** Frees what is known of strategies. */
static void clear(struct hv_strategies_data *d)
{
    for (size_t i = 0; i < d->n; i++) {
        forget_text(&d->facts[i]);
    }
    free(d->facts);
    d->facts = NULL;
    d->n = 0;
}

struct hv_strategies_data *hv_strategies_sync(const struct hv_strategies *st, struct hv_session *s)
{
    struct hv_strategies_data *d = st->data;
    size_t n = 0, n_rows = 0;
    const struct hv_plugin *plugins = hv_session_strategies(s, &n);
    uint64_t version = version_of(st, s);
    if (d->version == version && d->plugins == plugins && d->n == n) {
        return d;
    }
    if (d->n != n || d->plugins != plugins) {
        clear(d);
        d->facts = hv_xcalloc(n + 1, sizeof *d->facts);
    }
    struct hv_strategies_lines lines = d->lines;
    *d = (struct hv_strategies_data){
        .s = s, .st = st, .plugins = plugins, .n = n, .facts = d->facts, .version = version};
    d->lines = lines;
    const struct hv_row *const *rows = hv_session_rows(s, &n_rows);
    for (size_t i = 0; i < n; i++) {
        update_facts(st, d, i, rows, n_rows);
    }
    find_equal(d);
    count_headings(d);
    list_lines(st, d);
    return d;
}

void hv_strategies_data_free(struct hv_strategies_data *d)
{
    if (d != NULL) {
        clear(d);
        hv_vec_free(&d->lines);
        free(d);
    }
}
