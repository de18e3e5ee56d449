/* Explain and What-if over a workspace with three plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screens_bench.h"
#include "ui/screens/explain/explain_int.h"
#include "ui/screens/what_if/what_if_int.h"
#include "ui/view/grid/layout.h"

/* What a screen works out bit by bit is done; fails when it has no end. */
static void settle(struct bench *b)
{
    int left = 100000;
    hv_app_tick(b->app, 0);
    while (hv_app_timeout_ms(b->app) == 0 && --left > 0) {
        hv_app_tick(b->app, 0);
    }
    assert_true(left > 0);
}

static void explain_says_why(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g6\n");
    settle(b);
    bench_script(b, "wait Free: no new hardware (all\nwait ACTION\nwait CHANGE\nwait $/MTOK\n"
                    "keys /To buy<Enter><Left>g<Left>\n"); /* ranks follow the calibration */
    bench_script(b, "wait critical path: s1 holds\nwait is the slowest\n");
    bench_golden(b, "explain_80x24");
    bench_script(
        b, "resize 160x48\nwait No plan like this can be faster than\nwait largest loss is\n");
    bench_golden(b, "explain_160x48");
    bench_script(b, "resize 40x10\nwait <6 Why>\n");
    bench_golden(b, "explain_40x10");
    bench_script(b, "keys <Tab>jjjjjj\nwait iteration\nkeys <Tab>\nwait Selected line\n");
}

/* Free actions come before purchases, each with its own columns; faster networks are those that are
 * sold. */
static void what_to_do_is_sorted_by_any_column(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4g6\n");
    settle(b);
    bench_script(
        b,
        "wait NOTE\nwait new plan: bound\nkeys /No gain<Enter><Space>\n"
        "wait 12.5 -> 25 GB/s\nwait no price known\n"
        "keys g\nkeys s\nwait sorted by $ per million tokens\nkeys s\nwait sorted by $ per hour\n"
        "keys s\nwait sorted by step\nkeys s\nwait sorted by change\n"
        "keys /schedule <Enter><Enter>\nwait <7 What-if>\n");
}

/* A faster plan of the table is the first thing to do. */
static void the_better_plan_of_the_table_is_named(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4gj6\nwait Explain few-devices\n");
    settle(b);
    bench_script(b, "wait take plan two-stages\nwait in the table\n");
}

/* No sentence is cut: it goes on below. */
static void sentences_wrap_at_every_width(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g6\n");
    settle(b);
    bench_script(b, "keys /To buy<Enter><Left>g<Left>\n");
    for (int w = 80; w <= 130; w++) {
        struct hv_event size = hv_event_resize(w, 40);
        (void)hv_app_feed(b->app, &size);
        assert_true(bench_sees(b, "fullest stage is s0:"));
        assert_false(bench_sees(b, "~|"));
        assert_false(bench_sees(b, "~ |"));
        bench_drawn_whole(b);
    }
}

/* True where what follows a text up to the frame ends with a letter. */
static bool line_ends(struct bench *b, const char *text, char last)
{
    struct hv_str dump = {0};
    hv_app_draw(b->app, &b->grid);
    hv_grid_dump(&b->grid, &dump);
    const char *at = strstr(hv_str_cstr(&dump), text);
    const char *end = at != NULL ? strchr(at + 1, '|') : NULL;
    while (end != NULL && end[-1] == ' ') {
        end--;
    }
    bool is = end != NULL && end[-1] == last;
    hv_str_free(&dump);
    return is;
}

/* The change stands whole at every width, and every number of a lever has its unit behind it. */
static void figures_of_what_if_are_never_cut(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g7/layers s0<Enter>l\nwait 1 moved\n");
    for (int w = 80; w <= 200; w++) {
        struct hv_event size = hv_event_resize(w, 40);
        (void)hv_app_feed(b->app, &size);
        assert_true(line_ends(b, "|s/iter", '%'));
        assert_true(line_ends(b, "|peak mem", 't'));
        assert_true(bench_sees(b, "now   change"));
        assert_true(bench_sees(b, " pt"));
        assert_true(bench_sees(b, " GB/s"));
        assert_true(bench_sees(b, " USD/h"));
        assert_true(bench_sees(b, "2,048 tokens"));
        bench_drawn_whole(b);
    }
}

