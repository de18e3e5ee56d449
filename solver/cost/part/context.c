/* Opens and closes a pricing context: references, classes of blocks that cost the same, runs. */
#include "solver/cost/part/context.h"

#include <stdlib.h>

#include "solver/cost/part/part_int.h"
#include "solver/workload/router.h"

static void find_class(struct hv__context *k, size_t block)
{
    for (unsigned c = k->n_classes; k->parts->same_block && c-- > 0;) {
        if (k->parts->same_block(k->model, block, k->representative[c])) {
            k->cls[block] = c;
            return;
        }
    }
    k->cls[block] = k->n_classes;
    k->representative[k->n_classes++] = block;
}

static void find_runs(struct hv__context *k)
{
    size_t n = k->model->n_blocks;
    k->runs = hv_arena_new(&k->arena, struct hv__run, n ? n : 1);
    for (size_t i = 0; i < n; i++) {
        if (!k->n_runs || k->runs[k->n_runs - 1].cls != k->cls[i]) {
            k->runs[k->n_runs++] = (struct hv__run){(int)i, (int)i, k->cls[i]};
        }
        k->runs[k->n_runs - 1].to = (int)i + 1;
    }
}

/* Numbers of blocks among those with experts, where the job routes tokens unevenly. */
static void count_experts(struct hv__context *k)
{
    const struct hv_model *m = k->model;
    bool chain = m->kind == HV_MODEL_TRANSFORMER || m->kind == HV_MODEL_LAYERS;
    if (hv_router_is_even(k->job.routing) || !chain) {
        return;
    }
    size_t n = 0;
    k->with_experts = hv_arena_new(&k->arena, size_t, m->n_blocks + 1);
    for (size_t i = 0; i < m->n_blocks; i++) {
        k->with_experts[i] = n;
        n += hv_model_has_experts(m, i);
    }
}

void hv__context_open(struct hv__context *k, struct hv_cluster *c, struct hv_model *m,
                      const struct hv_job *j, const struct hv__parts *parts)
{
    size_t n = m->n_blocks ? m->n_blocks : 1;
    *k = (struct hv__context){.cluster = hv_cluster_ref(c),
                              .model = hv_model_ref(m),
                              .job = *j,
                              .parts = parts,
                              .prices = hv__part_memo(),
                              .held = hv__held_memo(),
                              .places = hv__places_memo(),
                              .boxes = hv__box_memo(),
                              .slices = hv__slices_memo(),
                              .network = hv__network_memo()};
    k->cls = hv_arena_new(&k->arena, unsigned, n);
    k->representative = hv_arena_new(&k->arena, size_t, n);
    k->can_price = hv_arena_new(&k->arena, bool, c->n_kinds + 1);
    for (size_t i = 0; parts && i < m->n_blocks; i++) {
        find_class(k, i);
    }
    if (parts) {
        find_runs(k);
        count_experts(k);
    }
}

void hv__context_close(struct hv__context *k)
{
    hv_cluster_unref(k->cluster);
    hv_model_unref(k->model);
    hv__memo_free(&k->prices);
    hv__memo_free(&k->held);
    hv__memo_free(&k->places);
    hv__memo_free(&k->boxes);
    hv__memo_free(&k->slices);
    hv__memo_free(&k->network);
    hv__free_ways(k);
    free(k->spare.items);
    free(k->milestones);
    hv_arena_free(&k->milestones_arena);
    hv_arena_free(&k->arena);
}

enum hv_status hv__check_device(struct hv__context *k, const struct hv_device_kind *d,
                                struct hv_err *err)
{
    size_t at = 0, n = k->cluster->n_kinds;
    while (at < n && k->cluster->kinds[at] != d) {
        at++;
    }
    if (at < n && k->can_price[at]) {
        return HV_OK;
    }
    enum hv_status st = k->parts->check_device(k, d, err);
    if (at < n) {
        k->can_price[at] = st == HV_OK;
    }
    return st;
}

enum hv_status hv__check_precision(struct hv__context *k, const struct hv_device_kind *d,
                                   struct hv_err *err)
{
    if (hv_device_has(d, k->job.precision) && hv_known(d->memory_bytes_per_s)) {
        return HV_OK;
    }
    return hv_err_set(err, HV_ENO, "%s has no %s: choose another precision or another device",
                      d->name,
                      hv_known(d->memory_bytes_per_s) ? hv_precision_name(k->job.precision)
                                                      : "known memory bandwidth");
}
