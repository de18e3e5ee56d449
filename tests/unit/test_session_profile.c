/* Measured profiles in an open workspace: taken over, kept, and refused whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/session_bench.h"

static double step_s(struct hv_session *s, uint32_t id)
{
    const struct hv_verdict *v = hv_session_verdict(s, id, false, NULL);
    assert_non_null(v);
    return v->metrics.iteration_s;
}

/* The shipped profile of the A40 as if it had been measured on a V100. */
static void write_profile(const char *path, const char *device)
{
    struct hv_str file = {0}, text = {0};
    assert_int_equal(hv_data_path(&file, "share/profiles/A40.json", NULL), HV_OK);
    assert_int_equal(hv_file_read(hv_str_cstr(&file), &text, NULL), HV_OK);
    json_t *root = json_loads(hv_str_cstr(&text), 0, NULL);
    assert_non_null(root);
    (void)json_object_set_new(root, "device", json_string(device));
    (void)json_object_del(root, "same_chip");
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
    hv_str_free(&file);
    hv_str_free(&text);
}

static void a_profile_prices_its_kind_and_is_kept(void **state)
{
    struct bench *b = *state;
    struct hv_str said = {0};
    struct hv_err err = {0};
    assert_int_equal(setenv("XDG_DATA_HOME", b->folder, 1), 0);
    struct hv_session *s = bench_open(b, "ws");
    uint32_t id = bench_add_plan(s, "p");
    double before = step_s(s, id);
    write_profile("mine.json", "V100-SXM2-32GB");
    if (hv_session_profile_load(s, "mine.json", &said, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    assert_non_null(strstr(hv_str_cstr(&said), "this profile now prices V100-SXM2-32GB"));
    double after = step_s(s, id);
    assert_true(after < before || after > before);
    assert_int_equal(access("hetviz/profiles/mine.json", F_OK), 0);
    assert_int_equal(hv_session_n_undo(s), 0); /* the workspace is as it was */
    hv_session_close(s);
    s = bench_open(b, "ws"); /* the next start knows it */
    assert_true(step_s(s, bench_add_plan(s, "p")) == after);
    assert_int_equal(hv_session_profiles_reload(s, NULL), HV_OK);
    hv_session_close(s);
    hv_str_free(&said);
    assert_int_equal(unsetenv("XDG_DATA_HOME"), 0);
}

static void what_is_no_profile_is_refused(void **state)
{
    struct bench *b = *state;
    struct hv_str said = {0};
    struct hv_err err = {0};
    assert_int_equal(setenv("XDG_DATA_HOME", b->folder, 1), 0);
    struct hv_session *s = bench_open(b, "ws");
    uint32_t id = bench_add_plan(s, "p");
    double before = step_s(s, id);
    assert_int_equal(hv_session_profile_load(s, "nowhere.json", &said, &err), HV_EIO);
    assert_int_equal(hv_session_profile_load(s, "ws/cluster.json", &said, &err), HV_EINPUT);
    write_profile("other.json", "No-Such-Card");
    assert_int_equal(hv_session_profile_load(s, "other.json", &said, &err), HV_EINPUT);
    assert_int_equal(access("hetviz/profiles/other.json", F_OK), -1);
    assert_true(step_s(s, id) == before);
    assert_int_equal(said.n, 0);
    hv_session_close(s);
    hv_str_free(&said);
    assert_int_equal(unsetenv("XDG_DATA_HOME"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_profile_prices_its_kind_and_is_kept, bench_setup,
                                        bench_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_profile_is_refused, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
