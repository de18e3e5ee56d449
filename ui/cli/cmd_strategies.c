/** `hetviz strategies`: lists the strategies under their kinds, and describes one. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scripting/plugin/plugin.h"
#include "solver/base/units.h"
#include "ui/cli/cli.h"
#include "ui/cli/print.h"

static json_t *text_or_null(const char *s)
{
    return s != NULL ? json_string(s) : json_null();
}

static json_t *option_json(const struct hv_option_row *o)
{
    json_t *j = json_object();
    json_object_set_new(j, "key", json_string(o->key));
    json_object_set_new(j, "type", json_string(hv_option_type_name(o->type)));
    json_object_set_new(j, "default", o->def != NULL ? json_deep_copy(o->def) : json_null());
    json_object_set_new(j, "min", hv_json_num(o->min));
    json_object_set_new(j, "max", hv_json_num(o->max));
    if (o->n_choices > 0) {
        json_t *choices = json_array();
        for (size_t i = 0; i < o->n_choices; i++) {
            json_array_append_new(choices, json_string(o->choices[i]));
        }
        json_object_set_new(j, "choices", choices);
    }
    json_object_set_new(j, "help", text_or_null(o->help));
    return j;
}

static json_t *texts_json(const char *const *texts, size_t n)
{
    json_t *j = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(j, json_string(texts[i]));
    }
    return j;
}

/** One kind is a text, several are a list. */
static json_t *kind_json(const struct hv_plugin *p)
{
    json_t *j = json_array();
    for (size_t i = 0; i < p->n_kinds; i++) {
        json_array_append_new(j, json_string(hv_kind_name(p->kinds[i])));
    }
    if (p->n_kinds == 1) {
        json_decref(j);
        j = json_string(hv_kind_name(p->kinds[0]));
    }
    return j;
}

/** What is published: citation, what the system fixes, what it decides, what is checked. */
static void add_paper(const struct hv_plugin *p, json_t *j)
{
    struct hv_str text = {0};
    hv_plugin_cite(p, &text);
    json_object_set_new(j, "citation", text_or_null(hv_str_cstr(&text)));
    hv_str_free(&text);
    json_object_set_new(j, "venue", text_or_null(p->venue));
    json_object_set_new(j, "year", p->year > 0 ? json_integer(p->year) : json_null());
    json_object_set_new(j, "sets", p->sets != NULL ? json_deep_copy(p->sets) : json_object());
    json_object_set_new(j, "searches", texts_json(p->searches, p->n_searches));
    json_object_set_new(j, "verified", texts_json(p->verified, p->n_verified));
    if (p->family != NULL) {
        json_object_set_new(j, "family", json_string(p->family));
    }
}

static json_t *plugin_json(const struct hv_plugin *p)
{
    json_t *j = json_object();
    json_object_set_new(j, "id", json_string(p->id));
    json_object_set_new(j, "title", text_or_null(p->title));
    json_object_set_new(j, "kind", kind_json(p));
    json_object_set_new(j, "system", text_or_null(p->system));
    json_object_set_new(j, "reference", text_or_null(p->reference));
    json_object_set_new(j, "summary", text_or_null(p->summary));
    add_paper(p, j);
    json_object_set_new(j, "needs_model", text_or_null(p->needs_model));
    json_object_set_new(j, "effort",
                        p->effort != HV_EFFORT_UNKNOWN ? json_string(hv_effort_name(p->effort))
                                                       : json_null());
    json_object_set_new(j, "stale", json_boolean(p->stale));
    json_object_set_new(j, "serves", json_boolean(p->serves));
    json_object_set_new(j, "file_order", json_boolean(p->file_order));
    json_object_set_new(j, "as_given", json_boolean(p->as_given));
    json_t *functions = json_array(), *options = json_array();
    for (int f = 0; f < HV_PLUGIN_FUNCTION_N; f++) {
        if (p->has[f]) {
            json_array_append_new(functions,
                                  json_string(hv_plugin_function_name((enum hv_plugin_function)f)));
        }
    }
    for (size_t i = 0; i < p->n_options; i++) {
        json_array_append_new(options, option_json(&p->options[i]));
    }
    json_object_set_new(j, "functions", functions);
    json_object_set_new(j, "options", options);
    json_object_set_new(j, "file", text_or_null(p->name));
    if (p->hides != NULL) {
        json_object_set_new(j, "hides", json_string(p->hides));
    }
    if (p->error != NULL) {
        json_object_set_new(j, "error", json_string(p->error));
    }
    return j;
}

