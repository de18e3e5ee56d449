/*
 * The `:` prompt: one function per row of the table. Completion is in prompt_complete.c.
 */
#include "ui/session/prompt/prompt.h"

#include "solver/base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One command being run. */
struct call {
    struct hv_session *s;
    struct hv_args *args;
    const char *rest; /**< the line from the second argument on, as typed */
    const char *code; /**< the line from the first argument on, as typed */
    struct hv_prompt_outcome *out;
    struct hv_err *err;
};

void hv_prompt_outcome_free(struct hv_prompt_outcome *o)
{
    hv_str_free(&o->message);
    hv_str_free(&o->arg);
    *o = (struct hv_prompt_outcome){0};
}

static const char *arg(const struct call *c, size_t i)
{
    return i < c->args->n_positional ? c->args->positional[i] : NULL;
}

static enum hv_status do_set(struct call *c)
{
    enum hv_status st = hv_session_set_text(c->s, arg(c, 0), c->rest, c->err);
    if (st == HV_OK) {
        hv_str_addf(&c->out->message, "set %s %s", arg(c, 0), c->rest);
    }
    return st;
}

static enum hv_status do_undo(struct call *c)
{
    const char *label = hv_session_undo_label(c->s);
    if (label == NULL) {
        return hv_err_set(c->err, HV_EUSAGE, "undo: there is no change to undo");
    }
    hv_str_addf(&c->out->message, "undone: %s", label);
    hv_session_undo(c->s);
    return HV_OK;
}

static enum hv_status do_redo(struct call *c)
{
    const char *label = hv_session_redo_label(c->s);
    if (label == NULL) {
        return hv_err_set(c->err, HV_EUSAGE, "redo: there is no undone change");
    }
    hv_str_addf(&c->out->message, "redone: %s", label);
    hv_session_redo(c->s);
    return HV_OK;
}

static enum hv_status do_write(struct call *c)
{
    enum hv_status st = hv_session_save(c->s, arg(c, 0), c->err);
    if (st == HV_OK) {
        hv_str_addf(&c->out->message, "saved in %s", hv_session_path(c->s));
    }
    return st;
}

static enum hv_status do_quit(struct call *c)
{
    const char *how = arg(c, 0);
    if (how != NULL && strcmp(how, "!") != 0) {
        return hv_err_set(c->err, HV_EUSAGE, "quit: expected nothing or !, found \"%s\"", how);
    }
    c->out->force = how != NULL;
    c->out->todo = HV_TODO_QUIT;
    return HV_OK;
}

/* KEY=VALUE words as an object, typed by the strategy's rows where it is a single one. */
static enum hv_status run_options(struct call *c, const char *strategy, json_t **out)
{
    size_t n = c->args->n_positional - 1;
    const char *const *words = c->args->positional + 1;
    const struct hv_plugin *p = hv_session_strategy(c->s, strategy);
    json_t *full = NULL;
    *out = NULL;
    if (n == 0) {
        return HV_OK;
    }
    if (p == NULL) {
        return hv_err_set(c->err, HV_EUSAGE,
                          "run: options go with a single strategy; set those of %s with `option`",
                          strategy);
    }
    enum hv_status st = hv_options_parse(p, words, n, &full, c->err);
    if (st != HV_OK) {
        return st;
    }
    /* only what was typed: the rest comes from the options set for the strategy */
    *out = json_object();
    for (size_t i = 0; i < n; i++) {
        size_t len = strcspn(words[i], "=");
        struct hv_str key = {0};
        hv_str_add(&key, words[i], len);
        json_object_set(*out, hv_str_cstr(&key), json_object_get(full, hv_str_cstr(&key)));
        hv_str_free(&key);
    }
    json_decref(full);
    return HV_OK;
}

static enum hv_status do_run(struct call *c)
{
    const char *strategy = arg(c, 0);
    json_t *options = NULL;
    uint32_t id = 0;
    bool all = strcmp(strategy, "all") == 0;
    enum hv_kind kind = hv_kind_of(strategy);
    /* a strategy wins over a kind of the same name, as in `compare` */
    if (all || (kind != HV_KIND_N && hv_session_strategy(c->s, strategy) == NULL)) {
        if (c->args->n_positional > 1) {
            return hv_err_set(c->err, HV_EUSAGE, "run: %s takes no options",
                              all ? "all" : "a kind");
        }
        size_t n = all ? hv_session_run_all(c->s) : hv_session_run_kind(c->s, kind);
        hv_str_addf(&c->out->message, "%zu strategies queued", n);
        return HV_OK;
    }
    enum hv_status st = run_options(c, strategy, &options);
    if (st == HV_OK) {
        st = hv_session_run(c->s, strategy, options, &id, c->err);
    }
    json_decref(options);
    if (st == HV_OK) {
        hv_session_select(c->s, id);
        hv_str_addf(&c->out->message, "%s queued", hv_session_row(c->s, id)->name);
    }
    return st;
}

