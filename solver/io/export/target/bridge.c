/*
 * Megatron-Bridge: overrides of a recipe, as YAML and as words of its command line. Source:
 * Megatron-Bridge, examples/models/(name)/conf/(name)_override_example.yaml.
 */
#include <string.h>

#include "solver/io/export/target/inside.h"

static json_t *model_part(struct hv__exporting *x, const struct hv__export_grid *g)
{
    struct hv_str layout = {0};
    json_t *o = json_pack("{s:i, s:i, s:i, s:b, s:I}", "tensor_model_parallel_size", g->tp,
                          "pipeline_model_parallel_size", g->pp, "context_parallel_size", g->cp,
                          "sequence_parallel", g->stage->sequence_parallel && g->tp > 1,
                          "seq_length", (json_int_t)x->s->job->sequence);
    if (g->pp * g->chunks > 1) {
        hv__megatron_layout(g, &layout);
        json_object_set_new(o, "pipeline_model_parallel_layout", json_string(hv_str_cstr(&layout)));
    }
    if (g->chunks > 1) {
        json_object_set_new(o, "virtual_pipeline_model_parallel_size", json_integer(g->chunks));
    }
    if (g->cp > 1) {
        json_object_set_new(o, "cp_comm_type", json_string(hv__megatron_cp_word(&g->stage->cp)));
    }
    if (g->ep > 1) {
        json_object_set_new(o, "expert_model_parallel_size", json_integer(g->ep));
        json_object_set_new(o, "expert_tensor_parallel_size",
                            json_integer(hv_stage_expert_tp(g->stage, g->ep)));
    }
    const char *recompute = hv__export_recompute(g->stage);
    if (strcmp(recompute, "none") != 0) {
        json_object_set_new(o, "recompute_granularity", json_string(recompute));
    }
    if (strcmp(recompute, "full") == 0) {
        json_object_set_new(o, "recompute_method", json_string("uniform"));
        json_object_set_new(o, "recompute_num_layers", json_integer(1));
    }
    hv_str_free(&layout);
    return o;
}

/** The tree as words "model.tensor_model_parallel_size=2". Values are numbers, flags and words of
 * this file. */
static void add_words(const json_t *tree, struct hv_str *out)
{
    const char *part, *key;
    json_t *members, *v;
    json_object_foreach((json_t *)(uintptr_t)tree, part, members)
    {
        if (json_is_string(members)) {
            hv_str_addf(out, "%s=%s\n", part, json_string_value(members));
        }
        json_object_foreach(members, key, v)
        {
            struct hv_str text = {0};
            if (json_is_string(v)) {
                hv_str_adds(&text, json_string_value(v));
            } else {
                hv_json_write(&text, v, false);
            }
            hv_str_addf(out, "%s.%s=%s\n", part, key, hv_str_cstr(&text));
            hv_str_free(&text);
        }
    }
}

enum hv_status hv__export_bridge(struct hv__exporting *x)
{
    struct hv__export_grid g = hv__export_grid_of(x);
    int64_t holders = g.dp * g.cp;
    json_t *tree = json_pack("{s:o, s:{s:I, s:I}, s:{s:b, s:b}}", "model", model_part(x, &g),
                             "train", "micro_batch_size", (json_int_t)g.micro_batch,
                             "global_batch_size", (json_int_t)x->s->job->global_batch, "ddp",
                             "use_distributed_optimizer", g.stage->zero.stage == 1 && holders > 1,
                             "overlap_grad_reduce", x->s->plan->sync.overlap);
    if (x->s->job->precision == HV_FP16 || x->s->job->precision == HV_BF16) {
        bool half = x->s->job->precision == HV_FP16;
        json_object_set_new(tree, "mixed_precision",
                            json_string(half ? "fp16_mixed" : "bf16_mixed"));
    } else {
        hv__export_note(x, "the precision is the recipe's: set mixed_precision for %s",
                        hv_precision_name(x->s->job->precision));
    }
    if (g.shards < holders && g.stage->zero.stage == 1) {
        json_object_set_new(json_object_get(tree, "ddp"), "num_distributed_optimizer_instances",
                            json_integer((json_int_t)(holders / g.shards)));
    }
    add_words(tree, hv__export_file(x, "overrides.args"));
    hv__export_yaml(x, "overrides.yaml", tree);
    hv__export_note(x, "recipes of Megatron-Bridge are Python: choose one for the model, the "
                       "overrides change it");
    hv__export_launch(x, "python pretrain.py", "overrides.args");
    hv__export_ranks_file(x);
    return HV_OK;
}
