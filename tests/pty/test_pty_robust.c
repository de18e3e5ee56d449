/* The real program where terminals and disks misbehave: the rows that other programs fail. */
#define _GNU_SOURCE 1 /* prlimit */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <sys/resource.h>

#include "tests/pty/pty.h"

static void quit(struct pty *p)
{
    type(p, "Q");
    struct news n = get_news(p);
    assert_true(WIFEXITED(n.status));
    assert_int_equal(WEXITSTATUS(n.status), 0);
    assert_restored(p);
    finish(p);
}

/* Files that are done: those under way begin with a dot. */
static size_t files_in(const char *folder)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        n += e->d_name[0] != '.';
    }
    (void)closedir(d);
    return n;
}

/* What a save must not leave behind. */
static size_t litter_in(const char *folder)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        bool is_folder = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        n += !is_folder && (e->d_name[0] == '.' || strstr(e->d_name, ".new") != NULL);
    }
    (void)closedir(d);
    return n;
}

static void let_files_grow(pid_t pid, rlim_t most)
{
    struct rlimit lim;
    assert_int_equal(prlimit(pid, RLIMIT_FSIZE, NULL, &lim), 0);
    lim.rlim_cur = most;
    assert_int_equal(prlimit(pid, RLIMIT_FSIZE, &lim, NULL), 0);
}

/* No file may grow: the old one stays byte for byte, the screen says so, nothing lies beside it,
 * and saving again works when there is room. */
static void a_full_disk_costs_nothing(void **state)
{
    struct pty *p = *state;
    char folder[400], file[500];
    struct hv_str before = {0}, after = {0}, saved = {0};
    (void)snprintf(folder, sizeof folder, "%s/state/hetviz/sample", p->folder);
    (void)snprintf(file, sizeof file, "%s/workspace.json", folder);
    start(p);
    wait_for(p, "Welcome to hetviz");
    assert_int_equal(hv_file_read(file, &before, NULL), HV_OK);
    let_files_grow(p->program, 0);
    type(p, "1D");
    wait_for(p, "not in use");
    type(p, "\x13");
    wait_for(p, "error: not saved: cannot write: ");
    assert_int_equal(hv_file_read(file, &after, NULL), HV_OK);
    assert_string_equal(hv_str_cstr(&before), hv_str_cstr(&after));
    assert_int_equal(files_in(folder), 1);
    assert_int_equal(litter_in(folder), 0);
    let_files_grow(p->program, RLIM_INFINITY);
    type(p, "\x13");
    wait_for(p, "saved ");
    assert_int_equal(hv_file_read(file, &saved, NULL), HV_OK);
    assert_string_not_equal(hv_str_cstr(&before), hv_str_cstr(&saved));
    assert_int_equal(litter_in(folder), 0);
    hv_str_free(&before);
    hv_str_free(&after);
    hv_str_free(&saved);
    quit(p);
}

/* Runs the program with an output that is none; it says one line and ends. */
static void refuses(struct pty *p, void (*prepare)(struct pty *p), const char *why)
{
    p->prepare = prepare;
    start(p);
    struct news n = get_news(p);
    while (drink(p, 50)) {
    }
    assert_true(WIFEXITED(n.status));
    assert_int_equal(WEXITSTATUS(n.status), 2);
    const char *text = hv_str_cstr(&p->raw);
    assert_null(strchr(text, '\033'));
    assert_non_null(strstr(text, why));
    const char *end = strchr(text, '\n');
    assert_true(end != NULL && end[1] == '\0');
    finish(p);
    p->prepare = NULL;
}

static void close_output(struct pty *p)
{
    (void)p;
    (void)close(STDOUT_FILENO);
}

static void close_input(struct pty *p)
{
    (void)p;
    (void)close(STDIN_FILENO);
}

static void full_output(struct pty *p)
{
    (void)p;
    (void)dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
}

static void broken_output(struct pty *p)
{
    int ends[2] = {-1, -1};
    (void)p;
    if (pipe(ends) == 0) {
        (void)close(ends[0]);
        (void)dup2(ends[1], STDOUT_FILENO);
    }
}

