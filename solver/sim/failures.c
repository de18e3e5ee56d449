/** Closed forms of interrupted work, without reference to nodes or checkpoints of a plan. */
#include "solver/sim/failures.h"

#include <math.h>

void hv_failure_shares(const struct hv_failure_run *r, struct hv_failure_shares *out)
{
    double m = r->mtbf_s, x = (r->segment_s + r->write_s) / m;
    /* relative to the wall clock of a segment: E = M e^(R/M) (e^x − 1) */
    double working = exp(-r->recover_s / m), each = x / expm1(x);
    *out = (struct hv_failure_shares){
        .useful = working * each * r->segment_s / (r->segment_s + r->write_s),
        .write = working * each * r->write_s / (r->segment_s + r->write_s),
        .rollback = working * (1 - each),
        .recover = 1 - working,
        .rollback_s = m * (1 - each),
    };
}

double hv_failure_best_segment_s(double write_s, double mtbf_s)
{
    double d = write_s / mtbf_s;
    if (!(d > 0)) {
        return 0;
    }
    /* f(t) = ln(1 − t) + t + d falls from d to −∞ on [0, 1); from the left of the root Newton
     * overshoots and then comes back monotonically, as f is concave */
    double t = fmin(sqrt(2 * d), 0.5);
    for (int i = 0; i < 60; i++) {
        double f = log1p(-t) + t + d, slope = -t / (1 - t);
        double next = t - f / slope;
        next = next >= 1 ? (t + 1) / 2 : next <= 0 ? t / 2 : next;
        if (fabs(next - t) <= 1e-15 * t) {
            break;
        }
        t = next;
    }
    return t * mtbf_s;
}

void hv_failure_away(const struct hv_failure_nodes *groups, size_t n_groups, double *out,
                     size_t n_out)
{
    for (size_t k = 0; k < n_out; k++) {
        out[k] = k == 0;
    }
    for (size_t g = 0; n_out > 0 && g < n_groups; g++) {
        double a = groups[g].per_s * groups[g].away_s, p = a / (1 + a);
        for (size_t i = 0; p > 0 && i < groups[g].n; i++) {
            out[n_out - 1] += n_out > 1 ? p * out[n_out - 2] : 0;
            for (size_t k = n_out - 1; k-- > 1;) {
                out[k] = out[k] * (1 - p) + out[k - 1] * p;
            }
            out[0] *= n_out > 1 ? 1 - p : 1;
        }
    }
}

/* Mean of a stop that the next event, at that rate, may cut short. */
static double cut_short_s(double stop_s, double per_s)
{
    return per_s > 0 ? -expm1(-stop_s * per_s) / per_s : stop_s;
}

void hv_failure_productive(const struct hv_failure_states *s, double *out)
{
    for (size_t i = 0; i < s->n; i++) {
        double p = s->probability[i], gone = 0;
        double up = s->per_s * fmax(0, 1 - (double)i / s->nodes); /* one more node fails */
        double down = s->away_s > 0 ? (double)i / s->away_s : 0;
        double stopped = 0;
        if (i > 0 && p > 0) { /* rate of failures that lead into this state, per time in it */
            gone = s->probability[i - 1] * s->per_s * (1 - (double)(i - 1) / s->nodes) / p;
            stopped += gone * cut_short_s(s->gone_s, up + down);
        }
        /* in the long run returns into a state are as many as failures out of it: at rate `up` */
        stopped += up * cut_short_s(s->back_s, up + down);
        double works = fmax(0, 1 - stopped);
        out[i] = p > 0 ? fmax(0, works * (1 - up * s->rollback_s)) : 0;
    }
}
