/** Finds equal pipelines of a plan and equal data-parallel ranks of a stage, which are priced once.
 */
#include "solver/eval/train/steps.h"
#include "solver/plan/experts.h"
#include "solver/workload/router.h"

#include "solver/base/rng.h"
#include "solver/plan/parts.h"

/** First device of copy `c` of a stage. */
static const uint32_t *copy_devices(const struct hv_replica *r, const struct hv_stage *s, int c)
{
    return s->devices + (size_t)c * hv_stage_ranks(r, s);
}

/** Nodes and link domains seen so far, numbered in the order of first use, so that a fingerprint
 * depends on which devices are together and not on where they are. */
struct met {
    uint32_t nodes[64], domains[64];
    size_t n_nodes, n_domains, last;
};

/** Number of `x` among those seen; when the table is full, its distance from the first, which may
 * distinguish equal cases. */
static uint32_t number_of(uint32_t *met, size_t *n, size_t last, uint32_t x)
{
    enum { ROOM = 64 };
    if (last < *n && met[last] == x) {
        return (uint32_t)last;
    }
    for (size_t i = 0; i < *n; i++) {
        if (met[i] == x) {
            return (uint32_t)i;
        }
    }
    if (*n == ROOM) {
        return ROOM + x - met[0];
    }
    met[*n] = x;
    return (uint32_t)(*n)++;
}

/** Adds the properties of devices that prices depend on: group, kind, which of them share a node
 * (the node itself where the network tells nodes apart) or a link domain and, where there are
 * islands, the slot. */
static uint64_t hash_devices(const struct hv_cluster *c, uint64_t start, const uint32_t *d,
                             size_t n, struct met *met)
{
    bool named = c->matrix_bytes_per_s != NULL || c->matrix_latency_s != NULL || c->n_links > 0;
    uint64_t h = start;
    for (size_t i = 0; i < n; i++) {
        struct hv_device_ref ref = hv_cluster_device(c, d[i]);
        const struct hv_node_group *g = &c->groups[ref.group];
        uint32_t slot = 0, node = number_of(met->nodes, &met->n_nodes, met->last, ref.node);
        while (slot < g->n_slots && g->slots[slot].kind != ref.kind) {
            slot++;
        }
        met->last = node;
        uint32_t key[4] = {g->like, g->n_islands > 0 ? ref.slot : slot, named ? ref.node : node, 0};
        if (g->domain_nodes > 1) {
            key[3] = number_of(met->domains, &met->n_domains, 0, hv_cluster_domain_of(c, ref.node));
        }
        h = hv_hash_words(h, key, sizeof key);
    }
    return h;
}

/** Placement: nodes that pipelines share, and a mark per node of the devices of every stage on it.
 * Entries of one stage have no transfers and are left out. O(devices). */
static uint64_t *mark_nodes(struct hv__lowered *l)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    uint64_t *marks = hv_arena_new(l->arena, uint64_t, (size_t)c->n_nodes + 1);
    uint32_t *owner = hv_arena_new(l->arena, uint32_t, (size_t)c->n_nodes + 1), copies = 0;
    l->pipelines.crowded_nodes = hv_arena_new(l->arena, bool, (size_t)c->n_nodes + 1);
    for (size_t i = 0; i < l->plan->n_replicas; i++) {
        const struct hv_replica *r = &l->plan->replicas[i];
        for (size_t s = 0; r->n_stages > 1 && s < r->n_stages; s++) {
            size_t key[2] = {i, s}, each = hv_stage_ranks(r, &r->stages[s]);
            uint64_t mark = hv_hash(HV_HASH_START, key, sizeof key);
            for (size_t d = 0; d < each * (size_t)r->count; d++) {
                uint32_t node = hv_cluster_node_of(c, r->stages[s].devices[d]);
                uint32_t own = copies + (uint32_t)(d / each) + 1;
                l->pipelines.crowded_nodes[node] |= owner[node] != 0 && owner[node] != own;
                owner[node] = own;
                marks[node] += mark;
            }
        }
        copies += (uint32_t)r->count;
    }
    return marks;
}

/** Devices of a copy, numbered in the order of first mention: which stages share them. */
struct numbers {
    uint32_t *of, *run; /**< [devices of the cluster]; run: copy that it was numbered in, from 1.
                           NULL: no stages share devices */
    uint32_t n_runs;
};

