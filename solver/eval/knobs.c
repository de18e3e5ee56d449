/** The table of knobs, and the walk of a plan that finds its approximated values. */
#include "solver/eval/knobs.h"

#include <string.h>

#include "solver/base/units.h"
#include "solver/eval/train/steps.h"
#include "solver/plan/parts.h"
#include "solver/workload/router.h"

/* ---- conditions: stages
 * --------------------------------------------------------------------------- */

static bool zero_gathers_late(const struct hv_knob_place *p)
{
    const struct hv_zero *z = &p->stage->zero;
    return z->gather_at == HV_GATHER_NEXT_FORWARD && (z->stage == 1 || z->stage == 2) &&
           hv_plan_is_stale(p->plan);
}

/** True where a stage offloads to hosts whose memory the cluster does not give. */
static bool offloads_to_unknown_host(const struct hv_knob_place *p)
{
    const struct hv_stage *s = p->stage;
    bool to_host = false, known = p->cluster != NULL;
    for (size_t i = 0; i < s->n_offload; i++) {
        to_host = to_host || s->offload[i].to_host;
    }
    for (size_t i = 0; to_host && known && i < s->n_devices; i++) {
        uint32_t node = hv_cluster_node_of(p->cluster, s->devices[i]);
        known = hv_known(hv_cluster_group_of_node(p->cluster, node)->host_memory_bytes);
    }
    return to_host && !known;
}

static bool offloads_while_serving(const struct hv_knob_place *p)
{
    return p->plan->mode == HV_MODE_SERVE && p->stage->n_offload > 0;
}

/* ---- conditions: experts
 * ------------------------------------------------------------------------- */

/** True where no two tensor-parallel ranks would send the same tokens to the same experts. */
static bool moe_slices_unused(const struct hv_knob_place *p)
{
    const struct hv_stage *s = p->stage;
    int ep = hv_moe_ep(s, p->moe);
    bool same = s->tp.scheme == HV_TP_1D && s->tp.degree > 1 && ep > 1 &&
                hv_stage_expert_tp(s, ep) == s->tp.degree;
    return p->moe->all_to_all == HV_A2A_TP && !same;
}

/** True where there is nothing that OptSche would do at another time. */
static bool moe_order_unused(const struct hv_knob_place *p)
{
    const struct hv_moe_knobs *m = p->moe;
    bool chunks = m->degree_forward > 1 || m->degree_backward > 1;
    bool compresses = hv_known(m->compress_ratio) && hv_known(m->compress_bytes_per_s);
    return m->order == HV_MOE_OPTSCHE && !(chunks && compresses);
}

/** True where the experts of a stage are on every rank, so that no gate sends tokens elsewhere. */
static bool experts_everywhere(const struct hv_knob_place *p)
{
    return hv_moe_ep(p->stage, p->moe) < 2;
}

static bool moe_adapts_to_nothing(const struct hv_knob_place *p)
{
    const struct hv_router *r = p->job->routing;
    return p->moe->adapt.policy != HV_ADAPT_NONE && (hv_router_is_even(r) || r->iterations < 2);
}

static bool moe_off_node_unused(const struct hv_knob_place *p)
{
    return hv_known(p->moe->off_node_frac) && experts_everywhere(p);
}

static bool moe_target_unused(const struct hv_knob_place *p)
{
    return p->moe->n_target > 0 && experts_everywhere(p);
}

/* ---- conditions: the plan and its job
 * ------------------------------------------------------------ */

static bool trains(const struct hv_knob_place *p)
{
    return p->plan->mode != HV_MODE_SERVE;
}

/** True where sequences have the lengths of the job, and stages or replicas wait for each other. */
static bool lengths_without_list(const struct hv_knob_place *p)
{
    return trains(p) && p->job->n_lengths > 0 && hv__lengths_are_the_jobs(p->plan) &&
           hv__lengths_are_drawn(p->plan);
}

/** True where replicas do not wait for each other, and exchange the gradients of a stage at once.
 */
static bool exchanges_at_once(const struct hv_knob_place *p)
{
    return trains(p) && hv_plan_is_stale(p->plan);
}

static bool sync_bucket_list(const struct hv_knob_place *p)
{
    return exchanges_at_once(p) && p->plan->sync.n_buckets > 1;
}

static bool sync_cycle(const struct hv_knob_place *p)
{
    return exchanges_at_once(p) && p->plan->sync.cycle_s > 0;
}

