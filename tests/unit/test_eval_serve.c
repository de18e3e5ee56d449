/** Plans that serve: flows against cuts counted one by one, hand-made cases, caches, findings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "tests/eval_fixture.h"

/** Nodes of one device: as many kinds as placements need, NICs of 1 GB/s. */
static const char nodes_text[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"nodes\",\"nodes\":["
    "{\"name\":\"x\",\"count\":1,\"device\":\"A100-SXM-80GB\",\"devices\":1,"
    "\"nic\":{\"bandwidth_GBps\":1,\"latency_us\":10}},"
    "{\"name\":\"y\",\"count\":5,\"device\":\"V100-SXM2-32GB\",\"devices\":1,"
    "\"nic\":{\"bandwidth_GBps\":1,\"latency_us\":10}}]}";

/** Layers of 100 ms on x and 250 ms on y for one sequence of one token: the rates of the
 * catalogue's oracle (helix), 10 and 5 tokens per second for one and two layers on x, 4 and 2 on y.
 */
#define LAYER(out)                                                                                 \
    "{\"name\":\"l\",\"forward_ms\":{\"A100-SXM-80GB\":100,\"V100-SXM2-32GB\":250},"               \
    "\"backward_ms\":{\"A100-SXM-80GB\":1,\"V100-SXM2-32GB\":1},\"parameter_bytes\":0,"            \
    "\"activation_bytes\":0,\"output_bytes\":" #out "}"
#define MEASURED(layers)                                                                           \
    "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"layers\":[" layers "]}"
static const char one_token[] = "{\"format\":\"hetviz.job/1\",\"global_batch\":1,\"sequence\":1,"
                                "\"precision\":\"fp16\"}";

#define SERVE(stages)           "\"mode\":\"serve\",\"replicas\":[{\"stages\":[" stages "]}]"
#define STAGE(device, from, to) "{\"devices\":\"" device "\",\"layers\":[" #from "," #to "]}"

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want))) {
        fail_msg("%.17g is not within %g of %.17g", got, rel, want);
    }
}

static void the_oracle_of_the_catalogue(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, nodes_text, MEASURED(LAYER(1) "," LAYER(1)), one_token);
    struct hv_verdict v = judge(
        &w, &a, false, SERVE(STAGE("x", 0, 2) "," STAGE("y[0]", 0, 2) "," STAGE("y[1]", 0, 2)));
    assert_int_equal(v.findings.n, 0);
    assert_int_equal(v.n_approximated, 0);
    assert_near(v.metrics.tokens_per_s, 9, 1e-9);
    assert_near(v.serving->bound_tokens_per_s, 9, 1e-9); /* everybody holds both: the bound */
    assert_true(!hv_known(v.metrics.iteration_s));
    assert_true(!hv_known(v.metrics.bound_s));
    v = judge(&w, &a, false,
              SERVE(STAGE("x", 0, 1) "," STAGE("y[0]", 1, 2) "," STAGE("y[1]", 1, 2)));
    assert_near(v.metrics.tokens_per_s, 8, 1e-9); /* 4 + 4 behind 10 */
    assert_near(v.serving->bound_tokens_per_s, 9, 1e-9);
    assert_near(v.serving->first_token_s, 0.1 + 0.25 + 1e-5, 1e-3);
    assert_near(v.serving->requests_in_flight, 8 * v.serving->request_s, 1e-9);
    hv_arena_free(&a);
    close_world(&w);
}

static void partial_inference_takes_up_where_the_other_ended(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, nodes_text, MEASURED(LAYER(1) "," LAYER(1)), one_token);
    /* y[0] holds both layers: tokens of x come in for its second, at its rate for two */
    struct hv_verdict v = judge(
        &w, &a, false,
        SERVE(STAGE("x", 0, 1) "," STAGE("y[0]", 0, 2)) ",\"flow\":[["
                                                        "\"source\",0,2],[0,1,2],[1,\"sink\",2]]");
    assert_int_equal(v.findings.n, 0);
    assert_near(v.metrics.tokens_per_s, 2, 1e-9);
    assert_near(v.serving->max_tokens_per_s, 2, 1e-9);
    assert_int_equal(v.n_approximated, 1);
    hv_arena_free(&a);
    close_world(&w);
}

