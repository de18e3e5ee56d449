/*
 * Each property of hv_says in one function over a stage, or over the plan. The first stage of the
 * first replica entry is what others are compared with.
 */
#include "solver/plan/says.h"

#include "solver/base/units.h"
#include "solver/base/vec.h"

#include <string.h>

/** A check that is going on. */
struct check {
    const struct hv_plan *p;
    const struct hv_says_limits *can;
    struct hv_arena *arena;
    HV_VEC(struct hv_unsaid) found;
};

/** A stage and its place. */
struct at {
    size_t i_replica, i_stage;
    const struct hv_replica *replica;
    const struct hv_stage *stage, *first; /**< first: of the entry */
};

static void add(struct check *c, enum hv_says what, const struct at *at, const char *key,
                const char *text)
{
    size_t replica = at != NULL ? at->i_replica : HV_UNSAID_PLAN;
    size_t stage = at != NULL ? at->i_stage : HV_UNSAID_PLAN;
    const struct hv_unsaid *last = c->found.n > 0 ? &c->found.items[c->found.n - 1] : NULL;
    if (last != NULL && last->what == what && last->replica == replica && last->stage == stage) {
        return;
    }
    hv_vec_push(&c->found, (struct hv_unsaid){what, replica, stage, key, text});
}

/** Adds a finding where `has` and the target has no words for it. */
static void need(struct check *c, bool has, enum hv_says what, const struct at *at, const char *key,
                 const char *text)
{
    if (has && (c->can->says & HV_SAYS_BIT(what)) == 0) {
        add(c, what, at, key, text != NULL ? text : hv_says_text(what));
    }
}

/** True where the target says the property only of sharded states, and the stage shards none. */
static bool lacks_shards(const struct check *c, const struct hv_stage *s, enum hv_says what)
{
    return (c->can->only_sharded & HV_SAYS_BIT(what)) != 0 &&
           (s->zero.stage == 0 || hv_plan_data_ranks(c->p) * s->cp.degree <= 1);
}

/* ---- one stage --------------------------------------------------------------------------------
 */

/** Half blocks of all chunks. */
static int halves_of(const struct hv_stage *s)
{
    int sum = 0;
    for (size_t i = 0; i < s->n_ranges; i++) {
        sum += s->ranges[i].to2 - s->ranges[i].from2;
    }
    return sum;
}

static bool cuts_inside(const struct hv_stage *s)
{
    bool odd = false;
    for (size_t i = 0; i < s->n_ranges; i++) {
        odd = odd || s->ranges[i].from2 % 2 != 0 || s->ranges[i].to2 % 2 != 0;
    }
    return odd;
}

static void check_layers(struct check *c, const struct at *at)
{
    const struct hv_stage *s = at->stage, *f = at->first;
    struct hv_arena *a = c->arena;
    need(c, at->i_stage > 0, HV_SAYS_STAGES, at, "layers", NULL);
    need(c, s->n_ranges > 1, HV_SAYS_CHUNKS, at, "layers", NULL);
    if (s->n_ranges != f->n_ranges) {
        need(c, true, HV_SAYS_ORDER, at, "layers",
             hv_arena_printf(a, "%zu chunks of layers beside %zu of stage 0", s->n_ranges,
                             f->n_ranges));
    }
    need(c, cuts_inside(s), HV_SAYS_HALVES, at, "layers", NULL);
    if (halves_of(s) != halves_of(f)) {
        need(c, true, HV_SAYS_UNEVEN, at, "layers",
             hv_arena_printf(a, "%g layers beside %g of stage 0", halves_of(s) / 2.0,
                             halves_of(f) / 2.0));
    }
}

