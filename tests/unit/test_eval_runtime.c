/** What the runtime of a job changes in a verdict: sends that block, late reductions, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

static const char slow_cluster[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"slow\",\"nodes\":[{\"name\":\"a\",\"count\":4,"
    "\"device\":\"A100-SXM-80GB\",\"devices\":4,\"nic\":{\"bandwidth_GBps\":1}}],"
    "\"network\":{\"bandwidth_GBps\":1,\"latency_us\":50}}";

/** Eight equal measured layers: forward 10 ms, backward 20 ms, measured with 1 and 4 ranks. */
static void measured_model(char *out, size_t cap)
{
    size_t n = (size_t)snprintf(out, cap,
                                "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\","
                                "\"tp\":[1,4],\"micro_batch\":[1],\"layers\":[");
    for (int i = 0; i < 8; i++) {
        n += (size_t)snprintf(out + n, cap - n,
                              "%s{\"name\":\"l%d\",\"forward_ms\":{\"A100-SXM-80GB\":[[10],[10]]},"
                              "\"backward_ms\":{\"A100-SXM-80GB\":[[20],[20]]},\"update_ms\":"
                              "{\"A100-SXM-80GB\":1},\"parameter_bytes\":40000000,"
                              "\"activation_bytes\":400000000,\"output_bytes\":16000000}",
                              i ? "," : "", i);
    }
    (void)snprintf(out + n, cap - n, "]}");
}

static void open_measured(struct world *w, const char *runtime)
{
    char model[4096], job[512];
    measured_model(model, sizeof model);
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":12,\"sequence\":2048,"
                   "\"precision\":\"fp32\",\"optimizer\":\"adam\"%s%s%s}",
                   runtime ? ",\"runtime\":\"" : "", runtime ? runtime : "", runtime ? "\"" : "");
    open_world(w, slow_cluster, model, job);
}

/** p equal stages, one node each, with m micro-batches of one sequence; `copies` of them. */
static struct hv_verdict pipeline(struct world *w, struct hv_arena *a, int p, int m, int copies,
                                  const char *more)
{
    char text[4096];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "\"micro_batch\":1,\"replicas\":[{\"count\":%d,\"micro_batches\":"
                                "%d,\"stages\":[",
                                copies, m);
    for (int i = 0; i < p; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s{\"devices\":[", i ? "," : "");
        for (int c = 0; c < copies; c++) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s\"a[%d].*\"", c ? "," : "",
                                  i + c * p);
        }
        n += (size_t)snprintf(text + n, sizeof text - n, "],\"layers\":[%d,%d],\"tp\":4}",
                              8 / p * i, 8 / p * (i + 1));
    }
    (void)snprintf(text + n, sizeof text - n, "]}]%s", more);
    return judge(w, a, false, text);
}

/**
 * Makespan of 1F1B by brute force: operations run in order, each as soon as its rank is free and
 * its input is there. A send of `hop` is part of the operation where it blocks, else behind it.
 */
static double brute_1f1b(int p, int m, double f, double b, double hop, double gather, bool blocks)
{
    enum { MOST = 64 };
    double done[2][8][MOST] = {{{0}}}, t[8] = {0}, last = 0;
    bool is_done[2][8][MOST] = {{{false}}};
    int n_f[8] = {0}, n_b[8] = {0};
    for (int rounds = 0; rounds < 4 * p * m + 8; rounds++) {
        for (int s = 0; s < p; s++) {
            int ahead = p - s < m ? p - s : m;
            bool forward = n_f[s] < m && n_f[s] - n_b[s] < ahead;
            int k = forward ? n_f[s] : n_b[s];
            bool head = forward ? s == 0 : s == p - 1, sends = forward ? s < p - 1 : s > 0;
            int from = forward ? s - 1 : s + 1;
            if ((!forward && n_b[s] >= m) || (!head && !is_done[!forward][from][k])) {
                continue;
            }
            double ready = head ? 0 : done[!forward][from][k] + (blocks ? 0 : hop);
            double own =
                (forward ? f : b) + (blocks && sends ? hop : 0) + (blocks && !head ? gather : 0);
            t[s] = fmax(t[s], ready) + own;
            done[!forward][s][k] = t[s];
            is_done[!forward][s][k] = true;
            last = fmax(last, t[s]);
            n_f[s] += forward;
            n_b[s] += !forward;
        }
    }
    return last;
}

