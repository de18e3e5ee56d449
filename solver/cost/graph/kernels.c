/** Kernels of a solved graph, and their seconds. */
#include "solver/cost/graph/kernels.h"

#include "solver/base/vec.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/device/gemm.h"
#include "solver/workload/graph/gradient.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct build {
    const struct hv__kernels_query *q;
    const struct hv_shard_graph *g;
    const struct hv_prim_graph *prims;
    struct hv_arena *arena;
    struct hv__kernels *out;
    uint32_t *writer;      /* tensor → operator of g; NONE: given */
    uint32_t *kernel_of;   /* operator of g → kernel; NONE: no work */
    bool *leads_to_inputs; /* operator of g: gradients of activations come from it */
    bool *named; /* tensor: an operand or result of the kernels' operators, kept as such */
    const uint32_t *products; /* group of operators: how many it has */
    uint32_t *first_of,
        *next_of;        /* group → its last product in g; operator of g → the one before */
    bool *core;          /* group of operators: products around a softmax, a fused attention core */
    uint32_t *result_of; /* operator of the graph → its tensor, where its gradient needs no other */
    bool *reads_before; /* operator of g: an exchange of a tensor comes right before it */
    bool *sends_behind;
    uint32_t *last_reader; /* tensor → last kernel that reads it */
    uint32_t *seen;        /* tensor → stamp of the search that met it last */
    uint32_t stamp;
    HV_VEC(struct hv__access) reads;
    HV_VEC(uint32_t) again; /* forward products that the backward kernel at hand repeats */
};

static const struct hv_prim *prim_of(const struct build *b, uint32_t i)
{
    return &b->prims->prims[b->q->sharding->prim_of[i]];
}

static bool is_backward(const struct build *b, uint32_t i)
{
    return i >= b->q->sharding->n_forward;
}

static bool multiplies(const struct hv_prim *p)
{
    return p->kind == HV_PRIM_DOT || p->kind == HV_PRIM_CONV;
}

/* ---- what tensors are ------------------------------------------------------------------------ */

static void find_tensors(struct build *b)
{
    size_t n = b->g->n_tensors;
    b->writer = hv_arena_new(b->arena, uint32_t, n + 1);
    b->out->root = hv_arena_new(b->arena, uint32_t, n + 1);
    b->out->constant = hv_arena_new(b->arena, bool, n + 1);
    b->out->from_weights = hv_arena_new(b->arena, bool, n + 1);
    memset(b->writer, 0xff, (n + 1) * sizeof *b->writer);
    for (uint32_t t = 0; t < n; t++) {
        b->out->root[t] = t;
    }
    const struct hv_tensor_graph *graph = b->q->graph;
    for (size_t t = 0; t < graph->n_given; t++) {
        b->out->from_weights[b->q->sharding->expansion.tensor_of[t]] =
            graph->tensors[t].role != HV_TENSOR_INPUT;
    }
    for (uint32_t i = 0; i < b->g->n_ops; i++) {
        const struct hv_prim *p = prim_of(b, i);
        bool constant = true, weights = true;
        for (size_t k = 0; k < p->n_in; k++) {
            uint32_t t = p->tensor[k];
            constant = constant && b->out->constant[t];
            weights = weights && (b->out->constant[t] || b->out->from_weights[t]);
        }
        constant = constant && (p->kind == HV_PRIM_CONSTANT || p->kind == HV_PRIM_BROADCAST);
        for (size_t k = p->n_in; k < (size_t)(p->n_in + p->n_out); k++) {
            uint32_t t = p->tensor[k];
            b->writer[t] = i;
            b->out->constant[t] = constant;
            b->out->from_weights[t] = weights && !constant;
            b->out->root[t] = p->kind == HV_PRIM_RESHAPE ? b->out->root[p->tensor[0]] : t;
        }
    }
}

