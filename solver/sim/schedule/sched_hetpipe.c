/*
 * HetPipe (ATC'20, section 4): a virtual worker keeps N_m minibatches in flight and never flushes.
 * A rank takes forwards in order and backwards in order, and of a forward and a backward that wait
 * the one that came first; rank r holds at most min(N_m, p − r) minibatches, each with the weights
 * it began with. With N_m = p and equal stages that is 1F1B; with fewer in flight a rank that took
 * them in turn would wait for a forward that itself waits for the backward behind it, so the order
 * is played by the times of the stages. O(ops · log of what is in flight).
 */
#include "solver/sim/events/heap.h"
#include "solver/sim/schedule/schedule_int.h"

#include <math.h>

enum { FORWARD, BACKWARD };

struct rank {
    double free_at;
    int32_t keep; /* minibatches it may hold */
    int32_t done[2];
};

struct play {
    const struct hv_schedule_input *in;
    int32_t p, m;
    struct rank *ranks;
    double *comes[2];       /* [p × m] when a pass reaches a rank; infinity before that is known */
    unsigned char *is_back; /* [p × 2m] what each rank runs, in order */
    struct hv__heap wakes;  /* (time, rank): an input has arrived, or the rank is free again */
};

static double *comes_at(const struct play *x, int way, int32_t rank, int32_t mb)
{
    return &x->comes[way][(size_t)rank * (size_t)x->m + (size_t)mb];
}

/* when the next pass of one way came; infinity where it has not, or there is no room for it */
static double waits_since(const struct play *x, int way, int32_t r)
{
    const struct rank *rank = &x->ranks[r];
    int32_t mb = rank->done[way];
    bool room = way == BACKWARD || mb - rank->done[BACKWARD] < rank->keep;
    return mb < x->m && room ? *comes_at(x, way, r, mb) : HUGE_VAL;
}

/* the pass reaches a rank at a time */
static void send(struct play *x, int way, int32_t rank, int32_t mb, double at)
{
    *comes_at(x, way, rank, mb) = at;
    hv__heap_push(&x->wakes, at, rank);
}

static void run(struct play *x, int32_t r, int way, double now)
{
    struct rank *rank = &x->ranks[r];
    struct hv_stage_cost c = hv__cost(x->in, r);
    int32_t mb = rank->done[way]++;
    size_t at = (size_t)(rank->done[FORWARD] + rank->done[BACKWARD] - 1);
    x->is_back[(size_t)r * 2 * (size_t)x->m + at] = way == BACKWARD;
    rank->free_at = now + (way == FORWARD ? c.f_s : c.b_s + c.w_s);
    hv__heap_push(&x->wakes, rank->free_at, r);
    if (way == BACKWARD) {
        if (r > 0) {
            send(x, BACKWARD, r - 1, mb, rank->free_at + hv__hop(x->in, r - 1, true));
        }
    } else if (r + 1 < x->p) {
        send(x, FORWARD, r + 1, mb, rank->free_at + hv__hop(x->in, r, false));
    } else {
        *comes_at(x, BACKWARD, r, mb) = rank->free_at;
    }
}

static void play(struct play *x)
{
    for (size_t i = 0; i < (size_t)x->p * (size_t)x->m; i++) {
        x->comes[FORWARD][i] = i < (size_t)x->m ? 0 : HUGE_VAL; /* the input is there */
        x->comes[BACKWARD][i] = HUGE_VAL;
    }
    hv__heap_push(&x->wakes, 0, 0);
    while (x->wakes.n > 0) {
        struct hv__entry wake = hv__heap_pop(&x->wakes);
        int32_t r = (int32_t)wake.id;
        if (x->ranks[r].free_at > wake.key) {
            continue;
        }
        double forward = waits_since(x, FORWARD, r), backward = waits_since(x, BACKWARD, r);
        if (fmin(forward, backward) <= wake.key) {
            run(x, r, forward <= backward ? FORWARD : BACKWARD, wake.key);
        }
    }
}

static void add_orders(const struct play *x, struct hv_schedule_builder *b)
{
    for (int32_t r = 0; r < x->p; r++) {
        int32_t mb[2] = {0, 0};
        for (size_t i = 0; i < 2 * (size_t)x->m; i++) {
            int way = x->is_back[(size_t)r * 2 * (size_t)x->m + i];
            hv__add(b, way == FORWARD ? HV_OP_F : HV_OP_BW, r, mb[way]++);
        }
        hv__rank_done(b);
    }
}

enum hv_status hv__gen_hetpipe(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                               struct hv_err *err)
{
    int64_t given = hv__option(in, "in_flight");
    int32_t p = in->ranks, m = in->micro_batches, n_m = given > 0 ? (int32_t)given : p;
    if (n_m > p) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule hetpipe: minibatches in flight beyond the number of ranks only "
                          "wait, found in_flight = %d, p = %d; use in_flight = %d",
                          n_m, p, p);
    }
    size_t cells = (size_t)p * (size_t)m;
    enum hv_status st = hv__check_work(in, 4.0 * (double)cells, err);
    if (st != HV_OK) {
        return st;
    }
    struct play x = {.in = in, .p = p, .m = m};
    x.ranks = hv_xcalloc((size_t)p, sizeof *x.ranks);
    x.comes[FORWARD] = hv_xcalloc(2 * cells, sizeof *x.comes[FORWARD]);
    x.comes[BACKWARD] = x.comes[FORWARD] + cells;
    x.is_back = hv_xcalloc(2 * cells, sizeof *x.is_back);
    /* events: passes on the way to a rank in both directions, and the end of its own pass */
    x.wakes.items = hv_xcalloc((size_t)p * (2 * (size_t)n_m + 2) + 1, sizeof *x.wakes.items);
    for (int32_t r = 0; r < p; r++) {
        double keep = hv__limit(in, r, fmin(n_m, p - r));
        if (r > 0) { /* no more than the rank before it, which could not feed it */
            keep = fmin(keep, x.ranks[r - 1].keep);
        }
        b->weight_versions[r] = x.ranks[r].keep = (int32_t)keep;
    }
    play(&x);
    add_orders(&x, b);
    free(x.wakes.items);
    free(x.is_back);
    free(x.comes[FORWARD]);
    free(x.ranks);
    return HV_OK;
}
