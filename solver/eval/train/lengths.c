/**
 * Iterations of a job whose sequences have a distribution of lengths, where a plan does not list
 * its micro-batches: each is padded to the longest of its sequences, whose distribution is that of
 * the maximum of so many draws. The expected time of an iteration is a weighted sum of the times of
 * some of them:
 *
 * One for every interval of quantiles in which no padded length changes, with the width of the
 * interval, where all micro-batches have the same quantile. The sum of times of micro-batches, one
 * after the other, has this expectation whether their lengths depend on each other or not: exact
 * for one pipeline of one stage.
 *
 * Where stages or replicas wait for each other, iterations with a length of its own for every
 * micro-batch are drawn too. Their mean is corrected by what the sum alone gives for the lengths
 * that were drawn (control variate; Glasserman 2003, Monte Carlo Methods in Financial Engineering,
 * section 4.1), so that only the waiting is sampled. Quantiles are drawn from strata of one
 * micro-batch each (Latin hypercube; McKay et al. 1979).
 */
#include "solver/eval/train/steps.h"

#include "solver/base/rng.h"

#include <stdlib.h>

/** Iterations that are drawn. */
#define DRAWN 24
/** Quantiles that differ by less are one. */
#define ROUNDING 1e-12
/** Seed of the draws: a plan has one answer. */
#define SEED 1

/** True where a micro-batch of the entry has no length of its own. */
static bool has_unlisted(const struct hv_replica *r)
{
    for (int64_t k = 0; r->list != NULL && k < r->micro_batches; k++) {
        if (r->list[k].tokens <= 0) {
            return true;
        }
    }
    return r->list == NULL;
}

bool hv__lengths_are_the_jobs(const struct hv_plan *p)
{
    bool any = false;
    for (size_t i = 0; i < p->n_replicas; i++) {
        any = any || has_unlisted(&p->replicas[i]);
    }
    return any;
}

static bool uses_lengths(const struct hv__lowered *l)
{
    const struct hv_job *job = hv_cost_job(l->k);
    return job->n_lengths > 0 && hv__lengths_are_the_jobs(l->plan) &&
           hv_cost_tokens(l->k) == (double)job->sequence;
}

bool hv__lengths_are_drawn(const struct hv_plan *p)
{
    const struct hv_replica *r = p->replicas;
    return p->n_replicas > 1 || (p->n_replicas == 1 && (r->count > 1 || r->n_stages > 1));
}

/* ---- intervals of quantiles ------------------------------------------------------------------ */

struct quantiles {
    double *items;
    size_t n;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Where the padded length of a micro-batch of so many sequences changes. */
static void add_steps(const struct hv_job *job, double sequences, struct quantiles *q)
{
    for (size_t i = 0; i < job->n_lengths; i++) {
        q->items[q->n++] = hv_job_padded_share(job, sequences, (double)job->lengths[i].tokens);
    }
}

/** Sequences of a micro-batch of an entry, of the k-th of a list. */
static double sequences_of(const struct hv_plan *p, const struct hv_replica *r, int64_t k)
{
    int64_t own = r->list != NULL ? r->list[k].sequences : r->micro_batch;
    return (double)(own > 0 ? own : p->micro_batch);
}

/** All of them in order, each once. */
static struct quantiles find_steps(const struct hv__lowered *l)
{
    const struct hv_job *job = hv_cost_job(l->k);
    const struct hv_plan *p = l->plan;
    size_t most = 1, n = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        most += p->replicas[i].list != NULL ? (size_t)p->replicas[i].micro_batches : 1;
    }
    struct quantiles q = {hv_arena_new(l->arena, double, most * job->n_lengths + 1), 0};
    double *seen = hv_arena_new(l->arena, double, most);
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        for (int64_t k = 0; k < (r->list != NULL ? r->micro_batches : 1); k++) {
            double own = sequences_of(p, r, k);
            bool known = false;
            for (size_t s = 0; s < n && !known; s++) {
                known = seen[s] == own;
            }
            if (!known) {
                seen[n++] = own;
                add_steps(job, own, &q);
            }
        }
    }
    q.items[q.n++] = 1;
    qsort(q.items, q.n, sizeof *q.items, by_size);
    size_t kept = 0;
    for (size_t i = 0; i < q.n; i++) {
        double before = kept > 0 ? q.items[kept - 1] : 0;
        if (q.items[i] > before + ROUNDING) {
            q.items[kept++] = q.items[i];
        }
    }
    q.n = kept;
    return q;
}

/* ---- draws ----------------------------------------------------------------------------------- */

/** One quantile from each of n strata, in random order. */
static double *draw(struct hv_arena *arena, struct hv_rng *rng, size_t n)
{
    double *u = hv_arena_new(arena, double, n + 1);
    for (size_t i = 0; i < n; i++) {
        u[i] = ((double)i + hv_rng_double(rng)) / (double)n;
    }
    for (size_t i = n; i > 1; i--) {
        size_t k = hv_rng_below(rng, i);
        double x = u[i - 1];
        u[i - 1] = u[k];
        u[k] = x;
    }
    return u;
}

/** Takes from the weight of every interval the share of the draws that fell into it. */
static void correct(const struct quantiles *steps, const double *u, size_t n, double weight,
                    struct hv__length_run *runs)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k + 1 < steps->n && u[i] > steps->items[k]) {
            k++;
        }
        runs[k].weight -= weight / (double)n;
    }
}

static void add_draws(const struct hv__lowered *l, const struct quantiles *steps,
                      struct hv__length_runs *out)
{
    const struct hv_plan *p = l->plan;
    double **u = hv_arena_new(l->arena, double *, p->n_replicas);
    struct hv_rng rng;
    hv_rng_seed(&rng, SEED);
    for (size_t r = 0; r < p->n_replicas; r++) {
        size_t n = DRAWN * (size_t)p->replicas[r].micro_batches;
        u[r] = draw(l->arena, &rng, n);
        correct(steps, u[r], n, 1 / (double)p->n_replicas, out->items);
    }
    for (size_t d = 0; d < DRAWN; d++) {
        out->items[out->n++] = (struct hv__length_run){.weight = 1.0 / DRAWN,
                                                       .draw = d,
                                                       .n_draws = DRAWN,
                                                       .quantiles = (const double *const *)u};
    }
}

struct hv__length_runs hv__length_runs(const struct hv__lowered *l)
{
    struct hv__length_runs out = {.n = 0};
    if (!uses_lengths(l)) {
        return out;
    }
    struct quantiles steps = find_steps(l);
    out.items = hv_arena_new(l->arena, struct hv__length_run, steps.n + DRAWN);
    for (; out.n < steps.n; out.n++) {
        double from = out.n > 0 ? steps.items[out.n - 1] : 0, to = steps.items[out.n];
        out.items[out.n] = (struct hv__length_run){
            .weight = to - from, .common_weight = to - from, .quantile = from + (to - from) / 2};
    }
    out.n_common = steps.n;
    if (hv__lengths_are_drawn(l->plan)) {
        add_draws(l, &steps, &out);
    }
    return out;
}
