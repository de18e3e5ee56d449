/**
 * The end of an iteration: gradient reductions in buckets on the link lanes, optimizer, gathers.
 * The members of reductions are in reduce.c.
 */
#include "solver/eval/train/reduce_int.h"

#include <stdlib.h>

/** Runs of consecutive buckets that one segment is cut into at most. A run that nothing comes
 * between takes as long as its buckets one by one. */
#define RUNS_MAX 8

static double n_buckets_of(const struct hv__lowered *l, const struct hv__segment *s)
{
    if (s->from2 < 0 || !hv__overlaps(l) || l->schedule.stale) {
        return 1;
    }
    return fmax(1, ceil(hv__segment_bytes(l, s) / l->plan->sync.bucket_bytes[0]));
}

/** Time at which a holder has the gradients of all half blocks from `down_to2` upwards. */
static double ready_s(const struct hv__lowered *l, const struct hv__holder *h,
                      const struct hv__segment *s, double down_to2)
{
    if (!hv__overlaps(l)) {
        return h->rank->compute_end_s;
    }
    double span = (double)(h->g->range.to2 - h->g->range.from2);
    if (s->from2 < 0 && hv__end_is_head(s->from2)) {
        return h->ready_s - h->duration_s;
    }
    if (s->from2 < 0 || span <= 0) {
        return h->ready_s;
    }
    return h->ready_s - h->duration_s * (down_to2 - h->g->range.from2) / span;
}

/** A run of equal buckets that waits for its turn. It uses the link lanes of its holders and, where
 * it leaves a node, that node's network and the named links between nodes: buckets on one of them
 * are reduced one after the other, next to activations still in transfer. */
struct pending {
    double ready_s, last_ready_s; /**< of its first and its last bucket */
    double duration_s, bucket_s;  /**< of all of its buckets, and of one */
    const struct hv__segment *s;
    struct hv__lanes lanes;
    size_t order;
};

static int compare_pending(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    if (x->ready_s != y->ready_s) {
        return x->ready_s < y->ready_s ? -1 : 1;
    }
    return (x->order > y->order) - (x->order < y->order);
}

/** Time at which all holders of a segment have the gradients of its first `done` of n buckets. */
static double bucket_ready_s(const struct hv__lowered *l, const struct hv__segment *s, double done,
                             double n)
{
    double down_to2 = s->to2 - (double)(s->to2 - s->from2) * done / n;
    double ready = 0;
    for (size_t h = 0; h < s->n_holders; h++) {
        ready = fmax(ready, ready_s(l, &s->holders[h], s, down_to2));
    }
    return ready;
}

/** Time at which all holders have the gradients down to a half block. */
static double all_ready_s(const struct hv__lowered *l, const struct hv__segment *s, int down_to2)
{
    double ready = 0;
    for (size_t h = 0; h < s->n_holders; h++) {
        ready = fmax(ready, ready_s(l, &s->holders[h], s, down_to2));
    }
    return ready;
}

/** Time at which a bucket whose gradients are there may start: at once, or at the next tick of the
 * cycle; a last digit does not miss a tick. */
static double tick_s(const struct hv__lowered *l, double ready_s)
{
    double cycle_s = l->plan->sync.cycle_s;
    return cycle_s > 0 ? cycle_s * ceil(ready_s / cycle_s * (1 - 1e-12)) : ready_s;
}

/** Buckets of a model of measured layers, in the order in which gradients arrive: whole layers.
 * Without a cycle the layer with which a bucket reaches its size closes it (Li et al. 2020, PyTorch
 * Distributed; reducer.cpp, compute_bucket_assignment_by_size). With one, the layers that are there
 * at a tick are fused as long as they fit (Sergeev and Del Balso 2018, Horovod, tensor fusion). */
struct closing {
    const struct hv__segment *s;
    double segment_bytes; /**< of one rank */
    double parameters;    /**< of the segment */
    int at2;              /**< half blocks from here on are in buckets */
    size_t n_closed;
};

