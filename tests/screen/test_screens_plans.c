/* The Plans and Gantt screens over a workspace with three plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screens_bench.h"
#include "ui/screens/gantt/gantt_int.h"

/* fontconfig keeps what it read for the letters of a PNG until the program ends */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig";
}

static void plans_show_rows_details_and_scatter(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4\nwait two-stages\nwait too-big\nwait parts of the iteration time\nwait "
                    "$/Mtok over s/iter\n");
    bench_golden(b, "plans_80x24");
    bench_script(b, "resize 160x48\nwait memory per stage\nwait SCHEDULE\n");
    bench_golden(b, "plans_160x48");
}

static void plans_that_do_not_fit_stay_with_the_reason(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4jj\nresize 160x48\nwait breaks a rule\nwait violation\n");
    assert_true(bench_sees(b, "! too-big") || bench_sees(b, "!  too-big"));
}

static void three_plans_stand_in_columns(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4g<Space><Space><Space>c\nwait * = best\n");
    bench_golden(b, "plans_compare_many_160x48");
    bench_script(b, "resize 80x24\nkeys <Tab><Tab>G\nkeys jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj\nwait "
                    "time of too-big is\nresize 40x10\nkeys g\nwait * = best\n");
}

static void axes_say_their_units(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4\nwait ENERGY\nwait kJ\nkeys XXXXXXX\n"
                    "wait $/Mtok over MJ/iter\nkeys X\nwait over s/iter\nkeys X\n"
                    "wait $/Mtok over peak memory %\nkeys YYYYYY\nwait MJ/iter over\n"
                    "keys ssssss\nwait sorted by energy\n");
}

static void arrows_walk_the_front(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4g<Tab>l\nwait | few-devices |\nkeys l\nwait this is the "
                    "end of the Pareto front\nkeys k\nwait | two-stages |\nkeys XXXXXXXXYhl\n");
}

static void marks_compare_and_sort(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4g<Space>c\nwait CHANGE\nwait gap to the bound\n");
    bench_golden(b, "plans_compare_160x48");
    bench_script(b, "keys j\nwait too-big: 1 violation\nwait tp +\n");
    /* plans that share all but their names */
    bench_script(b,
                 "keys :export two-stages two.json<Enter>\nkeys :plan twin two.json<Enter>\nkeys "
                 "/twin<Enter>\nwait Both have an iteration time of about\nwait Devices, stages, "
                 "schedule and "
                 "micro-batches are the same\nkeys :delete twin<Enter>\n");
    bench_script(b, "keys <Esc>\nwait sorted by time\nkeys S\nwait turned\n");
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(b->session, &n);
    assert_int_equal(n, 3);
    const struct hv_verdict *v = hv_session_verdict(b->session, rows[0]->id, false, NULL);
    const struct hv_verdict *w = hv_session_verdict(b->session, rows[1]->id, false, NULL);
    assert_true(v->metrics.iteration_s > w->metrics.iteration_s);
    bench_script(b, "keys /few-dev<Enter>\nwait few-devices\n");
    assert_string_equal(hv_session_row(b->session, hv_session_selected(b->session))->name,
                        "few-devices");
}

static void rows_are_renamed_deleted_and_come_back(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4gR^Umine<Enter>\nwait mine\nkeys d\nwait deleted\n");
    size_t n = 0;
    (void)hv_session_rows(b->session, &n);
    assert_int_equal(n, 2);
    assert_false(bench_sees(b, "> mine"));
    bench_script(b, "keys u\nwait mine\nkeys uu\nwait two-stages\n");
    bench_script(b, "keys f^Utoo<Enter>\nwait filter:too\n");
    assert_false(bench_sees(b, "few-devices"));
}

