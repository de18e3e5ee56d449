/* Bytes for cells: whatever was shown before, a terminal shows the grid afterwards, in its colours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

#include "solver/base/attr.h"
#include "solver/base/rng.h"
#include "ui/term/term_out.h"

#include <curses.h>
/* last: it defines short words as macros */
#include <term.h>

/* A terminal that is drawn on. */
struct bench {
    struct hv_out out;
    VTerm *vt;
    VTermScreen *screen;
    size_t n_bytes; /* of the last drawing */
};

static void open_bench(struct bench *b, const char *term, bool colour, int w, int h)
{
    struct hv_theme theme;
    int rc = 0;
    assert_int_equal(setupterm(term, 1, &rc), OK);
    hv_theme_default(&theme);
    hv__out_open(&b->out, &theme, colour);
    hv__out_forget(&b->out, w, h);
    b->vt = vterm_new(h, w);
    vterm_set_utf8(b->vt, 1);
    b->screen = vterm_obtain_screen(b->vt);
    vterm_screen_reset(b->screen, 1);
}

static void close_bench(struct bench *b)
{
    vterm_free(b->vt);
    hv__out_close(&b->out);
    (void)del_curterm(cur_term);
}

static void show(struct bench *b, const struct hv_grid *g)
{
    hv__out_draw(&b->out, g);
    b->n_bytes = b->out.bytes.n;
    if (b->n_bytes > 0) {
        (void)vterm_input_write(b->vt, b->out.bytes.p, b->n_bytes);
    }
    vterm_screen_flush_damage(b->screen);
    hv_str_clear(&b->out.bytes);
}

/* Colour number on the terminal, −1 = its own. */
static int colour_of(const VTermColor *c)
{
    if (VTERM_COLOR_IS_DEFAULT_FG(c) || VTERM_COLOR_IS_DEFAULT_BG(c)) {
        return -1;
    }
    return VTERM_COLOR_IS_INDEXED(c) ? c->indexed.idx : -2;
}

static void assert_cell(struct bench *b, const struct hv_cell *want, int x, int y)
{
    VTermScreenCell got;
    char text[32] = "";
    VTermRect at = {y, y + 1, x, x + (want->width > 1 ? 2 : 1)};
    assert_int_equal(vterm_screen_get_cell(b->screen, (VTermPos){y, x}, &got), 1);
    size_t n = vterm_screen_get_text(b->screen, text, sizeof text - 1, at);
    text[n] = '\0';
    if (strcmp(n == 0 ? " " : text, want->utf8) != 0) {
        fail_msg("'%s' at %d,%d instead of '%s'", text, x, y, want->utf8);
    }
    struct hv_pen p = b->out.pens[want->style & HV_STYLE_ID_MASK];
    bool reverse = ((p.attrs & HV_ATTR_REVERSE) != 0) != ((want->style & HV_STYLE_REVERSE) != 0);
    assert_int_equal(got.attrs.reverse, reverse);
    assert_int_equal(got.attrs.underline != 0,
                     p.attrs & HV_ATTR_UNDERLINE || want->style & HV_STYLE_UNDERLINE);
    assert_int_equal(colour_of(&got.bg), p.bg);
    if (strcmp(want->utf8, " ") != 0) { /* of a blank nobody sees these */
        assert_int_equal(got.attrs.bold, p.attrs & HV_ATTR_BOLD || want->style & HV_STYLE_BOLD);
        assert_int_equal(colour_of(&got.fg), p.fg);
    }
}

static void assert_shown(struct bench *b, const struct hv_grid *g)
{
    for (int y = 0; y < g->h; y++) {
        for (int x = 0; x < g->w; x++) {
            if (g->cells[y * g->w + x].width > 0) {
                assert_cell(b, &g->cells[y * g->w + x], x, y);
            }
        }
    }
}

/* Changes some of the grid: words, lines, wide characters, blanks up to the edge, styles. */
static void scribble(struct hv_grid *g, struct hv_rng *rng)
{
    static const char *const words[] = {
        "a",        "plan0001", "\u4e2d\u6587", "\u2500\u2500\u2502", "\u2588\u258f",
        "e\u0301x", "        ", "12.5/10"};
    for (size_t k = hv_rng_below(rng, 12); k > 0; k--) {
        unsigned style = (unsigned)hv_rng_below(rng, HV_STYLE_N);
        int x = (int)hv_rng_below(rng, (uint64_t)g->w), y = (int)hv_rng_below(rng, (uint64_t)g->h);
        if (hv_rng_below(rng, 4) == 0) {
            style |= hv_rng_below(rng, 2) ? HV_STYLE_REVERSE : HV_STYLE_BOLD | HV_STYLE_UNDERLINE;
        }
        if (hv_rng_below(rng, 5) == 0) {
            hv_grid_fill(g, (struct hv_rect){x, y, g->w - x, 1}, ' ',
                         hv_rng_below(rng, 2) ? HV_STYLE_TEXT : style);
        } else if (x + 1 < g->w) { /* libvterm loses a combining mark in the last column */
            (void)hv_grid_put(g, x, y, -1, words[hv_rng_below(rng, HV_COUNT(words))], style);
        }
    }
}

