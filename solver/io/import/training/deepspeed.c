/*
 * DeepSpeed's JSON, and accelerate's YAML, which may hold or name one. "auto" means that the
 * trainer fills it in. Sources: deepspeed.ai, configuration JSON; accelerate, config templates.
 */
#include "solver/io/import/draft/layout.h"
#include "solver/io/import/draft/readers.h"
#include <string.h>

static json_t *at(json_t *v, const char *a, const char *b)
{
    v = json_object_get(v, a);
    return b ? json_object_get(v, b) : v;
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
                json_is_object(at(tree, "bf16", NULL)) || has_part(tree, "optimizer", "params") ||
                has_part(tree, "tensor_parallel", "tp_size") ||
                has_part(tree, "tensor_parallel", "autotp_size");
    }
    return found && !other;
}

/* Members that are read; the others are named in the report. */
static const char *const used[] = {"train_batch_size",
                                   "train_micro_batch_size_per_gpu",
                                   "gradient_accumulation_steps",
                                   "zero_optimization",
                                   "bf16",
                                   "bfloat16",
                                   "fp16",
                                   "amp",
                                   "optimizer",
                                   "activation_checkpointing",
                                   "tensor_parallel",
                                   "pipeline",
                                   "dtype",
                                   "sequence_parallel_size"};

static void tell_rest(struct hv__in *in, json_t *v)
{
    for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
        const char *key = json_object_iter_key(it);
        bool known = false;
        for (size_t i = 0; i < HV_COUNT(used); i++) {
            known = known || strcmp(key, used[i]) == 0;
        }
        if (!known) {
            hv__ignored(in, hv__line_of(in, json_object_iter_value(it)), "%s", key);
        }
    }
}

static void note_auto(struct hv__in *in, json_t *v, const char *key)
{
    json_t *x = json_object_get(v, key);
    if (json_is_string(x) && !hv_known(number(x))) {
        hv__guessed(in, hv__line_of(in, x), "%s is %.40s: the launcher sets it when the run starts",
                    key, json_string_value(x));
    }
}

static void read_zero(struct hv__in *in, json_t *v, struct hv__launch *l)
{
    json_t *zero = json_object_get(v, "zero_optimization");
    static const char *const offloads[] = {"offload_optimizer", "offload_param"};
    l->zero = json_is_object(zero) ? number(json_object_get(zero, "stage"))
              : json_is_true(zero) ? 1
                                   : 0;
    if (json_is_object(zero) && !hv_known(l->zero)) {
        hv__guessed(in, hv__line_of(in, zero), "ZeRO without a stage is stage 0");
        l->zero = 0;
    }
    for (size_t i = 0; i < HV_COUNT(offloads); i++) {
        const char *device = json_string_value(at(zero, offloads[i], "device"));
        if (device && strcmp(device, "none") != 0) {
            hv__ignored(in, hv__line_of(in, json_object_get(zero, offloads[i])),
                        "%s to %s: set it in the plan (offload)", offloads[i], device);
        }
    }
}

