/** Operator graphs in the judge: chains of whole operators are timed, whatever else is refused by
 * name, and names that do not exist are findings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/eval_fixture.h"

#define MODEL(ops, edges)                                                                          \
    "{\"format\":\"hetviz.model/1\",\"name\":\"g\",\"kind\":\"graph\",\"dims\":{\"batch\":64,"     \
    "\"hidden\":1024,\"ffn\":4096},\"ops\":[" ops "],\"edges\":[" edges "]}"
#define OP(id, keys) "{\"id\":\"" id "\"" keys "}"
#define MATMUL       ",\"op\":\"matmul\",\"out\":[\"batch\",\"ffn\"],\"contract\":[\"hidden\"]"
#define TIMED        ",\"time_ms\":2,\"bytes\":1000000"

static const char in_order[] = "[\"a\",\"b\"],[\"b\",\"c\"],[\"c\",\"d\"]";
static const char graph_job[] =
    "{\"format\":\"hetviz.job/1\",\"global_batch\":8,\"sequence\":1,\"precision\":\"fp16\"}";

struct answer {
    enum hv_status st;
    char error[1024], where[128], text[256];
    double iteration_s;
    bool told;
};

/** What the judge says of stages on a model. */
static struct answer answer_to(const char *model, const char *stages)
{
    struct world w;
    struct hv_plan_doc doc;
    struct hv_verdict v;
    struct hv_arena a = {0};
    struct hv_err err = {0};
    struct answer out = {.iteration_s = NAN};
    char text[4096];

    open_world(&w, cluster_text, model, graph_job);
    (void)snprintf(text, sizeof text,
                   "{\"format\":\"hetviz.plan/1\",\"micro_batch\":1,\"replicas\":[{"
                   "\"micro_batches\":8,\"stages\":[%s]}]}",
                   stages);
    if (hv_plan_doc_build(&doc, parse(text, "p"), w.in.cluster.cluster, &err) != HV_OK) {
        fail_msg("plan: %s", err.text);
    }
    out.st = hv_eval(w.cost, doc.plan, &(struct hv_eval_options){0}, &a, &v, &err);
    if (out.st == HV_OK) {
        out.iteration_s = v.metrics.iteration_s;
        for (size_t i = 0; i < v.n_approximated; i++) {
            out.told = out.told || strstr(v.approximated[i], "model.ops.bytes") != NULL;
        }
        if (v.findings.n > 0) {
            (void)snprintf(out.where, sizeof out.where, "%s", v.findings.items[0].where);
            (void)snprintf(out.text, sizeof out.text, "%s", v.findings.items[0].text);
        }
    } else {
        (void)snprintf(out.error, sizeof out.error, "%s", err.text);
    }
    hv_plan_doc_free(&doc);
    hv_arena_free(&a);
    close_world(&w);
    return out;
}

static const char *model_of(char *buffer, size_t cap, const char *keys, const char *edges)
{
    (void)snprintf(buffer, cap,
                   MODEL(OP("a", "%s") "," OP("b", "%s") "," OP("c", "%s") "," OP("d", "%s"), "%s"),
                   keys, keys, keys, keys, edges);
    return buffer;
}

#define ONE(keys) "{\"devices\":\"a[0].0\",\"layers\":[0,4]" keys "}"
#define FOUR      "{\"devices\":\"a[0].0-3\",\"layers\":[0,4]"
#define HALVES(a, b)                                                                               \
    "{\"devices\":\"" a "\",\"layers\":[0,2]},{\"devices\":\"" b "\",\"layers\":[2,4]}"
#define NOT_SIMULATED "not simulated yet: replicas[0].stages[0]."

