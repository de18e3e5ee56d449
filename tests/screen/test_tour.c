/* A tour of all screens at three sizes, in UTF-8 with colours and in ASCII without: golden screens
 * and the styles they use. Then every size there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screens_bench.h"
#include "ui/view/grid/layout.h"

static const char *const stops[] = {"welcome", "cluster", "model",   "strategies", "plans",
                                    "gantt",   "explain", "what-if", "console",    "help"};
static const struct {
    int w, h;
} sizes[] = {{80, 24}, {160, 48}, {40, 10}};

static void visit(struct bench *b, const char *stop)
{
    struct hv_err err = {0};
    bench_script(b, "keys <Esc>\n");
    bool help = strcmp(stop, "help") == 0;
    if (hv_app_open(b->app, help ? "gantt" : stop, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    if (help) {
        (void)hv_app_do(b->app, HV_ACT_HELP);
    }
    /* what is worked out bit by bit is as long as it takes on no machine */
    for (int i = 0; i < 5000 && (i == 0 || hv_app_timeout_ms(b->app) == 0); i++) {
        hv_app_tick(b->app, 0);
    }
}

static const char *const style_names[] = {
#define X(id, name, fg, bg, fg16, bg16, attr, mono, help) name,
    HV_STYLE_MAP(X)
#undef X
};

/* Names of the styles on the grid, in the order of the table. */
static void add_styles(const struct hv_grid *g, struct hv_str *out)
{
    bool used[HV_STYLE_N] = {false};
    for (int i = 0; i < g->w * g->h; i++) {
        unsigned style = g->cells[i].style & HV_STYLE_ID_MASK;
        assert_true(style < HV_STYLE_N);
        used[style] = true;
    }
    hv_str_adds(out, "styles:");
    for (int i = 0; i < HV_STYLE_N; i++) {
        if (used[i]) {
            hv_str_addf(out, " %s", style_names[i]);
        }
    }
    hv_str_addc(out, '\n');
}

/* All stops at a size as one text. */
static void tour(struct bench *b, int w, int h, struct hv_str *out)
{
    for (size_t i = 0; i < HV_COUNT(stops); i++) {
        struct hv_event size = hv_event_resize(w, h);
        (void)hv_app_feed(b->app, &size);
        visit(b, stops[i]);
        hv_str_addf(out, "==== %s\n", stops[i]);
        hv_app_draw(b->app, &b->grid);
        hv_grid_dump(&b->grid, out);
        add_styles(&b->grid, out);
    }
}

static void compare(struct bench *b, const char *kind, int w, int h)
{
    struct hv_str path = {0}, now = {0}, then = {0}, x = {0}, y = {0};
    hv_str_addf(&path, "%s/tests/golden/screens/tour_%s_%dx%d.txt", b->root, kind, w, h);
    tour(b, w, h, &now);
    if (getenv("GENERATE") != NULL) {
        assert_int_equal(hv_file_write(hv_str_cstr(&path), hv_str_cstr(&now), now.n, NULL), HV_OK);
    }
    assert_int_equal(hv_file_read(hv_str_cstr(&path), &then, NULL), HV_OK);
    bench_skeleton(hv_str_cstr(&now), &x);
    bench_skeleton(hv_str_cstr(&then), &y);
    if (strcmp(hv_str_cstr(&x), hv_str_cstr(&y)) != 0) {
        fail_msg("%s is not what is shown:\n%s", hv_str_cstr(&path), hv_str_cstr(&now));
    }
    hv_str_free(&path);
    hv_str_free(&now);
    hv_str_free(&then);
    hv_str_free(&x);
    hv_str_free(&y);
}

static void all_screens_in_utf8_and_colour(void **state)
{
    struct bench *b = *state;
    hv_app_set_ascii(b->app, false);
    for (size_t i = 0; i < HV_COUNT(sizes); i++) {
        compare(b, "utf8", sizes[i].w, sizes[i].h);
    }
}

static void all_screens_in_ascii(void **state)
{
    struct bench *b = *state;
    for (size_t i = 0; i < HV_COUNT(sizes); i++) {
        compare(b, "ascii", sizes[i].w, sizes[i].h);
        for (int k = 0; k < b->grid.w * b->grid.h; k++) {
            assert_true((unsigned char)b->grid.cells[k].utf8[0] < 0x80);
        }
    }
}

