/**
 * Layouts executed, not believed: every way to split every primitive, every exchange of resharding
 * paths, and whole random graphs run on up to eight virtual devices with integers; the result must
 * be that of one device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/io/own/graph/long_form.h"
#include "solver/workload/graph/sharded.h"
#include "tests/unit/shard_devices.h"

/* ---- meshes and graphs ----------------------------------------------------------------------- */

static const struct {
    int64_t size[3];
    size_t n;
} meshes[] = {{{2}, 1}, {{4}, 1}, {{8}, 1}, {{2, 2}, 2}, {{2, 4}, 2}, {{2, 2, 2}, 3}};
#define MESHES (sizeof meshes / sizeof meshes[0])

static struct hv_mesh mesh_of(size_t i)
{
    struct hv_mesh m;
    struct hv_err err = {0};
    assert_int_equal(hv_mesh_make(&m, meshes[i].size, meshes[i].n, &err), HV_OK);
    return m;
}

/* One operator of each kind and form, small enough to run. */
static const char *const graphs[] = {
    "{\"dims\":{\"b\":8,\"m\":8,\"h\":8},\"tensors\":{\"x\":{\"dims\":[\"b\",\"m\"]},\"w\":{"
    "\"dims\":[\"m\",\"h\"]}},"
    "\"ops\":[{\"id\":\"y\",\"op\":\"einsum\",\"in\":[\"x\",\"w\"],\"out\":[\"b\",\"h\"]}]}",
    "{\"dims\":{\"b\":4,\"n\":4,\"s\":4,\"t\":4,\"d\":2},\"tensors\":{\"q\":{\"dims\":[\"b\",\"s\","
    "\"n\",\"d\"]},"
    "\"k\":{\"dims\":[\"b\",\"t\",\"n\",\"d\"]}},"
    "\"ops\":[{\"id\":\"y\",\"op\":\"einsum\",\"in\":[\"q\",\"k\"],\"out\":[\"b\",\"n\",\"s\","
    "\"t\"]}]}",
    "{\"dims\":{\"b\":8,\"h\":8},\"tensors\":{\"x\":{\"dims\":[\"b\",\"h\"]},\"y\":{\"dims\":["
    "\"h\"]}},"
    "\"ops\":[{\"id\":\"z\",\"op\":\"add\",\"in\":[\"x\",\"y\"],\"out\":[\"b\",\"h\"]},"
    "{\"id\":\"d\",\"op\":\"div\",\"in\":[\"z\",\"y\"],\"out\":[\"b\",\"h\"]},"
    "{\"id\":\"u\",\"op\":\"where\",\"in\":[\"x\",\"d\",\"z\"],\"out\":[\"b\",\"h\"]}]}",
    "{\"dims\":{\"b\":8,\"h\":8},\"tensors\":{\"x\":{\"dims\":[\"b\",\"h\"]}},"
    "\"ops\":[{\"id\":\"z\",\"op\":\"gelu\",\"in\":[\"x\"],\"out\":[\"b\",\"h\"]},"
    "{\"id\":\"s\",\"op\":\"silu\",\"in\":[\"z\"],\"out\":[\"b\",\"h\"]},"
    "{\"id\":\"r\",\"op\":\"reduce\",\"in\":[\"s\"],\"out\":[\"h\"],\"by\":\"mean\"},"
    "{\"id\":\"m\",\"op\":\"reduce\",\"in\":[\"s\"],\"out\":[\"b\"],\"by\":\"max\"}]}",
    "{\"dims\":{\"b\":4,\"s\":4,\"m\":8},\"tensors\":{\"x\":{\"dims\":[\"b\",\"s\",\"m\"]}},"
    "\"ops\":[{\"id\":\"p\",\"op\":\"softmax\",\"in\":[\"x\"],\"out\":[\"b\",\"s\",\"m\"],\"over\":"
    "[\"m\"]},"
    "{\"id\":\"l\",\"op\":\"layernorm\",\"in\":[\"p\"],\"out\":[\"b\",\"s\",\"m\"],\"over\":[\"m\"]"
    "},"
    "{\"id\":\"t\",\"op\":\"transpose\",\"in\":[\"l\"],\"out\":[\"m\",\"b\",\"s\"]}]}",
    "{\"dims\":{\"b\":4,\"s\":4,\"m\":16,\"n\":4,\"d\":4,\"k\":16},\"tensors\":{\"x\":{\"dims\":["
    "\"b\",\"s\",\"m\"]}},"
    "\"ops\":[{\"id\":\"h\",\"op\":\"reshape\",\"in\":[\"x\"],\"out\":[\"b\",\"s\",\"n\",\"d\"],"
    "\"groups\":{\"m\":[\"n\",\"d\"]}},"
    "{\"id\":\"f\",\"op\":\"reshape\",\"in\":[\"x\"],\"out\":[\"k\",\"m\"],\"groups\":{\"k\":["
    "\"b\",\"s\"]}},"
    "{\"id\":\"g\",\"op\":\"reshape\",\"in\":[\"h\"],\"out\":[\"b\",\"s\",\"m\"],\"groups\":{\"m\":"
    "[\"n\",\"d\"]}}]}",
    "{\"dims\":{\"b\":8,\"p\":8,\"q\":8,\"r\":16,\"o\":4},\"tensors\":{\"x\":{\"dims\":[\"b\","
    "\"p\"]},\"y\":{\"dims\":[\"b\",\"q\"]}},"
    "\"ops\":[{\"id\":\"z\",\"op\":\"concat\",\"in\":[\"x\",\"y\"],\"out\":[\"b\",\"r\"],\"along\":"
    "\"r\"},"
    "{\"id\":\"c\",\"op\":\"slice\",\"in\":[\"x\"],\"out\":[\"b\",\"o\"],\"range\":{\"p\":[2,6]}},"
    "{\"id\":\"e\",\"op\":\"slice\",\"in\":[\"x\"],\"out\":[\"b\",\"o\"],\"range\":{\"p\":[1,8,2]}}"
    ","
    "{\"id\":\"a\",\"op\":\"pad\",\"in\":[\"x\"],\"out\":[\"b\",\"r\"],\"range\":{\"p\":[5,3]}},"
    "{\"id\":\"v\",\"op\":\"reverse\",\"in\":[\"x\"],\"out\":[\"b\",\"p\"],\"along\":\"p\"},"
    "{\"id\":\"u\",\"op\":\"cumsum\",\"in\":[\"x\"],\"out\":[\"b\",\"p\"],\"along\":\"p\"},"
    "{\"id\":\"s\",\"op\":\"sort\",\"in\":[\"x\"],\"out\":[\"b\",\"p\"],\"along\":\"p\"}]}",
    "{\"dims\":{\"n\":2,\"H\":8,\"W\":8,\"i\":2,\"o\":2,\"h\":8,\"w\":4,\"kh\":3,\"kw\":3},"
    "\"tensors\":{\"x\":{\"dims\":[\"n\",\"H\",\"W\",\"i\"]},\"k\":{\"dims\":[\"kh\",\"kw\",\"i\","
    "\"o\"],\"role\":\"parameter\"}},"
    "\"ops\":[{\"id\":\"y\",\"op\":\"conv\",\"in\":[\"x\",\"k\"],\"out\":[\"n\",\"h\",\"w\",\"o\"],"
    "\"window\":{"
    "\"h\":{\"of\":\"H\",\"tap\":\"kh\",\"size\":3,\"pad\":[1,1]},"
    "\"w\":{\"of\":\"W\",\"tap\":\"kw\",\"size\":3,\"stride\":2,\"pad\":[1,0]}}}]}",
    "{\"dims\":{\"n\":2,\"H\":8,\"W\":8,\"c\":4,\"h\":4,\"w\":4},\"tensors\":{\"x\":{\"dims\":["
    "\"n\",\"H\",\"W\",\"c\"]}},"
    "\"ops\":[{\"id\":\"y\",\"op\":\"pool\",\"in\":[\"x\"],\"out\":[\"n\",\"h\",\"w\",\"c\"],"
    "\"by\":\"sum\",\"window\":{"
    "\"h\":{\"of\":\"H\",\"size\":2,\"stride\":2},\"w\":{\"of\":\"W\",\"size\":3,\"stride\":2,"
    "\"pad\":[1,0]}}}]}",
    "{\"dims\":{\"b\":4,\"s\":4,\"v\":8,\"m\":8},\"tensors\":{\"t\":{\"dims\":[\"v\",\"m\"],"
    "\"role\":\"parameter\"},"
    "\"i\":{\"dims\":[\"b\",\"s\"],\"dtype\":\"s32\"},\"l\":{\"dims\":[\"b\",\"s\",\"v\"]}},"
    "\"ops\":[{\"id\":\"e\",\"op\":\"embedding\",\"in\":[\"t\",\"i\"],\"out\":[\"b\",\"s\",\"m\"],"
    "\"rows\":\"v\"},"
    "{\"id\":\"a\",\"op\":\"scatter_add\",\"in\":[\"t\",\"i\",\"e\"],\"out\":[\"v\",\"m\"],"
    "\"rows\":\"v\"},"
    "{\"id\":\"c\",\"op\":\"cross_entropy\",\"in\":[\"l\",\"i\"],\"out\":[\"b\",\"s\"],\"over\":["
    "\"v\"]}]}",
};
#define GRAPHS (sizeof graphs / sizeof graphs[0])

