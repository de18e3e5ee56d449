/*
 * Converts Megatron-LM's settings to the job and the layout. The model is in megatron_model.c.
 * Source: Megatron-LM, training/arguments.py and pipeline_parallel_layer_layout.py.
 */
#include "solver/io/import/training/megatron.h"
#include <ctype.h>
#include <string.h>

#define MAX_STAGES 4096

static const char *text(struct hv__settings *s, const char *name)
{
    const struct hv__setting *x = hv__setting(s, name);
    return x ? x->value : "";
}

/* ---- stages -----------------------------------------------------------------------------------
 */

/* A layout such as "Et*2|(tt|)*5t|mL": letters with repeats expanded. False: the text is
 * invalid. */
static bool open_layout(const char *s, struct hv_str *out, int depth)
{
    while (*s && depth < 4) {
        struct hv_str item = {0};
        size_t n = 1;
        bool good = true;
        if (*s == '(') {
            const char *end = strchr(s, ')');
            if (!end) {
                return false;
            }
            struct hv_str inner = {0};
            hv_str_add(&inner, s + 1, (size_t)(end - s - 1));
            good = open_layout(hv_str_cstr(&inner), &item, depth + 1);
            hv_str_free(&inner);
            n = (size_t)(end - s) + 1;
        } else {
            hv_str_addc(&item, *s);
        }
        s += n;
        long times = 1;
        if (*s == '*' && isdigit((unsigned char)s[1])) {
            char *end;
            times = strtol(s + 1, &end, 10);
            s = end;
        }
        for (long i = 0; good && i < times && out->n < 100000; i++) {
            hv_str_add(out, hv_str_cstr(&item), item.n);
        }
        good = good && times >= 0 && out->n < 100000;
        hv_str_free(&item);
        if (!good) {
            return false;
        }
    }
    return *s == '\0';
}

/* Layers of each stage of the layout, in virtual order; NULL when it is no such layout. */
static const char *layout_stages(struct hv__in *in, const char *layout, size_t *stages)
{
    struct hv_str open = {0}, counts = {0};
    const char *out = NULL;
    *stages = 0;
    if (open_layout(layout, &open, 0) && strspn(hv_str_cstr(&open), "EtmL|, ") == open.n) {
        int n = 0;
        for (const char *c = hv_str_cstr(&open);; c++) {
            n += *c == 't';
            if (*c == '|' || *c == '\0') {
                hv_str_addf(&counts, "%s%d", counts.n > 0 ? "," : "", n);
                (*stages)++;
                n = 0;
            }
            if (*c == '\0') {
                break;
            }
        }
        out = hv_arena_strdup(&in->im->arena, hv_str_cstr(&counts));
    }
    hv_str_free(&open);
    hv_str_free(&counts);
    return out;
}

/* First and last stage of their own length, the others equal. */
static const char *uneven_stages(struct hv__in *in, struct hv__settings *s, double layers,
                                 double pp)
{
    double first = hv__setting_number(s, "decoder-first-pipeline-num-layers");
    double last = hv__setting_number(s, "decoder-last-pipeline-num-layers");
    int given = hv_known(first) + hv_known(last);
    double between = pp - given;
    if (given == 0 || !(pp > 1) || !hv_known(layers) || pp > MAX_STAGES) {
        return NULL;
    }
    double middle = between > 0 ? (layers - hv_or(first, 0) - hv_or(last, 0)) / between : 0;
    if (middle != floor(middle) || middle < 0) {
        hv__guessed(in, 0, "the layers between the first and the last stage do not come out even");
        return NULL;
    }
    struct hv_str out = {0};
    for (int i = 0; i < (int)pp; i++) {
        double n = i == 0 && hv_known(first)            ? first
                   : i == (int)pp - 1 && hv_known(last) ? last
                                                        : middle;
        hv_str_addf(&out, "%s%.0f", i > 0 ? "," : "", n);
    }
    const char *copy = hv_arena_strdup(&in->im->arena, hv_str_cstr(&out));
    hv_str_free(&out);
    return copy;
}

