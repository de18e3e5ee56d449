/** Plans for models of modules: the judge's figures against closed forms and against plain models.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"

/** Two A100 nodes with links so fast that hops are below any tolerance here. */
static const char fast_cluster[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"fast\",\"nodes\":["
    "{\"name\":\"a\",\"count\":2,\"device\":\"A100-SXM-80GB\",\"devices\":8,"
    "\"intra\":{\"kind\":\"nvlink\",\"bandwidth_GBps\":300,\"latency_us\":3},"
    "\"nic\":{\"bandwidth_GBps\":100}}],"
    "\"network\":{\"bandwidth_GBps\":100,\"latency_us\":5}}";

/** A module of equal measured layers: forward and backward seconds per sample, no bytes. */
#define MEASURED(name, layers) "\"" name "\":{\"kind\":\"layers\",\"layers\":[" layers "]}"
#define LAYER(f, b)                                                                                \
    "{\"name\":\"x\",\"forward_ms\":{\"A100-SXM-80GB\":" #f                                        \
    "},\"backward_ms\":{\"A100-SXM-80GB\":" #b                                                     \
    "},\"parameter_bytes\":0,\"activation_bytes\":0,\"output_bytes\":0}"

static const char three_modules[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"multi\",\"kind\":\"modules\",\"modules\":{" MEASURED(
        "vision",
        LAYER(100,
              200)) "," MEASURED("llm",
                                 LAYER(150, 300) "," LAYER(
                                     150,
                                     300)) "," MEASURED("painter",
                                                        LAYER(
                                                            50,
                                                            100)) "},"
                                                                  "\"edges\":[[\"vision\",\"llm\"],"
                                                                  "[\"llm\",\"painter\"]]}";
static const char small_job[] = "{\"format\":\"hetviz.job/1\",\"global_batch\":8,\"sequence\":128,"
                                "\"precision\":\"fp16\",\"optimizer\":\"none\"}";

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

#define STAGE(devices, module, from, to, more)                                                     \
    "{\"devices\":\"" devices "\",\"module\":\"" module "\",\"layers\":[" #from "," #to "]" more "}"

/** Encoder, backbone in two stages and generator, each on devices of its own. */
#define THREE(n, stages)                                                                           \
    "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":" n ",\"stages\":[" stages "]}],"          \
    "\"schedule\":{\"name\":\"gpipe\",\"backward\":\"forward\"}"

#define APART                                                                                      \
    STAGE("a[0].0", "vision", 0, 1, "")                                                            \
    "," STAGE("a[0].1", "llm", 0, 1, "") "," STAGE("a[0].2", "llm", 1, 2,                          \
                                                   "") "," STAGE("a[0].3", "painter", 0, 1, "")

static void an_outer_pipeline_of_modules_takes_its_closed_form(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, fast_cluster, three_modules, small_job);
    struct hv_verdict v = judge(&w, &a, false, THREE("8", APART));
    assert_int_equal(v.findings.n, 0);
    assert_int_equal(v.n_approximated, 0);
    /* GPipe with backwards in forward order, B = 2 F: sum of all stages + 7 of the slowest, by
     * hand: (300 + 450 + 450 + 150) + 7 · 450 ms */
    assert_near(v.metrics.iteration_s, 1.350 + 7 * 0.450, 1e-3);
    assert_int_equal(v.n_stages, 4);
    assert_near(v.stages[0].forward_s, 0.1, 1e-9);
    assert_near(v.stages[3].backward_s, 0.1, 1e-9);
    hv_arena_free(&a);
    close_world(&w);
}

static void degrees_of_a_module_are_its_own(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, fast_cluster, three_modules, small_job);
    /* vision splits each micro-batch of 4 over 4 ranks, llm over 2, the painter has one rank:
     * per micro-batch 300, 2 × 450, 2 × 450 and 4 × 150 ms; 2 micro-batches: sum + slowest */
    struct hv_verdict v = judge(
        &w, &a, false,
        "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":2,\"stages\":[" STAGE(
            "a[0].0-3", "vision", 0, 1,
            ",\"dp\":4") "," STAGE("a[0].4-5", "llm", 0, 1,
                                   ",\"dp\":2") "," STAGE("a[0].6-7", "llm", 1, 2,
                                                          ",\"dp\":2") "," STAGE("a[1].0",
                                                                                 "painter", 0, 1,
                                                                                 "") "]}],"
                                                                                     "\"schedule\":"
                                                                                     "{\"name\":"
                                                                                     "\"gpipe\","
                                                                                     "\"backward\":"
                                                                                     "\"forward\""
                                                                                     "}");
    assert_int_equal(v.findings.n, 0);
    assert_near(v.metrics.iteration_s, 0.300 + 0.900 + 0.900 + 0.600 + 0.900, 1e-3);
    hv_arena_free(&a);
    close_world(&w);
}

