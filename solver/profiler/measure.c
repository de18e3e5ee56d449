/*
 * The order of measurements, and the conditions that end a run. Every sweep's coarse places come
 * before any sweep's finer ones, so that a run that is cut short leaves tables for everything.
 */
#include "solver/profiler/measure.h"

#include "solver/base/units.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A shape inside a table is interpolated when the prediction of its neighbour was within this
 * relative error; the target of a layer's prediction is 5 %. */
#define BAND_QUICK 0.08
#define BAND_FULL  0.03
/* A sweep ends when this many consecutive places cannot be measured. */
#define GIVE_UP 4

static const struct hv_sampling quick_sampling = {0.5e-3, 0.02, 3, 7, 0.25};
static const struct hv_sampling full_sampling = {2e-3, 0.005, 5, 30, 0.8};

struct run {
    const struct hv_bench *bench;
    const struct hv_measuring *how;
    struct hv_measured *out;
    double start_s, ranks;
    size_t done, about;
    bool stopped;
    struct hv_err *err;
};

static double elapsed_s(const struct run *r)
{
    return r->bench->now_s(r->bench->self) - r->start_s;
}

static const struct hv_probe_sample *seen_before(const struct run *r, const struct hv_probe *p)
{
    for (size_t i = 0; i < r->how->n_before; i++) {
        if (hv_probe_equal(&r->how->before[i].probe, p)) {
            return &r->how->before[i];
        }
    }
    return NULL;
}

/* True where the run has to end: budget used up, or cancelled. */
static bool over(struct run *r)
{
    const struct hv_measuring *how = r->how;
    if (!r->stopped &&
        (elapsed_s(r) >= how->budget_s || (how->cancelled != NULL && how->cancelled(how->ctx)))) {
        r->stopped = true;
        r->out->complete = false;
    }
    return r->stopped;
}

/* Times the probes as one; a sample of one probe is kept. HV_ENO: the device cannot. */
static enum hv_status sample(struct run *r, const struct hv_probe *probes, size_t n,
                             struct hv_probe_sample *out, struct hv_err *why)
{
    const struct hv_probe_sample *old = n == 1 ? seen_before(r, probes) : NULL;
    enum hv_status st = HV_OK;
    if (r->how->progress != NULL) {
        r->how->progress(r->how->ctx, r->done, r->about, elapsed_s(r), probes);
    }
    r->done++;
    if (old != NULL) {
        *out = *old;
    } else {
        st = hv_sample_run(r->bench, probes, n, r->how->quick ? &quick_sampling : &full_sampling,
                           out, why);
    }
    if (st == HV_OK && n == 1) {
        hv_vec_push(&r->out->samples, *out);
        if (old == NULL && r->how->keep != NULL) {
            st = r->how->keep(r->how->ctx, out, why);
        }
    }
    return st;
}

static enum hv_status fail(struct run *r, enum hv_status st, const struct hv_err *why)
{
    if (r->err != NULL) {
        *r->err = *why;
    }
    return st;
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

static bool wanted(const struct run *r, const struct hv_sweep_state *s)
{
    const struct hv_sweep *w = s->sweep;
    return !s->dead && !(w->only_full && r->how->quick) && !(w->needs_peers && r->ranks < 2) &&
           (!w->instead || s[-1].dead);
}

static bool nothing_known(const struct hv_lattice *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (hv_known(l->log2_rate[i])) {
            return false;
        }
    }
    return true;
}

/* Measures one place; HV_ENO when the device does not support it. */
static enum hv_status sweep_place(struct run *r, struct hv_sweep_state *s, size_t place,
                                  struct hv_err *why)
{
    double size[3];
    struct hv_probe_sample got;
    hv_lattice_sizes(&s->lattice, place, size);
    struct hv_probe p = hv_sweep_probe(s->sweep, size, r->ranks);
    enum hv_status st = sample(r, &p, 1, &got, why);
    hv_lattice_set(&s->lattice, place, st == HV_OK ? hv_sweep_work(&p) / got.median_s : HV_UNKNOWN);
    return st;
}

/* Measures the places of one level of one sweep. */
static enum hv_status sweep_level(struct run *r, struct hv_sweep_state *s, int level)
{
    size_t place = 0, failed = 0;
    struct hv_err why = {0};
    while (failed < GIVE_UP && hv_lattice_next(&s->lattice, level, &place) && !over(r)) {
        enum hv_status st = sweep_place(r, s, place, &why);
        if (st != HV_OK && st != HV_ENO) {
            return fail(r, st, &why);
        }
        failed = st == HV_ENO && nothing_known(&s->lattice) ? failed + 1 : 0;
    }
    if (failed > 0) {
        s->dead = true;
        (void)snprintf(s->why, sizeof s->why, "%.*s", (int)sizeof s->why - 1, why.text);
    }
    return HV_OK;
}

