/** Operator graphs in long form. */
#include "solver/io/own/graph/long_form.h"

#include "solver/io/own/doc/keys.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE ((int64_t)1 << 40)

struct reader {
    struct hv_tensor_graph *g;
    struct hv_arena *arena;
    json_t *dim_of, *tensor_of; /* names → numbers */
};

enum hv_status hv__unknown_name(const struct hv_jp *p, const char *what, const char *name,
                                const char *const *known, size_t n, struct hv_err *err)
{
    const char *near = hv_suggest(name, known, n);
    return hv_jp_fail(p, err, "expected %s, found \"%.80s\"%s%s%s", what, name,
                      near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

enum hv_status hv__unknown_dim(const struct hv_jp *p, const char *what,
                               const struct hv_tensor_graph *g, const uint32_t *dims, size_t n,
                               const char *name, struct hv_err *err)
{
    const char **names = hv_xcalloc(n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        names[i] = g->dims[dims[i]].name;
    }
    enum hv_status st = hv__unknown_name(p, what, name, names, n, err);
    free(names);
    return st;
}

static uint32_t number_of(const json_t *names, const char *name)
{
    const json_t *v = json_object_get(names, name);
    return v != NULL ? (uint32_t)json_integer_value(v) : UINT32_MAX;
}

/* ---- names ----------------------------------------------------------------------------------- */

static enum hv_status unknown_dim(const struct reader *r, const struct hv_jp *p, const char *name,
                                  struct hv_err *err)
{
    uint32_t *all = hv_xcalloc(r->g->n_dims + 1, sizeof *all);
    for (size_t i = 0; i < r->g->n_dims; i++) {
        all[i] = (uint32_t)i;
    }
    enum hv_status st =
        hv__unknown_dim(p, "a name of \"dims\"", r->g, all, r->g->n_dims, name, err);
    free(all);
    return st;
}

static enum hv_status unknown_tensor(const struct reader *r, const struct hv_jp *p,
                                     const char *name, struct hv_err *err)
{
    const char **names = hv_xcalloc(r->g->n_tensors + 1, sizeof *names);
    for (size_t i = 0; i < r->g->n_tensors; i++) {
        names[i] = r->g->tensors[i].name;
    }
    enum hv_status st = hv__unknown_name(p, "a tensor of \"tensors\" or of an operator further up",
                                         name, names, r->g->n_tensors, err);
    free(names);
    return st;
}

static enum hv_status read_dim(const struct reader *r, const struct hv_jp *p, uint32_t *out,
                               struct hv_err *err)
{
    const char *name = NULL;
    enum hv_status st = hv_jp_string(p, &name, err);
    if (st) {
        return st;
    }
    *out = number_of(r->dim_of, name);
    return *out == UINT32_MAX ? unknown_dim(r, p, name, err) : HV_OK;
}

/* A list of dimensions, or (`single`) one name instead of a list. */
static enum hv_status read_dims_list(const struct reader *r, const struct hv_jp *p, bool single,
                                     uint32_t *out, uint8_t *n_out, struct hv_err *err)
{
    size_t n = 0;
    if (single && json_is_string(p->v)) {
        *n_out = 1;
        return read_dim(r, p, &out[0], err);
    }
    enum hv_status st = hv_jp_array(p, &n, err);
    if (st == HV_OK && n > HV_TENSOR_DIMS) {
        return hv_jp_fail(p, err, "expected at most %d dimensions, found %zu", HV_TENSOR_DIMS, n);
    }
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(p, i);
        st = read_dim(r, &at, &out[i], err);
    }
    *n_out = (uint8_t)n;
    return st;
}

/* ---- dims and tensors ------------------------------------------------------------------------ */

static enum hv_status read_dims(struct reader *r, const struct hv_jp *root, struct hv_err *err)
{
    struct hv_jp dims;
    const char *key;
    json_t *v;
    enum hv_status st = hv_jp_need(root, "dims", "sizes by name", &dims, err);
    if (st) {
        return st;
    }
    if (!json_is_object(dims.v) || json_object_size(dims.v) > HV_LONG_DIMS) {
        return hv_jp_expected(&dims, err, "an object of at most 10000 sizes by name");
    }
    r->g->dims = hv_arena_new(r->arena, struct hv_tensor_dim, json_object_size(dims.v) + 1);
    json_object_foreach(dims.v, key, v)
    {
        struct hv_jp at = hv_jp_get(&dims, key);
        struct hv_tensor_dim *d = &r->g->dims[r->g->n_dims];
        d->name = hv_arena_strdup(r->arena, key);
        if ((st = hv_jp_int(&at, 1, MAX_SIZE, &d->size, err))) {
            return st;
        }
        json_object_set_new(r->dim_of, key, json_integer((json_int_t)r->g->n_dims++));
    }
    return HV_OK;
}

static enum hv_status read_tensor(struct reader *r, const struct hv_jp *p, const char *name,
                                  struct hv_err *err)
{
    static const char *const roles[] = {"input", "parameter", "state"};
    static const char *const types[HV_DTYPE_N] = {
#define X(c, word, bytes) [c] = word,
        HV_DTYPE_MAP(X)
#undef X
    };
    struct hv_tensor *t = &r->g->tensors[r->g->n_tensors];
    struct hv_jp dims;
    int role = HV_TENSOR_INPUT, type = HV_DTYPE_F32;
    enum hv_status st = hv_keys_check(p, HV_KEYS_TENSOR, err);
    st = st ? st : hv_jp_need(p, "dims", "a list of dimensions", &dims, err);
    st = st ? st : read_dims_list(r, &dims, false, t->dim, &t->n_dims, err);
    st = st ? st : hv_jp_opt_word(p, "role", roles, 3, &role, err);
    st = st ? st : hv_jp_opt_word(p, "dtype", types, HV_DTYPE_N, &type, err);
    if (st) {
        return st;
    }
    t->name = hv_arena_strdup(r->arena, name);
    t->role = (enum hv_tensor_role)role;
    t->dtype = (enum hv_dtype)type;
    json_object_set_new(r->tensor_of, name, json_integer((json_int_t)r->g->n_tensors++));
    return HV_OK;
}

static enum hv_status read_tensors(struct reader *r, const struct hv_jp *root, size_t n_ops,
                                   struct hv_err *err)
{
    struct hv_jp list;
    const char *key;
    json_t *v;
    enum hv_status st = hv_jp_need(root, "tensors", "tensors by name", &list, err);
    if (st) {
        return st;
    }
    if (!json_is_object(list.v) || json_object_size(list.v) > HV_LONG_OPS) {
        return hv_jp_expected(&list, err, "an object of at most 1000000 tensors by name");
    }
    size_t n = json_object_size(list.v) + n_ops;
    r->g->tensors = hv_arena_new(r->arena, struct hv_tensor, n + 1);
    json_object_foreach(list.v, key, v)
    {
        struct hv_jp at = hv_jp_get(&list, key);
        if ((st = read_tensor(r, &at, key, err))) {
            return st;
        }
    }
    r->g->n_given = r->g->n_tensors;
    return HV_OK;
}

/* ---- operators ------------------------------------------------------------------------------- */

static enum hv_status read_use(const struct reader *r, const struct hv_jp *p,
                               struct hv_tensor_use *u, struct hv_err *err)
{
    struct hv_jp name = *p, as = {0};
    const char *word = NULL;
    enum hv_status st = HV_OK;
    if (json_is_object(p->v)) {
        st = hv_keys_check(p, HV_KEYS_TENSOR_USE, err);
        st = st ? st : hv_jp_need(p, "tensor", "the name of a tensor", &name, err);
        as = hv_jp_get(p, "as");
    }
    st = st ? st : hv_jp_string(&name, &word, err);
    if (st) {
        return st;
    }
    u->tensor = number_of(r->tensor_of, word);
    if (u->tensor == UINT32_MAX) {
        return unknown_tensor(r, &name, word, err);
    }
    const struct hv_tensor *t = &r->g->tensors[u->tensor];
    u->n_dims = t->n_dims;
    memcpy(u->dim, t->dim, sizeof u->dim);
    if (hv_jp_none(&as)) {
        return HV_OK;
    }
    st = read_dims_list(r, &as, false, u->dim, &u->n_dims, err);
    if (st == HV_OK && u->n_dims != t->n_dims) {
        return hv_jp_fail(&as, err, "expected %d dimensions, as \"%.80s\" has, found %d", t->n_dims,
                          t->name, u->n_dims);
    }
    for (size_t d = 0; st == HV_OK && d < u->n_dims; d++) {
        if (r->g->dims[u->dim[d]].size != r->g->dims[t->dim[d]].size) {
            return hv_jp_fail(&as, err, "\"%.80s\" and \"%.80s\" are of different size",
                              r->g->dims[u->dim[d]].name, r->g->dims[t->dim[d]].name);
        }
    }
    return st;
}

static enum hv_status read_uses(const struct reader *r, const struct hv_jp *p,
                                struct hv_tensor_op *op, struct hv_err *err)
{
    struct hv_jp list;
    size_t n = 0;
    enum hv_status st = hv_jp_need(p, "in", "a list of operands", &list, err);
    st = st ? st : hv_jp_array(&list, &n, err);
    if (st == HV_OK && n > 64) {
        return hv_jp_fail(&list, err, "expected at most 64 operands, found %zu", n);
    }
    op->n_in = (uint8_t)n;
    op->in = hv_arena_new(r->arena, struct hv_tensor_use, n + 1);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_use(r, &at, &op->in[i], err);
    }
    return st;
}

