/*
 * Reads Megatron-LM's settings in their usual forms: arguments one after the other or a line each,
 * inside a shell script with variables and arrays, as a run prints them, or as YAML (MODEL_ARGS of
 * the functional tests, overrides of Megatron-Bridge, NeMo and GPT-NeoX). Scripts are read, never
 * run. Source: Megatron-LM, training/arguments.py.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/training/megatron.h"
#include <ctype.h>
#include <string.h>

#define MAX_SETTINGS 5000

static void settings_add(struct hv_arena *a, struct hv__settings *s, struct hv__piece name,
                         struct hv__piece value, unsigned line)
{
    while (name.n > 0 && name.p[0] == '-') {
        name.p++;
        name.n--;
    }
    char *copy = hv__copy(a, name);
    for (char *c = copy; *c; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    if (s->n < MAX_SETTINGS && *copy) {
        hv_vec_push(s, (struct hv__setting){copy, hv__copy(a, hv__unquote(value)), line, false});
    }
}

static void settings_free(struct hv__settings *s)
{
    hv_vec_free(s);
}

static bool settings_are_megatron(const struct hv__settings *s)
{
    static const char *const signs[] = {"tensor-model-parallel-size",
                                        "pipeline-model-parallel-size",
                                        "num-layers",
                                        "micro-batch-size",
                                        "global-batch-size",
                                        "hidden-size",
                                        "hybrid-layer-pattern"};
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < HV_COUNT(signs); k++) {
            n += strcmp(s->items[i].name, signs[k]) == 0;
        }
    }
    return n >= 2;
}

/* ---- scripts ----------------------------------------------------------------------------------
 */

/* NAME=value lines of a script. */
struct variable {
    struct hv__piece name, value;
};

struct script {
    struct hv_arena *arena;
    HV_VEC(struct variable) variables;
    struct hv__settings *out;
};

static bool is_name(struct hv__piece s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '_') {
            return false;
        }
    }
    return s.n > 0 && !isdigit((unsigned char)s.p[0]);
}

static struct hv__piece resolve(const struct script *x, struct hv__piece v, size_t before);

/* An expression of whole numbers being read: "8*(GPUS+2)". */
struct sum {
    const struct script *x;
    struct hv__piece rest;
    size_t before; /* variables that are set */
    int depth;
};

static double read_sum(struct sum *e);

/* A number, a variable, or an expression in brackets. */
static double read_value(struct sum *e)
{
    enum { DEPTH = 16 };
    double value;
    e->rest = hv__strip(e->rest);
    if (e->rest.n > 0 && e->rest.p[0] == '(' && e->depth < DEPTH) {
        e->rest.p++;
        e->rest.n--;
        e->depth++;
        value = read_sum(e);
        e->depth--;
        e->rest = hv__strip(e->rest);
        bool closed = e->rest.n > 0 && e->rest.p[0] == ')';
        e->rest.p += closed;
        e->rest.n -= closed;
        return closed ? value : HV_UNKNOWN;
    }
    size_t n = e->rest.n > 0 && e->rest.p[0] == '$';
    while (n < e->rest.n && (isalnum((unsigned char)e->rest.p[n]) || strchr("_{}", e->rest.p[n]))) {
        n++;
    }
    struct hv__piece word = {e->rest.p, n};
    e->rest.p += n;
    e->rest.n -= n;
    value = hv__plain_number(word);
    if (!hv_known(value) && n > 0) {
        word = word.p[0] == '$'
                   ? word
                   : hv__piece_of(hv_arena_printf(e->x->arena, "$%.*s", (int)n, word.p));
        value = hv__plain_number(resolve(e->x, word, e->before));
    }
    return value;
}

static double read_product(struct sum *e)
{
    double value = read_value(e);
    for (e->rest = hv__strip(e->rest); e->rest.n > 0 && strchr("*/%", e->rest.p[0]);
         e->rest = hv__strip(e->rest)) {
        char op = e->rest.p[0];
        e->rest.p++;
        e->rest.n--;
        double other = read_value(e);
        value = op == '*'                               ? value * other
                : !hv_known(other) || fabs(other) < 0.5 ? HV_UNKNOWN
                : op == '/'                             ? trunc(value / other)
                                                        : fmod(value, other);
    }
    return value;
}

