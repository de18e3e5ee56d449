/*
 * The rows of the plans table: names, order, taking away and bringing back. Not for runs
 * (session_runs.c) nor for figures (session_judge.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/units.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *hv_row_state_name(enum hv_row_state st)
{
    static const char *const names[] = {
#define X(c, name, mark) name,
        HV_ROW_MAP(X)
#undef X
    };
    return (unsigned)st < HV_ROW_STATE_N ? names[st] : "?";
}

const char *hv_row_state_mark(enum hv_row_state st)
{
    static const char *const marks[] = {
#define X(c, name, mark) mark,
        HV_ROW_MAP(X)
#undef X
    };
    return (unsigned)st < HV_ROW_STATE_N ? marks[st] : "?";
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

struct hv__row *hv__session_row_new(struct hv_session *s, const char *name, const char *strategy)
{
    struct hv__row *r = hv_xcalloc(1, sizeof *r);
    r->pub.id = ++s->last_id;
    r->pub.progress_frac = r->pub.bound_s = HV_UNKNOWN;
    r->name = hv_xstrdup(name);
    r->strategy = hv_xstrdup(strategy);
    r->progress = hv_xstrdup("");
    r->reason = hv_xstrdup("");
    hv_vec_push(&s->rows, r);
    return r;
}

void hv__session_row_free(struct hv__row *r)
{
    hv__session_judged_free(&r->judged);
    for (int d = 0; d < HV__INPUTS; d++) {
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

struct hv__row *hv__session_row_any(const struct hv_session *s, uint32_t id)
{
    size_t lo = 0, hi = s->rows.n; /* in order of id */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->rows.items[mid]->pub.id < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < s->rows.n && s->rows.items[lo]->pub.id == id ? s->rows.items[lo] : NULL;
}

void hv__session_row_set_plan(struct hv_session *s, struct hv__row *r, json_t *plan)
{
    json_incref(plan);
    json_decref(r->plan);
    r->plan = plan;
    hv__session_touch(s);
}

void hv__session_row_made_now(struct hv_session *s, struct hv__row *r)
{
    for (int d = 0; d < HV__INPUTS; d++) {
        json_decref(r->made_for[d]);
        r->made_for[d] = json_incref(s->tree[d]);
    }
}

bool hv__session_row_is_saved(const struct hv__row *r)
{
    return r->plan != NULL && r->plan == r->saved_plan && strcmp(r->name, r->saved_name) == 0;
}

void hv__session_row_publish(const struct hv_session *s, struct hv__row *r)
{
    r->pub.name = r->name;
    r->pub.strategy = r->strategy;
    r->pub.options = r->options;
    r->pub.progress_text = r->progress;
    r->pub.reason = r->reason;
    r->pub.log = hv_str_cstr(&r->log);
    r->pub.plan = r->plan;
    r->pub.note = hv__session_note_of(r->plan);
    r->pub.claimed = json_object_get(r->plan, "claimed");
    r->pub.points = r->points.items;
    r->pub.n_points = r->points.n;
    r->pub.saved = hv__session_row_is_saved(r);
    r->pub.outdated = false;
    for (int d = 0; d < HV__INPUTS; d++) {
        r->pub.outdated |= r->made_for[d] != s->tree[d];
    }
}

void hv__session_rows_publish(struct hv_session *s)
{
    for (size_t i = 0; i < s->rows.n; i++) {
        hv__session_row_publish(s, s->rows.items[i]);
    }
}

