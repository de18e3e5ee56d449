/** The Gantt screen as loads of ranks with experts over the iterations of the routing: a strip per
 * rank, and what is known of the iteration at the cursor. */
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/gantt/gantt_int.h"
#include "ui/view/gantt/strips.h"

/* Rows of the box below the strips, with its frame. */
enum { BOX_H = 8 };

void hv_gantt_experts_free(struct hv_gantt_experts *x)
{
    hv_arena_free(&x->arena);
    *x = (struct hv_gantt_experts){0};
}

static bool is_current(const struct hv_gantt_experts *x, const struct hv_session *s,
                       const struct hv_row *row)
{
    for (int d = 0; d < HV_DOC_STRATEGIES; d++) {
        if (x->generation[d] != hv_session_generation(s, (enum hv_doc)d)) {
            return false;
        }
    }
    return x->row == row->id && x->plan == row->plan;
}

/** Works out the loads of the layer at the cursor. */
static void take_layer(struct hv_gantt_experts *x, struct hv_session *s,
                       const struct hv_gantt_subject *subject)
{
    x->ok = x->n_layers > 0 &&
            hv_eval_expert_loads(hv_session_cost(s), subject->facts.plan,
                                 subject->facts.verdict->routing.steps, &x->layers[x->layer],
                                 &x->arena, &x->loads, &x->err) == HV_OK;
    if (x->ok) {
        x->rank = x->rank < x->loads.ranks ? x->rank : 0;
        x->iteration = x->iteration < x->loads.iterations ? x->iteration : 0;
    }
}

/** Brings the data up to date with the row, its documents and its plan. */
static void sync(struct hv_gantt_experts *x, struct hv_session *s,
                 const struct hv_gantt_subject *subject)
{
    const struct hv_row *row = subject->facts.row;
    if (is_current(x, s, row) || subject->facts.plan == NULL) {
        return;
    }
    hv_arena_free(&x->arena);
    struct hv_hottest_expert hot;
    struct hv_cost *k = hv_session_cost(s);
    x->err = (struct hv_err){0};
    x->row = row->id;
    x->plan = row->plan;
    for (int d = 0; d < HV_DOC_STRATEGIES; d++) {
        x->generation[d] = hv_session_generation(s, (enum hv_doc)d);
    }
    x->layer = x->top = 0;
    x->n_layers = hv_eval_expert_layers(k, subject->facts.plan, &x->arena, &x->layers);
    if (hv_eval_hottest_expert(k, subject->facts.plan, x->layers, x->n_layers, &hot)) {
        x->layer = (size_t)(hot.at - x->layers);
        x->iteration = hot.iteration;
    }
    take_layer(x, s, subject);
}

bool hv_gantt_experts_open(struct hv_gantt_screen *st, struct hv_app *app,
                           const struct hv_gantt_subject *subject)
{
    struct hv_gantt_experts *x = st->experts;
    sync(x, hv_ui_session(hv_app_model(app)), subject);
    if (x->n_layers == 0) {
        hv_app_message(app, HV_MSG_INFO,
                       "nothing to show: the job routes tokens evenly, or no layer of the plan has "
                       "experts on several ranks");
        return false;
    }
    if (!x->ok) {
        hv_app_message(app, HV_MSG_INFO, "%s", x->err.text);
        return false;
    }
    x->on = true;
    return true;
}

static struct hv_gantt_strips strips_of(const struct hv_gantt_experts *x,
                                        const struct hv_gantt_subject *subject)
{
    return (struct hv_gantt_strips){.loads = &x->loads,
                                    .steps = subject->facts.verdict->routing.steps,
                                    .iteration = x->iteration,
                                    .rank = x->rank,
                                    .top = x->top,
                                    .cursor = true};
}

