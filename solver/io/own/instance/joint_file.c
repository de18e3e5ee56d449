/* Reads instances of several pipelines that share a batch. The solvers are in solver/optim. */
#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/instance/partition_int.h"

/* Space for all pipelines, copies spread out. */
struct fill {
    struct hv_partition *pipelines;
    int64_t *min, *max;
    size_t n, cap;
};

static enum hv_status read_pipeline(struct hv_instance *in, const struct hv_jp *at, struct fill *f,
                                    struct hv_err *err)
{
    struct hv_partition p = {.max_weight = 1};
    int64_t copies = 1, min = 0, max = in->joint.total;
    enum hv_status st = hv_keys_check(at, HV_KEYS_INSTANCE_PIPELINE, err);
    if (st == HV_OK) {
        st = hv__read_chain_sizes(at, &p, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(at, "copies", 1, (int64_t)HV_BATCH_LAYERS_MAX_PIPELINES, &copies, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(at, "min", 0, in->joint.total, &min, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(at, "max", min, HV_BATCH_LAYERS_MAX_TOTAL, &max, err);
    }
    if (st == HV_OK) {
        st = hv__read_chain_rows(&in->arena, at, &p, err);
    }
    if (st == HV_OK) {
        st = hv_partition_check(&p, err);
    }
    if (st == HV_OK && (size_t)copies > f->cap - f->n) {
        return hv_jp_fail(at, err, "expected at most %zu pipelines in all", f->cap);
    }
    for (int64_t k = 0; k < copies && st == HV_OK; k++, f->n++) {
        f->pipelines[f->n] = p; /* equal pointers: copies are solved once */
        f->min[f->n] = min;
        f->max[f->n] = max;
    }
    return st;
}

enum hv_status hv__instance_read_joint(struct hv_instance *in, const struct hv_jp *root,
                                       struct hv_err *err)
{
    struct fill f = {.cap = HV_BATCH_LAYERS_MAX_PIPELINES};
    struct hv_jp at;
    size_t n = 0;
    enum hv_status st = hv_keys_check(root, HV_KEYS_INSTANCE_JOINT, err);
    if (st == HV_OK) {
        st = hv_jp_need(root, "total", "a whole number of micro-batches", &at, err);
    }
    if (st == HV_OK) {
        st = hv_jp_int(&at, 0, HV_BATCH_LAYERS_MAX_TOTAL, &in->joint.total, err);
    }
    if (st == HV_OK) {
        st = hv_jp_need(root, "pipelines", "a list of chains", &at, err);
    }
    if (st == HV_OK) {
        st = hv_jp_array(&at, &n, err);
    }
    if (st == HV_OK && n == 0) {
        return hv_jp_expected(&at, err, "at least one pipeline");
    }
    f.pipelines = hv_arena_new(&in->arena, struct hv_partition, f.cap);
    f.min = hv_arena_new(&in->arena, int64_t, f.cap);
    f.max = hv_arena_new(&in->arena, int64_t, f.cap);
    for (size_t k = 0; k < n && st == HV_OK; k++) {
        struct hv_jp one = hv_jp_at(&at, k);
        st = read_pipeline(in, &one, &f, err);
    }
    in->joint.n_pipelines = f.n;
    in->joint.pipelines = f.pipelines;
    in->joint.min = f.min;
    in->joint.max = f.max;
    return st;
}