static void samples_of_a_module_scale_its_time_alone(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, fast_cluster, three_modules, small_job);
    struct hv_verdict v =
        judge(&w, &a, true,
              THREE("[{\"sequences\":4,\"scale\":{\"vision\":0}},{\"sequences\":4,\"scale\":{"
                    "\"vision\":3,\"painter\":2}}]",
                    APART));
    assert_int_equal(v.findings.n, 0);
    const struct hv_timeline *t = v.timeline;
    double got[4][2] = {{0}};
    for (size_t r = 0; r < t->n_rows; r++) {
        const struct hv_lane *lane = &t->lanes.items[t->rows[r].compute_lane];
        for (size_t i = 0; i < lane->n_spans; i++) {
            const struct hv_timeline_op *op = &t->ops[lane->spans[i].id];
            if (op->kind == HV_SPAN_F) {
                got[op->stage][op->micro_batch] = lane->spans[i].end_s - lane->spans[i].start_s;
            }
        }
    }
    assert_near(got[0][0] + 1, 1, 1e-9); /* no image */
    assert_near(got[0][1], 4 * 3 * 0.1, 1e-9);
    assert_near(got[1][0], 4 * 0.15, 1e-9);
    assert_near(got[1][1], 4 * 0.15, 1e-9);
    assert_near(got[3][0], 4 * 0.05, 1e-9);
    assert_near(got[3][1], 4 * 2 * 0.05, 1e-9);
    assert_true(!hv_known(v.metrics.bound_s));
    assert_int_equal(v.n_approximated, 0);
    assert_true(strstr(t->rows[0].name, "vision") != NULL);
    assert_true(strstr(t->rows[2].name, "llm") != NULL);
    hv_arena_free(&a);
    close_world(&w);
}

/** A GB per sample: all micro-batches of GPipe in flight, each with the samples that it has. */
static void memory_counts_the_samples_of_every_micro_batch(void **state)
{
    (void)state;
    static const char model[] =
        "{\"format\":\"hetviz.model/"
        "1\",\"name\":\"m\",\"kind\":\"modules\",\"modules\":{\"vision\":{"
        "\"kind\":\"layers\",\"layers\":[{\"forward_ms\":{\"A100-SXM-80GB\":1},\"backward_ms\":{"
        "\"A100-SXM-80GB\":2},\"parameter_bytes\":0,\"activation_bytes\":1e9,\"output_bytes\":0}]},"
        "\"llm\":{\"kind\":\"layers\",\"layers\":[{\"forward_ms\":{\"A100-SXM-80GB\":1},"
        "\"backward_ms\":{\"A100-SXM-80GB\":2},\"parameter_bytes\":0,\"activation_bytes\":1e9,"
        "\"output_bytes\":0}]}},\"edges\":[[\"vision\",\"llm\"]]}";
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, fast_cluster, model, small_job);
    struct hv_verdict v =
        judge(&w, &a, false,
              THREE("[{\"sequences\":2,\"scale\":{\"vision\":0}},{\"sequences\":2,\"scale\":{"
                    "\"vision\":3}},"
                    "{\"sequences\":2,\"scale\":{\"vision\":1}},{\"sequences\":2,\"scale\":{"
                    "\"vision\":5}}]",
                    STAGE("a[0].0", "vision", 0, 1, "") "," STAGE("a[0].1", "llm", 0, 1, "")));
    assert_int_equal(v.findings.n, 0);
    assert_near(v.memory[0].activations_bytes, 2 * (0 + 3 + 1 + 5) * 1e9, 1e-9);
    assert_near(v.memory[1].activations_bytes, 2 * 4 * 1e9, 1e-9);
    hv_arena_free(&a);
    close_world(&w);
}

