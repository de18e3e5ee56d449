/* The inputs of a job that came as a tree: documents, or names of some. */
#include "scripting/worker/worker_int.h"

/** A member that is a document (object) as text of its own, or a name. */
static struct hv_json document(const json_t *v, const char *name)
{
    struct hv_json j = {0};
    hv_json_wrap(&j, json_deep_copy(v), name);
    return j;
}

enum hv_status hv__job_inputs(const struct hv_jp *root, struct hv_inputs *in, struct hv_err *err)
{
    struct hv_jp c, m, j = hv_jp_get(root, "job");
    enum hv_status s = hv_device_catalogue_read(&in->devices, err);

    if (s == HV_OK) {
        s = hv_jp_need(root, "cluster", "a cluster or its name", &c, err);
    }
    if (s == HV_OK) {
        s = hv_jp_need(root, "model", "a model or its name", &m, err);
    }
    if (s == HV_OK) {
        s = json_is_string(c.v)
                ? hv_cluster_doc_read(&in->cluster, json_string_value(c.v), &in->devices, err)
                : hv_cluster_doc_build(&in->cluster, document(c.v, "cluster"), &in->devices, err);
    }
    if (s == HV_OK) {
        s = json_is_string(m.v) ? hv_model_doc_read(&in->model, json_string_value(m.v), err)
                                : hv_model_doc_build(&in->model, document(m.v, "model"), err);
    }
    if (s != HV_OK) {
        return s;
    }
    int longest = in->model.model->max_sequence;
    if (json_is_object(j.v)) {
        return hv_job_doc_build(&in->job, document(j.v, "job"), longest, err);
    }
    return hv_job_doc_read(&in->job, json_string_value(j.v), longest, err);
}
