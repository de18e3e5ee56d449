/*
 * Schedules that cut sequences into token slices (causal models): TeraPipe and Seq1F1B.
 */
#include "solver/sim/schedule/schedule_int.h"

static void add_slice(struct hv_schedule_builder *b, enum hv_op_kind kind, int32_t stage,
                      int32_t mb, int32_t slice)
{
    b->slice = (int16_t)slice;
    hv__add(b, kind, stage, mb);
    b->slice = -1;
}

/* TeraPipe (ICML'21, section 3): every slice forward, then everything backward in reverse; in
 * rounds of the micro-batches that the ranks may hold */
enum hv_status hv__gen_terapipe(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                                struct hv_err *err)
{
    (void)err;
    int32_t k = (int32_t)hv__option(in, "slices"), units = in->micro_batches * k;
    int32_t round = hv__round(in) * k;
    b->n_slices = k;
    for (int32_t r = 0; r < in->ranks; r++) {
        for (int32_t from = 0; from < units; from += round) {
            int32_t to = units - from < round ? units : from + round;
            for (int32_t u = from; u < to; u++) {
                add_slice(b, HV_OP_F, r, u / k, u % k);
            }
            for (int32_t u = to - 1; u >= from; u--) {
                add_slice(b, HV_OP_BW, r, u / k, u % k);
            }
        }
        hv__rank_done(b);
    }
    return HV_OK;
}

/*
 * Seq1F1B (arXiv 2406.03488): 1F1B on slices, the backward of a micro-batch from its last slice to
 * its first; rank r runs p − r − 2 + k units ahead.
 */
enum hv_status hv__gen_seq1f1b(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                               struct hv_err *err)
{
    (void)err;
    int32_t k = (int32_t)hv__option(in, "slices");
    int32_t units = in->micro_batches * k;
    b->n_slices = k;
    for (int32_t r = 0; r < in->ranks; r++) {
        int32_t warm = in->ranks - r - 2 + k;
        warm = warm < units ? warm : units;
        for (int32_t j = -warm; j < units; j++) {
            int32_t u = j + warm;
            if (u < units) {
                add_slice(b, HV_OP_F, r, u / k, u % k);
            }
            if (j >= 0) {
                add_slice(b, HV_OP_BW, r, j / k, k - 1 - j % k);
            }
        }
        hv__rank_done(b);
    }
    return HV_OK;
}
