/*
 * Zero-bubble orders in closed form. ZB-H1, which also interleaves, stands in sched_interleaved.c;
 * the heuristics that decide by cost in sched_zb_greedy.c.
 */
#include "solver/sim/schedule/schedule_int.h"

/*
 * ZB-H2 (Zero Bubble, ICLR'24, section 2.3): rank r runs 2(p − r) − 1 forwards ahead, then 2r times
 * B and F, then B, W and F in turn until the forwards end, then B and W in turn, then the W's left
 * over.
 */
enum hv_status hv__gen_zb_h2(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                             struct hv_err *err)
{
    int32_t p = in->ranks, m = in->micro_batches;
    if (m < 2 * p - 1) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule zb-h2 needs at least 2p − 1 = %d micro-batches, found m = %d; "
                          "use m = %d",
                          2 * p - 1, m, 2 * p - 1);
    }
    for (int32_t r = 0; r < p; r++) {
        int32_t f = 0, w = 0;
        for (; f < 2 * (p - r) - 1; f++) {
            hv__add(b, HV_OP_F, r, f);
        }
        for (int32_t i = 0; i < m; i++) {
            hv__add(b, HV_OP_B, r, i);
            if (i >= 2 * r) {
                hv__add(b, HV_OP_W, r, w++);
            }
            if (f < m) {
                hv__add(b, HV_OP_F, r, f++);
            }
        }
        for (; w < m; w++) {
            hv__add(b, HV_OP_W, r, w);
        }
        hv__rank_done(b);
    }
    return HV_OK;
}
