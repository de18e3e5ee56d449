/* Files of published measurements: finds the files and converts rows to clusters, models, jobs and
 * grids, which are shared where they are equal. Members of a row are read in row.c. */
#include "solver/io/own/validation/validation_file.h"

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/io/own/doc/docs.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/validation/validation_int.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Documents made so far, by their text. */
struct made {
    char *text;
    void *noun;
};

struct hv_validation_reader {
    struct hv_validation *out;
    const struct hv_device_catalogue *devices;
    HV_VEC(struct made) clusters;
    HV_VEC(struct made) models;
};

struct hv_validation_reader *hv_validation_reader_new(struct hv_validation *out,
                                                      const struct hv_device_catalogue *devices)
{
    struct hv_validation_reader *r = hv_xcalloc(1, sizeof *r);
    r->out = out;
    r->devices = devices;
    return r;
}

static void free_made(struct made *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(items[i].text);
    }
}

void hv_validation_reader_free(struct hv_validation_reader *r)
{
    free_made(r->clusters.items, r->clusters.n);
    free_made(r->models.items, r->models.n);
    hv_vec_free(&r->clusters);
    hv_vec_free(&r->models);
    free(r);
}

static void *find_made(const struct made *items, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(items[i].text, text) == 0) {
            return items[i].noun;
        }
    }
    return NULL;
}

static enum hv_status cluster_of(struct hv_validation_reader *r, const struct hv__row *row,
                                 struct hv_cluster **out, struct hv_err *err)
{
    json_t *tree = hv__row_cluster(row);
    char *text = json_dumps(tree, JSON_COMPACT);
    *out = find_made(r->clusters.items, r->clusters.n, text);
    if (*out != NULL) {
        json_decref(tree);
        free(text);
        return HV_OK;
    }
    struct hv_json json = {0};
    struct hv_cluster_doc doc;
    hv_json_wrap(&json, tree, "system");
    enum hv_status st = hv_cluster_doc_build(&doc, json, r->devices, err);
    if (st) {
        free(text);
        return st;
    }
    *out = hv_cluster_ref(doc.cluster);
    hv_cluster_doc_free(&doc);
    struct hv_validation *v = r->out;
    v->clusters = hv_xrealloc(v->clusters, v->n_clusters + 1, sizeof(struct hv_cluster *));
    v->clusters[v->n_clusters++] = *out;
    hv_vec_push(&r->clusters, (struct made){text, *out});
    return HV_OK;
}

static enum hv_status model_of(struct hv_validation_reader *r, const struct hv__row *row,
                               struct hv_model **out, struct hv_err *err)
{
    json_t *tree = hv__row_model(row);
    char *text = json_dumps(tree, JSON_COMPACT);
    *out = find_made(r->models.items, r->models.n, text);
    if (*out != NULL) {
        json_decref(tree);
        free(text);
        return HV_OK;
    }
    struct hv_json json = {0};
    struct hv_model_doc doc;
    hv_json_wrap(&json, tree, "model");
    enum hv_status st = hv_model_doc_build(&doc, json, err);
    if (st) {
        free(text);
        return st;
    }
    *out = hv_model_ref(doc.model);
    hv_model_doc_free(&doc);
    struct hv_validation *v = r->out;
    v->models = hv_xrealloc(v->models, v->n_models + 1, sizeof(struct hv_model *));
    v->models[v->n_models++] = *out;
    hv_vec_push(&r->models, (struct made){text, *out});
    return HV_OK;
}

/* Precision that a row's word names; NULL: bf16. fp8 and fp4 hold for products only (attention and
 * norms stay in 16 bits), and fp8 stands for fp4 where the device has none. */
static enum hv_precision precision_of(const char *word, const struct hv_device_kind *k)
{
    if (word == NULL) {
        return HV_BF16;
    }
    if (strstr(word, "fp4") != NULL && hv_device_has(k, HV_FP4)) {
        return HV_FP4;
    }
    if (strstr(word, "fp8") != NULL || strstr(word, "fp4") != NULL) {
        return HV_FP8;
    }
    return strncmp(word, "fp16", 4) == 0 ? HV_FP16 : HV_BF16;
}

