/** Stages of operators on meshes in the judge: bytes by hand, equal plans written in two ways,
 * splits that must not cost more than what they save, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "solver/eval/explain.h"
#include "tests/eval_fixture.h"

/** A chain of feed-forward layers with residuals, batch × hidden. */
struct mlp {
    int layers, hidden, ffn;
};

static void add_mlp(struct hv_str *s, const struct mlp *m)
{
    hv_str_addf(s,
                "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"graph\",\"dims\":{"
                "\"batch\":64,\"hidden\":%d,\"ffn\":%d},\"tensors\":{\"x\":{\"dims\":[\"batch\","
                "\"hidden\"]}",
                m->hidden, m->ffn);
    for (int i = 0; i < m->layers; i++) {
        hv_str_addf(s,
                    ",\"up_w%d\":{\"dims\":[\"hidden\",\"ffn\"],\"role\":\"parameter\"},"
                    "\"down_w%d\":{\"dims\":[\"ffn\",\"hidden\"],\"role\":\"parameter\"}",
                    i, i);
    }
    hv_str_addf(s, "},\"ops\":[");
    char before[16] = "x";
    for (int i = 0; i < m->layers; i++) {
        hv_str_addf(s,
                    "%s{\"id\":\"up%d\",\"op\":\"einsum\",\"in\":[\"%s\",\"up_w%d\"],\"out\":["
                    "\"batch\",\"ffn\"]},{\"id\":\"act%d\",\"op\":\"gelu\",\"in\":[\"up%d\"],"
                    "\"out\":[\"batch\",\"ffn\"]},{\"id\":\"down%d\",\"op\":\"einsum\",\"in\":["
                    "\"act%d\",\"down_w%d\"],\"out\":[\"batch\",\"hidden\"]},{\"id\":\"add%d\","
                    "\"op\":\"add\",\"in\":[\"%s\",\"down%d\"],\"out\":[\"batch\",\"hidden\"]}",
                    i > 0 ? "," : "", i, before, i, i, i, i, i, i, i, before, i);
        (void)snprintf(before, sizeof before, "add%d", i);
    }
    hv_str_addf(s, "]}");
}

/** What the judge says of stages. */
struct answer {
    enum hv_status st;
    char error[1024];
    size_t n_findings, n_approximated;
    struct hv_metrics m;
    double peak_bytes[8], weights_bytes;
};

struct question {
    const char *stages, *schedule;
    int micro_batch, micro_batches;
};

static struct answer answer_to(const struct mlp *mlp, const struct question *q)
{
    struct world w;
    struct hv_plan_doc doc;
    struct hv_verdict v;
    struct hv_arena a = {0};
    struct hv_err err = {0};
    struct answer out = {.m = {.iteration_s = NAN}};
    struct hv_str model = {0}, plan = {0}, job = {0};
    add_mlp(&model, mlp);
    hv_str_addf(&job,
                "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":1,"
                "\"precision\":\"fp16\"}",
                q->micro_batch * q->micro_batches);
    open_world(&w, cluster_text, hv_str_cstr(&model), hv_str_cstr(&job));
    hv_str_addf(&plan,
                "{\"format\":\"hetviz.plan/1\",\"micro_batch\":%d,\"schedule\":{\"name\":\"%s\"},"
                "\"replicas\":[{\"micro_batches\":%d,\"stages\":[%s]}]}",
                q->micro_batch, q->schedule ? q->schedule : "1f1b", q->micro_batches, q->stages);
    if (hv_plan_doc_build(&doc, parse(hv_str_cstr(&plan), "p"), w.in.cluster.cluster, &err)) {
        fail_msg("plan: %s", err.text);
    }
    out.st = hv_eval(w.cost, doc.plan, &(struct hv_eval_options){0}, &a, &v, &err);
    (void)snprintf(out.error, sizeof out.error, "%s", err.text);
    if (out.st == HV_OK) {
        out.m = v.metrics;
        out.n_findings = v.findings.n;
        out.n_approximated = v.n_approximated;
        (void)snprintf(out.error, sizeof out.error, "%s",
                       v.findings.n > 0 ? v.findings.items[0].text : "");
        for (size_t i = 0; i < v.n_memory && i < HV_COUNT(out.peak_bytes); i++) {
            out.peak_bytes[i] = v.memory[i].peak_bytes;
        }
        out.weights_bytes = v.n_memory > 0 ? v.memory[0].weights_bytes : -1;
    }
    hv_plan_doc_free(&doc);
    hv_arena_free(&a);
    close_world(&w);
    hv_str_free(&model);
    hv_str_free(&plan);
    hv_str_free(&job);
    return out;
}

