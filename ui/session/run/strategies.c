/*
 * The strategies of a session: read at their first use, and read again when their files changed
 * while it is open. Not for finding plugins (scripting/plugin/plugin.c) nor for the options set for
 * them (ui/session/options.c).
 */
#include "ui/session/run/strategies.h"

#include "solver/base/file.h"
#include "solver/base/log.h"
#include "solver/base/rng.h"
#include "solver/io/own/workspace.h"
#include <stdlib.h>
#include <string.h>

struct hv__strategies {
    bool later;                    /* the plugins are not read yet */
    const struct hv_plugin *items; /* in menu order */
    size_t n;
    struct hv_plugins read;     /* owner of the items that this module read */
    struct hv_plugin *own;      /* what `items` points at from the first reload on */
    struct hv_plugins *sources; /* what an item was read from again; {0} = never */
};

struct hv__strategies *hv__strategies_new(const struct hv_plugin *plugins, size_t n, bool later)
{
    struct hv__strategies *l = hv_xcalloc(1, sizeof *l);
    l->later = later;
    l->items = plugins;
    l->n = n;
    return l;
}

const struct hv_plugin *hv__strategies_items(struct hv__strategies *l, size_t *n)
{
    struct hv_err err = {0};
    if (l->later && hv_plugins_read(&l->read, &err) != HV_OK) {
        hv_log(HV_LOG_ERROR, "plugins", "%s", err.text);
    }
    if (l->later) {
        l->items = l->read.items;
        l->n = l->read.n;
    }
    l->later = false;
    *n = l->n;
    return l->items;
}

struct hv_plugins hv__strategies_list(struct hv__strategies *l)
{
    struct hv_plugins all = {0};
    all.items = (struct hv_plugin *)(uintptr_t)hv__strategies_items(l, &all.n);
    return all;
}

const struct hv_plugin *hv__strategies_find(struct hv__strategies *l, const char *id)
{
    size_t n = 0;
    const struct hv_plugin *all = hv__strategies_items(l, &n);
    for (size_t i = 0; i < n; i++) {
        if (all[i].id != NULL && strcmp(all[i].id, id) == 0) {
            return &all[i];
        }
    }
    return NULL;
}

/* ---- options that are set -------------------------------------------------------------------- */

/* The options of a missing strategy (another machine, a moved plugin) are kept. */
static enum hv_status check_options(struct hv__strategies *l,
                                    const struct hv_workspace_strategy *row, struct hv_err *err)
{
    const struct hv_plugin *p = hv__strategies_find(l, row->id);
    json_t *full = NULL;
    if (p == NULL || p->error != NULL || row->options == NULL) {
        return HV_OK;
    }
    enum hv_status st = hv_options_check(p, row->options, &full, err);
    json_decref(full);
    return st;
}

enum hv_status hv__strategies_check(struct hv__strategies *l, json_t *tree, struct hv_err *err)
{
    struct hv_workspace w;
    json_t *root = json_object();
    json_object_set_new(root, "format", json_string("hetviz.workspace/1"));
    json_object_set(root, "strategies", tree);
    struct hv_json json = {0};
    hv_json_wrap(&json, root, "strategies");
    enum hv_status st = hv_workspace_build(&w, json, NULL, err);
    if (st != HV_OK) {
        return st;
    }
    for (size_t i = 0; st == HV_OK && i < w.n_strategies; i++) {
        st = check_options(l, &w.strategies[i], err);
    }
    hv_workspace_free(&w);
    return st;
}

/* ---- reading again --------------------------------------------------------------------------- */

/* From the first reload on the list is the session's own, each item with what it was read from. */
static void own_list(struct hv__strategies *l)
{
    if (l->own != NULL) {
        return;
    }
    l->own = hv_xcalloc(l->n + 1, sizeof *l->own);
    l->sources = hv_xcalloc(l->n + 1, sizeof *l->sources);
    memcpy(l->own, l->items, l->n * sizeof *l->own);
    l->items = l->own;
}

void hv__strategies_free(struct hv__strategies *l)
{
    for (size_t i = 0; l->sources != NULL && i < l->n; i++) {
        hv_plugins_free(&l->sources[i]);
    }
    free(l->sources);
    free(l->own);
    hv_plugins_free(&l->read);
    free(l);
}

/* Another plugin's id would hide one of the two. */
static enum hv_status check_id(const struct hv__strategies *l, size_t at,
                               const struct hv_plugin *now, struct hv_err *err)
{
    for (size_t i = 0; i < l->n; i++) {
        if (i != at && strcmp(l->items[i].id, now->id) == 0) {
            return hv_err_set(err, HV_EPLUGIN,
                              "%s: the id '%s' is already used by %s; choose another one",
                              now->path, now->id, l->items[i].path);
        }
    }
    return HV_OK;
}

/* The strategy that takes the place of item `at`: the row of its id in a family, else the only one.
 */
static struct hv_plugin *read_again(const struct hv__strategies *l, size_t at,
                                    struct hv_plugins *fresh, struct hv_err *err)
{
    const struct hv_plugin *old = &l->items[at];
    struct hv_plugin *found = NULL;
    for (size_t i = 0; i < fresh->n; i++) {
        bool same = fresh->n == 1 || strcmp(fresh->items[i].id, old->id) == 0;
        found = same ? &fresh->items[i] : found;
    }
    if (found == NULL) {
        (void)hv_err_set(err, HV_EPLUGIN,
                         "%s: the family has no row '%s' any more; start again to read it",
                         old->path, old->id);
    }
    return found;
}

static enum hv_status reload(struct hv__strategies *l, struct hv__log *log, size_t at,
                             struct hv_err *err)
{
    struct hv_plugins fresh = {0};
    enum hv_status st = hv_plugins_read_file(&fresh, l->items[at].path, err);
    struct hv_plugin *now = st == HV_OK ? read_again(l, at, &fresh, err) : NULL;
    if (st == HV_OK) {
        st = now != NULL ? check_id(l, at, now, err) : HV_EPLUGIN;
    }
    if (st != HV_OK) {
        hv_plugins_free(&fresh);
        return st;
    }
    own_list(l);
    now->name = hv_arena_strdup(&fresh.arena, l->own[at].name);
    hv_plugins_free(&l->sources[at]);
    l->sources[at] = fresh;
    l->own[at] = *now;
    hv__log_add(log, HV_LOG_INFO, "plugin", "%s reloaded", now->path);
    return HV_OK;
}

enum hv_status hv__strategies_reload(struct hv__strategies *l, struct hv__log *log, const char *id,
                                     size_t *n_read, struct hv_err *err)
{
    enum hv_status first = HV_OK;
    size_t n = 0;
    (void)hv__strategies_items(l, &n);
    size_t asked_at = n; /* found before anything is freed: `id` may be a plugin's */
    for (size_t i = 0; id != NULL && i < n; i++) {
        if (strcmp(l->items[i].id, id) == 0) {
            asked_at = i;
        }
    }
    *n_read = 0;
    for (size_t i = 0; i < n; i++) {
        bool asked = i == asked_at;
        if (!asked && hv_plugin_is_current(&l->items[i])) {
            continue;
        }
        struct hv_err why = {0};
        enum hv_status st = reload(l, log, i, &why);
        *n_read += st == HV_OK;
        /* a strategy that was broken before is reported only where `id` names it */
        bool told = st != HV_OK && (asked || l->items[i].error == NULL);
        if (told && (first == HV_OK || asked)) {
            first = st;
            if (err != NULL) {
                *err = why;
            }
        }
    }
    return first;
}
