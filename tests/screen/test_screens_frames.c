/* Frames that keep what stays: after any key on any screen the grid is what an empty one would be,
 * and the terminal shows it though only what changed was looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "screens_bench.h"
#include "ui/term/term_out.h"

#include <curses.h>
/* last: it defines short words as macros */
#include <term.h>

static void assert_shown(const struct hv_out *o, const struct hv_grid *g)
{
    for (int i = 0; i < g->w * g->h; i++) {
        if (strcmp(o->shown[i].utf8, g->cells[i].utf8) != 0 ||
            o->shown[i].style != g->cells[i].style) {
            fail_msg("cell %d,%d of %dx%d was left as it was", i % g->w, i / g->w, g->w, g->h);
        }
    }
}

static void draw(struct bench *b, struct hv_out *o)
{
    bench_drawn_whole(b);
    if (o->w != b->grid.w || o->h != b->grid.h) {
        hv__out_forget(o, b->grid.w, b->grid.h);
    }
    hv__out_draw(o, &b->grid);
    assert_shown(o, &b->grid);
    hv_str_clear(&o->bytes);
}

/* The keys that move in lists and forms, and what changes them, on every screen in turn. */
static void random_keys(struct bench *b, struct hv_out *o, uint64_t seed)
{
    static const char keys[] = "jjjjjkkkkggGhlm sSfdDenNz\t\t\t12345678?";
    static const enum hv_key_code codes[] = {HV_KEY_DOWN, HV_KEY_DOWN,  HV_KEY_UP,   HV_KEY_UP,
                                             HV_KEY_LEFT, HV_KEY_RIGHT, HV_KEY_PGUP, HV_KEY_PGDN,
                                             HV_KEY_HOME, HV_KEY_END,   HV_KEY_ESC,  HV_KEY_ENTER};
    struct hv_rng rng;
    hv_rng_seed(&rng, seed);
    for (int i = 0; i < 1500; i++) {
        struct hv_event ev = {.type = HV_EV_KEY};
        if (i % 25 == 0) {
            ev.key =
                (struct hv_key){.code = HV_KEY_CHAR, .cp = (uint32_t)('1' + hv_rng_below(&rng, 8))};
        } else if (hv_rng_below(&rng, 60) == 0) {
            ev =
                hv_event_resize(20 + (int)hv_rng_below(&rng, 180), 5 + (int)hv_rng_below(&rng, 56));
        } else if (hv_rng_below(&rng, 2) == 0) {
            ev.key = (struct hv_key){.code = HV_KEY_CHAR,
                                     .cp = (uint32_t)keys[hv_rng_below(&rng, sizeof keys - 1)]};
        } else {
            ev.key.code = codes[hv_rng_below(&rng, HV_COUNT(codes))];
        }
        (void)hv_app_feed(b->app, &ev);
        hv_app_tick(b->app, i);
        draw(b, o);
        if (hv_rng_below(&rng, 10) == 0) { /* a frame that the terminal does not get */
            bench_drawn_whole(b);
        }
    }
}

static void every_frame_is_whole(void **state)
{
    struct bench *b = *state;
    struct hv_out o = {0};
    struct hv_theme theme;
    int rc = 0;
    assert_int_equal(setupterm("xterm-256color", 1, &rc), OK);
    hv_theme_default(&theme);
    hv__out_open(&o, &theme, true);
    hv_app_set_ascii(b->app, false);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        random_keys(b, &o, seed);
    }
    hv__out_close(&o);
    (void)del_curterm(cur_term);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_frame_is_whole, bench_open, bench_close)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