static struct answer judged(const struct mlp *mlp, const char *stages, int batch, int n)
{
    const struct question q = {.stages = stages, .micro_batch = batch, .micro_batches = n};
    struct answer a = answer_to(mlp, &q);
    if (a.st != HV_OK || a.n_findings > 0) {
        fail_msg("%s: status %d, %s", stages, a.st, a.error);
    }
    return a;
}

#define ALL "\"ops\":[\"*\"]"

/** Two layers of which every "up" is split by columns over four devices, and "down" by rows: one
 * all-reduce of batch × hidden per layer forward, 2 · 3/4 · 256 · 1024 values of each device.
 * Backward the first layer's input needs no gradient, the second one's is summed once. */
static void splits_by_columns_send_what_they_must(void **state)
{
    const struct mlp m = {2, 1024, 4096};
    (void)state;

    struct answer one = judged(&m, "{\"devices\":\"a[0].0\"," ALL "}", 256, 1);
    struct answer four = judged(&m,
                                "{\"devices\":\"a[0].0-3\"," ALL ",\"mesh\":{\"x\":4},"
                                "\"shard\":{\"up_w*\":{\"x\":\"ffn\"}}}",
                                256, 1);
    double values = 2 * 3.0 / 4 * 256 * 1024;
    assert_true(fabs(one.m.traffic.tp.forward) + fabs(one.m.traffic.tp.backward) < 1e-9);
    assert_true(fabs(four.m.traffic.tp.forward - 2 * values) < 1e-6 * values);
    assert_true(fabs(four.m.traffic.tp.backward - values) < 1e-6 * values);
    assert_true(four.m.breakdown_s[HV_TIME_TP] > 0);
    assert_true(four.m.breakdown_s[HV_TIME_COMPUTE] < one.m.breakdown_s[HV_TIME_COMPUTE]);
    /* 2 · 2 · 1024 · 4096 weights of 2 bytes, a quarter of them on each device */
    assert_true(fabs(one.weights_bytes - 2.0 * 2 * 1024 * 4096 * 2) < 1);
    assert_true(fabs(four.weights_bytes - one.weights_bytes / 4) < 1);
    assert_true(one.m.exact && four.m.exact && four.n_approximated == 0);
}

/** A leading axis that splits the batch alone is data parallelism. */
static void a_batch_axis_is_data_parallel(void **state)
{
    const struct mlp m = {3, 2048, 8192};
    (void)state;

    struct answer mesh = judged(&m,
                                "{\"devices\":\"a[0].0-3\"," ALL ",\"mesh\":{\"d\":4},"
                                "\"shard\":{\"x\":{\"d\":\"batch\"}}}",
                                64, 4);
    struct answer dp = judged(&m, "{\"devices\":\"a[0].0-3\",\"layers\":[0,12],\"dp\":4}", 64, 4);
    assert_true(fabs(mesh.m.iteration_s - dp.m.iteration_s) < 1e-12);
    assert_true(fabs(mesh.peak_bytes[0] - dp.peak_bytes[0]) < 1);
    assert_true(mesh.m.breakdown_s[HV_TIME_DP] > 0);
    /* the same axis behind another one reduces in every pass, which costs more with more of them */
    struct answer inner = judged(&m,
                                 "{\"devices\":\"a[0].0-3\"," ALL ",\"mesh\":{\"x\":1,\"d\":4},"
                                 "\"shard\":{\"x\":{\"d\":\"batch\"}}}",
                                 16, 16);
    struct answer outer = judged(&m,
                                 "{\"devices\":\"a[0].0-3\"," ALL ",\"mesh\":{\"d\":4},"
                                 "\"shard\":{\"x\":{\"d\":\"batch\"}}}",
                                 16, 16);
    assert_true(inner.m.traffic.tp.backward > 0);
    assert_true(inner.m.iteration_s > outer.m.iteration_s);
}

