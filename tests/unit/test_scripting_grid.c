/* plan/grid builds exactly the plans of the strategy `manual`: both are written out and compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scripting/worker/run.h"
#include "solver/io/own/plan/write.h"
#include "solver/plan/grid.h"
#include <stdio.h>
#include <string.h>

static const char cluster_text[] = "{\"format\": \"hetviz.cluster/1\", \"name\": \"c\", \"nodes\": "
                                   "[{\"name\": \"n\", \"count\": 24,"
                                   " \"device\": \"H100-SXM-80GB\", \"devices\": 8}]}";
static const char job_text[] =
    "{\"format\": \"hetviz.job/1\", \"global_batch\": 192, \"sequence\": "
    "2048, \"precision\": \"bf16\"}";

static struct hv_json parse(const char *text)
{
    struct hv_json j = {0};
    assert_int_equal(hv_json_parse(&j, text, strlen(text), "test", NULL), HV_OK);
    return j;
}

/* The plan of the strategy as it is written when built again, so that defaults are left out. */
static json_t *manual(const struct hv_inputs *in, const struct hv_plugins *plugins,
                      const char *options)
{
    json_t *o = json_loads(options, 0, NULL);
    assert_non_null(o);
    json_object_set_new(o, "allow_oom", json_true());
    const struct hv_run_request r = {
        .inputs = in, .plugins = plugins, .strategy = "manual", .options = o};
    struct hv_run_result out;
    struct hv_err err = {0};
    if (hv_run_strategy(&r, &out, &err) != HV_OK) {
        fail_msg("%s: %s", options, err.text);
    }
    struct hv_json json = {0};
    struct hv_plan_doc doc;
    hv_json_wrap(&json, json_incref(out.plan), "plan");
    if (hv_plan_doc_build(&doc, json, in->cluster.cluster, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    json_t *tree = hv_plan_to_json(doc.plan, NULL, NULL, NULL);
    json_object_del(tree, "strategy");
    hv_plan_doc_free(&doc);
    hv_run_result_free(&out);
    json_decref(o);
    return tree;
}

static json_t *grid(const struct hv_inputs *in, const struct hv_grid *row)
{
    struct hv_grid g = *row;
    g.grad_bytes = hv_job_grad_bytes(&in->job.job);
    struct hv_plan *p = NULL;
    struct hv_err err = {0};
    if (hv_plan_grid(in->cluster.cluster, in->job.job.precision, in->model.model->n_blocks, &g, &p,
                     &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    json_t *tree = hv_plan_to_json(p, NULL, NULL, NULL);
    hv_plan_unref(p);
    return tree;
}

/* clang-format off */
static const struct {
    const char *model, *options;
    struct hv_grid g;
} rows[] = {
    {"gpt3-175b", "{\"tp\": 8, \"pp\": 8, \"dp\": 3}", {.tp = 8, .pp = 8, .dp = 3}},
    {"gpt3-175b", "{\"tp\": 8, \"pp\": 8, \"dp\": 3, \"chunks\": 6, \"micro_batch\": 2, \"sequence_parallel\": true}",
     {.tp = 8, .pp = 8, .dp = 3, .chunks = 6, .micro_batch = 2, .sequence_parallel = true}},
    {"gpt3-175b", "{\"tp\": 4, \"pp\": 16, \"dp\": 3, \"chunks\": 3, \"recompute\": \"full\"}",
     {.tp = 4, .pp = 16, .dp = 3, .chunks = 3, .recompute = HV_RC_FULL}},
    {"gpt3-175b", "{\"tp\": 8, \"pp\": 7, \"dp\": 3, \"recompute\": \"selective\"}",
     {.tp = 8, .pp = 7, .dp = 3, .recompute = HV_RC_CORE}},
    {"llama-3.1-405b", "{\"tp\": 8, \"pp\": 16, \"dp\": 1}", {.tp = 8, .pp = 16, .dp = 1}},
    {"llama-3.1-405b", "{\"tp\": 8, \"pp\": 8, \"dp\": 1, \"cp\": 2, \"chunks\": 2, \"zero\": 1}",
     {.tp = 8, .pp = 8, .dp = 1, .cp = 2, .cp_layout = HV_CP_ZIGZAG, .chunks = 2, .zero = 1}},
    {"llama-3-8b", "{\"tp\": 1, \"pp\": 1, \"dp\": 192, \"zero\": 3}", {.dp = 192, .zero = 3}},
    {"llama-3-8b", "{\"tp\": 1, \"pp\": 2, \"dp\": 1, \"chunks\": 17}", {.pp = 2, .chunks = 17}},
    {"llama-3-8b", "{\"tp\": 2, \"pp\": 4, \"dp\": 6, \"cp\": 4, \"sequence_parallel\": true, \"zero\": 2}",
     {.tp = 2, .pp = 4, .dp = 6, .cp = 4, .cp_layout = HV_CP_ZIGZAG, .sequence_parallel = true, .zero = 2}},
    {"mixtral-8x7b", "{\"tp\": 1, \"pp\": 4, \"dp\": 16, \"ep\": 8, \"chunks\": 8}",
     {.pp = 4, .dp = 16, .ep = 8, .chunks = 8}},
    {"mixtral-8x7b", "{\"tp\": 2, \"pp\": 2, \"dp\": 16, \"ep\": 4, \"cp\": 2, \"cp_layout\": \"contiguous\"}",
     {.tp = 2, .pp = 2, .dp = 16, .ep = 4, .cp = 2}},
    {"qwen3-235b-a22b", "{\"tp\": 2, \"pp\": 12, \"dp\": 8, \"ep\": 8, \"zero\": 1}",
     {.tp = 2, .pp = 12, .dp = 8, .ep = 8, .zero = 1}},
    {"gpt3-175b", "{\"tp\": 8, \"pp\": 4, \"dp\": 2, \"schedule\": \"zb-1p\", \"sequence_parallel\": true}",
     {.tp = 8, .pp = 4, .dp = 2, .schedule = "zb-1p", .sequence_parallel = true}},
    {"gpt3-175b", "{\"tp\": 1, \"pp\": 6, \"dp\": 32, \"layers\": \"20,10,10,10,20,26\", \"sequence_parallel\": true}",
     {.pp = 6, .dp = 32, .counts = (const int[]){20, 10, 10, 10, 20, 26}, .sequence_parallel = true}},
};
/* clang-format on */

static void same_plans(void **state)
{
    (void)state;
    struct hv_err err = {0};
    struct hv_plugins plugins;
    assert_int_equal(hv_plugins_read(&plugins, &err), HV_OK);
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_inputs in = {0};
        struct hv_grid g = rows[i].g;
        g.global_batch = 192;
        if (hv_device_catalogue_read(&in.devices, &err) ||
            hv_cluster_doc_build(&in.cluster, parse(cluster_text), &in.devices, &err) ||
            hv_model_doc_read(&in.model, rows[i].model, &err) ||
            hv_job_doc_build(&in.job, parse(job_text), 2048, &err)) {
            fail_msg("%s", err.text);
        }
        json_t *a = manual(&in, &plugins, rows[i].options), *b = grid(&in, &g);
        if (!json_equal(a, b)) {
            struct hv_str text = {0};
            hv_json_write(&text, a, true);
            hv_str_adds(&text, "but the grid is\n");
            hv_json_write(&text, b, true);
            print_error("%s\n", hv_str_cstr(&text));
            hv_str_free(&text);
            fail_msg("row %zu: %s", i, rows[i].options);
        }
        json_decref(a);
        json_decref(b);
        hv_inputs_free(&in);
    }
    hv_plugins_free(&plugins);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
