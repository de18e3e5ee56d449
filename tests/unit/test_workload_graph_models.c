/**
 * Graph models of the catalogue: parameters and multiply-adds are those that their authors or
 * maintainers published, or, where nothing is published, those of a calculation by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "solver/io/own/doc/docs.h"
#include "solver/workload/graph/gradient.h"
#include "solver/workload/graph/sharded.h"
#include "solver/workload/graph/work.h"
#include <math.h>
#include <string.h>

/* Multiply-adds of one element of the batch. */
static double multiply_adds(const struct hv_tensor_graph *g)
{
    double sum = 0, batch = (double)g->dims[hv_tensor_graph_dim(g, "batch")].size;
    for (size_t i = 0; i < g->n_ops; i++) {
        sum += hv_tensor_op_product_flops(g, &g->ops[i]) / 2;
    }
    return sum / batch;
}

static void open_model(const char *name, struct hv_model_doc *doc)
{
    struct hv_err err = {0};
    if (hv_model_doc_read(doc, name, &err) != HV_OK) {
        fail_msg("%s: %s", name, err.text);
    }
    assert_non_null(doc->model->tensors);
}

struct row {
    const char *name;
    double parameters, multiply_adds; /* 0: not published */
};

static void check_rows(const struct row *rows, size_t n, double off)
{
    for (size_t i = 0; i < n; i++) {
        struct hv_model_doc doc = {0};
        open_model(rows[i].name, &doc);
        double p = hv_tensor_graph_parameters(doc.model->tensors);
        double m = multiply_adds(doc.model->tensors);
        if (fabs(p / rows[i].parameters - 1) > off ||
            (rows[i].multiply_adds > 0 && fabs(m / rows[i].multiply_adds - 1) > off)) {
            fail_msg("%s: %.0f parameters, %.6g multiply-adds", rows[i].name, p, m);
        }
        assert_true(hv_model_parameters(doc.model) == p);
        hv_model_doc_free(&doc);
    }
}

/* torchvision 0.20, documentation of models ("num_params", "GFLOPS" of IMAGENET1K weights, which
 * are multiply-adds): resnet50, wide_resnet50_2, inception_v3 (parameters with the second
 * classifier), vgg19. NVIDIA DeepLearningExamples, GNMT v2 for PyTorch, its log: "Number of
 * parameters: 160671297". */
static void as_published(void **state)
{
    static const struct row rows[] = {
        {"resnet-50", 25557032, 4.09e9},
        {"wide-resnet-50-2", 68883240, 11.40e9},
        {"inception-v3", 27161264, 5.71e9},
        {"vgg-19", 143667240, 19.63e9},
        {"gnmt", 160671297, 0},
    };
    (void)state;
    check_rows(rows, sizeof rows / sizeof rows[0], 0.005);
}

/* U-Net, figure 1 of the paper: (side of the result, channels read, channels written) of its 3 x 3
 * convolutions, 2 x 2 transposed ones, and a 1 x 1 at the end; with biases. */
static void unet_by_hand(void **state)
{
    static const double conv[][3] = {
        {570, 1, 64},    {568, 64, 64},  {282, 64, 128},  {280, 128, 128}, {138, 128, 256},
        {136, 256, 256}, {66, 256, 512}, {64, 512, 512},  {30, 512, 1024}, {28, 1024, 1024},
        {54, 1024, 512}, {52, 512, 512}, {102, 512, 256}, {100, 256, 256}, {198, 256, 128},
        {196, 128, 128}, {390, 128, 64}, {388, 64, 64}};
    static const double grow[][3] = {
        {56, 1024, 512}, {104, 512, 256}, {200, 256, 128}, {392, 128, 64}};
    double parameters = 64 * 2 + 2, work = 388.0 * 388 * 64 * 2;
    (void)state;
    for (size_t i = 0; i < sizeof conv / sizeof conv[0]; i++) {
        double w = 9 * conv[i][1] * conv[i][2];
        parameters += w + conv[i][2];
        work += w * conv[i][0] * conv[i][0];
    }
    for (size_t i = 0; i < sizeof grow / sizeof grow[0]; i++) {
        double w = grow[i][1] * grow[i][2];
        parameters += 4 * w + grow[i][2];
        work += w * grow[i][0] * grow[i][0]; /* each pixel of the result has one tap */
    }
    const struct row row = {"u-net", parameters, work};
    check_rows(&row, 1, 0);
}

/* DLRM: 187,767,399 rows of 128 (MLPerf Training, DLRM on Criteo terabyte), MLPs 13-512-256-128 and
 * 479-1024-1024-512-256-1, and 27 x 27 products of vectors of 128. */
static void dlrm_by_hand(void **state)
{
    double bottom = 13.0 * 512 + 512 * 256 + 256 * 128;
    double top = 479.0 * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 256 + 256;
    const struct row row = {
        "dlrm", 187767399.0 * 128 + bottom + 512 + 256 + 128 + top + 1024 + 1024 + 512 + 256 + 1,
        bottom + top + 27.0 * 27 * 128};
    (void)state;
    check_rows(&row, 1, 0);
}

/* GNMT of 1,024: products of one sentence of 8 words. LSTM layers (input + 1,024) x 4,096 per word,
 * the first cell of each without a state before it; the first encoder layer twice; attention over 8
 * words; the vocabulary. */
static void gnmt_by_hand(void **state)
{
    double h = 1024, t = 8, gates = 4 * h;
    double layers[] = {h, h, 2 * h, h, h, /* decoder */ h, 2 * h, 2 * h, 2 * h}, work = 0;
    (void)state;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        work += t * layers[i] * gates + (t - 1) * h * gates;
    }
    work += 2 * t * h * h + t * t * h + t * t * h; /* keys and queries, scores, context */
    work += t * h * 32320;
    const struct row row = {"gnmt", 160671297, work};
    check_rows(&row, 1, 0);
}

/* All of them have gradients for all parameters: none is cut off from the loss. */
static void gradients_of_all_parameters(void **state)
{
    static const char *const names[] = {"resnet-50", "inception-v3", "vgg-19",
                                        "u-net",     "gnmt",         "dlrm"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct hv_model_doc doc = {0};
        struct hv_arena arena = {0};
        struct hv_expansion x;
        struct hv_err err = {0};
        open_model(names[i], &doc);
        const struct hv_tensor_graph *g = doc.model->tensors;
        assert_int_equal(hv_expand(g, &arena, &x, &err), HV_OK);
        uint32_t *wanted = hv_arena_new(&arena, uint32_t, g->n_given), loss;
        size_t n = 0;
        for (size_t t = 0; t < g->n_given; t++) {
            if (g->tensors[t].role == HV_TENSOR_PARAMETER) {
                wanted[n++] = x.tensor_of[t];
            }
        }
        uint32_t *gradient = hv_arena_new(&arena, uint32_t, x.prims.n_tensors);
        loss = x.tensor_of[g->ops[g->n_ops - 1].out];
        if (hv_gradient(&x.prims, &loss, 1, wanted, n, gradient, &err) != HV_OK) {
            fail_msg("%s: %s", names[i], err.text);
        }
        for (size_t k = 0; k < n; k++) {
            assert_true(gradient[wanted[k]] != HV_NO_TENSOR);
        }
        hv_arena_free(&arena);
        hv_model_doc_free(&doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_published), cmocka_unit_test(unet_by_hand),
        cmocka_unit_test(dlrm_by_hand), cmocka_unit_test(gnmt_by_hand),
        cmocka_unit_test(gradients_of_all_parameters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