static void no_input(struct pty *p)
{
    (void)p;
    (void)dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
}

static void unknown_terminal(struct pty *p)
{
    (void)p;
    (void)setenv("TERM", "no-such-terminal", 1);
}

static void no_terminal_name(struct pty *p)
{
    (void)p;
    (void)unsetenv("TERM");
}

static void what_is_no_terminal_is_said_in_a_line(void **state)
{
    struct pty *p = *state;
    refuses(p, close_output, "standard output is not a terminal");
    refuses(p, full_output, "standard output is not a terminal");
    refuses(p, broken_output, "standard output is not a terminal");
    refuses(p, no_input, "standard input is not a terminal");
    refuses(p, close_input, "standard input is closed");
    refuses(p, unknown_terminal, "TERM=no-such-terminal is not known");
    refuses(p, no_terminal_name, "TERM is not set");
}

static void every_size_is_lived_with(void **state)
{
    static const int sizes[][2] = {{1, 1},  {2, 1},  {1, 24}, {80, 1},  {3, 10},   {10, 3},
                                   {19, 4}, {20, 5}, {39, 9}, {40, 10}, {200, 60}, {500, 200}};
    struct pty *p = *state;
    for (size_t i = 0; i < HV_COUNT(sizes); i++) {
        p->start_w = sizes[i][0];
        p->start_h = sizes[i][1];
        start(p);
        (void)drink(p, DEADLINE_MS);
        type(p, "12\t\033[B");
        quit(p);
    }
    p->start_w = 1;
    p->start_h = 1;
    start(p);
    (void)drink(p, DEADLINE_MS);
    resize(p, COLUMNS, ROWS); /* it recovers */
    type(p, "1");
    wait_for(p, "<1 Clu");
    wait_for(p, "F1 Help");
    quit(p);
    p->start_w = p->start_h = 0;
}

/* How often the program has gone to sleep so far. */
static long sleeps(const struct pty *p)
{
    char path[64];
    struct hv_str text = {0};
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)p->program);
    if (hv_file_read(path, &text, NULL) != HV_OK) {
        hv_str_free(&text);
        return -1; /* no such file here */
    }
    const char *at = strstr(hv_str_cstr(&text), "\nvoluntary_ctxt_switches:");
    long n = at != NULL ? strtol(at + strlen("\nvoluntary_ctxt_switches:"), NULL, 10) : -1;
    hv_str_free(&text);
    return n;
}

/* Nobody types and nothing runs: it never wakes up, writes nothing, and asks the terminal nothing
 * that a silent one would not answer. */
static void idle_is_idle(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "F1 Help");
    while (drink(p, 500)) {
    }
    size_t n = p->raw.n;
    long before = sleeps(p);
    assert_false(drink(p, 1500));
    assert_int_equal(sleeps(p), before);
    assert_int_equal(p->raw.n, n);
    static const char *const questions[] = {"\033[c",  "\033[0c", "\033[>c", "\033[6n",
                                            "\033[5n", "?\007",   "?\033\\"};
    for (size_t i = 0; i < HV_COUNT(questions); i++) {
        assert_null(strstr(hv_str_cstr(&p->raw), questions[i]));
    }
    quit(p);
}

/* Everything comes at once, and the end is where the last key leads. */
static void a_flood_of_keys_ends_where_it_should(void **state)
{
    struct pty *p = *state;
    char keys[3 * 1000 + 1] = "";
    for (size_t i = 0; i < 1000; i++) {
        memcpy(keys + 3 * i, i < 997 ? "\033[B" : "\033[A", 3);
    }
    start(p);
    wait_for(p, "F1 Help");
    type(p, "1");
    wait_for(p, "> a ");
    type(p, keys); /* to the last of three groups, and back to the first */
    wait_for(p, "> a ");
    type(p, keys);
    type(p, "\033[B\033[B");
    wait_for(p, "> t ");
    quit(p);
}

static void ignore_hangup(struct pty *p)
{
    (void)p;
    (void)signal(SIGHUP, SIG_IGN);
}

