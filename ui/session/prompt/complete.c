/*
 * Completion of the `:` prompt: commands come from their table, all other words from the session.
 * Not for running commands (prompt.c).
 */
#include "ui/session/prompt/prompt.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A search for the n-th candidate with the word as prefix. */
struct search {
    const struct hv_session *s;
    const char *line; /**< the whole line */
    const char *word; /**< the word to complete, inside the line */
    size_t n_word, want;
    struct hv_str *out;
    bool found;
};

/* Offers prefix + candidate; writes the new line when it is the wanted one. */
static void offer(struct search *q, const char *prefix, const char *candidate, const char *after)
{
    size_t n_prefix = strlen(prefix);
    if (q->found || q->n_word < n_prefix || strncmp(q->word, prefix, n_prefix) != 0 ||
        strncmp(q->word + n_prefix, candidate, q->n_word - n_prefix) != 0) {
        return;
    }
    if (q->n_word == n_prefix + strlen(candidate) && after[0] == '\0') {
        return; /* there already */
    }
    if (q->want-- > 0) {
        return;
    }
    hv_str_add(q->out, q->line, (size_t)(q->word - q->line));
    hv_str_addf(q->out, "%s%s%s", prefix, candidate, after);
    q->found = true;
}

static void offer_commands(struct search *q)
{
    size_t n = 0;
    const struct hv_command *rows = hv_prompt_commands(&n);
    for (size_t i = 0; i < n; i++) {
        offer(q, "", rows[i].name, rows[i].max_args != 0 ? " " : "");
    }
}

static void offer_strategies(struct search *q, enum hv_plugin_function need, const char *prefix)
{
    size_t n = 0;
    const struct hv_plugin *list = hv_session_strategies(q->s, &n);
    for (size_t i = 0; i < n; i++) {
        if (list[i].error == NULL && list[i].has[need]) {
            offer(q, prefix, list[i].id, "");
        }
    }
}

/* "uniform+fs": the parts after the first apply. */
static void offer_composition(struct search *q)
{
    struct hv_str prefix = {0};
    for (size_t i = 0; i < q->n_word; i++) {
        if (q->word[i] == '+') {
            hv_str_clear(&prefix);
            hv_str_add(&prefix, q->word, i + 1);
        }
    }
    if (prefix.n == 0) {
        offer(q, "", "all", "");
        for (int k = 0; k < HV_KIND_N; k++) {
            offer(q, "", hv_kind_name((enum hv_kind)k), "");
        }
    }
    offer_strategies(q, prefix.n > 0 ? HV_PLUGIN_APPLY : HV_PLUGIN_PLAN, hv_str_cstr(&prefix));
    hv_str_free(&prefix);
}

static void offer_schedules(struct search *q, const char *prefix)
{
    size_t n = 0;
    const char **names = hv_session_schedules(q->s, &n);
    for (size_t i = 0; i < n; i++) {
        offer(q, prefix, names[i], "");
    }
    free(names);
}

/* "fau" → "faults=", "mode=fa" → "mode=fast". */
static void offer_options(struct search *q, const char *strategy)
{
    const struct hv_plugin *p = hv_session_strategy(q->s, strategy);
    static const char *const switches[] = {"true", "false"};
    for (size_t i = 0; p != NULL && i < p->n_options; i++) {
        const struct hv_option_row *row = &p->options[i];
        struct hv_str prefix = {0};
        hv_str_addf(&prefix, "%s=", row->key);
        if (memchr(q->word, '=', q->n_word) == NULL) {
            offer(q, "", hv_str_cstr(&prefix), "");
        } else if (row->type == HV_OPTION_BOOLEAN) {
            for (size_t j = 0; j < HV_COUNT(switches); j++) {
                offer(q, hv_str_cstr(&prefix), switches[j], "");
            }
        } else if (row->type == HV_OPTION_SCHEDULE) {
            offer_schedules(q, hv_str_cstr(&prefix));
        } else {
            for (size_t j = 0; j < row->n_choices; j++) {
                offer(q, hv_str_cstr(&prefix), row->choices[j], "");
            }
        }
        hv_str_free(&prefix);
    }
}

static bool is_plain_key(const char *key)
{
    return key[0] != '\0' && strpbrk(key, ".[] \t\"\\") == NULL;
}

/* Members and elements of the value at the path before the last separator. */
static void offer_members(struct search *q, const char *prefix, const json_t *v)
{
    const char *key;
    const json_t *member;
    json_object_foreach((json_t *)(uintptr_t)v, key, member)
    {
        if (is_plain_key(key)) {
            struct hv_str name = {0};
            hv_str_addf(&name, ".%s", key);
            offer(q, prefix, hv_str_cstr(&name), json_is_array(member) ? "[" : "");
            hv_str_free(&name);
        }
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        char name[32];
        snprintf(name, sizeof name, "[%zu]", i);
        offer(q, prefix, name, json_is_object(json_array_get(v, i)) ? "." : "");
    }
}