static void check_degrees(struct check *c, const struct at *at)
{
    const struct hv_stage *s = at->stage, *f = at->first;
    const struct {
        const char *key;
        int own, first;
    } rows[] = {{"tp", s->tp.degree, f->tp.degree},
                {"cp", s->cp.degree, f->cp.degree},
                {"ep", hv_stage_experts_over(s), hv_stage_experts_over(f)},
                {"sequence_parallel", s->sequence_parallel, f->sequence_parallel}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (rows[i].own != rows[i].first) {
            need(c, true, HV_SAYS_STAGE_DEGREES, at, rows[i].key,
                 hv_arena_printf(c->arena, "%s %d beside %s %d of stage 0", rows[i].key,
                                 rows[i].own, rows[i].key, rows[i].first));
        }
    }
    if (s->dp != f->dp) {
        need(c, true, HV_SAYS_STAGE_DP, at, "dp",
             hv_arena_printf(c->arena, "dp %d beside dp %d of stage 0", s->dp, f->dp));
    }
    need(c, s->deal == HV_DEAL_TURNS && s->dp > 1, HV_SAYS_STAGE_DP, at, "deal",
         "data-parallel ranks that take micro-batches in turns");
    need(c, s->n_degrees > 0, HV_SAYS_LAYER_DEGREES, at, "degrees", NULL);
    need(c, s->tp.scheme != HV_TP_1D, HV_SAYS_TENSOR_GRIDS, at, "tp.scheme", NULL);
}

/** Context parallelism as the lists of the table write it: scheme, or scheme/layout. */
static void check_context(struct check *c, const struct at *at)
{
    const struct hv_cp *cp = &at->stage->cp;
    if (cp->degree <= 1) {
        return;
    }
    const char *scheme = hv_cp_scheme_words[cp->scheme], *layout = hv_cp_layout_words[cp->layout];
    const char *both = hv_arena_printf(c->arena, "%s/%s", scheme, layout);
    bool plain = cp->inner <= 1 && cp->n_dims == 0 && cp->order == HV_CP_HEADS_INNER;
    bool other = cp->scheme != at->first->cp.scheme || cp->layout != at->first->cp.layout;
    const char *more = at->replica->n_stages == 1 ? c->can->cp_alone : NULL;
    bool said =
        hv_target_list_has(c->can->cp, both) || hv_target_list_has(c->can->cp, scheme) ||
        (more != NULL && (hv_target_list_has(more, both) || hv_target_list_has(more, scheme)));
    if (c->can->cp != NULL && (!plain || other || !said)) {
        add(c, HV_SAYS_CP, at, "cp",
            hv_arena_printf(c->arena, "context parallelism %s", other ? "that differs" : both));
    }
}

static bool shares_differ(const int *shares, int n)
{
    for (int i = 1; shares != NULL && i < n; i++) {
        if (shares[i] != shares[0]) {
            return true;
        }
    }
    return false;
}

static void check_shares(struct check *c, const struct at *at)
{
    const struct hv_stage *s = at->stage;
    int batch = hv_stage_micro_batch(c->p, at->replica, s);
    need(c, shares_differ(s->shares, s->dp), HV_SAYS_SHARES, at, "shares",
         "unequal shares of a micro-batch");
    need(c, shares_differ(s->tp.shares, s->tp.degree), HV_SAYS_SHARES, at, "tp.shares",
         "unequal tensor shards");
    need(c,
         s->micro_batch != 0 &&
             s->micro_batch != hv_stage_micro_batch(c->p, at->replica, at->first),
         HV_SAYS_SHARES, at, "micro_batch", "a micro-batch of its own");
    need(c, s->deal == HV_DEAL_SPLIT && s->shares == NULL && batch % s->dp != 0, HV_SAYS_SHARES, at,
         "dp", "a micro-batch that does not divide over its data-parallel ranks");
}

static bool places_experts(const struct hv_moe_knobs *k)
{
    return k->n_owners > 0 || k->n_copies > 0 || k->n_target > 0 || k->expert_shards > 1 ||
           k->degree_forward > 1 || k->degree_backward > 1 || k->order != HV_MOE_PLAIN ||
           k->move != HV_MOE_TOKENS || k->adapt.policy != HV_ADAPT_NONE ||
           hv_known(k->compress_ratio) || hv_known(k->off_node_frac) || k->from >= 0 || k->ep > 0;
}

