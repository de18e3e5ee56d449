/** One operator by its word and shapes, as a graph. */
#include "solver/io/own/graph/shard_operator.h"

#include "solver/base/str.h"
#include <stdlib.h>
#include <string.h>

#define MOST_SIZE 1099511627776.0 /* 2^40 */

struct make {
    struct hv_tensor_graph *g;
    struct hv_arena *arena;
    const struct hv_shape *shapes;
    size_t n;
    int64_t devices;
    struct hv_tensor_op *op;
    int along; /* dimension that the word ends with; −1: none */
    bool fits;
    const char *why; /* where it does not fit: what is wrong and what was expected */
};

/* How the result's dimensions follow from the first operand's. */
enum form { SAME, ROWS, EINSUM, DROP, LAST, SWAP, SPLIT, MERGE_LAST, MERGE_FIRST, JOIN, TOP };

static const struct word {
    const char *name;
    enum hv_tensor_op_kind kind;
    enum form form;
    enum hv_reduce_by by;
} words[] = {
    {"mm", HV_OP_EINSUM, EINSUM, 0},
    {"bmm", HV_OP_EINSUM, EINSUM, 0},
    {"linear", HV_OP_EINSUM, EINSUM, 0},
    {"add", HV_OP_ADD, SAME, 0},
    {"sub", HV_OP_SUB, SAME, 0},
    {"mul", HV_OP_MUL, SAME, 0},
    {"div", HV_OP_DIV, SAME, 0},
    {"bias", HV_OP_ADD, SAME, 0},
    {"neg", HV_OP_NEG, SAME, 0},
    {"relu", HV_OP_RELU, SAME, 0},
    {"gelu", HV_OP_GELU, SAME, 0},
    {"silu", HV_OP_SILU, SAME, 0},
    {"exp", HV_OP_EXP, SAME, 0},
    {"tanh", HV_OP_TANH, SAME, 0},
    {"sigmoid", HV_OP_SIGMOID, SAME, 0},
    {"sum", HV_OP_REDUCE, DROP, HV_BY_SUM},
    {"mean", HV_OP_REDUCE, DROP, HV_BY_MEAN},
    {"max", HV_OP_REDUCE, DROP, HV_BY_MAX},
    {"min", HV_OP_REDUCE, DROP, HV_BY_MIN},
    {"transpose", HV_OP_TRANSPOSE, SWAP, 0},
    {"softmax", HV_OP_SOFTMAX, LAST, 0},
    {"layernorm", HV_OP_LAYERNORM, LAST, 0},
    {"rmsnorm", HV_OP_RMSNORM, LAST, 0},
    {"split_heads", HV_OP_RESHAPE, SPLIT, 0},
    {"merge_heads", HV_OP_RESHAPE, MERGE_LAST, 0},
    {"merge_batch", HV_OP_RESHAPE, MERGE_FIRST, 0},
    {"embedding", HV_OP_EMBEDDING, ROWS, 0},
    {"cat", HV_OP_CONCAT, JOIN, 0},
    {"cumsum", HV_OP_CUMSUM, LAST, 0},
    {"sort", HV_OP_SORT, LAST, 0},
    {"topk", HV_OP_TOP_K, TOP, 0},
    {"slice", HV_OP_SLICE, SAME, 0},
};

/* ---- dimensions ------------------------------------------------------------------------------ */

/* The shapes do not fit, by the first reason given. */
static void misfit(struct make *m, const char *why)
{
    m->why = m->fits ? why : m->why;
    m->fits = false;
}

static uint32_t new_dim(struct make *m, int64_t size)
{
    uint32_t d = (uint32_t)m->g->n_dims++;
    m->g->dims[d] = (struct hv_tensor_dim){hv_arena_printf(m->arena, "d%u", d), size};
    return d;
}

static void add_dim(struct hv_tensor *t, uint32_t dim)
{
    t->dim[t->n_dims++] = dim;
}

static struct hv_tensor *operand(const struct make *m, size_t i)
{
    return &m->g->tensors[i];
}