/** Weights split over the axis of the batch are gathered in both passes and their gradients
 * scattered: of P values (n − 1)/n P each time, but backward without those of the first "up", a
 * quarter of all, since its input needs no gradient. Ranks hold an n-th. */
static void weights_split_over_the_batch_axis_are_gathered(void **state)
{
    const struct mlp m = {2, 1024, 1024};
    (void)state;

    struct answer whole = judged(&m,
                                 "{\"devices\":\"a[0].0-3\"," ALL ",\"mesh\":{\"d\":4},"
                                 "\"shard\":{\"x\":{\"d\":\"batch\"}}}",
                                 65536, 1);
    struct answer zero =
        judged(&m,
               "{\"devices\":\"a[0].0-3\"," ALL ",\"mesh\":{\"d\":4},\"shard\":{\"up_w*\":{\"d\":"
               "\"hidden\"},\"down_w*\":{\"d\":\"ffn\"},\"x\":{\"d\":\"batch\"},\"up?\":{\"d\":"
               "\"batch\"},\"act?\":{\"d\":\"batch\"},\"down?\":{\"d\":\"batch\"},\"add?\":{\"d\":"
               "\"batch\"}}}",
               65536, 1);
    double parameters = 2.0 * 2 * 1024 * 1024;
    assert_true(fabs(zero.m.traffic.tp.forward - 0.75 * parameters) < 1e-6 * parameters);
    assert_true(fabs(zero.m.traffic.tp.backward - 0.75 * (0.75 + 1) * parameters) <
                1e-6 * parameters);
    assert_true(fabs(zero.weights_bytes - whole.weights_bytes / 4) < 1);
}

/** Stages of a pipeline, one on a mesh, under several schedules: what goes on is batch × hidden,
 * and no schedule is shorter than the work of the busiest stage. */
static void stages_stand_in_pipelines(void **state)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1"};
    const struct mlp m = {4, 2048, 8192};
    static const char stages[] =
        "{\"devices\":\"a[0].0-3\",\"ops\":[\"*0\",\"*1\"],\"mesh\":{\"x\":4},\"shard\":{"
        "\"up_w*\":{\"x\":\"ffn\"}}},{\"devices\":\"a[0].4\",\"layers\":[8,16]}";
    (void)state;

    for (size_t i = 0; i < HV_COUNT(schedules); i++) {
        const struct question q = {stages, schedules[i], 32, 8};
        struct answer a = answer_to(&m, &q);
        if (a.st != HV_OK || a.n_findings > 0) {
            fail_msg("%s: status %d, %s", schedules[i], a.st, a.error);
        }
        double sum = 0;
        for (int b = 0; b < HV_BREAKDOWN_N; b++) {
            sum += a.m.breakdown_s[b];
        }
        assert_true(fabs(sum - a.m.iteration_s) < 1e-9 * sum);
        assert_true(a.m.bound_s <= a.m.iteration_s);
        assert_true(a.m.breakdown_s[HV_TIME_BUBBLE] > 0);
        assert_true(a.peak_bytes[0] < a.peak_bytes[1]);
    }
}