static void offer_paths(struct search *q)
{
    struct hv_str prefix = {0};
    size_t cut = 0;
    for (size_t i = 0; i < q->n_word; i++) {
        if (q->word[i] == '.' || q->word[i] == '[') {
            cut = i;
        }
    }
    if (cut == 0) {
        for (int d = 0; d < HV_DOC_N; d++) {
            offer(q, "", hv_doc_name((enum hv_doc)d), d == HV_DOC_STRATEGIES ? "[" : ".");
        }
        return;
    }
    hv_str_add(&prefix, q->word, cut);
    const json_t *v = hv_session_get(q->s, hv_str_cstr(&prefix));
    if (v != NULL) {
        offer_members(q, hv_str_cstr(&prefix), v);
    }
    hv_str_free(&prefix);
}

static void offer_rows(struct search *q, bool running_only)
{
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(q->s, &n);
    for (size_t i = 0; i < n; i++) {
        if (!running_only || rows[i]->state == HV_ROW_RUNNING || rows[i]->state == HV_ROW_QUEUED) {
            offer(q, "", rows[i]->name, "");
        }
    }
}

/* Files and folders of the folder in the word. */
static void offer_files(struct search *q)
{
    size_t cut = q->n_word;
    struct dirent **list = NULL;
    while (cut > 0 && q->word[cut - 1] != '/') {
        cut--;
    }
    struct hv_str folder = {0};
    hv_str_add(&folder, q->word, cut);
    int n = scandir(cut > 0 ? hv_str_cstr(&folder) : ".", &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        bool hidden = name[0] == '.' && q->word[cut] != '.';
        struct hv_str path = {0};
        struct stat st;
        hv_str_addf(&path, "%s%s", hv_str_cstr(&folder), name);
        bool is_folder = !hidden && stat(hv_str_cstr(&path), &st) == 0 && S_ISDIR(st.st_mode);
        if (!hidden && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            offer(q, hv_str_cstr(&folder), name, is_folder ? "/" : "");
        }
        hv_str_free(&path);
        free(list[i]);
    }
    free(list);
    hv_str_free(&folder);
}

bool hv_session_complete_path(const void *session, const char *line, size_t n, struct hv_str *out)
{
    struct search q = {.s = session, .line = line, .word = line, .want = n, .out = out};
    for (const char *p = line; *p != '\0'; p++) {
        if (*p == ' ' || *p == '\t') {
            q.word = p + 1;
        }
    }
    q.n_word = strlen(q.word);
    offer_files(&q);
    return q.found;
}

static void offer_targets(struct search *q)
{
    for (int t = HV_TARGET_ANY + 1; t < HV_TARGET_N; t++) {
        offer(q, "", hv_target_name((enum hv_target_id)t), " ");
    }
}

/* Candidates for argument number `i` of a command; `first` is its first argument. */
static void offer_argument(struct search *q, enum hv_command_id id, size_t i, const char *first)
{
    bool path = id == HV_PROMPT_SET || id == HV_PROMPT_REMOVE || id == HV_PROMPT_INSERT;
    bool row = id == HV_PROMPT_CANCEL || id == HV_PROMPT_EXPORT || id == HV_PROMPT_SELECT ||
               id == HV_PROMPT_DELETE || id == HV_PROMPT_RENAME || id == HV_PROMPT_NOTE;
    if (id == HV_PROMPT_EXPORT && i == 1 && strcmp(first, "--to") == 0) {
        offer_targets(q);
    } else if (path && i == 0) {
        offer_paths(q);
    } else if (id == HV_PROMPT_RUN && i == 0) {
        offer_composition(q);
    } else if (id == HV_PROMPT_OPTION && i == 0) {
        offer_strategies(q, HV_PLUGIN_PLAN, "");
    } else if (id == HV_PROMPT_RUN || id == HV_PROMPT_OPTION) {
        offer_options(q, first);
    } else if (row && i == 0) {
        offer_rows(q, id == HV_PROMPT_CANCEL);
        if (id == HV_PROMPT_EXPORT) {
            offer(q, "", "--to", " ");
        }
    } else if (id == HV_PROMPT_IMPORT || (id == HV_PROMPT_PLAN && i == 1)) {
        offer_files(q);
    }
}

bool hv_session_complete(const void *session, const char *line, size_t n, struct hv_str *out)
{
    struct hv_arena a = {0};
    const char **words = NULL;
    size_t n_words = 0, n_rows = 0;
    struct search q = {.s = session, .line = line, .word = line, .want = n, .out = out};
    for (const char *p = line; *p != '\0'; p++) {
        if (*p == ' ' || *p == '\t') {
            q.word = p + 1;
        }
    }
    q.n_word = strlen(q.word);
    char *before = hv_arena_strndup(&a, line, (size_t)(q.word - line));
    const struct hv_command *rows = hv_prompt_commands(&n_rows);
    if (hv_command_split(&a, before, &words, &n_words, NULL) == HV_OK) {
        const struct hv_command *row = n_words > 0 ? hv_command_find(rows, n_rows, words[0]) : NULL;
        if (n_words == 0) {
            offer_commands(&q);
        } else if (row != NULL) {
            offer_argument(&q, row->id, n_words - 1, n_words > 1 ? words[1] : "");
        }
    }
    hv_arena_free(&a);
    return q.found;
}