/* Operators from which gradients of activations come: the others give gradients of weights only. */
static void find_ways_to_inputs(struct build *b)
{
    const uint32_t *gradient = b->q->sharding->gradient_of;
    size_t n_forward = 0;
    bool *wanted = hv_arena_new(b->arena, bool, b->g->n_tensors + 1);
    b->leads_to_inputs = hv_arena_new(b->arena, bool, b->g->n_ops + 1);
    for (size_t i = 0; i < b->q->sharding->n_forward && gradient != NULL; i++) {
        n_forward = b->q->sharding->prim_of[i] + 1U;
    }
    for (size_t i = 0; i < n_forward; i++) {
        const struct hv_prim *p = &b->prims->prims[i];
        for (size_t k = 0; k < p->n_in; k++) {
            uint32_t t = p->tensor[k], d = gradient[t];
            if (d != HV_NO_TENSOR && !b->out->from_weights[t] && !b->out->constant[t]) {
                wanted[d] = true;
            }
        }
    }
    for (uint32_t i = (uint32_t)b->g->n_ops; i-- > b->q->sharding->n_forward;) {
        const struct hv_prim *p = prim_of(b, i);
        for (size_t k = p->n_in; k < (size_t)(p->n_in + p->n_out); k++) {
            b->leads_to_inputs[i] = b->leads_to_inputs[i] || wanted[p->tensor[k]];
        }
        for (size_t k = 0; k < p->n_in && b->leads_to_inputs[i]; k++) {
            wanted[p->tensor[k]] = true;
        }
    }
}

/* Operators whose gradient follows from their result. */
static bool needs_only_result(enum hv_tensor_op_kind k)
{
    return k == HV_OP_SOFTMAX || k == HV_OP_EXP || k == HV_OP_TANH || k == HV_OP_SIGMOID ||
           k == HV_OP_SQRT || k == HV_OP_RELU;
}

static bool is_product(const struct hv_tensor_op *op)
{
    return op->kind == HV_OP_EINSUM || op->kind == HV_OP_CONV;
}

/* Per group of operators that run together: its products. Between two of them values are not kept,
 * and computed once more for the gradients, as fused attention does; the result of a single one is
 * kept for the gradients of what is joined to it. */
static const uint32_t *count_products(const struct build *b)
{
    const struct hv_tensor_graph *g = b->q->graph;
    uint32_t *n = hv_arena_new(b->arena, uint32_t, g->n_ops + 1);
    for (size_t i = 0; i < g->n_ops; i++) {
        n[b->q->fused[i]] += is_product(&g->ops[i]);
    }
    return n;
}

static void find_cores(struct build *b, const uint32_t *products)
{
    const struct hv_tensor_graph *g = b->q->graph;
    b->core = hv_arena_new(b->arena, bool, g->n_ops + 1);
    for (size_t i = 0; i < g->n_ops; i++) {
        uint32_t group = b->q->fused[i];
        b->core[group] = b->core[group] || (g->ops[i].kind == HV_OP_SOFTMAX && products[group] > 1);
    }
}

static void find_named(struct build *b)
{
    const struct hv_tensor_graph *g = b->q->graph;
    const uint32_t *of = b->q->sharding->expansion.tensor_of, *fused = b->q->fused;
    bool *apart = hv_arena_new(b->arena, bool, g->n_tensors + 1); /* read by another group */
    bool *read = hv_arena_new(b->arena, bool, g->n_tensors + 1);
    const uint32_t *products = count_products(b);
    b->products = products;
    find_cores(b, products);
    b->named = hv_arena_new(b->arena, bool, b->g->n_tensors + 1);
    b->result_of = hv_arena_new(b->arena, uint32_t, g->n_ops + 1);
    for (size_t i = 0; i < g->n_ops; i++) {
        for (size_t k = 0; k < g->ops[i].n_in; k++) {
            uint32_t t = g->ops[i].in[k].tensor;
            read[t] = true;
            bool joined = t >= g->n_given && fused[t - g->n_given] == fused[i];
            bool single = joined && products[fused[i]] < 2 && is_product(&g->ops[t - g->n_given]);
            apart[t] = apart[t] || !joined || single;
        }
    }
    for (size_t t = 0; t < g->n_tensors; t++) {
        b->named[b->out->root[of[t]]] = b->named[b->out->root[of[t]]] || apart[t] || !read[t];
    }
    for (size_t i = 0; i < g->n_ops; i++) {
        bool alone = needs_only_result(g->ops[i].kind) && b->named[b->out->root[of[g->ops[i].out]]];
        b->result_of[i] = alone ? of[g->ops[i].out] : NONE;
    }
}

/* ---- which primitives run together ----------------------------------------------------------- */

