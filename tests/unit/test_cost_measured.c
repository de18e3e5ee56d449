/* Layers measured by tensor-parallel degree and micro-batch: points as measured, straight lines
 * between them, rates beyond, what was not measured; the optimizer step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"

#include <math.h>

static const char measured_model[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"tp\":[1,2],"
    "\"micro_batch\":[1,2,4],\"layers\":[{\"name\":\"a\",\"forward_ms\":{\"A100-SXM-80GB\":"
    "[[10,16,null],[6,10,20]]},\"backward_ms\":{\"A100-SXM-80GB\":[[20,32,null],[12,20,40]]},"
    "\"update_ms\":{\"A100-SXM-80GB\":3},\"parameter_bytes\":2000000,\"output_bytes\":1000,"
    "\"parallel_frac\":0.5}]}";

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) {
        fail_msg("%.12g, expected %.12g", got, want);
    }
}

static double forward_ms(struct world *w, int tp, double sequences)
{
    uint32_t group[] = {0, 1, 2, 3};
    struct hv_part_query q = {.device = hv_cluster_device(w->in.cluster.cluster, 0).kind,
                              .tp = tp,
                              .cp = 1,
                              .ep = 1,
                              .cp_heads = 1,
                              .group = tp > 1 ? group : NULL,
                              .sequences = sequences,
                              .tokens = 2048};
    return hv_cost_part(w->cost, HV_PART_ATTENTION, 0, &q, NULL).forward_s / HV_MS;
}

static void times_follow_the_grid(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, cluster_text, measured_model, job_text);
    near(forward_ms(&w, 1, 1), 10);
    near(forward_ms(&w, 1, 2), 16);
    near(forward_ms(&w, 1, 4), 32); /* not measured: the rate of two */
    near(forward_ms(&w, 2, 3), 15); /* between 10 and 20 */
    near(forward_ms(&w, 2, 8), 40);
    near(forward_ms(&w, 4, 2), 10 * 0.75); /* Amdahl from two ranks on */
    const struct hv_device_kind *a100 = hv_cluster_device(w.in.cluster.cluster, 0).kind;
    near(hv_cost_optimizer_s(w.cost, a100, 1e6), 3e-3);
    /* no plan spends less: 16 ms for two sequences on one rank */
    near(hv_cost_floor_s(w.cost, HV_PART_ATTENTION, 0, a100), 24e-3);
    close_world(&w);
}

static void a_grid_has_all_its_rows(void **state)
{
    (void)state;
    static const char *const broken[] = {"[[1,2,3]]", "[[1,2,3],[1,2]]", "[[1,2,3],[1,2,-3]]"};
    for (size_t i = 0; i < HV_COUNT(broken); i++) {
        char text[512];
        struct hv_model_doc doc = {0};
        struct hv_err err = {0};
        (void)snprintf(
            text, sizeof text,
            "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"tp\":[1,"
            "2],\"micro_batch\":[1,2,4],\"layers\":[{\"forward_ms\":{\"A\":%s}}]}",
            broken[i]);
        assert_int_not_equal(hv_model_doc_build(&doc, parse(text, "m"), &err), HV_OK);
        assert_non_null(strstr(err.text, "layers[0].forward_ms.A"));
        hv_model_doc_free(&doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(times_follow_the_grid),
                                       cmocka_unit_test(a_grid_has_all_its_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
