/*
 * Opening and closing a workspace, and its share of the event loop. Documents, rows, saving and
 * recovery have files of their own.
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"
#include "solver/base/units.h"
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How often rows that run show a new elapsed time. */
#define RUNNING_MS 1000

double hv_session_now_s(const struct hv_session *s)
{
    return hv__session_now(s);
}

double hv__session_now(const struct hv_session *s)
{
    if (s->env.now_s != NULL) {
        return s->env.now_s(s->env.ctx);
    }
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void hv__session_moved(struct hv_session *s)
{
    s->changes++;
    s->moved = true;
}

void hv__session_touch(struct hv_session *s)
{
    hv__session_moved(s);
    s->edited_s = hv__session_now(s);
    if (!hv_known(s->unsafe_s)) {
        s->unsafe_s = s->edited_s;
    }
}

void hv__session_set_text(char **slot, const char *text)
{
    char *copy = hv_xstrdup(text);
    free(*slot);
    *slot = copy;
}

static double pool_now_s(void *ctx)
{
    return hv__session_now(ctx);
}

static struct hv_session *new_session(const struct hv_session_env *env)
{
    struct hv_session *s = hv_xcalloc(1, sizeof *s);
    s->env = *env;
    s->state_dir = env->state_dir != NULL ? hv_xstrdup(env->state_dir) : NULL;
    s->unsafe_s = HV_UNKNOWN;
    s->strategies = hv__strategies_new(env);
    s->record_fd = -1;
    s->epoch = 1;
    s->limits.seed = 1;
    s->pool = hv_pool_new(&(struct hv_pool_config){.argv = env->worker_argv,
                                                   .n_workers = env->n_workers,
                                                   .on_event = hv__session_run_event,
                                                   .ctx = s,
                                                   .now_s = pool_now_s});
    return s;
}

static void free_session(struct hv_session *s)
{
    hv__session_draw_free(s);
    hv_pool_free(s->pool);
    hv__session_lua_free(s);
    hv__session_journal_free(s);
    for (size_t i = 0; i < s->rows.n; i++) {
        hv__session_row_free(s->rows.items[i]);
    }
    hv_vec_free(&s->rows);
    hv_vec_free(&s->shown);
    for (int d = 0; d < HV_DOC_N; d++) {
        json_decref(s->tree[d]);
        json_decref(s->saved_tree[d]);
        free(s->ref[d]);
    }
    hv_cost_free(s->cost);
    hv_arena_free(&s->bound_arena);
    hv_inputs_free(&s->inputs);
    hv_workspace_free(&s->workspace);
    hv__session_group_drop(s);
    hv__session_log_free(s);
    hv__session_record_stop(s);
    hv_str_free(&s->notice);
    hv_str_free(&s->notice_shown);
    json_decref(s->recovery);
    hv__strategies_free(s->strategies);
    free(s->recovery_in);
    free(s->recovery_out);
    free(s->state_dir);
    free(s->path);
    free(s->name);
    free(s);
}

/* ---- opening ------------------------------------------------------------------------------------
 */

/* Trees of what was read; from here on they are what counts. */
static void take_trees(struct hv_session *s, bool saved)
{
    const struct hv_json *docs[HV__INPUTS] = {&s->inputs.cluster.json, &s->inputs.model.json,
                                              &s->inputs.job.json};
    json_t *list = json_object_get(s->workspace.json.root, "strategies");
    for (int d = 0; d < HV__INPUTS; d++) {
        s->tree[d] = json_incref(docs[d]->root);
    }
    s->tree[HV_DOC_STRATEGIES] = json_is_array(list) ? json_incref(list) : json_array();
    for (int d = 0; d < HV_DOC_N; d++) {
        s->saved_tree[d] = saved ? json_incref(s->tree[d]) : NULL;
    }
}

static const char *base_name(const char *path, size_t *n)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    *n = strlen(base);
    if (*n > 5 && strcmp(base + *n - 5, ".json") == 0) {
        *n -= 5;
    }
    return base;
}

/* A plan of the workspace as a tree: held inline, or read from its file. */
static enum hv_status load_plan(const struct hv_session *s, const struct hv_workspace_ref *ref,
                                json_t **out, struct hv_err *err)
{
    if (ref->name == NULL) {
        *out = json_incref(ref->inline_);
        return HV_OK;
    }
    struct hv_str path = {0}, text = {0};
    struct hv_json json = {0};
    hv_workspace_resolve(&s->workspace, ref->name, &path);
    enum hv_status st = hv_file_read(hv_str_cstr(&path), &text, err);
    if (st == HV_OK) {
        st = hv_json_parse(&json, hv_str_cstr(&text), text.n, hv_str_cstr(&path), err);
    }
    if (st == HV_OK && !json_is_object(json.root)) {
        st = hv_err_set(err, HV_EINPUT, "%.200s: expected a plan object", hv_str_cstr(&path));
    }
    if (st == HV_OK) {
        *out = json_incref(json.root);
    }
    hv_json_free(&json);
    hv_str_free(&path);
    hv_str_free(&text);
    return st;
}

