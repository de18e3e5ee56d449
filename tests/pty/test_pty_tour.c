/* The real program as people meet it: a newcomer's way from the first start to an exported plan,
 * with keys that stand on the screen; and what terminals and colleagues do to it. */
#define _DEFAULT_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/pty/pty.h"

/* Types a key after making sure that the screen names it. */
static void press(struct pty *p, const char *shown_as, const char *key)
{
    wait_for(p, shown_as);
    type(p, key);
}

/* Waits until n lines of the screen hold a text. */
static void wait_for_rows(struct pty *p, const char *text, int n)
{
    int64_t end = now_ms() + DEADLINE_MS;
    for (int rows = 0; rows < n; (void)drink(p, 50)) {
        char *now = shown(p);
        rows = 0;
        for (const char *at = now; (at = strstr(at, text)) != NULL; at++) {
            rows++;
        }
        free(now);
        if (rows < n && now_ms() > end) {
            fail_msg("'%s' is not on %d lines", text, n);
        }
    }
}

static void a_newcomer_gets_to_a_plan(void **state)
{
    struct pty *p = *state;
    char path[600];
    struct hv_str text = {0};
    start(p);
    press(p, "1 e     change the cluster", "1");
    press(p, "e Edit", "e");
    wait_for(p, "nodes ");
    type(p, "\r\x7f"
            "2\r"); /* the cursor is on the count, of one digit; Enter edits it */
    wait_for(p, "2 x 8");
    type(p, "\033"); /* alone: with a key right behind it, it would be Alt */
    wait_for(p, "Details of a");
    press(p, "3 Strat", "3");
    wait_for(p, "Space Queue");
    type(p, "/auto\r /uniform\r /whale\r ");
    press(p, "4 Plan", "4");
    wait_for(p, "whale-1");
    resize(p, 160, 48);
    wait_for_rows(p, " done ", 3);
    press(p, "s Sort", "S"); /* the fastest first, before any key */
    press(p, "sorted by time, turned", "S");
    wait_for(p, "sorted by time |");
    press(p, "/ Find", "/auto\r"); /* the first row now */
    press(p, "Enter Open", "\r");
    wait_for(p, "At cursor");
    press(p, "s Schedule", "s");
    press(p, "Enter Keep", "\033");
    wait_for(p, "At cursor"); /* the list hides it */
    press(p, "6 Explain", "6");
    wait_for(p, "What determines the iteration time");
    press(p, "4 Plans", "4");
    press(p, "E Export", "E");
    (void)snprintf(path, sizeof path, "%s/mine.json", p->folder);
    for (int i = 0; i < 80; i++) { /* what is offered goes, as in any line of text */
        type(p, "\x7f");
    }
    type(p, path);
    type(p, "\r");
    wait_for(p, "plan written to");
    assert_int_equal(hv_file_read(path, &text, NULL), HV_OK);
    assert_non_null(strstr(hv_str_cstr(&text), "\"format\": \"hetviz.plan/1\""));
    hv_str_free(&text);
    finish(p);
}

static void three_keys_lead_to_a_first_gantt(void **state)
{
    struct pty *p = *state;
    start(p);
    press(p, "Enter   let hetviz plan", "\r");
    wait_for(p, "P auto-1");
    press(p, "Enter Open", "\r");
    wait_for(p, "<5 Gantt>");
    wait_for(p, "At cursor");
    finish(p);
}

static void the_place_is_found_again(void **state)
{
    struct pty *p = *state;
    start(p);
    press(p, "1 Clu", "2");
    wait_for(p, "Memory per GPU");
    type(p, "q");
    (void)get_news(p);
    finish(p);
    start(p);
    wait_for(p, "<2 Mod");
    finish(p);
}

/* Two seconds of edits are the most that SIGKILL can take. */
static void a_killed_program_keeps_its_edits(void **state)
{
    struct pty *p = *state;
    start(p);
    type(p, "1");
    wait_for(p, "Nodes");
    type(p, ":set cluster.nodes[0].count 7\r");
    wait_for(p, "7 x 8");
    int64_t end = now_ms() + 2000;
    while (now_ms() < end) {
        (void)drink(p, 50);
    }
    type(p, ":set cluster.nodes[0].count 9\r");
    wait_for(p, "9 x 8");
    assert_int_equal(kill(p->program, SIGKILL), 0);
    (void)get_news(p);
    finish(p);
    start(p);
    wait_for(p, "unsaved edits found");
    type(p, "v\r");
    wait_for(p, "<8 Cons>");
    type(p, "r\r");
    wait_for(p, "restored");
    type(p, "1"); /* 7 was older than two seconds, 9 may be there */
    int64_t late = now_ms() + DEADLINE_MS;
    bool kept = false;
    while (!kept && now_ms() < late) {
        char *now = shown(p);
        kept = strstr(now, "7 x 8") != NULL || strstr(now, "9 x 8") != NULL;
        free(now);
        (void)drink(p, 50);
    }
    assert_true(kept);
    finish(p);
}