/** True where gradients are reduced, and some stage has all-to-alls of experts. */
static bool exchanges_beside_reductions(const struct hv_knob_place *p)
{
    bool experts = false;
    for (size_t i = 0; i < p->plan->n_replicas; i++) {
        const struct hv_replica *r = &p->plan->replicas[i];
        for (size_t k = 0; k < r->n_stages; k++) {
            experts = experts || hv_stage_experts_over(&r->stages[k]) > 1;
        }
    }
    return experts && trains(p) && p->plan->sync.kind != HV_SYNC_NONE && !exchanges_at_once(p);
}

static bool sync_priority_over_nothing(const struct hv_knob_place *p)
{
    return trains(p) && p->plan->sync.priority != HV_PRIORITY_FIFO &&
           !exchanges_beside_reductions(p);
}

/** True where whole chunks of weights, or activations, move beside the passes of a stage. */
static bool moves_beside_passes(const struct hv_stage *s)
{
    bool moves = hv__scheduled_zero(s) != NULL;
    for (size_t i = 0; i < s->n_offload; i++) {
        moves = moves || s->offload[i].what == HV_OFFLOAD_ACTIVATIONS;
    }
    return moves;
}

static bool sync_priority_beside_moves(const struct hv_knob_place *p)
{
    const struct hv_schedule_row *row = NULL;
    enum hv_status st = hv_schedule_find(p->plan->schedule.name, &row, NULL);
    bool moves = st == HV_OK && (row->flags & HV_SCHEDULE_STASHES) != 0;
    for (size_t i = 0; i < p->plan->n_replicas; i++) {
        const struct hv_replica *r = &p->plan->replicas[i];
        for (size_t k = 0; k < r->n_stages; k++) {
            moves = moves || moves_beside_passes(&r->stages[k]);
        }
    }
    return moves && exchanges_beside_reductions(p);
}

/* ---- the table
 * ----------------------------------------------------------------------------------- */

/* clang-format off */
#define FULL(object, key)                        {object, key, NULL, NULL, NULL}
#define REFUSED(object, key)                     {object, key, "given", "not simulated yet", NULL}
#define APPROXIMATED(object, key, when, text, f) {object, key, when, text, f}
/* clang-format on */

