/** `hetviz shard`: layouts of operator graphs, and the exchanges that they need. */
#include <string.h>

#include "solver/base/log.h"
#include "solver/io/own/doc/docs.h"
#include "solver/io/own/graph/shard_answer.h"
#include "solver/workload/graph/model/transformer.h"
#include "ui/cli/cli.h"
#include "ui/cli/print.h"

/** Answers one case: layouts, bytes, memory, rules. */
static enum hv_status answer(const struct hv_shard_case *c, struct hv_arena *arena,
                             struct hv_shard_answer *out, struct hv_err *err)
{
    struct hv_reshard path = {0};
    enum hv_status st = HV_OK;
    switch (c->question) {
    case HV_ASK_RULES:
        return hv_expand(c->graph, arena, &out->sharding.expansion, err);
    case HV_ASK_GRAPH:
        return hv_shard_graph_solve(&c->request, arena, &out->sharding, err);
    case HV_ASK_RESHARD:
        st = hv_reshard_path(&c->mesh, &c->shape, &c->from, &c->to, NULL, arena, &path, err);
        out->sharding.lowered.sent_bytes = path.sent_bytes;
        return st;
    case HV_ASK_OPERATOR:
        return hv_shard_op_solve(c->graph, &c->graph->ops[0], &c->mesh, c->operand,
                                 c->want_text != NULL ? &c->want : NULL, arena,
                                 &out->sharding.lowered, &out->result, err);
    case HV_ASK_NOTHING:
        break;
    }
    return hv_err_set(
        err, HV_EINPUT,
        "a case needs a \"graph\", a \"shape\" with \"from\" and \"to\", or an \"op\" "
        "with \"in\"");
}

/** Prints the answers of all cases; one that has none is named on standard error. */
static enum hv_status answer_all(const struct hv_shard_cases *cases, bool json, struct hv_err *err)
{
    enum hv_status st = HV_OK, worst = HV_OK;
    for (size_t i = 0; i < cases->n && (st == HV_OK || st == HV_ENO); i++) {
        struct hv_arena arena = {0};
        struct hv_shard_answer a = {.asked = &cases->cases[i]};
        struct hv_err own = {0};
        struct hv_str text = {0};
        st = answer(a.asked, &arena, &a, &own);
        if (st) {
            hv_err_context(&own, "case \"%.80s\"", a.asked->id);
            hv_log_err("hetviz", &own);
            worst = HV_ENO;
            st = HV_OK;
        } else {
            st = hv_shard_answer_print(&a, json, &text, err);
            st = st ? st : hv_cli_print(&text, err);
        }
        hv_str_free(&text);
        hv_arena_free(&arena);
    }
    return st ? st : worst;
}

/* ---- a model --------------------------------------------------------------------------------- */

/** Splits "x+y" at the plus signs. */
static json_t *axes_of(const char *text)
{
    json_t *list = json_array();
    while (*text != '\0') {
        size_t n = strcspn(text, "+");
        json_array_append_new(list, json_stringn(text, n));
        text += n + (text[n] == '+');
    }
    return list;
}

/** "TENSOR.DIM=AXIS" into {tensor: {dim: [axes]}}. */
static enum hv_status add_split(json_t *shard, const char *text, struct hv_err *err)
{
    const char *value = strchr(text, '='), *dot = value;
    while (dot > text && *dot != '.') {
        dot--;
    }
    if (dot == text || dot + 1 == value) {
        return hv_err_set(err, HV_EUSAGE, "--split %s: expected TENSOR.DIM=AXIS", text);
    }
    char *tensor = hv_xmalloc((size_t)(value - text) + 1);
    memcpy(tensor, text, (size_t)(value - text));
    tensor[value - text] = '\0';
    tensor[dot - text] = '\0';
    json_t *layout = json_object_get(shard, tensor);
    if (layout == NULL) {
        layout = json_object();
        json_object_set_new(shard, tensor, layout);
    }
    json_object_set_new(layout, tensor + (dot - text) + 1, axes_of(value + 1));
    free(tensor);
    return HV_OK;
}

static enum hv_status add_mesh(json_t *mesh, const char *text, struct hv_err *err)
{
    const char *value = strchr(text, '=');
    char *end = NULL;
    long long n = strtoll(value + 1, &end, 10);
    if (end == value + 1 || *end != '\0' || n < 1) {
        return hv_err_set(err, HV_EUSAGE,
                          "--mesh %s: expected a number of devices after the =", text);
    }
    json_object_setn_new(mesh, text, (size_t)(value - text), json_integer(n));
    return HV_OK;
}

