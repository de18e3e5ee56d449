/** Writing what the Gantt shows: a picture, a trace or text, by the ending of the file's name. */
#include <math.h>
#include <string.h>

#include "solver/io/export/gantt.h"
#include "ui/screens/gantt_int.h"

#define EXPORT_WIDTH_PX 1600
#define EXPORT_COLUMNS  160

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}

enum hv_status hv_gantt_render(const struct hv_gantt_subject *s, const char *title,
                               const char *path, struct hv_str *out, struct hv_err *err)
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
    if (ends_with(path, ".svg")) {
        hv_gantt_svg(t, &text, EXPORT_WIDTH_PX, out);
    } else if (ends_with(path, ".png")) {
        status = hv_gantt_png(t, &text, EXPORT_WIDTH_PX, out, err);
    } else if (ends_with(path, ".json")) {
        hv_gantt_trace(t, &text, out);
    } else if (ends_with(path, ".txt")) {
        struct hv_gantt_print print = {.width = EXPORT_COLUMNS, .ascii = true};
        hv_gantt_print(&s->src, &print, out);
    } else {
        status =
            hv_err_set(err, HV_EUSAGE,
                       "'%s' ends in none of .svg, .png, .json (Perfetto trace) and .txt", path);
    }
    hv_str_free(&subtitle);
    return status;
}
