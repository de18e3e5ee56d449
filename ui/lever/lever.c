/*
 * The list of levers of a plan over a workspace, and the positions of each. Not for one position
 * (value.c), for the effect of a lever (turn.c, turn_plan.c) nor for trials (try.c).
 */
#include "ui/lever/lever_int.h"

#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/sim/schedule/schedule.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Most levers of a kind with one lever per place (groups, links, stage borders). */
#define MAX_PLACES 24
/* Most positions of a lever over numbers. */
#define MAX_STEPS 33
/* Most chunks per rank among the positions. */
#define MOST_CHUNKS 8
/* Ratio of neighbouring positions of a bandwidth, a peak or a price. */
#define RATIO       1.1
#define RATIO_STEPS 15

static const char *const deed_names[] = {
    [HV_DEED_BUY] = "buy",
    [HV_DEED_MOVE] = "move",
    [HV_DEED_CHANGE] = "change",
    [HV_DEED_SUFFER] = "suffer",
};
static const struct {
    const char *unit, *help;
    enum hv_lever_deed deed;
} rows[HV_LEVER_N] = {
#define X(c, unit, deed, help) {unit, help, HV_DEED_##deed},
    HV_LEVER_MAP(X)
#undef X
};

const char *hv_lever_deed_name(enum hv_lever_deed d)
{
    return deed_names[d];
}

const char *hv_lever_unit(const struct hv_lever *l)
{
    return rows[l->kind].unit;
}

const char *hv_lever_help(const struct hv_lever *l)
{
    return rows[l->kind].help;
}

enum hv_lever_deed hv_lever_deed(const struct hv_lever *l)
{
    return rows[l->kind].deed;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* A list under construction. */
struct list {
    struct hv_arena *arena;
    HV_VEC(struct hv_lever) v;
    const struct hv_plan *plan;
    const struct hv_cluster *cluster;
    const struct hv_job *job;
};

/* Four digits are enough for a value turned by hand, and keep files readable. */
static double rounded(double x)
{
    if (!(x > 0) || isinf(x)) {
        return x;
    }
    double unit = pow(10, floor(log10(x)) - 3);
    return round(x / unit) * unit;
}

static struct hv_lever *add(struct list *l, enum hv_lever_kind kind, const char *name, double base,
                            const double *values, size_t n)
{
    if (!hv_known(base) || n < 2) {
        return NULL;
    }
    struct hv_lever x = {.kind = kind,
                         .name = name,
                         .base = base,
                         .values = hv_arena_copy(l->arena, values, n, sizeof *values),
                         .n_values = n};
    hv_vec_push(&l->v, x);
    return &l->v.items[l->v.n - 1];
}

/* base · 1.1^k. */
static struct hv_lever *add_ratio(struct list *l, enum hv_lever_kind kind, const char *name,
                                  double base)
{
    double v[2 * RATIO_STEPS + 1];
    if (!(base > 0) || isinf(base)) {
        return NULL;
    }
    for (int k = -RATIO_STEPS; k <= RATIO_STEPS; k++) {
        v[k + RATIO_STEPS] = k == 0 ? base : rounded(base * pow(RATIO, k));
    }
    return add(l, kind, name, base, v, HV_COUNT(v));
}

/* Base times these factors, as far as that is a multiple of `unit`. */
static struct hv_lever *add_shares(struct list *l, enum hv_lever_kind kind, const char *name,
                                   int64_t base, int64_t unit)
{
    static const double shares[] = {0.125, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4, 6, 8};
    double v[HV_COUNT(shares)];
    size_t n = 0;
    for (size_t i = 0; i < HV_COUNT(shares); i++) {
        double x = shares[i] * (double)base;
        if (x >= 1 && fmod(x, (double)unit) == 0) {
            v[n++] = x;
        }
    }
    return add(l, kind, name, (double)base, v, n);
}

/* Whole numbers from..to, reduced to a list of positions that keeps the base. */
static struct hv_lever *add_whole(struct list *l, enum hv_lever_kind kind, const char *name,
                                  int64_t base, const int64_t span[2])
{
    double v[MAX_STEPS + 2];
    size_t n = 0;
    int64_t step = (span[1] - span[0]) / MAX_STEPS + 1, first = span[0] + (base - span[0]) % step;
    if (span[1] <= span[0]) {
        return NULL;
    }
    for (int64_t x = first; x <= span[1] && n < HV_COUNT(v); x += step) {
        v[n++] = (double)x;
    }
    return add(l, kind, name, (double)base, v, n);
}

static struct hv_lever *add_words(struct list *l, enum hv_lever_kind kind, const char *name,
                                  const char *const *words, size_t n, size_t base)
{
    double *v = hv_arena_new(l->arena, double, n + 1);
    for (size_t i = 0; i < n; i++) {
        v[i] = (double)i;
    }
    struct hv_lever *x = add(l, kind, name, (double)base, v, n);
    if (x != NULL) {
        x->words = words;
    }
    return x;
}

/* ---- job and plan ---------------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Micro-batches of all replicas are plain numbers, of one size; *size = that size. */
static bool has_plain_batches(const struct hv_plan *p, int *size)
{
    *size = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        for (size_t k = 0; k < r->n_stages; k++) {
            int b = hv_stage_micro_batch(p, r, &r->stages[k]);
            if (r->list != NULL || r->stages[k].shares != NULL || (*size != 0 && *size != b)) {
                return false;
            }
            *size = b;
        }
    }
    return *size > 0;
}