static enum hv_status read_pad(const struct hv_jp *p, struct hv_tensor_window *w,
                               struct hv_err *err)
{
    struct hv_jp pad = hv_jp_get(p, "pad");
    size_t n = 0;
    enum hv_status st = hv_jp_none(&pad) ? HV_OK : hv_jp_array(&pad, &n, err);
    if (st || hv_jp_none(&pad)) {
        return st;
    }
    if (n != 2) {
        return hv_jp_fail(&pad, err, "expected the elements before and behind, [2, 1]");
    }
    for (size_t i = 0; st == HV_OK && i < 2; i++) {
        struct hv_jp at = hv_jp_at(&pad, i);
        st = hv_jp_int(&at, 0, MAX_SIZE, &w->pad[i], err);
    }
    return st;
}

static enum hv_status read_window(const struct reader *r, const struct hv_jp *p, const char *out,
                                  bool taps, struct hv_tensor_window *w, struct hv_err *err)
{
    struct hv_jp of, size, tap = hv_jp_get(p, "tap");
    *w = (struct hv_tensor_window){.tap = HV_NO_DIM, .stride = 1, .dilation = 1};
    w->out = number_of(r->dim_of, out);
    if (w->out == UINT32_MAX) {
        return unknown_dim(r, p, out, err);
    }
    if (!taps && !hv_jp_none(&tap)) {
        return hv_jp_fail(&tap, err,
                          "\"tap\" has no effect on pool, which has no kernel: remove it");
    }
    enum hv_status st = hv_keys_check(p, HV_KEYS_TENSOR_WINDOW, err);
    st = st ? st : hv_jp_need(p, "of", "a dimension of the operand", &of, err);
    st = st ? st : read_dim(r, &of, &w->of, err);
    st = st || hv_jp_none(&tap) ? st : read_dim(r, &tap, &w->tap, err);
    st = st ? st : hv_jp_need(p, "size", "elements of a window", &size, err);
    st = st ? st : hv_jp_int(&size, 1, MAX_SIZE, &w->size, err);
    st = st ? st : hv_jp_opt_int(p, "stride", 1, MAX_SIZE, &w->stride, err);
    st = st ? st : hv_jp_opt_int(p, "dilation", 1, MAX_SIZE, &w->dilation, err);
    return st ? st : read_pad(p, w, err);
}

