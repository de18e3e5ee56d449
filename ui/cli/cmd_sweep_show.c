/** `hetviz sweep show`: results as a table, CSV, JSON, a Pareto front or a heat map. */
#include "ui/cli/cmd_sweep.h"
#include "ui/cli/sweep/kept.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/sweep/figures.h"
#include "ui/cli/print.h"
#include "ui/cli/sweep/map.h"
#include "ui/cli/sweep/rows.h"

enum { COLUMN_MAX = 28, DIGITS = 5 };

/** Columns where none are asked for: the axes and these. */
static const char *const usual[] = {"strategy", "iteration_s",    "tokens_per_s", "mfu",
                                    "gap",      "usd_per_Mtoken", "state"};

struct showing {
    struct hv_store *store;
    struct hv_store_query query;
    const char **columns; /**< in the arena of the arguments */
    const char **front;   /**< columns of --pareto */
    size_t n_front;
};

static void add_column(struct showing *w, const char *name)
{
    for (size_t i = 0; i < w->query.n_columns; i++) {
        if (strcmp(w->columns[i], name) == 0) {
            return;
        }
    }
    w->columns[w->query.n_columns++] = name;
}

static void choose_columns(struct showing *w, struct hv_args *args)
{
    size_t n_axes = 0, n_asked = 0;
    const struct hv_store_axis *axes = hv_store_axes(w->store, &n_axes);
    const char **asked = hv_args_all(args, "columns", &n_asked);

    w->front = hv_args_all(args, "pareto", &w->n_front);
    w->columns =
        hv_arena_new(&args->arena, const char *, n_axes + n_asked + w->n_front + HV_COUNT(usual));
    for (size_t i = 0; i < n_asked; i++) {
        add_column(w, asked[i]);
    }
    for (size_t i = 0; n_asked == 0 && i < n_axes; i++) {
        add_column(w, axes[i].name);
    }
    for (size_t i = 0; n_asked == 0 && i < HV_COUNT(usual); i++) {
        add_column(w, usual[i]);
    }
    for (size_t i = 0; i < w->n_front; i++) {
        add_column(w, w->front[i]);
    }
    w->query.columns = w->columns;
}

/** Sorted by the first figure of a front where nothing else is asked for. */
static void choose_rows(struct showing *w, const struct hv_args *args)
{
    w->query.where = hv_args_text(args, "where", NULL);
    w->query.sort = hv_args_text(args, "sort", w->n_front > 0 ? w->front[0] : NULL);
    w->query.most = w->n_front > 0 ? 0 : (size_t)hv_args_number(args, "most", 0);
}

/** A file is a store; a folder has one inside. */
static enum hv_status open_store(struct hv_store **out, const char *path, struct hv_err *err)
{
    struct stat info;
    struct hv_str inside = {0};
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        hv_cli_sweep_path(path, HV_SWEEP_STORE, &inside);
        if (stat(hv_str_cstr(&inside), &info) != 0) {
            hv_str_free(&inside);
            return hv_err_set(err, HV_EIO, "%s has no store yet; make it: hetviz sweep merge %s",
                              path, path);
        }
    } else {
        hv_str_adds(&inside, path);
    }
    enum hv_status st = hv_store_open(out, hv_str_cstr(&inside), err);
    hv_str_free(&inside);
    return st;
}

/* ---- forms ----------------------------------------------------------------------------------- */

static void shown(const struct hv_store_value *v, struct hv_str *out)
{
    char number[HV_FMT_CAP];
    hv_str_clear(out);
    if (hv_known(v->number)) {
        hv_str_adds(out, hv_fmt_general(number, sizeof number, v->number, DIGITS));
    } else if (v->text != NULL) {
        hv_text_clean(out, v->text, strlen(v->text));
    } else {
        hv_str_adds(out, "–");
    }
}

static int width_of(const struct hv_rows *r, size_t column)
{
    struct hv_str text = {0};
    size_t most = strlen(r->columns[column]);
    for (size_t row = 0; row < r->n; row++) {
        shown(hv_rows_at(r, row, column), &text);
        most = text.n > most ? text.n : most;
    }
    hv_str_free(&text);
    return (int)(most < COLUMN_MAX ? most : COLUMN_MAX);
}

static void add_table(const struct hv_rows *r, struct hv_str *out)
{
    struct hv_str text = {0};
    int *width = hv_xcalloc(r->n_columns + 1, sizeof *width);
    for (size_t i = 0; i < r->n_columns; i++) {
        width[i] = width_of(r, i);
        hv_text_addf(out, "%s%-*s", i > 0 ? "  " : "", width[i], r->columns[i]);
    }
    hv_str_addc(out, '\n');
    for (size_t row = 0; row < r->n; row++) {
        for (size_t i = 0; i < r->n_columns; i++) {
            const struct hv_store_value *v = hv_rows_at(r, row, i);
            shown(v, &text);
            bool cut = text.n > COLUMN_MAX;
            hv_text_addf(out, hv_known(v->number) ? "%s%*.*s%s" : "%s%-*.*s%s", i > 0 ? "  " : "",
                         cut ? width[i] - 1 : width[i], cut ? COLUMN_MAX - 1 : COLUMN_MAX,
                         hv_str_cstr(&text), cut ? "…" : "");
        }
        hv_str_addc(out, '\n');
    }
    free(width);
    hv_str_free(&text);
}