/* As under nohup: the terminal goes, and the program with it. */
static void a_vanished_terminal_ends_it_without_a_signal_too(void **state)
{
    struct pty *p = *state;
    p->prepare = ignore_hangup;
    start(p);
    wait_for(p, "F1 Help");
    type(p, "1D");
    wait_for(p, "not in use");
    (void)close(p->slave);
    (void)close(p->master);
    struct news n = {0, 0};
    assert_int_equal(read(p->news, &n, sizeof n), sizeof n);
    assert_true(WIFEXITED(n.status) || WIFSIGNALED(n.status));
    p->master = open("/dev/null", O_RDWR);
    p->slave = dup(p->master);
    finish(p);
    p->prepare = NULL;
    start(p);
    wait_for(p, "unsaved edits found");
    finish(p);
}

static void control_z_stops_and_nothing_is_lost(void **state)
{
    struct pty *p = *state;
    start(p);
    wait_for(p, "F1 Help");
    type(p, "1D");
    wait_for(p, "not in use");
    type(p, "\x1a");
    struct news n = get_news(p);
    assert_true(WIFSTOPPED(n.status));
    assert_restored(p);
    hv_str_clear(&p->raw);
    assert_int_equal(kill(p->program, SIGCONT), 0);
    n = get_news(p);
    assert_true(WIFCONTINUED(n.status));
    wait_for(p, "not in use");
    type(p, "u");
    wait_for(p, "undone");
    quit(p);
}

/* Waits until the recovery folder holds a file. */
static void wait_for_recovery(struct pty *p)
{
    char folder[400];
    int64_t end = now_ms() + DEADLINE_MS;
    (void)snprintf(folder, sizeof folder, "%s/state/hetviz/recovery", p->folder);
    while (access(folder, F_OK) != 0 || files_in(folder) == 0) {
        assert_true(now_ms() < end);
        (void)drink(p, 50);
    }
}

