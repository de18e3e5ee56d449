/*
 * The critical path of random plans: without gaps, made of what really runs, and marked in lanes
 * and in the row below them, also where lanes are hidden.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "tests/eval_fixture.h"
#include "ui/view/gantt/timeline.h"
#include "ui/view/gantt/waits.h"

enum { PLANS = 100, MOST_STAGES = 6, LAYERS = 24 };

/* A pipeline of 1 to 6 stages on whole or half nodes, its layers cut at random. */
static void random_plan(struct hv_rng *rng, char *out, size_t cap)
{
    static const char *const nodes[] = {"a[0]", "a[1]", "v[0]", "a[2]", "v[1]", "a[3]"};
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1", "1f1b", "zb-h1"};
    int n = 1 + (int)hv_rng_below(rng, MOST_STAGES), from = 0;
    int tp = 1 << hv_rng_below(rng, 3);
    const char *schedule = schedules[hv_rng_below(rng, HV_COUNT(schedules))];
    size_t at = (size_t)snprintf(
        out, cap, "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,\"stages\":[", 8 / tp,
        8 * tp);
    for (int i = 0; i < n; i++) {
        int most = LAYERS - from - 2 * (n - 1 - i);
        int to = i == n - 1 ? LAYERS : from + 2 + (int)hv_rng_below(rng, (uint64_t)(most / 2));
        at += (size_t)snprintf(out + at, cap - at,
                               "%s{\"devices\":\"%s.*\",\"layers\":[%d,%d],\"tp\":%d,\"dp\":%d}",
                               i > 0 ? "," : "", nodes[i], from, to, tp, 8 / tp);
        from = to;
    }
    (void)snprintf(out + at, cap - at, "]}],\"schedule\":{\"name\":\"%s\"}", schedule);
}

/* ---- the path itself ---- */

/* The operation's span in the compute lane of a row. */
static const struct hv_span *span_of(const struct hv_timeline *t, int32_t row, int32_t id)
{
    const struct hv_lane *l = &t->lanes.items[t->rows[row].compute_lane];
    for (size_t i = 0; i < l->n_spans; i++) {
        if (l->spans[i].id == id) {
            return &l->spans[i];
        }
    }
    fail_msg("operation %d is not in row %d", id, row);
    return NULL;
}

/* A transfer from one row to another ends at a time. */
static bool arrives(const struct hv_timeline *t, int32_t from, int32_t to, double at_s)
{
    for (size_t k = 0; k < t->n_links; k++) {
        const struct hv_timeline_link *link = &t->links[k];
        const struct hv_lane *l = &t->lanes.items[link->lane];
        if (link->from_row != (size_t)from || link->to_row != (size_t)to) {
            continue;
        }
        for (size_t i = 0; i < l->n_spans; i++) {
            if (fabs(l->spans[i].end_s - at_s) <= 1e-9 * t->end_s) {
                return true;
            }
        }
    }
    return false;
}

static void check_path(const struct hv_timeline *t)
{
    const struct hv_lane *path = &t->path.lanes.items[0];
    double at_s = 0, sum_s = t->path.links_s;
    size_t n_ops = 0, n_critical = 0;
    for (size_t i = 0; i < path->n_spans; i++) {
        const struct hv_span *s = &path->spans[i];
        assert_true(s->start_s == at_s && s->end_s > s->start_s);
        at_s = s->end_s;
        if (s->id >= 0) {
            const struct hv_span *op = span_of(t, s->group, s->id);
            assert_true(op->start_s == s->start_s && op->end_s >= s->end_s);
            assert_true(t->ops[s->id].critical && (op->flags & HV_SPAN_CRITICAL));
            n_ops++;
        } else if (s->group < 0) {
            assert_true(i > 0 && i + 1 < path->n_spans);
            assert_true(arrives(t, s[-1].group, s[1].group, s->end_s));
        }
    }
    assert_true(at_s == t->end_s);
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct hv_lane *l = &t->lanes.items[t->rows[i].compute_lane];
        sum_s += t->path.row_s[i];
        for (size_t k = 0; k < l->n_spans; k++) {
            const struct hv_timeline_op *op = &t->ops[l->spans[k].id];
            n_critical += op->critical && op->micro_batch >= 0;
        }
    }
    assert_true(fabs(sum_s - t->end_s) <= 1e-9 * t->end_s);
    assert_int_equal(n_critical, n_ops); /* no other operation is marked */
}

