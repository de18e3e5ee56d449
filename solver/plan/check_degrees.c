/*
 * Rules D and E and all divisibility inside one stage: device counts, micro-batch shares, heads,
 * sequence, experts, zero groups.
 */
#include "solver/base/units.h"
#include "solver/plan/check_inside.h"
#include "solver/plan/parts.h"
#include <limits.h>
#include <stdlib.h>

/* Distinct dimensions of the blocks of one stage that degrees have to divide. */
struct block_shape {
    int heads, kv_heads, experts;
    bool mla;
};

static bool divides(int64_t part, int64_t whole)
{
    return part > 0 && whole % part == 0;
}

/* Ranks that heads are cut over; 0: the scheme has no such degree. */
static int heads_degree(const struct hv_tp *tp)
{
    return tp->scheme == HV_TP_1D ? tp->degree : hv_check_grid_side(tp);
}

/* Shards of unequal size: each rank has whole heads, and no other dimension is cut with them. */
static void check_tp_shares(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_tp *tp = &at->s->tp;
    if (tp->shares == NULL) {
        return;
    }
    if (tp->scheme != HV_TP_1D) {
        hv_check_stage_add(c, at, "tp.shares", HV_V_DIVISIBLE, HV_UNKNOWN,
                           "tp scheme %s supports equal shards only",
                           hv_tp_scheme_words[tp->scheme]);
    }
    if (at->s->cp.degree > 1) {
        hv_check_stage_add(c, at, "tp.shares", HV_V_DIVISIBLE, HV_UNKNOWN,
                           "unequal tensor shards cannot be combined with cp %d", at->s->cp.degree);
    }
    if (c->p->mode == HV_MODE_SERVE) {
        hv_check_stage_add(c, at, "tp.shares", HV_V_DIVISIBLE, HV_UNKNOWN,
                           "a plan that serves supports equal tensor shards only");
    }
}

static void check_product(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_stage *s = at->s;
    size_t count = (size_t)at->r->count;
    if (s->n_devices % count != 0) {
        hv_check_stage_add(c, at, "devices", HV_V_DEGREE_PRODUCT, (double)(s->n_devices % count),
                           "%zu devices cannot be cut into %zu equal parts", s->n_devices, count);
        return;
    }
    double ranks = (double)(s->n_devices / count), product = 1;
    if (s->place.n > 0) {
        return;
    }
    for (size_t i = 0; i < s->mesh.n; i++) {
        product *= strtod(s->mesh.values[i], NULL);
    }
    if (s->mesh.n == 0) {
        product = (double)s->dp * s->cp.degree * s->tp.degree;
    }
    if (product == ranks) {
        return;
    }
    if (s->mesh.n > 0) {
        hv_check_stage_add(c, at, "mesh", HV_V_DEGREE_PRODUCT, ranks - product,
                           "the mesh has %.0f places, the stage has %.0f devices", product, ranks);
    } else {
        hv_check_stage_add(c, at, "tp", HV_V_DEGREE_PRODUCT, ranks - product,
                           "dp %d x cp %d x tp %d = %.0f, the stage has %.0f devices", s->dp,
                           s->cp.degree, s->tp.degree, product, ranks);
    }
}

/* Rule D: how dp ranks share a micro-batch. */
static void check_split(const struct hv_check *c, const struct hv_check_stage *at, int64_t size)
{
    const struct hv_stage *s = at->s;
    if (s->shares == NULL) {
        if (!divides(s->dp, size)) {
            hv_check_stage_add(c, at, "dp", HV_V_DIVISIBLE, (double)(size % s->dp),
                               "a micro-batch of %lld sequences does not divide into %d equal "
                               "shares; give shares",
                               (long long)size, s->dp);
        }
        return;
    }
    int64_t sum = 0;
    for (int i = 0; i < s->dp; i++) {
        sum += s->shares[i];
    }
    if (sum != size) {
        hv_check_stage_add(c, at, "shares", HV_V_DIVISIBLE, (double)(size - sum),
                           "the shares hold %lld sequences, the micro-batch has %lld",
                           (long long)sum, (long long)size);
    }
}

