/** `hetviz strategies` and `hetviz new-plugin`: lists plugins, and writes the start of a new one.
 */
#include <string.h>

#include "scripting/plugin/plugin.h"
#include "solver/base/file.h"
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

static json_t *plugin_json(const struct hv_plugin *p)
{
    json_t *j = json_object();
    json_object_set_new(j, "id", json_string(p->id));
    json_object_set_new(j, "title", text_or_null(p->title));
    json_object_set_new(j, "kind", text_or_null(p->kind));
    json_object_set_new(j, "system", text_or_null(p->system));
    json_object_set_new(j, "reference", text_or_null(p->reference));
    json_object_set_new(j, "summary", text_or_null(p->summary));
    json_object_set_new(j, "needs_model", text_or_null(p->needs_model));
    json_object_set_new(j, "effort",
                        p->effort != HV_EFFORT_UNKNOWN ? json_string(hv_effort_name(p->effort))
                                                       : json_null());
    json_object_set_new(j, "stale", json_boolean(p->stale));
    json_object_set_new(j, "serves", json_boolean(p->serves));
    json_object_set_new(j, "file_order", json_boolean(p->file_order));
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

static void describe(const struct hv_plugin *p, struct hv_str *out)
{
    hv_text_addf(out, "%s: %s (%s)\n", p->id, p->title, p->kind);
    const char *texts[] = {p->summary, p->system, p->reference};
    for (size_t i = 0; i < HV_COUNT(texts); i++) {
        if (texts[i] != NULL) {
            hv_text_addf(out, "%s\n", texts[i]);
        }
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

static enum hv_status show_all(const struct hv_args *args, const struct hv_plugins *all,
                               struct hv_err *err)
{
    if (hv_args_has(args, "json")) {
        json_t *list = json_array();
        for (size_t i = 0; i < all->n; i++) {
            json_array_append_new(list, plugin_json(&all->items[i]));
        }
        return hv_cli_print_json(list, err);
    }
    struct hv_str out = {0};
    for (size_t i = 0; i < all->n; i++) {
        const struct hv_plugin *p = &all->items[i];
        hv_text_addf(&out, "%-14s %-12s %s", p->id, p->kind != NULL ? p->kind : "broken",
                     p->error != NULL     ? p->error
                     : p->summary != NULL ? p->summary
                                          : p->title);
        if (p->hides != NULL) {
            hv_text_addf(&out, " (%s hides %s)", p->name, p->hides);
        }
        hv_str_addc(&out, '\n');
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

/** Writes a plugin of one file. */
static enum hv_status new_file(const char *id, const char *out, struct hv_err *err)
{
    struct hv_str text = {0}, old = {0};
    enum hv_status st = hv_plugin_skeleton(&text, id, err);
    if (st == HV_OK && strcmp(out, "-") != 0 && hv_file_read(out, &old, NULL) == HV_OK) {
        st = hv_err_set(err, HV_EUSAGE, "%s exists already; choose another name with --out", out);
    }
    if (st == HV_OK) {
        st = hv_file_write(out, hv_str_cstr(&text), text.n, err);
    }
    hv_str_free(&old);
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_new_plugin(struct hv_args *args, struct hv_err *err)
{
    const char *name = args->positional[0];
    const char *out = hv_args_text(args, "out", name);
    struct hv_str id = {0};
    bool named_file = hv_text_ends_with(name, ".lua");
    hv_str_add(&id, name, strlen(name) - (named_file ? strlen(".lua") : 0));
    bool one_file = named_file || strcmp(out, "-") == 0 || hv_text_ends_with(out, ".lua");
    enum hv_status st = one_file ? new_file(hv_str_cstr(&id), out, err)
                                 : hv_plugin_skeleton_folder(out, hv_str_cstr(&id), err);
    hv_str_free(&id);
    return st;
}
