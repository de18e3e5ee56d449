/* Evictions of a rank: its places are handed on in the order in which they become free. */
#include "solver/sim/schedule/evictions.h"

/* What gives a place back: the end of an operation, or an eviction. */
struct release {
    size_t op;        /* or HV_NO_OP */
    int32_t eviction; /* or -1 */
};

/* One rank, operation by operation. */
struct walk {
    const struct hv_schedule *s;
    size_t at, end;  /* the operation at hand, and the end of the rank's */
    int32_t places;  /* all of the rank */
    int32_t unused;  /* of them, never taken so far */
    int32_t n_alive; /* activations between forward and backward, wherever they are */
    struct release *queue;
    size_t first, last; /* places in the queue that are free, or will be */
    struct hv_eviction *out;
    size_t n_out, n_back; /* evictions; those that have a place to come back to */
};

static bool is_forward(const struct walk *w, size_t op)
{
    return op < w->end && w->s->ops[op].kind == HV_OP_F;
}

static bool gives_back(const struct hv_op *op)
{
    return op->kind == HV_OP_BW || op->kind == HV_OP_W;
}

/* The next place: the first that has become free. */
static struct release take_place(struct walk *w)
{
    if (w->unused > 0) {
        w->unused--;
        return (struct release){HV_NO_OP, -1};
    }
    return w->first < w->last ? w->queue[w->first++] : (struct release){HV_NO_OP, -1};
}

/* True where the activation that was made last is not among the first that backwards need when the
 * next forward takes a place; false where there is no further forward. */
static bool has_to_leave(const struct walk *w)
{
    int32_t before_it = w->n_alive - 1;
    size_t next = w->at + 1;
    for (; next < w->end && !is_forward(w, next); next++) {
        before_it -= gives_back(&w->s->ops[next]);
    }
    return next < w->end && before_it >= w->places - 1;
}

static void evict(struct walk *w)
{
    w->out[w->n_out] = (struct hv_eviction){.mb = w->s->ops[w->at].mb,
                                            .forward = w->at,
                                            .backward = HV_NO_OP,
                                            .place_of = HV_NO_OP,
                                            .after_op = HV_NO_OP,
                                            .after_eviction = -1};
    w->queue[w->last++] = (struct release){HV_NO_OP, (int32_t)w->n_out++};
}

/* Gives the places that no forward takes next to activations that are away. */
static void bring_back(struct walk *w)
{
    size_t free = (size_t)w->unused + w->last - w->first, kept = is_forward(w, w->at + 1);
    for (; free > kept && w->n_back < w->n_out; free--) {
        struct release r = take_place(w);
        w->out[w->n_back].after_op = r.op;
        w->out[w->n_back++].after_eviction = r.eviction;
    }
}

static void step(struct walk *w, size_t *n_needed)
{
    const struct hv_op *op = &w->s->ops[w->at];
    if (op->kind == HV_OP_F) {
        struct release r = take_place(w);
        if (r.eviction >= 0) {
            w->out[r.eviction].place_of = w->at;
        }
        w->n_alive++;
        if (has_to_leave(w)) {
            evict(w);
        }
    } else if (gives_back(op)) {
        if (*n_needed < w->n_out && w->out[*n_needed].mb == op->mb) {
            w->out[(*n_needed)++].backward = w->at;
        }
        w->n_alive--;
        w->queue[w->last++] = (struct release){w->at, -1};
    }
    bring_back(w);
}

size_t hv_schedule_evictions(struct hv_arena *a, const struct hv_schedule *s, int32_t rank,
                             const struct hv_eviction **out)
{
    size_t from = s->rank_at[rank], n = s->rank_at[rank + 1] - from, n_needed = 0;
    *out = NULL;
    if (s->stash == NULL || s->stash[rank] <= 0) {
        return 0;
    }
    struct hv_arena scratch = {0};
    int32_t places = s->stash[rank] > 2 ? s->stash[rank] : 2;
    struct walk w = {.s = s,
                     .end = from + n,
                     .places = places,
                     .unused = places,
                     .queue = hv_arena_new(&scratch, struct release, 2 * n + 1),
                     .out = hv_arena_new(&scratch, struct hv_eviction, n + 1)};
    for (w.at = from; w.at < w.end; w.at++) {
        step(&w, &n_needed);
    }
    if (w.n_out > 0) {
        *out = hv_arena_copy(a, w.out, w.n_out, sizeof *w.out);
    }
    hv_arena_free(&scratch);
    return w.n_out;
}
