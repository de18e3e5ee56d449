/*
 * Accelerate: one file for `accelerate launch`, FSDP2 with its parallelism_config. Source:
 * accelerate, commands/config/config_args.py (ClusterConfig), parallelism_config.py.
 */
#include <string.h>

#include "solver/io/export/target/inside.h"

static json_t *fsdp_part(const struct hv__export_grid *g)
{
    const struct hv_stage *s = g->stage;
    return json_pack("{s:i, s:b, s:s, s:b, s:b, s:s}", "fsdp_version", 2,
                     "fsdp_reshard_after_forward", s->zero.stage == 3, "fsdp_auto_wrap_policy",
                     "TRANSFORMER_BASED_WRAP", "fsdp_activation_checkpointing",
                     strcmp(hv__export_recompute(s), "full") == 0, "fsdp_offload_params",
                     s->n_offload > 0, "fsdp_state_dict_type", "SHARDED_STATE_DICT");
}

static json_t *degrees_part(const struct hv__export_grid *g, bool sharded)
{
    int64_t shards = sharded ? g->shards / g->cp : 1;
    shards = shards > 0 ? shards : 1;
    json_t *o = json_pack("{s:I, s:I, s:i, s:i}", "parallelism_config_dp_replicate_size",
                          (json_int_t)(g->dp / shards), "parallelism_config_dp_shard_size",
                          (json_int_t)shards, "parallelism_config_tp_size", g->tp,
                          "parallelism_config_cp_size", g->cp);
    if (g->cp > 1) {
        json_object_set_new(
            o, "parallelism_config_cp_comm_strategy",
            json_string(g->stage->cp.scheme == HV_CP_RING ? "alltoall" : "allgather"));
    }
    return o;
}

enum hv_status hv__export_accelerate(struct hv__exporting *x)
{
    struct hv__export_grid g = hv__export_grid_of(x);
    bool sharded = g.stage->zero.stage > 0 && g.dp * g.cp > 1;
    enum hv_precision p = x->s->job->precision;
    const char *precision = p == HV_BF16   ? "bf16"
                            : p == HV_FP16 ? "fp16"
                            : p == HV_FP8  ? "fp8"
                                           : "no";
    json_t *o = json_pack(
        "{s:s, s:s, s:b, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:b}", "compute_environment",
        "LOCAL_MACHINE", "distributed_type", sharded ? "FSDP" : "MULTI_GPU", "debug", 0,
        "mixed_precision", precision, "main_training_function", "main", "main_process_ip",
        x->ranks[0].host, "main_process_port", 29500, "machine_rank", 0, "num_machines",
        (int)x->n_hosts, "num_processes", (int)x->n_ranks, "rdzv_backend", "static", "use_cpu", 0);
    if (sharded) {
        json_object_set_new(o, "fsdp_config", fsdp_part(&g));
    }
    json_object_set_new(o, "parallelism_config", degrees_part(&g, sharded));
    hv__export_yaml(x, "accelerate.yaml", o);
    hv__export_note(x,
                    "Accelerate takes the batch from your script: %lld sequences per rank, %lld "
                    "gradient accumulation steps",
                    (long long)g.micro_batch, (long long)g.micro_batches);
    hv__export_note(x, "on host number N run: accelerate launch --config_file accelerate.yaml "
                       "--machine_rank N SCRIPT");
    hv__export_host_file(x, "hostfile");
    hv__export_ranks_file(x);
    return HV_OK;
}
