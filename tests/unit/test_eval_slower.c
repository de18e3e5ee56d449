/** Parts that, made faster, make a plan slower: found by simulation, and none where there is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/eval/slower.h"
#include "solver/inventory/faster.h"
#include "tests/eval_fixture.h"
#include "tests/random_world.h"

static struct hv_plan *plan_of(struct world *w, struct hv_plan_doc *doc, const char *body)
{
    char text[8192];
    struct hv_err err = {0};
    (void)snprintf(text, sizeof text, "{\"format\":\"hetviz.plan/1\",%s}", body);
    if (hv_plan_doc_build(doc, parse(text, "p"), w->in.cluster.cluster, &err) != HV_OK) {
        fail_msg("plan: %s", err.text);
    }
    return doc->plan;
}

static double iteration_s(struct hv_cost *k, const struct hv_plan *p)
{
    struct hv_arena a = {0};
    struct hv_verdict v;
    struct hv_eval_options o = {.no_bound = true};
    assert_int_equal(hv_eval(k, p, &o, &a, &v, NULL), HV_OK);
    double t = v.metrics.iteration_s;
    hv_arena_free(&a);
    return t;
}

static const char *const cluster =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"x\",\"nodes\":[{\"name\":\"a\",\"count\":1,"
    "\"device\":\"V100-SXM2-16GB\",\"devices\":4,\"nic\":{\"bandwidth_GBps\":%g,\"latency_us\":12}}"
    ","
    "{\"name\":\"b\",\"count\":1,\"device\":\"V100-SXM2-32GB\",\"devices\":2,\"nic\":{"
    "\"bandwidth_GBps\":400,\"latency_us\":7},\"intra\":{\"kind\":\"nvswitch\","
    "\"bandwidth_GBps\":300}},{\"name\":\"c\",\"count\":2,\"device\":\"A100-SXM-80GB\","
    "\"devices\":4,\"nic\":{\"bandwidth_GBps\":400,\"latency_us\":13}}],"
    "\"network\":{\"bandwidth_GBps\":%g,\"latency_us\":5}}";

static const char model[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"x\",\"kind\":\"transformer\",\"layers\":4,"
    "\"hidden\":4096,\"heads\":64,\"kv_heads\":16,\"ffn\":10922,\"ffn_kind\":\"swiglu\","
    "\"vocab\":32000,\"max_sequence\":4096,\"tied_embeddings\":true}";
static const char job[] =
    "{\"format\":\"hetviz.job/1\",\"global_batch\":128,\"sequence\":2048,\"precision\":\"fp16\","
    "\"optimizer\":\"sgd\",\"memory_reserve_GiB\":9}";
/** Two copies whose stages send over the same slow network. */
static const char plan[] =
    "\"micro_batch\":1,\"replicas\":[{\"count\":2,\"micro_batch\":16,\"micro_batches\":4,"
    "\"stages\":["
    "{\"devices\":\"a[0].0,a[0].1,a[0].2,c[0].1,c[0].2,c[0].3\",\"layers\":[[0,2],[3,4]],\"dp\":3,"
    "\"recompute\":\"none\",\"tp\":1,\"cp\":1,\"zero\":0,\"shares\":[6,5,5],\"offload\":["
    "{\"what\":\"optimizer\"}]},{\"devices\":\"a[0].3,b[0].0,b[0].1,c[0].0,c[1].0,c[1].1,c[1].2,"
    "c[1].3\",\"layers\":[[2,2.5],[2.5,3]],\"dp\":2,\"recompute\":\"none\",\"tp\":2,\"cp\":1,"
    "\"zero\":{\"stage\":2,\"reduce\":\"each\",\"prefetch\":0},\"sequence_parallel\":true,"
    "\"ep\":4,\"offload\":[{\"what\":\"optimizer\"}]}]}],"
    "\"schedule\":{\"name\":\"1f1b-v\"},\"sync\":{\"overlap\":true}";

static void open_case(struct world *w, double nic_gbps, double network_gbps)
{
    char text[2048];
    (void)snprintf(text, sizeof text, cluster, nic_gbps, network_gbps);
    open_world(w, text, model, job);
}

/** Seconds of an iteration of the plan with one part of the cluster twice as fast. */
static double with_faster(struct world *w, const struct hv_plan *p,
                          const struct hv_cluster_part *part)
{
    struct hv_cluster *c = hv_cluster_faster(w->in.cluster.cluster, part, HV_SLOWER_TIMES);
    struct hv_cost *k = hv_cost_new(c, w->in.model.model, &w->in.job.job);
    double t = iteration_s(k, p);
    hv_cost_free(k);
    hv_cluster_unref(c);
    return t;
}

