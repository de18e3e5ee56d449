/** Assigns KEY=VALUE texts to the parts of a composition; values are checked against the option
 * rows of the plugin. */
#include "ui/cli/run_options.h"

#include <string.h>

/** An option of every strategy that is a key of the job. */
static const char runtime_option[] = "runtime=";

static bool is_of_job(const char *text)
{
    return strncmp(text, runtime_option, sizeof runtime_option - 1) == 0;
}

static bool has_key(const struct hv_plugin *p, const char *key, size_t n)
{
    for (size_t i = 0; i < p->n_options; i++) {
        if (strlen(p->options[i].key) == n && strncmp(p->options[i].key, key, n) == 0) {
            return true;
        }
    }
    return false;
}

/** The KEY=VALUE part where the text applies to this plugin, else NULL; *named = it names this
 * plugin. */
static const char *meant_for(const struct hv_plugin *p, const char *text, bool *named)
{
    size_t key = strcspn(text, "="), dot = strcspn(text, ".");
    *named = false;
    if (dot < key) {
        *named = strlen(p->id) == dot && strncmp(p->id, text, dot) == 0;
        return *named ? text + dot + 1 : NULL;
    }
    return has_key(p, text, key) ? text : NULL;
}

struct sorter {
    const char *const *texts;
    size_t n;
    bool *used; /**< [n]: some part took it */
    struct hv_arena arena;
};

static enum hv_status part_options(struct sorter *s, const struct hv_plugin *p, json_t *out,
                                   struct hv_err *err)
{
    const char **mine = hv_arena_new(&s->arena, const char *, s->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        bool named = false;
        const char *text = is_of_job(s->texts[i]) ? NULL : meant_for(p, s->texts[i], &named);
        s->used[i] = s->used[i] || is_of_job(s->texts[i]);
        if (text != NULL) {
            s->used[i] = true;
            mine[n++] = text;
        }
    }
    json_t *values = NULL;
    enum hv_status st = hv_options_parse(p, mine, n, &values, err);
    if (st == HV_OK) {
        json_object_set_new(out, p->id, values);
    }
    return st;
}

static enum hv_status all_parts(struct sorter *s, const struct hv_plugins *plugins,
                                const char *strategy, json_t *out, const struct hv_plugin **first,
                                struct hv_err *err)
{
    for (const char *part = strategy;; part++) {
        size_t n = strcspn(part, "+");
        const char *id = hv_arena_strndup(&s->arena, part, n);
        const struct hv_plugin *p = NULL;
        enum hv_status st = hv_plugins_get(plugins, id, &p, err);
        if (st == HV_OK) {
            *first = *first != NULL ? *first : p;
            st = part_options(s, p, out, err);
        }
        part += n;
        if (st != HV_OK || *part == '\0') {
            return st;
        }
    }
}

enum hv_status hv_cli_run_options(const struct hv_plugins *plugins, const char *strategy,
                                  const char *const *texts, size_t n, bool *used, json_t **out,
                                  struct hv_err *err)
{
    struct sorter s = {.texts = texts, .n = n};
    const struct hv_plugin *first = NULL;
    s.used = used != NULL ? used : hv_arena_new(&s.arena, bool, n + 1);
    *out = json_object();
    enum hv_status st = all_parts(&s, plugins, strategy, *out, &first, err);
    for (size_t i = 0; i < n && st == HV_OK && used == NULL; i++) {
        if (!s.used[i]) {
            /* the first part's rows give the message with the nearest key */
            json_t *values = NULL;
            st = hv_options_parse(first, &texts[i], 1, &values, err);
            json_decref(values);
            if (st == HV_OK) {
                st = hv_err_set(err, HV_EUSAGE, "option \"%s\" names no part of \"%s\"", texts[i],
                                strategy);
            }
        }
    }
    hv_arena_free(&s.arena);
    if (st != HV_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return st;
}

enum hv_status hv_cli_job_options(const char *const *texts, size_t n, struct hv_inputs *inputs,
                                  struct hv_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_of_job(texts[i])) {
            continue;
        }
        const char *name = texts[i] + sizeof runtime_option - 1;
        enum hv_runtime r = HV_RUNTIME_HETVIZ;
        if (!hv_runtime_find(name, &r)) {
            return hv_err_set(err, HV_EUSAGE,
                              "option runtime: expected a name of `hetviz help runtimes`, found "
                              "\"%s\"",
                              name);
        }
        enum hv_status st = hv_inputs_set_job(inputs, "runtime", name, err);
        if (st != HV_OK) {
            return st;
        }
    }
    return HV_OK;
}