/** The fixture's model as the only module. */
static const char as_module[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"gpt-2b\",\"kind\":\"modules\",\"modules\":{\"lm\":{"
    "\"kind\":\"transformer\",\"layers\":24,\"hidden\":2560,\"heads\":32,\"kv_heads\":32,"
    "\"ffn\":10240,\"ffn_kind\":\"gelu\",\"vocab\":51200,\"max_sequence\":2048}},\"edges\":[]}";

static void assert_same(const struct hv_verdict *x, const struct hv_verdict *y)
{
    assert_int_equal(x->findings.n, 0);
    assert_int_equal(y->findings.n, 0);
    assert_true(x->metrics.iteration_s == y->metrics.iteration_s);
    assert_true(x->metrics.mfu == y->metrics.mfu);
    assert_true(x->metrics.bound_s == y->metrics.bound_s);
    assert_int_equal(x->n_memory, y->n_memory);
    for (size_t i = 0; i < x->n_memory; i++) {
        assert_true(x->memory[i].peak_bytes == y->memory[i].peak_bytes);
    }
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        assert_true(x->metrics.breakdown_s[i] == y->metrics.breakdown_s[i]);
    }
}

/** Plans of the fixture's model, with or without the name of its module in every stage. */
#define TWO_REPLICAS(key)                                                                          \
    "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":\"a[0].0-"      \
    "3\"," key "\"layers\":[0,10],\"dp\":2,\"tp\":2,\"zero\":1,\"recompute\":\"selective\"},"      \
    "{\"devices\":\"v[0].0-1\"," key                                                               \
    "\"layers\":[10,24],\"tp\":2,\"recompute\":\"full\"}]},{\"micro_batches\":8,"                  \
    "\"stages\":[{\"devices\":\"a[1].*\"," key "\"layers\":[0,24],\"tp\":8}]}]"
#define CHUNKS(key)                                                                                \
    "\"micro_batch\":2,\"replicas\":[{\"count\":2,\"micro_batches\":16,\"stages\":[{\"devices\":"  \
    "\"a[0-1].0-3\"," key "\"layers\":[[0,6],[12,18]],\"tp\":4},{\"devices\":\"a[0-1].4-7\"," key  \
    "\"layers\":[[6,12],[18,24]],\"tp\":4,\"recompute\":\"full\"}]}],"                             \
    "\"schedule\":{\"name\":\"interleaved\"}"
#define LM "\"module\":\"lm\","

static void one_module_is_the_plain_model(void **state)
{
    static const char *const plans[][2] = {{TWO_REPLICAS(""), TWO_REPLICAS(LM)},
                                           {CHUNKS(""), CHUNKS(LM)}};
    struct world w;
    open_world(&w, cluster_text, as_module, job_text);
    for (size_t i = 0; i < HV_COUNT(plans); i++) {
        struct hv_arena a = {0};
        struct hv_verdict x = judge(*state, &a, false, plans[i][0]);
        struct hv_verdict y = judge(&w, &a, false, plans[i][1]);
        struct hv_verdict z = judge(&w, &a, false, plans[i][0]);
        assert_same(&x, &y);
        assert_same(&x, &z);
        hv_arena_free(&a);
    }
    close_world(&w);
}

