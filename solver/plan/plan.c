/*
 * The plan: creation, release, defaults and the queries that need only the plan itself. Validity is
 * checked in check.c; files are read and written in solver/io/own.
 */
#include "solver/plan/plan.h"

#include "solver/base/units.h"
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TILE = 128, DEFAULT_ZERO_LIMIT = 2 };

/* Schedules that order several stages (chunks, directions or free orders) on one device. */
static const char *const sharing_schedules[] = {
    "interleaved", "breadth-first", "group-interleaved",
    "chimera",     "hanayo",        "zb-v",
    "1f1b-v",      "v-half",        "v-min",
    "v-adaptive",  "dualpipe",      "dualpipev",
    "distmm",      "explicit",      "tessel",
    "graphpipe",
};

void hv_plan_unref(struct hv_plan *p)
{
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->n_jobs; i++) {
        hv_plan_unref(p->jobs[i].plan);
    }
    hv_cluster_unref(p->cluster);
    hv_arena_free(&p->arena);
    free(p);
}

/* Every knob at its default; the list of buckets is in the plan's arena. */
static void plan_defaults(struct hv_plan *p)
{
    p->micro_batch = 1;
    p->schedule.name = "1f1b";
    p->schedule.slices = 1;
    p->cache_mark_frac = 1;
    p->partial_inference = true;
    p->sync.overlap = true;
    p->sync.connect = true;
    p->sync.bucket_bytes = hv_arena_new(&p->arena, double, 1);
    p->sync.bucket_bytes[0] = HV_PLAN_BUCKET_BYTES;
    p->sync.n_buckets = 1;
    p->sync.servers = "sharded";
    p->claimed.iteration_s = p->claimed.tokens_per_s = HV_UNKNOWN;
}

struct hv_plan *hv_plan_new(struct hv_cluster *cluster)
{
    struct hv_plan *p = hv_xcalloc(1, sizeof *p);
    p->cluster = cluster ? hv_cluster_ref(cluster) : NULL;
    plan_defaults(p);
    return p;
}

void hv_stage_defaults(struct hv_stage *s)
{
    s->embedding = s->head = -1;
    s->n_after = -1;
    s->tp = (struct hv_tp){.scheme = HV_TP_1D, .degree = 1, .depth = 1};
    s->cp = (struct hv_cp){.degree = 1, .ulysses = 1, .inner = 1, .tile = DEFAULT_TILE};
    s->dp = 1;
    s->ep = 1;
    s->zero = (struct hv_zero){.reshard = true, .prefetch = 1, .limit = DEFAULT_ZERO_LIMIT};
}

enum hv_zero_reduce hv_zero_default_reduce(int stage, int shard_group)
{
    if (stage < 2) {
        return HV_REDUCE_END;
    }
    return shard_group > 0 ? HV_REDUCE_TWO_HOP : HV_REDUCE_EACH;
}

bool hv_zero_scatters(const struct hv_zero *z)
{
    return z->stage >= 1 && z->reduce != HV_REDUCE_END;
}

bool hv_zero_sums_groups(const struct hv_zero *z)
{
    return z->stage >= 1 && z->reduce == HV_REDUCE_EACH;
}

enum hv_sync_algorithm hv_zero_gather_algorithm(const struct hv_zero *z,
                                                enum hv_sync_algorithm automatic)
{
    switch (z->gather) {
    case HV_GATHER_FLAT:
        return HV_ALGO_RING;
    case HV_GATHER_HIERARCHICAL:
        return HV_ALGO_HIERARCHICAL;
    case HV_GATHER_AUTO:
    case hv_zero_gather_N:
        break;
    }
    return automatic;
}

void hv_moe_defaults(struct hv_moe_knobs *k)
{
    k->from = k->to = -1;
    k->adapt = (struct hv_adapting){.interval = 1, .experts = 1};
    k->expert_shards = k->degree_forward = k->degree_backward = 1;
    k->off_node_frac = k->compress_ratio = k->compress_bytes_per_s = HV_UNKNOWN;
}

size_t hv_stage_ranks(const struct hv_replica *r, const struct hv_stage *s)
{
    return r->count > 0 ? s->n_devices / (size_t)r->count : 0;
}

int hv_stage_micro_batch(const struct hv_plan *p, const struct hv_replica *r,
                         const struct hv_stage *s)
{
    if (s->micro_batch > 0) {
        return s->micro_batch;
    }
    return r->micro_batch > 0 ? r->micro_batch : p->micro_batch;
}

