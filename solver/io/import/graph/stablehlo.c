/*
 * StableHLO as text (jax.jit(f).lower(…).as_text()): functions are called in place, operations
 * become operators of a graph; one that has no kind there stands as opaque and is named. Source:
 * StableHLO specification, openxla/stablehlo.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/graph/stablehlo_text.h"

#include <ctype.h>
#include <string.h>

#define MAX_DEPTH 32 /* functions inside functions */

bool hv__is_stablehlo(const struct hv__in *in)
{
    return !in->tree && !in->xml && strstr(in->text, "func.func") != NULL &&
           strstr(in->text, "stablehlo.") != NULL;
}

/* A function: name, arguments and body. */
struct function {
    struct hv__span name, arguments, body;
};

struct reader {
    struct hv__program p;
    struct function *functions;
    size_t n_functions;
    HV_VEC(struct hv__tensor) values;
    int depth;
};

/* What a statement works on. */
struct work {
    struct reader *r;
    const struct hv__statement *s;
    const struct hv__tensor *in[HV__HLO_VALUES];
    size_t n;
    struct hv__tensor out;
};

/* ---- operators ------------------------------------------------------------------------------- */

static bool add_named(struct work *w, const char *kind)
{
    json_t *operands = json_array();
    for (size_t i = 0; i < w->n; i++) {
        json_array_append_new(operands, json_string(w->in[i]->name));
    }
    return hv__add_op(&w->r->p, kind, operands, &w->out) != NULL;
}

static bool same_shape(const struct hv__tensor *a, const struct hv__tensor *b)
{
    return a->n == b->n && memcmp(a->size, b->size, a->n * sizeof a->size[0]) == 0;
}

/* Kind of an elementwise operation with that many operands; NULL: none. */
static const char *elementwise(struct hv__span op, size_t n)
{
    static const struct {
        const char *name, *kind;
        size_t n;
    } rows[] = {{"stablehlo.add", "add", 2},          {"stablehlo.subtract", "sub", 2},
                {"stablehlo.multiply", "mul", 2},     {"stablehlo.divide", "div", 2},
                {"stablehlo.maximum", "maximum", 2},  {"stablehlo.minimum", "minimum", 2},
                {"stablehlo.negate", "neg", 1},       {"stablehlo.exponential", "exp", 1},
                {"stablehlo.log", "log", 1},          {"stablehlo.tanh", "tanh", 1},
                {"stablehlo.logistic", "sigmoid", 1}, {"stablehlo.sqrt", "sqrt", 1},
                {"stablehlo.rsqrt", "rsqrt", 1},      {"stablehlo.abs", "abs", 1},
                {"stablehlo.convert", "cast", 1},     {"stablehlo.select", "where", 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].n == n && hv__span_is(op, rows[i].name)) {
            return rows[i].kind;
        }
    }
    return NULL;
}

static const char *text_of(struct work *w, struct hv__span s)
{
    return hv_arena_strndup(&w->r->p.in->im->arena, s.at, (size_t)(s.end - s.at));
}

static bool opaque(struct work *w)
{
    return hv__add_opaque(&w->r->p, text_of(w, w->s->op), w->in, w->n, &w->out);
}

/* Operand dimension i becomes result dimension dims[i]; those of one element are repeated, which
 * the graph says by leaving them out first. */
static bool broadcast(struct work *w)
{
    int64_t to[HV__PROGRAM_DIMS];
    int n = hv__numbers_after(w->s->body, "dims = [", to, HV__PROGRAM_DIMS);
    struct hv__tensor small = *w->in[0];
    const char *names[HV__PROGRAM_DIMS], *out[HV__PROGRAM_DIMS];
    if (w->n != 1 || n != w->in[0]->n) {
        return opaque(w);
    }
    hv__dim_names(&w->r->p, &w->out, out);
    small.n = 0;
    for (int i = 0; i < n; i++) {
        bool fits = to[i] >= 0 && to[i] < w->out.n;
        if (!fits || (w->in[0]->size[i] != 1 && w->in[0]->size[i] != w->out.size[to[i]])) {
            return opaque(w);
        }
        if (w->in[0]->size[i] == w->out.size[to[i]]) {
            small.size[small.n] = w->in[0]->size[i];
            names[small.n++] = out[to[i]];
        }
    }
    if (small.n < w->in[0]->n) {
        json_t *operands = json_pack("[s]", w->in[0]->name);
        if (hv__add_op(&w->r->p, "reshape", operands, &small) == NULL) {
            return false;
        }
    }
    w->out.given = w->in[0]->given;
    return hv__add_op(&w->r->p, "broadcast", json_pack("[o]", hv__operand_as(&small, names)),
                      &w->out) != NULL;
}

