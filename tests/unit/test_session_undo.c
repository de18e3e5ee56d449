/* The journal: everything back and everything again, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "tests/unit/session_bench.h"

/* All documents and plans as one text. Owner: caller frees p. */
static struct hv_str all_bytes(const struct hv_session *s)
{
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    struct hv_str out = bench_bytes(s);
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(&out, "%s: ", rows[i]->name);
        hv_json_write(&out, rows[i]->plan, true);
    }
    return out;
}

/* A plan as the console gives it back. */
static void add_plan(struct hv_session *s, const char *name)
{
    size_t n = 0;
    json_t *commands = json_pack("[{s:s,s:s,s:o}]", "do", "plan", "name", name, "plan",
                                 json_loads(BENCH_PLAN, 0, NULL));
    (void)!hv_session_apply(s, commands, &n, NULL);
    json_decref(commands);
}

/* A random edit of a random plan. */
static void edit_plan(struct hv_session *s, struct hv_rng *rng, unsigned i)
{
    char text[40];
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    uint32_t id = n > 0 ? rows[hv_rng_below(rng, n)]->id : 0;
    snprintf(text, sizeof text, "p%u", i % 7);
    switch (hv_rng_below(rng, 5)) {
    case 0:
        (void)hv_session_row_delete(s, id);
        break;
    case 1:
        (void)!hv_session_row_rename(s, id, text, NULL);
        break;
    case 2:
        (void)!hv_session_row_note(s, id, text, NULL);
        break;
    default:
        add_plan(s, text);
    }
}

/* One random edit; many of them are wrong on purpose. */
static void edit(struct hv_session *s, struct hv_rng *rng, unsigned i)
{
    char path[80], text[80];
    size_t n = json_array_size(hv_session_get(s, "cluster.nodes"));
    unsigned which = (unsigned)hv_rng_below(rng, 10), at = (unsigned)hv_rng_below(rng, n + 1);
    snprintf(path, sizeof path, "cluster.nodes[%u]", at);
    if (which == 0) {
        snprintf(text, sizeof text, "g%u", i);
        json_t *group =
            json_pack("{s:s,s:i,s:s,s:i}", "name", text, "count", (int)hv_rng_below(rng, 3),
                      "device", "A100-SXM-40GB", "devices", 4);
        (void)!hv_session_insert(s, path, group, NULL);
    } else if (which == 1) {
        (void)!hv_session_remove(s, path, NULL);
    } else if (which <= 4) {
        snprintf(path, sizeof path, "cluster.nodes[%u].%s", at, which == 2 ? "count" : "devices");
        snprintf(text, sizeof text, "%d", (int)hv_rng_below(rng, 9) - 1);
        (void)!hv_session_set_text(s, path, text, NULL);
    } else if (which == 5) {
        snprintf(text, sizeof text, "%d", (int)hv_rng_below(rng, 40) * 64);
        (void)!hv_session_set_text(s, "model.hidden", text, NULL);
    } else if (which == 6) {
        snprintf(text, sizeof text, "%d", (int)hv_rng_below(rng, 300));
        (void)!hv_session_set_text(s, "job.global_batch", text, NULL);
    } else if (which >= 8) {
        edit_plan(s, rng, i);
    } else {
        snprintf(text, sizeof text, "%d", (int)hv_rng_below(rng, 20));
        (void)!hv_session_option_set(s, "mine", "faults", text, NULL);
    }
}

