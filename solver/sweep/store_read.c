/* Reading the store. */
#include "solver/sweep/store_int.h"

#include "solver/base/arena.h"
#include "solver/base/units.h"
#include "solver/sweep/figures.h"
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 200000000 }; /* instructions of SQLite for one query */

struct hv_store {
    sqlite3 *db;
    char *path;
    struct hv_arena arena;
    struct hv_store_axis axes[HV_SWEEP_AXES_MAX];
    size_t n_axes;
    const char *columns[2 * HV_SWEEP_AXES_MAX + 32]; /* of `cells` */
    size_t n_columns;
};

static const char *kept(struct hv_store *s, const unsigned char *text)
{
    const char *t = text != NULL ? (const char *)text : "";
    return hv_arena_strndup(&s->arena, t, strlen(t));
}

/** Checks that the file is a store of this program. */
static enum hv_status check_format(const struct hv_store *s, struct hv_err *err)
{
    sqlite3_stmt *read = NULL;
    bool ok = sqlite3_prepare_v2(s->db, "SELECT value FROM sweep WHERE key = 'format'", -1, &read,
                                 NULL) == SQLITE_OK &&
              sqlite3_step(read) == SQLITE_ROW && sqlite3_column_text(read, 0) != NULL &&
              strcmp((const char *)sqlite3_column_text(read, 0), HV__STORE_FORMAT) == 0;
    (void)sqlite3_finalize(read);
    return ok ? HV_OK
              : hv_err_set(err, HV_EINPUT,
                           "%s: expected a store that `hetviz sweep merge` wrote (%s)", s->path,
                           HV__STORE_FORMAT);
}

static enum hv_status read_axes(struct hv_store *s, struct hv_err *err)
{
    sqlite3_stmt *read = NULL;
    if (sqlite3_prepare_v2(s->db, "SELECT name, place FROM axes ORDER BY position", -1, &read,
                           NULL) != SQLITE_OK) {
        return hv__store_fail(s->db, s->path, err);
    }
    while (s->n_axes < HV_SWEEP_AXES_MAX && sqlite3_step(read) == SQLITE_ROW) {
        s->axes[s->n_axes++] =
            (struct hv_store_axis){.name = kept(s, sqlite3_column_text(read, 0)),
                                   .place = kept(s, sqlite3_column_text(read, 1))};
    }
    (void)sqlite3_finalize(read);
    return HV_OK;
}

static enum hv_status read_columns(struct hv_store *s, struct hv_err *err)
{
    sqlite3_stmt *read = NULL;
    if (sqlite3_prepare_v2(s->db, "SELECT * FROM cells LIMIT 0", -1, &read, NULL) != SQLITE_OK) {
        return hv__store_fail(s->db, s->path, err);
    }
    int n = sqlite3_column_count(read);
    for (int i = 0; i < n && s->n_columns < HV_COUNT(s->columns); i++) {
        s->columns[s->n_columns++] = kept(s, (const unsigned char *)sqlite3_column_name(read, i));
    }
    (void)sqlite3_finalize(read);
    return HV_OK;
}

enum hv_status hv_store_open(struct hv_store **out, const char *path, struct hv_err *err)
{
    struct hv_store *s = hv_xcalloc(1, sizeof *s);
    *out = NULL;
    s->path = hv_xstrdup(path);
    enum hv_status st = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK
                            ? HV_OK
                            : hv__store_fail(s->db, path, err);
    st = st == HV_OK ? check_format(s, err) : st;
    st = st == HV_OK ? read_axes(s, err) : st;
    st = st == HV_OK ? read_columns(s, err) : st;
    if (st != HV_OK) {
        hv_store_close(s);
        return st;
    }
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    (void)sqlite3_set_authorizer(s->db, hv__sql_reads, NULL);
    sqlite3_progress_handler(s->db, STEPS_MAX, hv__sql_give_up, NULL);
    *out = s;
    return HV_OK;
}

void hv_store_close(struct hv_store *s)
{
    if (s == NULL) {
        return;
    }
    (void)sqlite3_close(s->db);
    hv_arena_free(&s->arena);
    free(s->path);
    free(s);
}

const struct hv_store_axis *hv_store_axes(const struct hv_store *s, size_t *n)
{
    *n = s->n_axes;
    return s->axes;
}

