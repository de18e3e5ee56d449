/*
 * Several chunks per rank: placements, identical layers in closed form, the bound by weights on
 * the ranks with a local search over cuts, and last a dynamic program whose entries carry the loads
 * and memories of all ranks, pruned by that bound and by dominance.
 */
#include "solver/optim/chain/chunks.h"
#include "solver/base/str.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MAX_CELLS   ((size_t)32 << 20)
#define MAX_WORK    2e8 /* cells that the steps of the bound may visit */
#define SAME        1e-11
#define MAX_ENTRIES ((size_t)600000) /* of one exact program */
#define COMPARES    128u             /* entries that a new one is compared with */
#define NONE        UINT32_MAX

void hv_partition_place(enum hv_part_placement placement, size_t n_ranks, size_t n_passes,
                        size_t *rank)
{
    for (size_t s = 0; s < n_ranks * n_passes; s++) {
        size_t at = s % n_ranks;
        bool back = placement == HV_PLACE_FOLD && s / n_ranks % 2 == 1;
        rank[s] = back ? n_ranks - 1 - at : at;
    }
}

/* An instance with the data that both searches read. */
struct chunks {
    const struct hv_part_chunks *c;
    size_t L, S, R, m; /* layers, chunks, ranks, least layers of a chunk */
    double *value;     /* value[(s · (L + 1) + i) · (L + 1) + j]; infinity = not allowed */
    double *capacity;  /* of a rank */
    double *weight;    /* of a rank: ≥ 0, sum 1; those of the best bound */
    double *rest;      /* (S + 1) · (L + 1): least weighted value of chunks s … from layer i */
    size_t *cut;       /* the best so far: S ends */
    double best;       /* its busiest load; infinity = none */
    double bound;
    struct hv__watch *watch;
    struct hv_arena *arena;
    int64_t n_probes;
};

/* Memory that chunk s needs for layers [i, j). */
static double chunk_bytes(const struct chunks *x, size_t s, size_t i, size_t j)
{
    const double *m = x->c->chain.stages[s].memory;
    return m ? m[j] - m[i] : 0;
}

/* Loads of all ranks; returns the largest, infinity when a run or a rank's memory does not fit. */
static double loads_of(const struct chunks *x, const size_t *cut, double *load, double *bytes)
{
    size_t n = x->L + 1;
    double worst = 0;
    for (size_t r = 0; r < x->R; r++) {
        load[r] = bytes[r] = 0;
    }
    for (size_t s = 0, i = 0; s < x->S; i = cut[s++]) {
        size_t r = x->c->rank[s];
        load[r] += x->value ? x->value[(s * n + i) * n + cut[s]]
                            : hv_partition_value(&x->c->chain, s, s, i, cut[s]);
        bytes[r] += chunk_bytes(x, s, i, cut[s]);
    }
    for (size_t r = 0; r < x->R; r++) {
        worst = bytes[r] > x->capacity[r] * (1 + 1e-12) ? HUGE_VAL : fmax(worst, load[r]);
    }
    return worst;
}

static bool even_steps(const double *prefix, size_t n)
{
    double step = prefix ? prefix[n] / (double)n : 0;
    for (size_t j = 0; prefix && j < n; j++) {
        if (fabs(prefix[j + 1] - prefix[j] - step) > SAME * (prefix[n] + step)) {
            return false;
        }
    }
    return true;
}

static bool even_cut(const double *cut, size_t n)
{
    for (size_t j = 2; j < n; j++) {
        if (cut[j] != cut[1]) {
            return false;
        }
    }
    return true;
}

/* True where the load of a rank depends only on its number of layers. */
static bool layers_identical(const struct chunks *x)
{
    const struct hv_partition *p = &x->c->chain;
    if (p->cuts && x->m == 0) {
        return false; /* empty runs at the ends save a cut */
    }
    for (size_t s = 0; s < x->S; s++) {
        const struct hv_part_stage *st = &p->stages[s], *first = st;
        for (size_t q = 0; q < s && first == st; q++) {
            if (x->c->rank[q] == x->c->rank[s]) {
                first = &p->stages[q];
            }
        }
        if (st->table || first->time != st->time || !even_steps(st->time, x->L) ||
            !even_steps(st->memory, x->L)) {
            return false;
        }
        if (p->cuts && s + 1 < x->S && !even_cut(p->cuts[s], x->L)) {
            return false;
        }
    }
    return true;
}

