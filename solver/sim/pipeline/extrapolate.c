/*
 * Time of very many micro-batches from few: by folding where it is proven exact (fold.c), otherwise
 * by the period of the steady state (steady.c).
 */
#include "solver/sim/pipeline/steady.h"

#include "solver/base/whole.h"
#include "solver/sim/pipeline/fold.h"

#include <math.h>

/* Stages × micro-batches up to which larger and larger numbers are laid out: some hundredths of a
 * second. */
#define EXTRAPOLATE_CELLS 100000

static enum hv_status makespan_of(struct hv_schedule_input in, const struct hv_pipe_cost *c,
                                  int64_t m, double *out_s, struct hv_steady *steady,
                                  struct hv_err *err)
{
    struct hv_arena a = {0};
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_run run;
    in.micro_batches = (int32_t)m;
    enum hv_status st = hv_schedule_make(&a, &in, &s, err);
    st = st == HV_OK ? hv_pipe_compile(&a, &s, &g, err) : st;
    if (st == HV_OK) {
        hv_pipe_run_new(&a, &g, &run);
        hv_pipe_time(&g, c, &run);
        *out_s = run.makespan_s;
        st = steady ? hv_pipe_steady(&g, c, steady, err) : st;
    }
    hv_arena_free(&a);
    return st;
}

/* sets x->exact to whether the makespan grows by the period from m on, three times in a row, and
 * x->makespan_s to that of m. Steps are multiples of p and of the period, for schedules that need
 * micro-batches in groups */
static enum hv_status is_settled(const struct hv_schedule_input *in, const struct hv_pipe_cost *c,
                                 int64_t m, int64_t step, struct hv_extrapolated *x,
                                 struct hv_err *err)
{
    enum hv_status st = makespan_of(*in, c, m, &x->makespan_s, NULL, err);
    x->exact = true;
    for (int k = 1; k <= 3 && st == HV_OK && x->exact; k++) {
        double t = 0;
        st = makespan_of(*in, c, m + k * step, &t, NULL, err);
        double want = x->makespan_s + (double)(k * step) * x->steady.per_micro_batch_s;
        x->exact = fabs(t - want) <= 1e-9 * want;
    }
    return st;
}

/* the time of p more micro-batches from m on */
static enum hv_status growth_of(const struct hv_schedule_input *in, const struct hv_pipe_cost *c,
                                int64_t m, struct hv_steady *out, struct hv_err *err)
{
    double t[2] = {0};
    enum hv_status st = HV_OK;
    for (int k = 0; k < 2 && st == HV_OK; k++) {
        st = makespan_of(*in, c, m + k * in->ranks, &t[k], NULL, err);
    }
    *out = (struct hv_steady){.micro_batches = in->ranks, .rank = -1};
    out->period_s = t[1] - t[0];
    out->per_micro_batch_s = out->period_s / in->ranks;
    return st;
}

/* sets the time by folding; false: the proof does not hold */
static bool fold(const struct hv_schedule_input *in, const struct hv_pipe_cost *c, int64_t m,
                 struct hv_extrapolated *out)
{
    struct hv_arena a = {0};
    struct hv_fold f;
    bool ok = hv_schedule_fold(&a, in, c, m, &f, NULL) == HV_OK;
    if (ok) {
        *out = (struct hv_extrapolated){.makespan_s = f.run.makespan_s, .exact = true};
        out->from_micro_batches = f.s.n_micro_batches;
        if (hv_pipe_steady(&f.g, c, &out->steady, NULL) != HV_OK) {
            out->steady = (struct hv_steady){.micro_batches = f.step, .rank = -1};
            out->steady.period_s = f.period_s;
            out->steady.per_micro_batch_s = f.period_s / f.step;
        }
    }
    hv_arena_free(&a);
    return ok;
}

enum hv_status hv_schedule_extrapolate(const struct hv_schedule_input *in,
                                       const struct hv_pipe_cost *c, int64_t micro_batches,
                                       struct hv_extrapolated *out, struct hv_err *err)
{
    int64_t p = in->ranks, m = 8 * p * (in->chunks > 0 ? in->chunks : 1);
    double unused;
    *out = (struct hv_extrapolated){0};
    if (micro_batches <= 2 * m) {
        out->exact = true;
        out->from_micro_batches = (int32_t)micro_batches;
        return makespan_of(*in, c, micro_batches, &out->makespan_s, NULL, err);
    }
    if (fold(in, c, micro_batches, out)) {
        return HV_OK;
    }
    m += micro_batches % p; /* as many left over as at the end, for those that come in groups */
    enum hv_status st = makespan_of(*in, c, m, &unused, &out->steady, err);
    if (st == HV_ENO) { /* its middle does not repeat, its makespan may still grow by equal steps */
        st = growth_of(in, c, m, &out->steady, err);
    }
    for (bool more = true; more && st == HV_OK && !out->exact;) {
        int64_t step = hv_lcm(p, out->steady.micro_batches);
        m += (micro_batches - m) % step;
        if (m + 3 * step >= micro_batches) {
            out->exact = true;
            out->from_micro_batches = (int32_t)micro_batches;
            return makespan_of(*in, c, micro_batches, &out->makespan_s, NULL, err);
        }
        out->from_micro_batches = (int32_t)(m + 3 * step);
        st = is_settled(in, c, m, step, out, err);
        more = m * p * in->chunks < EXTRAPOLATE_CELLS;
        if (st == HV_OK && (out->exact || !more)) {
            out->makespan_s += (double)(micro_batches - m) * out->steady.per_micro_batch_s;
        }
        m = out->exact ? m : 2 * m;
    }
    return st;
}
