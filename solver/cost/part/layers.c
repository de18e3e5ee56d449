/*
 * Measured layers and operator graphs as a chain of blocks: the attention half of block i carries
 * all of layer (or operator) i, the other half nothing. No closed forms here; times are what was
 * measured, scaled by peak FLOP/s where another device was measured.
 */
#include <math.h>
#include <string.h>

#include "solver/cost/cost_int.h"

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

/* Which measured column prices this device, and by what its times are multiplied. */
struct column {
    size_t at;
    double factor;
    const char *measured_on;
};

static const struct hv_device_kind *kind_named(const struct hv_cost *k, const char *name)
{
    for (size_t i = 0; i < k->cluster->n_kinds; i++) {
        if (!strcmp(k->cluster->kinds[i]->name, name)) {
            return k->cluster->kinds[i];
        }
    }
    return NULL;
}

static bool has_column(const struct hv_model *m, const struct hv_measured_layer *l, size_t i)
{
    size_t n = m->n_grid_tp * m->n_grid_batch;
    for (size_t at = i * n; at < (i + 1) * n; at++) {
        if (hv_known(l->forward_s[at]) && hv_known(l->backward_s[at])) {
            return true;
        }
    }
    return false;
}

static struct column column_of(const struct hv_cost *k, const struct hv_measured_layer *l,
                               const struct hv_device_kind *d)
{
    const struct hv_model *m = k->model;
    for (size_t i = 0; i < m->n_devices; i++) {
        if (!strcmp(m->devices[i], d->name) && has_column(m, l, i)) {
            return (struct column){i, 1, m->devices[i]};
        }
    }
    for (size_t i = 0; i < m->n_devices; i++) {
        const struct hv_device_kind *other = kind_named(k, m->devices[i]);
        if (!other || !has_column(m, l, i)) {
            continue;
        }
        double ratio = any_peak(other, k->job.precision) / any_peak(d, k->job.precision);
        if (hv_known(ratio)) {
            return (struct column){i, ratio, m->devices[i]};
        }
    }
    return (struct column){0, HV_UNKNOWN, NULL};
}

/* Seconds of a pass of so many sequences by a row of measured micro-batches: straight lines between
 * them, the rate of the nearest beyond. HV_UNKNOWN: none was measured. */
static double by_batch(const struct hv_model *m, const double *row, double sequences)
{
    double before = 0, before_s = 0, last = 0, last_s = HV_UNKNOWN;
    for (size_t i = 0; i < m->n_grid_batch; i++) {
        if (!hv_known(row[i])) {
            continue;
        }
        before = last;
        before_s = hv_or(last_s, 0);
        last = m->grid_batch[i];
        last_s = row[i];
        if (last >= sequences) {
            break;
        }
    }
    if (sequences > last || before <= 0) {
        return last_s * sequences / last;
    }
    return before_s + (last_s - before_s) * (sequences - before) / (last - before);
}

/* The same for tp ranks: at the largest degree that was measured up to it, the rest by Amdahl. */
static double by_degree(const struct hv_model *m, const double *grid, const struct hv_part_query *q,
                        double frac)
{
    for (size_t i = m->n_grid_tp; i-- > 0;) {
        double s = by_batch(m, grid + i * m->n_grid_batch, q->sequences);
        double more = hv__tp_parts(q) / m->grid_tp[i];
        if (hv_known(s) && more >= 1) {
            return s * (frac / (more * q->cp) + 1 - frac);
        }
    }
    return HV_UNKNOWN;
}

/* No plan spends less per sequence, rank by rank. */
static double least_of(const struct hv_model *m, const double *grid, const struct hv_part_query *q)
{
    double least = HUGE_VAL;
    for (size_t i = 0; i < m->n_grid_tp * m->n_grid_batch; i++) {
        double each =
            grid[i] * m->grid_tp[i / m->n_grid_batch] / m->grid_batch[i % m->n_grid_batch];
        least = hv_known(each) ? fmin(least, each) : least;
    }
    return least < HUGE_VAL ? least * q->sequences / q->tp : HV_UNKNOWN;
}