/** The layer below the present place, as bytes of one rank. */
static double next_bytes(const struct hv__lowered *l, const struct closing *c)
{
    struct hv__segment layer = *c->s;
    layer.to2 = c->at2;
    layer.from2 = c->at2 - 2;
    return c->segment_bytes * hv__segment_parameters(l, &layer).dense / c->parameters;
}

/** True where the next layer joins a bucket of so many bytes. */
static bool joins(const struct hv__lowered *l, const struct closing *c, double bytes, double size)
{
    if (c->at2 <= c->s->from2) {
        return false;
    }
    if (!(l->plan->sync.cycle_s > 0)) {
        return bytes < size;
    }
    return bytes + next_bytes(l, c) <= size * (1 + 1e-12) &&
           tick_s(l, all_ready_s(l, c->s, c->at2 - 2)) <= tick_s(l, all_ready_s(l, c->s, c->at2));
}

/** Next bucket: its share of the segment's bytes; at2 is moved to its first half block. */
static double close_bucket(const struct hv__lowered *l, struct closing *c)
{
    const struct hv_sync *y = &l->plan->sync;
    size_t which = c->n_closed < y->n_buckets ? c->n_closed : y->n_buckets - 1;
    double bytes = 0;
    do {
        bytes += next_bytes(l, c);
        c->at2 -= 2;
    } while (joins(l, c, bytes, y->bucket_bytes[which]));
    c->n_closed++;
    return bytes / c->segment_bytes;
}

/** True where the buckets of a segment are made of whole measured layers. */
static bool of_layers(const struct hv__lowered *l, const struct hv__segment *s)
{
    return s->from2 >= 0 && s->from2 % 2 == 0 && s->to2 % 2 == 0 && l->leaves.n == 1 &&
           l->leaves.items[0].model->kind == HV_MODEL_LAYERS && hv__overlaps(l) &&
           !l->schedule.stale && !hv__by_servers(l) && hv__segment_bytes(l, s) > 0;
}

/** Appends the buckets of a segment of measured layers to `p`, which has room for one per layer. */
static size_t list_layers(const struct hv__lowered *l, const struct hv__segment *s,
                          struct pending *p, size_t n)
{
    struct closing c = {s, hv__segment_bytes(l, s), hv__segment_parameters(l, s).dense, s->to2, 0};
    struct hv__lanes lanes = hv__segment_lanes(l, s);
    while (c.at2 > s->from2) {
        double share = close_bucket(l, &c);
        double each = share > 0 ? hv__bucket_s(l, s, 1 / share) : 0;
        if (each > 0) {
            double ready = tick_s(l, all_ready_s(l, s, c.at2));
            p[n] = (struct pending){ready, ready, each, each, s, lanes, n};
            n++;
        }
    }
    return n;
}

static struct pending *list_pending(struct hv__lowered *l, size_t *out_n)
{
    size_t n_segments = 0, n = 0;
    struct hv__segment *s = hv__segments(l, &n_segments);
    size_t room = 1;
    for (size_t i = 0; i < n_segments; i++) {
        room += RUNS_MAX + (size_t)(s[i].to2 - s[i].from2);
    }
    struct pending *p = hv_arena_new(l->arena, struct pending, room);
    for (size_t i = 0; i < n_segments; i++) {
        if (of_layers(l, &s[i])) {
            n = list_layers(l, &s[i], p, n);
            continue;
        }
        double buckets = n_buckets_of(l, &s[i]);
        size_t runs = (size_t)fmin(buckets, RUNS_MAX);
        struct hv__lanes lanes = {0};
        double each = hv__by_servers(l) ? hv__push_pull_s(l, &s[i], buckets, &lanes)
                                        : hv__bucket_s(l, &s[i], buckets);
        if (each > 0 && !hv__by_servers(l)) {
            lanes = hv__segment_lanes(l, &s[i]);
        }
        for (size_t k = 0; each > 0 && k < runs; k++) {
            double from = floor(buckets * (double)k / (double)runs);
            double to = floor(buckets * (double)(k + 1) / (double)runs);
            p[n] = (struct pending){bucket_ready_s(l, &s[i], from + 1, buckets),
                                    bucket_ready_s(l, &s[i], to, buckets),
                                    (to - from) * each,
                                    each,
                                    &s[i],
                                    lanes,
                                    n};
            n++;
        }
    }
    *out_n = n;
    return p;
}

