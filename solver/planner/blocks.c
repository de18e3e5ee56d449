/*
 * Blocks over the stages and chunks of a replica: the exact partition of solver/optim/chain, by the
 * prices of blocks.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"
#include "solver/optim/chain/partition.h"

#include <math.h>

/* Memory of a device before any state: context, communicators, work space. A first guess, which
 * the evaluated peak memory corrects (hv__refit). */
#define HELD_BYTES (1.5 * HV_GIB)
#define FILL_FRAC  0.95
/* limits, in stages × chunks and in micro-batches per stage, of pipelines whose partition
 * minimises the time to fill the pipeline too */
#define FILL_PARTS   16
#define FILL_BATCHES 8

/* Sum over the first i pieces, where every block has `per` pieces. */
static double sum_to(const double *sums, size_t i, size_t per, double first)
{
    size_t whole = i / per;
    return i % per == 0 ? sums[whole] : sums[whole] + first * (sums[whole + 1] - sums[whole]);
}

/* Prefix sums over embedding, `per` pieces of every block, head. */
static double *time_row(struct hv_arena *a, const struct hv__price *p, size_t per)
{
    const struct hv_layer_table *t = &p->table;
    size_t n = per * t->n_blocks;
    double *row = hv_arena_new(a, double, n + 3);
    row[1] = p->ends_s[0];
    for (size_t i = 1; i <= n; i++) {
        row[i + 1] = row[1] + sum_to(t->forward_s, i, per, p->first_s) +
                     sum_to(t->backward_s, i, per, p->first_s) +
                     (double)i / (double)per * p->fetch_s;
    }
    row[n + 2] = row[n + 1] + p->ends_s[1];
    return row;
}

/* One chunk of a pipeline: its run, and the micro-batches in flight. */
struct in_part {
    const struct hv__replica_sketch *replica;
    const struct hv__stage_run *run;
    double in_flight;
    size_t per; /* pieces of a block */
};

static double *memory_row(const struct hv__search *s, struct hv_arena *a, const struct hv__price *p,
                          const struct in_part *in)
{
    const struct hv__replica_sketch *r = in->replica;
    const struct hv__stage_run *run = in->run;
    const struct hv_layer_table *table = &p->table;
    size_t n = in->per * table->n_blocks;
    double *row = hv_arena_new(a, double, n + 3);
    double plain = hv__bytes_per_parameter(s->job, r, hv__run_sharers(r, run), run->offload);
    double each = hv__state_bytes(s->job, r, run, p) / p->parameters;
    double in_flight = run->offload & HV__HOST(HV_OFFLOAD_ACTIVATIONS) ? 0 : in->in_flight;
    row[1] = p->ends_parameters[0] * plain;
    for (size_t i = 1; i <= n; i++) {
        row[i + 1] = row[1] + sum_to(table->parameters, i, in->per, p->first_parameters) * each +
                     sum_to(table->saved_bytes, i, in->per, p->first_saved) * in_flight;
    }
    row[n + 2] = row[n + 1] + p->ends_parameters[1] * plain + p->head_bytes;
    return row;
}

/* Bytes that blocks may fill on a device of the run's own pool. */
static double room_of(const struct hv__search *s, const struct hv__stage_run *run,
                      const struct hv__price *p)
{
    return fmax(0, FILL_FRAC * s->pools[run->pool].limit_bytes - HELD_BYTES - p->peak_bytes);
}

/* Memory that fits the ranks of both pools: for each block the larger fraction of either pool's
 * memory, in bytes of the own pool. */
static void add_second_pool(struct hv__search *s, struct hv_arena *a, const struct in_part *in,
                            struct hv_part_stage *part, double room)
{
    struct hv__stage_run turned = hv__run_swapped(in->replica, in->run);
    const struct hv__price *p = hv__price_of(s, in->replica, &turned);
    struct in_part second = {in->replica, &turned, in->in_flight, in->per};
    double *own = hv_arena_new(a, double, in->per * p->table.n_blocks + 3);
    const double *theirs = memory_row(s, a, p, &second);
    double by = part->capacity / fmax(1, room * room_of(s, &turned, p));
    for (size_t i = 1; i < in->per * p->table.n_blocks + 3; i++) {
        own[i] = own[i - 1] +
                 fmax(part->memory[i] - part->memory[i - 1], by * (theirs[i] - theirs[i - 1]));
    }
    part->memory = own;
}