/* Rows of one key stand behind each other: first what is simulated in full, if some values are. */
static const struct hv_knob rows[] = {
    FULL(HV_KNOB_STAGE, "devices"),
    FULL(HV_KNOB_STAGE, "module"),
    FULL(HV_KNOB_STAGE, "layers"),
    FULL(HV_KNOB_STAGE, "ops"),
    {HV_KNOB_STAGE, "ops", "a graph without operands, or operators that do not follow each other",
     "refused: operators are simulated with \"tensors\", in the order of the file", NULL},
    FULL(HV_KNOB_STAGE, "mesh"),
    {HV_KNOB_STAGE, "mesh", "a graph without operands",
     "refused: it does not say what operators read", NULL},
    FULL(HV_KNOB_STAGE, "shard"),
    {HV_KNOB_STAGE, "shard", "a graph without operands, no mesh",
     "refused: there is nothing to split, or to split over", NULL},
    REFUSED(HV_KNOB_STAGE, "place"),
    FULL(HV_KNOB_STAGE, "fuse"),
    {HV_KNOB_STAGE, "fuse", "a graph without operands",
     "refused: it does not say what operators read", NULL},
    FULL(HV_KNOB_STAGE, "embedding"),
    FULL(HV_KNOB_STAGE, "head"),
    FULL(HV_KNOB_STAGE, "after"),
    {HV_KNOB_STAGE, "after", "a stage of several chunks",
     "refused: branches are between stages, not between their chunks", NULL},
    FULL(HV_KNOB_STAGE, "micro_batch"),
    {HV_KNOB_STAGE, "micro_batch", "lists of micro-batches",
     "refused: a list gives the size of every micro-batch", NULL},
    FULL(HV_KNOB_STAGE, "tp.degree"),
    FULL(HV_KNOB_STAGE, "tp.depth"),
    FULL(HV_KNOB_STAGE, "tp.shares"),
    FULL(HV_KNOB_STAGE, "tp.scheme"),
    FULL(HV_KNOB_STAGE, "tp.regather"),
    {HV_KNOB_STAGE, "tp.regather", "true, another scheme than 3d",
     "refused: only 3d keeps gathered blocks", NULL},
    FULL(HV_KNOB_STAGE, "sequence_parallel"),
    FULL(HV_KNOB_STAGE, "cp.degree"),
    FULL(HV_KNOB_STAGE, "cp.ulysses"),
    FULL(HV_KNOB_STAGE, "cp.scheme"),
    FULL(HV_KNOB_STAGE, "cp.inner"),
    {HV_KNOB_STAGE, "cp.inner", "above 1, a scheme without nested rings or teams",
     "refused: the scheme has one ring, or none", NULL},
    FULL(HV_KNOB_STAGE, "cp.layout"),
    {HV_KNOB_STAGE, "cp.layout", "zigzag or striped, rsa, distflash and dsp",
     "refused: the scheme has an order of tokens of its own", NULL},
    FULL(HV_KNOB_STAGE, "cp.tile"),
    FULL(HV_KNOB_STAGE, "cp.order"),
    FULL(HV_KNOB_STAGE, "cp.backward"),
    {HV_KNOB_STAGE, "cp.backward", "q_do, a scheme without rings",
     "refused: the scheme has a backward exchange of its own", NULL},
    FULL(HV_KNOB_STAGE, "cp.dims"),
    {HV_KNOB_STAGE, "cp.dims", "given, another scheme than dsp",
     "refused: all blocks are cut along the sequence", NULL},
    FULL(HV_KNOB_STAGE, "dp"),
    FULL(HV_KNOB_STAGE, "shares"),
    FULL(HV_KNOB_STAGE, "deal"),
    {HV_KNOB_STAGE, "deal", "turns with ep, shares, zero 3, or zero 1 or 2 reduced each time",
     "refused: ranks that take turns run no exchanges together in their passes", NULL},
    FULL(HV_KNOB_STAGE, "ep"),
    FULL(HV_KNOB_MOE, "layers"),
    FULL(HV_KNOB_MOE, "ep"),
    FULL(HV_KNOB_MOE, "capacity_factor"),
    FULL(HV_KNOB_MOE, "min_capacity"),
    FULL(HV_KNOB_MOE, "expert_shards"),
    FULL(HV_KNOB_MOE, "degree"),
    FULL(HV_KNOB_MOE, "all_to_all"),
    APPROXIMATED(HV_KNOB_MOE, "all_to_all",
                 "tp_coordinated, no experts that a tensor-parallel group cuts",
                 "tensor-parallel ranks have no tokens in common to send, so all send directly",
                 moe_slices_unused),
    FULL(HV_KNOB_MOE, "kernel"),
    FULL(HV_KNOB_MOE, "dispatch"),
    {HV_KNOB_MOE, "dispatch",
     "one_hot without places of equal number, beside moved experts, on grids, of measured layers",
     "refused: the product has a column for every place of every expert", NULL},
    FULL(HV_KNOB_MOE, "order"),
    APPROXIMATED(HV_KNOB_MOE, "order", "optsche, without chunks or without timed compression",
                 "experts are the only work on a chunk, and both orders are the same",
                 moe_order_unused),
    FULL(HV_KNOB_MOE, "move"),
    FULL(HV_KNOB_MOE, "owners"),
    FULL(HV_KNOB_MOE, "copies"),
    FULL(HV_KNOB_MOE, "copy_life"),
    FULL(HV_KNOB_MOE, "prefetch"),
    FULL(HV_KNOB_MOE, "adapt"),
    APPROXIMATED(HV_KNOB_MOE, "adapt", "a job whose iterations are all routed alike",
                 "experts keep their places: there is nothing that a policy could follow",
                 moe_adapts_to_nothing),
    FULL(HV_KNOB_MOE, "target"),
    APPROXIMATED(HV_KNOB_MOE, "target", "without expert parallelism",
                 "every rank holds all experts: no token is sent", moe_target_unused),
    FULL(HV_KNOB_MOE, "off_node_frac"),
    APPROXIMATED(HV_KNOB_MOE, "off_node_frac", "without expert parallelism",
                 "every rank holds all experts: no token leaves it", moe_off_node_unused),
    FULL(HV_KNOB_MOE, "compress"),
    FULL(HV_KNOB_STAGE, "zero.stage"),
    {HV_KNOB_STAGE, "zero.stage", "above 0 in a serving plan",
     "refused: every rank of a serving plan holds its weights whole", NULL},
    FULL(HV_KNOB_STAGE, "zero.shard_group"),
    FULL(HV_KNOB_STAGE, "zero.unit"),
    {HV_KNOB_STAGE, "zero.unit", "chunk or stage, stage 3, where weights are stale",
     "refused: weights that are held change between micro-batches", NULL},
    FULL(HV_KNOB_STAGE, "zero.reshard"),
    FULL(HV_KNOB_STAGE, "zero.prefetch"),
    FULL(HV_KNOB_STAGE, "zero.limit"),
    FULL(HV_KNOB_STAGE, "zero.gather"),
    FULL(HV_KNOB_STAGE, "zero.gather_at"),
    APPROXIMATED(HV_KNOB_STAGE, "zero.gather_at",
                 "next_forward, stage 1 and 2, in a plan with stale weights",
                 "weights are gathered at the end of a wave, not hidden behind the next forward "
                 "pass",
                 zero_gathers_late),
    FULL(HV_KNOB_STAGE, "zero.reduce"),
    FULL(HV_KNOB_STAGE, "degrees"),
    {HV_KNOB_STAGE, "degrees", "a schedule of two directions",
     "refused: a rank runs blocks of two stages", NULL},
    FULL(HV_KNOB_STAGE, "recompute"),
    FULL(HV_KNOB_STAGE, "offload"),
    APPROXIMATED(HV_KNOB_STAGE, "offload", "to hosts of nodes without host_memory_GiB",
                 "whether it fits is not checked: the cluster does not say how much memory the "
                 "hosts have (host_memory_GiB of a node)",
                 offloads_to_unknown_host),
    APPROXIMATED(HV_KNOB_STAGE, "offload", "a serving plan",
                 "the memory of hosts and devices that keep offloads is not counted",
                 offloads_while_serving),
    FULL(HV_KNOB_STAGE, "in_flight"),
    FULL(HV_KNOB_PLAN, "replicas"),
    FULL(HV_KNOB_PLAN, "replicas.micro_batches"),
    FULL(HV_KNOB_PLAN, "schedule.name"),
    FULL(HV_KNOB_PLAN, "schedule.slices"),
    FULL(HV_KNOB_PLAN, "sync.kind"),
    FULL(HV_KNOB_PLAN, "sync.algorithm"),
    FULL(HV_KNOB_PLAN, "sync.bucket_MiB"),
    APPROXIMATED(HV_KNOB_PLAN, "sync.bucket_MiB", "a list, in a plan with stale weights",
                 "the gradients of a stage are exchanged at once", sync_bucket_list),
    FULL(HV_KNOB_PLAN, "sync.overlap"),
    FULL(HV_KNOB_PLAN, "sync.cycle_ms"),
    APPROXIMATED(HV_KNOB_PLAN, "sync.cycle_ms", "above 0, in a plan with stale weights",
                 "gradients are exchanged without waiting for the end of a cycle", sync_cycle),
    FULL(HV_KNOB_PLAN, "sync.chunk_MiB"),
    FULL(HV_KNOB_PLAN, "sync.priority"),
    APPROXIMATED(HV_KNOB_PLAN, "sync.priority",
                 "after_all_to_all, no all-to-alls of experts beside reductions",
                 "there are no exchanges that reductions could wait for",
                 sync_priority_over_nothing),
    APPROXIMATED(HV_KNOB_PLAN, "sync.priority",
                 "any, experts beside chunks of weights or activations that move beside the passes",
                 "passes do not wait for reductions: all-to-alls go first, without chunks",
                 sync_priority_beside_moves),
    FULL(HV_KNOB_PLAN, "sync.servers"),
    FULL(HV_KNOB_PLAN, "sync.staleness"),
    FULL(HV_KNOB_PLAN, "sync.group"),
    FULL(HV_KNOB_PLAN, "sync.weights"),
    FULL(HV_KNOB_PLAN, "sync.wait_ms"),
    FULL(HV_KNOB_PLAN, "sync.wait_most_ms"),
    FULL(HV_KNOB_PLAN, "sync.least"),
    FULL(HV_KNOB_PLAN, "sync.connect"),
    FULL(HV_KNOB_JOB, "sequence_lengths"),
    APPROXIMATED(HV_KNOB_JOB, "sequence_lengths", "several stages or replicas without lists",
                 "the expected time is that of 24 drawn iterations, in which copies of a replica "
                 "have micro-batches of equal lengths",
                 lengths_without_list),
};

