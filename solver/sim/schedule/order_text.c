/* Orders written out: reads one list of tokens. What the lists stand for is in sched_explicit*.c.
 */
#include "solver/sim/schedule/schedule_int.h"

static enum hv_status bad_op(const struct hv_op *op, int32_t list, size_t at, const char *why,
                             int32_t limit, struct hv_err *err)
{
    char token[HV_OP_TOKEN_CAP];
    hv_op_format(op, token, sizeof token);
    return hv_err_set(err, HV_EINPUT, "order[%d][%zu], %s: %s (%d)", list, at, token, why, limit);
}

enum hv_status hv__read_order(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              int32_t list, struct hv_err *err)
{
    for (size_t i = 0; i < in->order[list].n; i++) {
        struct hv_op ops[2];
        size_t n;
        enum hv_status st = hv_op_parse(in->order[list].tokens[i], b->n_groups, ops, &n, err);
        if (st != HV_OK) {
            hv_err_context(err, "order[%d][%zu]", list, i);
            return st;
        }
        for (size_t k = 0; k < n; k++) {
            if (ops[k].stage >= b->n_stages) {
                return bad_op(&ops[k], list, i, "there are not that many stages", b->n_stages, err);
            }
            if (ops[k].mb >= in->micro_batches) {
                return bad_op(&ops[k], list, i, "there are not that many micro-batches",
                              in->micro_batches, err);
            }
            b->n_slices = ops[k].slice >= b->n_slices ? ops[k].slice + 1 : b->n_slices;
            hv_vec_push(&b->ops, ops[k]);
        }
        b->n_groups += n == 2;
    }
    hv__rank_done(b);
    return HV_OK;
}
