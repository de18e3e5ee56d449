/* Pasted text, from the bytes of a terminal to the screens: it changes the field that is edited,
 * and nothing else, whatever it holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>

#include "tests/screen/screens_bench.h"
#include "ui/term/term_keys.h"

enum { MEGABYTE = 1 << 20, PIECE = 4000 };

/* Feeds bytes as a terminal would: piece by piece. */
static void type_bytes(struct bench *b, struct hv_key_input *in, const char *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t room = 0, part = n - at < PIECE ? n - at : PIECE;
        unsigned char *to = hv__keys_room(in, &room);
        part = part < room ? part : room;
        memcpy(to, bytes + at, part);
        hv__keys_took(in, part);
        at += part;
        for (;;) {
            struct hv_event ev = hv__keys_next(in, false);
            if (ev.type == HV_EV_NONE) {
                break;
            }
            assert_int_not_equal(ev.type, HV_EV_KEY);
            assert_true(hv_app_feed(b->app, &ev));
        }
    }
}

static void paste(struct bench *b, const char *bytes, size_t n)
{
    struct hv_key_input in = {.mouse = true};
    type_bytes(b, &in, "\033[200~", 6);
    type_bytes(b, &in, bytes, n);
    type_bytes(b, &in, "\033[201~", 6);
    assert_false(in.pasting);
}

/* The screen but for its status row. */
static struct hv_str picture(struct bench *b)
{
    struct hv_str s = {0};
    hv_app_draw(b->app, &b->grid);
    for (int x = 0; x < b->grid.w; x++) {
        b->grid.cells[(b->grid.h - 2) * b->grid.w + x].utf8[0] = ' ';
    }
    hv_grid_dump(&b->grid, &s);
    return s;
}

static void a_megabyte_of_anything_changes_no_screen(void **state)
{
    struct bench *b = *state;
    struct hv_rng rng;
    char *bytes = malloc(MEGABYTE);
    hv_rng_seed(&rng, 25);
    for (size_t i = 0; i < MEGABYTE; i++) {
        bytes[i] = (char)hv_rng_below(&rng, 256);
    }
    memcpy(bytes, "Qy\033[A\rq!\r\003d", 11);
    for (char screen = '1'; screen <= '8'; screen++) {
        char go[] = {'k', 'e', 'y', 's', ' ', screen, '\n', '\0'};
        bench_script(b, go);
        struct hv_str before = picture(b);
        paste(b, bytes, MEGABYTE);
        assert_true(bench_sees(b, "pasted text was ignored"));
        bench_script(b, "keys <Esc>\n"); /* the message, nothing else */
        struct hv_str after = picture(b);
        if (screen != '8') { /* which lists the messages */
            assert_string_equal(hv_str_cstr(&before), hv_str_cstr(&after));
        }
        assert_false(hv_session_dirty(b->session));
        assert_false(hv_app_is_done(b->app));
        hv_str_free(&before);
        hv_str_free(&after);
    }
    free(bytes);
}

static void lines_take_pasted_text(void **state)
{
    struct bench *b = *state;
    static const char text[] = "  set job\r\nglobal_batch\t7\n";
    bench_script(b, "keys :\n");
    paste(b, text, sizeof text - 1);
    assert_true(bench_sees(b, ":set job global_batch 7"));
    assert_false(hv_session_dirty(b->session));
    bench_script(b, "keys ^_\n"); /* one step of undo */
    assert_false(bench_sees(b, "global_batch"));
    bench_script(b, "keys <Esc>/\n");
    paste(b, "few", 3);
    bench_script(b, "keys <Esc>?\n");
    paste(b, "zoom", 4);
    assert_true(bench_sees(b, "zoom"));
    bench_script(b, "keys <Esc>\n");
}

static void a_field_takes_pasted_text(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 1e\n");
    paste(b, "99", 2); /* the form is open, but no field is edited */
    assert_true(bench_sees(b, "pasted text was ignored"));
    bench_script(b, "keys <Enter>^U\n");
    paste(b, "q!\n\x1b[Bmore", 10);
    assert_true(bench_sees(b, "q! [Bmore"));
    bench_script(b, "keys <Esc><Esc>\n");
    assert_false(hv_session_dirty(b->session));
}

/* Quitting asks; a pasted y is no answer. */
static void a_paste_does_not_answer(void **state)
{
    struct bench *b = *state;
    bench_script(b, ":set job.global_batch 32\nkeys Q\nwait Unsaved changes\n");
    paste(b, "y", 1);
    assert_false(hv_app_is_done(b->app));
    bench_script(b, "keys n\n");
    assert_false(hv_app_is_done(b->app));
}

/* Text whose end mark was lost: Esc gives the keys back. */
static void escape_ends_a_paste_without_end(void **state)
{
    struct bench *b = *state;
    struct hv_key_input in = {0};
    type_bytes(b, &in, "\033[200~abc", 9);
    type_bytes(b, &in, "\033", 1);
    struct hv_event ev = hv__keys_next(&in, true);
    assert_int_equal(ev.type, HV_EV_PASTE);
    (void)hv_app_feed(b->app, &ev);
    memcpy(in.bytes, "4", 1);
    in.from = 0;
    in.n = 1;
    ev = hv__keys_next(&in, false);
    assert_int_equal(ev.type, HV_EV_KEY);
}

int main(void)
{
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setlocale(LC_NUMERIC, "C");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_megabyte_of_anything_changes_no_screen, bench_open,
                                        bench_close),
        cmocka_unit_test_setup_teardown(lines_take_pasted_text, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(a_field_takes_pasted_text, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(a_paste_does_not_answer, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(escape_ends_a_paste_without_end, bench_open, bench_close)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