static void all_back_and_all_again(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_rng rng;
    hv_rng_seed(&rng, 7);
    struct hv_str first = all_bytes(s);
    unsigned tried = 0;
    while (hv_session_n_undo(s) < HV_SESSION_UNDO_LIMIT) {
        edit(s, &rng, tried++);
    }
    size_t steps = hv_session_n_undo(s);
    assert_true(tried > steps + 100); /* some were wrong and are no steps */
    struct hv_str final = all_bytes(s);
    assert_string_not_equal(first.p, final.p);
    while (hv_session_undo(s)) {
        continue;
    }
    struct hv_str back = all_bytes(s);
    assert_string_equal(back.p, first.p);
    assert_false(hv_session_dirty(s));
    assert_int_equal(hv_session_n_undo(s), 0);
    while (hv_session_redo(s)) {
        continue;
    }
    assert_int_equal(hv_session_n_undo(s), steps);
    struct hv_str again = all_bytes(s);
    assert_string_equal(again.p, final.p);
    /* nouns follow the trees */
    uint32_t devices = hv_session_cluster(s)->cluster->n_devices;
    assert_true(hv_session_undo(s));
    assert_true(hv_session_redo(s));
    assert_int_equal(hv_session_cluster(s)->cluster->n_devices, devices);
    hv_str_free(&first);
    hv_str_free(&final);
    hv_str_free(&back);
    hv_str_free(&again);
    hv_session_close(s);
}

static void a_plan_of_the_console_is_a_step(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    size_t n = 0;
    add_plan(s, "mine");
    assert_string_equal(hv_session_undo_label(s), "add mine");
    assert_true(hv_session_dirty(s));
    assert_true(hv_session_undo(s));
    (void)hv_session_rows(s, &n);
    assert_int_equal(n, 0);
    assert_false(hv_session_dirty(s));
    assert_true(hv_session_redo(s));
    assert_string_equal(hv_session_rows(s, &n)[0]->name, "mine");
    assert_int_equal(n, 1);
    hv_session_close(s);
}

static void a_new_edit_ends_redo(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    assert_false(hv_session_undo(s));
    assert_false(hv_session_redo(s));
    assert_null(hv_session_undo_label(s));
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "32", NULL), HV_OK);
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "16", NULL), HV_OK);
    assert_true(hv_session_undo(s));
    assert_string_equal(hv_session_redo_label(s), "set job.global_batch 16");
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "8", NULL), HV_OK);
    assert_null(hv_session_redo_label(s));
    assert_int_equal(hv_session_n_undo(s), 2);
    hv_session_close(s);
}

static void the_oldest_steps_go_first(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    for (int i = 1; i <= HV_SESSION_UNDO_LIMIT + 50; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", 100 + i);
        assert_int_equal(hv_session_set_text(s, "job.global_batch", text, NULL), HV_OK);
    }
    assert_int_equal(hv_session_n_undo(s), HV_SESSION_UNDO_LIMIT);
    while (hv_session_undo(s)) {
        continue;
    }
    assert_int_equal(hv_session_job(s)->job.global_batch, 150);
    hv_session_close(s);
}

static void deleted_rows_come_back_or_go(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    size_t n = 0;
    uint32_t a = bench_add_plan(s, "a"), b = bench_add_plan(s, "b");
    assert_true(hv_session_row_delete(s, a));
    assert_true(hv_session_row_delete(s, b));
    hv_session_rows(s, &n);
    assert_int_equal(n, 0);
    assert_string_equal(hv_session_undo_label(s), "delete b");
    assert_true(hv_session_undo(s));
    assert_non_null(hv_session_row(s, b));
    /* the edit ends redo; the row that is still deleted can come back, and does */
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "32", NULL), HV_OK);
    assert_true(hv_session_undo(s));
    assert_true(hv_session_undo(s));
    assert_non_null(hv_session_row(s, a));
    assert_non_null(hv_session_verdict(s, a, false, NULL));
    /* rows no step names any more are really gone */
    assert_true(hv_session_redo(s));
    for (int i = 1; i <= HV_SESSION_UNDO_LIMIT + 1; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", 100 + i);
        assert_int_equal(hv_session_set_text(s, "job.global_batch", text, NULL), HV_OK);
    }
    while (hv_session_undo(s)) {
        continue;
    }
    assert_null(hv_session_row(s, a));
    assert_non_null(hv_session_row(s, b));
    hv_session_close(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(all_back_and_all_again),       TEST(a_plan_of_the_console_is_a_step),
        TEST(a_new_edit_ends_redo),         TEST(the_oldest_steps_go_first),
        TEST(deleted_rows_come_back_or_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