/* The duals of the layers, and what the judge says to the optimum; with little memory a stage is
 * full and its dual is checked. */
static void what_binds_is_judged_again(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4g6\n");
    settle(b);
    bench_script(
        b,
        "keys /To buy<Enter><Left>g<Left>/What limits<Enter>\nwait other whole layers: "
        "iteration\nkeys "
        "<Space>\nwait best distribution\nwait simulated: iteration\nwait time s0\nwait memory "
        "s1\nkeys /time s1<Enter>\nwait Dual value: if stage 1\nkeys <Enter>\nwait <5 Gantt>\nwait "
        "of s1\nkeys 6/simulated: it<Enter><Enter>\nwait <7 What-if>\n");
    bench_script(b, "resize 160x48\n:set job.memory_reserve_GiB 22\nkeys 6\n");
    settle(b);
    bench_script(b, "wait s/GiB\nkeys /s/GiB<Enter>\nwait Check: memory\n"
                    "wait simulated with\n");
}

static void a_mixed_stage_names_all_its_kinds(void **state)
{
    static const char plan[] =
        "{\"format\": \"hetviz.plan/1\", \"micro_batch\": 4, \"replicas\": [{\"micro_batches\": "
        "32, "
        "\"stages\": [{\"devices\": \"a[0].0-3,v[0].*\", \"layers\": [0, 32], \"tp\": 4, \"dp\": "
        "3}]}], \"schedule\": {\"name\": \"1f1b\"}}";
    struct bench *b = *state;
    uint32_t id = 0;
    json_t *tree = json_loads(plan, 0, NULL);
    assert_int_equal(hv_session_row_add(b->session, "mixed", tree, &id, NULL), HV_OK);
    hv_session_select(b->session, id);
    bench_script(b, "resize 160x48\nkeys 6\n");
    settle(b);
    bench_script(b, "wait 32 L on 4 x A100-SXM-80GB + 8 x V100-SXM2-32GB\n");
}

static void one_stage_has_nothing_to_share(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4gj6\n");
    settle(b);
    bench_script(b, "wait Explain few-devices\n");
    assert_false(bench_sees(b, "What limits"));
}

static void stages_unfold_to_formula_and_source(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4g6\n");
    settle(b);
    bench_script(
        b,
        "keys /s0 18 L<Enter><Right>\nwait one micro-batch, chunk 1 of 1\nwait memory at its "
        "peak\nkeys j<Right>\nwait qkv gemm\nwait FLOP at\nkeys /at its peak<Enter><Space>\nwait "
        "of the limit\nwait optimizer\nkeys /qkv gemm<Enter>\nwait Selected line\n");
    struct hv_str text = {0};
    bench_script(b, "keys E<Enter>\nwait explanation written to two-stages.txt\n");
    assert_int_equal(hv_file_read("two-stages.txt", &text, NULL), HV_OK);
    assert_non_null(strstr(hv_str_cstr(&text), "qkv gemm"));
    hv_str_free(&text);
    bench_script(b, "keys <Left><Left><Left>\n");
    assert_false(bench_sees(b, "qkv gemm  "));
}

static void evidence_opens_where_it_is(void **state)
{
    struct bench *b = *state;
    struct hv_session *s = b->session;
    bench_script(b, "keys 4g6\n");
    settle(b);
    bench_script(b, "keys /critical path:<Enter><Enter>\nwait <5 Gantt>\nwait At cursor\n");
    assert_true(bench_sees(b, "of s0") || bench_sees(b, "of s1"));
    bench_script(b, "keys 6/are not used<Enter><Enter>\nwait <1 Cl\n");
    bench_script(b, "keys 6/layers s0<Enter>w\nwait <7 Wh\nwait 1 moved\n");
    assert_int_equal(hv_session_n_undo(s), 0);
    bench_script(b, "keys 6gw\nwait this line has no lever\n");
    bench_script(b, "keys >\nwait few-devices\nkeys <lt>\nwait two-stages\n");
}

static void what_does_not_fit_says_which_rule(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4jj6\n");
    settle(b);
    bench_script(b, "wait ! \nkeys gj<Enter>\nwait <\n");
}

