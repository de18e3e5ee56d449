/** Export of the Gantt chart: a picture, a trace or text, by the ending of the file's name. */
#include <math.h>
#include <string.h>

#include "solver/base/file.h"
#include "solver/base/str.h"
#include "solver/io/export/gantt.h"
#include "ui/screens/gantt/gantt_int.h"

#define EXPORT_WIDTH_PX 1600
#define EXPORT_COLUMNS  160

/** Appends the file's bytes: .svg, .png, .json (trace) or .txt. Errors: HV_EUSAGE for other
 * endings. */
static enum hv_status render(const struct hv_gantt_subject *s, const char *title, const char *path,
                             struct hv_str *out, struct hv_err *err)
{
    const struct hv_timeline *t = s->facts.verdict->timeline;
    struct hv_str subtitle = {0};
    hv_str_adds(&subtitle, "iteration ");
    hv_plan_text(&s->facts, HV_PLAN_ITERATION, &subtitle);
    hv_str_adds(&subtitle, ", bubble ");
    hv_plan_text(&s->facts, HV_PLAN_BUBBLE, &subtitle);
    struct hv_gantt_text text = {.title = title,
                                 .subtitle = hv_str_cstr(&subtitle),
                                 .from_s = s->view->t0_s,
                                 .to_s = fmin(s->view->t1_s, t->end_s)};
    enum hv_status status = HV_OK;
    if (hv_text_ends_with(path, ".svg")) {
        hv_gantt_svg(t, &text, EXPORT_WIDTH_PX, out);
    } else if (hv_text_ends_with(path, ".png")) {
        status = hv_gantt_png(t, &text, EXPORT_WIDTH_PX, out, err);
    } else if (hv_text_ends_with(path, ".json")) {
        hv_gantt_trace(t, &text, out);
    } else if (hv_text_ends_with(path, ".txt")) {
        struct hv_gantt_print print = {.width = EXPORT_COLUMNS, .ascii = true};
        hv_gantt_print(&s->src, &print, out);
    } else {
        status = hv_err_set(err, HV_EUSAGE,
                            "'%s' must end in .svg, .png, .json (Perfetto trace) or .txt", path);
    }
    hv_str_free(&subtitle);
    return status;
}

unsigned hv_gantt_answer_export(void *ctx, struct hv_app *app, const char *path)
{
    struct hv_gantt_screen *st = ctx;
    struct hv_gantt_state view = {0};
    struct hv_gantt_subject s;
    struct hv_str bytes = {0}, title = {0};
    struct hv_err err = {0};
    if (!hv_gantt_subject_get(st, hv_app_model(app), &view, &s, &err)) {
        return HV_APP_REDRAW;
    }
    hv_str_addf(&title, "%s in %s", s.facts.row->name,
                hv_session_name(hv_ui_session(hv_app_model(app))));
    enum hv_status status = render(&s, hv_str_cstr(&title), path, &bytes, &err);
    if (status == HV_OK) {
        status = hv_file_write(path, hv_str_cstr(&bytes), bytes.n, &err);
    }
    if (status != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "timeline written to %s", path);
    }
    hv_str_free(&bytes);
    hv_str_free(&title);
    return HV_APP_REDRAW;
}
