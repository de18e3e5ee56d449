/*
 * Requests in a queue with many slots: a heap of the times at which slots come free, and quantiles
 * of what was seen. Not for batches or caches: the caller says how long a request holds its slot.
 */
#include "solver/sim/requests.h"

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include <math.h>
#include <stdlib.h>

enum { LEAST = 20000, MOST = 200000, PER_SLOT = 20, WARM_UP = 5 };

double hv_requests_wait_s(double per_s, size_t slots, double mean_s, double cv2)
{
    double offered = per_s * mean_s, load = offered / (double)slots, blocked = 1;
    if (!(load < 1)) {
        return HV_UNKNOWN;
    }
    for (size_t i = 1; i <= slots; i++) { /* Erlang B by recursion */
        blocked = offered * blocked / ((double)i + offered * blocked);
    }
    double waits = blocked / (1 - load * (1 - blocked)); /* Erlang C */
    return waits * mean_s / ((double)slots * (1 - load)) * (1 + cv2) / 2;
}

/** Puts the root of a heap with the smallest number in front where it belongs. */
static void sink(double *heap, size_t n)
{
    double x = heap[0];
    size_t at = 0;
    for (size_t child = 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (x <= heap[child]) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = x;
}

static const struct hv_request_class *draw(const struct hv_requests *q, struct hv_rng *rng)
{
    double u = hv_rng_double(rng);
    size_t i = 0;
    while (i + 1 < q->n_classes && u >= q->classes[i].share) {
        u -= q->classes[i++].share;
    }
    return &q->classes[i];
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** The number that a share of the n numbers does not exceed. */
static double quantile(const double *sorted, size_t n, double share)
{
    size_t at = (size_t)ceil(share * (double)n);
    return sorted[at > 0 ? at - 1 : 0];
}

static void play(const struct hv_requests *q, size_t n, struct hv_arena *arena,
                 struct hv_request_figures *out)
{
    double *heap = hv_arena_new(arena, double, q->slots);
    double *first = hv_arena_new(arena, double, n), *whole = hv_arena_new(arena, double, n);
    struct hv_rng rng;
    double now = 0;
    hv_rng_seed(&rng, q->seed);
    out->mean_wait_s = 0;
    for (size_t i = 0, kept = 0; i < n; i++) {
        now -= log1p(-hv_rng_double(&rng)) / q->per_s;
        const struct hv_request_class *c = draw(q, &rng);
        double start = fmax(now, heap[0]);
        heap[0] = start + c->whole_s;
        sink(heap, q->slots);
        if (i >= n - out->n) {
            first[kept] = start - now + c->first_s;
            whole[kept++] = start - now + c->whole_s;
            out->mean_wait_s += (start - now) / (double)out->n;
        }
    }
    qsort(first, out->n, sizeof *first, by_size);
    qsort(whole, out->n, sizeof *whole, by_size);
    out->first_p50_s = quantile(first, out->n, 0.5);
    out->first_p99_s = quantile(first, out->n, 0.99);
    out->whole_p50_s = quantile(whole, out->n, 0.5);
    out->whole_p99_s = quantile(whole, out->n, 0.99);
}

void hv_requests_run(const struct hv_requests *q, struct hv_arena *arena,
                     struct hv_request_figures *out)
{
    double mean = 0, square = 0;
    for (size_t i = 0; i < q->n_classes; i++) {
        mean += q->classes[i].share * q->classes[i].whole_s;
        square += q->classes[i].share * q->classes[i].whole_s * q->classes[i].whole_s;
    }
    *out = (struct hv_request_figures){.load_frac = q->per_s * mean / (double)q->slots,
                                       .mean_wait_s = HV_UNKNOWN,
                                       .first_p50_s = HV_UNKNOWN,
                                       .first_p99_s = HV_UNKNOWN,
                                       .whole_p50_s = HV_UNKNOWN,
                                       .whole_p99_s = HV_UNKNOWN};
    out->formula_wait_s = hv_requests_wait_s(q->per_s, q->slots, mean, square / (mean * mean) - 1);
    if (!hv_known(out->formula_wait_s)) {
        return;
    }
    size_t n = PER_SLOT * q->slots < LEAST  ? LEAST
               : PER_SLOT * q->slots > MOST ? MOST
                                            : PER_SLOT * q->slots;
    out->n = n - n / WARM_UP;
    play(q, n, arena, out);
}
