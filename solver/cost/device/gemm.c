/*
 * Tables, scaled tables and rooflines as one price of a product; streams by size. The products of
 * a transformer are in part/transformer.c; the fit of the tables is described in share/profiles.
 */
#include "solver/cost/device/gemm.h"

#include <math.h>
#include <string.h>

#include "solver/cost/device/efficiency.h"

const char *hv_gemm_basis_name(enum hv_gemm_basis b)
{
    static const char *const names[] = {"table", "scaled table", "roofline"};
    return names[b];
}

static bool narrow(enum hv_precision p)
{
    return p == HV_FP8 || p == HV_INT8 || p == HV_FP4;
}

static double element_bytes(enum hv_precision p)
{
    return hv_precision_bytes(p);
}

static void use_table(struct hv_gemm_pricer *g, const struct hv_device_kind *d, enum hv_precision p,
                      const struct hv_gemm_table *t)
{
    const struct hv_profile *from = d->profile;
    bool own = hv_profile_gemm(from, p) == t;
    double peak = hv_device_peak_flops_per_s(d, p);
    g->table = t;
    g->best_flops_per_s =
        t->best_flops_per_s * peak / t->peak_flops_per_s * (!own && narrow(p) ? HV_GEMM_NARROW : 1);
    g->compute_ratio = t->best_flops_per_s / g->best_flops_per_s;
    g->bytes_ratio = g->element_bytes / element_bytes(t->precision) * from->memory_bytes_per_s /
                     d->memory_bytes_per_s;
    g->bytes_per_s = HV_GEMM_READ * d->memory_bytes_per_s;
    g->start_s = from->kernel_start_s;
    g->error_frac = t->error_frac;
    g->device = from->device;
    g->source = from->source;
    bool exact = own && g->compute_ratio == 1 && g->bytes_ratio == 1;
    g->basis = exact ? HV_GEMM_TABLE : HV_GEMM_SCALED;
}

struct hv_gemm_pricer hv_gemm_pricer_of(const struct hv_device_kind *d, enum hv_precision p)
{
    struct hv_gemm_pricer g = {.element_bytes = element_bytes(p)};
    const struct hv_gemm_table *t = hv_profile_gemm(hv_device_profile(d), p);
    if (!t) {
        t = hv_profile_gemm(hv_device_profile(d), HV_BF16);
    }
    if (t) {
        use_table(&g, d, p, t);
        return g;
    }
    struct hv_efficiency e = hv_efficiency_of(d, p);
    g.basis = HV_GEMM_ROOFLINE;
    g.plain = d->plain_rates;
    g.best_flops_per_s = e.gemm_flops_per_s;
    g.bytes_per_s = e.bytes_per_s;
    g.start_s = e.gemm_start_s;
    g.error_frac = HV_GEMM_ROOFLINE_ERROR;
    g.source = e.source;
    return g;
}

/* One product: rows of a group, columns of all groups, depth; with their logarithms, which the
 * three products of a layer share. */
struct shape {
    double m, n, k, groups; /* as given */
    double log2_rows, log2_columns, log2_depth;
};

/* Below the first grid point the rate falls from that point's as it does for thin products. */
static double below(const struct hv_log_axis *a, double log2_x)
{
    if (log2_x >= a->from) {
        return 1;
    }
    return expm1(-exp2(log2_x) / HV_EFF_THIN) / expm1(-exp2(a->from) / HV_EFF_THIN);
}

static double operand_s(const struct hv_gemm_pricer *g, const struct shape *s)
{
    return g->element_bytes * (s->m * s->k + s->groups * s->k * s->n + s->m * s->n) /
           g->bytes_per_s;
}

static double table_time_s(const struct hv_gemm_pricer *g, const struct shape *s)
{
    const struct hv_gemm_table *t = g->table;
    double thin =
        below(&t->m, s->log2_rows) * below(&t->n, s->log2_columns) * below(&t->k, s->log2_depth);
    double rate =
        exp2(hv_gemm_table_log2_flops_per_s(t, s->log2_rows, s->log2_columns, s->log2_depth));
    return 2 * s->m * s->n * s->k / (rate * thin);
}

/* Seconds of `flops` here that take table_s on the measured device and move_s through memory.
 * Faster compute alone never makes a product slower: it takes no longer than on a device whose
 * compute and memory both have the ratio of the memory. */