/** Times until which lanes are in use. */
struct taken {
    double *rank_s; /**< by flat rank */
    double *lane_s; /**< by node, then by named link */
    struct hv__links_left *traffic;
};

/** Number of lanes of the network: nodes and named links. */
static size_t n_lanes(const struct hv__lowered *l)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    return c->n_nodes + c->n_links;
}

/** Reduces one run as soon as all its lanes are free; its last bucket begins no sooner than it is
 * ready. */
static void run_one(const struct hv__lowered *l, const struct pending *p, struct taken *t,
                    struct hv__reduction *r)
{
    const struct hv__segment *s = p->s;
    *r = (struct hv__reduction){.from2 = s->from2, .to2 = s->to2, .n_ranks = s->n_holders};
    r->ranks = hv_arena_new(l->arena, size_t, s->n_holders);
    r->start_s = p->ready_s;
    for (size_t h = 0; h < s->n_holders; h++) {
        r->ranks[h] = s->holders[h].flat_rank;
        r->start_s = fmax(r->start_s, t->rank_s[r->ranks[h]]);
    }
    for (size_t k = 0; k < p->lanes.n; k++) {
        r->start_s = fmax(r->start_s, t->lane_s[p->lanes.ids[k]]);
    }
    r->end_s = hv__end_on_links_left(t->traffic, &p->lanes, r->start_s, p->duration_s);
    if (p->last_ready_s + p->bucket_s > r->start_s + p->duration_s) {
        r->end_s = fmax(r->end_s,
                        hv__end_on_links_left(t->traffic, &p->lanes, p->last_ready_s, p->bucket_s));
    }
    for (size_t k = 0; k < p->lanes.n; k++) {
        t->lane_s[p->lanes.ids[k]] = r->start_s + p->lanes.shares[k] * (r->end_s - r->start_s);
    }
    for (size_t h = 0; h < s->n_holders; h++) {
        t->rank_s[r->ranks[h]] = r->end_s;
    }
}

/** Runs the reductions in order of readiness; each occupies the link lane of all its holders. */
static void run_reductions(struct hv__lowered *l)
{
    size_t n = 0;
    struct pending *p = list_pending(l, &n);
    qsort(p, n, sizeof *p, compare_pending);
    struct taken t = {.rank_s =
                          hv_arena_new(l->arena, double, l->pipelines.rank_at[l->pipelines.n]),
                      .lane_s = hv_arena_new(l->arena, double, n_lanes(l) + 1),
                      .traffic = n > 0 ? hv__links_left_after(l, p[0].ready_s) : NULL};
    size_t *counted = hv_arena_new(l->arena, size_t, l->pipelines.rank_at[l->pipelines.n]);
    l->iteration.reductions = hv_arena_new(l->arena, struct hv__reduction, n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct hv__segment *s = p[i].s;
        struct hv__reduction *r = &l->iteration.reductions[l->iteration.n_reductions++];
        run_one(l, &p[i], &t, r);
        for (size_t h = 0; h < s->n_holders; h++) {
            struct hv__rank *rk = s->holders[h].rank;
            rk->sync_end_s = fmax(rk->sync_end_s, r->end_s);
            if (counted[r->ranks[h]] != i + 1) { /* tied embeddings may sit twice on one rank */
                counted[r->ranks[h]] = i + 1;
                rk->sync_exposed_s += fmax(0, r->end_s - fmax(r->start_s, rk->compute_end_s));
            }
        }
    }
}

/** Host work of an iteration, and the wait for the slowest of all devices, seconds. */
struct step {
    double fixed_s, wait_s;
};

