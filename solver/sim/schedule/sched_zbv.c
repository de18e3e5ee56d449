/*
 * ZB-V (Zero Bubble, arXiv version 2, section 6): two chunks per rank in V shape. The fixed order
 * for f = b = w; and the greedy one that decides by cost stands in sched_zbv_greedy.c.
 */
#include "solver/sim/schedule/schedule_int.h"

/* one rank; index 0 = the chunk nearer the input, 1 = the one nearer the loss */
struct vee {
    struct hv_schedule_builder *b;
    int32_t stage[2];
    int32_t m;
    int32_t n_f[2], n_b[2], n_w[2];
};

/* micro-batches from m on only make the pattern complete and are left out */
static void add(struct vee *v, enum hv_op_kind kind, int chunk)
{
    int32_t *count = kind == HV_OP_F ? v->n_f : kind == HV_OP_B ? v->n_b : v->n_w;
    int32_t mb = count[chunk]++;
    if (mb < v->m) {
        hv__add(v->b, kind, v->stage[chunk], mb);
    }
}

static void back_and_weights(struct vee *v, int chunk)
{
    add(v, HV_OP_B, chunk);
    add(v, HV_OP_W, chunk);
}

static void add_rank(struct vee *v, int32_t r, int32_t p, int32_t n)
{
    for (int32_t i = 0; i < 2 * (p - r) - 1; i++) {
        add(v, HV_OP_F, 0);
    }
    for (int32_t i = 0; i < r; i++) {
        add(v, HV_OP_F, 1);
        add(v, HV_OP_F, 0);
    }
    for (int32_t i = 0; i < p - r; i++) {
        add(v, HV_OP_F, 1);
        back_and_weights(v, 1);
    }
    while (v->n_f[1] < v->n_f[0] || v->n_f[0] < n) {
        if (v->n_f[0] < n) {
            add(v, HV_OP_F, 0);
        }
        back_and_weights(v, 0);
        add(v, HV_OP_F, 1);
        back_and_weights(v, 1);
    }
    for (int32_t i = 0; i < r; i++) {
        add(v, HV_OP_B, 0);
        add(v, HV_OP_B, 1);
    }
    for (int32_t i = 0; i < p - r; i++) {
        back_and_weights(v, 0);
    }
    while (v->n_w[1] < v->n_b[1]) {
        add(v, HV_OP_W, 1);
    }
    while (v->n_w[0] < v->n_b[0]) {
        add(v, HV_OP_W, 0);
    }
}

enum hv_status hv__gen_zb_v(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                            struct hv_err *err)
{
    int32_t p = in->ranks, m = in->micro_batches;
    hv__place_zigzag(b);
    if (hv__option(in, "variant") == 1) {
        return hv__gen_zb_v_greedy(in, b, err);
    }
    for (int32_t r = 0; r < p; r++) {
        struct vee v = {.b = b, .stage = {r, 2 * p - 1 - r}, .m = m};
        add_rank(&v, r, p, m > 2 * p - 1 ? m : 2 * p - 1);
        hv__rank_done(b);
    }
    return HV_OK;
}
