/** Questions about layouts: reading of hetviz.shard-cases/1. */
#include "solver/io/own/graph/shard_cases.h"

#include "solver/io/own/doc/keys.h"
#include "solver/io/own/doc/load.h"
#include "solver/io/own/graph/long_form.h"
#include "solver/io/own/graph/shard_operator.h"
#include <stdlib.h>
#include <string.h>

#define FORMAT     "hetviz.shard-cases/1"
#define MAX_CASES  100000
#define MAX_GRAPHS 10000

/* A tensor of a graph; a list of them is ordered by name. */
struct named {
    const char *name;
    uint32_t tensor;
};

struct reader {
    struct hv_shard_cases *out;
    const char **graph_names;
    struct hv_tensor_graph *graphs;
    struct named **tensors; /* by graph; NULL: not needed yet */
    size_t n_graphs;
};

/* ---- mesh and layouts ------------------------------------------------------------------------ */

static enum hv_status read_mesh(struct reader *r, const struct hv_jp *p, struct hv_shard_case *c,
                                struct hv_err *err)
{
    const char *key;
    json_t *v;
    int64_t sizes[HV_MESH_AXES];
    size_t n = 0;
    if (!json_is_object(p->v) || json_object_size(p->v) > HV_MESH_AXES) {
        return hv_jp_expected(p, err, "an object of at most 8 axes with their sizes");
    }
    c->axis = hv_arena_new(&r->out->arena, const char *, json_object_size(p->v) + 1);
    json_object_foreach(p->v, key, v)
    {
        struct hv_jp at = hv_jp_get(p, key);
        enum hv_status st = hv_jp_int(&at, 1, (int64_t)1 << 31, &sizes[n], err);
        if (st) {
            return st;
        }
        c->axis[n++] = hv_arena_strdup(&r->out->arena, key);
    }
    struct hv_err own = {0};
    return hv_mesh_make(&c->mesh, sizes, n, &own) == HV_OK ? HV_OK
                                                           : hv_jp_fail(p, err, "%s", own.text);
}

static enum hv_status read_axis(const struct hv_jp *p, const struct hv_shard_case *c,
                                struct hv_layout *l, size_t dim, struct hv_err *err)
{
    const char *name = NULL;
    enum hv_status st = hv_jp_string(p, &name, err);
    size_t a = 0;
    if (st) {
        return st;
    }
    while (a < c->mesh.n_axes && strcmp(c->axis[a], name) != 0) {
        a++;
    }
    if (a == c->mesh.n_axes) {
        return hv__unknown_name(p, "an axis of the mesh", name, c->axis, a, err);
    }
    if ((hv_layout_splits(l) & hv_mesh_axis_atoms(&c->mesh, a)) != 0) {
        return hv_jp_fail(p, err, "the axis \"%.80s\" splits this tensor already", name);
    }
    for (size_t i = c->mesh.first[a]; i < c->mesh.first[a + 1]; i++) {
        hv_axes_push(&l->dim[dim], (uint8_t)i);
    }
    return HV_OK;
}

static enum hv_status foreign_dim(const struct hv_jp *p, const struct hv_tensor_graph *g,
                                  const struct hv_tensor *t, const char *name, struct hv_err *err)
{
    struct hv_str what = {0};
    hv_str_addf(&what, "a dimension of \"%.80s\"", t->name);
    enum hv_status st = hv__unknown_dim(p, hv_str_cstr(&what), g, t->dim, t->n_dims, name, err);
    hv_str_free(&what);
    return st;
}