static void what_no_judge_simulates_is_refused(void **state)
{
    static const struct {
        const char *keys, *edges, *stages, *error;
    } rows[] = {
        {TIMED, in_order, FOUR ",\"tp\":4}", NOT_SIMULATED "tp: operators of a graph"},
        {TIMED, in_order, FOUR ",\"cp\":4}", NOT_SIMULATED "cp: operators of a graph"},
        {TIMED, in_order, "{\"devices\":\"a[0].0\",\"ops\":[\"*\"]}", NOT_SIMULATED "ops: "},
        {TIMED, in_order, ONE(",\"mesh\":{\"x\":1}"), NOT_SIMULATED "mesh: "},
        {MATMUL, in_order, ONE(",\"mesh\":{\"x\":1},\"shard\":{\"b\":{\"x\":\"ffn\"}}"),
         NOT_SIMULATED "mesh: "},
        {MATMUL, in_order, ONE(",\"shard\":{\"b\":{}}"), NOT_SIMULATED "shard: "},
        {TIMED, in_order, ONE(",\"place\":{\"b\":\"a[0].0\"}"), NOT_SIMULATED "place: "},
        {TIMED, in_order, ONE(",\"fuse\":[[\"a\",\"b\"]]"), NOT_SIMULATED "fuse: "},
        {TIMED, "[\"a\",\"b\"],[\"a\",\"c\"],[\"b\",\"d\"],[\"c\",\"d\"]",
         HALVES("a[0].0", "a[0].1"), "operator \"a\" feeds \"c\", which is not the next"},
        {TIMED, "[\"a\",\"b\"],[\"c\",\"d\"]", ONE(""), "operator \"c\" does not read the output"},
        {MATMUL, in_order, HALVES("a[0].0", "a[0].1"),
         NOT_SIMULATED "layers: the output of operator \"b\" goes to another stage"},
        {TIMED ",\"device_class\":\"cpu\"", in_order, ONE(""),
         NOT_SIMULATED "devices: operator \"a\" asks for a device of class \"cpu\""},
    };
    char model[2048];
    (void)state;

    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct answer a =
            answer_to(model_of(model, sizeof model, rows[i].keys, rows[i].edges), rows[i].stages);
        if (a.st != HV_ENO || strstr(a.error, rows[i].error) == NULL ||
            strncmp(a.error, "not simulated yet: ", 19) != 0) {
            fail_msg("%s: expected \"%s\", found status %d, \"%s\", %g s", rows[i].stages,
                     rows[i].error, a.st, a.error, a.iteration_s);
        }
    }
}

static void unknown_names_are_findings(void **state)
{
    static const struct {
        const char *stages, *where, *text;
    } rows[] = {
        {ONE(",\"shard\":{\"bb\":{}}"), "replicas[0].stages[0].shard.bb", "found \"bb\""},
        {ONE(",\"mesh\":{\"x\":1},\"shard\":{\"b\":{\"x\":\"ffm\"}}"),
         "replicas[0].stages[0].shard.b.x", "found \"ffm\"; did you mean \"ffn\"?"},
        {ONE(",\"mesh\":{\"row\":1},\"shard\":{\"b\":{\"rows\":\"ffn\"}}"),
         "replicas[0].stages[0].shard.b.rows", "found \"rows\"; did you mean \"row\"?"},
        {ONE(",\"shard\":{\"b\":{\"x\":\"partial\"}}"), "replicas[0].stages[0].shard.b.x",
         "the stage has no mesh"},
        {ONE(",\"place\":{\"zzz\":\"a[0].0\"}"), "replicas[0].stages[0].place.zzz",
         "found \"zzz\""},
        {ONE(",\"fuse\":[[\"a\",\"e\"]]"), "replicas[0].stages[0].fuse[0][1]", "found \"e\""},
    };
    char model[2048];
    (void)state;

    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct answer a =
            answer_to(model_of(model, sizeof model, MATMUL, in_order), rows[i].stages);
        if (a.st != HV_OK || !isnan(a.iteration_s) || strcmp(a.where, rows[i].where) != 0 ||
            strstr(a.text, rows[i].text) == NULL) {
            fail_msg("%s: expected %s, \"%s\", found status %d, %g s, %s, \"%s\"", rows[i].stages,
                     rows[i].where, rows[i].text, a.st, a.iteration_s, a.where, a.text);
        }
    }
    struct answer a = answer_to(model_text, "{\"devices\":\"a[0].0\",\"layers\":[0,24],"
                                            "\"place\":{\"up\":\"a[0].0\"}}");
    assert_non_null(strstr(a.text, "of kind transformer and has no named operators"));
}

/** Four operators of 2 ms forward and as long for either gradient, eight micro-batches: on one
 * device 8 · 4 · 6 ms, on two with a transfer of 1 MB each way between them, which a slow network
 * makes longer. */
static void a_chain_is_timed(void **state)
{
    char model[2048];
    (void)state;

    model_of(model, sizeof model, TIMED, in_order);
    struct answer one = answer_to(model, ONE(""));
    struct answer near = answer_to(model, HALVES("a[0].0", "a[0].1"));
    struct answer far = answer_to(model, HALVES("a[0].0", "v[0].0"));
    assert_int_equal(one.st, HV_OK);
    assert_false(one.told);
    assert_true(fabs(one.iteration_s - 8 * 4 * 6e-3) < 1e-3);
    assert_true(near.iteration_s > 9 * 2 * 6e-3 && near.iteration_s < 9 * 2 * 6e-3 + 1e-3);
    assert_true(far.iteration_s > near.iteration_s + 2 * 1e6 / 12.5e9);
    assert_true(answer_to(model_of(model, sizeof model, MATMUL, in_order), ONE("")).told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_no_judge_simulates_is_refused),
                                       cmocka_unit_test(unknown_names_are_findings),
                                       cmocka_unit_test(a_chain_is_timed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