static const char *schedule_of(const struct hv__row *row)
{
    const char *s = row->schedule != NULL ? row->schedule : "";
    if (strncmp(s, "ZB-1p", 5) == 0 || strncmp(s, "zb-1p", 5) == 0) {
        return "zb-1p";
    } else if (strncmp(s, "ZB-2p", 5) == 0 || strncmp(s, "zb-2p", 5) == 0) {
        return "zb-2p";
    }
    return row->vpp > 1 ? "interleaved" : "1f1b";
}

/* DeepSpeed's pipeline engine reduces gradients after the last backward (ReduceGrads follows all
 * passes of its schedule), Megatron-LM did so in its fp16 years, except with fully sharded
 * weights. */
static bool reduces_late(const struct hv__row *row)
{
    bool deepspeed = row->schedule != NULL && strstr(row->schedule, "DeepSpeed") != NULL;
    bool fp16 = row->precision != NULL && strncmp(row->precision, "fp16", 4) == 0;
    return deepspeed || (fp16 && row->zero < 3 && row->fsdp == 0);
}

static struct hv_grid grid_of(const struct hv__row *row)
{
    const char *rc = row->recompute != NULL ? row->recompute : "";
    /* torchtitan keeps every second product; elsewhere the core is meant */
    unsigned selective = row->zero >= 3 || row->fsdp > 0 ? HV_RC_UP | HV_RC_ACT : HV_RC_CORE;
    struct hv_grid g = {
        .tp = (int)row->tp,
        .pp = (int)row->pp,
        .dp = (int)row->dp,
        .cp = (int)row->cp,
        .ep = (int)row->ep,
        .cp_layout = HV_CP_ZIGZAG, /* the layout of causal sequences in all measured stacks */
        .chunks = (int)row->vpp,
        .micro_batch = (int)row->mbs,
        .global_batch = row->gbs,
        .zero = row->fsdp > 0 ? 3 : (int)row->zero,
        .recompute = strcmp(rc, "full") == 0        ? HV_RC_FULL
                     : strcmp(rc, "selective") == 0 ? selective
                                                    : HV_RC_NONE,
        .sequence_parallel = row->sp,
        .schedule = schedule_of(row),
        .late_sync = reduces_late(row),
        .counts = row->counts,
    };
    if (row->fsdp > 1 && row->fsdp < row->dp && row->dp % row->fsdp == 0) {
        g.shard_group = (int)row->fsdp;
    }
    return g;
}

static bool recompute_is_stated(const struct hv__row *row)
{
    const char *rc = row->recompute != NULL ? row->recompute : "";
    return strcmp(rc, "none") == 0 || strcmp(rc, "selective") == 0 || strcmp(rc, "full") == 0;
}

/* Figures of the row; memory reported by a framework is less than nvidia-smi shows. */
static void fill_figures(const struct hv__row *row, struct hv_validation_row *v)
{
    bool timed = strcmp(row->kind, "ci") != 0 && !row->oom;
    double s = hv_known(row->iter_s) && row->iter_s > 0 ? row->iter_s : row->from_flops_s;
    v->measured_s = timed && s > 0 ? s : HV_UNKNOWN;
    v->from_flops = timed && !(row->iter_s > 0) && s > 0;
    v->measured_bytes = hv_known(row->mem_max_bytes) ? row->mem_max_bytes : row->mem_gib * HV_GIB;
    bool device = row->meter != NULL ? strcmp(row->meter, "device") == 0
                                     : strstr(row->notes, "nvidia-smi") != NULL;
    v->meter = device ? HV_METER_DEVICE : HV_METER_ALLOCATED;
    v->rival_s = row->calculon_s;
    v->oom = row->oom;
}

