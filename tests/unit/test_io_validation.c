/* Files of published measurements: both formats give the same rows, rows that are of no use are
 * counted, mistakes are named with their place, and the rows we ship are all read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include "solver/io/own/validation/validation_file.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct hv_device_catalogue devices;

static int set_up(void **state)
{
    (void)state;
    return hv_device_catalogue_read(&devices, NULL) == HV_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    hv_device_catalogue_free(&devices);
    return 0;
}

static enum hv_status read(struct hv_validation *out, const char *text, struct hv_err *err)
{
    struct hv_json json = {0};
    enum hv_status st = hv_json_parse(&json, text, strlen(text), "rows.json", err);
    struct hv_validation_reader *r = hv_validation_reader_new(out, &devices);
    st = st ? st : hv_validation_read(r, &json, "stem", err);
    hv_validation_reader_free(r);
    hv_json_free(&json);
    return st;
}

#define SHAPE                                                                                      \
    "\"layers\": 48, \"hidden\": 6144, \"heads\": 64, \"kv_heads\": 64, \"head_dim\": 96, "        \
    "\"ffn\": 24576, \"gated\": false, \"vocab\": 51200, \"tied_embeddings\": true"
#define PLACE                                                                                      \
    "\"device\": \"A100-SXM-80GB\", \"per_node\": 8, \"intra\": \"NVLink3\", "                     \
    "\"intra_gbps_uni\": 300, \"inter_gbit_per_gpu\": 200"
/* the 22B row of arXiv 2205.05198, table 5 */
#define PLAIN_ROW(more)                                                                            \
    "{\"id\": \"a\", \"verified\": true, \"model\": {" SHAPE                                       \
    ", \"seq\": 2048}, \"system\": {" PLACE ", "                                                   \
    "\"n\": 8}, \"precision\": \"fp16\", \"par\": {\"tp\": 8, \"pp\": 1, \"dp\": 1, \"vpp\": "     \
    "null}, "                                                                                      \
    "\"mbs\": 4, \"gbs\": 4, \"recompute\": \"full\", \"meas\": {\"iter_s\": 1.42}" more "}"
#define PLAIN(more) "{\"meta\": {}, \"rows\": [" PLAIN_ROW(more) "]}"
#define OWN(more)                                                                                  \
    "{\"format\": \"hetviz.validation/1\", \"name\": \"stem\",\n"                                  \
    " \"models\": {\"m\": {" SHAPE "}}, \"systems\": {\"s\": {" PLACE "}},\n"                      \
    " \"rows\": [{\"id\": \"a\", \"model\": \"m\", \"seq\": 2048, \"system\": \"s\", \"n\": 8,\n"  \
    " \"precision\": \"fp16\", \"par\": {\"tp\": 8, \"pp\": 1, \"dp\": 1}, \"mbs\": 4, \"gbs\": "  \
    "4, \"recompute\": \"full\",\n \"iter_s\": 1.42" more "}]}"

/* One kind of device and one kind of node: everything that prices and times depend on. */
static void assert_same_cluster(const struct hv_cluster *x, const struct hv_cluster *y)
{
    assert_int_equal(x->n_groups, 1);
    assert_int_equal(y->n_groups, 1);
    const struct hv_node_group *a = &x->groups[0], *b = &y->groups[0];
    assert_string_equal(a->slots[0].kind->name, b->slots[0].kind->name);
    assert_int_equal(a->n_devices, b->n_devices);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->n_nics, b->n_nics);
    assert_true(a->intra.kind == b->intra.kind && a->nic.kind == b->nic.kind);
    assert_true(a->intra.bytes_per_s == b->intra.bytes_per_s);
    assert_true(a->intra.latency_s == b->intra.latency_s);
    assert_true(a->nic.bytes_per_s == b->nic.bytes_per_s);
    assert_true(a->nic.latency_s == b->nic.latency_s);
    assert_true(hv_node_price_usd_per_h(a, false) == hv_node_price_usd_per_h(b, false));
    assert_true(a->slots[0].kind->memory_bytes == b->slots[0].kind->memory_bytes);
}