static void read_config(struct hv__in *in, json_t *v, struct hv__launch *l)
{
    l->global_batch = number(at(v, "train_batch_size", NULL));
    l->micro_batch = number(at(v, "train_micro_batch_size_per_gpu", NULL));
    l->accumulation = number(at(v, "gradient_accumulation_steps", NULL));
    json_t *tp = at(v, "tensor_parallel", "autotp_size");
    tp = tp ? tp : at(v, "tensor_parallel", "tp_size");
    l->tp = tp ? number(tp) : l->tp;
    l->cp = hv_or(number(at(v, "sequence_parallel_size", NULL)), l->cp);
    read_zero(in, v, l);
    json_t *bf16 = at(v, "bf16", "enabled"), *fp16 = at(v, "fp16", "enabled");
    bf16 = bf16 ? bf16 : at(v, "bfloat16", "enabled");
    const char *dtype = hv__precision_word(json_string_value(at(v, "dtype", NULL)));
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
    const char *optimizer = json_string_value(at(v, "optimizer", "type"));
    l->optimizer = optimizer ? hv__optimizer_word(optimizer) : l->optimizer;
    if (optimizer && !l->optimizer) {
        hv__ignored(in, hv__line_of(in, at(v, "optimizer", NULL)), "the optimizer %s", optimizer);
    }
    if (json_is_object(at(v, "activation_checkpointing", NULL))) {
        l->recompute = "full";
        hv__guessed(in, hv__line_of(in, at(v, "activation_checkpointing", NULL)),
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
    tell_rest(in, in->tree);
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
static double fsdp_stage(struct hv__in *in, json_t *fsdp)
{
    static const struct {
        const char *name;
        double number, zero;
    } rows[] = {{"FULL_SHARD", 1, 3},
                {"SHARD_GRAD_OP", 2, 2},
                {"NO_SHARD", 3, 0},
                {"HYBRID_SHARD_ZERO2", 5, 2},
                {"HYBRID_SHARD", 4, 3}};
    json_t *v = json_object_get(fsdp, "fsdp_sharding_strategy");
    json_t *reshard = json_object_get(fsdp, "fsdp_reshard_after_forward");
    v = v ? v : json_object_get(fsdp, "sharding_strategy");
    const char *name = json_string_value(v);
    name = !v && json_is_string(reshard) ? json_string_value(reshard) : name;
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if ((name && strcmp(name, rows[i].name) == 0) ||
            fabs(hv_or(number(v), -1) - rows[i].number) < 0.5) {
            if (strncmp(rows[i].name, "HYBRID", 6) == 0) {
                hv__guessed(in, hv__line_of(in, v),
                            "%s shards inside a node only: counted as over "
                            "all ranks",
                            rows[i].name);
            }
            return rows[i].zero;
        }
    }
    return json_is_false(reshard) ? 2 : 3;
}

static void read_type(struct hv__in *in, struct hv__launch *l, const char *type)
{
    json_t *v = in->tree;
    json_t *fsdp = at(v, "fsdp_config", NULL), *ds = at(v, "deepspeed_config", NULL);
    json_t *mega = at(v, "megatron_lm_config", NULL), *para = at(v, "parallelism_config", NULL);
    if (strcmp(type, "FSDP") == 0) {
        l->zero = fsdp_stage(in, fsdp);
        if (is_yes(json_object_get(fsdp, "fsdp_activation_checkpointing"))) {
            l->recompute = "full";
        }
        if (is_yes(json_object_get(fsdp, "fsdp_offload_params"))) {
            hv__ignored(in, 0, "fsdp_offload_params: set it in the plan (offload)");
        }
    } else if (strcmp(type, "DEEPSPEED") == 0) {
        l->zero = hv_or(number(json_object_get(ds, "zero_stage")), l->zero);
        l->accumulation = number(json_object_get(ds, "gradient_accumulation_steps"));
        const char *file = json_string_value(json_object_get(ds, "deepspeed_config_file"));
        if (file) {
            hv__ignored(in, hv__line_of(in, json_object_get(ds, "deepspeed_config_file")),
                        "the settings in %s: import that file", file);
        }
    } else if (strcmp(type, "MEGATRON_LM") == 0) {
        l->tp = number(json_object_get(mega, "megatron_lm_tp_degree"));
        l->pp = number(json_object_get(mega, "megatron_lm_pp_degree"));
        l->zero = is_yes(json_object_get(mega, "megatron_lm_use_distributed_optimizer")) ? 1 : 0;
        l->sequence_parallel = is_yes(json_object_get(mega, "megatron_lm_sequence_parallelism"));
    }
    l->tp = hv_or(number(json_object_get(para, "parallelism_config_tp_size")), l->tp);
    l->cp = hv_or(number(json_object_get(para, "parallelism_config_cp_size")), l->cp);
}

enum hv_status hv__read_accelerate_yaml(struct hv__in *in, struct hv_err *err)
{
    static const char *const read[] = {"distributed_type",
                                       "mixed_precision",
                                       "num_processes",
                                       "fsdp_config",
                                       "deepspeed_config",
                                       "megatron_lm_config",
                                       "parallelism_config",
                                       "compute_environment",
                                       "gradient_accumulation_steps",
                                       "use_cpu",
                                       "downcast_bf16"};
    struct hv__launch l = hv__launch_unknown();
    json_t *type = json_object_get(in->tree, "distributed_type");
    if (!json_is_object(in->tree)) {
        return hv_err_at(err, HV_EINPUT, in->name, in->broken.line, in->broken.col, "%s",
                         in->broken.text[0] ? in->broken.text : "expected a mapping");
    }
    const char *name = json_is_string(type) ? json_string_value(type) : "NO";
    json_t *precision = json_object_get(in->tree, "mixed_precision");
    l.ranks = number(json_object_get(in->tree, "num_processes"));
    l.accumulation = number(json_object_get(in->tree, "gradient_accumulation_steps"));
    l.precision =
        json_is_false(precision) ? "fp32" : hv__precision_word(json_string_value(precision));
    hv__understood(in, hv__line_of(in, type), "distributed_type %s", name);
    read_type(in, &l, name);
    for (void *it = json_object_iter(in->tree); it; it = json_object_iter_next(in->tree, it)) {
        const char *key = json_object_iter_key(it);
        bool known = false;
        for (size_t i = 0; i < HV_COUNT(read); i++) {
            known = known || strcmp(key, read[i]) == 0;
        }
        if (!known) {
            hv__ignored(in, hv__line_of(in, json_object_iter_value(it)), "%s", key);
        }
    }
    hv__launch_take(in, &l);
    return HV_OK;
}
