/*
 * From a sketch to a plan. What the plan is worth judge.c says.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define GROUPS 64 /* sizes of groups tried */
#define WIDTH  64 /* ranks of one tensor and context group, at most, that are placed first */

/* an order that is made by playing it takes so many times as long to judge */
#define LISTED 4

/* clang-format off */
const struct hv__order hv__orders[] = {
    {.name = "1f1b", .chunks = 1, .slices = 1},
    {.name = "interleaved", .chunks = 2, .slices = 1, .rounds = 1},
    {.name = "interleaved", .chunks = 4, .slices = 1, .rounds = 1},
    {.name = "zb-h1", .chunks = 1, .slices = 1},
    {.name = "zb-h2", .chunks = 1, .slices = 1, .in_flight_more = 1},
    {.name = "zb-2p", .chunks = 1, .slices = 1, .in_flight_more = 1},
    {.name = "zb-v", .chunks = 2, .folded = true, .slices = 1},
    {.name = "seq1f1b", .chunks = 1, .slices = 2},
    {.name = "seq1f1b", .chunks = 1, .slices = 4},
    {.name = "interleaved", .chunks = 2, .slices = 1, .rounds = 2},
    {.name = "interleaved", .chunks = 4, .slices = 1, .rounds = 2},
    {.name = "dapple", .chunks = 1, .slices = 1, .in_flight_more = 1, .option = {"early", "pb"}},
    {.name = "zb-list", .chunks = 1, .slices = 1, .effort = LISTED},
    {.name = "zb-list", .chunks = 2, .folded = true, .slices = 1, .effort = LISTED},
    {.name = "zb-list", .chunks = 1, .slices = 1, .in_flight_more = 1, .memory = 2, .effort = LISTED},
    {.name = "zb-list", .chunks = 1, .slices = 1, .in_flight_more = 2, .memory = 3, .effort = LISTED},
    {.name = "zb-list", .chunks = 2, .folded = true, .slices = 1, .in_flight_more = 1, .memory = 2, .effort = LISTED},
};
/* clang-format on */
const int hv__n_orders = (int)HV_COUNT(hv__orders);

int hv__depth(const struct hv__team *t)
{
    int n = 0;
    for (int i = 0; i < t->n_legs; i++) {
        n += t->legs[i].n_stages;
    }
    return n;
}

const struct hv__leg *hv__leg_at(const struct hv__team *t, int stage)
{
    int i = 0;
    while (i + 1 < t->n_legs && stage >= t->legs[i].n_stages) {
        stage -= t->legs[i++].n_stages;
    }
    return &t->legs[i];
}

int hv__leg_devices(const struct hv__leg *l)
{
    return l->n_stages * l->tp * l->cp * l->dp;
}

int hv__guest_devices(const struct hv__leg *l)
{
    return l->n_stages * l->tp * l->cp * l->guests;
}

int hv__leg_holders(const struct hv__leg *l)
{
    return l->cp * (l->dp + l->guests);
}

struct hv__leg hv__leg_turned(const struct hv__team *t, const struct hv__leg *l)
{
    struct hv__leg turned = *l;
    turned.pool = l->guest_pool;
    turned.dp = l->guests;
    turned.guest_pool = l->pool;
    turned.guests = l->dp;
    turned.guest_share = t->micro_batch - l->guest_share;
    return turned;
}

int hv__leg_sharers(const struct hv__team *t, const struct hv__leg *l)
{
    int holders = hv__leg_holders(l);
    return t->group > 0 && holders % t->group == 0 ? t->group : holders;
}

static void fill_ranges(struct hv_replica *r, const struct hv__team *t, const struct hv__order *o)
{
    int depth = (int)r->n_stages, parts = depth * o->chunks, at = 0;
    bool hollow = t->counts[0] == 0 || t->counts[parts - 1] == 0;
    for (int i = 0; i < parts; i++) {
        int turn = i / depth, rank = i % depth;
        if (o->folded && turn % 2 == 1) {
            rank = depth - 1 - rank;
        }
        struct hv_stage *st = &r->stages[rank];
        st->ranges[turn] = (struct hv_range){at, at + t->counts[i]};
        at += t->counts[i];
    }
    int last = o->folded && o->chunks % 2 == 0 ? 0 : depth - 1;
    for (int i = 0; hollow && i < depth; i++) {
        r->stages[i].embedding = i == 0;
        r->stages[i].head = i == last;
    }
}

