/* Models that are not transformers: measured layers, operator graphs, modules. */
#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/graph/long_form.h"
#include "solver/io/own/model/model_int.h"
#include "solver/workload/graph/work.h"
#include <stdlib.h>
#include <string.h>

#define MAX_MS      1e12
#define MAX_DEVICES 64
#define MAX_AXIS    16
#define MAX_DIMS    10000

static enum hv_status read_bytes(const struct hv_jp *p, const char *key, double *io,
                                 struct hv_err *err)
{
    return hv_jp_opt_number(p, key, 0, HV_MAX_BYTES, io, err);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static enum hv_status collect_devices(const struct hv_jp *times, struct hv_model *m,
                                      struct hv_err *err)
{
    const char *key;
    json_t *v;
    if (hv_jp_none(times)) {
        return HV_OK;
    }
    if (!json_is_object(times->v)) {
        return hv_jp_expected(times, err, "an object of times by device name");
    }
    json_object_foreach(times->v, key, v)
    {
        size_t i = 0;
        while (i < m->n_devices && strcmp(m->devices[i], key) != 0) {
            i++;
        }
        if (i == MAX_DEVICES) {
            return hv_jp_fail(times, err, "more than %d devices", MAX_DEVICES);
        }
        if (i == m->n_devices) {
            m->devices[m->n_devices++] = hv_arena_strdup(&m->arena, key);
        }
    }
    return HV_OK;
}

/* The devices that a layer has times of; one of pieces needs no time as a whole. */
static enum hv_status collect_layer(const struct hv_jp *layer, struct hv_model *m,
                                    struct hv_err *err)
{
    struct hv_jp whole = hv_jp_get(layer, "forward_ms"), back = hv_jp_get(layer, "backward_ms");
    bool pieces = false;
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < HV__PIECES; i++) {
        struct hv_jp p = hv_jp_get(layer, hv__piece_keys[i]);
        pieces = pieces || !hv_jp_none(&p);
        st = json_is_object(p.v) ? collect_devices(&p, m, err) : HV_OK;
    }
    if (st == HV_OK && !pieces) {
        st = hv_jp_need(layer, "forward_ms", "times by device", &whole, err);
    }
    st = st ? st : collect_devices(&whole, m, err);
    return st ? st : collect_devices(&back, m, err);
}

/* One measured time, or a row per tensor-parallel degree with one per micro-batch. */
static enum hv_status read_grid(const struct hv_jp *p, const struct hv_model *m, double *out,
                                struct hv_err *err)
{
    size_t n_rows = 0, n = 0;
    enum hv_status st;
    if (!json_is_array(p->v)) {
        double ms = HV_UNKNOWN;
        st = hv_jp_none(p) ? HV_OK : hv_jp_number(p, 0, MAX_MS, &ms, err);
        out[0] = ms * HV_MS;
        return st;
    }
    if ((st = hv_jp_array(p, &n_rows, err))) {
        return st;
    }
    for (size_t t = 0; t < n_rows && n_rows == m->n_grid_tp; t++) {
        struct hv_jp row = hv_jp_at(p, t);
        if ((st = hv_jp_array(&row, &n, err))) {
            return st;
        }
        for (size_t b = 0; b < n && n == m->n_grid_batch; b++) {
            struct hv_jp at = hv_jp_at(&row, b);
            double ms = HV_UNKNOWN;
            if (!hv_jp_none(&at) && (st = hv_jp_number(&at, 0, MAX_MS, &ms, err))) {
                return st;
            }
            out[t * n + b] = ms * HV_MS;
        }
        if (n != m->n_grid_batch) {
            return hv_jp_fail(&row, err,
                              "expected one time per micro_batch of the model, %zu, found %zu",
                              m->n_grid_batch, n);
        }
    }
    return n_rows == m->n_grid_tp
               ? HV_OK
               : hv_jp_fail(p, err, "expected one row per tp of the model, %zu, found %zu",
                            m->n_grid_tp, n_rows);
}

