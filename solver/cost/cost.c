/*
 * The front of the cost model: opens pricing contexts and hands every call on, to the parts of a
 * stage with layer-wise degrees (parts.c), to the leaves of a model of modules (modules.c) or to
 * the row of the model's kind (leaf.h). No price is made here.
 */
#include "solver/cost/cost.h"

#include <stdlib.h>

#include "solver/cost/cost_int.h"
#include "solver/cost/floor/floor_int.h"
#include "solver/cost/graph/graph.h"
#include "solver/cost/stage/stage_int.h"

struct hv_cost *hv_cost_new(struct hv_cluster *c, struct hv_model *m, const struct hv_job *j)
{
    struct hv_cost *k = hv_xcalloc(1, sizeof *k);
    k->leaf = hv__leaf_row(m);
    hv__context_open(&k->own, c, m, j, k->leaf ? k->leaf->parts : NULL);
    if (!k->leaf) {
        hv__modules_open(k);
    }
    return k;
}

void hv_cost_free(struct hv_cost *k)
{
    if (!k) {
        return;
    }
    hv__modules_close(k);
    hv__graphs_free(k->own.graphs);
    hv__context_close(&k->own);
    free(k);
}

const struct hv_cluster *hv_cost_cluster(const struct hv_cost *k)
{
    return k->own.cluster;
}

const struct hv_model *hv_cost_model(const struct hv_cost *k)
{
    return k->own.model;
}

const struct hv_job *hv_cost_job(const struct hv_cost *k)
{
    return &k->own.job;
}

double hv_cost_tokens(const struct hv_cost *k)
{
    return hv__tokens(&k->own);
}

unsigned hv_cost_block_class(const struct hv_cost *k, size_t block)
{
    return k->own.cls[block];
}

unsigned hv_cost_n_classes(const struct hv_cost *k)
{
    return k->own.n_classes;
}

size_t hv_cost_class_block(const struct hv_cost *k, unsigned cls)
{
    return k->own.representative[cls];
}

/* ---- prices ---------------------------------------------------------------------------------- */

struct hv_part_cost hv_cost_part(struct hv_cost *k, enum hv_part part, size_t block,
                                 const struct hv_part_query *q, struct hv_why *why)
{
    return k->leaf ? k->leaf->part(&k->own, part, block, q, why)
                   : hv__modules_part(k, part, block, q, why);
}

enum hv_status hv_cost_layers(struct hv_cost *k, const struct hv_part_query *q,
                              struct hv_arena *arena, struct hv_layer_table *out,
                              struct hv_err *err)
{
    return k->leaf ? k->leaf->layers(&k->own, q, arena, out, err)
                   : hv__modules_layers(k, q, arena, out, err);
}

enum hv_status hv_cost_pass(struct hv_cost *k, const struct hv_stage_query *q, struct hv_pass *out,
                            struct hv_err *err)
{
    return hv__parts_pass(k, q, out, err);
}

double hv_cost_sharing(struct hv_cost *k, const struct hv_family *f)
{
    return hv__together(&k->own.network, k->own.cluster, f, 0);
}

static enum hv_status check_operands(const struct hv_cost *k, struct hv_err *err)
{
    const struct hv_model *m = k->own.model;
    if (m->kind != HV_MODEL_GRAPH || m->tensors == NULL) {
        return hv_err_set(err, HV_ENO,
                          "the operators of the model have no operands: give its file `tensors`, "
                          "and every operator `in` and `out`");
    }
    return HV_OK;
}

enum hv_status hv_cost_splits(struct hv_cost *k, const struct hv_stage_query *q,
                              struct hv_arena *arena, struct hv_splits *out, struct hv_err *err)
{
    enum hv_status st = check_operands(k, err);
    return st ? st : hv__graph_splits(&k->own, q, arena, out, err);
}

enum hv_status hv_cost_graph_parameters(struct hv_cost *k, const struct hv_stage_query *q,
                                        double *of_block, struct hv_err *err)
{
    enum hv_status st = check_operands(k, err);
    return st ? st : hv__graph_parameters(&k->own, q, of_block, err);
}

enum hv_status hv_cost_memory(struct hv_cost *k, const struct hv_stage_query *q,
                              struct hv_memory *out, struct hv_err *err)
{
    return hv__parts_memory(k, q, out, err);
}

/* Optimizer steps do not depend on the model of the parameters: no leaf has its own. */

double hv_cost_optimizer_s(const struct hv_cost *k, const struct hv_device_kind *device,
                           double parameters)
{
    return hv__optimizer_s(&k->own, device, parameters);
}

double hv_cost_peer_optimizer_s(const struct hv_cost *k, const struct hv_stage *s,
                                const struct hv_peer_update *u)
{
    return hv__peer_optimizer_s(&k->own, s, u);
}

double hv_cost_offload_optimizer_s(const struct hv_cost *k, const struct hv_host_update *u)
{
    return hv__offload_optimizer_s(&k->own, u);
}

/* ---- floors ---------------------------------------------------------------------------------- */

double hv_cost_floor_s(struct hv_cost *k, enum hv_part part, size_t block,
                       const struct hv_device_kind *device)
{
    return k->leaf ? k->leaf->floor_s(&k->own, part, block, device)
                   : hv__modules_floor_s(k, part, block, device);
}

const struct hv_cost_by_size *hv_cost_by_size(struct hv_cost *k, enum hv_part part, size_t block,
                                              const struct hv_device_kind *device)
{
    return k->leaf ? k->leaf->floor_by_size(&k->own, part, block, device)
                   : hv__modules_by_size(k, part, block, device);
}

void hv_cost_cuts(const struct hv_cost *k, struct hv_arena *arena, struct hv_cost_cuts *out)
{
    *out = (struct hv_cost_cuts){0};
    if (k->leaf && k->leaf->floor_cuts) {
        k->leaf->floor_cuts(&k->own, arena, out);
    }
}

double hv_cost_least_state_bytes(const struct hv_cost *k)
{
    return k->leaf && k->leaf->floor_state_bytes ? k->leaf->floor_state_bytes(&k->own) : 0;
}

double hv_cost_gradient_bytes(const struct hv_cost *k, enum hv_part part, size_t block)
{
    return hv__gradient_bytes(&k->own, part, block);
}

double hv_cost_usable_bytes(const struct hv_cost *k, const struct hv_device_kind *d)
{
    return hv__usable_bytes(&k->own.job, d);
}