/* Gradients of parameters, and what they are other shapes of: no kernel waits for their sums. */
static void find_sums(struct build *b)
{
    const struct hv_sharding *s = b->q->sharding;
    bool *is = hv_arena_new(b->arena, bool, b->g->n_tensors + 1);
    for (size_t t = 0; t < b->q->graph->n_given && s->gradient_of != NULL; t++) {
        uint32_t d = s->gradient_of[s->expansion.tensor_of[t]];
        if (d != HV_NO_TENSOR && b->q->graph->tensors[t].role == HV_TENSOR_PARAMETER) {
            is[d] = true;
        }
    }
    for (uint32_t i = (uint32_t)b->g->n_ops; i-- > s->n_forward;) {
        const struct hv_prim *p = prim_of(b, i);
        if (p->n_in == 1 && is[p->tensor[1]] && hv_prim_only_reshapes(b->prims, p)) {
            is[p->tensor[0]] = true;
        }
    }
    b->out->sums = is;
}

static void mark_exchanges(struct build *b)
{
    const struct hv_lowered *l = &b->q->sharding->lowered;
    b->reads_before = hv_arena_new(b->arena, bool, b->g->n_ops + 1);
    b->sends_behind = hv_arena_new(b->arena, bool, b->g->n_ops + 1);
    for (size_t i = 0; i < l->n; i++) {
        uint32_t op = l->exchange[i].op, tensor = l->exchange[i].tensor;
        if (op < b->g->n_ops && b->writer[tensor] == op) {
            b->sends_behind[op] = b->sends_behind[op] || !b->out->sums[tensor];
        } else {
            b->reads_before[op] = true;
        }
    }
}

/* Gradients of weights that are products, or sums of rows, run when the schedule wants; those of
 * norms and biases come with the gradient of the input. */
static bool only_weights(const struct build *b, uint32_t i)
{
    const struct hv_prim *p = prim_of(b, i);
    enum hv_tensor_op_kind kind = b->q->graph->ops[p->op].kind;
    return is_backward(b, i) && !b->leads_to_inputs[i] &&
           (kind == HV_OP_EINSUM || kind == HV_OP_CONV || kind == HV_OP_EMBEDDING ||
            kind == HV_OP_GATHER);
}

static bool joins(const struct build *b, const struct hv__kernel *k, uint32_t i)
{
    const uint32_t *fused = b->q->fused;
    return k->backward == is_backward(b, i) && fused[k->op] == fused[prim_of(b, i)->op] &&
           k->weight == only_weights(b, i) && !b->reads_before[i] && !b->sends_behind[k->last - 1];
}

/* Shapes alone: nothing runs. */
static bool is_free(const struct hv_prim *p)
{
    return p->kind == HV_PRIM_CONSTANT || p->kind == HV_PRIM_RESHAPE || p->op == HV_NO_OP;
}

static void cut_kernels(struct build *b)
{
    b->kernel_of = hv_arena_new(b->arena, uint32_t, b->g->n_ops + 1);
    b->out->items = hv_arena_new(b->arena, struct hv__kernel, b->g->n_ops + 1);
    for (uint32_t i = 0; i < b->g->n_ops; i++) {
        const struct hv_prim *p = prim_of(b, i);
        struct hv__kernel *last = b->out->n > 0 ? &b->out->items[b->out->n - 1] : NULL;
        b->kernel_of[i] = NONE;
        if (is_free(p) || b->out->constant[p->tensor[p->n_in]]) {
            continue;
        }
        if (last == NULL || !joins(b, last, i)) {
            last = &b->out->items[b->out->n++];
            *last = (struct hv__kernel){.op = p->op,
                                        .first = i,
                                        .backward = is_backward(b, i),
                                        .weight = only_weights(b, i)};
            b->out->n_forward += !last->backward;
        }
        last->last = i + 1;
        b->kernel_of[i] = (uint32_t)(b->out->n - 1);
    }
}

/* ---- what kernels read and write ------------------------------------------------------------- */

static double local_bytes(const struct build *b, uint32_t i, size_t operand)
{
    const struct hv_layout *l = &b->q->sharding->lowered.used[i][operand];
    uint32_t t = b->g->ops[i].tensor[operand];
    return hv_layout_bytes(l, &b->g->mesh, &b->g->tensors[t].shape);
}