static void both_formats_are_one(void **state)
{
    (void)state;
    struct hv_validation a = {0}, b = {0};
    struct hv_err err = {0};
    if (read(&a, PLAIN(""), &err) || read(&b, OWN(""), &err)) {
        fail_msg("%s:%u:%u %s", err.file, err.line, err.col, err.text);
    }
    assert_int_equal(a.n_rows, 1);
    assert_int_equal(b.n_rows, 1);
    const struct hv_validation_row *x = &a.rows[0], *y = &b.rows[0];
    assert_string_equal(x->source, y->source);
    assert_string_equal(x->device, "A100-SXM-80GB");
    assert_true(x->measured_s == 1.42 && y->measured_s == 1.42);
    assert_same_cluster(x->cluster, y->cluster);
    assert_true(x->model->hash == y->model->hash);
    assert_int_equal(x->cluster->n_devices, 8);
    assert_int_equal(x->job.precision, HV_FP16);
    assert_int_equal(x->job.global_batch, 4);
    assert_int_equal(x->grid.tp, 8);
    assert_int_equal(x->grid.recompute, HV_RC_FULL);
    assert_int_equal(x->recompute, HV_ROW_RECOMPUTE_STATED);
    assert_false(x->low_bits || x->experts || x->oom || x->from_flops);
    hv_validation_free(&a);
    hv_validation_free(&b);
}

/* A file names the runtime of its runs; a row of it may name another. */
static void rows_have_the_runtime_of_their_file(void **state)
{
    (void)state;
    struct hv_validation v = {0};
    struct hv_err err = {0};
    assert_int_equal(read(&v,
                          "{\"meta\": {\"runtime\": \"deepspeed\"}, \"rows\": [" PLAIN_ROW(
                              "") "," PLAIN_ROW(", \"runtime\": \"megatron\"") "]}",
                          &err),
                     HV_OK);
    assert_int_equal(v.rows[0].job.runtime, HV_RUNTIME_DEEPSPEED);
    assert_int_equal(v.rows[1].job.runtime, HV_RUNTIME_MEGATRON);
    assert_false(hv_validation_same(&v.rows[0], &v.rows[1]));
    hv_validation_free(&v);
    v = (struct hv_validation){0};
    assert_int_equal(read(&v, OWN(""), &err), HV_OK);
    assert_int_equal(v.rows[0].job.runtime, HV_RUNTIME_HETVIZ);
    hv_validation_free(&v);
    v = (struct hv_validation){0};
    assert_int_equal(read(&v, OWN(", \"runtime\": \"fsdp2\""), &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "fsdp2"));
    hv_validation_free(&v);
}

static void rows_share_what_is_equal(void **state)
{
    (void)state;
    struct hv_validation v = {0};
    assert_int_equal(read(&v, "{\"rows\": [" PLAIN_ROW("") "," PLAIN_ROW("") "]}", NULL), HV_OK);
    assert_int_equal(v.n_rows, 2);
    assert_ptr_equal(v.rows[0].cluster, v.rows[1].cluster);
    assert_ptr_equal(v.rows[0].model, v.rows[1].model);
    assert_int_equal(v.n_clusters, 1);
    assert_true(hv_validation_same(&v.rows[0], &v.rows[1]));
    hv_validation_free(&v);
}

