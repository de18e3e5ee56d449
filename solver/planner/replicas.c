/*
 * Candidate replicas: every way to run the model on a subset of pools, ranked by an estimate from
 * the prices of blocks.
 */
#include "solver/planner/replicas_int.h"

#include "solver/base/units.h"

#include <math.h>
#include <string.h>

#define RANK_BATCH    16 /* sequences per rank and micro-batch at most */
#define RUN_OPTIONS   64
#define SMALL_BATCH   48    /* sequences */
#define CONTEXTS      2     /* context-parallel ranks at most, in initial plans */
#define LONG_SEQUENCE 16384 /* tokens */

/* Degrees that a run may have for a micro-batch, least score first. */
struct run_options {
    struct hv__stage_run runs[RUN_OPTIONS];
    double score[RUN_OPTIONS], pace[RUN_OPTIONS]; /* pace: seconds per block over all stages */
    int n, cap, pool;
};

int hv__pool_devices(const struct hv__lister *l, int pool)
{
    const struct hv__pool *p = &l->s->pools[pool];
    int nodes = (int)ceil(l->shrink * p->n / p->node_devices);
    return nodes * p->node_devices;
}

/* Expert-parallel ranks: as many data-parallel ranks of a node as divide both numbers. */
static int experts_over(const struct hv__search *s, int dp)
{
    int experts = hv__experts(s), ep = 1;
    if (experts <= 1) {
        return 1;
    }
    while (2 * ep <= 8 && experts % (2 * ep) == 0 && dp % (2 * ep) == 0) {
        ep *= 2;
    }
    return ep;
}

bool hv__heads_allow(const struct hv__search *s, int tp)
{
    const struct hv_model *m = hv_cost_model(s->k);
    for (size_t i = 0; m->blocks != NULL && i < m->n_blocks; i++) {
        if (m->blocks[i].heads > 0 && m->blocks[i].heads % tp != 0) {
            return false;
        }
    }
    return true;
}

static void add_option(struct run_options *o, const struct hv__stage_run *run, double score,
                       double pace)
{
    int at = o->n;
    while (at > 0 && o->score[at - 1] > score) {
        at--;
    }
    if (at >= o->cap) {
        return;
    }
    int last = o->n < o->cap ? o->n : o->cap - 1;
    memmove(&o->runs[at + 1], &o->runs[at], (size_t)(last - at) * sizeof *o->runs);
    memmove(&o->score[at + 1], &o->score[at], (size_t)(last - at) * sizeof *o->score);
    memmove(&o->pace[at + 1], &o->pace[at], (size_t)(last - at) * sizeof *o->pace);
    o->runs[at] = *run;
    o->score[at] = score;
    o->pace[at] = pace;
    o->n = last + 1;
}

static bool is_depth(int n)
{
    return n <= 4 || (n % 2 == 0 && n <= 12) || n % 8 == 0;
}

/* Bytes on one rank if this run held all blocks; used to rank options by memory. */
static double leanness(const struct hv__search *s, const struct hv__stage_run *run,
                       const struct hv__price *c)
{
    static const struct hv__replica_sketch sharded = {.zero = 1};
    return (hv__state_bytes(s->job, &sharded, run, c) + run->n_stages * c->saved_bytes) /
           run->n_stages;
}

static bool is_listed(const struct run_options *o, const struct hv__stage_run *run)
{
    for (int i = 0; i < o->n; i++) {
        const struct hv__stage_run *x = &o->runs[i];
        if (x->n_stages == run->n_stages && x->tp == run->tp && x->cp == run->cp &&
            x->dp == run->dp && x->ep == run->ep) {
            return true;
        }
    }
    return false;
}

/* One shape of a run, with and without expert parallelism. */
static void add_runs(struct hv__lister *l, const struct hv__replica_sketch *r,
                     struct hv__stage_run run, struct run_options *fast, struct run_options *lean)
{
    int most = experts_over(l->s, run.dp);
    for (int i = 0; i < (most > 1 ? 2 : 1); i++) {
        run.ep = i == 0 ? most : 1;
        const struct hv__price *c = hv__price_of(l->s, r, &run);
        if (!c->known) {
            continue;
        }
        double pace = c->block_s / run.n_stages;
        add_option(fast, &run, pace, pace);
        add_option(lean, &run, leanness(l->s, &run, c), pace);
    }
}