static void add_read(struct build *b, uint32_t tensor, double bytes)
{
    uint32_t root = b->out->root[tensor];
    for (size_t i = 0; i < b->reads.n; i++) {
        if (b->reads.items[i].tensor == root) {
            b->reads.items[i].bytes = fmax(b->reads.items[i].bytes, bytes);
            return;
        }
    }
    hv_vec_push(&b->reads, (struct hv__access){root, bytes});
}

static double settled_bytes(const struct build *b, uint32_t t)
{
    const struct hv_shard_tensor *x = &b->g->tensors[t];
    return hv_layout_bytes(&x->layout, &b->g->mesh, &x->shape);
}

/* What a backward kernel reads in place of a value inside an operator's forward kernel, which is
 * not kept: the operator's result, where that is enough, else the operands that it comes from;
 * products on the way are repeated. */
static void resolve(struct build *b, uint32_t t, uint32_t group)
{
    uint32_t i = b->writer[t];
    if (b->out->constant[t] || b->seen[t] == b->stamp) {
        return;
    }
    b->seen[t] = b->stamp;
    bool given = i == NONE;
    if (given || b->named[b->out->root[t]] || b->q->fused[prim_of(b, i)->op] != group) {
        add_read(b, t, settled_bytes(b, b->out->root[t]));
        return;
    }
    const struct hv_prim *p = prim_of(b, i);
    if (b->result_of[p->op] != NONE) {
        uint32_t result = b->result_of[p->op];
        add_read(b, result, settled_bytes(b, b->out->root[result]));
        return;
    }
    if (multiplies(p)) {
        hv_vec_push(&b->again, i);
    }
    for (size_t k = 0; k < p->n_in; k++) {
        resolve(b, p->tensor[k], group);
    }
}

static bool written_inside(const struct build *b, const struct hv__kernel *k, uint32_t t)
{
    return b->writer[t] != NONE && b->writer[t] >= k->first && b->writer[t] < k->last;
}

/* Values of the same group's forward kernels that are not kept. */
static bool must_resolve(const struct build *b, const struct hv__kernel *k, uint32_t t)
{
    uint32_t i = b->writer[t];
    return k->backward && i != NONE && !is_backward(b, i) && prim_of(b, i)->op != HV_NO_OP &&
           !b->named[b->out->root[t]];
}

static void find_reads(struct build *b, struct hv__kernel *k)
{
    b->reads.n = 0;
    b->again.n = 0;
    b->stamp++;
    for (uint32_t i = k->first; i < k->last; i++) {
        const struct hv_prim *p = prim_of(b, i);
        for (size_t o = 0; o < p->n_in && !is_free(p); o++) {
            uint32_t t = p->tensor[o], w = b->writer[t];
            if (b->out->constant[t] || written_inside(b, k, t)) {
                continue;
            }
            if (must_resolve(b, k, t)) {
                resolve(b, t, b->q->fused[prim_of(b, w)->op]);
            } else {
                add_read(b, t, local_bytes(b, i, o));
            }
        }
    }
    k->n_reads = b->reads.n;
    k->reads = hv_arena_copy(b->arena, b->reads.items, b->reads.n, sizeof *k->reads);
}

static void note_readers(struct build *b)
{
    b->last_reader = hv_arena_new(b->arena, uint32_t, b->g->n_tensors + 1);
    for (uint32_t i = 0; i < b->out->n; i++) {
        for (size_t r = 0; r < b->out->items[i].n_reads; r++) {
            b->last_reader[b->out->items[i].reads[r].tensor] = i + 1;
        }
    }
    for (size_t i = 0; i < b->g->n_outputs; i++) {
        b->last_reader[b->out->root[b->g->outputs[i].tensor]] = NONE;
    }
}

static void find_writes(struct build *b, uint32_t number)
{
    struct hv__kernel *k = &b->out->items[number];
    size_t n = 0;
    k->writes = hv_arena_new(b->arena, struct hv__access, 2 * (k->last - k->first) + 1);
    for (uint32_t i = k->first; i < k->last; i++) {
        const struct hv_prim *p = prim_of(b, i);
        for (size_t o = p->n_in; o < (size_t)(p->n_in + p->n_out) && !is_free(p); o++) {
            uint32_t t = p->tensor[o];
            if (!b->out->constant[t] && b->last_reader[t] > number + 1) {
                k->writes[n++] = (struct hv__access){t, local_bytes(b, i, o)};
            }
        }
    }
    k->n_writes = n;
}