/** RFC 4180: a field with a comma, a quote or a line end is quoted. A field that a spreadsheet
 * would take for a formula gets a quote mark in front. */
static void add_field(const char *text, bool is_number, struct hv_str *out)
{
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    bool formula = !is_number && text[0] != '\0' && strchr("=+-@\t", text[0]) != NULL;
    if (!quoted && !formula) {
        hv_str_adds(out, text);
        return;
    }
    hv_str_adds(out, formula ? "\"'" : "\"");
    for (; *text != '\0'; text++) {
        hv_str_adds(out, *text == '"' ? "\"" : "");
        hv_str_addc(out, *text);
    }
    hv_str_addc(out, '"');
}

static void add_csv(const struct hv_rows *r, struct hv_str *out)
{
    char number[HV_FMT_CAP];
    for (size_t i = 0; i < r->n_columns; i++) {
        hv_str_adds(out, i > 0 ? "," : "");
        add_field(r->columns[i], false, out);
    }
    hv_str_adds(out, "\r\n");
    for (size_t row = 0; row < r->n; row++) {
        for (size_t i = 0; i < r->n_columns; i++) {
            const struct hv_store_value *v = hv_rows_at(r, row, i);
            bool is_number = hv_known(v->number);
            hv_str_adds(out, i > 0 ? "," : "");
            add_field(is_number         ? hv_fmt_double(number, sizeof number, v->number)
                      : v->text != NULL ? v->text
                                        : "",
                      is_number, out);
        }
        hv_str_adds(out, "\r\n");
    }
}

static json_t *rows_json(const struct hv_rows *r)
{
    json_t *rows = json_array();
    for (size_t row = 0; row < r->n; row++) {
        json_t *tree = json_object();
        for (size_t i = 0; i < r->n_columns; i++) {
            const struct hv_store_value *v = hv_rows_at(r, row, i);
            json_object_set_new(tree, r->columns[i],
                                hv_known(v->number) ? hv_json_num(v->number)
                                : v->text != NULL   ? json_string(v->text)
                                                    : json_null());
        }
        json_array_append_new(rows, tree);
    }
    json_t *out = json_object();
    json_object_set_new(out, "rows", rows);
    return out;
}

static enum hv_status print_rows(const struct hv_args *args, const struct hv_rows *r,
                                 struct hv_err *err)
{
    struct hv_str out = {0};
    if (hv_args_has(args, "json")) {
        return hv_cli_print_json(rows_json(r), err);
    }
    if (hv_args_has(args, "csv")) {
        add_csv(r, &out);
    } else {
        add_table(r, &out);
    }
    enum hv_status st =
        hv_args_has(args, "csv") ? hv_cli_write(args, &out, err) : hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

static enum hv_status show_rows(const struct hv_args *args, struct showing *w, struct hv_err *err)
{
    struct hv_rows rows = {0};
    enum hv_status st = hv_rows_read(&rows, w->store, &w->query, err);
    if (st == HV_OK && w->n_front > 0) {
        size_t *columns = hv_xcalloc(w->n_front, sizeof *columns);
        for (size_t i = 0; i < w->n_front; i++) {
            columns[i] = hv_rows_column(&rows, w->front[i]);
        }
        hv_rows_front(&rows, columns, w->n_front);
        free(columns);
        size_t most = (size_t)hv_args_number(args, "most", 0);
        rows.n = most > 0 && most < rows.n ? most : rows.n;
    }
    st = st == HV_OK ? print_rows(args, &rows, err) : st;
    if (st == HV_OK && rows.n == 0) {
        st = hv_err_set(err, HV_ENO, "sweep show: no row meets the conditions");
    }
    hv_rows_free(&rows);
    return st;
}

enum hv_status hv_cli_sweep_show(struct hv_args *args, struct hv_err *err)
{
    struct showing w = {0};
    const char *path = hv_cli_sweep_file(args);

    if (path == NULL) {
        return hv_err_set(err, HV_EUSAGE, "sweep show: expected a store, or the folder with one");
    }
    enum hv_status st = open_store(&w.store, path, err);
    if (st == HV_OK && hv_args_has(args, "svg")) {
        st = hv_cli_sweep_map(args, w.store, err);
    } else if (st == HV_OK) {
        choose_columns(&w, args);
        choose_rows(&w, args);
        st = show_rows(args, &w, err);
    }
    hv_store_close(w.store);
    return st;
}