static enum hv_status all_sweeps(struct run *r, int level)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < r->out->n_sweeps && !over(r); i++) {
        if (wanted(r, &r->out->sweeps[i])) {
            st = sweep_level(r, &r->out->sweeps[i], level);
        }
    }
    return st;
}

/* True where there is a table of products of this precision. */
static bool alive(const struct hv_measured *m, enum hv_probe_variant v, enum hv_precision p)
{
    for (size_t i = 0; i < m->n_sweeps; i++) {
        const struct hv_sweep_state *s = &m->sweeps[i];
        if (s->sweep->variant == v && s->sweep->precision == p && !s->dead) {
            return true;
        }
    }
    return false;
}

/* The 16-bit format that the card supports. */
static enum hv_precision half(const struct hv_measured *m)
{
    return alive(m, HV_FORWARD, HV_BF16) ? HV_BF16 : HV_FP16;
}

static enum hv_status all_singles(struct run *r)
{
    size_t n = 0;
    const struct hv_probe *list = hv_singles(&n);
    for (size_t i = 0; i < n && !over(r); i++) {
        struct hv_probe p = list[i];
        struct hv_probe_sample got;
        struct hv_err why = {0};
        if (p.precision == HV_BF16 && hv_probe_kind_of(p.variant) <= HV_PROBE_ATTENTION) {
            p.precision = half(r->out);
        }
        enum hv_status st = sample(r, &p, 1, &got, &why);
        if (st != HV_OK && st != HV_ENO) {
            return fail(r, st, &why);
        }
        if (st == HV_OK && p.variant == HV_LAUNCH_EMPTY) {
            r->out->launch_s = got.median_s;
        }
    }
    return HV_OK;
}

static enum hv_status sweep_checks(struct run *r, const struct hv_sweep_state *s)
{
    double size[3];
    for (size_t i = 0; hv_sweep_check(s->sweep, i, size) && !over(r); i++) {
        struct hv_probe p = hv_sweep_probe(s->sweep, size, r->ranks);
        struct hv_probe_sample got;
        struct hv_err why = {0};
        enum hv_status st = sample(r, &p, 1, &got, &why);
        if (st != HV_OK && st != HV_ENO) {
            return fail(r, st, &why);
        }
    }
    return HV_OK;
}

static enum hv_status all_checks(struct run *r)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < r->out->n_sweeps; i++) {
        if (wanted(r, &r->out->sweeps[i])) {
            st = sweep_checks(r, &r->out->sweeps[i]);
        }
    }
    return st;
}

static enum hv_status one_layer(struct run *r, const struct hv_layer_shape *shape, bool backward)
{
    struct hv_probe probes[HV_LAYER_PROBES];
    struct hv_probe_sample got;
    struct hv_err why = {0};
    struct hv_layer_check check = {*shape, backward, half(r->out), 0, HV_UNKNOWN};
    size_t n = hv_layer_probes(shape, check.precision, backward, probes);
    enum hv_status st = sample(r, probes, n, &got, &why);
    if (st == HV_OK) {
        check.measured_s = got.median_s;
        hv_vec_push(&r->out->layers, check);
    }
    return st == HV_OK || st == HV_ENO ? HV_OK : fail(r, st, &why);
}

static enum hv_status all_layers(struct run *r)
{
    size_t n = 0;
    const struct hv_layer_shape *shapes = hv_layer_shapes(&n);
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < n && !over(r); i++) {
        st = one_layer(r, &shapes[i], false);
        if (st == HV_OK && !over(r)) {
            st = one_layer(r, &shapes[i], true);
        }
    }
    return st;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Number of places of the levels that are always measured, plus single shapes and layers. */
static size_t count(const struct run *r)
{
    size_t singles = 0, layers = 0, n = 0;
    (void)hv_singles(&singles);
    (void)hv_layer_shapes(&layers);
    for (size_t i = 0; i < r->out->n_sweeps; i++) {
        const struct hv_sweep_state *s = &r->out->sweeps[i];
        bool sure = wanted(r, s) && !s->sweep->instead;
        for (size_t k = 0; sure && k < s->lattice.n; k++) {
            n += hv_lattice_level(&s->lattice, k) < 2;
        }
        for (size_t k = 0; sure && hv_sweep_check(s->sweep, k, (double[3]){0}); k++) {
            n++;
        }
    }
    return n + singles + 2 * layers;
}

static void set_up(struct run *r)
{
    size_t n = 0;
    const struct hv_sweep *rows = hv_sweeps(&n);
    struct hv_measured *m = r->out;
    *m = (struct hv_measured){.n_sweeps = n, .launch_s = HV_UNKNOWN, .complete = true};
    m->sweeps = hv_xcalloc(n, sizeof *m->sweeps);
    for (size_t i = 0; i < n; i++) {
        m->sweeps[i].sweep = &rows[i];
        m->sweeps[i].error_frac = HV_UNKNOWN;
        hv_lattice_init(&m->sweeps[i].lattice, rows[i].axis, hv_sweep_axis_count(&rows[i]),
                        r->how->quick ? BAND_QUICK : BAND_FULL);
    }
    struct hv_bench_card card = {0};
    r->bench->card(r->bench->self, &card);
    r->ranks = card.peers;
    r->about = count(r);
}

