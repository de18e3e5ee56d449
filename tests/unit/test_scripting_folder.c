/* A plugin that is a folder: its other files are modules, `require` stays inside, errors name the
 * file, hash and self-tests cover the folder; what cannot be read is told and never blocks. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scripting/plugin/find.h"
#include "tests/plugin_fixture.h"
#include "tests/unit/faults.h"
#include <sys/wait.h>

/** A plugin.lua whose plan runs `body`. */
#define PLUGIN(id, top, body)                                                                      \
    top "\nreturn { api = 1, id = '" id "', title = 'T', kind = 'planner', summary = 's',\n"       \
        "plan = function(ctx)\n" body "\nend }\n"

/** Writes plugins/NAME with its folders. */
static void put(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/plugins/%s", folder, name);
    *strrchr(path, '/') = '\0';
    assert_int_equal(hv_file_mkdirs(path, NULL), HV_OK);
    write_plugin(name, text);
}

static const char *at(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/plugins/%s", folder, name);
    return path;
}

/** Removes everything that a test has put below plugins/. */
static int clean(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s/plugins/*", folder);
    return system(command); /* NOLINT(cert-env33-c): a folder of ours */
}

/** Runs the plugin of the list; gives the error's file in err. */
static enum hv_status run_id(const struct hv_plugins *list, const char *id, struct hv_err *err)
{
    struct hv_inputs in = {0};
    struct hv_run_result out;
    *err = (struct hv_err){0};
    assert_int_equal(hv_inputs_read(&in, "homogeneous", "llama-3-8b", NULL, err), HV_OK);
    const struct hv_run_request r = {
        .inputs = &in, .plugins = list, .strategy = id, .seed = 1, .time_limit_s = 4};
    enum hv_status s = hv_run_strategy(&r, &out, err);
    hv_run_result_free(&out);
    hv_inputs_free(&in);
    return s;
}

/** Runs plugins/one/plugin.lua, whose plan says nil and a reason, and expects that reason. */
static void expect_reason(const char *reason)
{
    struct hv_plugins list;
    struct hv_err err = {0};
    assert_int_equal(hv_plugins_read(&list, &err), HV_OK);
    enum hv_status s = run_id(&list, "one", &err);
    if (s != HV_ENO || strstr(err.text, reason) == NULL) {
        fail_msg("'%s' is not in '%s'", reason, err.text);
    }
    hv_plugins_free(&list);
}

static void test_a_folder_is_one_plugin(void **state)
{
    struct hv_plugins list;
    (void)state;
    put("one/plugin.lua", PLUGIN("one", "local m = require 'm'\nlocal d = require 'data.d'\n",
                                 "return nil, m.word .. d.word"));
    put("one/m.lua", "return { word = 'inside' }");
    put("one/data/d.lua", "return { word = '-below' }");
    put("kind/two.lua", PLUGIN("two", "", "return nil, 'two'"));
    put("three.lua", PLUGIN("three", "", "return nil, 'three'"));
    assert_int_equal(hv_plugins_read(&list, NULL), HV_OK);
    assert_non_null(hv_plugins_find(&list, "two"));
    assert_non_null(hv_plugins_find(&list, "three"));
    const struct hv_plugin *one = hv_plugins_find(&list, "one");
    assert_non_null(one);
    assert_null(one->error);
    assert_true(one->in_folder);
    assert_true(hv_text_ends_with(one->name, "one/plugin.lua"));
    assert_null(hv_plugins_find(&list, "m"));
    assert_null(hv_plugins_find(&list, "d"));
    hv_plugins_free(&list);
    expect_reason("inside-below");
    /* by its folder and by its file */
    assert_int_equal(hv_plugins_read_file(&list, at("one"), NULL), HV_OK);
    assert_string_equal(list.items[0].id, "one");
    hv_plugins_free(&list);
    assert_int_equal(hv_plugins_read_file(&list, at("one/plugin.lua"), NULL), HV_OK);
    assert_true(list.items[0].in_folder);
    hv_plugins_free(&list);
}

