/*
 * Compositions: "a+b" to plugins, options to those that have them, and the plan that the later
 * parts change. Not for running them (run.c).
 */
#include "scripting/api/input_int.h"
#include "scripting/worker/parts_int.h"

#include <string.h>

enum hv_status hv__find_parts(const struct hv_plugins *plugins, const char *strategy,
                              struct hv__part *parts, size_t *n, struct hv_err *err)
{
    *n = 0;
    for (const char *s = strategy; s != NULL;) {
        char id[64];
        size_t len = strcspn(s, "+");
        if (*n == HV__PARTS_MAX || len == 0 || len >= sizeof id) {
            return hv_err_set(err, HV_EUSAGE, "expected strategies joined by +, found '%s'",
                              strategy);
        }
        memcpy(id, s, len);
        id[len] = '\0';
        enum hv_status st = hv_plugins_get(plugins, id, &parts[*n].plugin, err);
        if (st != HV_OK) {
            return st;
        }
        enum hv_plugin_function need = *n == 0 ? HV_PLUGIN_PLAN : HV_PLUGIN_APPLY;
        const bool *has = parts[*n].plugin->has;
        if (!has[need] && !(*n > 0 && has[HV_PLUGIN_ORDER])) {
            return hv_err_set(err, HV_EUSAGE, "'%s' has no %s(): it cannot stand %s in '%s'", id,
                              hv_plugin_function_name(need), *n == 0 ? "first" : "after another",
                              strategy);
        }
        ++*n;
        s = s[len] == '+' ? s + len + 1 : NULL;
    }
    return HV_OK;
}

static bool has_option(const struct hv_plugin *p, const char *key)
{
    for (size_t i = 0; i < p->n_options; i++) {
        if (strcmp(p->options[i].key, key) == 0) {
            return true;
        }
    }
    return false;
}

enum hv_status hv__deal_options(struct hv__part *parts, size_t n, const json_t *options,
                                struct hv_err *err)
{
    json_t *given[HV__PARTS_MAX];
    enum hv_status s = HV_OK;
    json_t *all = (json_t *)(uintptr_t)options;

    for (size_t i = 0; i < n; i++) {
        given[i] = json_object();
    }
    for (void *it = json_object_iter(all); it != NULL; it = json_object_iter_next(all, it)) {
        const char *key = json_object_iter_key(it);
        json_t *value = json_object_iter_value(it);
        bool used = false;
        for (size_t i = 0; i < n; i++) {
            bool own = json_is_object(value) && strcmp(parts[i].plugin->id, key) == 0;
            if (own) {
                json_object_update(given[i], value);
            } else if (has_option(parts[i].plugin, key)) {
                json_object_set(given[i], key, value);
            }
            used = used || own || has_option(parts[i].plugin, key);
        }
        if (!used) { /* the first part's check names the nearest key */
            json_object_set(given[0], key, value);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (s == HV_OK) {
            s = hv_options_check(parts[i].plugin, given[i], &parts[i].options, err);
        }
        json_decref(given[i]);
    }
    return s;
}

void hv__free_parts(struct hv__part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_decref(parts[i].options);
    }
}

void hv__sign_plan(const struct hv__part *parts, size_t n, json_t *tree)
{
    json_t *s = json_object();
    struct hv_str name = {0};

    for (size_t i = 0; i < n; i++) {
        hv_str_addf(&name, "%s%s", i > 0 ? "+" : "", parts[i].plugin->id);
    }
    json_object_set_new(s, "name", json_string(hv_str_cstr(&name)));
    json_t *options = json_object();
    for (size_t i = 0; i < n; i++) {
        json_object_update(options, parts[i].options);
    }
    json_object_set_new(s, "options", options);
    json_object_set_new(tree, "strategy", s);
    hv_str_free(&name);
}

