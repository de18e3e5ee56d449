/** `hetviz gantt`: the timeline of a plan in the terminal, as a picture or as a trace. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/eval/timeline/ring_text.h"
#include "solver/io/export/gantt.h"
#include "ui/cli/cli.h"
#include "ui/cli/judged.h"
#include "ui/cli/print.h"
#include "ui/cli/verdict_text.h"
#include "ui/view/gantt/strips.h"
#include "ui/view/gantt/timeline.h"

enum { DEFAULT_COLUMNS = 100, PICTURE_WIDTH_PX = 1400 };

/** Title and subtitle of pictures. Owner: hv_str_free of both. */
static void titles(const struct hv_judged *j, struct hv_str *title, struct hv_str *subtitle)
{
    const char *strategy = j->plan.plan->strategy;
    hv_text_addf(title, "%s: %s on %s, schedule %s", strategy != NULL ? strategy : "plan",
                 j->inputs.model.model->name, j->inputs.cluster.cluster->name,
                 j->plan.plan->schedule.name);
    hv_cli_verdict_line(&j->verdict, subtitle);
}

static enum hv_status write_file(const struct hv_args *args, const char *option,
                                 const struct hv_str *bytes, struct hv_err *err)
{
    return hv_file_write(hv_args_text(args, option, "-"), hv_str_cstr(bytes), bytes->n, err);
}

/** Loads of the layer that has the hottest expert; loads NULL where the job routes evenly, or no
 * layer has experts on several ranks. Lives in the arena of the judgement. */
static struct hv_strips strips_of(struct hv_judged *j)
{
    struct hv_expert_layer *layers;
    struct hv_hottest_expert hot;
    struct hv_strips none = {0}, s = {.steps = j->verdict.routing.steps};
    if (j->verdict.jobs != NULL) {
        return none;
    }
    const struct hv_plan *p = j->plan.plan;
    size_t n = hv_eval_expert_layers(j->cost, p, &j->arena, &layers);
    struct hv_expert_loads *loads = hv_arena_new(&j->arena, struct hv_expert_loads, 1);
    if (!hv_eval_hottest_expert(j->cost, p, layers, n, &hot) ||
        hv_eval_expert_loads(j->cost, p, s.steps, hot.at, &j->arena, loads, NULL) != HV_OK) {
        return none;
    }
    s.loads = loads;
    return s;
}

/** Writes the output files given as options; *any: true where there was one. */
static enum hv_status write_files(const struct hv_args *args, struct hv_judged *j, bool *any,
                                  struct hv_err *err)
{
    struct hv_str title = {0}, subtitle = {0}, out = {0};
    titles(j, &title, &subtitle);
    struct hv_gantt_text text = {.title = hv_str_cstr(&title), .subtitle = hv_str_cstr(&subtitle)};
    if (hv_args_has(args, "svg") || hv_args_has(args, "png")) {
        text.strips = strips_of(j);
    }
    int width = (int)hv_args_number(args, "width", PICTURE_WIDTH_PX);
    enum hv_status st = HV_OK;
    if (hv_args_has(args, "svg")) {
        *any = true;
        hv_gantt_svg(j->verdict.timeline, &text, width, &out);
        st = write_file(args, "svg", &out, err);
        hv_str_clear(&out);
    }
    if (st == HV_OK && hv_args_has(args, "png")) {
        *any = true;
        st = hv_gantt_png(j->verdict.timeline, &text, width, &out, err);
        st = st == HV_OK ? write_file(args, "png", &out, err) : st;
        hv_str_clear(&out);
    }
    if (st == HV_OK && hv_args_has(args, "trace")) {
        *any = true;
        hv_gantt_trace(j->verdict.timeline, &text, &out);
        st = write_file(args, "trace", &out, err);
    }
    hv_str_free(&out);
    hv_str_free(&title);
    hv_str_free(&subtitle);
    return st;
}

/** Appends a line for each row with a ring: which of its hops is not hidden. */
static void add_rings(const struct hv_timeline *t, struct hv_str *out)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct hv_timeline_ring *x = hv_timeline_ring_most(&t->rows[i], HV_RING_ANY, -1);
        if (x != NULL) {
            hv_text_addf(out, " %s: ", t->rows[i].name);
            hv_timeline_ring_text(x, out);
            hv_str_adds(out, "\n");
        }
    }
}

static enum hv_status print_cells(const struct hv_args *args, struct hv_judged *j,
                                  struct hv_err *err)
{
    struct hv_str out = {0};
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool plain = hv_args_has(args, "plain") || hv_args_has(args, "ascii");
    struct hv_theme theme;
    hv_theme_default(&theme);
    struct hv_gantt_print o = {
        .width = (int)hv_args_number(args, "width", hv_cli_columns(DEFAULT_COLUMNS)),
        .ascii = plain,
        .theme = &theme,
        .color = !plain && isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0') &&
                 term != NULL && strcmp(term, "dumb") != 0};
    /* gradient pushes after a wave overlap with compute in time, which would hide them */
    bool links = hv_args_has(args, "links") || j->verdict.stale_sync != NULL;
    const struct hv_timeline *t = j->verdict.timeline;
    struct hv_gantt_source source = hv_gantt_tracks_source(&t->tracks[links ? HV_TRACKS_LINKS : 0]);
    const struct hv_strips strips = strips_of(j);
    struct hv_str subtitle = {0};
    titles(j, &out, &subtitle);
    hv_text_addf(&out, "\n%s\n", hv_str_cstr(&subtitle));
    hv_gantt_print(&source, &o, &out);
    add_rings(t, &out);
    if (strips.loads != NULL) {
        hv_text_addf(&out, "\nexperts of layer %zu, the one with the hottest expert\n",
                     strips.loads->at.block);
        const struct hv_gantt_strips view = {.loads = strips.loads, .steps = strips.steps};
        hv_gantt_strips_print(&view, &o, &out);
    }
    enum hv_status st = hv_cli_print_styled(&out, err);
    hv_str_free(&subtitle);
    hv_str_free(&out);
    return st;
}

enum hv_status hv_cli_gantt(struct hv_args *args, struct hv_err *err)
{
    struct hv_judged j;
    bool any = false;
    enum hv_status st = hv_cli_judge(args, true, &j, err);
    if (st == HV_OK && j.verdict.jobs != NULL) {
        j.verdict.timeline = hv_eval_jobs_timeline(&j.verdict, &j.arena);
    }
    if (st == HV_OK && j.verdict.serving != NULL) {
        st = hv_err_set(err, HV_ENO,
                        "a serving plan has a token rate and no iteration to draw; `hetviz eval` "
                        "prints the token rate of each stage");
    } else if (st == HV_OK && j.verdict.timeline == NULL) {
        st = hv_err_set(err, HV_ENO,
                        "this plan cannot be simulated, so there is no timeline to draw: %s",
                        j.verdict.findings.n > 0 ? j.verdict.findings.items[0].text : "no stages");
    }
    if (st == HV_OK) {
        st = write_files(args, &j, &any, err);
    }
    if (st == HV_OK && !any) {
        st = print_cells(args, &j, err);
    }
    hv_judged_free(&j);
    return st;
}