static void read_graph(const char *text, struct hv_arena *arena, struct hv_tensor_graph *g)
{
    struct hv_json doc = {0};
    struct hv_err err = {0};
    assert_int_equal(hv_json_parse(&doc, text, strlen(text), "graph", &err), HV_OK);
    struct hv_jp root = hv_jp_root(&doc);
    if (hv_long_graph_read(&root, arena, g, &err)) {
        fail_msg("%s", err.text);
    }
    hv_json_free(&doc);
}

static void random_values(struct hv_rng *rng, const struct hv_shape *s, int64_t least, int64_t most,
                          struct whole *out)
{
    out->shape = *s;
    assert_true(count(s) <= MOST_ELEMENTS);
    for (size_t i = 0; i < count(s); i++) {
        out->at[i] = least + (int64_t)(hv_rng_u64(rng) % (uint64_t)(most - least + 1));
    }
}

/* Values of all tensors of a primitive graph on one device. Integer inputs are row numbers. */
static struct whole *run_whole(const struct hv_tensor_graph *g, const struct hv_expansion *x,
                               uint64_t seed)
{
    struct whole *all = calloc(x->prims.n_tensors, sizeof *all);
    struct hv_rng rng;
    hv_rng_seed(&rng, seed);
    for (size_t t = 0; t < g->n_given; t++) {
        bool number_of_row = g->tensors[t].dtype == HV_DTYPE_S32;
        random_values(&rng, hv_prim_shape(&x->prims, x->tensor_of[t]), number_of_row ? 0 : -4,
                      number_of_row ? 7 : 4, &all[x->tensor_of[t]]);
    }
    for (size_t i = 0; i < x->prims.n_prims; i++) {
        const struct hv_prim *p = &x->prims.prims[i];
        execute_whole(&x->prims, p, all, &all[p->tensor[p->n_in]]);
    }
    return all;
}