bool hv_stage_module(const struct hv_model *m, const struct hv_stage *s, size_t *first2, size_t *n2)
{
    *first2 = 0;
    *n2 = 2 * m->n_blocks;
    if (s->module == NULL) {
        return true;
    }
    for (size_t i = 0; i < m->n_modules; i++) {
        *n2 = 2 * m->modules[i].model->n_blocks;
        if (strcmp(m->modules[i].name, s->module) == 0) {
            return true;
        }
        *first2 += *n2;
    }
    return false;
}

const struct hv_model *hv_stage_model(const struct hv_model *m, const struct hv_stage *s)
{
    for (size_t i = 0; s->module != NULL && i < m->n_modules; i++) {
        if (strcmp(m->modules[i].name, s->module) == 0) {
            return m->modules[i].model;
        }
    }
    return s->module == NULL ? m : NULL;
}

static bool same_module(const struct hv_stage *a, const struct hv_stage *b)
{
    if (a->module == NULL || b->module == NULL) {
        return a->module == b->module;
    }
    return strcmp(a->module, b->module) == 0;
}

/* First half block of the stage (its last, negated, when `last`), so that the smaller is the outer
 * one. */
static int outer_edge(const struct hv_stage *s, bool last)
{
    int edge = last ? -s->ranges[0].to2 : s->ranges[0].from2;
    for (size_t i = 1; i < s->n_ranges; i++) {
        int e = last ? -s->ranges[i].to2 : s->ranges[i].from2;
        edge = e < edge ? e : edge;
    }
    return edge;
}

static bool holds_nothing(const struct hv_stage *s)
{
    for (size_t i = 0; i < s->n_ranges; i++) {
        if (s->ranges[i].from2 != s->ranges[i].to2) {
            return false;
        }
    }
    return true;
}

/* True where stage `other` lies further out than stage i: it holds a block beyond all of stage i's,
 * or an empty range at the same edge. */
static bool is_beyond(const struct hv_replica *r, size_t other, size_t i, bool last)
{
    const struct hv_stage *o = &r->stages[other], *s = &r->stages[i];
    if (o->n_ranges == 0 || !same_module(o, s)) {
        return false;
    }
    int e = outer_edge(o, last), edge = outer_edge(s, last);
    bool outside = last ? other > i : other < i;
    return e < edge || (e == edge && outside && holds_nothing(o));
}

/*
 * The holder of the model's outermost block owns the embedding (or head). A stage with an empty
 * range at the same edge lies further out and takes it over. The nearest stages are compared first:
 * one further out is near for all but a few, so that the comparisons for all n stages of a module
 * are O(n log n) in any order of stages.
 */
static bool is_outermost(const struct hv_replica *r, size_t i, bool last)
{
    if (r->stages[i].n_ranges == 0) {
        return last ? i + 1 == r->n_stages : i == 0;
    }
    for (size_t d = 1; d < r->n_stages; d++) {
        if ((d <= i && is_beyond(r, i - d, i, last)) ||
            (d < r->n_stages - i && is_beyond(r, i + d, i, last))) {
            return false;
        }
    }
    return true;
}

/* True where some stage of the same module says that it holds the embedding (or head). */
static bool another_claims(const struct hv_replica *r, size_t i, bool last)
{
    for (size_t k = 0; k < r->n_stages; k++) {
        const struct hv_stage *o = &r->stages[k];
        if ((last ? o->head : o->embedding) == 1 && same_module(o, &r->stages[i])) {
            return true;
        }
    }
    return false;
}

static bool owns_end(const struct hv_replica *r, size_t i, bool last)
{
    int own = last ? r->stages[i].head : r->stages[i].embedding;
    if (own >= 0) {
        return own == 1;
    }
    return is_outermost(r, i, last) && !another_claims(r, i, last);
}

bool hv_stage_has_embedding(const struct hv_replica *r, size_t i)
{
    return owns_end(r, i, false);
}

bool hv_stage_has_head(const struct hv_replica *r, size_t i)
{
    return owns_end(r, i, true);
}

int64_t hv_replica_sequences(const struct hv_plan *p, const struct hv_replica *r)
{
    if (r->list == NULL) {
        return r->micro_batches * (r->micro_batch > 0 ? r->micro_batch : p->micro_batch);
    }
    int64_t sum = 0;
    for (int64_t i = 0; i < r->micro_batches; i++) {
        sum += r->list[i].sequences;
    }
    return sum;
}

/* True where weights have several holders that process different samples. */
static bool has_copies(const struct hv_plan *p)
{
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        if (i > 0 || r->count > 1) {
            return true;
        }
        for (size_t s = 0; s < r->n_stages; s++) {
            if (r->stages[s].dp > 1 || r->stages[s].cp.degree > 1) {
                return true;
            }
        }
    }
    return false;
}