static struct hv_tensor *result(const struct make *m)
{
    return &m->g->tensors[m->n];
}

/* Operands of the sizes of their shapes, each dimension a new one; a later operand shares the last
 * ones of the first where they are of the same size. */
static void plain_operands(struct make *m, bool shared)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct hv_shape *s = &m->shapes[i];
        for (size_t d = 0; d < s->n_dims; d++) {
            int from = (int)d + m->shapes[0].n_dims - s->n_dims;
            bool same = shared && i > 0 && from >= 0 && s->size[d] == m->shapes[0].size[from];
            if (shared && i > 0 && !same) {
                misfit(m, hv_arena_printf(m->arena,
                                          "size %zu of operand %zu is %lld; expected that of the "
                                          "first operand, counted from the last one",
                                          d + 1, i + 1, (long long)s->size[d]));
            }
            add_dim(operand(m, i), same ? operand(m, 0)->dim[from] : new_dim(m, s->size[d]));
        }
    }
}

static void result_like_first(struct make *m)
{
    result(m)->n_dims = operand(m, 0)->n_dims;
    memcpy(result(m)->dim, operand(m, 0)->dim, sizeof result(m)->dim);
}

/* ---- einsum ---------------------------------------------------------------------------------- */

static uint32_t letter_dim(struct make *m, char letter, int64_t size)
{
    char name[2] = {letter, '\0'};
    uint32_t d = hv_tensor_graph_dim(m->g, name);
    if (d == HV_NO_DIM && size > 0) {
        d = new_dim(m, size);
        m->g->dims[d].name = hv_arena_strdup(m->arena, name);
    }
    if (d == HV_NO_DIM) {
        misfit(m, hv_arena_printf(
                      m->arena, "the result has the letter \"%c\", which no operand has", letter));
    } else if (size > 0 && m->g->dims[d].size != size) {
        misfit(m, hv_arena_printf(m->arena, "the letter \"%c\" has the sizes %lld and %lld", letter,
                                  (long long)m->g->dims[d].size, (long long)size));
    }
    return d == HV_NO_DIM ? 0 : d;
}

static const char *letters_of(struct make *m, size_t i)
{
    return hv_arena_printf(m->arena,
                           "operand %zu of \"means\" needs one letter for each of its %d sizes",
                           i + 1, i < m->n ? m->shapes[i].n_dims : HV_TENSOR_DIMS);
}

static const char *operands_of(struct make *m)
{
    return hv_arena_printf(
        m->arena,
        "expected letters of %zu operands and a result in \"means\", as in \"b m, "
        "m h -> b h\"",
        m->n);
}

/* "b m, m h -> b h": letters with spaces; operands by commas. */
static void einsum(struct make *m, const char *means)
{
    size_t i = 0;
    for (const char *c = means; *c != '\0' && m->fits; c++) {
        bool arrow = c[0] == '-' && c[1] == '>';
        if (arrow || *c == ',') {
            if (i + 1 > m->n || (arrow && i + 1 != m->n)) {
                misfit(m, operands_of(m));
            } else if (operand(m, i)->n_dims != m->shapes[i].n_dims) {
                misfit(m, letters_of(m, i));
            }
            i += 1;
            c += arrow;
        } else if (*c != ' ') {
            struct hv_tensor *t = operand(m, i);
            bool given = i < m->n;
            if (t->n_dims >= (given ? m->shapes[i].n_dims : HV_TENSOR_DIMS)) {
                misfit(m, given ? letters_of(m, i) : "the result has more than 8 letters");
            } else {
                add_dim(t, letter_dim(m, *c, given ? m->shapes[i].size[t->n_dims] : 0));
            }
        }
    }
    if (i != m->n) {
        misfit(m, operands_of(m));
    }
}

/* ---- forms ----------------------------------------------------------------------------------- */

static void over(struct make *m, uint32_t dim)
{
    m->op->over[m->op->n_over++] = dim;
}