static void figures_and_flags(void **state)
{
    (void)state;
    struct hv_validation v = {0};
    assert_int_equal(read(&v,
                          OWN(", \"mem_gib\": 40, \"mem_meter\": \"device\", "
                              "\"calculon_s\": 1.4, \"table\": \"t\""),
                          NULL),
                     HV_OK);
    assert_float_equal(v.rows[0].measured_bytes, (40 * HV_GIB), 1);
    assert_int_equal(v.rows[0].meter, HV_METER_DEVICE);
    assert_true(v.rows[0].rival_s == 1.4);
    assert_string_equal(v.rows[0].table, "t");
    hv_validation_free(&v);
    /* a run that had no room has no time, whatever stands there */
    assert_int_equal(read(&v, OWN(", \"oom\": true"), NULL), HV_OK);
    assert_true(v.rows[0].oom && isnan(v.rows[0].measured_s));
    hv_validation_free(&v);
    assert_int_equal(read(&v, PLAIN(", \"notes\": \"as nvidia-smi says\", \"recompute\": "), NULL),
                     HV_EINPUT);
    hv_validation_free(&v);
}

/* A row of the plain format with one member replaced or added at its end. */
static void expect_skip(const char *more, const char *why)
{
    struct hv_validation v = {0};
    struct hv_err err = {0};
    char text[4096];
    snprintf(text, sizeof text,
             "{\"rows\": [{\"id\": \"a\", \"model\": {" SHAPE
             ", \"seq\": 2048}, \"system\": {" PLACE ", \"n\": 8}, \"par\": {\"tp\": 8, \"pp\": 1, "
             "\"dp\": 1}, \"mbs\": 4, \"gbs\": 4, %s}]}",
             more);
    if (read(&v, text, &err)) {
        fail_msg("%s: %s", more, err.text);
    }
    assert_int_equal(v.n_rows, 0);
    assert_int_equal(v.n_skipped, 1);
    assert_int_equal(v.skipped[0].n, 1);
    if (!strstr(v.skipped[0].why, why)) {
        fail_msg("%s: %s", more, v.skipped[0].why);
    }
    hv_validation_free(&v);
}

static void useless_rows_are_counted(void **state)
{
    (void)state;
    expect_skip("\"iter_s\": 1, \"verified\": false", "source");
    expect_skip("\"iter_s\": 1, \"dup_of\": \"b\"", "before");
    expect_skip("\"iter_s\": 1, \"incomplete\": \"mbs\"", "not published");
    expect_skip("\"iter_s\": 1, \"overhead_bound\": true", "overheads");
    expect_skip("\"iter_s\": 1, \"kind\": \"lora\"", "LoRA");
    expect_skip("\"meas\": {\"iter_s\": null}", "no measurement");
    struct hv_validation v = {0};
    assert_int_equal(read(&v,
                          "{\"rows\": [{\"id\": \"a\", \"model\": {" SHAPE
                          ", \"seq\": 2048}, \"system\": {" PLACE
                          ", \"n\": 8}, \"par\": {\"tp\": 8, \"pp\": 2, \"dp\": 1}, \"mbs\": 4, "
                          "\"gbs\": 4, \"iter_s\": 1}, {\"id\": \"b\", \"model\": {" SHAPE
                          ", \"seq\": 2048}, \"system\": {\"device\": \"Abacus\", \"n\": 1}, "
                          "\"par\": {\"tp\": 1, \"pp\": 1, \"dp\": 1}, \"mbs\": 4, \"gbs\": 4, "
                          "\"iter_s\": 1}]}",
                          NULL),
                     HV_OK);
    assert_int_equal(v.n_skipped, 2);
    assert_non_null(strstr(v.skipped[0].why, "more devices"));
    assert_non_null(strstr(v.skipped[1].why, "catalogue"));
    hv_validation_free(&v);
}

static void expect_error(const char *text, unsigned line, const char *part)
{
    struct hv_validation v = {0};
    struct hv_err err = {0};
    enum hv_status st = read(&v, text, &err);
    if (st != HV_EINPUT || (line > 0 && err.line != line) || !strstr(err.text, part)) {
        fail_msg("wanted \"%s\" in line %u: %s:%u:%u: %s", part, line, err.file, err.line, err.col,
                 err.text);
    }
    assert_string_equal(err.file, "rows.json");
    assert_true(err.col > 0);
    hv_validation_free(&v);
}