/* A row by number or name; 0 and an error when there is none. */
static uint32_t find_row(struct call *c, const char *text)
{
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(c->s, &n);
    const char *names[256];
    size_t n_names = 0;
    for (size_t i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "%u", rows[i]->id);
        if (strcmp(rows[i]->name, text) == 0 || strcmp(id, text) == 0) {
            return rows[i]->id;
        }
        if (n_names < HV_COUNT(names)) {
            names[n_names++] = rows[i]->name;
        }
    }
    const char *near = hv_suggest(text, names, n_names);
    hv_err_set(c->err, HV_EUSAGE, "there is no row \"%.80s\"%s%.100s%s", text,
               near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return 0;
}

static enum hv_status do_cancel(struct call *c)
{
    const char *which = arg(c, 0);
    if (which == NULL) {
        size_t n = hv_session_cancel_all(c->s);
        hv_str_addf(&c->out->message, "%zu cancelled", n);
        return HV_OK;
    }
    uint32_t id = find_row(c, which);
    if (id == 0) {
        return HV_EUSAGE;
    }
    if (!hv_session_cancel(c->s, id)) {
        return hv_err_set(c->err, HV_EUSAGE, "cancel: %s is not running", which);
    }
    hv_str_addf(&c->out->message, "%s cancelled", which);
    return HV_OK;
}

static enum hv_status do_option(struct call *c)
{
    const char *pair = arg(c, 1), *equals = strchr(pair, '=');
    if (equals == NULL || equals == pair) {
        return hv_err_set(c->err, HV_EUSAGE, "option: expected KEY=VALUE, found \"%s\"", pair);
    }
    struct hv_str key = {0};
    hv_str_add(&key, pair, (size_t)(equals - pair));
    /* nothing after the sign: back to the default */
    const char *text = equals[1] != '\0' ? equals + 1 : NULL;
    enum hv_status st = hv_session_option_set(c->s, arg(c, 0), hv_str_cstr(&key), text, c->err);
    if (st == HV_OK) {
        hv_str_addf(&c->out->message, "option %s %s", arg(c, 0), pair);
    }
    hv_str_free(&key);
    return st;
}

static enum hv_status do_export(struct call *c)
{
    bool named = c->args->n_positional == 2;
    const char *path = arg(c, named ? 1 : 0);
    uint32_t id = named ? find_row(c, arg(c, 0)) : hv_session_selected(c->s);
    if (id == 0) {
        return named ? HV_EUSAGE
                     : hv_err_set(c->err, HV_EUSAGE, "export: no row is selected; name one");
    }
    const char *target = hv_args_text(c->args, "to", NULL);
    enum hv_status st = target != NULL ? hv_session_export_to(c->s, id, target, path, c->err)
                                       : hv_session_export(c->s, id, path, c->err);
    if (st == HV_OK) {
        hv_str_addf(&c->out->message, "%s written to %s", hv_session_row(c->s, id)->name, path);
    }
    return st;
}

static enum hv_status do_screen(struct call *c)
{
    c->out->todo = HV_TODO_SCREEN;
    hv_str_adds(&c->out->arg, arg(c, 0));
    return HV_OK;
}

static enum hv_status do_help(struct call *c)
{
    c->out->todo = HV_TODO_HELP;
    hv_str_adds(&c->out->arg, arg(c, 0) != NULL ? arg(c, 0) : "");
    return HV_OK;
}

static enum hv_status do_save_screen(struct call *c)
{
    c->out->todo = HV_TODO_SAVE_SCREEN;
    hv_str_adds(&c->out->arg, arg(c, 0));
    return HV_OK;
}

static enum hv_status do_import(struct call *c)
{
    c->out->todo = HV_TODO_IMPORT;
    hv_str_adds(&c->out->arg, c->code);
    return HV_OK;
}

static enum hv_status do_remove(struct call *c)
{
    enum hv_status st = hv_session_remove(c->s, arg(c, 0), c->err);
    if (st == HV_OK) {
        hv_str_addf(&c->out->message, "removed %s", arg(c, 0));
    }
    return st;
}

static enum hv_status do_insert(struct call *c)
{
    enum hv_status st = hv_session_insert_text(c->s, arg(c, 0), c->rest, c->err);
    if (st == HV_OK) {
        hv_str_addf(&c->out->message, "inserted at %s", arg(c, 0));
    }
    return st;
}