static size_t count(const struct hv_verdict *v, enum hv_violation_code code)
{
    size_t n = 0;
    for (size_t i = 0; i < v->findings.n; i++) {
        n += v->findings.items[i].code == code;
    }
    return n;
}

static void without_partial_inference_tokens_enter_where_a_stage_begins(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, nodes_text, MEASURED(LAYER(1) "," LAYER(1) "," LAYER(1)), one_token);
    /* the second of the three layers is on both: x passes 5 tokens/s with two layers, y 2 */
    static const char overlap[] = SERVE(STAGE("x", 0, 2) "," STAGE("y[0]", 1, 3));
    struct hv_verdict v = judge(&w, &a, false, overlap);
    assert_near(v.metrics.tokens_per_s, 2, 1e-9);
    char text[sizeof overlap + 128];
    (void)snprintf(text, sizeof text, "%s,\"partial_inference\":false", overlap);
    v = judge(&w, &a, false, text);
    assert_true(v.serving->max_tokens_per_s == 0);
    (void)snprintf(text, sizeof text,
                   "%s,\"partial_inference\":false,\"flow\":[[\"source\",0,1],[0,1,1],[1,"
                   "\"sink\",1]]",
                   overlap);
    v = judge(&w, &a, false, text);
    assert_int_equal(count(&v, HV_V_CAPACITY), 1);
    assert_non_null(strstr(v.findings.items[0].text, "without partial inference"));
    /* where runs meet nothing changes */
    v = judge(&w, &a, false,
              SERVE(STAGE("x", 0, 1) "," STAGE("y[0]", 1, 3)) ",\"partial_inference\":false");
    assert_near(v.metrics.tokens_per_s, 2, 1e-9);
    hv_arena_free(&a);
    close_world(&w);
}

static void links_and_nics_bound_the_flow(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    /* 2 GB per token over 1 GB/s: half a token per second, however fast the devices */
    open_world(&w, nodes_text, MEASURED(LAYER(2000000000) "," LAYER(1)), one_token);
    struct hv_verdict v = judge(
        &w, &a, false, SERVE(STAGE("x", 0, 1) "," STAGE("y[0]", 1, 2) "," STAGE("y[1]", 1, 2)));
    assert_int_equal(v.findings.n, 0);
    /* both links leave by the NIC of x, which passes 0.5 in all; long messages reach most of it */
    assert_true(v.metrics.tokens_per_s > 0.3 && v.metrics.tokens_per_s <= 0.5);
    hv_arena_free(&a);
    close_world(&w);
}

/** The least cut by counting all sets of stages: links are free, so what leaves a set is the
 * capacity of the stages in which tokens change sides. */
static double least_cut(const double *capacity, const int (*run)[2], size_t n, int layers)
{
    double least = HUGE_VAL;
    /* every stage has two sides, before and behind compute; source side sets of both */
    for (unsigned before = 0; before < 1U << n; before++) {
        for (unsigned behind = 0; behind < 1U << n; behind++) {
            double cut = 0;
            for (size_t i = 0; i < n; i++) {
                bool in = before >> i & 1, out = behind >> i & 1;
                cut += in && !out ? capacity[i] : 0;
                cut += !in && run[i][0] == 0 ? HUGE_VAL : 0;
                cut += out && run[i][1] == layers ? HUGE_VAL : 0;
                for (size_t k = 0; k < n; k++) {
                    bool follows = run[k][0] <= run[i][1] && run[i][1] < run[k][1];
                    cut += k != i && out && !(before >> k & 1) && follows ? HUGE_VAL : 0;
                }
            }
            least = fmin(least, cut);
        }
    }
    return least;
}

