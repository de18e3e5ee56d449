/**
 * Layouts against numbers by hand: bytes of exchanges, halos, propagation, errors of the reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "solver/io/own/graph/shard_answer.h"
#include "solver/shard/overlap.h"
#include <string.h>

/* ---- paths ----------------------------------------------------------------------------------- */

static struct hv_mesh mesh(int64_t a, int64_t b)
{
    struct hv_mesh m;
    struct hv_err err = {0};
    const int64_t sizes[2] = {a, b};
    assert_int_equal(hv_mesh_make(&m, sizes, b > 0 ? 2 : 1, &err), HV_OK);
    return m;
}

static struct hv_layout split(const struct hv_mesh *m, size_t n_dims, int dim_x, int dim_y)
{
    struct hv_layout l = hv_layout_whole(n_dims);
    const int dims[2] = {dim_x, dim_y};
    for (size_t a = 0; a < m->n_axes; a++) {
        for (uint8_t i = m->first[a]; i < m->first[a + 1] && dims[a] >= 0; i++) {
            hv_axes_push(&l.dim[dims[a]], i);
        }
    }
    return l;
}

static struct hv_reshard path(const struct hv_mesh *m, const struct hv_layout *from,
                              const struct hv_layout *to, struct hv_arena *arena)
{
    static const struct hv_shape shape = {2, {64, 128}, 4}; /* 32,768 bytes */
    struct hv_reshard r;
    struct hv_err err = {0};
    assert_int_equal(hv_reshard_path(m, &shape, from, to, NULL, arena, &r, &err), HV_OK);
    return r;
}

/* On 8 devices: gather 7 · 4,096; all-to-all 7/8 · 4,096; all-reduce 2 · 7/8 · 32,768;
 * reduce-scatter 7/8 · 32,768; a slice is free. */
static void bytes_of_one_step(void **state)
{
    struct hv_arena arena = {0};
    struct hv_mesh m = mesh(8, 0);
    struct hv_layout whole = hv_layout_whole(2), rows = split(&m, 2, 0, -1);
    struct hv_layout columns = split(&m, 2, 1, -1), summands = whole;
    (void)state;
    summands.sum = hv_mesh_axis_atoms(&m, 0);
    assert_true(path(&m, &rows, &whole, &arena).sent_bytes == 28672);
    assert_true(path(&m, &rows, &columns, &arena).sent_bytes == 3584);
    assert_true(path(&m, &summands, &whole, &arena).sent_bytes == 57344);
    assert_true(path(&m, &summands, &rows, &arena).sent_bytes == 28672);
    assert_true(path(&m, &whole, &rows, &arena).sent_bytes == 0);
    assert_int_equal(path(&m, &rows, &rows, &arena).n, 0);
    hv_arena_free(&arena);
}

/* 2 x 4: rows over y become rows over x. Permute the quarter to where half of the axis y stays
 * behind x (8,192), then gather that half (8,192): 8 = 2 · 4 needs a part of an axis. */
static void a_part_of_an_axis(void **state)
{
    struct hv_arena arena = {0};
    struct hv_mesh m = mesh(2, 4);
    struct hv_layout from = split(&m, 2, -1, 0), to = split(&m, 2, 0, -1);
    struct hv_reshard r = path(&m, &from, &to, &arena);
    (void)state;
    assert_true(r.sent_bytes == 16384);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.step[0].exchange.kind, HV_EXCHANGE_PERMUTE);
    assert_int_equal(r.step[1].exchange.kind, HV_EXCHANGE_GATHER);
    assert_int_equal(r.step[1].exchange.group, 2);
    hv_arena_free(&arena);
}

static double steps_only(void *ctx, const struct hv_exchange *x)
{
    (void)ctx;
    (void)x;
    return 1;
}

