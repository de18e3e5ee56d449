/*
 * Local improvement: one change at a time, kept when the judge says that it helps. Structural
 * changes are followed by a new split of blocks and batch; single blocks and micro-batches are
 * moved by polish.c.
 */
#include "solver/planner/improve_int.h"

#include "solver/base/units.h"

#include <math.h>
#include <string.h>

/* Gives the leg new degrees on at most n devices. False where they do not go together. */
bool hv__shape(const struct hv__climb *c, struct hv__team *t, struct hv__leg *l, int n)
{
    const struct hv__pool *p = &c->s->pools[l->pool];
    int width = l->n_stages * l->tp * l->cp;
    if (l->tp < 1 || l->cp < 1 || l->n_stages < 1 || l->tp > p->per_node || width > n) {
        return false;
    }
    if (l->guests > 0) {
        int most = t->micro_batch - l->guests;
        l->dp = n / width < most ? n / width : most;
        return l->dp > 0 && hv__share_guests(c->s, t, l);
    }
    bool even = l->dp < 1 || t->micro_batch % l->dp == 0; /* a new leg has none yet */
    l->dp = even ? hv__even_ranks(t->micro_batch, n / width)
                 : hv__uneven_ranks(c->s, t->micro_batch, n / width);
    while (l->ep > 1 && l->dp % l->ep != 0) {
        l->ep /= 2;
    }
    return true;
}

/* Devices a leg of the plan could have: its own and those of its pool that nobody takes. */
static int most_devices(const struct hv__climb *c, const struct hv__leg *l)
{
    return hv__leg_devices(l) + hv__spare_devices(c->s, &c->k, l->pool);
}

/* Devices of a leg of the plan, whole nodes where they are free. */
int hv__whole_nodes(const struct hv__climb *c, const struct hv__leg *l)
{
    int node = c->s->pools[l->pool].node_devices, most = most_devices(c, l);
    int n = (hv__leg_devices(l) + node - 1) / node * node;
    return n < most ? n : most;
}

/* The leg with other degrees on n devices, its team with micro-batches of `batch` sequences. */
static void reshape(struct hv__climb *c, int t, int leg, const struct hv__leg *want, int n,
                    int batch)
{
    struct hv__sketch next = c->k;
    struct hv__team *team = &next.teams[t];
    team->micro_batch = batch;
    for (int i = 0; i < team->n_legs; i++) {
        struct hv__leg *l = &team->legs[i];
        int have = i == leg ? n : hv__whole_nodes(c, l);
        if (i == leg) {
            *l = *want;
        }
        if (!hv__shape(c, team, l, have)) {
            return;
        }
    }
    (void)hv__attempt(c, &next, true);
}

static void try_degrees(struct hv__climb *c, int t, int leg)
{
    static const int change[][4] = {/* stages ×, ÷, tp ×, ÷ */
                                    {2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 2, 1}, {1, 1, 1, 2},
                                    {2, 1, 1, 2}, {1, 2, 2, 1}, {3, 2, 1, 1}, {2, 3, 1, 1}};
    for (size_t i = 0; i < HV_COUNT(change); i++) {
        struct hv__leg l = c->k.teams[t].legs[leg];
        int batch = c->k.teams[t].micro_batch, pool = most_devices(c, &l);
        if (l.n_stages % change[i][1] != 0 || l.tp % change[i][3] != 0) {
            continue;
        }
        l.n_stages = l.n_stages / change[i][1] * change[i][0];
        l.tp = l.tp / change[i][3] * change[i][2];
        bool dear = c->s->job->objective.minimize == HV_MIN_COST;
        int n = dear ? hv__whole_nodes(c, &c->k.teams[t].legs[leg]) : pool;
        reshape(c, t, leg, &l, n, batch);
        reshape(c, t, leg, &l, n, 2 * batch);
        if (batch % 2 == 0) {
            reshape(c, t, leg, &l, n, batch / 2);
        }
    }
}

