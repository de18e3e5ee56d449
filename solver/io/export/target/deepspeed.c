/*
 * DeepSpeed: its JSON, and the host file of its launcher. Stages are cut in the user's code:
 * PipelineModule(layers, num_stages=…, partition_method="uniform"). Source: DeepSpeed,
 * runtime/config.py and runtime/pipe/module.py.
 */
#include <string.h>

#include "solver/io/export/target/inside.h"

static bool offloads(const struct hv_stage *s, enum hv_offload_what what)
{
    for (size_t i = 0; i < s->n_offload; i++) {
        if (s->offload[i].what == what) {
            return true;
        }
    }
    return false;
}

static json_t *zero_part(struct hv__exporting *x, const struct hv__export_grid *g)
{
    const struct hv_stage *s = g->stage;
    json_t *o =
        json_pack("{s:i, s:b}", "stage", s->zero.stage, "overlap_comm", x->s->plan->sync.overlap);
    if (offloads(s, HV_OFFLOAD_OPTIMIZER)) {
        json_object_set_new(o, "offload_optimizer", json_pack("{s:s}", "device", "cpu"));
    }
    if (offloads(s, HV_OFFLOAD_WEIGHTS)) {
        json_object_set_new(o, "offload_param", json_pack("{s:s}", "device", "cpu"));
    }
    return o;
}

static void add_precision(struct hv__exporting *x, json_t *o)
{
    enum hv_precision p = x->s->job->precision;
    if (p == HV_FP16) {
        json_object_set_new(o, "fp16", json_pack("{s:b}", "enabled", 1));
    } else if (p == HV_BF16) {
        json_object_set_new(o, "bf16", json_pack("{s:b}", "enabled", 1));
    } else if (p != HV_FP32 && p != HV_TF32) {
        json_object_set_new(o, "bf16", json_pack("{s:b}", "enabled", 1));
        hv__export_note(x, "DeepSpeed's configuration has no %s: bf16 is written",
                        hv_precision_name(p));
    }
}

enum hv_status hv__export_deepspeed(struct hv__exporting *x)
{
    struct hv__export_grid g = hv__export_grid_of(x);
    const struct hv_job *j = x->s->job;
    json_t *o = json_pack("{s:I, s:I, s:I, s:o}", "train_batch_size", (json_int_t)j->global_batch,
                          "train_micro_batch_size_per_gpu", (json_int_t)g.micro_batch,
                          "gradient_accumulation_steps", (json_int_t)g.micro_batches,
                          "zero_optimization", zero_part(x, &g));
    add_precision(x, o);
    if (g.pp > 1) {
        json_object_set_new(o, "pipeline",
                            json_pack("{s:i, s:s}", "stages", g.pp, "partition", "uniform"));
        hv__export_note(x, "give PipelineModule num_stages=%d and partition_method=\"uniform\"",
                        g.pp);
    }
    if (g.tp > 1) {
        json_object_set_new(o, "tensor_parallel", json_pack("{s:i}", "autotp_size", g.tp));
    }
    if (g.cp > 1) {
        json_object_set_new(o, "sequence_parallel_size", json_integer(g.cp));
    }
    if (strcmp(hv__export_recompute(g.stage), "full") == 0) {
        json_object_set_new(o, "activation_checkpointing",
                            json_pack("{s:b}", "partition_activations", 0));
        hv__export_note(x, "activation checkpointing is switched on in the model's code "
                           "(activation_checkpoint_interval=1 of PipelineModule)");
    }
    hv__export_json(x, "ds_config.json", o);
    hv__export_host_file(x, "hostfile");
    hv__export_launch(x, "python train.py --deepspeed --deepspeed_config ds_config.json", NULL);
    hv__export_ranks_file(x);
    return HV_OK;
}