/** A full recompute keeps what arrives alone, and computes the forward pass once more. */
static void recompute_takes_time_and_gives_memory(void **state)
{
    const struct mlp m = {4, 2048, 8192};
    (void)state;

    struct answer kept = judged(&m, "{\"devices\":\"a[0].0\"," ALL "}", 64, 4);
    struct answer again =
        judged(&m, "{\"devices\":\"a[0].0\"," ALL ",\"recompute\":\"full\"}", 64, 4);
    double forward_s = again.m.iteration_s - kept.m.iteration_s;
    assert_true(forward_s > 0.2 * kept.m.breakdown_s[HV_TIME_COMPUTE]);
    assert_true(forward_s < 0.45 * kept.m.breakdown_s[HV_TIME_COMPUTE]);
    assert_true(again.peak_bytes[0] <= kept.peak_bytes[0]);
}

/** Joined kernels neither write nor read what is between them. */
static void fused_operators_are_faster(void **state)
{
    const struct mlp m = {4, 2048, 8192};
    (void)state;

    struct answer apart = judged(&m, "{\"devices\":\"a[0].0\"," ALL "}", 64, 4);
    struct answer fused =
        judged(&m, "{\"devices\":\"a[0].0\"," ALL ",\"fuse\":[[\"up*\",\"act*\"]]}", 64, 4);
    assert_true(fused.m.iteration_s < apart.m.iteration_s);
    assert_true(fused.m.iteration_s > 0.8 * apart.m.iteration_s);
}

/** Random sizes, meshes and splits: the bound holds, shares add up, and a device never holds more
 * weights than all of them. */
static void random_meshes_keep_the_laws(void **state)
{
    static const char *const dims[] = {"batch", "hidden", "ffn"};
    struct hv_rng rng;
    (void)state;

    hv_rng_seed(&rng, 22);
    for (int i = 0; i < 60; i++) {
        const struct mlp m = {1 + (int)hv_rng_below(&rng, 3), 256 << hv_rng_below(&rng, 3),
                              512 << hv_rng_below(&rng, 3)};
        int x = 1 << hv_rng_below(&rng, 3), y = 1 << hv_rng_below(&rng, 2);
        struct hv_str s = {0};
        const char *up = dims[hv_rng_below(&rng, 3)], *act = dims[2 * hv_rng_below(&rng, 2)];
        const char *input = dims[hv_rng_below(&rng, 2)];
        hv_str_addf(&s,
                    "{\"devices\":\"a[0].0-%d\"," ALL ",\"mesh\":{\"x\":%d,\"y\":%d},\"shard\":{"
                    "\"x\":{\"y\":\"%s\"},\"act*\":{\"x\":\"%s\"},\"up_w*\":{\"x\":\"%s\"}}}",
                    x * y - 1, x, y, input, act, strcmp(up, "batch") == 0 ? "ffn" : up);
        struct answer a = judged(&m, hv_str_cstr(&s), 64, 4);
        double sum = 0, all = 2.0 * 2 * m.layers * m.hidden * m.ffn;
        for (int b = 0; b < HV_BREAKDOWN_N; b++) {
            sum += a.m.breakdown_s[b];
        }
        if (!(a.m.bound_s <= a.m.iteration_s) || fabs(sum - a.m.iteration_s) > 1e-9 * sum ||
            a.weights_bytes > all + 1 || a.weights_bytes < all / (x * y) - 1) {
            fail_msg("%s: %g s, bound %g s, sum %g s, weights %g of %g bytes", hv_str_cstr(&s),
                     a.m.iteration_s, a.m.bound_s, sum, a.weights_bytes, all);
        }
        hv_str_free(&s);
    }
}

/** Several axes of one dimension: in the order of the mesh, however a file lists them, or in the
 * order of a list. */
