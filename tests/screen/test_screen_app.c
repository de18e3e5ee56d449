/* The application with a toy view on the memory terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/toy_view.h"
#include "ui/term/term.h"
#include "ui/view/app/script.h"

/* Runs a script in ASCII at 80x24; the screens it saved to `-` go to out. */
static enum hv_status run_script(const char *text, struct toy_model *m, struct hv_str *out)
{
    struct hv_keymap keys = {0};
    struct hv_grid grid = {0};
    struct hv_err err = {0};
    hv_keymap_default(&keys);
    struct hv_app *app = toy_app(m, &keys, true);
    struct hv_script s = {.app = app, .grid = &grid, .out = out};
    enum hv_status status = hv_script_run(&s, text, strlen(text), "test", &err);
    hv_app_free(app);
    hv_grid_free(&grid);
    hv_keymap_free(&keys);
    return status;
}

static void keys_move_find_and_run_commands(void **state)
{
    (void)state;
    struct toy_model m = {.n_rows = 1000};
    struct hv_str out = {0};
    assert_int_equal(run_script("keys jj\nwait > row-2\nkeys /row-77<Enter>\nwait > row-77\n"
                                "keys n\nwait > row-770\n:hello wörld\nwait ran hello\n"
                                ":save-screen -\n",
                                &m, &out),
                     HV_OK);
    assert_string_equal(m.last_command, "hello wörld");
    assert_non_null(strstr(hv_str_cstr(&out), "<1 Cluster>"));
    assert_non_null(strstr(hv_str_cstr(&out), "F1 Help  Enter Open  / Find  Space Mark  q Quit"));
    hv_str_free(&out);
    assert_int_equal(run_script("wait nowhere\n", &m, NULL), HV_ENO);
    assert_int_equal(run_script("bogus\n", &m, NULL), HV_EINPUT);
}

static void views_stack_and_help_runs_actions(void **state)
{
    (void)state;
    struct toy_model m = {.n_rows = 3};
    assert_int_equal(run_script("keys <Enter>\nwait q Back\nkeys <Esc>\nwait q Quit\n"
                                "keys 2\nwait <2 Model>\nkeys 1?last row<Enter>\nwait > row-2\n"
                                "resize 20x5\nwait needs 40x10\nresize 160x48\nwait > row-2\n",
                                &m, NULL),
                     HV_OK);
}

static void quitting_asks_when_unsaved(void **state)
{
    (void)state;
    struct toy_model m = {.n_rows = 3, .unsaved = true};
    assert_int_equal(run_script("keys q\nwait Unsaved changes\nkeys n\nwait row-1\n", &m, NULL),
                     HV_OK);
}

static void a_cursor_move_changes_few_cells(void **state)
{
    (void)state;
    struct toy_model m = {.n_rows = 100};
    struct hv_keymap keys = {0};
    struct hv_theme theme;
    struct hv_term *t = NULL;
    const struct hv_event events[] = {hv_event_key((struct hv_key){HV_KEY_CHAR, 0, 'j'})};
    struct hv_term_config c = {.theme = &theme, .events = events, .n_events = 1};
    hv_theme_default(&theme);
    hv_keymap_default(&keys);
    assert_int_equal(hv_term_memory.open(&c, &t, NULL), HV_OK);
    struct hv_app *app = toy_app(&m, &keys, false);
    assert_int_equal(hv_app_timeout_ms(app), -1); /* idle: nothing to wake up for */
    assert_int_equal(hv_term_run(&hv_term_memory, t, app, NULL), 0);
    assert_in_range(hv_term_memory_changed(t), 1, 2 * 80);
    assert_int_equal(hv_term_memory_grid(t)->cursor_y, 4);
    hv_term_memory.close(t);
    hv_app_free(app);
    hv_keymap_free(&keys);
}

static bool shows(struct hv_app *app, struct hv_grid *g, const char *text)
{
    struct hv_str dump = {0};
    hv_app_draw(app, g);
    hv_grid_dump(g, &dump);
    bool seen = strstr(hv_str_cstr(&dump), text) != NULL;
    hv_str_free(&dump);
    return seen;
}

static void notices_wait_behind_the_last_answer(void **state)
{
    (void)state;
    struct toy_model m = {.n_rows = 3};
    struct hv_keymap keys = {0};
    struct hv_grid g = {0};
    struct hv_event key = hv_event_key((struct hv_key){HV_KEY_CHAR, 0, 'j'});
    hv_keymap_default(&keys);
    struct hv_app *app = toy_app(&m, &keys, true);
    hv_app_message(app, HV_MSG_INFO, "the answer");
    hv_app_notice(app, "a run ended");
    hv_app_notice(app, "another run ended");
    hv_app_tick(app, 1000);
    assert_true(shows(app, &g, "the answer"));
    assert_int_equal(hv_app_timeout_ms(app), HV_APP_ANSWER_MS);
    hv_app_tick(app, 1000 + HV_APP_ANSWER_MS - 1);
    assert_true(shows(app, &g, "the answer"));
    hv_app_tick(app, 1000 + HV_APP_ANSWER_MS);
    assert_true(shows(app, &g, "another run ended (and 1 more before)"));
    assert_int_equal(hv_app_timeout_ms(app), -1);
    hv_app_message(app, HV_MSG_ERROR, "a mistake");
    hv_app_notice(app, "a third run ended");
    hv_app_tick(app, 900000);
    assert_true(shows(app, &g, "a mistake")); /* errors stay until a key */
    assert_int_equal(hv_app_timeout_ms(app), -1);
    (void)hv_app_feed(app, &key);
    hv_app_tick(app, 900001);
    assert_true(shows(app, &g, "a third run ended"));
    hv_app_free(app);
    hv_grid_free(&g);
    hv_keymap_free(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_move_find_and_run_commands),
                                       cmocka_unit_test(views_stack_and_help_runs_actions),
                                       cmocka_unit_test(quitting_asks_when_unsaved),
                                       cmocka_unit_test(a_cursor_move_changes_few_cells),
                                       cmocka_unit_test(notices_wait_behind_the_last_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
