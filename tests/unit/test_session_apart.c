/* Work in a child process: it answers, hangs, crashes, prints, or is cancelled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ui/process/fork.h"

static void answer(void *ctx, struct hv_str *out)
{
    puts("what lp_solve prints");
    for (int i = 0; i < 50000; i++) { /* more than a pipe holds */
        hv_str_addf(out, "%d,", *(int *)ctx);
    }
}

static void hang(void *ctx, struct hv_str *out)
{
    (void)ctx;
    hv_str_adds(out, "half an answer");
    for (;;) {
        (void)pause();
    }
}

static void crash(void *ctx, struct hv_str *out)
{
    (void)ctx;
    (void)out;
    abort();
}

static bool yes(void *ctx)
{
    (void)ctx;
    return true;
}

/* No child is left behind. */
static void assert_alone(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void work_answers(void **state)
{
    (void)state;
    struct hv_str out = {0};
    int seven = 7;
    assert_int_equal(hv_apart_run(&(struct hv_apart){.work = answer, .ctx = &seven}, &out),
                     HV_APART_DONE);
    assert_int_equal(out.n, 100000);
    assert_memory_equal(out.p, "7,7,7,", 6);
    hv_str_free(&out);
    assert_alone();
}

static void a_hang_ends_at_the_limit(void **state)
{
    (void)state;
    struct hv_str out = {0};
    assert_int_equal(hv_apart_run(&(struct hv_apart){.work = hang, .limit_s = 0.1}, &out),
                     HV_APART_LATE);
    assert_int_equal(out.n, 0);
    assert_alone();
    assert_int_equal(hv_apart_run(&(struct hv_apart){.work = hang, .cancel = yes}, &out),
                     HV_APART_CANCELLED);
    assert_int_equal(out.n, 0);
    assert_alone();
}

static void a_crash_is_noticed(void **state)
{
    (void)state;
    struct hv_str out = {0};
    assert_int_equal(hv_apart_run(&(struct hv_apart){.work = crash, .limit_s = 20}, &out),
                     HV_APART_DIED);
    assert_int_equal(out.n, 0);
    assert_alone();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_answers),
        cmocka_unit_test(a_hang_ends_at_the_limit),
        cmocka_unit_test(a_crash_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
