/*
 * Parses arguments against the rows of the command table. Not for help texts (help.c) nor for the
 * execution of commands (ui/cli).
 */
#include "ui/command/args.h"

#include "solver/base/str.h"
#include "solver/base/vec.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/** State of one parse. */
struct parse {
    const struct hv_command *command;
    const char *const *argv;
    int argc, at;
    HV_VEC(struct hv_arg_value) values;
    HV_VEC(const char *) positional;
    struct hv_err *err;
};

const struct hv_command *hv_command_find(const struct hv_command *rows, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].name, name) == 0 ||
            (rows[i].alias != NULL && strcmp(rows[i].alias, name) == 0)) {
            return &rows[i];
        }
    }
    return NULL;
}

static const struct hv_opt *find_in(const struct hv_opt *rows, size_t n, const char *name,
                                    size_t len)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

static const struct hv_opt *find_long(const struct hv_command *c, const char *name, size_t len)
{
    size_t n_global = 0;
    const struct hv_opt *global = hv_global_options(&n_global);
    const struct hv_opt *own = find_in(c->options, c->n_options, name, len);

    return own != NULL ? own : find_in(global, n_global, name, len);
}

static const struct hv_opt *find_letter(const struct hv_command *c, char letter)
{
    size_t n_global = 0;
    const struct hv_opt *global = hv_global_options(&n_global);

    for (size_t i = 0; i < c->n_options; i++) {
        if (c->options[i].letter == letter) {
            return &c->options[i];
        }
    }
    for (size_t i = 0; i < n_global; i++) {
        if (global[i].letter == letter) {
            return &global[i];
        }
    }
    return NULL;
}

static enum hv_status unknown_option(struct parse *p, const char *word, const char *name,
                                     size_t len)
{
    const char *names[64];
    size_t n = 0, n_global = 0;
    const struct hv_opt *global = hv_global_options(&n_global);
    char plain[64];

    for (size_t i = 0; i < p->command->n_options && n < HV_COUNT(names); i++) {
        names[n++] = p->command->options[i].name;
    }
    for (size_t i = 0; i < n_global && n < HV_COUNT(names); i++) {
        names[n++] = global[i].name;
    }
    len = len < sizeof plain - 1 ? len : sizeof plain - 1;
    memcpy(plain, name, len);
    plain[len] = '\0';
    const char *near = len > 1 ? hv_suggest(plain, names, n) : NULL;
    if (near != NULL) {
        return hv_err_set(p->err, HV_EUSAGE, "%s: unknown option %s, did you mean --%s?",
                          p->command->name, word, near);
    }
    return hv_err_set(p->err, HV_EUSAGE, "%s: unknown option %s (see `hetviz help %s`)",
                      p->command->name, word, p->command->name);
}

/** Multiplies a duration by its unit; false when the unit is not known. */
static bool duration_unit(const char *unit, double *value)
{
    static const struct {
        const char *name;
        double s;
    } units[] = {{"", 1},     {"s", 1},  {"ms", 1e-3}, {"us", 1e-6},
                 {"min", 60}, {"m", 60}, {"h", 3600}};

    for (size_t i = 0; i < HV_COUNT(units); i++) {
        if (strcmp(unit, units[i].name) == 0) {
            *value *= units[i].s;
            return true;
        }
    }
    return false;
}

static enum hv_status check_number(struct parse *p, const struct hv_opt *o, const char *text,
                                   double *out)
{
    char *end = NULL;
    const char *what = o->type == HV_ARG_INT        ? "a whole number"
                       : o->type == HV_ARG_DURATION ? "a time such as 10, 500ms or 2min"
                                                    : "a number";

    errno = 0;
    *out = strtod(text, &end);
    bool ok = end != text && isfinite(*out) && !isspace((unsigned char)text[0]) &&
              strpbrk(text, "xXpP") == NULL;
    if (ok && o->type == HV_ARG_DURATION) {
        ok = duration_unit(end, out);
    } else if (ok) {
        ok = *end == '\0' && (o->type != HV_ARG_INT || *out == floor(*out));
    }
    if (!ok) {
        return hv_err_set(p->err, HV_EUSAGE, "%s: --%s: expected %s, found '%s'", p->command->name,
                          o->name, what, text);
    }
    if (*out < o->lo || *out > o->hi) {
        return hv_err_set(p->err, HV_EUSAGE, "%s: --%s: %s is out of range (%g to %g)",
                          p->command->name, o->name, text, o->lo, o->hi);
    }
    return HV_OK;
}

/** Copies the comma-separated items and checks each as a number. */
static enum hv_status check_numbers(struct parse *p, const struct hv_opt *o, const char *text)
{
    while (true) {
        char piece[64];
        size_t n = strcspn(text, ",");
        double x = 0;
        if (n >= sizeof piece) {
            return hv_err_set(p->err, HV_EUSAGE, "%s: --%s: expected numbers separated by commas",
                              p->command->name, o->name);
        }
        memcpy(piece, text, n);
        piece[n] = '\0';
        enum hv_status s = check_number(p, o, piece, &x);
        if (s != HV_OK || text[n] == '\0') {
            return s;
        }
        text += n + 1;
    }
}

