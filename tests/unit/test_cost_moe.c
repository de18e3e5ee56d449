/* Experts and context parallelism: whole experts over tensor ranks, uneven owners, copies, shards,
 * chunks and forms of exchange; which ranks a mixed context group joins, and what its ring carries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/cost/part/part_int.h"
#include "tests/cost_fixture.h"

struct world {
    struct hv_cluster *cluster;
    struct hv_model *mixtral;
    struct hv_job job;
    struct hv_cost *k;
    struct fixture_plan p;
};

static int setup(void **state)
{
    struct world *w = hv_xcalloc(1, sizeof *w);
    w->cluster = fixture_cost_cluster();
    w->mixtral = fixture_mixtral();
    w->job = fixture_job(4096);
    w->k = hv_cost_new(w->cluster, w->mixtral, &w->job);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    hv_cost_free(w->k);
    hv_model_unref(w->mixtral);
    hv_cluster_unref(w->cluster);
    free(w);
    return 0;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(fabs(want), 1e-30))) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

static const uint32_t first_ranks[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

static struct hv_part_query query(int tp, int ep, const struct hv_moe_knobs *moe)
{
    return (struct hv_part_query){.device = &kind_a100,
                                  .tp = tp,
                                  .cp = 1,
                                  .ep = ep,
                                  .sequences = 1,
                                  .tokens = 4096,
                                  .sequence_parallel = tp > 1,
                                  .group = first_ranks,
                                  .ep_group = first_ranks,
                                  .moe = moe};
}

static struct hv_part_cost ffn(struct world *w, const struct hv_part_query *q)
{
    return hv_cost_part(w->k, HV_PART_FFN, 0, q, NULL);
}

static void spread(const struct hv_moe_knobs *m, int ep, double held, double work, double traffic)
{
    struct hv__spread s = hv__spread_of(m, 8, ep);
    near(s.held, held);
    near(s.work, work);
    near(s.traffic, traffic);
}

/* Eight experts on four ranks by hand: tokens of the busiest rank over a quarter of them all. */
static void test_busiest_rank(void **state)
{
    (void)state;
    struct hv_moe_knobs m = {0};
    hv_moe_defaults(&m);
    spread(NULL, 4, 2, 1, 1);
    spread(&m, 1, 8, 1, 1);
    m.expert_shards = 2;
    spread(&m, 4, 4, 1, 1);
    m.expert_shards = 1;
    int owners[] = {0, 0, 0, 0, 1, 1, 2, 3};
    m.owners = owners;
    m.n_owners = 8;
    spread(&m, 4, 4, 2, 2);
    m.expert_shards =
        2; /* rank 1 has the second shards of rank 0's four and the first of its two */
    spread(&m, 4, 6, 6.0 / 4, 6.0 / 4);
    m.expert_shards = 1;
    int even[] = {0, 0, 1, 1, 2, 2, 3, 3}, two = 2;
    m.owners = even;
    spread(&m, 4, 2, 1, 1);
    /* rank 2 has half the tokens of expert 0 besides its own two experts */
    struct hv_expert_copies copies[] = {{.expert = 0, .ranks = &two, .n_ranks = 1}};
    m.copies = copies;
    m.n_copies = 1;
    spread(&m, 4, 3, 2.5 / 2, 2.5 / 2);
    /* a quarter each, which nobody has to send */
    copies[0] = (struct hv_expert_copies){.expert = 0, .everywhere = true};
    spread(&m, 4, 3, 2.25 / 2, 1);
}

/* Cut by tensor ranks or whole on each: the same FLOPs and parameters; nothing left to reduce. */
static void test_whole_experts_over_tensor_ranks(void **state)
{
    struct world *w = *state;
    struct hv_part_query cut = query(8, 1, NULL), whole = query(8, 8, NULL);
    whole.expert_tp = 1;
    struct hv_part_cost a = ffn(w, &cut), b = ffn(w, &whole);
    near(b.flops_forward, a.flops_forward);
    near(b.expert_parameters, a.expert_parameters);
    near(b.saved_bytes, a.saved_bytes);
    assert_true(a.tp_forward_s > 0 && b.tp_forward_s == 0.0 && b.tp_backward_s == 0.0);
    /* one expert of 1024 rows is a better product than an eighth of eight of 8192 */
    assert_true(b.forward_s < a.forward_s);
    struct hv_collective_query c = {.op = HV_ALL_TO_ALL,
                                    .bytes = 2.0 * 4096 / 8 * 2 * 4096,
                                    .devices = first_ranks,
                                    .n = 8,
                                    .together = 1,
                                    .copies = 2};
    near(b.ep_forward_s, 2 * hv_cost_collective(w->cluster, &c, NULL).time_s);
    near(b.ep_backward_s, b.ep_forward_s);
    whole.sequence_parallel = false; /* each sends its share, then the sums are gathered */
    b = ffn(w, &whole);
    near(b.ep_forward_s, 2 * hv_cost_collective(w->cluster, &c, NULL).time_s);
    assert_true(b.tp_forward_s > 0);
    near(b.flops_forward, a.flops_forward + (2.0 * 4096 * 8 * 4096) * 7 / 8); /* router */
}

