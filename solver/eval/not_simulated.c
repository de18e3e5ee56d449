/** What no judge simulates yet, found in a plan and its model. An operator graph without operands
 * is priced as a chain of whole operators (cost/operators.c), so whatever needs more than that is
 * refused. Operators with operands run on a mesh (cost/graph); see operators_refused.c. */
#include "solver/eval/not_simulated.h"

#include <string.h>

#include "solver/base/units.h"
#include "solver/inventory/cluster.h"
#include "solver/plan/mesh.h"
#include "solver/sim/schedule/schedule.h"

/** A stage of a plan, and the leaves of the model. */
struct place {
    const struct hv_plan *plan;
    const struct hv_model *model;
    const struct hv_model_leaf *leaves;
    size_t n_leaves, replica, stage;
    bool graph;       /**< any leaf is an operator graph */
    unsigned classes; /**< of the stage's devices */
};

static const struct hv_stage *stage_of(const struct place *at)
{
    return &at->plan->replicas[at->replica].stages[at->stage];
}

static enum hv_status refuse(const struct place *at, const char *key, const char *why,
                             struct hv_err *err)
{
    return hv_err_set(err, HV_ENO, "not simulated yet: replicas[%zu].stages[%zu].%s: %s",
                      at->replica, at->stage, key, why);
}

