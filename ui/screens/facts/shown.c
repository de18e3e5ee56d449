/** The plan shown, and the page drawn where there is none. */
#include "ui/screens/facts/shown.h"

const struct hv_row *hv_ui_plan_row(const struct hv_session *s)
{
    const struct hv_row *row = hv_session_row(s, hv_session_selected(s));
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    for (size_t i = 0; i < n && row == NULL; i++) {
        row = rows[i]->plan != NULL ? rows[i] : NULL;
    }
    return row;
}

void hv_ui_switch_plan(struct hv_ui *ui, struct hv_app *app, uint32_t id, int step)
{
    size_t n = 0, at = 0;
    const struct hv_row *const *rows = hv_session_rows(ui->session, &n);
    while (at < n && rows[at]->id != id) {
        at++;
    }
    for (size_t k = 1; at < n && k < n; k++) {
        const struct hv_row *row = rows[step > 0 ? (at + k) % n : (at + n - k) % n];
        if (row->plan != NULL) {
            ui->gantt_row = 0;
            hv_session_select(ui->session, row->id);
            return;
        }
    }
    hv_app_message(app, HV_MSG_INFO, "there is no other plan");
}

const enum hv_action *hv_ui_no_plan_keybar(const struct hv_row *row)
{
    static const enum hv_action keys[] = {HV_ACT_SCREEN_3, HV_ACT_SCREEN_4, HV_ACT_GANTT_PLAN_NEXT,
                                          HV_ACT_NONE};
    return row == NULL || row->plan == NULL ? keys : NULL;
}

/** The reasons, one below the other; returns the rows used. */
static int put_reasons(const struct hv_plan_facts *f, const char *reason, struct hv_grid *g,
                       struct hv_rect r)
{
    size_t n = f->verdict != NULL && reason[0] == '\0' ? f->verdict->findings.n : 0;
    struct hv_str text = {0};
    int used = 0;
    for (size_t i = 0; i < n && used < r.h; i++) {
        hv_str_clear(&text);
        hv_str_addf(&text, "! %s", f->verdict->findings.items[i].text);
        used += hv_words_draw(g, (struct hv_rect){r.x, r.y + used, r.w, r.h - used},
                              hv_str_cstr(&text), HV_STYLE_WARNING);
    }
    if (n == 0) {
        hv_str_adds(&text, reason);
        if (text.n == 0) {
            hv_plan_trouble(f->row, f->verdict, &text);
        }
        used = hv_words_draw(g, r, hv_str_cstr(&text), HV_STYLE_WARNING);
    }
    hv_str_free(&text);
    return used;
}

void hv_ui_no_plan(const struct hv_plan_facts *facts, const char *reason, struct hv_grid *g,
                   struct hv_rect body)
{
    enum { HINTS = 3 };
    const struct hv_row *row = facts->row;
    struct hv_str text = {0};
    struct hv_rect in = {body.x + 1, body.y + 1, body.w - 2, body.h - 1};
    if (row == NULL) {
        hv_str_adds(&text, "no plan to draw yet");
    } else if (row->plan == NULL) {
        hv_str_addf(&text, "%s has no plan: %s", row->name, hv_row_state_name(row->state));
        reason = row->reason;
    } else {
        hv_str_addf(&text, "%s has no timeline%s", row->name,
                    row->outdated ? ": it was made before an edit of the workspace" : "");
    }
    int y = hv_words_draw(g, in, hv_str_cstr(&text), HV_STYLE_TITLE);
    if (row != NULL && in.h - y > HINTS + 1) {
        struct hv_rect at = {in.x, in.y + y, in.w, in.h - y - HINTS - 1};
        y += put_reasons(facts, reason, g, at);
    }
    static const char *const hints[HINTS] = {"3  choose a strategy; Enter runs it",
                                             "4  choose another plan; Enter draws it",
                                             "u  undo the edit, if it caused this"};
    for (int i = 0; i < HINTS - (row == NULL || !row->outdated); i++) {
        (void)hv_grid_put(g, in.x, in.y + y + 1 + i, in.w, hints[i], HV_STYLE_TEXT);
    }
    hv_str_free(&text);
}