/* The nth unused name for a dimension of that size: none of the names that are there. */
static const char *fresh(struct hv__program *p, int64_t size, const char *const *names, size_t n)
{
    for (size_t nth = 0;; nth++) {
        const char *name = hv__dim_name(p, size, nth);
        size_t k = 0;
        while (k < n && strcmp(names[k], name) != 0) {
            k++;
        }
        if (k == n) {
            return name;
        }
    }
}

static bool all_below(const int64_t *x, int n, int64_t limit)
{
    for (int i = 0; i < n; i++) {
        if (x[i] < 0 || x[i] >= limit) {
            return false;
        }
    }
    return true;
}

static int place_of(const int64_t *x, int n, int64_t dim)
{
    for (int i = 0; i < n; i++) {
        if (x[i] == dim) {
            return i;
        }
    }
    return -1;
}

/* "key[1] x [0]": pairs of dimensions of the two operands; returns their number, −1: not right. */
static int dim_pairs(struct hv__span s, const char *key, int64_t *left, int64_t *right)
{
    const char *at = hv__find_in(s, key);
    if (at == NULL) {
        return 0;
    }
    struct hv__span rest = {at, s.end};
    int n = hv__numbers_after(rest, key, left, HV__PROGRAM_DIMS);
    const char *cross = hv__find_in(rest, "] x [");
    rest.at = cross != NULL ? cross : s.end;
    int m = hv__numbers_after(rest, "] x [", right, HV__PROGRAM_DIMS);
    return n == m ? n : -1;
}

/* Results of a product: shared dimensions, then those of the left, then those of the right. */
static bool dot_general(struct work *w)
{
    int64_t lc[HV__PROGRAM_DIMS], rc[HV__PROGRAM_DIMS], lb[HV__PROGRAM_DIMS], rb[HV__PROGRAM_DIMS];
    int nc = dim_pairs(w->s->body, "contracting_dims = [", lc, rc);
    int nb = dim_pairs(w->s->body, "batching_dims = [", lb, rb);
    const char *names[3 * HV__PROGRAM_DIMS], *a[HV__PROGRAM_DIMS], *b[HV__PROGRAM_DIMS];
    if (w->n != 2 || nc < 0 || nb < 0 || !all_below(lc, nc, w->in[0]->n) ||
        !all_below(rc, nc, w->in[1]->n) || !all_below(lb, nb, w->in[0]->n) ||
        !all_below(rb, nb, w->in[1]->n) || w->in[0]->n + w->in[1]->n - 2 * nc - nb != w->out.n) {
        return opaque(w);
    }
    hv__dim_names(&w->r->p, &w->out, names);
    size_t n = w->out.n, next = (size_t)nb;
    for (int i = 0; i < nc; i++) {
        names[n] = fresh(&w->r->p, w->in[0]->size[lc[i]], names, n);
        n++;
    }
    for (int64_t d = 0; d < w->in[0]->n; d++) {
        int c = place_of(lc, nc, d), shared = place_of(lb, nb, d);
        a[d] = c >= 0 ? names[w->out.n + c] : shared >= 0 ? names[shared] : names[next++];
    }
    for (int64_t d = 0; d < w->in[1]->n; d++) {
        int c = place_of(rc, nc, d), shared = place_of(rb, nb, d);
        b[d] = c >= 0 ? names[w->out.n + c] : shared >= 0 ? names[shared] : names[next++];
    }
    hv__is_input(&w->r->p, w->in[0]);
    json_t *operands =
        json_pack("[o, o]", hv__operand_as(w->in[0], a), hv__operand_as(w->in[1], b));
    return hv__add_op(&w->r->p, "einsum", operands, &w->out) != NULL;
}