static enum hv_status check_word(struct parse *p, const struct hv_opt *o, const char *text,
                                 double *out)
{
    size_t n = 0;
    while (o->words[n] != NULL) {
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(o->words[i], text) == 0) {
            *out = (double)i;
            return HV_OK;
        }
    }
    struct hv_str all = {0};
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(&all, "%s%s", i > 0 ? ", " : "", o->words[i]);
    }
    enum hv_status s = hv_err_set(p->err, HV_EUSAGE, "%s: --%s: expected one of %s, found '%s'",
                                  p->command->name, o->name, hv_str_cstr(&all), text);
    hv_str_free(&all);
    return s;
}

static enum hv_status add_value(struct parse *p, const struct hv_opt *o, const char *text)
{
    struct hv_arg_value v = {o, text, 0};
    enum hv_status s = HV_OK;

    switch (o->type) {
    case HV_ARG_INT:
    case HV_ARG_NUMBER:
    case HV_ARG_DURATION:
        s = check_number(p, o, text, &v.number);
        break;
    case HV_ARG_NUMBERS:
        s = check_numbers(p, o, text);
        break;
    case HV_ARG_WORD:
        s = check_word(p, o, text, &v.number);
        break;
    case HV_ARG_KEY_VALUE:
        if (strchr(text, '=') == NULL || text[0] == '=') {
            s = hv_err_set(p->err, HV_EUSAGE, "%s: --%s: expected KEY=VALUE, found '%s'",
                           p->command->name, o->name, text);
        }
        break;
    case HV_ARG_TEXT:
    case HV_ARG_FILE:
    case HV_ARG_LIST:
        if (text[0] == '\0') {
            s = hv_err_set(p->err, HV_EUSAGE, "%s: --%s: expected %s, found nothing",
                           p->command->name, o->name, o->metavar);
        }
        break;
    case HV_ARG_FLAG:
    case HV_ARG_TYPE_N:
        break;
    }
    if (s == HV_OK) {
        hv_vec_push(&p->values, v);
    }
    return s;
}

/** Takes the option's value from `inline_text` or the next word. */
static enum hv_status take(struct parse *p, const struct hv_opt *o, const char *inline_text)
{
    if (o->type == HV_ARG_FLAG) {
        if (inline_text != NULL) {
            return hv_err_set(p->err, HV_EUSAGE, "%s: --%s takes no value", p->command->name,
                              o->name);
        }
        hv_vec_push(&p->values, (struct hv_arg_value){o, NULL, 1});
        return HV_OK;
    }
    if (inline_text != NULL) {
        return add_value(p, o, inline_text);
    }
    if (p->at + 1 >= p->argc) {
        return hv_err_set(p->err, HV_EUSAGE, "%s: --%s needs a value: %s", p->command->name,
                          o->name, o->metavar);
    }
    return add_value(p, o, p->argv[++p->at]);
}

static enum hv_status parse_long(struct parse *p, const char *word)
{
    const char *name = word + 2;
    size_t len = strcspn(name, "=");
    const struct hv_opt *o = find_long(p->command, name, len);

    if (o == NULL) {
        return unknown_option(p, word, name, len);
    }
    return take(p, o, name[len] == '=' ? name + len + 1 : NULL);
}

static enum hv_status parse_short(struct parse *p, const char *word)
{
    const struct hv_opt *o = find_letter(p->command, word[1]);

    if (o == NULL) {
        return unknown_option(p, word, word + 1, strlen(word + 1));
    }
    return take(p, o, word[2] != '\0' ? word + 2 : NULL);
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && !isdigit((unsigned char)word[1]) && word[1] != '.';
}

static enum hv_status parse_words(struct parse *p)
{
    bool only_arguments = false;

    for (p->at = 0; p->at < p->argc; p->at++) {
        const char *word = p->argv[p->at];
        enum hv_status s = HV_OK;
        if (only_arguments || !is_option(word)) {
            hv_vec_push(&p->positional, word);
        } else if (strcmp(word, "--") == 0) {
            only_arguments = true;
        } else {
            s = word[1] == '-' ? parse_long(p, word) : parse_short(p, word);
        }
        if (s != HV_OK) {
            return s;
        }
    }
    return HV_OK;
}

static bool was_given(const struct parse *p, const struct hv_opt *o)
{
    for (size_t i = 0; i < p->values.n; i++) {
        if (p->values.items[i].opt == o) {
            return true;
        }
    }
    return false;
}

static enum hv_status check_complete(struct parse *p)
{
    const struct hv_command *c = p->command;

