/*
 * Operators of a graph one by one, per sequence: prices for tables of strategies, and floors. A
 * floor counts matrix products alone, with those of the gradients that every plan computes.
 */
#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/graph/graph.h"
#include "solver/workload/graph/tensor_graph.h"
#include "solver/workload/graph/work.h"

#include <math.h>

/* Share of one sequence in the graph's batch. */
static double per_sequence(const struct hv_tensor_graph *g)
{
    return g->batch != HV_NO_DIM ? 1 / (double)g->dims[g->batch].size : 1;
}

static double elements(const struct hv_tensor_graph *g, const struct hv_tensor *t)
{
    double n = 1;
    for (size_t d = 0; d < t->n_dims; d++) {
        n *= (double)g->dims[t->dim[d]].size;
    }
    return n;
}

/* Products whose result is the gradient of a parameter, which every plan computes. */
static double weight_products(const struct hv_tensor_graph *g, const struct hv_tensor_op *op)
{
    double n = 0;
    for (size_t i = 0; i < op->n_in; i++) {
        n += g->tensors[op->in[i].tensor].role == HV_TENSOR_PARAMETER;
    }
    return n;
}

/* Tensors that parameters are behind: their gradients are needed. */
static const bool *behind_weights(struct hv__context *k)
{
    const struct hv_tensor_graph *g = k->model->tensors;
    if (k->from_weights != NULL) {
        return k->from_weights;
    }
    bool *is = hv_arena_new(&k->arena, bool, g->n_tensors + 1);
    for (size_t i = 0; i < g->n_ops; i++) {
        for (size_t o = 0; o < g->ops[i].n_in; o++) {
            uint32_t t = g->ops[i].in[o].tensor;
            is[g->ops[i].out] =
                is[g->ops[i].out] || is[t] || g->tensors[t].role == HV_TENSOR_PARAMETER;
        }
    }
    k->from_weights = is;
    return is;
}

/* Products whose result is the gradient of an activation that parameters are behind. */
static double input_products(struct hv__context *k, const struct hv_tensor_op *op)
{
    const bool *behind = behind_weights(k);
    double n = 0;
    for (size_t i = 0; i < op->n_in; i++) {
        n += behind[op->in[i].tensor];
    }
    return n;
}

static struct hv_part_cost price(const struct hv__ask *a)
{
    struct hv_part_cost out = {0};
    if (a->part != HV_PART_ATTENTION) {
        return out;
    }
    const struct hv_tensor_graph *g = a->k->model->tensors;
    const struct hv_tensor_op *op = &g->ops[a->block];
    const struct hv_part_query *q = a->q;
    struct hv_efficiency e = hv_efficiency_of(q->device, a->k->job.precision);
    double share = per_sequence(g) * q->sequences;
    double flops = hv_tensor_op_product_flops(g, op) * share, start = a->rates->starts;
    double bytes = elements(g, &g->tensors[op->out]) * share * hv_job_activation_bytes(&a->k->job);
    out.flops_forward = flops;
    out.forward_s = flops / e.gemm_flops_per_s;
    out.weight_grad_s = weight_products(g, op) * out.forward_s;
    out.input_grad_s = input_products(a->k, op) * out.forward_s;
    if (start > 0) {
        double stream_s = e.launch_s + bytes / e.bytes_per_s;
        out.forward_s += start * stream_s;
        out.input_grad_s += start * stream_s;
    }
    out.recompute_s = q->recompute ? out.forward_s : 0;
    out.output_bytes = out.saved_bytes = out.saved_input_bytes = bytes;
    for (size_t i = 0; i < op->n_in; i++) {
        const struct hv_tensor *t = &g->tensors[op->in[i].tensor];
        out.parameters += t->role == HV_TENSOR_PARAMETER ? elements(g, t) : 0;
    }
    hv_why_add(a->why, op->id, out.forward_s, "s", "%.4g FLOP, %.4g bytes of its result", flops,
               bytes);
    return out;
}

const struct hv__parts hv__tensor_parts = {
    .price = price, .check_device = hv__check_precision, .count = hv__graph_counts};