/* What an operation of the path waited for came when it began: an operation of its row that ended
 * then, or a result that arrived then; and there one of those that wait for it is this one. */
static void check_waits(const struct hv_timeline *t)
{
    const struct hv_lane *path = &t->path.lanes.items[0];
    double same_s = 1e-9 * t->end_s;
    for (size_t i = 1; i < path->n_spans; i++) {
        const struct hv_span *p = &path->spans[i];
        if (p->id < 0) {
            continue;
        }
        const struct hv_span *s = span_of(t, p->group, p->id);
        struct hv_gantt_waits w = hv_gantt_waits_for(t, (size_t)p->group, s);
        const struct hv_gantt_end *e = hv_gantt_first_end(&w);
        assert_non_null(e);
        assert_true(e->spare_s <= same_s);
        assert_true(fabs(e->span->end_s + e->hop_s - s->start_s) <= same_s);
        struct hv_gantt_waits back = hv_gantt_lets_start(t, e->row, e->span);
        assert_true((back.here.span == s && back.here.row == (size_t)p->group) ||
                    (back.other.span == s && back.other.row == (size_t)p->group));
    }
}

static void paths_have_no_gaps(void **state)
{
    struct hv_rng rng;
    hv_rng_seed(&rng, 12);
    for (int i = 0; i < PLANS; i++) {
        struct hv_arena a = {0};
        char text[2048];
        random_plan(&rng, text, sizeof text);
        struct hv_verdict v = judge(*state, &a, true, text);
        if (v.timeline == NULL) {
            fail_msg("plan %d: %s", i, v.findings.items[0].text);
        }
        check_path(v.timeline);
        check_waits(v.timeline);
        hv_arena_free(&a);
    }
}

/* ---- the path as drawn ---- */

/* The name of who holds most of [t0, t1), by a sum over all pieces; 0 where two hold nearly as
 * much. */
static char holder(const struct hv_timeline *t, double t0, double t1)
{
    const struct hv_lane *path = &t->path.lanes.items[0];
    double held[MOST_STAGES + 1] = {0}; /* the last: transfers */
    size_t best = 0;
    for (size_t i = 0; i < path->n_spans; i++) {
        const struct hv_span *s = &path->spans[i];
        double part = fmin(s->end_s, t1) - fmax(s->start_s, t0);
        held[s->group < 0 ? MOST_STAGES : s->group] += fmax(0, part);
    }
    for (size_t i = 1; i <= MOST_STAGES; i++) {
        best = held[i] > held[best] ? i : best;
    }
    for (size_t i = 0; i <= MOST_STAGES; i++) {
        if (i != best && held[i] > held[best] - 1e-6 * (t1 - t0)) {
            return 0;
        }
    }
    return best == MOST_STAGES ? '~' : (char)('0' + best);
}

static void check_row(const struct hv_timeline *t, const struct hv_gantt_state *st,
                      const struct hv_grid *g, const struct hv_gantt_places *p)
{
    double column_s = (st->t1_s - st->t0_s) / p->critical.w;
    assert_int_equal(p->critical.h, 1);
    for (int i = 0; i < p->critical.w; i++) {
        char want = holder(t, st->t0_s + i * column_s, st->t0_s + (i + 1) * column_s);
        char got = g->cells[p->critical.y * g->w + p->critical.x + i].utf8[0];
        if (want != 0 && got != want) {
            fail_msg("column %d: the path is held by '%c', drawn is '%c'", i, want, got);
        }
    }
}

/* In a lane whose operations are told apart: every critical one that has two columns or more is
 * underlined there, and nothing is where none is near. Returns how many were. */
