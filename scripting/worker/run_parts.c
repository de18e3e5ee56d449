/*
 * Compositions: "a+b" to plugins, and options to those that have them. Not for running them
 * (run.c).
 */
#include "scripting/worker/run_int.h"

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
