/** `:` lines about screens: actions by their names, drawing in ASCII, the mouse, and the completion
 * of all. Commands that change the workspace are in ui/session/prompt/prompt.c. */
#include <stdio.h>
#include <string.h>

#include "ui/command/command.h"
#include "ui/screens/screens.h"
#include "ui/session/prompt/prompt.h"

static void set_ascii(struct hv_app *app, bool on)
{
    hv_app_set_ascii(app, on);
}

static void set_mouse(struct hv_app *app, bool on)
{
    hv_app_message(
        app, HV_MSG_INFO, "%s",
        !hv_app_set_mouse(app, on) ? "this terminal has no mouse"
        : on ? "hetviz uses the mouse: click, drag, wheel; :set nomouse releases it"
             : "the terminal uses the mouse and can select text; :set mouse reverts this");
}

static void set_theme(struct hv_app *app, const char *name)
{
    struct hv_err err = {0};
    if (hv_app_set_theme(app, name, &err) != HV_OK) {
        hv_ui_error(app, &err);
        return;
    }
    hv_app_message(app, HV_MSG_INFO, "theme %s; set --theme or HETVIZ_THEME to keep it", name);
}

/** Settings of `set WORD`. */
static const struct setting {
    const char *word;
    void (*set)(struct hv_app *app, bool on);
    bool on;
} settings[] = {
    {"ascii", set_ascii, true},
    {"noascii", set_ascii, false},
    {"mouse", set_mouse, true},
    {"nomouse", set_mouse, false},
};

static bool is_session_command(const char *name)
{
    size_t n = 0;
    const struct hv_command *rows = hv_prompt_commands(&n);
    return hv_command_find(rows, n, name) != NULL;
}

/** The action of that name; on its own screen what stands before the first dash may be left out. */
static enum hv_action find_action(const char *view, const char *name)
{
    enum hv_action a = hv_action_find(name);
    if (a != HV_ACT_N && hv_action_in_view(a, view)) {
        return a;
    }
    for (size_t i = 1; i < HV_ACT_N; i++) {
        const struct hv_action_row *row = hv_action_row((enum hv_action)i);
        const char *dash = strchr(row->name, '-');
        bool own = strcmp(row->views, "*") != 0 && hv_action_in_view((enum hv_action)i, view);
        if (own && dash != NULL && strcmp(dash + 1, name) == 0) {
            return (enum hv_action)i;
        }
    }
    return HV_ACT_NONE;
}

/** `bind VIEW KEY ACTION`, as a line of the keys file; for this session. */
static const char bind_usage[] = "VIEW KEY ACTION  bind a key to an action until the program ends";

static void bind_key(struct hv_app *app, const char *line)
{
    struct hv_ui *ui = hv_app_model(app);
    struct hv_err err = {0};
    if (hv_keymap_parse(ui->keys, line, strlen(line), "bind", &err) != HV_OK) {
        hv_ui_error(app, &err);
        return;
    }
    hv_app_keys_changed(app);
    hv_app_message(app, HV_MSG_INFO,
                   "key bound; add the line to the file `keys` of the configuration to keep it");
}

bool hv_ui_command(struct hv_app *app, const char *line)
{
    char name[64];
    size_t n = strcspn(line, " ");
    if (n == 4 && strncmp(line, "bind", 4) == 0) {
        bind_key(app, line);
        return true;
    }
    const char *rest = line + n + strspn(line + n, " ");
    if (n == 3 && strncmp(line, "set theme ", 10) == 0) {
        set_theme(app, line + 10 + strspn(line + 10, " "));
        return true;
    }
    for (size_t i = 0; i < HV_COUNT(settings); i++) {
        if (n == 3 && strncmp(line, "set", 3) == 0 && strcmp(rest, settings[i].word) == 0) {
            settings[i].set(app, settings[i].on);
            return true;
        }
    }
    if (n >= sizeof name) {
        return false;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)n, line);
    enum hv_action a = is_session_command(name) ? HV_ACT_NONE : find_action(hv_app_view(app), name);
    if (a == HV_ACT_NONE) {
        return false;
    }
    if (!hv_app_do(app, a)) {
        hv_app_message(app, HV_MSG_INFO, "%s has no effect on this screen", name);
    } else if (rest[0] != '\0' && hv_app_question(app, NULL) != NULL) {
        hv_app_reply(app, rest);
    }
    return true;
}

