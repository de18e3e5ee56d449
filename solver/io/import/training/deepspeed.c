/*
 * DeepSpeed's JSON, and accelerate's YAML, which may hold or name one. "auto" means that the
 * trainer fills it in. Sources: deepspeed.ai, configuration JSON; accelerate, config templates.
 */
#include "solver/io/import/draft/layout.h"
#include "solver/io/import/draft/readers.h"
#include <string.h>

/* A member, or a member of it; it counts as read. */
static json_t *at(struct hv__in *in, json_t *v, const char *a, const char *b)
{
    v = hv__get(in, v, a);
    return b ? hv__get(in, v, b) : v;
}

/* A number, or a text that is one as a whole; "auto" and the like are unknown. */
static double number(json_t *v)
{
    return json_is_number(v)   ? json_number_value(v)
           : json_is_string(v) ? hv__plain_number(hv__piece_of(json_string_value(v)))
                               : HV_UNKNOWN;
}

static bool is_yes(json_t *v)
{
    const char *s = json_string_value(v);
    return json_is_true(v) ||
           (s && (strcmp(s, "true") == 0 || strcmp(s, "True") == 0 || strcmp(s, "yes") == 0));
}

/* True where a member is an object that has the key. */
static bool has_part(json_t *tree, const char *name, const char *key)
{
    return json_object_get(json_object_get(tree, name), key) != NULL;
}

bool hv__is_deepspeed(const struct hv__in *in)
{
    static const char *const signs[] = {"train_batch_size", "train_micro_batch_size_per_gpu",
                                        "zero_optimization"};
    static const char *const more[] = {"gradient_accumulation_steps",
                                       "wall_clock_breakdown",
                                       "zero_allow_untested_optimizer",
                                       "compression_training",
                                       "data_efficiency",
                                       "hybrid_engine",
                                       "steps_per_print",
                                       "flops_profiler",
                                       "replace_with_kernel_inject"};
    json_t *tree = in->tree;
    bool other = json_object_get(tree, "model_type") || json_object_get(tree, "architectures") ||
                 json_object_get(tree, "num-layers") || json_object_get(tree, "distributed_type");
    bool found = false;
    for (size_t i = 0; i < HV_COUNT(signs); i++) {
        found = found || json_object_get(tree, signs[i]);
    }
    for (size_t i = 0; i < HV_COUNT(more) && in->is_json; i++) {
        found = found || json_object_get(tree, more[i]);
    }
    if (in->is_json) {
        found = found || has_part(tree, "fp16", "enabled") || has_part(tree, "bf16", "enabled") ||
                json_is_object(json_object_get(tree, "bf16")) ||
                has_part(tree, "optimizer", "params") ||
                has_part(tree, "tensor_parallel", "tp_size") ||
                has_part(tree, "tensor_parallel", "autotp_size");
    }
    return found && !other;
}

static void note_auto(struct hv__in *in, json_t *v, const char *key)
{
    json_t *x = hv__get(in, v, key);
    if (json_is_string(x) && !hv_known(number(x))) {
        hv__guessed(in, hv__line_of(in, x), "%s is %.40s: the launcher sets it when the run starts",
                    key, json_string_value(x));
    }
}

/* Adds to what is kept outside the devices: "optimizer", "weights". */
static void add_offload(struct hv__in *in, struct hv__launch *l, const char *what)
{
    const char *old = l->offload ? l->offload : "";
    l->offload = hv_arena_printf(&in->im->arena, "%s%s%s", old, *old ? "," : "", what);
}

static void take_offload(struct hv__in *in, struct hv__launch *l, json_t *owner, const char *key,
                         const char *what)
{
    json_t *v = hv__get(in, owner, key);
    const char *device =
        json_is_string(v) ? json_string_value(v) : json_string_value(at(in, v, "device", NULL));
    if (!device || strcmp(device, "none") == 0) {
        return;
    }
    add_offload(in, l, what);
    if (strcmp(device, "cpu") != 0) {
        hv__guessed(in, hv__line_of(in, v), "%s to %s: counted as to the memory of the host", key,
                    device);
    }
}