/* Every cell of the screen, the last column too. Owner: caller frees. */
static char *cells(struct pty *p)
{
    struct hv_str out = {0};
    for (int y = 0; y < p->h; y++) {
        for (int x = 0; x < p->w; x++) {
            VTermScreenCell c;
            VTermPos at = {.row = y, .col = x};
            bool there = vterm_screen_get_cell(p->screen, at, &c) != 0;
            hv_str_addf(&out, "%c", there && c.chars[0] >= 32 ? (char)c.chars[0] : ' ');
        }
        hv_str_addc(&out, '\n');
    }
    return out.p;
}

static void a_storm_of_sizes_ends_as_a_fresh_screen(void **state)
{
    struct pty *p = *state;
    start(p);
    type(p, "1");
    wait_for(p, "a Add"); /* the last row: the frame is whole */
    while (drink(p, 200)) {
    }
    char *before = cells(p);
    for (int i = 0; i < 300; i++) {
        resize(p, 1 + i * 37 % 200, 1 + i * 23 % 70);
        (void)drink(p, 0);
    }
    resize(p, COLUMNS, ROWS);
    type(p, "\x0c");
    int64_t end = now_ms() + DEADLINE_MS;
    char *after = cells(p);
    while (strcmp(before, after) != 0 && now_ms() < end) {
        (void)drink(p, 50);
        free(after);
        after = cells(p);
    }
    if (strcmp(after, before) != 0) {
        (void)fprintf(stderr, "%s\n---\n%s\n", before, after);
        fail_msg("the screen after the storm is another");
    }
    free(before);
    free(after);
    finish(p);
}

/* Writes all of it, reading what the program draws meanwhile. */
static void feed(struct pty *p, const char *bytes, size_t n)
{
    int64_t end = now_ms() + DEADLINE_MS;
    assert_true(fcntl(p->master, F_SETFL, O_NONBLOCK) == 0);
    while (n > 0 && now_ms() < end) {
        ssize_t k = write(p->master, bytes, n < 4096 ? n : 4096);
        if (k > 0) {
            bytes += k;
            n -= (size_t)k;
        }
        while (drink(p, k > 0 ? 0 : 10)) {
        }
        p->raw.n = 0; /* only the start and the end of it are looked at */
    }
    assert_int_equal(n, 0);
}

static void a_megabyte_of_paste_and_odd_sequences_do_no_harm(void **state)
{
    struct pty *p = *state;
    static const char odd[] = "\033[999;999;999z\033]52;c;AAAA\007\033P1$r0m\033\\\033[<64;5;5M"
                              "\033[<0;5;4M\033[<0;5;4m\033[<35;300;300M\033[?1;2c\033O\033[\033[Z"
                              "\xff\xfe\xc3(\033[200~\033[201~";
    struct hv_str paste = {0};
    start(p);
    type(p, "1");
    wait_for(p, "Nodes");
    type(p, odd);
    type(p, "\033");
    while (drink(p, 200)) {
    }
    type(p, ":xyzzy"); /* into a line of text: nothing of it is a command */
    wait_for(p, ":xyzzy");
    while (paste.n < 1024 * 1024) {
        hv_str_adds(&paste, "a line that somebody copied somewhere, ");
    }
    feed(p, paste.p, paste.n);
    type(p, "\033");
    wait_for(p, "640 GiB, $40.97/h"); /* the status line again */
    type(p, "2");
    wait_for(p, "<2 Mod");
    hv_str_free(&paste);
    finish(p);
}

static void a_terminal_that_vanishes_ends_it(void **state)
{
    struct pty *p = *state;
    start(p);
    type(p, "1D");
    wait_for(p, "not in use");
    (void)close(p->slave);
    (void)close(p->master);
    struct news n = {0, 0};
    assert_int_equal(read(p->news, &n, sizeof n), sizeof n);
    assert_true(WIFEXITED(n.status) || WIFSIGNALED(n.status));
    p->master = p->slave = open("/dev/null", O_RDWR);
    p->slave = dup(p->master);
    finish(p);
    start(p);
    wait_for(p, "unsaved edits found");
    finish(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_PTY(a_newcomer_gets_to_a_plan),
        ON_PTY(three_keys_lead_to_a_first_gantt),
        ON_PTY(the_place_is_found_again),
        ON_PTY(a_killed_program_keeps_its_edits),
        ON_PTY(a_storm_of_sizes_ends_as_a_fresh_screen),
        ON_PTY(a_megabyte_of_paste_and_odd_sequences_do_no_harm),
        ON_PTY(a_terminal_that_vanishes_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
