/**
 * From plan to schedules: which pipelines are different, what every pass costs, in which order a
 * rank runs them. Nothing here knows about reductions or the optimizer (tail.c).
 */
#include "solver/eval/eval_int.h"

#include <string.h>

#include "solver/base/rng.h"

/** Micro-batches simulated of a schedule without flush, in multiples of its ranks. */
#define STEADY_FILLS 3

/** First device of copy `c` of a stage. */
static const uint32_t *copy_devices(const struct hv_replica *r, const struct hv_stage *s, int c)
{
    return s->devices + (size_t)c * hv_stage_ranks(r, s);
}

/** Adds what a price can see of devices: group, kind, node relative to `origin` (the node itself
 * where the network tells nodes apart) and, where there are islands, the slot. */
static uint64_t hash_devices(const struct hv_cluster *c, uint64_t start, const uint32_t *d,
                             size_t n, uint32_t origin)
{
    bool named = c->matrix_bytes_per_s != NULL || c->matrix_latency_s != NULL || c->n_links > 0;
    uint64_t h = start;
    for (size_t i = 0; i < n; i++) {
        struct hv_device_ref ref = hv_cluster_device(c, d[i]);
        const struct hv_node_group *g = &c->groups[ref.group];
        uint32_t slot = 0;
        while (slot < g->n_slots && g->slots[slot].kind != ref.kind) {
            slot++;
        }
        uint32_t key[3] = {ref.group, g->n_islands > 0 ? ref.slot : slot,
                           named ? ref.node : ref.node - origin};
        h = hv_hash(h, key, sizeof key);
    }
    return h;
}

/** Fingerprint of where a copy runs: equal ones cost the same, wherever they are. */
static uint64_t copy_hash(const struct hv__lowered *l, const struct hv_replica *r, int copy)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    uint32_t origin = hv_cluster_node_of(c, copy_devices(r, &r->stages[0], copy)[0]);
    uint64_t h = HV_HASH_START;
    for (size_t i = 0; i < r->n_stages; i++) {
        const uint32_t *d = copy_devices(r, &r->stages[i], copy);
        h = hash_devices(c, h, d, hv_stage_ranks(r, &r->stages[i]), origin);
    }
    return h;
}

/** Groups the copies of every replica entry into units. */
static void find_units(struct hv__lowered *l)
{
    const struct hv_plan *p = l->plan;
    size_t most = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        most += (size_t)p->replicas[i].count;
    }
    l->units = hv_arena_new(l->arena, struct hv__unit, most);
    uint64_t *hash = hv_arena_new(l->arena, uint64_t, most);
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        size_t start = l->n_units;
        for (int c = 0; c < r->count; c++) {
            uint64_t h = copy_hash(l, r, c);
            size_t u = start;
            while (u < l->n_units && hash[u] != h) {
                u++;
            }
            if (u == l->n_units) {
                l->units[u] = (struct hv__unit){
                    .i_replica = i, .replica = r, .first_copy = c, .first_unit = start};
                l->units[u].copies = hv_arena_new(l->arena, int, (size_t)r->count);
                hash[u] = h;
                l->n_units++;
            }
            l->units[u].copies[l->units[u].multiplicity++] = c;
        }
    }
    l->rank_at = hv_arena_new(l->arena, size_t, l->n_units + 1);
    for (size_t u = 0; u < l->n_units; u++) {
        l->rank_at[u + 1] = l->rank_at[u] + l->units[u].replica->n_stages;
    }
}

/** Number of chunks, equal for all stages. */
static enum hv_status chunks_of(const struct hv__unit *u, int32_t *out, struct hv_err *err)
{
    size_t v = u->replica->stages[0].n_ranges;
    for (size_t i = 1; i < u->replica->n_stages; i++) {
        if (u->replica->stages[i].n_ranges != v) {
            return hv_err_set(err, HV_ENO,
                              "stage %zu has %zu chunks and stage 0 has %zu: give every stage the "
                              "same number of layer ranges",
                              i, u->replica->stages[i].n_ranges, v);
        }
    }
    *out = v == 0 ? 1 : (int32_t)v;
    return HV_OK;
}

