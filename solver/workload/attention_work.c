/* Counts tiles of attention per rank and step of a ring. Seconds are computed in solver/cost. */
#include "solver/workload/attention_work.h"

#define WORK_MAX 1e9

/** Position in the sequence of the i-th token of a rank. */
static int64_t position(const struct hv_attention_ring *g, int64_t rank, int64_t i)
{
    int64_t own = g->tokens / g->ranks, half = own / 2;

    switch (g->layout) {
    case HV_TOKENS_CONTIGUOUS:
        return rank * own + i;
    case HV_TOKENS_ZIGZAG:
        return i < half ? rank * half + i : (2 * g->ranks - 1 - rank) * half + (i - half);
    case HV_TOKENS_STRIPED:
        return i * g->ranks + rank;
    }
    return i;
}

/** Pairs in the tiles that queries of `rank` compute with the keys of `from`: a tile counts whole
 * as soon as one of its pairs is allowed. */
static double pairs_of(const struct hv_attention_ring *g, int64_t rank, int64_t from)
{
    int64_t own = g->tokens / g->ranks, reach = 0;
    double pairs = 0;

    if (!g->causal) {
        return (double)own * (double)own;
    }
    for (int64_t q = 0; q < own; q += g->tile) {
        int64_t end = q + g->tile < own ? q + g->tile : own;
        int64_t last = position(g, rank, end - 1);
        while (reach < own && position(g, from, reach) <= last) {
            reach = reach + g->tile < own ? reach + g->tile : own;
        }
        pairs += (double)(end - q) * (double)reach;
    }
    return pairs;
}

static enum hv_status check_ring(const struct hv_attention_ring *ring, struct hv_err *err)
{
    int64_t parts = ring->layout == HV_TOKENS_ZIGZAG ? 2 * ring->ranks : ring->ranks;

    if (ring->ranks < 1 || ring->tile < 1 || ring->tokens < 1 || ring->tokens % parts != 0) {
        return hv_err_set(err, HV_EUSAGE, "%lld tokens do not split into %lld equal parts",
                          (long long)ring->tokens, (long long)parts);
    }
    return HV_OK;
}

enum hv_status hv_attention_work(struct hv_arena *a, const struct hv_attention_ring *ring,
                                 double **out, struct hv_err *err)
{
    enum hv_status st = check_ring(ring, err);

    if (st != HV_OK) {
        return st;
    }
    if ((double)ring->ranks * (double)ring->tokens / (double)ring->tile +
            (double)ring->ranks * (double)ring->ranks >
        WORK_MAX) {
        return hv_err_set(err, HV_ELIMIT, "too many tiles; take a larger tile");
    }
    *out = hv_arena_new(a, double, (size_t)(ring->ranks * ring->ranks));
    for (int64_t r = 0; r < ring->ranks; r++) {
        for (int64_t k = 0; k < ring->ranks; k++) {
            (*out)[r * ring->ranks + k] = pairs_of(ring, r, (r - k + ring->ranks) % ring->ranks);
        }
    }
    return HV_OK;
}

enum hv_status hv_attention_ring_pairs(const struct hv_attention_ring *ring,
                                       struct hv_ring_pairs *out, struct hv_err *err)
{
    enum hv_status st = check_ring(ring, err);

    if (st != HV_OK) {
        return st;
    }
    *out = (struct hv_ring_pairs){.same = pairs_of(ring, 0, 0)};
    if (ring->ranks > 1) {
        out->before = pairs_of(ring, 1, 0);
        out->after = pairs_of(ring, 0, 1);
    }
    return HV_OK;
}
