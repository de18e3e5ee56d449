/** Text about the operation at the Gantt cursor. Does not change the view. */
#include "ui/screens/gantt/panel.h"

#include <math.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/eval/timeline/ring_text.h"
#include "ui/screens/facts/details.h"
#include "ui/view/gantt/timeline.h"
#include "ui/view/gantt/waits.h"
#include "ui/view/grid/layout.h"

/* Rows from which on there is room for more lines than an operation has. */
enum { WRAP_H = 8 };
/* Lines below the steps of a ring that go before them: memory, stage, plan. */
enum { RING_BELOW = 5 };

/** Lines of text are put one below the other. */
struct pen {
    struct hv_grid *g;
    struct hv_rect r;
    int line;
};

static void put_row(struct pen *p, unsigned style, const char *text)
{
    if (p->line < p->r.h) {
        hv_grid_put_field(p->g, (struct hv_rect){p->r.x, p->r.y + p->line, p->r.w, 1}, HV_LEFT,
                          text, style);
    }
    p->line++;
}

/** A line of words; wrapped where the panel is high enough for more lines than there are. */
static void put_line(struct pen *p, unsigned style, struct hv_str *text)
{
    const char *at = hv_str_cstr(text);
    struct hv_str row = {0};
    while (p->r.h >= WRAP_H && !p->g->plain && hv_text_width(at) > p->r.w) {
        size_t n = hv_text_wrap(at, p->r.w);
        hv_str_clear(&row);
        hv_str_add(&row, at, n);
        put_row(p, style, hv_str_cstr(&row));
        at += n + (at[n] == ' ');
    }
    put_row(p, style, at);
    hv_str_free(&row);
    hv_str_clear(text);
}

static const struct hv_timeline *timeline_of(const struct hv_gantt_subject *s)
{
    return s->facts.verdict->timeline;
}

static const struct hv_timeline_track *lane_track(const struct hv_gantt_subject *s)
{
    return &s->tracks->items[s->view->lane];
}

static const struct hv_timeline_row *lane_row(const struct hv_gantt_subject *s)
{
    return &timeline_of(s)->rows[lane_track(s)->row];
}

/** The GPUs that the cursor's line is about, NULL = all of the row. */
static const struct hv_timeline_part *lane_part(const struct hv_gantt_subject *s)
{
    const struct hv_timeline_track *x = lane_track(s);
    return x->kind == HV_TRACK_PART ? &lane_row(s)->parts[x->index] : NULL;
}

static const char *lane_name(const struct hv_gantt_subject *s)
{
    const struct hv_timeline_part *part = lane_part(s);
    return part != NULL ? part->name + strspn(part->name, " ") : lane_row(s)->name;
}

/** "s1 a[0].0-7" cut to the stage, "r0 s1" where there are replicas. */
static void add_stage_name(const char *name, struct hv_str *out)
{
    size_t n = strcspn(name, " ");
    n += name[0] == 'r' && name[n] == ' ' ? 1 + strcspn(name + n + 1, " ") : 0;
    hv_str_add(out, name, n);
}

/** "f3", or the kind's letter where there is no micro-batch. */
static void add_op(const struct hv_timeline_op *op, struct hv_str *out)
{
    hv_str_adds(out, hv_span_kind_letter((enum hv_span_kind)op->kind));
    if (op->micro_batch >= 0) {
        hv_str_addf(out, "%d", (int)op->micro_batch);
    }
}

static bool get_op(const struct hv_gantt_subject *s, struct hv_gantt_span *span,
                   const struct hv_timeline_op **op)
{
    if (!hv_gantt_at_cursor(s->view, &s->src, span)) {
        return false;
    }
    *op = hv_gantt_timeline_op(timeline_of(s), span);
    return *op != NULL;
}

const struct hv_span *hv_gantt_compute_at_cursor(const struct hv_gantt_subject *s)
{
    enum hv_track_kind kind = lane_track(s)->kind;
    const struct hv_lane *l = &timeline_of(s)->lanes.items[lane_row(s)->compute_lane];
    int32_t i = kind == HV_TRACK_ALL || kind == HV_TRACK_COMPUTE || kind == HV_TRACK_PART
                    ? hv_lane_at(l, s->view->cursor_s)
                    : -1;
    return i >= 0 ? &l->spans[i] : NULL;
}