static void add_batches(struct list *l)
{
    const struct hv_plan *p = l->plan;
    int size = 0;
    int64_t unit = 0, most = 0, sequences = 0;
    if (!has_plain_batches(p, &size)) {
        return;
    }
    for (size_t i = 0; i < p->n_replicas; i++) {
        unit = common_divisor(p->replicas[i].micro_batches, unit);
        sequences += hv_replica_sequences(p, &p->replicas[i]) * p->replicas[i].count;
    }
    if (sequences == l->job->global_batch && unit > 0) {
        (void)add_shares(l, HV_LEVER_BATCH, "global batch", sequences, sequences / unit);
    }
    double v[MAX_STEPS];
    size_t n = 0;
    most = unit * size;
    for (int64_t b = 1; b <= most && b <= 4096 && n < MAX_STEPS; b++) {
        if (most % b == 0) {
            v[n++] = (double)b;
        }
    }
    if (n > 0 && v[n - 1] >= size) {
        (void)add(l, HV_LEVER_MICRO, "micro-batch", size, v, n);
    }
}

static void add_schedules(struct list *l)
{
    size_t n = 0, kept = 0, at = SIZE_MAX;
    const struct hv_schedule_row *all = hv_schedules(&n);
    const char **words = hv_arena_new(l->arena, const char *, n + 1);
    int most = 0, chunks = hv__plan_chunks(l->plan, &most);
    for (size_t i = 0; i < n; i++) {
        bool mine = strcmp(all[i].name, l->plan->schedule.name) == 0;
        bool fits = (all[i].flags & HV_SCHEDULE_NEEDS_CHUNKS) == 0 || (chunks > 0 && most > 1);
        if (!mine && (!fits || (all[i].flags & (HV_SCHEDULE_ORDER | HV_SCHEDULE_SLICES)))) {
            continue;
        }
        at = mine ? kept : at;
        words[kept++] = all[i].name;
    }
    if (at != SIZE_MAX) {
        (void)add_words(l, HV_LEVER_SCHEDULE, "schedule", words, kept, at);
    }
    const int64_t span[2] = {1, most < MOST_CHUNKS ? most : MOST_CHUNKS};
    if (chunks > 0 && chunks <= span[1] && l->plan->replicas[0].n_stages > 1) {
        (void)add_whole(l, HV_LEVER_CHUNKS, "chunks", chunks, span);
    }
}

static void add_borders(struct list *l)
{
    size_t places = 0;
    for (size_t i = 0; i < l->plan->n_replicas; i++) {
        const struct hv_replica *r = &l->plan->replicas[i];
        for (size_t j = 1; j < r->n_stages && places < MAX_PLACES; j++) {
            const struct hv_stage *a = &r->stages[j - 1], *b = &r->stages[j];
            if (a->n_ranges != 1 || b->n_ranges != 1 ||
                a->n_recompute_per + b->n_recompute_per > 0 ||
                a->ranges[0].to2 != b->ranges[0].from2 || b->ranges[0].from2 % 2 != 0) {
                continue;
            }
            const char *name =
                l->plan->n_replicas == 1
                    ? hv_arena_printf(l->arena, "layers s%zu | s%zu", j - 1, j)
                    : hv_arena_printf(l->arena, "layers r%zu s%zu | s%zu", i, j - 1, j);
            int64_t span[2] = {a->ranges[0].from2 / 2 + 1, b->ranges[0].to2 / 2 - 1};
            struct hv_lever *x = add_whole(l, HV_LEVER_LAYERS, name, b->ranges[0].from2 / 2, span);
            if (x != NULL) {
                x->i = i;
                x->j = j;
            }
            places++;
        }
    }
}