/* Ranks that share one copy (ZeRO++, MiCS), where they are fewer than all. */
static void take_groups(struct hv__in *in, json_t *zero, struct hv__launch *l)
{
    double hpz = number(hv__get(in, zero, "zero_hpz_partition_size"));
    double mics = number(hv__get(in, zero, "mics_shard_size"));
    if (mics >= 1) {
        l->shard_group = mics;
    } else if (hpz > 1) {
        l->shard_group = hpz;
        hv__guessed(in, hv__line_of(in, json_object_get(zero, "zero_hpz_partition_size")),
                    "zero_hpz_partition_size %.0f: the second copy of the weights is counted as "
                    "the only one, sharded over as many ranks",
                    hpz);
    }
}

static void read_zero(struct hv__in *in, json_t *v, struct hv__launch *l)
{
    json_t *zero = hv__get(in, v, "zero_optimization");
    l->zero = json_is_object(zero) ? number(hv__get(in, zero, "stage"))
              : json_is_true(zero) ? 1
                                   : 0;
    if (json_is_object(zero) && !hv_known(l->zero)) {
        hv__guessed(in, hv__line_of(in, zero), "ZeRO without a stage is stage 0");
        l->zero = 0;
    }
    take_offload(in, l, zero, "offload_optimizer", "optimizer");
    take_offload(in, l, zero, "offload_param", "weights");
    if (is_yes(hv__get(in, zero, "cpu_offload")) && !l->offload) {
        add_offload(in, l, "optimizer");
    }
    take_groups(in, zero, l);
    if (json_is_false(hv__get(in, zero, "overlap_comm"))) {
        l->overlap = "no";
    }
}

static void read_precision(struct hv__in *in, json_t *v, struct hv__launch *l)
{
    json_t *bf16 = at(in, v, "bf16", "enabled"), *fp16 = at(in, v, "fp16", "enabled");
    bf16 = bf16 ? bf16 : at(in, v, "bfloat16", "enabled");
    bf16 = bf16 ? bf16 : at(in, v, "amp", "enabled");
    const char *dtype = hv__precision_word(json_string_value(at(in, v, "dtype", NULL)));
    if (is_yes(bf16) || is_yes(fp16)) {
        l->precision = is_yes(bf16) ? "bf16" : "fp16";
    } else if (dtype) {
        l->precision = dtype;
    } else if (!bf16 && !fp16 && !l->precision) {
        hv__guessed(in, 0, "the precision is not given: fp32, the default of DeepSpeed, is used");
        l->precision = "fp32";
    } else if (!l->precision && (json_is_false(bf16) || json_is_false(fp16))) {
        l->precision = "fp32";
    }
}

static void read_config(struct hv__in *in, json_t *v, struct hv__launch *l)
{
    l->global_batch = hv_or(number(at(in, v, "train_batch_size", NULL)), l->global_batch);
    l->micro_batch =
        hv_or(number(at(in, v, "train_micro_batch_size_per_gpu", NULL)), l->micro_batch);
    l->accumulation =
        hv_or(number(at(in, v, "gradient_accumulation_steps", NULL)), l->accumulation);
    l->tp = hv_or(number(at(in, v, "tensor_parallel", "autotp_size")), l->tp);
    l->tp = hv_or(number(at(in, v, "tensor_parallel", "tp_size")), l->tp);
    l->cp = hv_or(number(at(in, v, "sequence_parallel_size", NULL)), l->cp);
    l->pp = hv_or(number(at(in, v, "pipeline", "stages")), l->pp);
    read_zero(in, v, l);
    read_precision(in, v, l);
    const char *optimizer = json_string_value(at(in, v, "optimizer", "type"));
    l->optimizer = optimizer ? hv__optimizer_word(optimizer) : l->optimizer;
    if (optimizer && !l->optimizer) {
        hv__ignored(in, hv__line_of(in, json_object_get(v, "optimizer")), "the optimizer %s",
                    optimizer);
    }
    if (json_is_object(json_object_get(v, "activation_checkpointing"))) {
        l->recompute = "full";
        hv__guessed(in, hv__line_of(in, json_object_get(v, "activation_checkpointing")),
                    "activation checkpointing is set up: full recomputation, if the model uses it");
    }
}