/* A plan that cannot be read is a row that says why; the rest of the workspace is of use. */
static void add_plan_row(struct hv_session *s, const struct hv_workspace_ref *ref)
{
    json_t *plan = NULL;
    struct hv_err err = {0};
    enum hv_status st = load_plan(s, ref, &plan, &err);
    const char *strategy =
        json_string_value(json_object_get(json_object_get(plan, "strategy"), "name"));
    const char *name = json_string_value(json_object_get(plan, "name"));
    struct hv_str own = {0};
    if (ref->name != NULL) {
        size_t n = 0;
        const char *base = base_name(ref->name, &n);
        hv_str_add(&own, base, n);
        name = hv_str_cstr(&own);
    }
    char *fresh = name != NULL ? hv_xstrdup(name) : NULL;
    for (size_t i = 0; fresh != NULL && i < s->rows.n; i++) {
        if (strcmp(s->rows.items[i]->name, fresh) == 0) {
            free(fresh);
            fresh = NULL;
        }
    }
    if (fresh == NULL) {
        fresh = hv__session_row_fresh_name(s, strategy != NULL ? strategy : "plan");
    }
    struct hv__row *r = hv__session_row_new(s, fresh, strategy != NULL ? strategy : "");
    r->pub.state = st == HV_OK ? HV_ROW_DONE : HV_ROW_FAILED;
    hv__session_set_text(&r->reason, err.text);
    r->plan = plan;
    r->saved_plan = json_incref(plan);
    r->saved_name = hv_xstrdup(fresh);
    r->saved_ref = ref->name != NULL ? hv_xstrdup(ref->name) : NULL;
    hv__session_row_made_now(s, r);
    free(fresh);
    hv_str_free(&own);
}

static void finish_opening(struct hv_session *s)
{
    for (size_t i = 0; i < s->workspace.n_plans; i++) {
        add_plan_row(s, &s->workspace.plans[i]);
    }
    hv__session_rows_publish(s);
    hv__session_rows_sort(s);
    if (s->shown.n > 0) {
        s->selected = s->shown.items[0]->id;
    }
    hv__session_recovery_look(s);
    s->unsafe_s = HV_UNKNOWN;
}

/* The shipped sample as a copy that may be changed; its folder is appended to out. */
static enum hv_status own_sample(struct hv_session *s, struct hv_str *out, struct hv_err *err)
{
    struct hv_str file = {0}, shipped = {0}, text = {0};
    enum hv_status st = HV_OK;
    if (s->state_dir != NULL) {
        hv_str_adds(out, s->state_dir);
    } else {
        st = hv_user_dir(out, HV_DIR_STATE, err);
    }
    if (st == HV_OK) {
        hv_str_adds(out, "/sample");
        hv_str_addf(&file, "%s/workspace.json", hv_str_cstr(out));
        if (access(hv_str_cstr(&file), F_OK) != 0 &&
            (st = hv_data_path(&shipped, "samples/workspaces/mixed/workspace.json", err)) ==
                HV_OK &&
            (st = hv_file_read(hv_str_cstr(&shipped), &text, err)) == HV_OK &&
            (st = hv_file_mkdirs(hv_str_cstr(out), err)) == HV_OK) {
            st = hv_file_write(hv_str_cstr(&file), hv_str_cstr(&text), text.n, err);
        }
        s->first = st == HV_OK && text.n > 0;
    }
    hv_str_free(&file);
    hv_str_free(&shipped);
    hv_str_free(&text);
    return st;
}

/* Where it is saved again: the folder, or the single file; shipped ones and pipes nowhere. */
static void take_path(struct hv_session *s, const char *path)
{
    struct stat st;
    size_t n = 0;
    if (strcmp(path, "-") == 0 || stat(path, &st) != 0) {
        return;
    }
    const char *base = base_name(path, &n);
    s->single_file = !S_ISDIR(st.st_mode) && strcmp(base, "workspace.json") != 0;
    if (S_ISDIR(st.st_mode) || s->single_file) {
        s->path = hv_xstrdup(path);
    } else {
        s->path = hv_xstrdup(s->workspace.folder);
    }
}

enum hv_status hv_session_open(struct hv_session **out, const char *path,
                               const struct hv_session_env *env, struct hv_err *err)
{
    struct hv_session *s = new_session(env);
    struct hv_str sample = {0};
    *out = NULL;
    enum hv_status st = HV_OK;
    if (path == NULL) {
        st = own_sample(s, &sample, err);
        path = hv_str_cstr(&sample);
    }
    if (st == HV_OK) {
        st = hv_workspace_read(&s->workspace, path, err);
    }
    if (st == HV_OK) {
        st = hv_workspace_inputs(&s->workspace, &s->inputs, err);
    }
    if (st != HV_OK) {
        free_session(s);
        hv_str_free(&sample);
        return st;
    }
    take_path(s, path);
    hv__session_stamp(s);
    s->name = hv_xstrdup(s->workspace.name);
    const struct hv_workspace_ref *refs[HV__INPUTS] = {&s->workspace.cluster, &s->workspace.model,
                                                       &s->workspace.job};
    for (int d = 0; d < HV__INPUTS; d++) {
        s->ref[d] = refs[d]->name != NULL ? hv_xstrdup(refs[d]->name) : NULL;
    }
    take_trees(s, true);
    finish_opening(s);
    hv_str_free(&sample);
    *out = s;
    return HV_OK;
}

