/**
 * The work of a job as items with a price on every kind of device, and speeds of devices that make
 * the most of it (weak duality: least.c says what follows).
 */
#include "solver/bound/bound_int.h"

#include <stdlib.h>
#include <string.h>

/** Adds one class of work with its floors on every kind. Rows of floor_s are `stride` long. */
static void add_item(struct hv_cost *k, struct hv__work *w, enum hv_part part, size_t block,
                     double units)
{
    bool by_size = hv_cost_n_classes(k) <= HV__CLASSES_BY_SIZE;
    for (size_t i = 0; i < w->n_kinds; i++) {
        size_t at = i * w->stride + w->n_items;
        w->floor_s[at] = hv_cost_floor_s(k, part, block, w->kinds[i]);
        w->sizes[at] = by_size ? hv_cost_by_size(k, part, block, w->kinds[i]) : NULL;
    }
    w->units[w->n_items++] = units;
}

/** Every weight is updated once, somewhere; the start of the kernel is left out. */
static void add_optimizer(struct hv_cost *k, struct hv__work *w)
{
    double n = w->transformer ? hv_model_parameters(hv_cost_model(k)) : 0;
    for (size_t i = 0; i < w->n_kinds; i++) {
        double step_s = hv_cost_optimizer_s(k, w->kinds[i], 2 * n);
        w->floor_s[i * w->stride + w->n_items] = step_s - hv_cost_optimizer_s(k, w->kinds[i], n);
    }
    w->units[w->n_items++] = 1;
}

/** Those of one side of a cut; `beyond` NULL: of all groups. */
static void count_devices(struct hv_cost *k, struct hv__work *w, const bool *beyond, bool side)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    for (size_t g = 0; g < c->n_groups; g++) {
        const struct hv_node_group *group = &c->groups[g];
        /* a plan may use spare nodes */
        bool counts = group->state != HV_NODE_DRAIN && (beyond == NULL || beyond[g] == side);
        for (size_t s = 0; counts && s < group->n_slots; s++) {
            for (size_t i = 0; i < w->n_kinds; i++) {
                if (w->kinds[i] == group->slots[s].kind) {
                    w->devices[i] += (double)group->slots[s].count * group->count;
                }
            }
        }
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

void hv__keep_side(struct hv_cost *k, struct hv__work *w, const bool *beyond, bool side,
                   struct hv_arena *arena)
{
    w->devices = hv_arena_new(arena, double, w->n_kinds);
    count_devices(k, w, beyond, side);
    leave_out_useless(w);
}

/** What a step costs besides work; measured layers hold whatever was measured with them. */
static void add_steps(struct hv__work *w)
{
    for (size_t i = 0; w->transformer && i < w->n_kinds; i++) {
        const struct hv_calibration *cal = hv_device_calibration(w->kinds[i]);
        w->step_s[i] = cal->v[HV_CAL_STEP_MS] * 1e-3;
        w->jitter[i] = cal->v[HV_CAL_JITTER];
        w->pass_s[i] = 2 * cal->v[HV_CAL_PASS_US] * HV_US;
    }
}

static void add_memory(const struct hv_cost *k, struct hv__work *w)
{
    w->state_bytes = hv_cost_least_state_bytes(k);
    for (size_t i = 0; i < w->n_kinds; i++) {
        w->usable_bytes[i] = fmax(0, hv_cost_usable_bytes(k, w->kinds[i]));
    }
}

static int by_name(const void *a, const void *b)
{
    const struct hv_device_kind *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

struct hv__work hv__list_work(struct hv_cost *k, struct hv_arena *arena)
{
    const struct hv_model *m = hv_cost_model(k);
    unsigned n_classes = hv_cost_n_classes(k);
    double batch = (double)hv_cost_job(k)->global_batch;
    struct hv__work w = {.n_kinds = hv_cost_cluster(k)->n_kinds,
                         .stride = 2 * (size_t)n_classes + 3,
                         .batch = batch,
                         .transformer = hv_model_has_transformer(m)};
    w.units = hv_arena_new(arena, double, w.stride);
    w.floor_s = hv_arena_new(arena, double, w.stride *w.n_kinds);
    w.sizes = hv_arena_new(arena, const struct hv_cost_by_size *, w.stride *w.n_kinds);
    w.kinds = hv_arena_copy(arena, hv_cost_cluster(k)->kinds, w.n_kinds, sizeof *w.kinds);
    qsort(w.kinds, w.n_kinds, sizeof *w.kinds, by_name);
    double **columns[] = {&w.devices, &w.step_s, &w.jitter, &w.pass_s, &w.usable_bytes};
    for (size_t i = 0; i < HV_COUNT(columns); i++) {
        *columns[i] = hv_arena_new(arena, double, w.n_kinds);
    }
    double *blocks = hv_arena_new(arena, double, n_classes);
    for (size_t i = 0; i < m->n_blocks; i++) {
        blocks[hv_cost_block_class(k, i)] += 1;
    }
    for (unsigned i = 0; i < n_classes; i++) {
        size_t block = hv_cost_class_block(k, i);
        add_item(k, &w, HV_PART_ATTENTION, block, batch * blocks[i]);
        add_item(k, &w, HV_PART_FFN, block, batch * blocks[i]);
    }
    add_item(k, &w, HV_PART_EMBEDDING, 0, batch);
    add_item(k, &w, HV_PART_HEAD, 0, batch);
    add_optimizer(k, &w);
    count_devices(k, &w, NULL, false);
    leave_out_useless(&w);
    add_steps(&w);
    add_memory(k, &w);
    return w;
}

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
        for (size_t k = 0; k < w->n_kinds; k++) {
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
        if (kinds[k]) {
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