/* "V100-SXM2-16GB+T4-16GB", or the one kind; NULL when one is not in the catalogue. */
static const char *kinds_of(struct hv_validation_reader *r, const struct hv__row *row)
{
    struct hv_str text = {0};
    bool known = row->device != NULL && hv_device_find(r->devices, row->device) != NULL;
    for (size_t i = 0; known && i < row->n_parts; i++) {
        known = hv_device_find(r->devices, row->parts[i].device) != NULL;
        hv_str_addf(&text, "%s%s", i > 0 ? "+" : "", row->parts[i].device);
    }
    const char *name = row->n_parts > 0 ? hv_str_cstr(&text) : row->device;
    const char *out = known ? hv_arena_strdup(&r->out->arena, name) : NULL;
    hv_str_free(&text);
    return out;
}

/* The key `runtime` of an object; *out stays where there is none. */
static enum hv_status read_runtime(const struct hv_jp *p, enum hv_runtime *out, struct hv_err *err)
{
    const char *name = NULL;
    struct hv_jp at = hv_jp_get(p, "runtime");
    enum hv_status st = hv_jp_opt_string(p, "runtime", &name, err);
    if (st == HV_OK && name != NULL && !hv_runtime_find(name, out)) {
        st = hv_jp_expected(&at, err, "a runtime of `hetviz help runtimes`");
    }
    return st;
}

/* What all rows of a file share; a row may name its own runtime. */
struct origin {
    const char *source;
    enum hv_runtime runtime;
    bool held_out;
};

static enum hv_status add_row(struct hv_validation_reader *r, const struct hv__row *row,
                              const struct origin *from, struct hv_err *err)
{
    struct hv_arena *a = &r->out->arena;
    const char *why = hv__row_unusable(row);
    const char *kinds = why == NULL ? kinds_of(r, row) : NULL;
    if (why == NULL && kinds == NULL) {
        why = "a device that is not in the catalogue";
    }
    if (why != NULL) {
        hv_validation_skip(r->out, why);
        return HV_OK;
    }
    struct hv_validation_row v = {.id = hv_arena_strdup(a, row->id),
                                  .source = from->source,
                                  .table = hv_arena_strdup(a, row->table),
                                  .device = kinds,
                                  .mixed = row->n_parts > 1,
                                  .held_out = from->held_out,
                                  .grid = grid_of(row),
                                  .recompute = recompute_is_stated(row) ? HV_ROW_RECOMPUTE_STATED
                                                                        : HV_ROW_RECOMPUTE_UNKNOWN,
                                  .experts = row->experts > 0};
    fill_figures(row, &v);
    v.job = hv_job_default((int)row->seq);
    v.job.global_batch = row->gbs;
    v.job.precision = precision_of(row->precision, hv_device_find(r->devices, row->device));
    v.job.grad_fp32 = hv_job_default_grad_fp32(v.job.precision);
    v.job.runtime = from->runtime;
    v.job.name = "row";
    v.low_bits = v.job.precision == HV_FP8 || v.job.precision == HV_FP4;
    enum hv_status st = read_runtime(&row->at, &v.job.runtime, err);
    if (st != HV_OK) {
        return st;
    }
    if ((st = cluster_of(r, row, &v.cluster, err))) {
        hv_jp_blame(&row->system, err);
        return st;
    }
    if ((st = model_of(r, row, &v.model, err))) {
        hv_jp_blame(&row->model, err);
        return st;
    }
    hv_validation_add(r->out, &v);
    return HV_OK;
}

static enum hv_status read_rows(struct hv_validation_reader *r, const struct hv_jp *root, bool own,
                                const struct origin *from, struct hv_err *err)
{
    struct hv_jp rows = {0};
    size_t n = 0;
    enum hv_status st = hv_jp_need(root, "rows", "a list of measurements", &rows, err);
    st = st ? st : hv_jp_array(&rows, &n, err);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&rows, i);
        struct hv__row row;
        if (!json_is_object(at.v)) {
            return hv_jp_expected(&at, err, "an object");
        }
        st = hv__row_read(root, &at, own, &r->out->arena, &row, err);
        st = st ? st : add_row(r, &row, from, err);
    }
    return st;
}