/** A wrong schedule is a finding with its own code. */
static enum hv_status schedule_finding(struct hv__lowered *l, const struct hv_err *err)
{
    hv_finding_add(l->findings, HV_V_SCHEDULE_NEEDS, HV_UNKNOWN, "schedule", "%s", err->text);
    return HV_ENO;
}

/** What a scheduler that decides by cost is told; NULL costs: every operation takes one unit. */
struct decide {
    const struct hv_stage_cost *costs;
    double hop_s;
};

/** The schedule of a unit, from the plan's name and options. */
static enum hv_status make_schedule(struct hv__lowered *l, struct hv__unit *u,
                                    const struct decide *by, struct hv_err *err)
{
    const struct hv_plan *p = l->plan;
    struct hv_schedule_input in;
    int32_t v = 1;
    enum hv_status st = chunks_of(u, &v, err);
    if (st != HV_OK) {
        return st;
    }
    hv_schedule_input_init(&in, l->row, (int32_t)u->n_ranks, u->n_mb);
    in.costs = by->costs;
    in.hop_s = by->hop_s;
    if (v > 1 || !(l->row->flags & HV_SCHEDULE_NEEDS_CHUNKS)) {
        in.chunks = v;
    }
    for (size_t i = 0; i < p->schedule.n_options; i++) {
        const struct hv_option *o = &p->schedule.options[i];
        st = hv_schedule_set_option(&in, o->key, o->value, err);
        if (st != HV_OK) {
            return st;
        }
    }
    struct hv_order_text *order =
        hv_arena_new(l->arena, struct hv_order_text, p->schedule.n_orders + 1);
    for (size_t i = 0; i < p->schedule.n_orders; i++) {
        order[i] =
            (struct hv_order_text){.tokens = p->schedule.order[i], .n = p->schedule.n_order[i]};
    }
    if (l->row->flags & HV_SCHEDULE_ORDER) {
        if (p->schedule.n_orders != u->n_ranks) {
            (void)hv_err_set(err, HV_ENO,
                             "schedule \"%s\" needs one order per stage (%zu), the plan has %zu",
                             l->row->name, u->n_ranks, p->schedule.n_orders);
        }
        in.order = order;
    }
    if (p->schedule.slices > 1) {
        st = hv_schedule_set_int(&in, "slices", p->schedule.slices, err);
        if (st != HV_OK) {
            return st;
        }
    }
    return hv_schedule_make(l->arena, &in, &u->schedule, err);
}

/** Shapes of micro-batches and slices that occur in a unit. */
static void find_shapes(struct hv__lowered *l, struct hv__unit *u)
{
    double sequence = hv_cost_tokens(l->k);
    const struct hv_plan *p = l->plan;
    const struct hv_replica *r = u->replica;
    size_t k = (size_t)(u->n_slices > 1 ? u->n_slices : 1), n = (size_t)u->n_mb * k;
    u->shape_of = hv_arena_new(l->arena, int32_t, n);
    size_t most = (r->list != NULL ? (size_t)u->n_mb : 1) * k;
    u->shapes = hv_arena_new(l->arena, struct hv__shape, most);
    double base = (double)(r->micro_batch > 0 ? r->micro_batch : p->micro_batch);
    for (size_t i = 0; i < n; i++) {
        if (r->list == NULL && i >= k) {
            u->shape_of[i] = u->shape_of[i % k];
            continue;
        }
        const struct hv_micro_batch *mb = r->list != NULL ? &r->list[i / k] : NULL;
        struct hv__shape s = {mb != NULL ? (double)mb->sequences : base, sequence, 0};
        if (mb != NULL && mb->tokens > 0 && mb->sequences > 0) {
            s.tokens = (double)mb->tokens / (double)mb->sequences;
        }
        if (k > 1) {
            double tokens = s.tokens / (double)k;
            s.context = tokens * (double)(i % k);
            s.tokens = tokens;
        }
        size_t j = 0;
        while (j < u->n_shapes && memcmp(&u->shapes[j], &s, sizeof s) != 0) {
            j++;
        }
        if (j == u->n_shapes) {
            u->shapes[u->n_shapes++] = s;
        }
        u->shape_of[i] = (int32_t)j;
    }
    u->n_of_shape = hv_arena_new(l->arena, double, u->n_shapes);
    for (size_t i = 0; i < n; i++) {
        u->n_of_shape[u->shape_of[i]] += 1;
    }
}