static void try_nodes(struct hv__climb *c, int t, int leg)
{
    for (int by = -1; by <= 1; by += 2) {
        struct hv__leg l = c->k.teams[t].legs[leg];
        int n = hv__whole_nodes(c, &l) + by * c->s->pools[l.pool].node_devices;
        if (n > 0 && n <= most_devices(c, &l)) {
            reshape(c, t, leg, &l, n, c->k.teams[t].micro_batch);
        }
    }
    for (int by = -1; by <= 1; by += 2) { /* a stage more or less, and all as wide as can be */
        struct hv__leg l = c->k.teams[t].legs[leg];
        int n = most_devices(c, &l);
        l.n_stages += by;
        reshape(c, t, leg, &l, n, c->k.teams[t].micro_batch);
    }
    struct hv__leg l = c->k.teams[t].legs[leg]; /* a stage less, the others as they are */
    int each = hv__leg_devices(&l) / l.n_stages;
    l.n_stages--;
    if (l.n_stages > 0) {
        reshape(c, t, leg, &l, each * l.n_stages, c->k.teams[t].micro_batch);
    }
}

/* Sequences cut over more ranks or fewer, in place of data or of tensor parallelism. */
static void try_contexts(struct hv__climb *c, int t, int leg)
{
    const struct hv__leg *now = &c->k.teams[t].legs[leg];
    int batch = c->k.teams[t].micro_batch, n = hv__whole_nodes(c, now);
    for (int way = 0; way < 4; way++) {
        struct hv__leg l = c->k.teams[t].legs[leg];
        bool more = way % 2 == 0, tensor = way >= 2;
        int *less = more ? &l.tp : &l.cp;
        if (hv_cost_model(c->s->k)->kind != HV_MODEL_TRANSFORMER || (!more && l.cp == 1) ||
            (tensor && *less % 2 != 0)) {
            continue;
        }
        l.cp = more ? 2 * l.cp : l.cp / 2;
        if (tensor) {
            l.tp = more ? l.tp / 2 : 2 * l.tp;
        }
        if (fmod(hv_cost_tokens(c->s->k), l.cp) == 0) {
            reshape(c, t, leg, &l, n, batch);
        }
    }
}

/* Neighbours in a node: ranks of one stage, or stages of one rank. */
static void try_places(struct hv__climb *c, int t, int leg)
{
    struct hv__sketch next = c->k;
    struct hv__leg *l = &next.teams[t].legs[leg];
    l->beside = !l->beside;
    if (l->n_stages > 1 && l->dp > 1) {
        (void)hv__attempt(c, &next, false);
    }
}

/* All devices of the leg at work, also where they do not divide the micro-batch. */
static void try_uneven(struct hv__climb *c, int t, int leg)
{
    struct hv__sketch next = c->k;
    struct hv__leg *l = &next.teams[t].legs[leg];
    int dp = most_devices(c, l) / (l->n_stages * l->tp * l->cp);
    l->dp = dp < next.teams[t].micro_batch ? dp : next.teams[t].micro_batch;
    if (l->guests == 0 && l->dp > c->k.teams[t].legs[leg].dp && l->dp * l->cp % l->ep == 0) {
        (void)hv__attempt(c, &next, true);
    }
}

/* What waits in host memory, of n legs at once: in place of computing twice, or beside it. */
static void try_host(struct hv__climb *c, int t, int leg, int n)
{
    for (int i = 0; i < 2 * hv_offload_what_N; i++) {
        struct hv__sketch next = c->k;
        unsigned bit = HV__HOST(i / 2), now = next.teams[t].legs[leg].offload & bit;
        bool changes = false;
        for (int l = leg; l < leg + n; l++) {
            struct hv__leg *x = &next.teams[t].legs[l];
            changes = changes || (i % 2 == 1 && x->recompute != HV_RC_NONE);
            x->offload = now != 0 ? x->offload & ~bit : x->offload | bit;
            x->recompute = i % 2 == 1 ? HV_RC_NONE : x->recompute;
        }
        if (i % 2 == 0 || changes) {
            (void)hv__attempt(c, &next, true);
        }
    }
}

/* Two stages of a leg as one that is twice as wide, in front of the others or behind them: by data-
 * or by tensor-parallel ranks, also with micro-batches of twice the size. */