/** Places of strips and box. */
static void place(const struct hv_gantt_experts *x, const struct hv_gantt_subject *subject,
                  struct hv_rect body, struct hv_rect *strips, struct hv_rect *box)
{
    const struct hv_gantt_strips s = strips_of(x, subject);
    int h = hv_gantt_strips_height(&s), left = body.h - BOX_H;
    h = h < left ? h : left;
    *strips = body;
    *box = (struct hv_rect){0};
    if (left >= 6) {
        strips->h = h;
        *box = (struct hv_rect){body.x, body.y + h, body.w, body.h - h};
        box->h = box->h < BOX_H ? box->h : BOX_H;
    }
}

static void put(struct hv_grid *g, struct hv_rect r, int *line, unsigned style, struct hv_str *text)
{
    if (*line < r.h) {
        hv_grid_put_field(g, (struct hv_rect){r.x, r.y + *line, r.w, 1}, HV_LEFT, hv_str_cstr(text),
                          style);
    }
    (*line)++;
    hv_str_clear(text);
}

/** Time of the iteration and what moves before it. */
static void put_step(struct hv_grid *g, struct hv_rect r, int *line,
                     const struct hv_routing_figures *f, size_t t, struct hv_str *text)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    const struct hv_routing_step *step = f->steps != NULL && t < f->n ? &f->steps[t] : NULL;
    if (step == NULL) {
        return;
    }
    hv_str_addf(text, "takes %s, the mean iteration %s", hv_fmt_seconds(a, sizeof a, step->time_s),
                hv_fmt_seconds(b, sizeof b, f->mean_s));
    put(g, r, line, HV_STYLE_TEXT, text);
    if (step->moves > 0) {
        hv_str_addf(text, "before it %zu experts move, %s in %s: decided from earlier iterations",
                    step->moves, hv_fmt_bytes(a, sizeof a, step->moved_bytes),
                    hv_fmt_seconds(b, sizeof b, step->move_s));
    } else {
        hv_str_adds(text, "no expert moves before it");
    }
    put(g, r, line, step->moves > 0 ? HV_STYLE_TITLE : HV_STYLE_TEXT, text);
}

static void draw_box(const struct hv_gantt_experts *x, const struct hv_gantt_subject *subject,
                     struct hv_grid *g, struct hv_rect box)
{
    char a[HV_FMT_CAP];
    const struct hv_expert_loads *l = &x->loads;
    struct hv_str text = {0};
    size_t t = x->iteration;
    int line = 0;
    hv_str_addf(&text, "Iteration %zu, layer %zu", t, l->at.block);
    hv_grid_box(g, box, hv_str_cstr(&text), false, HV_STYLE_FRAME);
    hv_str_clear(&text);
    struct hv_rect r = hv_rect_inner(box);
    hv_str_addf(&text, "hottest expert e%u: %.2fx the mean of the experts, %s of the tokens",
                (unsigned)l->hottest[t], l->times[t],
                hv_fmt_percent(a, sizeof a, l->times[t] / l->at.experts));
    put(g, r, &line, HV_STYLE_CRITICAL, &text);
    hv_str_addf(&text, "busiest rank %.2fx the mean, %s %.2fx", l->busiest[t], l->names[x->rank],
                l->loads[t * l->ranks + x->rank]);
    put(g, r, &line, HV_STYLE_TEXT, &text);
    put_step(g, r, &line, &subject->facts.verdict->routing, t, &text);
    hv_str_addf(&text, "tiles: %s of the rows of the busiest rank hold no token",
                hv_fmt_percent(a, sizeof a, l->padded[t]));
    put(g, r, &line, HV_STYLE_TEXT, &text);
    hv_str_addf(&text, "layer %zu of %zu with experts on several ranks: [ and ] show others",
                x->layer + 1, x->n_layers);
    put(g, r, &line, HV_STYLE_DIM, &text);
    hv_str_free(&text);
}

