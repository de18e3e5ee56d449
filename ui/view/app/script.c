/* Scripts: feeds keys, waits for text, saves screens. */
#include "ui/view/app/script.h"
#include "ui/view/grid/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/file.h"
#include "ui/view/settings/lines.h"

#define WAIT_MS      5000
#define WAIT_STEP_MS 20
#define SETTLE_MS    600000

static void draw(struct hv_script *s)
{
    if (hv_app_is_dirty(s->app)) {
        hv_app_draw(s->app, s->grid);
    }
}

static enum hv_status feed_keys(struct hv_script *s, struct hv_lines *l, const char *text,
                                struct hv_err *err)
{
    struct hv_key k;
    struct hv_err why = {0};
    while (hv_keys_next(&text, &k, &why)) {
        struct hv_event ev = hv_event_key(k);
        if (!hv_app_feed(s->app, &ev)) {
            return HV_OK;
        }
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
        if (!s->idle || left <= 0 || hv_app_is_done(s->app)) {
            return hv_err_at(err, HV_ENO, l->name, l->line, 0, "'%s' is not on screen", text);
        }
        s->idle(s->idle_ctx, s->app, WAIT_STEP_MS);
        left -= WAIT_STEP_MS;
    }
    return HV_OK;
}

static enum hv_status save_screen(struct hv_script *s, const char *path, struct hv_err *err)
{
    hv_app_draw(s->app, s->grid);
    if (strcmp(path, "-") != 0 || !s->out) {
        return hv_grid_save(s->grid, NULL, path, err);
    }
    hv_grid_dump(s->grid, s->out);
    return HV_OK;
}

static enum hv_status resize(struct hv_script *s, struct hv_lines *l, const char *text,
                             struct hv_err *err)
{
    int w = 0, h = 0;
    char more;
    if (strlen(text) > 12 || sscanf(text, "%dx%d%c", &w, &h, &more) != 2 || w < 0 || h < 0) {
        return hv_lines_error(l, err, "expected a size such as 80x24, found '%s'", text);
    }
    struct hv_event ev = hv_event_resize(w, h);
    (void)hv_app_feed(s->app, &ev);
    return HV_OK;
}

/* Waits until nothing runs. */
static enum hv_status settle(struct hv_script *s, struct hv_lines *l, const char *text,
                             struct hv_err *err)
{
    long left = text[0] != '\0' ? strtol(text, NULL, 10) : SETTLE_MS;
    if (text[0] != '\0' && (strspn(text, "0123456789") != strlen(text) || strlen(text) > 8)) {
        return hv_lines_error(l, err, "expected milliseconds, found '%s'", text);
    }
    while (s->busy && s->idle && s->busy(s->idle_ctx)) {
        if (left <= 0) {
            return hv_err_at(err, HV_ENO, l->name, l->line, 0, "work is still running");
        }
        s->idle(s->idle_ctx, s->app, WAIT_STEP_MS);
        left -= WAIT_STEP_MS;
    }
    return HV_OK;
}

static enum hv_status command(struct hv_script *s, struct hv_lines *l, struct hv_err *err)
{
    struct hv_str line = {0};
    enum hv_status status = HV_OK;
    size_t at = l->at + (l->text[l->at] == ':');
    while (l->end > at && (l->text[l->end - 1] == '\r' || l->text[l->end - 1] == ' ')) {
        l->end--;
    }
    hv_str_add(&line, l->text + at, l->end - at);
    if (strncmp(hv_str_cstr(&line), "save-screen ", 12) == 0) {
        status = save_screen(s, hv_str_cstr(&line) + 12, err);
    } else {
        hv_app_command(s->app, hv_str_cstr(&line));
    }
    hv_str_free(&line);
    return status;
}

static enum hv_status run_line(struct hv_script *s, struct hv_lines *l, struct hv_err *err)
{
    char word[64], rest[4096];
    if (l->text[l->at] == ':') {
        return command(s, l, err);
    }
    (void)hv_lines_word(l, word, sizeof word);
    (void)hv_lines_rest(l, rest, sizeof rest);
    if (strcmp(word, "keys") == 0) {
        return feed_keys(s, l, rest, err);
    }
    if (strcmp(word, "resize") == 0) {
        return resize(s, l, rest, err);
    }
    if (strcmp(word, "wait") == 0) {
        return wait_for(s, l, rest, err);
    }
    if (strcmp(word, "settle") == 0) {
        return settle(s, l, rest, err);
    }
    return hv_lines_error(l, err, "expected keys, resize, wait, settle or a :command, found '%s'",
                          word);
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