void hv_gantt_cursor_text(const struct hv_gantt_subject *s, struct hv_str *out)
{
    struct hv_gantt_span span;
    const struct hv_timeline_op *op = NULL;
    if (get_op(s, &span, &op)) {
        add_op(op, out);
    } else {
        hv_str_adds(out, "idle");
    }
    hv_str_adds(out, " of ");
    add_stage_name(lane_row(s)->name, out);
    if (lane_track(s)->kind == HV_TRACK_HOPS) {
        const struct hv_timeline_link *k = &timeline_of(s)->links[lane_track(s)->index];
        hv_str_adds(out, " to ");
        add_stage_name(hv_timeline_end(timeline_of(s), k, true), out);
    }
}

/** When the operation at the cursor began: transfers that overlap are drawn one behind the other.
 */
static double began_s(const struct hv_gantt_subject *s, const struct hv_gantt_span *span,
                      const struct hv_timeline_op *op)
{
    return op->kind == HV_SPAN_HOP ? span->end_s - timeline_of(s)->hops[op->paired].seconds
                                   : span->start_s;
}

/** Source, destination, content and bandwidth of a transfer. */
static void put_hop(struct pen *p, const struct hv_gantt_subject *s,
                    const struct hv_timeline_op *op, struct hv_str *text)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    const struct hv_timeline *t = timeline_of(s);
    const struct hv_timeline_hop *hop = &t->hops[op->paired];
    const struct hv_timeline_link *k = &t->links[hop->i_link];
    hv_str_addf(text, "from %s to %s", hv_timeline_end(t, k, false), hv_timeline_end(t, k, true));
    put_line(p, HV_STYLE_TEXT, text);
    hv_str_addf(text, "%s of %s, %s", hv_fmt_bytes(a, sizeof a, hop->bytes),
                hop->backward ? "gradients" : "activations",
                hv_fmt_si(b, sizeof b, hop->bytes / hop->seconds, "B/s"));
    put_line(p, HV_STYLE_TEXT, text);
}

/** How long the GPUs of this line wait for the slowest of their stage. */
static void put_wait(struct pen *p, const struct hv_gantt_subject *s,
                     const struct hv_gantt_span *span, struct hv_str *text)
{
    char a[HV_FMT_CAP];
    const struct hv_lane *lane = &timeline_of(s)->lanes.items[lane_row(s)->compute_lane];
    int32_t i = hv_lane_at(lane, span->start_s);
    double wait = i >= 0 ? lane->spans[i].end_s - span->end_s : 0;
    if (lane_part(s) != NULL) {
        hv_str_addf(text,
                    wait > 0 ? "then waits %s for the slowest GPUs of its stage"
                             : "the slowest GPUs of the stage",
                    hv_fmt_seconds(a, sizeof a, wait));
        put_line(p, HV_STYLE_TEXT, text);
    }
}

/** "f5 here", "b4 of s3 + 2 ms transfer", with how much earlier or later than needed. */
static void add_end(const struct hv_gantt_subject *s, const struct hv_gantt_end *e, bool back,
                    struct hv_str *text)
{
    char a[HV_FMT_CAP];
    if (e->span == NULL) {
        return;
    }
    hv_str_adds(text, "   ");
    add_op(&timeline_of(s)->ops[e->span->id], text);
    if (e->hop_s > 0) {
        hv_str_adds(text, " of ");
        add_stage_name(timeline_of(s)->rows[e->row].name, text);
        hv_str_addf(text, back ? " + %s transfer" : " after %s transfer",
                    hv_fmt_seconds(a, sizeof a, e->hop_s));
    } else {
        hv_str_adds(text, " here");
    }
    if (e->spare_s > 1e-9 * timeline_of(s)->end_s) {
        hv_str_addf(text, back ? " (%s before)" : " (%s later)",
                    hv_fmt_seconds(a, sizeof a, e->spare_s));
    } else if (back) {
        hv_str_adds(text, " (came last)");
    }
}