const struct hv_knob *hv_knobs(size_t *n)
{
    *n = HV_COUNT(rows);
    return rows;
}

const char *hv_knob_prefix(enum hv_knob_object object)
{
    switch (object) {
    case HV_KNOB_STAGE:
        return "stage.";
    case HV_KNOB_MOE:
        return "stage.moe.";
    case HV_KNOB_JOB:
        return "job.";
    case HV_KNOB_PLAN:
        break;
    }
    return "";
}

/* ---- the walk
 * ------------------------------------------------------------------------------------ */

struct list {
    struct hv_arena *arena;
    const char **items;
    size_t n, cap;
};

/** Appends a line, which lives in the arena. */
static void add_line(struct list *l, const char *line)
{
    if (l->n == l->cap) {
        size_t cap = l->cap > 0 ? 2 * l->cap : 8;
        const char **items = hv_arena_new(l->arena, const char *, cap);
        if (l->n > 0) {
            memcpy(items, l->items, l->n * sizeof *items);
        }
        l->items = items;
        l->cap = cap;
    }
    l->items[l->n++] = line;
}

/** The path to an object at a place; made only for the few lines that need it. */
static const char *path_to(struct list *l, enum hv_knob_object object,
                           const struct hv_knob_place *p)
{
    if (p->stage == NULL) {
        return object == HV_KNOB_JOB ? "job." : "";
    }
    return hv_arena_printf(l->arena, "replicas[%zu].stages[%zu].%s",
                           (size_t)(p->replica - p->plan->replicas), p->stage_number,
                           object == HV_KNOB_MOE ? "moe." : "");
}

