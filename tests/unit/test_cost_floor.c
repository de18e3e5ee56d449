/* The floor is under every price: random parts, ways of running them, devices and shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/rng.h"
#include "tests/cost_fixture.h"

static const struct hv_device_kind *const kinds[] = {&kind_a100, &kind_h100, &kind_v100,
                                                     &kind_mi300};
static const uint32_t first_device[] = {0, 128, 192, 256};

static int pick(struct hv_rng *r, int n)
{
    return (int)hv_rng_below(r, (uint64_t)n);
}

static struct hv_block random_block(struct hv_rng *r)
{
    struct hv_block b = {.heads = 1 << pick(r, 6), .head_dim = 8 << pick(r, 5)};
    b.kv_heads = b.heads >> pick(r, 3);
    b.kv_heads = b.kv_heads ? b.kv_heads : 1;
    if (pick(r, 4) == 0) {
        b.mla = (struct hv_mla){pick(r, 2) * 1536, 512, 64, 128, 128};
    }
    b.window = pick(r, 3) ? 0 : 1 + pick(r, 4096);
    b.ffn_kind = (enum hv_ffn_kind)pick(r, HV_FFN_KIND_N);
    b.ffn = 1 + pick(r, 20000);
    if (pick(r, 3) == 0) {
        b.ffn = 0;
        b.experts = 4 << pick(r, 5);
        b.top_k = 1 + pick(r, 4);
        b.expert_ffn = 1 + pick(r, 4000);
        b.shared_experts = pick(r, 2);
        b.shared_ffn = 1024;
    }
    return b;
}

static struct hv_model *random_model(struct hv_rng *r)
{
    struct hv_model *m = fixture_blocks(1, random_block(r));
    m->hidden = 1 + pick(r, 9000);
    m->vocab = 1 + pick(r, 200000);
    m->causal = pick(r, 2);
    m->position = (enum hv_position_kind)pick(r, HV_POSITION_KIND_N);
    m->norm = (enum hv_norm_kind)pick(r, HV_NORM_KIND_N);
    return m;
}

static struct hv_part_query random_query(struct hv_rng *r, const struct hv_job *j, size_t kind)
{
    struct hv_part_query q = {.device = kinds[kind],
                              .tp = 1 << pick(r, 4),
                              .cp = 1 << pick(r, 3),
                              .ep = 1 << pick(r, 3),
                              .tp_scheme = HV_TP_1D,
                              .cp_scheme = pick(r, 2) ? HV_CP_RING : HV_CP_ULYSSES,
                              .cp_layout = (enum hv_cp_layout)pick(r, hv_cp_layout_N),
                              .sequence_parallel = pick(r, 2),
                              .sequences = pick(r, 2) ? 1 + pick(r, 64) : hv_rng_double(r) + 0.01,
                              .tokens = (double)j->sequence,
                              .recompute = (unsigned)pick(r, HV_RC_FULL + 1)};
    q.expert_tp = pick(r, 2);
    q.sharded_weights = pick(r, 2);
    q.cp_heads = 1 << pick(r, 3);
    q.cp_heads = q.cp_heads < q.cp ? q.cp_heads : 1;
    q.cp_order = (enum hv_cp_order)pick(r, hv_cp_order_N);
    q.cp_backward = (enum hv_cp_backward)pick(r, hv_cp_backward_N);
    if (pick(r, 4) == 0) {
        q.tp_scheme = HV_TP_2D;
        q.tp = 4;
        q.expert_tp = 0;
    }
    return q;
}

enum { MOST_EXPERTS = 64 };

static void random_knobs(struct hv_rng *r, const struct hv_block *b, int ep, int *owners,
                         struct hv_moe_knobs *m)
{
    struct hv_expert_copies *copies = m->copies;
    hv_moe_defaults(m);
    m->copies = copies;
    m->capacity_factor = pick(r, 2) * (1 + hv_rng_double(r)); /* floors are of all tokens */
    m->min_capacity = pick(r, 2) * pick(r, 5000);
    m->expert_shards = 1 << pick(r, 3);
    m->degree_forward = 1 + pick(r, 4);
    m->degree_backward = 1 + pick(r, 4);
    m->all_to_all = (enum hv_a2a)pick(r, hv_a2a_N);
    m->kernel = (enum hv_moe_kernel)pick(r, hv_moe_kernel_N);
    m->order = (enum hv_moe_order)pick(r, hv_moe_order_N);
    m->compress_ratio = 1 + 3 * pick(r, 2);
    m->compress_bytes_per_s = 1e11;
    m->off_node_frac = pick(r, 2) ? HV_UNKNOWN : hv_rng_double(r);
    for (int i = 0; i < b->experts; i++) {
        owners[i] = pick(r, ep);
    }
    m->owners = owners;
    m->n_owners = pick(r, 2) ? (size_t)b->experts : 0;
    m->n_copies = b->experts ? (size_t)pick(r, 2) : 0;
    m->copies[0] = (struct hv_expert_copies){
        .expert = b->experts ? pick(r, b->experts) : 0, .everywhere = pick(r, 2), .ranks = owners};
    m->copies[0].n_ranks = m->copies[0].everywhere ? 0 : (size_t)(1 + pick(r, 4));
}