/** What the operation waited for and what waits for it. */
static void put_waits(struct pen *p, const struct hv_gantt_subject *s, struct hv_str *text)
{
    const struct hv_span *span = hv_gantt_compute_at_cursor(s);
    size_t row = lane_track(s)->row;
    for (int back = 1; span != NULL && back >= 0; back--) {
        struct hv_gantt_waits w = back ? hv_gantt_waits_for(timeline_of(s), row, span)
                                       : hv_gantt_lets_start(timeline_of(s), row, span);
        const struct hv_gantt_end *first = hv_gantt_first_end(&w);
        hv_str_adds(text, back ? "waits for" : "blocks   ");
        if (first == NULL) {
            hv_str_adds(text, "   nothing");
        } else {
            add_end(s, first, back, text);
            add_end(s, first == &w.here ? &w.other : &w.here, back, text);
        }
        put_line(p, HV_STYLE_TEXT, text);
    }
}

/** Degrees of the stage, where they are above one, and the chunk of the operation. */
static void add_degrees(const struct hv_gantt_subject *s, const struct hv_timeline_op *op,
                        struct hv_str *text)
{
    const struct hv_plan *plan = s->facts.plan;
    const struct hv_timeline_row *row = lane_row(s);
    if (plan == NULL || row->replica >= plan->n_replicas ||
        row->stage >= plan->replicas[row->replica].n_stages) {
        return;
    }
    const struct hv_replica *r = &plan->replicas[row->replica];
    const struct hv_stage *g = &r->stages[row->stage];
    hv_str_addf(text, "  tp %d", g->tp.degree);
    if (g->cp.degree > 1) {
        hv_str_addf(text, " cp %d", g->cp.degree);
    }
    if (g->ep > 1) {
        hv_str_addf(text, " ep %d", g->ep);
    }
    hv_str_addf(text, " dp %d", g->dp);
    if (g->n_ranges > 1 && op->stage >= 0) {
        hv_str_addf(text, "  chunk %d of %zu", op->stage / (int)r->n_stages + 1, g->n_ranges);
    }
}

/** The ring inside a pass: which hop shows, and its steps where there is room for all of them. */
static void put_ring(struct pen *p, const struct hv_gantt_subject *s,
                     const struct hv_timeline_op *op, struct hv_str *text)
{
    bool forward = op->kind == HV_SPAN_F;
    const struct hv_timeline_row *row = lane_row(s);
    const struct hv_plan *plan = s->facts.plan;
    bool in_plan = plan != NULL && row->replica < plan->n_replicas && op->stage >= 0;
    int chunk = in_plan ? op->stage / (int)plan->replicas[row->replica].n_stages : -1;
    if (!forward && op->kind != HV_SPAN_B && op->kind != HV_SPAN_BW) {
        return;
    }
    const struct hv_timeline_ring *x =
        hv_timeline_ring_most(row, forward ? HV_RING_FORWARD : HV_RING_BACKWARD, chunk);
    if (x == NULL) {
        return;
    }
    hv_timeline_ring_text(x, text);
    put_line(p, HV_STYLE_TEXT, text);
    bool room = p->r.h - p->line >= (int)x->ring->n + RING_BELOW;
    for (size_t i = 0; room && i < x->ring->n; i++) {
        hv_str_adds(text, " ");
        hv_timeline_ring_step_text(x, i, text);
        put_line(p, HV_STYLE_DIM, text);
    }
}

