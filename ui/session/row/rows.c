/*
 * Rows, their order and their saved state. Not for events of workers (run_events.c) nor for figures
 * (judged.c).
 */
#include "ui/session/row/row_int.h"

#include "solver/base/units.h"
#include <stdlib.h>
#include <string.h>

/* Member of a plan that holds the user's note: so it is saved, recovered and exported with it. */
#define NOTE_KEY "x-note"

struct hv__rows {
    HV_VEC(struct hv__row *) all; /* in order of id, deleted ones included */
    HV_VEC(const struct hv_row *) shown;
    enum hv_sort sort;
    bool descending;
    uint32_t last_id, selected;
};

const char *hv_row_state_name(enum hv_row_state st)
{
    static const char *const names[] = {
#define X(c, name) name,
        HV_ROW_MAP(X)
#undef X
    };
    return (unsigned)st < HV_ROW_STATE_N ? names[st] : "?";
}

const char *hv_sort_name(enum hv_sort k)
{
    static const char *const names[] = {
#define X(c, name) name,
        HV_SORT_MAP(X)
#undef X
    };
    return (unsigned)k < HV_SORT_N ? names[k] : "?";
}

/* ---- one row --------------------------------------------------------------------------------- */

void hv__row_set_text(char **slot, const char *text)
{
    char *copy = hv_xstrdup(text);
    free(*slot);
    *slot = copy;
}

static void row_free(struct hv__row *r)
{
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        json_decref(r->made_for[d]);
    }
    json_decref(r->options);
    json_decref(r->plan);
    json_decref(r->saved_plan);
    hv_vec_free(&r->points);
    hv_str_free(&r->log);
    free(r->name);
    free(r->strategy);
    free(r->progress);
    free(r->reason);
    free(r->saved_name);
    free(r->saved_ref);
    free(r);
}

void hv__row_publish(struct hv__row *r)
{
    r->pub.name = r->name;
    r->pub.strategy = r->strategy;
    r->pub.options = r->options;
    r->pub.progress_text = r->progress;
    r->pub.reason = r->reason;
    r->pub.log = hv_str_cstr(&r->log);
    r->pub.plan = r->plan;
    r->pub.note = hv__note_of(r->plan);
    r->pub.claimed = json_object_get(r->plan, "claimed");
    r->pub.points = r->points.items;
    r->pub.n_points = r->points.n;
    r->pub.saved =
        r->plan != NULL && r->plan == r->saved_plan && strcmp(r->name, r->saved_name) == 0;
}

static void made_for_now(struct hv__row *r, const struct hv__docs *docs)
{
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        json_decref(r->made_for[d]);
        r->made_for[d] = json_incref(hv__docs_tree(docs, (enum hv_doc)d));
    }
    r->pub.outdated = false;
}

void hv__row_take_plan(struct hv__row *r, json_t *plan)
{
    json_incref(plan);
    json_decref(r->plan);
    r->plan = plan;
}

/* ---- notes ----------------------------------------------------------------------------------- */

const char *hv__note_of(const json_t *plan)
{
    const char *note = json_string_value(json_object_get(plan, NOTE_KEY));
    return note != NULL ? note : "";
}

json_t *hv__note_put(const json_t *plan, const char *note)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)plan);
    if (note[0] != '\0') {
        json_object_set_new(copy, NOTE_KEY, json_string(note));
    } else {
        json_object_del(copy, NOTE_KEY);
    }
    return copy;
}

/* ---- all rows -------------------------------------------------------------------------------- */

struct hv__rows *hv__rows_new(void)
{
    return hv_xcalloc(1, sizeof(struct hv__rows));
}

void hv__rows_free(struct hv__rows *rows)
{
    for (size_t i = 0; i < rows->all.n; i++) {
        row_free(rows->all.items[i]);
    }
    hv_vec_free(&rows->all);
    hv_vec_free(&rows->shown);
    free(rows);
}

size_t hv__rows_n(const struct hv__rows *rows)
{
    return rows->all.n;
}

const struct hv_row *hv__rows_at(const struct hv__rows *rows, size_t i)
{
    return &rows->all.items[i]->pub;
}