/** The options of the command line as the one case of a document with the model as its graph. */
static enum hv_status make_document(struct hv_args *args, const json_t *model, json_t **out,
                                    struct hv_err *err)
{
    json_t *mesh = json_object(), *shard = json_object(), *one = json_object();
    size_t n_mesh = 0, n_split = 0;
    const char **axes = hv_args_all(args, "mesh", &n_mesh);
    const char **splits = hv_args_all(args, "split", &n_split);
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < n_mesh; i++) {
        st = add_mesh(mesh, axes[i], err);
    }
    for (size_t i = 0; st == HV_OK && i < n_split; i++) {
        st = add_split(shard, splits[i], err);
    }
    json_object_set(one, "dims", json_object_get(model, "dims"));
    json_object_set(one, "tensors", json_object_get(model, "tensors"));
    json_object_set(one, "ops", json_object_get(model, "ops"));
    json_t *c = json_pack("{s:s, s:s, s:o, s:b, s:b}", "id",
                          json_string_value(json_object_get(model, "name")) != NULL
                              ? json_string_value(json_object_get(model, "name"))
                              : "model",
                          "graph", "model", "shard", shard, "propagate_inputs", 1, "grad",
                          hv_args_has(args, "grad"));
    if (n_mesh > 0) {
        json_object_set(c, "mesh", mesh);
    }
    json_decref(mesh);
    *out = json_pack("{s:s, s:{s:o}, s:[o]}", "format", "hetviz.shard-cases/1", "graphs", "model",
                     one, "cases", c);
    return st;
}

/** A graph model as it is; the graph of a transformer in its place. */
static enum hv_status read_graph(struct hv_args *args, const char *path, struct hv_model_doc *model,
                                 struct hv_err *err)
{
    enum { TOKENS = 2048 };
    struct hv_model_doc given = {0};
    enum hv_status st = hv_model_doc_read(&given, path, err);
    if (st == HV_OK && given.model->kind == HV_MODEL_TRANSFORMER) {
        int most = given.model->max_sequence;
        struct hv_graph_of_model q = {
            .sequences = (int64_t)hv_args_number(args, "sequences", 1),
            .tokens = (int64_t)hv_args_number(args, "tokens", most < TOKENS ? most : TOKENS),
            .dtype = HV_DTYPE_BF16,
            .loss = given.model->patch_tokens == 0};
        st = hv_model_doc_graph(&given, &q, model, err);
        hv_model_doc_free(&given);
        return st;
    }
    if (st == HV_OK && json_object_get(given.json.root, "tensors") == NULL) {
        st = hv_err_set(err, HV_EINPUT,
                        "%s: expected a graph model with \"tensors\" (the long form), a "
                        "transformer, or hetviz.shard-cases/1",
                        path);
    }
    *model = given;
    return st;
}

static enum hv_status print_graph(const struct hv_model_doc *model, struct hv_err *err)
{
    struct hv_str text = {0};
    hv_json_write(&text, model->json.root, true);
    enum hv_status st = hv_cli_print(&text, err);
    hv_str_free(&text);
    return st;
}

static enum hv_status shard_model(struct hv_args *args, const char *path, bool json,
                                  struct hv_err *err)
{
    struct hv_model_doc model = {0};
    struct hv_shard_cases cases = {0};
    struct hv_json doc = {0};
    json_t *root = NULL;
    enum hv_status st = read_graph(args, path, &model, err);
    if (st == HV_OK && hv_args_has(args, "graph")) {
        st = print_graph(&model, err);
        hv_model_doc_free(&model);
        return st;
    }
    st = st ? st : make_document(args, model.json.root, &root, err);
    if (root != NULL) {
        hv_json_wrap(&doc, root, path);
    }
    st = st ? st : hv_shard_cases_read(&cases, &doc, err);
    st = st ? st : answer_all(&cases, json, err);
    hv_shard_cases_free(&cases);
    hv_json_free(&doc);
    hv_model_doc_free(&model);
    return st;
}

enum hv_status hv_cli_shard(struct hv_args *args, struct hv_err *err)
{
    struct hv_json doc = {0};
    struct hv_shard_cases cases = {0};
    const char *path = args->positional[0];
    bool json = hv_args_has(args, "json");
    bool is_cases = false;
    enum hv_status st = hv_shard_doc_load(&doc, path, &is_cases, err);
    if (st == HV_OK && !is_cases) {
        hv_json_free(&doc);
        return shard_model(args, path, json, err);
    }
    st = st ? st : hv_shard_cases_read(&cases, &doc, err);
    st = st ? st : answer_all(&cases, json, err);
    hv_shard_cases_free(&cases);
    hv_json_free(&doc);
    return st;
}