/* True where context parallelism may pay on n devices with micro-batches of `batch` sequences: it
 * changes the choice of kernels, there are fewer sequences than devices, or sequences are long. */
static bool cuts_sequences(const struct hv__search *s, const struct hv__pool *p, int n, int batch)
{
    double tokens = hv_cost_tokens(s->k);
    return hv_cost_model(s->k)->kind == HV_MODEL_TRANSFORMER && fmod(tokens, 2 * CONTEXTS) == 0 &&
           (p->contexts_change || batch < n || tokens >= LONG_SEQUENCE);
}

/* Stage counts of a pool for one tensor and context degree. */
static void list_depths(struct hv__lister *l, const struct hv__replica_sketch *r,
                        struct hv__stage_run run, struct run_options *fast,
                        struct run_options *lean)
{
    int n = hv__pool_devices(l, run.pool), width = run.tp * run.cp, batch = r->micro_batch;
    for (int stages = 1; stages * width <= n && stages <= l->s->n_blocks; stages++) {
        int most = n / (stages * width), even = hv__even_ranks(batch, most);
        int uneven = hv__uneven_ranks(l->s, batch, most);
        run.n_stages = stages;
        for (int i = 0; i < (uneven != even ? 2 : 1) && is_depth(stages); i++) {
            run.dp = i == 0 ? even : uneven;
            if (batch <= RANK_BATCH * run.dp && 4 * stages * width * run.dp >= 3 * n) {
                add_runs(l, r, run, fast, lean);
            }
        }
    }
}

/* Stage counts, tensor and context degrees of a pool for the replica's micro-batches: `cap` of
 * them, the fastest and some that need little memory. */
static void list_runs(struct hv__lister *l, const struct hv__replica_sketch *r,
                      const struct hv__stage_run *run, int cap, struct run_options *out)
{
    const struct hv__pool *p = &l->s->pools[run->pool];
    bool cuts = cuts_sequences(l->s, p, hv__pool_devices(l, run->pool), r->micro_batch);
    struct run_options lean = {.cap = (cap + 2) / 3};
    *out = (struct run_options){.cap = cap, .pool = run->pool};
    for (int tp = 1; tp <= p->per_node && tp <= 16; tp *= 2) {
        if (p->per_node % tp != 0 || !hv__heads_allow(l->s, tp)) {
            continue;
        }
        for (int cp = 1; cp <= (cuts ? CONTEXTS : 1) && p->per_node % (tp * cp) == 0; cp *= 2) {
            struct hv__stage_run x = *run;
            x.tp = tp;
            x.cp = cp;
            list_depths(l, r, x, out, &lean);
        }
    }
    int more = lean.n;
    for (int i = 0; i < more; i++) {
        if (is_listed(out, &lean.runs[i])) {
            continue;
        }
        int at = out->n < cap ? out->n++ : cap - 1 - i;
        if (at > 0) {
            out->runs[at] = lean.runs[i];
            out->pace[at] = lean.pace[i];
        }
    }
}

/* Blocks that one stage of the run can hold with `behind` micro-batches in flight. */
static double room_of(struct hv__search *s, const struct hv__replica_sketch *r,
                      const struct hv__stage_run *run, double behind)
{
    const struct hv__price *c = hv__price_of(s, r, run);
    double state = hv__state_bytes(s->job, r, run, c);
    bool keeps = (run->offload & HV__HOST(HV_OFFLOAD_ACTIVATIONS)) == 0;
    double room = 0.95 * s->pools[run->pool].limit_bytes - 1.5 * HV_GIB - c->peak_bytes;
    return room / (state + (keeps ? behind * c->saved_bytes : 0));
}

/* Seconds of the gradient all-reduce of a run's stages without overlap. */
static double sync_of(struct hv__search *s, const struct hv__replica_sketch *r,
                      const struct hv__stage_run *run, double blocks)
{
    const struct hv__pool *p = &s->pools[run->pool];
    const struct hv__price *c = hv__price_of(s, r, run);
    if (hv__run_holders(run) == 1) {
        return 0;
    }
    double bytes = 2 * blocks * c->parameters * hv_job_grad_bytes(s->job);
    bool inside = run->tp * hv__run_holders(run) <= p->per_node;
    double rate = inside ? hv_or(p->kind->link_bytes_per_s, 1e10) : p->flow_bytes_per_s;
    return bytes / rate;
}

