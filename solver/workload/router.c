/* Routing of tokens over experts. Popularity of experts under a Zipf law moves from layer to layer
 * and from iteration to iteration by scores that are mixed with noise of the same spread. */
#include "solver/workload/router.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"

#define X(c, name) name,
static const char *const names[HV_ROUTER_N] = {HV_ROUTER_MAP(X)};
#undef X

const char *hv_router_name(enum hv_router_kind k)
{
    return names[k];
}

bool hv_router_is_even(const struct hv_router *r)
{
    return !r || r->kind == HV_ROUTER_UNIFORM || (r->kind == HV_ROUTER_ZIPF && !(r->skew > 0));
}

bool hv_router_has_sources(const struct hv_router *r)
{
    return r && r->kind == HV_ROUTER_TRACE && r->sources > 1;
}

uint64_t hv_router_class(const struct hv_router *r, size_t iteration, size_t layer)
{
    if (hv_router_is_even(r)) {
        return 0;
    }
    size_t at = r->iterations > 0 ? iteration % r->iterations : 0;
    if (r->kind == HV_ROUTER_ZIPF) {
        at = r->drift > 0 ? at : 0;
        layer = r->correlation < 1 ? layer : 0;
    }
    return 1 + (uint64_t)at * HV_ROUTER_AXIS_MOST + layer;
}

/* ---- zipf ----------------------------------------------------------------------------------- */

struct scored {
    double score;
    size_t expert;
};

static int by_score(const void *x, const void *y)
{
    const struct scored *a = x, *b = y;
    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    return a->expert < b->expert ? -1 : a->expert > b->expert;
}

/* A number of mean 0 and variance 1, spread evenly, as the first scores are. */
static double noise(struct hv_rng *r)
{
    return sqrt(12) * (hv_rng_double(r) - 0.5);
}

static void stir(const struct hv_router *r, uint64_t what, double keep, size_t n,
                 struct scored *list)
{
    struct hv_rng rng;
    double part = sqrt(fmax(0, 1 - keep * keep));
    hv_rng_seed(&rng, r->seed * 0x9e3779b97f4a7c15ULL + what);
    for (size_t e = 0; e < n; e++) {
        list[e].score = keep * list[e].score + part * noise(&rng);
    }
}

/* Shares of experts in one layer of one iteration, most popular first by score. In the first layer
 * of the first iteration expert 0 is the most popular one. */
static void zipf_shares(const struct hv_router *r, const struct hv_router_at *at, double *share)
{
    size_t n = at->experts, time = r->iterations > 0 ? at->iteration % r->iterations : 0;
    struct scored *list = hv_xcalloc(n, sizeof *list);
    for (size_t e = 0; e < n; e++) {
        list[e] = (struct scored){sqrt(12) * (0.5 - ((double)e + 0.5) / (double)n), e};
    }
    if (r->correlation < 1 && at->layer > 0) {
        stir(r, (uint64_t)at->layer << 32, r->correlation, n, list);
    }
    for (size_t t = 1; t <= time && r->drift > 0; t++) {
        stir(r, (uint64_t)(r->correlation < 1 ? at->layer : 0) << 32 | t, 1 - r->drift, n, list);
    }
    qsort(list, n, sizeof *list, by_score);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        share[list[i].expert] = pow((double)i + 1, -r->skew);
        sum += share[list[i].expert];
    }
    for (size_t e = 0; e < n; e++) {
        share[e] /= sum;
    }
    free(list);
}

/* No expert gets more than one copy of every token: what is above goes to the others in
 * proportion. */
static void cap_shares(size_t n, int top_k, double *share)
{
    double most = top_k > 0 ? 1.0 / top_k : 1;
    for (size_t round = 0; round < n; round++) {
        double over = 0, below = 0;
        for (size_t e = 0; e < n; e++) {
            over += fmax(0, share[e] - most);
            below += share[e] < most ? share[e] : 0;
        }
        if (!(over > 1e-12) || !(below > 0)) {
            return;
        }
        for (size_t e = 0; e < n; e++) {
            share[e] = share[e] < most ? share[e] * (1 + over / below) : most;
        }
    }
}

/* ---- traces --------------------------------------------------------------------------------- */

/* The first entry of a row. */
static size_t row_at(const struct hv_router *r, size_t row)
{
    return r->at ? r->at[row] : row * r->experts;
}

/* Words of four counts whose sums fit into the halves of a word. */
#define SUM_WORDS 32768

/* Sum of n counts, four at a time: the first and third, and the second and fourth of each four, are
 * added in the halves of one word. */
static uint64_t sum_of_counts(const uint16_t *counts, size_t n)
{
    const uint64_t low = 0x0000FFFF0000FFFF;
    uint64_t sum = 0;
    size_t i = 0;
    while (n - i >= 4) {
        size_t words = (n - i) / 4 < SUM_WORDS ? (n - i) / 4 : SUM_WORDS;
        uint64_t odd = 0, even = 0, word;
        for (size_t end = i + 4 * words; i < end; i += 4) {
            memcpy(&word, counts + i, sizeof word);
            odd += word & low;
            even += word >> 16 & low;
        }
        sum += (odd & UINT32_MAX) + (odd >> 32) + (even & UINT32_MAX) + (even >> 32);
    }
    for (; i < n; i++) {
        sum += counts[i];
    }
    return sum;
}

