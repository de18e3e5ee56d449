/* Job files (hetviz.job/1), with the form of an entry of their queue. */
#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/doc/load.h"
#include "solver/io/own/docs.h"
#include "solver/io/own/docs_int.h"
#include "solver/io/own/routing_file.h"
#include <math.h>
#include <stdlib.h>

#define MAX_BATCH    1000000000
#define MAX_SEQUENCE 100000000
#define MAX_USD      1e9
#define MAX_GIB      1e6
#define MAX_SECONDS  1e12
#define MAX_WEIGHT   1e12
#define MAX_DEVICES  100000000

#define X(c, name, states) name,
static const char *const optimizer_words[HV_OPTIMIZER_N] = {HV_OPTIMIZER_MAP(X)};
#undef X
#define X(c, name) name,
static const char *const runtime_words[HV_RUNTIME_N] = {HV_RUNTIME_MAP(X)};
static const char *const target_words[HV_TARGET_N] = {HV_TARGET_MAP(X)};
static const char *const kernels_words[HV_KERNELS_N] = {HV_KERNELS_MAP(X)};
static const char *const attention_words[HV_ATTENTION_N] = {HV_ATTENTION_MAP(X)};
static const char *const dropout_words[HV_DROPOUT_N] = {HV_DROPOUT_MAP(X)};
#undef X
static const char *const minimize_words[HV_MINIMIZE_N] = {"time", "cost", "energy"};
static const char *const grad_words[] = {"same", "fp32"};

static enum hv_status read_objective(const struct hv_jp *root, struct hv_objective *o,
                                     struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(root, "objective");
    int minimize = (int)o->minimize;
    enum hv_status st;
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if ((st = hv_keys_check(&p, HV_KEYS_OBJECTIVE, err)) ||
        (st = hv_jp_opt_word(&p, "minimize", minimize_words, HV_MINIMIZE_N, &minimize, err)) ||
        (st = hv_jp_opt_number(&p, "max_usd_per_hour", 0, MAX_USD, &o->max_usd_per_h, err)) ||
        (st = hv_jp_opt_number(&p, "deadline_s", 0, MAX_SECONDS, &o->deadline_s, err)) ||
        (st = hv_jp_opt_bool(&p, "allow_stale", &o->allow_stale, err)) ||
        (st = hv_jp_opt_bool(&p, "allow_drop", &o->allow_drop, err))) {
        return st;
    }
    struct hv_jp stale = hv_jp_get(&p, "allow_stale"), drop = hv_jp_get(&p, "allow_drop");
    o->allow_stale_given = !hv_jp_none(&stale);
    o->allow_drop_given = !hv_jp_none(&drop);
    o->minimize = (enum hv_minimize)minimize;
    return HV_OK;
}

static enum hv_status read_failures(const struct hv_jp *root, struct hv_failure_rules *r,
                                    struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(root, "failures");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    const struct {
        const char *key;
        double least, most, *out;
    } rows[] = {
#define X(member, key, value, least, most, help) {key, least, most, &r->member},
        HV_FAILURE_MAP(X)
#undef X
            {"checkpoint_interval_s", 1e-3, MAX_SECONDS, &r->interval_s},
    };
    enum hv_status st = hv_keys_check(&p, HV_KEYS_FAILURES, err);
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(rows); i++) {
        st = hv_jp_opt_number(&p, rows[i].key, rows[i].least, rows[i].most, rows[i].out, err);
    }
    r->given = true;
    return st;
}

static enum hv_status read_length(const struct hv_jp *p, struct hv_length_bin *b,
                                  struct hv_err *err)
{
    struct hv_jp tokens = {0}, frac = {0};
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_LENGTH, err)) ||
        (st = hv_jp_need(p, "tokens", "a length", &tokens, err)) ||
        (st = hv_jp_int(&tokens, 1, MAX_SEQUENCE, &b->tokens, err)) ||
        (st = hv_jp_need(p, "frac", "a share", &frac, err))) {
        return st;
    }
    return hv_jp_number(&frac, 0, 1, &b->frac, err);
}

