/** Operator graphs in long form, written as their reader reads them. */
#include "solver/io/own/graph/long_form.h"

static json_t *names(const struct hv_tensor_graph *g, const uint32_t *dims, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_string(g->dims[dims[i]].name));
    }
    return list;
}

static json_t *all_dims(const struct hv_tensor_graph *g)
{
    json_t *o = json_object();
    for (size_t i = 0; i < g->n_dims; i++) {
        json_object_set_new(o, g->dims[i].name, json_integer(g->dims[i].size));
    }
    return o;
}

static json_t *all_tensors(const struct hv_tensor_graph *g)
{
    static const char *const roles[] = {[HV_TENSOR_INPUT] = "input",
                                        [HV_TENSOR_PARAMETER] = "parameter",
                                        [HV_TENSOR_STATE] = "state"};
    static const char *const types[HV_DTYPE_N] = {
#define X(c, word, bytes) [c] = word,
        HV_DTYPE_MAP(X)
#undef X
    };
    json_t *o = json_object();
    for (size_t i = 0; i < g->n_given; i++) {
        const struct hv_tensor *t = &g->tensors[i];
        json_object_set_new(o, t->name,
                            json_pack("{s:o, s:s, s:s}", "dims", names(g, t->dim, t->n_dims),
                                      "role", roles[t->role], "dtype", types[t->dtype]));
    }
    return o;
}

/* The name of a tensor, or, where its dimensions have other names here, both. */
static json_t *operand(const struct hv_tensor_graph *g, const struct hv_tensor_use *u)
{
    const struct hv_tensor *t = &g->tensors[u->tensor];
    for (size_t d = 0; d < u->n_dims; d++) {
        if (u->dim[d] != t->dim[d]) {
            return json_pack("{s:s, s:o}", "tensor", t->name, "as", names(g, u->dim, u->n_dims));
        }
    }
    return json_string(t->name);
}

static json_t *window(const struct hv_tensor_graph *g, const struct hv_tensor_window *w)
{
    json_t *o = json_pack("{s:s}", "of", g->dims[w->of].name);
    if (w->tap != HV_NO_DIM) {
        json_object_set_new(o, "tap", json_string(g->dims[w->tap].name));
    }
    json_object_set_new(o, "size", json_integer(w->size));
    if (w->stride != 1) {
        json_object_set_new(o, "stride", json_integer(w->stride));
    }
    if (w->pad[0] != 0 || w->pad[1] != 0) {
        json_object_set_new(o, "pad",
                            json_pack("[I, I]", (json_int_t)w->pad[0], (json_int_t)w->pad[1]));
    }
    if (w->dilation != 1) {
        json_object_set_new(o, "dilation", json_integer(w->dilation));
    }
    return o;
}

static void add_windows(const struct hv_tensor_graph *g, const struct hv_tensor_op *op, json_t *o)
{
    json_t *all = json_object();
    for (size_t i = 0; i < op->n_windows; i++) {
        json_object_set_new(all, g->dims[op->window[i].out].name, window(g, &op->window[i]));
    }
    json_object_set_new(o, "window", all);
}

static void add_groups(const struct hv_tensor_graph *g, const struct hv_tensor_op *op, json_t *o)
{
    json_t *all = json_object();
    for (size_t i = 0; i < op->n_groups; i++) {
        json_object_set_new(all, g->dims[op->group[i].whole].name,
                            names(g, op->group[i].part, op->group[i].n_parts));
    }
    json_object_set_new(o, "groups", all);
}

static void add_ranges(const struct hv_tensor_graph *g, const struct hv_tensor_op *op, json_t *o)
{
    json_t *all = json_object();
    int64_t between = op->kind == HV_OP_PAD ? 1 : 0; /* a pad's step counts the element itself */
    for (size_t i = 0; i < op->n_ranges; i++) {
        const struct hv_tensor_range *r = &op->range[i];
        json_object_set_new(all, g->dims[r->dim].name,
                            json_pack("[I, I, I]", (json_int_t)r->from, (json_int_t)r->to,
                                      (json_int_t)(r->step - between)));
    }
    json_object_set_new(o, "range", all);
}

/* The key that the kind has for the dimensions that it goes over. */
static const char *over_key(enum hv_tensor_op_kind kind)
{
    unsigned needs = hv_op_kind_row(kind)->needs;
    return (needs & HV_NEEDS_ALONG) != 0  ? "along"
           : (needs & HV_NEEDS_ROWS) != 0 ? "rows"
           : (needs & HV_NEEDS_OVER) != 0 ? "over"
                                          : "parallel";
}

static json_t *operator_json(const struct hv_tensor_graph *g, const struct hv_tensor_op *op)
{
    static const char *const ways[HV_BY_N] = {"sum", "mean", "max", "min"};
    const struct hv_tensor *out = &g->tensors[op->out];
    json_t *in = json_array();
    for (size_t i = 0; i < op->n_in; i++) {
        json_array_append_new(in, operand(g, &op->in[i]));
    }
    json_t *o =
        json_pack("{s:s, s:s, s:o, s:o}", "id", op->id, "op", hv_op_kind_row(op->kind)->name, "in",
                  in, "out", names(g, out->dim, out->n_dims));
    if ((hv_op_kind_row(op->kind)->needs & HV_NEEDS_BY) != 0) {
        json_object_set_new(o, "by", json_string(ways[op->by]));
    }
    if (op->n_over > 0) {
        json_object_set_new(o, over_key(op->kind), names(g, op->over, op->n_over));
    }
    if (op->n_windows > 0) {
        add_windows(g, op, o);
    }
    if (op->feature_groups > 1) {
        json_object_set_new(o, "groups", json_integer(op->feature_groups));
    }
    if (op->n_groups > 0) {
        add_groups(g, op, o);
    }
    if (op->n_ranges > 0) {
        add_ranges(g, op, o);
    }
    if (op->group_name != NULL) {
        json_object_set_new(o, "group", json_string(op->group_name));
    }
    if (op->device_class != NULL) {
        json_object_set_new(o, "device_class", json_string(op->device_class));
    }
    return o;
}

json_t *hv_long_graph_json(const struct hv_tensor_graph *g)
{
    json_t *ops = json_array();
    for (size_t i = 0; i < g->n_ops; i++) {
        json_array_append_new(ops, operator_json(g, &g->ops[i]));
    }
    return json_pack("{s:o, s:o, s:o}", "dims", all_dims(g), "tensors", all_tensors(g), "ops", ops);
}