/* The row of that id, deleted ones included, or NULL. */
static struct hv__row *row_of(const struct hv__rows *rows, uint32_t id)
{
    size_t lo = 0, hi = rows->all.n; /* in order of id */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (rows->all.items[mid]->pub.id < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < rows->all.n && rows->all.items[lo]->pub.id == id ? rows->all.items[lo] : NULL;
}

struct hv__row *hv__rows_row_of_job(const struct hv__rows *rows, uint32_t job)
{
    for (size_t i = rows->all.n; i-- > 0;) {
        if (rows->all.items[i]->job == job) {
            return rows->all.items[i];
        }
    }
    return NULL;
}

const struct hv_row *hv__rows_any(const struct hv__rows *rows, uint32_t id)
{
    const struct hv__row *r = row_of(rows, id);
    return r != NULL ? &r->pub : NULL;
}

const struct hv_row *hv__rows_get(const struct hv__rows *rows, uint32_t id)
{
    const struct hv__row *r = row_of(rows, id);
    return r != NULL && !r->pub.deleted ? &r->pub : NULL;
}

bool hv__rows_has_name(const struct hv__rows *rows, const char *name, uint32_t besides)
{
    for (size_t i = 0; i < rows->all.n; i++) {
        const struct hv__row *r = rows->all.items[i];
        if (r->pub.id != besides && strcmp(r->name, name) == 0) {
            return true;
        }
    }
    return false;
}

char *hv__rows_fresh_name(const struct hv__rows *rows, const char *base)
{
    struct hv_str name = {0};
    for (size_t i = 1;; i++) {
        hv_str_clear(&name);
        hv_str_addf(&name, "%.100s-%zu", base, i);
        if (!hv__rows_has_name(rows, hv_str_cstr(&name), 0)) {
            return name.p;
        }
    }
}

bool hv__rows_are_edited(const struct hv__rows *rows)
{
    for (size_t i = 0; i < rows->all.n; i++) {
        const struct hv__row *r = rows->all.items[i];
        if (r->pub.deleted ? r->saved_plan != NULL : r->plan != NULL && !r->pub.saved) {
            return true;
        }
    }
    return false;
}

/* ---- changes --------------------------------------------------------------------------------- */

struct hv__row *hv__rows_push(struct hv__rows *rows, const char *name, const char *strategy)
{
    struct hv__row *r = hv_xcalloc(1, sizeof *r);
    r->pub.id = ++rows->last_id;
    r->pub.progress_frac = r->pub.bound_s = HV_UNKNOWN;
    r->name = hv_xstrdup(name);
    r->strategy = hv_xstrdup(strategy);
    r->progress = hv_xstrdup("");
    r->reason = hv_xstrdup("");
    hv_vec_push(&rows->all, r);
    return r;
}

uint32_t hv__rows_add(struct hv__rows *rows, const struct hv__docs *docs, const char *name,
                      const char *strategy)
{
    struct hv__row *r = hv__rows_push(rows, name, strategy);
    made_for_now(r, docs);
    hv__row_publish(r);
    return r->pub.id;
}

void hv__rows_set_state(struct hv__rows *rows, uint32_t id, enum hv_row_state state)
{
    row_of(rows, id)->pub.state = state;
}

void hv__rows_set_options(struct hv__rows *rows, uint32_t id, json_t *options)
{
    struct hv__row *r = row_of(rows, id);
    json_incref(options);
    json_decref(r->options);
    r->options = options;
    hv__row_publish(r);
}

void hv__rows_set_plan(struct hv__rows *rows, uint32_t id, json_t *plan)
{
    struct hv__row *r = row_of(rows, id);
    hv__row_take_plan(r, plan);
    hv__row_publish(r);
}

void hv__rows_set_reason(struct hv__rows *rows, uint32_t id, const char *reason)
{
    struct hv__row *r = row_of(rows, id);
    hv__row_set_text(&r->reason, reason);
    hv__row_publish(r);
}

void hv__rows_set_deleted(struct hv__rows *rows, uint32_t id, bool deleted)
{
    row_of(rows, id)->pub.deleted = deleted;
}

void hv__rows_rename(struct hv__rows *rows, uint32_t id, const char *name)
{
    struct hv__row *r = row_of(rows, id);
    hv__row_set_text(&r->name, name);
    hv__row_publish(r);
}

void hv__rows_set_elapsed(struct hv__rows *rows, uint32_t id, double elapsed_s)
{
    row_of(rows, id)->pub.elapsed_s = elapsed_s;
}

void hv__rows_update_outdated(struct hv__rows *rows, const struct hv__docs *docs)
{
    for (size_t i = 0; i < rows->all.n; i++) {
        struct hv__row *r = rows->all.items[i];
        r->pub.outdated = false;
        for (int d = 0; d < HV_DOC_INPUTS; d++) {
            r->pub.outdated |= r->made_for[d] != hv__docs_tree(docs, (enum hv_doc)d);
        }
    }
}

void hv__rows_sweep(struct hv__rows *rows, const struct hv__journal *journal)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->all.n; i++) {
        struct hv__row *r = rows->all.items[i];
        /* a row in the saved workspace is needed until a save removes it there */
        if (r->pub.deleted && r->job == 0 && r->saved_plan == NULL &&
            !hv__journal_holds_row(journal, r->pub.id)) {
            row_free(r);
        } else {
            rows->all.items[kept++] = r;
        }
    }
    rows->all.n = kept;
}

