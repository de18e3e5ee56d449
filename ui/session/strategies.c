/*
 * Strategies and the options set for them: the `strategies` list of the workspace, with the types
 * of the options that the plugins declare. Not for running them (runs.c).
 */
#include "ui/session/session_int.h"

#include "solver/sim/schedule/schedule.h"
#include <stdlib.h>
#include <string.h>

const char **hv_session_schedules(const struct hv_session *s, size_t *n)
{
    size_t n_rows = 0, n_plugins = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n_rows);
    const struct hv_plugin *plugins = hv_session_strategies(s, &n_plugins);
    const char **names = hv_xcalloc(n_rows + n_plugins + 1, sizeof *names);

    *n = 0;
    for (size_t i = 0; i < n_rows; i++) {
        if (!(rows[i].flags & HV_SCHEDULE_ORDER)) { /* its order only exists as part of a plan */
            names[(*n)++] = rows[i].name;
        }
    }
    for (size_t i = 0; i < n_plugins; i++) {
        if (plugins[i].error == NULL && plugins[i].has[HV_PLUGIN_ORDER]) {
            names[(*n)++] = plugins[i].id;
        }
    }
    return names;
}

const struct hv_plugin *hv_session_strategies(const struct hv_session *s, size_t *n)
{
    return hv__strategies_items(s->strategies, n);
}

const struct hv_plugin *hv_session_strategy(const struct hv_session *s, const char *id)
{
    return hv__strategies_find(s->strategies, id);
}

enum hv_status hv_session_strategies_reload(struct hv_session *s, const char *id, size_t *n_read,
                                            struct hv_err *err)
{
    enum hv_status st = hv__strategies_reload(s->strategies, s->log, id, n_read, err);
    if (*n_read > 0) {
        hv__session_touch(s);
    }
    return st;
}

/* ---- options --------------------------------------------------------------------------------- */

/* Number of the strategy in the list, or the list's length. */
static size_t place_of(const json_t *list, const char *id)
{
    size_t i;
    for (i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        const char *have = json_string_value(json_is_object(v) ? json_object_get(v, "id") : v);
        if (have != NULL && strcmp(have, id) == 0) {
            break;
        }
    }
    return i;
}

json_t *hv__session_options_of(const struct hv_session *s, const char *strategy)
{
    const json_t *list = hv__docs_tree(s->docs, HV_DOC_STRATEGIES);
    return json_object_get(json_array_get(list, place_of(list, strategy)), "options");
}

static const struct hv_option_row *row_of(const struct hv_plugin *p, const char *key)
{
    for (size_t i = 0; p != NULL && i < p->n_options; i++) {
        if (strcmp(p->options[i].key, key) == 0) {
            return &p->options[i];
        }
    }
    return NULL;
}

void hv_session_option(const struct hv_session *s, const char *strategy, const char *key,
                       struct hv_str *out)
{
    const json_t *v = json_object_get(hv__session_options_of(s, strategy), key);
    const struct hv_option_row *row = row_of(hv_session_strategy(s, strategy), key);
    char text[512];
    if (v == NULL && row != NULL) {
        v = row->def;
    }
    if (v != NULL) {
        hv_str_adds(out, hv_option_text(v, text, sizeof text));
    }
}

bool hv_session_option_is_set(const struct hv_session *s, const char *strategy, const char *key)
{
    return json_object_get(hv__session_options_of(s, strategy), key) != NULL;
}

/* The value of KEY=TEXT by the plugin's rows; NULL in *out for "back to the default". */
static enum hv_status typed_value(const struct hv_plugin *p, const char *key, const char *text,
                                  json_t **out, struct hv_err *err)
{
    json_t *full = NULL;
    struct hv_str pair = {0};
    hv_str_addf(&pair, "%s=%s", key, text != NULL ? text : "");
    const char *pairs[] = {hv_str_cstr(&pair)};
    enum hv_status st = HV_OK;
    *out = NULL;
    if (text != NULL) {
        st = hv_options_parse(p, pairs, 1, &full, err);
        *out = json_incref(json_object_get(full, key));
    } else if (row_of(p, key) == NULL) {
        st = hv_err_set(err, HV_EUSAGE, "%s: unknown option '%s'", p->id, key);
    }
    json_decref(full);
    hv_str_free(&pair);
    return st;
}

/* The list with one option changed. Owner: caller. */
static json_t *changed_list(const struct hv_session *s, const char *strategy, const char *key,
                            json_t *value)
{
    json_t *list = json_copy(hv__docs_tree(s->docs, HV_DOC_STRATEGIES));
    size_t at = place_of(list, strategy);
    const json_t *row = json_array_get(list, at);
    const json_t *old = json_object_get(row, "options");
    json_t *options = old != NULL ? json_copy((json_t *)(uintptr_t)old) : json_object();
    json_t *fresh = json_is_object(row) ? json_copy((json_t *)(uintptr_t)row) : json_object();
    json_object_set_new(fresh, "id", json_string(strategy));
    if (value != NULL) {
        json_object_set(options, key, value);
    } else {
        json_object_del(options, key);
    }
    if (json_object_size(options) > 0) {
        json_object_set(fresh, "options", options);
    } else {
        json_object_del(fresh, "options");
    }
    json_decref(options);
    if (at < json_array_size(list)) {
        json_array_set_new(list, at, fresh);
    } else {
        json_array_append_new(list, fresh);
    }
    return list;
}

enum hv_status hv_session_option_set(struct hv_session *s, const char *strategy, const char *key,
                                     const char *text, struct hv_err *err)
{
    const struct hv_plugin *p = NULL;
    const struct hv_plugins all = hv__strategies_list(s->strategies);
    json_t *value = NULL;
    enum hv_status st = hv_plugins_get(&all, strategy, &p, err);
    if (st == HV_OK) {
        st = typed_value(p, key, text, &value, err);
    }
    if (st != HV_OK) {
        return st;
    }
    if (json_equal(json_object_get(hv__session_options_of(s, strategy), key), value) ||
        (value == NULL && !hv_session_option_is_set(s, strategy, key))) {
        json_decref(value);
        return HV_OK;
    }
    json_t *list = changed_list(s, strategy, key, value);
    struct hv_str label = {0};
    hv_str_addf(&label, "option %s %s=%s", strategy, key, text != NULL ? text : "(default)");
    st = hv__session_doc_change(s, HV_DOC_STRATEGIES, list, label.p, err);
    json_decref(list);
    json_decref(value);
    return st;
}