/* Shares must add up to one; the rounding error is removed by scaling. */
static enum hv_status read_lengths(const struct hv_jp *root, struct hv_job_doc *d,
                                   struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, "sequence_lengths");
    size_t n = 0;
    double sum = 0;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(&list, &n, err);
    struct hv_length_bin *bins = hv_arena_new(&d->arena, struct hv_length_bin, n + 1);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_length(&at, &bins[i], err);
        sum += bins[i].frac;
    }
    if (st == HV_OK && fabs(sum - 1) > 1e-3) {
        st = hv_jp_fail(&list, err, "expected shares that add up to 1, found a sum of %g", sum);
    }
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        bins[i].frac /= sum;
    }
    d->job.lengths = bins;
    d->job.n_lengths = st ? 0 : n;
    return st;
}

/* Names of the precisions of training; int8 is not one of them. */
static enum hv_status read_precision(const struct hv_jp *root, enum hv_precision *io,
                                     struct hv_err *err)
{
    static const enum hv_precision trained[] = {HV_FP32, HV_TF32, HV_FP16, HV_BF16, HV_FP8, HV_FP4};
    const char *words[HV_COUNT(trained)];
    int at = 0;
    for (size_t i = 0; i < HV_COUNT(trained); i++) {
        words[i] = hv_precision_name(trained[i]);
        at = trained[i] == *io ? (int)i : at;
    }
    enum hv_status st = hv_jp_opt_word(root, "precision", words, HV_COUNT(words), &at, err);
    *io = trained[at];
    return st;
}

static enum hv_status read_numbers(const struct hv_jp *root, struct hv_job *j, struct hv_err *err)
{
    int optimizer = (int)j->optimizer, grad = j->grad_fp32;
    int attention = (int)j->attention, dropout = (int)j->dropout, kernels = (int)j->kernels;
    int runtime = (int)j->runtime, target = (int)j->target;
    double reserve = HV_UNKNOWN;
    enum hv_status st;
    if ((st = hv_jp_opt_int(root, "global_batch", 1, MAX_BATCH, &j->global_batch, err)) ||
        (st = hv_jp_opt_int(root, "sequence", 1, MAX_SEQUENCE, &j->sequence, err)) ||
        (st = hv_jp_opt_int(root, "output_tokens", 0, j->sequence - 1, &j->output_tokens, err)) ||
        (st = hv_jp_opt_number(root, "requests_per_s", 1e-9, 1e9, &j->requests_per_s, err)) ||
        (st = read_precision(root, &j->precision, err)) ||
        (st =
             hv_jp_opt_word(root, "optimizer", optimizer_words, HV_OPTIMIZER_N, &optimizer, err)) ||
        (st = hv_jp_opt_bool(root, "master_weights", &j->master_weights, err)) ||
        (st = hv_jp_opt_word(root, "grad_precision", grad_words, HV_COUNT(grad_words), &grad,
                             err)) ||
        (st =
             hv_jp_opt_word(root, "attention", attention_words, HV_ATTENTION_N, &attention, err)) ||
        (st = hv_jp_opt_word(root, "kernels", kernels_words, HV_KERNELS_N, &kernels, err)) ||
        (st = hv_jp_opt_word(root, "runtime", runtime_words, HV_RUNTIME_N, &runtime, err)) ||
        (st = hv_jp_opt_word(root, "target", target_words, HV_TARGET_N, &target, err)) ||
        (st = hv_jp_opt_word(root, "dropout", dropout_words, HV_DROPOUT_N, &dropout, err)) ||
        (st = hv_jp_opt_number(root, "memory_reserve_GiB", 0, MAX_GIB, &reserve, err))) {
        return st;
    }
    j->optimizer = (enum hv_optimizer)optimizer;
    struct hv_jp given = hv_jp_get(root, "grad_precision");
    j->grad_fp32 = hv_jp_none(&given) ? hv_job_default_grad_fp32(j->precision) : grad == 1;
    j->kernels = (enum hv_kernels)kernels;
    j->runtime = (enum hv_runtime)runtime;
    j->target = (enum hv_target_id)target;
    j->attention = (enum hv_attention)attention;
    j->dropout = (enum hv_dropout)dropout;
    j->memory_reserve_bytes = reserve * HV_GIB;
    return HV_OK;
}

/* The routing of tokens: held by the job, or a file beside it (a shipped one by name). */
static enum hv_status read_routing(const struct hv_jp *root, struct hv_job_doc *d,
                                   struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(root, "routing");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if (json_is_object(p.v)) {
        return hv_routing_build(&p, false, &d->arena, &d->job.routing, err);
    }
    const char *name = NULL;
    if (!json_is_string(p.v)) {
        return hv_jp_expected(&p, err, "a routing file, or the object itself");
    }
    struct hv_str path = {0};
    enum hv_status st = hv_jp_string(&p, &name, err);
    if (st != HV_OK) {
        return st;
    }
    hv__doc_beside(&path, root->doc->name ? root->doc->name : "", name);
    st = hv_routing_load(hv_str_cstr(&path), &d->arena, &d->job.routing, err);
    if (st != HV_OK) {
        hv_jp_blame(&p, err);
    }
    hv_str_free(&path);
    return st;
}

