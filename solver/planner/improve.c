/*
 * Local improvement: one change at a time, kept when the evaluation is better. Structural changes
 * are followed by a new split of blocks and batch; fine_moves.c moves single blocks and micro-
 * batches.
 */
#include "solver/planner/improve_int.h"

#include "solver/base/units.h"

#include <math.h>
#include <string.h>

/* Tries the run with other degrees on n devices, its replica with micro-batches of `batch`
 * sequences. */
static void reshape(struct hv__climb *c, int r, int j, const struct hv__stage_run *want, int n,
                    int batch)
{
    struct hv__sketch next = c->k;
    struct hv__replica_sketch *replica = &next.replicas[r];
    replica->micro_batch = batch;
    for (int i = 0; i < replica->n_runs; i++) {
        struct hv__stage_run *run = &replica->runs[i];
        int have = i == j ? n : hv__whole_nodes(c, run);
        if (i == j) {
            *run = *want;
        }
        if (!hv__set_degrees(c, replica, run, have)) {
            return;
        }
    }
    (void)hv__attempt(c, &next, true);
}

static void try_degrees(struct hv__climb *c, int r, int j)
{
    static const int change[][4] = {/* stages ×, ÷, tp ×, ÷ */
                                    {2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 2, 1}, {1, 1, 1, 2},
                                    {2, 1, 1, 2}, {1, 2, 2, 1}, {3, 2, 1, 1}, {2, 3, 1, 1}};
    for (size_t i = 0; i < HV_COUNT(change); i++) {
        struct hv__stage_run run = c->k.replicas[r].runs[j];
        int batch = c->k.replicas[r].micro_batch, pool = hv__most_devices(c, &run);
        if (run.n_stages % change[i][1] != 0 || run.tp % change[i][3] != 0) {
            continue;
        }
        run.n_stages = run.n_stages / change[i][1] * change[i][0];
        run.tp = run.tp / change[i][3] * change[i][2];
        bool dear = c->s->job->objective.minimize == HV_MIN_COST;
        int n = dear ? hv__whole_nodes(c, &c->k.replicas[r].runs[j]) : pool;
        reshape(c, r, j, &run, n, batch);
        reshape(c, r, j, &run, n, 2 * batch);
        if (batch % 2 == 0) {
            reshape(c, r, j, &run, n, batch / 2);
        }
    }
}

static void try_nodes(struct hv__climb *c, int r, int j)
{
    for (int by = -1; by <= 1; by += 2) {
        struct hv__stage_run run = c->k.replicas[r].runs[j];
        int n = hv__whole_nodes(c, &run) + by * c->s->pools[run.pool].node_devices;
        if (n > 0 && n <= hv__most_devices(c, &run)) {
            reshape(c, r, j, &run, n, c->k.replicas[r].micro_batch);
        }
    }
    for (int by = -1; by <= 1; by += 2) { /* a stage more or less, and all as wide as possible */
        struct hv__stage_run run = c->k.replicas[r].runs[j];
        int n = hv__most_devices(c, &run);
        run.n_stages += by;
        reshape(c, r, j, &run, n, c->k.replicas[r].micro_batch);
    }
    struct hv__stage_run run = c->k.replicas[r].runs[j]; /* a stage less, the others unchanged */
    int each = hv__run_devices(&run) / run.n_stages;
    run.n_stages--;
    if (run.n_stages > 0) {
        reshape(c, r, j, &run, each * run.n_stages, c->k.replicas[r].micro_batch);
    }
}

/* More or less context parallelism, in place of data or of tensor parallelism; the first of it with
 * every exchange. */
