/*
 * What a key costs the program itself, without the terminal and the kernel: `bench_screens KEYS
 * WORKSPACE…` opens each workspace, goes to every screen that has a list or lines, moves down KEYS
 * rows and up again, and turns every frame into the bytes that a terminal gets. CPU time of this
 * thread. The state folder is that of $XDG_STATE_HOME. Besides: all of a frame drawn anew, a frame
 * in which nothing changed, and pages, at 200×60. `bench_screens SCREEN KEYS WORKSPACE…` presses
 * keys on that screen alone: under `valgrind
 * --tool=callgrind --collect-atstart=no --toggle-collect=measure_keys` it counts instructions.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ui/screens/screens.h"
#include "ui/term/term_out.h"

#include <curses.h>
/* last: it defines short words as macros */
#include <term.h>

enum { WIDTH = 120, HEIGHT = 40, LARGE_WIDTH = 200, LARGE_HEIGHT = 60, ROUNDS = 20 };

/* One workspace on a screen of its own. */
struct bench {
    struct hv_session *session;
    struct hv_ui ui;
    struct hv_keymap keys;
    struct hv_app *app;
    struct hv_grid grid;
    struct hv_out out;
    size_t n_bytes;
    int64_t now_ms;
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void show(struct bench *b)
{
    hv_app_tick(b->app, ++b->now_ms);
    if (hv_app_is_dirty(b->app)) {
        hv_app_draw(b->app, &b->grid);
        hv__out_draw(&b->out, &b->grid);
    }
    b->n_bytes += b->out.bytes.n;
    hv_str_clear(&b->out.bytes);
}

static void press(struct bench *b, enum hv_key_code code, uint32_t cp)
{
    struct hv_event ev = {.type = HV_EV_KEY, .key = {.code = code, .cp = cp}};
    (void)hv_app_feed(b->app, &ev);
    show(b);
}

static void resize(struct bench *b, int w, int h)
{
    struct hv_event ev = hv_event_resize(w, h);
    (void)hv_app_feed(b->app, &ev);
    hv__out_forget(&b->out, w, h);
    show(b);
}

/* A screen, and the keys that go to its list. */
static const struct place {
    const char *name, *keys;
} places[] = {{"cluster", "1"},    {"links", "1\t"}, {"model", "2"}, {"layers", "2\t"},
              {"strategies", "3"}, {"plans", "4"},   {"gantt", "5"}, {"explain", "6"},
              {"what-if", "7"},    {"console", "8"}};

static void go(struct bench *b, const struct place *p)
{
    for (const char *c = p->keys; *c; c++) {
        press(b, *c == '\t' ? HV_KEY_TAB : HV_KEY_CHAR, (uint32_t)(unsigned char)*c);
    }
}

static void leave(struct bench *b, const struct place *p)
{
    for (const char *c = p->keys + 1; *c; c++) {
        press(b, HV_KEY_ESC, 0);
    }
}

/* Time and bytes of a key that goes so many times down, and as often up. */
__attribute__((noinline)) static void measure_keys(struct bench *b, int n, enum hv_key_code down,
                                                   enum hv_key_code up)
{
    b->n_bytes = 0;
    double at = now_us();
    for (int i = 0; i < 2 * n; i++) {
        press(b, i < n ? down : up, 0);
    }
    printf(" %8.1f %7.0f", (now_us() - at) / (2 * n), (double)b->n_bytes / (2 * n));
}

/* A window that is dragged: sizes from 20×5 to 300×100. */
__attribute__((noinline)) static void measure_sizes(struct bench *b, int n)
{
    double at = now_us();
    for (int i = 0; i < n; i++) {
        resize(b, 20 + 280 * (i * 37 % n) / n, 5 + 95 * (i * 53 % n) / n);
    }
    printf(" %8.1f", (now_us() - at) / n);
}

/* A frame of which the terminal shows nothing yet; one that it shows already. */
static void measure_frames(struct bench *b)
{
    double all = 0, same = 0;
    for (int i = 0; i < ROUNDS; i++) {
        hv__out_forget(&b->out, LARGE_WIDTH, LARGE_HEIGHT);
        hv_grid_free(&b->grid);
        hv_app_touch(b->app);
        double at = now_us();
        show(b);
        double mid = now_us();
        hv_app_touch(b->app);
        show(b);
        all += mid - at;
        same += now_us() - mid;
    }
    printf(" %8.1f %8.1f", all / ROUNDS, same / ROUNDS);
}

static void measure_one(struct bench *b, const struct place *p, int keys)
{
    resize(b, WIDTH, HEIGHT);
    go(b, p);
    press(b, HV_KEY_DOWN, 0); /* what is drawn once for a screen is there then */
    press(b, HV_KEY_UP, 0);
    printf("  %-12s", p->name);
    measure_keys(b, keys, HV_KEY_DOWN, HV_KEY_UP);
}

static void measure(struct bench *b, int keys, const char *workspace)
{
    const char *slash = strrchr(workspace, '/');
    printf("  %s: us and bytes per key | at %dx%d: per page, us of a frame drawn anew, of one that "
           "did not change, of another size\n",
           slash ? slash + 1 : workspace, LARGE_WIDTH, LARGE_HEIGHT);
    for (size_t i = 0; i < HV_COUNT(places); i++) {
        measure_one(b, &places[i], keys);
        printf(" |");
        resize(b, LARGE_WIDTH, LARGE_HEIGHT);
        measure_keys(b, keys / 6 + 1, HV_KEY_PGDN, HV_KEY_PGUP);
        measure_frames(b);
        measure_sizes(b, 100);
        printf("\n");
        leave(b, &places[i]);
    }
}

static int bench(const char *workspace, const struct place *only, int keys)
{
    static const char *const nobody[] = {"/bin/false", NULL};
    struct bench b = {0};
    struct hv_session_env env = {.worker_argv = nobody, .n_workers = 1, .plugins_later = true};
    struct hv_err err = {0};
    struct hv_theme theme;
    if (hv_session_open(&b.session, workspace, &env, &err) != HV_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    hv_theme_default(&theme);
    hv_keymap_default(&b.keys);
    hv__out_open(&b.out, &theme, true);
    b.ui.session = b.session;
    b.app = hv_ui_app(&b.ui, &b.keys, false);
    if (only) {
        measure_one(&b, only, keys);
    } else {
        measure(&b, keys, workspace);
    }
    hv_app_free(b.app);
    hv_keymap_free(&b.keys);
    hv_grid_free(&b.grid);
    hv__out_close(&b.out);
    hv_session_close(b.session);
    return 0;
}

int main(int argc, char **argv)
{
    const struct place *only = NULL;
    for (size_t i = 0; argc > 3 && i < HV_COUNT(places); i++) {
        only = strcmp(argv[1], places[i].name) == 0 ? &places[i] : only;
    }
    argc -= only != NULL;
    argv += only != NULL;
    int keys = argc > 2 ? atoi(argv[1]) : 0, rc = 0;
    if (keys < 1) {
        fprintf(stderr, "usage: bench_screens [SCREEN] KEYS WORKSPACE...\n");
        return 2;
    }
    setlocale(LC_CTYPE, "C.UTF-8");
    if (setupterm("xterm-256color", STDOUT_FILENO, &rc) != OK) {
        return 1;
    }
    rc = 0;
    for (int i = 2; i < argc && rc == 0; i++) {
        rc = bench(argv[i], only, keys);
    }
    (void)del_curterm(cur_term);
    return rc;
}