/* 0.3 s after the last key the layers are shared out anew. */
static void wait_for_share(struct bench *b)
{
    for (int i = 0; i < 60000 && !bench_sees(b, "LP: "); i++) {
        (void)poll(NULL, 0, 10);
        hv_app_tick(b->app, i);
    }
    assert_true(bench_sees(b, "LP: "));
}

static void the_layers_are_shared_out_anew(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 120x40\nkeys 4g7\nwait global batch\n");
    assert_false(bench_sees(b, "LP: ")); /* nothing is turned */
    bench_script(b, "keys b\nwait of the layers is known\nkeys /slower<Enter>ll\n");
    wait_for_share(b);
    bench_script(b, "wait instead of 18|14\nwait applies\nkeys b\nwait 2 moved\n");
    wait_for_share(b);
    bench_script(
        b, "wait no better distribution of the layers\nkeys b\nwait of the layers is known\n");
}

static void sliders_show_result_and_curve(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g7\n");
    settle(b);
    bench_script(
        b, "wait global batch\nwait fits, no violations\nkeys /layers<Enter>ll\nwait 1 moved\n");
    settle(b);
    wait_for_share(b);
    bench_script(b, "wait best at\nwait over layers s0 | s1\n");
    bench_golden(b, "what_if_80x24");
    bench_script(b, "resize 160x48\nwait TFLOP/s\n");
    bench_golden(b, "what_if_160x48");
    bench_script(b, "resize 40x10\nwait <7 What>\n");
    bench_golden(b, "what_if_40x10");
    bench_script(b, "keys <Tab>\nwait change\nkeys <Tab>\nresize 80x24\n");
    assert_int_equal(hv_session_n_undo(b->session), 0);
}

static void words_and_typed_values(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g7/schedule<Enter>e^Ugpipe<Enter>\nwait < gpipe\nwait needs\nkeys "
                    "r\nwait < 1f1b\nkeys /failed<Enter>l\nwait cannot lose a[0]\nkeys ll\nwait < "
                    "v[1]\nkeys R\nwait < none\nkeys /network<Enter>e^U25<Enter>\nwait 1 "
                    "moved\nkeys e^Ufast<Enter>\nwait expected a number\nkeys LLLLLLLLLhhH\n");
}

static void accepting_changes_documents_and_undo_takes_it_back(void **state)
{
    struct bench *b = *state;
    size_t n = 0;
    bench_script(
        b, "keys 4g7<Enter>\nwait no lever was moved\nkeys ll/network<Enter>l<Enter>\nwait "
           "changed: cluster, job, plan two-stages-wh\nwait What if two-stages-what-if had\n");
    assert_int_equal(hv_session_n_undo(b->session), 3);
    (void)hv_session_rows(b->session, &n);
    assert_int_equal(n, 4);
    bench_script(b, "keys uuu\nwait undone\n");
    (void)hv_session_rows(b->session, &n);
    assert_int_equal(n, 3);
    assert_true(json_integer_value(hv_session_get(b->session, "job.global_batch")) == 128);
    /* the strategy of the plan runs for what is there now */
    bench_script(b, "keys 4g7/network<Enter>l\nwait 1 moved\nkeys s\nwait search is running\n");
    assert_int_equal(hv_session_n_undo(b->session), 1);
}

static void turned_levers_outlive_a_change_of_something_else(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g7/network<Enter>l\nwait 1 moved\n");
    /* every change of a document or of the plan makes the levers anew */
    assert_int_equal(
        hv_session_set_text(b->session, "cluster.nodes[0].price_usd_per_hour", "3", NULL), HV_OK);
    settle(b);
    assert_true(bench_sees(b, "1 moved"));
    /* what was accepted is the base: undoing it turns nothing */
    bench_script(b, "keys <Enter>\nwait changed: cluster\nkeys u\n");
    settle(b);
    assert_false(bench_sees(b, "1 moved"));
}

/* A panel lies in the body, and no two meet. */
static void check_places(const struct hv_rect *r, int n, struct hv_rect body)
{
    for (int i = 0; i < n; i++) {
        if (r[i].w <= 0 || r[i].h <= 0) {
            continue;
        }
        struct hv_rect in = hv_rect_meet(r[i], body);
        assert_true(in.w == r[i].w && in.h == r[i].h);
        for (int k = 0; k < i; k++) {
            struct hv_rect both = hv_rect_meet(r[i], r[k]);
            assert_true(both.w <= 0 || both.h <= 0);
        }
    }
}