static void mistakes_have_a_place(void **state)
{
    (void)state;
    expect_error("[]", 1, "rows");
    expect_error("{}", 1, "rows");
    expect_error("{\"rows\": 3}", 1, "rows");
    expect_error("{\"rows\": [3]}", 1, "rows[0]");
    expect_error("{\"rows\": [{}]}", 1, "id");
    expect_error("{\"rows\": [{\"id\": \"a\", \"model\": 3}]}", 1, "rows[0].model");
    expect_error("{\"rows\": [{\"id\": \"a\", \"model\": {}, \"system\": {}, \"par\": 1}]}", 1,
                 "rows[0].par");
    expect_error("{\"models\": {\"x\": 1}, \"rows\": [{\"id\": \"a\", \"model\": \"x\"}]}", 1,
                 "models.x");
    expect_error("{\"format\": \"hetviz.validation/2\", \"rows\": []}", 1, "hetviz.validation/1");
    expect_error(OWN(", \"itre_s\": 3"), 5, "iter_s");
    expect_error(OWN(", \"mem_gib\": -1"), 5, "mem_gib");
    expect_error(OWN(", \"oom\": true, \"stage_partition\": [5, 3]"), 5, "stage_partition[1]");
    expect_error(
        "{\"format\": \"hetviz.validation/1\", \"rows\": [{\"id\": \"a\",\n\"model\": \"x\", "
        "\"system\": \"y\", \"par\": {}}]}",
        2, "no \"x\"");
    expect_error(
        "{\"format\": \"hetviz.validation/1\",\n\"models\": {\"x\": {\"layers\": 2, \"hidden\": "
        "64, "
        "\"heads\": 3}}, \"rows\": [{\"id\": \"a\", \"seq\": 8, \"model\": \"x\", \"system\": "
        "\"s\", \"par\": {\"tp\": 1, \"pp\": 1, \"dp\": 1}, \"mbs\": 1, \"gbs\": 1, \"iter_s\": "
        "1}], \"systems\": {\"s\": {\"device\": \"A100-SXM-80GB\", \"n\": 1}}}",
        2, "models.x");
    /* a shape that no model can have is blamed on the model */
    expect_error(
        "{\"rows\": [{\"id\": \"a\",\n\"model\": {\"layers\": 2, \"hidden\": 64, \"heads\": 3, "
        "\"seq\": 8},\n\"system\": {\"device\": \"A100-SXM-80GB\", \"n\": 1}, \"par\": "
        "{\"tp\": 1, \"pp\": 1, \"dp\": 1}, \"mbs\": 1, \"gbs\": 1, \"iter_s\": 1}]}",
        2, "rows[0].model");
}

static const struct hv_validation_row *find(const struct hv_validation *v, const char *id)
{
    for (size_t i = 0; i < v->n_rows; i++) {
        if (strcmp(v->rows[i].id, id) == 0) {
            return &v->rows[i];
        }
    }
    fail_msg("no row %s", id);
    return NULL;
}

static void shipped_rows_are_all_read(void **state)
{
    (void)state;
    struct hv_validation v = {0};
    struct hv_err err = {0};
    if (hv_validation_read_folder(&v, NULL, &devices, &err)) {
        fail_msg("%s: %s", err.file, err.text);
    }
    assert_true(v.n_rows > 600);
    assert_int_equal(v.n_skipped, 0);
    for (size_t i = 0; i < v.n_rows; i++) {
        const struct hv_validation_row *r = &v.rows[i];
        if (isnan(r->measured_s) && isnan(r->measured_bytes) && !r->oom) {
            fail_msg("%s says nothing", r->id);
        }
    }
    /* arXiv 2104.04473, table 1, 76B: 140 TFLOP/s printed, so the time is computed from it */
    const struct hv_validation_row *r = find(&v, "sc21-t1-76B");
    assert_true(r->from_flops);
    assert_float_equal(r->measured_s, 16.06, 0.01);
    assert_int_equal(r->grid.chunks, 3);
    assert_int_equal(r->cluster->n_devices, 1024);
    hv_validation_free(&v);
}