static void test_own_modules_come_first_and_libraries_see_libraries(void **state)
{
    (void)state;
    /* learn.policy requires search: a plugin's own search must not reach it */
    put("one/plugin.lua", PLUGIN("one",
                                 "local own, policy = require 'search', require 'learn.policy'\n"
                                 "assert(policy.reinforce)\n",
                                 "return nil, own.word .. tostring(require 'search' == own)"));
    put("one/search.lua", "return { word = 'own' }");
    expect_reason("owntrue");
}

static void test_require_stays_inside(void **state)
{
    static const struct {
        const char *name, *part;
    } rows[] = {
        {"../other/m", "neither in the plugin's folder nor"},
        {"..m", "neither in the plugin's folder nor"},
        {"data..d", "neither in the plugin's folder nor"},
        {"data.", "neither in the plugin's folder nor"},
        {"/etc/passwd", "neither in the plugin's folder nor"},
        {"", "neither in the plugin's folder nor"},
        {"away", "one/away.lua is a link out of the plugin's folder"},
        {"up.m", "one/up/m.lua is a link out of the plugin's folder"},
        {"dir", "one/dir.lua is not a regular file"},
        {"pipe", "one/pipe.lua is not a regular file"},
        {"loose", "one/loose.lua cannot be read"},
        {"loop", "one/loop.lua requires itself"},
    };
    char target[160];
    (void)state;
    put("other/m.lua", "return {}");
    put("one/loop.lua", "return require 'back'");
    put("one/back.lua", "return require 'loop'");
    assert_int_equal(mkdir(at("one/dir.lua"), 0700), 0);
    assert_int_equal(mkfifo(at("one/pipe.lua"), 0600), 0);
    snprintf(target, sizeof target, "%s/plugins/other/m.lua", folder);
    assert_int_equal(symlink(target, at("one/away.lua")), 0);
    assert_int_equal(symlink("../other", at("one/up")), 0);
    assert_int_equal(symlink("nowhere.lua", at("one/loose.lua")), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hv_plugins list;
        struct hv_err err = {0};
        struct hv_str text = {0};
        hv_str_addf(&text, PLUGIN("one", "", "return nil, require '%s'"), rows[i].name);
        put("one/plugin.lua", hv_str_cstr(&text));
        hv_str_free(&text);
        assert_int_equal(hv_plugins_read_file(&list, at("one"), &err), HV_OK);
        enum hv_status s = run_id(&list, "one", &err);
        if (s != HV_EPLUGIN || strstr(err.text, rows[i].part) == NULL) {
            fail_msg("%s: '%s' is not in '%s'", rows[i].name, rows[i].part, err.text);
        }
        hv_plugins_free(&list);
    }
}