enum hv_status hv__read_deepspeed(struct hv__in *in, struct hv_err *err)
{
    struct hv__launch l = hv__launch_unknown();
    if (!json_is_object(in->tree)) {
        return hv_err_at(err, HV_EINPUT, in->name, in->broken.line, in->broken.col, "%s",
                         in->broken.text[0] ? in->broken.text : "expected an object");
    }
    note_auto(in, in->tree, "train_batch_size");
    note_auto(in, in->tree, "train_micro_batch_size_per_gpu");
    note_auto(in, in->tree, "gradient_accumulation_steps");
    read_config(in, in->tree, &l);
    hv__launch_take(in, &l);
    return HV_OK;
}

/* ---- accelerate -------------------------------------------------------------------------------
 */

bool hv__is_accelerate_yaml(const struct hv__in *in)
{
    return in->tree && (json_object_get(in->tree, "distributed_type") ||
                        json_object_get(in->tree, "compute_environment") ||
                        (json_object_get(in->tree, "num_processes") &&
                         json_object_get(in->tree, "mixed_precision")));
}

/* FSDP's strategies as ZeRO stages: by name, or as the number that old files have. */
static const struct {
    const char *name;
    double number, zero;
    bool hybrid;
} fsdp_strategies[] = {{"FULL_SHARD", 1, 3, false},
                       {"SHARD_GRAD_OP", 2, 2, false},
                       {"NO_SHARD", 3, 0, false},
                       {"HYBRID_SHARD_ZERO2", 5, 2, true},
                       {"HYBRID_SHARD", 4, 3, true}};

/* Shards inside a machine only, with a copy on each: the group has the ranks of a machine. */
static void hybrid_group(struct hv__in *in, struct hv__launch *l, const char *name)
{
    double machines = number(hv__get(in, in->tree, "num_machines"));
    double group = l->ranks / machines;
    if (machines > 0 && group >= 1 && floor(group) == group) {
        l->shard_group = group;
        hv__understood(in, 0, "%s: shards over the %.0f ranks of a machine, %.0f copies", name,
                       group, machines);
    } else {
        hv__guessed(in, 0,
                    "%s shards inside a machine only; num_machines and num_processes do not say "
                    "how many ranks that are: counted as over all ranks",
                    name);
    }
}

static void fsdp_stage(struct hv__in *in, json_t *fsdp, struct hv__launch *l)
{
    json_t *v = hv__get(in, fsdp, "fsdp_sharding_strategy");
    json_t *reshard = hv__get(in, fsdp, "fsdp_reshard_after_forward");
    v = v ? v : hv__get(in, fsdp, "sharding_strategy");
    const char *name = json_string_value(v);
    name = !v && json_is_string(reshard) ? json_string_value(reshard) : name;
    l->zero = json_is_false(reshard) || (name && strcmp(name, "false") == 0) ? 2 : 3;
    for (size_t i = 0; i < HV_COUNT(fsdp_strategies); i++) {
        if ((name && strcmp(name, fsdp_strategies[i].name) == 0) ||
            fabs(hv_or(number(v), -1) - fsdp_strategies[i].number) < 0.5) {
            l->zero = fsdp_strategies[i].zero;
            if (fsdp_strategies[i].hybrid) {
                hybrid_group(in, l, fsdp_strategies[i].name);
            }
            return;
        }
    }
}

static void read_fsdp(struct hv__in *in, struct hv__launch *l)
{
    json_t *fsdp = hv__get(in, in->tree, "fsdp_config");
    json_t *offload = hv__get(in, fsdp, "fsdp_offload_params");
    fsdp_stage(in, fsdp, l);
    if (is_yes(hv__get(in, fsdp, "fsdp_activation_checkpointing"))) {
        l->recompute = "full";
    }
    if (is_yes(offload) || is_yes(hv__get(in, fsdp, "offload_params"))) {
        add_offload(in, l, "weights");
        add_offload(in, l, "optimizer"); /* sharded states live where their shard lives */
    }
}

