/** The tour: a line above the status row shows the next key and its effect; it advances after that
 * action. A table of steps; performs no action itself. */
#include <string.h>

#include "ui/screens/screens.h"

/** One step: action, screen ("" = any) and effect. */
static const struct step {
    enum hv_action action;
    const char *view;
    const char *text;
} steps[] = {
    {HV_ACT_SCREEN_1, "", "the cluster: its devices, links and prices"},
    {HV_ACT_EDIT, "cluster", "edit these nodes; Enter changes a value, Esc leaves"},
    {HV_ACT_SCREEN_2, "", "the model: its layers and its memory"},
    {HV_ACT_SCREEN_3, "", "strategies: programs that search for a plan"},
    {HV_ACT_STRATEGY_RUN, "strategies", "run this one; it runs in the background"},
    {HV_ACT_SCREEN_4, "", "plans: compare time, price and memory"},
    {HV_ACT_OPEN, "plans", "draw this plan as a Gantt chart, once it is done"},
    {HV_ACT_GANTT_OP_NEXT, "gantt", "go to the next operation; details are below"},
    {HV_ACT_GANTT_SCHEDULE_NEXT, "gantt", "list the schedules: j tries, Enter keeps, Esc drops"},
    {HV_ACT_SCREEN_6, "", "explain the iteration time; what to change first"},
    {HV_ACT_SCREEN_7, "", "what-if: h and l move the levers of the plan"},
    {HV_ACT_HELP, "", "list and search all keys: the end of the tour"},
};

/** The key of an action without brackets, as the key bar has it. */
static void add_key(const struct hv_ui *ui, const char *view, enum hv_action a, struct hv_str *out)
{
    struct hv_key k;
    char name[32];
    if (!hv_keymap_key_of(ui->keys, view, a, &k)) {
        hv_str_addf(out, ":%s", hv_action_row(a)->name);
        return;
    }
    (void)hv_key_name(k, name, sizeof name);
    size_t n = strlen(name);
    bool bracketed = n > 2 && name[0] == '<' && name[n - 1] == '>';
    hv_str_add(out, name + bracketed, n - 2 * (size_t)bracketed);
}

/** The action that opens the screen of a step. */
static enum hv_action way_to(const char *view)
{
    size_t n = 0;
    const struct hv_view_ops *const *screens = hv_ui_screens(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(screens[i]->name, view) == 0) {
            return (enum hv_action)(HV_ACT_SCREEN_1 + screens[i]->tab - 1);
        }
    }
    return HV_ACT_NONE;
}

void hv_ui_tour(struct hv_ui *ui, struct hv_app *app)
{
    ui->tour = ui->tour == 0;
    if (ui->tour == 0) {
        hv_app_message(app, HV_MSG_INFO, "the tour has ended");
    }
}

void hv_ui_tour_guide(const void *model, const char *view, struct hv_str *out)
{
    const struct hv_ui *ui = model;
    if (ui->tour == 0) {
        return;
    }
    const struct step *s = &steps[ui->tour - 1];
    bool elsewhere = s->view[0] != '\0' && strcmp(s->view, view) != 0;
    hv_str_addf(out, "tour %u/%zu: press ", ui->tour, HV_COUNT(steps));
    add_key(ui, view, elsewhere ? way_to(s->view) : s->action, out);
    hv_str_addf(out, "  %s", elsewhere ? "back to the screen where the tour continues" : s->text);
}

void hv_ui_tour_did(void *model, struct hv_app *app, const char *view, enum hv_action a)
{
    struct hv_ui *ui = model;
    if (ui->tour == 0) {
        return;
    }
    const struct step *s = &steps[ui->tour - 1];
    if (a == s->action && (s->view[0] == '\0' || strcmp(s->view, view) == 0)) {
        ui->tour = ui->tour < HV_COUNT(steps) ? ui->tour + 1 : 0;
        hv_app_touch(app);
    }
}
