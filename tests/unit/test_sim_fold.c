/* Folded runs beside the same runs laid out in full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/sim/pipeline/fold.h"
#include "tests/sim_fixture.h"

enum { RANKS = 8, STAGES = 4 * RANKS };

/* one schedule at random sizes, priced at random */
struct world {
    struct hv_schedule_input in;
    double stage_s[STAGES * HV_OP_KIND_N], hop_s[8 * STAGES], rank_scale[RANKS];
    double act[STAGES], kept[STAGES], limits[RANKS];
    struct hv_pipe_cost cost;
};

/* options, sizes and prices; every third world has no hops, every fourth equal stages, so that
 * there are ties */
static void draw(struct world *w, const struct hv_schedule_row *row, struct hv_rng *r, int round)
{
    int32_t p = 2 * (1 + (int32_t)hv_rng_below(r, RANKS / 2));
    hv_schedule_input_init(&w->in, row, p, 1);
    for (size_t i = 0; i < row->n_options; i++) {
        const struct hv_schedule_option *o = &row->options[i];
        int64_t most = o->max < o->min + 5 ? o->max : o->min + 5;
        if (hv_rng_below(r, 3) == 0) {
            w->in.options[i] = o->min + (int64_t)hv_rng_below(r, (uint64_t)(most - o->min + 1));
        }
    }
    w->in.chunks = hv_schedule_usual_chunks(&w->in);
    if (row->flags & HV_SCHEDULE_CHUNKS && hv_rng_below(r, 2)) {
        w->in.chunks = 2 * (1 + (int32_t)hv_rng_below(r, 2));
    }
    w->in.micro_batches = 2 * p * (int32_t)(20 + hv_rng_below(r, 20));
    if (!(row->flags & HV_SCHEDULE_NEEDS_CHUNKS) && hv_rng_below(r, 2)) {
        w->in.micro_batches += 1 + (int32_t)hv_rng_below(r, (uint64_t)p);
    }
    for (size_t i = 0; i < HV_COUNT(w->stage_s); i++) {
        bool as_first = round % 4 == 0 && i >= HV_OP_KIND_N;
        w->stage_s[i] = as_first ? w->stage_s[i % HV_OP_KIND_N] : some(r, 0.5, 4);
    }
    for (size_t i = 0; i < HV_COUNT(w->hop_s); i++) {
        w->hop_s[i] = round % 3 == 0 ? 0 : some(r, 0, 3);
    }
    for (size_t i = 0; i < RANKS; i++) {
        w->rank_scale[i] = some(r, 1, 2);
    }
    for (size_t i = 0; i < STAGES; i++) {
        w->act[i] = (double)(1 + hv_rng_below(r, 100));
        w->kept[i] = (double)hv_rng_below(r, (uint64_t)w->act[i] + 1);
    }
    for (size_t i = 0; i < RANKS; i++) {
        w->limits[i] = (double)(2 + hv_rng_below(r, 2 * RANKS));
    }
    w->in.limits = round % 7 == 0 && row->flags & HV_SCHEDULE_BY_MEMORY ? w->limits : NULL;
    w->cost = (struct hv_pipe_cost){
        .stage_s = w->stage_s, .hop_s = w->hop_s, .rank_scale = round % 5 ? NULL : w->rank_scale};
}

/* peaks of memory and of micro-batches in flight are those of the whole */
static void check_memory(const struct world *w, const struct fixture *x, const struct hv_fold *f)
{
    double start[STAGES * HV_OP_KIND_N], end[STAGES * HV_OP_KIND_N];
    struct hv_pipe_memory mem = {.start_bytes = start, .end_bytes = end};
    struct hv_pipe_peak want[RANKS], got[RANKS];
    int32_t want_n[RANKS], got_n[RANKS];
    hv_pipe_memory_simple(&x->s, w->act, w->kept, NULL, start, end);
    hv_pipe_peaks(&x->g, &x->run, &mem, want);
    hv_pipe_peaks(&f->g, &f->run, &mem, got);
    hv_schedule_peak_inflight(&x->s, want_n);
    hv_schedule_peak_inflight(&f->s, got_n);
    for (int32_t k = 0; k < x->s.n_ranks; k++) {
        NEAR(got[k].peak_bytes, want[k].peak_bytes);
        NEAR(got[k].peak_at_s, want[k].peak_at_s);
        NEAR(got[k].end_bytes, 0);
        assert_int_equal(got_n[k], want_n[k]);
    }
}

