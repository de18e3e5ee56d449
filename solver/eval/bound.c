/**
 * A time that no plan can beat.
 *
 * Let N_c be the work units of class c (blocks, embedding, head, times sequences) and w(k,c) the
 * least device-seconds of one unit on kind k (hv_cost_floor_s). A plan spreads units over devices;
 * a device is busy for at least the sum of its units' w, so with prices u_c ≥ 0 and D_k devices of
 * kind k T ≥ Σ_c N_c u_c / Σ_k D_k max_c (u_c / w(k,c)). This is weak duality of the fractional
 * assignment problem: any u gives a true bound. We take the best over u = w(k', ·) for every kind
 * k'; with one kind that is the exact optimum of the relaxation.
 */
#include "solver/eval/eval_int.h"

struct work {
    size_t n_items, n_kinds, stride;
    double *units;   /**< [n_items] */
    double *floor_s; /**< [n_kinds × stride] */
    double *devices; /**< [n_kinds] */
};

/** Adds one class of work with its floors on every kind. Rows of floor_s are `stride` long. */
static void add_item(struct hv_cost *k, struct work *w, enum hv_part part, size_t block,
                     double units)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    for (size_t i = 0; i < w->n_kinds; i++) {
        w->floor_s[i * w->stride + w->n_items] = hv_cost_floor_s(k, part, block, c->kinds[i]);
    }
    w->units[w->n_items++] = units;
}

static void count_devices(struct hv_cost *k, struct work *w)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    for (size_t g = 0; g < c->n_groups; g++) {
        const struct hv_node_group *group = &c->groups[g];
        for (size_t s = 0; group->state == HV_NODE_OK && s < group->n_slots; s++) {
            for (size_t i = 0; i < w->n_kinds; i++) {
                if (c->kinds[i] == group->slots[s].kind) {
                    w->devices[i] += (double)group->slots[s].count * group->count;
                }
            }
        }
    }
}

/** Prices that keep the bound true: a class that some kind does for nothing is worth nothing. */
static double price_of(const struct work *w, const double *price, size_t c)
{
    for (size_t k = 0; k < w->n_kinds; k++) {
        if (w->devices[k] > 0 && !(w->floor_s[k * w->stride + c] > 0)) {
            return 0;
        }
    }
    return price[c];
}

static double bound_with_prices(const struct work *w, const double *price)
{
    double value = 0, speed = 0;
    for (size_t c = 0; c < w->n_items; c++) {
        value += w->units[c] * price_of(w, price, c);
    }
    for (size_t k = 0; k < w->n_kinds; k++) {
        double best = 0;
        for (size_t c = 0; w->devices[k] > 0 && c < w->n_items; c++) {
            double u = price_of(w, price, c);
            if (u > 0) {
                best = fmax(best, u / w->floor_s[k * w->stride + c]);
            }
        }
        speed += w->devices[k] * best;
    }
    return speed > 0 ? value / speed : 0;
}

static struct work list_work(struct hv_cost *k, struct hv_arena *arena)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    const struct hv_model *m = hv_cost_model(k);
    unsigned n_classes = hv_cost_n_classes(k);
    double batch = (double)hv_cost_job(k)->global_batch;
    struct work w = {.n_kinds = c->n_kinds};
    size_t most = 2 * (size_t)n_classes + 2;
    w.stride = most;
    w.units = hv_arena_new(arena, double, most);
    w.floor_s = hv_arena_new(arena, double, most * c->n_kinds);
    w.devices = hv_arena_new(arena, double, c->n_kinds);
    double *blocks = hv_arena_new(arena, double, n_classes);
    for (size_t i = 0; i < m->n_blocks; i++) {
        blocks[hv_cost_block_class(k, i)] += 1;
    }
    for (unsigned i = 0; i < n_classes; i++) {
        add_item(k, &w, HV_PART_ATTENTION, hv_cost_class_block(k, i), batch * blocks[i]);
        add_item(k, &w, HV_PART_FFN, hv_cost_class_block(k, i), batch * blocks[i]);
    }
    add_item(k, &w, HV_PART_EMBEDDING, 0, batch);
    add_item(k, &w, HV_PART_HEAD, 0, batch);
    count_devices(k, &w);
    return w;
}

void hv_eval_bound(struct hv_cost *k, struct hv_arena *arena, struct hv_bound *out)
{
    struct work w = list_work(k, arena);
    double best = 0;
    size_t used = 0;
    double devices = 0;
    for (size_t i = 0; i < w.n_kinds; i++) {
        const double *price = w.floor_s + i * w.stride;
        bool usable = w.devices[i] > 0;
        for (size_t c = 0; c < w.n_items; c++) {
            usable = usable && isfinite(price[c]);
        }
        if (!usable) {
            w.devices[i] = 0; /* a kind that cannot run the job adds no speed */
            continue;
        }
        used++;
        devices += w.devices[i];
    }
    for (size_t i = 0; i < w.n_kinds; i++) {
        if (w.devices[i] > 0) {
            best = fmax(best, bound_with_prices(&w, &w.floor_s[i * w.stride]));
        }
    }
    char buf[HV_FMT_CAP];
    out->compute_s = best;
    out->iteration_s = best;
    out->why =
        used == 0
            ? "no device of the cluster can run this job"
            : hv_arena_printf(arena,
                              "the forward and backward work of the whole batch at the best speed "
                              "the cost model grants, spread "
                              "without loss over all %.0f usable devices (%zu kind%s), takes %s",
                              devices, used, used == 1 ? "" : "s",
                              hv_fmt_seconds(buf, sizeof buf, best));
}
