/** Graphs of another batch, and consecutive operators as a graph of their own. */
#include "solver/workload/graph/graph_part.h"

#include <string.h>

/* ---- another number of sequences ------------------------------------------------------------- */

/* Marks the dimensions whose size goes with the batch; false: one of a reshape's parts does, and
 * its whole does not, or the other way round. */
static bool follow_groups(const struct hv_tensor_op *op, bool *follows, bool *more)
{
    for (size_t i = 0; i < op->n_groups; i++) {
        const struct hv_tensor_group *x = &op->group[i];
        bool any = false;
        for (size_t k = 0; k < x->n_parts; k++) {
            any = any || follows[x->part[k]];
        }
        if (follows[x->whole] && !any) {
            return false;
        }
        *more = *more || (any && !follows[x->whole]);
        follows[x->whole] = any;
    }
    return true;
}

/* True where the operator takes elements by number, or a neighbourhood, along such a dimension. */
static bool counts_along(const struct hv_tensor_op *op, const bool *follows)
{
    bool any = false;
    for (size_t i = 0; i < op->n_ranges; i++) {
        any = any || follows[op->range[i].dim];
    }
    for (size_t i = 0; i < op->n_windows; i++) {
        any = any || follows[op->window[i].of] || follows[op->window[i].out];
    }
    return any || (op->kind == HV_OP_CONCAT && op->n_over > 0 && follows[op->over[0]]);
}

enum hv_status hv_tensor_graph_batch_dims(const struct hv_tensor_graph *g, bool *follows,
                                          struct hv_err *err)
{
    bool more = g->batch != HV_NO_DIM;
    memset(follows, 0, g->n_dims * sizeof *follows);
    if (more) {
        follows[g->batch] = true;
    }
    while (more) {
        more = false;
        for (size_t i = 0; i < g->n_ops; i++) {
            const struct hv_tensor_op *op = &g->ops[i];
            if (!follow_groups(op, follows, &more) || counts_along(op, follows)) {
                return hv_err_set(
                    err, HV_EINPUT,
                    "operator \"%.80s\" has sizes that do not follow from the batch, "
                    "\"%.80s\": give a graph for the micro-batch that the plan asks for",
                    op->id, g->dims[g->batch].name);
            }
        }
    }
    return HV_OK;
}

enum hv_status hv_tensor_graph_sized(const struct hv_tensor_graph *g, int64_t sequences,
                                     struct hv_arena *arena, struct hv_tensor_graph *out,
                                     struct hv_err *err)
{
    *out = *g;
    if (g->batch == HV_NO_DIM || g->dims[g->batch].size == sequences) {
        return HV_OK;
    }
    bool *follows = hv_arena_new(arena, bool, g->n_dims + 1);
    enum hv_status st = hv_tensor_graph_batch_dims(g, follows, err);
    out->dims = hv_arena_copy(arena, g->dims, g->n_dims, sizeof *g->dims);
    int64_t old = g->dims[g->batch].size;
    for (size_t d = 0; d < g->n_dims; d++) {
        out->dims[d].size = follows[d] ? g->dims[d].size / old * sequences : g->dims[d].size;
    }
    return st;
}

/* ---- consecutive operators ------------------------------------------------------------------- */

struct cut {
    const struct hv_tensor_graph *g;
    size_t from, to;
    struct hv_arena *arena;
    struct hv_graph_part *out;
    uint32_t *part_of; /* tensor of the whole graph → tensor of the part */
};

/* Number of the operator that writes a tensor of the whole graph. */
static size_t writer(const struct hv_tensor_graph *g, uint32_t tensor)
{
    return tensor - g->n_given;
}

static bool is_result(const struct hv_tensor_graph *g, uint32_t tensor)
{
    return tensor >= g->n_given;
}