static double spent_s(const struct hv_part_cost *c)
{
    return c->forward_s + c->input_grad_s + c->weight_grad_s + c->recompute_s + c->tp_forward_s +
           c->tp_backward_s + c->cp_forward_s + c->cp_backward_s + c->ep_forward_s +
           c->ep_backward_s;
}

/* Some cell with the size of the pass lies under what every rank spends in it, in its chain, in its
 * forward pass and behind that. */
static bool above_a_cell(const struct hv_cost_cell *cells, size_t n, const struct hv_part_query *q,
                         const struct hv_part_cost *c)
{
    double x = q->sequences / q->cp / q->tp;
    double chain = c->forward_s + c->tp_forward_s + c->input_grad_s + c->tp_backward_s;
    double all = chain + c->weight_grad_s, forward = c->forward_s + c->tp_forward_s;
    const double spent[HV_COST_OF_N] = {all, chain, forward, all - forward};
    for (size_t i = 0; i < n; i++) {
        const struct hv_cost_cell *y = &cells[i];
        bool under = x > y->least && x <= y->most;
        for (int of = 0; of < HV_COST_OF_N; of++) {
            under = under && y->of[of].start_s + x * y->of[of].each_s <= spent[of] * (1 + 1e-12);
        }
        if (under) {
            return true;
        }
    }
    return false;
}

/* Do keys and values split or copy evenly over the ranks? */
static bool even(const struct hv_block *b, int tp)
{
    return b->heads % tp == 0 && (b->mla.kv_rank || b->kv_heads % tp == 0 || tp % b->kv_heads == 0);
}

/* Only of one-dimensional tensor parallelism that divides the heads over ranks that have a place,
 * in passes that fit into memory, as valid plans do. */
static void check_cells(struct hv_cost *k, enum hv_part part, const struct hv_part_query *q)
{
    const struct hv_model *m = hv_cost_model(k);
    struct hv_part_query own = *q;
    own.sequences = fmin(own.sequences, (double)hv_cost_job(k)->global_batch);
    struct hv_part_cost c = hv_cost_part(k, part, 0, &own, NULL);
    const struct hv_cost_by_size *floor = hv_cost_by_size(k, part, 0, q->device);
    const struct hv_cost_cell *cells = floor->cells;
    size_t n = floor->n_cells;
    assert_in_range(n, 1, HV_COST_CELLS);
    for (size_t i = 0; i < n; i++) {
        assert_true(cells[i].of[HV_COST_ALL].each_s >=
                    hv_cost_floor_s(k, part, 0, q->device) * (1 - 1e-12));
    }
    if (q->tp_scheme != HV_TP_1D || !even(&m->blocks[0], q->tp) || (q->tp > 1 && !q->group) ||
        c.transient_bytes > hv_cost_usable_bytes(k, q->device)) {
        return;
    }
    if (!above_a_cell(cells, n, &own, &c)) {
        fail_msg("part %d on %s, tp %d, %g sequences of %g tokens: no cell is under it", part,
                 q->device->name, q->tp, own.sequences, q->tokens);
    }
}