/** Adds which devices of a copy several of its stages name. */
static uint64_t hash_sharing(const struct hv_replica *r, int copy, uint64_t h, struct numbers *x)
{
    uint32_t n = 0;
    x->n_runs++;
    for (size_t i = 0; x->of != NULL && i < r->n_stages; i++) {
        const uint32_t *d = copy_devices(r, &r->stages[i], copy);
        for (size_t k = 0; k < hv_stage_ranks(r, &r->stages[i]); k++) {
            x->of[d[k]] = x->run[d[k]] == x->n_runs ? x->of[d[k]] : n++;
            x->run[d[k]] = x->n_runs;
            h = hv_hash(h, &x->of[d[k]], sizeof x->of[d[k]]);
        }
    }
    return h;
}

/** Fingerprint of the placement of a copy: copies with equal fingerprints have equal costs. Its
 * transfers share links with those of other copies on its nodes, so these are included. */
static uint64_t copy_hash(const struct hv__lowered *l, const struct hv_replica *r, int copy,
                          const uint64_t *marks, struct numbers *numbers)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    struct met met;
    met.n_nodes = met.n_domains = met.last = 0;
    uint64_t h = HV_HASH_START;
    for (size_t i = 0; i < r->n_stages; i++) {
        const uint32_t *d = copy_devices(r, &r->stages[i], copy);
        size_t n = hv_stage_ranks(r, &r->stages[i]);
        h = hash_devices(c, h, d, n, &met);
        for (size_t k = 0; r->n_stages > 1 && k < n; k++) {
            uint32_t node = hv_cluster_node_of(c, d[k]);
            if (k == 0 || node != hv_cluster_node_of(c, d[k - 1])) {
                h = hv_hash_words(h, &marks[node], sizeof marks[node]);
            }
        }
    }
    return hash_sharing(r, copy, h, numbers);
}

/** Groups the copies of every replica entry into pipelines. */
void hv__find_pipelines(struct hv__lowered *l)
{
    const struct hv_plan *p = l->plan;
    size_t most = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        most += (size_t)p->replicas[i].count;
    }
    l->pipelines.items = hv_arena_new(l->arena, struct hv__pipeline, most);
    uint64_t *marks = mark_nodes(l);
    size_t n_devices = hv_cost_cluster(l->k)->n_devices;
    struct numbers numbers = {0};
    if (hv_plan_shares_devices(p)) {
        numbers.of = hv_arena_new(l->arena, uint32_t, n_devices);
        numbers.run = hv_arena_new(l->arena, uint32_t, n_devices);
    }
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        size_t start = l->pipelines.n;
        for (int c = 0; c < r->count; c++) {
            uint64_t h = copy_hash(l, r, c, marks, &numbers);
            size_t u = start;
            while (u < l->pipelines.n && l->pipelines.items[u].placement != h) {
                u++;
            }
            if (u == l->pipelines.n) {
                l->pipelines.items[u] = (struct hv__pipeline){.i_replica = i,
                                                              .replica = r,
                                                              .first_copy = c,
                                                              .placement = h,
                                                              .first_of_entry = start};
                l->pipelines.items[u].copies = hv_arena_new(l->arena, int, (size_t)r->count);
                l->pipelines.n++;
            }
            l->pipelines.items[u].copies[l->pipelines.items[u].multiplicity++] = c;
        }
    }
    l->pipelines.rank_at = hv_arena_new(l->arena, size_t, l->pipelines.n + 1);
    for (size_t u = 0; u < l->pipelines.n; u++) {
        l->pipelines.rank_at[u + 1] =
            l->pipelines.rank_at[u] + l->pipelines.items[u].replica->n_stages;
    }
}

/** Sequences of a micro-batch on one dp rank (unit): by shares, or evenly. Ranks that take
 * micro-batches in turns are stages of their own here (rewrite/split_stages.c). */
double hv__rank_sequences(const struct hv__rank *rk, const struct hv_stage *s, double sequences,
                          size_t d)
{
    if (s->shares == NULL) {
        return sequences * (double)(rk->width * rk->cuts) / (double)rk->n_devices;
    }
    return rk->shares_sum > 0 ? sequences * s->shares[d / rk->cuts] / rk->shares_sum : 0;
}