static bool name_is_taken(const struct hv_session *s, const char *name, uint32_t besides)
{
    for (size_t i = 0; i < s->rows.n; i++) {
        if (s->rows.items[i]->pub.id != besides && strcmp(s->rows.items[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

char *hv__session_row_fresh_name(const struct hv_session *s, const char *base)
{
    struct hv_str name = {0};
    for (size_t i = 1;; i++) {
        hv_str_clear(&name);
        hv_str_addf(&name, "%.100s-%zu", base, i);
        if (!name_is_taken(s, hv_str_cstr(&name), 0)) {
            return name.p;
        }
    }
}

const struct hv_row *hv_session_row(const struct hv_session *s, uint32_t id)
{
    const struct hv__row *r = hv__session_row_any(s, id);
    return r != NULL && !r->deleted ? &r->pub : NULL;
}

const struct hv_row *const *hv_session_rows(const struct hv_session *s, size_t *n)
{
    *n = s->shown.n;
    return s->shown.items;
}

/* ---- order
 * ------------------------------------------------------------------------------------------ */

/* A row with what it is sorted by. */
struct ranked {
    const struct hv_row *row;
    int group; /* 0 keeps the rules, 1 is stale and must not be, 2 breaks rules, 3 has no figure */
    double figure;
    const char *word;
};

static double worst_memory_frac(const struct hv_verdict *v)
{
    double worst = HV_UNKNOWN;
    for (size_t i = 0; i < v->n_memory; i++) {
        double frac = v->memory[i].peak_bytes / v->memory[i].limit_bytes;
        if (hv_known(frac) && !(frac <= worst)) {
            worst = frac;
        }
    }
    return worst;
}

static double figure_of(const struct hv_verdict *v, enum hv_sort key)
{
    switch (key) {
    case HV_SORT_TIME:
        return v->metrics.iteration_s;
    case HV_SORT_TOKENS:
        return v->metrics.tokens_per_s;
    case HV_SORT_MFU:
        return v->metrics.mfu;
    case HV_SORT_COST:
        return v->metrics.usd_per_mtoken;
    case HV_SORT_MEMORY:
        return worst_memory_frac(v);
    case HV_SORT_BUBBLE:
        return v->metrics.bubble_frac;
    case HV_SORT_ENERGY:
        return v->metrics.energy_j;
    case HV_SORT_ID:
    case HV_SORT_NAME:
    case HV_SORT_STATE:
    case HV_SORT_N:
        break;
    }
    return HV_UNKNOWN;
}

/* An inexact plan never comes before an exact one unless the job allows it (formats.md §3). */
static int group_of(const struct hv_session *s, const struct hv_verdict *v)
{
    if (v->findings.n > 0) {
        return 2;
    }
    return !v->metrics.exact && !s->inputs.job.job.objective.allow_stale ? 1 : 0;
}

static struct ranked rank_row(struct hv_session *s, const struct hv__row *r)
{
    struct ranked out = {.row = &r->pub, .figure = (double)r->pub.id};
    if (s->sort == HV_SORT_NAME) {
        out.word = r->name;
    }
    if (s->sort == HV_SORT_STATE) {
        out.figure = (double)r->pub.state;
    }
    if (s->sort <= HV_SORT_STATE) {
        return out;
    }
    /* plans of running rows change too fast to be judged only for their place */
    const struct hv_verdict *v = r->job == 0 ? hv_session_verdict(s, r->pub.id, false, NULL) : NULL;
    out.figure = v != NULL ? figure_of(v, s->sort) : HV_UNKNOWN;
    out.group = !hv_known(out.figure) ? 3 : group_of(s, v);
    return out;
}

static int compare(const struct ranked *a, const struct ranked *b, bool descending)
{
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    int c = 0;
    if (a->word != NULL) {
        c = strcmp(a->word, b->word);
    } else if (a->group < 3) {
        c = (a->figure > b->figure) - (a->figure < b->figure);
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

void hv__session_rows_sort(struct hv_session *s)
{
    HV_VEC(struct ranked) list = {0};
    for (size_t i = 0; i < s->rows.n; i++) {
        if (!s->rows.items[i]->deleted) {
            struct ranked r = rank_row(s, s->rows.items[i]);
            hv_vec_push(&list, r);
        }
    }
    if (list.n > 1) {
        qsort(list.items, list.n, sizeof *list.items, s->descending ? compare_down : compare_up);
    }
    s->shown.n = 0;
    for (size_t i = 0; i < list.n; i++) {
        hv_vec_push(&s->shown, list.items[i].row);
    }
    hv_vec_free(&list);
    s->sort_due = false;
}

void hv_session_sort(struct hv_session *s, enum hv_sort key, bool descending)
{
    s->sort = key;
    s->descending = descending;
    hv__session_rows_sort(s);
    hv__session_moved(s);
}

enum hv_sort hv_session_sort_key(const struct hv_session *s, bool *descending)
{
    if (descending != NULL) {
        *descending = s->descending;
    }
    return s->sort;
}

uint32_t hv_session_selected(const struct hv_session *s)
{
    return hv_session_row(s, s->selected) != NULL ? s->selected : 0;
}

void hv_session_select(struct hv_session *s, uint32_t id)
{
    if (s->selected == id) {
        return;
    }
    s->selected = id;
    hv__session_moved(s);
}

/* ---- changes
 * ------------------------------------------------------------------------------------------ */

static void push_row_step(struct hv_session *s, const struct hv__row *r, enum hv__step_kind kind,
                          const char *name_before)
{
    struct hv_str label = {0};
    hv_str_addf(&label, kind == HV__STEP_DELETE ? "delete %s" : "rename %s",
                name_before != NULL ? name_before : r->name);
    struct hv__step step = {.kind = kind,
                            .row = r->pub.id,
                            .name_before = name_before != NULL ? hv_xstrdup(name_before) : NULL,
                            .name_after = hv_xstrdup(r->name),
                            .label = label.p};
    hv__session_journal_push(s, step);
}

/* "delete NAME", "rename NAME NEW". */
static void tell_row(struct hv_session *s, const char *verb, const char *name, const char *to)
{
    struct hv_str line = {0};
    hv_str_addf(&line, "%s ", verb);
    hv__session_add_word(&line, name);
    if (to != NULL) {
        hv_str_addc(&line, ' ');
        hv__session_add_word(&line, to);
    }
    hv__session_did(s, "%s", hv_str_cstr(&line));
    hv_str_free(&line);
}

bool hv_session_row_delete(struct hv_session *s, uint32_t id)
{
    struct hv__row *r = hv__session_row_any(s, id);
    if (r == NULL || r->deleted) {
        return false;
    }
    hv_session_cancel(s, id);
    tell_row(s, "delete", r->name, NULL);
    r->deleted = true;
    push_row_step(s, r, HV__STEP_DELETE, NULL);
    hv__session_touch(s);
    hv__session_rows_sort(s);
    return true;
}

enum hv_status hv_session_row_rename(struct hv_session *s, uint32_t id, const char *name,
                                     struct hv_err *err)
{
    struct hv__row *r = hv__session_row_any(s, id);
    if (r == NULL || r->deleted) {
        return hv_err_set(err, HV_EUSAGE, "there is no row %u", id);
    }
    if (name[0] == '\0' || name[0] == '.' || strlen(name) > 100) {
        return hv_err_set(err, HV_EUSAGE, "a plan's name has 1 to 100 bytes and no dot in front");
    }
    for (const char *p = name; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == '/' || *p == 0x7F) {
            return hv_err_set(err, HV_EUSAGE, "a plan's name holds no / and no control characters");
        }
    }
    if (name_is_taken(s, name, id)) {
        return hv_err_set(err, HV_EUSAGE, "the name %s is taken", name);
    }
    if (strcmp(r->name, name) == 0) {
        return HV_OK;
    }
    char *before = r->name;
    r->name = hv_xstrdup(name);
    push_row_step(s, r, HV__STEP_RENAME, before);
    tell_row(s, "rename", before, name);
    free(before);
    hv__session_touch(s);
    hv__session_row_publish(s, r);
    hv__session_rows_sort(s);
    return HV_OK;
}

/* "plan NAME {…}" */
static void tell_plan(struct hv_session *s, const char *name, const json_t *plan)
{
    struct hv_str line = {0};
    hv_str_adds(&line, "plan ");
    hv__session_add_word(&line, name);
    hv_str_addc(&line, ' ');
    hv_json_write(&line, plan, false);
    while (line.n > 0 && line.p[line.n - 1] == '\n') {
        line.n--;
    }
    hv__session_did(s, "%.*s", (int)line.n, line.p);
    hv_str_free(&line);
}

enum hv_status hv_session_row_add(struct hv_session *s, const char *name, json_t *plan,
                                  uint32_t *id, struct hv_err *err)
{
    struct hv_plan_doc doc = {0};
    struct hv_json json = {0};
    hv_json_wrap(&json, json_incref(plan), name);
    enum hv_status st = hv_plan_doc_build(&doc, json, s->inputs.cluster.cluster, err);
    if (st != HV_OK) {
        json_decref(plan);
        return st;
    }
    char *fresh =
        name_is_taken(s, name, 0) ? hv__session_row_fresh_name(s, name) : hv_xstrdup(name);
    struct hv__row *r =
        hv__session_row_new(s, fresh, doc.plan->strategy != NULL ? doc.plan->strategy : "");
    free(fresh);
    hv_plan_doc_free(&doc);
    r->pub.state = HV_ROW_DONE;
    hv__session_row_made_now(s, r);
    hv__session_row_set_plan(s, r, plan);
    tell_plan(s, r->name, plan);
    json_decref(plan);
    hv__session_row_publish(s, r);
    hv__session_rows_sort(s);
    if (id != NULL) {
        *id = r->pub.id;
    }
    return HV_OK;
}

enum hv_status hv__session_row_add_step(struct hv_session *s, const char *name, json_t *plan,
                                        const char *label, uint32_t *id, struct hv_err *err)
{
    enum hv_status st = hv_session_row_add(s, name, plan, id, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_str text = {0};
    if (label != NULL) {
        hv_str_adds(&text, label);
    } else {
        hv_str_addf(&text, "add %s", hv_session_row(s, *id)->name);
    }
    hv__session_journal_push(s,
                             (struct hv__step){.kind = HV__STEP_ADD, .row = *id, .label = text.p});
    hv__session_touch(s);
    return HV_OK;
}

static bool journal_names(const struct hv_session *s, uint32_t row)
{
    for (size_t i = 0; i < s->journal.n; i++) {
        if ((s->journal.items[i].kind == HV__STEP_DELETE ||
             s->journal.items[i].kind == HV__STEP_ADD) &&
            s->journal.items[i].row == row) {
            return true;
        }
    }
    return false;
}

void hv__session_rows_sweep(struct hv_session *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->rows.n; i++) {
        struct hv__row *r = s->rows.items[i];
        /* one that lies in the saved workspace is still needed to take it out there */
        if (r->deleted && r->job == 0 && r->saved_plan == NULL && !journal_names(s, r->pub.id)) {
            hv__session_row_free(r);
        } else {
            s->rows.items[kept++] = r;
        }
    }
    s->rows.n = kept;
}
