/*
 * Conditions on cells: SQL expressions over the names of the axes and `strategy`, evaluated by
 * SQLite. Nothing but arithmetic, comparisons and pure functions is allowed, within limits of
 * length, depth and steps.
 */
#include "solver/sweep/sweep_int.h"

#include "solver/base/units.h"
#include "solver/sweep/sql.h"
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_MAX = 100000, /* instructions of SQLite for one condition of one cell */
    LENGTH_MAX = 10000, /* bytes of a condition, and of any text in it */
    DEPTH_MAX = 100
};

struct hv__where {
    sqlite3 *db;
    struct hv_jp list; /* borrowed; its `up` lives on the caller's stack */
    size_t n;
    sqlite3_stmt **tests;
};

static enum hv_status open_db(struct hv__where *w, struct hv_err *err)
{
    if (sqlite3_open_v2(":memory:", &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) !=
        SQLITE_OK) {
        return hv_err_set(err, HV_ELIMIT, "no memory for the conditions of a sweep");
    }
    /* a name in double quotes that does not exist is an error and not a text */
    (void)sqlite3_db_config(w->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    (void)sqlite3_limit(w->db, SQLITE_LIMIT_LENGTH, LENGTH_MAX + 10000);
    (void)sqlite3_limit(w->db, SQLITE_LIMIT_EXPR_DEPTH, DEPTH_MAX);
    (void)sqlite3_set_authorizer(w->db, hv__sql_reads, NULL);
    return HV_OK;
}

/** Bytes of the statement's text up to and with the condition are compiled; a second statement, or
 * a comment that swallows the end, is refused. */
static enum hv_status compile(struct hv__where *w, const struct hv_sweep *s, size_t i,
                              struct hv_err *err)
{
    struct hv_jp at = hv_jp_at(&w->list, i);
    struct hv_str sql = {0}, names = {0};
    const char *text = NULL, *tail = NULL;
    enum hv_status st = hv_jp_string(&at, &text, err);

    if (st != HV_OK) {
        return st;
    }
    for (size_t k = 0; k < s->n_axes; k++) {
        hv_str_addf(&names, "%s, ", s->axes[k].name);
    }
    hv_str_adds(&names, "strategy");
    hv_str_addf(&sql, "SELECT (%s\n) FROM (SELECT ", text);
    for (size_t k = 0; k < s->n_axes; k++) {
        hv_str_addf(&sql, "?%zu AS \"%s\", ", k + 1, s->axes[k].name);
    }
    hv_str_addf(&sql, "?%zu AS strategy)", s->n_axes + 1);
    int rc = sqlite3_prepare_v2(w->db, hv_str_cstr(&sql), (int)sql.n + 1, &w->tests[i], &tail);
    bool whole = rc == SQLITE_OK && w->tests[i] != NULL && tail != NULL && tail[0] == '\0' &&
                 sqlite3_column_count(w->tests[i]) == 1 &&
                 sqlite3_bind_parameter_count(w->tests[i]) == (int)s->n_axes + 1;
    if (!whole) {
        st = hv_jp_fail(
            &at, err,
            "expected a condition such as \"tp * pp <= 8\" on %.300s, found \"%.200s\"%s%.200s",
            hv_str_cstr(&names), text, rc != SQLITE_OK ? ": " : "",
            rc != SQLITE_OK ? sqlite3_errmsg(w->db) : "");
    }
    hv_str_free(&names);
    hv_str_free(&sql);
    return st;
}

enum hv_status hv__where_new(struct hv__where **out, const struct hv_sweep *s,
                             const struct hv_jp *at, struct hv_err *err)
{
    size_t n = 0;
    *out = NULL;
    if (hv_jp_none(at)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(at, &n, err);
    if (st != HV_OK || n == 0) {
        return st;
    }
    struct hv__where *w = hv_xcalloc(1, sizeof *w);
    w->list = *at;
    w->n = n;
    w->tests = hv_xcalloc(n, sizeof(sqlite3_stmt *));
    st = open_db(w, err);
    for (size_t i = 0; i < n && st == HV_OK; i++) {
        st = compile(w, s, i, err);
    }
    if (st != HV_OK) {
        hv__where_free(w);
        return st;
    }
    sqlite3_progress_handler(w->db, STEPS_MAX, hv__sql_give_up, NULL);
    *out = w;
    return HV_OK;
}

static void bind(sqlite3_stmt *test, int column, const struct hv_sweep_value *v)
{
    if (json_is_integer(v->value)) {
        (void)sqlite3_bind_int64(test, column, json_integer_value(v->value));
    } else if (json_is_number(v->value)) {
        (void)sqlite3_bind_double(test, column, json_number_value(v->value));
    } else if (json_is_boolean(v->value)) {
        (void)sqlite3_bind_int(test, column, json_is_true(v->value));
    } else {
        (void)sqlite3_bind_text(test, column, v->label, -1, SQLITE_STATIC);
    }
}

enum hv_status hv__where_holds(struct hv__where *w, const struct hv_sweep *s,
                               const struct hv_sweep_cell *cell, bool *holds, struct hv_err *err)
{
    *holds = true;
    for (size_t i = 0; w != NULL && i < w->n && *holds; i++) {
        sqlite3_stmt *test = w->tests[i];
        for (size_t k = 0; k < s->n_axes; k++) {
            bind(test, (int)k + 1, hv_sweep_value(s, cell, k));
        }
        (void)sqlite3_bind_text(test, (int)s->n_axes + 1, s->strategies[cell->strategy], -1,
                                SQLITE_STATIC);
        int rc = sqlite3_step(test);
        *holds = rc == SQLITE_ROW && sqlite3_column_int(test, 0) != 0;
        if (rc != SQLITE_ROW) {
            struct hv_jp at = hv_jp_at(&w->list, i);
            (void)sqlite3_reset(test);
            return hv_jp_fail(&at, err, "the condition cannot be evaluated: %.200s",
                              sqlite3_errmsg(w->db));
        }
        (void)sqlite3_reset(test);
    }
    return HV_OK;
}

void hv__where_free(struct hv__where *w)
{
    if (w == NULL) {
        return;
    }
    for (size_t i = 0; i < w->n; i++) {
        (void)sqlite3_finalize(w->tests[i]);
    }
    (void)sqlite3_close(w->db);
    free(w->tests);
    free(w);
}