/* A rank when layers are identical: load = fixed + count · step, at most `most` layers. */
struct even {
    double fixed, step, spare;         /* spare = memory left when every chunk has its least */
    size_t chunks, count, most, roomy; /* roomy = the chunk where a layer needs least memory */
};

static double layer_bytes(const struct chunks *x, size_t s)
{
    return chunk_bytes(x, s, 0, x->L) / (double)x->L;
}

static void collect_even(const struct chunks *x, struct even *e)
{
    const struct hv_partition *p = &x->c->chain;
    for (size_t r = 0; r < x->R; r++) {
        e[r] = (struct even){.spare = x->capacity[r], .roomy = x->S};
    }
    for (size_t s = 0; s < x->S; s++) {
        struct even *k = &e[x->c->rank[s]];
        k->fixed += p->cuts && s ? p->cuts[s - 1][1] : 0;
        k->fixed += p->cuts && s + 1 < x->S ? p->cuts[s][1] : 0;
        k->step = p->stages[s].time[x->L] / (double)x->L;
        k->spare -= layer_bytes(x, s) * (double)x->m;
        k->count += x->m;
        k->chunks++;
        if (k->roomy == x->S || layer_bytes(x, s) < layer_bytes(x, k->roomy)) {
            k->roomy = s;
        }
    }
    for (size_t r = 0; r < x->R; r++) {
        double each = e[r].chunks ? layer_bytes(x, e[r].roomy) : 0, room = HUGE_VAL;
        if (each > 0) {
            room = floor(e[r].spare / each * (1 + 1e-12));
        }
        e[r].most = e[r].count + (room < (double)x->L ? (size_t)fmax(room, 0) : x->L);
        e[r].most = e[r].chunks ? e[r].most : 0;
    }
}

/* Layers that all ranks take within a load; `take` = into their counts. */
static double filled(struct even *e, size_t R, double load, bool take)
{
    double total = 0;
    for (size_t r = 0; r < R; r++) {
        double n = e[r].step > 0 ? floor((load - e[r].fixed) / e[r].step) : (double)e[r].most;
        n = fmin(fmax(n, (double)e[r].count), (double)e[r].most);
        total += n;
        if (take) {
            e[r].count = (size_t)n;
        }
    }
    return total;
}

/* Assigns the layers: in one step up to just below the best load, then one by one to the rank that
 * ends earliest. False when they do not fit. */