static bool reduce(struct work *w)
{
    static const struct {
        const char *op, *by;
    } ways[] = {{"applies stablehlo.add ", "sum"},
                {"applies stablehlo.maximum ", "max"},
                {"applies stablehlo.minimum ", "min"}};
    int64_t gone[HV__PROGRAM_DIMS];
    int n = hv__numbers_after(w->s->body, "dimensions = [", gone, HV__PROGRAM_DIMS);
    const char *by = NULL, *names[2 * HV__PROGRAM_DIMS], *as[HV__PROGRAM_DIMS];
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        by = hv__find_in(w->s->body, ways[i].op) != NULL ? ways[i].by : by;
    }
    if (w->n != 2 || n < 0 || by == NULL || w->in[0]->n - n != w->out.n) {
        return opaque(w);
    }
    hv__dim_names(&w->r->p, &w->out, names);
    size_t all = w->out.n, next = 0;
    for (int64_t d = 0; d < w->in[0]->n; d++) {
        if (place_of(gone, n, d) >= 0) {
            as[d] = names[all] = fresh(&w->r->p, w->in[0]->size[d], names, all);
            all++;
        } else if (next < w->out.n) {
            as[d] = names[next++];
        } else {
            return opaque(w);
        }
    }
    json_t *op =
        hv__add_op(&w->r->p, "reduce", json_pack("[o]", hv__operand_as(w->in[0], as)), &w->out);
    return op != NULL && json_object_set_new(op, "by", json_string(by)) == 0;
}

static bool transpose(struct work *w)
{
    int64_t from[HV__PROGRAM_DIMS];
    int n = hv__numbers_after(w->s->body, "dims = [", from, HV__PROGRAM_DIMS);
    const char *names[HV__PROGRAM_DIMS], *as[HV__PROGRAM_DIMS] = {0};
    if (w->n != 1 || n != w->out.n || n != w->in[0]->n || !all_below(from, n, n)) {
        return opaque(w);
    }
    hv__dim_names(&w->r->p, &w->out, names);
    for (int i = 0; i < n; i++) {
        as[from[i]] = names[i];
    }
    for (int i = 0; i < n; i++) {
        if (as[i] == NULL) {
            return opaque(w);
        }
    }
    w->out.given = w->in[0]->given;
    return hv__add_op(&w->r->p, "transpose", json_pack("[o]", hv__operand_as(w->in[0], as)),
                      &w->out) != NULL;
}

static bool reshape(struct work *w)
{
    w->out.given = w->n == 1 ? w->in[0]->given : -1;
    return w->n == 1 ? add_named(w, "reshape") : opaque(w);
}

/* Operands have their own names for the dimension that grows. */
static bool concatenate(struct work *w)
{
    int64_t along = 0;
    const char *names[HV__PROGRAM_DIMS];
    int n = hv__numbers_after(w->s->body, "dim = ", &along, 1);
    if (n != 1 || along < 0 || along >= w->out.n || w->n == 0) {
        return opaque(w);
    }
    hv__dim_names(&w->r->p, &w->out, names);
    const char *whole = names[along];
    json_t *operands = json_array();
    for (size_t i = 0; i < w->n; i++) {
        if (w->in[i]->n != w->out.n) {
            json_decref(operands);
            return opaque(w);
        }
        names[along] = whole;
        names[along] = fresh(&w->r->p, w->in[i]->size[along], names, w->out.n);
        json_array_append_new(operands, hv__operand_as(w->in[i], names));
    }
    json_t *op = hv__add_op(&w->r->p, "concat", operands, &w->out);
    return op != NULL && json_object_set_new(op, "along", json_string(whole)) == 0;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Windows by dimension of the result. */
struct windows {
    const char *out[HV__PROGRAM_DIMS], *of[HV__PROGRAM_DIMS], *tap[HV__PROGRAM_DIMS];
    int64_t size[HV__PROGRAM_DIMS], stride[HV__PROGRAM_DIMS], pad[2 * HV__PROGRAM_DIMS],
        dilation[HV__PROGRAM_DIMS];
    size_t n;
};

static json_t *windows_json(const struct windows *x)
{
    json_t *all = json_object();
    for (size_t i = 0; i < x->n; i++) {
        json_t *one = json_pack("{s:s, s:I, s:I, s:[I, I], s:I}", "of", x->of[i], "size",
                                (json_int_t)x->size[i], "stride", (json_int_t)x->stride[i], "pad",
                                (json_int_t)x->pad[2 * i], (json_int_t)x->pad[2 * i + 1],
                                "dilation", (json_int_t)x->dilation[i]);
        if (x->tap[i] != NULL) {
            json_object_set_new(one, "tap", json_string(x->tap[i]));
        }
        json_object_set_new(all, x->out[i], one);
    }
    return all;
}

/* Letters and numbers of "[b, 0, 1, f]" from *c on: kind[i] = a letter, or a digit. */
static size_t dim_letters(const char **c, const char *end, char *kind)
{
    size_t n = 0;
    while (*c < end && **c != '[') {
        (*c)++;
    }
    for (; *c < end && **c != ']'; (*c)++) {
        if (isalnum((unsigned char)**c) && n < HV__PROGRAM_DIMS) {
            kind[n++] = **c;
        }
    }
    return n;
}

static size_t at_of(const char *kind, size_t n, char letter)
{
    const char *at = memchr(kind, letter, n);
    return at != NULL ? (size_t)(at - kind) : HV__PROGRAM_DIMS;
}

static void ones(int64_t *x, size_t n, int64_t value)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = value;
    }
}

