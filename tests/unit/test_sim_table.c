/* The table of schedules and the tokens of operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/sim/schedule/schedule.h"
#include <string.h>

static void tokens_round_trip(void **state)
{
    (void)state;
    static const char *const good[] = {"F2.5", "BW0.3", "B10.200", "W1.0", "R3.4.15", "F0.0.0"};
    static const char *const bad[] = {"",
                                      "F",
                                      "F1",
                                      "F1.",
                                      "1.2",
                                      "F1.2.",
                                      "f1.2",
                                      " F1.2",
                                      "F1.2 ",
                                      "F-1.2",
                                      "{F1.2}",
                                      "{F1.2|",
                                      "{|}",
                                      "{F1.2|B1.2",
                                      "F1.2.3.4",
                                      "BB1.2",
                                      "F99999999999.1",
                                      "F1.99999999",
                                      "F1.1.99999"};
    struct hv_op ops[2];
    size_t n;
    char buf[HV_OP_TOKEN_CAP];
    for (size_t i = 0; i < HV_COUNT(good); i++) {
        assert_int_equal(hv_op_parse(good[i], 0, ops, &n, NULL), HV_OK);
        assert_int_equal(n, 1);
        assert_int_equal(ops[0].group, -1);
        assert_string_equal(hv_op_format(&ops[0], buf, sizeof buf), good[i]);
    }
    for (size_t i = 0; i < HV_COUNT(bad); i++) {
        assert_int_equal(hv_op_parse(bad[i], 0, ops, &n, NULL), HV_EINPUT);
    }
    assert_int_equal(hv_op_parse("{F1.2|BW0.3}", 7, ops, &n, NULL), HV_OK);
    assert_int_equal(n, 2);
    assert_int_equal(ops[0].group, 7);
    assert_int_equal(ops[1].kind, HV_OP_BW);
    assert_int_equal(ops[1].mb, 3);
}

/* the contract's list (formats.md, schedule names): every one is there with its options, and every
 * row says what it is, where it comes from, what it needs and keeps */
static void table_is_complete(void **state)
{
    (void)state;
    static const char *const contract[][4] = {
        {"gpipe", "backward", "recompute"},
        {"1f1b"},
        {"dapple", "early"},
        {"interleaved", "group"},
        {"breadth-first"},
        {"group-interleaved", "group"},
        {"terapipe", "slices"},
        {"seq1f1b", "slices"},
        {"chimera", "pipes", "mode"},
        {"hanayo", "waves"},
        {"zb-h1"},
        {"zb-h2"},
        {"zb-1p"},
        {"zb-1.5p"},
        {"zb-2p"},
        {"zb-v", "variant"},
        {"1f1b-v"},
        {"v-half"},
        {"v-min"},
        {"v-adaptive", "memory"},
        {"dualpipe"},
        {"dualpipev"},
        {"varuna"},
        {"pipedream"},
        {"pipedream-2bw"},
        {"hetpipe", "in_flight", "staleness"},
        {"bpipe"},
        {"autopipe", "sliced"},
        {"distmm", "barrier"},
        {"explicit"},
        {"dynapipe"},
        {"graphpipe"},
        {"tessel"},
        {"zb-list", "memory"},
    };
    size_t n_rows;
    const struct hv_schedule_row *rows = hv_schedules(&n_rows);
    for (size_t i = 0; i < HV_COUNT(contract); i++) {
        const struct hv_schedule_row *row;
        assert_int_equal(hv_schedule_find(contract[i][0], &row, NULL), HV_OK);
        for (size_t k = 1; k < 4 && contract[i][k]; k++) {
            bool there = false;
            for (size_t o = 0; o < row->n_options; o++) {
                there = there || strcmp(row->options[o].key, contract[i][k]) == 0;
            }
            assert_true(there);
        }
    }
    for (size_t i = 0; i < n_rows; i++) {
        const struct hv_schedule_row *r = &rows[i];
        assert_true(r->name[0] && r->summary[0] && r->source[0] && r->memory[0] && r->generate);
        assert_non_null(r->constraints);
        assert_true(r->n_options <= HV_SCHEDULE_OPTIONS_MAX);
        for (size_t k = 0; k < r->n_options; k++) {
            assert_true(r->options[k].key[0] && r->options[k].help[0]);
            assert_true(r->options[k].min <= r->options[k].def &&
                        r->options[k].def <= r->options[k].max);
        }
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(r->name, rows[k].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_round_trip),
                                       cmocka_unit_test(table_is_complete)};
    return cmocka_run_group_tests_name("sim/table", tests, NULL, NULL);
}
