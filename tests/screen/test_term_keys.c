/* What terminals send, as events: however the bytes are cut into pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <string.h>

#include "solver/base/attr.h"
#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "ui/term/term_keys.h"

static void put(struct hv_key_input *in, const char *bytes, size_t n)
{
    size_t room = 0;
    unsigned char *to = hv__keys_room(in, &room);
    assert_true(n <= room);
    memcpy(to, bytes, n);
    hv__keys_took(in, n);
}

/* Events as words: "Up C-a A-x press(3,4)". */
static void tell(struct hv_str *out, const struct hv_event *ev)
{
    static const char *const mouse[] = {"press", "release", "drag", "wheel-up", "wheel-down"};
    char name[32];
    hv_str_adds(out, out->n > 0 ? " " : "");
    if (ev->type == HV_EV_MOUSE) {
        hv_str_addf(out, "%s(%d,%d)%s", mouse[ev->mouse], ev->x, ev->y,
                    ev->key.mods & HV_MOD_SHIFT ? "+shift" : "");
    } else if (ev->type == HV_EV_PASTE) {
        hv_str_adds(out, "paste");
    } else if (ev->type == HV_EV_PASTING) {
        bool line_end = ev->key.cp == '\n';
        hv_str_addf(out, "pasted(%s)", line_end ? "^J" : hv_key_name(ev->key, name, sizeof name));
    } else {
        hv_str_adds(out, hv_key_name(ev->key, name, sizeof name));
    }
}

static void take_all(struct hv_key_input *in, bool late, struct hv_str *out)
{
    for (;;) {
        struct hv_event ev = hv__keys_next(in, late);
        if (ev.type == HV_EV_NONE) {
            return;
        }
        tell(out, &ev);
    }
}

static void decode(struct hv_key_input *in, const char *bytes, size_t n, size_t piece,
                   struct hv_str *out)
{
    for (size_t at = 0; at < n; at += piece) {
        put(in, bytes + at, piece < n - at ? piece : n - at);
        take_all(in, false, out);
    }
    take_all(in, true, out);
}

static void gives(const char *bytes, size_t n, const char *want)
{
    for (size_t piece = 1; piece <= n; piece++) {
        struct hv_key_input in = {.mouse = true};
        struct hv_str out = {0};
        decode(&in, bytes, n, piece, &out);
        if (strcmp(hv_str_cstr(&out), want) != 0) {
            fail_msg("in pieces of %zu: '%s', not '%s'", piece, hv_str_cstr(&out), want);
        }
        assert_false(hv__keys_waiting(&in));
        hv_str_free(&out);
    }
}

#define GIVES(bytes, want) gives(bytes, sizeof(bytes) - 1, want)

static void keys_of_all_terminals(void **state)
{
    (void)state;
    GIVES("a \r\n\t\x7f\b\x01\x1a",
          "a <Space> <Enter> <Enter> <Tab> <Backspace> <Backspace> ^A ^Z");
    GIVES("\033[A\033OB\033[C\033OD\033[H\033OF", "<Up> <Down> <Right> <Left> <Home> <End>");
    GIVES("\033[1~\033[2~\033[3~\033[4~\033[5~\033[6~",
          "<Home> <Insert> <Delete> <End> <PgUp> <PgDn>");
    GIVES("\033OP\033[15~\033[24~", "F1 F5 F12");
    GIVES("\033[1;2C\033[1;5A\033[3;3~\033[Z", "Shift-Right Ctrl-Up M-Delete Shift-Tab");
    GIVES("\xc3\xb6\xe2\x82\xac", "\xc3\xb6 \xe2\x82\xac");
}

static void escape_and_alt(void **state)
{
    (void)state;
    GIVES("\033", "<Esc>");
    GIVES("\033x", "M-x");
    GIVES("\033\033", "<Esc> <Esc>");
    GIVES("\033\033[A", "<Esc> <Up>");
    GIVES("\033\r", "<Esc> <Enter>");
    GIVES("\033O", "M-O");
    GIVES("\033[", "M-[");
    GIVES("\033P", "M-P");
    GIVES("\033\xc3\xb6", "M-\xc3\xb6");
}

static void what_nobody_knows_is_no_key(void **state)
{
    (void)state;
    GIVES("\033[999;999;999zj", "j");
    GIVES("\033[?1;2cj\033[>41;354;0cj\033[202~j\033[201~j", "j j j j");
    GIVES("\033]52;c;AAAA\007j\033]11;rgb:0000/0000/0000\033\\j", "j j");
    GIVES("\033P1$r0m\033\\j\033_x\033\\j", "j j");
    GIVES("\033OXj", "j");
    GIVES("\033[9~\033[99~j", "j");
    GIVES("\xff\xfej", "j");
    GIVES("\033[1\033[Aj", "<Up> j");
}

