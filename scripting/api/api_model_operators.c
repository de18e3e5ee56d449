/* The operators of the run's model, as a handle of hv.graph. */
#include "scripting/api/graph/handle.h"
#include "scripting/api/input_int.h"
#include "solver/io/own/doc/docs.h"
#include "solver/workload/graph/model/transformer.h"

#include <string.h>

#define DOCUMENT "hv.model_document"

static int document_gc(lua_State *L)
{
    hv_model_doc_free(lua_touserdata(L, 1));
    return 0;
}

/** Pushes a document that is freed with its userdata. */
static struct hv_model_doc *push_document(lua_State *L)
{
    struct hv_model_doc *d = lua_newuserdatauv(L, sizeof *d, 0);
    memset(d, 0, sizeof *d);
    if (luaL_newmetatable(L, DOCUMENT)) {
        lua_pushcfunction(L, document_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return d;
}

/***
The operators of the model as a graph in long form: those of a graph model as they are, those of a
transformer made from its shape (dense, grouped and latent attention, experts with dispatch and
combine).
@function model:operators
@tparam[opt] table q {sequences = of the graph (1), tokens of a sequence (the job's), loss = with
the cross-entropy at its end (true)}; all three only for transformers
@treturn handle graph as hv.graph gives it
@units counts
@raise models of layers or modules, graphs without tensors, weights beside the model's shape
@usage local g = ctx.model:operators{sequences = 2, tokens = 64}
assert(g:ops()[1].id == "embedding")
*/
int hv__model_operators(lua_State *L)
{
    static const char *const keys[] = {"sequences", "tokens", "loss", NULL};
    static const char fn[] = "model:operators";
    const struct hv_inputs *in = hv__inputs_at(L, HV__MODEL);
    struct hv_err err = {0};

    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    hv__check_keys(L, 2, fn, keys);
    struct hv_graph_of_model q = {.sequences = hv__int(L, 2, fn, "sequences", 1, 1, 1 << 20),
                                  .tokens =
                                      hv__int(L, 2, fn, "tokens", in->job.job.sequence, 1, 1 << 24),
                                  .dtype = HV_DTYPE_BF16,
                                  .loss = hv__bool(L, 2, fn, "loss", true)};
    const json_t *root = in->model.json.root;
    struct hv_model_doc *made = push_document(L);
    if (in->model.model->kind == HV_MODEL_TRANSFORMER) {
        if (hv_model_doc_graph(&in->model, &q, made, &err) != HV_OK) {
            return hv__raise(L, &err);
        }
        root = made->json.root;
    } else if (in->model.model->tensors == NULL) {
        return luaL_error(L, "%s: expected a transformer or a graph with tensors, found kind %s",
                          fn, hv_model_kind_name(in->model.model->kind));
    }
    json_t *doc = json_object();
    json_object_set(doc, "dims", json_object_get(root, "dims"));
    json_object_set(doc, "tensors", json_object_get(root, "tensors"));
    json_object_set(doc, "ops", json_object_get(root, "ops"));
    hv__graph_push(L, doc, fn);
    return 1;
}