/* DeepSpeed's GPT-2: embedding and a transpose, the blocks, then transpose, norm, head, cast. */
static void partitions_count_the_wrappers_around_the_blocks(void **state)
{
    (void)state;
    struct hv_validation v = {0};
    struct hv_err err = {0};
    if (hv_validation_read_folder(&v, NULL, &devices, &err)) {
        fail_msg("%s: %s", err.file, err.text);
    }
    const struct hv_validation_row *r = find(&v, "amp-homo-04"); /* [0, 9, 15, 21, 30] */
    const int counts[] = {7, 6, 6, 5};
    assert_memory_equal(r->grid.counts, counts, sizeof counts);
    assert_true(r->grid.late_sync);
    assert_false(find(&v, "dgxc-gpt3-175b-bf16-128")->grid.late_sync);
    hv_validation_free(&v);
}

#define MIXED(list)                                                                                \
    "{\"rows\": [{\"id\": \"a\", \"model\": {" SHAPE ", \"seq\": 2048}, \"system\": "              \
    "{\"per_node\": 4, \"inter_gbit_per_gpu\": 12.5, \"mixed\": " list                             \
    "}, \"precision\": \"fp16\", \"par\": {\"tp\": 1, \"pp\": 4, \"dp\": 4}, \"mbs\": 1, "         \
    "\"gbs\": 32, \"meas\": {\"iter_s\": 9}}]}"

static void nodes_of_several_kinds(void **state)
{
    (void)state;
    struct hv_validation v = {0};
    struct hv_err err = {0};
    if (read(&v,
             MIXED("[{\"device\": \"V100-SXM2-16GB\", \"n\": 12, \"inter_gbit_per_gpu\": 2.5}, "
                   "{\"device\": \"T4-16GB\", \"n\": 4}]"),
             &err)) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(v.n_rows, 1);
    const struct hv_validation_row *r = &v.rows[0];
    assert_string_equal(r->device, "V100-SXM2-16GB+T4-16GB");
    assert_true(r->mixed);
    assert_int_equal(r->cluster->n_devices, 16);
    assert_int_equal(r->cluster->n_groups, 2);
    assert_float_equal(r->cluster->groups[0].nic.bytes_per_s, 1.25e9, 1);
    assert_float_equal(r->cluster->groups[1].nic.bytes_per_s, 6.25e9, 1);
    hv_validation_free(&v);
    assert_int_equal(read(&v, MIXED("[{\"device\": \"T4-16GB\"}]"), &err), HV_OK);
    assert_int_equal(v.n_skipped, 1);
    hv_validation_free(&v);
    assert_int_not_equal(read(&v, MIXED("[3]"), &err), HV_OK);
    assert_non_null(strstr(err.text, "mixed[0]"));
    hv_validation_free(&v);
}

static void folders_that_are_not_there(void **state)
{
    (void)state;
    struct hv_validation v = {0};
    struct hv_err err = {0};
    assert_int_equal(hv_validation_read_folder(&v, "no/such/folder", &devices, &err), HV_EIO);
    assert_non_null(strstr(err.text, "no/such/folder"));
    hv_validation_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_formats_are_one),
        cmocka_unit_test(rows_have_the_runtime_of_their_file),
        cmocka_unit_test(rows_share_what_is_equal),
        cmocka_unit_test(figures_and_flags),
        cmocka_unit_test(useless_rows_are_counted),
        cmocka_unit_test(mistakes_have_a_place),
        cmocka_unit_test(shipped_rows_are_all_read),
        cmocka_unit_test(folders_that_are_not_there),
        cmocka_unit_test(nodes_of_several_kinds),
        cmocka_unit_test(partitions_count_the_wrappers_around_the_blocks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