/* Sum of entries [from, to): counts exactly, others in their order. */
static double sum_of(const struct hv_router *r, size_t from, size_t to)
{
    uint64_t whole = r->counts ? sum_of_counts(r->counts + from, to - from) : 0;
    double sum = 0;
    for (size_t i = from; !r->counts && i < to; i++) {
        sum += (double)r->tokens[i];
    }
    return r->counts ? (double)whole : sum;
}

/* Adds `part` of what one source of the trace sends. */
static void add_source(const struct hv_router *r, size_t row, double part, double *out)
{
    size_t from = row_at(r, row), n = row_at(r, row + 1) - from;
    for (size_t i = from; r->at && i < from + n; i++) {
        out[r->expert[i]] += part * (r->counts ? (double)r->counts[i] : (double)r->tokens[i]);
    }
    for (size_t e = 0; !r->at && r->counts && e < n; e++) {
        out[e] += part * (double)r->counts[from + e];
    }
    for (size_t e = 0; !r->at && !r->counts && e < n; e++) {
        out[e] += part * (double)r->tokens[from + e];
    }
}

static void trace_tokens(const struct hv_router *r, const struct hv_router_at *at, double *out)
{
    size_t rows = (at->iteration % r->iterations * r->layers + at->layer) * r->sources;
    double each = (double)r->sources / (double)at->of;
    double total = sum_of(r, row_at(r, rows), row_at(r, rows + r->sources));
    double unit = total > 0 ? (double)at->of / total : 0;
    for (size_t s = 0; s < at->sources; s++) {
        double from = (double)((at->first + s) % at->of) * each, to = from + each;
        for (size_t k = (size_t)from; k < r->sources && (double)k < to - 1e-9; k++) {
            double part = fmin(to, (double)k + 1) - fmax(from, (double)k);
            add_source(r, rows + k, part * unit, out + s * at->experts);
        }
    }
}

void hv_router_tokens(const struct hv_router *r, const struct hv_router_at *at, double *out)
{
    size_t n = at->experts, cells = at->sources * n;
    bool trace = r && r->kind == HV_ROUTER_TRACE;
    bool fits = !trace || (r->experts == n && at->layer < r->layers && r->iterations > 0);
    double start = !fits ? HV_UNKNOWN : trace ? 0 : 1 / (double)n;
    for (size_t i = 0; i < cells; i++) {
        out[i] = start;
    }
    if (trace && fits) {
        trace_tokens(r, at, out);
    } else if (!trace && !hv_router_is_even(r) && at->sources > 0) {
        zipf_shares(r, at, out);
        cap_shares(n, at->top_k, out);
        for (size_t s = 1; s < at->sources; s++) {
            memcpy(out + s * n, out, n * sizeof *out);
        }
    }
}

/* Experts whose owner is not that of the one before. */
static size_t changes_of(const uint32_t *owner, size_t n)
{
    size_t changes = 0;
    for (size_t e = 1; e < n; e++) {
        changes += owner[e] != owner[e - 1];
    }
    return changes;
}

/* Adds the counts of one source to what goes to each owner, where experts of one owner follow each
 * other. */
static void add_owned(const uint16_t *counts, const uint32_t *owner, size_t n, int64_t *row)
{
    for (size_t e = 0; e < n;) {
        uint32_t own = owner[e];
        int64_t sum = counts[e];
        for (e++; e < n && owner[e] == own; e++) {
            sum += counts[e];
        }
        row[own] += sum;
    }
}

/* The same where most do not. */
static void add_scattered(const uint16_t *counts, const uint32_t *owner, size_t n, int64_t *row)
{
    for (size_t e = 0; e < n; e++) {
        row[owner[e]] += counts[e];
    }
}

bool hv_router_sent(const struct hv_router *r, const struct hv_router_at *at, const uint32_t *owner,
                    size_t n, double *sent)
{
    if (!r || r->kind != HV_ROUTER_TRACE || !r->counts || r->at || r->experts != at->experts ||
        at->layer >= r->layers || r->iterations < 1 || at->of < 1 || r->sources % at->of != 0) {
        return false;
    }
    size_t first = (at->iteration % r->iterations * r->layers + at->layer) * r->sources;
    size_t each = r->sources / at->of;
    const uint16_t *counts = r->counts + first * r->experts;
    double total = (double)sum_of_counts(counts, r->sources * r->experts);
    double unit = total > 0 ? (double)at->of / total : 0;
    int64_t *row = hv_xcalloc(n + 1, sizeof *row);
    bool scattered = 2 * changes_of(owner, r->experts) > r->experts;
    for (size_t s = 0; s < at->sources; s++) {
        size_t from = (at->first + s) % at->of * each;
        for (size_t k = from; k < from + each; k++) {
            (scattered ? add_scattered : add_owned)(counts + k * r->experts, owner, r->experts,
                                                    row);
        }
        for (size_t i = 0; i < n; i++) {
            sent[s * n + i] = (double)row[i] * unit;
            row[i] = 0;
        }
    }
    free(row);
    return true;
}

double hv_router_dropped(const struct hv_router *r, const struct hv_router_at *at, double capacity)
{
    struct hv_router_at all = *at;
    all.first = 0;
    all.sources = hv_router_has_sources(r) ? at->of : 1; /* else all are alike */
    double *tokens = hv_xcalloc(all.sources * all.experts + 1, sizeof *tokens), sum = 0, over = 0;
    hv_router_tokens(r, &all, tokens);
    for (size_t i = 0; i < all.sources * all.experts; i++) {
        sum += tokens[i];
        over += fmax(0, tokens[i] - capacity);
    }
    free(tokens);
    return sum > 0 ? over / sum : 0;
}