/* Seconds of an all-reduce that are not overlapped: the part that the last backward pass of a stage
 * does not cover, and at least the last bucket. */
static double shown_of(double sync_s, double each_s)
{
    return fmax(0.2 * sync_s, sync_s - 0.6 * each_s);
}

/* Bytes of gradients on one node of the run, whose stages hold `blocks` blocks. */
static double node_bytes(struct hv__search *s, const struct hv__replica_sketch *r,
                         const struct hv__stage_run *run, double blocks)
{
    const struct hv__price *c = hv__price_of(s, r, run);
    double width = run->tp * hv__run_holders(run);
    double stages = fmax(1, fmin(run->n_stages, s->pools[run->pool].node_devices / width));
    return blocks / run->n_stages * stages * c->parameters * run->tp * hv_job_grad_bytes(s->job);
}

double hv__shared_sync_s(struct hv__search *s, const struct hv__sketch *k)
{
    double bytes = 0, rate = HUGE_VAL, each_s = 0;
    for (int i = 0; i < k->n_replicas && k->n_replicas > 1; i++) {
        const struct hv__replica_sketch *r = &k->replicas[i];
        double speed = 0, each, fill;
        for (int j = 0; j < r->n_runs; j++) {
            speed += r->runs[j].n_stages / hv__price_of(s, r, &r->runs[j])->block_s;
        }
        for (int j = 0; j < r->n_runs; j++) {
            const struct hv__stage_run *run = &r->runs[j];
            const struct hv__pool *p = &s->pools[run->pool];
            double share = run->n_stages / hv__price_of(s, r, run)->block_s / speed;
            bytes = fmax(bytes, node_bytes(s, r, run, share * s->n_blocks));
            rate = fmin(rate, p->flow_bytes_per_s * p->node_devices);
        }
        hv__replica_times(s, r, k->schedule, &each, &fill);
        each_s = fmax(each_s, each);
    }
    double rounds = 2.0 * (k->n_replicas - 1) / k->n_replicas;
    return bytes > 0 ? shown_of(rounds * bytes / rate, each_s) : 0;
}

/* Adds the communication between runs: twice per run to fill the pipeline and, as 1F1B has only
 * as many micro-batches in flight as stages are left, a wait per micro-batch. */
static void add_hops(struct hv__search *s, struct hv__candidate *cand)
{
    const struct hv__replica_sketch *r = &cand->replica;
    int behind = hv__depth(r);
    double stall = 0, sum = 0;
    for (int i = 1; i < r->n_runs; i++) {
        double hop = hv__run_hop_s(s, r, i);
        behind -= r->runs[i - 1].n_stages;
        stall += 2 * hop / (behind + 1);
        sum += 2 * hop;
    }
    cand->each_s += 0.5 * stall;
    cand->fill_s += sum;
}

/* Divides the blocks over the runs so that all take equally long, except runs whose memory is full.
 * False: the blocks do not fit. *each_s: time of a stage. */
static bool fill_runs(int n_runs, const double *room, const double *pace, double left,
                      double *each_s)
{
    bool full[HV__RUNS] = {false};
    for (int round = 0; round <= n_runs; round++) {
        double speed = 0;
        for (int i = 0; i < n_runs; i++) {
            speed += full[i] ? 0 : 1 / pace[i];
        }
        if (left > 1e-9 && !(speed > 0)) {
            return false;
        }
        *each_s = speed > 0 ? left / speed : *each_s;
        bool again = false;
        for (int i = 0; i < n_runs; i++) {
            if (!full[i] && *each_s / pace[i] > room[i]) {
                full[i] = again = true;
                left -= fmax(0, room[i]);
            }
        }
        if (!again) {
            break;
        }
    }
    return true;
}

/* Balanced time of a stage if blocks could be divided into any fractions, within memory: runs
 * that are full are fixed one by one. False when the blocks do not fit. */
