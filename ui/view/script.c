/* Scripts: feeds keys, waits for text, saves screens. */
#include "ui/view/script.h"
#include "ui/view/grid_svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "solver/base/file.h"
#include "ui/view/lines.h"

#define WAIT_MS      5000
#define WAIT_STEP_MS 20

static void draw(struct hv_script *s)
{
    if (hv_app_is_dirty(s->app))
        hv_app_draw(s->app, s->grid);
}

static enum hv_status feed_keys(struct hv_script *s, struct hv_lines *l, const char *text,
                                struct hv_err *err)
{
    struct hv_key k;
    struct hv_err why = {0};
    while (hv_keys_next(&text, &k, &why)) {
        struct hv_event ev = hv_event_key(k);
        if (!hv_app_feed(s->app, &ev))
            return HV_OK;
    }
    return why.status == HV_OK ? HV_OK : hv_lines_error(l, err, "%s", why.text);
}

static bool is_shown(struct hv_script *s, const char *text)
{
    struct hv_str dump = {0};
    draw(s);
    hv_grid_dump(s->grid, &dump);
    bool shown = strstr(hv_str_cstr(&dump), text) != NULL;
    hv_str_free(&dump);
    return shown;
}

static enum hv_status wait_for(struct hv_script *s, struct hv_lines *l, char *text,
                               struct hv_err *err)
{
    int left = WAIT_MS;
    char *blank = strrchr(text, ' ');
    if (blank && blank[1] && strspn(blank + 1, "0123456789") == strlen(blank + 1) &&
        strlen(blank + 1) < 8) {
        left = atoi(blank + 1);
        *blank = '\0';
    }
    while (!is_shown(s, text)) {
        if (!s->idle || left <= 0 || hv_app_is_done(s->app))
            return hv_err_at(err, HV_ENO, l->name, l->line, 0, "'%s' is not on screen", text);
        s->idle(s->idle_ctx, s->app, WAIT_STEP_MS);
        left -= WAIT_STEP_MS;
    }
    return HV_OK;
}

static enum hv_status save_screen(struct hv_script *s, const char *path, struct hv_err *err)
{
    hv_app_draw(s->app, s->grid);
    if (strcmp(path, "-") != 0 || !s->out)
        return hv_grid_save(s->grid, path, err);
    hv_grid_dump(s->grid, s->out);
    return HV_OK;
}

static enum hv_status resize(struct hv_script *s, struct hv_lines *l, const char *text,
                             struct hv_err *err)
{
    int w = 0, h = 0;
    char more;
    if (strlen(text) > 12 || sscanf(text, "%dx%d%c", &w, &h, &more) != 2 || w < 0 || h < 0)
        return hv_lines_error(l, err, "expected a size such as 80x24, found '%s'", text);
    struct hv_event ev = hv_event_resize(w, h);
    (void)hv_app_feed(s->app, &ev);
    return HV_OK;
}

/* A `:` command goes through the prompt, as a user would type it. */
static enum hv_status run_command(struct hv_script *s, const char *text)
{
    struct hv_event ev = hv_event_key((struct hv_key){.code = HV_KEY_CHAR, .cp = ':'});
    (void)hv_app_feed(s->app, &ev);
    size_t n = strlen(text), at = 0;
    while (at < n) {
        utf8proc_int32_t cp;
        utf8proc_ssize_t len =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(n - at), &cp);
        at += len > 0 ? (size_t)len : 1;
        if (len <= 0)
            continue;
        ev = hv_event_key((struct hv_key){.code = HV_KEY_CHAR, .cp = (uint32_t)cp});
        (void)hv_app_feed(s->app, &ev);
    }
    ev = hv_event_key((struct hv_key){.code = HV_KEY_ENTER});
    (void)hv_app_feed(s->app, &ev);
    return HV_OK;
}

static enum hv_status run_line(struct hv_script *s, struct hv_lines *l, struct hv_err *err)
{
    char word[64], rest[4096];
    if (l->text[l->at] == ':') {
        (void)hv_lines_rest(l, rest, sizeof rest);
        return strncmp(rest, ":save-screen ", 13) == 0 ? save_screen(s, rest + 13, err)
                                                       : run_command(s, rest + 1);
    }
    (void)hv_lines_word(l, word, sizeof word);
    (void)hv_lines_rest(l, rest, sizeof rest);
    if (strcmp(word, "keys") == 0)
        return feed_keys(s, l, rest, err);
    if (strcmp(word, "resize") == 0)
        return resize(s, l, rest, err);
    if (strcmp(word, "wait") == 0)
        return wait_for(s, l, rest, err);
    return hv_lines_error(l, err, "expected keys, resize, wait or a :command, found '%s'", word);
}

enum hv_status hv_script_run(struct hv_script *s, const char *text, size_t n, const char *name,
                             struct hv_err *err)
{
    struct hv_lines l = {.text = text, .n = n, .name = name};
    enum hv_status status = HV_OK;
    while (status == HV_OK && !hv_app_is_done(s->app) && hv_lines_next(&l)) {
        status = run_line(s, &l, err);
        draw(s);
    }
    return status;
}