static void check_experts(struct check *c, const struct at *at)
{
    const struct hv_stage *s = at->stage;
    need(c, hv_stage_experts_over(s) > 1, HV_SAYS_EXPERTS, at, "ep", NULL);
    for (size_t i = 0; i < s->n_moe; i++) {
        need(c, places_experts(&s->moe[i]), HV_SAYS_EXPERT_PLACES, at, "moe", NULL);
        need(c, s->moe[i].capacity_factor > 0, HV_SAYS_CAPACITY, at, "moe.capacity_factor", NULL);
    }
}

static bool same_zero(const struct hv_zero *a, const struct hv_zero *b)
{
    return a->stage == b->stage && a->shard_group == b->shard_group && a->reshard == b->reshard;
}

static void check_zero(struct check *c, const struct at *at)
{
    const struct hv_zero *z = &at->stage->zero;
    int64_t holders = hv_plan_data_ranks(c->p) * at->stage->cp.degree;
    const char *list = at->replica->n_stages > 1 ? c->can->zero : c->can->zero_alone;
    if (list == NULL || holders <= 1) {
        return;
    }
    bool own_way =
        z->stage > 0 && (z->unit != HV_ZERO_LAYER || z->gather == HV_GATHER_HIERARCHICAL);
    if (!same_zero(z, &at->first->zero)) {
        add(c, HV_SAYS_ZERO, at, "zero", "another ZeRO stage than stage 0");
    } else if (!hv_target_list_has(list, hv_arena_printf(c->arena, "%d", z->stage))) {
        add(c, HV_SAYS_ZERO, at, "zero",
            hv_arena_printf(c->arena, "ZeRO %d%s", z->stage,
                            at->replica->n_stages > 1 ? " beside pipeline stages" : ""));
    } else if (own_way) {
        add(c, HV_SAYS_ZERO, at, "zero", "gathers of chunks, of stages or in two steps");
    }
    need(c, z->stage > 0 && z->shard_group > 0 && z->shard_group < holders, HV_SAYS_SHARD_GROUPS,
         at, "zero.shard_group", NULL);
}

/** Units that all layers of the stage recompute; *differ: they do not agree. */
static unsigned recompute_of(const struct hv_stage *s, bool *differ)
{
    *differ = false;
    for (size_t i = 1; i < s->n_recompute_per; i++) {
        *differ = *differ || s->recompute_per[i] != s->recompute_per[0];
    }
    return s->n_recompute_per > 0 ? s->recompute_per[0] : s->recompute;
}

static void check_recompute(struct check *c, const struct at *at)
{
    bool differ, first_differs;
    unsigned mask = recompute_of(at->stage, &differ);
    unsigned first = recompute_of(at->first, &first_differs);
    const char *word = mask == HV_RC_NONE   ? "none"
                       : mask == HV_RC_CORE ? "selective"
                       : mask == HV_RC_FULL ? "full"
                                            : "units";
    need(c, differ, HV_SAYS_LAYER_RECOMPUTE, at, "recompute", NULL);
    if (!differ && !hv_target_list_has(c->can->recompute, word)) {
        add(c, HV_SAYS_RECOMPUTE, at, "recompute",
            hv_arena_printf(c->arena, "recomputation of %s",
                            mask == HV_RC_CORE ? "the attention core" : "single units"));
    }
    if (mask != HV_RC_NONE && lacks_shards(c, at->stage, HV_SAYS_RECOMPUTE)) {
        add(c, HV_SAYS_RECOMPUTE, at, "recompute", "recomputation without ZeRO");
    }
    need(c, !differ && !first_differs && mask != first, HV_SAYS_STAGE_RECOMPUTE, at, "recompute",
         NULL);
}

/** What is offloaded to the host in full, as a set of the lists: "optimizer+weights"; NULL: in part
 * or elsewhere. */