static enum hv_status do_begin(struct call *c)
{
    hv_session_group_begin(c->s);
    hv_str_adds(&c->out->message, "edits are collected until `end`");
    return HV_OK;
}

static enum hv_status do_end(struct call *c)
{
    size_t before = hv_session_n_undo(c->s);
    enum hv_status st = hv_session_group_end(c->s, c->err);
    if (st == HV_OK) {
        hv_str_addf(&c->out->message, "%s",
                    hv_session_n_undo(c->s) > before ? "applied together" : "nothing changed");
    }
    return st;
}

static enum hv_status do_select(struct call *c)
{
    uint32_t id = find_row(c, arg(c, 0));
    if (id != 0) {
        hv_session_select(c->s, id);
    }
    return id != 0 ? HV_OK : HV_EUSAGE;
}

static enum hv_status do_delete(struct call *c)
{
    uint32_t id = find_row(c, arg(c, 0));
    if (id == 0) {
        return HV_EUSAGE;
    }
    hv_session_row_delete(c->s, id);
    hv_str_addf(&c->out->message, "%s deleted; undo restores it", arg(c, 0));
    return HV_OK;
}

static enum hv_status do_rename(struct call *c)
{
    uint32_t id = find_row(c, arg(c, 0));
    enum hv_status st = id != 0 ? hv_session_row_rename(c->s, id, arg(c, 1), c->err) : HV_EUSAGE;
    if (st == HV_OK) {
        hv_str_addf(&c->out->message, "%s is now %s", arg(c, 0), arg(c, 1));
    }
    return st;
}

/* The words of a note as they were typed, or one in quotation marks. */
static enum hv_status do_note(struct call *c)
{
    uint32_t id = find_row(c, arg(c, 0));
    const char *text = c->args->n_positional == 2 ? arg(c, 1) : c->rest;
    enum hv_status st = id != 0 ? hv_session_row_note(c->s, id, text, c->err) : HV_EUSAGE;
    if (st == HV_OK) {
        hv_str_addf(&c->out->message, "note of %s: %s", arg(c, 0), text[0] ? text : "none");
    }
    return st;
}

/* JSON as typed, or the file of that name. */
static enum hv_status plan_of(struct call *c, json_t **out)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    const char *from = c->rest;
    enum hv_status st = HV_OK;
    if (from[0] != '{') {
        from = arg(c, 1);
        st = hv_file_read(from, &text, c->err);
    } else {
        hv_str_adds(&text, from);
        from = "plan";
    }
    if (st == HV_OK) {
        st = hv_json_parse(&json, hv_str_cstr(&text), text.n, from, c->err);
    }
    *out = st == HV_OK ? json_incref(json.root) : NULL;
    hv_json_free(&json);
    hv_str_free(&text);
    return st;
}

static enum hv_status do_plan(struct call *c)
{
    json_t *plan = NULL;
    uint32_t id = 0;
    enum hv_status st = plan_of(c, &plan);
    if (st == HV_OK) {
        st = hv_session_row_add_step(c->s, arg(c, 0), plan, NULL, &id, c->err);
    }
    if (st != HV_OK) {
        return st;
    }
    hv_session_select(c->s, id);
    hv_str_addf(&c->out->message, "plan %s added", hv_session_row(c->s, id)->name);
    return HV_OK;
}

static bool limit_of(struct hv_session_limits *l, const char *pair)
{
    const char *equals = strchr(pair, '=');
    size_t n = equals != NULL ? (size_t)(equals - pair) : 0;
    char *end = NULL;
    double x = equals != NULL ? strtod(equals + 1, &end) : -1;
    if (equals == NULL || end == equals + 1 || *end != '\0' || !(x >= 0 && x <= 9e15)) {
        return false;
    }
    if (n == 4 && memcmp(pair, "time", n) == 0) {
        l->time_limit_s = x;
    } else if (n == 11 && memcmp(pair, "evaluations", n) == 0) {
        l->budget = (int64_t)x;
    } else if (n == 4 && memcmp(pair, "seed", n) == 0) {
        l->seed = (uint64_t)x;
    } else {
        return false;
    }
    return true;
}

static enum hv_status do_limit(struct call *c)
{
    struct hv_session_limits l = hv_session_limits(c->s);
    for (size_t i = 0; i < c->args->n_positional; i++) {
        if (!limit_of(&l, arg(c, i))) {
            return hv_err_set(c->err, HV_EUSAGE,
                              "limit: expected time=S, evaluations=N or seed=N, found \"%s\"",
                              arg(c, i));
        }
    }
    hv_session_limits_set(c->s, l);
    hv_str_addf(&c->out->message, "limits of later runs: time %g s, evaluations %lld, seed %llu",
                l.time_limit_s, (long long)l.budget, (unsigned long long)l.seed);
    return HV_OK;
}