/** Gather of the shares of an input inside a node. */
static double gather_s(const struct world *w, double bytes)
{
    const uint32_t devices[] = {0, 1, 2, 3};
    const struct hv_collective_query q = {
        .op = HV_ALL_GATHER, .bytes = bytes, .devices = devices, .n = 4, .together = 1};
    return hv_cost_collective(w->in.cluster.cluster, &q, NULL).time_s;
}

static void sends_that_block_lengthen_1f1b_as_by_brute_force(void **state)
{
    (void)state;
    for (int p = 2; p <= 4; p += 2) {
        for (int m = 1; m <= 12; m += 11) {
            struct world beside, blocked;
            struct hv_arena a = {0};
            open_measured(&beside, NULL);
            open_measured(&blocked, "deepspeed");
            struct hv_verdict v = pipeline(&beside, &a, p, m, 1, "");
            struct hv_verdict x = pipeline(&blocked, &a, p, m, 1, "");
            double f = 0.010 * 8 / p, b = 0.020 * 8 / p, hop = v.stages[0].hop_s;
            assert_true(hop > 0.010); /* 16 MB over 1 GB/s */
            if (p == 2) {             /* inner nodes receive from both sides at once */
                assert_near(v.metrics.pipeline_s, brute_1f1b(p, m, f, b, hop, 0, false), 1e-9);
            }
            assert_near(x.metrics.pipeline_s,
                        brute_1f1b(p, m, f, b, hop, gather_s(&blocked, 16e6), true), 1e-9);
            double sum = 0;
            for (int i = 0; i < HV_BREAKDOWN_N; i++) {
                sum += x.metrics.breakdown_s[i];
            }
            assert_near(sum, x.metrics.iteration_s, 1e-9);
            assert_true(x.metrics.breakdown_s[HV_TIME_PP] >= v.metrics.breakdown_s[HV_TIME_PP]);
            hv_arena_free(&a);
            close_world(&beside);
            close_world(&blocked);
        }
    }
}

static void late_reductions_hide_nothing(void **state)
{
    (void)state;
    struct world plain, late;
    struct hv_arena a = {0};
    open_measured(&plain, "hetviz");
    open_measured(&late, "deepspeed");
    struct hv_verdict hidden = pipeline(&plain, &a, 2, 6, 2, "");
    struct hv_verdict shown = pipeline(&plain, &a, 2, 6, 2, ",\"sync\":{\"overlap\":false}");
    struct hv_verdict x = pipeline(&late, &a, 2, 6, 2, ",\"sync\":{\"overlap\":true}");
    struct hv_verdict y = pipeline(&late, &a, 2, 6, 2, ",\"sync\":{\"overlap\":false}");
    assert_true(hidden.metrics.breakdown_s[HV_TIME_DP] < shown.metrics.breakdown_s[HV_TIME_DP]);
    assert_true(x.metrics.breakdown_s[HV_TIME_DP] > hidden.metrics.breakdown_s[HV_TIME_DP]);
    assert_near(x.metrics.iteration_s, y.metrics.iteration_s, 1e-12);
    hv_arena_free(&a);
    close_world(&plain);
    close_world(&late);
}

/** 400 MB of activations per layer, inputs of 16 MB, four ranks. */
static void some_tensors_stay_whole_without_sequence_parallelism(void **state)
{
    (void)state;
    struct world plain, told;
    struct hv_arena a = {0};
    open_measured(&plain, "hetviz");
    open_measured(&told, "deepspeed");
    struct hv_verdict v = pipeline(&plain, &a, 2, 6, 1, "");
    struct hv_verdict x = pipeline(&told, &a, 2, 6, 1, "");
    double tensors = hv_runtime_row(HV_RUNTIME_DEEPSPEED)->whole_tensors, whole = tensors * 16e6;
    /* two micro-batches of four layers are alive on the first stage */
    assert_near(v.memory[0].activations_bytes, 8 * 400e6 / 4, 1e-9);
    assert_near(x.memory[0].activations_bytes, 8 * ((400e6 - whole) / 4 + whole), 1e-9);
    hv_arena_free(&a);
    close_world(&plain);
    close_world(&told);
}

