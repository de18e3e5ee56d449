/**
 * Stages of operators with operands: patterns of operators become ranges of blocks, and the places
 * of a mesh data-parallel ranks of as many tensor-parallel ones, as the other steps know them. The
 * mesh stays, and tells the cost model what the tensor-parallel ranks do.
 */
#include "solver/eval/train/steps.h"
#include "solver/plan/mesh.h"

#include <string.h>

static bool concerns(const struct hv_model *m, const struct hv_stage *s)
{
    const struct hv_model *own = hv_stage_model(m, s);
    return own != NULL && hv_model_has_operands(own) && (s->n_ops > 0 || s->mesh.n > 0);
}

static void rewrite(const struct hv_model *m, struct hv_arena *arena, struct hv_stage *s)
{
    const struct hv_model *own = hv_stage_model(m, s);
    if (s->n_ops > 0 && s->n_ranges == 0) {
        s->n_ranges = hv_stage_op_ranges(s, own, arena, &s->ranges);
        s->n_ops = 0;
    }
    if (s->mesh.n > 0) {
        s->dp = hv_mesh_data_ranks(s, own);
        s->tp.degree = (int)(hv_mesh_places(s) / s->dp);
    }
}

const struct hv_plan *hv__meshed_plan(const struct hv_plan *p, const struct hv_model *m,
                                      struct hv_arena *arena)
{
    bool any = false;
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            any = any || concerns(m, &p->replicas[i].stages[k]);
        }
    }
    if (!any) {
        return p;
    }
    struct hv_plan *out = hv_arena_new(arena, struct hv_plan, 1);
    *out = *p; /* only looked at: owns nothing */
    out->replicas = hv_arena_new(arena, struct hv_replica, p->n_replicas);
    for (size_t i = 0; i < p->n_replicas; i++) {
        struct hv_replica *r = &out->replicas[i];
        *r = p->replicas[i];
        r->stages = hv_arena_new(arena, struct hv_stage, r->n_stages + 1);
        memcpy(r->stages, p->replicas[i].stages, r->n_stages * sizeof *r->stages);
        for (size_t k = 0; k < r->n_stages; k++) {
            if (concerns(m, &r->stages[k])) {
                rewrite(m, arena, &r->stages[k]);
            }
        }
    }
    return out;
}