static void try_join(struct hv__climb *c, int t, int leg)
{
    for (int i = 0; i < 8; i++) {
        struct hv__sketch next = c->k;
        struct hv__team *team = &next.teams[t];
        struct hv__leg *l = &team->legs[leg];
        bool front = (i & 1) != 0, fits = l->n_stages > 2 && team->n_legs < HV__LEGS;
        int pair = 2 * l->tp * l->cp * l->dp, rest = hv__leg_devices(l) - pair;
        if (!fits) {
            return;
        }
        team->micro_batch *= (i & 2) != 0 ? 2 : 1;
        memmove(l + 1, l, (size_t)(team->n_legs++ - leg) * sizeof *l);
        struct hv__leg *wide = front ? l : l + 1, *thin = front ? l + 1 : l;
        wide->n_stages = 1;
        wide->tp *= (i & 4) != 0 ? 2 : 1;
        thin->n_stages -= 2;
        for (int k = 0; k < team->n_legs && fits; k++) {
            struct hv__leg *x = &team->legs[k];
            fits = hv__shape(c, team, x,
                             x == wide   ? pair
                             : x == thin ? rest
                                         : hv__whole_nodes(c, x));
        }
        if (fits) {
            (void)hv__attempt(c, &next, true);
        }
    }
}

static void try_leg(struct hv__climb *c, int t, int leg)
{
    static const unsigned recomputes[] = {HV_RC_NONE, HV_RC_CORE, HV_RC_FULL};
    for (size_t i = 0; i < HV_COUNT(recomputes); i++) {
        struct hv__sketch next = c->k;
        struct hv__leg *l = &next.teams[t].legs[leg];
        if (l->recompute != recomputes[i]) {
            l->recompute = recomputes[i];
            (void)hv__attempt(c, &next, true);
        }
    }
    if (!c->quick) {
        try_host(c, t, leg, 1);
    }
    try_uneven(c, t, leg);
    try_contexts(c, t, leg);
    try_degrees(c, t, leg);
    try_nodes(c, t, leg);
    try_places(c, t, leg);
    try_join(c, t, leg);
    for (int up = 0; up < 2; up++) {
        struct hv__sketch next = c->k;
        struct hv__leg *l = &next.teams[t].legs[leg];
        if (hv_cost_model(c->s->k)->blocks == NULL || (up == 0 && l->ep == 1)) {
            continue;
        }
        int experts = hv__experts(c->s);
        l->ep = up ? 2 * l->ep : l->ep / 2;
        if (experts > 1 && experts % l->ep == 0 && l->dp % l->ep == 0 && l->guests == 0) {
            (void)hv__attempt(c, &next, true);
        }
    }
    if (leg > 0) {
        struct hv__sketch next = c->k;
        struct hv__leg l = next.teams[t].legs[leg];
        next.teams[t].legs[leg] = next.teams[t].legs[leg - 1];
        next.teams[t].legs[leg - 1] = l;
        (void)hv__attempt(c, &next, true);
    }
    hv__try_guests(c, t, leg); /* the last, as it may leave fewer legs */
}

/* The team with the leg in front of its others or behind them, its micro-batches cut by `parts`. */
static void insert_leg(struct hv__climb *c, int t, const struct hv__leg *leg, bool front, int parts)
{
    struct hv__sketch next = c->k;
    struct hv__team *team = &next.teams[t];
    int at = front ? 0 : team->n_legs, spare = hv__spare_devices(c->s, &c->k, leg->pool);
    if (team->micro_batch % parts != 0 || team->n_legs == HV__LEGS) {
        return;
    }
    team->micro_batch /= parts;
    memmove(&team->legs[at + 1], &team->legs[at],
            (size_t)(team->n_legs++ - at) * sizeof *team->legs);
    team->legs[at] = *leg;
    for (int i = 0; i < team->n_legs; i++) {
        struct hv__leg *l = &team->legs[i];
        if (!hv__shape(c, team, l, i == at ? spare : hv__whole_nodes(c, l))) {
            return;
        }
    }
    (void)hv__attempt(c, &next, true);
}