/* ---- every choice of every primitive --------------------------------------------------------- */

struct trial {
    const struct hv_prim_graph *g;
    const struct hv_prim *p;
    const struct hv_op_rule *r;
    const struct hv_mesh *m;
    const struct whole *all;
    size_t run;
};

static bool try_choice(void *ctx, const struct hv_choice *c)
{
    static struct spread in[8], out;
    struct trial *t = ctx;
    const struct hv_shape *shapes[16];
    struct hv_layout layouts[16];
    struct spread *operand[8];
    for (size_t i = 0; i < t->r->n_in + t->r->n_out; i++) {
        shapes[i] = hv_prim_shape(t->g, t->p->tensor[i]);
    }
    if (!hv_choice_layouts(t->r, t->m, shapes, c, layouts)) {
        return true;
    }
    for (size_t i = 0; i < t->p->n_in; i++) {
        lay_out(t->m, &t->all[t->p->tensor[i]], &layouts[i], &in[i]);
        operand[i] = &in[i];
    }
    missing = false;
    execute(t->g, t->p, t->r, t->m, operand, &layouts[t->p->n_in], &out);
    if (missing || !is_whole(t->m, &out, &t->all[t->p->tensor[t->p->n_in]])) {
        fail_msg("%s: a choice on %lld devices gives %s", hv_prim_name(t->p),
                 (long long)t->m->n_devices,
                 missing ? "too few elements to a device" : "another result");
    }
    t->run++;
    return true;
}

