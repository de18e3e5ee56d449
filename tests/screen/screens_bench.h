/**
 * An application over a small workspace with three plans, in a temporary folder, without workers:
 * what the tests of the screens share. Run from the root of the sources.
 */
#ifndef HV_TESTS_SCREEN_SCREENS_BENCH_H
#define HV_TESTS_SCREEN_SCREENS_BENCH_H

#include "solver/base/file.h"
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "ui/screens/screens.h"
#include "ui/view/app/script.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Two options and a strategy that is broken; nothing is run but /bin/false. */
static const char *bench_choices[] = {"time", "cost"};
static struct hv_option_row bench_options[] = {
    {"max_pp", "most pipeline stages", HV_OPTION_INTEGER, NULL, 1, 64, NULL, 0},
    {"objective", "what is made small", HV_OPTION_CHOICE, NULL, HV_UNKNOWN, HV_UNKNOWN,
     bench_choices, 2},
    {"hint", "a word for the log", HV_OPTION_STRING, NULL, HV_UNKNOWN, HV_UNKNOWN, NULL, 0},
};
static const struct hv_plugin bench_plugins[] = {
    {.path = "plugins/a/broken.lua",
     .name = "plugins/a/broken.lua",
     .error = "plugins/a/broken.lua:7: attempt to index a nil value (field 'nodes')",
     .id = "broken"},
    {.path = "plugins/a/search.lua",
     .name = "plugins/a/search.lua",
     .id = "search",
     .title = "Search of everything",
     .kind = "planner",
     .kinds = {HV_KIND_PLANNER},
     .n_kinds = 1,
     .shipped = true,
     .system = "Searcher",
     .reference = "Proceedings of the tests",
     .summary = "Tries all plans and keeps the best one.",
     .needs_model = "layers",
     .options = bench_options,
     .n_options = 3,
     .has = {[HV_PLUGIN_PLAN] = true}},
    {.path = "plugins/a/simple.lua",
     .name = "plugins/a/simple.lua",
     .id = "simple",
     .title = "One plan",
     .kind = "baseline",
     .kinds = {HV_KIND_BASELINE},
     .n_kinds = 1,
     .shipped = true,
     .system = "Simple",
     .reference = "Proceedings of the tests",
     .summary = "Makes one plan.",
     .has = {[HV_PLUGIN_PLAN] = true}},
};

/** Everything a test needs. */
struct bench {
    struct hv_session *session;
    struct hv_ui ui;
    struct hv_keymap keys;
    struct hv_app *app;
    struct hv_grid grid;
    struct hv_str out;
    char root[1024], folder[64];
};

/** Appends a plan of the strategy `search` with one replica and 1F1B. */
static inline void bench_plan(struct hv_str *out, const char *name, const char *stages)
{
    hv_str_addf(out,
                "{\"format\": \"hetviz.plan/1\", \"name\": \"%s\", \"strategy\": {\"name\": "
                "\"search\"}, \"micro_batch\": 4, \"replicas\": [{\"micro_batches\": 32, "
                "\"stages\": [%s]}], \"schedule\": {\"name\": \"1f1b\"}}",
                name, stages);
}

/** Three plans: on two generations, on one, and on devices with too little memory. */
static inline void bench_write_workspace(const char *path)
{
    struct hv_str s = {0};
    hv_str_adds(&s, "{\"format\": \"hetviz.workspace/1\", \"name\": \"lab\", \"cluster\": "
                    "\"a100-v100-t4\", \"model\": \"gpt3-6.7b\", \"job\": \"small\", \"plans\": [");
    bench_plan(&s, "two-stages",
               "{\"devices\": \"a[0].*\", \"layers\": [0, 18], \"tp\": 4, \"dp\": 2, \"zero\": 1}, "
               "{\"devices\": \"v[0-1].*\", \"layers\": [18, 32], \"tp\": 4, \"dp\": 4, "
               "\"zero\": 1}");
    hv_str_adds(&s, ", ");
    bench_plan(&s, "few-devices", "{\"devices\": \"a[0].*\", \"layers\": [0, 32], \"tp\": 8}");
    hv_str_adds(&s, ", ");
    bench_plan(&s, "too-big", "{\"devices\": \"t[0].*\", \"layers\": [0, 32], \"tp\": 4}");
    hv_str_adds(&s, "]}");
    assert_int_equal(hv_file_write(path, hv_str_cstr(&s), s.n, NULL), HV_OK);
    hv_str_free(&s);
}