static void axes_are_read_in_both_forms(void **state)
{
    static const char *const forms[] = {"{\"x\":\"ffn\",\"y\":\"ffn\"}",
                                        "{\"y\":\"ffn\",\"x\":\"ffn\"}", "{\"ffn\":[\"x\",\"y\"]}"};
    const struct mlp m = {2, 1024, 4096};
    double first = 0;
    (void)state;

    for (size_t i = 0; i < HV_COUNT(forms); i++) {
        struct hv_str s = {0};
        hv_str_addf(&s,
                    "{\"devices\":\"a[0].0-3\"," ALL ",\"mesh\":{\"x\":2,\"y\":2},"
                    "\"shard\":{\"up_w*\":%s}}",
                    forms[i]);
        struct answer a = judged(&m, hv_str_cstr(&s), 64, 4);
        first = i == 0 ? a.m.iteration_s : first;
        assert_true(a.m.traffic.tp.forward > 0);
        assert_true(fabs(a.m.iteration_s - first) < 1e-12);
        hv_str_free(&s);
    }
}

/** Appends the completed layouts of a plan's first stage, as explain lists them, as rules of shard.
 */
static void add_completed(const struct mlp *m, const char *stages, struct hv_str *out)
{
    struct world w;
    struct hv_plan_doc doc;
    struct hv_arena a = {0};
    struct hv_err err = {0};
    struct hv_str model = {0}, plan = {0};
    struct hv_explained *chapters = NULL;
    size_t n = 0, rules = 0;
    add_mlp(&model, m);
    open_world(&w, cluster_text, hv_str_cstr(&model),
               "{\"format\":\"hetviz.job/1\",\"global_batch\":256,\"sequence\":1,\"precision\":"
               "\"fp16\"}");
    hv_str_addf(&plan,
                "{\"format\":\"hetviz.plan/1\",\"micro_batch\":64,\"replicas\":[{"
                "\"micro_batches\":4,\"stages\":[%s]}]}",
                stages);
    if (hv_plan_doc_build(&doc, parse(hv_str_cstr(&plan), "p"), w.in.cluster.cluster, &err) ||
        hv_eval_explain(w.cost, doc.plan, 0, 0, &a, &chapters, &n, &err)) {
        fail_msg("%s: %s", stages, err.text);
    }
    for (size_t i = 0; i < chapters[0].n_terms; i++) {
        const struct hv_why_term *t = &chapters[0].terms[i];
        const char *end = strrchr(t->text, '}');
        if (strncmp(t->text, "shard {", 7) == 0 && end != NULL) {
            hv_str_addf(out, "%s\"%s\":%.*s", rules++ > 0 ? "," : "", t->name,
                        (int)(end + 1 - t->text - 6), t->text + 6);
        }
    }
    hv_plan_doc_free(&doc);
    hv_arena_free(&a);
    close_world(&w);
    hv_str_free(&model);
    hv_str_free(&plan);
}

/** Layouts completed by propagation, folded by name, and read as a plan's own, give the same
 * figures; and there are fewer rules than tensors. */
static void completed_layouts_give_the_same_plan(void **state)
{
    static const char *const given[] = {"\"up_w*\":{\"x\":\"ffn\"}",
                                        "\"up_w*\":{\"x\":\"ffn\"},\"x\":{\"y\":\"hidden\"}",
                                        "\"x\":{\"x\":\"batch\"},\"down_w1\":{\"y\":\"hidden\"}",
                                        "\"act*\":{\"ffn\":[\"y\",\"x\"]}"};
    static const char stage[] =
        "{\"devices\":\"a[0].0-3\"," ALL ",\"mesh\":{\"y\":2,\"x\":2},\"shard\":{%s}}";
    const struct mlp m = {6, 1024, 4096};
    (void)state;

    for (size_t i = 0; i < HV_COUNT(given); i++) {
        char first[1024], second[8192];
        struct hv_str rules = {0};
        (void)snprintf(first, sizeof first, stage, given[i]);
        add_completed(&m, first, &rules);
        (void)snprintf(second, sizeof second, stage, hv_str_cstr(&rules));
        struct answer a = judged(&m, first, 64, 4), b = judged(&m, second, 64, 4);
        if (fabs(a.m.iteration_s - b.m.iteration_s) > 1e-12 ||
            fabs(a.peak_bytes[0] - b.peak_bytes[0]) > 1) {
            fail_msg("%s: %g s, as %s: %g s", given[i], a.m.iteration_s, hv_str_cstr(&rules),
                     b.m.iteration_s);
        }
        assert_non_null(strstr(hv_str_cstr(&rules), "\"up_w*\""));
        hv_str_free(&rules);
    }
}