static void put_op(struct pen *p, const struct hv_gantt_subject *s,
                   const struct hv_gantt_span *span, const struct hv_timeline_op *op,
                   struct hv_str *text)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    add_op(op, text);
    hv_str_addf(text, "  %s", hv_span_kind_text((enum hv_span_kind)op->kind));
    if (op->micro_batch >= 0) {
        hv_str_addf(text, " of micro-batch %d", (int)op->micro_batch);
    }
    if (op->slice > 0) {
        hv_str_addf(text, " slice %d", (int)op->slice);
    }
    if (!hv_span_is_transfer(op->kind)) {
        hv_str_addf(text, "  %s  %s", lane_name(s), lane_row(s)->layers);
        add_degrees(s, op, text);
    }
    put_line(p, HV_STYLE_TITLE, text);
    double start_s = began_s(s, span, op);
    hv_str_addf(text, "start %s  end %s  lasts %s", hv_fmt_seconds(a, sizeof a, start_s),
                hv_fmt_seconds(b, sizeof b, span->end_s),
                hv_fmt_seconds(c, sizeof c, span->end_s - start_s));
    if (op->critical) {
        hv_str_adds(text, "  ^ on the critical path");
    } else if (hv_known(op->slack_s) && isfinite(op->slack_s)) {
        hv_str_addf(text, "  slack %s", hv_fmt_seconds(a, sizeof a, op->slack_s));
    }
    put_line(p, op->critical ? HV_STYLE_CRITICAL : HV_STYLE_TEXT, text);
    if (hv_span_is_transfer(op->kind)) {
        put_hop(p, s, op, text);
    } else {
        put_waits(p, s, text);
        put_wait(p, s, span, text);
        put_ring(p, s, op, text);
    }
}

static void add_neighbour(const struct hv_gantt_subject *s, const struct hv_gantt_span *span,
                          const char *where, struct hv_str *text)
{
    const struct hv_timeline_op *op = hv_gantt_timeline_op(timeline_of(s), span);
    if (op != NULL) {
        hv_str_addf(text, "  %s ", where);
        add_op(op, text);
    }
}

static void put_idle(struct pen *p, const struct hv_gantt_subject *s, struct hv_str *text)
{
    char a[HV_FMT_CAP];
    const struct hv_gantt_state *v = s->view;
    struct hv_gantt_span before = {0}, after = {0};
    bool has_before = s->src.prev(s->src.ctx, v->lane, v->cursor_s, &before);
    bool has_after = s->src.next(s->src.ctx, v->lane, v->cursor_s, &after);
    double from = has_before ? before.end_s : 0, to = has_after ? after.start_s : s->src.end_s;
    hv_str_addf(text, "idle for %s", hv_fmt_seconds(a, sizeof a, to - from));
    put_line(p, HV_STYLE_TITLE, text);
    hv_str_addf(text, "at %s", hv_fmt_seconds(a, sizeof a, v->cursor_s));
    if (has_before) {
        add_neighbour(s, &before, "after", text);
    }
    if (has_after) {
        add_neighbour(s, &after, "before", text);
    }
    put_line(p, HV_STYLE_TEXT, text);
}

static void put_area(struct pen *p, const struct hv_gantt_subject *s, struct hv_str *text)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], d[HV_FMT_CAP];
    const struct hv_gantt_state *v = s->view;
    double from = fmin(v->mark_s, v->cursor_s), to = fmax(v->mark_s, v->cursor_s), all = 0, n = 0;
    const double at_s[] = {from, to};
    struct hv_gantt_cover here = {0}, lane = {0};
    if (!hv_known(v->mark_s) || !(to > from)) {
        return;
    }
    s->src.columns(s->src.ctx, v->lane, at_s, 1, &here);
    for (size_t i = 0; i < s->src.n_lanes; i++) {
        enum hv_track_kind kind = s->tracks->items[i].kind;
        if (kind == HV_TRACK_ALL || kind == HV_TRACK_COMPUTE) {
            s->src.columns(s->src.ctx, i, at_s, 1, &lane);
            all += lane.busy_frac;
            n++;
        }
    }
    hv_str_addf(text, "area %s: this lane busy %s, idle %s; all stages busy %s",
                hv_fmt_seconds(a, sizeof a, to - from),
                hv_fmt_seconds(b, sizeof b, here.busy_frac * (to - from)),
                hv_fmt_seconds(c, sizeof c, (1 - here.busy_frac) * (to - from)),
                hv_fmt_percent(d, sizeof d, all / n));
    put_line(p, HV_STYLE_MARKED, text);
}