/* ---- seconds --------------------------------------------------------------------------------- */

/* Lists the products of every group. */
static void list_products(struct build *b)
{
    b->first_of = hv_arena_new(b->arena, uint32_t, b->q->graph->n_ops + 1);
    b->next_of = hv_arena_new(b->arena, uint32_t, b->g->n_ops + 1);
    memset(b->first_of, 0xff, (b->q->graph->n_ops + 1) * sizeof *b->first_of);
    for (uint32_t i = 0; i < b->g->n_ops; i++) {
        if (b->kernel_of[i] != NONE && multiplies(prim_of(b, i))) {
            uint32_t group = b->q->fused[prim_of(b, i)->op];
            b->next_of[i] = b->first_of[group];
            b->first_of[group] = i;
        }
    }
}

/* True where two operators read the same tensor, which is no parameter. */
static bool share_operand(const struct hv_tensor_graph *g, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < g->ops[a].n_in; i++) {
        uint32_t t = g->ops[a].in[i].tensor;
        for (size_t k = 0; k < g->ops[b].n_in; k++) {
            if (t == g->ops[b].in[k].tensor && g->tensors[t].role != HV_TENSOR_PARAMETER) {
                return true;
            }
        }
    }
    return false;
}

/* How many products of the group's pass have this shape. Those that share an operand are one, wider
 * (forward), deeper (gradients of the shared operand), or with more rows (gradients of weights). */
static double siblings(const struct build *b, const struct hv__kernel *k,
                       const struct hv__local_product *x)
{
    double n = 0;
    for (uint32_t i = b->first_of[b->q->fused[k->op]]; i != NONE; i = b->next_of[i]) {
        const struct hv__kernel *own = &b->out->items[b->kernel_of[i]];
        struct hv__local_product y = hv__local_product(b->prims, prim_of(b, i), &b->g->mesh,
                                                       b->q->sharding->lowered.used[i]);
        n += own->backward == k->backward && own->weight == k->weight && y.m == x->m &&
             y.n == x->n && y.k == x->k && y.groups == x->groups &&
             share_operand(b->q->graph, own->op, k->op);
    }
    return fmax(1, n);
}

/* Seconds of a product's share in the one that it is a part of. */
static double part_s(const struct build *b, const struct hv__kernel *k,
                     const struct hv__local_product *x)
{
    struct hv__local_product all = *x;
    double n = b->products[b->q->fused[k->op]] > 1 ? siblings(b, k, x) : 1;
    *(!k->backward ? &all.n : !k->weight ? &all.k : all.m < all.n ? &all.m : &all.n) *= n;
    return hv__local_product_s(b->q->k, b->q->device, &all) / n;
}

static void add_product(struct build *b, struct hv__kernel *k, uint32_t i, bool again)
{
    const struct hv_layout *l = b->q->sharding->lowered.used[i];
    struct hv__local_product x = hv__local_product(b->prims, prim_of(b, i), &b->g->mesh, l);
    double flops = 2 * x.m * x.groups * x.n * x.k;
    k->time_s += b->core[b->q->fused[k->op]]
                     ? hv__core_product_s(b->q->k, b->q->device, &x, k->backward)
                     : part_s(b, k, &x);
    k->flops += again ? 0 : flops;
    if (2 * k->m * k->n * k->k < flops) {
        k->m = x.m * x.groups;
        k->n = x.n;
        k->k = x.k;
    }
}

/* True where only products have to do with a tensor outside the kernel: they read and write it. */
static bool is_of_products(const struct build *b, const struct hv__kernel *k, uint32_t root)
{
    for (uint32_t i = k->first; i < k->last; i++) {
        const struct hv_prim *p = prim_of(b, i);
        for (size_t o = 0; o < (size_t)(p->n_in + p->n_out); o++) {
            if (b->out->root[p->tensor[o]] == root && !multiplies(p) && !is_free(p) &&
                p->kind != HV_PRIM_TRANSPOSE) {
                return false;
            }
        }
    }
    return true;
}

static bool has_products(const struct build *b, const struct hv__kernel *k)
{
    bool any = false;
    for (uint32_t i = k->first; i < k->last; i++) {
        any = any || multiplies(prim_of(b, i));
    }
    return any;
}