enum hv_status hv__queued_read(const struct hv_jp *p, enum hv_keys row, struct hv_queued_job *out,
                               struct hv_err *err)
{
    struct hv_jp name = {0};
    enum hv_status st;
    *out = (struct hv_queued_job){
        .weight = 1, .iterations = HV_UNKNOWN, .deadline_s = HV_UNKNOWN, .n_devices = 0};
    if ((st = hv_keys_check(p, row, err)) ||
        (st = hv_jp_need(p, "name", "the name of the job", &name, err)) ||
        (st = hv_jp_string(&name, &out->name, err)) ||
        (st = hv_jp_opt_number(p, "arrival_s", 0, MAX_SECONDS, &out->arrival_s, err)) ||
        (st = hv_jp_opt_number(p, "weight", 0, MAX_WEIGHT, &out->weight, err)) ||
        (st = hv_jp_opt_number(p, "iterations", 1, MAX_SECONDS, &out->iterations, err)) ||
        (st = hv_jp_opt_int(p, "devices", 1, MAX_DEVICES, &out->n_devices, err))) {
        return st;
    }
    return hv_jp_opt_number(p, "deadline_s", 0, MAX_SECONDS, &out->deadline_s, err);
}

/* Checks the form of a queue; the inputs of its jobs are read when a strategy schedules them. */
static enum hv_status check_queue(const struct hv_jp *root, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, "jobs");
    struct hv_queued_job q;
    size_t n = 0;
    enum hv_status st = hv_jp_none(&list) ? HV_OK : hv_jp_array(&list, &n, err);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = hv__queued_read(&at, HV_KEYS_QUEUED_JOB, &q, err);
    }
    return st;
}

static enum hv_status build(struct hv_job_doc *d, const struct hv_json *json, struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(json);
    const char *name = NULL;
    enum hv_status st;
    if ((st = hv_jp_format(&root, "hetviz.job/1", err)) ||
        (st = hv_keys_check(&root, HV_KEYS_JOB, err)) ||
        (st = hv_jp_opt_string(&root, "name", &name, err)) ||
        (st = read_numbers(&root, &d->job, err)) || (st = read_lengths(&root, d, err)) ||
        (st = read_routing(&root, d, err)) || (st = read_failures(&root, &d->job.failures, err)) ||
        (st = check_queue(&root, err))) {
        return st;
    }
    d->job.name = hv_arena_strdup(&d->arena, name ? name : "job");
    return read_objective(&root, &d->job.objective, err);
}

enum hv_status hv_job_doc_build(struct hv_job_doc *out, struct hv_json json, int max_sequence,
                                struct hv_err *err)
{
    *out = (struct hv_job_doc){.job = hv_job_default(max_sequence)};
    enum hv_status st = build(out, &json, err);
    if (st) {
        hv_json_free(&json);
        hv_job_doc_free(out);
        return st;
    }
    out->json = json;
    return HV_OK;
}

void hv__job_doc_default(struct hv_json *out)
{
    json_t *root = json_object();
    json_object_set_new(root, "format", json_string("hetviz.job/1"));
    hv_json_wrap(out, root, "default job");
}

enum hv_status hv_job_doc_read(struct hv_job_doc *out, const char *path_or_name, int max_sequence,
                               struct hv_err *err)
{
    struct hv_json json = {0};
    *out = (struct hv_job_doc){0};
    if (!path_or_name) {
        hv__job_doc_default(&json);
        return hv_job_doc_build(out, json, max_sequence, err);
    }
    enum hv_status st = hv__doc_load(&json, path_or_name, "samples/jobs", err);
    if (st == HV_OK) {
        st = hv_job_doc_build(out, json, max_sequence, err);
    }
    if (st == HV_OK) {
        out->path = hv_xstrdup(path_or_name);
    }
    return st;
}

void hv_job_doc_free(struct hv_job_doc *d)
{
    hv_json_free(&d->json);
    hv_arena_free(&d->arena);
    free(d->path);
    *d = (struct hv_job_doc){0};
}