/** Devices of the expert-parallel group of dp rank d, one after the other; NULL: no more. */
static const uint32_t *ep_peer(const struct hv__rank *rk, const struct hv_stage *s, size_t d,
                               size_t i)
{
    size_t ep = s->ep > 1 ? (size_t)s->ep : 0;
    if (i >= ep) {
        return NULL;
    }
    size_t tp = (size_t)hv_stage_expert_tp(s, s->ep), each = rk->n_devices / tp;
    size_t first = d / rk->cuts * (rk->width * rk->cuts / tp) / ep * ep;
    return rk->devices + (first + i) % each * tp;
}

/** True where experts of the stage have places of their own. */
static bool places_experts(const struct hv_stage *s)
{
    for (size_t i = 0; i < s->n_moe; i++) {
        if (hv_places_experts(&s->moe[i])) {
            return true;
        }
    }
    return false;
}

/** Adds the expert-parallel groups of dp rank d, by their numbers, for all degrees of the stage:
 * their members are priced alike. */
static uint64_t hash_groups(const struct hv__rank *rk, const struct hv_stage *s, size_t d,
                            uint64_t h)
{
    for (size_t i = 0; i <= s->n_moe; i++) {
        int ep = i < s->n_moe ? s->moe[i].ep : s->ep, tp = hv_stage_expert_tp(s, ep);
        size_t group = d / rk->cuts * (rk->width * rk->cuts / (size_t)(tp > 1 ? tp : 1));
        group /= (size_t)(ep > 1 ? ep : 1);
        h = ep > 1 ? hv_hash(h, &group, sizeof group) : h;
    }
    return h;
}

/** True where all devices of the rank are of one kind and on one node. */
static bool is_uniform(const struct hv_cluster *c, const struct hv__rank *rk)
{
    const struct hv_device_ref first = hv_cluster_device(c, rk->devices[0]);
    for (size_t i = 1; i < rk->n_devices; i++) {
        const struct hv_device_ref ref = hv_cluster_device(c, rk->devices[i]);
        if (ref.kind != first.kind || ref.node != first.node) {
            return false;
        }
    }
    return true;
}

/** Fingerprint of a dp rank: equal ranks have equal times and memory, when no others use their
 * networks; without `placed`, but for what they hold and keep of experts that the plan places.
 * *far: true where its groups lie on several nodes. */
static uint64_t dp_hash(const struct hv__lowered *l, const struct hv__rank *rk,
                        const struct hv_stage *s, size_t d, bool placed, bool *far)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    size_t group = rk->width * rk->cuts;
    const uint32_t *own = rk->devices + d / rk->cuts * group, *peer;
    double share = hv__rank_sequences(rk, s, 1, d);
    struct met met;
    met.n_nodes = met.n_domains = met.last = 0;
    uint64_t h = hv_hash(HV_HASH_START, &share, sizeof share);
    h = hash_devices(c, h, own, group, &met);
    if (rk->cuts > 1) {
        size_t at = d % rk->cuts;
        h = hv_hash(h, &at, sizeof at);
    }
    bool routed = s->ep > 1 && hv_router_has_sources(hv_cost_job(l->k)->routing);
    if (placed || (s->n_degrees > 0 && !is_uniform(c, rk))) {
        /* it holds experts of its own; in wider parts it computes together with other units */
        h = hv_hash(h, &d, sizeof d);
    } else if (s->n_moe > 0 || routed) {
        h = hash_groups(rk, s, d, h);
    }
    for (size_t i = 0; s->n_moe == 0 && (peer = ep_peer(rk, s, d, i)) != NULL; i++) {
        h = hash_devices(c, h, peer, 1, &met);
    }
    *far = met.n_nodes > 1;
    return h;
}

/** Adds to the fingerprints of ranks on several nodes those of others on the same ones, whose
 * groups share the network with theirs. */
static void add_others(const struct hv__lowered *l, const struct hv__rank *rk,
                       const struct hv_stage *s, uint64_t *hash, const bool *far)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    uint64_t *marks = hv_arena_new(l->arena, uint64_t, (size_t)c->n_nodes + 1);
    const uint32_t *peer;
    size_t group = rk->width * rk->cuts;
    for (size_t d = 0; d < rk->n_dp; d++) {
        for (size_t i = 0; far[d] && i < group; i++) {
            marks[hv_cluster_node_of(c, rk->devices[d / rk->cuts * group + i])] += hash[d];
        }
    }
    for (size_t d = 0; d < rk->n_dp; d++) {
        for (size_t i = 0; far[d] && i < group; i++) {
            uint64_t mark = marks[hv_cluster_node_of(c, rk->devices[d / rk->cuts * group + i])];
            hash[d] = hv_hash(hash[d], &mark, sizeof mark);
        }
        for (size_t i = 0; far[d] && (peer = ep_peer(rk, s, d, i)) != NULL; i++) {
            uint64_t mark = marks[hv_cluster_node_of(c, *peer)];
            hash[d] = hv_hash(hash[d], &mark, sizeof mark);
        }
    }
}

