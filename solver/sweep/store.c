/* Writing the store: tables, one row per cell, results from the files. */
#include "solver/sweep/store_int.h"

#include "solver/base/units.h"
#include "solver/sweep/figures.h"
#include "solver/sweep/shard_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum hv_status hv__store_fail(sqlite3 *db, const char *path, struct hv_err *err)
{
    return hv_err_set(err, HV_EIO, "%s: SQLite: %s", path,
                      db != NULL ? sqlite3_errmsg(db) : "no memory");
}

/** A store that is being written. */
struct writing {
    sqlite3 *db;
    const char *path;
    const struct hv_sweep *s;
    sqlite3_stmt *update;
    struct hv_store_counts *counts;
};

static enum hv_status run(const struct writing *w, const char *sql, struct hv_err *err)
{
    return sqlite3_exec(w->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? HV_OK
               : hv__store_fail(w->db, w->path, err);
}

static enum hv_status prepare(const struct writing *w, const char *sql, sqlite3_stmt **out,
                              struct hv_err *err)
{
    return sqlite3_prepare_v2(w->db, sql, -1, out, NULL) == SQLITE_OK
               ? HV_OK
               : hv__store_fail(w->db, w->path, err);
}

static enum hv_status step(const struct writing *w, sqlite3_stmt *statement, struct hv_err *err)
{
    int rc = sqlite3_step(statement);
    (void)sqlite3_reset(statement);
    return rc == SQLITE_DONE ? HV_OK : hv__store_fail(w->db, w->path, err);
}

static enum hv_status make_tables(const struct writing *w, struct hv_err *err)
{
    size_t n = 0;
    const struct hv_sweep_figure *figures = hv_sweep_figures(&n);
    struct hv_str sql = {0};

    hv_str_adds(&sql, "CREATE TABLE sweep(key TEXT PRIMARY KEY, value TEXT);"
                      "CREATE TABLE axes(position INTEGER PRIMARY KEY, name TEXT, place TEXT);"
                      "CREATE TABLE cells(id TEXT PRIMARY KEY, strategy TEXT");
    for (size_t i = 0; i < w->s->n_axes; i++) {
        hv_str_addf(&sql, ", \"%s\"", w->s->axes[i].name);
    }
    hv_str_adds(&sql, ", state TEXT, reason TEXT, exact INTEGER, fits INTEGER");
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(&sql, ", %s REAL", figures[i].key);
    }
    hv_str_adds(&sql, ", plan TEXT);");
    enum hv_status st = run(w, hv_str_cstr(&sql), err);
    hv_str_free(&sql);
    return st;
}

