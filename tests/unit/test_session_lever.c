/* Levers: every one of them can be turned and changes nothing, and accepting is the same change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screens_bench.h"
#include "ui/lever/lever.h"

/* The first row's plan: two stages on a[0] and v[0-1]. */
static uint32_t first_row(struct bench *b, struct hv_levers *l)
{
    size_t n = 0;
    struct hv_err err = {0};
    const struct hv_row *const *rows = hv_session_rows(b->session, &n);
    assert_true(n > 0);
    if (hv_levers_read(b->session, rows[0]->id, l, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return rows[0]->id;
}

static double *bases(const struct hv_levers *l)
{
    double *v = hv_xcalloc(l->n + 1, sizeof *v);
    for (size_t i = 0; i < l->n; i++) {
        v[i] = l->items[i].base;
    }
    return v;
}

/* Figures with one lever at a value. */
static struct hv_figures with(struct bench *b, const struct hv_levers *l, enum hv_lever_kind kind,
                              size_t i, size_t j, double value)
{
    const struct hv_lever *x = hv_levers_find(l, kind, i, j);
    struct hv_err err = {0};
    struct hv_figures f;
    double *v = bases(l);
    assert_non_null(x);
    v[x - l->items] = value;
    if (hv_levers_try(b->session, l, v, true, &f, &err) != HV_OK) {
        fail_msg("%s at %g: %s", x->name, value, err.text);
    }
    free(v);
    return f;
}

static void every_base_is_the_verdict(void **state)
{
    struct bench *b = *state;
    struct hv_levers l;
    uint32_t id = first_row(b, &l);
    double *v = bases(&l);
    struct hv_figures f;
    assert_int_equal(hv_levers_try(b->session, &l, v, true, &f, NULL), HV_OK);
    const struct hv_verdict *verdict = hv_session_verdict(b->session, id, false, NULL);
    assert_true(f.iteration_s == verdict->metrics.iteration_s);
    assert_true(f.bound_s == verdict->metrics.bound_s);
    for (size_t i = 0; i < l.n; i++) {
        assert_true(l.items[i].values[hv_lever_at(&l.items[i], l.items[i].base)] ==
                    l.items[i].base);
    }
    free(v);
    hv_levers_free(&l);
}

static void turning_changes_no_document(void **state)
{
    struct bench *b = *state;
    struct hv_levers l;
    (void)first_row(b, &l);
    uint64_t changes = hv_session_changes(b->session);
    double *v = bases(&l);
    size_t n_good = 0, n_all = 0;
    for (size_t i = 0; i < l.n; i++) {
        for (size_t k = 0; k < l.items[i].n_values; k++) {
            struct hv_figures f;
            struct hv_err err = {0};
            v[i] = l.items[i].values[k];
            n_all++;
            if (hv_levers_try(b->session, &l, v, false, &f, &err) == HV_OK) {
                n_good++;
            } else {
                assert_true(err.text[0] != '\0');
            }
        }
        v[i] = l.items[i].base;
    }
    assert_true(n_good * 10 > n_all * 8);
    assert_int_equal(hv_session_changes(b->session), changes);
    assert_int_equal(hv_session_n_undo(b->session), 0);
    free(v);
    hv_levers_free(&l);
}

static void better_hardware_is_not_slower(void **state)
{
    struct bench *b = *state;
    struct hv_levers l;
    (void)first_row(b, &l);
    for (size_t i = 0; i < l.n; i++) {
        const struct hv_lever *x = &l.items[i];
        bool faster = x->kind == HV_LEVER_NIC || x->kind == HV_LEVER_NETWORK ||
                      x->kind == HV_LEVER_FLOPS || x->kind == HV_LEVER_HBM;
        if (!faster) {
            continue;
        }
        double before = with(b, &l, x->kind, x->i, x->j, x->values[0]).iteration_s;
        double after = with(b, &l, x->kind, x->i, x->j, x->values[x->n_values - 1]).iteration_s;
        if (!(after <= before * (1 + 1e-9))) {
            fail_msg("%s: %g s to %g s", x->name, before, after);
        }
    }
    /* a group twice as slow: no more than twice the time, and more than before */
    double one = with(b, &l, HV_LEVER_SLOW, 1, 0, 1).iteration_s;
    double two = with(b, &l, HV_LEVER_SLOW, 1, 0, 2).iteration_s;
    assert_true(two > one && two <= 2 * one);
    hv_levers_free(&l);
}

static void batch_and_micro_batch_keep_the_sum(void **state)
{
    struct bench *b = *state;
    struct hv_levers l;
    (void)first_row(b, &l);
    size_t before = with(b, &l, HV_LEVER_BATCH, 0, 0, 128).n_violations;
    struct hv_figures f = with(b, &l, HV_LEVER_BATCH, 0, 0, 256);
    assert_int_equal(f.n_violations, before);
    assert_true(f.iteration_s > with(b, &l, HV_LEVER_BATCH, 0, 0, 128).iteration_s);
    assert_null(strstr(with(b, &l, HV_LEVER_MICRO, 0, 0, 8).violation, "global batch"));
    hv_levers_free(&l);
}

static void a_failed_node_costs_time_or_the_plan(void **state)
{
    struct bench *b = *state;
    struct hv_levers l;
    struct hv_figures f;
    struct hv_err err = {0};
    (void)first_row(b, &l);
    const struct hv_lever *x = hv_levers_find(&l, HV_LEVER_FAILED, 0, 0);
    assert_non_null(x);
    assert_int_equal(x->n_values, 4);
    assert_string_equal(x->words[1], "a[0]");
    assert_string_equal(x->words[3], "v[1]");
    /* stage 1 has dp 4 on two nodes: half of them are left, with two sequences each */
    struct hv_figures base = with(b, &l, HV_LEVER_FAILED, 0, 0, 0);
    struct hv_figures lost = with(b, &l, HV_LEVER_FAILED, 0, 0, 3);
    assert_true(lost.iteration_s > base.iteration_s);
    /* stage 0 lies on a[0] alone */
    double *v = bases(&l);
    v[x - l.items] = 1;
    assert_int_equal(hv_levers_try(b->session, &l, v, false, &f, &err), HV_ENO);
    assert_non_null(strstr(err.text, "cannot lose a[0]"));
    free(v);
    hv_levers_free(&l);
}

/* Stage 0 has 8 ranks: tp 4 by dp 2 becomes tp 2 by dp 4, in the plan that is kept and in the
 * trial. */
static void degrees_divide_the_same_ranks_anew(void **state)
{
    struct bench *b = *state;
    struct hv_levers l;
    struct hv_str said = {0};
    (void)first_row(b, &l);
    const struct hv_lever *x = hv_levers_find(&l, HV_LEVER_TP, 0, 0);
    assert_non_null(x);
    assert_string_equal(x->name, "tp s0");
    assert_int_equal(x->n_values, 4);                              /* 1, 2, 4, 8 */
    assert_null(hv_levers_find(&l, HV_LEVER_TP, 0, HV_LEVER_ALL)); /* the stages differ */
    struct hv_figures f = with(b, &l, HV_LEVER_TP, 0, 0, 2);
    double *v = bases(&l);
    v[x - l.items] = 2;
    assert_int_equal(hv_levers_accept(b->session, &l, v, &said, NULL), HV_OK);
    uint32_t id = hv_session_selected(b->session);
    const struct hv_plan *p = hv_session_plan(b->session, id, NULL);
    assert_int_equal(p->replicas[0].stages[0].tp.degree, 2);
    assert_int_equal(p->replicas[0].stages[0].dp, 4);
    assert_int_equal(p->replicas[0].stages[1].tp.degree, 4);
    double kept_s = hv_session_verdict(b->session, id, false, NULL)->metrics.iteration_s;
    assert_true(kept_s >= f.iteration_s && kept_s <= f.iteration_s);
    assert_true(hv_session_undo(b->session));
    hv_str_free(&said);
    free(v);
    hv_levers_free(&l);
}

static void accepting_is_undone_step_by_step(void **state)
{
    struct bench *b = *state;
    struct hv_levers l;
    struct hv_err err = {0};
    struct hv_str said = {0};
    uint32_t id = first_row(b, &l);
    json_t *cluster = json_deep_copy(hv_session_tree(b->session, HV_DOC_CLUSTER));
    json_t *job = json_deep_copy(hv_session_tree(b->session, HV_DOC_JOB));
    double *v = bases(&l);
    v[hv_levers_find(&l, HV_LEVER_BATCH, 0, 0) - l.items] = 256;
    v[hv_levers_find(&l, HV_LEVER_NETWORK, 0, 0) - l.items] = 25;
    v[hv_levers_find(&l, HV_LEVER_SLOW, 1, 0) - l.items] = 1.5;
    struct hv_figures tried;
    assert_int_equal(hv_levers_try(b->session, &l, v, true, &tried, &err), HV_OK);
    if (hv_levers_accept(b->session, &l, v, &said, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(hv_str_cstr(&said), "cluster, job, plan two-stages-what-if");
    uint32_t now = hv_session_selected(b->session);
    assert_true(now != id);
    const struct hv_verdict *verdict = hv_session_verdict(b->session, now, false, &err);
    assert_non_null(verdict);
    assert_true(fabs(verdict->metrics.iteration_s / tried.iteration_s - 1) < 1e-12);
    assert_int_equal(hv_session_n_undo(b->session), 3);
    while (hv_session_undo(b->session)) {
    }
    assert_true(json_equal(hv_session_tree(b->session, HV_DOC_CLUSTER), cluster));
    assert_true(json_equal(hv_session_tree(b->session, HV_DOC_JOB), job));
    assert_null(hv_session_row(b->session, now));
    while (hv_session_redo(b->session)) {
    }
    assert_non_null(hv_session_row(b->session, now));
    free(v);
    json_decref(cluster);
    json_decref(job);
    hv_str_free(&said);
    hv_levers_free(&l);
}

static void typed_values_are_checked(void **state)
{
    struct bench *b = *state;
    struct hv_levers l;
    struct hv_err err = {0};
    double x = 0;
    (void)first_row(b, &l);
    const struct hv_lever *batch = hv_levers_find(&l, HV_LEVER_BATCH, 0, 0);
    const struct hv_lever *schedule = hv_levers_find(&l, HV_LEVER_SCHEDULE, 0, 0);
    assert_int_equal(hv_lever_parse(batch, "256", &x, &err), HV_OK);
    assert_true(x == 256);
    assert_int_equal(hv_lever_parse(batch, "many", &x, &err), HV_EUSAGE);
    assert_int_equal(hv_lever_parse(batch, "1e300", &x, &err), HV_EUSAGE);
    assert_int_equal(hv_lever_parse(schedule, "gpipe", &x, &err), HV_OK);
    assert_string_equal(schedule->words[(size_t)x], "gpipe");
    assert_int_equal(hv_lever_parse(schedule, "gpip", &x, &err), HV_EUSAGE);
    assert_non_null(strstr(err.text, "did you mean \"gpipe\""));
    hv_levers_free(&l);
}

static void failures_cost_what_is_expected(void **state)
{
    struct bench *b = *state;
    struct hv_levers l;
    struct hv_str said = {0};
    struct hv_err err = {0};
    (void)first_row(b, &l);
    const struct hv_lever *every = hv_levers_find(&l, HV_LEVER_INTERVAL, 0, 0);
    assert_non_null(every);
    assert_string_equal(every->words[0], "the best");
    double *v = bases(&l);
    size_t group = (size_t)(hv_levers_find(&l, HV_LEVER_PREEMPTED, 1, 0) - l.items);
    size_t restart = (size_t)(hv_levers_find(&l, HV_LEVER_RESTART, 0, 0) - l.items);
    double before = HUGE_VAL, best = 0;
    struct hv_figures f;
    for (size_t k = 1; k < l.items[group].n_values; k++) { /* the more often, the less is done */
        v[group] = l.items[group].values[k];
        assert_int_equal(hv_levers_try(b->session, &l, v, false, &f, NULL), HV_OK);
        assert_true(f.expected_per_s < before && f.expected_per_s < f.tokens_per_s);
        assert_true(hv_known(f.expected_usd));
        before = f.expected_per_s;
    }
    v[group] = 1.2;
    assert_int_equal(hv_levers_try(b->session, &l, v, false, &f, NULL), HV_OK);
    best = f.expected_per_s;
    for (size_t k = 1; k < every->n_values; k++) { /* no interval beats the best one */
        v[every - l.items] = every->values[k];
        assert_int_equal(hv_levers_try(b->session, &l, v, false, &f, NULL), HV_OK);
        assert_true(f.expected_per_s <= best * (1 + 1e-9));
    }
    v[every - l.items] = 0;
    v[restart] = 3600;
    assert_int_equal(hv_levers_try(b->session, &l, v, false, &f, NULL), HV_OK);
    assert_true(f.expected_per_s < best);
    v[every - l.items] = 4;
    assert_int_equal(hv_levers_accept(b->session, &l, v, &said, &err), HV_OK);
    assert_string_equal(hv_str_cstr(&said), "cluster, job");
    const json_t *rules = json_object_get(hv_session_tree(b->session, HV_DOC_JOB), "failures");
    assert_true(json_number_value(json_object_get(rules, "restart_s")) == 3600);
    assert_true(json_number_value(json_object_get(rules, "checkpoint_interval_s")) == 300);
    free(v);
    hv_str_free(&said);
    hv_levers_free(&l);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

/* Two stages: all places of the border, judged one by one, against the program's. */
static void shared_layers_are_the_best_there_are(void **state)
{
    struct bench *b = *state;
    struct hv_levers l;
    (void)first_row(b, &l);
    const struct hv_lever *border = hv_levers_find(&l, HV_LEVER_LAYERS, 0, 1);
    const struct hv_lever *slow = hv_levers_find(&l, HV_LEVER_SLOW, 0, 0);
    assert_non_null(border);
    for (int turned = 0; turned < 2; turned++) {
        double *v = bases(&l), best = HV_UNKNOWN;
        struct hv_figures f;
        struct hv_share share;
        v[slow - l.items] = turned ? 3 : 1;
        for (size_t k = 0; k < border->n_values; k++) {
            v[border - l.items] = border->values[k];
            bool ok = hv_levers_try(b->session, &l, v, false, &f, NULL) == HV_OK;
            if (ok && f.n_violations == 0 && !(f.iteration_s >= best)) {
                best = f.iteration_s;
            }
        }
        v[border - l.items] = border->base;
        assert_int_equal(hv_levers_share(b->session, &l, v, &share, NULL), HV_OK);
        assert_true(share.figures.n_violations == 0);
        assert_true(share.figures.iteration_s <= best * 1.01);
        assert_int_equal(hv_levers_try(b->session, &l, v, false, &f, NULL), HV_OK);
        assert_true(f.iteration_s == share.figures.iteration_s);
        free(v);
    }
    hv_levers_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_base_is_the_verdict),
        TEST(turning_changes_no_document),
        TEST(better_hardware_is_not_slower),
        TEST(batch_and_micro_batch_keep_the_sum),
        TEST(a_failed_node_costs_time_or_the_plan),
        TEST(degrees_divide_the_same_ranks_anew),
        TEST(accepting_is_undone_step_by_step),
        TEST(failures_cost_what_is_expected),
        TEST(typed_values_are_checked),
        TEST(shared_layers_are_the_best_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