/* A look-up reads the rows that it takes, a sum of rows those that it adds, not the whole table. */
static double rows_bytes(const struct build *b, const struct hv__kernel *k, uint32_t root,
                         double bytes)
{
    for (uint32_t i = k->first; i < k->last; i++) {
        const struct hv_prim *p = prim_of(b, i);
        if (p->kind == HV_PRIM_GATHER && b->out->root[p->tensor[0]] == root) {
            return fmin(bytes, local_bytes(b, i, p->n_in));
        }
    }
    return bytes;
}

/* Results of products that others of the kernel take up before they are written: the time of a
 * product has the writing of its result in it. */
static double inner_results_bytes(const struct build *b, const struct hv__kernel *k)
{
    double sum = 0;
    for (uint32_t i = k->first; i < k->last; i++) {
        const struct hv_prim *p = prim_of(b, i);
        bool outside = false;
        for (size_t w = 0; w < k->n_writes && multiplies(p); w++) {
            outside = outside || k->writes[w].tensor == b->out->root[p->tensor[p->n_in]];
        }
        sum += multiplies(p) && !outside ? local_bytes(b, i, p->n_in) : 0;
    }
    return sum;
}

/* True where the kernel is a part of one deeper product, which adds up what its parts give. */
static bool is_part_of_deeper(const struct build *b, const struct hv__kernel *k)
{
    double n = 1;
    uint32_t group = b->q->fused[k->op];
    bool joined = k->backward && !k->weight && b->products[group] > 1 && !b->core[group];
    for (uint32_t i = k->first; i < k->last && joined; i++) {
        if (multiplies(prim_of(b, i))) {
            struct hv__local_product x = hv__local_product(b->prims, prim_of(b, i), &b->g->mesh,
                                                           b->q->sharding->lowered.used[i]);
            n = fmax(n, siblings(b, k, &x));
        }
    }
    return n > 1;
}

static void price_kernel(struct build *b, struct hv__kernel *k)
{
    const struct hv_device_kind *d = b->q->device;
    struct hv_efficiency e = hv_efficiency_of(d, b->q->k->job.precision);
    bool products = has_products(b, k);
    for (uint32_t i = k->first; i < k->last; i++) {
        if (multiplies(prim_of(b, i))) {
            add_product(b, k, i, false);
        }
    }
    for (size_t i = 0; i < b->again.n; i++) {
        add_product(b, k, b->again.items[i], true);
    }
    for (size_t i = 0; i < k->n_reads; i++) {
        const struct hv__access *x = &k->reads[i];
        k->stream_bytes +=
            products && is_of_products(b, k, x->tensor) ? 0 : rows_bytes(b, k, x->tensor, x->bytes);
    }
    double written = 0;
    for (size_t i = 0; i < k->n_writes; i++) {
        const struct hv__access *x = &k->writes[i];
        written += products && is_of_products(b, k, x->tensor) ? 0 : x->bytes;
    }
    k->stream_bytes += fmax(0, written - inner_results_bytes(b, k));
    if (is_part_of_deeper(b, k)) {
        k->stream_bytes = 0;
    }
    if (k->stream_bytes > 0) {
        k->time_s +=
            e.launch_s + k->stream_bytes / (e.bytes_per_s * hv_stream_share(d, k->stream_bytes));
    }
}

void hv__kernels(const struct hv__kernels_query *q, struct hv_arena *arena, struct hv__kernels *out)
{
    struct build b = {.q = q,
                      .g = &q->sharding->graph,
                      .prims = &q->sharding->expansion.prims,
                      .arena = arena,
                      .out = out};
    *out = (struct hv__kernels){0};
    b.seen = hv_arena_new(arena, uint32_t, b.g->n_tensors + 1);
    find_tensors(&b);
    find_ways_to_inputs(&b);
    find_named(&b);
    find_sums(&b);
    mark_exchanges(&b);
    cut_kernels(&b);
    for (size_t i = 0; i < out->n; i++) {
        find_reads(&b, &out->items[i]);
    }
    note_readers(&b);
    list_products(&b);
    for (uint32_t i = 0; i < out->n; i++) {
        find_writes(&b, i);
        find_reads(&b, &out->items[i]); /* the products that it repeats */
        price_kernel(&b, &out->items[i]);
    }
    hv_vec_free(&b.reads);
    hv_vec_free(&b.again);
}
