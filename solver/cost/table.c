/* The table for strategies: prices of all blocks of one query, as prefix sums. */
#include "solver/cost/leaf.h"

enum hv_status hv__layers(struct hv__context *k, const struct hv_part_query *q,
                          struct hv_arena *arena, struct hv_layer_table *out, struct hv_err *err)
{
    enum hv_status st = hv__check_device(k, q->device, err);
    if (st != HV_OK) {
        return st;
    }
    size_t n = k->model->n_blocks;
    *out = (struct hv_layer_table){.n_blocks = n,
                                   .forward_s = hv_arena_new(arena, double, n + 1),
                                   .backward_s = hv_arena_new(arena, double, n + 1),
                                   .parameters = hv_arena_new(arena, double, n + 1),
                                   .saved_bytes = hv_arena_new(arena, double, n + 1)};
    struct hv_part_cost halves[2] = {{0}};
    for (size_t i = 0; i < n; i++) {
        double f = out->forward_s[i], b = out->backward_s[i], p = out->parameters[i];
        double saved = out->saved_bytes[i];
        for (int half = 0; half < 2; half++) {
            struct hv_part_cost *c = &halves[half];
            if (i == 0 || k->cls[i] != k->cls[i - 1]) {
                *c = hv__part_cost(k, half ? HV_PART_FFN : HV_PART_ATTENTION, i, q, NULL);
            }
            f += c->forward_s + c->tp_forward_s + c->cp_forward_s + c->ep_forward_s;
            b += c->input_grad_s + c->weight_grad_s + c->recompute_s + c->tp_backward_s +
                 c->cp_backward_s + c->ep_backward_s;
            p += c->parameters + c->expert_parameters;
            saved += c->saved_bytes;
        }
        out->forward_s[i + 1] = f;
        out->backward_s[i + 1] = b;
        out->parameters[i + 1] = p;
        out->saved_bytes[i + 1] = saved;
    }
    bool equal = k->parts->analytic; /* all blocks hand on as much */
    out->output_bytes =
        equal ? hv_job_activation_bytes(&k->job) * q->sequences * q->tokens * k->model->hidden : 0;
    out->embedding = hv__part_cost(k, HV_PART_EMBEDDING, 0, q, NULL);
    out->head = hv__part_cost(k, HV_PART_HEAD, 0, q, NULL);
    for (size_t i = 0; i < n && !equal; i++) {
        double bytes = hv__part_cost(k, HV_PART_ATTENTION, i, q, NULL).output_bytes * q->cp;
        out->output_bytes = bytes > out->output_bytes ? bytes : out->output_bytes;
    }
    return HV_OK;
}
