/* Gathers and reductions of sharded chunks, counted on the order of a schedule. */
#include "solver/sim/schedule/shards.h"

#include "solver/base/vec.h"

#include <stdlib.h>

/* A chunk of a rank. */
struct chunk {
    int32_t stage;
    size_t next;   /* position of its next operation at or after the present one */
    bool held;     /* gathered */
    bool wanted;   /* in the window */
    bool backward; /* has gradients */
};

struct rank {
    const struct hv_op *ops;
    size_t n;
    size_t *later; /* [n] position of the next operation on the same chunk; n: none */
    int32_t *at;   /* [n] chunk of each operation */
    struct chunk *chunks;
    size_t n_chunks;
};

static int32_t chunk_of(struct rank *r, int32_t stage)
{
    for (size_t c = 0; c < r->n_chunks; c++) {
        if (r->chunks[c].stage == stage) {
            return (int32_t)c;
        }
    }
    r->chunks[r->n_chunks] = (struct chunk){.stage = stage};
    return (int32_t)r->n_chunks++;
}

/* Finds the chunks, and for each operation the next one on its chunk. */
static void read_order(struct rank *r)
{
    for (size_t i = 0; i < r->n; i++) {
        bool same = i > 0 && r->ops[i].stage == r->ops[i - 1].stage;
        r->at[i] = same ? r->at[i - 1] : chunk_of(r, r->ops[i].stage);
        struct chunk *c = &r->chunks[r->at[i]];
        c->backward = c->backward || r->ops[i].kind == HV_OP_W || r->ops[i].kind == HV_OP_BW;
    }
    for (size_t c = 0; c < r->n_chunks; c++) {
        r->chunks[c].next = r->n;
    }
    for (size_t i = r->n; i-- > 0;) {
        struct chunk *c = &r->chunks[r->at[i]];
        r->later[i] = c->next;
        c->next = i;
    }
}

static bool is_pair(const struct rank *r, size_t i)
{
    return i + 1 < r->n && r->ops[i].group >= 0 && r->ops[i].group == r->ops[i + 1].group;
}

/* The chunk outside of the window that is used first, or -1. */
static int32_t first_used(const struct rank *r)
{
    int32_t best = -1;
    for (size_t c = 0; c < r->n_chunks; c++) {
        const struct chunk *x = &r->chunks[c];
        if (!x->wanted && x->next < r->n && (best < 0 || x->next < r->chunks[best].next)) {
            best = (int32_t)c;
        }
    }
    return best;
}

/* Moves the window to the present operation; returns how many chunks it gathers. Both chunks of a
 * pair enter together. */
static int32_t move_window(struct rank *r, int32_t window)
{
    int32_t gathers = 0;
    size_t last = r->n; /* position of the last chunk that entered */
    for (size_t c = 0; c < r->n_chunks; c++) {
        r->chunks[c].wanted = false;
    }
    for (int32_t n = 0;; n++) {
        int32_t c = first_used(r);
        bool pair = c >= 0 && n > 0 && r->chunks[c].next == last + 1 && is_pair(r, last);
        if (c < 0 || (n >= window && !pair)) {
            break;
        }
        r->chunks[c].wanted = true;
        last = r->chunks[c].next;
    }
    for (size_t c = 0; c < r->n_chunks; c++) {
        gathers += r->chunks[c].wanted && !r->chunks[c].held;
        r->chunks[c].held = r->chunks[c].wanted;
    }
    return gathers;
}

/* Steps over operation i. */
static void pass(struct rank *r, size_t i)
{
    r->chunks[r->at[i]].next = r->later[i];
}

static int32_t count_gathers(struct rank *r, int32_t window)
{
    int32_t gathers = 0;
    for (size_t i = 0; i < r->n; i++) {
        bool pair = is_pair(r, i);
        gathers += move_window(r, window);
        pass(r, i);
        if (pair) {
            pass(r, ++i);
        }
    }
    return gathers;
}

void hv_schedule_shards(const struct hv_schedule *s, int32_t window, int32_t *gathers,
                        int32_t *reductions)
{
    size_t most = 0;
    for (int32_t k = 0; k < s->n_ranks; k++) {
        size_t n = s->rank_at[k + 1] - s->rank_at[k];
        most = n > most ? n : most;
    }
    struct rank r = {.later = hv_xcalloc(most + 1, sizeof *r.later),
                     .at = hv_xcalloc(most + 1, sizeof *r.at),
                     .chunks = hv_xcalloc((size_t)s->n_stages + 1, sizeof *r.chunks)};
    for (int32_t k = 0; k < s->n_ranks; k++) {
        r.ops = s->ops + s->rank_at[k];
        r.n = s->rank_at[k + 1] - s->rank_at[k];
        r.n_chunks = 0;
        read_order(&r);
        reductions[k] = 0;
        for (size_t c = 0; c < r.n_chunks; c++) {
            reductions[k] += r.chunks[c].backward;
        }
        gathers[k] = count_gathers(&r, window);
    }
    free(r.later);
    free(r.at);
    free(r.chunks);
}