bool hv_stage_branches(const struct hv_stage *s, size_t i)
{
    return s->n_after >= 0 && !(s->n_after == 1 && s->after[0] + 1 == (int)i) &&
           !(s->n_after == 0 && i == 0);
}

bool hv_plan_is_stale(const struct hv_plan *p)
{
    static const char family[] = "pipedream";
    if (strncmp(p->schedule.name, family, sizeof family - 1) == 0 ||
        strcmp(p->schedule.name, "hetpipe") == 0) {
        return true;
    }
    switch (p->sync.kind) {
    case HV_SYNC_WSP:
    case HV_SYNC_PARTIAL:
    case HV_SYNC_GOSSIP:
        return true;
    case HV_SYNC_PS:
        return p->sync.staleness > 0;
    case HV_SYNC_NONE:
        return has_copies(p);
    case HV_SYNC_ALLREDUCE:
    case hv_sync_kind_N:
        break;
    }
    return false;
}

bool hv_plan_schedule_shares_devices(const char *schedule)
{
    for (size_t i = 0; i < HV_COUNT(sharing_schedules); i++) {
        if (strcmp(sharing_schedules[i], schedule) == 0) {
            return true;
        }
    }
    return false;
}

bool hv_plan_shares_devices(const struct hv_plan *p)
{
    bool shared = false;
    if (!hv_plan_schedule_shares_devices(p->schedule.name)) {
        return false;
    }
    size_t *seen = hv_xcalloc(p->cluster->n_devices + 1, sizeof *seen); /* entry + 1 */
    for (size_t i = 0; i < p->n_replicas && !shared; i++) {
        for (size_t s = 0; s < p->replicas[i].n_stages; s++) {
            const struct hv_stage *x = &p->replicas[i].stages[s];
            for (size_t d = 0; d < x->n_devices; d++) {
                shared = shared || seen[x->devices[d]] == i + 1;
                seen[x->devices[d]] = i + 1;
            }
        }
    }
    free(seen);
    return shared;
}

int hv_cp_heads_degree(const struct hv_cp *cp)
{
    return cp->scheme == HV_CP_ULYSSES ? cp->degree : cp->ulysses;
}

int hv_moe_ep(const struct hv_stage *s, const struct hv_moe_knobs *k)
{
    int ep = k != NULL && k->ep > 0 ? k->ep : s->ep;
    return ep > 1 ? ep : 1;
}

int hv_stage_experts_over(const struct hv_stage *s)
{
    int ep = s->ep > 1 ? s->ep : 1;
    for (size_t i = 0; i < s->n_moe; i++) {
        ep = s->moe[i].ep > ep ? s->moe[i].ep : ep;
    }
    return ep;
}

const struct hv_moe_knobs *hv_stage_moe(const struct hv_stage *s, size_t block)
{
    const struct hv_moe_knobs *found = NULL;
    for (size_t i = 0; i < s->n_moe; i++) {
        const struct hv_moe_knobs *k = &s->moe[i];
        if (k->from < 0 || ((size_t)k->from <= block && block < (size_t)k->to)) {
            found = k;
        }
    }
    return found;
}

bool hv_stage_spreads(const struct hv_stage *s)
{
    return s->sequence_parallel || s->tp.scheme != HV_TP_1D;
}

int hv_tp_cuts(const struct hv_tp *tp)
{
    bool copies = tp->scheme == HV_TP_25D && tp->depth > 1 && tp->degree % tp->depth == 0;
    return tp->degree < 1 ? 1 : copies ? tp->degree / tp->depth : tp->degree;
}

double hv_tp_frac(const struct hv_tp *tp, size_t i)
{
    double sum = 0;
    for (int r = 0; tp->shares != NULL && r < tp->degree; r++) {
        sum += tp->shares[r];
    }
    return sum > 0 && (int64_t)i < tp->degree ? tp->shares[i] / sum : 1.0 / hv_tp_cuts(tp);
}

double hv_tp_largest_frac(const struct hv_tp *tp)
{
    size_t most = 0;
    for (int r = 1; tp->shares != NULL && r < tp->degree; r++) {
        most = tp->shares[r] > tp->shares[most] ? (size_t)r : most;
    }
    return hv_tp_frac(tp, most);
}

int hv_stage_expert_tp(const struct hv_stage *s, int ep)
{
    int64_t ranks = (int64_t)(s->dp > 0 ? s->dp : 1) * (s->cp.degree > 0 ? s->cp.degree : 1);
    bool folded = s->tp.scheme == HV_TP_1D && ep > 1 && ranks % ep != 0;
    return folded || s->tp.degree < 1 ? 1 : s->tp.degree;
}

bool hv_name_match(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}