void hv_gantt_experts_draw(struct hv_gantt_experts *x, struct hv_session *s,
                           const struct hv_gantt_subject *subject, struct hv_grid *g,
                           struct hv_rect body)
{
    struct hv_rect strips, box;
    sync(x, s, subject);
    if (!x->ok) {
        (void)hv_grid_put(g, body.x + 1, body.y + 1, body.w - 2,
                          x->n_layers == 0
                              ? "no layer of this plan has experts on several ranks; X "
                                "shows its operations"
                              : x->err.text,
                          HV_STYLE_DIM);
        return;
    }
    const struct hv_gantt_strips view = strips_of(x, subject);
    place(x, subject, body, &strips, &box);
    hv_gantt_strips_draw(&view, g, strips);
    if (box.h > 0) {
        draw_box(x, subject, g, box);
    }
}

void hv_gantt_experts_status(const struct hv_gantt_experts *x, const char *name, struct hv_str *out)
{
    const struct hv_expert_loads *l = &x->loads;
    hv_str_addf(out, "%s  ", name);
    if (x->ok) {
        hv_str_addf(out, "iteration %zu of %zu | rank %zu has %.2fx the mean", x->iteration,
                    l->iterations, x->rank, l->loads[x->iteration * l->ranks + x->rank]);
    }
}

/** Shows another layer. */
static void turn_layer(struct hv_gantt_experts *x, struct hv_session *s,
                       const struct hv_gantt_subject *subject, bool back)
{
    if (back ? x->layer > 0 : x->layer + 1 < x->n_layers) {
        x->layer += back ? (size_t)-1 : 1;
        take_layer(x, s, subject);
    }
}

static size_t moved(size_t at, size_t by, bool back, size_t n)
{
    return back ? (at > by ? at - by : 0) : at + by < n ? at + by : n - 1;
}

bool hv_gantt_experts_action(struct hv_gantt_experts *x, struct hv_app *app,
                             const struct hv_gantt_subject *subject, enum hv_action a)
{
    struct hv_rect strips, box;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    sync(x, s, subject);
    if (!x->ok) {
        return false;
    }
    place(x, subject, hv_app_body(app), &strips, &box);
    const struct hv_gantt_strips view = strips_of(x, subject);
    size_t each = hv_gantt_strips_each(&view, strips.w);
    size_t shown = hv_gantt_strips_ranks(&view, strips.h);
    bool back = a == HV_ACT_LEFT || a == HV_ACT_UP || a == HV_ACT_PAGE_UP || a == HV_ACT_TOP;
    switch ((int)a) {
    case HV_ACT_LEFT:
    case HV_ACT_RIGHT:
        x->iteration = moved(x->iteration, each, back, x->loads.iterations);
        break;
    case HV_ACT_UP:
    case HV_ACT_DOWN:
        x->rank = moved(x->rank, 1, back, x->loads.ranks);
        break;
    case HV_ACT_PAGE_UP:
    case HV_ACT_PAGE_DOWN:
        x->rank = moved(x->rank, shown > 1 ? shown - 1 : 1, back, x->loads.ranks);
        break;
    case HV_ACT_TOP:
    case HV_ACT_BOTTOM:
        x->iteration = moved(x->iteration, x->loads.iterations, back, x->loads.iterations);
        break;
    case HV_ACT_GANTT_OP_PREV:
    case HV_ACT_GANTT_OP_NEXT:
        turn_layer(x, s, subject, a == HV_ACT_GANTT_OP_PREV);
        break;
    case HV_ACT_CANCEL:
    case HV_ACT_GANTT_EXPLAIN:
    case HV_ACT_GANTT_EXPERTS:
        x->on = false;
        break;
    default:
        return false;
    }
    if (x->rank < x->top) {
        x->top = x->rank;
    } else if (shown > 0 && x->rank >= x->top + shown) {
        x->top = x->rank + 1 - shown;
    }
    return true;
}

bool hv_gantt_experts_press(struct hv_gantt_experts *x, const struct hv_gantt_subject *subject,
                            struct hv_rect body, int column, int row)
{
    struct hv_rect strips, box;
    if (!x->ok) {
        return false;
    }
    place(x, subject, body, &strips, &box);
    const struct hv_gantt_strips view = strips_of(x, subject);
    return hv_gantt_strips_hit(&view, strips, column, row, &x->rank, &x->iteration);
}
