/* Workspaces: shipped ones, inline ones, names beside the file, writing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/io/own/workspace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void shipped(void **state)
{
    (void)state;
    static const char *const names[] = {"mixed",       "two-generations", "spot",
                                        "two-regions", "thousand",        "moe"};
    for (size_t i = 0; i < HV_COUNT(names); i++) {
        struct hv_workspace w;
        struct hv_inputs in;
        struct hv_err e = {0};
        if (hv_workspace_read(&w, names[i], &e) || hv_workspace_inputs(&w, &in, &e)) {
            fail_msg("%s", e.text);
        }
        assert_string_equal(w.name, names[i]);
        assert_int_equal(w.n_strategies, 6);
        /* weights, gradients and optimizer must fit the memory of the whole cluster */
        double bytes = 0, need = 0;
        for (uint32_t d = 0; d < in.cluster.cluster->n_devices; d++) {
            bytes += hv_cluster_device(in.cluster.cluster, d).kind->memory_bytes;
        }
        need = 18 * hv_model_parameters(in.model.model);
        assert_true(need < 0.8 * bytes);
        hv_inputs_free(&in);
        hv_workspace_free(&w);
    }
}

static enum hv_status build(struct hv_workspace *w, const char *text, struct hv_err *e)
{
    struct hv_json j = {0};
    enum hv_status st = hv_json_parse(&j, text, strlen(text), "w.json", e);
    return st ? st : hv_workspace_build(w, j, NULL, e);
}

#define TOP "{\"format\": \"hetviz.workspace/1\",\n"

static void inline_documents(void **state)
{
    (void)state;
    struct hv_workspace w;
    struct hv_inputs in;
    struct hv_err e = {0};
    if (build(&w,
              TOP "\"cluster\": {\"format\": \"hetviz.cluster/1\", \"nodes\": [{\"name\": \"a\", "
                  "\"device\": \"T4-16GB\"}]}, \"model\": \"bert-large\", \"job\": {\"format\": "
                  "\"hetviz.job/1\", \"global_batch\": 7}, \"strategies\": [\"auto\", {\"id\": "
                  "\"uniform\", \"options\": {\"tp\": 2}}], \"plans\": [\"plans/a.json\", {}], "
                  "\"jobs\": [{\"name\": \"x\", \"model\": \"bert-large\"}]}",
              &e) ||
        hv_workspace_inputs(&w, &in, &e)) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(in.job.job.global_batch, 7);
    assert_int_equal(in.job.job.sequence, 512);
    assert_int_equal(w.n_plans, 2);
    assert_string_equal(w.plans[0].name, "plans/a.json");
    assert_non_null(w.plans[1].inline_);
    assert_string_equal(w.strategies[1].id, "uniform");
    assert_non_null(json_object_get(w.strategies[1].options, "tp"));
    assert_true(w.jobs[0].weight == 1);
    /* its jobs are the queue of the run, and its own tree stays as it was */
    struct hv_queued_job *queue = NULL;
    size_t n = 0;
    assert_int_equal(hv_queue_read(&in, &queue, &n, &e), HV_OK);
    assert_int_equal(n, 1);
    assert_string_equal(queue[0].name, "x");
    assert_non_null(queue[0].own.model.model);
    hv_queue_free(queue, n);
    assert_null(json_object_get(json_object_get(w.json.root, "job"), "jobs"));
    hv_inputs_free(&in);
    hv_workspace_free(&w);
}

static enum hv_status write_tree(const char *path, const json_t *tree, struct hv_err *e)
{
    struct hv_str text = {0};
    hv_json_write(&text, tree, true);
    enum hv_status st = hv_file_write(path, hv_str_cstr(&text), text.n, e);
    hv_str_free(&text);
    return st;
}

static void names_beside_the_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/hetviz-test-XXXXXX", path[256], job[256];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/workspace.json", folder);
    snprintf(job, sizeof job, "%s/mine.json", folder);
    static const char text[] = TOP "  \"cluster\": \"homogeneous\",\n  \"model\": \"gpt2-xl\",\n  "
                                   "\"job\": \"mine\",\n  \"jobs\": [{\"name\": \"x\", "
                                   "\"job\": \"mine\"}],\n  \"x-note\": 0.1\n}\n";
    static const char mine[] = "{\"format\": \"hetviz.job/1\", \"global_batch\": 3}";
    struct hv_err e = {0};
    assert_int_equal(hv_file_write(path, text, strlen(text), &e), HV_OK);
    assert_int_equal(hv_file_write(job, mine, strlen(mine), &e), HV_OK);
    struct hv_workspace w, again;
    struct hv_inputs in;
    if (hv_workspace_read(&w, folder, &e) || hv_workspace_inputs(&w, &in, &e) ||
        write_tree(path, w.json.root, &e) || hv_workspace_read(&again, path, &e)) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(in.job.job.global_batch, 3);
    assert_string_equal(in.job.path, job);
    const json_t *entry = json_array_get(json_object_get(in.job.json.root, "jobs"), 0);
    assert_string_equal(json_string_value(json_object_get(entry, "job")), job);
    assert_true(json_equal(w.json.root, again.json.root));
    hv_inputs_free(&in);
    hv_workspace_free(&w);
    hv_workspace_free(&again);
    unlink(path);
    unlink(job);
    rmdir(folder);
}

static const struct {
    const char *text, *says;
} bad[] = {
    {TOP "\"cluster\": 3}", "cluster"},
    {TOP "\"strategy\": []}", "strategies"},
    {TOP "\"strategies\": [{\"options\": {}}]}", "id"},
    {TOP "\"strategies\": [{\"id\": \"a\", \"options\": []}]}", "strategies[0].options"},
    {TOP "\"jobs\": [{\"name\": \"a\"}, {\"name\": \"a\"}]}", "jobs[1].name"},
    {TOP "\"plans\": \"x\"}", "plans"},
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(bad); i++) {
        struct hv_workspace w;
        struct hv_err e = {0};
        assert_int_equal(build(&w, bad[i].text, &e), HV_EINPUT);
        if (e.line != 2 || !strstr(e.text, bad[i].says)) {
            fail_msg("row %zu: %u:%u: %s", i, e.line, e.col, e.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped), cmocka_unit_test(inline_documents),
        cmocka_unit_test(names_beside_the_file), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