/**
 * Host work around the passes of an iteration: data, logging, clipping, and the wait for the
 * slowest of many devices with jitter. Both are calibrated per class of devices; the slowest class
 * counts. Measured layers hold whatever was measured with them; under a runtime, ranks wait for
 * each other there too.
 */
static struct step step_of(const struct hv__lowered *l)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    bool measured = !hv_model_has_transformer(hv_cost_model(l->k));
    struct step s = {0};
    double jitter = 0, devices = 0;
    if (measured && hv_cost_job(l->k)->runtime == HV_RUNTIME_HETVIZ) {
        return s;
    }
    for (size_t i = 0; i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        for (size_t r = 0; r < pl->n_ranks; r++) {
            const struct hv__rank *rk = &pl->ranks[r];
            for (size_t d = 0; d < rk->n_devices; d++) {
                if (rk->like[d / rk->width] != d / rk->width) {
                    continue;
                }
                const struct hv_calibration *cal =
                    hv_device_calibration(hv_cluster_device(c, rk->devices[d]).kind);
                s.fixed_s = fmax(s.fixed_s, measured ? 0 : cal->v[HV_CAL_STEP_MS] * 1e-3);
                jitter = fmax(jitter, cal->v[HV_CAL_JITTER]);
            }
            devices += (double)(rk->n_devices * (size_t)pl->multiplicity);
        }
    }
    /* stale plans have no barrier to wait at */
    s.wait_s = l->schedule.stale ? 0 : jitter * log2(fmax(1, devices)) * l->iteration.pipeline_s;
    return s;
}

double hv__step_s(const struct hv__lowered *l)
{
    struct step s = step_of(l);
    return s.fixed_s + s.wait_s;
}

/** Of the wait for the slowest device, what is seen in reductions: all of it where they begin after
 * the last backward passes, since the devices of different pipelines first meet there. */
static double late_s(const struct hv__lowered *l)
{
    bool late = hv__runtime(l)->reduction == HV_REDUCTION_LATE && l->iteration.n_reductions > 0;
    return late ? step_of(l).wait_s : 0;
}

void hv__tail(struct hv__lowered *l)
{
    l->iteration.step_s = hv__step_s(l);
    if (l->plan->sync.kind != HV_SYNC_NONE) {
        run_reductions(l);
    }
    l->iteration.late_s = late_s(l);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        struct hv__pipeline *pl = &l->pipelines.items[i];
        for (size_t r = 0; r < pl->n_ranks; r++) {
            struct hv__rank *rk = &pl->ranks[r];
            double copies_s = hv__flat_copies_s(l, pl, rk);
            rk->sync_end_s += copies_s;
            rk->sync_exposed_s += copies_s;
            hv__optimizer_step(l, pl, rk);
            l->iteration.total_s =
                fmax(l->iteration.total_s, rk->sync_end_s + rk->optimizer_s + rk->gather_s);
        }
    }
    l->iteration.total_s += l->iteration.step_s;
}

struct hv__round hv__exchange_round(struct hv__lowered *l)
{
    size_t n = 0;
    struct pending *p = list_pending(l, &n);
    struct hv__round r = {.n_lanes = n_lanes(l)};
    r.rank_s = hv_arena_new(l->arena, double, l->pipelines.rank_at[l->pipelines.n] + 1);
    r.lane_s = hv_arena_new(l->arena, double, r.n_lanes + 1);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < p[i].lanes.n; k++) {
            double *b = &r.lane_s[p[i].lanes.ids[k]];
            *b += p[i].lanes.shares[k] * p[i].duration_s;
            r.time_s = fmax(r.time_s, *b);
        }
        for (size_t h = 0; h < p[i].s->n_holders; h++) {
            double *b = &r.rank_s[p[i].s->holders[h].flat_rank];
            *b += p[i].duration_s;
            r.time_s = fmax(r.time_s, *b);
        }
    }
    return r;
}