/* Where the next devices of a leg and of its guests are in their pools. */
struct place {
    int own, guest;
};

/* Where the devices of every leg begin in its pool: wide groups of ranks first, so that they lie
 * inside their nodes. */
static void place_legs(const struct hv__sketch *k, struct place first[HV__TEAMS][HV__LEGS])
{
    int used[HV__POOLS] = {0};
    for (int width = WIDTH; width > 0; width /= 2) {
        for (int t = 0; t < k->n_teams; t++) {
            for (int l = 0; l < k->teams[t].n_legs; l++) {
                const struct hv__leg *leg = &k->teams[t].legs[l];
                int ranks = leg->tp * leg->cp;
                if (ranks < width || (ranks >= 2 * width && width < WIDTH)) {
                    continue;
                }
                first[t][l] = (struct place){used[leg->pool], used[leg->guest_pool]};
                used[leg->pool] += hv__leg_devices(leg);
                used[leg->guest_pool] += hv__guest_devices(leg);
            }
        }
    }
}

int hv__spare_devices(const struct hv__search *s, const struct hv__sketch *k, int pool)
{
    int spare = s->pools[pool].n;
    for (int t = 0; t < k->n_teams; t++) {
        for (int l = 0; l < k->teams[t].n_legs; l++) {
            const struct hv__leg *leg = &k->teams[t].legs[l];
            spare -= leg->pool == pool ? hv__leg_devices(leg) : 0;
            spare -= leg->guest_pool == pool ? hv__guest_devices(leg) : 0;
        }
    }
    return spare;
}

bool hv__has_devices(const struct hv__search *s, const struct hv__sketch *k)
{
    for (int i = 0; i < s->n_pools; i++) {
        if (hv__spare_devices(s, k, i) < 0) {
            return false;
        }
    }
    return true;
}