static void drop(struct make *m)
{
    const struct hv_tensor *t = operand(m, 0);
    int gone = m->along >= 0 ? m->along : t->n_dims - 1;
    if (gone >= t->n_dims) {
        misfit(m, "the word ends with a dimension that operand 1 does not have");
    }
    for (int d = 0; d < t->n_dims; d++) {
        if (d != gone) {
            add_dim(result(m), t->dim[d]);
        }
    }
}

static void swap(struct make *m)
{
    result_like_first(m);
    struct hv_tensor *t = result(m);
    if (t->n_dims < 2) {
        misfit(m, "expected an operand of at least 2 dimensions");
    }
    if (m->fits) {
        uint32_t last = t->dim[t->n_dims - 1];
        t->dim[t->n_dims - 1] = t->dim[t->n_dims - 2];
        t->dim[t->n_dims - 2] = last;
    }
}

static void split(struct make *m)
{
    const struct hv_tensor *t = operand(m, 0);
    int64_t size = m->g->dims[t->dim[t->n_dims - 1]].size;
    if (size % m->devices != 0) {
        misfit(m, "expected a last size that is a multiple of the devices of the mesh");
    } else if (t->n_dims == HV_TENSOR_DIMS) {
        misfit(m, "expected an operand of at most 7 dimensions: the last one becomes two");
    }
    for (size_t d = 0; m->fits && d + 1 < t->n_dims; d++) {
        add_dim(result(m), t->dim[d]);
    }
    if (m->fits) {
        add_dim(result(m), new_dim(m, m->devices));
        add_dim(result(m), new_dim(m, size / m->devices));
    }
}

/* Two neighbouring dimensions from `at` on become one. */
static void merge(struct make *m, size_t at)
{
    const struct hv_tensor *t = operand(m, 0);
    if (at + 1 >= t->n_dims) {
        misfit(m, "expected an operand of at least 2 dimensions");
    } else if ((double)m->shapes[0].size[at] * (double)m->shapes[0].size[at + 1] > MOST_SIZE) {
        misfit(m, "the merged dimension has more than 2^40 elements");
    }
    for (size_t d = 0; m->fits && d < t->n_dims; d++) {
        if (d == at) {
            add_dim(result(m), new_dim(m, m->shapes[0].size[d] * m->shapes[0].size[d + 1]));
            d++;
        } else {
            add_dim(result(m), t->dim[d]);
        }
    }
}

static void join(struct make *m)
{
    size_t along = m->along >= 0 ? (size_t)m->along : 0;
    int64_t sum = 0;
    if (along >= m->shapes[0].n_dims) {
        misfit(m, "the word ends with a dimension that operand 1 does not have");
    }
    for (size_t i = 0; m->fits && i < m->n; i++) {
        const struct hv_shape *s = &m->shapes[i];
        if (s->n_dims != m->shapes[0].n_dims) {
            misfit(m, "expected operands of as many dimensions as the first one");
        }
        for (size_t d = 0; m->fits && d < s->n_dims; d++) {
            bool own = i == 0 || d == along;
            if (!own && s->size[d] != m->shapes[0].size[d]) {
                misfit(m, "expected the sizes of the first operand but along the joined dimension");
            }
            add_dim(operand(m, i), own ? new_dim(m, s->size[d]) : operand(m, 0)->dim[d]);
        }
        sum += m->fits ? s->size[along] : 0;
    }
    if (m->fits) {
        result_like_first(m);
        result(m)->dim[along] = new_dim(m, sum);
        over(m, result(m)->dim[along]);
    }
}

static void rows(struct make *m)
{
    plain_operands(m, false);
    if (m->n != 2 || m->shapes[0].n_dims != 2 || m->shapes[1].n_dims == HV_TENSOR_DIMS) {
        misfit(m, "expected a table of 2 dimensions and row numbers of at most 7");
    }
    if (m->fits) {
        const struct hv_tensor *ids = operand(m, 1);
        for (size_t d = 0; d < ids->n_dims; d++) {
            add_dim(result(m), ids->dim[d]);
        }
        add_dim(result(m), operand(m, 0)->dim[1]);
        over(m, operand(m, 0)->dim[0]);
    }
}