static void try_contexts(struct hv__climb *c, int r, int j)
{
    const struct hv__stage_run *now = &c->k.replicas[r].runs[j];
    int batch = c->k.replicas[r].micro_batch, n = hv__whole_nodes(c, now);
    for (int way = 0; way < 4; way++) {
        struct hv__stage_run run = c->k.replicas[r].runs[j];
        bool more = way % 2 == 0, tensor = way >= 2;
        int *less = more ? &run.tp : &run.cp, exchanges = more && run.cp == 1 ? hv__n_cp_ways : 1;
        if (hv_cost_model(c->s->k)->kind != HV_MODEL_TRANSFORMER || (!more && run.cp == 1) ||
            (tensor && *less % 2 != 0)) {
            continue;
        }
        run.cp = more ? 2 * run.cp : run.cp / 2;
        run.cp_way = run.cp > 1 ? run.cp_way : 0;
        if (tensor) {
            run.tp = more ? run.tp / 2 : 2 * run.tp;
        }
        for (int i = 0; i < exchanges && fmod(hv_cost_tokens(c->s->k), run.cp) == 0; i++) {
            run.cp_way = exchanges > 1 ? i : run.cp_way;
            reshape(c, r, j, &run, n, batch);
        }
    }
}

/* Other exchanges of context-parallel ranks. */
static void try_cp_ways(struct hv__climb *c, int r, int j)
{
    for (int way = 0; way < hv__n_cp_ways; way++) {
        struct hv__sketch next = c->k;
        struct hv__stage_run *run = &next.replicas[r].runs[j];
        if (run->cp > 1 && run->cp_way != way) {
            run->cp_way = way;
            (void)hv__attempt(c, &next, true);
        }
    }
}

/* Changes which ranks are adjacent in a node: those of one stage, or the stages of one
 * data-parallel rank. */
static void try_places(struct hv__climb *c, int r, int j)
{
    struct hv__sketch next = c->k;
    struct hv__stage_run *run = &next.replicas[r].runs[j];
    run->stages_adjacent = !run->stages_adjacent;
    if (run->n_stages > 1 && run->dp > 1) {
        (void)hv__attempt(c, &next, false);
    }
}

/* Uses all devices of the run, also where they do not divide the micro-batch. */
static void try_uneven(struct hv__climb *c, int r, int j)
{
    struct hv__sketch next = c->k;
    struct hv__stage_run *run = &next.replicas[r].runs[j];
    int dp = hv__most_devices(c, run) / (run->n_stages * run->tp * run->cp);
    run->dp = dp < next.replicas[r].micro_batch ? dp : next.replicas[r].micro_batch;
    if (run->second_dp == 0 && run->dp > c->k.replicas[r].runs[j].dp &&
        run->dp * run->cp % run->ep == 0) {
        (void)hv__attempt(c, &next, true);
    }
}

/* Changes the states that n runs offload to host memory, in place of recompute or in addition to
 * it. */
static void try_host(struct hv__climb *c, int r, int run, int n)
{
    for (int i = 0; i < 2 * hv_offload_what_N; i++) {
        struct hv__sketch next = c->k;
        unsigned bit = HV__HOST(i / 2), now = next.replicas[r].runs[run].offload & bit;
        bool changes = false;
        for (int j = run; j < run + n; j++) {
            struct hv__stage_run *x = &next.replicas[r].runs[j];
            changes = changes || (i % 2 == 1 && x->recompute != HV_RC_NONE);
            x->offload = now != 0 ? x->offload & ~bit : x->offload | bit;
            x->recompute = i % 2 == 1 ? HV_RC_NONE : x->recompute;
        }
        if (i % 2 == 0 || changes) {
            (void)hv__attempt(c, &next, true);
        }
    }
}

/* Joins two stages of a run to one that is twice as wide, in front of the others or behind
 * them, in data- or tensor-parallel ranks; also with micro-batches of twice the size. */
static void try_join(struct hv__climb *c, int r, int j)
{
    for (int i = 0; i < 8; i++) {
        struct hv__sketch next = c->k;
        struct hv__replica_sketch *replica = &next.replicas[r];
        struct hv__stage_run *run = &replica->runs[j];
        bool front = (i & 1) != 0, fits = run->n_stages > 2 && replica->n_runs < HV__RUNS;
        int pair = 2 * run->tp * run->cp * run->dp, rest = hv__run_devices(run) - pair;
        if (!fits) {
            return;
        }
        replica->micro_batch *= (i & 2) != 0 ? 2 : 1;
        memmove(run + 1, run, (size_t)(replica->n_runs++ - j) * sizeof *run);
        struct hv__stage_run *wide = front ? run : run + 1, *thin = front ? run + 1 : run;
        wide->n_stages = 1;
        wide->tp *= (i & 4) != 0 ? 2 : 1;
        thin->n_stages -= 2;
        for (int k = 0; k < replica->n_runs && fits; k++) {
            struct hv__stage_run *x = &replica->runs[k];
            fits = hv__set_degrees(c, replica, x,
                                   x == wide   ? pair
                                   : x == thin ? rest
                                               : hv__whole_nodes(c, x));
        }
        if (fits) {
            (void)hv__attempt(c, &next, true);
        }
    }
}