static void what_is_not_simulated_is_refused(void **state)
{
    static const struct {
        const char *stages, *error;
    } rows[] = {
        {"{\"devices\":\"a[0].0-3\"," ALL ",\"tp\":4}", "tp: operators of a graph cut by number"},
        {"{\"devices\":\"a[0].0-3\"," ALL ",\"cp\":4}", "cp: operators of a graph cut by number"},
        {"{\"devices\":\"a[0].0\"," ALL ",\"place\":{\"up0\":\"a[0].0\"}}", "place: operators"},
        {"{\"devices\":\"a[0].0\"," ALL ",\"shard\":{\"up0\":{}}}", "shard: splits without"},
        {"{\"devices\":\"a[0].0\"," ALL ",\"fuse\":[[\"up*\",\"act*\"],[\"up0\",\"down0\"]]}",
         "fuse: no operator \"down0\" reads the result of \"up0\""},
        {"{\"devices\":\"a[0].0-3\"," ALL ",\"mesh\":{\"x\":4},\"dp\":4}", "dp: data-parallel"},
        {"{\"devices\":\"a[0].0\"," ALL ",\"recompute\":\"core\"}", "recompute: units"},
        {"{\"devices\":\"a[0].0-3\"," ALL ",\"dp\":4,\"zero\":3}", "zero.stage: sharded"},
        {"{\"devices\":\"a[0].0\",\"ops\":[\"up0\",\"add0\"]},{\"devices\":\"a[0].1\",\"ops\":["
         "\"act0\",\"down0\",\"*1\"]}",
         "ops: operators that do not follow each other"},
        {"{\"devices\":\"a[0].0\",\"layers\":[0,8],\"offload\":[{\"what\":\"activations\"}]}",
         "offload: offload of operators"},
        {"{\"devices\":\"a[0].0\",\"layers\":[0,4]},{\"devices\":\"a[0].1\",\"layers\":[4,8],"
         "\"after\":[]}",
         "after: branches between stages"},
        {"{\"devices\":\"a[0].0-4\"," ALL ",\"mesh\":{\"x\":5},\"shard\":{\"up_w*\":{\"x\":"
         "\"ffn\"}}}",
         "do not divide into 5 parts"},
    };
    const struct mlp m = {2, 256, 512};
    (void)state;

    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        const struct question q = {.stages = rows[i].stages, .micro_batch = 64, .micro_batches = 4};
        struct answer a = answer_to(&m, &q);
        if (a.st != HV_ENO || strstr(a.error, rows[i].error) == NULL) {
            fail_msg("%s: expected \"%s\", found status %d, \"%s\"", rows[i].stages, rows[i].error,
                     a.st, a.error);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_by_columns_send_what_they_must),
        cmocka_unit_test(a_batch_axis_is_data_parallel),
        cmocka_unit_test(weights_split_over_the_batch_axis_are_gathered),
        cmocka_unit_test(stages_stand_in_pipelines),
        cmocka_unit_test(recompute_takes_time_and_gives_memory),
        cmocka_unit_test(fused_operators_are_faster),
        cmocka_unit_test(random_meshes_keep_the_laws),
        cmocka_unit_test(axes_are_read_in_both_forms),
        cmocka_unit_test(completed_layouts_give_the_same_plan),
        cmocka_unit_test(what_is_not_simulated_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
