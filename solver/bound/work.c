/**
 * The work of a job as items with a price on every kind of device, and speeds of devices that make
 * the most of it (weak duality: least.c says what follows).
 */
#include "solver/bound/bound_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a kind of devices needs for the work --------------------------------------------------
 */

/** The figures of a kind of the cluster: a row of the lists of hv__work. */
struct figures {
    const struct hv_device_kind *kind;
    size_t n_items;
    double *floor_s;                      /**< [n_items] */
    const struct hv_cost_by_size **sizes; /**< [n_items] */
    double step_s, jitter, pass_s, usable_bytes;
};

/** A part of the model in all its blocks of one class. */
struct item {
    enum hv_part part;
    size_t block;
    double units;
};

/** All parts, in the order of the items of hv__work; the optimizer follows them. */
static size_t list_items(struct hv_cost *k, double batch, struct hv_arena *arena, struct item **out)
{
    const struct hv_model *m = hv_cost_model(k);
    unsigned n_classes = hv_cost_n_classes(k);
    double *blocks = hv_arena_new(arena, double, n_classes + 1);
    size_t n = 0;
    *out = hv_arena_new(arena, struct item, 2 * (size_t)n_classes + 2);
    for (size_t i = 0; i < m->n_blocks; i++) {
        blocks[hv_cost_block_class(k, i)] += 1;
    }
    for (unsigned i = 0; i < n_classes; i++) {
        size_t block = hv_cost_class_block(k, i);
        (*out)[n++] = (struct item){HV_PART_ATTENTION, block, batch * blocks[i]};
        (*out)[n++] = (struct item){HV_PART_FFN, block, batch * blocks[i]};
    }
    (*out)[n++] = (struct item){HV_PART_EMBEDDING, 0, batch};
    (*out)[n++] = (struct item){HV_PART_HEAD, 0, batch};
    return n;
}

/** What a step costs besides work; measured layers hold whatever was measured with them. */
static void add_steps(struct figures *f)
{
    const struct hv_calibration *cal = hv_device_calibration(f->kind);
    f->step_s = cal->v[HV_CAL_STEP_MS] * 1e-3;
    f->jitter = cal->v[HV_CAL_JITTER];
    f->pass_s = 2 * cal->v[HV_CAL_PASS_US] * HV_US;
}

static struct figures figures_of(struct hv_cost *k, const struct item *items, size_t n,
                                 const struct hv_device_kind *kind, struct hv_arena *arena)
{
    const struct hv_model *m = hv_cost_model(k);
    bool by_size = hv_cost_n_classes(k) <= HV__CLASSES_BY_SIZE;
    bool transformer = hv_model_has_transformer(m);
    struct figures f = {
        .kind = kind, .n_items = n + 1, .usable_bytes = fmax(0, hv_cost_usable_bytes(k, kind))};
    f.floor_s = hv_arena_new(arena, double, n + 1);
    f.sizes = hv_arena_new(arena, const struct hv_cost_by_size *, n + 1);
    for (size_t i = 0; i < n; i++) {
        f.floor_s[i] = hv_cost_floor_s(k, items[i].part, items[i].block, kind);
        f.sizes[i] = by_size ? hv_cost_by_size(k, items[i].part, items[i].block, kind) : NULL;
    }
    /* every weight is updated once, somewhere; the start of the kernel is left out */
    double weights = transformer ? hv_model_parameters(m) : 0;
    double step_s = hv_cost_optimizer_s(k, kind, 2 * weights);
    f.floor_s[n] = step_s - hv_cost_optimizer_s(k, kind, weights);
    if (transformer) {
        add_steps(&f);
    }
    return f;
}

static int compare_cells(const struct hv_cost_by_size *a, const struct hv_cost_by_size *b)
{
    if (a == NULL || b == NULL) {
        return (b == NULL) - (a == NULL);
    }
    if (a->n_cells != b->n_cells) {
        return a->n_cells < b->n_cells ? -1 : 1;
    }
    int order = 0;
    for (size_t i = 0; order == 0 && i < a->n_cells; i++) {
        const struct hv_cost_cell *x = &a->cells[i], *y = &b->cells[i];
        order = hv_compare_numbers(x->most, y->most);
        for (size_t of = 0; order == 0 && of < HV_COST_OF_N; of++) {
            order = hv_compare_numbers(x->of[of].each_s, y->of[of].each_s);
            order = order != 0 ? order : hv_compare_numbers(x->of[of].start_s, y->of[of].start_s);
        }
    }
    return order;
}

