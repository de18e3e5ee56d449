/*
 * Every function of the plugin API with hostile arguments: wrong types, odd numbers, rows of
 * unequal width, cycles, tables whose answers change, handles of another kind, functions that fail,
 * call again or spoil what is being read. Each answer and each error is allowed; a crash, a finding
 * of a sanitizer or a leak is not.
 *
 * Usage: test_scripting_hostile [CPU-SECONDS [SEED]]; without arguments a short slice of fixed
 * seed.
 */
#define _DEFAULT_SOURCE /* mkdtemp, P_tmpdir */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scripting/plugin/reference.h"
#include "tests/plugin_fixture.h"
#include <sys/resource.h>

#define ROUNDS_SLICE 60
#define ROUNDS_LONG  200
/* Most functions whose examples are run together. */
#define TOGETHER 4
/* A run that computes for longer is ended; that is no failure. */
#define LIMIT_SLICE_S (HV_ASAN ? 2 : 0.3)
#define LIMIT_LONG_S  2

/** What is the same for all runs. */
static struct {
    struct hv_plugins plugins; /**< the shipped ones, and room for one more */
    struct hv_inputs inputs;
    struct hv_str driver; /**< tests/unit/hostile_api.lua */
    double cpu_s;         /**< 0: the short slice */
    uint64_t seed;
    size_t n_runs, n_ended;
} self;

/** The plugin that attacks the functions of these rows. */
static void add_plugin(struct hv_str *out, const struct hv_api_doc *const *rows, size_t n,
                       uint64_t seed, int rounds)
{
    hv_str_adds(out, hv_str_cstr(&self.driver));
    hv_str_adds(out,
                "return { api = 1, id = 'hostile', title = 'h', kind = 'test', summary = 's',\n"
                "plan = function(ctx)\nlocal examples = {\n");
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(out, "function(ctx)\n%s\nend,\n", rows[i]->usage);
    }
    hv_str_addf(out, "}\nreturn hostile(ctx, examples, %llu, %d) end }\n", (unsigned long long)seed,
                rounds);
}

/** Runs it; `reason` receives the names of the functions that the examples called. */
static enum hv_status attack(const struct hv_api_doc *const *rows, size_t n, uint64_t seed,
                             int rounds, struct hv_str *reason, struct hv_err *err)
{
    struct hv_str text = {0};
    struct hv_plugins one, all = self.plugins;
    struct hv_run_result result;

    add_plugin(&text, rows, n, seed, rounds);
    assert_int_equal(hv_plugins_read_file(&one, write_plugin("good.lua", hv_str_cstr(&text)), err),
                     HV_OK);
    all.items[all.n++] = one.items[0];
    const struct hv_run_request r = {.inputs = &self.inputs,
                                     .plugins = &all,
                                     .strategy = "hostile",
                                     .seed = seed,
                                     .time_limit_s = self.cpu_s > 0 ? LIMIT_LONG_S : LIMIT_SLICE_S};
    enum hv_status s = hv_run_strategy(&r, &result, err);
    hv_str_add(reason, hv_str_cstr(&result.reason), result.reason.n);
    self.n_runs++;
    self.n_ended += s == HV_ESTOPPED;
    hv_run_result_free(&result);
    hv_plugins_free(&one);
    hv_str_free(&text);
    return s;
}

/** Fails where the child of the run has crashed. */
static void expect_no_crash(const struct hv_api_doc *const *rows, size_t n, uint64_t seed,
                            const struct hv_err *err)
{
    if (strstr(err->text, "has no result") == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        print_error("%s\n", rows[i]->name);
    }
    fail_msg("seed %llu, these examples: %s", (unsigned long long)seed, err->text);
}

/** Each function by itself: its example reaches it, and nothing crashes. */
static void test_each_function(void **state)
{
    size_t n = 0;
    const struct hv_api_doc *docs = hv_api_docs(&n);
    (void)state;
    for (size_t i = 0; i < n && self.cpu_s <= 0; i++) {
        const struct hv_api_doc *row = &docs[i];
        struct hv_err err = {0};
        struct hv_str reason = {0};
        enum hv_status s = attack(&row, 1, i + 1, ROUNDS_SLICE, &reason, &err);
        expect_no_crash(&row, 1, i + 1, &err);
        if (s == HV_EPLUGIN && err.line == 0) {
            fail_msg("%s: %s", row->name, err.text);
        }
        if (s == HV_ENO && strstr(hv_str_cstr(&reason), row->name) == NULL) {
            fail_msg("the example of %s does not call it: %s", row->name, hv_str_cstr(&reason));
        }
        hv_str_free(&reason);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/** CPU seconds of this process and of those it has waited for. */
static double cpu_s(void)
{
    struct rusage u[2];
    double sum = 0;
    assert_int_equal(getrusage(RUSAGE_SELF, &u[0]), 0);
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &u[1]), 0);
    for (size_t i = 0; i < 2; i++) {
        sum += (double)u[i].ru_utime.tv_sec + 1e-6 * (double)u[i].ru_utime.tv_usec;
        sum += (double)u[i].ru_stime.tv_sec + 1e-6 * (double)u[i].ru_stime.tv_usec;
    }
    return sum;
}

/** Functions together, whose handles then meet: only in a campaign. */
static void test_together(void **state)
{
    size_t n = 0;
    const struct hv_api_doc *docs = hv_api_docs(&n);
    uint64_t random = self.seed;
    (void)state;
    while (cpu_s() < self.cpu_s) {
        const struct hv_api_doc *rows[TOGETHER];
        size_t n_rows = 1 + (size_t)(next_random(&random) % TOGETHER);
        struct hv_err err = {0};
        struct hv_str reason = {0};
        for (size_t i = 0; i < n_rows; i++) {
            rows[i] = &docs[next_random(&random) % n];
        }
        uint64_t seed = next_random(&random);
        (void)attack(rows, n_rows, seed, ROUNDS_LONG, &reason, &err);
        expect_no_crash(rows, n_rows, seed, &err);
        hv_str_free(&reason);
    }
    print_message("%zu runs passed, %zu of them ended by their limit\n", self.n_runs, self.n_ended);
}

static int open_world(void **state)
{
    struct hv_str path = {0};
    struct hv_err err = {0};

    assert_int_equal(make_folder(state), 0);
    unsetenv("HETVIZ_PLUGINS");
    assert_int_equal(hv_plugins_read(&self.plugins, &err), HV_OK);
    struct hv_plugin *items = malloc((self.plugins.n + 1) * sizeof *items);
    assert_non_null(items);
    memcpy(items, self.plugins.items, self.plugins.n * sizeof *items);
    self.plugins.items = items;
    assert_int_equal(hv_inputs_read(&self.inputs, "two-generations", "llama-3-8b", NULL, &err),
                     HV_OK);
    assert_int_equal(hv_data_path(&path, "tests/unit/hostile_api.lua", &err), HV_OK);
    assert_int_equal(hv_file_read(hv_str_cstr(&path), &self.driver, &err), HV_OK);
    hv_str_free(&path);
    return 0;
}

static int close_world(void **state)
{
    free(self.plugins.items);
    hv_plugins_free(&self.plugins);
    hv_inputs_free(&self.inputs);
    hv_str_free(&self.driver);
    return remove_folder(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_function),
        cmocka_unit_test(test_together),
    };
    self.cpu_s = argc > 1 ? strtod(argv[1], NULL) : 0;
    self.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    return cmocka_run_group_tests(tests, open_world, close_world);
}
