/* The real program on a pseudo-terminal: what it shows, how it leaves. */
#define _DEFAULT_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "scripting/plugin/plugin.h"
#include "tests/pty/pty.h"

/* q ends the program with status 0 and gives the terminal back. */
static void quit_by_q(struct pty *p)
{
    type(p, "q");
    struct news n = get_news(p);
    assert_true(WIFEXITED(n.status));
    assert_int_equal(WEXITSTATUS(n.status), 0);
    assert_restored(p);
    finish(p);
}

static void the_first_screen_shows_the_sample_and_keys_switch(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "Welcome to hetviz");
    type(p, "1");
    wait_for(p, "<1 Clu");
    wait_for(p, "F1 Help");
    wait_for(p, "> a ");
    type(p, "2");
    wait_for(p, "<2 Mod");
    wait_for(p, "Memory per GPU");
    type(p, "4");
    wait_for(p, "<4 Plan");
    type(p, "1");
    wait_for(p, "<1 Clu");
    resize(p, 40, 10);
    wait_for(p, "<1 Clu");
    resize(p, COLUMNS, ROWS);
    wait_for(p, "<1 Clu");
    wait_for(p, "Links");
    quit_by_q(p);
}

/* On the page that greets a newcomer, q ends the program as the page says; Esc goes to the screens.
 */
static void the_first_page_quits(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "q quits");
    type(p, "\033");
    wait_for(p, "> a ");
    type(p, ":screen welcome\r");
    wait_for(p, "q quits");
    quit_by_q(p);
}

/* A strategy is run, its plan explained, a line's lever tried and accepted, and taken back. */
static void a_plan_is_explained_and_a_lever_tried(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "F1 Help");
    type(p, "6");
    wait_for(p, "choose a strategy");
    type(p, "3/uniform\r\r");
    wait_for(p, "uniform-1: "); /* how the run ended: its notice would hide later messages */
    type(p, "6");
    wait_for(p, "<6 Why>");
    wait_for(p, "Free: no new hardware");
    type(p, "/(all\r");
    wait_for(p, "tried)");
    resize(p, 160, 48);
    wait_for(p, "<6 Explain>");
    wait_for(p, "No plan like this can be faster");
    type(p, "7");
    wait_for(p, "<7 What-if>");
    type(p, "/network\rl");
    wait_for(p, "1 moved");
    wait_for(p, "best at");
    type(p, "\r");
    wait_for(p, "changed: cluster");
    type(p, "u");
    wait_for(p, "undone: what-if: network");
    resize(p, 40, 10);
    wait_for(p, "<7 What>");
    resize(p, COLUMNS, ROWS);
    type(p, "q");
    wait_for(p, "Unsaved changes");
    type(p, "y");
    struct news n = get_news(p);
    assert_true(WIFEXITED(n.status));
    assert_int_equal(WEXITSTATUS(n.status), 0);
    assert_restored(p);
    finish(p);
}

static void stopping_gives_the_terminal_back_and_continuing_draws_again(void **state)
{
    struct pty *p = *state;
    struct termios now;
    start(p);
    wait_for(p, "<1 Clu");
    wait_for(p, "F1 Help");
    assert_int_equal(kill(p->program, SIGTSTP), 0);
    struct news n = get_news(p);
    assert_true(WIFSTOPPED(n.status));
    assert_restored(p);
    hv_str_clear(&p->raw);
    assert_int_equal(kill(p->program, SIGCONT), 0);
    n = get_news(p);
    assert_true(WIFCONTINUED(n.status));
    wait_for(p, "<1 Clu");
    type(p, "2");
    wait_for(p, "<2 Mod");
    assert_int_equal(tcgetattr(p->slave, &now), 0);
    assert_false(now.c_lflag & ICANON);
    type(p, "q");
    n = get_news(p);
    assert_true(WIFEXITED(n.status));
    assert_restored(p);
    finish(p);
}

static void leaves_by_q(struct pty *p)
{
    type(p, "q");
    struct news n = get_news(p);
    assert_true(WIFEXITED(n.status));
    assert_restored(p);
    finish(p);
}

static size_t times_written(const struct pty *p, const char *bytes)
{
    size_t n = 0;
    for (const char *at = hv_str_cstr(&p->raw); (at = strstr(at, bytes)) != NULL; at++) {
        n++;
    }
    return n;
}

static void the_mouse_can_be_given_back(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "<1 Clu");
    wait_for(p, "F1 Help");
    assert_int_equal(times_written(p, "\033[?1000h"), 1);
    type(p, ":set nomouse\r");
    wait_for(p, "the terminal uses the mouse");
    assert_int_equal(times_written(p, "\033[?1000l"), 1);
    type(p, "\033[<0;30;1M"); /* a click on a tab is skipped now */
    type(p, "2");
    wait_for(p, "<2 Mod");
    type(p, ":set mouse\r");
    wait_for(p, "hetviz uses the mouse");
    assert_int_equal(times_written(p, "\033[?1000h"), 2);
    type(p, "\033[<0;4;1M");
    wait_for(p, "<1 Clu");
    leaves_by_q(p);
}