static size_t check_marks(const struct hv_timeline *t, size_t row, const struct hv_gantt_state *st,
                          const struct hv_grid *g, struct hv_rect lane)
{
    const struct hv_lane *l = &t->lanes.items[t->rows[row].compute_lane];
    bool near[300] = {false};
    double per_s = lane.w / (st->t1_s - st->t0_s);
    size_t n = 0;
    for (size_t i = 0; i < l->n_spans; i++) {
        double from = (l->spans[i].start_s - st->t0_s) * per_s;
        double to = (l->spans[i].end_s - st->t0_s) * per_s;
        if (!t->ops[l->spans[i].id].critical || to <= 0 || from >= lane.w) {
            continue;
        }
        int first = (int)fmax(0, floor(from)), last = (int)fmin(lane.w, ceil(to));
        bool marked = false;
        for (int c = first; c < last; c++) {
            marked |= (g->cells[lane.y * g->w + lane.x + c].style & HV_STYLE_UNDERLINE) != 0;
        }
        for (int c = first > 0 ? first - 1 : 0; c <= last && c < lane.w; c++) {
            near[c] = true;
        }
        assert_true(marked || last - first < 3);
        n += marked;
    }
    for (int c = 0; c < lane.w; c++) {
        bool link =
            (g->cells[lane.y * g->w + lane.x + c].style & HV_STYLE_ID_MASK) == HV_STYLE_OP_COMM;
        bool marked = (g->cells[lane.y * g->w + lane.x + c].style & HV_STYLE_UNDERLINE) != 0;
        assert_true(!marked || near[c] || link);
    }
    return n;
}

/* A window of a plan on a grid that may be too low for all lanes, scrolled to one of them. */
static size_t check_view(const struct hv_timeline *t, double t0, double t1, int h, size_t lane)
{
    struct hv_gantt_source src = hv_gantt_timeline_source(t);
    struct hv_gantt_state st;
    struct hv_grid g = {0};
    size_t n = 0;
    hv_gantt_init(&st, &src);
    st.show_memory = st.show_cursor = false;
    st.t0_s = t0;
    st.t1_s = t1;
    st.lane = lane;
    struct hv_rect r = {0, 0, 160, h};
    hv_grid_resize(&g, r.w, r.h);
    hv_gantt_draw(&st, &src, &g, r);
    struct hv_gantt_places p = hv_gantt_layout(&st, &src, r);
    check_row(t, &st, &g, &p);
    for (size_t k = 0; k < p.n_shown && t1 - t0 < t->end_s / 20;
         k++) { /* wide enough to be told apart */
        n += check_marks(
            t, hv_gantt_lane_at(&st, &p, k), &st, &g,
            (struct hv_rect){p.chart.x, p.chart.y + (int)k * p.rows_per_lane, p.chart.w, 1});
    }
    hv_grid_free(&g);
    return n;
}

static void the_path_is_marked(void **state)
{
    struct hv_rng rng;
    size_t n_marked = 0;
    hv_rng_seed(&rng, 13);
    for (int i = 0; i < PLANS; i++) {
        struct hv_arena a = {0};
        char text[2048];
        random_plan(&rng, text, sizeof text);
        struct hv_verdict v = judge(*state, &a, true, text);
        const struct hv_timeline *t = v.timeline;
        assert_non_null(t);
        size_t lane = (size_t)hv_rng_below(&rng, t->n_rows);
        (void)check_view(t, 0, t->end_s, 24, lane);
        double t0 = hv_rng_double(&rng) * 0.9 * t->end_s;
        n_marked += check_view(t, t0, t0 + 0.04 * t->end_s, 24, lane);
        n_marked += check_view(t, t0, t0 + 0.04 * t->end_s, 6, lane); /* three lanes are shown */
        hv_arena_free(&a);
    }
    assert_true(n_marked > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(paths_have_no_gaps),
                                       cmocka_unit_test(the_path_is_marked)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
