/** The table of knobs: every key of a plan that decides something has a row, and every row of
 * approximated values is told for a plan that sets one, and for no plan that does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "solver/eval/knobs.h"
#include "solver/io/own/plan/read.h"
#include "tests/eval_fixture.h"

/** A plan that sets an approximated value. Only the members that differ are given: of the stage, of
 * the plan, and of the job. */
struct example {
    const char *knob, *when; /**< as in the table */
    const char *stage, *plan, *job;
};

#define MOE(members) ",\"ep\":8,\"moe\":{" members "}"
#define CHUNKS       ",\"layers\":[[0,6],[12,18]]"

static const struct example examples[] = {
    {"stage.moe.all_to_all", "tp_coordinated, no experts that a tensor-parallel group cuts",
     MOE("\"all_to_all\":\"tp_coordinated\""), "", ""},
    {"stage.moe.order", "optsche, without chunks or without timed compression",
     MOE("\"order\":\"optsche\""), "", ""},
    {"stage.moe.adapt", "a job whose iterations are all routed alike",
     MOE("\"adapt\":{\"policy\":\"balance\"}"), "", ""},
    {"stage.moe.target", "without expert parallelism", ",\"moe\":{\"target\":[[1,1],[1,1]]}", "",
     ""},
    {"stage.moe.off_node_frac", "without expert parallelism", ",\"moe\":{\"off_node_frac\":0.5}",
     "", ""},
    {"stage.zero.gather_at", "next_forward, stage 1 and 2, in a plan with stale weights",
     ",\"zero\":{\"stage\":1,\"gather_at\":\"next_forward\"}", ",\"sync\":{\"kind\":\"wsp\"}", ""},
    {"stage.offload", "to hosts of nodes without host_memory_GiB",
     ",\"offload\":[{\"what\":\"optimizer\",\"frac\":1,\"to\":\"host\"}]", "", ""},
    {"stage.offload", "a serving plan", ",\"offload\":[{\"what\":\"weights\",\"to\":[\"a[1].0\"]}]",
     ",\"mode\":\"serve\"", ""},
    {"sync.bucket_MiB", "a list, in a plan with stale weights", "",
     ",\"sync\":{\"kind\":\"wsp\",\"bucket_MiB\":[25,50]}", ""},
    {"sync.cycle_ms", "above 0, in a plan with stale weights", "",
     ",\"sync\":{\"kind\":\"wsp\",\"cycle_ms\":5}", ""},
    {"sync.priority", "after_all_to_all, no all-to-alls of experts beside reductions", "",
     ",\"sync\":{\"priority\":\"after_all_to_all\"}", ""},
    {"sync.priority",
     "any, experts beside chunks of weights or activations that move beside the passes",
     MOE("\"all_to_all\":\"flat\"") ",\"zero\":{\"stage\":3,\"unit\":\"chunk\"}", "", ""},
    {"job.sequence_lengths", "several stages or replicas without lists",
     "},{\"devices\":\"a[1].*\",\"layers\":[12,24]", "",
     ",\"sequence_lengths\":[{\"tokens\":512,\"frac\":0.5},{\"tokens\":2048,\"frac\":0.5}]"},
};

/** Lists the approximated values of an example; the arena owns the lines. */
static struct hv_verdict told_for(const struct example *x, struct hv_arena *a)
{
    char body[2048], job[1024], text[4096];
    bool has_layers = x->stage != NULL && strstr(x->stage, "\"layers\"") == x->stage + 1;
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":64,\"stages\":[{\"devices\":"
                   "\"a[0].*\"%s%s}]}]%s",
                   has_layers ? "" : ",\"layers\":[0,24]", x->stage != NULL ? x->stage : "",
                   x->plan);
    (void)snprintf(text, sizeof text, "{\"format\":\"hetviz.plan/1\",%s}",
                   x->stage == NULL ? x->plan : body);
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":2048%s}", x->job);
    struct world w;
    open_world(&w, cluster_text, model_text, job);
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    struct hv_verdict v = {0};
    if (hv_plan_doc_build(&doc, parse(text, x->knob), w.in.cluster.cluster, &err) != HV_OK) {
        fail_msg("%s: %s", x->knob, err.text);
    }
    hv__find_approximated(doc.plan, w.cost, a, &v);
    hv_plan_doc_free(&doc);
    close_world(&w);
    return v;
}

/** The full name of a row's knob. */
static const char *name_of(const struct hv_knob *k, struct hv_arena *a)
{
    return hv_arena_printf(a, "%s%s", hv_knob_prefix(k->object), k->key);
}

