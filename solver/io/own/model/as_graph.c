/** Transformers as documents of graph models. */
#include "solver/io/own/doc/docs.h"
#include "solver/io/own/graph/long_form.h"
#include "solver/workload/graph/model/transformer.h"

/* Members of a model document before those of its graph. */
static json_t *graph_document(const struct hv_model *m, const struct hv_tensor_graph *g)
{
    json_t *root = json_pack("{s:s, s:s, s:s}", "format", "hetviz.model/1", "name",
                             m->name ? m->name : "model", "kind", "graph");
    json_t *members = hv_long_graph_json(g);
    json_object_set_new(root, "max_sequence", json_integer(m->max_sequence));
    json_object_update(root, members);
    json_decref(members);
    return root;
}

enum hv_status hv_model_doc_graph(const struct hv_model_doc *of, const struct hv_graph_of_model *q,
                                  struct hv_model_doc *out, struct hv_err *err)
{
    struct hv_arena arena = {0};
    struct hv_tensor_graph g;
    struct hv_json json = {0};
    *out = (struct hv_model_doc){0};
    enum hv_status st = hv_transformer_graph(of->model, q, &arena, &g, err);
    if (st == HV_OK) {
        hv_json_wrap(&json, graph_document(of->model, &g), of->json.name);
        st = hv_model_doc_build(out, json, err);
    }
    hv_arena_free(&arena);
    return st;
}