/* Times by device, `each` of them for one device. */
static enum hv_status read_times(const struct hv_jp *layer, const char *key, struct hv_model *m,
                                 size_t each, double **out, struct hv_err *err)
{
    struct hv_jp times = hv_jp_get(layer, key);
    *out = hv_arena_new(&m->arena, double, m->n_devices *each + 1);
    for (size_t d = 0; d < m->n_devices; d++) {
        enum hv_status st = HV_OK;
        double *own = *out + d * each, ms = HV_UNKNOWN;
        for (size_t i = 0; i < each; i++) {
            own[i] = HV_UNKNOWN;
        }
        if (hv_jp_none(&times)) {
            continue;
        }
        if (each > 1) {
            struct hv_jp at = hv_jp_get(&times, m->devices[d]);
            st = read_grid(&at, m, own, err);
        } else {
            st = hv_jp_opt_number(&times, m->devices[d], 0, MAX_MS, &ms, err);
            own[0] = ms * HV_MS;
        }
        if (st) {
            return st;
        }
    }
    return HV_OK;
}

/* The rising numbers that the model was measured at; {1} where the key is left out. */
static enum hv_status read_axis(const struct hv_jp *p, const char *key, struct hv_model *m,
                                int **out, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(p, key);
    size_t n = 1;
    enum hv_status st = hv_jp_none(&list) ? HV_OK : hv_jp_array(&list, &n, err);
    if (st) {
        return st;
    }
    if (n == 0 || n > MAX_AXIS) {
        return hv_jp_fail(&list, err, "expected 1 to %d numbers, found %zu", MAX_AXIS, n);
    }
    *out = hv_arena_new(&m->arena, int, n);
    (*out)[0] = 1;
    for (size_t i = 0; i < n && !hv_jp_none(&list); i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        int64_t x = 0, least = i > 0 ? (*out)[i - 1] + 1 : 1;
        if ((st = hv_jp_int(&at, least, HV_MAX_WIDTH, &x, err))) {
            return st;
        }
        (*out)[i] = (int)x;
    }
    *(out == &m->grid_tp ? &m->n_grid_tp : &m->n_grid_batch) = n;
    return HV_OK;
}

static enum hv_status read_layer(const struct hv_jp *p, struct hv_model *m,
                                 struct hv_measured_layer *l, struct hv_err *err)
{
    const char *name = NULL;
    double transfer_ms = HV_UNKNOWN;
    size_t each = m->n_grid_tp * m->n_grid_batch;
    l->parallel_frac = 1;
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_LAYER, err)) ||
        (st = hv_jp_opt_string(p, "name", &name, err)) ||
        (st = read_times(p, "forward_ms", m, each, &l->forward_s, err)) ||
        (st = read_times(p, "backward_ms", m, each, &l->backward_s, err)) ||
        (st = read_times(p, "update_ms", m, 1, &l->update_s, err)) ||
        (st = read_bytes(p, "parameter_bytes", &l->parameter_bytes, err)) ||
        (st = read_bytes(p, "activation_bytes", &l->activation_bytes, err)) ||
        (st = read_bytes(p, "output_bytes", &l->output_bytes, err)) ||
        (st = hv_jp_opt_number(p, "transfer_ms", 0, MAX_MS, &transfer_ms, err)) ||
        (st = hv_jp_opt_number(p, "parallel_frac", 0, 1, &l->parallel_frac, err)) ||
        (st = hv__pieces_read(p, m, l, err))) {
        return st;
    }
    struct hv_jp forward = hv_jp_get(p, "forward_ms"), backward = hv_jp_get(p, "backward_ms");
    l->forward_given = !hv_jp_none(&forward);
    l->backward_given = !hv_jp_none(&backward);
    l->transfer_s = transfer_ms * HV_MS;
    l->name = name ? hv_arena_strdup(&m->arena, name)
                   : hv_arena_printf(&m->arena, "layer%td", l - m->measured);
    return HV_OK;
}