static void a_note_stands_with_the_plan(void **state)
{
    struct bench *b = *state;
    struct hv_str text = {0};
    bench_script(b, "keys 4gNfor Friday\nkeys <Enter>\nresize 160x48\n"
                    "wait done \"for Friday\"\nwait note: for Friday\n");
    assert_true(hv_session_dirty(b->session));
    bench_script(b, "keys u\nwait undone: note of two-stages\n");
    assert_false(bench_sees(b, "Friday"));
    assert_false(hv_session_dirty(b->session));
    bench_script(b, "keys ^R\nwait note: for Friday\nkeys f^UFRIDAY<Enter>\nwait filter:FRIDAY\n");
    assert_false(bench_sees(b, "few-devices")); /* a filter looks into notes too */
    bench_script(b, "keys f^U<Enter>E<Enter>\nwait plan written to two-stages.json\n"
                    "keys :note few-devices second of two<Enter>\nwait \"second of two\"\n"
                    "keys N^U<Enter>:note few-devices<Enter>\nwait note of few-devices: none\n");
    assert_false(bench_sees(b, "Friday"));
    assert_int_equal(hv_file_read("two-stages.json", &text, NULL), HV_OK);
    assert_non_null(strstr(hv_str_cstr(&text), "\"x-note\": \"for Friday\""));
    hv_str_free(&text);
}

static void exports_a_plan(void **state)
{
    struct bench *b = *state;
    struct hv_str text = {0};
    bench_script(b, "keys 4gE<Enter>\nwait plan written to two-stages.json\n");
    assert_int_equal(hv_file_read("two-stages.json", &text, NULL), HV_OK);
    assert_non_null(strstr(hv_str_cstr(&text), "\"simulated\""));
    hv_str_free(&text);
}

static void enter_draws_the_gantt(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g<Enter>\nwait <5 Gantt>\nwait At cursor\nwait memory now\nwait f0\n");
    bench_golden(b, "gantt_80x24");
    bench_script(b, "resize 160x48\nwait parts of the iteration time\n");
    bench_golden(b, "gantt_160x48");
    bench_script(b, "keys >\nwait few-devices  1f1b\nkeys <lt>\nwait two-stages  1f1b\n");
    bench_script(b, "resize 40x10\nkeys <Enter>\nwait At cursor\nkeys <Enter>\nwait zoom 1.0x\n");
}

static int open_with_a_thread(void **state)
{
    return bench_open_apart(state, 1);
}

/* Until the session's clock ticks nothing is taken from the thread, so this cannot be too late. */
static void a_gantt_in_the_making_says_so(void **state)
{
    struct bench *b = *state;
    struct pollfd row;
    bench_script(b, "keys 4g<Enter>\nwait two-stages is being drawn\nwait 2 stages, 32 micro-b\n"
                    "wait x Stop\nkeys z]>\nwait few-devices is\nkeys <lt><Esc>\n"
                    "wait you stopped it\nkeys 4\nwait 3 plans\nkeys 5\nwait r Reload\nkeys r\n"
                    "wait is being drawn\n");
    const uint32_t id = hv_gantt_row(&b->ui)->id;
    for (int i = 0; i < 1000 && hv_session_drawing(b->session, id, NULL) == HV_DRAWING_RUNS; i++) {
        if (hv_session_fds(b->session, &row, 1) == 1) {
            (void)poll(&row, 1, 1000);
        }
        hv_app_tick(b->app, i);
        hv_app_draw(b->app, &b->grid);
    }
    bench_script(b, "wait At cursor\nwait memory now\nwait +/- Zoom\n");
}

static void the_gantt_zooms_finds_and_sums(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g<Enter>/f3<Enter>\nwait f3  forward of micro-batch 3\n"
                    "keys ]\nwait micro-batch\nkeys /mb 7<Enter>\nwait micro-batch 7\n"
                    "keys 0<Space>llllllll\nwait area\nwait all stages busy\nkeys z\nwait | zoom\n"
                    "keys 0g50%<Enter>\nwait t=\nkeys gsoon<Enter>\nwait expected a time\n"
                    "keys m\nkeys C\nkeys 0\n");
    assert_false(bench_sees(b, "critical"));
    assert_false(bench_sees(b, "| zoom"));
    bench_script(b, "keys /b2@s0<Enter>\nwait waits for\nwait came last\nwait blocks\nkeys w\nwait "
                    "of s\nkeys W\n");
}

/* Ticks until every row of the picker is judged: each tick judges one at least. */
static void judge_rows(struct bench *b)
{
    for (int i = 0; i < 100; i++) {
        hv_app_tick(b->app, i);
    }
}

/* What the rows say is what the trial in the lanes says: the step of the row at the cursor stands
 * in the status. */