const char *hv__rows_saved_ref(const struct hv__rows *rows, uint32_t id)
{
    return row_of(rows, id)->saved_ref;
}

void hv__rows_mark_saved(struct hv__rows *rows, uint32_t id, const char *ref)
{
    struct hv__row *r = row_of(rows, id);
    bool there = !r->pub.deleted && r->plan != NULL;
    char *copy = ref != NULL ? hv_xstrdup(ref) : NULL;
    json_decref(r->saved_plan);
    r->saved_plan = there ? json_incref(r->plan) : NULL;
    free(r->saved_name);
    r->saved_name = there ? hv_xstrdup(r->name) : NULL;
    free(r->saved_ref);
    r->saved_ref = copy;
    hv__row_publish(r);
}

uint32_t hv__rows_job(const struct hv__rows *rows, uint32_t id)
{
    return row_of(rows, id)->job;
}

void hv__rows_set_job(struct hv__rows *rows, uint32_t id, uint32_t job)
{
    row_of(rows, id)->job = job;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* A row with its sort key. */
struct ranked {
    const struct hv_row *row;
    struct hv__rank rank;
    const char *word; /* instead of the figure */
};

static struct ranked rank_row(const struct hv__rows *rows, const struct hv_row *row,
                              hv__rank_fn *rank, void *ctx)
{
    struct ranked out = {.row = row, .rank = {.figure = (double)row->id}};
    if (rows->sort == HV_SORT_NAME) {
        out.word = row->name;
    } else if (rows->sort == HV_SORT_STATE) {
        out.rank.figure = (double)row->state;
    } else if (rows->sort > HV_SORT_STATE) {
        out.rank = rank(ctx, row, rows->sort);
    }
    return out;
}

static int compare(const struct ranked *a, const struct ranked *b, bool descending)
{
    if (a->rank.group != b->rank.group) {
        return a->rank.group < b->rank.group ? -1 : 1;
    }
    int c = 0;
    if (a->word != NULL) {
        c = strcmp(a->word, b->word);
    } else if (a->rank.group < 3) {
        c = (a->rank.figure > b->rank.figure) - (a->rank.figure < b->rank.figure);
    }
    if (c != 0) {
        return descending ? -c : c;
    }
    return (a->row->id > b->row->id) - (a->row->id < b->row->id);
}

static int compare_up(const void *a, const void *b)
{
    return compare(a, b, false);
}

static int compare_down(const void *a, const void *b)
{
    return compare(a, b, true);
}

void hv__rows_sort(struct hv__rows *rows, hv__rank_fn *rank, void *ctx)
{
    HV_VEC(struct ranked) list = {0};
    for (size_t i = 0; i < rows->all.n; i++) {
        if (!rows->all.items[i]->pub.deleted) {
            struct ranked r = rank_row(rows, &rows->all.items[i]->pub, rank, ctx);
            hv_vec_push(&list, r);
        }
    }
    if (list.n > 1) {
        qsort(list.items, list.n, sizeof *list.items, rows->descending ? compare_down : compare_up);
    }
    rows->shown.n = 0;
    for (size_t i = 0; i < list.n; i++) {
        hv_vec_push(&rows->shown, list.items[i].row);
    }
    hv_vec_free(&list);
}

const struct hv_row *const *hv__rows_shown(const struct hv__rows *rows, size_t *n)
{
    *n = rows->shown.n;
    return rows->shown.items;
}

void hv__rows_set_order(struct hv__rows *rows, enum hv_sort key, bool descending)
{
    rows->sort = key;
    rows->descending = descending;
}

enum hv_sort hv__rows_order(const struct hv__rows *rows, bool *descending)
{
    if (descending != NULL) {
        *descending = rows->descending;
    }
    return rows->sort;
}

uint32_t hv__rows_selected(const struct hv__rows *rows)
{
    return hv__rows_get(rows, rows->selected) != NULL ? rows->selected : 0;
}

bool hv__rows_select(struct hv__rows *rows, uint32_t id)
{
    if (rows->selected == id) {
        return false;
    }
    rows->selected = id;
    return true;
}
