/** Options of a strategy as form fields. Independent of screens. */
#include "ui/screens/strategies/form.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"

/** Fields below the options: a heading and the limits of every run. */
enum extra { EXTRA_LABEL, EXTRA_TIME, EXTRA_BUDGET, EXTRA_SEED, EXTRA_N };

static size_t count_options(const struct hv_plugin *p)
{
    return p != NULL && p->error == NULL ? p->n_options : 0;
}

/** An option as KEY=VALUE texts write it; yes and no are true and false there. */
static const char *written(const struct hv_option_row *o, const char *value)
{
    if (o->type != HV_OPTION_BOOLEAN) {
        return value;
    }
    return strcmp(value, "yes") == 0 ? "true" : "false";
}

/** True where an empty field means that the option is not set. */
static bool is_unset(const struct hv_option_row *o, const char *value)
{
    return value[0] == '\0' && o->def == NULL;
}

static void check(void *ctx, size_t i_field, const char *value, char *bad, size_t cap)
{
    const struct hv_plugin *p = ctx;
    if (i_field >= count_options(p) || is_unset(&p->options[i_field], value)) {
        return;
    }
    struct hv_str text = {0};
    struct hv_err err = {0};
    json_t *out = NULL;
    hv_str_addf(&text, "%s=%s", p->options[i_field].key, written(&p->options[i_field], value));
    const char *one = hv_str_cstr(&text);
    if (hv_options_parse(p, &one, 1, &out, &err) != HV_OK) {
        /* which strategy and option it is about stands beside it */
        const char *at = strstr(err.text, p->options[i_field].key);
        const char *why = at != NULL ? strstr(at, ": ") : NULL;
        (void)snprintf(bad, cap, "%.150s", why != NULL ? why + 2 : err.text);
    }
    json_decref(out);
    hv_str_free(&text);
}

static void describe(const struct hv_option_row *o, char *help, size_t cap)
{
    char def[96] = "", range[96] = "", lo[HV_FMT_CAP], hi[HV_FMT_CAP];
    if (o->def != NULL) {
        char value[64];
        (void)snprintf(def, sizeof def, " (default %s)",
                       hv_option_text(o->def, value, sizeof value));
    }
    if (hv_known(o->min) && hv_known(o->max)) {
        (void)snprintf(range, sizeof range, ", %s to %s", hv_fmt_double(lo, sizeof lo, o->min),
                       hv_fmt_double(hi, sizeof hi, o->max));
    } else if (hv_known(o->min)) {
        (void)snprintf(range, sizeof range, ", at least %s", hv_fmt_double(lo, sizeof lo, o->min));
    } else if (hv_known(o->max)) {
        (void)snprintf(range, sizeof range, ", at most %s", hv_fmt_double(hi, sizeof hi, o->max));
    }
    (void)snprintf(help, cap, "%.100s%s%s",
                   o->help != NULL ? o->help : hv_option_type_name(o->type), range, def);
}

static void fill_option(struct hv_field *d, const char *help, const struct hv_session *s,
                        const struct hv_plugin *p, const struct hv_option_row *o)
{
    struct hv_str value = {0};
    bool is_number = o->type == HV_OPTION_INTEGER || o->type == HV_OPTION_NUMBER;
    hv_session_option(s, p->id, o->key, &value);
    *d = (struct hv_field){.name = o->key,
                           .help = help,
                           .unit = hv_session_option_is_set(s, p->id, o->key) ? "set" : NULL,
                           .kind = HV_FIELD_TEXT,
                           .choices = o->choices,
                           .n_choices = o->n_choices,
                           .min = o->min,
                           .max = o->max,
                           .integer = o->type == HV_OPTION_INTEGER};
    if (is_number && o->def != NULL) {
        d->kind = HV_FIELD_NUMBER;
    } else if (o->type == HV_OPTION_BOOLEAN) {
        d->kind = HV_FIELD_BOOL;
    } else if (o->type == HV_OPTION_CHOICE || o->type == HV_OPTION_SCHEDULE) {
        d->kind = HV_FIELD_CHOICE;
    }
    const char *text = hv_str_cstr(&value);
    if (d->kind == HV_FIELD_BOOL) {
        text = strcmp(text, "true") == 0 ? "yes" : "no";
    }
    (void)snprintf(d->value, sizeof d->value, "%s", text);
    hv_str_free(&value);
}

static void fill_limits(struct hv_field *d, const struct hv_session *s)
{
    struct hv_session_limits l = hv_session_limits(s);
    char buf[HV_FMT_CAP];
    d[EXTRA_LABEL] = (struct hv_field){.name = "all runs", .kind = HV_FIELD_LABEL};
    for (int i = EXTRA_TIME; i < EXTRA_N; i++) {
        d[i] = (struct hv_field){
            .kind = HV_FIELD_NUMBER, .min = 0, .max = 1e15, .integer = i != EXTRA_TIME};
    }
    d[EXTRA_TIME].name = "time limit";
    d[EXTRA_TIME].unit = "s";
    d[EXTRA_TIME].help = "wall clock of a run; 0 = no limit";
    d[EXTRA_BUDGET].name = "evaluations";
    d[EXTRA_BUDGET].help =
        "most plans that a run may simulate, for reproducible runs; 0 = no limit";
    d[EXTRA_SEED].name = "seed";
    d[EXTRA_SEED].help = "seed of the random numbers of a search";
    double time_s = l.time_limit_s > 0 ? l.time_limit_s : 0;
    (void)snprintf(d[EXTRA_TIME].value, sizeof d->value, "%s",
                   hv_fmt_double(buf, sizeof buf, time_s));
    (void)snprintf(d[EXTRA_BUDGET].value, sizeof d->value, "%lld", (long long)l.budget);
    (void)snprintf(d[EXTRA_SEED].value, sizeof d->value, "%llu", (unsigned long long)l.seed);
}