/** Order of kinds by their figures, fastest first; 0: equal. */
static int compare_figures(const struct figures *x, const struct figures *y)
{
    const double pairs[][2] = {{x->step_s, y->step_s},
                               {x->jitter, y->jitter},
                               {x->pass_s, y->pass_s},
                               {x->usable_bytes, y->usable_bytes}};
    int order = 0;
    for (size_t i = 0; order == 0 && i < x->n_items; i++) {
        order = hv_compare_numbers(x->floor_s[i], y->floor_s[i]);
    }
    for (size_t i = 0; order == 0 && i < HV_COUNT(pairs); i++) {
        order = hv_compare_numbers(pairs[i][0], pairs[i][1]);
    }
    for (size_t i = 0; order == 0 && i < x->n_items; i++) {
        order = compare_cells(x->sizes[i], y->sizes[i]);
    }
    return order;
}

static int by_figures(const void *a, const void *b)
{
    return compare_figures(a, b);
}

static int by_address(const void *a, const void *b)
{
    const struct hv__kind_row *x = a, *y = b;
    return ((uintptr_t)x->kind > (uintptr_t)y->kind) - ((uintptr_t)x->kind < (uintptr_t)y->kind);
}

/** Fills the lists of w with one row for all kinds with the same figures. Sorts `f`, [n]. */
static void list_kinds(struct hv__work *w, struct figures *f, size_t n, struct hv_arena *arena)
{
    struct hv__kind_row *rows = hv_arena_new(arena, struct hv__kind_row, n + 1);
    qsort(f, n, sizeof *f, by_figures);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || compare_figures(&f[i - 1], &f[i]) != 0) {
            size_t at = w->n_kinds++;
            memcpy(w->floor_s + at * w->stride, f[i].floor_s, w->stride * sizeof *w->floor_s);
            memcpy(w->sizes + at * w->stride, f[i].sizes,
                   w->stride * sizeof(const struct hv_cost_by_size *));
            w->step_s[at] = f[i].step_s;
            w->jitter[at] = f[i].jitter;
            w->pass_s[at] = f[i].pass_s;
            w->usable_bytes[at] = f[i].usable_bytes;
        }
        rows[i] = (struct hv__kind_row){f[i].kind, w->n_kinds - 1};
    }
    qsort(rows, n, sizeof *rows, by_address);
    w->rows = rows;
    w->n_rows = n;
}

/* ---- devices ------------------------------------------------------------------------------------
 */

static size_t row_of(const struct hv__work *w, const struct hv_device_kind *kind)
{
    const struct hv__kind_row key = {kind, 0};
    const struct hv__kind_row *found = bsearch(&key, w->rows, w->n_rows, sizeof key, by_address);
    return found->row; /* all kinds of the cluster are listed */
}

/** Counts the devices of so many nodes. */
static void count_nodes(struct hv__work *w, const struct hv_node_group *g, double nodes)
{
    for (size_t s = 0; nodes > 0 && s < g->n_slots; s++) {
        w->devices[row_of(w, g->slots[s].kind)] += g->slots[s].count * nodes;
    }
}

/** A kind that cannot run the job, or that was measured to take no time at all, adds no speed. */
static void leave_out_useless(struct hv__work *w)
{
    for (size_t i = 0; i < w->n_kinds; i++) {
        double all_s = 0;
        for (size_t c = 0; c < w->n_items; c++) {
            all_s += w->floor_s[i * w->stride + c];
        }
        if (!isfinite(all_s) || all_s <= 0) {
            w->devices[i] = 0;
        }
    }
}

void hv__keep_side(struct hv__work *w, const struct hv_houses *houses, const uint32_t *beyond,
                   bool side, struct hv_arena *arena)
{
    w->devices = hv_arena_new(arena, double, w->n_kinds);
    for (size_t i = 0; i < houses->n_classes; i++) {
        const struct hv_house_class *c = &houses->classes[i];
        count_nodes(w, c->group, (double)(side ? beyond[i] : c->houses - beyond[i]) * c->nodes);
    }
    leave_out_useless(w);
}