/* The parts of "window = {stride = […], pad = […], lhs_dilate = […], rhs_dilate = […]}"; false
 * where the input is spread, or a pad takes away. */
static bool conv_windows(struct hv__span body, size_t n, struct windows *x)
{
    int64_t spread[HV__PROGRAM_DIMS];
    ones(x->stride, n, 1);
    ones(x->dilation, n, 1);
    ones(spread, n, 1);
    ones(x->pad, 2 * n, 0);
    (void)hv__numbers_after(body, "stride = [", x->stride, (int)n);
    (void)hv__numbers_after(body, "rhs_dilate = [", x->dilation, (int)n);
    (void)hv__numbers_after(body, "lhs_dilate = [", spread, (int)n);
    (void)hv__numbers_after(body, "pad = [", x->pad, (int)(2 * n));
    for (size_t i = 0; i < n; i++) {
        if (spread[i] != 1 || x->stride[i] < 1 || x->dilation[i] < 1 || x->pad[2 * i] < 0 ||
            x->pad[2 * i + 1] < 0) {
            return false;
        }
    }
    return true;
}

static bool convolution(struct work *w)
{
    char lhs[HV__PROGRAM_DIMS], rhs[HV__PROGRAM_DIMS], res[HV__PROGRAM_DIMS];
    const char *names[2 * HV__PROGRAM_DIMS], *a[HV__PROGRAM_DIMS] = {0}, *k[HV__PROGRAM_DIMS] = {0};
    const char *c = hv__find_in(w->s->body, "dim_numbers = ");
    int64_t groups = 1;
    struct windows x = {.n = w->out.n > 2 ? (size_t)w->out.n - 2 : 0};
    if (c == NULL || w->n != 2 || x.n == 0) {
        return opaque(w);
    }
    size_t n = dim_letters(&c, w->s->body.end, lhs), m = dim_letters(&c, w->s->body.end, rhs);
    size_t o = dim_letters(&c, w->s->body.end, res);
    (void)hv__numbers_after(w->s->body, "feature_group_count = ", &groups, 1);
    size_t b = at_of(lhs, n, 'b'), f = at_of(lhs, n, 'f'), i = at_of(rhs, m, 'i');
    size_t ob = at_of(res, o, 'b'), of = at_of(res, o, 'f'), ko = at_of(rhs, m, 'o');
    if (n != w->in[0]->n || m != w->in[1]->n || o != w->out.n || n != o || m != o || b == 8 ||
        f == 8 || i == 8 || ob == 8 || of == 8 || ko == 8 || groups < 1 ||
        hv__find_in(w->s->body, "batch_group_count = 1 ") == NULL ||
        !conv_windows(w->s->body, x.n, &x)) {
        return opaque(w);
    }
    hv__dim_names(&w->r->p, &w->out, names);
    size_t all = o;
    a[b] = names[ob];
    k[ko] = names[of];
    a[f] = names[all] = fresh(&w->r->p, w->in[0]->size[f], names, all);
    all++;
    k[i] = groups == 1 ? a[f] : fresh(&w->r->p, w->in[1]->size[i], names, all);
    names[all++] = k[i];
    for (size_t d = 0; d < x.n; d++) {
        char digit = (char)('0' + d);
        size_t l = at_of(lhs, n, digit), r = at_of(rhs, m, digit), s = at_of(res, o, digit);
        if (l == 8 || r == 8 || s == 8) {
            return opaque(w);
        }
        x.out[d] = names[s];
        a[l] = x.of[d] = names[all] = fresh(&w->r->p, w->in[0]->size[l], names, all);
        all++;
        k[r] = x.tap[d] = names[all] = fresh(&w->r->p, w->in[1]->size[r], names, all);
        all++;
        x.size[d] = w->in[1]->size[r];
    }
    hv__is_input(&w->r->p, w->in[0]);
    json_t *op = hv__add_op(
        &w->r->p, "conv",
        json_pack("[o, o]", hv__operand_as(w->in[0], a), hv__operand_as(w->in[1], k)), &w->out);
    if (op == NULL) {
        return false;
    }
    if (groups > 1) {
        json_object_set_new(op, "groups", json_integer((json_int_t)groups));
    }
    return json_object_set_new(op, "window", windows_json(&x)) == 0;
}