/* Without colours every style that carries a meaning still differs from plain text, or stands
 * beside a letter: operations by their letters, frames and labels by their place. */
static void no_meaning_is_told_by_colour_alone(void **state)
{
    struct hv_theme t;
    (void)state;
    static const enum hv_style told[] = {HV_STYLE_ERROR,    HV_STYLE_WARNING,   HV_STYLE_SELECTED,
                                         HV_STYLE_MARKED,   HV_STYLE_FIELD_BAD, HV_STYLE_MATCH,
                                         HV_STYLE_CRITICAL, HV_STYLE_OP_F,      HV_STYLE_OP_B,
                                         HV_STYLE_OP_W,     HV_STYLE_OP_R,      HV_STYLE_OP_COMM};
    hv_theme_default(&t);
    for (size_t i = 0; i < HV_COUNT(told); i++) {
        assert_true(t.looks[told[i]].mono != HV_ATTR_NONE);
    }
}

/* In sixteen colours every kind of operation has a background of its own. */
static void kinds_of_operations_differ_in_sixteen_colours(void **state)
{
    static const enum hv_style kinds[] = {HV_STYLE_OP_F, HV_STYLE_OP_B,    HV_STYLE_OP_W,
                                          HV_STYLE_OP_R, HV_STYLE_OP_COMM, HV_STYLE_OP_OTHER};
    struct hv_theme t;
    (void)state;
    hv_theme_default(&t);
    for (size_t i = 0; i < HV_COUNT(kinds); i++) {
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(t.looks[kinds[i]].bg16, t.looks[kinds[k]].bg16);
        }
    }
}

/* The whole guide is seen at 80 columns, each step goes on when its key was pressed, and at 40x10
 * it has the status row. */
static void the_guided_tour_goes_through_the_screens(void **state)
{
    static const char *const keys[] = {"1",       "e", "<Esc>2", "3",      "<Enter>", "4",
                                       "<Enter>", "]", "s",      "<Esc>6", "7",       "?"};
    struct bench *b = *state;
    bench_script(b, "resize 80x24\n:screen welcome\nkeys T\n");
    for (size_t i = 0; i < HV_COUNT(keys); i++) {
        struct hv_str script = {0}, guide = {0};
        hv_ui_tour_guide(&b->ui, hv_app_view(b->app), &guide);
        hv_str_addf(&script, "wait %s\nwait tour %zu/12: press\n", hv_str_cstr(&guide), i + 1);
        hv_str_addf(&script, "resize 40x10\nresize 80x24\n");
        hv_str_addf(&script, i == 5 ? "keys %s\n:select two-stages\n" : "keys %s\n", keys[i]);
        bench_script(b, hv_str_cstr(&script));
        hv_str_free(&script);
        hv_str_free(&guide);
    }
    assert_int_equal(b->ui.tour, 0);
    bench_script(b,
                 "keys <Esc>T\nwait tour 1/12\nkeys 5\nresize 40x10\nkeys <Esc>\nwait tour 1/12\n"
                 "keys T\nwait the tour has ended\n");
}

/* `:` names an action as the help does, with the answer to its question. */
static void actions_are_commands(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 160x48\nkeys 4g<Enter>\n:goto 1s\nwait t=1 s\n:gantt-zoom-in\nwait "
                    "zoom 1.5x\n:fit\nwait zoom 1.0x\n:help zoom\nwait zoom in at the cursor\nkeys "
                    "<Esc>\n:set noascii\nwait \xe2\x94\x8c\n:set ascii\nwait +-[At\n:set "
                    "nomouse\nwait this terminal has no mouse\nkeys <Esc>:set no<Tab><Tab>\nwait "
                    ":set nomouse\nkeys ^U<Esc>\n:set theme light\nwait no terminal whose "
                    "colours\n:no-such-thing\nwait error\nkeys <Esc>:gantt-zoom-a<Tab>\nwait "
                    "gantt-zoom-area\nkeys ^U<Esc>:screen ga<Tab>\nwait :screen gantt\n");
}

static char at(const struct hv_grid *g, int x, int y)
{
    return x < 0 || y < 0 || x >= g->w || y >= g->h ? ' ' : g->cells[y * g->w + x].utf8[0];
}

