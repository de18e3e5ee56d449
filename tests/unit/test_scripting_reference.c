/* The reference of the plugin API: it has every function that there is, each with shapes, units,
 * errors and an example, and the examples run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "scripting/host/host_int.h"
#include "scripting/plugin/plugin.h"
#include "scripting/plugin/plugin_host.h"
#include "scripting/plugin/reference.h"
#include "scripting/worker/run.h"
#include "solver/base/file.h"
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

/** Is the name a line of the text? */
static bool has_line(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        if ((at == text || at[-1] == '\n') && at[n] == '\n') {
            return true;
        }
    }
    return false;
}

/** Appends the registry's list of names to the string in the light userdata. */
static int list_names(lua_State *L)
{
    struct hv_str *out = lua_touserdata(L, 1);

    lua_getfield(L, LUA_REGISTRYINDEX, HV__API_NAMES);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TSTRING; i++) {
        hv_str_addf(out, "%s\n", lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    return 0;
}

/** Appends the names of all functions that the sandbox really has, one per line. */
static void add_registered(struct hv_str *out)
{
    const struct hv_host_limits limits = {0};
    struct hv_host *h = NULL;

    assert_int_equal(hv_plugin_host_new(&h, &limits, NULL), HV_OK);
    assert_int_equal(hv__guard(h, list_names, out, NULL), HV_OK);
    hv_host_free(h);
}

static void test_every_function_is_described(void **state)
{
    struct hv_str names = {0};
    size_t n = 0, n_core = 0, n_registered = 0;
    const struct hv_api_doc *docs = hv_api_docs(&n);
    (void)state;

    add_registered(&names);
    for (const char *s = hv_str_cstr(&names); *s != '\0'; s++) {
        n_registered += *s == '\n';
    }
    for (size_t i = 0; i < n; i++) {
        if (strncmp(docs[i].source, "scripting/", strlen("scripting/")) != 0) {
            continue;
        }
        n_core++;
        if (!has_line(hv_str_cstr(&names), docs[i].name)) {
            fail_msg("%s: %s is described but not there", docs[i].source, docs[i].name);
        }
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(docs[i].name, docs[j].name);
        }
    }
    for (char *s = names.p, *end; *s != '\0'; s = end + 1) {
        bool found = false;
        end = strchr(s, '\n');
        *end = '\0';
        for (size_t i = 0; i < n && !found; i++) {
            found = strcmp(docs[i].name, s) == 0;
        }
        if (!found) {
            fail_msg("%s has no comment with @function", s);
        }
    }
    assert_int_equal(n_core, n_registered);
    hv_str_free(&names);
}

/** Does every line of a text that speaks of tables or handles say what is in them? */
static bool has_shapes(const char *text)
{
    for (const char *line = text; *line != '\0';) {
        size_t n = strcspn(line, "\n");
        struct hv_str one = {0};
        hv_str_add(&one, line, n);
        const char *s = hv_str_cstr(&one);
        bool container = strstr(s, "table") != NULL || strncmp(s, "handle:", 7) == 0;
        bool ok = !container || strchr(s, '{') != NULL || strstr(s, "list") != NULL ||
                  strstr(s, "keys") != NULL || strstr(s, "as hv.") != NULL ||
                  strstr(s, ": with ") != NULL;
        hv_str_free(&one);
        if (!ok) {
            return false;
        }
        line += n + (line[n] == '\n');
    }
    return true;
}

static void test_shapes_units_errors(void **state)
{
    size_t n = 0;
    const struct hv_api_doc *docs = hv_api_docs(&n);
    (void)state;

    for (size_t i = 0; i < n; i++) {
        const struct hv_api_doc *d = &docs[i];
        const struct {
            const char *tag, *text;
        } parts[] = {{"text", d->text},
                     {"@treturn", d->returns},
                     {"@units", d->units},
                     {"@raise", d->raises},
                     {"@usage", d->usage}};
        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
            if (parts[k].text[0] == '\0') {
                fail_msg("%s: %s has no %s", d->source, d->name, parts[k].tag);
            }
        }
        if (!has_shapes(d->params)) {
            fail_msg("%s: %s does not say what is in its arguments", d->source, d->name);
        }
        if (!has_shapes(d->returns)) {
            fail_msg("%s: %s does not say what is in its result", d->source, d->name);
        }
    }
}