/* A pool: a window over some dimensions, and one operation in its region. */
static bool reduce_window(struct work *w)
{
    int64_t size[HV__PROGRAM_DIMS], stride[HV__PROGRAM_DIMS], pad[2 * HV__PROGRAM_DIMS];
    const char *names[2 * HV__PROGRAM_DIMS], *as[HV__PROGRAM_DIMS];
    size_t n = w->out.n, all = n;
    struct windows x = {0};
    const char *by = hv__find_in(w->s->body, "stablehlo.maximum") != NULL   ? "max"
                     : hv__find_in(w->s->body, "stablehlo.add") != NULL     ? "sum"
                     : hv__find_in(w->s->body, "stablehlo.minimum") != NULL ? "min"
                                                                            : NULL;
    ones(stride, n, 1);
    ones(pad, 2 * n, 0);
    int got =
        hv__numbers_after(w->s->body, "window_dimensions = array<i64:", size, HV__PROGRAM_DIMS);
    (void)hv__numbers_after(w->s->body, "window_strides = array<i64:", stride, (int)n);
    int pads = hv__numbers_after(w->s->body, "padding = dense<", pad, (int)(2 * n));
    if (w->n != 2 || by == NULL || got != (int)n || w->in[0]->n != n ||
        (pads == 1 && n > 0 && pad[0] != 0)) {
        return opaque(w);
    }
    hv__dim_names(&w->r->p, &w->out, names);
    for (size_t d = 0; d < n; d++) {
        as[d] = names[d];
        if (size[d] == 1 && stride[d] == 1 && pad[2 * d] == 0 && pad[2 * d + 1] == 0) {
            continue;
        }
        if (size[d] < 1 || stride[d] < 1 || pad[2 * d] < 0 || pad[2 * d + 1] < 0) {
            return opaque(w);
        }
        as[d] = names[all] = fresh(&w->r->p, w->in[0]->size[d], names, all);
        all++;
        x.out[x.n] = names[d];
        x.of[x.n] = as[d];
        x.size[x.n] = size[d];
        x.stride[x.n] = stride[d];
        x.dilation[x.n] = 1;
        x.pad[2 * x.n] = pad[2 * d];
        x.pad[2 * x.n + 1] = pad[2 * d + 1];
        x.n++;
    }
    if (x.n == 0) {
        return opaque(w);
    }
    json_t *op =
        hv__add_op(&w->r->p, "pool", json_pack("[o]", hv__operand_as(w->in[0], as)), &w->out);
    return op != NULL && json_object_set_new(op, "by", json_string(by)) == 0 &&
           json_object_set_new(op, "window", windows_json(&x)) == 0;
}

/* Rows of a table by number: the first dimension is chosen from, the others are taken whole. */
static bool gather(struct work *w)
{
    int64_t sizes[HV__PROGRAM_DIMS], collapsed = -1, start = -1;
    const struct hv__tensor *t = w->in[0], *rows = w->n == 2 ? w->in[1] : NULL;
    const char *names[2 * HV__PROGRAM_DIMS], *as[HV__PROGRAM_DIMS], *of[HV__PROGRAM_DIMS];
    int n = hv__numbers_after(w->s->body, "slice_sizes = array<i64:", sizes, HV__PROGRAM_DIMS);
    (void)hv__numbers_after(w->s->body, "collapsed_slice_dims = [", &collapsed, 1);
    (void)hv__numbers_after(w->s->body, "start_index_map = [", &start, 1);
    bool plain = rows != NULL && n == t->n && n > 0 && sizes[0] == 1 && collapsed == 0 &&
                 start == 0 && rows->n > 0 && rows->size[rows->n - 1] == 1 &&
                 rows->n - 1 + n - 1 == w->out.n;
    for (int d = 1; plain && d < n; d++) {
        plain = sizes[d] == t->size[d] && w->out.size[rows->n - 2 + d] == t->size[d];
    }
    if (!plain) {
        return opaque(w);
    }
    struct hv__tensor numbers = *rows;
    numbers.n--;
    if (hv__add_op(&w->r->p, "reshape", json_pack("[s]", rows->name), &numbers) == NULL) {
        return false;
    }
    hv__dim_names(&w->r->p, &w->out, names);
    for (size_t d = 0; d < numbers.n; d++) {
        as[d] = names[d];
    }
    of[0] = fresh(&w->r->p, t->size[0], names, w->out.n);
    for (size_t d = 1; d < t->n; d++) {
        of[d] = names[numbers.n + d - 1];
    }
    hv__is_input(&w->r->p, rows);
    json_t *op = hv__add_op(
        &w->r->p, "gather",
        json_pack("[o, o]", hv__operand_as(t, of), hv__operand_as(&numbers, as)), &w->out);
    return op != NULL && json_object_set_new(op, "rows", json_string(of[0])) == 0;
}