static void flows_equal_the_least_cut_of_small_placements(void **state)
{
    (void)state;
    enum { LAYERS = 3, STAGES = 5 };
    static const char *const devices[STAGES] = {"x", "y[0]", "y[1]", "y[2]", "y[3]"};
    struct world w;
    struct hv_rng rng;
    hv_rng_seed(&rng, 7);
    open_world(&w, nodes_text, MEASURED(LAYER(1) "," LAYER(1) "," LAYER(1)), one_token);
    for (int turn = 0; turn < 60; turn++) {
        struct hv_arena a = {0};
        struct hv_str body = {0};
        double capacity[STAGES];
        int run[STAGES][2];
        hv_str_adds(&body, "\"mode\":\"serve\",\"replicas\":[{\"stages\":[");
        for (size_t i = 0; i < STAGES; i++) {
            run[i][0] = i == 0 ? 0 : (int)hv_rng_below(&rng, LAYERS);
            int most = LAYERS - run[i][0];
            run[i][1] = i == 1 ? LAYERS : run[i][0] + 1 + (int)hv_rng_below(&rng, (uint64_t)most);
            capacity[i] = 1 / ((i == 0 ? 0.1 : 0.25) * (run[i][1] - run[i][0]));
            hv_str_addf(&body, "%s{\"devices\":\"%s\",\"layers\":[%d,%d]}", i > 0 ? "," : "",
                        devices[i], run[i][0], run[i][1]);
        }
        hv_str_adds(&body, "]}]");
        struct hv_verdict v = judge(&w, &a, false, hv_str_cstr(&body));
        double want = least_cut(capacity, (const int(*)[2])run, STAGES, LAYERS);
        assert_true(fabs(v.serving->max_tokens_per_s - want) <= 1e-6 * fmax(want, 1));
        assert_true(v.serving->max_tokens_per_s <= v.serving->bound_tokens_per_s * (1 + 1e-9));
        if (want > 0) {
            assert_near(v.metrics.tokens_per_s, want, 1e-6);
        }
        hv_str_free(&body);
        hv_arena_free(&a);
    }
    close_world(&w);
}

static void a_flow_that_does_not_hold_is_found(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, nodes_text, MEASURED(LAYER(1) "," LAYER(1) "," LAYER(1)), one_token);
#define THREE SERVE(STAGE("x", 0, 1) "," STAGE("y[0]", 1, 3) "," STAGE("y[1]", 2, 3)) ",\"flow\":"
    struct hv_verdict v = judge(&w, &a, false, THREE "[[\"source\",0,2],[0,1,2],[1,\"sink\",2]]");
    assert_int_equal(v.findings.n, 0);
    assert_near(v.metrics.tokens_per_s, 2, 1e-12);
    assert_near(v.serving->max_tokens_per_s, 2, 1e-9);
    v = judge(&w, &a, false, THREE "[[\"source\",0,3],[0,1,3],[1,\"sink\",3]]");
    assert_int_equal(count(&v, HV_V_CAPACITY), 1); /* y[0] passes 2 */
    assert_near(v.findings.items[0].by, 1, 1e-9);
    v = judge(&w, &a, false, THREE "[[\"source\",0,2],[0,1,1],[1,\"sink\",2]]");
    assert_int_equal(count(&v, HV_V_CAPACITY), 2); /* lost at stage 0, made at stage 1 */
    v = judge(&w, &a, false, THREE "[[\"source\",0,2],[0,2,2],[2,\"sink\",2]]");
    assert_int_equal(count(&v, HV_V_LAYERS_MISSING), 1); /* block 1 is skipped */
    v = judge(&w, &a, false, THREE "[[\"source\",1,1],[1,\"sink\",1]]");
    assert_int_equal(count(&v, HV_V_LAYERS_MISSING), 1); /* block 0 is skipped */
    hv_arena_free(&a);
    close_world(&w);
}