static enum hv_status do_lua(struct call *c)
{
    hv_session_lua(c->s, c->code);
    hv_str_adds(&c->out->message, "screen 8 shows the output");
    return HV_OK;
}

static enum hv_status do_record(struct call *c)
{
    const char *was = hv_session_recording(c->s), *path = arg(c, 0);
    if (path == NULL && was == NULL) {
        return hv_err_set(c->err, HV_EUSAGE,
                          "record: expected a file, because no recording is active");
    }
    if (path == NULL) {
        hv_str_addf(&c->out->message, "recorded in %s", was);
    }
    enum hv_status st = hv_session_record(c->s, path, c->err);
    if (st == HV_OK && path != NULL) {
        hv_str_addf(&c->out->message, "recording to %s; `record` ends it", path);
    }
    return st;
}

static enum hv_status execute(enum hv_command_id id, struct call *c)
{
    static const struct {
        enum hv_command_id id;
        enum hv_status (*run)(struct call *c);
    } rows[] = {
#define X(id, name) {HV_PROMPT_##id, do_##name},
        HV_PROMPT_MAP(X)
#undef X
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (rows[i].id == id) {
            return rows[i].run(c);
        }
    }
    return HV_EINTERNAL;
}

/* The line from its n-th word on: values keep their quotation marks and blanks. */
static const char *rest_of(const char *line, int n)
{
    for (; n > 0; n--) {
        bool quoted = false;
        line += strspn(line, " \t");
        for (; *line != '\0' && (quoted || (*line != ' ' && *line != '\t')); line++) {
            if (*line == '"') {
                quoted = !quoted;
            } else if (*line == '\\' && line[1] != '\0') {
                line++;
            }
        }
    }
    return line + strspn(line, " \t");
}

/* Splits a line; a key path keeps its quotation marks because it is taken as typed. */
static enum hv_status split(struct hv_arena *a, const char *line, const char ***words, size_t *n,
                            struct hv_err *err)
{
    const char *first = line + strspn(line, " \t");
    if (strncmp(first, "lua ", 4) == 0) { /* code has quotation marks of its own */
        *words = hv_arena_new(a, const char *, 3);
        (*words)[0] = "lua";
        (*words)[1] = hv_arena_strndup(a, first + 4, strlen(first + 4));
        *n = 2;
        return HV_OK;
    }
    enum hv_status st = hv_command_split(a, line, words, n, err);
    bool path = *n > 1 && (strcmp((*words)[0], "set") == 0 || strcmp((*words)[0], "remove") == 0 ||
                           strcmp((*words)[0], "insert") == 0);
    if (st == HV_OK && path) {
        const char *from = rest_of(line, 1), *to = rest_of(line, 2);
        while (to > from && (to[-1] == ' ' || to[-1] == '\t')) {
            to--;
        }
        (*words)[1] = hv_arena_strndup(a, from, (size_t)(to - from));
    }
    return st;
}

enum hv_status hv_session_command(struct hv_session *s, const char *line,
                                  struct hv_prompt_outcome *out, struct hv_err *err)
{
    struct hv_arena a = {0};
    const char **words = NULL, *names[64];
    size_t n = 0, n_rows = 0;
    const struct hv_command *rows = hv_prompt_commands(&n_rows);
    *out = (struct hv_prompt_outcome){0};
    enum hv_status st = split(&a, line, &words, &n, err);
    const struct hv_command *row = n > 0 ? hv_command_find(rows, n_rows, words[0]) : NULL;
    struct hv_args args = {0};
    if (st == HV_OK && n > 0 && row == NULL) {
        for (size_t i = 0; i < n_rows && i < HV_COUNT(names); i++) {
            names[i] = rows[i].name;
        }
        const char *near = hv_suggest(words[0], names, n_rows);
        st = hv_err_set(err, HV_EUSAGE, "there is no command \"%.40s\"%s%s%s", words[0],
                        near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    } else if (st == HV_OK && row != NULL) {
        /* values may begin with a dash: nothing is an option of a command that has none */
        const char **dashed = hv_arena_new(&a, const char *, n + 1);
        size_t skip = row->n_options == 0;
        dashed[0] = "--";
        memcpy(dashed + skip, words + 1, (n - 1) * sizeof *words);
        st = hv_args_parse(&args, row, (int)(n - 1 + skip), dashed, err);
        struct call c = {s, &args, rest_of(line, 2), rest_of(line, 1), out, err};
        if (st == HV_OK) {
            st = execute(row->id, &c);
        }
    }
    hv_args_free(&args);
    hv_arena_free(&a);
    return st;
}