enum hv_status hv__layers_read(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    struct hv_jp list = {0};
    size_t n = 0;
    enum hv_status st;
    m->max_sequence = 1;
    if ((st = hv_keys_check(p, HV_KEYS_LAYERS, err)) ||
        (st = hv__read_int(p, "max_sequence", 1, HV_MAX_WIDTH, &m->max_sequence, err)) ||
        (st = read_axis(p, "tp", m, &m->grid_tp, err)) ||
        (st = read_axis(p, "micro_batch", m, &m->grid_batch, err)) ||
        (st = hv_jp_need(p, "layers", "a list of measured layers", &list, err)) ||
        (st = hv_jp_array(&list, &n, err))) {
        return st;
    }
    if (n == 0 || n > HV_MAX_LAYERS) {
        return hv_jp_fail(&list, err, "expected 1 to %d layers, found %zu", HV_MAX_LAYERS, n);
    }
    m->devices = hv_arena_new(&m->arena, const char *, MAX_DEVICES);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = collect_layer(&at, m, err);
    }
    m->measured = hv_arena_new(&m->arena, struct hv_measured_layer, n);
    m->n_blocks = st ? 0 : n;
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_layer(&at, m, &m->measured[i], err);
    }
    return st;
}

/* ---- names and edges ------------------------------------------------------------------------- */

/* ---- graph ----------------------------------------------------------------------------------- */

static enum hv_status read_dims(const struct hv_jp *root, struct hv_model *m, struct hv_err *err)
{
    struct hv_jp dims = hv_jp_get(root, "dims");
    const char *key;
    json_t *v;
    if (hv_jp_none(&dims)) {
        return HV_OK;
    }
    if (!json_is_object(dims.v) || json_object_size(dims.v) > MAX_DIMS) {
        return hv_jp_expected(&dims, err, "an object of at most 10000 sizes by name");
    }
    m->dims = hv_arena_new(&m->arena, struct hv_graph_dim, json_object_size(dims.v) + 1);
    json_object_foreach(dims.v, key, v)
    {
        struct hv_jp at = hv_jp_get(&dims, key);
        struct hv_graph_dim *d = &m->dims[m->n_dims++];
        d->name = hv_arena_strdup(&m->arena, key);
        enum hv_status st = hv_jp_int(&at, 1, (int64_t)1 << 40, &d->size, err);
        if (st) {
            return st;
        }
    }
    return HV_OK;
}

static enum hv_status read_dim_list(const struct hv_jp *op, const char *key, struct hv_model *m,
                                    const char ***out, size_t *n_out, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(op, key);
    size_t n = 0;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(&list, &n, err);
    if (st) {
        return st;
    }
    *out = hv_arena_new(&m->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        const char *s = NULL;
        if ((st = hv_jp_string(&at, &s, err))) {
            return st;
        }
        size_t d = 0;
        while (d < m->n_dims && strcmp(m->dims[d].name, s) != 0) {
            d++;
        }
        if (d == m->n_dims) {
            return hv_jp_fail(&at, err, "expected a name of \"dims\", found \"%.80s\"", s);
        }
        (*out)[i] = m->dims[d].name;
    }
    *n_out = n;
    return HV_OK;
}

