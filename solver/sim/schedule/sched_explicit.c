/*
 * The schedule `explicit`: an order written as tokens. Derives sizes and placement;
 * hv_pipe_compile checks the other conditions. Orders of resources that ranks share are in
 * sched_explicit_shared.c.
 */
#include "solver/sim/schedule/schedule_int.h"

/* notes which rank a stage is on; a stage on two ranks makes a second direction */
static void place(const struct hv_op *op, int32_t rank, int32_t *of, int32_t *other)
{
    if (of[op->stage] < 0) {
        of[op->stage] = rank;
    } else if (of[op->stage] != rank) {
        other[op->stage] = rank;
    }
}

/* directions: a stage may be on two ranks, each micro-batch staying with one */
static void place_all(struct hv_schedule_builder *b)
{
    size_t n_stages = (size_t)b->n_stages, i = 0;
    int32_t *of = hv_xcalloc(2 * n_stages, sizeof *of), *other = of + n_stages;
    bool two = false;
    for (size_t s = 0; s < 2 * n_stages; s++) {
        of[s] = -1;
    }
    for (int32_t r = 0; r < b->n_ranks; r++) {
        for (; i < b->rank_end.items[r]; i++) {
            place(&b->ops.items[i], r, of, other);
        }
    }
    for (size_t s = 0; s < n_stages; s++) {
        two = two || other[s] >= 0;
        of[s] = of[s] < 0 ? 0 : of[s];
        other[s] = other[s] < 0 ? of[s] : other[s];
    }
    hv__set_pipes(b, two ? 2 : 1);
    for (size_t s = 0; s < n_stages * (size_t)b->n_pipes; s++) {
        b->stage_to_rank[s] = of[s];
    }
    i = 0;
    for (int32_t r = 0; r < b->n_ranks; r++) {
        for (; i < b->rank_end.items[r]; i++) {
            b->ops.items[i].pipe = two && of[b->ops.items[i].stage] != r;
        }
        b->weight_versions[r] = two ? 2 : 1;
    }
    free(of);
}

enum hv_status hv__gen_explicit(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                                struct hv_err *err)
{
    if (!in->order) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule explicit needs an order: one list of tokens per rank");
    }
    if (in->order_per_resource) {
        return hv__explicit_shared(in, b, err);
    }
    for (int32_t r = 0; r < in->ranks; r++) {
        enum hv_status st = hv__read_order(in, b, r, err);
        if (st != HV_OK) {
            return st;
        }
    }
    place_all(b);
    return HV_OK;
}