/* {dim: [axes, major first]} of a tensor. */
static enum hv_status read_layout(const struct hv_jp *p, const struct hv_shard_case *c,
                                  const struct hv_tensor *t, struct hv_layout *l,
                                  struct hv_err *err)
{
    const char *key;
    json_t *v;
    *l = hv_layout_whole(t->n_dims);
    if (!json_is_object(p->v)) {
        return hv_jp_expected(p, err, "lists of axes by dimension, {\"batch\": [\"x\"]}");
    }
    json_object_foreach(p->v, key, v)
    {
        struct hv_jp list = hv_jp_get(p, key);
        uint32_t dim = hv_tensor_graph_dim(c->graph, key);
        size_t at = 0, n = 0;
        if (dim == HV_NO_DIM || !hv_dims_hold(t->dim, t->n_dims, dim, &at)) {
            return foreign_dim(&list, c->graph, t, key, err);
        }
        enum hv_status st = hv_jp_array(&list, &n, err);
        for (size_t i = 0; st == HV_OK && i < n; i++) {
            struct hv_jp axis = hv_jp_at(&list, i);
            st = read_axis(&axis, c, l, at, err);
        }
        int64_t size = c->graph->dims[dim].size, parts = hv_axes_parts(&c->mesh, &l->dim[at]);
        if (st == HV_OK && size % parts != 0) {
            return hv_jp_fail(&list, err,
                              "%lld elements of \"%.80s\" do not divide into %lld parts",
                              (long long)size, key, (long long)parts);
        }
        if (st) {
            return st;
        }
    }
    return HV_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static const struct named *tensors_by_name(struct reader *r, const struct hv_tensor_graph *g)
{
    struct named **list = &r->tensors[g - r->graphs];
    if (*list == NULL) {
        *list = hv_arena_new(&r->out->arena, struct named, g->n_tensors + 1);
        for (uint32_t t = 0; t < g->n_tensors; t++) {
            (*list)[t] = (struct named){g->tensors[t].name, t};
        }
        qsort(*list, g->n_tensors, sizeof **list, by_name);
    }
    return *list;
}

static enum hv_status find_tensor(struct reader *r, const struct hv_jp *p,
                                  const struct hv_tensor_graph *g, const char *name, uint32_t *out,
                                  struct hv_err *err)
{
    const struct named key = {name, 0};
    const struct named *found =
        bsearch(&key, tensors_by_name(r, g), g->n_tensors, sizeof key, by_name);
    if (found != NULL) {
        *out = found->tensor;
        return HV_OK;
    }
    const char **names = hv_xcalloc(g->n_tensors + 1, sizeof *names);
    for (size_t t = 0; t < g->n_tensors; t++) {
        names[t] = g->tensors[t].name;
    }
    enum hv_status st =
        hv__unknown_name(p, "a tensor or operator of the graph", name, names, g->n_tensors, err);
    free(names);
    return st;
}

/* Appends the layouts of a member {tensor: layout}. */
static enum hv_status read_layouts(struct reader *r, const struct hv_jp *p, const char *key,
                                   const struct hv_shard_case *c, struct hv_given_layout *list,
                                   size_t *n, struct hv_err *err)
{
    struct hv_jp all = hv_jp_get(p, key);
    const char *name;
    json_t *v;
    if (hv_jp_none(&all)) {
        return HV_OK;
    }
    if (!json_is_object(all.v)) {
        return hv_jp_expected(&all, err, "layouts by tensor");
    }
    json_object_foreach(all.v, name, v)
    {
        struct hv_jp at = hv_jp_get(&all, name);
        struct hv_given_layout *l = &list[*n];
        enum hv_status st = find_tensor(r, &at, c->graph, name, &l->tensor, err);
        st = st ? st : read_layout(&at, c, &c->graph->tensors[l->tensor], &l->layout, err);
        if (st) {
            return st;
        }
        (*n)++;
    }
    return HV_OK;
}

/* ---- questions about graphs ------------------------------------------------------------------ */

static enum hv_status read_names(struct reader *r, const struct hv_jp *p, const char *key,
                                 const struct hv_tensor_graph *g, const uint32_t **out, size_t *n,
                                 struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(p, key);
    enum hv_status st = hv_jp_none(&list) ? HV_OK : hv_jp_array(&list, n, err);
    if (st || hv_jp_none(&list)) {
        return st;
    }
    uint32_t *tensors = hv_arena_new(&r->out->arena, uint32_t, *n + 1);
    for (size_t i = 0; st == HV_OK && i < *n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        const char *name = NULL;
        st = hv_jp_string(&at, &name, err);
        st = st ? st : find_tensor(r, &at, g, name, &tensors[i], err);
    }
    *out = tensors;
    return st;
}

/* Results that nobody reads: those of a graph that names none. */
static void default_outputs(struct reader *r, struct hv_shard_case *c)
{
    const struct hv_tensor_graph *g = c->graph;
    bool *read = hv_arena_new(&r->out->arena, bool, g->n_tensors + 1);
    uint32_t *list = hv_arena_new(&r->out->arena, uint32_t, g->n_tensors + 1);
    for (size_t i = 0; i < g->n_ops; i++) {
        for (size_t k = 0; k < g->ops[i].n_in; k++) {
            read[g->ops[i].in[k].tensor] = true;
        }
    }
    for (uint32_t t = (uint32_t)g->n_given; t < g->n_tensors; t++) {
        if (!read[t]) {
            list[c->request.n_outputs++] = t;
        }
    }
    c->request.outputs = list;
}

static enum hv_status read_graph_case(struct reader *r, const struct hv_jp *p,
                                      struct hv_shard_case *c, struct hv_err *err)
{
    struct hv_sharding_request *q = &c->request;
    const struct hv_tensor_graph *g = c->graph;
    struct hv_jp shard = hv_jp_get(p, "shard"), constrain = hv_jp_get(p, "constrain");
    size_t n = json_object_size(shard.v) + json_object_size(constrain.v);
    struct hv_jp out_shard = hv_jp_get(p, "out_shard");
    struct hv_given_layout *given = hv_arena_new(&r->out->arena, struct hv_given_layout, n + 1);
    struct hv_given_layout *asked =
        hv_arena_new(&r->out->arena, struct hv_given_layout, json_object_size(out_shard.v) + 1);
    q->graph = g;
    q->mesh = c->mesh;
    q->given = given;
    q->asked = asked;
    enum hv_status st = read_layouts(r, p, "shard", c, given, &q->n_given, err);
    st = st ? st : read_layouts(r, p, "constrain", c, given, &q->n_given, err);
    st = st ? st : read_layouts(r, p, "out_shard", c, asked, &q->n_asked, err);
    st = st ? st : read_names(r, p, "outputs", g, &q->outputs, &q->n_outputs, err);
    st = st ? st : read_names(r, p, "loss", g, &q->loss, &q->n_loss, err);
    st = st ? st : hv_jp_opt_bool(p, "grad", &q->grad, err);
    st = st ? st : hv_jp_opt_bool(p, "propagate_inputs", &q->open_inputs, err);
    q->apart = q->open_inputs; /* such a case asks for each tensor, as its judges were asked */
    if (st == HV_OK && q->n_outputs == 0) {
        default_outputs(r, c);
    }
    if (st == HV_OK && q->grad && q->n_loss == 0) {
        q->loss = q->outputs;
        q->n_loss = q->n_outputs;
    }
    return st;
}

/* ---- placements ------------------------------------------------------------------------------ */

/* "S0", "R", "Psum", "Pmax", "Pavg", "Pmask": one per axis of the mesh. An average is a sum of
 * parts already divided, and masked rows are a sum with one summand that is not 0. */
static enum hv_status read_placement(const struct hv_jp *p, const struct hv_mesh *m, size_t axis,
                                     struct hv_layout *l, const char **text, struct hv_err *err)
{
    enum hv_status st = hv_jp_string(p, text, err);
    uint32_t atoms = hv_mesh_axis_atoms(m, axis);
    if (st) {
        return st;
    }
    const char *w = *text;
    if (w[0] == 'S' && w[1] >= '0' && w[1] < '0' + l->n_dims && w[2] == '\0') {
        for (size_t i = m->first[axis]; i < m->first[axis + 1]; i++) {
            hv_axes_push(&l->dim[w[1] - '0'], (uint8_t)i);
        }
    } else if (strcmp(w, "Pmax") == 0) {
        l->max |= atoms;
    } else if (strcmp(w, "Psum") == 0 || strcmp(w, "Pavg") == 0 || strcmp(w, "Pmask") == 0) {
        l->sum |= atoms;
    } else if (strcmp(w, "R") != 0) {
        return hv_jp_fail(p, err,
                          "expected R, S and a dimension from 0 to %d, Psum, Pmax, Pavg or Pmask, "
                          "found \"%.20s\"",
                          l->n_dims - 1, w);
    }
    return HV_OK;
}

static enum hv_status read_placements(struct reader *r, const struct hv_jp *p,
                                      const struct hv_mesh *m, size_t n_dims, struct hv_layout *l,
                                      const char ***texts, struct hv_err *err)
{
    size_t n = 0;
    *l = hv_layout_whole(n_dims);
    enum hv_status st = hv_jp_array(p, &n, err);
    if (st == HV_OK && n != m->n_axes) {
        return hv_jp_fail(p, err, "expected one placement per axis of the mesh, %zu, found %zu",
                          m->n_axes, n);
    }
    const char **list = hv_arena_new(&r->out->arena, const char *, n + 1);
    for (size_t a = 0; st == HV_OK && a < n; a++) {
        struct hv_jp at = hv_jp_at(p, a);
        st = read_placement(&at, m, a, l, &list[a], err);
        list[a] = hv_arena_strdup(&r->out->arena, list[a]);
    }
    if (texts != NULL) {
        *texts = list;
    }
    return st;
}

static enum hv_status read_shape(const struct hv_jp *p, struct hv_shape *s, struct hv_err *err)
{
    size_t n = 0;
    enum hv_status st = hv_jp_array(p, &n, err);
    if (st == HV_OK && n > HV_SHARD_DIMS) {
        return hv_jp_fail(p, err, "expected at most %d sizes, found %zu", HV_SHARD_DIMS, n);
    }
    *s = (struct hv_shape){.n_dims = (uint8_t)n, .element_bytes = 4};
    for (size_t d = 0; st == HV_OK && d < n; d++) {
        struct hv_jp at = hv_jp_at(p, d);
        st = hv_jp_int(&at, 1, (int64_t)1 << 40, &s->size[d], err);
    }
    return st;
}

static enum hv_status read_reshard(struct reader *r, const struct hv_jp *p, struct hv_shard_case *c,
                                   struct hv_err *err)
{
    struct hv_jp shape = hv_jp_get(p, "shape"), from, to;
    c->question = HV_ASK_RESHARD;
    enum hv_status st = read_shape(&shape, &c->shape, err);
    st = st ? st : hv_jp_need(p, "from", "placements per axis", &from, err);
    st = st ? st : hv_jp_need(p, "to", "placements per axis", &to, err);
    size_t n = c->shape.n_dims;
    st = st ? st : read_placements(r, &from, &c->mesh, n, &c->from, NULL, err);
    return st ? st : read_placements(r, &to, &c->mesh, n, &c->to, NULL, err);
}

static enum hv_status read_operator(struct reader *r, const struct hv_jp *p,
                                    struct hv_shard_case *c, struct hv_err *err)
{
    struct hv_jp shapes, in, want = hv_jp_get(p, "want"), op = hv_jp_get(p, "op");
    struct hv_shape shape[HV__OPERANDS];
    const char *name = NULL, *means = "";
    size_t n = 0, n_in = 0;
    c->question = HV_ASK_OPERATOR;
    enum hv_status st = hv_jp_string(&op, &name, err);
    st = st ? st : hv_jp_opt_string(p, "means", &means, err);
    st = st ? st : hv_jp_need(p, "shapes", "sizes of the operands", &shapes, err);
    st = st ? st : hv_jp_need(p, "in", "placements of the operands", &in, err);
    st = st ? st : hv_jp_array(&shapes, &n, err);
    st = st ? st : hv_jp_array(&in, &n_in, err);
    if (st == HV_OK && (n == 0 || n > HV__OPERANDS || n_in != n)) {
        return hv_jp_fail(&in, err, "expected placements of 1 to %d operands, one per shape",
                          HV__OPERANDS);
    }
    c->operand = hv_arena_new(&r->out->arena, struct hv_layout, n + 1);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&shapes, i), placed = hv_jp_at(&in, i);
        st = read_shape(&at, &shape[i], err);
        st = st ? st
                : read_placements(r, &placed, &c->mesh, shape[i].n_dims, &c->operand[i], NULL, err);
    }
    struct hv_tensor_graph *g = hv_arena_new(&r->out->arena, struct hv_tensor_graph, 1);
    struct hv_err own = {0};
    if (st == HV_OK &&
        hv__operator_graph(name, means, shape, n, c->mesh.n_devices, &r->out->arena, g, &own)) {
        return hv_jp_fail(&op, err, "%s", own.text);
    }
    c->graph = g;
    if (st == HV_OK && !hv_jp_none(&want)) {
        size_t n_dims = g->tensors[g->ops[0].out].n_dims;
        st = read_placements(r, &want, &c->mesh, n_dims, &c->want, &c->want_text, err);
    }
    return st;
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum hv_status find_graph(struct reader *r, const struct hv_jp *p, struct hv_shard_case *c,
                                 struct hv_err *err)
{
    const char *name = NULL;
    enum hv_status st = hv_jp_string(p, &name, err);
    for (size_t i = 0; st == HV_OK && i < r->n_graphs; i++) {
        if (strcmp(r->graph_names[i], name) == 0) {
            c->graph = &r->graphs[i];
            return HV_OK;
        }
    }
    return st ? st
              : hv__unknown_name(p, "a name of \"graphs\"", name, r->graph_names, r->n_graphs, err);
}