static enum hv_status read_op(const struct hv_jp *p, struct hv_model *m, struct hv_graph_op *o,
                              struct hv_err *err)
{
    struct hv_jp id = {0};
    const char *op = NULL, *group = NULL, *cls = NULL;
    double ms = HV_UNKNOWN;
    o->flops = o->parameter_bytes = o->bytes = HV_UNKNOWN;
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_OP, err)) ||
        (st = hv_jp_need(p, "id", "the name of the operator", &id, err)) ||
        (st = hv_jp_string(&id, &o->id, err)) || (st = hv_jp_opt_string(p, "op", &op, err)) ||
        (st = hv_jp_opt_string(p, "group", &group, err)) ||
        (st = hv_jp_opt_string(p, "device_class", &cls, err)) ||
        (st = read_dim_list(p, "out", m, &o->out_dims, &o->n_out_dims, err)) ||
        (st = read_dim_list(p, "contract", m, &o->contract_dims, &o->n_contract_dims, err)) ||
        (st = hv_jp_opt_number(p, "flops", 0, HV_MAX_BYTES * HV_MAX_BYTES, &o->flops, err)) ||
        (st = read_bytes(p, "parameter_bytes", &o->parameter_bytes, err)) ||
        (st = read_bytes(p, "bytes", &o->bytes, err)) ||
        (st = hv_jp_opt_number(p, "time_ms", 0, MAX_MS, &ms, err))) {
        return st;
    }
    o->id = hv_arena_strdup(&m->arena, o->id);
    o->op = hv_arena_strdup(&m->arena, op ? op : "op");
    o->group = hv_arena_strdup(&m->arena, group);
    o->device_class = hv_arena_strdup(&m->arena, cls);
    o->time_s = ms * HV_MS;
    return HV_OK;
}

static enum hv_status index_names(const struct hv_jp *list, struct hv__name_index *names, size_t n,
                                  struct hv_err *err)
{
    hv__names_sort(names, n);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(names[i - 1].name, names[i].name) == 0) {
            struct hv_jp at = hv_jp_at(list, names[i].at);
            return hv_jp_fail(&at, err, "the name \"%.80s\" is taken already", names[i].name);
        }
    }
    return HV_OK;
}

/* ---- the long form --------------------------------------------------------------------------- */

/* Appends the dimensions of a list that no list has yet. */
static size_t add_names(struct hv_model *m, const struct hv_tensor_graph *g, const uint32_t *dims,
                        size_t n, const uint32_t *but, size_t n_but, const char **out, size_t n_out)
{
    for (size_t i = 0; i < n; i++) {
        bool known = hv_dims_hold(but, n_but, dims[i], NULL);
        for (size_t k = 0; k < n_out && !known; k++) {
            known = strcmp(out[k], g->dims[dims[i]].name) == 0;
        }
        if (!known) {
            out[n_out++] = m->dims[dims[i]].name;
        }
    }
    return n_out;
}

/* What the short form would say of an operator: dimensions written, and those only read. */
static void short_op(struct hv_model *m, const struct hv_tensor_graph *g,
                     const struct hv_tensor_op *op, struct hv_graph_op *o)
{
    const struct hv_tensor *out = &g->tensors[op->out];
    double weights = 0;
    size_t most = (size_t)(op->n_in + 1) * HV_TENSOR_DIMS;
    o->id = op->id;
    o->op = hv_op_kind_row(op->kind)->name;
    o->group = op->group_name;
    o->device_class = op->device_class;
    o->out_dims = hv_arena_new(&m->arena, const char *, most);
    o->contract_dims = hv_arena_new(&m->arena, const char *, most);
    o->n_out_dims = add_names(m, g, out->dim, out->n_dims, NULL, 0, o->out_dims, 0);
    for (size_t i = 0; i < op->n_in; i++) {
        const struct hv_tensor *t = &g->tensors[op->in[i].tensor];
        o->n_contract_dims = add_names(m, g, op->in[i].dim, op->in[i].n_dims, out->dim, out->n_dims,
                                       o->contract_dims, o->n_contract_dims);
        weights += t->role == HV_TENSOR_PARAMETER
                       ? hv_tensor_elements(g, t) * (double)hv_dtype_bytes(t->dtype)
                       : 0;
    }
    o->flops = hv_tensor_op_flops(g, op);
    o->parameter_bytes = weights;
    o->bytes = hv_tensor_elements(g, out) * (double)hv_dtype_bytes(out->dtype);
    o->time_s = HV_UNKNOWN;
}