static const char towers[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"towers\",\"kind\":\"modules\",\"modules\":{"
    "\"vision\":{\"kind\":\"transformer\",\"layers\":4,\"hidden\":1024,\"heads\":16,\"ffn\":4096,"
    "\"ffn_kind\":\"gelu\",\"vocab\":768,\"causal\":false,\"max_sequence\":577,"
    "\"patch_tokens\":577},\"llm\":{\"kind\":\"transformer\",\"layers\":8,\"hidden\":2048,"
    "\"heads\":16,\"ffn\":8192,\"ffn_kind\":\"gelu\",\"vocab\":32000,\"max_sequence\":2048}},"
    "\"edges\":[[\"vision\",\"llm\"]]}";

static void gradients_are_reduced_inside_each_module(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, cluster_text, towers, job_text);
    /* only vision has two holders: its reduction alone is on the wire */
    struct hv_verdict v = judge(
        &w, &a, true,
        "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":32,\"stages\":[" STAGE(
            "a[0].0-1", "vision", 0, 4, ",\"dp\":2") "," STAGE("a[0].2", "llm", 0, 8, "") "]}]");
    assert_int_equal(v.findings.n, 0);
    assert_int_equal(v.n_approximated, 0);
    size_t spans[2] = {0};
    for (size_t r = 0; r < v.timeline->n_rows; r++) {
        const struct hv_lane *lane = &v.timeline->lanes.items[v.timeline->rows[r].link_lane];
        for (size_t i = 0; i < lane->n_spans; i++) {
            spans[r] += v.timeline->ops[lane->spans[i].id].kind == HV_SPAN_SYNC;
        }
    }
    assert_true(spans[0] > 0);
    assert_int_equal(spans[1], 0);
    /* weights: 2 bytes each, 4 blocks of 12 h² + 13 h and the embedding of patches on the first,
     * 8 blocks, embedding, head and final norm on the second; vision has no head, llm reads it */
    const struct hv_model *llm = w.in.model.model->modules[1].model;
    assert_near(v.memory[1].weights_bytes, 2 * hv_model_parameters(llm), 0.02); /* padded table */
    const struct hv_model *vision = w.in.model.model->modules[0].model;
    assert_near(v.memory[0].weights_bytes,
                2 * (hv_model_parameters(vision) - hv_model_head_parameters(vision)), 1e-9);
    hv_arena_free(&a);
    close_world(&w);
}

static void a_stage_may_hold_blocks_of_two_modules(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, cluster_text, towers, job_text);
    struct hv_verdict one =
        judge(&w, &a, false,
              "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":32,\"stages\":["
              "{\"devices\":\"a[0].0\",\"layers\":[0,12]}]}]");
    struct hv_verdict two =
        judge(&w, &a, true,
              "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":32,\"stages\":[" STAGE(
                  "a[0].0", "vision", 0, 4, "") "," STAGE("a[0].1", "llm", 0, 8, "") "]}]");
    assert_int_equal(one.findings.n, 0);
    assert_near(one.stages[0].forward_s, two.stages[0].forward_s + two.stages[1].forward_s, 1e-9);
    assert_near(one.stages[0].backward_s, two.stages[0].backward_s + two.stages[1].backward_s,
                1e-9);
    assert_near(one.memory[0].weights_bytes,
                two.memory[0].weights_bytes + two.memory[1].weights_bytes, 1e-9);
    hv_arena_free(&a);
    close_world(&w);
}

static bool has(const struct hv_verdict *v, enum hv_violation_code code)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        if (v->findings.items[i].code == code) {
            return true;
        }
    }
    return false;
}

static void what_does_not_hold_together_is_found(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, fast_cluster, three_modules, small_job);
    struct hv_verdict v = judge(
        &w, &a, false,
        THREE("8", STAGE("a[0].1", "llm", 0, 2, "") "," STAGE(
                       "a[0].0", "vision", 0, 1, "") "," STAGE("a[0].3", "painter", 0, 1, "")));
    assert_true(has(&v, HV_V_ORDER_DEADLOCK)); /* the backbone before its encoder */
    v = judge(
        &w, &a, false,
        THREE("8", STAGE("a[0].1", "audio", 0, 2, "") "," STAGE("a[0].0", "vision", 0, 1, "")));
    assert_true(has(&v, HV_V_LAYERS_MISSING));
    assert_true(!hv_known(v.metrics.iteration_s));
    v = judge(&w, &a, false,
              THREE("8", STAGE("a[0].0", "vision", 0, 1, "") "," STAGE(
                             "a[0].1", "llm", 0, 3, "") "," STAGE("a[0].3", "painter", 0, 1, "")));
    assert_true(has(&v, HV_V_LAYERS_MISSING)); /* the backbone has 2 */
    assert_true(!hv_known(v.metrics.iteration_s));
    hv_arena_free(&a);
    close_world(&w);
}

