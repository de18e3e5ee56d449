/*
 * Coarse-to-fine grids. The interpolation equals that of inventory/profile.c on the finest level;
 * the coarser ones are needed here only.
 */
#include "solver/profiler/lattice.h"

#include "solver/base/arena.h"
#include "solver/base/units.h"
#include <stdlib.h>

static size_t stride_of(int level)
{
    return (size_t)1 << (HV_LATTICE_LEVELS - 1 - level);
}

void hv_lattice_init(struct hv_lattice *l, const struct hv_log_axis *axes, size_t n_axes,
                     double band_frac)
{
    *l = (struct hv_lattice){.n = 1, .band_frac = band_frac};
    for (size_t a = 0; a < 3; a++) {
        l->axis[a] = a < n_axes ? axes[a] : (struct hv_log_axis){0, 1, 1};
        l->n *= l->axis[a].count;
    }
    l->log2_rate = hv_xcalloc(l->n, sizeof *l->log2_rate);
    l->tried = hv_xcalloc(l->n, sizeof *l->tried);
    for (size_t i = 0; i < l->n; i++) {
        l->log2_rate[i] = HV_UNKNOWN;
    }
}

void hv_lattice_free(struct hv_lattice *l)
{
    free(l->log2_rate);
    free(l->tried);
    *l = (struct hv_lattice){0};
}

static void coordinates(const struct hv_lattice *l, size_t place, size_t at[3])
{
    for (size_t a = 3; a-- > 0;) {
        at[a] = place % l->axis[a].count;
        place /= l->axis[a].count;
    }
}

static size_t place_of(const struct hv_lattice *l, const size_t at[3])
{
    return (at[0] * l->axis[1].count + at[1]) * l->axis[2].count + at[2];
}

void hv_lattice_sizes(const struct hv_lattice *l, size_t place, double size[3])
{
    size_t at[3];
    coordinates(l, place, at);
    for (size_t a = 0; a < 3; a++) {
        size[a] = rint(exp2(l->axis[a].from + l->axis[a].step * (double)at[a]));
    }
}

size_t hv_lattice_find(const struct hv_lattice *l, const double size[3])
{
    size_t at[3];
    for (size_t a = 0; a < 3; a++) {
        double x = rint((log2(fmax(size[a], 1)) - l->axis[a].from) / l->axis[a].step);
        if (x < 0 || x > (double)(l->axis[a].count - 1)) {
            return l->n;
        }
        at[a] = (size_t)x;
    }
    double there[3];
    size_t place = place_of(l, at);
    hv_lattice_sizes(l, place, there);
    for (size_t a = 0; a < 3; a++) {
        if (fabs(there[a] - fmax(size[a], 1)) > 0.5) {
            return l->n;
        }
    }
    return place;
}

int hv_lattice_level(const struct hv_lattice *l, size_t place)
{
    size_t at[3];
    coordinates(l, place, at);
    int level = 0;
    for (size_t a = 0; a < 3; a++) {
        int own = 0;
        while (at[a] + 1 != l->axis[a].count && at[a] % stride_of(own) != 0) {
            own++;
        }
        level = own > level ? own : level;
    }
    return level;
}

/* The cell of a level around fractional coordinates: lower and upper place per axis. */
struct cell {
    size_t lo[3], hi[3];
    double frac[3];
};

static struct cell cell_of(const struct hv_lattice *l, int level, const double x[3])
{
    struct cell c;
    size_t s = stride_of(level);
    for (size_t a = 0; a < 3; a++) {
        size_t last = l->axis[a].count - 1;
        double at = fmin(fmax(x[a], 0), (double)last);
        c.lo[a] = (size_t)at / s * s;
        if (c.lo[a] == last && last > 0) {
            c.lo[a] = (last - 1) / s * s;
        }
        c.hi[a] = c.lo[a] + s < last ? c.lo[a] + s : last;
        c.frac[a] = c.hi[a] > c.lo[a] ? (at - (double)c.lo[a]) / (double)(c.hi[a] - c.lo[a]) : 0;
    }
    return c;
}

static double inside(const struct hv_lattice *l, const struct cell *c)
{
    double sum = 0;
    for (unsigned corner = 0; corner < 8; corner++) {
        double w = 1;
        size_t at[3];
        for (size_t a = 0; a < 3; a++) {
            bool up = (corner >> a & 1) != 0;
            w *= up ? c->frac[a] : 1 - c->frac[a];
            at[a] = up ? c->hi[a] : c->lo[a];
        }
        sum += w > 0 ? w * l->log2_rate[place_of(l, at)] : 0;
    }
    return sum;
}

double hv_lattice_at(const struct hv_lattice *l, int level, const double log2_size[3])
{
    double x[3];
    for (size_t a = 0; a < 3; a++) {
        x[a] = (log2_size[a] - l->axis[a].from) / l->axis[a].step;
    }
    struct cell c = cell_of(l, level, x);
    return inside(l, &c);
}

