/** `hetviz help` and `hetviz completion`: printed from the tables. */
#include <string.h>

#include "scripting/plugin/plugin.h"
#include "scripting/plugin/reference.h"
#include "solver/sim/schedule/schedule.h"
#include "ui/cli/cli.h"
#include "ui/cli/print.h"
#include "ui/command/glossary.h"

/** `help api` lists, `help api NAME` explains; `help man plugin` is the manual page of both. */
static enum hv_status help_api(const struct hv_args *args, struct hv_str *text, struct hv_err *err)
{
    if (args->n_positional > 1) {
        return hv_api_describe(args->positional[1], text, err);
    }
    hv_api_list(text);
    return HV_OK;
}

static enum hv_status help_man(const struct hv_args *args, struct hv_str *text, struct hv_err *err)
{
    if (args->n_positional == 1) {
        hv_command_man(text);
    } else if (strcmp(args->positional[1], "plugin") == 0) {
        hv_api_man(text);
    } else {
        return hv_err_set(err, HV_EUSAGE, "help man: expected nothing or plugin, found \"%s\"",
                          args->positional[1]);
    }
    return HV_OK;
}

/** All plugins, for the schedules that they define; plugins that cannot be read are left out.
 * Owner: hv_plugins_free. */
static void read_plugins(struct hv_plugins *out)
{
    *out = (struct hv_plugins){0};
    if (hv_plugins_read(out, NULL) != HV_OK) {
        *out = (struct hv_plugins){0};
    }
}

/** `help schedules` lists, `help schedules NAME` explains. */
static enum hv_status help_schedules(const char *name, struct hv_str *text, struct hv_err *err)
{
    const struct hv_schedule_row *row;
    struct hv_plugins lua;
    enum hv_status st = HV_OK;
    read_plugins(&lua);
    if (name == NULL) {
        hv_schedule_list(text, &lua);
    } else if (!hv_schedule_help(text, name, &lua)) {
        st = hv_schedule_find(name, &row, err);
    }
    hv_plugins_free(&lua);
    return st;
}

/** `help targets` lists, `help targets NAME` explains. */
static enum hv_status help_targets(const char *name, struct hv_str *text, struct hv_err *err)
{
    if (name == NULL) {
        hv_target_list(text);
    } else if (!hv_target_help(text, name)) {
        return hv_err_set(err, HV_EUSAGE, "no target \"%s\"; `hetviz help targets` lists them",
                          name);
    }
    return HV_OK;
}

/** `help runtimes` lists, `help runtimes NAME` explains. */
static enum hv_status help_runtimes(const char *name, struct hv_str *text, struct hv_err *err)
{
    if (name == NULL) {
        hv_runtime_list(text);
    } else if (!hv_runtime_help(text, name)) {
        return hv_err_set(err, HV_EUSAGE, "no runtime \"%s\"; `hetviz help runtimes` lists them",
                          name);
    }
    return HV_OK;
}

/** `help glossary` defines all terms, `help glossary TERM` one. */
static enum hv_status help_glossary(const char *name, struct hv_str *text, struct hv_err *err)
{
    const struct hv_term *term = name != NULL ? hv_glossary_find(name) : NULL;
    if (name == NULL) {
        hv_glossary_list(text);
    } else if (term != NULL) {
        hv_glossary_describe(text, term);
    } else {
        return hv_err_set(err, HV_EUSAGE,
                          "no term \"%s\" in the glossary; `hetviz help glossary` lists them",
                          name);
    }
    return HV_OK;
}

/** A command, a schedule or a term of the glossary by its name alone. */
static enum hv_status help_named(const char *name, struct hv_str *text, struct hv_err *err)
{
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);
    const struct hv_command *c = hv_command_find(rows, n, name);
    if (c != NULL) {
        hv_command_help(text, c);
        return HV_OK;
    }
    if (help_schedules(name, text, NULL) == HV_OK) {
        return HV_OK;
    }
    if (help_glossary(name, text, NULL) == HV_OK) {
        return HV_OK;
    }
    if (hv_runtime_help(text, name)) {
        return HV_OK;
    }
    return hv_err_set(err, HV_EUSAGE,
                      "no command, schedule or term \"%s\"; `hetviz help` lists commands, "
                      "`hetviz help schedules` schedules, `hetviz help glossary` terms, "
                      "`hetviz help knobs` knobs of plans",
                      name);
}

enum hv_status hv_cli_help(struct hv_args *args, struct hv_err *err)
{
    struct hv_str text = {0};
    enum hv_status st = HV_OK;
    const char *first = args->n_positional > 0 ? args->positional[0] : NULL;
    const char *second = args->n_positional > 1 ? args->positional[1] : NULL;
    if (first == NULL) {
        hv_command_list(&text);
    } else if (strcmp(first, "man") == 0) {
        st = help_man(args, &text, err);
    } else if (strcmp(first, "api") == 0) {
        st = help_api(args, &text, err);
    } else if (strcmp(first, "schedules") == 0) {
        st = help_schedules(second, &text, err);
    } else if (strcmp(first, "runtimes") == 0) {
        st = help_runtimes(second, &text, err);
    } else if (strcmp(first, "targets") == 0) {
        st = help_targets(second, &text, err);
    } else if (strcmp(first, "glossary") == 0) {
        st = help_glossary(second, &text, err);
    } else if (strcmp(first, "knobs") == 0 && second == NULL) {
        hv_knob_list(&text);
    } else if (second != NULL) {
        st = hv_err_set(err, HV_EUSAGE,
                        "help: only api, glossary, man, runtimes, schedules and targets take a "
                        "second word, found "
                        "\"%s\"",
                        second);
    } else {
        st = help_named(first, &text, err);
    }
    st = st == HV_OK ? hv_cli_print(&text, err) : st;
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_completion(struct hv_args *args, struct hv_err *err)
{
    struct hv_str text = {0};
    const char *first = args->positional[0];
    const char *second = args->n_positional > 1 ? args->positional[1] : NULL;
    struct hv_err other = {0};
    enum hv_status st = second == NULL ? hv_command_completion(&text, first, &other) : HV_EUSAGE;
    if (st != HV_OK) {
        struct hv_plugins lua;
        read_plugins(&lua);
        st = hv_completion_words(&text, first, second, &lua, err);
        hv_plugins_free(&lua);
    }
    st = st == HV_OK ? hv_cli_print(&text, err) : st;
    hv_str_free(&text);
    return st;
}