/* sums, idle time by cause, and where the first and the last operations lie */
static void check_whole(const struct fixture *x, const struct hv_fold *f)
{
    struct hv_pipe_rank want[RANKS];
    hv_pipe_idle(&x->g, &x->cost, &x->run, want);
    assert_int_equal(f->s.n_micro_batches + f->more, x->s.n_micro_batches);
    NEAR(f->run.makespan_s, x->run.makespan_s);
    NEAR(f->run.longest_span_s, x->run.longest_span_s);
    NEAR(f->run.busy_s, x->run.busy_s);
    NEAR(f->run.bubble_frac, x->run.bubble_frac);
    NEAR(f->run.span_bubble_frac, x->run.span_bubble_frac);
    for (int32_t k = 0; k < x->s.n_ranks; k++) {
        const double *a = &f->idle[k].busy_s, *b = &want[k].busy_s;
        for (size_t i = 0; i < sizeof want[k] / sizeof *a; i++) {
            assert_true(fabs(a[i] - b[i]) <= 1e-9 * x->run.makespan_s);
        }
        for (int32_t i = 0; i < 12; i++) {
            int32_t n = f->g.rank_node_at[k], m = x->g.rank_node_at[k];
            NEAR(f->run.node_start_s[n + i], x->run.node_start_s[m + i]);
            n = f->g.rank_node_at[k + 1] - 1 - i;
            m = x->g.rank_node_at[k + 1] - 1 - i;
            NEAR(f->run.node_end_s[n], x->run.node_end_s[m]);
        }
    }
}

/* every schedule at random sizes, options, unequal stages and hops: what is folded is as what is
 * laid out; those whose middle repeats are folded nearly always, those that cannot be say why */
static void folded_as_laid_out(void **state)
{
    (void)state;
    size_t n_rows, n_folded = 0, n_refused = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n_rows);
    struct hv_rng r;
    hv_rng_seed(&r, 41);
    for (int i = 0; i < 5000; i++) {
        struct world w;
        struct fixture x = {0};
        struct hv_fold f;
        struct hv_err err = {0};
        draw(&w, &rows[(size_t)i % n_rows], &r, i);
        if (hv_schedule_fold(&x.a, &w.in, &w.cost, w.in.micro_batches, &f, &err) != HV_OK) {
            assert_true(err.text[0] != '\0');
            n_refused++;
        } else {
            assert_int_equal(hv_schedule_make(&x.a, &w.in, &x.s, NULL), HV_OK);
            assert_int_equal(hv_pipe_compile(&x.a, &x.s, &x.g, NULL), HV_OK);
            x.cost = w.cost;
            hv_pipe_run_new(&x.a, &x.g, &x.run);
            hv_pipe_time(&x.g, &x.cost, &x.run);
            check_whole(&x, &f);
            check_memory(&w, &x, &f);
            n_folded++;
        }
        hv_arena_free(&x.a);
    }
    assert_true(n_folded > 2000 && n_refused > 500);
}

/* by hand: 1F1B on two ranks, f = 1, b = 2, takes (m + p - 1)(f + b) for whatever m */
static void a_million_million(void **state)
{
    (void)state;
    static const double stage_s[2 * HV_OP_KIND_N] = {1, 1, 1, 2, 1, 1, 1, 1, 2, 1};
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct hv_arena a = {0};
    struct hv_fold f;
    struct hv_err err;
    int64_t m = 1000000000001;
    assert_int_equal(hv_schedule_find("1f1b", &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, 2, 1);
    struct hv_pipe_cost cost = {.stage_s = stage_s};
    assert_int_equal(hv_schedule_fold(&a, &in, &cost, m, &f, NULL), HV_OK);
    assert_true(f.run.makespan_s == 3 * ((double)m + 1));
    assert_true(f.idle[0].busy_s == 3 * (double)m);
    assert_true(f.idle[1].warmup_s == 1 && f.idle[1].cooldown_s == 2 && f.idle[1].steady_s == 0);
    assert_int_equal(f.more + f.s.n_micro_batches, m);
    assert_int_equal(hv_schedule_find("varuna", &row, NULL), HV_OK); /* recomputes on rank 0 only */
    hv_schedule_input_init(&in, row, 2, 1);
    assert_int_equal(hv_schedule_fold(&a, &in, &cost, m, &f, NULL), HV_OK);
    assert_int_equal(f.more + f.s.n_micro_batches, m);
    assert_true(fabs(f.idle[0].busy_s - 4 * (double)m) <= 10);
    assert_true(f.idle[1].busy_s == 3 * (double)m);
    assert_int_equal(hv_schedule_find("gpipe", &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, 2, 1);
    assert_int_equal(hv_schedule_fold(&a, &in, &cost, m, &f, &err), HV_ENO);
    assert_string_equal(err.text,
                        "schedule gpipe with p = 2: the middle of its order does not repeat");
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(folded_as_laid_out),
                                       cmocka_unit_test(a_million_million)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