static void check_shares(const struct hv_check *c, const struct hv_check_stage *at)
{
    if (at->s->deal != HV_DEAL_SPLIT || at->s->dp == 1 || c->p->mode == HV_MODE_SERVE) {
        return;
    }
    if (at->r->list == NULL) {
        check_split(c, at, hv_stage_micro_batch(c->p, at->r, at->s));
        return;
    }
    size_t before = c->out->n; /* one finding per list: the first wrong entry */
    for (int64_t i = 0; i < at->r->micro_batches && c->out->n == before; i++) {
        check_split(c, at, at->r->list[i].sequences);
    }
}

/* A micro-batch of the stage's own size divides the sequences of the pipeline. */
static void check_own_micro_batch(const struct hv_check *c, const struct hv_check_stage *at)
{
    int64_t all = hv_replica_sequences(c->p, at->r), own = at->s->micro_batch;
    if (own > 0 && c->p->mode != HV_MODE_SERVE && all % own != 0) {
        hv_check_stage_add(c, at, "micro_batch", HV_V_DIVISIBLE, (double)(all % own),
                           "the %lld sequences of the pipeline do not divide into micro-batches of "
                           "%lld",
                           (long long)all, (long long)own);
    }
}

/* Checks that the shares give every rank whole heads and whole key-value heads. */
static void check_head_shares(const struct hv_check *c, const struct hv_check_stage *at,
                              const struct block_shape *b)
{
    const struct hv_tp *tp = &at->s->tp;
    int64_t sum = 0, kv = b->mla ? b->heads : b->kv_heads;
    for (int i = 0; i < tp->degree; i++) {
        sum += tp->shares[i];
    }
    for (int i = 0; i < tp->degree; i++) {
        if (divides(sum, (int64_t)b->heads * tp->shares[i]) && divides(sum, kv * tp->shares[i])) {
            continue;
        }
        hv_check_stage_add(c, at, "tp.shares", HV_V_HEADS, HV_UNKNOWN,
                           "share %d of %lld cuts %d attention heads (%lld of keys and values) "
                           "into parts that are not whole heads",
                           tp->shares[i], (long long)sum, b->heads, (long long)kv);
        return;
    }
}

static void check_heads(const struct hv_check *c, const struct hv_check_stage *at,
                        const struct block_shape *b)
{
    int tp = heads_degree(&at->s->tp), heads_cp = hv_cp_heads_degree(&at->s->cp);
    if (b->heads == 0 || tp == 0) {
        return;
    }
    if (at->s->tp.shares != NULL) {
        check_head_shares(c, at, b);
        return;
    }
    if (!divides(tp, b->heads)) {
        hv_check_stage_add(c, at, "tp", HV_V_HEADS, b->heads % tp,
                           "%d attention heads are not divisible by tp %d", b->heads, tp);
        return;
    }
    if (!b->mla && !divides(tp, b->kv_heads) && !divides(b->kv_heads, tp)) {
        hv_check_stage_add(c, at, "tp", HV_V_HEADS, HV_UNKNOWN,
                           "%d key-value heads can be neither split over tp %d nor copied evenly",
                           b->kv_heads, tp);
    }
    if (!divides(heads_cp, b->heads / tp)) {
        hv_check_stage_add(c, at, "cp", HV_V_HEADS, b->heads / tp % heads_cp,
                           "%d attention heads per tp rank are not divisible by the heads part %d",
                           b->heads / tp, heads_cp);
    }
}

static void check_owners(const struct hv_check *c, const struct hv_check_stage *at,
                         const struct hv_moe_knobs *k, int ep, int experts)
{
    if (k->n_owners > 0 && k->n_owners != (size_t)experts) {
        hv_check_stage_add(
            c, at, "moe.owners", HV_V_DIVISIBLE, (double)experts - (double)k->n_owners,
            "owners has %zu entries, the block has %d experts", k->n_owners, experts);
    }
    for (size_t i = 0; i < k->n_owners; i++) {
        if (k->owners[i] >= ep) {
            hv_check_stage_add(c, at, "moe.owners", HV_V_DIVISIBLE, k->owners[i] - ep + 1,
                               "expert %zu is on rank %d, there are %d expert-parallel ranks", i,
                               k->owners[i], ep);
            break;
        }
    }
    for (size_t i = 0; i < k->n_copies; i++) {
        bool bad = k->copies[i].expert >= experts;
        for (size_t r = 0; r < k->copies[i].n_ranks && !bad; r++) {
            bad = k->copies[i].ranks[r] >= ep;
        }
        if (bad) {
            hv_check_stage_add(
                c, at, "moe.copies", HV_V_DIVISIBLE, HV_UNKNOWN,
                "copies of expert %d name an expert or rank outside %d experts on %d "
                "ranks",
                k->copies[i].expert, experts, ep);
            break;
        }
    }
}

