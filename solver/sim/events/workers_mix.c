/* How averagings of groups mix the models of all workers: sums over the groups of a run. */
#include "solver/sim/events/workers_int.h"

#include <math.h>
#include <stdlib.h>

void hv__mix(double *sum, size_t n, const size_t *members, const int64_t *behind, size_t n_members,
             double decay)
{
    double size = (double)n_members, all = 0;
    bool weighted = decay > 0 && decay < 1;
    for (size_t i = 0; i < n_members; i++) {
        all += weighted ? pow(decay, (double)behind[i]) : 1;
    }
    for (size_t i = 0; i < n_members; i++) {
        double a = size * (weighted ? pow(decay, (double)behind[i]) : 1) / all;
        sum[members[i] * n + members[i]] -= 1;
        for (size_t k = 0; k < n_members; k++) {
            double b = size * (weighted ? pow(decay, (double)behind[k]) : 1) / all;
            sum[members[i] * n + members[k]] += a * b / size - (a - 1) * (b - 1) / (double)n;
        }
    }
}

/* Source of the measure: the squared distance of models x from their mean is |J x|², and averaging
 * leaves |J W x|² of it. */
static void centre(double *m, size_t n)
{
    double *mean = hv_xcalloc(n + 1, sizeof *mean), all = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            mean[i] += m[i * n + k] / (double)n;
        }
        all += mean[i] / (double)n;
    }
    for (size_t i = 0; i < n * n; i++) {
        m[i] += all - mean[i / n] - mean[i % n] + 1 / (double)n;
    }
    free(mean);
}

void hv__mix_end(double *sum, size_t n, int64_t n_mixed, double decay)
{
    for (size_t i = 0; i < n * n; i++) {
        sum[i] = (n_mixed > 0 ? sum[i] / (double)n_mixed : 0) + (i / n == i % n);
    }
    if (decay > 0 && decay < 1) {
        centre(sum, n);
    }
}