static void any_grid_after_any_other_on(const char *term, bool colour, bool ansi)
{
    struct bench b;
    struct hv_grid g = {0};
    struct hv_rng rng;
    hv_rng_seed(&rng, 17);
    for (int size = 0; size < 6; size++) {
        int w = 1 + (int)hv_rng_below(&rng, 60), h = 1 + (int)hv_rng_below(&rng, 12);
        open_bench(&b, term, colour, w, h);
        b.out.caps.ansi_pen = b.out.caps.ansi_pen && ansi;
        b.out.caps.ansi_move = b.out.caps.ansi_move && ansi;
        hv_grid_resize(&g, w, h);
        for (int frame = 0; frame < 60; frame++) {
            scribble(&g, &rng);
            show(&b, &g);
            assert_shown(&b, &g);
            show(&b, &g);
            assert_int_equal(b.n_bytes, 0); /* nothing changed: nothing is written */
            if (frame % 20 == 19) {         /* somebody wrote over it */
                (void)vterm_input_write(b.vt, "\033[1;7mGARBAGE\r\n\n\n", 16);
                hv__out_forget(&b.out, w, h);
            }
        }
        close_bench(&b);
    }
    hv_grid_free(&g);
}

static void terminals_with_colours(void **state)
{
    (void)state;
    any_grid_after_any_other_on("xterm-256color", true, true);
    any_grid_after_any_other_on("screen-256color", true, true);
    any_grid_after_any_other_on("xterm", true, true);
}

static void terminals_without(void **state)
{
    (void)state;
    any_grid_after_any_other_on("xterm-256color", false, true);
    any_grid_after_any_other_on("vt100", true, true);
}

/* Only by what the description says. */
static void terminals_of_another_kind(void **state)
{
    (void)state;
    any_grid_after_any_other_on("xterm-256color", true, false);
    any_grid_after_any_other_on("vt100", true, false);
}

static size_t count(const struct hv_str *s, const char *what)
{
    size_t n = 0;
    for (const char *at = hv_str_cstr(s); (at = strstr(at, what)) != NULL; at++) {
        n++;
    }
    return n;
}

static void without_colours_none_is_asked_for(void **state)
{
    (void)state;
    struct bench b;
    struct hv_grid g = {0};
    open_bench(&b, "xterm-256color", false, 40, 3);
    hv_grid_resize(&g, 40, 3);
    for (unsigned i = 0; i < HV_STYLE_N; i++) {
        (void)hv_grid_put(&g, (int)i % 40, (int)i / 40, 1, "x", i);
    }
    hv__out_draw(&b.out, &g);
    assert_int_equal(count(&b.out.bytes, "38;5"), 0);
    assert_int_equal(count(&b.out.bytes, "[3"), 0);
    assert_int_equal(count(&b.out.bytes, "[4"),
                     count(&b.out.bytes, "[4m") + count(&b.out.bytes, "[4;7m"));
    hv_str_clear(&b.out.bytes);
    hv_grid_free(&g);
    close_bench(&b);
}

/* A cursor bar that moves by a row is what a list does at every key. */
static void a_bar_that_moves_costs_few_bytes(void **state)
{
    (void)state;
    struct bench b;
    struct hv_grid g = {0};
    open_bench(&b, "xterm-256color", true, 120, 40);
    hv_grid_resize(&g, 120, 40);
    for (int step = 0; step < 20; step++) {
        for (int y = 0; y < 40; y++) {
            hv_grid_put_field(&g, (struct hv_rect){0, y, 100, 1}, HV_LEFT, "name 12.5 GB/s  ok",
                              y == step ? HV_STYLE_SELECTED : HV_STYLE_TEXT);
        }
        show(&b, &g);
        assert_true(step == 0 || b.n_bytes < 250);
    }
    assert_shown(&b, &g);
    hv_grid_free(&g);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terminals_with_colours),
        cmocka_unit_test(terminals_without),
        cmocka_unit_test(terminals_of_another_kind),
        cmocka_unit_test(without_colours_none_is_asked_for),
        cmocka_unit_test(a_bar_that_moves_costs_few_bytes),
    };
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
