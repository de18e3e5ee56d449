/** Meshes of stages: data-parallel axes, operators by patterns. */
#include "solver/plan/mesh.h"

#include "solver/workload/graph/graph_part.h"
#include <stdlib.h>
#include <string.h>

bool hv_model_has_operands(const struct hv_model *m)
{
    return m->kind == HV_MODEL_GRAPH && m->tensors != NULL;
}

double hv_mesh_places(const struct hv_stage *s)
{
    double places = 1;
    for (size_t i = 0; i < s->mesh.n; i++) {
        places *= strtod(s->mesh.values[i], NULL);
    }
    return places;
}

static bool named(const struct hv_stage *s, const char *id)
{
    for (size_t i = 0; i < s->n_ops; i++) {
        if (hv_name_match(s->ops[i], id)) {
            return true;
        }
    }
    return false;
}

size_t hv_stage_op_ranges(const struct hv_stage *s, const struct hv_model *m,
                          struct hv_arena *arena, struct hv_range **out)
{
    size_t n = 0;
    *out = hv_arena_new(arena, struct hv_range, m->n_ops + 1);
    for (size_t i = 0; i < m->n_ops; i++) {
        if (!named(s, m->ops[i].id)) {
            continue;
        }
        if (n == 0 || (*out)[n - 1].to2 != 2 * (int)i) {
            (*out)[n++].from2 = 2 * (int)i;
        }
        (*out)[n - 1].to2 = 2 * (int)i + 2;
    }
    return n;
}

/* ---- data-parallel axes ---------------------------------------------------------------------- */

/* True where rules name the axis, always with the batch. */
static bool splits_batch_alone(const struct hv_stage *s, const char *axis, const char *batch)
{
    bool any = false;
    for (size_t i = 0; i < s->n_shard; i++) {
        for (size_t k = 0; k < s->shard[i].n; k++) {
            if (strcmp(s->shard[i].keys[k], axis) != 0) {
                continue;
            }
            if (strcmp(s->shard[i].values[k], batch) != 0) {
                return false;
            }
            any = true;
        }
    }
    return any;
}

static bool holds_any(const uint32_t *dims, size_t n, const bool *set)
{
    for (size_t d = 0; d < n; d++) {
        if (set[dims[d]]) {
            return true;
        }
    }
    return false;
}

/* True where an operator reads a result that was summed over the batch, or computed along it. */
static bool reads_across_batch(const struct hv_tensor_graph *g)
{
    bool *follows = hv_xcalloc(g->n_dims + 1, sizeof *follows);
    bool *summed = hv_xcalloc(g->n_tensors + 1, sizeof *summed);
    struct hv_err err = {0};
    bool across = hv_tensor_graph_batch_dims(g, follows, &err) != HV_OK;
    for (size_t i = 0; i < g->n_ops && !across; i++) {
        const struct hv_tensor_op *op = &g->ops[i];
        const struct hv_tensor *out = &g->tensors[op->out];
        for (size_t k = 0; k < op->n_in; k++) {
            bool reads = holds_any(op->in[k].dim, op->in[k].n_dims, follows);
            across = across || summed[op->in[k].tensor];
            summed[op->out] =
                summed[op->out] || (reads && !holds_any(out->dim, out->n_dims, follows));
        }
        across = across || holds_any(op->over, op->n_over, follows);
    }
    free(follows);
    free(summed);
    return across;
}

int hv_mesh_data_ranks(const struct hv_stage *s, const struct hv_model *m)
{
    const struct hv_tensor_graph *g = m->tensors;
    int ranks = 1;
    if (!hv_model_has_operands(m) || g->batch == HV_NO_DIM || s->mesh.n == 0 ||
        reads_across_batch(g)) {
        return 1;
    }
    for (size_t i = 0; i < s->mesh.n; i++) {
        if (!splits_batch_alone(s, s->mesh.keys[i], g->dims[g->batch].name)) {
            break;
        }
        ranks *= (int)strtol(s->mesh.values[i], NULL, 10);
    }
    return ranks;
}

/* ---- kernels -----------------------------------------------------------------------------------
 */

/* The operator of the first pattern that op is joined to; UINT32_MAX: none. `reader`: per tensor
 * the last product of the first pattern that reads it. */
static uint32_t joined_to(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                          const char *first, const uint32_t *reader)
{
    for (size_t k = 0; k < op->n_in; k++) {
        uint32_t t = op->in[k].tensor;
        if (t >= g->n_given && hv_name_match(first, g->ops[t - g->n_given].id)) {
            return (uint32_t)(t - g->n_given);
        }
        if (op->kind == HV_OP_EINSUM && reader[t] != UINT32_MAX) {
            return reader[t];
        }
    }
    return UINT32_MAX;
}

static bool join(const struct hv_tensor_graph *g, const char *first, const char *second,
                 uint32_t *reader, uint32_t *group)
{
    bool any = false;
    memset(reader, 0xff, g->n_tensors * sizeof *reader);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const struct hv_tensor_op *op = &g->ops[i];
        uint32_t to = hv_name_match(second, op->id) ? joined_to(g, op, first, reader) : UINT32_MAX;
        if (to != UINT32_MAX) {
            group[i] = group[to];
            any = true;
        }
        for (size_t k = 0; k < op->n_in && op->kind == HV_OP_EINSUM; k++) {
            uint32_t t = op->in[k].tensor;
            if (g->tensors[t].role != HV_TENSOR_PARAMETER && hv_name_match(first, op->id)) {
                reader[t] = i;
            }
        }
    }
    return any;
}

size_t hv_fused_groups(const struct hv_named_pairs *f, const struct hv_tensor_graph *g,
                       uint32_t *group)
{
    size_t without = f->n;
    uint32_t *reader = hv_xmalloc((g->n_tensors + 1) * sizeof *reader);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        group[i] = i;
    }
    for (size_t p = 0; p < f->n; p++) {
        bool any = join(g, f->keys[p], f->values[p], reader, group);
        without = !any && without == f->n ? p : without;
    }
    free(reader);
    return without;
}