/** Libraries and channels of communicators are on the device, and nothing that was allocated. */
static void libraries_count_on_the_device_only(void **state)
{
    (void)state;
    struct world plain, told;
    struct hv_arena a = {0};
    open_measured(&plain, "hetviz");
    open_measured(&told, "deepspeed");
    struct hv_verdict v = pipeline(&plain, &a, 2, 6, 1, "");
    struct hv_verdict x = pipeline(&told, &a, 2, 6, 1, "");
    const struct hv_runtime_row *r = hv_runtime_row(HV_RUNTIME_DEEPSPEED);
    const struct hv_stage_memory *m = &v.memory[0], *n = &x.memory[0];
    double parameters = 4 * 40e6 / 4 / 4; /* of four layers over four ranks, in fp32 */
    double flat = 4 * parameters, step = r->step_bytes * parameters;
    assert_near(n->buffers_bytes - m->buffers_bytes, flat + step, 1e-6);
    assert_near(hv_stage_allocated_bytes(n) - hv_stage_allocated_bytes(m),
                n->activations_bytes - m->activations_bytes + flat + step, 1e-6);
    assert_true(n->peak_bytes - hv_stage_allocated_bytes(n) >= r->library_bytes);
    hv_arena_free(&a);
    close_world(&plain);
    close_world(&told);
}

static void the_default_assumes_nothing(void **state)
{
    (void)state;
    struct world none, named;
    struct hv_arena a = {0};
    open_measured(&none, NULL);
    open_measured(&named, "hetviz");
    struct hv_verdict x = pipeline(&none, &a, 2, 6, 2, ""), y = pipeline(&named, &a, 2, 6, 2, "");
    assert_true(x.metrics.iteration_s == y.metrics.iteration_s);
    assert_true(x.memory[0].peak_bytes == y.memory[0].peak_bytes);
    const struct hv_runtime_row *r = hv_runtime_row(HV_RUNTIME_HETVIZ);
    assert_int_equal(r->sends, HV_SENDS_BESIDE);
    assert_int_equal(r->reduction, HV_REDUCTION_PLANNED);
    assert_true(!hv_known(r->library_bytes) && r->can.schedules == NULL);
    hv_arena_free(&a);
    close_world(&none);
    close_world(&named);
}

/** What the runtime does not run is said, and the plan is judged all the same. */
static void what_the_runtime_lacks_is_named(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_measured(&w, "deepspeed");
    struct hv_verdict v = pipeline(&w, &a, 2, 6, 1, ",\"schedule\":{\"name\":\"zb-h1\"}");
    assert_int_equal(v.runtime, HV_RUNTIME_DEEPSPEED);
    assert_true(hv_known(v.metrics.iteration_s));
    assert_true(v.n_approximated > 0 && strstr(v.approximated[v.n_approximated - 1], "zb-h1") &&
                strstr(v.approximated[v.n_approximated - 1], "deepspeed"));
    v = pipeline(&w, &a, 2, 6, 1, ",\"schedule\":{\"name\":\"1f1b\"}");
    assert_int_equal(v.n_approximated, 0);
    v = judge(&w, &a, false,
              "\"micro_batch\":1,\"replicas\":[{\"count\":2,\"micro_batches\":6,\"stages\":[{"
              "\"devices\":[\"a[0-1].*\"],\"layers\":[0,4],\"tp\":4,\"zero\":2},{\"devices\":["
              "\"a[2-3].*\"],\"layers\":[4,8],\"tp\":4,\"zero\":2}]}]");
    assert_true(v.n_approximated > 0 && strstr(v.approximated[v.n_approximated - 1], "ZeRO 2"));
    v = judge(&w, &a, false,
              "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":3,\"stages\":[{\"devices\":"
              "\"a[0].*\",\"layers\":[0,8],\"tp\":4,\"degrees\":[{\"layers\":[0,4],\"dp\":4}]}]}]");
    assert_int_equal(v.n_approximated, 1);
    assert_string_equal(v.approximated[0],
                        "replicas[0].stages[0].degrees: deepspeed does not run degrees that differ "
                        "between layers of a stage, judged as if it did");
    hv_arena_free(&a);
    close_world(&w);
}