static void every_choice_gives_the_unsharded_result(void **state)
{
    size_t run = 0;
    (void)state;
    for (size_t k = 0; k < GRAPHS; k++) {
        struct hv_arena arena = {0};
        struct hv_tensor_graph g;
        struct hv_expansion x;
        struct hv_err err = {0};
        read_graph(graphs[k], &arena, &g);
        assert_int_equal(hv_expand(&g, &arena, &x, &err), HV_OK);
        struct whole *all = run_whole(&g, &x, 7 + k);
        for (size_t i = 0; i < x.prims.n_prims; i++) {
            struct hv_op_rule rule;
            const struct hv_prim *p = &x.prims.prims[i];
            assert_int_equal(hv_prim_rule(&x.prims, p, &arena, &rule, &err), HV_OK);
            for (size_t n = 0; n < MESHES; n++) {
                struct hv_mesh m = mesh_of(n);
                struct trial t = {&x.prims, p, &rule, &m, all, 0};
                uint32_t every = (uint32_t)((1U << m.n_atoms) - 1);
                assert_true(hv_choice_each(&rule, &m, every, 1000000, try_choice, &t));
                assert_true(t.run > 0);
                run += t.run;
            }
        }
        free(all);
        hv_arena_free(&arena);
    }
    print_message("%zu choices executed\n", run);
    assert_true(run >= 3000);
}

/* ---- every step of resharding ---------------------------------------------------------------- */

static struct hv_layout random_layout(struct hv_rng *rng, const struct hv_mesh *m,
                                      const struct hv_shape *s, bool partial)
{
    struct hv_layout l = hv_layout_whole(s->n_dims);
    for (uint8_t a = 0; a < m->n_atoms; a++) {
        size_t place = (size_t)(hv_rng_u64(rng) % (s->n_dims + (partial ? 2U : 1U)));
        if (place < s->n_dims) {
            struct hv_layout next = l;
            hv_axes_push(&next.dim[place], a);
            l = hv_layout_divides(&next, m, s) ? next : l;
        } else if (place == s->n_dims + 1U) {
            l.sum |= 1U << a;
        }
    }
    for (size_t d = 0; d < s->n_dims; d++) { /* any order of the axes */
        struct hv_axes *x = &l.dim[d];
        for (size_t i = x->n; i > 1; i--) {
            size_t k = (size_t)(hv_rng_u64(rng) % i);
            uint8_t swap = x->atom[i - 1];
            x->atom[i - 1] = x->atom[k];
            x->atom[k] = swap;
        }
    }
    return l;
}

static void every_exchange_moves_what_it_says(void **state)
{
    static struct whole w;
    static struct spread s;
    struct hv_rng rng;
    (void)state;
    hv_rng_seed(&rng, 3);
    for (size_t n = 0; n < 3000; n++) {
        struct hv_mesh m = mesh_of(n % MESHES);
        struct hv_shape shape = {2U + n % 2, {8, 16, 8}, 4};
        struct hv_arena arena = {0};
        struct hv_err err = {0};
        struct hv_reshard path;
        struct hv_layout from = random_layout(&rng, &m, &shape, true);
        struct hv_layout to = random_layout(&rng, &m, &shape, n % 3 == 0);
        assert_int_equal(hv_reshard_path(&m, &shape, &from, &to, NULL, &arena, &path, &err), HV_OK);
        random_values(&rng, &shape, -9, 9, &w);
        lay_out(&m, &w, &from, &s);
        double bytes = 0;
        missing = false;
        for (size_t i = 0; i < path.n; i++) {
            exchange(&m, &shape, &s, &path.step[i].exchange, &path.step[i].after);
            bytes += path.step[i].exchange.sent_bytes;
        }
        assert_false(missing);
        assert_true(hv_layout_equal(&s.layout, &to));
        assert_true(is_whole(&m, &s, &w));
        assert_true(bytes == path.sent_bytes);
        hv_arena_free(&arena);
    }
}

