/*
 * Several chunks per rank, exactly: a dynamic program whose entries carry the loads and memories of
 * all ranks, pruned by the weighted bound and by dominance.
 * Not here: the bound and the first cuts (chunks.c).
 */
#include "solver/base/vec.h"
#include "solver/optim/chain/chunks_int.h"
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MAX_ENTRIES ((size_t)600000) /* of one program */
#define COMPARES    128u             /* entries that a new one is compared with */
#define NONE        UINT32_MAX

/* What is kept of every entry to trace back: its end, the entry before it, and the next one of the
 * same chunk and end. */
struct entry {
    uint32_t end, from, next;
};

/* One program: entries of all chunks, their vectors of loads and memories. */
struct table {
    struct hv__chunks *x;
    double limit;
    HV_VEC(struct entry) entries;
    HV_VEC(double) vectors; /* entry · 2R: loads, then memories */
    uint32_t *head;         /* end → newest entry of the chunk being built */
    double *trial;
    bool gave_up;
};

static bool dominated(const struct table *t, size_t j)
{
    size_t width = 2 * t->x->R;
    unsigned n = 0;
    for (uint32_t e = t->head[j]; e != NONE && n < COMPARES; e = t->entries.items[e].next, n++) {
        const double *v = t->vectors.items + e * width;
        size_t k = 0;
        while (k < width && v[k] <= t->trial[k]) {
            k++;
        }
        if (k == width) {
            return true;
        }
    }
    return false;
}

/* Adds chunk s with layers [i, j) to the trial vector if the result can still be good. */
static void try_run(struct table *t, size_t s, uint32_t from, size_t i, size_t j)
{
    const struct hv__chunks *x = t->x;
    size_t n = x->L + 1, r = x->c->rank[s], width = 2 * x->R;
    double load = t->trial[r], bytes = t->trial[x->R + r], weighted = x->rest[(s + 1) * n + j];
    double after = load + x->value[(s * n + i) * n + j];
    double in_use = bytes + hv__chunk_bytes(x, s, i, j);
    if (!(after < t->limit) || in_use > x->capacity[r] * (1 + 1e-12) || isinf(weighted)) {
        return;
    }
    t->trial[r] = after;
    t->trial[x->R + r] = in_use;
    for (size_t k = 0; k < x->R; k++) {
        weighted += x->weight[k] * t->trial[k];
    }
    if (weighted * (1 - 1e-12) < t->limit && !dominated(t, j)) {
        uint32_t id = (uint32_t)t->entries.n;
        hv_vec_push(&t->entries, (struct entry){(uint32_t)j, from, t->head[j]});
        t->head[j] = id;
        for (size_t k = 0; k < width; k++) {
            hv_vec_push(&t->vectors, t->trial[k]);
        }
    }
    t->trial[r] = load;
    t->trial[x->R + r] = bytes;
}

/* All entries of chunk s from those in [begin, end). */
static void add_chunk(struct table *t, size_t s, uint32_t begin, uint32_t end)
{
    const struct hv__chunks *x = t->x;
    size_t width = 2 * x->R, rest = (x->S - 1 - s) * x->m;
    for (size_t j = 0; j <= x->L; j++) {
        t->head[j] = NONE;
    }
    for (uint32_t e = begin; e < end && !t->gave_up; e++) {
        size_t i = t->entries.items[e].end;
        memcpy(t->trial, t->vectors.items + e * width, width * sizeof(double));
        for (size_t j = s + 1 == x->S ? x->L : i + x->m; j + rest <= x->L; j++) {
            try_run(t, s, e, i, j);
        }
        t->gave_up = t->entries.n > MAX_ENTRIES || (e % 256 == 0 && hv__watch_over(x->watch));
    }
}

static void trace_back(struct table *t, uint32_t e, double worst)
{
    struct hv__chunks *x = t->x;
    x->best = worst;
    for (size_t s = x->S; s-- > 0; e = t->entries.items[e].from) {
        x->cut[s] = t->entries.items[e].end;
    }
}

/* One program for loads below the limit; true when it found cuts, which are then the best. */
static bool run_program(struct hv__chunks *x, double limit, bool *gave_up)
{
    struct table t = {.x = x, .limit = limit};
    size_t width = 2 * x->R;
    uint32_t begin = 0, best = NONE;
    double least = limit;
    t.head = hv_arena_new(x->arena, uint32_t, x->L + 1);
    t.trial = hv_arena_new(x->arena, double, width);
    hv_vec_push(&t.entries, (struct entry){0, NONE, NONE});
    for (size_t k = 0; k < width; k++) {
        hv_vec_push(&t.vectors, 0.0);
    }
    x->n_probes++;
    for (size_t s = 0; s < x->S && !t.gave_up; s++) {
        uint32_t end = (uint32_t)t.entries.n;
        add_chunk(&t, s, begin, end);
        begin = end;
    }
    for (uint32_t e = begin; e < t.entries.n && !t.gave_up; e++) {
        double worst = 0;
        for (size_t r = 0; r < x->R; r++) {
            worst = fmax(worst, t.vectors.items[e * width + r]);
        }
        if (worst < least) {
            least = worst;
            best = e;
        }
    }
    if (best != NONE) {
        trace_back(&t, best, least);
    }
    *gave_up = t.gave_up;
    hv_vec_free(&t.entries);
    hv_vec_free(&t.vectors);
    return best != NONE;
}

bool hv__chunks_exact(struct hv__chunks *x)
{
    static const double part[] = {1.0 / 64, 1.0 / 16, 1.0 / 4, 1};
    double low = x->bound, gap = x->best - low;
    bool gave_up = false;
    if (x->best <= low * (1 + 1e-12)) {
        return true;
    }
    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        bool last = isinf(gap) || k + 1 == sizeof part / sizeof *part;
        double limit = last ? x->best : low + part[k] * gap;
        if (run_program(x, limit, &gave_up)) {
            return true;
        }
        if (gave_up) {
            return false;
        }
        x->bound = fmax(x->bound, fmin(limit, x->best) * (1 - 1e-12));
        if (last) {
            return true;
        }
    }
    return true;
}
