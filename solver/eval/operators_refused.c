/** What no judge simulates of stages of operators with operands. */
#include "solver/eval/not_simulated.h"

#include "solver/base/units.h"
#include "solver/plan/mesh.h"
#include "solver/workload/graph/tensor_graph.h"

#include <string.h>

/** A stage of a plan. */
struct place {
    const struct hv_plan *plan;
    const struct hv_model *model;
    size_t replica, number;
    const struct hv_stage *stage;
    struct hv_arena *arena;
};

static enum hv_status refuse(const struct place *at, const char *key, const char *why,
                             struct hv_err *err)
{
    return hv_err_set(err, HV_ENO, "not simulated yet: replicas[%zu].stages[%zu].%s: %s",
                      at->replica, at->number, key, why);
}

/** True where a micro-batch has a length of its own. */
static bool gives_tokens(const struct hv_replica *r)
{
    for (int64_t i = 0; r->list != NULL && i < r->micro_batches; i++) {
        if (r->list[i].tokens > 0) {
            return true;
        }
    }
    return false;
}

static enum hv_status check_keys(const struct place *at, struct hv_err *err)
{
    const struct hv_stage *s = at->stage;
    bool schedule_gives_devices = hv_plan_shares_devices(at->plan);
    const struct {
        bool given;
        const char *key, *why;
    } rows[] = {
        {s->place.n > 0, "place", "operators placed on devices of their own"},
        {s->tp.degree > 1, "tp",
         "operators of a graph cut by number; give \"mesh\" and \"shard\", which say along what"},
        {s->cp.degree > 1, "cp",
         "operators of a graph cut by number; give \"mesh\" and \"shard\", which say along what"},
        {s->sequence_parallel, "sequence_parallel",
         "a knob of transformers; split the sequence by \"shard\""},
        {s->ep > 1, "ep", "a knob of experts; split them by \"shard\""},
        {s->zero.stage > 1, "zero.stage",
         "sharded gradients and weights of operators; split the parameters themselves by "
         "\"shard\""},
        {s->n_degrees > 0, "degrees", "layer-wise degrees of operators"},
        {s->n_offload > 0, "offload", "offload of operators' tensors"},
        {s->n_recompute_per > 0, "recompute", "recompute by operator; \"none\" or \"full\""},
        {s->recompute != HV_RC_NONE && (s->recompute & HV_RC_FULL) != HV_RC_FULL, "recompute",
         "units of transformers in a graph of operators; \"none\" or \"full\""},
        {s->mesh.n > 0 && (s->dp > 1 || s->shares != NULL), "dp",
         "data-parallel ranks beside a mesh; make them an axis of it that splits the batch"},
        {s->mesh.n > 0 && s->deal == HV_DEAL_TURNS, "deal", "ranks of a mesh in turns"},
        {s->mesh.n > 0 && schedule_gives_devices, "mesh",
         "a mesh on devices that several stages share"},
        {s->mesh.n == 0 && s->n_shard > 0, "shard", "splits without a \"mesh\" to split over"},
        {at->plan->mode == HV_MODE_SERVE, "mesh", "operators that serve"},
        {gives_tokens(&at->plan->replicas[at->replica]), "devices",
         "micro-batches of other lengths than the graph is written for"},
        {at->plan->schedule.slices > 1, "devices", "slices of a graph's sequences"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (rows[i].given) {
            return refuse(at, rows[i].key, rows[i].why, err);
        }
    }
    return HV_OK;
}

/** Blocks of a stage that are neither ranges nor one run of operators. */
static enum hv_status check_run(const struct place *at, struct hv_err *err)
{
    struct hv_range *ranges = NULL;
    if (at->stage->n_ops == 0) {
        return HV_OK;
    }
    size_t n = hv_stage_op_ranges(at->stage, at->model, at->arena, &ranges);
    return n < 2 ? HV_OK
                 : refuse(at, "ops",
                          hv_arena_printf(at->arena,
                                          "operators that do not follow each other: \"%s\" is "
                                          "behind \"%s\" and between them are others",
                                          at->model->ops[ranges[1].from2 / 2].id,
                                          at->model->ops[(ranges[0].to2 - 1) / 2].id),
                          err);
}

/** Pairs of `fuse` that join nothing would change nothing. */
static enum hv_status check_fuse(const struct place *at, struct hv_err *err)
{
    const struct hv_named_pairs *f = &at->stage->fuse;
    uint32_t *group = hv_arena_new(at->arena, uint32_t, at->model->n_ops + 1);
    size_t p = hv_fused_groups(f, at->model->tensors, group);
    return p == f->n
               ? HV_OK
               : refuse(at, "fuse",
                        hv_arena_printf(at->arena,
                                        "no operator \"%.80s\" reads the result of \"%.80s\", nor "
                                        "do products of these names read the same tensor",
                                        f->values[p], f->keys[p]),
                        err);
}

/** True where a stage holds the operator. */
static bool holds(const struct place *at, size_t op)
{
    const struct hv_stage *s = at->stage;
    for (size_t i = 0; i < s->n_ranges; i++) {
        if (s->ranges[i].from2 <= 2 * (int)op && 2 * (int)op < s->ranges[i].to2) {
            return true;
        }
    }
    for (size_t i = 0; i < s->n_ops; i++) {
        if (hv_name_match(s->ops[i], at->model->ops[op].id)) {
            return true;
        }
    }
    return false;
}

/** Parameters that operators of another stage read too: their gradients would have to meet. */
static enum hv_status check_shared(const struct place *at, struct hv_err *err)
{
    const struct hv_tensor_graph *g = at->model->tensors;
    bool *inside = hv_arena_new(at->arena, bool, g->n_tensors + 1);
    bool *outside = hv_arena_new(at->arena, bool, g->n_tensors + 1);
    for (size_t i = 0; i < g->n_ops; i++) {
        bool own = holds(at, i);
        for (size_t k = 0; k < g->ops[i].n_in; k++) {
            uint32_t t = g->ops[i].in[k].tensor;
            *(own ? &inside[t] : &outside[t]) = true;
            if (g->tensors[t].role == HV_TENSOR_PARAMETER && inside[t] && outside[t]) {
                return refuse(at, "devices",
                              hv_arena_printf(at->arena,
                                              "parameter \"%s\" is read here and in another stage",
                                              g->tensors[t].name),
                              err);
            }
        }
    }
    return HV_OK;
}

/** Data-parallel ranks of a mesh that do not divide its micro-batch. */
static enum hv_status check_batch(const struct place *at, struct hv_err *err)
{
    const struct hv_replica *r = &at->plan->replicas[at->replica];
    int ranks = hv_mesh_data_ranks(at->stage, at->model);
    int size = hv_stage_micro_batch(at->plan, r, at->stage);
    return size % ranks == 0
               ? HV_OK
               : refuse(at, "mesh",
                        hv_arena_printf(at->arena,
                                        "a micro-batch of %d sequences over %d data-parallel ranks "
                                        "of the mesh",
                                        size, ranks),
                        err);
}

static bool same_pairs(const struct hv_named_pairs *a, const struct hv_named_pairs *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        same = strcmp(a->keys[i], b->keys[i]) == 0 && strcmp(a->values[i], b->values[i]) == 0;
    }
    return same;
}