/** Opens the workspace in a new folder, which becomes the working folder, over n plugins; with
 * timelines of at least `apart_from` operations made by a thread, 0 = none. */
static inline int bench_open_with(void **state, size_t apart_from, const struct hv_plugin *plugins,
                                  size_t n)
{
    static const char *const nothing[] = {"/bin/false", NULL};
    struct bench *b = hv_xcalloc(1, sizeof *b);
    struct hv_err err = {0};
    assert_non_null(getcwd(b->root, sizeof b->root));
    (void)snprintf(b->folder, sizeof b->folder, "/tmp/hv-screens-XXXXXX");
    assert_non_null(mkdtemp(b->folder));
    assert_int_equal(setenv("HETVIZ_ROOT", b->root, 0), 0);
    assert_int_equal(chdir(b->folder), 0);
    bench_write_workspace("lab.json");
    struct hv_session_env env = {.state_dir = "state",
                                 .apart_from = apart_from,
                                 .worker_argv = nothing,
                                 .n_workers = 1,
                                 .plugins = plugins,
                                 .n_plugins = n};
    if (hv_session_open(&b->session, "lab.json", &env, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    b->ui.session = b->session;
    hv_keymap_default(&b->keys);
    b->app = hv_ui_app(&b->ui, &b->keys, true);
    *state = b;
    return 0;
}

static inline int bench_open_apart(void **state, size_t apart_from)
{
    return bench_open_with(state, apart_from, bench_plugins, HV_COUNT(bench_plugins));
}

static inline int bench_open(void **state)
{
    return bench_open_apart(state, 0);
}

/** Removes the folder with what the tests put into it. */
static inline void bench_remove_folder(const char *folder)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static inline int bench_close(void **state)
{
    struct bench *b = *state;
    hv_app_free(b->app);
    hv_session_close(b->session);
    hv_keymap_free(&b->keys);
    hv_grid_free(&b->grid);
    hv_str_free(&b->out);
    assert_int_equal(chdir(b->root), 0);
    bench_remove_folder(b->folder);
    free(b);
    return 0;
}

/** Runs a script and fails with its own words. */
static inline void bench_script(struct bench *b, const char *text)
{
    struct hv_err err = {0};
    struct hv_script s = {.app = b->app, .grid = &b->grid, .out = &b->out};
    hv_str_clear(&b->out);
    if (hv_script_run(&s, text, strlen(text), "script", &err) != HV_OK) {
        struct hv_str dump = {0};
        hv_app_draw(b->app, &b->grid);
        hv_grid_dump(&b->grid, &dump);
        (void)fputs(hv_str_cstr(&dump), stderr);
        fail_msg("line %u: %s", err.line, err.text);
    }
}

/** True when a text is on the screen as it is now. */
static inline bool bench_sees(struct bench *b, const char *text)
{
    struct hv_str dump = {0};
    hv_app_draw(b->app, &b->grid);
    hv_grid_dump(&b->grid, &dump);
    bool seen = strstr(hv_str_cstr(&dump), text) != NULL;
    hv_str_free(&dump);
    return seen;
}

/** Words of three letters and more and the frames: what stays when figures change. */
static inline void bench_skeleton(const char *text, struct hv_str *out)
{
    for (size_t i = 0; text[i] != '\0';) {
        size_t n = 0;
        while (isalpha((unsigned char)text[i + n])) {
            n++;
        }
        size_t same = 0; /* dots of a chart: "ooo" */
        while (same < n && text[i + same] == text[i]) {
            same++;
        }
        if (n >= 3 && same < n && strncmp(text + i, "GiB", 3) != 0 &&
            strncmp(text + i, "MiB", 3) != 0) {
            hv_str_add(out, text + i, n);
            hv_str_addc(out, ' ');
        } else if (n == 0 && strchr("+<>[]\n", text[i]) != NULL) {
            hv_str_addc(out, text[i]);
        }
        i += n > 0 ? n : 1;
    }
}

/** Compares the screen with tests/golden/screens/NAME.txt, figures apart; GENERATE=1 writes it. */
static inline void bench_golden(struct bench *b, const char *name)
{
    char path[1200];
    struct hv_str now = {0}, then = {0}, a = {0}, c = {0};
    (void)snprintf(path, sizeof path, "%s/tests/golden/screens/%s.txt", b->root, name);
    hv_app_draw(b->app, &b->grid);
    hv_grid_dump(&b->grid, &now);
    if (getenv("GENERATE") != NULL) {
        assert_int_equal(hv_file_write(path, hv_str_cstr(&now), now.n, NULL), HV_OK);
    }
    assert_int_equal(hv_file_read(path, &then, NULL), HV_OK);
    bench_skeleton(hv_str_cstr(&now), &a);
    bench_skeleton(hv_str_cstr(&then), &c);
    if (strcmp(hv_str_cstr(&a), hv_str_cstr(&c)) != 0) {
        fail_msg("%s is not what is shown:\n%s", path, hv_str_cstr(&now));
    }
    hv_str_free(&now);
    hv_str_free(&then);
    hv_str_free(&a);
    hv_str_free(&c);
}

/** What is drawn over the frame before is what is drawn on an empty grid. */
static inline void bench_drawn_whole(struct bench *b)
{
    struct hv_grid fresh = {0};
    hv_app_draw(b->app, &b->grid);
    hv_app_draw(b->app, &fresh);
    assert_int_equal(b->grid.cursor_x, fresh.cursor_x);
    assert_int_equal(b->grid.cursor_y, fresh.cursor_y);
    for (int i = 0; i < fresh.w * fresh.h; i++) {
        const struct hv_cell *a = &b->grid.cells[i], *c = &fresh.cells[i];
        if (strcmp(a->utf8, c->utf8) != 0 || a->style != c->style || a->width != c->width) {
            struct hv_str dump = {0};
            hv_grid_dump(&fresh, &dump);
            fail_msg("'%s' (%d) at %d,%d of %s instead of '%s' (%d):\n%s", a->utf8, a->style,
                     i % fresh.w, i / fresh.w, hv_app_view(b->app), c->utf8, c->style,
                     hv_str_cstr(&dump));
        }
    }
    hv_grid_free(&fresh);
}

/** Feeds n random keys, clicks and sizes; the keys that leave the program are left out. */
static inline void bench_fuzz(struct bench *b, uint64_t seed, int n)
{
    static const char keys[] = "hjklgG12345[]{}+-_=zCmcsSfPXYRdEuxAp<>/nNaevbBVK|\\;0 \t?yi.%HL";
    static const enum hv_key_code codes[] = {
        HV_KEY_ENTER, HV_KEY_ESC,  HV_KEY_TAB, HV_KEY_UP,   HV_KEY_DOWN, HV_KEY_LEFT,
        HV_KEY_RIGHT, HV_KEY_HOME, HV_KEY_END, HV_KEY_PGUP, HV_KEY_PGDN, HV_KEY_BACKSPACE};
    struct hv_rng rng;
    hv_rng_seed(&rng, seed);
    for (int i = 0; i < n; i++) {
        uint64_t what = hv_rng_below(&rng, 100);
        struct hv_event ev = {.type = HV_EV_KEY};
        if (what < 60) {
            ev.key = (struct hv_key){.code = HV_KEY_CHAR,
                                     .cp = (uint32_t)keys[hv_rng_below(&rng, sizeof keys - 1)]};
        } else if (what < 85) {
            ev.key.code = codes[hv_rng_below(&rng, HV_COUNT(codes))];
        } else if (what < 95) {
            ev.type = HV_EV_MOUSE;
            ev.mouse = (enum hv_mouse_kind)hv_rng_below(&rng, 5);
            ev.x = (int)hv_rng_below(&rng, 170);
            ev.y = (int)hv_rng_below(&rng, 50);
        } else {
            ev = hv_event_resize((int)hv_rng_below(&rng, 180), (int)hv_rng_below(&rng, 60));
        }
        (void)hv_app_feed(b->app, &ev);
        hv_app_tick(b->app, i);
        bench_drawn_whole(b);
    }
}

#endif