/* What is left of a pool as first or last stages of a team, which may need smaller micro-batches
 * to fill a deeper pipeline. */
static void try_more_pools(struct hv__climb *c, int t)
{
    static const int shapes[][2] = {{1, 1}, {2, 1}, {1, 2},
                                    {2, 2}, {1, 8}, {2, 8}}; /* stages, tp */
    for (int pool = 0; pool < c->s->n_pools; pool++) {
        for (size_t i = 0; i < 4 * HV_COUNT(shapes); i++) {
            struct hv__leg l = {.pool = pool,
                                .n_stages = shapes[i / 4][0],
                                .tp = shapes[i / 4][1],
                                .cp = 1,
                                .ep = 1,
                                .recompute = c->k.teams[t].legs[0].recompute};
            if (hv__spare_devices(c->s, &c->k, pool) > 0) {
                insert_leg(c, t, &l, i % 2 == 0, i % 4 < 2 ? 1 : 4);
            }
        }
    }
}

/* The plan with n pipelines of a team as a team of their own, twice as wide (way 0), twice as deep
 * (1), or with one more stage in a leg (2, 3, …). False where there are no devices for that. */
static bool widened(const struct hv__climb *c, int t, int n, int way, struct hv__sketch *next)
{
    *next = c->k;
    struct hv__team *rest = &next->teams[t], *wide = &next->teams[next->n_teams++];
    int all = hv__pipelines(rest);
    *wide = *rest;
    wide->micro_batch = rest->micro_batch / all * n;
    rest->micro_batch -= wide->micro_batch;
    for (int l = 0; l < rest->n_legs; l++) {
        struct hv__leg *x = &wide->legs[l];
        x->dp = x->dp / all * n;
        rest->legs[l].dp -= x->dp;
        x->tp *= way == 0 ? 2 : 1;
        x->n_stages = way == 1 ? 2 * x->n_stages : x->n_stages + (way == l + 2);
        if (x->tp > c->s->pools[x->pool].per_node) {
            return false;
        }
    }
    return hv__has_devices(c->s, next);
}

/* Devices to spare that are too few for one more pipeline of a team go to some of its pipelines. */
static void try_widen(struct hv__climb *c, int t)
{
    int ways = 2 + c->k.teams[t].n_legs;
    for (int way = 0; way < ways && c->k.n_teams < HV__TEAMS; way++) {
        struct hv__sketch next;
        int n = hv__pipelines(&c->k.teams[t]) - 1;
        while (n > 0 && !widened(c, t, n, way, &next)) {
            n--;
        }
        if (n > 0 && !hv__attempt(c, &next, true) && n > 1 && widened(c, t, 1, way, &next)) {
            (void)hv__attempt(c, &next, true);
        }
    }
}

/* Pipelines of another depth: all legs at once, and as many sequences as keep the ranks' shares. */
static void try_depths(struct hv__climb *c, int t)
{
    static const int by[][2] = {{1, 2}, {2, 1}, {1, 3}, {3, 1}}; /* stages ×, ÷ */
    for (size_t i = 0; i < 2 * HV_COUNT(by); i++) {
        struct hv__sketch next = c->k;
        struct hv__team *team = &next.teams[t];
        int more = by[i / 2][0], less = by[i / 2][1], batch = team->micro_batch * less;
        bool fits = team->n_legs > 1 && (i % 2 == 1 || batch % more == 0);
        if (i % 2 == 0) {
            team->micro_batch = batch / more;
        }
        for (int l = 0; l < team->n_legs && fits; l++) {
            struct hv__leg *x = &team->legs[l];
            int n = hv__whole_nodes(c, x);
            fits = x->n_stages % less == 0;
            x->n_stages = x->n_stages / less * more;
            fits = fits && hv__shape(c, team, x, n);
        }
        if (fits) {
            (void)hv__attempt(c, &next, true);
        }
    }
}

