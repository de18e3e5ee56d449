/*
 * Seconds of a measured layer from its grid of micro-batches and tensor-parallel degrees.
 */
#include <math.h>

#include "solver/cost/part/part_int.h"

/* Seconds of a pass of so many sequences by a row of measured micro-batches: straight lines between
 * them, the rate of the nearest beyond. HV_UNKNOWN: none was measured. */
static double by_batch(const struct hv_model *m, const double *row, double sequences)
{
    double before = 0, before_s = 0, last = 0, last_s = HV_UNKNOWN;
    for (size_t i = 0; i < m->n_grid_batch; i++) {
        if (!hv_known(row[i])) {
            continue;
        }
        before = last;
        before_s = hv_or(last_s, 0);
        last = m->grid_batch[i];
        last_s = row[i];
        if (last >= sequences) {
            break;
        }
    }
    if (sequences > last || before <= 0) {
        return last_s * sequences / last;
    }
    return before_s + (last_s - before_s) * (sequences - before) / (last - before);
}

/* By micro-batch at the largest degree that was measured up to this one, the rest by Amdahl. */
double hv__grid_s(const struct hv_model *m, const double *grid, const struct hv_part_query *q,
                  double parallel_frac)
{
    for (size_t i = m->n_grid_tp; i-- > 0;) {
        double s = by_batch(m, grid + i * m->n_grid_batch, q->sequences);
        double more = hv__tp_parts(q) / m->grid_tp[i];
        if (hv_known(s) && more >= 1) {
            return s * (parallel_frac / (more * q->cp) + 1 - parallel_frac);
        }
    }
    return HV_UNKNOWN;
}

double hv__least_grid_s(const struct hv_model *m, const double *grid, const struct hv_part_query *q,
                        double parallel_frac)
{
    if (m->n_grid_tp * m->n_grid_batch < 2) {
        return hv__grid_s(m, grid, q, parallel_frac);
    }
    double least = HUGE_VAL;
    for (size_t i = 0; i < m->n_grid_tp * m->n_grid_batch; i++) {
        double each =
            grid[i] * m->grid_tp[i / m->n_grid_batch] / m->grid_batch[i % m->n_grid_batch];
        least = hv_known(each) ? fmin(least, each) : least;
    }
    return least < HUGE_VAL ? least * q->sequences / q->tp : HV_UNKNOWN;
}
