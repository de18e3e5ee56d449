/** The scatter of plans over two figures. Keeps no state. */
#include "ui/screens/plans/panels.h"

#include <math.h>
#include <stdlib.h>

#include "solver/base/units.h"

/** Points and marks of a scatter; freed by the caller. */
struct dots {
    struct hv_point *points;
    char *marks;
    uint32_t *ids;
    size_t n;
};

/** Units of axes that are not those of the figure itself. */
static const struct axis_unit {
    enum hv_plan_field field;
    const char *name;
    double per_unit;
} axis_units[] = {
    {HV_PLAN_MEMORY, "peak memory %", 100},
    {HV_PLAN_BUBBLE, "bubble %", 100},
    {HV_PLAN_MFU, "MFU %", 100},
    {HV_PLAN_GAP, "gap to the bound %", 100},
    {HV_PLAN_ENERGY, "MJ/iter", 1e-6},
};

static const struct axis_unit *axis_unit(enum hv_plan_field axis)
{
    for (size_t i = 0; i < HV_COUNT(axis_units); i++) {
        if (axis_units[i].field == axis) {
            return &axis_units[i];
        }
    }
    return NULL;
}

const char *hv_plan_axis_name(enum hv_plan_field axis)
{
    const struct axis_unit *u = axis_unit(axis);
    return u != NULL ? u->name : hv_plan_field_name(axis);
}

static double axis_value(const struct hv_plan_facts *f, enum hv_plan_field axis)
{
    const struct axis_unit *u = axis_unit(axis);
    return hv_plan_value(f, axis) * (u != NULL ? u->per_unit : 1);
}

static struct dots make_dots(const struct hv_plan_scatter *s)
{
    struct dots d = {hv_xcalloc(s->n + 1, sizeof *d.points), hv_xcalloc(s->n + 1, 1),
                     hv_xcalloc(s->n + 1, sizeof *d.ids), 0};
    for (int pass = 0; pass < 2; pass++) { /* the selected one last, on top */
        for (size_t i = 0; i < s->n; i++) {
            const struct hv_plan_facts *f = &s->facts[i];
            struct hv_point p = {axis_value(f, s->axes[0]), axis_value(f, s->axes[1])};
            bool selected = f->row->id == s->selected;
            if (!hv_known(p.x) || !hv_known(p.y) || selected != (pass == 1)) {
                continue;
            }
            d.points[d.n] = p;
            d.ids[d.n] = f->row->id;
            d.marks[d.n++] = selected                                           ? '@'
                             : !hv_plan_fits(f)                                 ? 'x'
                             : hv_plan_is_dominated(f, s->facts, s->n, s->axes) ? 'o'
                                                                                : 'P';
        }
    }
    return d;
}

static void free_dots(struct dots *d)
{
    free(d->points);
    free(d->marks);
    free(d->ids);
}

static void widen(double v, double *lo, double *hi)
{
    *lo = !hv_known(*lo) || v < *lo ? v : *lo;
    *hi = !hv_known(*hi) || v > *hi ? v : *hi;
}

/** The ranges follow the plans that fit (all when none does), so that an outlier that does not fit
 * does not compress the plot. */
static struct hv_chart make_chart(const struct dots *d, const struct hv_plan_scatter *s,
                                  struct hv_series *series)
{
    double lo[2] = {HV_UNKNOWN, HV_UNKNOWN}, hi[2] = {HV_UNKNOWN, HV_UNKNOWN};
    for (size_t i = 0; i < s->n; i++) {
        double x = axis_value(&s->facts[i], s->axes[0]), y = axis_value(&s->facts[i], s->axes[1]);
        if (hv_plan_fits(&s->facts[i]) && hv_known(x) && hv_known(y)) {
            widen(x, &lo[0], &hi[0]);
            widen(y, &lo[1], &hi[1]);
        }
    }
    for (int k = 0; k < 2; k++) {
        double margin = hi[k] > lo[k] ? (hi[k] - lo[k]) * 0.08 : fabs(hi[k]) * 0.1;
        lo[k] -= margin;
        hi[k] += margin;
    }
    *series = (struct hv_series){.points = d->points,
                                 .n = d->n,
                                 .kind = HV_CHART_DOTS,
                                 .style = HV_STYLE_BAR,
                                 .mark = 'o',
                                 .marks = d->marks};
    return (struct hv_chart){.series = series,
                             .n_series = 1,
                             .x_min = lo[0],
                             .x_max = hi[0],
                             .y_min = lo[1],
                             .y_max = hi[1],
                             .x_label = hv_plan_axis_name(s->axes[0])};
}

void hv_plan_scatter_draw(const struct hv_plan_scatter *s, struct hv_grid *g, struct hv_rect r)
{
    struct dots d = make_dots(s);
    struct hv_series series;
    struct hv_chart chart = make_chart(&d, s, &series);
    if (d.n > 0) {
        hv_chart_draw(g, r, &chart);
    } else {
        hv_grid_put_field(g, (struct hv_rect){r.x, r.y, r.w, 1}, HV_LEFT,
                          "no plan has both figures so far", HV_STYLE_DIM);
    }
    free_dots(&d);
}

uint32_t hv_plan_scatter_hit(const struct hv_plan_scatter *s, struct hv_rect r, int x, int y)
{
    struct dots d = make_dots(s);
    struct hv_series series;
    struct hv_chart chart = make_chart(&d, s, &series);
    uint32_t best = 0;
    int nearest = 4;
    for (size_t i = 0; i < d.n; i++) {
        int cx, cy;
        if (hv_chart_cell(r, &chart, d.points[i], &cx, &cy) && abs(cy - y) <= 1 &&
            abs(cx - x) + abs(cy - y) < nearest) {
            nearest = abs(cx - x) + abs(cy - y);
            best = d.ids[i];
        }
    }
    free_dots(&d);
    return best;
}
