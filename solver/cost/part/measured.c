/*
 * Measured layers as a chain of blocks: the attention half of block i carries all of layer i, the
 * other half nothing. There are no closed forms; times are measured, and scaled by peak FLOP/s
 * where another device was measured.
 */
#include <math.h>
#include <string.h>

#include "solver/cost/part/part_int.h"

/* Peak in the job's precision, else the best the device has. */
static double any_peak(const struct hv_device_kind *d, enum hv_precision p)
{
    static const enum hv_precision order[] = {HV_BF16, HV_FP16, HV_TF32, HV_FP32};
    double peak = hv_device_peak_flops_per_s(d, p);
    for (size_t i = 0; i < HV_COUNT(order) && !hv_known(peak); i++) {
        peak = hv_device_peak_flops_per_s(d, order[i]);
    }
    return peak;
}

static const struct hv_device_kind *kind_named(const struct hv__context *k, const char *name)
{
    for (size_t i = 0; i < k->cluster->n_kinds; i++) {
        if (!strcmp(k->cluster->kinds[i]->name, name)) {
            return k->cluster->kinds[i];
        }
    }
    return NULL;
}

static bool has_piece(const struct hv_both_ways *list, size_t i)
{
    return list != NULL && hv_known(list[i].forward_s);
}

static bool has_column(const struct hv_model *m, const struct hv_measured_layer *l, size_t i)
{
    size_t n = m->n_grid_tp * m->n_grid_batch;
    for (size_t at = i * n; at < (i + 1) * n; at++) {
        if (hv_known(l->forward_s[at]) && (l->forward_only || hv_known(l->backward_s[at]))) {
            return true;
        }
    }
    return has_piece(l->pieces.attention_block, i) || has_piece(l->pieces.expert_fixed, i) ||
           has_piece(l->pieces.expert_token, i);
}

static struct hv__column column_of(const struct hv__context *k, const struct hv_measured_layer *l,
                                   const struct hv_device_kind *d)
{
    const struct hv_model *m = k->model;
    for (size_t i = 0; i < m->n_devices; i++) {
        if (!strcmp(m->devices[i], d->name) && has_column(m, l, i)) {
            return (struct hv__column){i, 1, m->devices[i]};
        }
    }
    for (size_t i = 0; i < m->n_devices; i++) {
        const struct hv_device_kind *other = kind_named(k, m->devices[i]);
        if (!other || !has_column(m, l, i)) {
            continue;
        }
        double ratio = any_peak(other, k->job.precision) / any_peak(d, k->job.precision);
        if (hv_known(ratio)) {
            return (struct hv__column){i, ratio, m->devices[i]};
        }
    }
    return (struct hv__column){0, HV_UNKNOWN, NULL};
}

static double measured_s(const struct hv__ask *a, const struct hv_measured_layer *l,
                         const double *times, const struct hv__column *c)
{
    const struct hv_model *m = a->k->model;
    const double *grid = times + c->at * m->n_grid_tp * m->n_grid_batch;
    if (c->measured_on == NULL) {
        return HV_UNKNOWN;
    }
    return c->factor * a->rates->measured(m, grid, a->q, hv_or(l->parallel_frac, 1));
}

/* Bytes of a layer's input, for a sequence. */
static double input_bytes(const struct hv_model *m, size_t layer)
{
    return m->measured[layer > 0 ? layer - 1 : 0].output_bytes;
}

/* Activations that a rank keeps. Without sequence parallelism every tensor-parallel rank of a
 * runtime keeps some tensors of the size of the layer's input whole (Korthikanti et al. 2022). */
static double kept_bytes(const struct hv__ask *a, const struct hv_measured_layer *l, double ways)
{
    const struct hv_part_query *q = a->q;
    double all = l->activation_bytes * q->sequences;
    double tensors = hv_runtime_row(a->k->job.runtime)->whole_tensors;
    if (!(tensors > 0) || q->sequence_parallel || hv__tp_parts(q) < 2) {
        return all / ways;
    }
    double whole = fmin(all, tensors * input_bytes(a->k->model, a->block) * q->sequences);
    return (all - whole) / ways + whole / q->cp;
}

/* The layer as a whole: its measured passes, beside which pieces may stand. */
static struct hv_both_ways whole_of(const struct hv__ask *a, const struct hv_measured_layer *l,
                                    const struct hv__column *c)
{
    bool pieces = !hv_measured_is_whole(l);
    struct hv_both_ways t = {0, 0};
    if (!pieces || l->forward_given) {
        t.forward_s = measured_s(a, l, l->forward_s, c);
    }
    if (!pieces || l->backward_given) {
        t.backward_s = measured_s(a, l, l->backward_s, c);
    }
    return t;
}