static enum hv_status read_windows(const struct reader *r, const struct hv_jp *p,
                                   struct hv_tensor_op *op, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(p, "window");
    const char *key;
    json_t *v;
    enum hv_status st = HV_OK;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    if (!json_is_object(list.v) || json_object_size(list.v) > HV_TENSOR_DIMS) {
        return hv_jp_expected(&list, err, "windows by dimension of the result");
    }
    json_object_foreach(list.v, key, v)
    {
        struct hv_jp at = hv_jp_get(&list, key);
        st = st ? st
                : read_window(r, &at, key, op->kind == HV_OP_CONV, &op->window[op->n_windows++],
                              err);
    }
    return st;
}

static enum hv_status read_groups(const struct reader *r, const struct hv_jp *p,
                                  struct hv_tensor_op *op, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(p, "groups");
    const char *key;
    json_t *v;
    enum hv_status st = HV_OK;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    if (op->kind == HV_OP_CONV) {
        return hv_jp_int(&list, 1, MAX_SIZE, &op->feature_groups, err);
    }
    if (!json_is_object(list.v) || json_object_size(list.v) > HV_TENSOR_DIMS) {
        return hv_jp_expected(&list, err, "parts by dimension, {\"m\": [\"n\", \"d\"]}");
    }
    json_object_foreach(list.v, key, v)
    {
        struct hv_jp at = hv_jp_get(&list, key);
        struct hv_tensor_group *group = &op->group[op->n_groups++];
        group->whole = number_of(r->dim_of, key);
        st = st ? st
             : group->whole == UINT32_MAX
                 ? unknown_dim(r, &at, key, err)
                 : read_dims_list(r, &at, false, group->part, &group->n_parts, err);
    }
    return st;
}