/** Appends all rows of one kind of object that apply at a place. */
static void add_rows(struct list *l, enum hv_knob_object object, const struct hv_knob_place *p)
{
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        const struct hv_knob *k = &rows[i];
        if (k->object == object && k->applies != NULL && k->applies(p)) {
            add_line(l,
                     hv_arena_printf(l->arena, "%s%s: %s", path_to(l, object, p), k->key, k->text));
        }
    }
}

/** Appends the rows of degrees that entries of `degrees` have and the stage's own do not. */
static void add_degrees(struct list *l, const struct hv_knob_place *p)
{
    for (size_t d = 0; d < p->stage->n_degrees; d++) {
        const struct hv_stage part = hv_stage_with_degrees(p->stage, &p->stage->degrees[d]);
        struct hv_knob_place own = *p;
        own.stage = &part;
        for (size_t i = 0; i < HV_COUNT(rows); i++) {
            const struct hv_knob *k = &rows[i];
            if (k->object == HV_KNOB_STAGE && k->applies != NULL && k->applies(&own) &&
                !k->applies(p)) {
                add_line(l, hv_arena_printf(l->arena, "%sdegrees[%zu].%s: %s",
                                            path_to(l, HV_KNOB_STAGE, p), d, k->key, k->text));
            }
        }
    }
}

static void add_stage(struct list *l, struct hv_knob_place *p)
{
    add_rows(l, HV_KNOB_STAGE, p);
    for (size_t k = 0; k < p->stage->n_moe; k++) {
        p->moe = &p->stage->moe[k];
        add_rows(l, HV_KNOB_MOE, p);
    }
    p->moe = NULL;
    add_degrees(l, p);
}

void hv__find_approximated(const struct hv_plan *p, const struct hv_cost *k, struct hv_arena *arena,
                           struct hv_verdict *out)
{
    struct list l = {.arena = arena};
    struct hv_knob_place at = {.plan = p, .job = hv_cost_job(k), .cluster = hv_cost_cluster(k)};
    for (size_t r = 0; r < p->n_replicas; r++) {
        at.replica = &p->replicas[r];
        for (size_t i = 0; i < p->replicas[r].n_stages; i++) {
            at.stage = &p->replicas[r].stages[i];
            at.stage_number = i;
            add_stage(&l, &at);
        }
    }
    at.replica = NULL;
    at.stage = NULL;
    add_rows(&l, HV_KNOB_PLAN, &at);
    add_rows(&l, HV_KNOB_JOB, &at);
    out->approximated = l.items;
    out->n_approximated = l.n;
}