/* At a place, from the places of coarser levels. */
static double foreseen(const struct hv_lattice *l, int level, size_t place)
{
    size_t at[3];
    coordinates(l, place, at);
    double x[3] = {(double)at[0], (double)at[1], (double)at[2]};
    struct cell c = cell_of(l, level, x);
    return inside(l, &c);
}

/* |predicted/measured − 1| of the time; HV_UNKNOWN where either is not known. */
static double miss(const struct hv_lattice *l, size_t place, int level)
{
    return fabs(exp2(l->log2_rate[place] - foreseen(l, level - 1, place)) - 1);
}

/* True where a place of level 1 near this one was predicted badly, or not at all. */
static bool doubtful(const struct hv_lattice *l, size_t place)
{
    size_t at[3], i[3];
    coordinates(l, place, at);
    double x[3] = {(double)at[0], (double)at[1], (double)at[2]};
    struct cell c = cell_of(l, 0, x);
    for (i[0] = c.lo[0]; i[0] <= c.hi[0]; i[0]++) {
        for (i[1] = c.lo[1]; i[1] <= c.hi[1]; i[1]++) {
            for (i[2] = c.lo[2]; i[2] <= c.hi[2]; i[2]++) {
                size_t p = place_of(l, i);
                if (hv_lattice_level(l, p) == 1 && !(miss(l, p, 1) <= l->band_frac)) {
                    return true;
                }
            }
        }
    }
    return false;
}

bool hv_lattice_next(const struct hv_lattice *l, int level, size_t *place)
{
    for (size_t i = 0; i < l->n; i++) {
        if (!l->tried[i] && hv_lattice_level(l, i) == level && (level < 2 || doubtful(l, i))) {
            *place = i;
            return true;
        }
    }
    return false;
}

void hv_lattice_set(struct hv_lattice *l, size_t place, double rate)
{
    l->tried[place] = true;
    l->log2_rate[place] = hv_known(rate) && rate > 0 ? log2(rate) : HV_UNKNOWN;
}

double hv_lattice_error_frac(const struct hv_lattice *l)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        int level = hv_lattice_level(l, i);
        double m = level > 0 ? miss(l, i, level) : HV_UNKNOWN;
        if (hv_known(m)) {
            sum += m;
            n++;
        }
    }
    return n > 0 ? sum / (double)n : HV_UNKNOWN;
}

/* The known rate of the fewest steps away, over all axes. */
static double nearest(const struct hv_lattice *l, size_t place)
{
    size_t at[3], b[3], least = SIZE_MAX;
    double best = HV_UNKNOWN;
    coordinates(l, place, at);
    for (size_t i = 0; i < l->n; i++) {
        if (hv_known(l->log2_rate[i])) {
            coordinates(l, i, b);
            size_t steps = 0;
            for (size_t a = 0; a < 3; a++) {
                steps += at[a] > b[a] ? at[a] - b[a] : b[a] - at[a];
            }
            if (steps < least) {
                least = steps;
                best = l->log2_rate[i];
            }
        }
    }
    return best;
}

static double settled(const struct hv_lattice *l, size_t place)
{
    if (hv_known(l->log2_rate[place])) {
        return l->log2_rate[place];
    }
    for (int level = HV_LATTICE_LEVELS - 1; level >= 0; level--) {
        double x = foreseen(l, level, place);
        if (hv_known(x)) {
            return x;
        }
    }
    return nearest(l, place);
}

/* Running extreme of times along every axis: the largest of the places before, or the smallest of
 * those after. */
static void run_extreme(const struct hv_lattice *l, double *t, bool largest)
{
    for (size_t k = 0; k < l->n; k++) {
        size_t place = largest ? k : l->n - 1 - k, at[3];
        coordinates(l, place, at);
        for (size_t a = 0; a < 3; a++) {
            size_t next[3] = {at[0], at[1], at[2]};
            if (largest ? at[a] == 0 : at[a] + 1 == l->axis[a].count) {
                continue;
            }
            next[a] = largest ? at[a] - 1 : at[a] + 1;
            double other = t[place_of(l, next)];
            t[place] = largest ? fmax(t[place], other) : fmin(t[place], other);
        }
    }
}

bool hv_lattice_fill(const struct hv_lattice *l, double (*log2_work)(void *ctx, size_t place),
                     void *ctx, double *out)
{
    double *high = hv_xcalloc(l->n, sizeof *high), *low = hv_xcalloc(l->n, sizeof *low);
    bool any = false;
    for (size_t i = 0; i < l->n; i++) {
        high[i] = low[i] = log2_work(ctx, i) - settled(l, i);
        any = any || hv_known(low[i]);
    }
    run_extreme(l, high, true);
    run_extreme(l, low, false);
    for (size_t i = 0; i < l->n; i++) {
        out[i] = log2_work(ctx, i) - (high[i] + low[i]) / 2;
    }
    free(high);
    free(low);
    return any;
}
