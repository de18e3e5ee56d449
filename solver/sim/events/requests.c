/*
 * Requests in a queue with many slots: a heap of the times at which slots become free, places with
 * limited room on the paths of requests, and quantiles of the results. There are no batches: the
 * caller gives the time that a request holds its slot.
 */
#include "solver/sim/events/requests.h"

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/sim/events/heap.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- places ------------------------------------------------------------------------------------
 */

/** The path of a request that is served: its links. */
struct way {
    int32_t *links, n, room; /* room: for links */
    double size;
};

struct player {
    const struct hv_requests *q;
    struct hv__heap busy; /* slots, by when they come free */
    double free_s;        /* when one of them came free last after all were taken */
    struct way *ways;     /* of every slot */
    size_t n_used;        /* slots that were ever busy */
    int32_t *free, n_free, *trial;
    double *used, *load; /* by place, by link */
    int32_t *first; /* links that leave each place: out[first[i]] … out[first[i + 1] - 1]; place
                       n is where requests come in */
    int32_t *out;
};

/** Sorts links by the place where they begin. */
static void list_links(struct player *y, const struct hv_request_places *p, struct hv_arena *a)
{
    y->used = hv_arena_new(a, double, p->n + 1);
    y->load = hv_arena_new(a, double, p->n_links + 1);
    y->first = hv_arena_new(a, int32_t, p->n + 3);
    y->out = hv_arena_new(a, int32_t, p->n_links + 1);
    y->trial = hv_arena_new(a, int32_t, p->n + 2);
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t e = 0; e < p->n_links; e++) {
            size_t from = p->links[e].from < 0 ? p->n : (size_t)p->links[e].from;
            if (pass == 0) {
                y->first[from + 2]++;
            } else {
                y->out[y->first[from + 1]++] = (int32_t)e;
            }
        }
        for (size_t i = 0; pass == 0 && i <= p->n; i++) {
            y->first[i + 2] += y->first[i + 1];
        }
    }
}

/** The link that a request of this size takes from a place; -1: all are full. */
static int32_t next_link(const struct player *y, size_t from, double size)
{
    const struct hv_request_places *p = y->q->places;
    int32_t best = -1;
    double least = HUGE_VAL;
    for (int32_t k = y->first[from]; k < y->first[from + 1]; k++) {
        const struct hv_request_link *e = &p->links[y->out[k]];
        double used = e->to < 0 ? 0 : y->used[e->to];
        bool open = used <= 0 || used + size <= p->mark_frac * p->room[e->to] * (1 + 1e-12);
        double after = (y->load[y->out[k]] + size) / e->weight;
        if (open && e->weight > 0 && after < least) {
            least = after;
            best = y->out[k];
        }
    }
    return best;
}

/** Finds a path through the places for a request; returns its number of links; -1: no room. */
static int32_t find_way(struct player *y, double size)
{
    const struct hv_request_places *p = y->q->places;
    int32_t n = 0;
    for (size_t at = p->n; n <= (int32_t)p->n;) {
        int32_t e = next_link(y, at, size);
        if (e < 0) {
            return y->first[at] < y->first[at + 1] ? -1 : n; /* no outgoing link: path ends */
        }
        y->trial[n++] = e;
        if (p->links[e].to < 0) {
            break;
        }
        at = (size_t)p->links[e].to;
    }
    return n;
}

/** Adds or removes the load of a request at the places of its path. */
static void hold(struct player *y, const struct way *w, double sign)
{
    const struct hv_request_places *p = y->q->places;
    for (int32_t k = 0; k < w->n; k++) {
        int to = p->links[w->links[k]].to;
        if (to >= 0) {
            y->used[to] = fmax(0, y->used[to] + sign * w->size);
            y->used[to] = y->used[to] < 1e-9 * w->size ? 0 : y->used[to]; /* sums of doubles */
        }
        y->load[w->links[k]] += sign > 0 ? w->size : 0;
    }
}

/* ---- the queue ---------------------------------------------------------------------------------
 */

/** Removes the request that ends next; returns its end. */
static double leave(struct player *y)
{
    bool all = y->busy.n == y->q->slots;
    struct hv__entry e = hv__heap_pop(&y->busy);
    y->free_s = all ? e.key : y->free_s;
    if (y->q->places != NULL) {
        hold(y, &y->ways[e.id], -1);
    }
    y->free[y->n_free++] = (int32_t)e.id;
    return e.key;
}

/** Number of links of a path with room, which is in `trial` then; 0 without places; -1: no room. */
static int32_t way_for(struct player *y, const struct hv_request_class *c)
{
    return y->q->places != NULL ? find_way(y, c->size) : 0;
}

/** Serves a request from `at_s` on. */
static void begin(struct player *y, const struct hv_request_class *c, double at_s, int32_t n,
                  struct hv_arena *a)
{
    int32_t slot = y->n_free > 0 ? y->free[--y->n_free] : (int32_t)y->n_used++;
    if (y->q->places != NULL) {
        struct way *w = &y->ways[slot];
        if (w->room < n) {
            w->room = 2 * n;
            w->links = hv_arena_new(a, int32_t, (size_t)w->room);
        }
        w->n = n;
        w->size = c->size;
        memcpy(w->links, y->trial, (size_t)n * sizeof *w->links);
        hold(y, w, 1);
    }
    hv__heap_push(&y->busy, at_s + c->whole_s, slot);
}

static void open_player(struct player *y, const struct hv_requests *q, struct hv_arena *a)
{
    *y = (struct player){.q = q};
    y->busy.items = hv_arena_new(a, struct hv__entry, q->slots + 1);
    y->free = hv_arena_new(a, int32_t, q->slots + 1);
    if (q->places != NULL) {
        y->ways = hv_arena_new(a, struct way, q->slots + 1);
        list_links(y, q->places, a);
    }
}

/** Simulates n requests in order of arrival; records the times of the first and the last token of
 * each of the last `out->n`. */
static void play(const struct hv_requests *q, size_t n, struct hv_arena *arena,
                 struct hv_request_figures *out)
{
    double *first = hv_arena_new(arena, double, n), *whole = hv_arena_new(arena, double, n);
    struct hv_rng rng;
    struct player y;
    double now = 0, start = 0;
    open_player(&y, q, arena);
    hv_rng_seed(&rng, q->seed);
    out->mean_wait_s = out->room_wait_s = 0;
    for (size_t i = 0, kept = 0; i < n; i++) {
        now -= log1p(-hv_rng_double(&rng)) / q->per_s;
        const struct hv_request_class *c = draw(q, &rng);
        start = fmax(now, start); /* those before it have started */
        while (y.busy.n > 0 && (y.busy.items[0].key <= start || y.busy.n == q->slots)) {
            start = fmax(start, leave(&y));
        }
        int32_t way = way_for(&y, c);
        while (way < 0 && y.busy.n > 0) { /* an empty place accepts any request */
            start = fmax(start, leave(&y));
            way = way_for(&y, c);
        }
        double slot_s = fmax(now, y.free_s); /* those before it may have waited for room, too */
        begin(&y, c, start, way > 0 ? way : 0, arena);
        if (i >= n - out->n) {
            first[kept] = start - now + c->first_s;
            whole[kept++] = start - now + c->whole_s;
            out->mean_wait_s += (start - now) / (double)out->n;
            out->room_wait_s += (start - slot_s) / (double)out->n;
            out->no_room_frac += (start > slot_s) / (double)out->n;
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
                                       .room_wait_s = HV_UNKNOWN,
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
