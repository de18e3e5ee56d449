/* Logs of trainers: lines in the shape of what Megatron-LM, DeepSpeed, torchtitan and NeMo print,
 * written here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/str.h"
#include "solver/io/runs/run_log.h"
#include <math.h>
#include <string.h>

static struct hv_run_log read(const char *text)
{
    struct hv_run_log out;
    struct hv_err err = {0};
    if (hv_run_log_text("log", text, strlen(text), &out, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return out;
}

static void near(double got, double want)
{
    if (!(fabs(got / want - 1) < 1e-9)) {
        fail_msg("%.9g, expected %.9g", got, want);
    }
}

/* The first iteration is left out; of 3.0, 2.0, 2.2 and 9.0 s the median is 2.6. */
static void megatron(void **state)
{
    (void)state;
    struct hv_run_log l = read(
        "[Rank 3] (after 1 iterations) memory (MB) | allocated: 10.5 | max allocated: 2048.0 | "
        "reserved: 3000.0 | max reserved: 4096.0\n"
        "[Rank 0] (after 1 iterations) memory (MB) | allocated: 10.5 | max allocated: 1024.0 | "
        "reserved: 3000.0 | max reserved: 3072.0\n"
        " [2025-08-01 07:19:37] iteration        1/    5000 | consumed samples:          128 | "
        "elapsed time per iteration (ms): 19138.8 | global batch size:   128 | lm loss: 1E+01 |\n"
        " iteration        2/    5000 | elapsed time per iteration (ms): 3000.0 | global batch "
        "size:   128 |\r\n"
        " iteration        3/    5000 | elapsed time per iteration (ms): 2000.0 | global batch "
        "size:   128 |\n"
        " iteration        4/    5000 | elapsed time per iteration (ms): 2200.0 | x\n"
        " iteration        5/    5000 | elapsed time per iteration (ms): 9000.0 | x");
    assert_string_equal(l.trainer, "Megatron-LM");
    assert_int_equal(l.n, 4);
    near(l.iteration_s, 2.6);
    near(l.global_batch, 128);
    near(l.allocated_bytes, 2.0 * (1 << 30));
    near(l.reserved_bytes, 4.0 * (1 << 30));
    near(hv_run_log_iteration_s(&l, 128, 2048, 8), 2.6);
}

/* 256 samples at 128 samples/s: 2 s. */
static void deepspeed(void **state)
{
    (void)state;
    struct hv_run_log l =
        read("[2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/"
             "global_step=10, RunningAvgSamplesPerSec=100.5, CurrSamplesPerSec=128.0, "
             "MemAllocated=4.32GB, MaxMemAllocated=38.5GB\n");
    assert_string_equal(l.trainer, "DeepSpeed");
    assert_int_equal(l.n, 1);
    assert_true(isnan(l.iteration_s));
    near(hv_run_log_iteration_s(&l, 256, 2048, 8), 2);
    near(l.allocated_bytes, 38.5 * (1 << 30));
    l = read("steps: 10 loss: 10.9000 iter time (s): 1.250 samples/sec: 204.800\n"
             "CurrSamplesPerSec=1.0\n");
    near(hv_run_log_iteration_s(&l, 256, 2048, 8), 1.25);
}

/* 8 devices at 2,048 tokens/s each: 16,384 tokens in 1 s. Colours and thousands are skipped. */
static void torchtitan(void **state)
{
    (void)state;
    struct hv_run_log l =
        read("[rank0]:[titan] 2025-01-01 - root - INFO - \x1b[31mstep: 10  "
             "\x1b[32mloss:  7.7431  \x1b[33mmemory: 21.16GiB(22.27%)  "
             "\x1b[34mtps: 2,048  \x1b[36mtflops: 1,128.35  mfu: 12.97%\x1b[39m\n");
    assert_string_equal(l.trainer, "torchtitan");
    near(l.tokens_per_s, 2048);
    near(l.reserved_bytes, 21.16 * (1 << 30));
    near(hv_run_log_iteration_s(&l, 8, 2048, 8), 1);
}

static void nemo(void **state)
{
    (void)state;
    struct hv_run_log l = read("Epoch 0: : 100%| 50/50 [31:51<00:00, reduced_train_loss=6.130, "
                               "train_step_timing in s=5.900, val_loss=6.250]\n");
    assert_string_equal(l.trainer, "NeMo");
    near(l.iteration_s, 5.9);
}

static void what_is_no_log(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "hello\n",
                                        "elapsed time per iteration (ms): nan\n",
                                        "elapsed time per iteration (ms): -5\n",
                                        "tps: 12\n",
                                        "elapsed time per iteration (ms):"};
    for (size_t i = 0; i < HV_COUNT(texts); i++) {
        struct hv_run_log out;
        struct hv_err err = {0};
        assert_int_equal(hv_run_log_text("x.log", texts[i], strlen(texts[i]), &out, &err),
                         HV_EINPUT);
        assert_non_null(strstr(err.text, "x.log: found no time of an iteration"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(megatron), cmocka_unit_test(deepspeed),      cmocka_unit_test(torchtitan),
        cmocka_unit_test(nemo),     cmocka_unit_test(what_is_no_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