/** A module of one measured layer whose output has so many bytes. */
#define SENDING(name, bytes)                                                                       \
    "\"" name "\":{\"kind\":\"layers\",\"layers\":[{\"name\":\"x\",\"forward_ms\":{"               \
    "\"A100-SXM-80GB\":100},\"backward_ms\":{\"A100-SXM-80GB\":200},\"parameter_bytes\":0,"        \
    "\"activation_bytes\":0,\"output_bytes\":" #bytes "}]}"

/** Seconds of the hops of a chain of two encoders and a backbone, each on a node of its own. */
static void hops_of_two_encoders(const char *second, const char *edges, double hop_s[2])
{
    struct world w;
    struct hv_arena a = {0};
    char model[1024];
    (void)snprintf(
        model, sizeof model,
        "{\"format\":\"hetviz.model/1\",\"name\":\"two\",\"kind\":\"modules\",\"modules\":{"
        "%s,%s,%s},\"edges\":[%s]}",
        SENDING("vision", 4e9), second, SENDING("llm", 0), edges);
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"three\",\"nodes\":[{\"name\":\"a\","
               "\"count\":3,\"device\":\"A100-SXM-80GB\",\"devices\":1,\"nic\":{"
               "\"bandwidth_GBps\":10}}]}",
               model, small_job);
    struct hv_verdict v =
        judge(&w, &a, false,
              THREE("8", STAGE("a[0].0", "vision", 0, 1, "") "," STAGE(
                             "a[1].0", "audio", 0, 1, "") "," STAGE("a[2].0", "llm", 0, 1, "")));
    assert_int_equal(v.findings.n, 0);
    hop_s[0] = v.stages[0].hop_s;
    hop_s[1] = v.stages[1].hop_s;
    hv_arena_free(&a);
    close_world(&w);
}

/** Both encoders feed the backbone: in a chain what the first made passes through the second's
 * stage, so that stage hands on both; where the second reads the first, only its own. */
static void encoders_in_a_chain_pass_on_what_others_made(void **state)
{
    (void)state;
    double both[2], chain[2], alone[2];
    const char *to_llm = "[\"vision\",\"llm\"],[\"audio\",\"llm\"]";
    hops_of_two_encoders(SENDING("audio", 4e9), to_llm, both);
    hops_of_two_encoders(SENDING("audio", 4e9), "[\"vision\",\"audio\"],[\"audio\",\"llm\"]",
                         chain);
    hops_of_two_encoders(SENDING("audio", 0), to_llm, alone);
    assert_near(both[0], chain[0], 1e-9);
    assert_near(chain[1], chain[0], 1e-9);
    assert_near(both[1], 2 * chain[1], 0.01); /* twice the bytes, the latency once */
    assert_near(alone[1], alone[0], 1e-9);    /* the second has nothing of its own to send */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoders_in_a_chain_pass_on_what_others_made),
        cmocka_unit_test(an_outer_pipeline_of_modules_takes_its_closed_form),
        cmocka_unit_test(degrees_of_a_module_are_its_own),
        cmocka_unit_test(samples_of_a_module_scale_its_time_alone),
        cmocka_unit_test(memory_counts_the_samples_of_every_micro_batch),
        cmocka_unit_test(one_module_is_the_plain_model),
        cmocka_unit_test(gradients_are_reduced_inside_each_module),
        cmocka_unit_test(a_stage_may_hold_blocks_of_two_modules),
        cmocka_unit_test(what_does_not_hold_together_is_found),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
