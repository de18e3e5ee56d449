/**
 * A folder for plugins and caches of one test program, plugins written into it, and a plan() body
 * run on a small input.
 */
#ifndef HV_TESTS_PLUGIN_FIXTURE_H
#define HV_TESTS_PLUGIN_FIXTURE_H

#include "scripting/plugin/plugin.h"
#include "scripting/worker/run.h"
#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD                                                                                       \
    "return { api = 1, id = 'mine', title = 'Mine', kind = 'planner', system = 's', "              \
    "reference = 'r', summary = 't', plan = function() return nil, 'no' end, "

/** Folder of one test program: caches and plugins go here. */
static char folder[64];

static inline const char *write_plugin(const char *name, const char *text)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/plugins/%s", folder, name);
    assert_int_equal(hv_file_write(path, text, strlen(text), NULL), HV_OK);
    return path;
}

static inline const struct hv_plugin *load(struct hv_plugins *p, const char *text)
{
    struct hv_err err = {0};
    enum hv_status s = hv_plugins_read_file(p, write_plugin("good.lua", text), &err);
    if (s != HV_OK) {
        print_error("%s\n", err.text);
    }
    assert_int_equal(s, HV_OK);
    return &p->items[0];
}

/** Runs a plugin's plan function text on a small input and gives status and error. */
static inline enum hv_status run_text(const char *body, struct hv_run_result *out,
                                      struct hv_err *err)
{
    struct hv_inputs in = {0};
    struct hv_plugins list;
    struct hv_str text = {0};

    *err = (struct hv_err){0};
    hv_str_addf(&text,
                "return { api = 1, id = 'mine', title = 'Mine', kind = 'planner', system = 's', "
                "reference = 'r', summary = 't',\n"
                "plan = function(ctx)\n%s\nend }",
                body);
    load(&list, hv_str_cstr(&text));
    assert_int_equal(hv_inputs_read(&in, "homogeneous", "llama-3-8b", NULL, err), HV_OK);
    const struct hv_run_request r = {
        .inputs = &in, .plugins = &list, .strategy = "mine", .seed = 1, .time_limit_s = 4};
    enum hv_status s = hv_run_strategy(&r, out, err);
    hv_inputs_free(&in);
    hv_plugins_free(&list);
    hv_str_free(&text);
    return s;
}

static inline void expect_run(const char *body, enum hv_status want, const char *part)
{
    struct hv_run_result result;
    struct hv_err err;
    enum hv_status s = run_text(body, &result, &err);
    if (s != want || strstr(err.text, part) == NULL) {
        print_error("status %s, '%s' is not in '%s'\n", hv_status_name(s), part, err.text);
    }
    assert_int_equal(s, want);
    assert_non_null(strstr(err.text, part));
    hv_run_result_free(&result);
}

static inline int make_folder(void **state)
{
    char path[128];
    (void)state;
    snprintf(folder, sizeof folder, "%s/hetviz-plugin-XXXXXX", P_tmpdir);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/plugins", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("XDG_DATA_HOME", folder, 1);
    setenv("HETVIZ_PLUGINS", path, 1);
    return 0;
}

static inline int remove_folder(void **state)
{
    static const char *const files[] = {"plugins/bad.lua",     "plugins/good.lua", "plugins",
                                        "hetviz/plugins.json", "hetviz",           "."};
    char path[128];
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        (void)remove(path);
    }
    (void)rmdir(folder);
    return 0;
}

#endif