/** Sequences of a micro-batch on one dp rank: by shares, or evenly. Ranks that take micro-batches
 * in turn have the same rate as ranks that split each one; their latency is not modelled
 * (approximated.c says so). */
static double rank_sequences(const struct hv_stage *s, double sequences, size_t d)
{
    if (s->shares == NULL) {
        return sequences / (double)s->dp;
    }
    double sum = 0;
    for (int i = 0; i < s->dp; i++) {
        sum += s->shares[i];
    }
    return sum > 0 ? sequences * s->shares[d] / sum : 0;
}

/** Lets the unit's scratch replica hold only the blocks of one global stage, on the rank that runs
 * it, so that placement and two-way schedules need no special case in cost. */
static struct hv_stage *set_scratch(struct hv__unit *u, struct hv__gstage *g)
{
    size_t i = u->ranks[g->rank].stage;
    struct hv_stage *s = &u->scratch->stages[i];
    *s = u->replica->stages[i];
    s->ranges = &g->range;
    s->n_ranges = 1;
    s->embedding = g->embedding;
    s->head = g->head;
    return s;
}

static void set_recompute(struct hv_stage *s, unsigned mask)
{
    s->recompute = mask;
    s->recompute_per = NULL;
    s->n_recompute_per = 0;
}

static struct hv_replica *copy_replica(struct hv__lowered *l, const struct hv_replica *from)
{
    struct hv_replica *r = hv_arena_new(l->arena, struct hv_replica, 1);
    *r = *from;
    r->stages = hv_arena_new(l->arena, struct hv_stage, from->n_stages);
    memcpy(r->stages, from->stages, from->n_stages * sizeof *r->stages);
    return r;
}

/** Passes of one global stage for all shapes and dp ranks; ranks that are alike are priced once. */
static enum hv_status price_passes(struct hv__lowered *l, const struct hv__unit *u,
                                   const struct hv__gstage *g, struct hv_pass *out,
                                   struct hv_err *err)
{
    const struct hv__rank *rk = &u->ranks[g->rank];
    const struct hv_replica *r = u->scratch;
    for (size_t i = 0; i < u->n_shapes; i++) {
        for (size_t d = 0; d < rk->n_dp; d++) {
            double n = rank_sequences(&r->stages[rk->stage], u->shapes[i].sequences, d);
            struct hv_pass *pass = &out[i * rk->n_dp + d];
            if (rk->like[d] != d) {
                *pass = out[i * rk->n_dp + rk->like[d]];
                continue;
            }
            if (n <= 0) {
                continue;
            }
            struct hv_stage_query q = {.plan = l->plan,
                                       .replica = r,
                                       .stage = rk->stage,
                                       .copy = u->first_copy,
                                       .dp_rank = (int)d,
                                       .sequences = n,
                                       .tokens = u->shapes[i].tokens,
                                       .context = u->shapes[i].context};
            enum hv_status st = hv_cost_pass(l->k, &q, pass, err);
            if (st != HV_OK) {
                return st;
            }
        }
    }
    return HV_OK;
}

static double backward_s(const struct hv_pass *p)
{
    return p->input_grad_s + p->recompute_s;
}