static void try_run(struct hv__climb *c, int r, int j)
{
    static const unsigned recomputes[] = {HV_RC_NONE, HV_RC_CORE, HV_RC_FULL};
    for (size_t i = 0; i < HV_COUNT(recomputes); i++) {
        struct hv__sketch next = c->k;
        struct hv__stage_run *run = &next.replicas[r].runs[j];
        if (run->recompute != recomputes[i]) {
            run->recompute = recomputes[i];
            (void)hv__attempt(c, &next, true);
        }
    }
    if (!c->quick) {
        try_host(c, r, j, 1);
    }
    try_uneven(c, r, j);
    try_contexts(c, r, j);
    try_cp_ways(c, r, j);
    try_degrees(c, r, j);
    try_nodes(c, r, j);
    try_places(c, r, j);
    try_join(c, r, j);
    for (int up = 0; up < 2; up++) {
        struct hv__sketch next = c->k;
        struct hv__stage_run *run = &next.replicas[r].runs[j];
        if (hv_cost_model(c->s->k)->blocks == NULL || (up == 0 && run->ep == 1)) {
            continue;
        }
        int experts = hv__experts(c->s);
        run->ep = up ? 2 * run->ep : run->ep / 2;
        if (experts > 1 && experts % run->ep == 0 && run->dp % run->ep == 0 &&
            run->second_dp == 0) {
            (void)hv__attempt(c, &next, true);
        }
    }
    if (j > 0) {
        struct hv__sketch next = c->k;
        struct hv__stage_run run = next.replicas[r].runs[j];
        next.replicas[r].runs[j] = next.replicas[r].runs[j - 1];
        next.replicas[r].runs[j - 1] = run;
        (void)hv__attempt(c, &next, true);
    }
    hv__try_mixed_ranks(c, r, j); /* the last move, as it may remove a run */
}

/* Tries the replica with the run in front of its others or behind them, with micro-batches of a
 * fraction 1/parts. */
static void insert_run(struct hv__climb *c, int r, const struct hv__stage_run *run, bool front,
                       int parts)
{
    struct hv__sketch next = c->k;
    struct hv__replica_sketch *replica = &next.replicas[r];
    int at = front ? 0 : replica->n_runs, spare = hv__spare_devices(c->s, &c->k, run->pool);
    if (replica->micro_batch % parts != 0 || replica->n_runs == HV__RUNS) {
        return;
    }
    replica->micro_batch /= parts;
    memmove(&replica->runs[at + 1], &replica->runs[at],
            (size_t)(replica->n_runs++ - at) * sizeof *replica->runs);
    replica->runs[at] = *run;
    for (int i = 0; i < replica->n_runs; i++) {
        struct hv__stage_run *x = &replica->runs[i];
        if (!hv__set_degrees(c, replica, x, i == at ? spare : hv__whole_nodes(c, x))) {
            return;
        }
    }
    (void)hv__attempt(c, &next, true);
}

/* Unused devices of a pool as first or last stages of a replica, which may need smaller micro-
 * batches to fill a deeper pipeline. */
static void try_more_pools(struct hv__climb *c, int r)
{
    static const int shapes[][2] = {{1, 1}, {2, 1}, {1, 2},
                                    {2, 2}, {1, 8}, {2, 8}}; /* stages, tp */
    for (int pool = 0; pool < c->s->n_pools; pool++) {
        for (size_t i = 0; i < 4 * HV_COUNT(shapes); i++) {
            struct hv__stage_run run = {.pool = pool,
                                        .n_stages = shapes[i / 4][0],
                                        .tp = shapes[i / 4][1],
                                        .cp = 1,
                                        .ep = 1,
                                        .recompute = c->k.replicas[r].runs[0].recompute};
            if (hv__spare_devices(c->s, &c->k, pool) > 0) {
                insert_run(c, r, &run, i % 2 == 0, i % 4 < 2 ? 1 : 4);
            }
        }
    }
}