static const char *offloaded(const struct hv_stage *s, struct hv_arena *a)
{
    bool has[hv_offload_what_N] = {false};
    for (size_t i = 0; i < s->n_offload; i++) {
        const struct hv_offload *o = &s->offload[i];
        if (!o->to_host || o->frac < 1) {
            return NULL;
        }
        has[o->what] = true;
    }
    const char *set = "";
    for (int i = 0; i < hv_offload_what_N; i++) {
        if (has[i]) {
            set = hv_arena_printf(a, "%s%s%s", set, set[0] != '\0' ? "+" : "",
                                  hv_offload_what_words[i]);
        }
    }
    return set;
}

static void check_offload(struct check *c, const struct at *at)
{
    if (c->can->offload == NULL || (at->stage->n_offload == 0 && at->first->n_offload == 0)) {
        return;
    }
    const char *set = offloaded(at->stage, c->arena), *first = offloaded(at->first, c->arena);
    if (set == NULL) {
        add(c, HV_SAYS_OFFLOAD, at, "offload", "offloading in part, or to other devices");
    } else if (set[0] != '\0' && !hv_target_list_has(c->can->offload, set)) {
        add(c, HV_SAYS_OFFLOAD, at, "offload",
            hv_arena_printf(c->arena, "%s in the host's memory", set));
    } else if (set[0] != '\0' && lacks_shards(c, at->stage, HV_SAYS_OFFLOAD)) {
        add(c, HV_SAYS_OFFLOAD, at, "offload", "offloading without ZeRO");
    } else if (first != NULL && strcmp(set, first) != 0) {
        add(c, HV_SAYS_OFFLOAD, at, "offload", "offloading that differs from that of stage 0");
    }
}

static void check_form(struct check *c, const struct at *at)
{
    const struct hv_stage *s = at->stage;
    size_t last = at->replica->n_stages - 1;
    need(c, s->n_ops > 0 || s->module != NULL, HV_SAYS_FORM, at, "layers",
         "operators or a module instead of layers");
    need(c, s->mesh.n > 0 || s->n_shard > 0 || s->place.n > 0 || s->fuse.n > 0, HV_SAYS_FORM, at,
         "mesh", "layouts of single operators");
    need(c, hv_stage_branches(s, at->i_stage), HV_SAYS_FORM, at, "after",
         "inputs from other stages than the one before it");
    need(c,
         (s->embedding >= 0 && s->embedding != (at->i_stage == 0)) ||
             (s->head >= 0 && s->head != (at->i_stage == last && s->n_ranges == 1)),
         HV_SAYS_FORM, at, "embedding", "the embedding or the head in another stage");
    need(c, s->in_flight > 0, HV_SAYS_ORDER, at, "in_flight", "a cap on micro-batches in flight");
}

static void check_fabrics(struct check *c, const struct at *at)
{
    const struct hv_stage *s = at->stage;
    if (s->n_devices == 0 || at->first->n_devices == 0 ||
        (c->can->says & HV_SAYS_BIT(HV_SAYS_KINDS))) {
        return;
    }
    const char *first =
        hv_cluster_device(c->p->cluster, c->p->replicas[0].stages[0].devices[0]).kind->fabric;
    for (size_t i = 0; i < s->n_devices; i++) {
        const char *own = hv_cluster_device(c->p->cluster, s->devices[i]).kind->fabric;
        if (first != NULL && own != NULL && strcmp(own, first) != 0) {
            add(c, HV_SAYS_KINDS, at, "devices",
                hv_arena_printf(c->arena, "devices of %s beside %s", own, first));
            return;
        }
    }
}

/* ---- the plan ---------------------------------------------------------------------------------
 */

int64_t hv_plan_data_ranks(const struct hv_plan *p)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        if (p->replicas[i].n_stages > 0) {
            sum += (int64_t)p->replicas[i].count * p->replicas[i].stages[0].dp;
        }
    }
    return sum;
}

static bool same_layers(const struct hv_stage *a, const struct hv_stage *b)
{
    bool same = a->n_ranges == b->n_ranges;
    for (size_t i = 0; same && i < a->n_ranges; i++) {
        same = a->ranges[i].from2 == b->ranges[i].from2 && a->ranges[i].to2 == b->ranges[i].to2;
    }
    return same;
}

