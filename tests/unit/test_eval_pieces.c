/** Measured layers of pieces: experts by token and attention by block, on plain links. Figures of
 * published systems, or by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/pieces_fixture.h"

/** Every layer waits for its busiest rank: 30 + 30 ms, not 40 (the most of any rank over both
 * layers), and not 40 (the mean). */
static void maxima_then_the_sum(void **state)
{
    (void)state;
    struct setting s = {.nodes = 1,
                        .each = 2,
                        .near_GBps = 1,
                        .nic_GBps = 1,
                        .sequence = 20,
                        .layer = "\"expert_ms_per_token\":1",
                        .more = ",{\"expert_ms_per_token\":{\"P\":1}}",
                        .routing = "{\"kind\":\"trace\",\"counts\":[[[[30,10]],[[10,30]]]]}",
                        .stage = ",\"dp\":2,\"ep\":2"};
    near_to(time_ms(&s), 60, 1e-9);
    s.routing = NULL;
    near_to(time_ms(&s), 40, 1e-9);
}

/** Loads of 40, 30, 20 and 10 tokens at 0.1 ms: the hottest worker takes 4.0 ms, the mean 2.5 (He
 * et al. 2021, FastMoE). */
static void hottest_worker(void **state)
{
    (void)state;
    struct setting s = {.nodes = 4,
                        .each = 1,
                        .near_GBps = 1,
                        .nic_GBps = 1,
                        .sequence = 25,
                        .layer = "\"expert_ms_per_token\":0.1",
                        .routing = "{\"kind\":\"trace\",\"counts\":[[[[40,30,20,10]]]]}",
                        .stage = ",\"dp\":4,\"ep\":4"};
    near_to(time_ms(&s), 4, 1e-9);
    s.layer = "\"expert_ms_per_token\":0.1,\"backward_ms\":{\"P\":0}"; /* two gradients */
    near_to(time_ms(&s), 12, 1e-9);
    s.layer = "\"expert_ms_per_token\":[0.1,0.15]";
    near_to(time_ms(&s), 10, 1e-9);
    s.layer = "\"expert_ms_per_token\":0.1,\"expert_fixed_ms\":0.5,\"forward_ms\":{\"P\":2}";
    near_to(time_ms(&s), 2.0 * 25 / 25 + 4.5, 1e-9);
    s.routing = NULL;
    near_to(time_ms(&s), 2 + 3, 1e-9);
}

/** Two ranks, 1000 tokens of 8000 bytes of which half stay: an exchange takes 0.1 ms and 4 ms over
 * the chunks, experts 0.05 and 10 ms. */
static double piped_ms(int forward, int backward, double token_ms, double bytes, bool trains)
{
    char layer[256], stage[128];
    (void)snprintf(layer, sizeof layer,
                   "\"expert_fixed_ms\":0.05,\"expert_ms_per_token\":%.17g,"
                   "\"dispatch_bytes_per_token\":%.17g%s",
                   token_ms, bytes, trains ? ",\"backward_ms\":{\"P\":0}" : "");
    (void)snprintf(stage, sizeof stage,
                   ",\"dp\":2,\"ep\":2,\"moe\":{\"all_to_all\":\"flat\",\"degree\":[%d,%d]}",
                   forward, backward);
    const struct setting s = {.nodes = 2,
                              .each = 1,
                              .near_GBps = 1,
                              .nic_GBps = 1,
                              .latency_us = 100,
                              .sequence = 1000,
                              .layer = layer,
                              .stage = stage};
    return time_ms(&s);
}

/** The best degree is 13, with 11.4654 ms; where the links bind, 2 with 16.4 (Shi et al. 2023,
 * PipeMoE: max(2 r x, 2 x + r e, (r + 1) x + e)). Backward experts take twice as long, so the best
 * degree is another: 9, with 2 (0.1 + 4/9) + 9 (0.1 + 20/9) ms. */
