/** Plans that searches give up: only those that take longer than the limit, and what is known of
 * their time is no more than it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/base/rng.h"
#include "tests/eval_fixture.h"
#include "tests/random_world.h"

enum { WORLDS = 300, PLANS = 4 };

/** Plans that were compared, and given up. */
struct counts {
    int plans, given_up;
};

static struct hv_verdict judged(const struct world *w, const struct hv_plan *p, double give_up_s,
                                struct hv_arena *a)
{
    struct hv_eval_options o = {.no_bound = true, .give_up_s = give_up_s};
    struct hv_verdict v;
    if (hv_eval(w->cost, p, &o, a, &v, NULL) != HV_OK) {
        v = (struct hv_verdict){.metrics = {.iteration_s = HV_UNKNOWN}};
    }
    return v;
}

/** With limits above its time a plan is judged as without, with those below it is given up by a
 * time that it really takes, or judged. */
static void check_plan(const struct world *w, const struct hv_plan *p, const char *text,
                       struct counts *n)
{
    static const double limits[] = {1.00001, 1.001, 0.999, 0.9, 0.5};
    struct hv_arena a = {0};
    double want = judged(w, p, 0, &a).metrics.iteration_s;
    for (size_t i = 0; isfinite(want) && i < HV_COUNT(limits); i++) {
        struct hv_verdict v = judged(w, p, limits[i] * want, &a);
        if (v.at_least_s > 0) {
            if (!(v.at_least_s >= limits[i] * want && v.at_least_s <= want * (1 + 1e-9))) {
                fail_msg("at least %.9g s of %.9g, given up at %.9g: %s", v.at_least_s, want,
                         limits[i] * want, text);
            }
        } else if (!(fabs(v.metrics.iteration_s - want) <= 1e-12 * want)) {
            fail_msg("%.17g s with a limit, %.17g without: %s", v.metrics.iteration_s, want, text);
        }
        n->given_up += v.at_least_s > 0;
    }
    n->plans += isfinite(want);
    hv_arena_free(&a);
}

static void only_what_is_too_slow(void **state)
{
    (void)state;
    struct hv_rng r;
    struct counts n = {0};
    hv_rng_seed(&r, 11);
    for (int i = 0; i < WORLDS; i++) {
        struct hv_str cluster = {0}, model = {0}, job = {0};
        struct places p = {0};
        struct world w;
        random_cluster(&r, &cluster, &p);
        random_model(&r, &model, &p);
        int batch = random_job(&r, &job);
        open_world(&w, hv_str_cstr(&cluster), hv_str_cstr(&model), hv_str_cstr(&job));
        for (int k = 0; k < PLANS; k++) {
            struct hv_str text = {0};
            struct hv_plan_doc doc;
            hv_str_addf(&text, "{\"format\":\"hetviz.plan/1\",");
            bool good = random_plan(&r, &text, &p, batch);
            hv_str_addf(&text, "}");
            if (good && hv_plan_doc_build(&doc, parse(hv_str_cstr(&text), "p"),
                                          w.in.cluster.cluster, NULL) == HV_OK) {
                check_plan(&w, doc.plan, hv_str_cstr(&text), &n);
                hv_plan_doc_free(&doc);
            }
            hv_str_free(&text);
        }
        close_world(&w);
        hv_str_free(&cluster);
        hv_str_free(&model);
        hv_str_free(&job);
    }
    print_message("%d plans, given up %d times\n", n.plans, n.given_up);
    assert_true(n.plans > 200 && n.given_up > 2 * n.plans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_is_too_slow)};
    return cmocka_run_group_tests_name("eval_give_up", tests, NULL, NULL);
}
