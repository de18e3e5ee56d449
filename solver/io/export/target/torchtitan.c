/*
 * torchtitan: flags of its Python configurations, and the tables of the TOML files that versions up
 * to February 2026 read. Source: torchtitan 0.3.0, config/configs.py and
 * distributed/pipeline_parallel.py; inner lists of module_fqns_per_model_part are words with commas
 * on the command line.
 */
#include <string.h>

#include "solver/io/export/target/inside.h"

/** Schedules that torch has under a name of its own, with the same order; the others go by CSV. */
static const char *torch_name(const struct hv_plan_schedule *s)
{
    static const char *const rows[][2] = {
        {"1f1b", "1F1B"}, {"gpipe", "GPipe"}, {"interleaved", "Interleaved1F1B"}};
    for (size_t i = 0; i < HV_COUNT(rows) && s->n_options == 0; i++) {
        if (strcmp(s->name, rows[i][0]) == 0) {
            return rows[i][1];
        }
    }
    return NULL;
}

/** True where the second chunk of each stage runs back over the ranks: then stage s and stage
 * 2 pp − 1 − s are on one rank. */
static bool folds(const struct hv_replica *r)
{
    const struct hv_stage *first = &r->stages[0], *last = &r->stages[r->n_stages - 1];
    return r->n_stages > 1 && first->n_ranges == 2 && first->ranges[1].from2 >= last->ranges[1].to2;
}

/** Blocks of a virtual stage, and the names around them. */
static void add_part(const struct hv__export_grid *g, int i, int first, struct hv_str *out)
{
    int last = g->pp * g->chunks - 1;
    hv_str_adds(out, i == 0 ? "tok_embeddings" : "");
    for (int k = 0; k < g->layers[i]; k++) {
        hv_str_addf(out, "%slayers.%d", i > 0 && k == 0 ? "" : ",", first + k);
    }
    if (i == last) {
        hv_str_addf(out, "%snorm,lm_head", g->layers[i] > 0 ? "," : "");
    }
}

/** Chunk by chunk over the stages; the second half backwards where the pipeline folds. */
static void unfold(struct hv__export_grid *g)
{
    for (int a = g->pp, b = 2 * g->pp - 1; a < b; a++, b--) {
        int kept = g->layers[a];
        g->layers[a] = g->layers[b];
        g->layers[b] = kept;
    }
}

struct settings {
    struct hv_str *flags, *toml;
};

static void set(const struct settings *s, const char *table, const char *key, const char *value,
                bool is_text)
{
    hv_str_addf(s->flags, "--%s.%s %s\n", table, key, value);
    hv_str_addf(s->toml, is_text ? "%s = \"%s\"\n" : "%s = %s\n", key, value);
}

static void set_number(const struct settings *s, const char *table, const char *key, int64_t value)
{
    hv_str_addf(s->flags, "--%s.%s %lld\n", table, key, (long long)value);
    hv_str_addf(s->toml, "%s = %lld\n", key, (long long)value);
}

static void add_training(struct hv__exporting *x, const struct hv__export_grid *g,
                         const struct settings *s)
{
    const struct hv_job *j = x->s->job;
    hv_str_adds(s->toml, "\n[training]\n");
    set_number(s, "training", "local_batch_size",
               g->pp > 1 ? g->micro_batch * g->micro_batches : g->micro_batch);
    set_number(s, "training", "global_batch_size", j->global_batch);
    set_number(s, "training", "seq_len", j->sequence);
    bool half = j->precision != HV_FP32 && j->precision != HV_TF32;
    set(s, "training", "mixed_precision_param", half ? "bfloat16" : "float32", true);
    if (j->precision == HV_FP16 || j->precision == HV_FP8 || j->precision == HV_FP4) {
        hv__export_note(x, "torchtitan trains in bfloat16 or float32: %s is written as bfloat16",
                        hv_precision_name(j->precision));
    }
    if (g->stage->n_offload > 0) {
        hv_str_adds(s->flags, "--training.enable_cpu_offload\n");
        hv_str_adds(s->toml, "enable_cpu_offload = true\n");
    }
    if (g->pp > 1) {
        hv_str_adds(s->flags, "--training.disable_cuda_graphs\n");
    }
}