static void degree_each_way(void **state)
{
    (void)state;
    int best = 1;
    for (int r = 1; r <= 20; r++) {
        best = piped_ms(r, 1, 0.01, 8000, false) < piped_ms(best, 1, 0.01, 8000, false) ? r : best;
    }
    assert_int_equal(best, 13);
    near_to(piped_ms(1, 1, 0.01, 8000, false), 18.25, 1e-9);
    near_to(piped_ms(2, 1, 0.01, 8000, false), 14.3, 1e-9);
    near_to(piped_ms(4, 1, 0.01, 8000, false), 12.4, 1e-9);
    near_to(piped_ms(8, 1, 0.01, 8000, false), 11.6, 1e-9);
    near_to(piped_ms(13, 1, 0.01, 8000, false), 11.4654, 1e-5);
    near_to(piped_ms(1, 1, 0.004, 16000, false), 20.25, 1e-9);
    near_to(piped_ms(2, 1, 0.004, 16000, false), 16.4, 1e-9);
    best = 1;
    for (int r = 1; r <= 20; r++) {
        best = piped_ms(13, r, 0.01, 8000, true) < piped_ms(13, best, 0.01, 8000, true) ? r : best;
    }
    assert_int_equal(best, 9);
    near_to(piped_ms(13, 9, 0.01, 8000, true) - piped_ms(13, 1, 0.01, 8000, false),
            2 * (0.1 + 4.0 / 9) + 9 * (0.1 + 20.0 / 9), 1e-9);
}

/** Two ranks and two chunks: compression and its reverse 1 ms, exchanges 3 ms, experts 4 ms per
 * chunk; twice that without chunks. OptSche takes 20, no chunks 28 (Shi et al. 2024, ScheMoE); in
 * order of arrival the first result is expanded before the last chunk is compressed: 21. */
static void chunks_with_compression(void **state)
{
    (void)state;
    static const struct {
        const char *moe;
        double ms;
    } rows[] = {{"\"degree\":2,\"order\":\"optsche\"", 20},
                {"\"degree\":2", 21},
                {"\"order\":\"optsche\"", 28},
                {"\"degree\":1", 28}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char stage[256];
        (void)snprintf(stage, sizeof stage,
                       ",\"dp\":2,\"ep\":2,\"moe\":{\"all_to_all\":\"flat\",\"compress\":{"
                       "\"ratio\":4,\"GBps\":1},%s}",
                       rows[i].moe);
        const struct setting s = {.nodes = 2,
                                  .each = 1,
                                  .near_GBps = 1,
                                  .nic_GBps = 0.125 / 3,
                                  .sequence = 1000,
                                  .layer = "\"expert_ms_per_token\":0.008,"
                                           "\"dispatch_bytes_per_token\":2000",
                                  .stage = stage};
        near_to(time_ms(&s), rows[i].ms, 1e-9);
    }
}

/** Four workers whose experts get 4000, 1500, 1200 and 300 tokens, none from the worker itself;
 * 4 alpha H^2 FLOPs a token at 50 TFLOP/s and H fp32 values at 12.5 GB/s, alpha 2 and H 1024: three
 * times the experts of the hottest one and four times its tokens, 7.256 ms (He et al. 2022,
 * FasterMoE, section 4.1). */
static void training_of_the_hottest_worker(void **state)
{
    (void)state;
    struct setting s = {.nodes = 4,
                        .each = 1,
                        .near_GBps = 1,
                        .nic_GBps = 12.5,
                        .sequence = 1750,
                        .layer = "\"expert_ms_per_token\":1.6777216e-4,\"backward_ms\":{\"P\":0},"
                                 "\"dispatch_bytes_per_token\":4096",
                        .routing = "{\"kind\":\"trace\",\"counts\":[[[[0,1500,1200,300],"
                                   "[1400,0,0,0],[1400,0,0,0],[1200,0,0,0]]]]}",
                        .stage = ",\"dp\":4,\"ep\":4,\"moe\":{\"all_to_all\":\"flat\"}"};
    near_to(time_ms(&s), 7.256, 1e-4);
    near_to(time_ms(&s), 4000 * (3 * 8 * 1024.0 * 1024 / 50e9 + 4 * 4096 / 12.5e6), 1e-9);
}