static void read_stages(struct hv__in *in, struct hv__settings *s, struct hv__launch *l)
{
    double layers = hv__setting_number(s, "num-layers"), pp = hv_or(l->pp, 1);
    double per = hv__setting_number(s, "num-layers-per-virtual-pipeline-stage");
    const char *layout = text(s, "pipeline-model-parallel-layout");
    size_t stages = 0;
    l->chunks = hv__setting_number(s, "num-virtual-stages-per-pipeline-rank");
    if (per > 0 && hv_known(layers)) {
        double chunks = layers / (per * pp);
        l->chunks = floor(chunks) == chunks && chunks >= 1 ? chunks : HV_UNKNOWN;
    }
    if (*layout) {
        l->stages = layout_stages(in, layout, &stages);
        if (l->stages && pp > 0 && fmod((double)stages, pp) == 0) {
            l->chunks = (double)stages / pp;
        } else {
            hv__ignored(in, 0, "the pipeline layout %.60s: it does not fit %.0f stages", layout,
                        pp);
            l->stages = NULL;
        }
    } else {
        l->stages = uneven_stages(in, s, layers, pp);
    }
    if (hv__setting_on(s, "account-for-embedding-in-pipeline-split") ||
        hv__setting_on(s, "account-for-loss-in-pipeline-split")) {
        hv__guessed(in, 0,
                    "embedding or loss count as layers in the split: equal stages are taken");
    }
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

static void read_parallel(struct hv__settings *s, struct hv__launch *l)
{
    const struct {
        const char *name;
        double *to;
    } rows[] = {{"tensor-model-parallel-size", &l->tp},
                {"pipeline-model-parallel-size", &l->pp},
                {"context-parallel-size", &l->cp},
                {"expert-model-parallel-size", &l->ep},
                {"micro-batch-size", &l->micro_batch},
                {"global-batch-size", &l->global_batch},
                {"seq-length", &l->sequence},
                {"encoder-seq-length", &l->sequence},
                {"pipe-parallel-size", &l->pp},
                {"train-batch-size", &l->global_batch},
                {"train-micro-batch-size-per-gpu", &l->micro_batch}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        *rows[i].to = hv_or(hv__setting_number(s, rows[i].name), *rows[i].to);
    }
    l->tp = hv_or(l->tp, hv__setting_number(s, "model-parallel-size"));
    double nodes = hv_or(hv__setting_number(s, "nnodes"), hv__setting_number(s, "num-nodes"));
    double per_node = hv__setting_number(s, "nproc-per-node");
    per_node = hv_or(per_node, hv__setting_number(s, "num-gpus"));
    l->ranks = per_node * hv_or(nodes, 1);
    l->sequence_parallel = hv__setting_on(s, "sequence-parallel");
}

static void read_zero(struct hv__settings *s, struct hv__launch *l)
{
    bool fsdp = hv__setting_on(s, "use-torch-fsdp2") || hv__setting_on(s, "use-megatron-fsdp") ||
                hv__setting_on(s, "use-custom-fsdp");
    const char *how = text(s, "data-parallel-sharding-strategy");
    l->zero = hv__setting_on(s, "use-distributed-optimizer") ? 1 : 0;
    l->zero = strcmp(how, "optim_grads") == 0          ? 2
              : strcmp(how, "optim_grads_params") == 0 ? 3
              : fsdp                                   ? 3
                                                       : l->zero;
    l->zero = hv_or(hv__setting_number(s, "zero-stage"), l->zero);
}

static void read_numbers(struct hv__in *in, struct hv__settings *s, struct hv__launch *l)
{
    const char *granularity = text(s, "recompute-granularity"), *optimizer = text(s, "optimizer");
    bool fp8 = hv__setting(s, "fp8-format") || hv__setting_on(s, "fp8-hybrid") ||
               hv__setting_on(s, "fp8-e4m3");
    l->precision = fp8                         ? "fp8"
                   : hv__setting_on(s, "bf16") ? "bf16"
                   : hv__setting_on(s, "fp16") ? "fp16"
                                               : NULL;
    if (!l->precision) {
        const char *word = hv__precision_word(text(s, "mixed-precision"));
        word = word ? word : hv__precision_word(text(s, "precision"));
        l->precision = word ? word : "fp32";
        if (!word) {
            hv__guessed(in, 0, "neither --bf16 nor --fp16: fp32, as Megatron-LM takes it");
        }
    }
    l->optimizer = *optimizer ? hv__optimizer_word(optimizer) : "adam";
    if (strcmp(granularity, "full") == 0 || hv__setting_on(s, "checkpoint-activations")) {
        l->recompute = "full";
    } else if (strcmp(granularity, "selective") == 0 ||
               hv__setting_on(s, "recompute-activations")) {
        l->recompute = "selective";
        if (hv__setting(s, "recompute-modules")) {
            hv__guessed(in, 0, "recompute-modules %s: counted as attention's core",
                        text(s, "recompute-modules"));
        }
    }
    if (hv__setting(s, "rampup-batch-size") || hv__setting(s, "step-batch-size-schedule")) {
        hv__ignored(in, 0, "the batch grows while training: the last size counts");
    }
}

static void tell_rest(struct hv__in *in, const struct hv__settings *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct hv__setting *x = &s->items[i];
        hv__member(in, x->used, x->line, x->name, *x->value ? x->value : NULL);
    }
}

enum hv_status hv__megatron_take(struct hv__in *in, struct hv__settings *s, struct hv_err *err)
{
    struct hv__launch l = hv__launch_unknown();
    if (s->n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0, "no setting of Megatron-LM in it");
    }
    read_parallel(s, &l);
    read_zero(s, &l);
    read_numbers(in, s, &l);
    read_stages(in, s, &l);
    json_t *model = hv__megatron_model(in, s);
    if (model) {
        json_decref(in->im->guessed_model);
        in->im->guessed_model = model;
    }
    tell_rest(in, s);
    hv__launch_take(in, &l);
    return HV_OK;
}
