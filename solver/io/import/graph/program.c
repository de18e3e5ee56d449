/* Tensors, dimensions and operators of an imported program. */
#include "solver/io/import/graph/program.h"

#include "solver/io/own/doc/docs.h"
#include "solver/workload/graph/work.h"
#include <string.h>

struct hv__program hv__program_new(struct hv__in *in)
{
    return (struct hv__program){.in = in,
                                .dims = json_object(),
                                .tensors = json_object(),
                                .ops = json_array(),
                                .unknown = json_object(),
                                .roles = json_object()};
}

void hv__program_free(struct hv__program *p)
{
    json_decref(p->dims);
    json_decref(p->tensors);
    json_decref(p->ops);
    json_decref(p->unknown);
    json_decref(p->roles);
}

const char *hv__dim_name(struct hv__program *p, int64_t size, size_t nth)
{
    char name[48];
    int n = snprintf(name, sizeof name, "d%lld", (long long)size);
    if (nth > 0) {
        (void)snprintf(name + n, sizeof name - (size_t)n, "_%zu", nth);
    }
    if (json_object_get(p->dims, name) == NULL) {
        json_object_set_new(p->dims, name, json_integer((json_int_t)size));
    }
    return json_object_iter_key(json_object_iter_at(p->dims, name));
}

void hv__dim_names(struct hv__program *p, const struct hv__tensor *t, const char **names)
{
    for (size_t d = 0; d < t->n; d++) {
        size_t nth = 0;
        for (size_t k = 0; k < d; k++) {
            nth += t->size[k] == t->size[d];
        }
        names[d] = hv__dim_name(p, t->size[d], nth);
    }
}

json_t *hv__names_json(const char *const *names, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_string(names[i]));
    }
    return list;
}

json_t *hv__operand_as(const struct hv__tensor *t, const char *const *names)
{
    return json_pack("{s:s, s:o}", "tensor", t->name, "as", hv__names_json(names, t->n));
}

json_t *hv__add_op(struct hv__program *p, const char *kind, json_t *operands,
                   struct hv__tensor *out)
{
    const char *names[HV__PROGRAM_DIMS];
    size_t n = json_array_size(p->ops);
    if (n >= HV__PROGRAM_OPS) {
        json_decref(operands);
        return NULL;
    }
    hv__dim_names(p, out, names);
    out->name = hv_arena_printf(&p->in->im->arena, "%s_%zu", kind, n);
    json_t *op = json_pack("{s:s, s:s, s:o, s:o}", "id", out->name, "op", kind, "in", operands,
                           "out", hv__names_json(names, out->n));
    json_array_append_new(p->ops, op);
    return op;
}

bool hv__add_opaque(struct hv__program *p, const char *what, const struct hv__tensor *const *in,
                    size_t n, struct hv__tensor *out)
{
    enum { MOST = 64 };
    json_t *operands = json_array();
    for (size_t i = 0; i < n && i < MOST; i++) {
        json_array_append_new(operands, json_string(in[i]->name));
    }
    if (what != NULL) {
        json_int_t times = json_integer_value(json_object_get(p->unknown, what));
        json_object_set_new(p->unknown, what, json_integer(times + 1));
    }
    p->n_opaque++;
    return hv__add_op(p, "opaque", operands, out) != NULL;
}

void hv__is_input(struct hv__program *p, const struct hv__tensor *t)
{
    char key[24];
    if (t->given >= 0) {
        (void)snprintf(key, sizeof key, "%d", t->given);
        json_object_set_new(p->roles, key, json_true());
    }
}

static void tell(struct hv__program *p, const struct hv_tensor_graph *g)
{
    double flops = 0;
    const char *what;
    json_t *times;
    for (size_t i = 0; i < g->n_ops; i++) {
        flops += hv_tensor_op_flops(g, &g->ops[i]);
    }
    hv__understood(p->in, 0, "%zu operators, %.5g FLOP; %.0f parameters in %zu arguments", g->n_ops,
                   flops, hv_tensor_graph_parameters(g), g->n_given);
    hv__guessed(p->in, 0,
                "arguments that are multiplied from the left, and whole numbers, are inputs; all "
                "others are parameters");
    json_object_foreach(p->unknown, what, times)
    {
        hv__ignored(p->in, 0, "what %.60s does (%lld times): it stands as opaque", what,
                    (long long)json_integer_value(times));
    }
}

enum hv_status hv__program_finish(struct hv__program *p, const char *name, struct hv_err *err)
{
    struct hv_model_doc doc = {0};
    struct hv_json json = {0};
    struct hv_err own = {0};
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:O, s:O, s:O}", "format", "hetviz.model/1", "name", name,
                  "kind", "graph", "dims", p->dims, "tensors", p->tensors, "ops", p->ops);
    if (root == NULL) {
        return hv_err_at(err, HV_EINPUT, p->in->name, 0, 0, "the program's name is no UTF-8");
    }
    hv_json_wrap(&json, json_incref(root), p->in->name);
    if (hv_model_doc_build(&doc, json, &own) != HV_OK) {
        json_decref(root);
        return hv_err_at(err, HV_EINPUT, p->in->name, 0, 0,
                         "the program cannot be read as a graph: %.300s", own.text);
    }
    tell(p, doc.model->tensors);
    hv_model_doc_free(&doc);
    json_decref(p->in->im->model);
    p->in->im->model = root;
    return HV_OK;
}