static double read_sum(struct sum *e)
{
    double value = read_product(e);
    for (e->rest = hv__strip(e->rest); e->rest.n > 0 && strchr("+-", e->rest.p[0]);
         e->rest = hv__strip(e->rest)) {
        bool minus = e->rest.p[0] == '-';
        e->rest.p++;
        e->rest.n--;
        double other = read_product(e);
        value += minus ? -other : other;
    }
    return value;
}

/* "$((8 * GPUS))": its value as text; unchanged where it cannot be computed. */
static struct hv__piece compute(const struct script *x, struct hv__piece v, size_t before)
{
    struct sum e = {.x = x, .rest = {v.p + 3, v.n - 5}, .before = before};
    double value = read_sum(&e);
    bool whole = hv_known(value) && hv__strip(e.rest).n == 0 && fabs(value) < 1e15;
    return whole ? hv__piece_of(hv_arena_printf(x->arena, "%.0f", value)) : v;
}

/* "$X", "${X}", "${X:-8}", "$((2*X))": the value assigned to X among the first `before` variables,
 * or the default. Other texts are returned unchanged. */
static struct hv__piece resolve(const struct script *x, struct hv__piece v, size_t before)
{
    v = hv__unquote(v);
    struct hv__piece name = v, other = {v.p, 0};
    if (v.n < 2 || v.p[0] != '$') {
        return v;
    }
    if (v.n > 5 && hv__starts(v, "$((") && v.p[v.n - 1] == ')' && v.p[v.n - 2] == ')') {
        return compute(x, v, before);
    }
    name = (struct hv__piece){v.p + 1, v.n - 1};
    if (name.p[0] == '{' && name.p[name.n - 1] == '}') {
        size_t n = 0;
        name = (struct hv__piece){name.p + 1, name.n - 2};
        while (n < name.n && (isalnum((unsigned char)name.p[n]) || name.p[n] == '_')) {
            n++;
        }
        other = (struct hv__piece){name.p + n, name.n - n};
        name.n = n;
        while (other.n > 0 && strchr(":-=", other.p[0])) {
            other.p++;
            other.n--;
        }
    }
    for (size_t i = before; i > 0; i--) {
        const struct variable *w = &x->variables.items[i - 1];
        if (w->name.n == name.n && memcmp(w->name.p, name.p, name.n) == 0) {
            return resolve(x, w->value, i - 1);
        }
    }
    return other.n > 0 ? resolve(x, other, before) : v;
}

/* The next word of a script's line; quotation marks and "$((" hold words together. */
static struct hv__piece script_word(struct hv__piece *rest)
{
    *rest = hv__strip(*rest);
    size_t n = 0;
    char quote = '\0';
    bool sum = false;
    while (n < rest->n && (quote || sum || !isspace((unsigned char)rest->p[n]))) {
        char c = rest->p[n];
        struct hv__piece here = {rest->p + n, rest->n - n};
        quote = quote ? (c == quote ? '\0' : quote) : (c == '"' || c == '\'') ? c : '\0';
        sum = sum ? !(c == ')' && n > 0 && rest->p[n - 1] == ')') : hv__starts(here, "$((");
        n++;
    }
    struct hv__piece w = {rest->p, n};
    rest->p += n;
    rest->n -= n;
    return w;
}

static void read_variable(struct script *x, struct hv__piece line)
{
    struct hv__piece value = hv__strip(line);
    if (hv__starts(value, "export ")) {
        value.p += 7;
        value.n -= 7;
    }
    struct hv__piece name = hv__before(&value, '=');
    if (is_name(name) && value.n > 0 && value.p[0] != '(' && x->variables.n < MAX_SETTINGS) {
        /* the rest of the line is a comment or another command */
        if (value.p[0] != '"' && value.p[0] != '\'') {
            value = script_word(&value);
            value = hv__before(&value, ';');
        } else {
            const char *end = memchr(value.p + 1, value.p[0], value.n - 1);
            value.n = end ? (size_t)(end - value.p) + 1 : value.n;
        }
        hv_vec_push(&x->variables, (struct variable){name, value});
    }
}