/* Numbers that divide n, ascending, in v[cap]; how many. */
static size_t divisors(int n, double *v, size_t cap)
{
    size_t count = 0;
    for (int d = 1; d <= n && count < cap; d++) {
        if (n % d == 0) {
            v[count++] = d;
        }
    }
    return count;
}

/* True where the ranks of a stage can be divided anew between layers and sequences. */
static bool has_free_ranks(const struct hv_stage *s)
{
    return s->tp.scheme == HV_TP_1D && s->tp.shares == NULL && s->shares == NULL &&
           s->n_degrees == 0 && s->n_ops == 0;
}

/* One lever for all stages where they share degrees, else one per stage. */
static void add_degrees(struct list *l)
{
    const struct hv_stage *first = &l->plan->replicas[0].stages[0];
    double v[MAX_STEPS];
    bool shared = true, free_all = true;
    for (size_t i = 0; i < l->plan->n_replicas; i++) {
        for (size_t k = 0; k < l->plan->replicas[i].n_stages; k++) {
            const struct hv_stage *s = &l->plan->replicas[i].stages[k];
            shared = shared && s->tp.degree == first->tp.degree && s->dp == first->dp;
            free_all = free_all && has_free_ranks(s);
        }
    }
    if (!free_all) {
        return;
    }
    if (shared) {
        struct hv_lever *x = add(l, HV_LEVER_TP, "tp", first->tp.degree, v,
                                 divisors(first->tp.degree * first->dp, v, MAX_STEPS));
        if (x != NULL) {
            x->j = HV_LEVER_ALL;
        }
        return;
    }
    size_t places = 0;
    for (size_t i = 0; i < l->plan->n_replicas; i++) {
        for (size_t k = 0; k < l->plan->replicas[i].n_stages && places < MAX_PLACES; k++) {
            const struct hv_stage *s = &l->plan->replicas[i].stages[k];
            const char *name = l->plan->n_replicas == 1
                                   ? hv_arena_printf(l->arena, "tp s%zu", k)
                                   : hv_arena_printf(l->arena, "tp r%zu s%zu", i, k);
            struct hv_lever *x = add(l, HV_LEVER_TP, name, s->tp.degree, v,
                                     divisors(s->tp.degree * s->dp, v, MAX_STEPS));
            if (x != NULL) {
                x->i = i;
                x->j = k;
            }
            places++;
        }
    }
}

/* Number of a setting that all stages share, or SIZE_MAX. */
static size_t shared_setting(const struct hv_plan *p, size_t (*of)(const struct hv_stage *))
{
    size_t all = SIZE_MAX;
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            size_t x = of(&p->replicas[i].stages[k]);
            if (x == SIZE_MAX || (all != SIZE_MAX && all != x)) {
                return SIZE_MAX;
            }
            all = x;
        }
    }
    return all;
}

static size_t recompute_of(const struct hv_stage *s)
{
    return s->n_recompute_per > 0                 ? SIZE_MAX
           : s->recompute == HV_RC_NONE           ? 0
           : s->recompute == (unsigned)HV_RC_CORE ? 1
           : s->recompute == (unsigned)HV_RC_FULL ? 2
                                                  : SIZE_MAX;
}

static size_t zero_of(const struct hv_stage *s)
{
    return (size_t)s->zero.stage;
}

/* A setting that differs between stages has a position of its own, "as in the plan". */
static void add_settings(struct list *l)
{
    static const char *const recompute[] = {"none", "selective", "full", "as in the plan"};
    static const char *const zero[] = {"0", "1", "2", "3", "as in the plan"};
    size_t r = shared_setting(l->plan, recompute_of), z = shared_setting(l->plan, zero_of);
    (void)add_words(l, HV_LEVER_RECOMPUTE, "recompute", recompute, r == SIZE_MAX ? 4 : 3,
                    r == SIZE_MAX ? 3 : r);
    (void)add_words(l, HV_LEVER_ZERO, "zero", zero, z == SIZE_MAX ? 5 : 4, z == SIZE_MAX ? 4 : z);
}

uint32_t *hv__plan_nodes(const struct hv_plan *p, struct hv_arena *arena, size_t *n)
{
    uint32_t n_nodes = p->cluster->n_nodes;
    bool *used = hv_xcalloc(n_nodes + 1, sizeof *used);
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            const struct hv_stage *s = &p->replicas[i].stages[k];
            for (size_t d = 0; d < s->n_devices; d++) {
                used[hv_cluster_node_of(p->cluster, s->devices[d])] = true;
            }
        }
    }
    uint32_t *out = hv_arena_new(arena, uint32_t, n_nodes + 1);
    *n = 0;
    for (uint32_t i = 0; i < n_nodes; i++) {
        if (used[i]) {
            out[(*n)++] = i;
        }
    }
    free(used);
    return out;
}

