/*
 * An operator graph as a chain of blocks: the attention half of block i carries all of operator i,
 * the other half nothing. A graph is one sequence of the batch it was written for, so the whole
 * graph is priced per sequence. Operators are whole: nothing is exchanged between ranks.
 */
#include <math.h>

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/leaf.h"

static struct hv_part_cost price(const struct hv__ask *a)
{
    if (a->part != HV_PART_ATTENTION) {
        return (struct hv_part_cost){0};
    }
    const struct hv_graph_op *o = &a->k->model->ops[a->block];
    const struct hv_part_query *q = a->q;
    struct hv_efficiency e = hv_efficiency_of(q->device, a->k->job.precision);
    double ways = hv__tp_parts(q) * q->cp, flops = hv_graph_op_flops(a->k->model, o);
    double once = hv_known(o->time_s) ? o->time_s
                                      : fmax(hv_or(flops, 0) / e.gemm_flops_per_s,
                                             hv_or(o->bytes, 0) / e.bytes_per_s);
    double start = hv_known(o->time_s) ? 0 : a->rates->starts * e.launch_s;
    double out_bytes = hv_or(o->bytes, 0) * q->sequences;
    struct hv_part_cost out = {.forward_s = once * q->sequences / ways + start,
                               .flops_forward = hv_or(flops, 0) * q->sequences / ways,
                               .parameters = hv_or(o->parameter_bytes, 0) /
                                             hv_job_weight_bytes(&a->k->job) /
                                             (hv__tp_parts(q) / hv__tp_depth(q)),
                               .output_bytes = out_bytes / q->cp,
                               .saved_bytes = out_bytes / ways};
    out.input_grad_s = out.weight_grad_s = out.forward_s;
    out.recompute_s = q->recompute ? out.forward_s : 0;
    out.saved_input_bytes = out.saved_bytes;
    hv_why_add(a->why, o->id ? o->id : "operator", out.forward_s, "s", "%s: %.4g FLOP, %.4g bytes",
               hv_known(o->time_s) ? "time given in the model file" : "roofline, estimated",
               hv_or(flops, 0), hv_or(o->bytes, 0));
    return out;
}

const struct hv__parts hv__operator_parts = {.price = price, .check_device = hv__check_precision};