static double scaled_s(const struct hv_gemm_pricer *g, double flops, double table_s, double move_s)
{
    if (g->basis == HV_GEMM_TABLE) {
        return table_s;
    }
    if (g->bytes_ratio > g->compute_ratio) {
        return fmin(g->bytes_ratio * table_s, fmax(g->compute_ratio * table_s, move_s));
    }
    double best_s = flops / g->table->best_flops_per_s;
    return g->compute_ratio * best_s + g->bytes_ratio * (table_s - best_s);
}

/* Factor of the roofline for thin products; 1 with plain rates. */
static double thin_share(const struct hv_gemm_pricer *g, double m, double n, double k)
{
    return g->plain ? 1 : hv_efficiency_thin(m, n, k);
}

static double shape_time_s(const struct hv_gemm_pricer *g, const struct shape *s)
{
    double flops = 2 * s->m * s->n * s->k;
    if (!g->table) {
        double rate = g->best_flops_per_s * thin_share(g, s->m / s->groups, s->n, s->k);
        return fmax(flops / rate, operand_s(g, s));
    }
    return scaled_s(g, flops, table_time_s(g, s), operand_s(g, s));
}

static double share_of(const struct hv_gemm_pricer *g, const struct shape *s)
{
    double share = 2 * s->m * s->n * s->k / g->best_flops_per_s / shape_time_s(g, s);
    return share > 1 ? 1 : share; /* a last digit; unknown stays unknown */
}

struct hv_gemm_shares hv_gemm_shares(const struct hv_gemm_pricer *g, double m, double n, double k,
                                     double groups)
{
    bool logs = g->table != NULL;
    double log2_groups = logs && groups > 1 ? log2(groups) : 0;
    double log2_m = logs ? log2(m) - log2_groups : 0, log2_n = logs ? log2(n) : 0;
    double log2_k = logs ? log2(k) : 0;
    struct shape forward = {m, n, k, groups, log2_m, log2_n + log2_groups, log2_k};
    struct shape input = {m, k, n, groups, log2_m, log2_k + log2_groups, log2_n};
    struct shape weight = {k * groups, n, m / groups, groups, log2_k, log2_n + log2_groups, log2_m};
    return (struct hv_gemm_shares){share_of(g, &forward), share_of(g, &input),
                                   share_of(g, &weight)};
}

/* Largest place of the axis that a box up to log2_x reaches at or before grid point i. */
static double place(const struct hv_log_axis *a, size_t i, double log2_x)
{
    return fmin(a->from + a->step * (double)i, log2_x);
}

static size_t places(const struct hv_log_axis *a, double log2_x)
{
    size_t n = 1;
    while (n < a->count && a->from + a->step * (double)(n - 1) < log2_x) {
        n++;
    }
    return n;
}

/* A scan of a table: for every point of one axis, the best rate over a box of the two others and
 * over all points before it. */
struct scan {
    const struct hv_gemm_table *t;
    double limit[3]; /* log2 of rows, columns, depth; that of the scanned axis is not read */
    int axis;        /* 0 rows, 2 depth */
};

static const struct hv_log_axis *axis_of(const struct hv_gemm_table *t, int axis)
{
    return axis == 0 ? &t->m : axis == 1 ? &t->n : &t->k;
}

/* Best over the box at one place of the scanned axis. */
static double best_at(const struct scan *s, double at)
{
    int other = 2 - s->axis;
    const struct hv_log_axis *a = axis_of(s->t, 1), *b = axis_of(s->t, other);
    size_t n_a = places(a, s->limit[1]), n_b = places(b, s->limit[other]);
    double best = -HUGE_VAL, x[3];
    x[s->axis] = at;
    for (size_t i = 0; i < n_a; i++) {
        x[1] = place(a, i, s->limit[1]);
        for (size_t j = 0; j < n_b; j++) {
            x[other] = place(b, j, s->limit[other]);
            best = fmax(best, hv_gemm_table_log2_flops_per_s(s->t, x[0], x[1], x[2]));
        }
    }
    return best;
}

static void scan_axis(const struct scan *s, struct hv_gemm_best *out)
{
    const struct hv_log_axis *a = axis_of(s->t, s->axis);
    double best = -HUGE_VAL;
    out->n = a->count < HV_GEMM_POINTS ? a->count : HV_GEMM_POINTS;
    for (size_t i = 0; i < a->count; i++) {
        best = fmax(best, best_at(s, a->from + a->step * (double)i));
        out->log2_rate[i < out->n ? i : out->n - 1] = best;
    }
    out->thin = below(&s->t->n, s->limit[1]);
    out->thin *= s->axis == 0 ? below(&s->t->k, s->limit[2]) : below(&s->t->m, s->limit[0]);
}