static int common_divisor(int a, int b)
{
    while (b != 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int hv__pipelines(const struct hv__team *t)
{
    int n = t->micro_batch;
    for (int i = 0; i < t->n_legs; i++) {
        n = t->legs[i].ep > 1 || t->legs[i].guests > 0 ? 1 : common_divisor(n, t->legs[i].dp);
    }
    return n;
}

size_t hv__first_replica(const struct hv__sketch *k, int team)
{
    size_t n = 0;
    for (int i = 0; i < team; i++) {
        n += k->teams[i].more > 0 ? 2 : 1;
    }
    return n;
}

int hv__even_ranks(int batch, int most)
{
    int d = batch < most ? batch : most;
    while (d > 1 && batch % d != 0) {
        d--;
    }
    return d;
}

int hv__uneven_ranks(const struct hv__search *s, int batch, int most)
{
    int even = hv__even_ranks(batch, most), top = batch < most ? batch : most, n = 1;
    if (hv__experts(s) > 1) {
        while (2 * n <= top) {
            n *= 2;
        }
    } else {
        int each = (batch + top - 1) / top;
        n = (batch + each - 1) / each;
    }
    return 4 * ((batch + n - 1) / n) <= 3 * (batch / even) ? n : even; /* a quarter less */
}

static void fill_even(int *shares, int sequences, int ranks)
{
    for (int i = 0; i < ranks; i++) {
        shares[i] = sequences / ranks + (i < sequences % ranks);
    }
}

/* Sequences of every data-parallel rank of a stage, as even among owners and among guests as can
 * be; NULL: all have as many. */
static int *shares_of(struct hv_arena *a, const struct hv__leg *l, int micro_batch, int dp)
{
    if (micro_batch % dp == 0 &&
        (l->guests == 0 || micro_batch / dp * l->guests == l->guest_share)) {
        return NULL;
    }
    int *shares = hv_arena_new(a, int, (size_t)dp), own = dp - l->guests;
    fill_even(shares, micro_batch - l->guest_share, own);
    if (l->guests > 0) {
        fill_even(shares + own, l->guest_share, l->guests);
    }
    return shares;
}

/* Pipelines of a team that run equally many micro-batches: those from `from` on. */
struct part {
    int from, n, of; /* of: all pipelines of the team */
    int64_t micro_batches;
};

/* Devices of the part's ranks in the next stage of a leg, whose own begin at *at. */
static void take_devices(const struct hv__search *s, const struct hv__leg *l, int *at,
                         const struct part *part, uint32_t *out)
{
    const uint32_t *ids = s->pools[l->pool].ids + *at;
    size_t width = (size_t)(l->tp * l->cp), step = l->beside ? width * (size_t)l->n_stages : width;
    size_t each = (size_t)(l->dp / part->of), first = (size_t)part->from * each;
    size_t n = (size_t)part->n * each;
    for (size_t rank = 0; rank < n; rank++) {
        memcpy(out + rank * width, ids + (first + rank) * step, width * sizeof *ids);
    }
    *at += (int)(l->beside ? width : width * (size_t)l->dp);
}

/* A part of the team's pipelines may have fewer holders than the team: then all of them share. */
static void draw_shards(const struct hv__team *t, struct hv_stage *st)
{
    int holders = (int)st->n_devices / st->tp.degree;
    st->zero.stage = holders > 1 ? t->zero : 0;
    if (st->zero.stage == 0) {
        return;
    }
    bool some = t->group > 0 && t->group < holders && holders % t->group == 0;
    st->zero.shard_group = some ? t->group : 0;
    st->zero.reduce = t->late ? HV_REDUCE_END : HV_REDUCE_EACH;
    st->zero.reshard = !t->keeps;
}

static void draw_stage(const struct hv__search *s, struct hv_plan *p, const struct hv__team *t,
                       const struct hv__leg *l, struct hv_stage *st)
{
    st->tp.degree = l->tp;
    st->sequence_parallel = l->tp > 1;
    st->cp.degree = l->cp;
    st->cp.layout = hv__layout(s, l);
    st->ep = l->ep;
    draw_shards(t, st);
    st->recompute = l->recompute;
    if (l->offload != 0) {
        st->offload = hv_arena_new(&p->arena, struct hv_offload, hv_offload_what_N);
    }
    for (int what = 0; what < hv_offload_what_N; what++) {
        if (l->offload & HV__HOST(what)) {
            st->offload[st->n_offload++] =
                (struct hv_offload){.what = (enum hv_offload_what)what, .frac = 1, .to_host = true};
        }
    }
}

/* `at`: where the devices of each leg begin. */
static void draw_part(const struct hv__search *s, struct hv_plan *p, struct hv_replica *r,
                      const struct hv__team *t, const struct hv__order *o, const struct place *at,
                      const struct part *part)
{
    struct place next[HV__LEGS];
    memcpy(next, at, sizeof next);
    r->count = part->n;
    r->micro_batch = t->micro_batch / part->of;
    r->micro_batches = part->micro_batches;
    r->n_stages = (size_t)hv__depth(t);
    r->stages = hv_arena_new(&p->arena, struct hv_stage, r->n_stages);
    for (size_t i = 0; i < r->n_stages; i++) {
        struct hv_stage *st = &r->stages[i];
        const struct hv__leg *l = hv__leg_at(t, (int)i);
        hv_stage_defaults(st);
        struct place *from = &next[l - t->legs];
        st->dp = l->dp / part->of + l->guests;
        st->n_devices = (size_t)(l->tp * l->cp * st->dp * part->n);
        st->devices = hv_arena_new(&p->arena, uint32_t, st->n_devices);
        take_devices(s, l, &from->own, part, st->devices);
        if (l->guests > 0) {
            struct hv__leg guests = hv__leg_turned(t, l);
            take_devices(s, &guests, &from->guest, part,
                         st->devices + st->n_devices - (size_t)(l->tp * l->cp * l->guests));
        }
        st->shares = shares_of(&p->arena, l, r->micro_batch, st->dp);
        draw_stage(s, p, t, l, st);
        st->n_ranges = (size_t)o->chunks;
        st->ranges = hv_arena_new(&p->arena, struct hv_range, st->n_ranges);
    }
    fill_ranges(r, t, o);
}

/* Does a group of g leave a last one that is none or large enough for every team? */
static bool suits(const struct hv__sketch *k, int64_t g)
{
    for (int i = 0; i < k->n_teams; i++) {
        const struct hv__team *t = &k->teams[i];
        int depth = hv__depth(t);
        for (int64_t m = t->micro_batches; m <= t->micro_batches + (t->more > 0); m++) {
            int64_t rest = m % g, least = m < depth ? m : depth;
            if (g < least || g > m || (rest > 0 && rest < depth)) {
                return false;
            }
        }
    }
    return true;
}

/* Do the micro-batches of every team fall into the groups that the schedule itself makes? */
static bool needs_no_group(const struct hv__sketch *k)
{
    for (int i = 0; i < k->n_teams; i++) {
        const struct hv__team *t = &k->teams[i];
        int depth = hv__depth(t);
        for (int64_t m = t->micro_batches; m <= t->micro_batches + (t->more > 0); m++) {
            if (m >= depth && m % (m / depth) != 0) {
                return false;
            }
        }
    }
    return true;
}

int64_t hv__group(const struct hv__sketch *k)
{
    const struct hv__order *o = &hv__orders[k->order];
    if (o->rounds == 0 || (o->rounds == 1 && needs_no_group(k))) {
        return 0;
    }
    int64_t first = 1, last = INT64_MAX;
    for (int i = 0; i < k->n_teams; i++) {
        const struct hv__team *t = &k->teams[i];
        int64_t least = o->rounds * hv__depth(t);
        first = first > least ? first : least;
        last = last < t->micro_batches ? last : t->micro_batches;
    }
    first = first < last ? first : last;
    for (int64_t g = first; g <= last && g < first + GROUPS; g++) {
        if (suits(k, g)) {
            return g;
        }
    }
    return 0;
}

static void draw_schedule(const struct hv__sketch *k, struct hv_plan *p)
{
    const struct hv__order *o = &hv__orders[k->order];
    int64_t group = hv__group(k), depth = 0;
    for (int i = 0; i < k->n_teams; i++) {
        depth = hv__depth(&k->teams[i]) > depth ? hv__depth(&k->teams[i]) : depth;
    }
    p->schedule.name = hv_arena_strdup(&p->arena, o->name);
    p->schedule.slices = o->slices;
    if (k->bucket_mib > 0) {
        p->sync.bucket_bytes[0] = k->bucket_mib * HV_MIB;
    }
    if (group == 0 && o->memory == 0 && o->option[0] == NULL) {
        return;
    }
    int64_t number = group > 0 ? group : o->memory * depth;
    p->schedule.n_options = 1;
    p->schedule.options = hv_arena_new(&p->arena, struct hv_option, 1);
    p->schedule.options[0] =
        number > 0 ? (struct hv_option){group > 0 ? "group" : "memory",
                                        hv_arena_printf(&p->arena, "%" PRId64, number)}
                   : (struct hv_option){o->option[0], o->option[1]};
}

struct hv_plan *hv__draw(const struct hv__search *s, const struct hv__sketch *k)
{
    struct hv_plan *p = hv_plan_new((struct hv_cluster *)(uintptr_t)hv_cost_cluster(s->k));
    const struct hv__order *o = &hv__orders[k->order];
    struct place first[HV__TEAMS][HV__LEGS] = {{{0}}};
    place_legs(k, first);
    draw_schedule(k, p);
    p->n_replicas = hv__first_replica(k, k->n_teams);
    p->replicas = hv_arena_new(&p->arena, struct hv_replica, p->n_replicas);
    struct hv_replica *r = p->replicas;
    for (int i = 0; i < k->n_teams; i++) {
        const struct hv__team *t = &k->teams[i];
        struct part part = {0, t->more, hv__pipelines(t), t->micro_batches + 1};
        if (t->more > 0) {
            draw_part(s, p, r++, t, o, first[i], &part);
        }
        part = (struct part){t->more, part.of - t->more, part.of, t->micro_batches};
        draw_part(s, p, r++, t, o, first[i], &part);
    }
    p->micro_batch = p->replicas[0].micro_batch;
    return p;
}