/** Prices one global stage on its rank for all shapes and dp ranks. */
static enum hv_status price_gstage(struct hv__lowered *l, struct hv__unit *u, struct hv__gstage *g,
                                   struct hv_err *err)
{
    const struct hv__rank *rk = &u->ranks[g->rank];
    size_t n = u->n_shapes * rk->n_dp;
    g->pass = hv_arena_new(l->arena, struct hv_pass, n);
    g->plain = g->pass;
    g->forward_s = hv_arena_new(l->arena, double, u->n_shapes);
    g->input_grad_s = hv_arena_new(l->arena, double, u->n_shapes);
    g->weight_grad_s = hv_arena_new(l->arena, double, u->n_shapes);
    g->recompute_s = hv_arena_new(l->arena, double, u->n_shapes);
    struct hv_stage *s = set_scratch(u, g);
    enum hv_status st = HV_OK;
    if (g->again) {
        /* R runs the whole stage again; then B has no recompute in it, whatever the plan says */
        g->plain = hv_arena_new(l->arena, struct hv_pass, n);
        set_recompute(s, HV_RC_NONE);
        st = price_passes(l, u, g, g->plain, err);
        set_recompute(s, HV_RC_FULL);
    }
    if (st == HV_OK) {
        st = price_passes(l, u, g, g->pass, err);
    }
    *s = u->replica->stages[rk->stage];
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        const struct hv_pass *pass = &g->pass[i], *plain = &g->plain[i];
        size_t shape = i / rk->n_dp;
        g->forward_s[shape] = fmax(g->forward_s[shape], plain->forward_s);
        g->input_grad_s[shape] = fmax(g->input_grad_s[shape], backward_s(plain));
        g->weight_grad_s[shape] = fmax(g->weight_grad_s[shape], plain->weight_grad_s);
        g->recompute_s[shape] = fmax(g->recompute_s[shape], backward_s(pass) - backward_s(plain));
    }
    return st;
}

/** The unit's replica with every rank holding what the schedule's placement puts there: in two-way
 * schedules also the stages it runs in the other direction. */
static const struct hv_replica *placed_replica(struct hv__lowered *l, const struct hv__unit *u)
{
    size_t n = u->n_pipes * u->n_gstages;
    struct hv_replica *r = copy_replica(l, u->replica);
    struct hv_stage *stages = r->stages;
    size_t *held = hv_arena_new(l->arena, size_t, u->n_ranks);
    for (size_t g = 0; g < n; g++) {
        held[u->gstages[g].rank]++;
    }
    for (size_t i = 0; i < u->n_ranks; i++) {
        stages[i].embedding = stages[i].head = 0;
        stages[i].ranges = hv_arena_new(l->arena, struct hv_range, held[i] + 1);
        stages[i].n_ranges = 0;
    }
    for (size_t g = 0; g < n; g++) {
        struct hv_stage *s = &stages[u->gstages[g].rank];
        s->ranges[s->n_ranges++] = u->gstages[g].range;
        s->embedding |= u->gstages[g].embedding;
        s->head |= u->gstages[g].head;
    }
    return r;
}

/** Static memory of every dp rank: all its global stages, overheads once. */
static enum hv_status price_memory(struct hv__lowered *l, struct hv__unit *u, struct hv_err *err)
{
    const struct hv_replica *placed = placed_replica(l, u);
    for (size_t i = 0; i < u->n_ranks; i++) {
        struct hv__rank *rk = &u->ranks[i];
        rk->memory = hv_arena_new(l->arena, struct hv_memory, rk->n_dp);
        double versions = l->stale ? fmax(1, (double)u->schedule.weight_versions[i]) : 1;
        for (size_t d = 0; d < rk->n_dp; d++) {
            struct hv_memory *m = &rk->memory[d];
            if (rk->like[d] != d) {
                *m = rk->memory[rk->like[d]];
                continue;
            }
            struct hv_stage_query q = {.plan = l->plan,
                                       .replica = placed,
                                       .stage = rk->stage,
                                       .copy = u->first_copy,
                                       .dp_rank = (int)d};
            enum hv_status st = hv_cost_memory(l->k, &q, m, err);
            if (st != HV_OK) {
                return st;
            }
            m->weights_bytes *= versions;
        }
    }
    return HV_OK;
}

/** Fingerprint of a dp rank: equal ones take equally long and hold equally much. */
static uint64_t dp_hash(const struct hv__lowered *l, const struct hv__rank *rk,
                        const struct hv_stage *s, size_t d)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const uint32_t *own = rk->devices + d * rk->width;
    double share = rank_sequences(s, 1, d);
    uint64_t h = hv_hash(HV_HASH_START, &share, sizeof share);
    h = hash_devices(c, h, own, rk->width, hv_cluster_node_of(c, own[0]));
    if (s->n_moe > 0) {
        return hv_hash(h, &d, sizeof d); /* its experts may be spread by knobs of its own */
    }
    if (s->ep > 1) {
        size_t tp = (size_t)s->tp.degree, ep = (size_t)s->ep, each = rk->n_devices / tp;
        size_t first = d * (rk->width / tp) / ep * ep;
        for (size_t i = 0; i < ep; i++) {
            const uint32_t *peer = rk->devices + (first + i) % each * tp;
            h = hash_devices(c, h, peer, 1, hv_cluster_node_of(c, rk->devices[first % each * tp]));
        }
    }
    return h;
}