struct hv_gemm_box hv_gemm_box_of(const struct hv_gemm_pricer *g, double n, double k, double groups)
{
    struct hv_gemm_box x = {.n = n, .k = k, .groups = groups};
    if (g->table) {
        double each_n = log2(n), each_k = log2(k), more = log2(groups);
        scan_axis(&(struct scan){g->table, {0, each_n + more, each_k}, 0}, &x.forward);
        scan_axis(&(struct scan){g->table, {0, each_k + more, each_n}, 0}, &x.input_grad);
        scan_axis(&(struct scan){g->table, {each_k, each_n + more, 0}, 2}, &x.weight_grad);
    }
    return x;
}

/* Best rate with at most `size` on the scanned axis: between two of its points log2 of every
 * product's rate is a straight line, so that of the best of them is under the chord. */
static double rate_up_to(const struct hv_log_axis *a, const struct hv_gemm_best *b, double size)
{
    double at = (log2(size) - a->from) / a->step;
    size_t i = at > 0 ? (size_t)fmin(floor(at), (double)(b->n - 1)) : 0;
    size_t next = i + 1 < b->n ? i + 1 : i;
    double frac = at > 0 && next > i ? at - (double)i : 0;
    double log2_rate = b->log2_rate[i] + frac * (b->log2_rate[next] - b->log2_rate[i]);
    return exp2(log2_rate) * b->thin * below(a, log2(size));
}

/* Share of one FLOP at that rate, at least `move_s` through memory. */
static double share_at(const struct hv_gemm_pricer *g, double rate, double move_s)
{
    double time_s = g->table ? scaled_s(g, 1, 1 / rate, move_s) : fmax(1 / rate, move_s);
    double share = 1 / g->best_flops_per_s / time_s;
    return share > 1 ? 1 : share;
}

struct hv_gemm_shares hv_gemm_box_shares(const struct hv_gemm_pricer *g,
                                         const struct hv_gemm_box *x, double rows)
{
    /* (mk + groups kn + mn) values per 2mnk FLOP; groups / m is least with one group */
    double values = (1 / x->n + 1 / x->k + 1 / rows) / 2;
    double move_s = g->element_bytes * values / g->bytes_per_s, best = g->best_flops_per_s;
    const struct hv_gemm_table *t = g->table;
    if (t) {
        return (struct hv_gemm_shares){
            share_at(g, rate_up_to(&t->m, &x->forward, rows), move_s),
            share_at(g, rate_up_to(&t->m, &x->input_grad, rows), move_s),
            share_at(g, rate_up_to(&t->k, &x->weight_grad, rows), move_s)};
    }
    double columns = x->n * x->groups, depth = x->k * x->groups;
    return (struct hv_gemm_shares){share_at(g, best * thin_share(g, rows, columns, x->k), move_s),
                                   share_at(g, best * thin_share(g, rows, depth, x->n), move_s),
                                   share_at(g, best * thin_share(g, x->k, columns, rows), move_s)};
}

/* Best rate of a product with `from` to `to` on one axis: log2 of the rate is a straight line
 * between its points, so the best is at one of them or at an end; thin products only gain. `x` are
 * log2 of rows, columns and depth, of which that of the axis is not read. */
static double rate_between(const struct hv_gemm_table *t, int axis, double from, double to,
                           double x[3])
{
    const struct hv_log_axis *a = axis_of(t, axis);
    double ends[] = {from > 0 ? log2(from) : a->from, log2(to)}, best = -HUGE_VAL;
    double thin = below(a, ends[1]);
    for (int i = 0; i < 3; i++) {
        thin *= i == axis ? 1 : below(axis_of(t, i), x[i]);
    }
    for (int i = 0; i < 2; i++) {
        x[axis] = ends[i];
        best = fmax(best, hv_gemm_table_log2_flops_per_s(t, x[0], x[1], x[2]));
    }
    double first = fmax(0, ceil((ends[0] - a->from) / a->step));
    for (size_t i = (size_t)fmin(first, (double)a->count);
         i < a->count && a->from + a->step * (double)i < ends[1]; i++) {
        x[axis] = a->from + a->step * (double)i;
        best = fmax(best, hv_gemm_table_log2_flops_per_s(t, x[0], x[1], x[2]));
    }
    return exp2(best) * thin;
}

