/* The planner's finer moves: buckets, shards, cuts inside of blocks, unequal devices in a stage.
 * Each answer is set beside its neighbours, judged one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "tests/planner_fixture.h"

/* Devlin et al. 2019 */
static const char bert[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"bert-large\",\"kind\":\"transformer\",\"layers\":24,"
    "\"hidden\":1024,\"heads\":16,\"ffn\":4096,\"ffn_kind\":\"gelu\",\"vocab\":30522,"
    "\"tied_embeddings\":true,\"norm\":\"layernorm\",\"position\":\"learned\",\"causal\":false,"
    "\"max_sequence\":512}";
static const char job[] =
    "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":2048,\"precision\":\"fp16\","
    "\"optimizer\":\"adam\"}";

static void open_case(struct world *w, const char *nodes, const char *model, int batch)
{
    char cluster[1024], work[512];
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[%s],\"network\":{"
                   "\"bandwidth_GBps\":100,\"latency_us\":10}}",
                   nodes);
    (void)snprintf(work, sizeof work, job, batch);
    open_world(w, cluster, model, work);
}

/* Gradients that the NICs hold up: the default bucket is none of the best. */
static void no_other_bucket_is_better(void **state)
{
    (void)state;
    static const int mib[] = {10, 25, 50, 100, 200, 400};
    struct world w;
    open_case(&w,
              "{\"name\":\"h\",\"count\":8,\"device\":\"H100-SXM-80GB\",\"devices\":8,\"nic\":{"
              "\"bandwidth_GBps\":25}}",
              bert, 64);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    assert_true(r.plan->sync.bucket_bytes[0] != 25 * HV_MIB);
    for (size_t i = 0; i < HV_COUNT(mib); i++) {
        r.plan->sync.bucket_bytes[0] = mib[i] * HV_MIB;
        assert_true(r.iteration_s <= time_of(&w, r.plan) * (1 + 1e-9));
    }
    hv_plan_unref(r.plan);
    close_world(&w);
}

static int odd_cuts(const struct hv_plan *p)
{
    int n = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t s = 0; s < p->replicas[i].n_stages; s++) {
            for (size_t k = 0; k < p->replicas[i].stages[s].n_ranges; k++) {
                n += p->replicas[i].stages[s].ranges[k].to2 % 2;
            }
        }
    }
    return n;
}

/* Five large blocks that no device holds alone: whole ones do not balance over four stages. */
static void cuts_inside_of_blocks(void **state)
{
    (void)state;
    struct world w;
    open_case(&w,
              "{\"name\":\"v\",\"count\":4,\"device\":\"V100-SXM2-32GB\",\"devices\":1,\"nic\":{"
              "\"bandwidth_GBps\":1}}",
              "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":5,"
              "\"hidden\":5120,\"heads\":40,\"ffn\":20480,\"ffn_kind\":\"gelu\",\"vocab\":8000,"
              "\"max_sequence\":2048}",
              32);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    assert_true(odd_cuts(r.plan) > 0);
    assert_true(r.iteration_s == time_of(&w, r.plan));
    hv_plan_unref(r.plan);
    close_world(&w);
}

static bool shares_a_stage(const struct hv_stage *s, uint32_t a, uint32_t b)
{
    bool has[2] = {false, false};
    for (size_t i = 0; i < s->n_devices; i++) {
        has[0] = has[0] || s->devices[i] == a;
        has[1] = has[1] || s->devices[i] == b;
    }
    return has[0] && has[1];
}

/* One fast device and two slow ones: states sharded over all of them leave room for activations,
 * and the fast one takes most of every micro-batch. */
static void unlike_devices_share_a_stage(void **state)
{
    (void)state;
    struct world w;
    open_case(&w,
              "{\"name\":\"a\",\"count\":1,\"device\":\"A100-SXM-40GB\",\"devices\":1,\"nic\":{"
              "\"bandwidth_GBps\":25}},{\"name\":\"g\",\"count\":2,\"device\":\"A10G-24GB\","
              "\"devices\":1,\"nic\":{\"bandwidth_GBps\":25}}",
              bert, 64);
    struct hv_arena a = {0};
    struct hv_verdict by_hand =
        judge(&w, &a, false,
              "\"micro_batch\":16,\"replicas\":[{\"micro_batches\":4,\"stages\":[{\"devices\":["
              "\"g[0-1].0\",\"a[0].0\"],\"layers\":[0,24],\"dp\":3,\"shares\":[2,2,12],\"zero\":3}"
              "]}]");
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    assert_int_equal(by_hand.findings.n, 0);
    assert_true(r.iteration_s <= by_hand.metrics.iteration_s);
    assert_int_equal(r.plan->n_replicas, 1);
    assert_true(shares_a_stage(&r.plan->replicas[0].stages[0], 0, 1));
    assert_non_null(r.plan->replicas[0].stages[0].shares);
    hv_plan_unref(r.plan);
    hv_arena_free(&a);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_other_bucket_is_better),
        cmocka_unit_test(cuts_inside_of_blocks),
        cmocka_unit_test(unlike_devices_share_a_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