/** A faster part is what a file with the larger figure describes. */
static void a_part_is_as_fast_as_written(void **state)
{
    static const struct {
        struct hv_cluster_part part;
        double nic_gbps, network_gbps;
        const char *name;
    } cases[] = {{{HV_PART_OF_NIC, 0}, 100, 3, "NICs of a"},
                 {{HV_PART_OF_NETWORK, 0}, 50, 6, "network"}};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct world w, other;
        struct hv_plan_doc doc, written;
        struct hv_str name = {0};
        open_case(&w, 50, 3);
        open_case(&other, cases[i].nic_gbps, cases[i].network_gbps);
        double t = with_faster(&w, plan_of(&w, &doc, plan), &cases[i].part);
        assert_true(t == iteration_s(other.cost, plan_of(&other, &written, plan)));
        hv_cluster_part_text(w.in.cluster.cluster, &cases[i].part, &name);
        assert_string_equal(hv_str_cstr(&name), cases[i].name);
        hv_str_free(&name);
        hv_plan_doc_free(&doc);
        hv_plan_doc_free(&written);
        close_world(&w);
        close_world(&other);
    }
}

/** The rows are those parts, of all the cluster has, that a plain loop finds. Returns how many. */
static size_t check_rows(struct world *w, const struct hv_plan *p)
{
    struct hv_arena a = {0};
    struct hv_cluster_part *parts = NULL;
    struct hv_slower *rows = NULL;
    size_t n_rows = 0, n_found = 0;
    double before_s = iteration_s(w->cost, p);
    assert_int_equal(hv_eval_slower(w->cost, p, before_s, NULL, &a, &rows, &n_rows, NULL), HV_OK);
    size_t n = hv_cluster_parts(p->cluster, &a, &parts);
    for (size_t i = 0; i < n && hv_known(before_s); i++) {
        double after_s = with_faster(w, p, &parts[i]);
        struct hv_str name = {0};
        bool told = false;
        hv_cluster_part_text(p->cluster, &parts[i], &name);
        for (size_t k = 0; k < n_rows; k++) {
            told = told || (strstr(rows[k].text, hv_str_cstr(&name)) != NULL &&
                            rows[k].iteration_s == after_s);
        }
        assert_int_equal(told, after_s > before_s * (1 + HV_SLOWER_FRAC));
        n_found += told;
        hv_str_free(&name);
    }
    assert_int_equal(n_rows, n_found);
    hv_arena_free(&a);
    return n_rows;
}

static void rows_are_what_simulation_shows(void **state)
{
    struct world w;
    struct hv_plan_doc doc;
    (void)state;
    open_case(&w, 50, 3);
    assert_true(check_rows(&w, plan_of(&w, &doc, plan)) > 0);
    hv_plan_doc_free(&doc);
    close_world(&w);
}

static void rows_of_random_plans(void **state)
{
    struct hv_rng r;
    (void)state;
    hv_rng_seed(&r, 11);
    for (int i = 0; i < 40; i++) {
        struct hv_str texts[4] = {{0}};
        struct places p;
        struct world w;
        struct hv_plan_doc doc;
        random_cluster(&r, &texts[0], &p);
        random_model(&r, &texts[1], &p);
        int batch = random_job(&r, &texts[2]);
        open_world(&w, hv_str_cstr(&texts[0]), hv_str_cstr(&texts[1]), hv_str_cstr(&texts[2]));
        if (random_plan(&r, &texts[3], &p, batch)) {
            (void)check_rows(&w, plan_of(&w, &doc, hv_str_cstr(&texts[3])));
            hv_plan_doc_free(&doc);
        }
        close_world(&w);
        for (size_t k = 0; k < HV_COUNT(texts); k++) {
            hv_str_free(&texts[k]);
        }
    }
}

/** An observer that asks to stop ends the trials. */
static void trials_can_be_stopped(void **state)
{
    struct world w;
    struct hv_plan_doc doc;
    struct hv_arena a = {0};
    struct hv_eval_watch watch;
    struct hv_slower *rows = NULL;
    size_t n = 0;
    (void)state;
    atomic_init(&watch.permille, 0);
    atomic_init(&watch.stop, true);
    open_case(&w, 50, 3);
    const struct hv_plan *p = plan_of(&w, &doc, plan);
    assert_int_equal(hv_eval_slower(w.cost, p, iteration_s(w.cost, p), &watch, &a, &rows, &n, NULL),
                     HV_ESTOPPED);
    hv_arena_free(&a);
    hv_plan_doc_free(&doc);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_as_fast_as_written),
        cmocka_unit_test(rows_are_what_simulation_shows),
        cmocka_unit_test(rows_of_random_plans),
        cmocka_unit_test(trials_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