static void short_edges(struct hv_model *m, const struct hv_tensor_graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_ops; i++) {
        n += g->ops[i].n_in;
    }
    m->edges = hv_arena_new(&m->arena, struct hv_model_edge, n + 1);
    for (size_t i = 0; i < g->n_ops; i++) {
        for (size_t k = 0; k < g->ops[i].n_in; k++) {
            uint32_t from = g->ops[i].in[k].tensor;
            if (from >= g->n_given) {
                m->edges[m->n_edges++] =
                    (struct hv_model_edge){from - (uint32_t)g->n_given, (uint32_t)i};
            }
        }
    }
}

static enum hv_status read_long(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    struct hv_tensor_graph *g = hv_arena_new(&m->arena, struct hv_tensor_graph, 1);
    struct hv_jp edges = hv_jp_get(p, "edges");
    enum hv_status st = hv_long_graph_read(p, &m->arena, g, err);
    if (st == HV_OK && !hv_jp_none(&edges)) {
        return hv_jp_fail(&edges, err,
                          "with \"tensors\", edges follow from the operands; leave "
                          "them out");
    }
    if (st) {
        return st;
    }
    m->dims = hv_arena_new(&m->arena, struct hv_graph_dim, g->n_dims + 1);
    for (; m->n_dims < g->n_dims; m->n_dims++) {
        m->dims[m->n_dims] =
            (struct hv_graph_dim){g->dims[m->n_dims].name, g->dims[m->n_dims].size};
    }
    m->tensors = g;
    m->ops = hv_arena_new(&m->arena, struct hv_graph_op, g->n_ops + 1);
    m->n_ops = m->n_blocks = g->n_ops;
    for (size_t i = 0; i < g->n_ops; i++) {
        short_op(m, g, &g->ops[i], &m->ops[i]);
    }
    short_edges(m, g);
    return HV_OK;
}

/* Graphs without operands are written for one sequence, however they are read. */
static enum hv_status refuse_batch(const struct hv_jp *p, struct hv_err *err)
{
    struct hv_jp batch = hv_jp_get(p, "batch");
    return hv_jp_none(&batch) ? HV_OK
                              : hv_jp_fail(&batch, err,
                                           "\"batch\" needs the long form: give \"tensors\", and "
                                           "operators \"in\" and \"out\"");
}

enum hv_status hv__graph_read(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    struct hv_jp list = {0}, tensors = hv_jp_get(p, "tensors");
    size_t n = 0;
    enum hv_status st;
    m->max_sequence = 1;
    if (!hv_jp_none(&tensors)) {
        st = hv_keys_check(p, HV_KEYS_GRAPH, err);
        st = st ? st : hv__read_int(p, "max_sequence", 1, HV_MAX_WIDTH, &m->max_sequence, err);
        return st ? st : read_long(p, m, err);
    }
    if ((st = hv_keys_check(p, HV_KEYS_GRAPH, err)) ||
        (st = hv__read_int(p, "max_sequence", 1, HV_MAX_WIDTH, &m->max_sequence, err)) ||
        (st = refuse_batch(p, err)) || (st = read_dims(p, m, err)) ||
        (st = hv_jp_need(p, "ops", "a list of operators", &list, err)) ||
        (st = hv_jp_array(&list, &n, err))) {
        return st;
    }
    if (n == 0 || n > HV_MAX_OPS) {
        return hv_jp_fail(&list, err, "expected 1 to %d operators, found %zu", HV_MAX_OPS, n);
    }
    m->ops = hv_arena_new(&m->arena, struct hv_graph_op, n);
    m->n_ops = m->n_blocks = n;
    struct hv__name_index *names = hv_xcalloc(n, sizeof *names);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_op(&at, m, &m->ops[i], err);
        names[i] = (struct hv__name_index){m->ops[i].id, (uint32_t)i};
    }
    if (st == HV_OK && (st = index_names(&list, names, n, err)) == HV_OK) {
        st = hv__edges_read(p, m, names, n, err);
    }
    free(names);
    return st;
}
