/** The first screen of the first start: what is open, and three keys to a first Gantt. Shown on top
 * of the other screens; the number key of any screen closes it. */
#include <string.h>

#include "ui/screens/screens.h"

/** The planner of the first run, which needs no options. */
static const char first_strategy[] = "auto";

/** One line: a key and what it does; no key: words alone. */
struct line {
    const char *key, *text;
};
static const struct line lines[] = {
    {"Enter", "let hetviz plan the sample; the best plan so far shows at once"},
    {"Enter", "then draws the Gantt chart of the plan it found"},
    {"6", "explains why the plan takes that long, and what to change"},
    {"T", "a tour of the screens in twelve steps"},
    {"", ""},
    {"i", "your cluster: what nvidia-smi, sinfo, kubectl wrote; local"},
    {"1 e", "change the cluster: how many nodes, which devices, prices"},
    {"2 i", "take your model: a Hugging Face config.json, or a name"},
    {"3 A", "run all strategies side by side; 4 compares their plans"},
    {"7", "what if: change a number, see the iteration time at once"},
    {"", ""},
    {"?", "keys of each screen;  : commands;  u undoes;  ^S saves;  q quits"},
};

static void welcome_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct hv_session *s = hv_ui_session(model);
    const struct hv_cluster *c = hv_session_cluster(s)->cluster;
    struct hv_grid *g = ctx->grid;
    struct hv_rect in = hv_rect_inner(ctx->body);
    int y = in.y, wide = in.w >= 60 ? 8 : 6;
    (void)state;
    hv_grid_box(g, ctx->body, "Welcome to hetviz", true, HV_STYLE_FRAME_FOCUS);
    struct hv_rect old = hv_grid_clip(g, in);
    struct hv_str text = {0};
    hv_str_addf(&text, "Which plan should %s run on these %u GPUs of %zu kinds?",
                hv_session_model(s)->model->name, (unsigned)c->n_devices, c->n_groups);
    bool airy = in.h >= (int)HV_COUNT(lines) + 4;
    y += airy;
    (void)hv_grid_put_user(g, in.x + 1, y, in.w - 1, hv_str_cstr(&text), HV_STYLE_TITLE);
    y += 1 + airy;
    for (size_t i = 0; i < HV_COUNT(lines); i++) {
        if (lines[i].key[0] == '\0' && !airy) {
            continue;
        }
        (void)hv_grid_put(g, in.x + 1, y, wide, lines[i].key, HV_STYLE_HELP_KEY);
        hv_grid_put_field(g, (struct hv_rect){in.x + 1 + wide, y, in.w - wide - 1, 1}, HV_LEFT,
                          lines[i].text, HV_STYLE_TEXT);
        y++;
    }
    hv_grid_unclip(g, old);
    hv_str_free(&text);
}

/** Runs the planner and opens the screen of its plan. */
static unsigned first_run(struct hv_app *app)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_err err = {0};
    uint32_t id = 0;
    if (hv_session_run(s, first_strategy, NULL, &id, &err) != HV_OK) {
        hv_ui_error(app, &err);
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    hv_session_select(s, id);
    if (hv_app_open(app, "plans", &err) != HV_OK) {
        hv_ui_error(app, &err);
    }
    hv_app_message(app, HV_MSG_INFO, "%s runs; Enter draws its plan as soon as there is one",
                   first_strategy);
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static unsigned welcome_action(void *state, struct hv_app *app, enum hv_action a)
{
    (void)state;
    return a == HV_ACT_OPEN ? first_run(app) : 0;
}

static void welcome_status(const void *state, const void *model, struct hv_str *out)
{
    (void)state;
    hv_str_addf(out, "%s is a copy of the sample: nothing here can break anything",
                hv_session_name(hv_ui_session(model)));
}

static const enum hv_action keybar[] = {HV_ACT_OPEN,     HV_ACT_TOUR,     HV_ACT_IMPORT,
                                        HV_ACT_SCREEN_1, HV_ACT_SCREEN_3, HV_ACT_COMMAND,
                                        HV_ACT_NONE};

const struct hv_view_ops hv_screen_welcome = {
    .name = "welcome",
    .title = "Welcome",
    .short_title = "Welcome",
    .quits = true,
    .state_size = 1,
    .keybar = keybar,
    .help = "Shown at the first start; `:screen welcome` brings it back. Esc or the number of a "
            "screen goes "
            "to the screens.",
    .draw = welcome_draw,
    .action = welcome_action,
    .status = welcome_status,
    .tick = hv_ui_tick,
    .timeout_ms = hv_ui_timeout_ms,
};