static void the_picker_lists_schedules_and_tries_each(void **state)
{
    struct bench *b = *state;
    size_t n = 0;
    bench_script(b, "keys 4g<Enter>s\nwait <Schedule>  Micro-batch  Chunks  Degrees\n"
                    "wait j Try  Enter Keep  Esc Drop\n");
    judge_rows(b);
    bench_script(b, "wait this plan\nwait by step\n");
    assert_false(bench_sees(b, "Esc drops")); /* on the plan itself nothing is tried */
    bench_script(b, "keys jk\nkeys j\nwait Enter, a keep, Esc drops\nwait -> \n");
    bench_golden(b, "gantt_try_80x24");
    bench_script(b, "keys !\nwait ! hides them\nkeys !sss\nwait by name\nkeys s\nwait by step\n");
    /* a plan that does not fit keeps the keys in the status line */
    bench_script(b, "keys e^Ugpipe<Enter>\nwait | Enter, a keep, Esc drops\n");
    bench_script(b, "keys <Esc>\nwait back to the original plan\n");
    assert_false(bench_sees(b, "Micro-batch  Chunks"));
    bench_script(b, "keys b\nwait <Micro-batch>\nkeys <Tab>\nwait <Chunks>\nkeys <Tab>\n"
                    "wait <Degrees>\nkeys <Tab>\nwait <Schedule>\nkeys v\nwait <Chunks>\n");
    judge_rows(b);
    bench_script(b, "keys gG<Esc>\n");
    (void)hv_session_rows(b->session, &n);
    assert_int_equal(n, 3); /* until it is kept nothing is changed */
    assert_int_equal(hv_session_n_undo(b->session), 0);
}

static void what_the_picker_keeps_is_undone(void **state)
{
    struct bench *b = *state;
    size_t n = 0;
    bench_script(b, "resize 160x48\nkeys 4g<Enter>\nkeys b\n");
    judge_rows(b);
    bench_golden(b, "gantt_pick_160x48");
    bench_script(b,
                 "keys j\nwait micro-batch \nkeys <Enter>\nwait kept: plan two-stages-what-if\n");
    assert_false(bench_sees(b, "<Micro-batch>"));
    (void)hv_session_rows(b->session, &n);
    assert_int_equal(n, 4);
    bench_script(b, "keys u\nwait undone\n");
    (void)hv_session_rows(b->session, &n);
    assert_int_equal(n, 3);
    /* degrees: the ranks of a stage divided anew; a word tries a value too */
    bench_script(b, "keys 4g<Enter>s<Tab><Tab><Tab>\nwait <Degrees>\nwait tp s0 1\n");
    judge_rows(b);
    bench_script(b, "wait tp s1 8\nkeys j\nwait tp s\nwait Esc drops\nkeys <Esc>\nkeys B\n"
                    "wait micro-batch \nkeys <Esc>e^Uzb-h1<Enter>\nwait schedule zb-h1\nkeys "
                    "e^Unothing<Enter>\nwait schedule cannot be\nkeys e^Uzb-h1 2 1 1<Enter>\n"
                    "wait expected SCHEDULE\n");
    /* an edit of a document ends the picker */
    bench_script(b, "keys s\nwait <Schedule>\n:set job.sequence 1024\n");
    judge_rows(b);
    assert_false(bench_sees(b, "<Schedule>"));
    bench_script(b, "resize 40x10\nkeys s\n");
    judge_rows(b);
    bench_golden(b, "gantt_pick_40x10");
}

static void two_plans_share_an_axis_and_links_have_lanes(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4g<Enter>|\nwait few-devices  step\nwait critical    "
                    "0\nwait path: s\n");
    bench_golden(b, "gantt_split_160x48");
    bench_script(b, "keys \\\nkeys |K\nwait s0>s1\nwait sync\nkeys /b4@s1<Enter>\nwait b4 of s1\n"
                    "keys /f3@s0<Enter>\nwait f3 of s0\nkeys /f3@s9<Enter>\nwait not found\n");
    bench_golden(b, "gantt_links_160x48");
    bench_script(b, "keys g0s<Enter>jj]]\nwait of s0 to s1\nwait of activations\nwait from s0 "
                    "a[0].* to s1 v[0-1].*\nkeys F\nwait one lane shows them all\nkeys pGj\nwait "
                    "^\nresize 80x24\nkeys jjjjp\n");
    bench_script(b, "resize 40x10\nkeys |sKv\nresize 80x24\nkeys |\n");
}

