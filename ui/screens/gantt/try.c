/** Trials in the Gantt screen: schedule, micro-batch and chunks of the plan shown are changed as
 * levers, the trial is drawn over the present plan; accepting makes it a row. */
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/sim/schedule/schedule.h"
#include "ui/screens/gantt/gantt_int.h"

void hv_gantt_try_free(struct hv_gantt_try *t)
{
    hv_trial_free(t->trial);
    hv_levers_free(&t->levers);
    free(t->values);
    *t = (struct hv_gantt_try){0};
}

bool hv_gantt_try_is_current(const struct hv_gantt_try *t, const struct hv_session *s,
                             const struct hv_row *row)
{
    for (int d = 0; d < HV_DOC_STRATEGIES; d++) {
        if (t->generation[d] != hv_session_generation(s, (enum hv_doc)d)) {
            return false;
        }
    }
    return t->values != NULL && row != NULL && t->row == row->id && t->plan == row->plan;
}

bool hv_gantt_try_is_on(const struct hv_gantt_try *t, const struct hv_session *s,
                        const struct hv_row *row)
{
    return t->trial != NULL && hv_gantt_try_is_current(t, s, row);
}

void hv_gantt_try_back(struct hv_gantt_try *t)
{
    hv_trial_free(t->trial);
    t->trial = NULL;
    for (size_t i = 0; i < t->levers.n; i++) {
        t->values[i] = t->levers.items[i].base;
    }
}

enum hv_status hv_gantt_try_prepare(struct hv_gantt_try *t, struct hv_session *s,
                                    const struct hv_row *row, struct hv_err *err)
{
    if (hv_gantt_try_is_current(t, s, row)) {
        return HV_OK;
    }
    hv_gantt_try_free(t);
    if (row == NULL) {
        return hv_err_set(err, HV_ENO, "there is no plan to change");
    }
    enum hv_status st = hv_levers_read(s, row->id, &t->levers, err);
    if (st != HV_OK) {
        return st;
    }
    const struct hv_verdict *v = hv_session_verdict(s, row->id, false, NULL);
    t->before_s = v != NULL ? v->metrics.iteration_s : HV_UNKNOWN;
    t->row = row->id;
    t->plan = row->plan;
    for (int d = 0; d < HV_DOC_STRATEGIES; d++) {
        t->generation[d] = hv_session_generation(s, (enum hv_doc)d);
    }
    t->values = hv_xcalloc(t->levers.n + 1, sizeof *t->values);
    hv_gantt_try_back(t);
    return HV_OK;
}

static size_t n_turned(const struct hv_gantt_try *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->levers.n; i++) {
        n += !hv_lever_is_base(&t->levers.items[i], t->values[i]);
    }
    return n;
}

/** Evaluates the present values; keeps the old trial where that fails. */
static enum hv_status judge(struct hv_gantt_try *t, struct hv_session *s, struct hv_err *err)
{
    struct hv_trial *fresh = NULL;
    enum hv_status st =
        n_turned(t) > 0 ? hv_trial_new(s, &t->levers, t->values, true, &fresh, err) : HV_OK;
    if (st == HV_OK && fresh != NULL && hv_trial_verdict(fresh)->timeline == NULL) {
        st = hv_err_set(err, HV_ENO, "there is no timeline to draw");
    }
    if (st != HV_OK) {
        hv_trial_free(fresh);
        return st;
    }
    hv_trial_free(t->trial);
    t->trial = fresh;
    return HV_OK;
}

enum hv_status hv_gantt_try_set(struct hv_gantt_try *t, struct hv_session *s, size_t lever,
                                double value, struct hv_err *err)
{
    double kept = t->values[lever];
    t->values[lever] = value;
    enum hv_status st = judge(t, s, err);
    if (st != HV_OK) {
        t->values[lever] = kept;
    }
    return st;
}

/** "zb-h1", "8" for the micro-batch, "2 chunks": sets the lever for the word. */
static enum hv_status set_word(struct hv_gantt_try *t, const char *word, size_t place,
                               struct hv_err *err)
{
    static const enum hv_lever_kind kinds[] = {HV_LEVER_SCHEDULE, HV_LEVER_MICRO, HV_LEVER_CHUNKS};
    static const char *const names[] = {"schedule", "micro-batch", "chunks"};
    double value = 0;
    if (place >= HV_COUNT(kinds)) {
        return hv_err_set(err, HV_EUSAGE, "expected SCHEDULE [MICRO-BATCH [CHUNKS]]");
    }
    const struct hv_lever *l = hv_levers_find(&t->levers, kinds[place], 0, 0);
    if (l == NULL) {
        return hv_err_set(err, HV_EUSAGE, "this plan has no %s to change", names[place]);
    }
    enum hv_status st = hv_lever_parse(l, word, &value, err);
    if (st == HV_OK) {
        t->values[l - t->levers.items] = value;
    }
    return st;
}

