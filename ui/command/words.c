/** Words that completion offers: names of shipped files, devices, strategies and their options.
 * They are read when the shell asks, since plugins and data files change. */
#include "scripting/plugin/plugin.h"
#include "solver/base/file.h"
#include "solver/io/own/docs.h"
#include "solver/sweep/figures.h"
#include "ui/command/help.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of shipped files and their folders. */
static const struct {
    const char *what, *folders[2];
} kinds[] = {{"clusters", {"samples/clusters", NULL}},
             {"models", {"share/models", "samples/models"}},
             {"jobs", {"samples/jobs", NULL}},
             {"plans", {"samples/plans", NULL}},
             {"instances", {"samples/instances", NULL}}};

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Names of the JSON files in a folder of data, without their ending. */
static void add_files(struct hv_str *out, const char *folder)
{
    struct hv_str path = {0};
    struct dirent **list = NULL;
    int n = folder != NULL && hv_data_path(&path, folder, NULL) == HV_OK
                ? scandir(hv_str_cstr(&path), &list, NULL, by_name)
                : 0;
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name, *dot = strrchr(name, '.');
        if (dot != NULL && dot != name && strcmp(dot, ".json") == 0) {
            hv_str_addf(out, "%.*s\n", (int)(dot - name), name);
        }
        free(list[i]);
    }
    free(list);
    hv_str_free(&path);
}

static void add_devices(struct hv_str *out)
{
    struct hv_device_catalogue devices = {0};
    if (hv_device_catalogue_read(&devices, NULL) == HV_OK) {
        for (size_t i = 0; i < devices.n_kinds; i++) {
            hv_str_addf(out, "%s\n", devices.kinds[i].name);
        }
    }
    hv_device_catalogue_free(&devices);
}

/* Columns that every store of a sweep has; axes have the names that its specification gives. */
static void add_columns(struct hv_str *out)
{
    size_t n = 0;
    const char *const *names = hv_sweep_columns(&n);
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(out, "%s\n", names[i]);
    }
}

static void add_figures(struct hv_str *out)
{
    size_t n = 0;
    const struct hv_sweep_figure *figures = hv_sweep_figures(&n);
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(out, "%s\n", figures[i].key);
    }
}

static bool is_strategy(const struct hv_plugin *p)
{
    return p->error == NULL && (p->has[HV_PLUGIN_PLAN] || p->has[HV_PLUGIN_APPLY]);
}

/* True where a list such as "a,b+c" has the id. */
static bool is_in(const char *list, const char *id)
{
    size_t n = strlen(id);
    for (const char *at = list; *at != '\0';) {
        size_t len = strcspn(at, ",+");
        if (len == n && memcmp(at, id, n) == 0) {
            return true;
        }
        at += len + (at[len] != '\0');
    }
    return false;
}

static void add_option(struct hv_str *out, const struct hv_option_row *o)
{
    bool truth = o->type == HV_OPTION_BOOLEAN;
    for (size_t i = 0; i < o->n_choices; i++) {
        hv_str_addf(out, "%s=%s\n", o->key, o->choices[i]);
    }
    if (truth) {
        hv_str_addf(out, "%s=true\n%s=false\n", o->key, o->key);
    } else if (o->n_choices == 0) {
        hv_str_addf(out, "%s=\n", o->key);
    }
}

/* Options of the strategies in a list; of all where the list is empty or names none. */
static void add_options(struct hv_str *out, const char *list, const struct hv_plugins *lua)
{
    bool any = false;
    for (size_t i = 0; lua != NULL && list != NULL && i < lua->n; i++) {
        any = any || (is_strategy(&lua->items[i]) && is_in(list, lua->items[i].id));
    }
    for (size_t i = 0; lua != NULL && i < lua->n; i++) {
        const struct hv_plugin *p = &lua->items[i];
        for (size_t k = 0; is_strategy(p) && (!any || is_in(list, p->id)) && k < p->n_options;
             k++) {
            add_option(out, &p->options[k]);
        }
    }
    hv_runtime_words(out, "runtime="); /* of the job, for every strategy */
    hv_str_addf(out, "graph=true\n");
    hv_target_words(out, "target=");
}

enum hv_status hv_completion_words(struct hv_str *out, const char *what, const char *name,
                                   const struct hv_plugins *lua, struct hv_err *err)
{
    for (size_t i = 0; i < HV_COUNT(kinds); i++) {
        if (strcmp(what, kinds[i].what) == 0) {
            add_files(out, kinds[i].folders[0]);
            add_files(out, kinds[i].folders[1]);
            return HV_OK;
        }
    }
    if (strcmp(what, "schedules") == 0) {
        hv_schedule_words(out, name, lua);
    } else if (strcmp(what, "runtimes") == 0) {
        hv_runtime_words(out, "");
    } else if (strcmp(what, "targets") == 0) {
        hv_target_words(out, "");
    } else if (strcmp(what, "devices") == 0) {
        add_devices(out);
    } else if (strcmp(what, "columns") == 0) {
        add_columns(out);
        add_figures(out);
    } else if (strcmp(what, "figures") == 0) {
        add_figures(out);
    } else if (strcmp(what, "options") == 0) {
        add_options(out, name, lua);
    } else if (strcmp(what, "strategies") == 0) {
        for (size_t i = 0; lua != NULL && i < lua->n; i++) {
            if (is_strategy(&lua->items[i])) {
                hv_str_addf(out, "%s\n", lua->items[i].id);
            }
        }
    } else {
        return hv_err_set(err, HV_EUSAGE,
                          "completion: expected bash, zsh, fish, or clusters, models, jobs, plans, "
                          "instances, devices, strategies, options, runtimes, targets, columns, "
                          "figures or schedules; found '%s'",
                          what);
    }
    return HV_OK;
}