/* ---- statements ------------------------------------------------------------------------------ */

static bool constant(struct work *w)
{
    char name[32];
    const char *names[HV__PROGRAM_DIMS];
    (void)snprintf(name, sizeof name, "constant_%zu", json_object_size(w->r->p.tensors));
    hv__dim_names(&w->r->p, &w->out, names);
    w->out.name = hv_arena_strdup(&w->r->p.in->im->arena, name);
    json_object_set_new(w->r->p.tensors, name,
                        json_pack("{s:o, s:s, s:s}", "dims", hv__names_json(names, w->out.n),
                                  "role", "input", "dtype", w->out.dtype));
    return json_object_size(w->r->p.tensors) < HV__PROGRAM_OPS;
}

/* Operations of shapes, in the order in which they are looked for. */
static bool add_statement(struct work *w)
{
    static const struct {
        const char *name;
        bool (*add)(struct work *w);
    } rows[] = {{"stablehlo.constant", constant},
                {"stablehlo.broadcast_in_dim", broadcast},
                {"stablehlo.dot_general", dot_general},
                {"stablehlo.reduce", reduce},
                {"stablehlo.reshape", reshape},
                {"stablehlo.transpose", transpose},
                {"stablehlo.concatenate", concatenate},
                {"stablehlo.convolution", convolution},
                {"stablehlo.reduce_window", reduce_window},
                {"stablehlo.gather", gather}};
    const char *kind = elementwise(w->s->op, w->n);
    bool same = kind != NULL;
    for (size_t i = 0; i < w->n && same; i++) {
        same = same_shape(w->in[i], &w->out);
    }
    if (same) {
        w->out.given = w->n == 1 ? w->in[0]->given : -1;
        return add_named(w, kind);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (hv__span_is(w->s->op, rows[i].name)) {
            return rows[i].add == constant || w->n > 0 ? rows[i].add(w) : opaque(w);
        }
    }
    return opaque(w);
}

static void bind(struct reader *r, json_t *scope, struct hv__span name, size_t i, bool one,
                 struct hv__tensor t)
{
    char key[256];
    (void)snprintf(key, sizeof key, one ? "%.*s" : "%.*s#%zu", (int)(name.end - name.at), name.at,
                   i);
    hv_vec_push(&r->values, t);
    json_object_set_new(scope, key, json_integer((json_int_t)r->values.n - 1));
}

/* Number of a value in scope; −1: there is none. */
static json_int_t value_at(const json_t *scope, struct hv__span name)
{
    char key[256];
    (void)snprintf(key, sizeof key, "%.*s", (int)(name.end - name.at), name.at);
    const json_t *v = json_object_get(scope, key);
    return v != NULL ? json_integer_value(v) : -1;
}

static enum hv_status wrong(const struct reader *r, struct hv__span at, const char *what,
                            struct hv_err *err)
{
    unsigned line = 1;
    for (const char *c = r->p.in->text; c < at.at; c++) {
        line += *c == '\n';
    }
    int n = (int)(at.end - at.at < 60 ? at.end - at.at : 60);
    return hv_err_at(err, HV_EINPUT, r->p.in->name, line, 0, "%s: \"%.*s\"", what, n, at.at);
}

static enum hv_status run(struct reader *r, const struct function *f,
                          const struct hv__tensor *arguments, size_t n, struct hv__tensor *results,
                          size_t *n_results, struct hv_err *err);

/* The function that a call names; NULL: none. */
static const struct function *called(const struct reader *r, struct hv__span body)
{
    const char *at = memchr(body.at, '@', (size_t)(body.end - body.at));
    for (size_t i = 0; at != NULL && i < r->n_functions; i++) {
        struct hv__span name = r->functions[i].name;
        size_t n = (size_t)(name.end - name.at);
        if ((size_t)(body.end - at) > n && memcmp(at + 1, name.at, n) == 0 &&
            (at + 1 + n == body.end || at[1 + n] == '(')) {
            return &r->functions[i];
        }
    }
    return NULL;
}