/** One more candidate behind the word at the end of a line. */
struct more {
    const char *line, *word;
    size_t want;
    struct hv_str *out;
};

static bool offer(struct more *m, const char *candidate)
{
    size_t n = strlen(m->word);
    if (strncmp(candidate, m->word, n) != 0 || candidate[n] == '\0' || m->want-- > 0) {
        return false;
    }
    hv_str_add(m->out, m->line, (size_t)(m->word - m->line));
    hv_str_adds(m->out, candidate);
    return true;
}

static bool offer_screens(struct more *m)
{
    size_t n = 0;
    const struct hv_view_ops *const *screens = hv_ui_screens(&n);
    bool found = false;
    for (size_t i = 0; !found && i < n; i++) {
        found = offer(m, screens[i]->name);
    }
    return found;
}

static bool offer_settings(struct more *m)
{
    bool found = false;
    for (size_t i = 0; !found && i < HV_COUNT(settings); i++) {
        found = offer(m, settings[i].word);
    }
    return found || offer(m, "theme");
}

static bool offer_themes(struct more *m)
{
    bool found = false;
    for (const char *const *t = hv_theme_names; !found && *t != NULL; t++) {
        found = offer(m, *t);
    }
    return found;
}

static bool offer_actions(struct more *m)
{
    bool found = false;
    for (size_t i = 1; !found && i < HV_ACT_N; i++) {
        const char *name = hv_action_row((enum hv_action)i)->name;
        found = !is_session_command(name) && offer(m, name);
    }
    return found;
}

bool hv_ui_complete(const void *model, const char *text, size_t n, struct hv_str *out)
{
    const struct hv_session *s = hv_ui_session(model);
    struct hv_str unused = {0};
    size_t of_session = 0;
    if (hv_session_complete(s, text, n, out)) {
        return true;
    }
    while (of_session < n && hv_session_complete(s, text, of_session, &unused)) {
        of_session++;
    }
    hv_str_free(&unused);
    const char *blank = strrchr(text, ' ');
    struct more m = {text, blank != NULL ? blank + 1 : text, n - of_session, out};
    if (blank == NULL) {
        return offer(&m, "bind") || offer_actions(&m);
    }
    bool first = strchr(text, ' ') == blank;
    if (strncmp(text, "bind ", 5) == 0) {
        return !first && strchr(strchr(text, ' ') + 1, ' ') != blank ? offer_actions(&m)
               : first                                               ? offer_screens(&m)
                                                                     : false;
    }
    if (strncmp(text, "set theme ", 10) == 0) {
        return offer_themes(&m);
    }
    return first && ((strncmp(text, "screen ", 7) == 0 && offer_screens(&m)) ||
                     (strncmp(text, "set ", 4) == 0 && offer_settings(&m)));
}

void hv_ui_describe(const void *model, const char *line, struct hv_str *out)
{
    size_t n = 0, n_name = strcspn(line, " ");
    const struct hv_command *rows = hv_prompt_commands(&n);
    struct hv_str name = {0};
    (void)model;
    hv_str_add(&name, line, n_name);
    const struct hv_command *row = hv_command_find(rows, n, hv_str_cstr(&name));
    enum hv_action a = hv_action_find(hv_str_cstr(&name));
    bool bare = line[n_name + (line[n_name] == ' ')] == '\0'; /* arguments have no description */
    if (bare && strcmp(hv_str_cstr(&name), "bind") == 0) {
        hv_str_adds(out, bind_usage);
    } else if (bare && row != NULL) {
        hv_str_addf(out, "%s%s%s", row->args, row->args[0] != '\0' ? "  " : "", row->summary);
    } else if (bare && a != HV_ACT_N) {
        hv_str_adds(out, hv_action_row(a)->help);
    }
    hv_str_free(&name);
}