static void add_option(const struct hv_option_row *o, struct hv_str *out)
{
    char def[128], lo[HV_FMT_CAP], hi[HV_FMT_CAP];
    hv_text_addf(out, "  -o %s=%s (%s", o->key, hv_option_text(o->def, def, sizeof def),
                 hv_option_type_name(o->type));
    for (size_t i = 0; i < o->n_choices; i++) {
        hv_text_addf(out, "%s%s", i == 0 ? ": " : "|", o->choices[i]);
    }
    if (hv_known(o->min) || hv_known(o->max)) {
        hv_text_addf(out, ", %s to %s",
                     hv_known(o->min) ? hv_fmt_double(lo, sizeof lo, o->min) : "any",
                     hv_known(o->max) ? hv_fmt_double(hi, sizeof hi, o->max) : "any");
    }
    hv_text_addf(out, ")\n      %s\n", o->help != NULL ? o->help : "");
}

/** Appends "label  a; b", or nothing where the list is empty. */
static void add_list(const char *label, const char *const *texts, size_t n, struct hv_str *out)
{
    for (size_t i = 0; i < n; i++) {
        hv_text_addf(out, "%s%s%s", i == 0 ? label : "; ", i == 0 ? " " : "", texts[i]);
    }
    hv_str_adds(out, n > 0 ? "\n" : "");
}

/** The knobs that it fixes: "fixes zero.stage = 1; schedule.name = 1f1b". */
static void add_sets(const struct hv_plugin *p, struct hv_str *out)
{
    const char *key = NULL;
    json_t *value = NULL;
    char text[128];
    bool first = true;
    json_t *sets = (json_t *)(uintptr_t)p->sets;
    json_object_foreach(sets, key, value)
    {
        hv_text_addf(out, "%s%s = %s", first ? "fixes " : "; ", key,
                     hv_option_text(value, text, sizeof text));
        first = false;
    }
    hv_str_adds(out, first ? "" : "\n");
}

static void describe(const struct hv_plugin *p, struct hv_str *out)
{
    struct hv_str cite = {0};
    hv_text_addf(out, "%s: %s (%s)\n", p->id, p->title, p->kind);
    if (p->summary != NULL) {
        hv_text_addf(out, "%s\n", p->summary);
    }
    hv_plugin_cite(p, &cite);
    hv_text_addf(out, "%s\n", hv_str_cstr(&cite));
    hv_str_free(&cite);
    if (p->family != NULL) {
        hv_text_addf(out, "a row of the family %s (%s)\n", p->family, p->name);
    }
    add_sets(p, out);
    add_list("searches", p->searches, p->n_searches, out);
    for (size_t i = 0; i < p->n_verified; i++) {
        hv_str_adds(out, i == 0 ? "checked\n" : "");
        hv_text_addf(out, "  %s\n", p->verified[i]);
    }
    if (p->hides != NULL) {
        hv_text_addf(out, "%s hides %s, which has the same id\n", p->name, p->hides);
    }
    if (p->needs_model != NULL) {
        hv_text_addf(out, "needs a model of kind %s\n", p->needs_model);
    }
    if (p->effort != HV_EFFORT_UNKNOWN) {
        hv_text_addf(out, "search: %s\n", hv_effort_name(p->effort));
    }
    if (p->stale) {
        hv_str_adds(out, "its plans compute with stale weights\n");
    }
    if (p->serves) {
        hv_str_adds(out, "it plans inference\n");
    }
    if (p->file_order) {
        hv_str_adds(out, "it takes node groups in the order of the cluster file\n");
    }
    if (p->as_given) {
        hv_str_adds(out, "its plans may be beyond what the job's runtime can run\n");
    }
    hv_str_adds(out, p->n_options > 0 ? "\noptions\n" : "");
    for (size_t i = 0; i < p->n_options; i++) {
        add_option(&p->options[i], out);
    }
}