/* From a corner with a title, `+-[` or `+=[`, the frame closes again: nothing lies over it, and
 * nothing of it is outside. */
static void check_frames(const struct hv_grid *g, const char *stop)
{
    for (int y = 0; y < g->h; y++) {
        for (int x = 0; x + 3 < g->w; x++) {
            char line = at(g, x + 1, y);
            if (at(g, x, y) != '+' || (line != '-' && line != '=') || at(g, x + 2, y) != '[') {
                continue;
            }
            int right = g->w - 1, bottom = y + 1;
            while (bottom < g->h && at(g, x, bottom) != '+') {
                bottom++;
            }
            while (right > x && !(at(g, right, y) == '+' && at(g, right, bottom) == '+' &&
                                  at(g, right - 1, bottom) == line)) {
                right--;
            }
            bool closed = bottom < g->h && right > x;
            for (int k = y + 1; closed && k < bottom; k++) {
                closed = at(g, right, k) == '|' || at(g, right, k) == '+';
            }
            if (!closed) {
                struct hv_str dump = {0};
                hv_grid_dump(g, &dump);
                fail_msg("%s at %dx%d: the frame at %d,%d is not whole\n%s", stop, g->w, g->h, x, y,
                         hv_str_cstr(&dump));
            }
        }
    }
}

static void check_sizes(struct bench *b, const char *stop)
{
    for (int h = 5; h <= 60; h += h < 30 ? 1 : 6) {
        for (int w = 20; w <= 200; w += w < 50 ? 3 : 11) {
            struct hv_event size = hv_event_resize(w, h);
            (void)hv_app_feed(b->app, &size);
            hv_app_draw(b->app, &b->grid);
            assert_true(b->grid.w == w && b->grid.h == h);
            check_frames(&b->grid, stop);
        }
    }
}

static void frames_are_whole_at_every_size(void **state)
{
    struct bench *b = *state;
    for (size_t i = 0; i + 1 < HV_COUNT(stops); i++) { /* help lies over a screen on purpose */
        visit(b, stops[i]);
        check_sizes(b, stops[i]);
    }
}

/* What screens show when asked for more: forms, lists, comparisons, unfolded lanes, the tour. */
static void frames_are_whole_in_every_state(void **state)
{
    static const char *const ways[] = {
        "1e",
        "1<Tab>",
        "1$",
        "1t",
        "2<Tab>je0<Enter>",
        "2c",
        "3p",
        "4g<Space>c",
        "4<Space>c",
        "4<Tab>",
        "5K",
        "5KF|",
        "5ss",
        "5<Space>lllllll",
        "6<Tab>",
        "6 /What limits<Enter> ",
        "7lll",
        "8e",
        "T4",
        "T5",
    };
    struct bench *b = *state;
    for (size_t i = 0; i < HV_COUNT(ways); i++) {
        struct hv_str script = {0};
        hv_str_addf(&script, "resize 160x48\nkeys <Esc><Esc><Esc>\nkeys %s\n", ways[i]);
        bench_script(b, hv_str_cstr(&script));
        hv_str_free(&script);
        check_sizes(b, ways[i]);
    }
}

static void the_smallest_sizes_draw_too(void **state)
{
    struct bench *b = *state;
    for (size_t i = 0; i < HV_COUNT(stops); i++) {
        visit(b, stops[i]);
        for (int h = 1; h <= 12; h++) {
            for (int w = 1; w <= 44; w++) {
                struct hv_event size = hv_event_resize(w, h);
                (void)hv_app_feed(b->app, &size);
                hv_app_draw(b->app, &b->grid);
                if (w < HV_FLOOR_W || h < HV_FLOOR_H) {
                    assert_true(at(&b->grid, 0, 0) != ' '); /* it says something */
                }
            }
        }
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_screens_in_utf8_and_colour),
        TEST(all_screens_in_ascii),
        cmocka_unit_test(no_meaning_is_told_by_colour_alone),
        cmocka_unit_test(kinds_of_operations_differ_in_sixteen_colours),
        TEST(the_guided_tour_goes_through_the_screens),
        TEST(actions_are_commands),
        TEST(frames_are_whole_at_every_size),
        TEST(frames_are_whole_in_every_state),
        TEST(the_smallest_sizes_draw_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