/** Eight ranks in two nodes pass 64 MiB of keys and values around, 200 GB/s inside and 25 GB/s per
 * rank outside, blocks of 1 ms: one ring waits for 7 hops of 2.684 ms; two nested ones hide them: 8
 * ms (Gu et al. 2024, LoongTrain). */
static void rings_of_blocks(void **state)
{
    (void)state;
    struct setting s = {.nodes = 2,
                        .each = 4,
                        .near_GBps = 200,
                        .nic_GBps = 25,
                        .sequence = 8192,
                        .layer = "\"attention_block_ms\":1,\"kv_bytes_per_token\":65536",
                        .stage = ",\"cp\":{\"scheme\":\"loongtrain\",\"degree\":8,\"inner\":1}"};
    near_to(time_ms(&s), 1 + 7 * 67.108864 / 25, 1e-9);
    s.stage = ",\"cp\":{\"scheme\":\"loongtrain\",\"degree\":8,\"inner\":4}";
    near_to(time_ms(&s), 8, 1e-9);
    /* keys and values of the size of the output each */
    s.layer = "\"attention_block_ms\":1,\"output_bytes\":268435456";
    s.stage = ",\"cp\":{\"scheme\":\"ring\",\"degree\":8}";
    near_to(time_ms(&s), 1 + 7 * 67.108864 / 25, 1e-9);
}

static void one_line_says_that_nothing_runs_backward(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct setting s = {.nodes = 1,
                        .each = 1,
                        .near_GBps = 1,
                        .nic_GBps = 1,
                        .sequence = 25,
                        .layer = "\"expert_ms_per_token\":0.1",
                        .stage = ""};
    struct hv_verdict v = verdict_of(&s, &a);
    assert_int_equal(v.n_approximated, 1);
    assert_non_null(strstr(v.approximated[0], "backward_ms"));
    s.layer = "\"expert_ms_per_token\":0.1,\"backward_ms\":{\"P\":1}";
    v = verdict_of(&s, &a);
    assert_int_equal(v.n_approximated, 0);
    hv_arena_free(&a);
}

static void bad_pieces_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const broken[][2] = {
        {"\"expert_ms_per_token\":[1]", "expert_ms_per_token"},
        {"\"expert_ms_per_token\":{\"P\":[1,2,3]}", "expert_ms_per_token.P"},
        {"\"expert_fixed_ms\":-1", "expert_fixed_ms"},
        {"\"expert_fixed_ms\":1,\"experts\":2,\"top_k\":3", "top_k"},
        {"\"dispatch_bytes_per_token\":1", "forward_ms"},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char text[512];
        struct hv_model_doc doc = {0};
        struct hv_err err = {0};
        (void)snprintf(text, sizeof text,
                       "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\","
                       "\"layers\":[{%s}]}",
                       broken[i][0]);
        assert_int_not_equal(hv_model_doc_build(&doc, parse(text, "m"), &err), HV_OK);
        if (strstr(err.text, broken[i][1]) == NULL) {
            fail_msg("%s is not named by: %s", broken[i][1], err.text);
        }
        hv_model_doc_free(&doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maxima_then_the_sum),
        cmocka_unit_test(hottest_worker),
        cmocka_unit_test(degree_each_way),
        cmocka_unit_test(chunks_with_compression),
        cmocka_unit_test(training_of_the_hottest_worker),
        cmocka_unit_test(rings_of_blocks),
        cmocka_unit_test(one_line_says_that_nothing_runs_backward),
        cmocka_unit_test(bad_pieces_are_refused_by_name),
    };
    return cmocka_run_group_tests_name("eval_pieces", tests, NULL, NULL);
}