static bool tells(const struct hv_verdict *v, const char *text)
{
    for (size_t i = 0; i < v->n_approximated; i++) {
        if (strstr(v->approximated[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

static const struct example *example_of(const struct hv_knob *k, struct hv_arena *a)
{
    for (size_t i = 0; i < HV_COUNT(examples); i++) {
        if (strcmp(examples[i].knob, name_of(k, a)) == 0 &&
            strcmp(examples[i].when, k->when) == 0) {
            return &examples[i];
        }
    }
    return NULL;
}

static void every_approximated_value_is_told(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    size_t n = 0, found = 0;
    const struct hv_knob *rows = hv_knobs(&n);
    for (size_t i = 0; i < n; i++) {
        assert_true(rows[i].text != NULL || rows[i].applies == NULL);
        assert_int_equal(rows[i].text == NULL, rows[i].when == NULL);
        if (rows[i].applies == NULL) {
            continue; /* simulated, or refused */
        }
        const struct example *x = example_of(&rows[i], &a);
        if (x == NULL) {
            fail_msg("no example sets %s, %s", name_of(&rows[i], &a), rows[i].when);
            return;
        }
        struct hv_verdict v = told_for(x, &a);
        if (!tells(&v, rows[i].text)) {
            fail_msg("%s, %s is not told", x->knob, x->when);
        }
        found++;
    }
    assert_int_equal(found, HV_COUNT(examples));
    hv_arena_free(&a);
}

static void defaults_are_simulated_in_full(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const struct example plain[] = {
        {"default", NULL, "", "", ""},
        {"ZeRO-1", NULL, ",\"dp\":8,\"zero\":1", "", ""},
        {"ZeRO-3", NULL, ",\"dp\":8,\"zero\":{\"stage\":3,\"gather\":\"flat\"}", "", ""},
        {"ZeRO-1 in passes", NULL, ",\"dp\":8,\"zero\":{\"stage\":1,\"reduce\":\"each\"}", "", ""},
        {"late gathers", NULL, ",\"zero\":{\"stage\":1,\"gather_at\":\"next_forward\"}", "", ""},
        {"buckets", NULL, "", ",\"sync\":{\"bucket_MiB\":[1,25]}", ""},
        {"cycles", NULL, "", ",\"sync\":{\"cycle_ms\":5}", ""},
        {"capacity", NULL, MOE("\"capacity_factor\":1.25"), "", ""},
        {"nested rings", NULL,
         ",\"cp\":{\"degree\":8,\"scheme\":\"loongtrain\",\"ulysses\":2,\"inner\":2,"
         "\"layout\":\"striped\",\"tile\":64,\"backward\":\"q_do\"}",
         "", ""},
        {"teams", NULL, ",\"cp\":{\"degree\":8,\"scheme\":\"wallfacer\",\"inner\":2}", "", ""},
        {"helpers", NULL, ",\"cp\":{\"degree\":8,\"scheme\":\"distflash\"}", "", ""},
        {"scores", NULL, ",\"cp\":{\"degree\":8,\"scheme\":\"rsa\"}", "", ""},
        {"gathered keys", NULL, ",\"cp\":{\"degree\":8,\"scheme\":\"all_gather\"}", "", ""},
        {"pipe", NULL, MOE("\"all_to_all\":\"pipe\""), "", ""},
        {"compression in order", NULL,
         MOE("\"degree\":2,\"order\":\"optsche\",\"compress\":{\"ratio\":4,\"GBps\":200}"), "", ""},
        {"slices of tensor ranks", NULL,
         ",\"tp\":4,\"dp\":2,\"ep\":2,\"moe\":{\"all_to_all\":\"tp_coordinated\"}", "", ""},
        {"kernel", NULL, MOE("\"kernel\":\"block\""), "", ""},
        {"one-hot", NULL, MOE("\"kernel\":\"padded\",\"dispatch\":\"one_hot\""), "", ""},
        {"gate", NULL, MOE("\"off_node_frac\":0.5"), "", ""},
        {"dropping", NULL, MOE("\"capacity_factor\":0.5"), "", ""},
        {"slices", NULL, "", ",\"schedule\":{\"name\":\"seq1f1b\",\"slices\":4}", ""},
        {"micro-batch", NULL, ",\"micro_batch\":2", "", ""},
        {"turns", NULL, ",\"dp\":8,\"deal\":\"turns\"", "", ""},
        {"in flight", NULL, ",\"in_flight\":2", ",\"schedule\":{\"name\":\"zb-h1\"}", ""},
        {"unequal slices", NULL, "", ",\"schedule\":{\"name\":\"seq1f1b\",\"slices\":[1500,548]}",
         ""},
    };
    for (size_t i = 0; i < HV_COUNT(plain); i++) {
        struct hv_verdict v = told_for(&plain[i], &a);
        if (v.n_approximated > 0) {
            fail_msg("%s: %s", plain[i].knob, v.approximated[0]);
        }
    }
    hv_arena_free(&a);
}

/** Objects of a plan file below a stage or the plan, with the path of their keys in the table. */
static void every_key_has_a_row(void **state)
{
    (void)state;
    static const struct {
        enum hv_plan_object object;
        const char *path;
        const char *other; /**< keys that hold objects with rows of their own, or that one row
                              names together */
    } objects[] = {
        {HV_PLAN_OBJECT_stage, "stage.", " tp cp moe zero "},
        {HV_PLAN_OBJECT_tp, "stage.tp.", ""},
        {HV_PLAN_OBJECT_cp, "stage.cp.", ""},
        {HV_PLAN_OBJECT_moe, "stage.moe.", ""},
        {HV_PLAN_OBJECT_zero, "stage.zero.", ""},
        {HV_PLAN_OBJECT_degrees_item, "stage.", " tp cp zero "},
        {HV_PLAN_OBJECT_sync, "sync.", ""},
    };
    struct hv_arena a = {0};
    size_t n = 0;
    const struct hv_knob *rows = hv_knobs(&n);
    for (size_t i = 0; i < HV_COUNT(objects); i++) {
        const struct hv_plan_object_keys *o = &hv_plan_objects[objects[i].object];
        for (size_t k = 0; k < o->n; k++) {
            const char *want = hv_arena_printf(&a, "%s%s", objects[i].path, o->keys[k]);
            bool found = strstr(objects[i].other, hv_arena_printf(&a, " %s ", o->keys[k])) != NULL;
            for (size_t r = 0; r < n && !found; r++) {
                found = strcmp(name_of(&rows[r], &a), want) == 0;
            }
            if (!found) {
                fail_msg("the table of knobs lacks %s", want);
            }
        }
    }
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_approximated_value_is_told),
        cmocka_unit_test(defaults_are_simulated_in_full),
        cmocka_unit_test(every_key_has_a_row),
    };
    return cmocka_run_group_tests_name("eval_knobs", tests, NULL, NULL);
}
