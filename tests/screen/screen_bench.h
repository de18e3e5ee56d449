/** What tests of the real screens share: an application in memory over the session's test
 * workspace, scripts, and golden screens (GENERATE=1 writes them anew). */
#ifndef HV_TESTS_SCREEN_SCREEN_BENCH_H
#define HV_TESTS_SCREEN_SCREEN_BENCH_H

#include "tests/unit/session_bench.h"
#include "ui/screens/screens.h"
#include "ui/view/app/script.h"

/** An application over `ws` of the bench. */
struct screen {
    struct hv_session *session;
    struct hv_ui ui;
    struct hv_keymap keys;
    struct hv_app *app;
    struct hv_grid grid;
};

static inline void screen_open(struct screen *s, struct bench *b)
{
    struct hv_err err = {0};
    *s = (struct screen){0};
    if (hv_session_open(&s->session, "ws", &b->env, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    s->ui.session = s->session;
    hv_keymap_default(&s->keys);
    s->app = hv_ui_app(&s->ui, &s->keys, true);
}

/** As screen_open over a workspace made of names of samples and catalogue. */
static inline void screen_open_new(struct screen *s, struct bench *b, const char *cluster,
                                   const char *model)
{
    struct hv_err err = {0};
    *s = (struct screen){0};
    if (hv_session_new(&s->session, cluster, model, NULL, &b->env, &err) != HV_OK) {
        fail_msg("%s with %s: %s", cluster, model, err.text);
    }
    s->ui.session = s->session;
    hv_keymap_default(&s->keys);
    s->app = hv_ui_app(&s->ui, &s->keys, true);
}

static inline void screen_close(struct screen *s)
{
    hv_app_free(s->app);
    hv_keymap_free(&s->keys);
    hv_grid_free(&s->grid);
    hv_session_close(s->session);
}

/** Runs script lines; what is on screen is told when a `wait` was in vain. */
static inline void screen_run(struct screen *s, const char *text)
{
    struct hv_err err = {0};
    struct hv_script script = {.app = s->app, .grid = &s->grid};
    if (hv_script_run(&script, text, strlen(text), "script", &err) != HV_OK) {
        struct hv_str dump = {0};
        hv_app_draw(s->app, &s->grid);
        hv_grid_dump(&s->grid, &dump);
        fail_msg("line %u: %s\n%s", err.line, err.text, hv_str_cstr(&dump));
    }
}

/** Folder of the source, before the bench goes into its own. */
static inline const char *screen_root(void)
{
    static char root[4096];
    if (root[0] == '\0' && getcwd(root, sizeof root) == NULL) {
        root[0] = '.';
    }
    const char *given = getenv("HETVIZ_ROOT");
    return given != NULL ? given : root;
}

/** Compares the screen at a size with tests/golden/screens/NAME_WxH.txt. */
static inline void screen_golden(struct screen *s, const char *name, int w, int h)
{
    struct hv_event size = hv_event_resize(w, h);
    struct hv_str path = {0}, now = {0}, kept = {0};
    struct hv_err err = {0};
    (void)hv_app_feed(s->app, &size);
    hv_app_draw(s->app, &s->grid);
    hv_grid_dump(&s->grid, &now);
    hv_str_addf(&path, "%s/tests/golden/screens/%s_%dx%d.txt", screen_root(), name, w, h);
    if (getenv("GENERATE") != NULL) {
        assert_int_equal(hv_file_write(hv_str_cstr(&path), hv_str_cstr(&now), now.n, &err), HV_OK);
    } else {
        assert_int_equal(hv_file_read(hv_str_cstr(&path), &kept, &err), HV_OK);
        if (strcmp(hv_str_cstr(&kept), hv_str_cstr(&now)) != 0) {
            print_message("%s", hv_str_cstr(&now));
        }
        assert_string_equal(hv_str_cstr(&now), hv_str_cstr(&kept));
    }
    hv_str_free(&path);
    hv_str_free(&now);
    hv_str_free(&kept);
}

/** The three sizes that are promised. */
static inline void screen_goldens(struct screen *s, const char *name)
{
    screen_golden(s, name, 40, 10);
    screen_golden(s, name, 80, 24);
    screen_golden(s, name, 160, 48);
}

/** Feeds n random keys, clicks and resizes; draws after each. Keys that leave or write are left
 * out. */
static inline void screen_random(struct screen *s, uint64_t seed, size_t n)
{
    static const char keys[] =
        "jkhlgGnNesSfauudPytL$Dcvx=+-[]0123 abz./\\\"{}:<>!@#%^&*()_;',|`~HMRTXYZ";
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned r = (unsigned)(seed >> 33);
        struct hv_event ev = {.type = HV_EV_KEY};
        if (r % 40 == 0) {
            ev = hv_event_resize((int)(r / 40 % 170), (int)(r / 6800 % 60));
        } else if (r % 11 == 0) {
            ev.type = HV_EV_MOUSE;
            ev.mouse = (enum hv_mouse_kind)(r / 11 % (HV_MOUSE_WHEEL_DOWN + 1));
            ev.x = (int)(r / 64 % 160);
            ev.y = (int)(r / 16384 % 48);
        } else if (r % 3 == 0) {
            static const enum hv_key_code named[] = {HV_KEY_ENTER, HV_KEY_ESC,      HV_KEY_TAB,
                                                     HV_KEY_UP,    HV_KEY_DOWN,     HV_KEY_LEFT,
                                                     HV_KEY_RIGHT, HV_KEY_BACKSPACE};
            ev.key.code = named[r / 3 % HV_COUNT(named)];
        } else {
            ev.key.code = HV_KEY_CHAR;
            ev.key.cp = (uint32_t)keys[r / 3 % (sizeof keys - 1)];
            ev.key.mods = r % 29 == 0 ? HV_MOD_CTRL : 0;
        }
        (void)hv_app_feed(s->app, &ev);
        hv_app_draw(s->app, &s->grid);
    }
}

#endif