static void check_one(struct hv_rng *r, struct hv_cluster *c, bool cells)
{
    static const enum hv_precision precisions[] = {HV_BF16, HV_FP16, HV_FP8, HV_FP32};
    static uint32_t ids[32];
    struct hv_model *m = random_model(r);
    struct hv_job j = fixture_job(1 + pick(r, pick(r, 2) ? 64 : 100000));
    j.precision = precisions[pick(r, 4)];
    struct hv_cost *k = hv_cost_new(c, m, &j);
    size_t kind = (size_t)pick(r, 4);
    struct hv_part_query q = random_query(r, &j, kind);
    int owners[MOST_EXPERTS];
    struct hv_expert_copies copies;
    struct hv_moe_knobs moe = {.copies = &copies};
    random_knobs(r, m->blocks, q.ep, owners, &moe);
    q.moe = pick(r, 2) ? &moe : NULL;
    for (uint32_t i = 0; i < HV_COUNT(ids); i++) {
        ids[i] = first_device[kind] + (kind == 3 ? i % 8 : i);
    }
    q.group = pick(r, 2) ? ids : NULL;
    for (int part = 0; part < HV_PART_N; part++) {
        double floor_s = hv_cost_floor_s(k, (enum hv_part)part, 0, kinds[kind]);
        struct hv_part_cost cost = hv_cost_part(k, (enum hv_part)part, 0, &q, NULL);
        double each = spent_s(&cost) * q.tp * q.cp / q.sequences;
        if (!hv_device_has(kinds[kind], j.precision)) {
            assert_true(part == HV_PART_EMBEDDING || !hv_known(floor_s) || floor_s == 0.0);
            continue;
        }
        assert_true(floor_s >= 0);
        if (!(floor_s <= each * (1 + 1e-12))) {
            fail_msg("part %d on %s: floor %.17g s above %.17g s", part, kinds[kind]->name, floor_s,
                     each);
        }
        if (cells) {
            check_cells(k, (enum hv_part)part, &q);
        }
    }
    hv_cost_free(k);
    hv_model_unref(m);
}

static void test_floor_is_under_every_price(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cost_cluster();
    struct hv_rng r;
    hv_rng_seed(&r, 2);
    for (int i = 0; i < 20000; i++) {
        check_one(&r, c, i % 8 == 0);
    }
    hv_cluster_unref(c);
}

/* Slices of a sequence cost at least the floor of the whole. */
static void test_slices_stay_above(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cost_cluster();
    struct hv_model *m = fixture_llama();
    struct hv_job j = fixture_job(8192);
    struct hv_cost *k = hv_cost_new(c, m, &j);
    struct hv_part_query q = {.device = &kind_h100, .tp = 1, .cp = 1, .ep = 1, .sequences = 1};
    double sum = 0;
    for (q.context = 0, q.tokens = 1024; q.context < 8192; q.context += 1024) {
        struct hv_part_cost p = hv_cost_part(k, HV_PART_ATTENTION, 0, &q, NULL);
        sum += spent_s(&p);
    }
    double floor_s = hv_cost_floor_s(k, HV_PART_ATTENTION, 0, &kind_h100);
    assert_true(floor_s <= sum);
    assert_true(floor_s >= 0.8 * sum); /* and it is not far below a good price */
    hv_cost_free(k);
    hv_model_unref(m);
    hv_cluster_unref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floor_is_under_every_price),
        cmocka_unit_test(test_slices_stay_above),
    };
    return cmocka_run_group_tests_name("cost_floor", tests, NULL, NULL);
}
