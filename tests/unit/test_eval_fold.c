/** Plans with very many micro-batches: judged from a short run as from the whole one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "tests/eval_fixture.h"

static void assert_near(double got, double want, double scale)
{
    if (!(fabs(got - want) <= 1e-9 * scale) && !(isnan(got) && isnan(want))) {
        fail_msg("%.17g is not %.17g", got, want);
    }
}

/** Two replicas of four unequal stages on two kinds of devices, with reductions between them. */
static void write_plan(char *out, size_t cap, const char *schedule, int64_t m, int chunks,
                       struct hv_rng *r)
{
    int at[9] = {0};
    for (int i = 1; i <= 4 * chunks; i++) {
        int even = i * 24 / (4 * chunks);
        at[i] = i == 4 * chunks ? 24 : even + (int)hv_rng_below(r, 2);
    }
    size_t n = (size_t)snprintf(out, cap, "\"micro_batch\":1,\"replicas\":[");
    for (int copy = 0; copy < 2; copy++) {
        n += (size_t)snprintf(out + n, cap - n, "%s{\"micro_batches\":%lld,\"stages\":[",
                              copy ? "," : "", (long long)m);
        for (int i = 0; i < 4; i++) {
            n += (size_t)snprintf(out + n, cap - n, "%s{\"devices\":\"%s[%d].%d\",\"layers\":[",
                                  i ? "," : "", i < 2 ? "a" : "v", copy, i);
            for (int k = 0; k < chunks; k++) {
                n += (size_t)snprintf(out + n, cap - n, chunks > 1 ? "%s[%d,%d]" : "%s%d,%d",
                                      k ? "," : "", at[4 * k + i], at[4 * k + i + 1]);
            }
            n += (size_t)snprintf(out + n, cap - n, "]}");
        }
        n += (size_t)snprintf(out + n, cap - n, "]}");
    }
    (void)snprintf(out + n, cap - n, "],\"schedule\":{\"name\":\"%s\"}", schedule);
}

/** With a timeline every operation is laid out: all figures are those of the plan judged without.
 */
static void judged_as_laid_out(void **state)
{
    static const struct {
        const char *name;
        int chunks;
    } cases[] = {{"1f1b", 1},   {"interleaved", 2}, {"zb-h1", 1},  {"zb-h2", 1},  {"dapple", 1},
                 {"varuna", 1}, {"autopipe", 1},    {"bpipe", 1},  {"1f1b-v", 2}, {"gpipe", 1},
                 {"zb-2p", 1},  {"graphpipe", 1},   {"hetpipe", 1}};
    struct hv_rng r;
    hv_rng_seed(&r, 5);
    for (size_t i = 0; i < 2 * HV_COUNT(cases); i++) {
        struct hv_arena a = {0};
        char text[4096];
        int64_t m = 4 * (int64_t)(2100 + hv_rng_below(&r, 200));
        write_plan(text, sizeof text, cases[i / 2].name, m, cases[i / 2].chunks, &r);
        struct hv_verdict want = judge(*state, &a, true, text),
                          got = judge(*state, &a, false, text);
        double whole = want.metrics.iteration_s;
        assert_true(whole > 0);
        assert_near(got.metrics.iteration_s, whole, whole);
        assert_near(got.metrics.pipeline_s, want.metrics.pipeline_s, whole);
        assert_near(got.metrics.tokens_per_s, want.metrics.tokens_per_s, want.metrics.tokens_per_s);
        assert_near(got.metrics.bubble_frac, want.metrics.bubble_frac, 1);
        for (int k = 0; k < HV_BREAKDOWN_N; k++) {
            assert_near(got.metrics.breakdown_s[k], want.metrics.breakdown_s[k], whole);
        }
        assert_int_equal(got.n_memory, want.n_memory);
        for (size_t k = 0; k < got.n_memory; k++) {
            const struct hv_stage_memory *x = &got.memory[k], *y = &want.memory[k];
            assert_near(x->peak_bytes, y->peak_bytes, y->peak_bytes);
            assert_near(x->peak_at_s, y->peak_at_s, whole);
            assert_near(x->activations_bytes, y->activations_bytes, y->peak_bytes);
            assert_int_equal(x->in_flight, y->in_flight);
            assert_near(got.stages[k].busy_frac, want.stages[k].busy_frac, 1);
        }
        assert_int_equal(got.findings.n, want.findings.n);
        hv_arena_free(&a);
    }
}

/** More micro-batches than could ever be laid out: 1F1B goes on at the pace of its slowest stage.
 */
static void sixteen_million(void **state)
{
    struct hv_arena a = {0};
    double t[3];
    for (int i = 0; i < 3; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":%d,\"stages\":["
                       "{\"devices\":\"a[0].0\",\"layers\":[0,14]},"
                       "{\"devices\":\"a[0].1\",\"layers\":[14,24]}]}]",
                       i == 0   ? 8000000
                       : i == 1 ? 8000001
                                : 16000000);
        struct hv_verdict v = judge(*state, &a, false, text);
        t[i] = v.metrics.pipeline_s;
        assert_int_equal(v.memory[0].in_flight, 2);
        assert_true(v.metrics.exact);
    }
    assert_near((t[2] - t[0]) / 8e6, t[1] - t[0], 1e4 * (t[1] - t[0]));
    assert_true(t[2] > t[0]);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(judged_as_laid_out),
                                       cmocka_unit_test(sixteen_million)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