enum hv_status hv_measure(const struct hv_bench *b, const struct hv_measuring *how,
                          struct hv_measured *out, struct hv_err *err)
{
    struct run r = {.bench = b, .how = how, .out = out, .start_s = b->now_s(b->self), .err = err};
    set_up(&r);
    enum hv_status st = all_sweeps(&r, 0);
    if (st == HV_OK) {
        st = all_sweeps(&r, 1);
    }
    if (st == HV_OK) {
        st = all_singles(&r);
    }
    if (st == HV_OK) {
        st = all_checks(&r);
    }
    if (st == HV_OK) {
        st = all_layers(&r);
    }
    if (st == HV_OK) {
        st = all_sweeps(&r, 2);
    }
    out->elapsed_s = elapsed_s(&r);
    return st;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static double log2_work(void *ctx, size_t place)
{
    const struct hv_sweep_state *s = ctx;
    double size[3];
    hv_lattice_sizes(&s->lattice, place, size);
    struct hv_probe p = hv_sweep_probe(s->sweep, size, 2);
    return log2(hv_sweep_work(&p));
}

/* The filled grid as a lattice of which every place is known. */
static double filled_at(const struct hv_sweep_state *s, const double log2_size[3])
{
    struct hv_lattice all = s->lattice;
    all.log2_rate = s->log2_rate;
    return hv_lattice_at(&all, HV_LATTICE_LEVELS - 1, log2_size);
}

double hv_measured_predict_s(const struct hv_measured *m, const struct hv_probe *p)
{
    double at[3];
    for (size_t i = 0; i < m->n_sweeps; i++) {
        const struct hv_sweep_state *s = &m->sweeps[i];
        if (s->log2_rate != NULL && hv_sweep_place(s->sweep, p, at)) {
            return hv_sweep_work(p) / exp2(filled_at(s, at));
        }
    }
    return HV_UNKNOWN;
}

/* True where these sizes lie on no place of the lattice. */
static bool off_places(const struct hv_lattice *l, const double log2_size[3])
{
    double size[3];
    for (size_t a = 0; a < 3; a++) {
        size[a] = exp2(log2_size[a]);
    }
    return hv_lattice_find(l, size) == l->n;
}

/* Mean error of a sweep's table on samples off its places; that of its coarser levels where there
 * are none. */
static double table_error(const struct hv_measured *m, const struct hv_sweep_state *s)
{
    double sum = 0, at[3];
    size_t n = 0;
    for (size_t i = 0; i < m->samples.n; i++) {
        const struct hv_probe_sample *x = &m->samples.items[i];
        if (x->probe.variant == s->sweep->variant && hv_sweep_place(s->sweep, &x->probe, at) &&
            off_places(&s->lattice, at)) {
            double predicted_s = hv_sweep_work(&x->probe) / exp2(filled_at(s, at));
            sum += fabs(predicted_s / x->median_s - 1);
            n++;
        }
    }
    return n > 0 ? sum / (double)n : hv_lattice_error_frac(&s->lattice);
}

static void predict_layer(const struct hv_measured *m, struct hv_layer_check *c)
{
    struct hv_probe probes[HV_LAYER_PROBES];
    size_t n = hv_layer_probes(&c->shape, c->precision, c->backward, probes);
    c->predicted_s = 0;
    for (size_t i = 0; i < n; i++) {
        c->predicted_s += hv_measured_predict_s(m, &probes[i]);
    }
}

void hv_measured_fill(struct hv_measured *m)
{
    for (size_t i = 0; i < m->n_sweeps; i++) {
        struct hv_sweep_state *s = &m->sweeps[i];
        free(s->log2_rate);
        s->log2_rate = hv_xcalloc(s->lattice.n, sizeof *s->log2_rate);
        if (!hv_lattice_fill(&s->lattice, log2_work, s, s->log2_rate)) {
            free(s->log2_rate);
            s->log2_rate = NULL;
        }
    }
    for (size_t i = 0; i < m->n_sweeps; i++) {
        if (m->sweeps[i].log2_rate != NULL) {
            m->sweeps[i].error_frac = table_error(m, &m->sweeps[i]);
        }
    }
    for (size_t i = 0; i < m->layers.n; i++) {
        predict_layer(m, &m->layers.items[i]);
    }
}

void hv_measured_free(struct hv_measured *m)
{
    for (size_t i = 0; i < m->n_sweeps; i++) {
        hv_lattice_free(&m->sweeps[i].lattice);
        free(m->sweeps[i].log2_rate);
    }
    free(m->sweeps);
    hv_vec_free(&m->samples);
    hv_vec_free(&m->layers);
    *m = (struct hv_measured){0};
}