/* The price is the caller's: with a price per step, one all-reduce over both axes wins over two. */
static void the_price_is_the_callers(void **state)
{
    static const struct hv_shape shape = {2, {64, 128}, 4};
    struct hv_arena arena = {0};
    struct hv_mesh m = mesh(2, 4);
    struct hv_layout from = hv_layout_whole(2), to = from;
    struct hv_pricing p = {.price = steps_only};
    struct hv_reshard r;
    struct hv_err err = {0};
    (void)state;
    from.sum = 7;
    assert_int_equal(hv_reshard_path(&m, &shape, &from, &to, &p, &arena, &r, &err), HV_OK);
    assert_int_equal(r.n, 1);
    assert_true(r.price == 1);
    hv_arena_free(&arena);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* No path sends less than what devices lack of their new parts: all layouts of a matrix on 2 x 4.
 */
static void no_path_is_below_the_overlap(void **state)
{
    static const struct hv_shape shape = {2, {64, 128}, 4};
    struct hv_mesh m = mesh(2, 4);
    (void)state;
    for (int a = 0; a < 9; a++) {
        for (int b = 0; b < 9; b++) {
            struct hv_arena arena = {0};
            struct hv_layout from = split(&m, 2, a % 3 - 1, a / 3 - 1);
            struct hv_layout to = split(&m, 2, b % 3 - 1, b / 3 - 1);
            double least = hv_overlap_least(&m, &shape, &from, &to);
            double ours = path(&m, &from, &to, &arena).sent_bytes;
            assert_true(ours >= least - 1e-9);
            assert_true((ours == 0) == (least == 0));
            hv_arena_free(&arena);
        }
    }
}

/* Rows on 2 devices to rows on 3 others, 6 rows: device 1 of 3 takes row 2 from the first and row 3
 * from the second. Every element of every receiver comes exactly once. */
static void pieces_between_unequal_places(void **state)
{
    static const struct hv_shape shape = {1, {6}, 4};
    struct hv_arena arena = {0};
    struct hv_mesh two = mesh(2, 0), three = mesh(3, 0);
    struct hv_layout from = split(&two, 1, 0, -1), to = split(&three, 1, 0, -1);
    struct hv_pieces p = hv_overlap_pieces(&two, &from, &three, &to, &shape, &arena);
    (void)state;
    assert_int_equal(p.n, 4);
    assert_true(p.piece[0].from == 0 && p.piece[0].to == 0 && p.piece[0].bytes == 8);
    assert_true(p.piece[1].from == 0 && p.piece[1].to == 1 && p.piece[1].bytes == 4);
    assert_true(p.piece[2].from == 1 && p.piece[2].to == 1 && p.piece[2].bytes == 4);
    assert_true(p.piece[3].from == 1 && p.piece[3].to == 2 && p.piece[3].bytes == 8);
    hv_arena_free(&arena);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static const char graph_text[] =
    "{\"format\":\"hetviz.shard-cases/"
    "1\",\"graphs\":{\"g\":{\"dims\":{\"b\":64,\"m\":128,\"h\":256},"
    "\"tensors\":{\"x\":{\"dims\":[\"b\",\"m\"]},\"w\":{\"dims\":[\"m\",\"h\"],\"role\":"
    "\"parameter\"}},"
    "\"ops\":[{\"id\":\"y\",\"op\":\"einsum\",\"in\":[\"x\",\"w\"],\"out\":[\"b\",\"h\"]}]}},"
    "\"cases\":[{\"id\":\"c\",\"graph\":\"g\",\"mesh\":{\"x\":8},\"shard\":%s%s}]}";

static enum hv_status solve(const char *shard, const char *more, struct hv_arena *arena,
                            struct hv_sharding *out, struct hv_err *err)
{
    struct hv_str text = {0};
    struct hv_json doc = {0};
    struct hv_shard_cases cases = {0};
    hv_str_addf(&text, graph_text, shard, more);
    assert_int_equal(
        hv_json_parse(&doc, hv_str_cstr(&text), strlen(hv_str_cstr(&text)), "c.json", err), HV_OK);
    enum hv_status st = hv_shard_cases_read(&cases, &doc, err);
    if (st == HV_OK) {
        st = hv_shard_graph_solve(&cases.cases[0].request, arena, out, err);
        hv_shard_cases_free(&cases);
    }
    hv_json_free(&doc);
    hv_str_free(&text);
    return st;
}

/* Columns of the weights over 8: the result has columns too, and nothing is sent. Rows of the
 * weights, result whole: the weights turn to columns (all-to-all, 7/8 of 16,384), the result's
 * columns are gathered (7 · 8,192); an all-reduce of the result would send 2 · 7/8 · 65,536. */
static void a_product_by_hand(void **state)
{
    struct hv_arena arena = {0};
    struct hv_sharding s;
    struct hv_err err = {0};
    (void)state;
    assert_int_equal(solve("{\"w\":{\"h\":[\"x\"]}}", "", &arena, &s, &err), HV_OK);
    assert_true(s.lowered.sent_bytes == 0);
    assert_int_equal(s.layout[2]->dim[1].n, 3);
    assert_true(s.argument_bytes == 64 * 128 * 4 + 128 * 256 * 4 / 8);
    assert_true(s.output_bytes == 64 * 256 * 4 / 8);
    assert_int_equal(solve("{\"w\":{\"m\":[\"x\"]}}", "", &arena, &s, &err), HV_OK);
    assert_true(s.lowered.sent_bytes == 14336 + 57344);
    assert_int_equal(s.layout[2]->dim[0].n + s.layout[2]->dim[1].n, 0);
    hv_arena_free(&arena);
}

/* A batch over 8 devices, gradients of the weights whole: gathering the rows of x (7 · 4,096) and
 * of the gradient of y (7 · 8,192) sends less than reducing 131,072 bytes (2 · 7/8 of them). */
static void a_gradient_by_hand(void **state)
{
    struct hv_arena arena = {0};
    struct hv_sharding s;
    struct hv_err err = {0};
    (void)state;
    assert_int_equal(
        solve("{\"x\":{\"b\":[\"x\"]}}", ",\"grad\":true,\"loss\":[\"y\"]", &arena, &s, &err),
        HV_OK);
    assert_true(s.lowered.sent_bytes == 28672 + 57344);
    assert_non_null(s.gradient[1]);
    assert_true(s.output_bytes == 128 * 256 * 4);
    hv_arena_free(&arena);
}

/* Unknown names are errors with their place and the nearest name. */
static void unknown_names_are_told(void **state)
{
    static const struct {
        const char *shard, *says;
    } wrong[] = {
        {"{\"ww\":{\"m\":[\"x\"]}}", "expected a tensor or operator of the graph, found \"ww\""},
        {"{\"w\":{\"hh\":[\"x\"]}}", "found \"hh\"; did you mean \"h\"?"},
        {"{\"w\":{\"m\":[\"X\"]}}",
         "expected an axis of the mesh, found \"X\"; did you mean \"x\"?"},
        {"{\"w\":{\"m\":[\"x\"],\"h\":[\"x\"]}}", "splits this tensor already"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hv_arena arena = {0};
        struct hv_sharding s;
        struct hv_err err = {0};
        assert_int_equal(solve(wrong[i].shard, "", &arena, &s, &err), HV_EINPUT);
        assert_non_null(strstr(err.text, wrong[i].says));
        assert_int_equal(err.line, 1);
        assert_true(err.col > 100);
        hv_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_one_step),
        cmocka_unit_test(a_part_of_an_axis),
        cmocka_unit_test(the_price_is_the_callers),
        cmocka_unit_test(no_path_is_below_the_overlap),
        cmocka_unit_test(pieces_between_unequal_places),
        cmocka_unit_test(a_product_by_hand),
        cmocka_unit_test(a_gradient_by_hand),
        cmocka_unit_test(unknown_names_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