static void add_failures(struct list *l)
{
    size_t n = 0;
    const uint32_t *nodes = hv__plan_nodes(l->plan, l->arena, &n);
    size_t shown = n < 256 ? n : 256;
    const char **words = hv_arena_new(l->arena, const char *, shown + 1);
    words[0] = "none";
    for (size_t i = 0; i < shown; i++) {
        const struct hv_node_group *g = hv_cluster_group_of_node(l->cluster, nodes[i]);
        words[i + 1] = hv_arena_printf(l->arena, "%s[%u]", g->name, nodes[i] - g->first_node);
    }
    (void)add_words(l, HV_LEVER_FAILED, "failed node", words, shown + 1, 0);
}

const double hv__lever_intervals_s[HV__LEVER_INTERVALS] = {0,    30,   60,   120,  300,   600,  900,
                                                           1200, 1800, 3600, 7200, 14400, 28800};

/* A list of numbers that includes the base. */
static struct hv_lever *add_ladder(struct list *l, enum hv_lever_kind kind, const char *name,
                                   double base, const double *ladder, size_t n)
{
    double v[MAX_STEPS];
    size_t kept = 0;
    bool placed = false;
    for (size_t i = 0; i < n && kept + 2 < MAX_STEPS; i++) {
        if (!placed && base <= ladder[i]) {
            v[kept++] = base;
            placed = true;
        }
        if (base < ladder[i] || base > ladder[i]) {
            v[kept++] = ladder[i];
        }
    }
    if (!placed) {
        v[kept++] = base;
    }
    return add(l, kind, name, base, v, kept);
}

/* The job's rules for failures. An interval other than the listed positions is added behind
 * them. */
static void add_recovery(struct list *l)
{
    static const double starts[] = {1, 2, 5, 10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600};
    const struct hv_failure_rules *r = &l->job->failures;
    const char **words = hv_arena_new(l->arena, const char *, HV__LEVER_INTERVALS + 1);
    size_t at = hv_known(r->interval_s) ? HV__LEVER_INTERVALS : 0, n = HV__LEVER_INTERVALS;
    char buf[HV_FMT_CAP];
    words[0] = "the best";
    for (size_t i = 1; i < HV__LEVER_INTERVALS; i++) {
        double s = hv__lever_intervals_s[i];
        words[i] = hv_arena_strdup(l->arena, hv_fmt_seconds(buf, sizeof buf, s));
        at = r->interval_s >= s && r->interval_s <= s ? i : at;
    }
    if (at == HV__LEVER_INTERVALS) {
        words[n++] = hv_arena_strdup(l->arena, hv_fmt_seconds(buf, sizeof buf, r->interval_s));
    }
    (void)add_words(l, HV_LEVER_INTERVAL, "checkpoints", words, n, at);
    (void)add_ladder(l, HV_LEVER_RESTART, "restart", r->restart_s, starts, HV_COUNT(starts));
    struct hv_lever *x =
        l->plan->recovery == HV_RECOVER_PEERS
            ? add_ladder(l, HV_LEVER_RESTART, "regroup", r->regroup_s, starts, HV_COUNT(starts))
            : NULL;
    if (x != NULL) {
        x->j = 1;
    }
}

/* ---- cluster --------------------------------------------------------------------------------- */

static void place_last(struct list *l, size_t before, size_t i)
{
    for (size_t k = before; k < l->v.n; k++) {
        l->v.items[k].i = i;
    }
}

/* True where the kind's name can be quoted in a key path. */
static bool has_plain_name(const struct hv_device_kind *k)
{
    return strpbrk(k->name, "\"\\") == NULL;
}

static bool has_plain_names(const struct hv_node_group *g)
{
    for (size_t i = 0; i < g->n_slots; i++) {
        if (!has_plain_name(g->slots[i].kind)) {
            return false;
        }
    }
    return true;
}