static enum hv_status call(struct reader *r, const struct hv__statement *s, json_t *scope,
                           const struct hv__tensor *in, size_t n, struct hv_err *err)
{
    struct hv__tensor results[HV__HLO_VALUES];
    size_t n_results = 0;
    const struct function *f = called(r, s->body);
    if (f == NULL) {
        return wrong(r, s->body, "expected the name of a function of the program", err);
    }
    enum hv_status st = run(r, f, in, n, results, &n_results, err);
    for (size_t i = 0; st == HV_OK && i < n_results; i++) {
        bind(r, scope, s->result, i, n_results == 1, results[i]);
    }
    return st;
}

/* An operation whose results have the types of the statement. */
static enum hv_status operation(struct reader *r, const struct hv__statement *s, json_t *scope,
                                const struct hv__tensor *in, size_t n, struct hv_err *err)
{
    struct hv__tensor out[HV__HLO_VALUES];
    struct hv__span types = s->types;
    size_t n_out = 0;
    while (n_out < HV__HLO_VALUES && hv__next_type(&types, &out[n_out])) {
        n_out++;
    }
    bool listed = hv__find_in(s->types, "(") != NULL && hv__find_in(s->types, "(") == s->types.at;
    if (n_out == 0) {
        return s->result.at == s->result.end
                   ? HV_OK
                   : wrong(r, s->op,
                           "expected tensors of known sizes and at most 8 dimensions as "
                           "results of",
                           err);
    }
    if (hv__span_is(s->op, "stablehlo.select") && n_out > 1 && !listed) {
        out[0] = out[n_out - 1]; /* "tensor<i1>, tensor<f32>": condition and result */
        n_out = 1;
    }
    for (size_t i = 0; i < n_out; i++) {
        struct work w = {.r = r, .s = s, .n = n, .out = out[i]};
        for (size_t k = 0; k < n; k++) {
            w.in[k] = &in[k];
        }
        bool added = n_out == 1 ? add_statement(&w) : opaque(&w);
        if (!added) {
            return hv_err_at(err, HV_ELIMIT, r->p.in->name, 0, 0, "more than %d operators",
                             HV__PROGRAM_OPS);
        }
        bind(r, scope, s->result, i, n_out == 1, w.out);
    }
    return HV_OK;
}

static enum hv_status read_statement(struct reader *r, const struct hv__statement *s, json_t *scope,
                                     struct hv__tensor *results, size_t *n_results, bool *ends,
                                     struct hv_err *err)
{
    struct hv__span names[HV__HLO_VALUES];
    struct hv__tensor in[HV__HLO_VALUES];
    size_t n = hv__value_names(s->body, names), known = 0;
    for (size_t i = 0; i < n; i++) {
        json_int_t at = value_at(scope, names[i]);
        if (at >= 0) { /* names that regions bind are not known here */
            in[known++] = r->values.items[at];
        }
    }
    *ends = hv__span_is(s->op, "return") || hv__span_is(s->op, "func.return");
    if (*ends) {
        memcpy(results, in, known * sizeof in[0]);
        *n_results = known;
        return HV_OK;
    }
    bool calls = hv__span_is(s->op, "call") || hv__span_is(s->op, "func.call");
    return calls ? call(r, s, scope, in, known, err) : operation(r, s, scope, in, known, err);
}