/** Keys of a stage that name operators one by one. */
static enum hv_status check_keys(const struct place *at, struct hv_err *err)
{
    const struct hv_stage *s = stage_of(at);
    if (hv_model_has_operands(at->model)) {
        return HV_OK;
    }
    const struct {
        bool given;
        const char *key, *why;
    } rows[] = {
        {s->n_ops > 0, "ops",
         "stages of operators chosen by name; give layers, a range [from, to)"},
        {s->mesh.n > 0, "mesh", "operators on a mesh of devices"},
        {s->n_shard > 0, "shard", "operators cut along named dimensions"},
        {s->place.n > 0, "place", "operators placed on devices of their own"},
        {s->fuse.n > 0, "fuse", "operators fused in pairs"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (rows[i].given) {
            return refuse(at, rows[i].key, rows[i].why, err);
        }
    }
    return HV_OK;
}

/** An edge that a chain of operators, in the order of the file, does not have, or the first one
 * that it lacks. NULL: the graph is such a chain. */
static const char *find_branch(const struct hv_model *m, struct hv_arena *arena)
{
    bool *follows = hv_arena_new(arena, bool, m->n_ops + 1);
    for (size_t i = 0; i < m->n_edges; i++) {
        const struct hv_model_edge *e = &m->edges[i];
        if (e->to != e->from + 1) {
            return hv_arena_printf(arena,
                                   "operator \"%s\" feeds \"%s\", which is not the next one in the "
                                   "list",
                                   m->ops[e->from].id, m->ops[e->to].id);
        }
        follows[e->to] = true;
    }
    for (size_t i = 1; i < m->n_ops; i++) {
        if (!follows[i]) {
            return hv_arena_printf(arena,
                                   "operator \"%s\" does not read the output of the one before it, "
                                   "\"%s\"",
                                   m->ops[i].id, m->ops[i - 1].id);
        }
    }
    return NULL;
}

static enum hv_status check_graphs(const struct place *at, struct hv_arena *arena,
                                   struct hv_err *err)
{
    for (size_t i = 0; i < at->n_leaves; i++) {
        const struct hv_model_leaf *leaf = &at->leaves[i];
        bool chain = leaf->model->kind == HV_MODEL_GRAPH && !hv_model_has_operands(leaf->model);
        const char *why = chain ? find_branch(leaf->model, arena) : NULL;
        if (why != NULL) {
            return hv_err_set(err, HV_ENO,
                              "not simulated yet: %s%smodel.edges: only chains of operators are "
                              "simulated, and %s",
                              leaf->name != NULL ? leaf->name : "", leaf->name != NULL ? ": " : "",
                              why);
        }
    }
    return HV_OK;
}

/** The operator of a block of the whole model; NULL: the block is none. */
static const struct hv_graph_op *op_of(const struct place *at, size_t block)
{
    for (size_t i = 0; i < at->n_leaves; i++) {
        const struct hv_model_leaf *leaf = &at->leaves[i];
        if (block >= leaf->first && block < leaf->first + leaf->model->n_blocks) {
            return leaf->model->kind == HV_MODEL_GRAPH ? &leaf->model->ops[block - leaf->first]
                                                       : NULL;
        }
    }
    return NULL;
}

/** Classes of the devices of a stage, as bits. O(devices · log groups). */
static unsigned classes_of(const struct place *at)
{
    const struct hv_stage *s = stage_of(at);
    unsigned classes = 0;
    for (size_t d = 0; d < s->n_devices; d++) {
        classes |= 1u << hv_cluster_device(at->plan->cluster, s->devices[d]).kind->cls;
    }
    return classes;
}

static enum hv_status check_class(const struct place *at, const struct hv_graph_op *o,
                                  struct hv_arena *arena, struct hv_err *err)
{
    for (int c = 0; o->device_class != NULL && c < HV_CLASS_N; c++) {
        const char *own = hv_device_class_name((enum hv_device_class)c);
        if (at->classes & 1u << c && strcmp(o->device_class, own) != 0) {
            return refuse(at, "devices",
                          hv_arena_printf(arena,
                                          "operator \"%s\" asks for a device of class \"%s\", the "
                                          "stage has one of class \"%s\"",
                                          o->id, o->device_class, own),
                          err);
        }
    }
    return HV_OK;
}

/** True where a stage holds the half block. */
static bool holds(const struct place *at, size_t half)
{
    const struct hv_stage *s = stage_of(at);
    size_t first2 = 0, n2 = 0;
    bool known = hv_stage_module(at->model, s, &first2, &n2);
    for (size_t k = 0; known && k < s->n_ranges; k++) {
        if (half >= first2 + (size_t)s->ranges[k].from2 &&
            half < first2 + (size_t)s->ranges[k].to2) {
            return true;
        }
    }
    return false;
}

/** Operators of a range of blocks: those of another device class, and the last one where another
 * stage reads its output. */
static enum hv_status check_range(const struct place *at, size_t from, size_t to, bool *any,
                                  struct hv_arena *arena, struct hv_err *err)
{
    const struct hv_graph_op *last = NULL;
    for (size_t block = from; block < to; block++) {
        last = op_of(at, block);
        *any = *any || last != NULL;
        enum hv_status st = last != NULL ? check_class(at, last, arena, err) : HV_OK;
        if (st != HV_OK) {
            return st;
        }
    }
    bool sent = last != NULL && to < at->model->n_blocks && !holds(at, 2 * to);
    if (sent && !hv_known(last->bytes)) {
        return refuse(
            at, "layers",
            hv_arena_printf(arena,
                            "the output of operator \"%s\" goes to another stage, and the "
                            "model gives no bytes for it; add \"bytes\" to the operator",
                            last->id),
            err);
    }
    return HV_OK;
}

static enum hv_status check_operators(const struct place *at, struct hv_arena *arena,
                                      struct hv_err *err)
{
    const struct hv_stage *s = stage_of(at);
    size_t first2 = 0, n2 = 0;
    bool any = false, known = hv_stage_module(at->model, s, &first2, &n2);
    for (size_t k = 0; known && k < s->n_ranges; k++) {
        struct hv_range r = s->ranges[k];
        size_t from = r.from2 > 0 ? (size_t)r.from2 : 0, to = r.to2 > 0 ? (size_t)r.to2 : 0;
        enum hv_status st = check_range(at, (first2 + from) / 2, (first2 + (to < n2 ? to : n2)) / 2,
                                        &any, arena, err);
        if (st != HV_OK) {
            return st;
        }
    }
    if (any && s->tp.degree > 1) {
        return refuse(at, "tp", "operators of a graph cut over tensor-parallel ranks", err);
    }
    if (any && s->cp.degree > 1) {
        return refuse(at, "cp", "operators of a graph cut over context-parallel ranks", err);
    }
    return HV_OK;
}

/** True where `n` ranks can share a dimension of the tokens of that name. */
static bool has_dim(const struct hv_model *m, const char *name)
{
    for (size_t i = 0; i < m->n_token_dims; i++) {
        if (strcmp(m->token_dims[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/** Sequences that are cut along another dimension from block to block: every block attends along
 * one dimension, and is cut along another. */
static enum hv_status check_dims(const struct place *at, struct hv_arena *arena, struct hv_err *err)
{
    const struct hv_model *m = at->model;
    const struct hv_stage *s = stage_of(at);
    if (s->cp.scheme != HV_CP_DSP || s->cp.degree < 2) {
        return HV_OK;
    }
    if (m->n_token_dims < 2) {
        return refuse(at, "cp",
                      "scheme dsp needs a model with two dimensions of tokens; give the model "
                      "\"tokens\", as { \"time\": 16, \"space\": 1024 }, and \"attends\" per block",
                      err);
    }
    size_t number = 0;
    for (size_t i = 0; i < s->cp.n_dims; i++) {
        if (!has_dim(m, s->cp.dims[i])) {
            return refuse(at, "cp.dims",
                          hv_arena_printf(arena, "the model has no dimension \"%s\" of tokens",
                                          s->cp.dims[i]),
                          err);
        }
    }
    for (size_t r = 0; r < s->n_ranges; r++) {
        for (int b = s->ranges[r].from2 / 2; b < (s->ranges[r].to2 + 1) / 2; b++, number++) {
            int attends = (size_t)b < m->n_blocks ? m->blocks[b].attends : 1;
            if (attends == 0) {
                return refuse(at, "cp",
                              hv_arena_printf(arena,
                                              "scheme dsp, and block %d attends along all tokens; "
                                              "give it \"attends\", or take ulysses or ring",
                                              b),
                              err);
            }
            const char *own = m->token_dims[attends - 1].name;
            if (s->cp.n_dims > 0 && strcmp(s->cp.dims[number % s->cp.n_dims], own) == 0) {
                return refuse(at, "cp.dims",
                              hv_arena_printf(arena,
                                              "block %d attends along \"%s\" and cannot be cut "
                                              "along it",
                                              b, own),
                              err);
            }
        }
    }
    return HV_OK;
}

/** True where two stages of the replica have micro-batches of unlike size. */
static bool any_unlike(const struct hv_plan *p, const struct hv_replica *r)
{
    bool any = false;
    for (size_t i = 1; i < r->n_stages; i++) {
        any = any || hv_stage_micro_batch(p, r, &r->stages[i]) !=
                         hv_stage_micro_batch(p, r, &r->stages[0]);
    }
    return any;
}

/** Ranks that take micro-batches in turns: each holds a whole stage of its own. */
static enum hv_status check_turns(const struct place *at, struct hv_err *err)
{
    const struct hv_stage *s = stage_of(at);
    if (s->deal != HV_DEAL_TURNS || s->dp < 2) {
        return HV_OK;
    }
    const struct {
        bool given;
        const char *why;
    } rows[] = {
        {s->zero.stage > 2 || hv_zero_scatters(&s->zero),
         "turns of ranks that gather weights or reduce gradients together in every pass; give zero "
         "stage 2 or below with \"reduce\": \"end\""},
        {hv_stage_experts_over(s) > 1,
         "turns of ranks that spread experts over each other; give \"ep\": 1"},
        {s->shares != NULL, "turns with shares of a micro-batch; give one of the two"},
        {at->model->kind == HV_MODEL_MODULES,
         "turns in a model of several modules; leave \"deal\" out"},
        {hv_plan_shares_devices(at->plan), "turns on devices that stages share; leave \"deal\" "
                                           "out, or give each stage devices of its own"},
        {any_unlike(at->plan, &at->plan->replicas[at->replica]),
         "turns beside stages with micro-batches of unlike size; give all stages one micro_batch"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (rows[i].given) {
            return refuse(at, "deal", rows[i].why, err);
        }
    }
    return HV_OK;
}

/** Stages that branch have one chunk each: `after` names stages, not chunks of them. */
static enum hv_status check_branches(const struct place *at, struct hv_err *err)
{
    const struct hv_stage *s = stage_of(at);
    if (s->n_ranges < 2 || !hv_stage_branches(s, at->stage)) {
        return HV_OK;
    }
    return refuse(
        at, "after",
        "branches between stages of several chunks, since after names stages and not their "
        "chunks; give every stage one range of layers",
        err);
}

/** Micro-batches of a stage's own size. */
static enum hv_status check_own_size(const struct place *at, struct hv_err *err)
{
    const struct hv_replica *r = &at->plan->replicas[at->replica];
    if (stage_of(at)->micro_batch == 0 || at->plan->mode == HV_MODE_SERVE) {
        return HV_OK;
    }
    if (r->list != NULL) {
        return refuse(at, "micro_batch",
                      "a size of its own beside a list of micro-batches; give the replica a number",
                      err);
    }
    if (at->model->kind == HV_MODEL_MODULES && any_unlike(at->plan, r)) {
        return refuse(at, "micro_batch",
                      "micro-batches of unlike size in a model of several modules; give all stages "
                      "one micro_batch",
                      err);
    }
    return HV_OK;
}

/** True where two stages' weights follow the same window of the schedule. */
static bool same_window(const struct hv_zero *a, const struct hv_zero *b)
{
    return a->unit == b->unit && a->reshard == b->reshard && a->prefetch == b->prefetch &&
           a->limit == b->limit && (a->reduce == HV_REDUCE_END) == (b->reduce == HV_REDUCE_END);
}

/** Weights that the schedule gathers in whole chunks: held while micro-batches pass, in one window
 * per rank. */
static enum hv_status check_window(const struct place *at, struct hv_err *err)
{
    const struct hv_stage *s = stage_of(at);
    const struct hv_zero *first =
        s->n_degrees == 0 && hv_zero_by_schedule(&s->zero) ? &s->zero : NULL;
    for (size_t i = 0; i < s->n_degrees; i++) {
        const struct hv_zero *z = &s->degrees[i].zero;
        if (first != NULL && hv_zero_by_schedule(z) && !same_window(first, z)) {
            return refuse(at, "degrees",
                          "layers of one stage whose \"zero\" asks for different windows (unit, "
                          "reshard, prefetch, limit, reduce); give them the same",
                          err);
        }
        first = first == NULL && hv_zero_by_schedule(z) ? z : first;
    }
    const struct hv_schedule_row *row = NULL;
    bool stale = hv_plan_is_stale(at->plan) ||
                 (hv_schedule_find(at->plan->schedule.name, &row, NULL) == HV_OK &&
                  (row->flags & HV_SCHEDULE_ASYNC) != 0);
    if (first != NULL && stale) {
        return refuse(at, "zero.unit",
                      "chunks that stay gathered while their weights change between micro-batches "
                      "of a plan that does not wait for all gradients; take \"layer\"",
                      err);
    }
    return HV_OK;
}

/** Serving plans have no gradients and no optimizer states, and no rank gathers weights. */
static enum hv_status check_zero(const struct place *at, struct hv_err *err)
{
    const struct hv_stage *s = stage_of(at);
    int most = s->zero.stage;
    for (size_t i = 0; i < s->n_degrees; i++) {
        most = s->degrees[i].zero.stage > most ? s->degrees[i].zero.stage : most;
    }
    if (most > 0 && at->plan->mode == HV_MODE_SERVE) {
        return refuse(at, "zero.stage",
                      "states sharded over the ranks of a serving plan, which holds its weights "
                      "whole; leave \"zero\" out, and cut weights with \"tp\"",
                      err);
    }
    return check_window(at, err);
}

enum hv_status hv__refuse_unsimulated(const struct hv_plan *p, const struct hv_model *m,
                                      struct hv_arena *arena, struct hv_err *err)
{
    size_t n = hv_model_n_leaves(m);
    struct hv_model_leaf *leaves = hv_arena_new(arena, struct hv_model_leaf, n + 1);
    hv_model_leaves(m, leaves);
    struct place at = {.plan = p, .model = m, .leaves = leaves, .n_leaves = n};
    for (size_t i = 0; i < n; i++) {
        at.graph = at.graph || leaves[i].model->kind == HV_MODEL_GRAPH;
    }
    for (size_t r = 0; r < p->n_replicas; r++) {
        for (size_t i = 0; i < p->replicas[r].n_stages; i++) {
            at.replica = r;
            at.stage = i;
            at.classes = at.graph ? classes_of(&at) : 0;
            enum hv_status st = check_keys(&at, err);
            st = st == HV_OK ? check_dims(&at, arena, err) : st;
            st = st == HV_OK ? check_zero(&at, err) : st;
            st = st == HV_OK ? check_branches(&at, err) : st;
            st = st == HV_OK ? check_turns(&at, err) : st;
            st = st == HV_OK ? check_own_size(&at, err) : st;
            st = st == HV_OK && at.graph ? check_operators(&at, arena, err) : st;
            st = st == HV_OK ? hv__refuse_operators(p, m, r, i, arena, err) : st;
            if (st != HV_OK) {
                return st;
            }
        }
    }
    return p->n_replicas > 0 ? check_graphs(&at, arena, err) : HV_OK;
}

void hv__tell_operators(const struct hv_model *m, struct hv_arena *arena, struct hv_verdict *out)
{
    size_t n_leaves = hv_model_n_leaves(m), n = 0;
    struct hv_model_leaf *leaves = hv_arena_new(arena, struct hv_model_leaf, n_leaves + 1);
    const char *first = NULL;
    hv_model_leaves(m, leaves);
    for (size_t i = 0; i < n_leaves; i++) {
        const struct hv_model *g = leaves[i].model;
        for (size_t k = 0; g->kind == HV_MODEL_GRAPH && k < g->n_ops; k++) {
            bool unknown = !hv_known(g->ops[k].bytes);
            first = unknown && first == NULL ? g->ops[k].id : first;
            n += unknown;
        }
    }
    if (n > 0) {
        hv__add_approximated(
            out, arena,
            hv_arena_printf(arena,
                            "model.ops.bytes: %zu operator%s, the first of them \"%s\", "
                            "give%s no bytes: their activations take no memory",
                            n, n == 1 ? "" : "s", first, n == 1 ? "s" : ""));
    }
}

void hv__tell_forward_only(const struct hv_model *m, struct hv_arena *arena, struct hv_verdict *out)
{
    size_t n_leaves = hv_model_n_leaves(m), n = 0;
    struct hv_model_leaf *leaves = hv_arena_new(arena, struct hv_model_leaf, n_leaves + 1);
    const char *first = NULL;
    hv_model_leaves(m, leaves);
    for (size_t i = 0; i < n_leaves; i++) {
        const struct hv_model *x = leaves[i].model;
        for (size_t k = 0; x->measured != NULL && k < x->n_blocks; k++) {
            bool only = x->measured[k].forward_only;
            first = only && first == NULL ? x->measured[k].name : first;
            n += only;
        }
    }
    if (n > 0) {
        hv__add_approximated(
            out, arena,
            hv_arena_printf(arena,
                            "model.layers.backward_ms: %zu layer%s, the first of them \"%s\", "
                            "give%s no backward pass and run%s forward only",
                            n, n == 1 ? "" : "s", first, n == 1 ? "s" : "", n == 1 ? "s" : ""));
    }
}