/* ---- whole graphs ---------------------------------------------------------------------------- */

/* A tensor in the layouts that it has been brought into. */
struct held {
    struct spread *in[16];
    size_t n;
};

static struct spread *bring(const struct hv_mesh *m, const struct hv_shape *shape, struct held *h,
                            const struct hv_layout *to)
{
    struct hv_arena arena = {0};
    struct hv_err err = {0};
    struct hv_reshard path;
    for (size_t i = 0; i < h->n; i++) {
        if (hv_layout_equal(&h->in[i]->layout, to)) {
            return h->in[i];
        }
    }
    assert_true(h->n > 0 && h->n < 16);
    struct spread *s = malloc(sizeof *s);
    *s = *h->in[h->n - 1];
    assert_int_equal(hv_reshard_path(m, shape, &s->layout, to, NULL, &arena, &path, &err), HV_OK);
    for (size_t i = 0; i < path.n; i++) {
        exchange(m, shape, s, &path.step[i].exchange, &path.step[i].after);
    }
    hv_arena_free(&arena);
    h->in[h->n++] = s;
    return s;
}

/* Runs a lowered graph and compares all results. */
static void run_lowered(const struct hv_sharding *s, const struct whole *all)
{
    const struct hv_shard_graph *g = &s->graph;
    struct held *held = calloc(g->n_tensors, sizeof *held);
    bool *written = calloc(g->n_tensors, sizeof *written);
    for (size_t i = 0; i < g->n_ops; i++) {
        written[g->ops[i].tensor[g->ops[i].rule->n_in]] = true;
    }
    for (size_t t = 0; t < g->n_tensors; t++) {
        if (!written[t]) {
            held[t].in[held[t].n++] = malloc(sizeof(struct spread));
            if (all[t].shape.element_bytes > 0) {
                lay_out(&g->mesh, &all[t], &g->tensors[t].layout, held[t].in[0]);
            }
        }
    }
    missing = false;
    for (size_t i = 0; i < g->n_ops; i++) {
        const struct hv_prim *p = &s->expansion.prims.prims[s->prim_of[i]];
        const struct hv_layout *used = s->lowered.used[i];
        struct spread *in[8];
        for (size_t t = 0; t < p->n_in; t++) {
            in[t] = bring(&g->mesh, &g->tensors[p->tensor[t]].shape, &held[p->tensor[t]], &used[t]);
        }
        struct held *out = &held[p->tensor[p->n_in]];
        out->in[out->n++] = malloc(sizeof(struct spread));
        execute(&s->expansion.prims, p, g->ops[i].rule, &g->mesh, in, &used[p->n_in], out->in[0]);
        assert_false(missing);
        assert_true(is_whole(&g->mesh, out->in[0], &all[p->tensor[p->n_in]]));
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
        uint32_t t = g->outputs[i].tensor;
        const struct hv_layout *l =
            g->outputs[i].asked ? &g->outputs[i].layout : &g->tensors[t].layout;
        assert_true(
            is_whole(&g->mesh, bring(&g->mesh, &g->tensors[t].shape, &held[t], l), &all[t]));
    }
    for (size_t t = 0; t < g->n_tensors; t++) {
        for (size_t i = 0; i < held[t].n; i++) {
            free(held[t].in[i]);
        }
    }
    free(held);
    free(written);
}