/** True where the plugin supports this model; otherwise writes the reason. */
static bool model_fits(const struct hv_plugin *p, const struct hv_model *m, struct hv_str *reason)
{
    enum hv_model_kind kind = m->kind;
    const char *need = p->needs_model;
    bool fits =
        need == NULL || strcmp(need, hv_model_kind_name(kind)) == 0 ||
        (kind == HV_MODEL_TRANSFORMER &&
         (strcmp(need, "layers") == 0 || strcmp(need, "graph") == 0)) ||
        (kind == HV_MODEL_MODULES && strcmp(need, "layers") == 0 && hv__model_has_layers(m));
    if (!fits) {
        hv_str_addf(reason, "%s needs a model of kind %s, %s is of kind %s", p->id, need, m->name,
                    hv_model_kind_name(kind));
    }
    return fits;
}

bool hv__applies(const struct hv__run *r, const struct hv_plugin *p, struct hv_str *reason)
{
    const struct hv_model *m = r->request->inputs->model.model;
    const char *jobs = p->needs_jobs;
    bool many = r->n_queue > 0 && r->i_job == 0;

    if (p->needs_mode != NULL || (!many && jobs != NULL && strcmp(jobs, "many") == 0)) {
        hv_str_addf(reason, "%s needs %s", p->id,
                    p->needs_mode == NULL ? "a job file with a queue (\"jobs\")"
                                          : "a serving workload");
        return false;
    }
    if (many && jobs == NULL) {
        hv_str_addf(reason, "%s plans one job; the job file holds a queue of %zu", p->id,
                    r->n_queue);
        return false;
    }
    bool fits = many || model_fits(p, m, reason);
    for (size_t i = 0; many && fits && i < r->n_queue; i++) {
        const struct hv_model *own = r->queue[i].own.model.model;
        fits = model_fits(p, own != NULL ? own : m, reason);
    }
    return fits;
}

enum hv_status hv_run_check(const struct hv_plugins *plugins, const char *strategy,
                            const json_t *options, struct hv_err *err)
{
    struct hv__part parts[HV__PARTS_MAX] = {0};
    size_t n = 0;
    enum hv_status s = hv__find_parts(plugins, strategy, parts, &n, err);

    if (s == HV_OK) {
        s = hv__deal_options(parts, n, options, err);
    }
    hv__free_parts(parts, n);
    return s;
}

/** Sets `before` of the ctx at the top: the systems of the first n parts, whose plan is changed. */
static void set_before(lua_State *L, const struct hv__part *parts, size_t n)
{
    struct hv_err err = {0};

    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        if (hv__plugin_push_of(L, parts[i].plugin, &err) != HV_OK) {
            hv__raise(L, &err);
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "before");
}

/** Calls apply or order of part i on the plan at the top: leaves two results above it. */
static void apply_part(lua_State *L, const struct hv__part *parts, size_t i)
{
    const struct hv__part *part = &parts[i];
    const struct hv_plugin *p = part->plugin;
    struct hv_err err = {0};

    if (!p->has[HV_PLUGIN_APPLY]) {
        hv__apply_order(L, p, part->options);
        return;
    }
    int plan = lua_gettop(L);
    if (hv__plugin_push_of(L, p, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    int system = lua_gettop(L);
    lua_getfield(L, system, "apply");
    hv__blame(L);
    lua_pushvalue(L, plan);
    hv__push_ctx_of(L, system, part->options);
    set_before(L, parts, i);
    lua_remove(L, system);
    lua_call(L, 2, 2);
}

void hv__compose(lua_State *L, struct hv__run *r)
{
    struct hv__job *j = (struct hv__job *)r;
    int plan = lua_gettop(L);

    for (size_t i = 1; r->is_job && i < j->n_parts && !lua_isnil(L, plan); i++) {
        apply_part(L, j->parts, i);
        if (lua_isnil(L, -2)) {
            hv_str_clear(&j->out->reason);
            hv_str_adds(&j->out->reason,
                        lua_isstring(L, -1) ? lua_tostring(L, -1) : "no reason given");
        }
        lua_pop(L, 1);
        lua_replace(L, plan);
        lua_settop(L, plan);
    }
}
