/*
 * Targets: each property of the table by a plan that has it, exports read back by the importers,
 * and ranks by the rule of plans (dp slowest, then cp, then tp fastest; stages slowest of all).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/io/export/target/export.h"
#include "solver/plan/grid.h"
#include "tests/plan_fixture.h"
#include "tests/unit/import_bench.h"

/* ---- what targets can say ---------------------------------------------------------------------
 */

#define BASE   "\"tp\":2,\"dp\":2"
#define PLAIN0 "\"layers\":[0,4]," BASE
#define PLAIN1 "\"layers\":[4,8]," BASE

/** A plan of two stages that has one property more than plain stages of equal degrees. */
static const struct {
    enum hv_says what;
    const char *stage0, *stage1, *devices1, *rest; /**< rest: of the plan */
} broken[] = {
    {HV_SAYS_STAGES, PLAIN0, PLAIN1, "a[1].*", ""},
    {HV_SAYS_UNEVEN, "\"layers\":[0,3]," BASE, "\"layers\":[3,8]," BASE, "a[1].*", ""},
    {HV_SAYS_HALVES, "\"layers\":[0,3.5]," BASE, "\"layers\":[3.5,8]," BASE, "a[1].*", ""},
    {HV_SAYS_CHUNKS, "\"layers\":[[0,2],[4,6]]," BASE, "\"layers\":[[2,4],[6,8]]," BASE, "a[1].*",
     ",\"schedule\":{\"name\":\"interleaved\"}"},
    {HV_SAYS_STAGE_DEGREES, PLAIN0, "\"layers\":[4,8],\"tp\":4", "a[1].*", ""},
    {HV_SAYS_STAGE_DEGREES, PLAIN0, PLAIN1 ",\"sequence_parallel\":true", "a[1].*", ""},
    {HV_SAYS_STAGE_DP, PLAIN0, "\"layers\":[4,8],\"tp\":4", "a[1].*", ""},
    {HV_SAYS_LAYER_DEGREES, PLAIN0, PLAIN1 ",\"degrees\":[{\"layers\":[4,6],\"tp\":4,\"dp\":1}]",
     "a[1].*", ""},
    {HV_SAYS_KINDS, PLAIN0, PLAIN1, "m[0].*", ""},
    {HV_SAYS_TENSOR_GRIDS, "\"layers\":[0,4],\"tp\":4",
     "\"layers\":[4,8],\"tp\":{\"scheme\":\"2d\",\"degree\":4}", "a[1].*", ""},
    {HV_SAYS_STAGE_RECOMPUTE, PLAIN0, PLAIN1 ",\"recompute\":\"full\"", "a[1].*", ""},
    {HV_SAYS_LAYER_RECOMPUTE, PLAIN0, PLAIN1 ",\"recompute\":[\"none\",\"full\",\"none\",\"none\"]",
     "a[1].*", ""},
    {HV_SAYS_RECOMPUTE, PLAIN0, PLAIN1 ",\"recompute\":\"qkv+up\"", "a[1].*", ""},
    {HV_SAYS_SHARES, PLAIN0, PLAIN1 ",\"shares\":[1,3]", "a[1].*", ""},
    {HV_SAYS_EXPERTS, PLAIN0, PLAIN1 ",\"ep\":2", "a[1].*", ""},
    {HV_SAYS_EXPERT_PLACES, PLAIN0, PLAIN1 ",\"ep\":2,\"moe\":{\"owners\":[1,0]}", "a[1].*", ""},
    {HV_SAYS_CAPACITY, PLAIN0, PLAIN1 ",\"ep\":2,\"moe\":{\"capacity_factor\":1.25}", "a[1].*", ""},
    {HV_SAYS_ORDER, PLAIN0, PLAIN1 ",\"in_flight\":1", "a[1].*", ""},
    {HV_SAYS_SLICES, PLAIN0, PLAIN1, "a[1].*", ",\"schedule\":{\"name\":\"seq1f1b\",\"slices\":2}"},
    {HV_SAYS_SYNC, PLAIN0, PLAIN1, "a[1].*", ",\"sync\":{\"kind\":\"ps\"}"},
    {HV_SAYS_FORM, PLAIN0 ",\"embedding\":false", PLAIN1 ",\"embedding\":true", "a[1].*", ""},
    {HV_SAYS_SCHEDULE, PLAIN0, PLAIN1, "a[1].*", ",\"schedule\":{\"name\":\"chimera\"}"},
    {HV_SAYS_ZERO, PLAIN0 ",\"zero\":2", PLAIN1 ",\"zero\":2", "a[1].*", ""},
    {HV_SAYS_CP, PLAIN0, "\"layers\":[4,8],\"tp\":2,\"cp\":{\"scheme\":\"rsa\",\"degree\":2}",
     "a[1].*", ""},
    {HV_SAYS_OFFLOAD, PLAIN0, PLAIN1 ",\"offload\":[{\"what\":\"activations\"}]", "a[1].*", ""},
};