static enum hv_status add_axes(const struct writing *w, struct hv_err *err)
{
    sqlite3_stmt *insert = NULL;
    enum hv_status st = prepare(w, "INSERT INTO axes VALUES(?1, ?2, ?3)", &insert, err);
    for (size_t i = 0; i < w->s->n_axes && st == HV_OK; i++) {
        (void)sqlite3_bind_int64(insert, 1, (sqlite3_int64)i);
        (void)sqlite3_bind_text(insert, 2, w->s->axes[i].name, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(insert, 3, w->s->axes[i].at, -1, SQLITE_STATIC);
        st = step(w, insert, err);
    }
    (void)sqlite3_finalize(insert);
    return st;
}

static enum hv_status add_facts(const struct writing *w, struct hv_err *err)
{
    char id[HV_SWEEP_ID_CAP];
    const char *const facts[][2] = {{"format", HV__STORE_FORMAT},
                                    {"id", hv_sweep_id_text(w->s->id, id)},
                                    {"specification", w->s->json.name}};
    sqlite3_stmt *insert = NULL;
    enum hv_status st = prepare(w, "INSERT INTO sweep VALUES(?1, ?2)", &insert, err);
    for (size_t i = 0; i < HV_COUNT(facts) && st == HV_OK; i++) {
        (void)sqlite3_bind_text(insert, 1, facts[i][0], -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(insert, 2, facts[i][1], -1, SQLITE_STATIC);
        st = step(w, insert, err);
    }
    (void)sqlite3_finalize(insert);
    return st;
}

static void bind_json(sqlite3_stmt *to, int column, const json_t *v)
{
    if (json_is_integer(v)) {
        (void)sqlite3_bind_int64(to, column, json_integer_value(v));
    } else if (json_is_number(v)) {
        (void)sqlite3_bind_double(to, column, json_number_value(v));
    } else if (json_is_boolean(v)) {
        (void)sqlite3_bind_int(to, column, json_is_true(v));
    } else if (json_is_string(v)) {
        (void)sqlite3_bind_text(to, column, json_string_value(v), -1, SQLITE_TRANSIENT);
    } else {
        (void)sqlite3_bind_null(to, column);
    }
}

/** A row per cell, without result. */
static enum hv_status add_cells(const struct writing *w, struct hv_err *err)
{
    sqlite3_stmt *insert = NULL;
    struct hv_str sql = {0};
    hv_str_adds(&sql, "INSERT INTO cells(id, strategy, state");
    for (size_t i = 0; i < w->s->n_axes; i++) {
        hv_str_addf(&sql, ", \"%s\"", w->s->axes[i].name);
    }
    hv_str_adds(&sql, ") VALUES(?1, ?2, 'missing'");
    for (size_t i = 0; i < w->s->n_axes; i++) {
        hv_str_addf(&sql, ", ?%zu", i + 3);
    }
    hv_str_adds(&sql, ")");
    enum hv_status st = prepare(w, hv_str_cstr(&sql), &insert, err);
    for (size_t i = 0; i < w->s->n_cells && st == HV_OK; i++) {
        const struct hv_sweep_cell *cell = &w->s->cells[i];
        char id[HV_SWEEP_ID_CAP];
        (void)sqlite3_bind_text(insert, 1, hv_sweep_id_text(cell->id, id), -1, SQLITE_TRANSIENT);
        (void)sqlite3_bind_text(insert, 2, w->s->strategies[cell->strategy], -1, SQLITE_STATIC);
        for (size_t k = 0; k < w->s->n_axes; k++) {
            const struct hv_sweep_value *v = hv_sweep_value(w->s, cell, k);
            if (json_is_number(v->value)) {
                bind_json(insert, (int)k + 3, v->value);
            } else {
                (void)sqlite3_bind_text(insert, (int)k + 3, v->label, -1, SQLITE_STATIC);
            }
        }
        st = step(w, insert, err);
    }
    (void)sqlite3_finalize(insert);
    hv_str_free(&sql);
    return st;
}

/** The states that are retried, as SQL: "'stopped', 'failed'". */
static void add_retried(struct hv_str *sql)
{
    bool first = true;
    for (int k = 0; k < HV_SWEEP_STATE_N; k++) {
        if (hv_sweep_state_is_retried((enum hv_sweep_state)k)) {
            hv_str_addf(sql, "%s'%s'", first ? "" : ", ",
                        hv_sweep_state_word((enum hv_sweep_state)k));
            first = false;
        }
    }
}

/** The result of a cell; one that is not retried stays before one that is. */
static enum hv_status prepare_update(struct writing *w, struct hv_err *err)
{
    size_t n = 0;
    const struct hv_sweep_figure *figures = hv_sweep_figures(&n);
    struct hv_str sql = {0};
    hv_str_adds(&sql, "UPDATE cells SET state = ?2, reason = ?3, exact = ?4, fits = ?5, plan = ?6");
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(&sql, ", %s = ?%zu", figures[i].key, i + 8);
    }
    hv_str_adds(&sql, " WHERE id = ?1 AND (?7 = 0 OR state IN ('missing', ");
    add_retried(&sql);
    hv_str_adds(&sql, "))");
    enum hv_status st = prepare(w, hv_str_cstr(&sql), &w->update, err);
    hv_str_free(&sql);
    return st;
}

static enum hv_status add_result(void *ctx, const struct hv_json *line, struct hv_err *err)
{
    struct writing *w = ctx;
    struct hv_jp root = hv_jp_root(line), at;
    const char *id = NULL, *word = NULL;
    size_t n = 0;
    const struct hv_sweep_figure *figures = hv_sweep_figures(&n);
    enum hv_status st = hv_jp_need(&root, "id", "the identity of a cell", &at, err);
    st = st == HV_OK ? hv_jp_string(&at, &id, err) : st;
    st = st == HV_OK ? hv_jp_need(&root, "state", "how the cell ended", &at, err) : st;
    st = st == HV_OK ? hv_jp_string(&at, &word, err) : st;
    if (st != HV_OK) {
        return st;
    }
    enum hv_sweep_state state = hv_sweep_state_of(word);
    if (state == HV_SWEEP_STATE_N) {
        return hv_jp_expected(&at, err, "the state of a result");
    }
    const json_t *plan = json_object_get(line->root, "plan");
    const json_t *values = json_object_get(line->root, "figures");
    struct hv_str text = {0};
    (void)sqlite3_clear_bindings(w->update);
    (void)sqlite3_bind_text(w->update, 1, id, -1, SQLITE_TRANSIENT);
    (void)sqlite3_bind_text(w->update, 2, word, -1, SQLITE_TRANSIENT);
    bind_json(w->update, 3, json_object_get(line->root, "reason"));
    bind_json(w->update, 4, json_object_get(line->root, "exact"));
    bind_json(w->update, 5, json_object_get(line->root, "fits"));
    if (plan != NULL) {
        hv_json_write(&text, plan, false);
        (void)sqlite3_bind_text(w->update, 6, text.p, (int)text.n, SQLITE_TRANSIENT);
    }
    (void)sqlite3_bind_int(w->update, 7, hv_sweep_state_is_retried(state));
    for (size_t i = 0; i < n; i++) {
        bind_json(w->update, (int)i + 8, json_object_get(values, figures[i].key));
    }
    st = step(w, w->update, err);
    hv_str_free(&text);
    return st;
}

static enum hv_status count(const struct writing *w, const char *condition, size_t *out,
                            struct hv_err *err)
{
    struct hv_str sql = {0};
    sqlite3_stmt *read = NULL;
    hv_str_addf(&sql, "SELECT count(*) FROM cells WHERE %s", condition);
    enum hv_status st = prepare(w, hv_str_cstr(&sql), &read, err);
    if (st == HV_OK && sqlite3_step(read) == SQLITE_ROW) {
        *out = (size_t)sqlite3_column_int64(read, 0);
    }
    (void)sqlite3_finalize(read);
    hv_str_free(&sql);
    return st;
}

static enum hv_status count_all(const struct writing *w, struct hv_err *err)
{
    struct hv_str retried = {0};
    hv_str_adds(&retried, "state IN (");
    add_retried(&retried);
    hv_str_adds(&retried, ")");
    w->counts->cells = w->s->n_cells;
    enum hv_status st = count(w, "state = 'missing'", &w->counts->missing, err);
    st = st == HV_OK ? count(w, hv_str_cstr(&retried), &w->counts->failed, err) : st;
    hv_str_free(&retried);
    w->counts->done = w->counts->cells - w->counts->missing - w->counts->failed;
    return st;
}

static enum hv_status write_all(struct writing *w, const char *folder, struct hv_err *err)
{
    enum hv_status st = run(w, "BEGIN", err);
    st = st == HV_OK ? make_tables(w, err) : st;
    st = st == HV_OK ? add_facts(w, err) : st;
    st = st == HV_OK ? add_axes(w, err) : st;
    st = st == HV_OK ? add_cells(w, err) : st;
    st = st == HV_OK ? prepare_update(w, err) : st;
    st = st == HV_OK ? hv_shard_each(folder, add_result, w, err) : st;
    st = st == HV_OK ? count_all(w, err) : st;
    return st == HV_OK ? run(w, "COMMIT", err) : st;
}

enum hv_status hv_store_write(const char *path, const struct hv_sweep *s, const char *folder,
                              struct hv_store_counts *counts, struct hv_err *err)
{
    struct hv_str beside = {0};
    struct writing w = {.s = s, .counts = counts};

    *counts = (struct hv_store_counts){0};
    hv_str_addf(&beside, "%s.%ld.tmp", path, (long)getpid());
    w.path = hv_str_cstr(&beside);
    (void)unlink(w.path);
    enum hv_status st = sqlite3_open_v2(w.path, &w.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                        NULL) == SQLITE_OK
                            ? HV_OK
                            : hv__store_fail(w.db, w.path, err);
    st = st == HV_OK ? write_all(&w, folder, err) : st;
    (void)sqlite3_finalize(w.update);
    if (sqlite3_close(w.db) != SQLITE_OK && st == HV_OK) {
        st = hv_err_set(err, HV_EIO, "%s: SQLite cannot close it", w.path);
    }
    if (st == HV_OK && rename(w.path, path) != 0) {
        st = hv_err_set(err, HV_EIO, "%s: cannot be written: %s", path, strerror(errno));
    }
    if (st != HV_OK) {
        (void)unlink(w.path);
    }
    hv_str_free(&beside);
    return st;
}
