/*
 * The value of a sketch. The only place of the planner that calls hv_eval; results are cached,
 * because a search from many starting points generates the same plans repeatedly.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/plan/says.h"

#include <math.h>
#include <string.h>

/* second attempt for plans that by prices do not fit: fraction of the memory that they may fill */
#define ROOMY  1.2
#define REFITS 4 /* splits of one sketch, each with less memory than the one before */
/* A plan whose slowest stage, by prices alone, takes more than this fraction of the time to
 * beat is not evaluated. It is above 1 as prices are averages over blocks. */
#define HOPELESS   1.05
#define NEAR       1.03 /* times the best value so far: worth splitting inside of blocks */
#define KNOWN_WORK 20   /* operations that count for a plan evaluated before */
/* An evaluation that took long counts what it took: about as many bytes of results, or loads of
 * shared links, per operation. Below LONG_WORK operations the estimate (hv__work_of) is kept. */
#define BYTES_PER_OP 80
#define LOADS_PER_OP 8
#define LONG_WORK    1e5

/* ---- plans evaluated before --------------------------------------------------------------- */

/** A plan evaluated before. */
struct hv__known {
    uint64_t key[2]; /* both 0: none */
    double value, room;
    double at_least; /* > 0: not evaluated to its end, worse than this */
};

static void add_key(uint64_t *key, const int *words, size_t n)
{
    for (int i = 0; i < 2; i++) {
        key[i] = hv_hash(key[i], words, n * sizeof *words);
    }
}

/* Two hashes of everything that the plan of a sketch depends on. */
static void key_of(const struct hv__sketch *k, uint64_t *key)
{
    key[0] = HV_HASH_START;
    key[1] = ~HV_HASH_START;
    add_key(key, (const int[]){k->n_replicas, k->schedule, k->bucket_mib}, 3);
    for (int i = 0; i < k->n_replicas; i++) {
        const struct hv__replica_sketch *r = &k->replicas[i];
        const int head[] = {r->n_runs,
                            r->zero,
                            r->shard_group,
                            2 * r->reduce_late + r->keeps_gathered,
                            r->micro_batch,
                            r->n_longer,
                            (int)(r->micro_batches & INT32_MAX),
                            (int)(r->micro_batches >> 31)};
        add_key(key, head, HV_COUNT(head));
        for (int j = 0; j < r->n_runs; j++) {
            const struct hv__stage_run *x = &r->runs[j];
            const int run[] = {x->pool,
                               x->n_stages,
                               x->tp,
                               x->cp,
                               x->cp_way,
                               x->dp,
                               x->ep,
                               x->second_pool,
                               x->second_dp,
                               x->second_sequences,
                               (int)x->recompute,
                               (int)x->offload,
                               x->stages_adjacent};
            add_key(key, run, HV_COUNT(run));
        }
        add_key(key, r->counts, (size_t)(hv__depth(r) * hv__schedules[k->schedule].chunks));
    }
}

/* Slot of a key in the hash table; empty when the plan is new. */
static struct hv__known *place_of(struct hv__known *table, size_t cap, const uint64_t *key)
{
    size_t at = key[0] & (cap - 1);
    while ((table[at].key[0] | table[at].key[1]) != 0 &&
           (table[at].key[0] != key[0] || table[at].key[1] != key[1])) {
        at = (at + 1) & (cap - 1);
    }
    return &table[at];
}

static void grow_known(struct hv__search *s)
{
    size_t cap = s->cap_known > 0 ? 2 * s->cap_known : 1024;
    struct hv__known *table = hv_arena_new(&s->arena, struct hv__known, cap);
    for (size_t i = 0; i < s->cap_known; i++) {
        const struct hv__known *x = &s->known[i];
        if ((x->key[0] | x->key[1]) != 0) {
            *place_of(table, cap, x->key) = *x;
        }
    }
    s->known = table;
    s->cap_known = cap;
}

/* ---- evaluation --------------------------------------------------------------------------- */

/* The job's objective; infinity where the plan is not valid. */
static double value_of(const struct hv__search *s, const struct hv_verdict *v)
{
    const struct hv_metrics *m = &v->metrics;
    if (hv_findings_of_rules(&v->findings) > 0 || !m->exact || !hv_known(m->iteration_s)) {
        return HUGE_VAL;
    }
    return hv_eval_worth(&s->job->objective, m);
}

bool hv__is_over(struct hv__search *s)
{
    if (s->o->stop != NULL && s->o->stop(s->o->ctx)) {
        s->stopped = true;
    }
    if (s->o->budget > 0 && s->evaluations >= s->o->budget) {
        s->stopped = true;
    }
    return s->stopped || s->work >= s->work_limit;
}