static struct hv_plan_doc plan_of(struct hv_cluster *c, const char *text)
{
    struct hv_json json;
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    if (hv_json_parse(&json, text, strlen(text), "plan", &err) != HV_OK ||
        hv_plan_doc_build(&doc, json, c, &err) != HV_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    return doc;
}

/** True where the property is beyond the limits; its stage and text are then given. */
static bool beyond(const struct hv_plan *p, const struct hv_says_limits *can, enum hv_says what)
{
    struct hv_arena a = {0};
    struct hv_unsaid *found = NULL;
    size_t n = hv_plan_beyond(p, can, &a, &found);
    bool has = false;
    for (size_t i = 0; i < n; i++) {
        if (found[i].what == what) {
            struct hv_str text = {0};
            hv_unsaid_text(p, &found[i], &text);
            bool placed = found[i].stage == HV_UNSAID_PLAN || strstr(text.p, "stage ") == text.p;
            assert_true(placed && found[i].key != NULL && found[i].key[0] != '\0');
            hv_str_free(&text);
            has = true;
        }
    }
    hv_arena_free(&a);
    return has;
}

static bool unsaid(const struct hv_plan *p, enum hv_target_id t, enum hv_says what)
{
    return beyond(p, &hv_target_row(t)->can, what);
}

/** The lists of a row that belong to the properties behind HV_SAYS_SCHEDULE: none of them has what
 * the plans above have, except of targets without that limit. */
static bool row_says(const struct hv_says_limits *can, enum hv_says what)
{
    switch ((int)what) {
    case HV_SAYS_SCHEDULE:
        return can->schedules == NULL || can->schedules[0] == '\0'; /* no stages at all */
    case HV_SAYS_ZERO:
        return can->zero == NULL || hv_target_list_has(can->zero, "2");
    case HV_SAYS_CP:
        return can->cp == NULL;
    case HV_SAYS_RECOMPUTE:
        return can->recompute == NULL;
    case HV_SAYS_OFFLOAD:
        return can->offload == NULL;
    default:
        return (can->says & HV_SAYS_BIT(what)) != 0;
    }
}

/** One property of a plan against the limits of a row. */
static void check_limits(const struct hv_plan *p, enum hv_says what, const char *name,
                         const struct hv_says_limits *can)
{
    bool said = !beyond(p, can, what);
    if (said != row_says(can, what)) {
        fail_msg("%s and %s: %s", name, hv_says_name(what), said ? "not noticed" : "refused");
    }
}

static void every_property_is_checked(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cluster();
    for (size_t i = 0; i < HV_COUNT(broken); i++) {
        struct hv_str text = {0};
        hv_str_addf(
            &text,
            "{\"format\":\"hetviz.plan/1\",\"micro_batch\":4,\"replicas\":[{\"micro_batches\":"
            "2,\"stages\":[{\"devices\":\"a[0].*\",%s},{\"devices\":\"%s\",%s}]}]%s}",
            broken[i].stage0, broken[i].devices1, broken[i].stage1, broken[i].rest);
        struct hv_plan_doc doc = plan_of(c, hv_str_cstr(&text));
        for (int t = 0; t < HV_TARGET_N; t++) {
            check_limits(doc.plan, broken[i].what, hv_target_name((enum hv_target_id)t),
                         &hv_target_row((enum hv_target_id)t)->can);
        }
        for (int r = 0; r < HV_RUNTIME_N; r++) {
            check_limits(doc.plan, broken[i].what, hv_runtime_name((enum hv_runtime)r),
                         &hv_runtime_row((enum hv_runtime)r)->can);
        }
        hv_plan_doc_free(&doc);
        hv_str_free(&text);
    }
    hv_cluster_unref(c);
}

static void pipelines_that_differ(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cluster();
    struct hv_plan_doc doc = plan_of(
        c, "{\"format\":\"hetviz.plan/1\",\"micro_batch\":2,\"replicas\":["
           "{\"micro_batches\":2,\"stages\":[{\"devices\":\"a[0].*\",\"layers\":[0,8],\"tp\":4}]},"
           "{\"micro_batches\":2,\"stages\":[{\"devices\":\"a[1].*\",\"layers\":[0,8],\"tp\":2,"
           "\"dp\":2}]}]}");
    assert_true(unsaid(doc.plan, HV_TARGET_MEGATRON, HV_SAYS_REPLICAS));
    assert_true(unsaid(doc.plan, HV_TARGET_FLAGSCALE, HV_SAYS_REPLICAS));
    assert_true(hv_target_says(HV_TARGET_SLURM, doc.plan));
    assert_int_equal(hv_plan_data_ranks(doc.plan), 3);
    hv_plan_doc_free(&doc);
    hv_cluster_unref(c);
}

/** Accelerate's launcher numbers ranks node by node; it has no place for recomputation but FSDP's.
 */
static void accelerate_knows_nodes(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cluster();
    static const struct {
        const char *devices, *rest;
        enum hv_says what; /**< HV_SAYS_N: all is said */
    } rows[] = {{"\"a[0-1].*\"", "\"zero\":3,\"dp\":8", HV_SAYS_N},
                {"[\"a[1].*\",\"a[0].*\"]", "\"zero\":3,\"dp\":8", HV_SAYS_N},
                {"[\"a[0].0-1\",\"a[1].0-1\"]", "\"zero\":3,\"dp\":4", HV_SAYS_N},
                {"[\"a[0].*\",\"a[1].0-1\"]", "\"zero\":3,\"dp\":6", HV_SAYS_PLACES},
                {"[\"a[0].0-1\",\"a[1].0-1\",\"a[0].2-3\"]", "\"zero\":3,\"dp\":6", HV_SAYS_PLACES},
                {"\"a[0-1].*\"", "\"zero\":3,\"dp\":8,\"recompute\":\"full\"", HV_SAYS_N},
                {"\"a[0-1].*\"", "\"dp\":8,\"recompute\":\"full\"", HV_SAYS_RECOMPUTE},
                {"\"a[0-1].*\"",
                 "\"dp\":8,\"offload\":[{\"what\":\"weights\"},{\"what\":\"optimizer\"}]",
                 HV_SAYS_OFFLOAD}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_str text = {0};
        hv_str_addf(
            &text,
            "{\"format\":\"hetviz.plan/1\",\"micro_batch\":24,\"replicas\":[{\"micro_batches\":"
            "1,\"stages\":[{\"devices\":%s,\"layers\":[0,8],%s}]}]}",
            rows[i].devices, rows[i].rest);
        struct hv_plan_doc doc = plan_of(c, hv_str_cstr(&text));
        bool all = hv_target_says(HV_TARGET_ACCELERATE, doc.plan);
        if (rows[i].what == HV_SAYS_N ? !all
                                      : !unsaid(doc.plan, HV_TARGET_ACCELERATE, rows[i].what)) {
            fail_msg("%s %s", rows[i].devices, rows[i].rest);
        }
        hv_plan_doc_free(&doc);
        hv_str_free(&text);
    }
    hv_cluster_unref(c);
}

static void names_are_found(void **state)
{
    (void)state;
    for (int t = 0; t < HV_TARGET_N; t++) {
        enum hv_target_id found;
        assert_true(hv_target_find(hv_target_name((enum hv_target_id)t), &found));
        assert_int_equal(found, t);
        assert_true(hv_target_row(found)->source[0] != '\0');
    }
    assert_true(hv_target_list_has("a bc", "bc") && !hv_target_list_has("a bc", "b"));
    assert_true(hv_target_list_has(NULL, "x") && !hv_target_list_has("", "x"));
}

/* ---- exports and imports ----------------------------------------------------------------------
 */

static const char cluster_text[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":16,"
    "\"device\":\"H100-SXM-80GB\",\"devices\":8,\"x-nodes\":\"h0,h1,h2,h3,h4,h5,h6,h7,h8,h9,h10,"
    "h11,h12,h13,h14,h15\"}]}";

/** A random grid that a target may say. */
struct drawn {
    struct hv_grid grid;
    int counts[16];
};

static void draw(struct hv_rng *r, bool stages, const int *zero, int n_zero, struct drawn *d)
{
    static const int degrees[] = {1, 2, 4};
    *d = (struct drawn){0};
    struct hv_grid *g = &d->grid;
    g->tp = degrees[hv_rng_below(r, 3)];
    g->pp = stages ? degrees[1 + hv_rng_below(r, 2)] : 1;
    g->dp = degrees[hv_rng_below(r, 3)];
    g->cp = 1;
    g->chunks = stages && hv_rng_below(r, 2) == 0 ? 2 : 1;
    g->micro_batch = 1 + (int)hv_rng_below(r, 2);
    g->global_batch = (int64_t)g->dp * g->micro_batch * g->pp * 4;
    g->zero = zero[hv_rng_below(r, (uint64_t)n_zero)];
    g->recompute = hv_rng_below(r, 2) == 0 ? HV_RC_NONE : HV_RC_FULL;
    g->schedule = g->chunks > 1 ? "interleaved" : "1f1b";
    int parts = g->pp * g->chunks, left = 32;
    for (int i = 0; i < parts; i++) {
        int most = left - (parts - 1 - i);
        d->counts[i] =
            i + 1 == parts ? left : 1 + (int)hv_rng_below(r, (uint64_t)(most < 6 ? most : 6));
        left -= d->counts[i];
    }
    g->counts = d->counts;
}

static const char *file_of(const struct hv_export *x, const char *name)
{
    for (size_t i = 0; i < x->files.n; i++) {
        if (strcmp(x->files.items[i].name, name) == 0) {
            return hv_str_cstr(&x->files.items[i].text);
        }
    }
    fail_msg("no file %s", name);
    return NULL;
}

static double option(const json_t *layout, const char *key, double usual)
{
    const json_t *v = json_object_get(layout, key);
    return json_is_number(v) ? json_number_value(v) : usual;
}

/** Degrees, layers, recomputation and batch of the import are those of the grid. `dp` is left out
 * where the file does not say how many ranks there are. */
static void same_layout(const struct import *x, const struct drawn *d, bool layers, bool dp)
{
    const json_t *layout = hv_import_layout(x->im), *job = hv_import_job(x->im);
    const struct hv_grid *g = &d->grid;
    assert_non_null(layout);
    assert_true(option(layout, "tp", 1) == g->tp && option(layout, "pp", 1) == g->pp);
    assert_true(option(layout, "zero", 0) == g->zero || g->dp == 1); /* one rank shards nothing */
    assert_true(json_integer_value(json_object_get(job, "global_batch")) == g->global_batch);
    if (dp) {
        assert_true(option(layout, "dp", 1) == g->dp);
    }
    const char *again = json_string_value(json_object_get(layout, "recompute"));
    assert_string_equal(again != NULL ? again : "none",
                        g->recompute == HV_RC_FULL ? "full" : "none");
    struct hv_str counts = {0};
    for (int i = 0; layers && i < g->pp * g->chunks; i++) {
        hv_str_addf(&counts, "%s%d", i > 0 ? "," : "", d->counts[i]);
    }
    const char *written = json_string_value(json_object_get(layout, "layers"));
    if (layers && g->pp > 1) {
        assert_true(option(layout, "chunks", 1) == g->chunks);
        assert_string_equal(written != NULL ? written : "", hv_str_cstr(&counts));
    }
    hv_str_free(&counts);
}

static void round_trips(void **state)
{
    (void)state;
    static const int none_one[] = {0, 1}, sharded[] = {0, 2, 3};
    static const struct {
        enum hv_target_id target;
        const char *file, *format;
        bool stages, layers, dp, batch;
        const int *zero;
        int n_zero;
    } rows[] = {
        {HV_TARGET_MEGATRON, "megatron.args", "megatron_args", true, true, false, true, none_one,
         2},
        {HV_TARGET_BRIDGE, "overrides.yaml", "megatron_yaml", true, true, false, true, none_one, 2},
        {HV_TARGET_DEEPSPEED, "ds_config.json", "deepspeed", false, false, true, true, none_one, 2},
        {HV_TARGET_ACCELERATE, "accelerate.yaml", "accelerate_yaml", false, false, true, false,
         sharded, 3},
    };
    struct hv_rng r = {0};
    hv_rng_seed(&r, 24);
    struct hv_json json;
    struct hv_cluster_doc cluster;
    struct hv_err err = {0};
    assert_int_equal(hv_json_parse(&json, cluster_text, strlen(cluster_text), "c", &err), HV_OK);
    assert_int_equal(hv_cluster_doc_build(&cluster, json, &import_devices, &err), HV_OK);
    struct hv_model_doc model;
    assert_int_equal(hv_model_doc_read(&model, "llama-3-8b", &err), HV_OK);
    for (int i = 0; i < 200; i++) {
        size_t k = (size_t)i % HV_COUNT(rows);
        struct drawn d;
        struct hv_plan *plan = NULL;
        struct hv_export files;
        struct hv_verdict verdict = {0};
        draw(&r, rows[k].stages, rows[k].zero, rows[k].n_zero, &d);
        if (rows[k].target == HV_TARGET_ACCELERATE && (d.grid.zero == 0 || d.grid.dp == 1)) {
            d.grid.recompute = HV_RC_NONE; /* a setting of FSDP */
        }
        struct hv_job job = hv_job_default(8192);
        job.global_batch = d.grid.global_batch;
        assert_int_equal(hv_plan_grid(cluster.cluster, HV_BF16, 32, &d.grid, &plan, &err), HV_OK);
        const struct hv_export_source s = {plan,     model.model,       &job,
                                           &verdict, cluster.json.root, "p"};
        if (hv_export_plan(&s, rows[k].target, &files, &err) != HV_OK) {
            fail_msg("%s: %s", hv_target_name(rows[k].target), err.text);
        }
        struct import x = import_one(rows[k].format, file_of(&files, rows[k].file));
        struct drawn seen = d;
        if (!rows[k].batch) { /* Accelerate takes it from the script */
            seen.grid.global_batch =
                json_integer_value(json_object_get(hv_import_job(x.im), "global_batch"));
        }
        assert_string_equal(json_string_value(json_object_get(hv_import_job(x.im), "precision")),
                            "bf16");
        same_layout(&x, &seen, rows[k].layers, rows[k].dp);
        import_free(&x);
        hv_export_free(&files);
        hv_plan_unref(plan);
    }
    hv_model_doc_free(&model);
    hv_cluster_doc_free(&cluster);
}

/** By hand: two stages on a[0] and a[1], each dp 2 x tp 2; Megatron's ranks 4 to 7 are stage 1, and
 * rank 6 its second data rank's first tensor rank. */
static void ranks_by_hand(void **state)
{
    (void)state;
    struct hv_cluster *c = fixture_cluster();
    struct hv_model *m = fixture_model(0);
    struct hv_job j = fixture_job();
    struct hv_verdict verdict = {0};
    struct hv_export files;
    struct hv_err err = {0};
    struct hv_plan_doc doc = plan_of(
        c,
        "{\"format\":\"hetviz.plan/1\",\"micro_batch\":4,\"replicas\":[{\"micro_batches\":2,"
        "\"stages\":[{\"devices\":\"a[0].*\"," PLAIN0 "},{\"devices\":\"a[1].*\"," PLAIN1 "}]}]}");
    const struct hv_export_source s = {doc.plan, m, &j, &verdict, NULL, "p"};
    assert_int_equal(hv_export_plan(&s, HV_TARGET_MEGATRON, &files, &err), HV_OK);
    assert_non_null(strstr(file_of(&files, "ranks.csv"), "6,a-1,2,a[1].2,0,0,1,1,1,0,0\r\n"));
    assert_non_null(strstr(file_of(&files, "megatron.args"), "-layout Et*4|t*4L\n"));
    assert_non_null(strstr(file_of(&files, "megatron.args"), "--micro-batch-size 2\n"));
    assert_non_null(
        strstr(file_of(&files, "launch.sh"), "'a-1') ranks=(4 5 6 7) gpus=(0 1 2 3) ;;"));
    hv_export_free(&files);
    hv_plan_doc_free(&doc);
    hv_model_unref(m);
    hv_cluster_unref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_property_is_checked),
                                       cmocka_unit_test(pipelines_that_differ),
                                       cmocka_unit_test(accelerate_knows_nodes),
                                       cmocka_unit_test(names_are_found),
                                       cmocka_unit_test(round_trips),
                                       cmocka_unit_test(ranks_by_hand)};
    return cmocka_run_group_tests(tests, import_setup, import_teardown);
}
