/** Factors of operators and the windows they read. */
#include "solver/shard/rule.h"

bool hv_factor_passes(const struct hv_factor *f)
{
    return f->kind == HV_FACTOR_PARALLEL;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

static int64_t clamp(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

void hv_window_needs(const struct hv_window *w, int64_t extent, int64_t part, int64_t parts,
                     int64_t *lo, int64_t *hi)
{
    int64_t from = part * w->range / parts, to = (part + 1) * w->range / parts;
    int64_t first = from * w->stride - w->pad;
    int64_t last = (to - 1) * w->stride - w->pad + (w->taps - 1) * w->dilation;
    *lo = clamp(-floor_div(-first, w->base), extent);
    *hi = clamp(floor_div(last, w->base) + 1, extent);
    if (w->reversed) {
        int64_t end = extent - *lo;
        *lo = extent - *hi;
        *hi = end;
    }
    if (*hi < *lo) {
        *hi = *lo;
    }
}