static void put_memory(struct pen *p, const struct hv_gantt_subject *s, struct hv_str *text)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    const struct hv_timeline_row *row = lane_row(s);
    const struct hv_verdict *v = s->facts.verdict;
    const struct hv_timeline_part *part = lane_part(s);
    double now = hv_steps_at(part ? &part->memory : &row->memory, s->view->cursor_s);
    double limit = part ? part->memory_limit_bytes : row->memory_limit_bytes;
    hv_str_addf(text, "memory now %s of %s (%s)", hv_fmt_bytes(a, sizeof a, now),
                hv_fmt_bytes(b, sizeof b, limit), hv_fmt_percent(c, sizeof c, now / limit));
    for (size_t i = 0; i < v->n_memory; i++) {
        const struct hv_stage_memory *m = &v->memory[i];
        if (part == NULL && m->replica == row->replica && m->stage == row->stage) {
            hv_str_addf(text, ", peak %s, %d in flight", hv_fmt_bytes(a, sizeof a, m->peak_bytes),
                        m->in_flight);
        }
    }
    put_line(p, now > limit ? HV_STYLE_MEMORY_OVER : HV_STYLE_TEXT, text);
}

static void put_stage(struct pen *p, const struct hv_gantt_subject *s, struct hv_str *text)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], d[HV_FMT_CAP];
    const struct hv_timeline_row *row = lane_row(s);
    const struct hv_verdict *v = s->facts.verdict;
    for (size_t i = 0; i < v->n_stages; i++) {
        const struct hv_stage_metrics *m = &v->stages[i];
        if (m->replica != row->replica || m->stage != row->stage) {
            continue;
        }
        hv_str_addf(text, "busy %s, per micro-batch forward %s backward %s",
                    hv_fmt_percent(a, sizeof a, m->busy_frac),
                    hv_fmt_seconds(b, sizeof b, m->forward_s),
                    hv_fmt_seconds(c, sizeof c, m->backward_s));
        if (m->hop_s > 0) {
            hv_str_addf(text, ", transfer %s", hv_fmt_seconds(d, sizeof d, m->hop_s));
        }
        if (row->multiplicity > 1) {
            hv_str_addf(text, ", drawn once for %d equal pipelines", row->multiplicity);
        }
        put_line(p, HV_STYLE_TEXT, text);
    }
}

static void put_plan(struct pen *p, const struct hv_gantt_subject *s, struct hv_str *text)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    const struct hv_metrics *m = &s->facts.verdict->metrics;
    hv_plan_trouble(s->facts.row, s->facts.verdict, text);
    if (text->n > 0) {
        put_line(p, HV_STYLE_WARNING, text);
    }
    hv_str_addf(text, "%s tokens/s, MFU %s, gap to the bound %s",
                hv_fmt_count(a, sizeof a, m->tokens_per_s), hv_fmt_percent(b, sizeof b, m->mfu),
                hv_fmt_percent(c, sizeof c, m->gap_frac));
    put_line(p, HV_STYLE_TEXT, text);
    hv_str_adds(text, "f forward  b backward  w weight gradient  r recompute  c transfer, reduction"
                      "  o optimizer  . idle");
    put_line(p, HV_STYLE_DIM, text);
}

void hv_gantt_panel_draw(const struct hv_gantt_subject *s, struct hv_grid *g, struct hv_rect r)
{
    struct hv_str title = {0}, text = {0};
    struct hv_rect left = r, right = {0};
    if (r.w >= HV_THREE_W) {
        left.w = r.w * 3 / 5;
        right = (struct hv_rect){r.x + left.w, r.y, r.w - left.w, r.h};
    }
    hv_str_adds(&title, "At cursor: ");
    hv_gantt_cursor_text(s, &title);
    hv_grid_box(g, left, hv_str_cstr(&title), false, HV_STYLE_FRAME);
    struct pen p = {g, hv_rect_inner(left), 0};
    struct hv_gantt_span span;
    const struct hv_timeline_op *op = NULL;
    if (get_op(s, &span, &op)) {
        put_op(&p, s, &span, op, &text);
    } else {
        put_idle(&p, s, &text);
    }
    put_area(&p, s, &text);
    put_memory(&p, s, &text);
    put_stage(&p, s, &text);
    put_plan(&p, s, &text);
    if (right.w > 0) {
        hv_grid_box(g, right, s->facts.row->name, false, HV_STYLE_FRAME);
        hv_plan_details_draw(&s->facts, 0, g, hv_rect_inner(right));
    }
    hv_str_free(&title);
    hv_str_free(&text);
}