static enum hv_status read_case(struct reader *r, const struct hv_jp *p, struct hv_shard_case *c,
                                struct hv_err *err)
{
    struct hv_jp id, mesh = hv_jp_get(p, "mesh"), graph = hv_jp_get(p, "graph");
    struct hv_jp shape = hv_jp_get(p, "shape"), op = hv_jp_get(p, "op");
    enum hv_status st = hv_keys_check(p, HV_KEYS_SHARD_CASE, err);
    st = st ? st : hv_jp_need(p, "id", "the name of the case", &id, err);
    st = st ? st : hv_jp_string(&id, &c->id, err);
    c->id = st ? NULL : hv_arena_strdup(&r->out->arena, c->id);
    st = st || hv_jp_none(&mesh) ? st : read_mesh(r, &mesh, c, err);
    st = st || hv_jp_none(&graph) ? st : find_graph(r, &graph, c, err);
    if (st) {
        return st;
    }
    if (c->graph != NULL) {
        c->question = hv_jp_none(&mesh) ? HV_ASK_RULES : HV_ASK_GRAPH;
        return hv_jp_none(&mesh) ? HV_OK : read_graph_case(r, p, c, err);
    }
    if (!hv_jp_none(&shape)) {
        return read_reshard(r, p, c, err);
    }
    c->question = HV_ASK_NOTHING;
    return hv_jp_none(&op) ? HV_OK : read_operator(r, p, c, err);
}

