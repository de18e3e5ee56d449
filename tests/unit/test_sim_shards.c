/* Gathers and reductions of sharded chunks, against the planner of torch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/sim/schedule/shards.h"

struct wanted {
    const char *name;
    int32_t v, m, window, gathers[4];
};

/* torch 2.15.0, distributed/pipelining/schedules.py: _calculate_single_rank_operations and
 * _add_unshard_reshard of ScheduleLoopedBFS, ScheduleInterleaved1F1B and ScheduleZBVZeroBubble on
 * four ranks. */
static const struct wanted cases[] = {
    {"breadth-first", 2, 8, 1, {3, 3, 3, 3}},   {"breadth-first", 4, 8, 2, {6, 6, 6, 6}},
    {"breadth-first", 4, 8, 4, {4, 4, 4, 4}},   {"interleaved", 2, 8, 1, {11, 19, 13, 5}},
    {"interleaved", 4, 8, 1, {31, 39, 33, 25}}, {"interleaved", 4, 8, 2, {12, 12, 12, 12}},
    {"zb-v", 2, 8, 1, {11, 17, 21, 25}},        {"zb-v", 2, 8, 2, {2, 2, 2, 2}},
};

static void against_torch(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct wanted *w = &cases[i];
        const struct hv_schedule_row *row;
        struct hv_schedule_input in;
        struct hv_schedule s;
        struct hv_arena a = {0};
        int32_t gathers[4], reductions[4];
        assert_int_equal(hv_schedule_find(w->name, &row, NULL), HV_OK);
        hv_schedule_input_init(&in, row, 4, w->m);
        in.chunks = w->v;
        assert_int_equal(hv_schedule_make(&a, &in, &s, NULL), HV_OK);
        hv_schedule_shards(&s, w->window, gathers, reductions);
        for (int r = 0; r < 4; r++) {
            assert_int_equal(gathers[r], w->gathers[r]);
            assert_int_equal(reductions[r], w->v);
        }
        hv_arena_free(&a);
    }
}

/* Forward and backward use chunks in opposite orders, so breadth-first gathers 2v − 1 times with
 * one held, whatever the number of micro-batches is. */
static void breadth_first(void **state)
{
    (void)state;
    for (int32_t v = 2; v <= 6; v++) {
        for (int32_t m = 4; m <= 32; m *= 2) {
            const struct hv_schedule_row *row;
            struct hv_schedule_input in;
            struct hv_schedule s;
            struct hv_arena a = {0};
            int32_t gathers[4], reductions[4];
            assert_int_equal(hv_schedule_find("breadth-first", &row, NULL), HV_OK);
            hv_schedule_input_init(&in, row, 4, m);
            in.chunks = v;
            assert_int_equal(hv_schedule_make(&a, &in, &s, NULL), HV_OK);
            hv_schedule_shards(&s, 1, gathers, reductions);
            assert_int_equal(gathers[0], 2 * v - 1);
            assert_int_equal(reductions[3], v);
            hv_arena_free(&a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_torch),
        cmocka_unit_test(breadth_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