/* slice: [from, to] or [from, to, step]; pad: [before, behind] or [before, behind, between]. */
static enum hv_status read_range(const struct reader *r, const struct hv_jp *p, const char *dim,
                                 struct hv_tensor_op *op, struct hv_err *err)
{
    struct hv_tensor_range *range = &op->range[op->n_ranges++];
    int64_t *const member[3] = {&range->from, &range->to, &range->step};
    bool pads = op->kind == HV_OP_PAD;
    size_t n = 0;
    range->step = pads ? 0 : 1;
    range->dim = number_of(r->dim_of, dim);
    if (range->dim == UINT32_MAX) {
        return unknown_dim(r, p, dim, err);
    }
    enum hv_status st = hv_jp_array(p, &n, err);
    if (st == HV_OK && (n < 2 || n > 3)) {
        return hv_jp_fail(p, err, "expected %s",
                          pads ? "elements before and behind" : "[from, to] or [from, to, step]");
    }
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(p, i);
        st = hv_jp_int(&at, i == 2 && !pads ? 1 : 0, MAX_SIZE, member[i], err);
    }
    range->step += pads ? 1 : 0;
    if (st == HV_OK && !pads &&
        (range->to <= range->from || range->to > r->g->dims[range->dim].size)) {
        return hv_jp_fail(p, err, "expected a range inside the %lld elements of \"%.80s\"",
                          (long long)r->g->dims[range->dim].size, dim);
    }
    return st;
}

static enum hv_status read_ranges(const struct reader *r, const struct hv_jp *p,
                                  struct hv_tensor_op *op, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(p, "range");
    const char *key;
    json_t *v;
    enum hv_status st = HV_OK;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    if (!json_is_object(list.v) || json_object_size(list.v) > HV_TENSOR_DIMS) {
        return hv_jp_expected(&list, err, "ranges by dimension, {\"p\": [0, 16]}");
    }
    json_object_foreach(list.v, key, v)
    {
        struct hv_jp at = hv_jp_get(&list, key);
        st = st ? st : read_range(r, &at, key, op, err);
    }
    return st;
}