static bool is_flag(struct hv__piece w)
{
    return w.n > 2 && w.p[0] == '-' && w.p[1] == '-' && isalpha((unsigned char)w.p[2]);
}

/* True where a word has more closing brackets than opening ones. */
static bool is_closed_too_often(struct hv__piece w)
{
    int open = 0;
    for (size_t i = 0; i < w.n; i++) {
        open += (w.p[i] == '(') - (w.p[i] == ')');
    }
    return open < 0;
}

/* Brackets and ends of lines around words of scripts. */
static struct hv__piece bare(struct hv__piece w)
{
    while (w.n > 0 && strchr("()\\;\"'", w.p[w.n - 1])) {
        bool pair =
            (w.p[w.n - 1] == '"' || w.p[w.n - 1] == '\'') && w.n > 1 && w.p[0] == w.p[w.n - 1];
        if (pair || (w.p[w.n - 1] == ')' && !is_closed_too_often(w))) {
            break;
        }
        w.n--;
    }
    while (w.n > 0 && (w.p[0] == '(' ||
                       ((w.p[0] == '"' || w.p[0] == '\'') && w.n > 1 && w.p[w.n - 1] != w.p[0]))) {
        w.p++;
        w.n--;
    }
    return w;
}

/* Adds one word: a flag begins a setting, and the words up to the next flag are its value. */
static void take_word(struct script *x, struct hv__piece w, unsigned line, bool *waits)
{
    /* the end of a list of arguments: what follows is no value of its last flag */
    bool ends = w.n > 0 && strchr(")\"';", w.p[w.n - 1]) && (w.n == 1 || w.p[0] != w.p[w.n - 1]) &&
                !hv__find(w, "$((");
    w = bare(w);
    if (w.n == 0) {
        *waits = *waits && !ends;
        return;
    }
    if (is_flag(w)) {
        struct hv__piece value = w, name = hv__before(&value, '=');
        bool has = name.n < w.n;
        settings_add(x->arena, x->out, name,
                     has ? resolve(x, value, x->variables.n) : (struct hv__piece){"", 0}, line);
        *waits = !has && !ends;
    } else if (*waits && x->out->n > 0) {
        x->out->items[x->out->n - 1].value =
            hv__copy(x->arena, hv__unquote(resolve(x, w, x->variables.n)));
        *waits = false;
    }
}

static void read_script(const struct hv__in *in, struct hv__settings *out)
{
    struct script x = {.arena = &in->im->arena, .out = out};
    struct hv__lines l = {.rest = in->text, .left = in->n};
    while (hv__next_line(&l)) {
        read_variable(&x, l.piece);
    }
    bool waits = false;
    l = (struct hv__lines){.rest = in->text, .left = in->n};
    while (hv__next_line(&l)) {
        struct hv__piece rest = hv__strip(l.piece);
        if (rest.n > 0 && rest.p[0] == '#') {
            continue;
        }
        for (struct hv__piece w = script_word(&rest); w.n > 0; w = script_word(&rest)) {
            if (w.p[0] == '#') {
                break;
            }
            /* GPT_ARGS="--num-layers 32 …": the words inside */
            const char *inner = hv__find(w, "\"--");
            if (inner) {
                struct hv__piece list = {inner + 1, (size_t)(w.p + w.n - inner - 1)};
                for (struct hv__piece v = script_word(&list); v.n > 0; v = script_word(&list)) {
                    take_word(&x, v, l.line, &waits);
                }
            } else {
                take_word(&x, w, l.line, &waits);
            }
        }
    }
    hv_vec_free(&x.variables);
}

/* The arguments as a run prints them: "  num_layers ......... 24", with or without a rank before.
 */
static void read_printed(const struct hv__in *in, struct hv__settings *out)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    while (hv__next_line(&l)) {
        struct hv__piece rest = l.piece, name = {"", 0};
        for (struct hv__piece w = hv__next_word(&rest); w.n > 0; w = hv__next_word(&rest)) {
            size_t dots = 0;
            while (dots < w.n && w.p[dots] == '.') {
                dots++;
            }
            if (dots < 3 || dots < w.n) {
                name = w;
                continue;
            }
            struct hv__piece value = hv__strip(rest);
            if (is_name(name) && !hv__is(value, "None")) {
                value = hv__is(value, "True")    ? (struct hv__piece){"", 0}
                        : hv__is(value, "False") ? hv__piece_of("false")
                                                 : value;
                settings_add(&in->im->arena, out, name, value, l.line);
            }
            break;
        }
    }
}