/** True where a stage of another entry has the same shape; its number of copies may differ. */
static bool same_shape(const struct hv_stage *a, const struct hv_stage *b)
{
    bool differ;
    return same_layers(a, b) && a->tp.degree == b->tp.degree && a->tp.scheme == b->tp.scheme &&
           a->cp.degree == b->cp.degree && a->cp.scheme == b->cp.scheme && a->dp == b->dp &&
           hv_stage_experts_over(a) == hv_stage_experts_over(b) &&
           a->sequence_parallel == b->sequence_parallel && same_zero(&a->zero, &b->zero) &&
           recompute_of(a, &differ) == recompute_of(b, &differ);
}

static void check_replica(struct check *c, size_t i)
{
    const struct hv_replica *r = &c->p->replicas[i], *f = &c->p->replicas[0];
    struct at at = {i, 0, r, &r->stages[0], &r->stages[0]};
    if (r->n_stages != f->n_stages) {
        need(c, true, HV_SAYS_REPLICAS, &at, "stages",
             hv_arena_printf(c->arena, "%zu stages beside %zu of replica entry 0", r->n_stages,
                             f->n_stages));
        return;
    }
    if (r->micro_batches != f->micro_batches || r->micro_batch != f->micro_batch) {
        need(c, true, HV_SAYS_REPLICAS, &at, "micro_batches",
             "other micro-batches than replica entry 0");
    }
    for (size_t k = 0; k < r->n_stages; k++) {
        at.i_stage = k;
        need(c, !same_shape(&r->stages[k], &f->stages[k]), HV_SAYS_REPLICAS, &at, "stages",
             "another stage than in replica entry 0");
    }
}

static bool lengths_differ(const struct hv_replica *r)
{
    for (int64_t i = 0; r->list != NULL && i < r->micro_batches; i++) {
        if (r->list[i].sequences != r->list[0].sequences ||
            r->list[i].tokens != r->list[0].tokens || r->list[i].n_scales > 0 ||
            r->list[i].n_documents > 0) {
            return true;
        }
    }
    return false;
}

/** Options of a schedule that the target states too: the group of interleaved stages. */
static bool option_is_known(const struct hv_plan_schedule *s, const struct hv_option *o)
{
    return strcmp(s->name, "interleaved") == 0 && strcmp(o->key, "group") == 0;
}

static void check_schedule(struct check *c)
{
    const struct hv_plan_schedule *s = &c->p->schedule;
    bool several = false;
    for (size_t i = 0; i < c->p->n_replicas; i++) {
        const struct hv_replica *r = &c->p->replicas[i];
        several = several || r->n_stages > 1 || (r->n_stages == 1 && r->stages[0].n_ranges > 1);
    }
    need(c, s->slices > 1 || s->n_slice_tokens > 0, HV_SAYS_SLICES, NULL, "schedule.slices", NULL);
    need(c, hv_plan_is_stale(c->p) || c->p->sync.kind != HV_SYNC_ALLREDUCE, HV_SAYS_SYNC, NULL,
         "sync", NULL);
    if (!several) { /* there is nothing to order */
        return;
    }
    if (!hv_target_list_has(c->can->schedules, s->name) && c->can->schedules[0] != '\0') {
        add(c, HV_SAYS_SCHEDULE, NULL, "schedule.name",
            hv_arena_printf(c->arena, "schedule %s", s->name));
    }
    for (size_t i = 0; i < s->n_options; i++) {
        need(c, !option_is_known(s, &s->options[i]), HV_SAYS_ORDER, NULL, "schedule",
             hv_arena_printf(c->arena, "option %s of schedule %s", s->options[i].key, s->name));
    }
}

