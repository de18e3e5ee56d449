/*
 * The strategies of a session: read when first asked for, and read again when their files changed
 * while it is open. Not for finding plugins (scripting/plugin/plugin.c) nor for their options
 * (session_options.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"
#include "solver/base/rng.h"
#include <string.h>

struct hv__strategies *hv__strategies_new(const struct hv_session_env *env)
{
    struct hv__strategies *l = hv_xcalloc(1, sizeof *l);
    l->later = env->plugins_later;
    l->items = env->plugins;
    l->n = env->n_plugins;
    return l;
}

const struct hv_plugin *hv_session_strategies(const struct hv_session *s, size_t *n)
{
    struct hv__strategies *l = s->strategies;
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

struct hv_plugins hv__session_plugins(const struct hv_session *s)
{
    struct hv_plugins all = {0};
    all.items = (struct hv_plugin *)(uintptr_t)hv_session_strategies(s, &all.n);
    return all;
}

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

/* True when the file holds what the item was made of; a broken one may need another file. */
static bool is_current(const struct hv_plugin *p)
{
    struct hv_str text = {0};
    bool same = p->error == NULL && hv_file_read(p->path, &text, NULL) == HV_OK &&
                hv_hash(HV_HASH_START, hv_str_cstr(&text), text.n) == p->hash;
    hv_str_free(&text);
    return same;
}

/* Another plugin's id would hide one of the two. */
static enum hv_status check_id(const struct hv__strategies *l, size_t at,
                               const struct hv_plugin *now, struct hv_err *err)
{
    for (size_t i = 0; i < l->n; i++) {
        if (i != at && strcmp(l->items[i].id, now->id) == 0) {
            return hv_err_set(err, HV_EPLUGIN, "%s: the id '%s' is that of %s; choose another",
                              now->path, now->id, l->items[i].path);
        }
    }
    return HV_OK;
}

static enum hv_status reload(struct hv_session *s, size_t at, struct hv_err *err)
{
    struct hv__strategies *l = s->strategies;
    struct hv_plugins fresh = {0};
    enum hv_status st = hv_plugins_read_file(&fresh, l->items[at].path, err);
    if (st == HV_OK) {
        st = check_id(l, at, &fresh.items[0], err);
    }
    if (st != HV_OK) {
        hv_plugins_free(&fresh);
        return st;
    }
    own_list(l);
    fresh.items[0].name = hv_arena_strdup(&fresh.arena, l->own[at].name);
    hv_plugins_free(&l->sources[at]);
    l->sources[at] = fresh;
    l->own[at] = fresh.items[0];
    hv_session_log(s, HV_LOG_INFO, "plugin", "%s read again", fresh.items[0].path);
    hv__session_touch(s);
    return HV_OK;
}

enum hv_status hv_session_strategies_reload(struct hv_session *s, const char *id, size_t *n_read,
                                            struct hv_err *err)
{
    enum hv_status first = HV_OK;
    size_t n = 0;
    (void)hv_session_strategies(s, &n);
    const struct hv__strategies *l = s->strategies;
    size_t asked_at = n; /* found before anything is freed: `id` may be a plugin's */
    for (size_t i = 0; id != NULL && i < n; i++) {
        if (strcmp(l->items[i].id, id) == 0) {
            asked_at = i;
        }
    }
    *n_read = 0;
    for (size_t i = 0; i < n; i++) {
        bool asked = i == asked_at;
        if (!asked && is_current(&l->items[i])) {
            continue;
        }
        struct hv_err why = {0};
        enum hv_status st = reload(s, i, &why);
        *n_read += st == HV_OK;
        /* what was broken before and still is, is news only to who asked for it */
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
