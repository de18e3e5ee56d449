/*
 * Plugins that changed on disk while the session is open: their files are read again and take the
 * place of what was known. Not for finding plugins (scripting/plugin.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"
#include "solver/base/rng.h"
#include <string.h>

/* From the first reload on the list is the session's own, each item with what it was read from. */
static void own_list(struct hv_session *s)
{
    if (s->reloaded.items != NULL)
        return;
    size_t n = s->env.n_plugins;
    s->reloaded.items = hv_xcalloc(n + 1, sizeof *s->reloaded.items);
    s->reloaded.sources = hv_xcalloc(n + 1, sizeof *s->reloaded.sources);
    memcpy(s->reloaded.items, s->env.plugins, n * sizeof *s->reloaded.items);
    s->env.plugins = s->reloaded.items;
}

void hv__session_plugins_free(struct hv_session *s)
{
    for (size_t i = 0; s->reloaded.sources != NULL && i < s->env.n_plugins; i++)
        hv_plugins_free(&s->reloaded.sources[i]);
    free(s->reloaded.sources);
    free(s->reloaded.items);
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
static enum hv_status check_id(const struct hv_session *s, size_t at, const struct hv_plugin *now,
                               struct hv_err *err)
{
    for (size_t i = 0; i < s->env.n_plugins; i++)
        if (i != at && strcmp(s->env.plugins[i].id, now->id) == 0)
            return hv_err_set(err, HV_EPLUGIN, "%s: the id '%s' is that of %s; choose another",
                              now->path, now->id, s->env.plugins[i].path);
    return HV_OK;
}

static enum hv_status reload(struct hv_session *s, size_t at, struct hv_err *err)
{
    struct hv_plugins fresh = {0};
    enum hv_status st = hv_plugins_read_file(&fresh, s->env.plugins[at].path, err);
    if (st == HV_OK)
        st = check_id(s, at, &fresh.items[0], err);
    if (st != HV_OK) {
        hv_plugins_free(&fresh);
        return st;
    }
    own_list(s);
    fresh.items[0].name = hv_arena_strdup(&fresh.arena, s->reloaded.items[at].name);
    hv_plugins_free(&s->reloaded.sources[at]);
    s->reloaded.sources[at] = fresh;
    s->reloaded.items[at] = fresh.items[0];
    hv_session_log(s, HV_LOG_INFO, "plugin", "%s read again", fresh.items[0].path);
    hv__session_touch(s);
    return HV_OK;
}

enum hv_status hv_session_strategies_reload(struct hv_session *s, const char *id, size_t *n_read,
                                            struct hv_err *err)
{
    enum hv_status first = HV_OK;
    size_t asked_at = s->env.n_plugins; /* found before anything is freed: `id` may be a plugin's */
    for (size_t i = 0; id != NULL && i < s->env.n_plugins; i++)
        if (strcmp(s->env.plugins[i].id, id) == 0)
            asked_at = i;
    *n_read = 0;
    for (size_t i = 0; i < s->env.n_plugins; i++) {
        bool asked = i == asked_at;
        if (!asked && is_current(&s->env.plugins[i]))
            continue;
        struct hv_err why = {0};
        enum hv_status st = reload(s, i, &why);
        *n_read += st == HV_OK;
        /* what was broken before and still is, is news only to who asked for it */
        bool told = st != HV_OK && (asked || s->env.plugins[i].error == NULL);
        if (told && (first == HV_OK || asked)) {
            first = st;
            if (err != NULL)
                *err = why;
        }
    }
    return first;
}