static void shape_result(struct make *m, const struct word *w, const char *means)
{
    if (w->form == EINSUM) {
        einsum(m, means);
    } else if (w->form == ROWS) {
        rows(m);
    } else if (w->form == JOIN) {
        join(m);
    } else {
        plain_operands(m, true);
        size_t n = operand(m, 0)->n_dims;
        if (n == 0) {
            misfit(m, "expected an operand of at least 1 dimension");
        }
        if (!m->fits) {
            return;
        }
        uint32_t last = operand(m, 0)->dim[n - 1];
        if (w->form == DROP) {
            drop(m);
        } else if (w->form == SWAP) {
            swap(m);
        } else if (w->form == SPLIT) {
            split(m);
        } else if (w->form == MERGE_LAST || w->form == MERGE_FIRST) {
            merge(m, w->form == MERGE_LAST && n >= 2 ? n - 2 : 0);
        } else {
            result_like_first(m);
            if (w->form == LAST || w->form == TOP) {
                over(m, last);
            }
        }
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static const struct word *find_word(const char *name, int *along)
{
    size_t n = strlen(name);
    *along = -1;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            if (strlen(words[i].name) == n && strncmp(words[i].name, name, n) == 0) {
                return &words[i];
            }
        }
        if (n < 2 || name[n - 1] < '0' || name[n - 1] > '7') {
            return NULL;
        }
        *along = name[--n] - '0';
    }
    return NULL;
}

static enum hv_status unknown_word(const char *name, struct hv_err *err)
{
    const char *names[sizeof words / sizeof words[0]];
    size_t n = sizeof words / sizeof words[0];
    for (size_t i = 0; i < n; i++) {
        names[i] = words[i].name;
    }
    const char *near = hv_suggest(name, names, n);
    return hv_err_set(err, HV_EINPUT, "expected the word of an operator, found \"%.40s\"%s%s%s",
                      name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

enum hv_status hv__operator_graph(const char *name, const char *means,
                                  const struct hv_shape *shapes, size_t n, int64_t devices,
                                  struct hv_arena *arena, struct hv_tensor_graph *out,
                                  struct hv_err *err)
{
    struct make m = {out, arena, shapes, n, devices, NULL, -1, true, NULL};
    const struct word *w = find_word(name, &m.along);
    if (w == NULL) {
        return unknown_word(name, err);
    }
    *out = (struct hv_tensor_graph){.n_tensors = n + 1, .n_given = n, .n_ops = 1};
    out->dims = hv_arena_new(arena, struct hv_tensor_dim, (n + 2) * HV_TENSOR_DIMS);
    out->tensors = hv_arena_new(arena, struct hv_tensor, n + 2);
    out->ops = m.op = hv_arena_new(arena, struct hv_tensor_op, 1);
    m.op->id = hv_arena_strdup(arena, name);
    m.op->kind = w->kind;
    m.op->by = w->by;
    m.op->out = (uint32_t)n;
    m.op->feature_groups = 1;
    for (size_t i = 0; i <= n; i++) {
        out->tensors[i].name = i < n ? hv_arena_printf(arena, "in%zu", i) : m.op->id;
        out->tensors[i].role = i < n ? HV_TENSOR_INPUT : HV_TENSOR_RESULT;
    }
    shape_result(&m, w, means);
    m.op->n_in = (uint8_t)n;
    m.op->in = hv_arena_new(arena, struct hv_tensor_use, n + 1);
    for (size_t i = 0; i < n; i++) {
        m.op->in[i].tensor = (uint32_t)i;
        m.op->in[i].n_dims = out->tensors[i].n_dims;
        memcpy(m.op->in[i].dim, out->tensors[i].dim, sizeof m.op->in[i].dim);
    }
    return m.fits
               ? hv_tensor_op_check(out, m.op, err)
               : hv_err_set(err, HV_EINPUT, "the shapes do not fit to \"%.40s\": %s", name, m.why);
}