static bool deal_layers(const struct chunks *x, struct even *e)
{
    size_t left = x->L, total = 0;
    double lo = 0, hi = 0;
    for (size_t r = 0; r < x->R; r++) {
        if (e[r].spare < -1e-12 * x->capacity[r]) {
            return false;
        }
        hi = fmax(hi, (e[r].fixed + e[r].step * (double)x->L) * (1 + 1e-9));
        total += e[r].count;
    }
    if (total > left || filled(e, x->R, hi, false) < (double)left) {
        return false;
    }
    for (int k = 0; k < 60; k++) {
        double mid = 0.5 * (lo + hi);
        if (filled(e, x->R, mid, false) < (double)left) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    filled(e, x->R, lo * (1 - 1e-9), true);
    for (size_t r = 0; r < x->R; r++) {
        left -= e[r].count;
    }
    for (; left > 0; left--) {
        size_t best = x->R;
        double least = HUGE_VAL;
        for (size_t r = 0; r < x->R; r++) {
            double load = e[r].fixed + e[r].step * (double)(e[r].count + 1);
            if (e[r].count < e[r].most && load < least) {
                least = load;
                best = r;
            }
        }
        e[best].count++;
    }
    return true;
}

/* Cuts from the counts: what a rank has above the least of its chunks is spread evenly where
 * memory does not depend on the chunk, else it lies in the chunk that needs least. */
static void cut_even(const struct chunks *x, const struct even *e)
{
    size_t *seen = hv_arena_new(x->arena, size_t, x->R), at = 0;
    for (size_t s = 0; s < x->S; s++) {
        size_t r = x->c->rank[s], n = x->m, extra = e[r].count - e[r].chunks * x->m;
        if (x->capacity[r] < HUGE_VAL) {
            n += e[r].roomy == s ? extra : 0;
        } else {
            n += extra / e[r].chunks + (seen[r] < extra % e[r].chunks);
        }
        seen[r]++;
        x->cut[s] = at += n;
    }
}

static bool solve_even(struct chunks *x, struct hv_part_chunks_result *out)
{
    struct even *e = hv_arena_new(x->arena, struct even, x->R);
    collect_even(x, e);
    out->chain.method = "closed-form";
    out->chain.proof = "identical layers: each goes to the rank that ends earliest";
    if (!deal_layers(x, e)) {
        return false;
    }
    cut_even(x, e);
    x->best = x->bound = loads_of(x, x->cut, out->load, out->bytes);
    return true;
}

static void fill_values(struct chunks *x)
{
    size_t n = x->L + 1;
    x->value = hv_arena_new(x->arena, double, x->S *n *n);
    for (size_t s = 0; s < x->S; s++) {
        for (size_t i = 0; i < n; i++) {
            for (size_t j = i; j < n; j++) {
                x->value[(s * n + i) * n + j] =
                    j - i < x->m ? HUGE_VAL : hv_partition_value(&x->c->chain, s, s, i, j);
            }
        }
    }
}

/* rest[s][i] and its cuts for the given weights; returns rest[0][0], the bound. */
static double weigh(const struct chunks *x, const double *weight, double *rest, size_t *cut)
{
    size_t n = x->L + 1;
    for (size_t i = 0; i < n; i++) {
        rest[x->S * n + i] = i == x->L ? 0 : HUGE_VAL;
    }
    for (size_t s = x->S; s-- > 0;) {
        double w = weight[x->c->rank[s]], *next = rest + (s + 1) * n;
        for (size_t i = 0; i < n; i++) {
            const double *v = x->value + (s * n + i) * n;
            double least = HUGE_VAL;
            for (size_t j = i + x->m; j < n; j++) {
                /* an infinite value times a weight of 0 is still not allowed */
                double sum = isinf(v[j]) ? HUGE_VAL : w * v[j] + next[j];
                least = sum < least ? sum : least;
            }
            rest[s * n + i] = least;
        }
    }
    for (size_t s = 0, i = 0; s < x->S && !isinf(rest[0]); i = cut[s++]) {
        for (size_t j = i + x->m; j < n; j++) {
            double v = x->value[(s * n + i) * n + j];
            if (!isinf(v) && weight[x->c->rank[s]] * v + rest[(s + 1) * n + j] <= rest[s * n + i]) {
                cut[s] = j;
                break;
            }
        }
    }
    return rest[0];
}

static double slope(const struct chunks *x, const double *load)
{
    double squares = 0;
    for (size_t r = 0; r < x->R; r++) {
        squares += load[r] * load[r];
    }
    return squares;
}

static void take_cuts(struct chunks *x, const size_t *cut, double worst)
{
    if (!(worst < x->best)) {
        return;
    }
    x->best = worst;
    memcpy(x->cut, cut, x->S * sizeof *cut);
}

/* Shifts single cuts by up to three layers while the busiest load, or else the sum of squares,
 * falls; every round is O(S · (S + R)). */
static void shift_cuts(struct chunks *x, size_t *cut, double *load, double *bytes)
{
    double worst = loads_of(x, cut, load, bytes), squares = slope(x, load);
    bool moved = true;
    for (int round = 0; round < 60 && moved; round++) {
        moved = false;
        for (size_t s = 0; s + 1 < x->S; s++) {
            size_t keep = cut[s], low = s ? cut[s - 1] : 0;
            for (int step = -3; step <= 3; step++) {
                size_t to = keep + (size_t)(step + 3);
                if (step == 0 || to < low + 3 || to - 3 > cut[s + 1]) {
                    continue;
                }
                size_t before = cut[s];
                cut[s] = to - 3;
                double w = loads_of(x, cut, load, bytes), q = slope(x, load);
                bool better = w < worst || (w <= worst && q < squares * (1 - 1e-12));
                if (!better) {
                    cut[s] = before;
                    continue;
                }
                worst = w;
                squares = q;
                moved = true;
            }
        }
    }
    take_cuts(x, cut, worst);
}

/* One step of the weights towards the busy ranks (Polyak's length), back onto the simplex. */
static void step_weights(const struct chunks *x, const double *load, double bound, double scale,
                         double *weight)
{
    double mean = 0, norm = 0, sum = 0;
    for (size_t r = 0; r < x->R; r++) {
        mean += load[r] / (double)x->R;
    }
    for (size_t r = 0; r < x->R; r++) {
        norm += (load[r] - mean) * (load[r] - mean);
    }
    double gap = isinf(x->best) ? 0.1 * bound : x->best - bound;
    for (size_t r = 0; r < x->R && norm > 0; r++) {
        weight[r] = fmax(0, weight[r] + scale * gap / norm * (load[r] - mean));
    }
    for (size_t r = 0; r < x->R; r++) {
        sum += weight[r];
    }
    for (size_t r = 0; r < x->R; r++) {
        weight[r] = sum > 0 ? weight[r] / sum : 1 / (double)x->R;
    }
}

/* Weights in proportion to the speed of the ranks over the whole chain. */
static void first_weights(const struct chunks *x, double *weight)
{
    double sum = 0;
    for (size_t r = 0; r < x->R; r++) {
        weight[r] = 1;
    }
    for (size_t s = 0; s < x->S; s++) {
        const struct hv_part_stage *st = &x->c->chain.stages[s];
        if (!st->table && st->time[x->L] > 0) {
            weight[x->c->rank[s]] = 1 / st->time[x->L];
        }
    }
    for (size_t r = 0; r < x->R; r++) {
        sum += weight[r];
    }
    for (size_t r = 0; r < x->R; r++) {
        weight[r] /= sum;
    }
}

/* The bound by weights; also keeps the best cuts found during its steps. False where no cuts are
 * allowed at all. */
static bool climb_weights(struct chunks *x, double *load, double *bytes)
{
    size_t n = x->L + 1, *cut = hv_arena_new(x->arena, size_t, x->S);
    double *weight = hv_arena_new(x->arena, double, x->R);
    double *rest = hv_arena_new(x->arena, double, (x->S + 1) * n);
    double cells = (double)x->S * (double)n * (double)n / 2, scale = 1;
    int steps = (int)fmin(120, fmax(8, MAX_WORK / cells));
    first_weights(x, weight);
    x->bound = -1;
    for (int k = 0, idle = 0; k < steps && !(k && hv__watch_over(x->watch)); k++) {
        double bound = weigh(x, weight, rest, cut);
        x->n_probes++;
        if (isinf(bound)) {
            return false;
        }
        idle = bound > x->bound * (1 + 1e-5) ? 0 : idle + 1;
        if (bound > x->bound) {
            x->bound = bound;
            memcpy(x->weight, weight, x->R * sizeof *weight);
            memcpy(x->rest, rest, (x->S + 1) * n * sizeof *rest);
        }
        if (idle == 8) {
            scale *= 0.5;
            idle = 0;
        }
        take_cuts(x, cut, loads_of(x, cut, load, bytes));
        double *now = hv_arena_copy(x->arena, load, x->R, sizeof *load);
        shift_cuts(x, cut, load, bytes);
        if (x->best <= x->bound * (1 + 1e-12)) {
            break;
        }
        step_weights(x, now, bound, scale, weight);
    }
    return true;
}

/* ---- the exact program over the loads of all ranks ------------------------------------------ */

/* An entry, for the traceback: its end, the entry before it, and the next one of the same chunk and
 * end. */
struct entry {
    uint32_t end, from, next;
};

/* One program: entries of all chunks, their vectors of loads and memories. */
struct table {
    struct chunks *x;
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
    const struct chunks *x = t->x;
    size_t n = x->L + 1, r = x->c->rank[s], width = 2 * x->R;
    double load = t->trial[r], bytes = t->trial[x->R + r], weighted = x->rest[(s + 1) * n + j];
    double after = load + x->value[(s * n + i) * n + j];
    double in_use = bytes + chunk_bytes(x, s, i, j);
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
    const struct chunks *x = t->x;
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
    struct chunks *x = t->x;
    x->best = worst;
    for (size_t s = x->S; s-- > 0; e = t->entries.items[e].from) {
        x->cut[s] = t->entries.items[e].end;
    }
}

/* One program for loads below the limit; true when it found cuts, which are then the best. */
static bool run_program(struct chunks *x, double limit, bool *gave_up)
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

/*
 * Searches for cuts with every load below x->best; stores the best ones in x->cut and x->best.
 * Returns false where a limit ended the search; x->bound is then the proven bound.
 */
static bool solve_exactly(struct chunks *x)
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

/* ---- the solver ------------------------------------------------------------------------------ */

static enum hv_status check_chunks(const struct hv_part_chunks *c, struct hv_err *err)
{
    const struct hv_partition *p = &c->chain;
    if (p->free_order || p->any_stages) {
        return hv_err_set(err, HV_EINPUT,
                          "chunks of ranks: expected a fixed order in which all stages are used");
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        if (c->rank[s] >= c->n_ranks) {
            return hv_err_set(err, HV_EINPUT, "chunk %zu: expected a rank below %zu, found %zu",
                              s + 1, c->n_ranks, c->rank[s]);
        }
    }
    return HV_OK;
}

static const char *why_not(const struct chunks *x)
{
    struct hv_str text = {0};
    double room = 0, need = HUGE_VAL;
    for (size_t r = 0; r < x->R; r++) {
        room += x->capacity[r];
    }
    for (size_t s = 0; s < x->S; s++) {
        need = fmin(need, chunk_bytes(x, s, 0, x->L));
    }
    if (x->m * x->S > x->L) {
        hv_str_addf(&text, "%zu chunks of at least %zu layers need %zu layers, there are %zu", x->S,
                    x->m, x->m * x->S, x->L);
    } else if (need > room) {
        hv_str_addf(&text,
                    "the layers need %g of memory at least, the ranks have %g: %g too little", need,
                    room, need - room);
    } else {
        hv_str_adds(&text, "every cut of the chain leaves some rank without enough memory, or uses "
                           "a run that is not allowed");
    }
    const char *why = hv_arena_strdup(x->arena, hv_str_cstr(&text));
    hv_str_free(&text);
    return why;
}

static void answer(struct chunks *x, bool complete, struct hv_part_chunks_result *out)
{
    struct hv_partition_result *r = &out->chain;
    r->n_probes = x->n_probes;
    r->stopped = x->watch->stopped;
    r->proven = complete;
    if (isinf(x->best)) {
        r->objective = r->bound = HV_UNKNOWN;
        r->proof = complete ? why_not(x) : "no cuts were found before the search had to end";
        return;
    }
    r->n_stages = x->S;
    r->cut = x->cut;
    r->order = hv_arena_new(x->arena, size_t, x->S);
    for (size_t s = 0; s < x->S; s++) {
        r->order[s] = s;
    }
    hv__finish(&x->c->chain, x->arena, r);
    r->objective = r->max = loads_of(x, x->cut, out->load, out->bytes);
    r->bound = complete ? r->objective : fmin(x->bound, r->objective);
}

static void prepare(struct chunks *x, struct hv_part_chunks_result *out)
{
    x->capacity = hv_arena_new(x->arena, double, x->R);
    x->weight = hv_arena_new(x->arena, double, x->R);
    x->cut = hv_arena_new(x->arena, size_t, x->S);
    x->best = HUGE_VAL;
    out->load = hv_arena_new(x->arena, double, x->R);
    out->bytes = hv_arena_new(x->arena, double, x->R);
    for (size_t r = 0; r < x->R; r++) {
        x->capacity[r] = HUGE_VAL;
    }
    for (size_t s = 0; s < x->S; s++) {
        double *c = &x->capacity[x->c->rank[s]];
        *c = fmin(*c, x->c->chain.stages[s].capacity);
    }
}

enum hv_status hv_partition_chunks_solve(const struct hv_part_chunks *c,
                                         const struct hv_solve_limits *limits,
                                         struct hv_arena *arena, struct hv_part_chunks_result *out,
                                         struct hv_err *err)
{
    const struct hv_partition *p = &c->chain;
    struct hv__watch watch;
    struct chunks x = {c,    p->n_layers, p->n_stages, c->n_ranks, p->min_layers, NULL,  NULL, NULL,
                       NULL, NULL,        0,           0,          NULL,          arena, 0};
    size_t n = x.L + 1;
    memset(out, 0, sizeof *out);
    enum hv_status st = check_chunks(c, err);
    if (st != HV_OK) {
        return st;
    }
    hv__watch_start(&watch, limits);
    x.watch = &watch;
    prepare(&x, out);
    if (layers_identical(&x)) {
        solve_even(&x, out);
        answer(&x, true, out);
        return HV_OK;
    }
    if (n * n > MAX_CELLS / x.S) {
        return hv_err_set(err, HV_ELIMIT, "%zu chunks times %zu layers squared is too large", x.S,
                          x.L);
    }
    fill_values(&x);
    x.rest = hv_arena_new(arena, double, (x.S + 1) * n);
    bool complete = !climb_weights(&x, out->load, out->bytes) || solve_exactly(&x);
    out->chain.method = "weights+load-dp";
    out->chain.proof = complete ? "dynamic program over the loads of all ranks"
                                : "the bound weighs the ranks (Lagrangian dual of the busiest)";
    answer(&x, complete, out);
    return HV_OK;
}
