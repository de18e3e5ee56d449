/* Schedules written in Lua: the same order as the built-in one gives the same times; refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "scripting/plugin/order.h"
#include "solver/base/file.h"
#include "solver/sim/pipeline/pipeline.h"
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

#define HEAD                                                                                       \
    "return { api = 1, id = 'mine', title = 'Mine', kind = 'schedule', system = 's', "             \
    "reference = 'r', summary = 't', options = { { key = 'ahead', type = 'integer', default = 0, " \
    "help = 'more' } }, order = function(p) "

/* runs order(p) with this body for 3 ranks, m micro-batches and the option ahead = 1 */
static enum hv_status order(struct hv_arena *a, const char *body, int32_t m,
                            const struct hv_order_text **out, struct hv_err *err)
{
    char text[2000];
    struct hv_plugins all = {0};
    json_t *options = json_pack("{s:i}", "ahead", 1);
    snprintf(text, sizeof text, "%s%s end }", HEAD, body);
    assert_int_equal(hv_file_write(path, text, strlen(text), NULL), HV_OK);
    enum hv_status s = hv_plugins_read_file(&all, path, err);
    assert_int_equal(s, HV_OK);
    const struct hv_order_request r = {.plugin = &all.items[0],
                                       .options = options,
                                       .ranks = 3,
                                       .micro_batches = m,
                                       .chunks = 1,
                                       .cost = {1, 2, 3},
                                       .hop_s = 4};
    s = hv_run_order(a, &r, out, err);
    json_decref(options);
    hv_plugins_free(&all);
    return s;
}

static void times(const struct hv_schedule_input *in, double *makespan)
{
    struct hv_arena a = {0};
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_run run;
    static const double stage_s[3 * HV_OP_KIND_N] = {1, 1, 1, 2, 1, 3, 1, 1, 2, 1, 1, 2, 1, 2, 1};
    assert_int_equal(hv_schedule_make(&a, in, &s, NULL), HV_OK);
    assert_int_equal(hv_pipe_compile(&a, &s, &g, NULL), HV_OK);
    hv_pipe_run_new(&a, &g, &run);
    hv_pipe_time(&g, &(struct hv_pipe_cost){.stage_s = stage_s, .hop_all_s = 0.5}, &run);
    *makespan = run.makespan_s;
    hv_arena_free(&a);
}

/* 1F1B in Lua against 1f1b */
static void as_the_built_in_one(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_err err = {0};
    const struct hv_order_text *tokens = NULL;
    assert_int_equal(
        order(&a,
              "assert(p.stages == 3 and p.times.w == 3 and p.times.hop == 4 and p.options.ahead == "
              "1) "
              "local all = {} for r = 0, p.ranks - 1 do local o = {} "
              "local warm = math.min(p.micro_batches, p.ranks - 1 - r) "
              "for i = -warm, p.micro_batches - 1 do "
              "if i + warm < p.micro_batches then o[#o + 1] = ('F%d.%d'):format(r, i + warm) end "
              "if i >= 0 then o[#o + 1] = ('BW%d.%d'):format(r, i) end end "
              "all[r + 1] = o end return all",
              7, &tokens, &err),
        HV_OK);
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    double mine, built_in;
    assert_int_equal(hv_schedule_find("explicit", &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, 3, 7);
    in.order = tokens;
    times(&in, &mine);
    assert_int_equal(hv_schedule_find("1f1b", &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, 3, 7);
    times(&in, &built_in);
    assert_true(mine >= built_in && mine <= built_in);
    hv_arena_free(&a);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum hv_status st;
        const char *says;
    } cases[] = {
        {"return nil, 'needs two'", HV_ENO, "gives no order for p = 3, m = 1, v = 1: needs two"},
        {"return 5", HV_EPLUGIN, "expected a list of 3 lists"},
        {"return { {}, {} }", HV_EPLUGIN, "expected a list of 3 lists"},
        {"return { {}, 'F0.0', {} }", HV_EPLUGIN, "rank 2: expected a list"},
        {"return { {}, {}, { 'F2.0', 7, {} } }", HV_EPLUGIN, "rank 3, operation 2"},
        {"error('broken')", HV_EPLUGIN, "broken"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hv_arena a = {0};
        struct hv_err err = {0};
        const struct hv_order_text *tokens = NULL;
        assert_int_equal(order(&a, cases[i].body, 1, &tokens, &err), cases[i].st);
        if (strstr(err.text, cases[i].says) == NULL) {
            print_error("'%s' is not in '%s'\n", cases[i].says, err.text);
        }
        assert_non_null(strstr(err.text, cases[i].says));
        assert_null(tokens);
        hv_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_built_in_one),
        cmocka_unit_test(refusals),
    };
    char folder[] = P_tmpdir "/hetviz-order-XXXXXX";
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(path, sizeof path, "%s/mine.lua", folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    (void)rmdir(folder);
    return failed;
}