/* The experts of the first block from `from` to before `to` that has some; 0: none has. */
static int experts_between(const struct hv_check *c, size_t first, size_t n, int from, int to)
{
    for (int i = from; i < to && 2 * (size_t)i < n; i++) {
        const struct hv_block *b = hv_check_block(c, first + 2 * (size_t)i);
        if (b == NULL || b->experts > 0) {
            return b != NULL ? b->experts : 0;
        }
    }
    return 0;
}

/* Every recorded placement, against the experts of the first block with some that it is of. */
static void check_records(const struct hv_check *c, const struct hv_check_stage *at,
                          const struct hv_moe_knobs *k, size_t first, size_t n)
{
    for (size_t i = 0; i < k->adapt.n_placements; i++) {
        const struct hv_placement *p = &k->adapt.placements[i];
        int from = p->from > k->from ? p->from : k->from > 0 ? k->from : 0;
        int to = p->to < 0 ? k->to : k->to >= 0 && k->to < p->to ? k->to : p->to;
        int experts = experts_between(c, first, n, from, to < 0 ? INT_MAX : to);
        struct hv_moe_knobs as = *k;
        as.owners = p->owners;
        as.n_owners = p->n_owners;
        as.copies = p->copies;
        as.n_copies = p->n_copies;
        if (experts > 0) {
            check_owners(c, at, &as, hv_moe_ep(at->s, k), experts);
        }
    }
}

/* Experts are spread over ep ranks; with expert_shards a rank holds 1/shards of one. */
static void check_experts(const struct hv_check *c, const struct hv_check_stage *at,
                          const struct hv_moe_knobs *k, int experts)
{
    int ep = hv_moe_ep(at->s, k);
    int shards = k != NULL ? k->expert_shards : 1;
    if (!divides(shards, ep)) {
        hv_check_stage_add(c, at, "moe.expert_shards", HV_V_DIVISIBLE, ep % shards,
                           "ep %d is not divisible by expert_shards %d", ep, shards);
    }
    if (experts == 0) {
        return;
    }
    if ((k == NULL || k->n_owners == 0) && !divides(ep, (int64_t)experts * shards)) {
        hv_check_stage_add(c, at, "ep", HV_V_DIVISIBLE, (double)((int64_t)experts * shards % ep),
                           "%d experts in %d shards each are not divisible by ep %d", experts,
                           shards, ep);
    }
    if (k != NULL) {
        check_owners(c, at, k, ep, experts);
    }
}

/* Experts cut by tensor parallelism are spread over dp × cp; whole ones over all ranks. */
static void check_ep_ranks(const struct hv_check *c, const struct hv_check_stage *at)
{
    int64_t ranks = (int64_t)at->s->dp * at->s->cp.degree;
    bool folds = at->s->tp.scheme == HV_TP_1D && at->s->tp.degree > 1;
    int64_t all = folds ? ranks * at->s->tp.degree : ranks;
    for (size_t i = 0; i <= at->s->n_moe; i++) {
        int ep = i == 0 ? at->s->ep : at->s->moe[i - 1].ep;
        if (ep == 0 || divides(ep, ranks) || divides(ep, all)) {
            continue;
        }
        hv_check_stage_add(c, at, i == 0 ? "ep" : "moe.ep", HV_V_DIVISIBLE, (double)(all % ep),
                           "%s = %lld is not divisible by ep %d",
                           folds ? "dp x cp x tp" : "dp x cp", (long long)all, ep);
        break;
    }
}

static bool same_shape(const struct block_shape *a, const struct block_shape *b)
{
    return a->heads == b->heads && a->kv_heads == b->kv_heads && a->experts == b->experts &&
           a->mla == b->mla;
}