/** Ranks of all entries one after the other: runs of one node, equally long, each node once. */
static void check_places(struct check *c)
{
    const struct hv_plan *p = c->p;
    if ((c->can->says & HV_SAYS_BIT(HV_SAYS_PLACES)) != 0) {
        return;
    }
    bool *seen = hv_arena_new(c->arena, bool, p->cluster->n_nodes + 1);
    size_t run = 0, length = 0;
    uint32_t node = UINT32_MAX;
    bool even = true;
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_stage *s = &p->replicas[i].stages[0];
        for (size_t k = 0; p->replicas[i].n_stages > 0 && k < s->n_devices; k++) {
            uint32_t own = hv_cluster_node_of(p->cluster, s->devices[k]);
            if (own != node && node != UINT32_MAX) {
                length = length == 0 ? run : length;
                even = even && run == length;
                run = 0;
            }
            even = even && (own == node || !seen[own]);
            seen[own] = true;
            node = own;
            run++;
        }
    }
    need(c, !even || (length > 0 && run != length), HV_SAYS_PLACES, NULL, "devices", NULL);
}

static void check_stage(struct check *c, const struct at *at)
{
    check_layers(c, at);
    check_degrees(c, at);
    check_context(c, at);
    check_shares(c, at);
    check_experts(c, at);
    check_zero(c, at);
    check_recompute(c, at);
    check_offload(c, at);
    check_form(c, at);
    check_fabrics(c, at);
}

size_t hv_plan_beyond(const struct hv_plan *p, const struct hv_says_limits *can,
                      struct hv_arena *arena, struct hv_unsaid **out)
{
    struct check c = {.p = p, .can = can, .arena = arena};
    need(&c, p->n_jobs > 0, HV_SAYS_JOBS, NULL, "jobs", "several jobs");
    need(&c, p->mode == HV_MODE_SERVE, HV_SAYS_JOBS, NULL, "mode", "a plan that serves");
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        for (size_t k = 0; k < r->n_stages; k++) {
            check_stage(&c, &(struct at){i, k, r, &r->stages[k], &r->stages[0]});
        }
        need(&c, lengths_differ(r), HV_SAYS_SHARES, NULL, "micro_batches", "unequal micro-batches");
        if (i > 0 && r->n_stages > 0 && p->replicas[0].n_stages > 0) {
            check_replica(&c, i);
        }
    }
    if (p->n_replicas > 0) {
        check_schedule(&c);
        check_places(&c);
    }
    size_t n = c.found.n;
    *out = n > 0 ? hv_arena_copy(arena, c.found.items, n, sizeof *c.found.items) : NULL;
    hv_vec_free(&c.found);
    return n;
}

size_t hv_plan_unsaid(const struct hv_plan *p, enum hv_target_id t, struct hv_arena *arena,
                      struct hv_unsaid **out)
{
    *out = NULL;
    return t == HV_TARGET_ANY ? 0 : hv_plan_beyond(p, &hv_target_row(t)->can, arena, out);
}

size_t hv_plan_not_run(const struct hv_plan *p, enum hv_runtime r, struct hv_arena *arena,
                       struct hv_unsaid **out)
{
    *out = NULL;
    return r == HV_RUNTIME_HETVIZ ? 0 : hv_plan_beyond(p, &hv_runtime_row(r)->can, arena, out);
}

bool hv_target_says(enum hv_target_id t, const struct hv_plan *p)
{
    struct hv_arena arena = {0};
    struct hv_unsaid *found;
    size_t n = hv_plan_unsaid(p, t, &arena, &found);
    hv_arena_free(&arena);
    return n == 0;
}

bool hv_runtime_runs(enum hv_runtime r, const struct hv_plan *p)
{
    struct hv_arena arena = {0};
    struct hv_unsaid *found;
    size_t n = hv_plan_not_run(p, r, &arena, &found);
    hv_arena_free(&arena);
    return n == 0;
}

void hv_unsaid_text(const struct hv_plan *p, const struct hv_unsaid *u, struct hv_str *out)
{
    if (u->stage != HV_UNSAID_PLAN && p->n_replicas > 1) {
        hv_str_addf(out, "stage %zu of replica entry %zu: ", u->stage, u->replica);
    } else if (u->stage != HV_UNSAID_PLAN) {
        hv_str_addf(out, "stage %zu: ", u->stage);
    }
    hv_str_adds(out, u->text);
}