/* The runtime of a file: a key of its own, or of `meta` in files of other programs. */
static enum hv_status runtime_of_file(const struct hv_jp *root, bool own, enum hv_runtime *out,
                                      struct hv_err *err)
{
    struct hv_jp meta = hv_jp_get(root, "meta");
    if (own) {
        return read_runtime(root, out, err);
    }
    return json_is_object(meta.v) ? read_runtime(&meta, out, err) : HV_OK;
}

enum hv_status hv_validation_read(struct hv_validation_reader *r, const struct hv_json *json,
                                  const char *source, struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(json), format = hv_jp_get(&root, "format");
    bool own = format.v != NULL;
    const char *name = source;
    enum hv_status st = HV_OK;
    if (!json_is_object(root.v)) {
        return hv_jp_expected(&root, err, "an object with a list \"rows\"");
    }
    if (own && ((st = hv_jp_format(&root, "hetviz.validation/1", err)) ||
                (st = hv_keys_check(&root, HV_KEYS_VALIDATION, err)) ||
                (st = hv_jp_opt_string(&root, "name", &name, err)))) {
        return st;
    }
    struct origin from = {.source = hv_arena_strdup(&r->out->arena, name)};
    st = runtime_of_file(&root, own, &from.runtime, err);
    if (st == HV_OK && own) {
        st = hv_jp_opt_bool(&root, "held_out", &from.held_out, err);
    }
    return st ? st : read_rows(r, &root, own, &from, err);
}

/* ---- folders --------------------------------------------------------------------------------- */

static enum hv_status read_file(struct hv_validation_reader *r, const char *path,
                                struct hv_err *err)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base);
    bool dot_json = n > 5 && strcmp(base + n - 5, ".json") == 0;
    char *stem = hv_arena_strndup(&r->out->arena, base, dot_json ? n - 5 : n);
    enum hv_status st = hv_file_read(path, &text, err);
    st = st ? st : hv_json_parse(&json, hv_str_cstr(&text), text.n, path, err);
    st = st ? st : hv_validation_read(r, &json, stem, err);
    hv_json_free(&json);
    hv_str_free(&text);
    return st;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum hv_status read_all(struct hv_validation_reader *r, const char *folder,
                               struct hv_err *err)
{
    HV_VEC(char *) names = {0};
    DIR *d = opendir(folder);
    if (d == NULL) {
        return hv_err_set(err, HV_EIO, "cannot open the folder %.200s", folder);
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        size_t n = strlen(e->d_name);
        if (n > 5 && e->d_name[0] != '.' && strcmp(e->d_name + n - 5, ".json") == 0) {
            hv_vec_push(&names, hv_xstrdup(e->d_name));
        }
    }
    closedir(d);
    enum hv_status st = HV_OK;
    if (names.n == 0) {
        st = hv_err_set(err, HV_EIO, "%.200s has no .json files", folder);
    } else {
        qsort(names.items, names.n, sizeof *names.items, by_text);
    }
    for (size_t i = 0; i < names.n; i++) {
        struct hv_str path = {0};
        hv_str_addf(&path, "%s/%s", folder, names.items[i]);
        st = st ? st : read_file(r, hv_str_cstr(&path), err);
        hv_str_free(&path);
        free(names.items[i]);
    }
    hv_vec_free(&names);
    return st;
}

enum hv_status hv_validation_read_folder(struct hv_validation *out, const char *folder,
                                         const struct hv_device_catalogue *devices,
                                         struct hv_err *err)
{
    struct hv_str shipped = {0};
    struct stat s;
    enum hv_status st = HV_OK;
    if (folder == NULL) {
        st = hv_data_path(&shipped, "share/validation", err);
        folder = hv_str_cstr(&shipped);
    }
    struct hv_validation_reader *r = hv_validation_reader_new(out, devices);
    if (st == HV_OK) {
        bool is_file = stat(folder, &s) == 0 && !S_ISDIR(s.st_mode);
        st = is_file ? read_file(r, folder, err) : read_all(r, folder, err);
    }
    hv_validation_reader_free(r);
    hv_str_free(&shipped);
    return st;
}