/* The plan with n pipelines of a replica as a replica of their own, twice as wide (way 0),
 * twice as deep (1), or with one more stage in a run (2, 3, …). False where devices are
 * lacking. */
static bool widened(const struct hv__climb *c, int r, int n, int way, struct hv__sketch *next)
{
    *next = c->k;
    struct hv__replica_sketch *rest = &next->replicas[r],
                              *wide = &next->replicas[next->n_replicas++];
    int all = hv__pipelines(rest);
    *wide = *rest;
    wide->micro_batch = rest->micro_batch / all * n;
    rest->micro_batch -= wide->micro_batch;
    for (int j = 0; j < rest->n_runs; j++) {
        struct hv__stage_run *x = &wide->runs[j];
        x->dp = x->dp / all * n;
        rest->runs[j].dp -= x->dp;
        x->tp *= way == 0 ? 2 : 1;
        x->n_stages = way == 1 ? 2 * x->n_stages : x->n_stages + (way == j + 2);
        if (x->tp > c->s->pools[x->pool].per_node) {
            return false;
        }
    }
    return hv__has_devices(c->s, next);
}

/* Unused devices that are too few for one more pipeline of a replica go to some of its
 * pipelines. */
static void try_widen(struct hv__climb *c, int r)
{
    int ways = 2 + c->k.replicas[r].n_runs;
    for (int way = 0; way < ways && c->k.n_replicas < HV__REPLICAS; way++) {
        struct hv__sketch next;
        int n = hv__pipelines(&c->k.replicas[r]) - 1;
        while (n > 0 && !widened(c, r, n, way, &next)) {
            n--;
        }
        if (n > 0 && !hv__attempt(c, &next, true) && n > 1 && widened(c, r, 1, way, &next)) {
            (void)hv__attempt(c, &next, true);
        }
    }
}

/* Pipelines of another depth: all runs at once, with micro-batches such that every rank's share
 * stays. */
static void try_depths(struct hv__climb *c, int r)
{
    static const int by[][2] = {{1, 2}, {2, 1}, {1, 3}, {3, 1}}; /* stages ×, ÷ */
    for (size_t i = 0; i < 2 * HV_COUNT(by); i++) {
        struct hv__sketch next = c->k;
        struct hv__replica_sketch *replica = &next.replicas[r];
        int more = by[i / 2][0], less = by[i / 2][1], batch = replica->micro_batch * less;
        bool fits = replica->n_runs > 1 && (i % 2 == 1 || batch % more == 0);
        if (i % 2 == 0) {
            replica->micro_batch = batch / more;
        }
        for (int j = 0; j < replica->n_runs && fits; j++) {
            struct hv__stage_run *x = &replica->runs[j];
            int n = hv__whole_nodes(c, x);
            fits = x->n_stages % less == 0;
            x->n_stages = x->n_stages / less * more;
            fits = fits && hv__set_degrees(c, replica, x, n);
        }
        if (fits) {
            (void)hv__attempt(c, &next, true);
        }
    }
}

static void try_replica(struct hv__climb *c, int r)
{
    static const int batches[][2] = {{2, 1}, {1, 2}, {3, 2}, {3, 4}};
    try_depths(c, r);
    try_more_pools(c, r);
    if (!c->quick) {
        try_widen(c, r);
    }
    for (size_t i = 0; i < HV_COUNT(batches); i++) {
        struct hv__replica_sketch *now = &c->k.replicas[r];
        if (now->micro_batch % batches[i][1] == 0) {
            reshape(c, r, 0, &now->runs[0], hv__whole_nodes(c, &now->runs[0]),
                    now->micro_batch / batches[i][1] * batches[i][0]);
        }
    }
    for (int zero = 0; zero <= 3; zero++) {
        struct hv__sketch next = c->k;
        next.replicas[r].zero = zero;
        if (c->k.replicas[r].zero != zero) {
            (void)hv__attempt(c, &next, true);
        }
    }
    if (c->k.replicas[r].n_runs > 1) {
        try_host(c, r, 0, c->k.replicas[r].n_runs);
    }
    for (int j = 0; j < c->k.replicas[r].n_runs; j++) {
        try_run(c, r, j);
    }
    if (c->k.replicas[r].n_runs > 1) {
        for (int j = 0; j < c->k.replicas[r].n_runs; j++) {
            struct hv__sketch next = c->k;
            struct hv__replica_sketch *replica = &next.replicas[r];
            memmove(&replica->runs[j], &replica->runs[j + 1],
                    (size_t)(replica->n_runs - j - 1) * sizeof *replica->runs);
            replica->n_runs--;
            (void)hv__attempt(c, &next, true);
        }
    }
}