static enum hv_status run(struct reader *r, const struct function *f,
                          const struct hv__tensor *arguments, size_t n, struct hv__tensor *results,
                          size_t *n_results, struct hv_err *err)
{
    struct hv__span rest = f->body, names[HV__HLO_VALUES];
    struct hv__statement s;
    enum hv_status st = HV_OK;
    bool ends = false;
    if (++r->depth > MAX_DEPTH) {
        return wrong(r, f->name, "more than 32 functions inside each other at", err);
    }
    json_t *scope = json_object();
    struct hv__span left = f->arguments;
    for (size_t i = 0; i < n; i++) { /* names of arguments: one at a time, there may be many */
        if (hv__value_names(left, names) == 0) {
            break;
        }
        bind(r, scope, names[0], 0, true, arguments[i]);
        left.at = names[0].end;
    }
    while (st == HV_OK && !ends && hv__next_statement(&rest, &s)) {
        st = read_statement(r, &s, scope, results, n_results, &ends, err);
    }
    json_decref(scope);
    r->depth--;
    return st;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* The bracket that closes the one at c; NULL: none. */
static const char *closing(const char *c, const char *end, char open, char close)
{
    int depth = 0;
    for (; c < end; c++) {
        depth += *c == open;
        depth -= *c == close;
        if (depth == 0) {
            return c;
        }
    }
    return NULL;
}

/* The function whose "func.func" stands at c; its body begins at the first "{" that ends a line. */
static bool read_function(const char *c, const char *end, struct function *f)
{
    const char *at = memchr(c, '@', (size_t)(end - c));
    const char *open = at != NULL ? memchr(at, '(', (size_t)(end - at)) : NULL;
    const char *close = open != NULL ? closing(open, end, '(', ')') : NULL;
    const char *body = close;
    while (body != NULL && body + 1 < end && !(body[0] == '{' && body[1] == '\n')) {
        body++;
    }
    const char *last = body != NULL && body + 1 < end ? closing(body, end, '{', '}') : NULL;
    if (last == NULL) {
        return false;
    }
    *f = (struct function){{at + 1, open}, {open + 1, close}, {body + 1, last}};
    return true;
}

static void find_functions(struct reader *r, const char *text, size_t n)
{
    const char *end = text + n;
    size_t most = 0;
    for (const char *c = strstr(text, "func.func"); c != NULL; c = strstr(c + 1, "func.func")) {
        most++;
    }
    r->functions = hv_arena_new(&r->p.in->im->arena, struct function, most + 1);
    for (const char *c = strstr(text, "func.func"); c != NULL; c = strstr(c + 1, "func.func")) {
        r->n_functions += read_function(c, end, &r->functions[r->n_functions]);
    }
}

/* Arguments of the main function as tensors that are given. */
static struct hv__tensor *arguments(struct reader *r, const struct function *f, size_t *n)
{
    struct hv__span rest = f->arguments;
    struct hv__tensor t;
    HV_VEC(struct hv__tensor) list = {0};
    while (hv__next_type(&rest, &t)) {
        const char *names[HV__PROGRAM_DIMS];
        t.given = (int)list.n;
        t.name = hv_arena_printf(&r->p.in->im->arena, "arg%zu", list.n);
        hv__dim_names(&r->p, &t, names);
        json_object_set_new(r->p.tensors, t.name,
                            json_pack("{s:o, s:s, s:s}", "dims", hv__names_json(names, t.n), "role",
                                      "parameter", "dtype", t.dtype));
        hv_vec_push(&list, t);
    }
    *n = list.n;
    struct hv__tensor *all =
        hv_arena_copy(&r->p.in->im->arena, list.items, list.n, sizeof *list.items);
    hv_vec_free(&list);
    return all;
}

/* Inputs are no parameters: what stands left in products, numbers of rows, whole numbers. */
static void settle_roles(struct reader *r, const struct hv__tensor *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char key[24];
        (void)snprintf(key, sizeof key, "%zu", i);
        bool whole =
            all[i].dtype[0] == 's' || all[i].dtype[0] == 'b' ? all[i].dtype[1] != 'f' : false;
        if (whole || json_object_get(r->p.roles, key) != NULL) {
            json_object_set_new(json_object_get(r->p.tensors, all[i].name), "role",
                                json_string("input"));
        }
    }
}

static enum hv_status read_program(struct reader *r, struct hv_err *err)
{
    struct hv__in *in = r->p.in;
    struct hv__tensor results[HV__HLO_VALUES];
    size_t n = 0, n_results = 0, main = 0;
    find_functions(r, in->text, in->n);
    if (r->n_functions == 0) {
        return hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                         "no function with a body: expected the text of "
                         "jax.jit(f).lower(…).as_text()");
    }
    while (main < r->n_functions && !hv__span_is(r->functions[main].name, "main")) {
        main++;
    }
    const struct function *f = &r->functions[main < r->n_functions ? main : 0];
    const struct hv__tensor *all = arguments(r, f, &n);
    enum hv_status st = run(r, f, all, n, results, &n_results, err);
    if (st) {
        return st;
    }
    settle_roles(r, all, n);
    const char *name = "program", *at = strstr(in->text, "module @");
    if (at != NULL) {
        size_t len =
            strspn(at + 8, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        name = len > 0 ? hv_arena_strndup(&in->im->arena, at + 8, len) : name;
    }
    return hv__program_finish(&r->p, name, err);
}

enum hv_status hv__read_stablehlo(struct hv__in *in, struct hv_err *err)
{
    struct reader r = {.p = hv__program_new(in)};
    enum hv_status st = read_program(&r, err);
    hv_vec_free(&r.values);
    hv__program_free(&r.p);
    return st;
}
