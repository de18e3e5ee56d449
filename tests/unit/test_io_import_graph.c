/**
 * Programs of other frameworks as graphs. The fixtures are real exports: jax 0.4.35, flax 0.10.4,
 * jax.jit(f).lower(…).as_text(); parameters are those that jax.tree counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/io/import/import.h"
#include "solver/io/own/docs.h"
#include "solver/workload/graph/work.h"
#include <stdio.h>
#include <string.h>

struct imported {
    struct hv_model_doc doc;
    struct hv_str report;
};

static struct imported import_text(const char *text, size_t n)
{
    struct hv_device_catalogue devices = {0};
    struct hv_err err = {0};
    struct hv_json json = {0};
    struct imported x = {0};
    assert_int_equal(hv_device_catalogue_read(&devices, NULL), HV_OK);
    struct hv_import *im = hv_import_new(&devices);
    if (hv_import_text(im, NULL, "export", text, n, &err) != HV_OK ||
        hv_import_finish(im, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    hv_import_report(im, &x.report);
    hv_json_wrap(&json, json_deep_copy(hv_import_document(im)), "export");
    assert_int_equal(hv_model_doc_build(&x.doc, json, NULL), HV_OK);
    hv_import_free(im);
    hv_device_catalogue_free(&devices);
    return x;
}

static struct imported import_file(const char *name)
{
    char path[200];
    struct hv_str bytes = {0};
    (void)snprintf(path, sizeof path, "tests/golden/import/graphs/%s", name);
    assert_int_equal(hv_file_read(path, &bytes, NULL), HV_OK);
    struct imported x = import_text(hv_str_cstr(&bytes), bytes.n);
    hv_str_free(&bytes);
    return x;
}

static void drop(struct imported *x)
{
    hv_model_doc_free(&x->doc);
    hv_str_free(&x->report);
}

static double products(const struct hv_tensor_graph *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->n_ops; i++) {
        sum += hv_tensor_op_product_flops(g, &g->ops[i]);
    }
    return sum;
}

/* Multiply-adds by hand. mlp: batch 8, 16-64-10. cnn: 4 images of 28 x 28 x 1, 3 x 3 to 32, halved,
 * 3 x 3 to 64 with stride 2 on 7 x 7, 3136 to 10. transformer: 2 sentences of 16 of width 64, two
 * layers of 4 · 64² for attention, 2 · 16 · 64 for its scores and sums, 2 · 64 · 256, and 1,000
 * words. */
static void exports_of_jax(void **state)
{
    static const struct {
        const char *file;
        double parameters, multiply_adds;
    } rows[] = {
        {"jax_mlp.mlir", 1738, 8.0 * (16 * 64 + 64 * 10)},
        {"flax_cnn.mlir", 50314, 4.0 * (28 * 28 * 9 * 32 + 7 * 7 * 9 * 32 * 64 + 3136 * 10)},
        {"flax_transformer.mlir", 228968,
         32.0 * (2 * (4 * 64 * 64 + 2 * 16 * 64 + 2 * 64 * 256) + 64 * 1000)},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct imported x = import_file(rows[i].file);
        const struct hv_tensor_graph *g = x.doc.model->tensors;
        assert_non_null(g);
        if (hv_tensor_graph_parameters(g) != rows[i].parameters ||
            products(g) != 2 * rows[i].multiply_adds) {
            fail_msg("%s: %.0f parameters, %.0f FLOPs of products", rows[i].file,
                     hv_tensor_graph_parameters(g), products(g));
        }
        drop(&x);
    }
}

/* At least 95 % of the FLOPs are in operators whose kind is known. */
static void little_is_opaque(void **state)
{
    static const char *const files[] = {"flax_cnn.mlir", "flax_transformer.mlir"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct imported x = import_file(files[i]);
        const struct hv_tensor_graph *g = x.doc.model->tensors;
        double all = 0, opaque = 0;
        for (size_t k = 0; k < g->n_ops; k++) {
            double flops = hv_tensor_op_flops(g, &g->ops[k]);
            all += flops;
            opaque += g->ops[k].kind == HV_OP_OPAQUE ? flops : 0;
        }
        assert_true(opaque <= 0.05 * all);
        drop(&x);
    }
}

#define MAIN(args, body)                                                                           \
    "module @jit_f {\n  func.func public @main(" args ") -> (tensor<4x8xf32>) {\n" body "  }\n}\n"

static void unknown_operations_are_named(void **state)
{
    static const char text[] =
        MAIN("%arg0: tensor<4x8xf32>",
             "    %0 = stablehlo.custom_call @f(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
             "    %1:2 = \"stablehlo.sort\"(%0, %0) ({\n    ^bb0(%a: tensor<f32>):\n"
             "      stablehlo.return %a : tensor<f32>\n    }) : (tensor<4x8xf32>, "
             "tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)\n"
             "    %2 = stablehlo.add %1#1, %arg0 : tensor<4x8xf32>\n"
             "    return %2 : tensor<4x8xf32>\n");
    (void)state;
    struct imported x = import_text(text, sizeof text - 1);
    assert_non_null(strstr(hv_str_cstr(&x.report), "stablehlo.custom_call does (1 times)"));
    assert_non_null(strstr(hv_str_cstr(&x.report), "stablehlo.sort does (2 times)"));
    assert_int_equal(x.doc.model->tensors->n_ops, 4);
    drop(&x);
}

static void programs_that_are_wrong(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {MAIN("%arg0: tensor<4x8xf32>",
              "    %0 = call @g(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32> // stablehlo.add\n"),
         "expected the name of a function"},
        {MAIN("%arg0: tensor<4x8xf32>", "    %0 = stablehlo.add %arg0, %arg0 : tensor<?x8xf32>\n"),
         "expected tensors of known sizes"},
        {"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = func.call @main(%a) : "
         "(tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n// stablehlo.\n",
         "more than 32 functions inside each other"},
        {MAIN("%arg0: tensor<4x8xf32>",
              "    %0 = stablehlo.reshape %arg0 : (tensor<4x8xf32>) -> tensor<31xf32>\n"),
         "the program cannot be read as a graph"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hv_device_catalogue devices = {0};
        struct hv_err err = {0};
        assert_int_equal(hv_device_catalogue_read(&devices, NULL), HV_OK);
        struct hv_import *im = hv_import_new(&devices);
        enum hv_status st = hv_import_text(im, hv_import_format_find("stablehlo"), "export",
                                           rows[i].text, strlen(rows[i].text), &err);
        if (st == HV_OK || strstr(err.text, rows[i].says) == NULL) {
            fail_msg("%s\nsays: %s", rows[i].text, err.text);
        }
        hv_import_free(im);
        hv_device_catalogue_free(&devices);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exports_of_jax), cmocka_unit_test(little_is_opaque),
        cmocka_unit_test(unknown_operations_are_named), cmocka_unit_test(programs_that_are_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