static double in_flight(const struct hv__replica_sketch *r, const struct hv__schedule_row *o,
                        int depth, int rank)
{
    double n = o->folded ? depth : depth - rank;
    if (o->rounds > 0) {
        n = (2.0 * (depth - 1 - rank) + (o->chunks - 1) * o->rounds * depth + 1) / o->chunks;
    }
    return fmin((double)r->micro_batches, n + o->in_flight_more * depth);
}

static bool fill_parts(struct hv__search *s, struct hv_arena *a,
                       const struct hv__replica_sketch *rep, int schedule,
                       const struct hv__block_split *split, struct hv_part_stage *parts)
{
    const struct hv__schedule_row *o = &hv__schedules[schedule];
    int depth = hv__depth(rep);
    const double *times[HV__RUNS] = {NULL};
    size_t per = split->halves ? 2 : 1;
    for (int i = 0; i < depth * o->chunks; i++) {
        int turn = i / depth, rank = i % depth;
        if (o->folded && turn % 2 == 1) {
            rank = depth - 1 - rank;
        }
        const struct hv__stage_run *r = hv__run_at(rep, rank);
        const struct hv__price *p = hv__price_of(s, rep, r);
        if (!p->known || !hv__slower_of(s, rep, r)->known) {
            return false;
        }
        size_t run = (size_t)(r - rep->runs);
        if (times[run] == NULL) {
            times[run] = time_row(a, hv__slower_of(s, rep, r), per);
        }
        struct in_part in = {rep, r, in_flight(rep, o, depth, rank), per};
        parts[i] = (struct hv_part_stage){.time = times[run],
                                          .memory = memory_row(s, a, p, &in),
                                          .capacity = split->room * room_of(s, r, p) / o->chunks};
        if (r->second_dp > 0) {
            add_second_pool(s, a, &in, &parts[i], split->room / o->chunks);
        }
    }
    return true;
}

bool hv__fill_matters(const struct hv__replica_sketch *r, int schedule)
{
    int n_parts = hv__depth(r) * hv__schedules[schedule].chunks;
    return r->n_runs > 1 && n_parts <= FILL_PARTS && r->micro_batches > 0 &&
           r->micro_batches < FILL_BATCHES * hv__depth(r);
}

bool hv__split_blocks(struct hv__search *s, struct hv__replica_sketch *rep, int schedule,
                      const struct hv__block_split *split)
{
    int n_parts = hv__depth(rep) * hv__schedules[schedule].chunks;
    int per = split->halves ? 2 : 1;
    if (n_parts > HV__CHUNKS || n_parts > per * s->n_blocks + 2) {
        return false;
    }
    struct hv_arena a = {0};
    struct hv_part_stage *parts = hv_arena_new(&a, struct hv_part_stage, (size_t)n_parts);
    struct hv_partition_result r = {0};
    struct hv_partition p = {.n_layers = (size_t)(per * s->n_blocks) + 2,
                             .n_stages = (size_t)n_parts,
                             .stages = parts,
                             .min_layers = 1,
                             .max_weight = 1};
    if (split->fill) {
        p.sum_weight = 1;
        p.max_weight = (double)rep->micro_batches - 1;
    }
    bool ok = fill_parts(s, &a, rep, schedule, split, parts) &&
              hv_partition_solve(&p, NULL, &a, &r, NULL) == HV_OK && r.feasible;
    for (int i = 0; ok && i < n_parts; i++) {
        rep->counts[i] = (int)(r.cut[i] - (i > 0 ? r.cut[i - 1] : 0));
        if (i == 0) {
            rep->counts[i]--;
        }
        if (i == n_parts - 1) {
            rep->counts[i]--;
        }
        rep->counts[i] *= 2 / per;
    }
    hv_arena_free(&a);
    return ok;
}