static void add_tensor(struct cut *c, uint32_t tensor)
{
    struct hv_graph_part *o = c->out;
    c->part_of[tensor] = (uint32_t)o->graph.n_tensors;
    o->whole[o->graph.n_tensors] = tensor;
    o->graph.tensors[o->graph.n_tensors++] = c->g->tensors[tensor];
}

static void add_given(struct cut *c)
{
    struct hv_graph_part *o = c->out;
    for (size_t i = c->from; i < c->to; i++) {
        for (size_t k = 0; k < c->g->ops[i].n_in; k++) {
            uint32_t t = c->g->ops[i].in[k].tensor;
            bool written = is_result(c->g, t), own = written && writer(c->g, t) >= c->from;
            if (own || c->part_of[t] != UINT32_MAX) {
                continue;
            }
            add_tensor(c, t);
            if (written) {
                o->graph.tensors[c->part_of[t]].role = HV_TENSOR_INPUT;
                o->arriving[o->n_arriving++] = c->part_of[t];
            }
        }
    }
    o->graph.n_given = o->graph.n_tensors;
}

static void add_ops(struct cut *c)
{
    for (size_t i = c->from; i < c->to; i++) {
        add_tensor(c, c->g->ops[i].out);
    }
    for (size_t i = c->from; i < c->to; i++) {
        struct hv_tensor_op *op = &c->out->graph.ops[c->out->graph.n_ops++];
        *op = c->g->ops[i];
        op->in = hv_arena_copy(c->arena, op->in, op->n_in, sizeof *op->in);
        op->out = c->part_of[op->out];
        for (size_t k = 0; k < op->n_in; k++) {
            op->in[k].tensor = c->part_of[op->in[k].tensor];
        }
    }
}

static double bytes_of(const struct hv_tensor_graph *g, const struct hv_tensor *t)
{
    double bytes = (double)hv_dtype_bytes(t->dtype);
    for (size_t d = 0; d < t->n_dims; d++) {
        bytes *= (double)g->dims[t->dim[d]].size;
    }
    return bytes;
}

/* Results that somebody behind the part reads, and those that nobody reads. */
static void find_leaving(struct cut *c)
{
    const struct hv_tensor_graph *g = c->g;
    size_t *last = hv_arena_new(c->arena, size_t, g->n_tensors + 1); /* reader + 1 */
    for (size_t i = 0; i < g->n_ops; i++) {
        for (size_t k = 0; k < g->ops[i].n_in; k++) {
            last[g->ops[i].in[k].tensor] = i + 1;
        }
    }
    for (size_t i = 0; i < c->to; i++) {
        uint32_t t = g->ops[i].out;
        bool behind = last[t] > c->to;
        if (i >= c->from && (behind || last[t] == 0)) {
            c->out->leaving[c->out->n_leaving++] = c->part_of[t];
        }
        c->out->passing_bytes += behind ? bytes_of(g, &g->tensors[t]) : 0;
    }
}

void hv_graph_part_cut(const struct hv_tensor_graph *g, size_t from, size_t to,
                       struct hv_arena *arena, struct hv_graph_part *out)
{
    struct cut c = {g, from, to, arena, out, hv_arena_new(arena, uint32_t, g->n_tensors + 1)};
    memset(c.part_of, 0xff, (g->n_tensors + 1) * sizeof *c.part_of);
    *out = (struct hv_graph_part){.graph = *g};
    out->graph.n_tensors = out->graph.n_given = out->graph.n_ops = 0;
    out->graph.tensors = hv_arena_new(arena, struct hv_tensor, g->n_tensors + 1);
    out->graph.ops = hv_arena_new(arena, struct hv_tensor_op, to - from + 1);
    out->whole = hv_arena_new(arena, uint32_t, g->n_tensors + 1);
    out->arriving = hv_arena_new(arena, uint32_t, g->n_tensors + 1);
    out->leaving = hv_arena_new(arena, uint32_t, to - from + 1);
    add_given(&c);
    add_ops(&c);
    find_leaving(&c);
}