static void test_errors_name_the_file(void **state)
{
    static const struct {
        const char *module, *file;
        unsigned line;
    } rows[] = {
        {"return { f = function()\nlocal x = nil\nreturn x.y end }", "one/m.lua", 3},
        {"return {\n f = }", "one/m.lua", 2},
        {"return { f = function()\nreturn require('search').seedless.x end }", "one/m.lua", 2}};
    (void)state;
    put("one/plugin.lua", PLUGIN("one", "", "return require('m').f()"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hv_plugins list;
        struct hv_err err = {0};
        put("one/m.lua", rows[i].module);
        assert_int_equal(hv_plugins_read_file(&list, at("one"), &err), HV_OK);
        assert_int_equal(run_id(&list, "one", &err), HV_EPLUGIN);
        if (!hv_text_ends_with(err.file, rows[i].file) || err.line != rows[i].line) {
            fail_msg("%s:%u instead of %s:%u", err.file, err.line, rows[i].file, rows[i].line);
        }
        hv_plugins_free(&list);
    }
    /* a library's errors name the library */
    struct hv_plugins list;
    struct hv_err err = {0};
    put("one/plugin.lua", PLUGIN("one", "", "return require('matrix').eigen(3)"));
    assert_int_equal(hv_plugins_read_file(&list, at("one"), &err), HV_OK);
    assert_int_equal(run_id(&list, "one", &err), HV_EPLUGIN);
    assert_string_equal(err.file, "share/lua/matrix.lua");
    hv_plugins_free(&list);
}

static void test_hash_covers_the_folder(void **state)
{
    struct hv_plugins list;
    char old[160];
    (void)state;
    put("one/plugin.lua", PLUGIN("one", "local d = require 'data.d'", "return nil, d.word"));
    put("one/data/d.lua", "return { word = 'a' }");
    assert_int_equal(hv_plugins_read(&list, NULL), HV_OK);
    hv_plugins_free(&list);
    assert_int_equal(hv_plugins_read(&list, NULL), HV_OK);
    assert_int_equal(list.n_run, 0);
    const struct hv_plugin *one = hv_plugins_find(&list, "one");
    assert_true(hv_plugin_is_current(one));
    put("one/data/d.lua", "return { word = 'b' }");
    assert_false(hv_plugin_is_current(one));
    hv_plugins_free(&list);
    assert_int_equal(hv_plugins_read(&list, NULL), HV_OK);
    assert_int_equal(list.n_run, 1);
    hv_plugins_free(&list);
    /* a module more, the same bytes under another name */
    (void)snprintf(old, sizeof old, "%s", at("one/data/d.lua"));
    assert_int_equal(rename(old, at("one/data/e.lua")), 0);
    assert_int_equal(hv_plugins_read(&list, NULL), HV_OK);
    assert_int_equal(list.n_run, 1);
    assert_non_null(hv_plugins_find(&list, "one")->error);
    hv_plugins_free(&list);
}

static void test_selftest_file(void **state)
{
    struct hv_plugins list;
    struct hv_selftest_counts counts = {0};
    struct hv_str out = {0};
    struct hv_err err = {0};
    (void)state;
    put("one/plugin.lua", PLUGIN("one", "", "return nil, 'no'"));
    put("one/m.lua", "return { two = 2 }");
    put("one/selftest.lua", "local m = require 'm'\nreturn function(t)\n"
                            "t.equal('two', m.two, 2)\nt.ok('plan', require('plugin').plan) end");
    assert_int_equal(hv_plugins_read_file(&list, at("one"), NULL), HV_OK);
    assert_true(list.items[0].has[HV_PLUGIN_SELFTEST]);
    hv_selftest(&list.items[0], false, &counts, &out);
    assert_int_equal(counts.passed, 2);
    assert_int_equal(counts.failed, 0);
    /* what is wrong in it costs a run nothing */
    put("one/selftest.lua", "\nerror('only here')");
    assert_int_equal(run_id(&list, "one", &err), HV_ENO);
    hv_str_clear(&out);
    hv_selftest(&list.items[0], false, &counts, &out);
    assert_int_equal(counts.failed, 1);
    assert_non_null(strstr(hv_str_cstr(&out), "one/selftest.lua:2: only here"));
    put("one/selftest.lua", "return 3");
    hv_str_clear(&out);
    hv_selftest(&list.items[0], false, &counts, &out);
    assert_non_null(strstr(hv_str_cstr(&out), "returns a function(t), this one returns a number"));
    hv_plugins_free(&list);
    hv_str_free(&out);
}

/** The error of that plugin has the part. */
static void expect_told(const struct hv_plugins *list, const char *id, const char *part)
{
    const struct hv_plugin *p = hv_plugins_find(list, id);
    if (p == NULL || p->error == NULL || strstr(p->error, part) == NULL) {
        fail_msg("%s: '%s' is not in '%s'", id, part, p == NULL ? "(no row)" : p->error);
    }
}

static void test_what_cannot_be_read_is_told(void **state)
{
    struct hv_plugins list;
    struct hv_err err = {0};
    (void)state;
    put("odd/plugin.lua/x", "");
    put("pipe/x", "");
    assert_int_equal(mkfifo(at("pipe/plugin.lua"), 0600), 0);
    put("device/x", "");
    assert_int_equal(symlink("/dev/zero", at("device/plugin.lua")), 0);
    put("loose/x", "");
    assert_int_equal(symlink("gone", at("loose/plugin.lua")), 0);
    assert_int_equal(mkfifo(at("lonely.lua"), 0600), 0);
    assert_int_equal(symlink("/dev/zero", at("endless.lua")), 0);
    put("pieces/part.lua", "return { word = 'a module' }");
    put("twice.lua", PLUGIN("twice", "", "return nil, 'file'"));
    put("twice/plugin.lua", PLUGIN("twice", "", "return nil, 'folder'"));
    put("shut/plugin.lua", PLUGIN("shut", "", "return nil, 'no'"));
    assert_int_equal(chmod(at("shut/plugin.lua"), 0), 0);
    assert_int_equal(hv_plugins_read(&list, NULL), HV_OK);
    expect_told(&list, "odd", "plugin.lua:1: this is a folder, expected a file");
    expect_told(&list, "pipe", "plugin.lua:1: this is a pipe, expected a file");
    expect_told(&list, "device", "plugin.lua:1: this is a device");
    expect_told(&list, "loose", "plugin.lua:1: No such file");
    expect_told(&list, "lonely", "lonely.lua:1: this is a pipe, expected a file");
    expect_told(&list, "endless", "endless.lua:1: this is a device, expected a file");
    expect_told(&list, "part", "its folder has no plugin.lua, so each file is a plugin");
    if (geteuid() != 0) {
        expect_told(&list, "shut", "Permission denied");
    }
    const struct hv_plugin *twice = hv_plugins_find(&list, "twice");
    assert_true(hv_text_ends_with(twice->name, "plugins/twice.lua"));
    assert_true(hv_text_ends_with(twice->hides, "twice/plugin.lua"));
    hv_plugins_free(&list);
    /* named on the command line, they are not opened either */
    assert_int_equal(hv_plugins_read_file(&list, at("lonely.lua"), &err), HV_EIO);
    assert_string_equal(err.text, "this is a pipe, expected a file");
    hv_plugins_free(&list);
    assert_int_equal(hv_plugins_read_file(&list, at("device"), &err), HV_EIO);
    assert_string_equal(err.text, "this is a device, expected a file");
    hv_plugins_free(&list);
    assert_int_not_equal(hv_plugins_read_file(&list, at("pieces"), &err), HV_OK);
    assert_non_null(strstr(err.file, "pieces/plugin.lua"));
    hv_plugins_free(&list);
}

/** All plugins of a large folder are found; where there are more than are read, a row says so. */
static void test_many(void **state)
{
    struct hv__found_list found = {0};
    char name[64];
    (void)state;
    put("crowd/0.lua", "");
    for (int i = 1; i < 5000; i++) {
        (void)snprintf(name, sizeof name, "crowd/%d.lua", i);
        assert_int_equal(symlink("0.lua", at(name)), 0);
    }
    assert_int_equal(symlink(".", at("crowd/circle")), 0);
    hv__plugins_find(&found, at("crowd"), "crowd");
    assert_int_equal(found.files.n, 5000);
    hv__found_free(&found);
    /* links to folders may lead to far more files than there are */
    put("maze/x.txt", "");
    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, "maze/%d", i);
        assert_int_equal(symlink("../crowd", at(name)), 0);
    }
    found = (struct hv__found_list){0};
    hv__plugins_find(&found, at("maze"), "maze");
    assert_true(found.full);
    assert_non_null(strstr(found.files.items[found.files.n - 1].error, "maze:1: there are more"));
    hv__found_free(&found);
}