static bool estimate(struct hv__search *s, struct hv__candidate *cand)
{
    struct hv__replica_sketch *r = &cand->replica;
    double room[HV__RUNS], pace[HV__RUNS], ends = 0, each = 0, sync = 0;
    int depth = hv__depth(r), behind = depth;
    for (int i = 0; i < r->n_runs; i++) {
        struct hv__stage_run *run = &r->runs[i];
        const struct hv__price *c = hv__price_of(s, r, run);
        double flight = behind - (run->n_stages - 1) / 2.0;
        room[i] = run->n_stages * floor(room_of(s, r, run, flight));
        pace[i] = c->block_s / run->n_stages;
        ends += (c->ends_s[0] + c->ends_s[1]) / r->n_runs;
        behind -= run->n_stages;
    }
    if (!fill_runs(r->n_runs, room, pace, s->n_blocks, &each)) {
        return false;
    }
    for (int i = 0; i < r->n_runs; i++) {
        sync = fmax(sync, sync_of(s, r, &r->runs[i], s->n_blocks / (double)depth));
    }
    each += ends / depth;
    double whole = ceil((double)s->n_blocks / depth) / ((double)s->n_blocks / depth);
    cand->each_s = r->n_runs == 1 ? each * whole : each;
    cand->fill_s = cand->each_s * (depth - 1) + shown_of(sync, cand->each_s);
    return isfinite(cand->each_s);
}

static void keep(struct hv__lister *l, struct hv__pool_subset *sub,
                 const struct hv__candidate *cand)
{
    if (sub->kept == NULL) {
        sub->kept = hv_arena_new(&l->arena, struct hv__candidate, HV__CANDIDATES_KEPT);
    }
    int at = sub->n;
    while (at > 0 && sub->kept[at - 1].score > cand->score) {
        at--;
    }
    if (at >= HV__CANDIDATES_KEPT) {
        return;
    }
    int last = sub->n < HV__CANDIDATES_KEPT ? sub->n : HV__CANDIDATES_KEPT - 1;
    memmove(&sub->kept[at + 1], &sub->kept[at], (size_t)(last - at) * sizeof *sub->kept);
    sub->kept[at] = *cand;
    sub->n = last + 1;
}

static void score(const struct hv__lister *l, const struct hv__pool_subset *sub,
                  struct hv__candidate *cand)
{
    double total = (double)l->s->job->global_batch;
    double m = fmax(1, sub->share * total / cand->replica.micro_batch);
    cand->score = (m * cand->each_s + cand->fill_s) / (m * cand->replica.micro_batch);
}

/* True where the candidate would be kept. */
static bool beats(const struct hv__lister *l, const struct hv__pool_subset *sub,
                  struct hv__candidate *cand)
{
    score(l, sub, cand);
    return sub->n < HV__CANDIDATES_KEPT || cand->score < sub->kept[sub->n - 1].score;
}

void hv__rate_candidate(struct hv__lister *l, struct hv__pool_subset *sub,
                        struct hv__candidate *cand)
{
    if (!estimate(l->s, cand) || !beats(l, sub, cand)) {
        return;
    }
    add_hops(l->s, cand);
    score(l, sub, cand);
    keep(l, sub, cand);
}

/* True where a candidate with these runs could still be kept. `speed` is in blocks per second,
 * without memory and communication. */
static bool may_beat(const struct hv__lister *l, const struct hv__pool_subset *sub,
                     const struct hv__candidate *cand, double speed, int depth)
{
    double m = fmax(1, sub->share * (double)l->s->job->global_batch / cand->replica.micro_batch);
    double each = l->s->n_blocks / speed;
    double score = each * (m + depth - 1) / (m * cand->replica.micro_batch);
    return sub->n < HV__CANDIDATES_KEPT || score < sub->kept[sub->n - 1].score;
}

/* All products of the runs' options. */
static void cross(struct hv__lister *l, struct hv__pool_subset *sub,
                  const struct run_options *options, struct hv__candidate *r, int j)
{
    if (j == r->replica.n_runs) {
        hv__rate_candidate(l, sub, r);
        return;
    }
    double speed = r->speed;
    int depth = r->depth;
    for (int i = 0; i < options[j].n; i++) {
        r->replica.runs[j] = options[j].runs[i];
        r->speed = speed + 1 / options[j].pace[i];
        r->depth = depth + r->replica.runs[j].n_stages;
        if (j + 1 < r->replica.n_runs || may_beat(l, sub, r, r->speed, r->depth)) {
            cross(l, sub, options, r, j + 1);
        }
    }
    r->speed = speed;
    r->depth = depth;
}