/** Finds for every dp rank the first one like it. Looks back at the last few different ones only:
 * unequal ranks come in runs, and what is not found is priced once more. */
static void find_like(const struct hv__lowered *l, struct hv__rank *rk, const struct hv_stage *s)
{
    enum { LOOK_BACK = 8 };
    uint64_t recent[LOOK_BACK];
    size_t at[LOOK_BACK], n = 0;
    rk->like = hv_arena_new(l->arena, size_t, rk->n_dp);
    rk->n_like = hv_arena_new(l->arena, size_t, rk->n_dp);
    for (size_t d = 0; d < rk->n_dp; d++) {
        uint64_t h = dp_hash(l, rk, s, d);
        size_t i = 0, known = n < LOOK_BACK ? n : LOOK_BACK;
        while (i < known && recent[i] != h) {
            i++;
        }
        if (i == known) {
            i = n++ % LOOK_BACK;
            recent[i] = h;
            at[i] = d;
        }
        rk->like[d] = at[i];
        rk->n_like[at[i]]++;
    }
}

static void fill_ranks(struct hv__lowered *l, struct hv__unit *u)
{
    u->n_ranks = u->replica->n_stages;
    u->ranks = hv_arena_new(l->arena, struct hv__rank, u->n_ranks);
    for (size_t i = 0; i < u->n_ranks; i++) {
        const struct hv_stage *s = &u->replica->stages[i];
        struct hv__rank *rk = &u->ranks[i];
        rk->stage = i;
        rk->n_devices = hv_stage_ranks(u->replica, s);
        rk->devices = copy_devices(u->replica, s, u->first_copy);
        rk->n_dp = (size_t)s->dp;
        rk->width = rk->n_devices / rk->n_dp;
        find_like(l, rk, s);
    }
}

/** Which blocks a global stage holds: the k-th chunk of its rank in model order. */
static enum hv_status fill_gstages(struct hv__lowered *l, struct hv__unit *u, struct hv_err *err)
{
    const struct hv_schedule *s = &u->schedule;
    u->n_gstages = (size_t)s->n_stages;
    u->n_pipes = (size_t)s->n_pipes;
    u->gstages = hv_arena_new(l->arena, struct hv__gstage, u->n_pipes * u->n_gstages);
    u->scratch = copy_replica(l, u->replica);
    size_t *seen = hv_arena_new(l->arena, size_t, u->n_ranks);
    bool *again = hv_arena_new(l->arena, bool, u->n_gstages);
    for (size_t i = 0; i < hv_schedule_n_ops(s); i++) {
        again[s->ops[i].stage] |= s->ops[i].kind == HV_OP_R;
    }
    for (size_t g = 0; g < u->n_gstages; g++) {
        size_t home = (size_t)s->stage_to_rank[g], chunk = seen[home]++;
        const struct hv_stage *st = &u->replica->stages[home];
        if (chunk >= st->n_ranges) {
            (void)hv_err_set(
                err, HV_ENO,
                "schedule \"%s\" puts %zu chunks on stage %zu, the plan gives it %zu layer ranges",
                l->row->name, chunk + 1, home, st->n_ranges);
            return schedule_finding(l, err);
        }
        for (size_t p = 0; p < u->n_pipes; p++) {
            struct hv__gstage *x = &u->gstages[p * u->n_gstages + g];
            x->plan_stage = home;
            x->rank = (size_t)s->stage_to_rank[p * u->n_gstages + g];
            x->range = st->ranges[chunk];
            x->again = again[g];
            x->embedding = st->embedding < 0 ? g == 0 : st->embedding && chunk == 0;
            x->head = st->head < 0 ? g + 1 == u->n_gstages : st->head && chunk + 1 == st->n_ranges;
            enum hv_status status = price_gstage(l, u, x, err);
            if (status != HV_OK) {
                return status;
            }
        }
    }
    return HV_OK;
}