/* The colour of a tab that is not open: 250 by default, 238 on a light background. */
static void themes_change_while_it_runs(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "F1 Help");
    assert_true(times_written(p, "38;5;250m 2 Mod") > 0);
    assert_int_equal(times_written(p, "38;5;238m 2 Mod"), 0);
    type(p, ":set theme li\t\r");
    wait_for(p, "theme light;");
    assert_int_equal(times_written(p, "38;5;238m 2 Mod"), 1);
    type(p, ":set theme no-such\r");
    wait_for(p, "no theme 'no-such': default, light");
    assert_int_equal(times_written(p, "38;5;250m 2 Mod"), 1);
    type(p, ":set theme default\r");
    wait_for(p, "theme default;");
    assert_int_equal(times_written(p, "38;5;250m 2 Mod"), 2);
    type(p, "2");
    wait_for(p, "<2 Mod");
    leaves_by_q(p);
}

static void in_utf8(struct pty *p)
{
    (void)p;
    (void)setenv("LC_ALL", "C.UTF-8", 1);
}

/* Asked for, ASCII it is, also where the terminal could show more. */
static void ascii_is_kept_where_it_was_asked_for(void **state)
{
    struct pty *p = *state;
    p->workspace = "--ascii";
    p->prepare = in_utf8;
    start(p);
    wait_for(p, "F1 Help");
    type(p, "3");
    wait_for(p, "<3 Strat");
    for (size_t i = 0; i < p->raw.n; i++) {
        assert_true((unsigned char)p->raw.p[i] < 0x80);
    }
    type(p, ":set noascii\r2");
    wait_for(p, "\xe2\x94\x8c");
    leaves_by_q(p);
}

/* i and F7 look at a file of nvidia-smi first; what is taken over is one step back. */
static void files_are_looked_at_before_they_are_imported(void **state)
{
    static const char list[] = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n"
                               "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n";
    struct pty *p = *state;
    char path[300], line[320];
    (void)snprintf(path, sizeof path, "%s/smi.txt", p->folder);
    (void)snprintf(line, sizeof line, "%s\r", path);
    assert_int_equal(hv_file_write(path, list, sizeof list - 1, NULL), HV_OK);
    start(p);
    wait_for(p, "F1 Help");
    type(p, "1");
    wait_for(p, "5 nodes, 32 GPUs");
    type(p, "\033[18~"); /* F7 */
    wait_for(p, "file of any kind");
    type(p, line);
    wait_for(p, "replace the cluster");
    wait_for(p, "Guessed");
    type(p, "\033");
    wait_for(p, "nothing was changed");
    wait_for(p, "5 nodes, 32 GPUs");
    type(p, "i");
    type(p, line);
    wait_for(p, "replace the cluster");
    type(p, "\t");
    wait_for(p, "> add its nodes");
    type(p, "\r");
    wait_for(p, "u undoes the import");
    wait_for(p, "6 nodes, 34 GPUs");
    type(p, "u");
    wait_for(p, "5 nodes, 32 GPUs");
    type(p, "i");
    type(p, line);
    wait_for(p, "> replace the cluster");
    type(p, "\r");
    wait_for(p, "1 node, 2 GPUs");
    type(p, "u");
    wait_for(p, "5 nodes, 32 GPUs");
    type(p, "u");
    wait_for(p, "nothing to undo");
    leaves_by_q(p);
}

/* E gives the terminal to the editor, which talks there; what it saved is on the screen after. */
static void the_editor_gets_the_terminal(void **state)
{
    static const char editor[] =
        "#!/bin/sh\necho EDITING HERE\nread answer\n"
        "sed \"s/title = \\\"one\\\"/title = \\\"$answer\\\"/\" \"$1\" > \"$1.new\" && "
        "mv \"$1.new\" \"$1\"\n";
    struct pty *p = *state;
    struct hv_str path = {0}, text = {0};
    hv_str_addf(&path, "%s/editor", p->folder);
    assert_int_equal(hv_file_write(hv_str_cstr(&path), editor, sizeof editor - 1, NULL), HV_OK);
    assert_int_equal(chmod(hv_str_cstr(&path), 0700), 0);
    (void)setenv("VISUAL", hv_str_cstr(&path), 1);
    hv_str_clear(&path);
    assert_int_equal(hv_plugin_skeleton(&text, "one", NULL), HV_OK);
    hv_str_addf(&path, "%s/one.lua", p->folder);
    assert_int_equal(hv_file_write(hv_str_cstr(&path), hv_str_cstr(&text), text.n, NULL), HV_OK);
    (void)setenv("HETVIZ_PLUGINS", p->folder, 1);
    start(p);
    wait_for(p, "F1 Help");
    type(p, "3fone.lua\r");
    wait_for(p, "Parameters of one");
    type(p, "E");
    wait_for(p, "EDITING HERE");
    type(p, "mended\n");
    wait_for(p, "1 plugin reloaded");
    wait_for(p, "mended");
    type(p, "q");
    (void)get_news(p);
    assert_restored(p);
    finish(p);
    (void)unsetenv("HETVIZ_PLUGINS");
    (void)unsetenv("VISUAL");
    hv_str_free(&path);
    hv_str_free(&text);
}