static unsigned answer_switch(void *ctx, struct hv_app *app, const char *text)
{
    struct hv_gantt_screen *st = ctx;
    struct hv_ui *ui = hv_app_model(app);
    const struct hv_row *row = hv_gantt_row(ui);
    struct hv_err err = {0};
    enum hv_status status = hv_gantt_try_prepare(&st->attempt, ui->session, row, &err);
    for (size_t place = 0; status == HV_OK && *text != '\0'; place++) {
        char word[64] = "";
        size_t n = strcspn(text, " ,");
        (void)strncat(word, text, n < sizeof word - 1 ? n : sizeof word - 1);
        status = set_word(&st->attempt, word, place, &err);
        text += n + strspn(text + n, " ,");
    }
    if (status == HV_OK) {
        status = judge(&st->attempt, ui->session, &err);
    }
    if (status != HV_OK && row != NULL) {
        hv_ui_error(app, &err);
    }
    return HV_APP_REDRAW;
}

bool hv_gantt_try_keep(struct hv_gantt_try *t, struct hv_app *app)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_str said = {0};
    struct hv_err err = {0};
    bool done = false;
    if (t->trial == NULL) {
        hv_app_message(app, HV_MSG_INFO, "nothing is changed; s, b and v try changes");
    } else if (hv_levers_accept(s, &t->levers, t->values, &said, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        struct hv_ui *ui = hv_app_model(app);
        ui->gantt_row = 0;
        hv_app_message(app, HV_MSG_INFO, "kept: %s; u undoes it", hv_str_cstr(&said));
        hv_gantt_try_free(t);
        done = true;
    }
    hv_str_free(&said);
    return done;
}

bool hv_gantt_try_action(struct hv_gantt_screen *st, struct hv_app *app, enum hv_action a)
{
    struct hv_gantt_try *t = &st->attempt;
    if (a == HV_ACT_EDIT) {
        hv_app_ask(app, "try SCHEDULE [MICRO-BATCH [CHUNKS]]: ", "", answer_switch, st);
        return true;
    }
    if (a == HV_ACT_ADD) {
        (void)hv_gantt_try_keep(t, app);
        return true;
    }
    if (a == HV_ACT_CANCEL && t->trial != NULL) {
        hv_gantt_try_free(t);
        hv_app_message(app, HV_MSG_INFO, "back to the original plan");
        return true;
    }
    return false;
}

static void add_change(struct hv_str *out, const char *name, double before, double now,
                       const char *(*fmt)(char *, size_t, double))
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    hv_str_addf(out, "%s %s -> %s", name, fmt(a, sizeof a, before), fmt(b, sizeof b, now));
}

void hv_gantt_try_status(const struct hv_gantt_screen *st, const struct hv_gantt_subject *s,
                         struct hv_str *out)
{
    const struct hv_gantt_try *t = &st->attempt;
    const struct hv_metrics *was = &s->before->metrics, *is = &s->facts.verdict->metrics;
    struct hv_figures f = hv_figures_of(s->facts.verdict), g = hv_figures_of(s->before);
    const char *gap = "";
    hv_str_adds(out, f.n_violations > 0 ? "! " : "");
    for (size_t i = 0; i < t->levers.n; i++) {
        const struct hv_lever *l = &t->levers.items[i];
        if (!hv_lever_is_base(l, t->values[i])) {
            hv_str_addf(out, "%s%s ", gap, l->name);
            hv_lever_text(l, t->values[i], out);
            gap = ", ";
        }
    }
    const struct hv_lever *named = hv_levers_find(&t->levers, HV_LEVER_SCHEDULE, 0, 0);
    const char *schedule = s->facts.plan->schedule.name;
    if (named != NULL &&
        strcmp(schedule, named->words[hv_lever_at(named, t->values[named - t->levers.items])]) !=
            0) {
        hv_str_addf(out, " (%s)", schedule); /* the number of chunks required another schedule */
    }
    add_change(out, ": step", was->iteration_s, is->iteration_s, hv_fmt_seconds);
    hv_str_addf(out, " (%+.1f%%) | Enter, a keep, Esc drops",
                (is->iteration_s / was->iteration_s - 1) * 100);
    if (f.n_violations > 0) { /* the reason is what may be cut, never the keys */
        hv_str_addf(out, " | %s", f.violation);
    }
    add_change(out, " | bubble", was->bubble_frac, is->bubble_frac, hv_fmt_percent);
    add_change(out, ", peak", g.peak_frac, f.peak_frac, hv_fmt_percent);
}