static enum hv_status read_graphs(struct reader *r, const struct hv_jp *root, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, "graphs");
    const char *key;
    json_t *v;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    if (!json_is_object(list.v) || json_object_size(list.v) > MAX_GRAPHS) {
        return hv_jp_expected(&list, err, "an object of at most 10000 graphs by name");
    }
    size_t n = json_object_size(list.v);
    r->graphs = hv_arena_new(&r->out->arena, struct hv_tensor_graph, n + 1);
    r->tensors = hv_arena_new(&r->out->arena, struct named *, n + 1);
    r->graph_names = hv_arena_new(&r->out->arena, const char *, n + 1);
    json_object_foreach(list.v, key, v)
    {
        struct hv_jp at = hv_jp_get(&list, key);
        enum hv_status st = hv_keys_check(&at, HV_KEYS_SHARD_GRAPH, err);
        st = st ? st : hv_long_graph_read(&at, &r->out->arena, &r->graphs[r->n_graphs], err);
        if (st) {
            return st;
        }
        r->graph_names[r->n_graphs++] = hv_arena_strdup(&r->out->arena, key);
    }
    return HV_OK;
}

enum hv_status hv_shard_doc_load(struct hv_json *out, const char *path_or_name, bool *is_cases,
                                 struct hv_err *err)
{
    enum hv_status st = hv__doc_load(out, path_or_name, "share/models", err);
    const char *format = st ? NULL : json_string_value(json_object_get(out->root, "format"));
    *is_cases = format != NULL && strcmp(format, FORMAT) == 0;
    return st;
}