/* Pools in the order of their stages: most memory first, where most micro-batches are in flight. */
static int order_pools(const struct hv__search *s, unsigned mask, int *pools)
{
    int n = 0;
    for (int i = 0; i < s->n_pools; i++) {
        if (!(mask >> i & 1)) {
            continue;
        }
        int at = n++;
        while (at > 0 && s->pools[pools[at - 1]].limit_bytes < s->pools[i].limit_bytes) {
            pools[at] = pools[at - 1];
            at--;
        }
        pools[at] = i;
    }
    return n;
}

/* True for sizes to try: densely spaced where they are small, and divisors of the whole batch. */
bool hv__is_batch(int64_t b, int64_t total)
{
    int64_t odd = b;
    while (odd % 2 == 0) {
        odd /= 2;
    }
    return odd <= 3 || (odd <= 9 && b <= SMALL_BATCH) || total % b == 0;
}

/* True for sizes of micro-batches to list, among them those that keep all devices of a pool
 * busy in pipelines of 1 to 8 devices. */
static bool is_listed_batch(const struct hv__lister *l, const int *pools, int n, int64_t b)
{
    bool power = (b & (b - 1)) == 0, yes = !l->quick && hv__is_batch(b, l->s->job->global_batch);
    for (int i = 0; i < n && !yes; i++) {
        int devices = hv__pool_devices(l, pools[i]);
        for (int w = 1; w <= (l->quick ? 2 : 8) && !yes; w++) {
            yes = devices / w > 1 && (b == devices / w || b == 2 * (devices / w));
        }
    }
    return yes || power;
}

/* All candidates of one size of micro-batches, one recompute and one sharding. `options` still
 * holds those of the sharding before, which are the same where sharding does not change the
 * kernels. */
static void list_way(struct hv__lister *l, struct hv__pool_subset *sub, struct run_options *options,
                     int cap, struct hv__candidate *cand)
{
    unsigned recompute = cand->replica.runs[0].recompute;
    bool some = true;
    for (int p = 0; p < cand->replica.n_runs && some; p++) {
        struct hv__stage_run run = {
            .pool = options[p].pool, .recompute = recompute, .offload = l->s->offload};
        if (cand->replica.zero == 1 || l->s->offload != 0 || l->s->pools[run.pool].shards_change) {
            list_runs(l, &cand->replica, &run, cap, &options[p]);
        }
        some = options[p].n > 0;
    }
    if (some) {
        cross(l, sub, options, cand, 0);
    }
}

void hv__list_candidates(struct hv__lister *l, unsigned mask)
{
    static const struct {
        unsigned recompute;
        int zero;
        bool quick;
    } ways[] = {{HV_RC_NONE, 1, true},  {HV_RC_NONE, 3, true}, {HV_RC_CORE, 1, false},
                {HV_RC_CORE, 3, false}, {HV_RC_FULL, 1, true}, {HV_RC_FULL, 3, false}};
    static const int caps[] = {0, 48, 16, 8, 5, 3, 2}, quick_caps[] = {0, 24, 6, 3, 2, 2, 1};
    struct hv__pool_subset *sub = &l->subsets[mask];
    int pools[HV__POOLS];
    int n = order_pools(l->s, mask, pools);
    int64_t most = l->s->job->global_batch;
    most = most < 4096 ? most : 4096;
    sub->n = 0;
    struct run_options options[HV__POOLS];
    for (int p = 0; p < n; p++) {
        options[p].pool = pools[p];
    }
    for (int64_t b = 1; b <= most && !hv__is_over(l->s); b++) {
        if (!is_listed_batch(l, pools, n, b)) {
            continue;
        }
        for (size_t i = 0; i < HV_COUNT(ways); i++) {
            struct hv__candidate cand = {
                .replica = {.n_runs = n, .zero = ways[i].zero, .micro_batch = (int)b}};
            cand.replica.runs[0].recompute = ways[i].recompute;
            if (ways[i].quick || !l->quick) {
                list_way(l, sub, options, (l->quick ? quick_caps : caps)[n], &cand);
            }
        }
    }
}
