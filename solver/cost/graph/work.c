/** A range of operators on a rank: cut out, solved on its mesh, and timed. */
#include "solver/cost/graph/work.h"

#include "solver/cost/device/efficiency.h"
#include "solver/plan/mesh.h"
#include <math.h>

struct hv__graph_ask hv__graph_ask(struct hv__context *k, const struct hv_stage_query *q,
                                   const struct hv__rank *r, size_t chunk)
{
    const struct hv_range *range = &r->stage->ranges[chunk];
    size_t n = k->model->n_ops, to = (size_t)(range->to2 + 1) / 2;
    struct hv__graph_ask a = {.k = k,
                              .q = q,
                              .r = r,
                              .part = hv__part_query(k, q, r, 0, 0),
                              .from = (size_t)(range->from2 + 1) / 2,
                              .to = to < n ? to : n};
    a.again = (a.part.recompute & HV_RC_FULL) == HV_RC_FULL;
    a.sequences =
        k->model->tensors->batch != HV_NO_DIM ? (int64_t)ceil(a.part.sequences * (1 - 1e-12)) : 0;
    return a;
}

/* Numbers of the job's precision for those of 32 bit, which graphs are written in. */
static void take_precision(const struct hv_job *j, struct hv_tensor_graph *g,
                           struct hv_arena *arena)
{
    double bytes = hv_job_activation_bytes(j);
    enum hv_dtype own = bytes <= 1 ? HV_DTYPE_F8 : bytes <= 2 ? HV_DTYPE_BF16 : HV_DTYPE_F32;
    g->tensors = hv_arena_copy(arena, g->tensors, g->n_tensors, sizeof *g->tensors);
    for (size_t t = 0; t < g->n_tensors; t++) {
        enum hv_dtype *x = &g->tensors[t].dtype;
        *x = *x == HV_DTYPE_F32 ? own : *x;
    }
}

/* Gradients that go back to the stage before. */
static void want_gradients(const struct hv__graph_work *w, struct hv_sharding_request *out)
{
    struct hv_arena *arena = &w->a->arena;
    const struct hv_graph_part *p = &w->part;
    uint32_t *wanted = hv_arena_new(arena, uint32_t, p->n_arriving + 1);
    for (size_t i = 0; i < p->n_arriving; i++) {
        bool trained = w->trained == NULL || w->trained[p->arriving[i]];
        if (trained && hv_dtype_is_real(p->graph.tensors[p->arriving[i]].dtype)) {
            wanted[out->n_wanted++] = p->arriving[i];
        }
    }
    out->wanted = wanted;
}

static double price_of(void *ctx, const struct hv_exchange *x)
{
    return hv__wire_price(ctx, x).time_s;
}

struct hv_pricing hv__graph_pricing(struct hv__graph_work *w)
{
    return (struct hv_pricing){price_of, &w->wires, w->paths};
}

enum hv_status hv__graph_sized(const struct hv__graph_ask *a, struct hv_arena *arena,
                               struct hv_tensor_graph *out, struct hv_err *err)
{
    int64_t sequences = a->sequences > 0 ? a->sequences : 1;
    enum hv_status st = hv_tensor_graph_sized(a->k->model->tensors, sequences, arena, out, err);
    if (st != HV_OK) {
        return HV_ENO;
    }
    take_precision(&a->k->job, out, arena);
    return HV_OK;
}

enum hv_status hv__graph_place(struct hv__graph_ask *a, struct hv__graph_work *out,
                               struct hv_err *err)
{
    enum hv_status st =
        hv__mesh_place(a->r->stage, a->r->dp, a->r->group, a->r->tp * a->r->cp, &out->place, err);
    if (st != HV_OK) {
        return st;
    }
    const struct hv_calibration *c = hv_device_calibration(a->r->device);
    out->a = a;
    out->wires = (struct hv__wires){.k = a->k,
                                    .place = &out->place,
                                    .all = a->r->part,
                                    .n_all = a->r->dp * a->r->tp,
                                    .wait_s = c->v[HV_CAL_EXCHANGE_US] * HV_US,
                                    .memo = hv__wires_memo()};
    return HV_OK;
}

enum hv_status hv__graph_solve(struct hv__graph_work *w, const struct hv_given_layout *given,
                               size_t n_given, struct hv_err *err)
{
    struct hv_arena *arena = &w->a->arena;
    const struct hv_pricing pricing = hv__graph_pricing(w);
    struct hv_sharding_request q = {.graph = &w->part.graph,
                                    .mesh = w->place.mesh,
                                    .given = given,
                                    .n_given = n_given,
                                    .open_inputs = true,
                                    .grad = true,
                                    .passes = true,
                                    .loss = w->part.leaving,
                                    .n_loss = w->part.n_leaving,
                                    .how = HV_PROPAGATE_CHOOSE,
                                    .pricing = &pricing};
    want_gradients(w, &q);
    return hv_shard_graph_solve(&q, arena, &w->sharding, err) == HV_OK ? HV_OK : HV_ENO;
}

void hv__graph_kernels(struct hv__graph_work *w, const struct hv_device_kind *d)
{
    struct hv_arena *arena = &w->a->arena;
    uint32_t *fused = hv_arena_new(arena, uint32_t, w->part.graph.n_ops + 1);
    (void)hv_fused_groups(&w->a->r->stage->fuse, &w->part.graph, fused);
    struct hv__kernels_query q = {.k = w->a->k,
                                  .device = d,
                                  .graph = &w->part.graph,
                                  .sharding = &w->sharding,
                                  .fused = fused};
    hv__kernels(&q, arena, &w->kernels);
}

static enum hv_status time_on(struct hv__graph_work *w, const struct hv_device_kind *d,
                              struct hv__graph_times *out, struct hv_err *err)
{
    hv__graph_kernels(w, d);
    out->end_s = hv_arena_new(&w->a->arena, double, w->kernels.n + 1);
    struct hv__order_query q = {.wires = &w->wires,
                                .sharding = &w->sharding,
                                .kernels = &w->kernels,
                                .overlap_frac = hv_device_calibration(d)->v[HV_CAL_OVERLAP],
                                .hidden_frac = hv_device_calibration(d)->v[HV_CAL_TP_HIDDEN]};
    enum hv_status st = hv__pass_times(&q, HV__FORWARD, &out->forward, NULL, err);
    st = st ? st : hv__pass_times(&q, HV__BACKWARD, &out->back, out->end_s, err);
    st = st ? st : hv__pass_times(&q, HV__INPUT_GRADIENTS, &out->inputs, NULL, err);
    return st ? st : hv__pass_times(&q, HV__WEIGHT_GRADIENTS, &out->weights, NULL, err);
}

enum hv_status hv__graph_time(struct hv__graph_work *w, struct hv__graph_times *out,
                              struct hv_err *err)
{
    const struct hv__rank *r = w->a->r;
    enum hv_status st = time_on(w, r->device, out, err);
    for (size_t i = 0; st == HV_OK && i < r->n_others; i++) {
        struct hv__graph_times own;
        st = time_on(w, r->others[i], &own, err);
        double now_s = out->forward.all_s + out->back.all_s;
        if (st == HV_OK && own.forward.all_s + own.back.all_s > now_s) {
            *out = own;
        }
    }
    return st;
}