enum hv_status hv_shard_cases_read(struct hv_shard_cases *out, const struct hv_json *doc,
                                   struct hv_err *err)
{
    struct reader r = {.out = out};
    struct hv_jp root = hv_jp_root(doc), list;
    size_t n = 0;
    *out = (struct hv_shard_cases){0};
    enum hv_status st = hv_keys_check(&root, HV_KEYS_SHARD_CASES, err);
    st = st ? st : hv_jp_format(&root, FORMAT, err);
    st = st ? st : read_graphs(&r, &root, err);
    st = st ? st : hv_jp_need(&root, "cases", "a list of cases", &list, err);
    st = st ? st : hv_jp_array(&list, &n, err);
    if (st == HV_OK && n > MAX_CASES) {
        st = hv_jp_fail(&list, err, "expected at most %d cases, found %zu", MAX_CASES, n);
    }
    out->cases = hv_arena_new(&out->arena, struct hv_shard_case, st ? 1 : n + 1);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_case(&r, &at, &out->cases[i], err);
        out->n += st == HV_OK;
    }
    if (st) {
        hv_shard_cases_free(out);
    }
    return st;
}

void hv_shard_cases_free(struct hv_shard_cases *c)
{
    hv_arena_free(&c->arena);
    *c = (struct hv_shard_cases){0};
}