static void panels_never_overlap_at_any_size(void **state)
{
    (void)state;
    for (int w = 20; w <= 220; w++) {
        for (int h = 5; h <= 70; h++) {
            struct hv_rect body = hv_layout_frame(w, h).body;
            for (int focus = 0; focus < HV_EXPLAIN_PANEL_N; focus++) {
                struct hv_explain e = {.focus = (enum hv_explain_panel)focus};
                struct hv_what_if x = {.focus = (enum hv_what_if_panel)(focus % 2)};
                struct hv_rect r[HV_EXPLAIN_PANEL_N], q[HV_WHAT_IF_PANEL_N];
                hv_explain_place(&e, body, r);
                check_places(r, HV_EXPLAIN_PANEL_N, body);
                hv_what_if_place(&x, body, q);
                check_places(q, HV_WHAT_IF_PANEL_N, body);
                assert_true(r[focus].h > 0 && q[focus % 2].h > 0);
            }
        }
    }
}

/* Every size draws; the tab, the status line and the key bar stay where they are. */
static void every_size_draws_both(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g6\n");
    settle(b);
    bench_script(b, "keys /s0 18<Enter><Right>j<Right>\n");
    for (int screen = 6; screen <= 7; screen++) {
        char keys[32];
        (void)snprintf(keys, sizeof keys, "keys %d\n", screen);
        bench_script(b, keys);
        for (int w = 20; w <= 180; w += 3) {
            for (int h = 5; h <= 60; h += 5) {
                struct hv_event ev = hv_event_resize(w, h);
                (void)hv_app_feed(b->app, &ev);
                hv_app_tick(b->app, 0);
                hv_app_draw(b->app, &b->grid);
                assert_true(b->grid.w == w && b->grid.h == h);
                if (w >= HV_FLOOR_W && h >= HV_FLOOR_H) {
                    assert_true(bench_sees(b, screen == 6 ? "<6 " : "<7 "));
                    assert_true(bench_sees(b, "F1 Help"));
                }
            }
        }
    }
}

static void other_plans_and_edits_are_followed(void **state)
{
    struct bench *b = *state;
    struct hv_err err = {0};
    bench_script(b, "resize 160x48\nkeys 4gj6\nwait Explain few-devices\nkeys 4g6\n"
                    "wait Explain two-stages\n");
    assert_int_equal(hv_session_set_text(b->session, "job.global_batch", "64", &err), HV_OK);
    hv_app_touch(b->app);
    bench_script(b, "wait ! the replicas\nkeys 7\nwait What if two-stages\n");
    bench_script(
        b, "keys u6\nwait is the slowest\nkeys 4g<Space><Space><Space>d\nwait 3 deleted\nkeys "
           "6\nwait choose a strategy\nkeys jl<Enter>w 7jl<Enter>es>\nwait choose a strategy\n");
}

static void nothing_breaks_them(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 4g6\n");
    bench_fuzz(b, 61, 1500);
    bench_script(b, "keys <Esc><Esc><Esc>4g7\n");
    bench_fuzz(b, 71, 1500);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(explain_says_why),
        TEST(what_to_do_is_sorted_by_any_column),
        TEST(the_better_plan_of_the_table_is_named),
        TEST(sentences_wrap_at_every_width),
        TEST(figures_of_what_if_are_never_cut),
        TEST(what_binds_is_judged_again),
        TEST(a_mixed_stage_names_all_its_kinds),
        TEST(one_stage_has_nothing_to_share),
        TEST(stages_unfold_to_formula_and_source),
        TEST(evidence_opens_where_it_is),
        TEST(what_does_not_fit_says_which_rule),
        TEST(sliders_show_result_and_curve),
        TEST(the_layers_are_shared_out_anew),
        TEST(words_and_typed_values),
        TEST(turned_levers_outlive_a_change_of_something_else),
        TEST(accepting_changes_documents_and_undo_takes_it_back),
        cmocka_unit_test(panels_never_overlap_at_any_size),
        TEST(every_size_draws_both),
        TEST(other_plans_and_edits_are_followed),
        TEST(nothing_breaks_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
