/* Documents that a specification names or holds. */
#include "solver/sweep/sweep_int.h"

#include <string.h>
#include <unistd.h>

/* the default sequence is that of a cell's model, which is not known here */
enum { ANY_SEQUENCE = 2048 };

/** The path beside `folder` where there is such a file, else the name as it is. */
static void find_beside(const char *name, const char *folder, struct hv_str *out)
{
    if (name[0] != '/' && folder[0] != '\0') {
        hv_str_addf(out, "%s/%s", folder, name);
        if (access(hv_str_cstr(out), F_OK) == 0) {
            return;
        }
        hv_str_clear(out);
    }
    hv_str_adds(out, name);
}

/** Reads a document by its path or name; the job of path NULL is the default. */
static enum hv_status read_named(enum hv_doc d, const char *path, json_t **out, struct hv_err *err)
{
    struct hv_device_catalogue devices = {0};
    struct hv_cluster_doc cluster = {0};
    struct hv_model_doc model = {0};
    struct hv_job_doc job = {0};
    enum hv_status st = HV_OK;

    if (d == HV_DOC_CLUSTER) {
        st = hv_device_catalogue_read(&devices, err);
        st = st == HV_OK ? hv_cluster_doc_read(&cluster, path, &devices, err) : st;
        *out = st == HV_OK ? json_incref(cluster.json.root) : NULL;
        hv_cluster_doc_free(&cluster);
        hv_device_catalogue_free(&devices);
    } else if (d == HV_DOC_MODEL) {
        st = hv_model_doc_read(&model, path, err);
        *out = st == HV_OK ? json_incref(model.json.root) : NULL;
        hv_model_doc_free(&model);
    } else {
        st = hv_job_doc_read(&job, path, ANY_SEQUENCE, err);
        *out = st == HV_OK ? json_incref(job.json.root) : NULL;
        hv_job_doc_free(&job);
    }
    return st;
}

enum hv_status hv__sweep_document(enum hv_doc d, const struct hv_jp *at, const char *folder,
                                  json_t **out, struct hv_err *err)
{
    *out = NULL;
    if (json_is_object(at->v)) {
        *out = json_incref(at->v);
        return HV_OK;
    }
    const char *name = NULL;
    enum hv_status st = json_is_string(at->v)
                            ? hv_jp_string(at, &name, err)
                            : hv_jp_expected(at, err, "the name of a document, or one itself");
    if (st == HV_OK && strcmp(name, "-") == 0) {
        st = hv_jp_fail(at, err,
                        "a sweep is read again by every shard, so it cannot name standard "
                        "input");
    }
    if (st != HV_OK) {
        return st;
    }
    struct hv_str path = {0};
    find_beside(name, folder, &path);
    st = read_named(d, hv_str_cstr(&path), out, err);
    if (st != HV_OK) {
        hv_jp_blame(at, err);
    }
    hv_str_free(&path);
    return st;
}

enum hv_status hv__sweep_default_job(json_t **out, struct hv_err *err)
{
    return read_named(HV_DOC_JOB, NULL, out, err);
}