static void read_arguments(const struct hv__in *in, struct hv__settings *out)
{
    struct hv__piece all = {in->text, in->n};
    if (hv__find(all, " ....")) {
        read_printed(in, out);
    }
    if (hv__find(all, "--") && !settings_are_megatron(out)) {
        read_script(in, out);
    }
}

bool hv__is_megatron_args(const struct hv__in *in)
{
    struct hv__settings s = {0};
    if (in->tree || in->xml) {
        return false;
    }
    read_arguments(in, &s);
    bool yes = settings_are_megatron(&s);
    settings_free(&s);
    return yes;
}

enum hv_status hv__read_megatron_args(struct hv__in *in, struct hv_err *err)
{
    struct hv__settings s = {0};
    read_arguments(in, &s);
    enum hv_status st = s.n > 0 ? hv__megatron_take(in, &s, err)
                                : hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                                            "no argument such as --num-layers in it");
    settings_free(&s);
    return st;
}

/* ---- YAML -------------------------------------------------------------------------------------
 */

static void add_value(struct hv__in *in, struct hv__settings *out, const char *key, json_t *v)
{
    char number[HV_FMT_CAP];
    const char *text = json_is_string(v)  ? json_string_value(v)
                       : json_is_true(v)  ? ""
                       : json_is_false(v) ? "false"
                                          : NULL;
    if (json_is_number(v)) {
        text = hv_fmt_double(number, sizeof number, json_number_value(v));
    }
    if (text) {
        settings_add(&in->im->arena, out, hv__piece_of(key), hv__piece_of(text),
                     hv__line_of(in, v));
    }
}

/* Members of DeepSpeed's objects in the files of GPT-NeoX. */
static const char *name_below(const char *parent, const char *key)
{
    static const struct {
        const char *parent, *key, *name;
    } rows[] = {{"zero_optimization", "stage", "zero-stage"},
                {"optimizer", "type", "optimizer"},
                {"fp16", "enabled", "fp16"},
                {"bf16", "enabled", "bf16"}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (strcmp(parent, rows[i].parent) == 0 && strcmp(key, rows[i].key) == 0) {
            return rows[i].name;
        }
    }
    return key;
}

/* MODEL_ARGS, or tables such as model: and train: one level down. */
static void read_yaml(struct hv__in *in, struct hv__settings *out)
{
    json_t *args = json_object_get(in->tree, "MODEL_ARGS");
    json_t *top = json_is_object(args) ? args : in->tree;
    for (void *it = json_object_iter(top); it; it = json_object_iter_next(top, it)) {
        json_t *v = json_object_iter_value(it);
        add_value(in, out, json_object_iter_key(it), v);
        if (json_is_object(v)) {
            for (void *k = json_object_iter(v); k; k = json_object_iter_next(v, k)) {
                const char *name = name_below(json_object_iter_key(it), json_object_iter_key(k));
                add_value(in, out, name, json_object_iter_value(k));
            }
        }
    }
}

bool hv__is_megatron_yaml(const struct hv__in *in)
{
    struct hv__settings s = {0};
    bool neox = json_object_get(in->tree, "num-layers") != NULL; /* GPT-NeoX writes JSON too */
    if (!json_is_object(in->tree) || !(in->is_yaml || neox)) {
        return false;
    }
    struct hv__in aside = *in;
    read_yaml(&aside, &s);
    bool yes = json_object_get(in->tree, "MODEL_ARGS") != NULL || settings_are_megatron(&s);
    settings_free(&s);
    return yes;
}

enum hv_status hv__read_megatron_yaml(struct hv__in *in, struct hv_err *err)
{
    struct hv__settings s = {0};
    if (!json_is_object(in->tree)) {
        return hv_err_at(err, HV_EINPUT, in->name, in->broken.line, in->broken.col, "%s",
                         in->broken.text[0] ? in->broken.text : "expected a mapping");
    }
    read_yaml(in, &s);
    enum hv_status st = hv__megatron_take(in, &s, err);
    settings_free(&s);
    return st;
}