static void add_data_degrees(const struct hv__export_grid *g, const struct settings *s)
{
    bool sharded = g->stage->zero.stage == 3;
    int64_t shards = sharded ? g->shards / g->cp : 1;
    shards = shards > 0 ? shards : 1;
    hv_str_adds(s->toml, "\n[parallelism]\n");
    set_number(s, "parallelism", "data_parallel_replicate_degree", g->dp / shards);
    set_number(s, "parallelism", "data_parallel_shard_degree", shards);
    if (sharded) {
        set(s, "parallelism", "fsdp_reshard_after_forward",
            g->stage->zero.reshard ? "always" : "never", true);
    }
    set_number(s, "parallelism", "tensor_parallel_degree", g->tp);
    if (g->tp > 1 && !g->stage->sequence_parallel) {
        hv_str_adds(s->flags, "--parallelism.no_enable_sequence_parallel\n");
        hv_str_adds(s->toml, "enable_sequence_parallel = false\n");
    }
    set_number(s, "parallelism", "context_parallel_degree", g->cp);
    if (g->cp > 1 && g->stage->cp.layout == HV_CP_CONTIGUOUS) {
        hv_str_adds(s->flags, "--parallelism.context_parallel_load_balancer None\n");
    }
    set_number(s, "parallelism", "expert_parallel_degree", g->ep);
}

static void add_parts(const struct hv__export_grid *g, const struct settings *s)
{
    int first = 0;
    hv_str_adds(s->flags, "--parallelism.module_fqns_per_model_part");
    hv_str_adds(s->toml, "module_fqns_per_model_part = [");
    for (int i = 0; i < g->pp * g->chunks; i++) {
        struct hv_str part = {0};
        add_part(g, i, first, &part);
        hv_str_addf(s->flags, " %s", hv_str_cstr(&part));
        hv_str_adds(s->toml, i > 0 ? ", [" : "[");
        for (const char *c = hv_str_cstr(&part); *c != '\0';) {
            size_t n = strcspn(c, ",");
            hv_str_addf(s->toml, "\"%.*s\"%s", (int)n, c, c[n] != '\0' ? ", " : "");
            c += n + (c[n] != '\0');
        }
        hv_str_adds(s->toml, "]");
        hv_str_free(&part);
        first += g->layers[i];
    }
    hv_str_adds(s->flags, "\n");
    hv_str_adds(s->toml, "]\n");
}

/** Degree, cuts and order of the pipeline. The CSV, where there is one, is appended to *order. */
static enum hv_status add_pipeline(struct hv__exporting *x, struct hv__export_grid *g,
                                   const struct settings *s, struct hv_str *order)
{
    set_number(s, "parallelism", "pipeline_parallel_degree", g->pp);
    if (g->pp == 1) {
        return HV_OK;
    }
    const struct hv_plan *p = x->s->plan;
    const char *name = torch_name(&p->schedule);
    bool folded = folds(&p->replicas[0]);
    if (folded) {
        unfold(g);
    }
    set_number(s, "parallelism", "pipeline_parallel_microbatch_size", g->micro_batch);
    add_parts(g, s);
    /* the name beside a CSV says where its stages lie: in a V, or round and round */
    set(s, "parallelism", "pipeline_parallel_schedule",
        name != NULL ? name
        : folded     ? "ZBVZeroBubble"
                     : "PipelineScheduleMulti",
        true);
    if (name != NULL) {
        return HV_OK;
    }
    set(s, "parallelism", "pipeline_parallel_schedule_csv", "schedule.csv", true);
    hv__export_note(x, "torchtitan.args names schedule.csv: start in its folder, or give its path");
    return hv__export_order_of(x, 0, order);
}

enum hv_status hv__export_torchtitan(struct hv__exporting *x)
{
    struct hv__export_grid g = hv__export_grid_of(x);
    struct hv_str flags = {0}, toml = {0}, order = {0};
    struct settings s = {&flags, &toml};
    hv__export_heading(x, "#", &toml);
    hv_str_adds(&toml, "[job]\ndescription = \"plan of hetviz\"\n");
    add_training(x, &g, &s);
    add_data_degrees(&g, &s);
    enum hv_status st = add_pipeline(x, &g, &s, &order);
    const char *mode = hv__export_recompute(g.stage);
    hv_str_addf(&flags, "activation-checkpoint:%s\n", mode);
    hv_str_addf(&toml, "\n[activation_checkpoint]\nmode = \"%s\"\n", mode);
    if (st == HV_OK) {
        hv_str_add(hv__export_file(x, "torchtitan.args"), hv_str_cstr(&flags), flags.n);
        hv_str_add(hv__export_file(x, "torchtitan.toml"), hv_str_cstr(&toml), toml.n);
        if (order.n > 0) {
            hv_str_add(hv__export_file(x, "schedule.csv"), hv_str_cstr(&order), order.n);
        }
        hv__export_note(x, "add --module and --config for the model; torchtitan.toml is for "
                           "versions before 0.3");
        hv__export_launch(x, "python -m torchtitan.train", "torchtitan.args");
        hv__export_ranks_file(x);
    }
    hv_str_free(&flags);
    hv_str_free(&toml);
    hv_str_free(&order);
    return st;
}