/* Random graphs of up to 12 operators over the dimensions a, b, c of 8 elements. */
static void random_graph(struct hv_rng *rng, struct hv_str *text)
{
    static const char *const layouts[] = {"\"a\",\"b\"", "\"b\",\"c\"", "\"a\",\"c\""};
    size_t n = 1 + (size_t)(hv_rng_u64(rng) % 12), have = 3;
    size_t form[16] = {0, 1, 2};
    hv_str_adds(text, "{\"dims\":{\"a\":8,\"b\":8,\"c\":8},\"tensors\":{");
    for (size_t t = 0; t < 3; t++) {
        hv_str_addf(text, "%s\"t%zu\":{\"dims\":[%s],\"role\":\"%s\"}", t > 0 ? "," : "", t,
                    layouts[t], t > 0 ? "parameter" : "input");
    }
    hv_str_adds(text, "},\"ops\":[");
    for (size_t i = 0; i < n; i++, have++) {
        size_t x = (size_t)(hv_rng_u64(rng) % have), y = (size_t)(hv_rng_u64(rng) % have);
        bool same = form[x] == form[y];
        static const char *const one[] = {"gelu", "relu", "scale", "tanh", "neg"};
        hv_str_addf(text, "%s{\"id\":\"t%zu\",", i > 0 ? "," : "", have);
        if (!same) { /* the dimension that both have is summed; the others stay */
            form[have] = 3 - form[x] - form[y];
            hv_str_addf(text, "\"op\":\"einsum\",\"in\":[\"t%zu\",\"t%zu\"],\"out\":[%s]}", x, y,
                        layouts[form[have]]);
        } else if (hv_rng_u64(rng) % 3 == 0) {
            form[have] = form[x];
            hv_str_addf(text, "\"op\":\"%s\",\"in\":[\"t%zu\"],\"out\":[%s],\"over\":[%.3s]}",
                        hv_rng_u64(rng) % 2 == 0 ? "softmax" : "layernorm", x, layouts[form[x]],
                        layouts[form[x]]);
        } else if (hv_rng_u64(rng) % 2 == 0) {
            form[have] = form[x];
            hv_str_addf(text, "\"op\":\"%s\",\"in\":[\"t%zu\",\"t%zu\"],\"out\":[%s]}",
                        hv_rng_u64(rng) % 2 == 0 ? "add" : "mul", x, y, layouts[form[x]]);
        } else {
            form[have] = form[x];
            hv_str_addf(text, "\"op\":\"%s\",\"in\":[\"t%zu\"],\"out\":[%s]}",
                        one[hv_rng_u64(rng) % 5], x, layouts[form[x]]);
        }
    }
    hv_str_adds(text, "]}");
}

/* Gradients are graphs too: what is derived is executed the same way. Values of one device come
 * from the primitives that the answer holds. */
static void random_graphs_give_the_unsharded_result(void **state)
{
    struct hv_rng rng;
    (void)state;
    hv_rng_seed(&rng, 11);
    for (size_t n = 0; n < 2000; n++) {
        struct hv_arena arena = {0};
        struct hv_str text = {0};
        struct hv_tensor_graph g;
        struct hv_err err = {0};
        random_graph(&rng, &text);
        read_graph(hv_str_cstr(&text), &arena, &g);
        struct hv_given_layout given[3];
        struct hv_sharding_request r = {
            .graph = &g, .mesh = mesh_of(n % MESHES), .given = given, .n_given = 3};
        uint32_t last = (uint32_t)g.n_tensors - 1;
        for (uint32_t t = 0; t < 3; t++) {
            struct hv_shape shape = hv_tensor_shape(&g, &g.tensors[t]);
            given[t] = (struct hv_given_layout){t, random_layout(&rng, &r.mesh, &shape, false)};
        }
        r.outputs = r.loss = &last;
        r.n_outputs = r.n_loss = 1;
        r.grad = n % 2 == 1;
        struct hv_sharding s;
        if (hv_shard_graph_solve(&r, &arena, &s, &err)) {
            fail_msg("%s: %s", hv_str_cstr(&text), err.text);
        }
        struct whole *all = run_whole(&g, &s.expansion, n);
        run_lowered(&s, all);
        free(all);
        hv_str_free(&text);
        hv_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_choice_gives_the_unsharded_result),
        cmocka_unit_test(every_exchange_moves_what_it_says),
        cmocka_unit_test(random_graphs_give_the_unsharded_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
