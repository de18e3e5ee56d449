/** Kernels of experts on one device: rows that they compute, keep and move for loads of 300, 10, 129
 * and 73 of 512 rows (256 tokens that go to two of four experts), by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/base/why.h"
#include "tests/eval_fixture.h"

/** A device of plain rates, 10 GFLOP/s and memory that takes no time beside them; fp32 values. */
static const char plain_cluster[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\",\"count\":1,"
    "\"device\":\"P\",\"devices\":1}],\"devices\":{\"P\":{\"memory_GiB\":80,\"bandwidth_GBps\":1e6,"
    "\"dense_TFLOPS\":{\"fp32\":0.01},\"rates\":\"plain\"}}}";
static const char experts_model[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"moe\",\"kind\":\"transformer\",\"layers\":1,"
    "\"hidden\":1024,\"heads\":16,\"kv_heads\":16,\"ffn\":4096,\"ffn_kind\":\"gelu\",\"vocab\":1000,"
    "\"max_sequence\":256,\"moe\":{\"experts\":4,\"top_k\":2,\"ffn\":2048}}";
static const char loads_job[] =
    "{\"format\":\"hetviz.job/1\",\"global_batch\":1,\"sequence\":256,\"precision\":\"fp32\","
    "\"optimizer\":\"none\",\"routing\":{\"kind\":\"trace\",\"counts\":[[[[300,10,129,73]]]]}}";

enum { H = 1024, F = 2048, ROWS = 512, BLOCKS = 896, FULLEST = 1200 };

static int setup_kernels(void **state)
{
    static struct world w;
    open_world(&w, plain_cluster, experts_model, loads_job);
    *state = &w;
    return 0;
}

static struct hv_part_cost cost_of(struct world *w, enum hv_moe_kernel kernel, double capacity,
                                   struct hv_why *why)
{
    struct hv_moe_knobs m = {0};
    hv_moe_defaults(&m);
    m.kernel = kernel;
    m.capacity_factor = capacity;
    const struct hv_part_query q = {.device = hv_cluster_device(w->in.cluster.cluster, 0).kind,
                                    .tp = 1,
                                    .cp = 1,
                                    .ep = 1,
                                    .expert_tp = 1,
                                    .sequences = 1,
                                    .tokens = 256,
                                    .moe = &m,
                                    .routed = {.cls = 1, .of = 1}};
    return hv_cost_part(w->cost, HV_PART_FFN, 0, &q, why);
}

static void near_to(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fabs(want))) {
        fail_msg("%.12g instead of %.12g", got, want);
    }
}

/** Rows of the products, as their seconds show them beside those of grouped products, which have a
 * row for every token. */
static double rows_of(struct world *w, enum hv_moe_kernel kernel, double capacity)
{
    double more_s = cost_of(w, kernel, capacity, NULL).forward_s -
                    cost_of(w, HV_MOE_GROUPED, 0, NULL).forward_s;
    return ROWS + more_s * 0.01e12 / (2.0 * 2 * H * F);
}

/** Blocks of 128: 384 + 128 + 256 + 128 rows, at the rate of block-sparse products; tiles the same
 * at that of grouped ones. Batched products: the fullest expert four times, or a capacity of 128
 * each, with which 172 + 1 rows find no place (Gale et al. 2023; Tan et al. 2024). */
static void rows_are_padded(void **state)
{
    near_to(rows_of(*state, HV_MOE_BLOCK, 0), BLOCKS / 0.986);
    near_to(rows_of(*state, HV_MOE_SCATTER, 0), BLOCKS);
    near_to(rows_of(*state, HV_MOE_PADDED, 0), FULLEST);
    near_to(rows_of(*state, HV_MOE_PADDED, 1), 4 * 128);
    near_to(rows_of(*state, HV_MOE_PADDED, 2), 4 * 256);
    near_to(cost_of(*state, HV_MOE_PADDED, 1, NULL).dropped_frac, 173.0 / 512);
    near_to(cost_of(*state, HV_MOE_GROUPED, 1, NULL).dropped_frac, 173.0 / 512);
    assert_true(cost_of(*state, HV_MOE_BLOCK, 0, NULL).dropped_frac <= 0);
    /* blocks of what a capacity of 128 leaves: 128, 128, 128 and 128 */
    near_to(rows_of(*state, HV_MOE_BLOCK, 1), 4 * 128 / 0.986);
    /* FLOPs of the model are those of its tokens */
    near_to(cost_of(*state, HV_MOE_BLOCK, 0, NULL).flops_forward,
            cost_of(*state, HV_MOE_GROUPED, 0, NULL).flops_forward);
}

/** Gathered copies are kept in the size of the padded rows, 917,504 values for blocks; kernels that
 * read tokens where they are keep none: the 262,144 values of the input are there already. */
static void copies_are_kept(void **state)
{
    double grouped = cost_of(*state, HV_MOE_GROUPED, 0, NULL).saved_bytes / 4;
    double block = cost_of(*state, HV_MOE_BLOCK, 0, NULL).saved_bytes / 4;
    double scatter = cost_of(*state, HV_MOE_SCATTER, 0, NULL).saved_bytes / 4;
    double padded = cost_of(*state, HV_MOE_PADDED, 0, NULL).saved_bytes / 4;
    double tokens = 256.0 * H; /* the input, and once more after the norm, beside the experts */
    near_to(scatter, 2 * tokens + 1.0 * ROWS * H + 2.0 * ROWS * F);
    near_to(grouped, scatter + 1.0 * ROWS * H);
    near_to(block, 2 * tokens + 917504 * 2.0 + 2.0 * BLOCKS * F);
    near_to(padded, 2 * tokens + 2.0 * FULLEST * H + 2.0 * FULLEST * F);
}

/** Values read and written around the products: gathered, and combined with their weights. */
static void moved_values(struct world *w, enum hv_moe_kernel kernel, double forward,
                         double backward)
{
    struct hv_arena a = {0};
    struct hv_why why = {.arena = &a};
    (void)cost_of(w, kernel, 0, &why);
    for (size_t i = 0; i < why.n; i++) {
        if (strcmp(why.terms[i].name, "dispatch and combine") == 0) {
            near_to(why.terms[i].work.bytes, 4 * forward * H);
            near_to(why.terms[i].work.backward_bytes, 4 * backward * H);
            hv_arena_free(&a);
            return;
        }
    }
    fail_msg("nothing is moved");
}

static void tokens_are_moved(void **state)
{
    moved_values(*state, HV_MOE_GROUPED, 4 * ROWS, 4 * ROWS);
    moved_values(*state, HV_MOE_BLOCK, 3 * ROWS + BLOCKS, 3 * ROWS + BLOCKS);
    moved_values(*state, HV_MOE_PADDED, 3 * ROWS + FULLEST, 3 * ROWS + FULLEST);
    moved_values(*state, HV_MOE_SCATTER, 1.5 * ROWS, 4 * ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_padded),
        cmocka_unit_test(copies_are_kept),
        cmocka_unit_test(tokens_are_moved),
    };
    return cmocka_run_group_tests_name("cost_kernels", tests, setup_kernels, teardown);
}