static struct hv__exchange exchange_of(const struct hv__ask *a, const struct hv_measured_layer *l)
{
    bool again = a->q->recompute != 0;
    if (a->k->model->n_grid_tp > 1) { /* tensor ranks were measured with the layer */
        return (struct hv__exchange){.ep_again = again};
    }
    return (struct hv__exchange){.tp_bytes = l->output_bytes * a->q->sequences / a->q->cp,
                                 .tp_forward = 1,
                                 .tp_backward = l->forward_only ? 0
                                                : again         ? 2
                                                                : 1,
                                 .ep_again = again};
}

static struct hv_part_cost price(const struct hv__ask *a)
{
    if (a->part != HV_PART_ATTENTION) {
        return (struct hv_part_cost){0};
    }
    const struct hv_measured_layer *l = &a->k->model->measured[a->block];
    const struct hv_part_query *q = a->q;
    struct hv__column c = column_of(a->k, l, q->device);
    double frac = hv_or(l->parallel_frac, 1), ways = hv__tp_parts(q) * q->cp;
    double weight_bytes = hv_job_weight_bytes(&a->k->job);
    bool again = q->recompute != 0;
    struct hv_both_ways whole = whole_of(a, l, &c);
    hv_why_add(a->why, l->name ? l->name : "layer", whole.forward_s, "s",
               "measured on %s, times %.4g for this device, parallel share %.3g over %.0f ranks",
               c.measured_on ? c.measured_on : "no device of this cluster", c.factor, frac, ways);
    struct hv__pieces_of pieces = {.x = exchange_of(a, l)};
    hv__add_pieces(a, l, &c, &pieces);
    struct hv_part_cost out = {.forward_s = whole.forward_s + pieces.forward_s,
                               .parameters = l->parameter_bytes / weight_bytes /
                                             (hv__tp_parts(q) / hv__tp_depth(q)),
                               .output_bytes = l->output_bytes * q->sequences / q->cp};
    double kept = kept_bytes(a, l, ways);
    out.input_grad_s = out.weight_grad_s = (whole.backward_s + pieces.backward_s) / 2;
    out.recompute_s = again && !l->forward_only ? out.forward_s : 0;
    out.saved_bytes = again ? fmin(kept, out.output_bytes) : kept;
    out.saved_input_bytes = out.saved_bytes;
    out.routed = l->pieces.expert_fixed || l->pieces.expert_token ? 1 : 0;
    out.dropped_frac = pieces.dropped_frac;
    out.transient_bytes = kept - out.saved_bytes + pieces.buffers_bytes;
    a->rates->exchange(a, &pieces.x, &out);
    hv__load_free(&pieces.load);
    return out;
}

static double update_s(const struct hv__context *k, const struct hv_device_kind *device)
{
    const struct hv_model *m = k->model;
    double update_s = 0, bytes = 0;
    for (size_t i = 0; i < m->n_blocks; i++) {
        const struct hv_measured_layer *l = &m->measured[i];
        struct hv__column c = column_of(k, l, device);
        double own = c.measured_on ? l->update_s[c.at] : HV_UNKNOWN;
        if (!hv_known(own) || c.factor != 1) {
            continue;
        }
        update_s += own;
        bytes += l->parameter_bytes;
    }
    return bytes > 0 ? update_s / (bytes / hv_job_weight_bytes(&k->job)) : HV_UNKNOWN;
}

/* Seconds of a sequence in a layer, forward and backward. HV_UNKNOWN: not measured. */
static double layer_s(struct hv__context *k, size_t layer, const struct hv_device_kind *d)
{
    const struct hv_part_query q = {
        .device = d, .tp = 1, .cp = 1, .ep = 1, .sequences = 1, .tokens = hv__tokens(k)};
    struct hv_part_cost c = price(&(struct hv__ask){.k = k,
                                                    .part = HV_PART_ATTENTION,
                                                    .block = layer,
                                                    .q = &q,
                                                    .rates = &hv__best_rates,
                                                    .passes = &hv__any_pass});
    return c.forward_s + c.input_grad_s + c.weight_grad_s;
}

static enum hv_status check_device(struct hv__context *k, const struct hv_device_kind *d,
                                   struct hv_err *err)
{
    double all_s = 0;
    for (size_t i = 0; i < k->model->n_blocks; i++) {
        double own_s = layer_s(k, i, d);
        if (!hv_known(own_s)) {
            bool whole = hv_measured_is_whole(&k->model->measured[i]);
            return hv_err_set(err, HV_ENO,
                              "layer %zu was measured neither on %s nor on another device of this "
                              "cluster: add %s for %s",
                              i, d->name,
                              whole
                                  ? "its forward_ms and backward_ms"
                                  : "a time to each of its attention_block_ms, expert_fixed_ms and "
                                    "expert_ms_per_token",
                              d->name);
        }
        all_s += own_s;
    }
    if (all_s > 0) {
        return HV_OK;
    }
    return hv_err_set(err, HV_ENO,
                      "no layer of the model takes any time on %s: there is nothing "
                      "to plan",
                      d->name);
}

const struct hv__parts hv__measured_parts = {
    .price = price, .check_device = check_device, .update_s = update_s};