static double measured_s(const struct hv__ask *a, const struct hv_measured_layer *l,
                         const double *times, const struct column *c)
{
    const struct hv_model *m = a->k->model;
    const double *grid = times + c->at * m->n_grid_tp * m->n_grid_batch;
    if (c->measured_on == NULL) {
        return HV_UNKNOWN;
    }
    if (a->ideal && m->n_grid_tp * m->n_grid_batch > 1) {
        return c->factor * least_of(m, grid, a->q);
    }
    return c->factor * by_degree(m, grid, a->q, hv_or(l->parallel_frac, 1));
}

static struct hv_part_cost price_measured(const struct hv__ask *a)
{
    const struct hv_measured_layer *l = &a->k->model->measured[a->block];
    const struct hv_part_query *q = a->q;
    struct column c = column_of(a->k, l, q->device);
    double frac = hv_or(l->parallel_frac, 1), ways = hv__tp_parts(q) * q->cp;
    double weight_bytes = hv_job_weight_bytes(&a->k->job);
    bool again = q->recompute != 0;
    struct hv_part_cost out = {.forward_s = measured_s(a, l, l->forward_s, &c),
                               .parameters = l->parameter_bytes / weight_bytes /
                                             (hv__tp_parts(q) / hv__tp_depth(q)),
                               .output_bytes = l->output_bytes * q->sequences / q->cp};
    double backward_s = measured_s(a, l, l->backward_s, &c);
    double kept = l->activation_bytes * q->sequences / ways;
    out.input_grad_s = out.weight_grad_s = backward_s / 2;
    out.recompute_s = again ? out.forward_s : 0;
    out.saved_bytes = again ? fmin(kept, out.output_bytes) : kept;
    out.saved_input_bytes = out.saved_bytes;
    out.transient_bytes = kept - out.saved_bytes;
    hv_why_add(a->why, l->name ? l->name : "layer", out.forward_s, "s",
               "measured on %s, times %.4g for this device, parallel share %.3g over %.0f ranks",
               c.measured_on ? c.measured_on : "no device of this cluster", c.factor, frac, ways);
    struct hv__exchange x = {.tp_bytes = l->output_bytes * q->sequences / q->cp,
                             .tp_forward = 1,
                             .tp_backward = again ? 2 : 1};
    if (!a->ideal && a->k->model->n_grid_tp == 1) { /* else it was measured with the layer */
        hv__price_exchange(a, &x, &out);
    }
    return out;
}

/* A graph is one sequence of the batch it was written for; the whole graph is priced per sequence.
 */
static struct hv_part_cost price_op(const struct hv__ask *a)
{
    const struct hv_graph_op *o = &a->k->model->ops[a->block];
    const struct hv_part_query *q = a->q;
    struct hv_efficiency e = hv_efficiency_of(q->device, a->k->job.precision);
    double ways = hv__tp_parts(q) * q->cp, flops = hv_graph_op_flops(a->k->model, o);
    double once = hv_known(o->time_s) ? o->time_s
                                      : fmax(hv_or(flops, 0) / e.gemm_flops_per_s,
                                             hv_or(o->bytes, 0) / e.bytes_per_s);
    double start = a->ideal || hv_known(o->time_s) ? 0 : e.launch_s;
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
               hv_known(o->time_s) ? "time of the file" : "roofline, estimated", hv_or(flops, 0),
               hv_or(o->bytes, 0));
    return out;
}

double hv__measured_update_s(const struct hv_cost *k, const struct hv_device_kind *device)
{
    const struct hv_model *m = k->model;
    double update_s = 0, bytes = 0;
    for (size_t i = 0; m->kind == HV_MODEL_LAYERS && i < m->n_blocks; i++) {
        const struct hv_measured_layer *l = &m->measured[i];
        struct column c = column_of(k, l, device);
        double own = c.measured_on ? l->update_s[c.at] : HV_UNKNOWN;
        if (!hv_known(own) || c.factor != 1) {
            continue;
        }
        update_s += own;
        bytes += l->parameter_bytes;
    }
    return bytes > 0 ? update_s / (bytes / hv_job_weight_bytes(&k->job)) : HV_UNKNOWN;
}

struct hv_part_cost hv__price_layer(const struct hv__ask *a)
{
    if (a->part != HV_PART_ATTENTION) {
        return (struct hv_part_cost){0};
    }
    return a->k->model->kind == HV_MODEL_LAYERS ? price_measured(a) : price_op(a);
}