/* Checks each distinct shape of the stage's blocks once, as long as equal ones follow each other.
 */
static void check_block_shapes(const struct hv_check *c, const struct hv_check_stage *at)
{
    size_t first = 0, n = 0, before = c->out->n;
    struct block_shape seen = {.heads = -1};
    const struct hv_moe_knobs *seen_knobs = NULL;
    if (!hv_check_module(c, at->s, &first, &n)) {
        return;
    }
    for (size_t k = 0; k < at->s->n_ranges; k++) {
        for (size_t h = (size_t)at->s->ranges[k].from2 / 2 * 2;
             h < (size_t)at->s->ranges[k].to2 && h < n; h += 2) {
            const struct hv_block *b = hv_check_block(c, first + h);
            if (b == NULL) {
                return;
            }
            struct block_shape shape = {b->heads, b->kv_heads, b->experts, b->mla.kv_rank > 0};
            const struct hv_moe_knobs *knobs = hv_stage_moe(at->s, h / 2);
            if (same_shape(&shape, &seen) && knobs == seen_knobs) {
                continue;
            }
            check_heads(c, at, &shape);
            check_experts(c, at, knobs, shape.experts);
            seen = shape;
            seen_knobs = knobs;
            if (c->out->n > before) {
                return;
            }
        }
    }
    for (size_t i = 0; i < at->s->n_moe; i++) {
        check_records(c, at, &at->s->moe[i], first, n);
    }
}

static int64_t scale_of_sequence(const struct hv_stage *s)
{
    int heads = hv_cp_heads_degree(&s->cp);
    bool zigzag = s->cp.layout == HV_CP_ZIGZAG && s->cp.degree > heads;
    return (int64_t)s->cp.degree * (zigzag ? 2 : 1);
}

static void check_sequence(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_stage *s = at->s;
    const struct hv_model *m = c->m;
    bool lengths = at->r->list != NULL && at->r->list[0].tokens > 0;
    int64_t parts = scale_of_sequence(s);
    if (s->cp.degree % hv_cp_heads_degree(&s->cp) != 0) {
        hv_check_stage_add(c, at, "cp", HV_V_DIVISIBLE, s->cp.degree % hv_cp_heads_degree(&s->cp),
                           "cp degree %d is not divisible by its heads part %d", s->cp.degree,
                           hv_cp_heads_degree(&s->cp));
    } else if (s->cp.degree / hv_cp_heads_degree(&s->cp) % s->cp.inner != 0) {
        hv_check_stage_add(c, at, "cp", HV_V_DIVISIBLE, HV_UNKNOWN,
                           "the ring of %d ranks is not divisible by inner %d",
                           s->cp.degree / hv_cp_heads_degree(&s->cp), s->cp.inner);
    }
    int ring = s->cp.degree / hv_cp_heads_degree(&s->cp);
    if (s->cp.scheme == HV_CP_WALLFACER && ring % (s->cp.inner * s->cp.inner) != 0) {
        hv_check_stage_add(c, at, "cp", HV_V_DIVISIBLE, ring % (s->cp.inner * s->cp.inner),
                           "wallfacer with teams of %d needs a multiple of %d ranks, the ring has "
                           "%d: take an inner whose square divides it",
                           s->cp.inner, s->cp.inner * s->cp.inner, ring);
    }
    if (lengths || m->kind != HV_MODEL_TRANSFORMER) {
        return;
    }
    if (!divides(parts, c->j->sequence)) {
        hv_check_stage_add(c, at, "cp", HV_V_DIVISIBLE, (double)(c->j->sequence % parts),
                           "a sequence of %lld tokens is not divisible into %lld parts (cp %d, "
                           "layout %s)",
                           (long long)c->j->sequence, (long long)parts, s->cp.degree,
                           hv_cp_layout_words[s->cp.layout]);
    } else if (s->sequence_parallel && !divides(s->tp.degree, c->j->sequence / s->cp.degree)) {
        hv_check_stage_add(c, at, "sequence_parallel", HV_V_DIVISIBLE,
                           (double)(c->j->sequence / s->cp.degree % s->tp.degree),
                           "%lld tokens per cp rank are not divisible by tp %d",
                           (long long)(c->j->sequence / s->cp.degree), s->tp.degree);
    }
}