/** Runs a plan() body on a sample; the error text goes to err. */
static enum hv_status run_body(const struct hv_plugins *shipped, const struct hv_inputs *in,
                               const char *body, struct hv_err *err)
{
    struct hv_str text = {0}, path = {0};
    struct hv_plugins one, all = *shipped;
    struct hv_run_result out;

    hv_str_addf(&text,
                "return { api = 1, id = 'example', title = 'e', kind = 'test', summary = 's',\n"
                "plan = function(ctx)\n%s\nreturn nil, 'it ran' end }\n",
                body);
    hv_str_addf(&path, "%s/example.lua", folder);
    assert_int_equal(hv_file_write(hv_str_cstr(&path), hv_str_cstr(&text), text.n, NULL), HV_OK);
    enum hv_status s = hv_plugins_read_file(&one, hv_str_cstr(&path), err);
    if (s == HV_OK) {
        all.items = calloc(shipped->n + 1, sizeof *all.items);
        memcpy(all.items, shipped->items, shipped->n * sizeof *all.items);
        all.items[shipped->n] = one.items[0];
        all.n = shipped->n + 1;
        const struct hv_run_request r = {
            .inputs = in, .plugins = &all, .strategy = "example", .seed = 1};
        s = hv_run_strategy(&r, &out, err);
        hv_run_result_free(&out);
        free(all.items);
    }
    hv_plugins_free(&one);
    hv_str_free(&text);
    hv_str_free(&path);
    return s;
}

static void test_examples_run(void **state)
{
    struct hv_plugins shipped;
    struct hv_inputs in = {0};
    struct hv_err err = {0};
    size_t n = 0;
    const struct hv_api_doc *docs = hv_api_docs(&n);
    (void)state;

    assert_int_equal(hv_plugins_read(&shipped, &err), HV_OK);
    assert_int_equal(hv_inputs_read(&in, "two-generations", "llama-3-8b", NULL, &err), HV_OK);
    for (size_t i = 0; i < n; i++) {
        err = (struct hv_err){0};
        enum hv_status s = run_body(&shipped, &in, docs[i].usage, &err);
        /* HV_OK: what it called had shown a plan on its way */
        if (s != HV_OK && (s != HV_ENO || strstr(err.text, "it ran") == NULL)) {
            fail_msg("%s: the example of %s: %s:%u: %s", docs[i].source, docs[i].name, err.file,
                     err.line, err.text);
        }
    }
    hv_inputs_free(&in);
    hv_plugins_free(&shipped);
}

static void test_texts(void **state)
{
    struct hv_str out = {0};
    struct hv_err err = {0};
    (void)state;

    hv_api_list(&out);
    assert_non_null(strstr(hv_str_cstr(&out), "hv.cost.stage "));
    hv_str_clear(&out);
    assert_int_equal(hv_api_describe("opt.partition", &out, &err), HV_OK);
    assert_non_null(strstr(hv_str_cstr(&out), "hv.opt.partition\n"));
    assert_non_null(strstr(hv_str_cstr(&out), "  units\n"));
    hv_str_clear(&out);
    assert_int_equal(hv_api_describe("hv.cost", &out, &err), HV_OK);
    assert_non_null(strstr(hv_str_cstr(&out), "\nhv.cost.memory\n"));
    assert_int_equal(hv_api_describe("hv.opt.partitoin", &out, &err), HV_EUSAGE);
    assert_non_null(strstr(err.text, "hv.opt.partition"));
    hv_str_clear(&out);
    hv_api_man(&out);
    assert_non_null(strstr(hv_str_cstr(&out), ".SS hv.plan.new\n"));
    hv_str_free(&out);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/hetviz-reference-XXXXXX", P_tmpdir);
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("XDG_DATA_HOME", folder, 1);
    unsetenv("HETVIZ_PLUGINS");
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const files[] = {"example.lua", "hetviz/plugins.json", "hetviz", "."};
    char path[128];
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        (void)remove(path);
    }
    (void)rmdir(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_function_is_described),
        cmocka_unit_test(test_shapes_units_errors),
        cmocka_unit_test(test_examples_run),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