/* Members that a kind needs are there. */
static enum hv_status check_needs(const struct hv_jp *p, const struct hv_tensor_op *op,
                                  struct hv_err *err)
{
    unsigned needs = hv_op_kind_row(op->kind)->needs;
    const struct {
        unsigned bit;
        const char *key, *what;
    } members[] = {
        {HV_NEEDS_OVER, "over", "the dimensions that it goes over"},
        {HV_NEEDS_ALONG, "along", "the dimension that it goes along"},
        {HV_NEEDS_ROWS, "rows", "the dimension that indices choose from"},
        {HV_NEEDS_WINDOW, "window", "windows by dimension of the result"},
        {HV_NEEDS_RANGE, "range", "ranges by dimension"},
        {HV_NEEDS_BY, "by", "\"sum\", \"mean\", \"max\" or \"min\""},
    };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        struct hv_jp at;
        if ((needs & members[i].bit) != 0) {
            enum hv_status st = hv_jp_need(p, members[i].key, members[i].what, &at, err);
            if (st) {
                return st;
            }
        }
    }
    return HV_OK;
}

/* Keys that say nothing of this kind of operator are not passed over. */
static enum hv_status check_effects(const struct hv_jp *p, const struct hv_tensor_op *op,
                                    struct hv_err *err)
{
    const struct hv_op_kind_row *row = hv_op_kind_row(op->kind);
    const struct {
        const char *key;
        bool takes;
    } members[] = {
        {"over", (row->needs & HV_NEEDS_OVER) != 0},
        {"along", (row->needs & HV_NEEDS_ALONG) != 0},
        {"rows", (row->needs & HV_NEEDS_ROWS) != 0},
        {"parallel", op->kind == HV_OP_OPAQUE},
        {"by", (row->needs & HV_NEEDS_BY) != 0},
        {"window", (row->needs & HV_NEEDS_WINDOW) != 0},
        {"range", (row->needs & HV_NEEDS_RANGE) != 0},
        {"groups", op->kind == HV_OP_CONV || op->kind == HV_OP_RESHAPE},
    };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        struct hv_jp at = hv_jp_get(p, members[i].key);
        if (!hv_jp_none(&at) && !members[i].takes) {
            return hv_jp_fail(&at, err, "\"%s\" has no effect on %s: remove it", members[i].key,
                              row->name);
        }
    }
    return HV_OK;
}

/* The dimensions that an operator goes over, under the one key that its kind has for them. */
static enum hv_status read_over(const struct reader *r, const struct hv_jp *p,
                                struct hv_tensor_op *op, struct hv_err *err)
{
    static const char *const keys[] = {"over", "along", "rows", "parallel"};
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < sizeof keys / sizeof keys[0]; i++) {
        struct hv_jp list = hv_jp_get(p, keys[i]);
        if (!hv_jp_none(&list)) {
            st = read_dims_list(r, &list, true, op->over, &op->n_over, err);
        }
    }
    return st;
}

static enum hv_status read_kind(const struct hv_jp *p, struct hv_tensor_op *op, struct hv_err *err)
{
    static const char *const kinds[HV_TENSOR_OP_KIND_N] = {
#define X(c, name, way, least, most, flops, needs) [c] = name,
        HV_OP_KIND_MAP(X)
#undef X
    };
    struct hv_jp at;
    int kind = 0;
    enum hv_status st = hv_jp_need(p, "op", "the kind of the operator", &at, err);
    st = st ? st : hv_jp_word(&at, kinds, HV_TENSOR_OP_KIND_N, &kind, err);
    op->kind = (enum hv_tensor_op_kind)kind;
    return st;
}

static enum hv_status read_id(struct reader *r, const struct hv_jp *p, struct hv_tensor_op *op,
                              struct hv_err *err)
{
    struct hv_jp id;
    const char *name = NULL;
    enum hv_status st = hv_jp_need(p, "id", "the name of the operator", &id, err);
    st = st ? st : hv_jp_string(&id, &name, err);
    if (st == HV_OK && number_of(r->tensor_of, name) != UINT32_MAX) {
        return hv_jp_fail(&id, err, "the name \"%.80s\" is taken already", name);
    }
    op->id = hv_arena_strdup(r->arena, name);
    return st;
}