static void check_zero(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_stage *s = at->s;
    int64_t holders = (int64_t)s->dp * s->cp.degree * at->r->count;
    if (s->zero.shard_group > 0 && !divides(s->zero.shard_group, holders)) {
        hv_check_stage_add(c, at, "zero", HV_V_DIVISIBLE, (double)(holders % s->zero.shard_group),
                           "%lld holders (dp x cp x count) are not divisible by shard_group %d",
                           (long long)holders, s->zero.shard_group);
    }
}

/* A list of recompute choices has one entry per block that the stage touches. */
static void check_recompute(const struct hv_check *c, const struct hv_check_stage *at)
{
    size_t blocks = 0;
    for (size_t k = 0; k < at->s->n_ranges; k++) {
        struct hv_range r = at->s->ranges[k];
        if (r.to2 > r.from2) {
            blocks += (size_t)((r.to2 + 1) / 2 - r.from2 / 2);
        }
    }
    if (at->s->n_recompute_per > 0 && at->s->n_ranges > 0 && at->s->n_recompute_per != blocks) {
        hv_check_stage_add(c, at, "recompute", HV_V_DIVISIBLE,
                           (double)blocks - (double)at->s->n_recompute_per,
                           "recompute lists %zu entries, the stage has %zu blocks",
                           at->s->n_recompute_per, blocks);
    }
}

static void check_one_set(const struct hv_check *c, const struct hv_check_stage *at)
{
    hv_check_schemes(c, at);
    check_tp_shares(c, at);
    check_product(c, at);
    check_shares(c, at);
    check_own_micro_batch(c, at);
    check_block_shapes(c, at);
    check_ep_ranks(c, at);
    check_sequence(c, at);
    check_zero(c, at);
}

/* What cannot be combined with degrees of some blocks only. */
static void check_mixed(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_stage *s = at->s;
    bool tp_shares = s->tp.shares != NULL;
    for (size_t i = 0; i < s->n_degrees; i++) {
        tp_shares = tp_shares || s->degrees[i].tp.shares != NULL;
    }
    const struct {
        bool given;
        const char *what;
    } rows[] = {
        {s->shares != NULL, "shares of unequal size"},
        {tp_shares, "unequal tensor shards"},
        {s->deal != HV_DEAL_SPLIT, "deal turns"},
        {s->module != NULL, "a stage of one module"},
        {c->p->mode == HV_MODE_SERVE, "a plan that serves"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (rows[i].given) {
            hv_check_stage_add(c, at, "degrees", HV_V_DIVISIBLE, HV_UNKNOWN,
                               "degrees of some layers cannot be combined with %s", rows[i].what);
        }
    }
}

/* Entries name blocks that the stage holds. */
static void check_spans(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_stage *s = at->s;
    for (size_t i = 0; i < s->n_degrees; i++) {
        bool held = false;
        for (size_t k = 0; k < s->n_ranges; k++) {
            held = held || (2 * s->degrees[i].from < s->ranges[k].to2 &&
                            s->ranges[k].from2 < 2 * s->degrees[i].to);
        }
        if (!held) {
            hv_check_stage_add(c, at, "degrees", HV_V_DIVISIBLE, HV_UNKNOWN,
                               "degrees are given for layers %d to %d, of which the stage has none",
                               s->degrees[i].from, s->degrees[i].to);
        }
    }
}

/* Every part by the rules of a stage of its own. */
static void check_parts(const struct hv_check *c, const struct hv_check_stage *at)
{
    struct hv_part_walk w = {.replica = at->r, .stage = at->stage};
    size_t before = c->out->n; /* parts of one set of degrees are told once */
    while (c->out->n == before && hv_stage_next_part(&w)) {
        struct hv_check_stage own = *at;
        own.s = &w.part;
        check_one_set(c, &own);
    }
}

void hv_check_degrees(const struct hv_check *c, const struct hv_check_stage *at)
{
    if (at->s->n_degrees > 0 && at->s->n_ranges > 0) {
        check_mixed(c, at);
        check_spans(c, at);
        check_parts(c, at);
    } else {
        check_one_set(c, at);
    }
    check_recompute(c, at);
}