/** In a search the same is a violation, with the place and the runtime's name. */
static void searches_keep_to_what_the_runtime_runs(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    static const char *const names[] = {"zb-h1", "1f1b"};
    open_measured(&w, "deepspeed");
    for (size_t i = 0; i < HV_COUNT(names); i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "{\"format\":\"hetviz.plan/1\",\"micro_batch\":1,\"replicas\":[{"
                       "\"micro_batches\":12,\"stages\":[{\"devices\":\"a[0].*\",\"layers\":[0,4],"
                       "\"tp\":4},{\"devices\":\"a[1].*\",\"layers\":[4,8],\"tp\":4}]}],"
                       "\"schedule\":{\"name\":\"%s\"}}",
                       names[i]);
        struct hv_plan_doc doc;
        assert_int_equal(hv_plan_doc_build(&doc, parse(text, "p"), w.in.cluster.cluster, NULL),
                         HV_OK);
        const struct hv_eval_options o = {.no_bound = true, .runtime_limits = true};
        struct hv_verdict v;
        assert_int_equal(hv_eval(w.cost, doc.plan, &o, &a, &v, NULL), HV_OK);
        assert_int_equal(v.n_approximated, 0);
        assert_int_equal(v.findings.n, i == 0);
        if (i == 0) {
            assert_int_equal(v.findings.items[0].code, HV_V_RUNTIME);
            assert_string_equal(v.findings.items[0].where, "schedule.name");
            assert_string_equal(v.findings.items[0].text, "deepspeed does not run schedule zb-h1");
        }
        hv_plan_doc_free(&doc);
    }
    hv_arena_free(&a);
    close_world(&w);
}

/** Judges two stages of four devices, each with its own further keys. */
static struct hv_verdict two_stages(struct world *w, struct hv_arena *a, const char *first,
                                    const char *second)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":3,\"stages\":[{\"devices\":"
                   "\"a[0].*\",\"layers\":[0,4]%s},{\"devices\":\"a[1].*\",\"layers\":[4,8]%s}]}]",
                   first, second);
    struct hv_verdict v = judge(w, a, false, text);
    assert_int_equal(v.findings.n, 0);
    return v;
}

/** Gathers of shares and flat copies follow the degrees that the layers have: an entry that covers
 * a whole stage is the same as the stage's own keys. */
static void degrees_of_layers_count(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_measured(&w, "deepspeed");
    const char *const tp = ",\"tp\":4", *const dp = ",\"dp\":4",
                      *const sharded = ",\"dp\":4,\"zero\":1";
    const char *const own[] = {tp, dp, sharded};
    const char *const entry[] = {
        ",\"dp\":4,\"degrees\":[{\"layers\":[0,8],\"tp\":4}]",
        ",\"tp\":4,\"degrees\":[{\"layers\":[0,8],\"dp\":4}]",
        ",\"tp\":4,\"degrees\":[{\"layers\":[0,8],\"dp\":4,\"zero\":1}]",
    };
    for (size_t i = 0; i < HV_COUNT(own); i++) {
        for (size_t k = 0; k < HV_COUNT(own); k++) {
            char first[128], second[128];
            (void)snprintf(first, sizeof first, "%s", entry[i]);
            (void)snprintf(second, sizeof second, "%s", entry[k]);
            memcpy(strstr(first, "[0,8]"), "[0,4]", 5);
            memcpy(strstr(second, "[0,8]"), "[4,8]", 5);
            double as_keys_s = two_stages(&w, &a, own[i], own[k]).metrics.iteration_s;
            double as_entries_s = two_stages(&w, &a, first, second).metrics.iteration_s;
            assert_near(as_entries_s, as_keys_s, 1e-12);
        }
    }
    hv_arena_free(&a);
    close_world(&w);
}

static void rows_are_found_by_name(void **state)
{
    (void)state;
    for (int i = 0; i < HV_RUNTIME_N; i++) {
        enum hv_runtime r = HV_RUNTIME_N;
        assert_true(hv_runtime_find(hv_runtime_name((enum hv_runtime)i), &r));
        assert_int_equal(r, i);
        assert_non_null(hv_runtime_row(r)->title);
        assert_non_null(hv_runtime_row(r)->source);
        assert_non_null(hv_runtime_row(r)->degrees);
    }
    enum hv_runtime r = HV_RUNTIME_N;
    assert_false(hv_runtime_find("mega", &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_that_block_lengthen_1f1b_as_by_brute_force),
        cmocka_unit_test(late_reductions_hide_nothing),
        cmocka_unit_test(some_tensors_stay_whole_without_sequence_parallelism),
        cmocka_unit_test(libraries_count_on_the_device_only),
        cmocka_unit_test(the_default_assumes_nothing),
        cmocka_unit_test(what_the_runtime_lacks_is_named),
        cmocka_unit_test(searches_keep_to_what_the_runtime_runs),
        cmocka_unit_test(degrees_of_layers_count),
        cmocka_unit_test(rows_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