static enum hv_status show_one(const struct hv_args *args, const struct hv_plugins *all,
                               struct hv_err *err)
{
    const struct hv_plugin *p = NULL;
    enum hv_status st = hv_plugins_get(all, args->positional[0], &p, err);
    if (st != HV_OK || hv_args_has(args, "json")) {
        return st != HV_OK ? st : hv_cli_print_json(plugin_json(p), err);
    }
    struct hv_str out = {0};
    describe(p, &out);
    st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

/** True where the strategy is shown: --kind names one of its kinds, or is not given. */
static bool is_chosen(const struct hv_plugin *p, enum hv_kind kind)
{
    return kind == HV_KIND_N || hv_plugin_is_of(p, kind);
}

static enum hv_status list_json(const struct hv_plugins *all, enum hv_kind kind, struct hv_err *err)
{
    json_t *list = json_array();
    for (size_t i = 0; i < all->n; i++) {
        if (is_chosen(&all->items[i], kind)) {
            json_array_append_new(list, plugin_json(&all->items[i]));
        }
    }
    return hv_cli_print_json(list, err);
}

/** One line of the list: id, kind (nothing under a heading), year, summary. */
static void add_line(const struct hv_plugin *p, const char *kind, struct hv_str *out)
{
    char year[16] = "";
    if (p->year > 0) {
        (void)snprintf(year, sizeof year, "%d", p->year);
    }
    hv_text_addf(out, "%-14s ", p->id);
    if (kind != NULL) {
        hv_text_addf(out, "%-13s ", kind);
    }
    hv_text_addf(out, "%-4s %s", year,
                 p->error != NULL     ? p->error
                 : p->summary != NULL ? p->summary
                                      : p->title);
    if (p->hides != NULL) {
        hv_text_addf(out, " (%s hides %s)", p->name, p->hides);
    }
    hv_str_addc(out, '\n');
}

/** The strategies of a kind: under a heading where a person reads, else each with its kind, so that
 * the first word of every line is an id. There one of two kinds stands once. */
static void add_kind(const struct hv_plugins *all, enum hv_kind kind, bool headed,
                     struct hv_str *out)
{
    struct hv_str rows = {0};
    size_t n = 0, *under = hv_xcalloc(all->n + 1, sizeof *under);
    size_t n_under = hv_plugins_under(all->items, all->n, kind, under);
    bool broken = kind == HV_KIND_N;
    const char *name = broken ? "broken" : hv_kind_name(kind);
    for (size_t i = 0; i < n_under; i++) {
        const struct hv_plugin *p = &all->items[under[i]];
        if (headed || broken || p->kinds[0] == kind) {
            n++;
            add_line(p, headed ? NULL : name, &rows);
        }
    }
    if (n > 0 && headed) {
        hv_text_addf(out, "kind %s: %zu %s, %s", name, n, n == 1 ? "strategy" : "strategies",
                     broken ? "which cannot be used" : hv_kind_about(kind));
        hv_str_addc(out, '\n');
    }
    if (n > 0) {
        hv_str_add(out, rows.p, rows.n);
    }
    hv_str_free(&rows);
    free(under);
}

/** The strategies of one kind: it is the heading. */
static void add_only(const struct hv_plugins *all, enum hv_kind kind, struct hv_str *out)
{
    for (size_t i = 0; i < all->n; i++) {
        if (is_chosen(&all->items[i], kind)) {
            add_line(&all->items[i], all->items[i].kind, out);
        }
    }
    if (out->n == 0) {
        hv_text_addf(out, "no strategy is of kind %s", hv_kind_name(kind));
        hv_str_addc(out, '\n');
    }
}

static enum hv_status show_all(const struct hv_args *args, const struct hv_plugins *all,
                               struct hv_err *err)
{
    enum hv_kind kind = (enum hv_kind)hv_args_number(args, "kind", HV_KIND_N);
    if (hv_args_has(args, "json")) {
        return list_json(all, kind, err);
    }
    struct hv_str out = {0};
    if (kind != HV_KIND_N) {
        add_only(all, kind, &out);
    }
    for (int k = 0; k <= HV_KIND_N && kind == HV_KIND_N; k++) {
        add_kind(all, (enum hv_kind)k, isatty(STDOUT_FILENO) != 0, &out);
    }
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

enum hv_status hv_cli_strategies(struct hv_args *args, struct hv_err *err)
{
    struct hv_plugins all = {0};
    enum hv_status st = hv_plugins_read(&all, err);
    if (st == HV_OK) {
        st = args->n_positional > 0 ? show_one(args, &all, err) : show_all(args, &all, err);
    }
    hv_plugins_free(&all);
    return st;
}
