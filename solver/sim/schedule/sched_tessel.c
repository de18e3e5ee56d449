/*
 * Tessel (HPCA'24) on a chain of stages: the repetend of shortest period within a memory limit,
 * repeated. The search itself stands in tessel.c.
 */
#include "solver/sim/schedule/schedule_int.h"
#include "solver/sim/schedule/tessel.h"

/* block k of a chain runs the forward of stage k, or the backward of stage 2p − 1 − k */
static int32_t stage_of(int32_t p, int32_t block)
{
    return block < p ? block : 2 * p - 1 - block;
}

static void add_orders(const struct hv_schedule_input *in, const struct hv_tessel_run *runs,
                       struct hv_schedule_builder *b)
{
    int32_t p = in->ranks;
    size_t n = 2 * (size_t)p * (size_t)in->micro_batches;
    for (int32_t r = 0; r < p; r++) {
        for (size_t i = 0; i < n; i++) {
            if (stage_of(p, runs[i].block) == r) {
                hv__add(b, runs[i].block < p ? HV_OP_F : HV_OP_BW, r, runs[i].mb);
            }
        }
        hv__rank_done(b);
    }
}

/* the chain forward and back; where nothing takes any time all orders are equally long, and equal
 * spans stand for it */
static void fill_blocks(const struct hv_schedule_input *in, struct hv_tessel_block *blocks)
{
    int32_t p = in->ranks;
    double all_s = 0;
    for (int32_t k = 0; k < 2 * p; k++) {
        struct hv_stage_cost c = hv__cost(in, stage_of(p, k));
        blocks[k] = (struct hv_tessel_block){.span_s = k < p ? c.f_s : c.b_s + c.w_s,
                                             .memory = k < p ? 1 : -1,
                                             .devices = (uint64_t)1 << stage_of(p, k)};
        all_s += blocks[k].span_s;
    }
    for (int32_t k = 0; k < 2 * p && !(all_s > 0); k++) {
        blocks[k].span_s = 1;
    }
}

enum hv_status hv__gen_tessel(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              struct hv_err *err)
{
    int32_t p = in->ranks, m = in->micro_batches;
    int64_t memory = hv__option(in, "memory"), most = hv__option(in, "repetend");
    if (p > 16) {
        return hv_err_set(err, HV_ELIMIT,
                          "schedule tessel searches over all repetends, which takes too long for "
                          "p = %d; use p = 16 or fewer",
                          p);
    }
    enum hv_status st = hv__check_work(in, 2.0 * p * p * m, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_arena a = {0};
    struct hv_tessel_block blocks[32];
    int32_t dep_at[33] = {0}, dep[32];
    fill_blocks(in, blocks);
    for (int32_t k = 0; k < 2 * p; k++) {
        dep_at[k + 1] = k;
        dep[k] = k; /* block k + 1 waits for block k */
    }
    struct hv_tessel t = {.n_blocks = 2 * p,
                          .n_devices = p,
                          .blocks = blocks,
                          .dep_at = dep_at,
                          .dep = dep,
                          .memory_limit = memory > 0 ? (double)memory : p,
                          .limits = in->limits,
                          .most_micro_batches = most > 0 ? (int32_t)most : p};
    struct hv_repetend r;
    double makespan;
    struct hv_tessel_run *runs = hv_arena_new(&a, struct hv_tessel_run, 2 * (size_t)p * (size_t)m);
    st = hv_tessel_search(&a, &t, &r, err);
    st = st == HV_OK ? hv_tessel_unroll(&t, &r, m, runs, &makespan, err) : st;
    if (st == HV_OK) {
        add_orders(in, runs, b);
    }
    hv_arena_free(&a);
    return st;
}