static enum hv_status read_op(struct reader *r, const struct hv_jp *p, struct hv_tensor_op *op,
                              struct hv_err *err)
{
    static const char *const ways[HV_BY_N] = {"sum", "mean", "max", "min"};
    int by = HV_BY_SUM;
    struct hv_jp out;
    struct hv_tensor *t = &r->g->tensors[r->g->n_tensors];
    op->feature_groups = 1;
    enum hv_status st = hv_keys_check(p, HV_KEYS_TENSOR_OP, err);
    st = st ? st : read_id(r, p, op, err);
    st = st ? st : read_kind(p, op, err);
    st = st ? st : check_needs(p, op, err);
    st = st ? st : check_effects(p, op, err);
    st = st ? st : read_uses(r, p, op, err);
    st = st ? st : hv_jp_need(p, "out", "dimensions of the result", &out, err);
    st = st ? st : read_dims_list(r, &out, false, t->dim, &t->n_dims, err);
    st = st ? st : hv_jp_opt_word(p, "by", ways, HV_BY_N, &by, err);
    st = st ? st : hv_jp_opt_string(p, "group", &op->group_name, err);
    st = st ? st : hv_jp_opt_string(p, "device_class", &op->device_class, err);
    st = st ? st : read_over(r, p, op, err);
    st = st ? st : read_windows(r, p, op, err);
    st = st ? st : read_groups(r, p, op, err);
    st = st ? st : read_ranges(r, p, op, err);
    if (st) {
        return st;
    }
    op->by = (enum hv_reduce_by)by;
    op->group_name = hv_arena_strdup(r->arena, op->group_name);
    op->device_class = hv_arena_strdup(r->arena, op->device_class);
    op->out = (uint32_t)r->g->n_tensors;
    t->name = op->id;
    t->role = HV_TENSOR_RESULT;
    t->dtype = op->n_in > 0 ? r->g->tensors[op->in[0].tensor].dtype : HV_DTYPE_F32;
    struct hv_err own = {0};
    if (hv_tensor_op_check(r->g, op, &own)) {
        return hv_jp_fail(p, err, "operator \"%.80s\": %s", op->id, own.text);
    }
    json_object_set_new(r->tensor_of, op->id, json_integer((json_int_t)r->g->n_tensors++));
    return HV_OK;
}

/* The dimension that counts sequences: as given, else the one of that name. */
static enum hv_status read_batch(struct reader *r, const struct hv_jp *p, struct hv_err *err)
{
    struct hv_jp batch = hv_jp_get(p, "batch");
    r->g->batch = number_of(r->dim_of, "batch");
    return hv_jp_none(&batch) ? HV_OK : read_dim(r, &batch, &r->g->batch, err);
}

static enum hv_status read_all(struct reader *r, const struct hv_jp *p, struct hv_err *err)
{
    struct hv_jp list;
    size_t n = 0;
    enum hv_status st = read_dims(r, p, err);
    st = st ? st : hv_jp_need(p, "ops", "a list of operators", &list, err);
    st = st ? st : hv_jp_array(&list, &n, err);
    if (st == HV_OK && (n == 0 || n > HV_LONG_OPS)) {
        return hv_jp_fail(&list, err, "expected 1 to %d operators, found %zu", HV_LONG_OPS, n);
    }
    st = st ? st : read_batch(r, p, err);
    st = st ? st : read_tensors(r, p, n, err);
    r->g->ops = hv_arena_new(r->arena, struct hv_tensor_op, n + 1);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_op(r, &at, &r->g->ops[i], err);
        r->g->n_ops += st == HV_OK;
    }
    return st;
}

enum hv_status hv_long_graph_read(const struct hv_jp *p, struct hv_arena *arena,
                                  struct hv_tensor_graph *out, struct hv_err *err)
{
    *out = (struct hv_tensor_graph){0};
    struct reader r = {out, arena, json_object(), json_object()};
    enum hv_status st = read_all(&r, p, err);
    json_decref(r.dim_of);
    json_decref(r.tensor_of);
    return st;
}