/** The menu of options that name a schedule: nothing, then every name. */
static void fill_schedules(struct hv_strategy_form *f, const struct hv_session *s)
{
    size_t n = 0;
    const char **names = hv_session_schedules(s, &n);
    free(f->schedules);
    f->schedules = hv_xcalloc(n + 1, sizeof *f->schedules);
    f->n_schedules = n + 1;
    f->schedules[0] = "";
    memcpy(f->schedules + 1, names, n * sizeof *names);
    free(names);
}

/** First field that can be edited. */
static size_t first_field(const struct hv_form *f)
{
    size_t i = 0;
    while (i + 1 < f->n_fields && f->fields[i].kind == HV_FIELD_LABEL) {
        i++;
    }
    return i;
}

/* Everything but the helps. */
static void fill(struct hv_strategy_form *f, const struct hv_session *s, const struct hv_plugin *p)
{
    size_t n = count_options(p);
    bool same = f->plugin == p && f->form.n_fields == n + EXTRA_N;
    free(f->form.fields);
    free(f->helps);
    fill_schedules(f, s);
    f->plugin = p;
    f->form.n_fields = n + EXTRA_N;
    f->form.fields = hv_xcalloc(n + EXTRA_N, sizeof *f->form.fields);
    f->helps = hv_xcalloc(n + 1, sizeof *f->helps);
    f->form.check = check;
    f->form.check_ctx = (void *)(uintptr_t)p;
    for (size_t i = 0; i < n; i++) {
        fill_option(&f->form.fields[i], f->helps[i], s, p, &p->options[i]);
        if (p->options[i].type == HV_OPTION_SCHEDULE) {
            f->form.fields[i].choices = f->schedules;
            f->form.fields[i].n_choices = f->n_schedules;
        }
    }
    fill_limits(&f->form.fields[n], s);
    if (!same) {
        f->form.cursor = first_field(&f->form);
        f->form.top = 0;
        f->form.editing = false;
    }
}

void hv_strategy_form_fill(struct hv_strategy_form *f, const struct hv_session *s,
                           const struct hv_plugin *p)
{
    fill(f, s, p);
    for (size_t i = 0; i < count_options(p); i++) {
        describe(&p->options[i], f->helps[i], sizeof f->helps[i]);
    }
}

enum hv_status hv_strategy_form_store(struct hv_strategy_form *f, struct hv_session *s,
                                      size_t i_field, struct hv_err *err)
{
    size_t n = count_options(f->plugin);
    const char *value = f->form.fields[i_field].value;
    if (i_field < n) {
        const struct hv_option_row *o = &f->plugin->options[i_field];
        const char *text = is_unset(o, value) ? NULL : written(o, value);
        return hv_session_option_set(s, f->plugin->id, o->key, text, err);
    }
    struct hv_session_limits l = hv_session_limits(s);
    if (i_field == n + EXTRA_TIME) {
        l.time_limit_s = strtod(value, NULL);
    } else if (i_field == n + EXTRA_BUDGET) {
        l.budget = (int64_t)strtod(value, NULL);
    } else if (i_field == n + EXTRA_SEED) {
        l.seed = (uint64_t)strtod(value, NULL);
    }
    hv_session_limits_set(s, l);
    return HV_OK;
}

enum hv_status hv_strategy_form_reset(struct hv_strategy_form *f, struct hv_session *s,
                                      size_t i_field, struct hv_err *err)
{
    if (i_field >= count_options(f->plugin)) {
        return HV_OK;
    }
    return hv_session_option_set(s, f->plugin->id, f->plugin->options[i_field].key, NULL, err);
}

void hv_strategy_form_draw(const struct hv_strategy_form *f, const struct hv_session *s,
                           const struct hv_plugin *p, struct hv_grid *g, struct hv_rect r,
                           bool focused)
{
    struct hv_strategy_form now = {0};
    fill(&now, s, p);
    if (f->plugin == p && f->form.n_fields == now.form.n_fields) {
        now.form.cursor = f->form.cursor;
        now.form.top = f->form.top;
        now.form.editing = f->form.editing;
        now.form.line = f->form.line; /* only read while drawing */
        const struct hv_field *edited = &f->form.fields[f->form.cursor];
        memcpy(now.form.fields[now.form.cursor].bad, edited->bad, sizeof edited->bad);
    }
    size_t at = now.form.cursor; /* one help is shown */
    if (at < count_options(p)) {
        describe(&p->options[at], now.helps[at], sizeof now.helps[at]);
    }
    hv_form_draw(&now.form, g, r, focused);
    now.form.line = (struct hv_line){0};
    hv_strategy_form_free(&now);
}

void hv_strategy_form_free(struct hv_strategy_form *f)
{
    free(f->form.fields);
    free(f->helps);
    free(f->schedules);
    hv_form_free(&f->form);
    *f = (struct hv_strategy_form){0};
}