static void the_gantt_follows_the_mouse(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g<Enter>\nwait t=0 s\n");
    struct hv_event click = {.type = HV_EV_MOUSE, .mouse = HV_MOUSE_PRESS, .x = 50, .y = 4};
    (void)hv_app_feed(b->app, &click);
    assert_false(bench_sees(b, "t=0 s"));
    click.mouse = HV_MOUSE_RELEASE;
    (void)hv_app_feed(b->app, &click);
    click.mouse = HV_MOUSE_WHEEL_UP;
    (void)hv_app_feed(b->app, &click);
    assert_true(bench_sees(b, "zoom 1.2x") || bench_sees(b, "zoom 1.3x"));
}

static void the_gantt_is_written_in_four_formats(void **state)
{
    struct bench *b = *state;
    struct hv_str text = {0};
    bench_script(b, "keys 4g<Enter>E<Enter>\nwait timeline written to two-stages.svg\nkeys "
                    "E^Ut.json<Enter>\nwait written to t.json\nkeys E^Ut.txt<Enter>\nwait written "
                    "to t.txt\nkeys E^Ut.png<Enter>\nwait written to t.png\nkeys "
                    "E^Ut.doc<Enter>\nwait must end in .svg\n");
    assert_int_equal(hv_file_read("two-stages.svg", &text, NULL), HV_OK);
    assert_non_null(strstr(hv_str_cstr(&text), "<svg"));
    hv_str_clear(&text);
    assert_int_equal(hv_file_read("t.json", &text, NULL), HV_OK);
    assert_non_null(strstr(hv_str_cstr(&text), "traceEvents"));
    hv_str_free(&text);
}

static void an_empty_workspace_says_what_to_do(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g<Space><Space><Space>d\nwait 3 deleted\nwait no plans yet\nkeys "
                    "5\nwait choose a strategy; Enter runs it\nkeys jl+<Enter>\n");
}

static void a_plan_that_an_edit_broke_says_why_everywhere(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g\n:set cluster.nodes[0].state \"drain\"\nwait made before an "
                    "edit\nwait breaks a rule: 8 of its devices are on nodes\n");
    bench_script(b, "keys 5\nwait made before an edit\nwait ! \nwait in state drain\n"
                    "wait u  undo the edit\nwait 3 Strategy  4 Plans  </> Plan  u Undo\n"
                    "keys 6\nwait Why this plan does not fit\nwait was not simulated\n"
                    "wait No plan can be faster than\nkeys 4\n");
    assert_false(bench_sees(b, "nan"));
    bench_script(b, "keys u5\nwait At cursor\n");
}

static void nothing_breaks_plans_and_gantt(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4\n");
    bench_fuzz(b, 1, 1500);
    bench_script(b, "keys <Esc><Esc><Esc>5\n");
    bench_fuzz(b, 2, 1500);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plans_show_rows_details_and_scatter),
        TEST(plans_that_do_not_fit_stay_with_the_reason),
        TEST(marks_compare_and_sort),
        TEST(three_plans_stand_in_columns),
        TEST(axes_say_their_units),
        TEST(arrows_walk_the_front),
        TEST(rows_are_renamed_deleted_and_come_back),
        TEST(a_note_stands_with_the_plan),
        TEST(exports_a_plan),
        TEST(enter_draws_the_gantt),
        cmocka_unit_test_setup_teardown(a_gantt_in_the_making_says_so, open_with_a_thread,
                                        bench_close),
        TEST(the_gantt_zooms_finds_and_sums),
        TEST(the_picker_lists_schedules_and_tries_each),
        TEST(what_the_picker_keeps_is_undone),
        TEST(two_plans_share_an_axis_and_links_have_lanes),
        TEST(the_gantt_follows_the_mouse),
        TEST(the_gantt_is_written_in_four_formats),
        TEST(an_empty_workspace_says_what_to_do),
        TEST(a_plan_that_an_edit_broke_says_why_everywhere),
        TEST(nothing_breaks_plans_and_gantt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