double hv__work_of(const struct hv__search *s, const struct hv__sketch *k)
{
    double ops = 400 + s->n_blocks;
    for (int i = 0; i < k->n_replicas; i++) {
        const struct hv__replica_sketch *r = &k->replicas[i];
        const struct hv__schedule_row *o = &hv__schedules[k->schedule];
        ops += (double)r->micro_batches * hv__depth(r) * o->chunks * o->slices * 2 *
               (o->effort > 0 ? o->effort : 1);
        for (int j = 0; j < r->n_runs; j++) {
            ops += hv__run_devices(&r->runs[j]) + hv__second_devices(&r->runs[j]) +
                   100 * r->runs[j].n_stages;
        }
    }
    return ops;
}

static void report_incumbent(struct hv__search *s, const struct hv_plan *p)
{
    if (s->o->incumbent != NULL && s->best_value < 0.99 * s->reported_value) {
        s->reported_value = s->best_value;
        s->o->incumbent(s->o->ctx, p);
    }
}

static bool lacks_memory(const struct hv_verdict *v)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        enum hv_violation_code code = v->findings.items[i].code;
        if (code != HV_V_MEMORY && !hv_violation_is_limit(code)) {
            return false;
        }
    }
    return hv_findings_of_rules(&v->findings) > 0;
}

/* Fraction of a device's memory that may be filled, where the worst stage exceeded it. */
static double smaller_room(const struct hv_verdict *v)
{
    double least = 1;
    for (size_t i = 0; i < v->n_memory; i++) {
        if (v->memory[i].peak_bytes > 0) {
            least = fmin(least, v->memory[i].limit_bytes / v->memory[i].peak_bytes);
        }
    }
    return fmin(0.98, least);
}

/* Operations of the latest evaluation, whose results are in `scratch`: on clusters of thousands of
 * nodes a transfer loads many links, and an evaluation takes many times the estimate. */
static double work_done(const struct hv__search *s, const struct hv__sketch *k)
{
    double took = (double)s->scratch.used_bytes / BYTES_PER_OP + s->last.steps / LOADS_PER_OP;
    return took < LONG_WORK ? hv__work_of(s, k) : fmax(took, hv__work_of(s, k));
}

/* Value above which a plan is of no use: where blocks are split, a plan near the best is split
 * inside of them even if it is worse than `most`. None where values are no seconds, or the
 * objective's limits say more about a plan. */
static double limit_of(const struct hv__search *s, double most)
{
    const struct hv_objective *o = &s->job->objective;
    bool by_time = o->minimize == HV_MIN_TIME && !s->over_limits && !hv_known(o->deadline_s) &&
                   !hv_known(o->max_usd_per_h);
    double near = s->fine ? NEAR * s->best_value : 0;
    return by_time ? fmax(most, near) : HUGE_VAL;
}

/* Micro-batches of lengths that are drawn wait for each other, which takes 24 iterations to judge.
 * They are left out for plans that are slower than the best one where micro-batches are equally
 * long; waiting is then assumed to add as much as to the best. */
static double evaluate(struct hv__search *s, const struct hv__sketch *k, double most)
{
    bool by_time = s->job->objective.minimize == HV_MIN_TIME && s->best_value < HUGE_VAL;
    struct hv_eval_options eval = {.no_bound = true,
                                   .beat_s = by_time ? s->best_common_s : 0,
                                   .give_up_s = most < HUGE_VAL ? most : 0};
    double value = HUGE_VAL;
    struct hv_plan *p = hv__plan_of_sketch(s, k);
    hv_arena_reset(&s->scratch);
    if (!hv_target_says(s->job->target, p) || !hv_runtime_runs(s->job->runtime, p)) {
        s->work += KNOWN_WORK;
        s->room = 0;
        s->last = (struct hv_verdict){0};
        hv_plan_unref(p);
        return HUGE_VAL;
    }
    s->evaluations++;
    if (hv_eval(s->k, p, &eval, &s->scratch, &s->last, NULL) != HV_OK) {
        s->last = (struct hv_verdict){0};
    } else if (!(s->last.at_least_s > 0)) {
        value = value_of(s, &s->last);
        value *= s->last.common_only ? s->best_s / s->best_common_s : 1;
    }
    s->work += work_done(s, k);
    if (value < s->best_value) {
        s->best = *k;
        s->best_value = value;
        s->best_s = s->last.metrics.iteration_s;
        s->best_common_s = s->last.common_s;
        report_incumbent(s, p);
    }
    hv_plan_unref(p);
    s->room = value < HUGE_VAL || !lacks_memory(&s->last) ? 0 : smaller_room(&s->last);
    return value;
}

double hv__judge_again(struct hv__search *s, const struct hv__sketch *k)
{
    return evaluate(s, k, HUGE_VAL);
}