/* Whatever kills it: what was typed is offered at the next start. */
static void edits_survive_every_end(void **state)
{
    static const int all[] = {SIGTERM, SIGINT, SIGQUIT, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    struct pty *p = *state;
    for (size_t i = 0; i < HV_COUNT(all); i++) {
        start(p);
        wait_for(p, "F1 Help");
        type(p, "1D");
        wait_for(p, "not in use");
        wait_for_recovery(p);
        assert_int_equal(kill(p->program, all[i]), 0);
        struct news n = get_news(p);
        assert_true(WIFSIGNALED(n.status));
        finish(p);
        start(p);
        wait_for(p, "unsaved edits found");
        type(p, "d\r");
        wait_for(p, "discarded");
        type(p, "1");
        wait_for(p, "> a ");
        quit(p);
    }
}

/* ---- hostile names --------------------------------------------------------------------------- */

/* What a terminal would obey: a title, a bell, a move, a reset, the same with C1, and characters
 * that reorder or hide text; in JSON and in Lua. */
#define HOSTILE_JSON                                                                               \
    "\\u001b]0;OWNED\\u0007\\u001b[77;7H\\u001bc\\u009d0;OWNED\\u009c\\u202e\\u2066\\u200b\\u2028"
#define HOSTILE_LUA                                                                                \
    "\\27]0;OWNED\\7\\27[77;7H\\27c\\u{9d}0;OWNED\\u{9c}\\u{202e}\\u{2066}\\u{200b}\\u{2028}"

static void put_file(const struct pty *p, const char *name, const char *text)
{
    struct hv_str path = {0};
    hv_str_addf(&path, "%s/%s", p->folder, name);
    assert_int_equal(hv_file_write(hv_str_cstr(&path), text, strlen(text), NULL), HV_OK);
    hv_str_free(&path);
}

static void in_utf8(struct pty *p)
{
    (void)p;
    (void)setenv("LC_ALL", "C.UTF-8", 1);
}

/* Nothing of a hostile name reached the terminal as it is. */
static void assert_not_owned(const struct pty *p)
{
    static const char *const raw[] = {"\033]",        "\007",        "\033[77;7H",   "\033c",
                                      "\xc2\x9d",     "\xc2\x9c",    "\xe2\x80\xae", "\xe2\x81\xa6",
                                      "\xe2\x80\x8b", "\xe2\x80\xa8"};
    for (size_t i = 0; i < HV_COUNT(raw); i++) {
        assert_null(strstr(hv_str_cstr(&p->raw), raw[i]));
    }
}

static void hostile_names_stay_text(void **state)
{
    struct pty *p = *state;
    static char workspace[300];
    put_file(p, "workspace.json",
             "{\"format\": \"hetviz.workspace/1\", \"name\": \"w" HOSTILE_JSON "\", \"cluster\": "
             "{\"format\": \"hetviz.cluster/1\", \"name\": \"c" HOSTILE_JSON "\", \"nodes\": "
             "[{\"name\": \"n\\u001bc\\u0007\\u009d\\u202e\\u200b\", \"count\": 2, \"device\": "
             "\"A100-SXM-80GB\", \"devices\": 8}]}, \"model\": {\"format\": "
             "\"hetviz.model/1\", \"name\": \"m" HOSTILE_JSON "\", \"kind\": \"transformer\", "
             "\"layers\": 8, \"hidden\": 1024, \"heads\": 16, \"kv_heads\": 16, \"ffn\": 4096, "
             "\"ffn_kind\": \"gelu\", \"vocab\": 32000, \"max_sequence\": 2048}, \"job\": "
             "{\"format\": \"hetviz.job/1\", \"name\": \"j" HOSTILE_JSON
             "\", \"global_batch\": 64}}");
    put_file(
        p, "bad.lua",
        "local bad = \"" HOSTILE_LUA "\"\n"
        "return { api = 1, id = \"bad\", title = \"title\" .. bad, kind = \"k\" .. bad,\n"
        "summary = \"sum\" .. bad, system = \"sys\" .. bad, reference = \"ref\" .. bad,\n"
        "options = { { key = \"size\", type = \"integer\", default = 1, help = \"h\" .. bad } },\n"
        "plan = function() return nil, \"refused\" .. bad end }\n");
    (void)snprintf(workspace, sizeof workspace, "%s/workspace.json", p->folder);
    (void)setenv("HETVIZ_PLUGINS", p->folder, 1);
    p->workspace = workspace;
    p->prepare = in_utf8;
    p->start_w = 160;
    p->start_h = 48;
    start(p);
    wait_for(p, "<U+001B>]0;OWNED"); /* the name is told, as text */
    for (const char *key = "12"; *key != '\0'; key++) {
        char keys[2] = {*key, '\0'};
        type(p, keys);
        wait_for(p, "<U+001B>");
    }
    type(p, "3/bad\r");
    wait_for(p, "title<U+001B>");
    type(p, ":run bad\r");
    wait_for(p, "refused<U+001B>");
    type(p, ":run uniform\r");
    wait_for(p, "uniform-1: ");
    for (const char *key = "456781"; *key != '\0'; key++) {
        char keys[2] = {*key, '\0'};
        type(p, keys);
        (void)drink(p, 100);
    }
    wait_for(p, "<1 Cluster>");
    assert_not_owned(p);
    type(p, "Q");
    wait_for(p, "Unsaved changes");
    type(p, "y");
    (void)get_news(p);
    assert_not_owned(p);
    finish(p);
    (void)unsetenv("HETVIZ_PLUGINS");
    p->workspace = NULL;
    p->prepare = NULL;
    p->start_w = p->start_h = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_PTY(a_full_disk_costs_nothing),
        ON_PTY(what_is_no_terminal_is_said_in_a_line),
        ON_PTY(every_size_is_lived_with),
        ON_PTY(idle_is_idle),
        ON_PTY(a_flood_of_keys_ends_where_it_should),
        ON_PTY(a_vanished_terminal_ends_it_without_a_signal_too),
        ON_PTY(control_z_stops_and_nothing_is_lost),
        ON_PTY(edits_survive_every_end),
        ON_PTY(hostile_names_stay_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