    for (size_t i = 0; i < c->n_options; i++) {
        if (c->options[i].required && !was_given(p, &c->options[i])) {
            return hv_err_set(p->err, HV_EUSAGE, "%s: --%s %s is missing (%s)", c->name,
                              c->options[i].name, c->options[i].metavar, c->options[i].help);
        }
    }
    if ((int)p->positional.n < c->min_args) {
        return hv_err_set(p->err, HV_EUSAGE, "%s: expected %s", c->name, c->args);
    }
    if (c->max_args >= 0 && (int)p->positional.n > c->max_args) {
        return hv_err_set(p->err, HV_EUSAGE, "%s: unexpected argument '%s'", c->name,
                          p->positional.items[c->max_args]);
    }
    return HV_OK;
}

enum hv_status hv_args_parse(struct hv_args *out, const struct hv_command *command, int argc,
                             const char *const *argv, struct hv_err *err)
{
    struct parse p = {.command = command, .argv = argv, .argc = argc, .err = err};

    *out = (struct hv_args){.command = command};
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            out->wants_help = true;
        }
    }
    enum hv_status s = out->wants_help ? HV_OK : parse_words(&p);
    if (s == HV_OK && !out->wants_help) {
        s = check_complete(&p);
    }
    if (s == HV_OK) {
        out->n_values = p.values.n;
        out->n_positional = p.positional.n;
        out->values = hv_arena_copy(&out->arena, p.values.items, p.values.n, sizeof *out->values);
        out->positional =
            hv_arena_copy(&out->arena, p.positional.items, p.positional.n, sizeof *out->positional);
    }
    hv_vec_free(&p.values);
    hv_vec_free(&p.positional);
    return s;
}

void hv_args_free(struct hv_args *a)
{
    hv_arena_free(&a->arena);
    *a = (struct hv_args){0};
}

static const struct hv_arg_value *last_value(const struct hv_args *a, const char *name)
{
    for (size_t i = a->n_values; i > 0; i--) {
        if (strcmp(a->values[i - 1].opt->name, name) == 0) {
            return &a->values[i - 1];
        }
    }
    return NULL;
}

bool hv_args_has(const struct hv_args *a, const char *name)
{
    return last_value(a, name) != NULL;
}

const char *hv_args_text(const struct hv_args *a, const char *name, const char *otherwise)
{
    const struct hv_arg_value *v = last_value(a, name);
    return v != NULL ? v->text : otherwise;
}

double hv_args_number(const struct hv_args *a, const char *name, double otherwise)
{
    const struct hv_arg_value *v = last_value(a, name);
    return v != NULL ? v->number : otherwise;
}

static size_t count_pieces(const char *text)
{
    size_t n = 1;
    for (; *text != '\0'; text++) {
        n += *text == ',';
    }
    return n;
}

const char **hv_args_all(struct hv_args *a, const char *name, size_t *n)
{
    size_t most = 0;

    for (size_t i = 0; i < a->n_values; i++) {
        if (strcmp(a->values[i].opt->name, name) == 0) {
            most += a->values[i].opt->type == HV_ARG_LIST ? count_pieces(a->values[i].text) : 1;
        }
    }
    const char **all = hv_arena_new(&a->arena, const char *, most + 1);
    *n = 0;
    for (size_t i = 0; i < a->n_values; i++) {
        const char *text = a->values[i].text;
        if (strcmp(a->values[i].opt->name, name) != 0) {
            continue;
        }
        if (a->values[i].opt->type != HV_ARG_LIST) {
            all[(*n)++] = text;
            continue;
        }
        for (; text != NULL;
             text = text[strcspn(text, ",")] == ',' ? strchr(text, ',') + 1 : NULL) {
            if (strcspn(text, ",") > 0) {
                all[(*n)++] = hv_arena_strndup(&a->arena, text, strcspn(text, ","));
            }
        }
    }
    return all;
}

double *hv_args_numbers(struct hv_args *a, const char *name, size_t *n)
{
    const struct hv_arg_value *v = last_value(a, name);

    *n = 0;
    if (v == NULL) {
        return NULL;
    }
    double *all = hv_arena_new(&a->arena, double, count_pieces(v->text));
    for (const char *text = v->text; text != NULL;) {
        char *end = NULL;
        all[(*n)++] = strtod(text, &end);
        text = *end == ',' ? end + 1 : NULL;
    }
    return all;
}

enum hv_status hv_command_split(struct hv_arena *arena, const char *line, const char ***words,
                                size_t *n, struct hv_err *err)
{
    size_t cap = strlen(line) / 2 + 1;

    *words = hv_arena_new(arena, const char *, cap);
    *n = 0;
    while (true) {
        while (*line == ' ' || *line == '\t') {
            line++;
        }
        if (*line == '\0') {
            return HV_OK;
        }
        char *word = hv_arena_new(arena, char, strlen(line) + 1);
        size_t len = 0;
        bool quoted = false;
        for (; *line != '\0' && (quoted || (*line != ' ' && *line != '\t')); line++) {
            if (*line == '"') {
                quoted = !quoted;
            } else if (*line == '\\' && line[1] != '\0') {
                word[len++] = *++line;
            } else {
                word[len++] = *line;
            }
        }
        if (quoted) {
            return hv_err_set(err, HV_EUSAGE, "the closing quotation mark is missing");
        }
        (*words)[(*n)++] = word;
    }
}