/** Fills hash[n_dp] with the fingerprints of all dp ranks; returns whether some lie on several
 * nodes. */
static bool hash_ranks(const struct hv__lowered *l, const struct hv__rank *rk,
                       const struct hv_stage *s, bool placed, uint64_t *hash)
{
    bool *far = hv_arena_new(l->arena, bool, rk->n_dp), any = false;
    for (size_t d = 0; d < rk->n_dp; d++) {
        hash[d] = dp_hash(l, rk, s, d, placed, &far[d]);
        any = any || far[d];
    }
    if (any && rk->n_dp > 1) {
        add_others(l, rk, s, hash, far);
    }
    return any;
}

/** Finds for every dp rank the first one with the same fingerprint. Compares with the last few
 * different ones only: unequal ranks come in runs, and a rank without a match is priced again. */
static size_t *first_equal(const struct hv__lowered *l, const uint64_t *hash, size_t n_ranks)
{
    enum { LOOK_BACK = 8 };
    uint64_t recent[LOOK_BACK];
    size_t at[LOOK_BACK], n = 0;
    size_t *first = hv_arena_new(l->arena, size_t, n_ranks);
    for (size_t d = 0; d < n_ranks; d++) {
        size_t i = 0, known = n < LOOK_BACK ? n : LOOK_BACK;
        while (i < known && recent[i] != hash[d]) {
            i++;
        }
        if (i == known) {
            i = n++ % LOOK_BACK;
            recent[i] = hash[d];
            at[i] = d;
        }
        first[d] = at[i];
    }
    return first;
}

/** True where ranks with unlike experts may still have passes that take equally long: with the
 * bytes of offloads and of layouts between parts they would not. */
static bool has_peers(const struct hv__lowered *l, const struct hv_stage *s)
{
    return s->n_degrees == 0 && s->n_offload == 0 && hv_cost_model(l->k)->kind != HV_MODEL_MODULES;
}

/** Finds for every dp rank the first rank equal to it. */
static void find_like(const struct hv__lowered *l, struct hv__rank *rk, const struct hv_stage *s)
{
    bool placed = places_experts(s);
    uint64_t *hash = hv_arena_new(l->arena, uint64_t, rk->n_dp);
    rk->near = !hash_ranks(l, rk, s, placed, hash);
    rk->like = first_equal(l, hash, rk->n_dp);
    rk->n_like = hv_arena_new(l->arena, size_t, rk->n_dp);
    for (size_t d = 0; d < rk->n_dp; d++) {
        rk->n_like[rk->like[d]]++;
    }
    if (placed && has_peers(l, s)) {
        (void)hash_ranks(l, rk, s, false, hash);
        rk->peer = first_equal(l, hash, rk->n_dp);
    }
}

void hv__fill_rank(const struct hv__lowered *l, const struct hv_replica *r, size_t stage, int copy,
                   struct hv__rank *out)
{
    const struct hv_stage *s = &r->stages[stage];
    *out = (struct hv__rank){.stage = stage,
                             .n_devices = hv_stage_ranks(r, s),
                             .devices = copy_devices(r, s, copy),
                             .cuts = s->tp.shares != NULL ? (size_t)s->tp.degree : 1};
    out->n_dp = out->n_devices / hv_stage_width(s) * out->cuts;
    out->width = out->n_devices / out->n_dp;
    for (size_t d = 0; s->shares != NULL && d < (size_t)s->dp; d++) {
        out->shares_sum += s->shares[d];
    }
    find_like(l, out, s);
}

void hv__fill_ranks(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    pl->n_ranks = pl->replica->n_stages;
    pl->ranks = hv_arena_new(l->arena, struct hv__rank, pl->n_ranks);
    for (size_t i = 0; i < pl->n_ranks; i++) {
        hv__fill_rank(l, pl->replica, i, pl->first_copy, &pl->ranks[i]);
    }
}
