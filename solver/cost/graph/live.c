/** Liveness of activations over the order of kernels. */
#include "solver/cost/graph/live.h"

#include "solver/workload/graph/gradient.h"
#include <math.h>
#include <stdlib.h>

struct walk {
    const struct hv_sharding *s;
    const struct hv__kernels *k;
    uint32_t *last; /* tensor → last kernel that reads it, + 1 */
    double *bytes;  /* tensor → bytes that live now */
    bool *left_out; /* tensor: a parameter, or the gradient of one */
    double live, peak;
};

static void leave_out_parameters(struct walk *w, const struct hv_tensor_graph *g)
{
    const struct hv_sharding *s = w->s;
    for (uint32_t t = 0; t < s->graph.n_tensors; t++) {
        w->left_out[t] = w->k->from_weights[t];
    }
    for (uint32_t t = 0; t < g->n_given && s->gradient_of != NULL; t++) {
        uint32_t gradient = s->gradient_of[s->expansion.tensor_of[t]];
        if (g->tensors[t].role == HV_TENSOR_PARAMETER && gradient != HV_NO_TENSOR) {
            w->left_out[w->k->root[gradient]] = true;
        }
    }
}

static void put(struct walk *w, uint32_t t, double bytes)
{
    if (!w->left_out[t]) {
        w->live += bytes - w->bytes[t];
        w->bytes[t] = bytes;
        w->peak = fmax(w->peak, w->live);
    }
}

static double settled(const struct walk *w, uint32_t t)
{
    const struct hv_shard_tensor *x = &w->s->graph.tensors[t];
    return hv_layout_bytes(&x->layout, &w->s->graph.mesh, &x->shape);
}

/* What a kernel reads in another layout than the tensor has, or larger, stands beside it. */
static double beside(const struct walk *w, const struct hv__kernel *k)
{
    double sum = 0;
    for (size_t i = 0; i < k->n_reads; i++) {
        sum += fmax(0, k->reads[i].bytes - settled(w, k->reads[i].tensor));
    }
    return sum;
}

static void run(struct walk *w, uint32_t number)
{
    const struct hv__kernel *k = &w->k->items[number];
    for (size_t i = 0; i < k->n_reads; i++) { /* gradients that arrive have no writer */
        uint32_t t = k->reads[i].tensor;
        if (w->bytes[t] == 0) {
            put(w, t, settled(w, t));
        }
    }
    for (size_t i = 0; i < k->n_writes; i++) {
        put(w, k->writes[i].tensor, k->writes[i].bytes);
    }
    w->peak = fmax(w->peak, w->live + beside(w, k));
    for (size_t i = 0; i < k->n_writes; i++) {
        put(w, k->writes[i].tensor, settled(w, k->writes[i].tensor));
    }
    for (size_t i = 0; i < k->n_reads; i++) {
        if (w->last[k->reads[i].tensor] == number + 1) {
            put(w, k->reads[i].tensor, 0);
        }
    }
}

static double read_by_weights(const struct walk *w)
{
    double sum = 0;
    bool *counted = hv_xcalloc(w->s->graph.n_tensors + 1, sizeof *counted);
    for (size_t i = w->k->n_forward; i < w->k->n; i++) {
        const struct hv__kernel *k = &w->k->items[i];
        for (size_t r = 0; r < k->n_reads && k->weight; r++) {
            uint32_t t = k->reads[r].tensor;
            sum += counted[t] ? 0 : w->bytes[t];
            counted[t] = true;
        }
    }
    free(counted);
    return sum;
}

/* Results that nobody in this pass reads are sent on, and given back. */
static void send_on(struct walk *w)
{
    for (uint32_t t = 0; t < w->s->graph.n_tensors; t++) {
        if (w->bytes[t] > 0 && w->last[t] <= w->k->n_forward) {
            put(w, t, 0);
        }
    }
}

struct hv__live hv__live_bytes(const struct hv_sharding *s, const struct hv__kernels *k,
                               const struct hv_graph_part *part, bool again)
{
    size_t n = s->graph.n_tensors + 1;
    struct hv__live out = {0};
    struct walk w = {.s = s, .k = k};
    w.last = hv_xcalloc(n, sizeof *w.last);
    w.bytes = hv_xcalloc(n, sizeof *w.bytes);
    w.left_out = hv_xcalloc(n, sizeof *w.left_out);
    leave_out_parameters(&w, &part->graph);
    for (uint32_t i = 0; i < k->n; i++) {
        for (size_t r = 0; r < k->items[i].n_reads; r++) {
            w.last[k->items[i].reads[r].tensor] = i + 1;
        }
    }
    for (size_t i = 0; i < part->n_arriving; i++) {
        uint32_t t = k->root[s->expansion.tensor_of[part->arriving[i]]];
        put(&w, t, settled(&w, t));
    }
    out.arriving = w.live;
    for (uint32_t i = 0; i < k->n_forward; i++) {
        run(&w, i);
    }
    send_on(&w);
    out.kept = w.live;
    out.weight_only = fmin(read_by_weights(&w), out.kept);
    for (uint32_t i = (uint32_t)k->n_forward; i < k->n; i++) {
        run(&w, i);
    }
    if (again) {
        out.kept = fmin(out.kept, out.arriving);
        out.weight_only = fmin(out.weight_only, out.kept);
    }
    out.transient = fmax(0, w.peak - out.kept);
    free(w.last);
    free(w.bytes);
    free(w.left_out);
    return out;
}