static void read_accelerate_deepspeed(struct hv__in *in, struct hv__launch *l)
{
    json_t *ds = hv__get(in, in->tree, "deepspeed_config");
    l->zero = hv_or(number(hv__get(in, ds, "zero_stage")), l->zero);
    l->accumulation =
        hv_or(number(hv__get(in, ds, "gradient_accumulation_steps")), l->accumulation);
    take_offload(in, l, ds, "offload_optimizer_device", "optimizer");
    take_offload(in, l, ds, "offload_param_device", "weights");
    json_t *file = hv__get(in, ds, "deepspeed_config_file");
    if (json_is_string(file)) {
        hv__ignored(in, hv__line_of(in, file), "the settings in %s: import that file",
                    json_string_value(file));
    }
}

static void read_accelerate_megatron(struct hv__in *in, struct hv__launch *l)
{
    json_t *mega = hv__get(in, in->tree, "megatron_lm_config");
    double micro_batches = number(hv__get(in, mega, "megatron_lm_num_micro_batches"));
    l->tp = number(hv__get(in, mega, "megatron_lm_tp_degree"));
    l->pp = number(hv__get(in, mega, "megatron_lm_pp_degree"));
    l->zero = is_yes(hv__get(in, mega, "megatron_lm_use_distributed_optimizer")) ? 1 : 0;
    l->sequence_parallel = is_yes(hv__get(in, mega, "megatron_lm_sequence_parallelism"));
    l->accumulation = hv_or(micro_batches, l->accumulation);
    if (is_yes(hv__get(in, mega, "megatron_lm_recompute_activations"))) {
        l->recompute = "selective";
    }
}

/* accelerate's own degrees: HSDP is dp_replicate copies of dp_shard shards. */
static void read_parallelism(struct hv__in *in, struct hv__launch *l)
{
    json_t *v = hv__get(in, in->tree, "parallelism_config");
    double copies = number(hv__get(in, v, "parallelism_config_dp_replicate_size"));
    double shards = number(hv__get(in, v, "parallelism_config_dp_shard_size"));
    double sp = number(hv__get(in, v, "parallelism_config_sp_size"));
    l->tp = hv_or(number(hv__get(in, v, "parallelism_config_tp_size")), l->tp);
    l->cp = hv_or(number(hv__get(in, v, "parallelism_config_cp_size")), l->cp);
    l->cp = sp > 1 ? hv_or(l->cp, 1) * sp : l->cp;
    if (hv_known(copies) || hv_known(shards)) {
        l->dp = hv_or(copies, 1) * hv_or(shards, 1);
        l->zero = hv_or(l->zero, hv_or(shards, 1) > 1 ? 3 : 0);
    }
    if (copies > 1 && shards >= 1) {
        l->shard_group = shards;
        hv__understood(in, 0, "%.0f copies of %.0f shards", copies, shards);
    }
}

enum hv_status hv__read_accelerate_yaml(struct hv__in *in, struct hv_err *err)
{
    struct hv__launch l = hv__launch_unknown();
    json_t *type = hv__get(in, in->tree, "distributed_type");
    if (!json_is_object(in->tree)) {
        return hv_err_at(err, HV_EINPUT, in->name, in->broken.line, in->broken.col, "%s",
                         in->broken.text[0] ? in->broken.text : "expected a mapping");
    }
    const char *name = json_is_string(type) ? json_string_value(type) : "NO";
    json_t *precision = hv__get(in, in->tree, "mixed_precision");
    l.ranks = number(hv__get(in, in->tree, "num_processes"));
    l.accumulation = number(hv__get(in, in->tree, "gradient_accumulation_steps"));
    l.precision =
        json_is_false(precision) ? "fp32" : hv__precision_word(json_string_value(precision));
    hv__understood(in, hv__line_of(in, type), "distributed_type %s", name);
    if (strcmp(name, "FSDP") == 0) {
        read_fsdp(in, &l);
    } else if (strcmp(name, "DEEPSPEED") == 0) {
        read_accelerate_deepspeed(in, &l);
    } else if (strcmp(name, "MEGATRON_LM") == 0) {
        read_accelerate_megatron(in, &l);
    }
    read_parallelism(in, &l);
    hv__launch_take(in, &l);
    return HV_OK;
}
