/* Job and layout of a launch: completion of the given figures, and the two documents. */
#include "solver/io/import/draft/layout.h"
#include <string.h>

#define MOST 1e6

struct hv__launch hv__launch_unknown(void)
{
    const double u = HV_UNKNOWN;
    return (struct hv__launch){.tp = u,
                               .pp = u,
                               .dp = u,
                               .cp = u,
                               .ep = u,
                               .chunks = u,
                               .zero = u,
                               .micro_batch = u,
                               .accumulation = u,
                               .global_batch = u,
                               .sequence = u,
                               .ranks = u,
                               .shard_group = u};
}

const char *hv__precision_word(const char *text)
{
    static const struct {
        const char *part, *word;
    } rows[] = {{"fp8", "fp8"},   {"float8", "fp8"},   {"bf16", "bf16"}, {"bfloat16", "bf16"},
                {"fp16", "fp16"}, {"float16", "fp16"}, {"half", "fp16"}, {"tf32", "tf32"},
                {"fp32", "fp32"}, {"float32", "fp32"}, {"no", "fp32"},   {"32", "fp32"}};
    for (size_t i = 0; text && i < HV_COUNT(rows); i++) {
        if (hv__find_like(hv__piece_of(text), rows[i].part)) {
            return rows[i].word;
        }
    }
    return NULL;
}

const char *hv__optimizer_word(const char *text)
{
    static const struct {
        const char *part, *word;
    } rows[] = {{"adamw", "adamw"},   {"adafactor", "adafactor"},
                {"adam", "adam"},     {"lamb", "adam"},
                {"sgd", "sgd"},       {"momentum", "momentum"},
                {"lion", "momentum"}, {"adagrad", "momentum"},
                {"muon", "momentum"}};
    for (size_t i = 0; text && i < HV_COUNT(rows); i++) {
        if (hv__find_like(hv__piece_of(text), rows[i].part)) {
            return rows[i].word;
        }
    }
    return NULL;
}

static bool good(double x)
{
    return hv_known(x) && x >= 1 && x <= 1e9 && floor(x) == x;
}

/* Completes ranks, dp, global batch and micro-batch from each other, and notes what does not
 * divide. */
static void complete(struct hv__in *in, struct hv__launch *l)
{
    double shards = hv_or(l->tp, 1) * hv_or(l->pp, 1) * hv_or(l->cp, 1);
    if (!good(l->dp) && good(l->ranks)) {
        l->dp = fmax(floor(l->ranks / shards), 1);
        if (l->dp * shards > l->ranks) {
            hv__guessed(in, 0,
                        "%.0f ranks are too few for tp × pp × cp = %.0f: the launch line is taken "
                        "as an example",
                        l->ranks, shards);
        } else if (l->dp * shards < l->ranks) {
            hv__guessed(in, 0, "%.0f ranks are no multiple of tp × pp × cp = %.0f", l->ranks,
                        shards);
        }
    }
    if (!good(l->global_batch) && !good(l->micro_batch) && good(l->accumulation) && good(l->dp)) {
        l->micro_batch = 1;
        hv__guessed(in, 0, "the micro-batch is not given: 1 sequence per rank is used");
    }
    if (!good(l->global_batch) && good(l->micro_batch) && good(l->dp)) {
        l->global_batch = l->micro_batch * hv_or(l->accumulation, 1) * l->dp;
        hv__guessed(in, 0,
                    "the global batch is not given: micro-batch × accumulation × dp = %.0f is used",
                    l->global_batch);
    } else if (!good(l->global_batch) && good(l->accumulation)) {
        hv__guessed(in, 0,
                    "the global batch is not given: set it in the job to micro-batch x %.0f "
                    "accumulated steps x data-parallel ranks",
                    l->accumulation);
    } else if (!good(l->global_batch)) {
        hv__guessed(in, 0, "the global batch is not given: set it in the job");
    }
    if (!good(l->micro_batch) && good(l->global_batch) && good(l->accumulation) && good(l->dp)) {
        double micro = l->global_batch / (l->accumulation * l->dp);
        l->micro_batch = floor(micro) == micro ? micro : HV_UNKNOWN;
    }
    if (!good(l->dp) && good(l->global_batch) && good(l->micro_batch) && good(l->accumulation)) {
        double dp = l->global_batch / (l->micro_batch * l->accumulation);
        l->dp = floor(dp) == dp ? dp : HV_UNKNOWN;
    }
    double step = l->micro_batch * hv_or(l->dp, 1);
    if (good(l->global_batch) && good(step) && fmod(l->global_batch, step) != 0) {
        hv__guessed(in, 0, "micro-batch × dp = %.0f does not divide the global batch %.0f", step,
                    l->global_batch);
    }
    /* experts live on data-parallel ranks: there are no fewer of these */
    l->ranks = shards * fmax(hv_or(l->dp, 1), hv_or(l->ep, 1));
}

static json_t *job_of(struct hv_import *im)
{
    if (!im->job) {
        im->job = json_pack("{s:s}", "format", "hetviz.job/1");
    }
    return im->job;
}

static void set_job(struct hv__in *in, const char *key, double x)
{
    if (good(x)) {
        json_object_set_new(job_of(in->im), key, hv_json_num(x));
        hv__understood(in, 0, "%s %.0f", key, x);
    }
}

static void set_word(struct hv__in *in, const char *key, const char *word)
{
    if (word) {
        json_object_set_new(job_of(in->im), key, json_string(word));
        hv__understood(in, 0, "%s %s", key, word);
    }
}

static void set_option(struct hv__in *in, const char *key, double x, double usual)
{
    if (!in->im->layout) {
        in->im->layout = json_object();
    }
    if (hv_known(x) && x >= 0 && x <= MOST && floor(x) == x) {
        if (x != usual) {
            json_object_set_new(in->im->layout, key, hv_json_num(x));
        }
        hv__understood(in, 0, "%s %.0f", key, x);
    }
}

static void set_text(struct hv__in *in, const char *key, const char *text)
{
    if (text) {
        json_object_set_new(in->im->layout, key, json_string(text));
        hv__understood(in, 0, "%s %s", key, text);
    }
}

void hv__launch_take(struct hv__in *in, struct hv__launch *l)
{
    complete(in, l);
    (void)job_of(in->im);
    set_job(in, "global_batch", l->global_batch);
    set_job(in, "sequence", l->sequence);
    set_word(in, "precision", l->precision);
    set_word(in, "optimizer", l->optimizer);
    set_option(in, "tp", l->tp, HV_UNKNOWN);
    set_option(in, "pp", l->pp, 1);
    set_option(in, "dp", l->dp, HV_UNKNOWN);
    set_option(in, "cp", l->cp, 1);
    set_option(in, "ep", l->ep, 1);
    set_option(in, "chunks", l->chunks, 1);
    set_option(in, "micro_batch", l->micro_batch, HV_UNKNOWN);
    set_option(in, "zero", l->zero, 0);
    set_option(in, "shard_group", l->shard_group, 0);
    set_text(in, "offload", l->offload);
    set_text(in, "overlap", l->overlap);
    set_text(in, "recompute", l->recompute);
    set_text(in, "schedule", l->schedule);
    set_text(in, "layers", l->stages);
    if (l->sequence_parallel) {
        json_object_set_new(in->im->layout, "sequence_parallel", json_true());
        hv__understood(in, 0, "sequence_parallel");
    }
    if (l->ranks > in->im->world && l->ranks <= MOST) {
        in->im->world = (int)l->ranks;
    }
}