static enum hv_status add_column(const struct hv_store *s, const char *name, struct hv_str *sql,
                                 struct hv_err *err)
{
    for (size_t i = 0; i < s->n_columns; i++) {
        if (strcmp(s->columns[i], name) == 0) {
            hv_str_addf(sql, "\"%s\"", name);
            return HV_OK;
        }
    }
    const char *near = hv_suggest(name, s->columns, s->n_columns);
    return hv_err_set(err, HV_EUSAGE, "%s has no column \"%.80s\"%s%s%s", s->path, name,
                      near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                      near != NULL ? "?" : "");
}

/** Rows without a value come last; equal rows by axes and strategy. */
static enum hv_status add_order(const struct hv_store *s, const char *sort, struct hv_str *sql,
                                struct hv_err *err)
{
    enum hv_status st = HV_OK;
    hv_str_adds(sql, " ORDER BY ");
    if (sort != NULL) {
        const struct hv_sweep_figure *figure = hv_sweep_figure(sort);
        st = add_column(s, sort, sql, err);
        hv_str_adds(sql, " IS NULL, ");
        st = st == HV_OK ? add_column(s, sort, sql, err) : st;
        hv_str_adds(sql, figure != NULL && figure->more_is_better ? " DESC, " : ", ");
    }
    for (size_t i = 0; i < s->n_axes; i++) {
        hv_str_addf(sql, "\"%s\", ", s->axes[i].name);
    }
    hv_str_adds(sql, "strategy, id");
    return st;
}

static enum hv_status make_query(const struct hv_store *s, const struct hv_store_query *q,
                                 struct hv_str *sql, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    hv_str_adds(sql, "SELECT ");
    for (size_t i = 0; i < q->n_columns && st == HV_OK; i++) {
        hv_str_adds(sql, i > 0 ? ", " : "");
        st = add_column(s, q->columns[i], sql, err);
    }
    hv_str_adds(sql, " FROM cells");
    if (q->where != NULL) {
        hv_str_addf(sql, " WHERE (%s\n)", q->where);
    }
    st = st == HV_OK ? add_order(s, q->sort, sql, err) : st;
    if (q->most > 0) {
        hv_str_addf(sql, " LIMIT %zu", q->most);
    }
    return st;
}

static enum hv_status read_rows(sqlite3_stmt *read, const struct hv_store *s, size_t n,
                                hv_store_row_fn *each, void *ctx, struct hv_err *err)
{
    struct hv_store_value *row = hv_xcalloc(n + 1, sizeof *row);
    enum hv_status st = HV_OK;
    int rc = SQLITE_ROW;
    while (st == HV_OK && (rc = sqlite3_step(read)) == SQLITE_ROW) {
        for (size_t i = 0; i < n; i++) {
            int type = sqlite3_column_type(read, (int)i);
            bool number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
            row[i].number = number ? sqlite3_column_double(read, (int)i) : HV_UNKNOWN;
            row[i].text = (const char *)sqlite3_column_text(read, (int)i);
        }
        st = each(ctx, row, err);
    }
    free(row);
    return st == HV_OK && rc != SQLITE_DONE ? hv__store_fail(s->db, s->path, err) : st;
}

enum hv_status hv_store_read(const struct hv_store *s, const struct hv_store_query *q,
                             hv_store_row_fn *each, void *ctx, struct hv_err *err)
{
    struct hv_str sql = {0};
    sqlite3_stmt *read = NULL;
    const char *tail = NULL;
    enum hv_status st = make_query(s, q, &sql, err);

    if (st == HV_OK) {
        int rc = sqlite3_prepare_v2(s->db, hv_str_cstr(&sql), (int)sql.n + 1, &read, &tail);
        if (rc != SQLITE_OK || read == NULL || tail[0] != '\0' ||
            sqlite3_column_count(read) != (int)q->n_columns) {
            st = hv_err_set(
                err, HV_EUSAGE,
                "expected a condition on columns such as \"mfu > 0.4\", found \"%.200s\"%s%.200s",
                q->where != NULL ? q->where : "", rc != SQLITE_OK ? ": " : "",
                rc != SQLITE_OK ? sqlite3_errmsg(s->db) : "");
        }
    }
    st = st == HV_OK ? read_rows(read, s, q->n_columns, each, ctx, err) : st;
    (void)sqlite3_finalize(read);
    hv_str_free(&sql);
    return st;
}