/** Bytes that a micro-batch (or slice) hands on, on average where they differ. */
static double hop_bytes(const struct hv__unit *u, const struct hv__gstage *g)
{
    double bytes = 0;
    size_t n = (size_t)u->n_mb * (size_t)(u->n_slices > 1 ? u->n_slices : 1);
    size_t n_dp = u->ranks[g->rank].n_dp;
    for (size_t i = 0; i < u->n_shapes; i++) {
        for (size_t d = 0; d < n_dp; d++) {
            bytes += u->n_of_shape[i] / (double)n * g->pass[i * n_dp + d].hop_bytes;
        }
    }
    return bytes;
}

/** Hop cost of every edge of the stage graph, both ways. */
static void price_hops(struct hv__lowered *l, struct hv__unit *u)
{
    u->hop_s = hv_arena_new(l->arena, double, (size_t)u->pipe.n_hops + 1);
    for (size_t p = 0; p < u->n_pipes; p++) {
        for (int32_t e = 0; e < u->schedule.graph.n_edges; e++) {
            const struct hv__gstage *a =
                &u->gstages[p * u->n_gstages + (size_t)u->schedule.graph.from[e]];
            const struct hv__gstage *b =
                &u->gstages[p * u->n_gstages + (size_t)u->schedule.graph.to[e]];
            if (a->rank == b->rank) {
                continue;
            }
            struct hv__rank *ra = &u->ranks[a->rank];
            const struct hv__rank *rb = &u->ranks[b->rank];
            const struct hv_cluster *c = hv_cost_cluster(l->k);
            double bytes = hop_bytes(u, a);
            double there =
                hv_cost_hop(c, ra->devices, ra->n_devices, rb->devices, rb->n_devices, bytes, NULL);
            double back =
                hv_cost_hop(c, rb->devices, rb->n_devices, ra->devices, ra->n_devices, bytes, NULL);
            u->hop_s[hv_pipe_hop(&u->pipe, false, (int32_t)p, e)] = there;
            u->hop_s[hv_pipe_hop(&u->pipe, true, (int32_t)p, e)] = back;
            if (p == 0) {
                ra->hop_next_s = there;
            }
        }
    }
    u->cost.hop_s = u->hop_s;
}

static double kind_s(const struct hv__gstage *g, size_t shape, unsigned kind)
{
    switch ((enum hv_op_kind)kind) {
    case HV_OP_F:
        return g->forward_s[shape];
    case HV_OP_B:
        return g->input_grad_s[shape];
    case HV_OP_W:
        return g->weight_grad_s[shape];
    case HV_OP_BW:
        return g->input_grad_s[shape] + g->weight_grad_s[shape];
    case HV_OP_R:
        return g->again ? g->recompute_s[shape] : g->forward_s[shape];
    case HV_OP_KIND_N:
        break;
    }
    return 0;
}

/** Duration tables: per stage where all micro-batches are alike and there is one direction, else
 * per op. */
static void fill_durations(struct hv__lowered *l, struct hv__unit *u)
{
    if (u->n_shapes == 1 && u->n_pipes == 1) {
        u->stage_s = hv_arena_new(l->arena, double, u->n_gstages *HV_OP_KIND_N);
        for (size_t g = 0; g < u->n_gstages; g++) {
            for (unsigned kind = 0; kind < HV_OP_KIND_N; kind++) {
                u->stage_s[g * HV_OP_KIND_N + kind] = kind_s(&u->gstages[g], 0, kind);
            }
        }
        u->cost.stage_s = u->stage_s;
        return;
    }
    size_t n = hv_schedule_n_ops(&u->schedule);
    u->op_s = hv_arena_new(l->arena, double, n);
    for (size_t i = 0; i < n; i++) {
        const struct hv_op *op = &u->schedule.ops[i];
        const struct hv__gstage *g =
            &u->gstages[(size_t)op->pipe * u->n_gstages + (size_t)op->stage];
        size_t k = (size_t)(u->n_slices > 1 ? u->n_slices : 1);
        size_t at = (size_t)op->mb * k + (op->slice > 0 ? (size_t)op->slice : 0);
        u->op_s[i] = kind_s(g, (size_t)u->shape_of[at], op->kind);
    }
    u->cost.op_s = u->op_s;
}