struct hv_gemm_shares hv_gemm_shares_between(const struct hv_gemm_pricer *g,
                                             const struct hv_gemm_rows *r, double n, double k)
{
    double move_s = g->element_bytes * (1 / n + 1 / k + 1 / r->most) / 2 / g->bytes_per_s;
    const struct hv_gemm_table *t = g->table;
    if (!t) {
        double best = g->best_flops_per_s;
        return (struct hv_gemm_shares){share_at(g, best * thin_share(g, r->most, n, k), move_s),
                                       share_at(g, best * thin_share(g, r->most, k, n), move_s),
                                       share_at(g, best * thin_share(g, k, n, r->most), move_s)};
    }
    double log2_n = log2(n), log2_k = log2(k);
    double forward[] = {0, log2_n, log2_k}, input[] = {0, log2_k, log2_n};
    double weight[] = {log2_k, log2_n, 0};
    return (struct hv_gemm_shares){
        share_at(g, rate_between(t, 0, r->least, r->most, forward), move_s),
        share_at(g, rate_between(t, 0, r->least, r->most, input), move_s),
        share_at(g, rate_between(t, 2, r->least, r->most, weight), move_s)};
}

double hv_gemm_share(const struct hv_gemm_pricer *g, double m, double n, double k, double groups)
{
    struct shape s = {m, n, k, groups, log2(m / groups), log2(n * groups), log2(k)};
    return share_of(g, &s);
}

double hv_gemm_group_share(double rows)
{
    return rows / (rows + HV_GEMM_GROUP_ROWS);
}

struct hv_gemm_price hv_gemm(const struct hv_device_kind *d, enum hv_precision p, double m,
                             double n, double k, double groups)
{
    struct hv_gemm_pricer g = hv_gemm_pricer_of(d, p);
    double flops = 2 * m * n * k;
    struct hv_gemm_price out = {.best_flops_per_s = g.best_flops_per_s,
                                .shape_frac = hv_gemm_share(&g, m, n, k, groups),
                                .error_frac = g.error_frac,
                                .basis = g.basis,
                                .device = g.device,
                                .source = g.source};
    double time_s = flops / (g.best_flops_per_s * out.shape_frac);
    /* a table holds the start of its kernels already */
    out.time_s = g.table && time_s > g.start_s ? time_s : g.start_s + (g.table ? 0 : time_s);
    if (!hv_known(time_s)) {
        out.time_s = time_s;
    }
    out.flops_per_s = flops / out.time_s;
    return out;
}

static const struct hv_stream_table *stream_of(const struct hv_device_kind *d)
{
    return hv_device_profile(d) ? d->profile->stream : NULL;
}

double hv_stream_s(const struct hv_device_kind *d, double bytes)
{
    const struct hv_stream_table *t = stream_of(d);
    if (!(bytes > 0)) {
        return 0;
    }
    if (!t) {
        struct hv_efficiency e = hv_efficiency_of(d, HV_BF16);
        return e.launch_s + bytes / e.bytes_per_s;
    }
    double ratio = d->profile->memory_bytes_per_s / d->memory_bytes_per_s;
    return fmax(d->profile->kernel_start_s, ratio * bytes / hv_stream_table_bytes_per_s(t, bytes));
}

double hv_stream_share(const struct hv_device_kind *d, double bytes)
{
    const struct hv_stream_table *t = stream_of(d);
    if (!t || !(bytes > 0) || bytes >= t->full_bytes) {
        return 1;
    }
    double share = hv_stream_table_bytes_per_s(t, bytes) / t->long_bytes_per_s;
    return share < 1 ? share : 1;
}

double hv_stream_best_share(const struct hv_device_kind *d, double bytes)
{
    const struct hv_stream_table *t = stream_of(d);
    double best = hv_stream_share(d, bytes);
    if (!t || best >= 1) {
        return best;
    }
    for (size_t i = 0; i < t->bytes.count; i++) {
        double at = exp2(t->bytes.from + t->bytes.step * (double)i);
        if (at < bytes) {
            best = fmax(best, hv_stream_share(d, at));
        }
    }
    return best;
}

const char *hv_stream_source(const struct hv_device_kind *d)
{
    return stream_of(d) ? d->profile->source : "no table";
}