struct hv__work hv__list_work(struct hv_cost *k, struct hv_arena *arena)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    struct item *items;
    double batch = (double)hv_cost_job(k)->global_batch;
    size_t n = list_items(k, batch, arena, &items);
    struct hv__work w = {.n_items = n + 1,
                         .stride = n + 1,
                         .batch = batch,
                         .state_bytes = hv_cost_least_state_bytes(k)};
    w.units = hv_arena_new(arena, double, w.stride);
    for (size_t i = 0; i < n; i++) {
        w.units[i] = items[i].units;
    }
    w.units[n] = 1; /* the optimizer step */
    w.floor_s = hv_arena_new(arena, double, w.stride * c->n_kinds);
    w.sizes = hv_arena_new(arena, const struct hv_cost_by_size *, w.stride * c->n_kinds);
    double **columns[] = {&w.devices, &w.step_s, &w.jitter, &w.pass_s, &w.usable_bytes};
    for (size_t i = 0; i < HV_COUNT(columns); i++) {
        *columns[i] = hv_arena_new(arena, double, c->n_kinds + 1);
    }
    struct figures *f = hv_arena_new(arena, struct figures, c->n_kinds + 1);
    for (size_t i = 0; i < c->n_kinds; i++) {
        f[i] = figures_of(k, items, n, c->kinds[i], arena);
    }
    list_kinds(&w, f, c->n_kinds, arena);
    for (size_t g = 0; g < c->n_groups; g++) {
        /* a plan may use spare nodes */
        bool counts = c->groups[g].state != HV_NODE_DRAIN;
        count_nodes(&w, &c->groups[g], counts ? c->groups[g].count : 0);
    }
    leave_out_useless(&w);
    return w;
}

bool hv__is_stopped(const struct hv__work *w)
{
    struct hv__stop *s = w->stop;
    if (s != NULL && !s->stopped && s->ask != NULL) {
        s->stopped = s->ask(s->ctx);
    }
    return s != NULL && s->stopped;
}

/* ---- prices -------------------------------------------------------------------------------------
 */

/** Values the work by the speeds of these kinds. */
static void set_values(const struct hv__work *w, const bool *kinds, struct hv__prices *p)
{
    p->all = p->pipeline = p->optimizer = 0;
    for (size_t c = 0; c < w->n_items; c++) {
        double u = HUGE_VAL;
        for (size_t k = 0; k < w->n_kinds; k++) {
            if (kinds[k]) {
                u = fmin(u, p->speed[k] * w->floor_s[k * w->stride + c]);
            }
        }
        p->all += w->units[c] * u;
        *(c + 1 < w->n_items ? &p->pipeline : &p->optimizer) += w->units[c] * u;
    }
}

/** Candidate speeds: the value of every class is at least its cost on one kind. */
static struct hv__prices prices_like(const struct hv__work *w, const bool *kinds, size_t kind,
                                     struct hv_arena *arena)
{
    struct hv__prices p = {.speed = hv_arena_new(arena, double, w->n_kinds)};
    for (size_t k = 0; k < w->n_kinds; k++) {
        for (size_t c = 0; kinds[k] && c < w->n_items; c++) {
            double own = w->floor_s[k * w->stride + c];
            if (own > 0) {
                p.speed[k] = fmax(p.speed[k], w->floor_s[kind * w->stride + c] / own);
            }
        }
    }
    set_values(w, kinds, &p);
    return p;
}

static double total_speed(const struct hv__work *w, const bool *kinds, const struct hv__prices *p)
{
    double speed = 0;
    for (size_t k = 0; k < w->n_kinds; k++) {
        speed += kinds[k] ? w->devices[k] * p->speed[k] : 0;
    }
    return speed;
}

double hv__spread_s(const struct hv__work *w, const bool *kinds, const struct hv__prices *p,
                    double value)
{
    double speed = total_speed(w, kinds, p);
    return speed > 0 ? value / speed : 0;
}

/** Makes one kind faster or slower while that raises the bound, in smaller and smaller steps. */
static void improve_prices(const struct hv__work *w, const bool *kinds, struct hv__prices *p)
{
    double best = hv__spread_s(w, kinds, p, p->all);
    for (double step = 2; step > 1.002; step = sqrt(step)) {
        for (size_t k = 0; k < w->n_kinds && !hv__is_stopped(w); k++) {
            for (int up = 0; up < 2 && kinds[k]; up++) {
                double before = p->speed[k];
                p->speed[k] *= up ? step : 1 / step;
                set_values(w, kinds, p);
                double now = hv__spread_s(w, kinds, p, p->all);
                if (now > best) {
                    best = now;
                    up--;
                } else {
                    p->speed[k] = before;
                }
            }
        }
    }
    set_values(w, kinds, p);
}

struct hv__prices hv__prices_of(const struct hv__work *w, const bool *kinds, struct hv_arena *arena)
{
    struct hv__prices best = {0};
    for (size_t k = 0; k < w->n_kinds; k++) {
        if (kinds[k] && (best.speed == NULL || !hv__is_stopped(w))) {
            struct hv__prices p = prices_like(w, kinds, k, arena);
            if (best.speed == NULL ||
                hv__spread_s(w, kinds, &p, p.all) > hv__spread_s(w, kinds, &best, best.all)) {
                best = p;
            }
        }
    }
    improve_prices(w, kinds, &best);
    best.total = total_speed(w, kinds, &best);
    return best;
}
