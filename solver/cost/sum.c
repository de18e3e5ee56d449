/* Sums of passes and memories of pieces on the same devices. */
#include "solver/cost/sum.h"

#include <math.h>

#include "solver/cost/device/efficiency.h"

static void add_figures(const struct hv_pass *x, struct hv_pass *o)
{
    o->forward_s += x->forward_s;
    o->input_grad_s += x->input_grad_s;
    o->weight_grad_s += x->weight_grad_s;
    o->input_alone_s += x->input_alone_s;
    o->copies_s += x->copies_s;
    o->routed += x->routed;
    o->dropped += x->dropped;
    o->weight_alone_s += x->weight_alone_s;
    o->recompute_s += x->recompute_s;
    o->tp_s += x->tp_s;
    o->cp_s += x->cp_s;
    o->ep_s += x->ep_s;
    o->zero_s += x->zero_s;
    o->network_forward_s += x->network_forward_s;
    o->network_backward_s += x->network_backward_s;
    o->network_weight_s += x->network_weight_s;
    o->latency_forward_s += x->latency_forward_s;
    o->latency_backward_s += x->latency_backward_s;
    o->latency_weight_s += x->latency_weight_s;
    o->compute_s += x->compute_s;
    o->flops += x->flops;
    hv_traffic_add(&o->sent, &x->sent, 1);
    o->hop_bytes = x->hop_bytes;
    o->activation_bytes += x->activation_bytes;
    o->weight_only_bytes += x->weight_only_bytes;
    o->away_bytes += x->away_bytes;
    o->away_weight_bytes += x->away_weight_bytes;
    o->transient_bytes = fmax(o->transient_bytes, x->transient_bytes);
}

void hv__add_pass(struct hv__sum_of_passes *sum, const struct hv_pass *x, int first2)
{
    const struct hv_pass *o = &sum->pass;
    double before_s = o->input_grad_s + o->weight_grad_s + o->recompute_s;
    for (size_t i = 0; i < x->n_milestones; i++) {
        struct hv_milestone m = x->milestones[i];
        m.before_end_s += before_s;
        if (m.range.from2 != m.range.to2) {
            m.range.from2 += first2;
            m.range.to2 += first2;
        }
        hv_vec_push(&sum->milestones, m);
    }
    add_figures(x, &sum->pass);
}

void hv__end_sum(struct hv__context *k, struct hv__sum_of_passes *sum, struct hv_pass *out)
{
    *out = sum->pass;
    if (sum->milestones.n > 0) {
        hv__keep_milestones(k, sum->milestones.items, sum->milestones.n, out);
    }
    hv_vec_free(&sum->milestones);
}

void hv__add_memory(const struct hv_memory *x, bool again, struct hv_memory *o)
{
    o->weights_bytes += x->weights_bytes;
    o->gradients_bytes += x->gradients_bytes;
    o->master_bytes += x->master_bytes;
    o->optimizer_bytes += x->optimizer_bytes;
    o->buffers_bytes += x->buffers_bytes - (again ? fmin(HV_WORKSPACE_BYTES, x->buffers_bytes) : 0);
    o->outside_bytes = fmax(o->outside_bytes, x->outside_bytes);
    o->fragmentation_frac = fmax(o->fragmentation_frac, x->fragmentation_frac);
    double states = o->weights_bytes + o->gradients_bytes + o->master_bytes + o->optimizer_bytes;
    o->overhead_bytes =
        o->buffers_bytes + o->outside_bytes + o->fragmentation_frac * (states + o->buffers_bytes);
    o->away_weights_bytes += x->away_weights_bytes;
    o->away_states_bytes += x->away_states_bytes;
    o->reserve_bytes = x->reserve_bytes;
    o->limit_bytes = x->limit_bytes;
    o->parameters += x->parameters;
    o->expert_parameters += x->expert_parameters;
    o->updated_parameters += x->updated_parameters;
}