enum hv_status hv_session_new(struct hv_session **out, const char *cluster, const char *model,
                              const char *job, const struct hv_session_env *env, struct hv_err *err)
{
    struct hv_session *s = new_session(env);
    const char *refs[HV__INPUTS] = {cluster, model, job};
    *out = NULL;
    enum hv_status st = hv_inputs_read(&s->inputs, cluster, model, job, err);
    if (st != HV_OK) {
        free_session(s);
        return st;
    }
    for (int d = 0; d < HV__INPUTS; d++) {
        s->ref[d] = refs[d] != NULL ? hv_xstrdup(refs[d]) : NULL;
    }
    s->name = hv_xstrdup("new");
    take_trees(s, true);
    finish_opening(s);
    *out = s;
    return HV_OK;
}

void hv_session_close(struct hv_session *s)
{
    if (s == NULL) {
        return;
    }
    hv__session_recovery_remove(s);
    free_session(s);
}

void hv_session_abandon(struct hv_session *s)
{
    if (s == NULL) {
        return;
    }
    enum hv_status st = HV_OK;
    if (hv_session_dirty(s)) {
        st = hv_session_autosave(s, NULL);
    }
    (void)st; /* nobody is left to be told */
    free_session(s);
}

bool hv_session_is_first(const struct hv_session *s)
{
    return s->first;
}

const char *hv_session_name(const struct hv_session *s)
{
    return s->name;
}

const char *hv_session_path(const struct hv_session *s)
{
    return s->path;
}

/* ---- the loop
 * ------------------------------------------------------------------------------------ */

size_t hv_session_fds(const struct hv_session *s, struct pollfd *out, size_t cap)
{
    size_t n = hv_pool_fds(s->pool, out, cap), used = n < cap ? n : cap;
    n += hv__session_draw_fds(s, out + used, cap - used);
    used = n < cap ? n : cap;
    return n + (s->lua.pool != NULL ? hv_pool_fds(s->lua.pool, out + used, cap - used) : 0);
}

/* Milliseconds until the clock of a run is to be shown anew; −1: nothing runs. */
static int clock_timeout_ms(const struct hv_session *s)
{
    double now = hv__session_now(s), first_s = HV_UNKNOWN;
    for (size_t i = 0; hv_pool_n_running(s->pool) > 0 && i < s->rows.n; i++) {
        const struct hv_row *r = &s->rows.items[i]->pub;
        double left_s = r->started_s + r->elapsed_s + 1e-3 * RUNNING_MS - now;
        if (r->state == HV_ROW_RUNNING && !(left_s >= first_s)) {
            first_s = left_s;
        }
    }
    return hv_known(first_s) ? (first_s > 0 ? (int)ceil(first_s * 1e3) : 0) : -1;
}

int hv_session_timeout_ms(const struct hv_session *s)
{
    int all[] = {hv_pool_timeout_ms(s->pool), hv__session_recovery_timeout_ms(s),
                 clock_timeout_ms(s), s->lua.pool != NULL ? hv_pool_timeout_ms(s->lua.pool) : -1,
                 hv__session_draw_timeout_ms(s)};
    int ms = -1;
    for (size_t i = 0; i < HV_COUNT(all); i++) {
        if (all[i] >= 0 && (ms < 0 || all[i] < ms)) {
            ms = all[i];
        }
    }
    return ms;
}

bool hv_session_tick(struct hv_session *s)
{
    hv_pool_poll(s->pool);
    if (s->lua.pool != NULL) {
        hv_pool_poll(s->lua.pool);
    }
    hv__session_draw_tick(s);
    double now = hv__session_now(s);
    for (size_t i = 0; i < s->rows.n; i++) {
        struct hv__row *r = s->rows.items[i];
        double elapsed = now - r->pub.started_s;
        if (r->pub.state == HV_ROW_RUNNING && elapsed >= r->pub.elapsed_s + 1e-3 * RUNNING_MS) {
            r->pub.elapsed_s = elapsed;
            hv__session_moved(s);
        }
    }
    if (s->sort_due) {
        hv__session_rows_sort(s);
    }
    hv__session_recovery_tick(s);
    bool moved = s->moved;
    s->moved = false;
    return moved;
}

uint64_t hv_session_changes(const struct hv_session *s)
{
    return s->changes;
}

const char *hv_session_notice(struct hv_session *s)
{
    struct hv_str shown = s->notice;
    s->notice = s->notice_shown;
    s->notice_shown = shown;
    hv_str_clear(&s->notice);
    return hv_str_cstr(&s->notice_shown);
}