/* A signal while the editor is open: the editor gets it and saves, then the program ends by it,
 * with the terminal as it was. The editor leaves the terminal without echo. */
static void a_signal_reaches_the_editor(void **state)
{
    static const char editor[] =
        "#!/bin/sh\ntrap 'cp \"$1\" \"$1.saved\"; exit 0' TERM HUP\nstty -echo raw\necho OPEN NOW\n"
        "while :; do sleep 0.05; done\n";
    static const int all[] = {SIGTERM, SIGHUP};
    struct pty *p = *state;
    struct hv_str path = {0}, text = {0};
    hv_str_addf(&path, "%s/editor", p->folder);
    assert_int_equal(hv_file_write(hv_str_cstr(&path), editor, sizeof editor - 1, NULL), HV_OK);
    assert_int_equal(chmod(hv_str_cstr(&path), 0700), 0);
    (void)setenv("VISUAL", hv_str_cstr(&path), 1);
    assert_int_equal(hv_plugin_skeleton(&text, "one", NULL), HV_OK);
    for (size_t i = 0; i < HV_COUNT(all); i++) {
        hv_str_clear(&path);
        hv_str_addf(&path, "%s/one.lua", p->folder);
        assert_int_equal(hv_file_write(hv_str_cstr(&path), hv_str_cstr(&text), text.n, NULL),
                         HV_OK);
        (void)setenv("HETVIZ_PLUGINS", p->folder, 1);
        start(p);
        wait_for(p, "F1 Help");
        type(p, "3f\x15one.lua\r"); /* the filter of the session before is still there */
        wait_for(p, "Parameters of one");
        type(p, "E");
        wait_for(p, "OPEN NOW");
        assert_int_equal(kill(p->program, all[i]), 0);
        struct news n = get_news(p);
        assert_true(WIFSIGNALED(n.status));
        assert_int_equal(WTERMSIG(n.status), all[i]);
        assert_restored(p);
        finish(p);
        hv_str_adds(&path, ".saved");
        assert_int_equal(unlink(hv_str_cstr(&path)), 0);
    }
    (void)unsetenv("HETVIZ_PLUGINS");
    (void)unsetenv("VISUAL");
    hv_str_free(&path);
    hv_str_free(&text);
}

/* Ends the program by a signal; returns its status. */
static int end_by(struct pty *p, int signo)
{
    start(p);
    wait_for(p, "<1 Clu");
    wait_for(p, "F1 Help");
    assert_int_equal(kill(p->program, signo), 0);
    struct news n = get_news(p);
    assert_restored(p);
    finish(p);
    return n.status;
}

/* All nine: the terminal is as it was, and whoever waits sees the signal itself. */
static void signals_restore_the_terminal(void **state)
{
    static const int all[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGSEGV,
                              SIGABRT, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < HV_COUNT(all); i++) {
        int status = end_by(*state, all[i]);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), all[i]);
    }
}

static void edits_survive_a_hangup_and_are_offered(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "F1 Help");
    type(p, "1D");
    wait_for(p, "not in use");
    assert_int_equal(kill(p->program, SIGHUP), 0);
    (void)get_news(p);
    finish(p);
    start(p);
    wait_for(p, "unsaved edits found");
    type(p, "\r1");
    wait_for(p, "not in use");
    finish(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_PTY(the_first_screen_shows_the_sample_and_keys_switch),
        ON_PTY(the_first_page_quits),
        ON_PTY(a_plan_is_explained_and_a_lever_tried),
        ON_PTY(stopping_gives_the_terminal_back_and_continuing_draws_again),
        ON_PTY(the_editor_gets_the_terminal),
        ON_PTY(a_signal_reaches_the_editor),
        ON_PTY(the_mouse_can_be_given_back),
        ON_PTY(themes_change_while_it_runs),
        ON_PTY(ascii_is_kept_where_it_was_asked_for),
        ON_PTY(files_are_looked_at_before_they_are_imported),
        ON_PTY(signals_restore_the_terminal),
        ON_PTY(edits_survive_a_hangup_and_are_offered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