static bool same_layout(const struct hv_stage *a, const struct hv_stage *b)
{
    bool same = same_pairs(&a->mesh, &b->mesh) && a->n_shard == b->n_shard;
    for (size_t i = 0; same && i < a->n_shard; i++) {
        same = strcmp(a->shard[i].name, b->shard[i].name) == 0 &&
               same_pairs(&a->shard[i], &b->shard[i]);
    }
    return same;
}

/** Entries whose stages lay out the same operators in unlike ways: their gradients would have to
 * change layout before they meet. */
static enum hv_status check_entries(const struct place *at, struct hv_err *err)
{
    struct place other = *at;
    for (other.replica = 0; other.replica < at->replica; other.replica++) {
        const struct hv_replica *r = &at->plan->replicas[other.replica];
        for (size_t s = 0; s < r->n_stages; s++) {
            other.stage = &r->stages[s];
            bool shared = false;
            for (size_t i = 0; i < at->model->n_ops && !shared; i++) {
                shared = holds(at, i) && holds(&other, i);
            }
            if (shared && !same_layout(at->stage, other.stage)) {
                return refuse(at, at->stage->mesh.n > 0 ? "mesh" : "devices",
                              hv_arena_printf(at->arena,
                                              "operators that replicas[%zu].stages[%zu] lays out "
                                              "otherwise",
                                              other.replica, s),
                              err);
            }
        }
    }
    return HV_OK;
}

/** Operators that do not stand in the order of the stages: what they write goes to the next stage.
 */
static enum hv_status check_chain(const struct place *at, struct hv_err *err)
{
    return hv_stage_branches(at->stage, at->number)
               ? refuse(at, "after",
                        "branches between stages of operators; what a later stage reads passes "
                        "through those between",
                        err)
               : HV_OK;
}

/** True where a stage may hold operators with operands: of the model, or of a module of it. */
static bool holds_operands(const struct hv_model *m, const struct hv_stage *s)
{
    const struct hv_model *own = hv_stage_model(m, s);
    if (own == NULL || own->kind != HV_MODEL_MODULES) {
        return own != NULL && hv_model_has_operands(own);
    }
    for (size_t i = 0; i < own->n_modules; i++) {
        if (hv_model_has_operands(own->modules[i].model)) {
            return true;
        }
    }
    return false;
}

enum hv_status hv__refuse_operators(const struct hv_plan *p, const struct hv_model *m,
                                    size_t replica, size_t stage, struct hv_arena *arena,
                                    struct hv_err *err)
{
    struct place at = {.plan = p,
                       .model = m,
                       .replica = replica,
                       .number = stage,
                       .stage = &p->replicas[replica].stages[stage],
                       .arena = arena};
    if (!holds_operands(m, at.stage)) {
        return HV_OK;
    }
    enum hv_status st = check_keys(&at, err);
    if (!hv_model_has_operands(m)) {
        return st; /* a stage of modules has neither patterns nor a mesh: hv__refuse_unsimulated */
    }
    st = st != HV_OK ? st : check_run(&at, err);
    st = st != HV_OK ? st : check_fuse(&at, err);
    st = st != HV_OK ? st : check_shared(&at, err);
    st = st != HV_OK ? st : check_batch(&at, err);
    st = st != HV_OK ? st : check_entries(&at, err);
    return st != HV_OK ? st : check_chain(&at, err);
}