double hv__judge_sketch(struct hv__search *s, const struct hv__sketch *k, double most)
{
    uint64_t key[2];
    s->room = 0;
    if (!hv__has_devices(s, k)) {
        return HUGE_VAL;
    }
    if (2 * (s->n_known + 1) > s->cap_known) {
        grow_known(s);
    }
    key_of(k, key);
    struct hv__known *x = place_of(s->known, s->cap_known, key);
    double limit = limit_of(s, most);
    bool known = (x->key[0] | x->key[1]) != 0;
    if (known && (!(x->at_least > 0) || x->at_least >= limit)) {
        s->work += KNOWN_WORK;
        s->room = x->room;
        return x->value;
    }
    double value = evaluate(s, k, limit);
    *x = (struct hv__known){{key[0], key[1]}, value, s->room, s->last.at_least_s};
    s->n_known += !known;
    return value;
}

/* ---- split and evaluation ----------------------------------------------------------------- */

static bool split_all(struct hv__search *s, struct hv__sketch *k,
                      const struct hv__block_split *split)
{
    for (int r = 0; r < k->n_replicas; r++) {
        struct hv__block_split own = *split;
        own.fill = split->fill && hv__fill_matters(&k->replicas[r], k->schedule);
        if (!hv__split_blocks(s, &k->replicas[r], k->schedule, &own)) {
            return false;
        }
    }
    return true;
}

static bool same_counts(const struct hv__sketch *a, const struct hv__sketch *b)
{
    for (int r = 0; r < a->n_replicas; r++) {
        if (memcmp(a->replicas[r].counts, b->replicas[r].counts, sizeof a->replicas[r].counts) !=
            0) {
            return false;
        }
    }
    return true;
}

/* True where the plan is slower than `most` by prices alone. */
static bool is_hopeless(struct hv__search *s, const struct hv__sketch *k, double most)
{
    if (s->job->objective.minimize != HV_MIN_TIME || s->over_limits) {
        return false;
    }
    for (int i = 0; i < k->n_replicas; i++) {
        const struct hv__replica_sketch *r = &k->replicas[i];
        double each_s, fill_s;
        hv__replica_times(s, r, k->schedule, &each_s, &fill_s);
        if (each_s * (double)(r->micro_batches + (r->n_longer > 0)) > HOPELESS * most) {
            return true;
        }
    }
    return false;
}

/* One way to split; the plan `known` is not evaluated again. */
static double refit(struct hv__search *s, struct hv__sketch *k, struct hv__block_split split,
                    const struct hv__sketch *known, struct hv__limits most)
{
    for (int i = 0; i < REFITS && !hv__is_over(s); i++) {
        struct hv__block_split roomy = {ROOMY, split.fill, split.halves};
        if (!split_all(s, k, &split) && (i > 0 || !split_all(s, k, &roomy))) {
            return HUGE_VAL;
        }
        if (known != NULL && same_counts(k, known)) {
            return HUGE_VAL;
        }
        if (i == 0 && !hv__split_batch(s, k, false)) {
            return HUGE_VAL;
        }
        if (is_hopeless(s, k, most.by_prices)) {
            return HUGE_VAL;
        }
        double value = hv__judge_sketch(s, k, most.judged);
        if (s->room == 0) {
            return value;
        }
        split.room *= s->room;
        if (split.room < 0.5) {
            return HUGE_VAL;
        }
    }
    return HUGE_VAL;
}

/* Splits whole blocks, once for the slowest stage alone, once also for the time to fill the
 * pipeline. */
static double refit_whole(struct hv__search *s, struct hv__sketch *k, struct hv__limits most,
                          bool *filled)
{
    struct hv__sketch other = *k;
    double value = refit(s, k, (struct hv__block_split){.room = 1}, NULL, most);
    bool fill = false;
    for (int r = 0; r < k->n_replicas; r++) {
        fill = fill || hv__fill_matters(&k->replicas[r], k->schedule);
    }
    if (!fill) {
        return value;
    }
    double least = refit(s, &other, (struct hv__block_split){.room = 1, .fill = true}, k, most);
    *filled = least < value;
    if (*filled) {
        *k = other;
    }
    return fmin(least, value);
}

/* True where the blocks are split over more than one stage or chunk. */
static bool has_cuts(const struct hv__sketch *k)
{
    int most = hv__schedules[k->schedule].chunks;
    for (int r = 0; r < k->n_replicas; r++) {
        most = hv__depth(&k->replicas[r]) > most ? hv__depth(&k->replicas[r]) : most;
    }
    return most > 1;
}

double hv__refit(struct hv__search *s, struct hv__sketch *k, struct hv__limits most)
{
    if (!hv__has_devices(s, k) || !hv__split_batch(s, k, false)) {
        return HUGE_VAL;
    }
    struct hv__block_split split = {.room = 1, .halves = true};
    double value = refit_whole(s, k, most, &split.fill);
    if (!s->fine || !(value < NEAR * s->best_value) || !hv__splits_blocks(s) || !has_cuts(k)) {
        return value;
    }
    struct hv__sketch other = *k;
    double halves = refit(s, &other, split, k, most);
    if (halves < value) {
        *k = other;
    }
    return fmin(halves, value);
}