static const char small_gpt[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"gpt\",\"kind\":\"transformer\",\"layers\":24,"
    "\"hidden\":2560,\"heads\":32,\"kv_heads\":8,\"ffn\":10240,\"ffn_kind\":\"gelu\","
    "\"vocab\":51200,\"max_sequence\":8192}";

static void caches_hold_the_sequences_in_flight(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, cluster_text, small_gpt,
               "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":2048,"
               "\"output_tokens\":512,\"precision\":\"fp16\"}");
    struct hv_verdict v =
        judge(&w, &a, false,
              "\"mode\":\"serve\",\"micro_batch\":4,\"replicas\":[{\"count\":2,\"stages\":["
              "{\"devices\":\"a[0].0-3\",\"layers\":[0,12],\"tp\":2},"
              "{\"devices\":\"a[0].4-7\",\"layers\":[12,24],\"tp\":2}]}]");
    assert_int_equal(v.findings.n, 0);
    assert_int_equal(v.n_approximated, 0);
    const struct hv_serving *s = v.serving;
    assert_near(s->output_tokens, 512, 0);
    /* Little's law over both copies; a device keeps half the heads of 12 layers */
    double resident = s->requests_per_s * s->request_s / 2;
    double sequence = 2048.0 * 2 * (8 / 2) * (2560 / 32) * 2 * 12;
    assert_true(resident > 4);
    assert_near(s->stages[0].cache_bytes, resident * sequence, 1e-9);
    assert_near(s->request_s, s->first_token_s + 511 * s->next_token_s, 1e-9);
    for (size_t i = 0; i < s->n_stages; i++) {
        const struct hv_serve_stage *x = &s->stages[i];
        assert_near(x->capacity_tokens_per_s, 2 * 4 * 2048 / (x->prompt_s + 512 * x->token_s),
                    1e-9);
        /* every weight is read once for a token */
        double weights = v.memory[i].weights_bytes;
        assert_true(x->token_s > weights / 2.04e12);
    }
    assert_true(s->max_tokens_per_s <= s->bound_tokens_per_s);
    assert_true(s->queue.n > 0 && s->queue.no_room_frac == 0);
    /* requests may fill a hundredth of the room only: too little for those in flight */
    v = judge(&w, &a, false,
              "\"mode\":\"serve\",\"micro_batch\":64,\"cache_mark_frac\":0.01,\"replicas\":[{"
              "\"count\":2,\"stages\":["
              "{\"devices\":\"a[0].0-3\",\"layers\":[0,12],\"tp\":2},"
              "{\"devices\":\"a[0].4-7\",\"layers\":[12,24],\"tp\":2}]}]");
    assert_true(count(&v, HV_V_MEMORY) > 0);
    /* one that has no room for the caches */
    v = judge(&w, &a, false,
              "\"mode\":\"serve\",\"micro_batch\":4096,\"replicas\":[{\"stages\":["
              "{\"devices\":\"v[0].0\",\"layers\":[0,24]}]}]");
    assert_int_equal(count(&v, HV_V_MEMORY), 1);
    hv_arena_free(&a);
    close_world(&w);
}

static void stages_of_a_node_share_its_nics(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"pairs\",\"nodes\":[{\"name\":\"p\","
               "\"count\":2,\"device\":\"A100-SXM-80GB\",\"devices\":2,"
               "\"nic\":{\"bandwidth_GBps\":1,\"count\":2}}]}",
               "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"layers\":[{"
               "\"name\":\"l\",\"forward_ms\":{\"A100-SXM-80GB\":1},\"backward_ms\":{"
               "\"A100-SXM-80GB\":1},\"parameter_bytes\":0,\"activation_bytes\":0,"
               "\"output_bytes\":1000000000},{\"name\":\"k\",\"forward_ms\":{\"A100-SXM-80GB\":1},"
               "\"backward_ms\":{\"A100-SXM-80GB\":1},\"parameter_bytes\":0,"
               "\"activation_bytes\":0,\"output_bytes\":0}]}",
               one_token);
    struct hv_verdict v = judge(&w, &a, false,
                                SERVE(STAGE("p[0].0", 0, 1) "," STAGE("p[0].1", 0, 1) "," STAGE(
                                    "p[1].0", 1, 2) "," STAGE("p[1].1", 1, 2)));
    assert_int_equal(v.findings.n, 0);
    assert_int_equal(v.n_approximated, v.serving->max_tokens_per_s > 1 ? 1 : 0);
    assert_true(v.metrics.tokens_per_s <= 1 * (1 + 1e-9)); /* 1 GB/s for 1 GB tokens */
    hv_arena_free(&a);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oracle_of_the_catalogue),
        cmocka_unit_test(partial_inference_takes_up_where_the_other_ended),
        cmocka_unit_test(without_partial_inference_tokens_enter_where_a_stage_begins),
        cmocka_unit_test(links_and_nics_bound_the_flow),
        cmocka_unit_test(flows_equal_the_least_cut_of_small_placements),
        cmocka_unit_test(a_flow_that_does_not_hold_is_found),
        cmocka_unit_test(caches_hold_the_sequences_in_flight),
        cmocka_unit_test(stages_of_a_node_share_its_nics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