static struct hv_memory memory_of(struct world *w)
{
    struct hv_stage_query q = {.plan = &w->p.plan, .replica = &w->p.replica};
    struct hv_memory out;
    struct hv_err err = {0};
    if (hv_cost_memory(w->k, &q, &out, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return out;
}

/* tp 4 x dp 2 with ep 8: every expert sits once in a copy, its states shard over copies only. */
static void test_holders_of_whole_experts(void **state)
{
    struct world *w = *state;
    double experts = 32 * hv_block_expert_parameters(w->mixtral, w->mixtral->blocks);
    fixture_stages(&w->p, w->cluster, 32, 1, 2, 4);
    struct hv_stage *s = &w->p.stages[0];
    s->zero.stage = 1;
    s->sequence_parallel = true;
    struct hv_memory cut = memory_of(w);
    near(cut.expert_parameters, experts / 4);
    s->ep = 8;
    assert_int_equal(hv_stage_expert_tp(s, 8), 1);
    assert_int_equal(hv_stage_expert_tp(s, 2), 4);
    struct hv_memory whole = memory_of(w);
    near(whole.expert_parameters, experts / 8);
    near(whole.updated_parameters - experts / 8, cut.updated_parameters - experts / 4 / 2);
    w->p.replica.count = 2;
    s->n_devices = 16;
    double dense = whole.parameters - experts / 8;
    near(memory_of(w).updated_parameters, dense / 4 + experts / 8 / 2);
    s->dp = 4; /* tp 4 x dp 4 with ep 16: half an expert of room each, as owners may say */
    w->p.replica.count = 1;
    s->ep = 8;
    assert_int_equal(hv_stage_expert_tp(s, 8), 1);
    near(memory_of(w).updated_parameters, dense / 4 + experts / 8 / 2);
}

/* A pass prices the exchange over the eight consecutive ranks, not over every eighth. */
static void test_pass_groups(void **state)
{
    struct world *w = *state;
    fixture_stages(&w->p, w->cluster, 32, 1, 1, 8);
    struct hv_stage *s = &w->p.stages[0];
    s->sequence_parallel = true;
    s->ep = 8;
    struct hv_stage_query q = {.plan = &w->p.plan, .replica = &w->p.replica};
    struct hv_pass pass;
    assert_int_equal(hv_cost_pass(w->k, &q, &pass, NULL), HV_OK);
    struct hv_part_query pq = query(8, 8, NULL);
    pq.expert_tp = 1;
    struct hv_part_cost c = ffn(w, &pq);
    near(pass.ep_s, 32 * (c.ep_forward_s + c.ep_backward_s));
}

/* Ranks whose experts get unlike numbers of tokens: what each keeps, as summed beside the pass of
 * the first one, is what its own pass says, to the last digit, and all else is the same. */
static void test_peers(void **state)
{
    struct world *w = *state;
    enum { RANKS = 8 };
    static int owners[] = {0, 0, 1, 2, 3, 3, 3, 7};
    static int on[] = {2, 5};
    struct hv_expert_copies copies = {.expert = 1, .ranks = on, .n_ranks = 2};
    struct hv_moe_knobs m[2] = {{0}, {0}};
    static const unsigned masks[] = {HV_RC_NONE, HV_RC_OUT, HV_RC_FULL};
    for (size_t i = 0; i < HV_COUNT(masks); i++) {
        fixture_stages(&w->p, w->cluster, 32, 1, RANKS, 1);
        struct hv_stage *s = &w->p.stages[0];
        hv_moe_defaults(&m[0]);
        hv_moe_defaults(&m[1]);
        m[0].to = 20;
        m[0].owners = owners;
        m[0].n_owners = 8;
        m[1].from = 20;
        m[1].to = 32;
        m[1].copies = &copies;
        m[1].n_copies = 1;
        s->ep = RANKS;
        s->moe = m;
        s->n_moe = 2;
        s->recompute = masks[i];
        s->ranges[0].from2 = (int)i; /* half a block at the start of one of them */
        size_t ranks[RANKS - 1];
        struct hv_kept kept[RANKS - 1] = {{0}};
        struct hv_stage_query q = {.plan = &w->p.plan, .replica = &w->p.replica};
        struct hv_pass all, own;
        for (size_t r = 0; r + 1 < RANKS; r++) {
            ranks[r] = r + 1;
        }
        q.peers = (struct hv_peers){ranks, kept, RANKS - 1};
        assert_int_equal(hv_cost_pass(w->k, &q, &all, NULL), HV_OK);
        q.peers.n = 0;
        bool unlike = false;
        for (size_t r = 0; r + 1 < RANKS; r++) {
            q.dp_rank = (int)r + 1;
            assert_int_equal(hv_cost_pass(w->k, &q, &own, NULL), HV_OK);
            assert_true(kept[r].activation_bytes == own.activation_bytes);
            assert_true(kept[r].weight_only_bytes == own.weight_only_bytes);
            assert_true(kept[r].transient_bytes == own.transient_bytes);
            assert_true(own.forward_s == all.forward_s && own.input_grad_s == all.input_grad_s &&
                        own.weight_grad_s == all.weight_grad_s && own.ep_s == all.ep_s &&
                        own.recompute_s == all.recompute_s && own.flops == all.flops);
            unlike = unlike || kept[r].transient_bytes != all.transient_bytes ||
                     kept[r].activation_bytes != all.activation_bytes;
        }
        assert_true(unlike);
    }
}

/* Knobs change the price, also one after the other under one memo. */
static void test_knobs_are_priced(void **state)
{
    struct world *w = *state;
    struct hv_moe_knobs m = {0};
    hv_moe_defaults(&m);
    struct hv_part_query q = query(1, 8, &m);
    struct hv_part_cost plain = ffn(w, &q);
    int owners[] = {0, 0, 1, 2, 3, 4, 5, 6};
    m.owners = owners;
    m.n_owners = 8;
    struct hv_part_cost uneven = ffn(w, &q);
    near(uneven.expert_parameters, 2 * plain.expert_parameters);
    near(uneven.flops_forward, plain.flops_forward);
    assert_true(uneven.forward_s > plain.forward_s && uneven.ep_forward_s > plain.ep_forward_s);
    m.n_owners = 0;
    near(ffn(w, &q).forward_s, plain.forward_s);
    m.expert_shards = 2;
    struct hv_part_cost shards = ffn(w, &q);
    near(shards.expert_parameters, plain.expert_parameters);
    near(shards.flops_forward, plain.flops_forward);
    assert_true(shards.ep_forward_s > 1.5 * plain.ep_forward_s);
    m.expert_shards = 1;
    m.capacity_factor = 0.5;
    struct hv_part_cost half = ffn(w, &q); /* half of the tokens find no place */
    assert_true(half.ep_forward_s < plain.ep_forward_s && half.forward_s < plain.forward_s);
    assert_true(half.flops_forward < 0.51 * plain.flops_forward); /* besides the router's */
    assert_true(half.flops_forward > 0.5 * plain.flops_forward);
    m.min_capacity = 2048; /* two experts of eight each: 1024 tokens are the mean */
    struct hv_part_cost padded = ffn(w, &q);
    m.capacity_factor = 2;
    m.min_capacity = 0;
    near(padded.forward_s, ffn(w, &q).forward_s);
    assert_true(padded.forward_s > plain.forward_s);
    near(padded.flops_forward, plain.flops_forward);
}

/*
 * Dispatch by products with a one-hot tensor, by hand (GShard): of T = 1024 tokens with two of 8
 * experts each, C = 2 T / 8 = 256 places per expert at a capacity of 1, E C = 2048. Forward two
 * products of 2 T E C h FLOPs; backward one of the dispatch (its mask has no gradient) and two of
 * the combine. Two tensors of T E C values are written forward, and the gradient of one backward;
 * without them tokens are read and written four times each way.
 */
static void test_one_hot_dispatch(void **state)
{
    struct world *w = *state;
    struct hv_device_kind plain = kind_a100;
    plain.plain_rates = true;
    struct hv_moe_knobs m = {0};
    hv_moe_defaults(&m);
    m.kernel = HV_MOE_PADDED;
    struct hv_part_query q = query(1, 8, &m);
    q.device = &plain;
    for (int i = 0; i < 2; i++) {
        double factor = i + 1, t = 1024, ec = factor * 2048, h = 4096;
        double flops = 2 * t * ec * h, peak = plain.flops_per_s[HV_BF16];
        double values_s = 2 / plain.memory_bytes_per_s, sparse = 2 * t * h * (3 + factor);
        m.capacity_factor = factor;
        q.tokens = 1024;
        m.dispatch = HV_MOE_SPARSE;
        struct hv_part_cost sparse_cost = ffn(w, &q);
        m.dispatch = HV_MOE_ONE_HOT;
        struct hv_part_cost c = ffn(w, &q);
        near(c.forward_s - sparse_cost.forward_s,
             2 * flops / peak + values_s * (2 * t * ec - sparse));
        near(c.input_grad_s - sparse_cost.input_grad_s,
             3 * flops / peak + values_s * (t * ec - sparse));
        near(c.weight_grad_s, sparse_cost.weight_grad_s);
        near(c.saved_bytes - sparse_cost.saved_bytes, 2 * 2 * t * ec);
        near(c.flops_forward, sparse_cost.flops_forward); /* the model asks for none of them */
        near(c.ep_forward_s, sparse_cost.ep_forward_s);
        q.recompute = HV_RC_EXPERTS;
        near(ffn(w, &q).saved_bytes, (m.dispatch = HV_MOE_SPARSE, ffn(w, &q)).saved_bytes);
        q.recompute = 0;
    }
}

/* Chunks hide exchange under experts; thin products take more of it back. */
static void test_chunks(void **state)
{
    struct world *w = *state;
    struct hv_moe_knobs m = {0};
    hv_moe_defaults(&m);
    struct hv_part_query q = query(1, 8, &m);
    q.sequences = 16;
    struct hv_part_cost whole = ffn(w, &q);
    m.degree_forward = m.degree_backward = 4;
    struct hv_part_cost four = ffn(w, &q);
    assert_true(four.forward_s > whole.forward_s);
    assert_true(four.forward_s + four.ep_forward_s < whole.forward_s + whole.ep_forward_s);
    assert_true(four.ep_backward_s < whole.ep_backward_s);
    q.sequences = 1.0 / 256; /* 16 tokens: starts are all there is */
    struct hv_part_cost thin = ffn(w, &q);
    m.degree_forward = m.degree_backward = 1;
    whole = ffn(w, &q);
    assert_true(thin.forward_s + thin.ep_forward_s > whole.forward_s + whole.ep_forward_s);
    m.degree_forward = 4;
    struct hv_part_cost half = ffn(w, &q);
    near(half.ep_backward_s, whole.ep_backward_s);
    near(half.ep_forward_s, thin.ep_forward_s);
}

/* Over eight nodes: two hops in turn are never faster than pipelined ones; pipe is direct. */
static void test_forms_of_exchange(void **state)
{
    struct world *w = *state;
    struct hv_moe_knobs m = {0};
    hv_moe_defaults(&m);
    struct hv_part_query q = query(1, 64, &m);
    double t[hv_a2a_N];
    for (int i = 0; i < hv_a2a_N; i++) {
        m.all_to_all = (enum hv_a2a)i;
        t[i] = ffn(w, &q).ep_forward_s;
    }
    assert_true(t[HV_A2A_2DH] > t[HV_A2A_HIERARCHICAL]);
    /* seven messages inside the node do not wait for those between nodes: a fifth of 3 us each */
    near(t[HV_A2A_PIPE], t[HV_A2A_FLAT] - 2 * 7 * 0.2 * 3e-6);
    assert_true(t[HV_A2A_FLAT] > t[HV_A2A_HIERARCHICAL]); /* top 2 of 8 nodes: one copy each */
}

/* Eight tensor ranks with the same tokens, in two nodes: each sends an eighth of them to its own
 * peer of the other node, and the node gathers, sums and gathers again (Singh et al. 2023, TED). */
static void test_slices_of_tensor_ranks(void **state)
{
    struct world *w = *state;
    struct hv_moe_knobs m = {0};
    hv_moe_defaults(&m);
    m.all_to_all = HV_A2A_TP;
    const uint32_t peers[] = {0, 8};
    struct hv_part_query q = query(8, 2, &m);
    q.sequence_parallel = false;
    q.expert_tp = 8;
    q.ep_group = peers;
    q.beside.ep = 8;
    const double whole = 2.0 * 4096 * 2 * 4096; /* bytes of 4096 tokens, twice */
    struct hv_collective_query c = {.op = HV_ALL_TO_ALL,
                                    .bytes = whole / 8,
                                    .devices = peers,
                                    .n = 2,
                                    .algorithm = HV_ALGO_RING,
                                    .together = 8};
    double exchange_s = hv_cost_collective(w->cluster, &c, NULL).time_s;
    c = (struct hv_collective_query){
        .op = HV_ALL_GATHER, .bytes = whole, .devices = first_ranks, .n = 8, .together = 1};
    double gather_s = hv_cost_collective(w->cluster, &c, NULL).time_s;
    c.op = HV_REDUCE_SCATTER;
    double sum_s = hv_cost_collective(w->cluster, &c, NULL).time_s;
    double wait_s = hv_device_calibration(&kind_a100)->v[HV_CAL_EXCHANGE_US] * 1e-6;
    struct hv_part_cost p = ffn(w, &q);
    near(p.ep_forward_s, 2 * exchange_s);
    near(p.tp_forward_s, 2 * gather_s + sum_s + 3 * wait_s);
    near(p.tp_backward_s, p.tp_forward_s);
    near(p.sent.tp.forward, 3 * 7.0 / 8 * whole / 2);
    /* whole buffers over the network, and one sum of tokens inside, take longer */
    m.all_to_all = HV_A2A_FLAT;
    struct hv_part_cost flat = ffn(w, &q);
    assert_true(flat.ep_forward_s + flat.tp_forward_s > p.ep_forward_s + p.tp_forward_s);
    near(flat.saved_bytes, p.saved_bytes);
    /* tokens that are in slices anyway stay there at their source */
    q.sequence_parallel = true;
    m.all_to_all = HV_A2A_TP;
    struct hv_part_cost sp = ffn(w, &q);
    near(sp.ep_forward_s, p.ep_forward_s);
    near(sp.tp_forward_s, gather_s + sum_s + 2 * wait_s);
    near(sp.tp_backward_s, 2 * gather_s + sum_s + 3 * wait_s);
    /* one tensor rank has no copies to leave out */
    struct hv_part_query one = query(1, 8, &m);
    double alone_s = ffn(w, &one).ep_forward_s;
    m.all_to_all = HV_A2A_FLAT;
    near(ffn(w, &one).ep_forward_s, alone_s);
}

static struct hv_part_cost attention(struct world *w, const struct hv_part_query *q)
{
    return hv_cost_part(w->k, HV_PART_ATTENTION, 0, q, NULL);
}

/* Eight ranks of heads, rings of two over two nodes: all-to-alls belong inside a node. */
static void test_order_of_heads_and_ring(void **state)
{
    struct world *w = *state;
    struct hv_part_query q = query(1, 1, NULL);
    q.cp = 16;
    q.cp_scheme = HV_CP_USP;
    q.cp_heads = 8;
    q.cp_layout = HV_CP_ZIGZAG;
    q.sequences = 16;
    q.tokens = 4096;
    double inner = attention(w, &q).cp_forward_s;
    q.cp_order = HV_CP_RING_INNER;
    assert_true(attention(w, &q).cp_forward_s > inner);
    /* all heads: order is nothing */
    q.cp_heads = 16;
    double across = attention(w, &q).cp_forward_s;
    q.cp_order = HV_CP_HEADS_INNER;
    near(attention(w, &q).cp_forward_s, across);
}

/* Eight key-value heads of 32: sending queries is more (3 x 32 against 4 x 8 heads). */
static void test_what_a_ring_sends_back(void **state)
{
    struct world *w = *state;
    struct hv_part_query q = query(1, 1, NULL);
    q.cp = 8;
    q.cp_layout = HV_CP_ZIGZAG;
    q.tokens = 2048; /* too short to hide anything much */
    struct hv_part_cost keys = attention(w, &q);
    q.cp_backward = HV_CP_Q_DO;
    struct hv_part_cost queries = attention(w, &q);
    near(queries.cp_forward_s, keys.cp_forward_s);
    assert_true(queries.cp_backward_s > keys.cp_backward_s && keys.cp_backward_s > 0);
    q.tokens = 1 << 20; /* and here all hides: what is left is the slowdown */
    struct hv_part_cost hidden = attention(w, &q);
    assert_true(hidden.cp_forward_s <= 0.2 * hidden.forward_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_busiest_rank),
        cmocka_unit_test(test_whole_experts_over_tensor_ranks),
        cmocka_unit_test(test_holders_of_whole_experts),
        cmocka_unit_test(test_pass_groups),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_knobs_are_priced),
        cmocka_unit_test(test_one_hot_dispatch),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_forms_of_exchange),
        cmocka_unit_test(test_slices_of_tensor_ranks),
        cmocka_unit_test(test_order_of_heads_and_ring),
        cmocka_unit_test(test_what_a_ring_sends_back),
    };
    return cmocka_run_group_tests_name("cost_moe", tests, setup, teardown);
}