/* True where the schedule differs from 1F1B on this plan and fits the model. */
static bool may_schedule(const struct hv__climb *c, const struct hv__schedule_row *o)
{
    bool deep = o->chunks * o->slices > 1;
    for (int r = 0; r < c->k.n_replicas; r++) {
        deep = deep || hv__depth(&c->k.replicas[r]) > 1;
    }
    if (!deep && c->k.schedule == 0) {
        return false;
    }
    if (c->quick && (o->effort > 1 || o->slices > 1)) {
        return false; /* both have many operations, and each takes long to evaluate */
    }
    const struct hv_model *m = hv_cost_model(c->s->k);
    return o->slices == 1 || (m->kind == HV_MODEL_TRANSFORMER && m->causal &&
                              fmod(hv_cost_tokens(c->s->k), o->slices) == 0);
}

/* Tries another schedule on the same chunks. */
static void try_schedule(struct hv__climb *c, int schedule)
{
    const struct hv__schedule_row *now = &hv__schedules[c->k.schedule],
                                  *o = &hv__schedules[schedule];
    struct hv__sketch next = c->k;
    next.schedule = schedule;
    if (now->chunks == o->chunks && now->folded == o->folded && may_schedule(c, o)) {
        (void)hv__attempt(c, &next, false);
    }
}

/* Tries every schedule, also with micro-batches of half and of twice the size: with a smaller
 * bubble, larger micro-batches may pay. */
static void try_schedules(struct hv__climb *c)
{
    static const int batches[][2] = {{1, 1}, {2, 1}, {1, 2}};
    for (int i = 0; i < hv__n_schedules * (int)HV_COUNT(batches); i++) {
        const int *by = batches[i / hv__n_schedules];
        if (i < hv__n_schedules && i != c->k.schedule) {
            try_schedule(c, i);
        }
        struct hv__sketch next = c->k;
        next.schedule = i % hv__n_schedules;
        const struct hv__schedule_row *o = &hv__schedules[next.schedule];
        bool again = o->memory > 0 &&
                     i >= hv__n_schedules; /* few are faster, and all take long to evaluate */
        bool fits = next.schedule != c->k.schedule && may_schedule(c, o) && !again;
        for (int r = 0; r < next.n_replicas && fits; r++) {
            struct hv__replica_sketch *replica = &next.replicas[r];
            fits = replica->micro_batch % by[1] == 0;
            replica->micro_batch = replica->micro_batch / by[1] * by[0];
            for (int j = 0; j < replica->n_runs && fits; j++) {
                fits = hv__set_degrees(c, replica, &replica->runs[j],
                                       hv__whole_nodes(c, &replica->runs[j]));
            }
        }
        if (fits) {
            (void)hv__attempt(c, &next, true);
        }
    }
}

double hv__improve(struct hv__search *s, struct hv__sketch *k, double value, bool quick)
{
    struct hv__climb c = {.s = s, .k = *k, .value = value, .quick = quick, .moved = true};
    while (c.moved && !hv__is_over(s)) {
        c.moved = false;
        try_schedules(&c);
        for (int t = 0; t < c.k.n_replicas; t++) {
            try_replica(&c, t);
        }
        if (!quick) {
            hv__try_joined_replicas(&c);
            hv__try_exchanges(&c);
        }
        hv__try_fine_moves(&c);
    }
    *k = c.k;
    return c.value;
}
