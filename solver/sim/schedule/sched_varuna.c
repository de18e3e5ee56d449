/*
 * Varuna (EuroSys'22, section 4): a rule played on a grid of unit times. A rank serves, in this
 * order, the second half of a backward, a backward, a recompute, a forward. A recompute is due one
 * step before the gradient arrives, so only one whole activation is alive. O(p · steps).
 */
#include "solver/sim/schedule/schedule_int.h"

/* work of one rank, served first in, first out; micro-batches come in ascending order everywhere */
struct queues {
    int32_t in[4], out[4]; /* backward's second half, backward, recompute, forward */
};
enum { HALF, BACK, AGAIN, FORWARD, NOTHING };

static int pick(const struct queues *q)
{
    int k = HALF;
    while (k < NOTHING && q->in[k] == q->out[k]) {
        k++;
    }
    return k;
}

/* adds the work that becomes possible after the work `k` of rank r */
static void follow(struct queues *q, int32_t r, int32_t p, int k)
{
    switch (k) {
    case FORWARD:
        if (r + 1 < p) {
            q[r + 1].in[FORWARD]++;
        } else {
            q[r].in[BACK]++;
        }
        break;
    case AGAIN:
        q[r].in[BACK]++;
        break;
    case BACK:
        q[r].in[HALF]++;
        if (r > 0) {
            q[r - 1].in[AGAIN]++;
        }
        break;
    default:
        break;
    }
}

enum hv_status hv__gen_varuna(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              struct hv_err *err)
{
    (void)err;
    int32_t p = in->ranks, m = in->micro_batches;
    static const enum hv_op_kind kinds[] = {HV_OP_BW, HV_OP_BW, HV_OP_R, HV_OP_F};
    struct queues *q = hv_xcalloc((size_t)p, sizeof *q);
    int *now = hv_xcalloc((size_t)p, sizeof *now);
    size_t width = 3 * (size_t)m;
    struct hv_op *ops = hv_xcalloc((size_t)p * width, sizeof *ops);
    size_t *n = hv_xcalloc((size_t)p, sizeof *n);
    q[0].in[FORWARD] = m;
    for (bool busy = true; busy;) {
        busy = false;
        for (int32_t r = 0; r < p; r++) {
            now[r] = pick(&q[r]);
            if (now[r] == NOTHING) {
                continue;
            }
            busy = true;
            int32_t mb = q[r].out[now[r]]++;
            if (now[r] != HALF) {
                ops[(size_t)r * width + n[r]++] =
                    (struct hv_op){.kind = (uint8_t)kinds[now[r]], .mb = mb};
            }
        }
        for (int32_t r = 0; r < p; r++) {
            follow(q, r, p, now[r]);
        }
    }
    for (int32_t r = 0; r < p; r++) {
        for (size_t i = 0; i < n[r]; i++) {
            const struct hv_op *op = &ops[(size_t)r * width + i];
            hv__add(b, (enum hv_op_kind)op->kind, r, op->mb);
        }
        hv__rank_done(b);
    }
    free(q);
    free(now);
    free(ops);
    free(n);
    return HV_OK;
}