static void test_skeleton_folder(void **state)
{
    struct hv_plugins list;
    struct hv_selftest_counts counts = {0};
    struct hv_str out = {0};
    struct hv_err err = {0};
    (void)state;
    assert_int_equal(hv_plugin_skeleton_folder(at("fresh"), "fresh", NULL), HV_OK);
    assert_int_equal(hv_plugin_skeleton_folder(at("fresh"), "fresh", NULL), HV_EUSAGE);
    assert_int_equal(hv_plugin_skeleton_folder(at("other"), "Not good", NULL), HV_EUSAGE);
    assert_int_equal(hv_plugins_read(&list, NULL), HV_OK);
    const struct hv_plugin *p = hv_plugins_find(&list, "fresh");
    assert_non_null(p);
    assert_null(p->error);
    assert_int_equal(run_id(&list, "fresh", &err), HV_OK);
    hv_selftest(p, false, &counts, &out);
    assert_int_equal(counts.passed, 2);
    assert_int_equal(counts.failed, 0);
    hv_plugins_free(&list);
    hv_str_free(&out);
}

/** A new folder is whole or not there, whatever call fails and wherever the program is killed. */
static void test_skeleton_folder_is_whole(void **state)
{
    char command[320];
    (void)state;
    snprintf(command, sizeof command,
             "cd %s && test $(ls -A new | wc -l) -eq 3 && test $(ls -A | wc -l) -eq 1 && rm -r new",
             at(""));
    for (int call = 1;; call++) {
        int status = 0;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            faults = (struct faults){.at = call};
            _exit(hv_plugin_skeleton_folder(at("new"), "new", NULL) == HV_OK ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        enum hv_status again = hv_plugin_skeleton_folder(at("new"), "new", NULL);
        assert_true(again == HV_OK || again == HV_EUSAGE);
        assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of ours */

        faults = (struct faults){.at = call, .error = ENOSPC};
        enum hv_status failed = hv_plugin_skeleton_folder(at("new"), "new", NULL);
        faults = (struct faults){0};
        assert_int_equal(access(at("new"), F_OK) == 0, failed == HV_OK);
        again = hv_plugin_skeleton_folder(at("new"), "new", NULL);
        assert_int_equal(again, failed == HV_OK ? HV_EUSAGE : HV_OK);
        assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of ours */
        if (!WIFSIGNALED(status)) {
            assert_true(call > 15);
            break;
        }
    }
}

/** Strategies called by another one: each failure gives its level back, and a coroutine has its own
 * stack. */
static void test_guests(void **state)
{
    (void)state;
    put("fails/plugin.lua", PLUGIN("fails", "", "error('on purpose')"));
    put("answers/plugin.lua", PLUGIN("answers", "", "return nil, 'an answer'"));
    put("one/plugin.lua", PLUGIN("one", "",
                                 "for i = 1, 9 do\n"
                                 "  local ok, why = pcall(hv.strategy, 'fails')\n"
                                 "  assert(not ok and why:find('on purpose'), why)\n"
                                 "end\n"
                                 "local _, reason = hv.strategy('answers')\n"
                                 "return nil, reason"));
    expect_reason("an answer");
    put("one/plugin.lua", PLUGIN("one", "",
                                 "local function guest(id) return select(2, hv.strategy(id)) end\n"
                                 "local resume = coroutine.wrap(function(id)\n"
                                 "  while true do id = coroutine.yield(guest(id)) end\n"
                                 "end)\n"
                                 "local first, second = resume('answers'), resume('answers')\n"
                                 "local ok, why = pcall(coroutine.wrap(guest), 'fails')\n"
                                 "assert(not ok and why:find('on purpose'), why)\n"
                                 "return nil, first .. ' and ' .. second"));
    expect_reason("an answer and an answer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_folder_is_one_plugin, clean),
        cmocka_unit_test_teardown(test_own_modules_come_first_and_libraries_see_libraries, clean),
        cmocka_unit_test_teardown(test_require_stays_inside, clean),
        cmocka_unit_test_teardown(test_errors_name_the_file, clean),
        cmocka_unit_test_teardown(test_hash_covers_the_folder, clean),
        cmocka_unit_test_teardown(test_selftest_file, clean),
        cmocka_unit_test_teardown(test_what_cannot_be_read_is_told, clean),
        cmocka_unit_test_teardown(test_many, clean),
        cmocka_unit_test_teardown(test_skeleton_folder, clean),
        cmocka_unit_test_teardown(test_skeleton_folder_is_whole, clean),
        cmocka_unit_test_teardown(test_guests, clean),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
