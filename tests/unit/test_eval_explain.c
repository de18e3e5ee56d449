/* The terms behind a stage's figures: complete chapters, and sums that are the figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/eval/explain.h"
#include "tests/eval_fixture.h"

static const char two_stages[] =
    "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":64,\"stages\":["
    "{\"devices\":\"a[0].0-1\",\"layers\":[0,12],\"tp\":2},"
    "{\"devices\":\"a[0].2-3\",\"layers\":[12,24],\"tp\":2}]}]";

static struct hv_plan_doc plan_of(struct world *w, const char *members)
{
    char text[1024];
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    (void)snprintf(text, sizeof text, "{\"format\":\"hetviz.plan/1\",%s}", members);
    if (hv_plan_doc_build(&doc, parse(text, "plan"), w->in.cluster.cluster, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return doc;
}

/* Forward seconds of the compute terms: each block's times how many there are. */
static double forward_s(const struct hv_explained *c)
{
    static const char *const elsewhere[] = {"all_reduce", "all_gather", "reduce_scatter"};
    double times = 1, sum = 0;
    for (size_t i = 0; i < c->n_terms; i++) {
        const struct hv_why_term *t = &c->terms[i];
        bool inside = strcmp(t->unit, "s") == 0;
        for (size_t k = 0; k < HV_COUNT(elsewhere); k++) { /* counted as "tensor exchange" */
            inside = inside && strcmp(t->name, elsewhere[k]) != 0;
        }
        times = strcmp(t->unit, "x") == 0           ? t->value
                : strcmp(t->name, "host work") == 0 ? 1
                                                    : times;
        sum += inside ? times * t->value : 0;
    }
    return sum;
}

static void terms_add_up_to_the_forward_pass(void **state)
{
    struct world *w = *state;
    struct hv_arena a = {0};
    struct hv_explained *chapters;
    size_t n;
    struct hv_plan_doc doc = plan_of(w, two_stages);
    for (size_t stage = 0; stage < 2; stage++) {
        struct hv_stage_query q = {
            .plan = doc.plan, .replica = &doc.plan->replicas[0], .stage = stage};
        struct hv_pass pass;
        assert_int_equal(hv_cost_pass(w->cost, &q, &pass, NULL), HV_OK);
        assert_int_equal(hv_eval_explain(w->cost, doc.plan, 0, stage, &a, &chapters, &n, NULL),
                         HV_OK);
        assert_int_equal(n,
                         stage == 0 ? 3 : 2); /* passes, memory, and a transfer behind the first */
        assert_true(fabs(forward_s(&chapters[0]) / pass.forward_s - 1) < 1e-9);
    }
    hv_plan_doc_free(&doc);
    hv_arena_free(&a);
}

static void every_term_says_why(void **state)
{
    struct world *w = *state;
    struct hv_arena a = {0};
    struct hv_explained *chapters;
    size_t n;
    struct hv_plan_doc doc = plan_of(w, two_stages);
    assert_int_equal(hv_eval_explain(w->cost, doc.plan, 0, 0, &a, &chapters, &n, NULL), HV_OK);
    for (size_t c = 0; c < n; c++) {
        assert_true(chapters[c].n_terms > 0);
        for (size_t i = 0; i < chapters[c].n_terms; i++) {
            assert_true(strlen(chapters[c].terms[i].text) > 5);
            assert_true(hv_known(chapters[c].terms[i].value));
        }
    }
    hv_plan_doc_free(&doc);
    hv_arena_free(&a);
}

static void a_stage_that_is_not_there_is_said(void **state)
{
    struct world *w = *state;
    struct hv_arena a = {0};
    struct hv_explained *chapters;
    struct hv_err err = {0};
    size_t n;
    struct hv_plan_doc doc = plan_of(w, two_stages);
    assert_int_equal(hv_eval_explain(w->cost, doc.plan, 0, 2, &a, &chapters, &n, &err), HV_ENO);
    assert_non_null(strstr(err.text, "2 stages"));
    assert_int_equal(hv_eval_explain(w->cost, doc.plan, 1, 0, &a, &chapters, &n, &err), HV_ENO);
    hv_plan_doc_free(&doc);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_add_up_to_the_forward_pass),
        cmocka_unit_test(every_term_says_why),
        cmocka_unit_test(a_stage_that_is_not_there_is_said),
    };
    return cmocka_run_group_tests_name("eval_explain", tests, setup, teardown);
}
