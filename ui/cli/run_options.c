/** Assigns KEY=VALUE texts to the parts of a composition; values are checked against the option
 * rows of the plugin. */
#include "ui/cli/run_options.h"

#include <stdlib.h>
#include <string.h>

/** Option of every strategy that gives the form of the model. */
static const char graph_option[] = "graph=";

static bool is_runtime(const char *name)
{
    enum hv_runtime found;
    return hv_runtime_find(name, &found);
}

static bool is_target(const char *name)
{
    enum hv_target_id found;
    return hv_target_find(name, &found);
}

/** Options of every strategy that are keys of the job, each with a table of names. */
static const struct {
    const char *key, *help; /**< help: the topic that lists the names */
    bool (*is_name)(const char *name);
} job_options[] = {{"runtime", "runtimes", is_runtime}, {"target", "targets", is_target}};

/** The row of an option that is a key of the job, with the text behind its sign; -1: it is none. */
static int job_option(const char *text, const char **value)
{
    for (size_t i = 0; i < HV_COUNT(job_options); i++) {
        size_t n = strlen(job_options[i].key);
        if (strncmp(text, job_options[i].key, n) == 0 && text[n] == '=') {
            *value = text + n + 1;
            return (int)i;
        }
    }
    return -1;
}

static bool is_graph(const char *text)
{
    return strncmp(text, graph_option, sizeof graph_option - 1) == 0;
}

static bool is_of_inputs(const char *text)
{
    const char *value;
    return job_option(text, &value) >= 0 || is_graph(text);
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
        const char *text = is_of_inputs(s->texts[i]) ? NULL : meant_for(p, s->texts[i], &named);
        s->used[i] = s->used[i] || is_of_inputs(s->texts[i]);
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

/** Sets a key of the job to a name of its table. */
static enum hv_status set_job(int row, const char *name, struct hv_inputs *inputs,
                              struct hv_err *err)
{
    if (!job_options[row].is_name(name)) {
        return hv_err_set(err, HV_EUSAGE,
                          "option %s: expected a name of `hetviz help %s`, found \"%s\"",
                          job_options[row].key, job_options[row].help, name);
    }
    return hv_inputs_set_job(inputs, job_options[row].key, name, err);
}

/** true: the graph of one sequence; a number: of so many; false: the model as it is. */
static enum hv_status set_graph(const char *value, struct hv_inputs *inputs, struct hv_err *err)
{
    enum { MOST = 1 << 20 };
    char *end = NULL;
    long n = strcmp(value, "true") == 0 ? 1 : strtol(value, &end, 10);
    if (strcmp(value, "false") == 0) {
        return HV_OK;
    }
    if ((end != NULL && (end == value || *end != '\0')) || n < 1 || n > MOST) {
        return hv_err_set(err, HV_EUSAGE,
                          "option graph: expected true, false or a number of sequences from 1 to "
                          "%d, found \"%s\"",
                          MOST, value);
    }
    return hv_inputs_set_graph(inputs, n, err);
}

enum hv_status hv_cli_job_options(const char *const *texts, size_t n, struct hv_inputs *inputs,
                                  struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < n && st == HV_OK; i++) {
        const char *name = NULL;
        int row = job_option(texts[i], &name);
        if (row >= 0) {
            st = set_job(row, name, inputs, err);
        }
    }
    for (size_t i = 0; i < n && st == HV_OK; i++) { /* after the job, which it depends on */
        if (is_graph(texts[i])) {
            st = set_graph(texts[i] + sizeof graph_option - 1, inputs, err);
        }
    }
    return st;
}