static enum hv_status compile_schedule(struct hv__lowered *l, struct hv__unit *u,
                                       const struct decide *by, struct hv_err *err)
{
    enum hv_status st = make_schedule(l, u, by, err);
    if (st != HV_OK) {
        return schedule_finding(l, err);
    }
    st = hv_pipe_compile(l->arena, &u->schedule, &u->pipe, err);
    if (st != HV_OK) {
        hv_finding_add(l->findings, HV_V_ORDER_DEADLOCK, HV_UNKNOWN, "schedule", "%s", err->text);
        return HV_ENO;
    }
    return HV_OK;
}

/** Once the first order has said where stages sit, and so what they cost, schedulers that decide by
 * cost decide again. Placement and hops stay as they are. */
static enum hv_status schedule_by_cost(struct hv__lowered *l, struct hv__unit *u,
                                       struct hv_err *err)
{
    struct hv_stage_cost *costs = hv_arena_new(l->arena, struct hv_stage_cost, u->n_gstages);
    struct decide by = {costs, 0};
    for (size_t g = 0; g < u->n_gstages; g++) {
        const struct hv__gstage *x = &u->gstages[g];
        costs[g] = (struct hv_stage_cost){x->forward_s[0], x->input_grad_s[0], x->weight_grad_s[0]};
    }
    for (int32_t i = 0; i < u->pipe.n_hops; i++) {
        by.hop_s = fmax(by.hop_s, u->hop_s[i]);
    }
    return compile_schedule(l, u, &by, err);
}

static enum hv_status lower_unit(struct hv__lowered *l, struct hv__unit *u, struct hv_err *err)
{
    fill_ranks(l, u);
    int64_t m = u->replica->micro_batches;
    if (m < 1 || m > HV_SCHEDULE_MB_MAX) {
        return hv_err_set(err, HV_ENO, "%lld micro-batches: give every replica between 1 and %d",
                          (long long)m, HV_SCHEDULE_MB_MAX);
    }
    u->n_mb = (int32_t)m;
    if (l->stale && (l->row->flags & HV_SCHEDULE_ASYNC) && u->replica->list == NULL) {
        /* the steady state shows only after the pipeline has filled several times */
        int32_t want = (int32_t)(STEADY_FILLS * u->n_ranks);
        u->n_mb = want > u->n_mb ? want : u->n_mb;
    }
    enum hv_status st = compile_schedule(l, u, &(struct decide){NULL, 0}, err);
    if (st != HV_OK) {
        return st;
    }
    u->n_slices = u->schedule.n_slices;
    find_shapes(l, u);
    st = fill_gstages(l, u, err);
    if (st == HV_OK) {
        st = price_memory(l, u, err);
    }
    if (st == HV_OK) {
        price_hops(l, u);
    }
    if (st == HV_OK && (l->row->flags & HV_SCHEDULE_BY_COST)) {
        st = schedule_by_cost(l, u, err);
    }
    if (st == HV_OK) {
        fill_durations(l, u);
    }
    return st;
}

enum hv_status hv__lower(struct hv__lowered *l, struct hv_err *err)
{
    enum hv_status st = hv_schedule_find(l->plan->schedule.name, &l->row, err);
    if (st != HV_OK) {
        return schedule_finding(l, err);
    }
    const struct hv_sync *y = &l->plan->sync;
    l->stale = (l->row->flags & HV_SCHEDULE_ASYNC) != 0 || y->kind == HV_SYNC_WSP ||
               y->kind == HV_SYNC_PARTIAL || y->kind == HV_SYNC_GOSSIP ||
               (y->kind == HV_SYNC_PS && y->staleness > 0);
    find_units(l);
    for (size_t u = 0; u < l->n_units; u++) {
        st = lower_unit(l, &l->units[u], err);
        if (st != HV_OK) {
            return st;
        }
    }
    return HV_OK;
}
