/*
 * FlagScale: the one runtime with degrees per mesh. A mesh is a run of consecutive stages with the
 * same degrees on one kind of device, five numbers each: tp, cp, ep, dp, pp. Source: FlagScale,
 * flagscale/train/arguments.py, train/hetero/parallel_context.py and its examples (read, not run).
 */
#include <string.h>

#include "solver/io/export/target/inside.h"

static const struct hv_device_kind *kind_of(const struct hv__exporting *x, const struct hv_stage *s)
{
    return hv_cluster_device(x->s->plan->cluster, s->devices[0]).kind;
}

static bool same_mesh(const struct hv__exporting *x, const struct hv_stage *a,
                      const struct hv_stage *b)
{
    return a->tp.degree == b->tp.degree && a->cp.degree == b->cp.degree && a->dp == b->dp &&
           hv_stage_experts_over(a) == hv_stage_experts_over(b) && kind_of(x, a) == kind_of(x, b);
}

static void add_meshes(const struct hv__exporting *x, json_t *hetero)
{
    const struct hv_replica *r = &x->s->plan->replicas[0];
    json_t *meshes = json_array(), *kinds = json_array(), *split = json_array();
    int64_t copies = hv_plan_data_ranks(x->s->plan) / r->stages[0].dp;
    for (size_t k = 0; k < r->n_stages;) {
        const struct hv_stage *s = &r->stages[k];
        size_t end = k;
        while (end < r->n_stages && same_mesh(x, s, &r->stages[end])) {
            const struct hv_range *range = &r->stages[end].ranges[0];
            json_array_append_new(split, json_integer((range->to2 - range->from2) / 2));
            end++;
        }
        const int64_t five[] = {s->tp.degree, s->cp.degree, hv_stage_experts_over(s),
                                copies * s->dp, (int64_t)(end - k)};
        for (size_t i = 0; i < HV_COUNT(five); i++) {
            json_array_append_new(meshes, json_integer((json_int_t)five[i]));
        }
        json_array_append_new(kinds, json_string(kind_of(x, s)->name));
        k = end;
    }
    json_object_set_new(hetero, "hetero_process_meshes", meshes);
    json_object_set_new(hetero, "hetero_pipeline_layer_split", split);
    json_object_set_new(hetero, "hetero_device_types", kinds);
}

/** Rows of [stages, micro-batches, value], one per stage. */
static json_t *per_stage(const struct hv__exporting *x, bool granularity)
{
    const struct hv_replica *r = &x->s->plan->replicas[0];
    json_t *rows = json_array();
    for (size_t k = 0; k < r->n_stages; k++) {
        bool full = strcmp(hv__export_recompute(&r->stages[k]), "full") == 0;
        int value = granularity ? full : 1;
        json_array_append_new(rows, json_pack("[i, I, i]", 1, (json_int_t)r->micro_batches, value));
    }
    return rows;
}

static void add_recompute(const struct hv__exporting *x, json_t *system)
{
    const struct hv_replica *r = &x->s->plan->replicas[0];
    bool any = false;
    for (size_t k = 0; k < r->n_stages; k++) {
        any = any || strcmp(hv__export_recompute(&r->stages[k]), "full") == 0;
    }
    if (!any) {
        return;
    }
    json_object_set_new(system, "recompute_granularity", json_string("full"));
    json_object_set_new(system, "recompute_method", json_string("uniform"));
    json_object_set_new(system, "recompute_num_layers", json_integer(1));
    json_object_set_new(system, "recompute_granularity_per_stage_micro_batch", per_stage(x, true));
    json_object_set_new(system, "recompute_num_layers_per_stage_micro_batch", per_stage(x, false));
}

enum hv_status hv__export_flagscale(struct hv__exporting *x)
{
    struct hv__export_grid g = hv__export_grid_of(x);
    json_t *hetero = json_pack("{s:b}", "enable_hetero", 1);
    add_meshes(x, hetero);
    json_t *system = json_pack("{s:i, s:i, s:i, s:i, s:b, s:b}", "tensor_model_parallel_size", g.tp,
                               "pipeline_model_parallel_size", g.pp, "context_parallel_size", g.cp,
                               "expert_model_parallel_size", g.ep, "sequence_parallel",
                               g.stage->sequence_parallel && g.tp > 1, "use_distributed_optimizer",
                               g.stage->zero.stage == 1);
    add_recompute(x, system);
    json_object_set_new(system, "hetero", hetero);
    json_t *tree =
        json_pack("{s:o, s:{s:I, s:I, s:I, s:I}}", "system", system, "model", "num_layers",
                  (json_int_t)x->s->model->n_blocks, "seq_length", (json_int_t)x->s->job->sequence,
                  "micro_batch_size", (json_int_t)g.micro_batch, "global_batch_size",
                  (json_int_t)x->s->job->global_batch);
    hv__export_yaml(x, "train.yaml", tree);
    hv__export_note(x, "train.yaml holds the parts of FlagScale's training file that the plan "
                       "decides; the format was read, not run");
    hv__export_launch(x, "python flagscale/train/megatron/train_gpt.py", NULL);
    hv__export_ranks_file(x);
    return HV_OK;
}