static void add_group(struct list *l, size_t i)
{
    static const double slow[] = {1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 3, 4};
    static const double rates[] = {0,   0.01, 0.02, 0.05, 0.08, 0.12, 0.2, 0.3,
                                   0.5, 0.8,  1.2,  2,    3,    5,    10};
    const struct hv_node_group *g = &l->cluster->groups[i];
    size_t before = l->v.n;
    int64_t most = (int64_t)g->count * 2, span[2] = {1, most < 16 ? 16 : most};
    (void)add_whole(l, HV_LEVER_NODES, hv_arena_printf(l->arena, "%s nodes", g->name), g->count,
                    span);
    if (has_plain_names(g)) {
        (void)add(l, HV_LEVER_SLOW, hv_arena_printf(l->arena, "%s slower", g->name), 1, slow,
                  HV_COUNT(slow));
    }
    if (l->cluster->n_nodes > 1) {
        (void)add_ratio(l, HV_LEVER_NIC, hv_arena_printf(l->arena, "%s NICs", g->name),
                        g->nic.bytes_per_s / HV_GBPS);
    }
    if (g->n_devices > 1) {
        (void)add_ratio(
            l, HV_LEVER_INTRA,
            hv_arena_printf(l->arena, "%s %s", g->name, hv_link_kind_name(g->intra.kind)),
            g->intra.bytes_per_s / HV_GBPS);
    }
    (void)add_ratio(l, HV_LEVER_PRICE, hv_arena_printf(l->arena, "%s price", g->name),
                    hv_node_price_usd_per_h(g, false));
    (void)add_ladder(l, HV_LEVER_PREEMPTED, hv_arena_printf(l->arena, "%s preempted", g->name),
                     hv_or(g->preemptions_per_h, 0), rates, HV_COUNT(rates));
    place_last(l, before, i);
}

static void add_kind(struct list *l, size_t i)
{
    const struct hv_device_kind *k = l->cluster->kinds[i];
    size_t before = l->v.n;
    if (!has_plain_name(k)) {
        return;
    }
    (void)add_ratio(l, HV_LEVER_FLOPS, hv_arena_printf(l->arena, "%s peak", k->name),
                    k->flops_per_s[l->job->precision] / HV_TFLOPS);
    (void)add_ratio(l, HV_LEVER_HBM, hv_arena_printf(l->arena, "%s memory speed", k->name),
                    k->memory_bytes_per_s / HV_GBPS);
    (void)add_ratio(l, HV_LEVER_MEMORY, hv_arena_printf(l->arena, "%s memory", k->name),
                    k->memory_bytes / HV_GIB);
    place_last(l, before, i);
}

static void add_cluster(struct list *l)
{
    const struct hv_cluster *c = l->cluster;
    for (size_t i = 0; i < c->n_groups && i < MAX_PLACES; i++) {
        add_group(l, i);
    }
    (void)add_ratio(l, HV_LEVER_NETWORK, "network", c->network_bytes_per_s / HV_GBPS);
    for (size_t i = 0; i < c->n_links && i < MAX_PLACES; i++) {
        size_t before = l->v.n;
        (void)add_ratio(l, HV_LEVER_LINK,
                        hv_arena_printf(l->arena, "link %s - %s", c->links[i].a, c->links[i].b),
                        c->links[i].bytes_per_s / HV_GBPS);
        place_last(l, before, i);
    }
    for (size_t i = 0; i < c->n_kinds && i < MAX_PLACES; i++) {
        add_kind(l, i);
    }
}

enum hv_status hv_levers_read(struct hv_session *s, uint32_t row, struct hv_levers *out,
                              struct hv_err *err)
{
    *out = (struct hv_levers){.row = row};
    const struct hv_plan *p = hv_session_plan(s, row, err);
    if (p == NULL) {
        return err != NULL && err->status != HV_OK ? err->status : HV_ENO;
    }
    struct list l = {.arena = &out->arena,
                     .plan = p,
                     .cluster = hv_session_cluster(s)->cluster,
                     .job = &hv_session_job(s)->job};
    add_batches(&l);
    (void)add_shares(&l, HV_LEVER_SEQUENCE, "sequence", l.job->sequence, 1);
    add_schedules(&l);
    add_degrees(&l);
    add_borders(&l);
    add_settings(&l);
    add_failures(&l);
    add_recovery(&l);
    add_cluster(&l);
    out->items = hv_arena_copy(&out->arena, l.v.items, l.v.n, sizeof *l.v.items);
    out->n = l.v.n;
    hv_vec_free(&l.v);
    return HV_OK;
}

void hv_levers_free(struct hv_levers *l)
{
    hv_arena_free(&l->arena);
    *l = (struct hv_levers){0};
}

const struct hv_lever *hv_levers_find(const struct hv_levers *l, enum hv_lever_kind kind, size_t i,
                                      size_t j)
{
    for (size_t k = 0; k < l->n; k++) {
        if (l->items[k].kind == kind && l->items[k].i == i && l->items[k].j == j) {
            return &l->items[k];
        }
    }
    return NULL;
}