static void pasted_text_is_no_key(void **state)
{
    (void)state;
    GIVES("j\033[200~j\033[201~j", "j pasted(j) paste j");
    GIVES("\033[200~\033[Aq\003\r\n\t\033[201~\033[A",
          "pasted([) pasted(A) pasted(q) pasted(^J) pasted(^J) pasted(<Space>) paste <Up>");
    GIVES("\033[200~\033[200~\xc3\xa9\033[201\033[201~",
          "pasted([) pasted(2) pasted(0) pasted(0) pasted(~) pasted(\xc3\xa9) pasted([) pasted(2) "
          "pasted(0) pasted(1) paste");
}

static void the_mouse(void **state)
{
    (void)state;
    GIVES("\033[<0;5;4M\033[<32;6;4M\033[<0;6;4m", "press(4,3) drag(5,3) release(5,3)");
    GIVES("\033[<64;200;90M\033[<65;1;1M\033[<69;1;1M",
          "wheel-up(199,89) wheel-down(0,0) wheel-down(0,0)+shift");
    GIVES("\033[<2;5;4M\033[<2;5;4m\033[<35;9;9M", "");
    GIVES("\033[M !!\033[M#!!", "press(0,0) release(0,0)");
    static const char reports[] = "\033[<0;5;4M\033[M !!j";
    struct hv_key_input off = {0};
    struct hv_str out = {0};
    decode(&off, reports, sizeof reports - 1, 7, &out);
    assert_string_equal(hv_str_cstr(&out), "j");
    hv_str_free(&out);
}

static void keys_of_a_description(void **state)
{
    (void)state;
    struct hv_key_input in = {0};
    struct hv_str out = {0};
    hv__keys_learn(&in, "\033[[A", (struct hv_key){.code = HV_KEY_F1}); /* the Linux console */
    hv__keys_learn(&in, "\033Ox", (struct hv_key){.code = HV_KEY_UP});
    hv__keys_learn(&in, "x", (struct hv_key){.code = HV_KEY_DOWN});
    hv__keys_learn(&in, NULL, (struct hv_key){.code = HV_KEY_DOWN});
    decode(&in, "\033[[A\033Oxx\033[[B", 12, 3, &out);
    assert_string_equal(hv_str_cstr(&out), "F1 <Up> x B");
    hv_str_free(&out);
}

static void a_flood_is_decoded_to_the_last_key(void **state)
{
    (void)state;
    struct hv_key_input in = {0};
    size_t n = 0, got = 0, room = 0;
    for (size_t sent = 0; sent < 2000 * 3;) {
        unsigned char *to = hv__keys_room(&in, &room);
        size_t k = room < 2000 * 3 - sent ? room : 2000 * 3 - sent;
        for (size_t i = 0; i < k; i++) {
            to[i] = (unsigned char)"\033[B"[(sent + i) % 3];
        }
        hv__keys_took(&in, k);
        sent += k;
        for (;;) {
            struct hv_event ev = hv__keys_next(&in, false);
            if (ev.type == HV_EV_NONE) {
                break;
            }
            got += ev.key.code == HV_KEY_DOWN;
            n++;
        }
    }
    assert_int_equal(n, 2000);
    assert_int_equal(got, 2000);
}

/* Random bytes never hang, and never leave anything behind once they are late. */
static void any_bytes_come_to_an_end(void **state)
{
    (void)state;
    static const char likely[] = "\033\033\033[[[O]P<;;0123456789mMABZ~ a\007\\\x80\xc3\xb6";
    struct hv_rng rng;
    hv_rng_seed(&rng, 3);
    for (int round = 0; round < 20000; round++) {
        struct hv_key_input in = {.mouse = round % 2 == 0};
        char bytes[64];
        size_t n = 1 + hv_rng_below(&rng, sizeof bytes - 1), events = 0;
        for (size_t i = 0; i < n; i++) {
            bytes[i] = round % 3 == 0 ? (char)hv_rng_below(&rng, 256)
                                      : likely[hv_rng_below(&rng, sizeof likely - 1)];
        }
        put(&in, bytes, n);
        while (hv__keys_next(&in, false).type != HV_EV_NONE) {
            events++;
        }
        while (hv__keys_next(&in, true).type != HV_EV_NONE) {
            events++;
        }
        assert_true(events <= n);
        assert_false(hv__keys_waiting(&in));
    }
}

static void a_sequence_without_an_end_does_not_fill_the_room_for_good(void **state)
{
    (void)state;
    struct hv_key_input in = {0};
    size_t room = 0;
    unsigned char *to = hv__keys_room(&in, &room);
    memset(to, '1', room);
    memcpy(to, "\033[", 2);
    hv__keys_took(&in, room);
    while (hv__keys_next(&in, false).type != HV_EV_NONE) {
    }
    (void)hv__keys_room(&in, &room);
    assert_true(room > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_all_terminals),
        cmocka_unit_test(escape_and_alt),
        cmocka_unit_test(what_nobody_knows_is_no_key),
        cmocka_unit_test(pasted_text_is_no_key),
        cmocka_unit_test(the_mouse),
        cmocka_unit_test(keys_of_a_description),
        cmocka_unit_test(a_flood_is_decoded_to_the_last_key),
        cmocka_unit_test(any_bytes_come_to_an_end),
        cmocka_unit_test(a_sequence_without_an_end_does_not_fill_the_room_for_good),
    };
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