static void try_team(struct hv__climb *c, int t)
{
    static const int batches[][2] = {{2, 1}, {1, 2}, {3, 2}, {3, 4}};
    try_depths(c, t);
    try_more_pools(c, t);
    if (!c->quick) {
        try_widen(c, t);
    }
    for (size_t i = 0; i < HV_COUNT(batches); i++) {
        struct hv__team *now = &c->k.teams[t];
        if (now->micro_batch % batches[i][1] == 0) {
            reshape(c, t, 0, &now->legs[0], hv__whole_nodes(c, &now->legs[0]),
                    now->micro_batch / batches[i][1] * batches[i][0]);
        }
    }
    for (int zero = 0; zero <= 3; zero++) {
        struct hv__sketch next = c->k;
        next.teams[t].zero = zero;
        if (c->k.teams[t].zero != zero) {
            (void)hv__attempt(c, &next, true);
        }
    }
    if (c->k.teams[t].n_legs > 1) {
        try_host(c, t, 0, c->k.teams[t].n_legs);
    }
    for (int leg = 0; leg < c->k.teams[t].n_legs; leg++) {
        try_leg(c, t, leg);
    }
    if (c->k.teams[t].n_legs > 1) {
        for (int leg = 0; leg < c->k.teams[t].n_legs; leg++) {
            struct hv__sketch next = c->k;
            struct hv__team *team = &next.teams[t];
            memmove(&team->legs[leg], &team->legs[leg + 1],
                    (size_t)(team->n_legs - leg - 1) * sizeof *team->legs);
            team->n_legs--;
            (void)hv__attempt(c, &next, true);
        }
    }
}

/* Can an order differ from 1F1B on this plan, and suit the model? */
static bool may_order(const struct hv__climb *c, const struct hv__order *o)
{
    bool deep = o->chunks * o->slices > 1;
    for (int t = 0; t < c->k.n_teams; t++) {
        deep = deep || hv__depth(&c->k.teams[t]) > 1;
    }
    if (!deep && c->k.order == 0) {
        return false;
    }
    if (c->quick && (o->effort > 1 || o->slices > 1)) {
        return false; /* many operations, each at length */
    }
    const struct hv_model *m = hv_cost_model(c->s->k);
    return o->slices == 1 || (m->kind == HV_MODEL_TRANSFORMER && m->causal &&
                              fmod(hv_cost_tokens(c->s->k), o->slices) == 0);
}

/* Another order of operations on the same chunks. */
static void try_order(struct hv__climb *c, int order)
{
    const struct hv__order *now = &hv__orders[c->k.order], *o = &hv__orders[order];
    struct hv__sketch next = c->k;
    next.order = order;
    if (now->chunks == o->chunks && now->folded == o->folded && may_order(c, o)) {
        (void)hv__attempt(c, &next, false);
    }
}

/* Every order of operations, also with micro-batches of half and of twice the size: what pays for
 * a long start is often a shorter one. */
static void try_orders(struct hv__climb *c)
{
    static const int batches[][2] = {{1, 1}, {2, 1}, {1, 2}};
    for (int i = 0; i < hv__n_orders * (int)HV_COUNT(batches); i++) {
        const int *by = batches[i / hv__n_orders];
        if (i < hv__n_orders && i != c->k.order) {
            try_order(c, i);
        }
        struct hv__sketch next = c->k;
        next.order = i % hv__n_orders;
        const struct hv__order *o = &hv__orders[next.order];
        bool again = o->memory > 0 && i >= hv__n_orders; /* few pay, all take long to judge */
        bool fits = next.order != c->k.order && may_order(c, o) && !again;
        for (int t = 0; t < next.n_teams && fits; t++) {
            struct hv__team *team = &next.teams[t];
            fits = team->micro_batch % by[1] == 0;
            team->micro_batch = team->micro_batch / by[1] * by[0];
            for (int l = 0; l < team->n_legs && fits; l++) {
                fits = hv__shape(c, team, &team->legs[l], hv__whole_nodes(c, &team->legs[l]));
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
    while (c.moved && !hv__over(s)) {
        c.moved = false;
        try_orders(&c);
        for (int t = 0; t < c.k.n_teams; t++) {
            try_team(&c, t);
        }
        if (!quick) {
            hv__try_united(&c);
            hv__try_exchanges(&c);
        }
        hv__try_small(&c);
    }
    *k = c.k;
    return c.value;
}
