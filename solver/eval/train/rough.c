/** Approximated knobs of a plan. One row per knob: the condition, and how the judge treats the
 * knob. */
#include "solver/eval/train/steps.h"

#include <string.h>

struct list {
    struct hv_arena *arena;
    const char **items;
    size_t n, cap;
    const char *schedule; /**< name of the plan's */
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

/** A knob of a stage. */
static void add(struct list *l, size_t replica, size_t stage, const char *key, const char *text)
{
    add_line(l, hv_arena_printf(l->arena, "replicas[%zu].stages[%zu].%s: %s", replica, stage, key,
                                text));
}

/** A knob of the plan. */
static void add_plan(struct list *l, const char *key, const char *text)
{
    add_line(l, hv_arena_printf(l->arena, "%s: %s", key, text));
}

/** Knobs of experts that are set but timed differently. */
static void check_moe(struct list *l, size_t r, size_t i, const struct hv_moe_knobs *m)
{
    const struct {
        bool given;
        const char *key, *text;
    } rows[] = {
        {m->kernel != HV_MOE_GROUPED, "moe.kernel",
         "matrix products are timed as grouped products"},
        {m->order != HV_MOE_PLAIN, "moe.order",
         "chunks are timed in the plain order: all are sent before the first result returns"},
        {m->move != HV_MOE_TOKENS, "moe.move", "timed as if tokens moved to the experts"},
        {m->all_to_all == HV_A2A_TP, "moe.all_to_all",
         "timed as two hops without the tensor-parallel ranks"},
        {m->n_owners > 0, "moe.owners",
         "tokens and memory are those of the busiest rank, gradients are reduced as if experts "
         "were spread evenly"},
        {m->n_copies > 0, "moe.copies",
         "reductions between the copies of an expert and transfers of new copies take no time"},
        {m->n_target > 0, "moe.target", "tokens are routed evenly over the experts"},
        {hv_known(m->off_node_frac), "moe.off_node_frac",
         "tokens are routed evenly over the experts"},
        {hv_known(m->compress_ratio) && (m->degree_forward > 1 || m->degree_backward > 1),
         "moe.compress", "compression is timed on the link, not on the device"},
    };
    for (size_t k = 0; k < HV_COUNT(rows); k++) {
        if (rows[k].given) {
            add(l, r, i, rows[k].key, rows[k].text);
        }
    }
}

/** Context parallelism: schemes are timed as rings, all-to-alls over heads, or both. */
static void check_cp(struct list *l, size_t r, size_t i, const struct hv_cp *cp)
{
    if (cp->degree < 2) {
        return;
    }
    if (cp->scheme == HV_CP_LOONGTRAIN || cp->inner > 1) {
        add(l, r, i, "cp.inner", "an inner and an outer ring are timed as one");
    }
    if (cp->scheme > HV_CP_LOONGTRAIN) {
        add(l, r, i, "cp.scheme", "timed as a ring of keys and values");
    }
    if (cp->n_dims > 0) {
        add(l, r, i, "cp.dims", "all blocks are sharded along the sequence");
    }
}

/** ZeRO and FSDP. */
static void check_zero(struct list *l, size_t r, size_t i, const struct hv_stage *s)
{
    const struct hv_zero *z = &s->zero;
    if (z->gather_at == HV_GATHER_NEXT_FORWARD && (z->stage == 1 || z->stage == 2)) {
        add(l, r, i, "zero.gather_at",
            "weights are gathered at the end of the iteration, not hidden behind the next forward "
            "pass");
    }
    if (z->stage >= 3 && z->unit == HV_ZERO_STAGE && s->n_ranges > 1) {
        add(l, r, i, "zero.unit",
            "gathers are gathers are timed chunk by chunk; memory holds the whole stage");
    }
}

/** True where the schedule respects the limits of stages on micro-batches in flight. */
static bool decides_by_memory(const char *schedule)
{
    const struct hv_schedule_row *row = NULL;
    return hv_schedule_find(schedule, &row, NULL) == HV_OK &&
           (row->flags & HV_SCHEDULE_BY_MEMORY) != 0;
}

static void check_stage(struct list *l, size_t r, size_t i, const struct hv_stage *s)
{
    if (s->deal == HV_DEAL_TURNS && s->dp > 1) {
        add(l, r, i, "deal",
            "micro-batches that ranks take in turns are timed as if ranks split them: the "
            "throughput is right, the latency of a micro-batch is too low");
    }
    if (s->micro_batch > 0) {
        add(l, r, i, "micro_batch",
            "the stage is the stage is timed with the micro-batches of its replica");
    }
    if (s->in_flight > 0 && !decides_by_memory(l->schedule)) {
        add(l, r, i, "in_flight", "the schedule uses its own number of micro-batches in flight");
    }
    if (s->tp.scheme != HV_TP_1D) {
        add(l, r, i, "tp.scheme", "priced by communication volume only");
    }
    if (s->tp.degree > 1 && s->tp.regather) {
        add(l, r, i, "tp.regather", "inputs are gathered again in the way of sequence parallelism");
    }
    check_cp(l, r, i, &s->cp);
    check_zero(l, r, i, s);
    for (size_t k = 0; k < s->n_moe; k++) {
        check_moe(l, r, i, &s->moe[k]);
    }
    if (s->n_offload > 0) {
        add(l, r, i, "offload",
            s->offload[0].to_host
                ? "the capacity of the host's memory is not checked"
                : "the memory that other devices give to the offload is not counted");
    }
    if (s->n_ops > 0 || s->mesh.n > 0 || s->place.n > 0 || s->n_shard > 0 || s->fuse.n > 0) {
        add(l, r, i, "ops", "operators, meshes and placements are not simulated");
    }
    if (hv_stage_branches(s, i) && s->n_ranges > 1) {
        add(l, r, i, "after", "stages of several chunks are simulated as a chain");
    }
}

/** Approximated knobs of a serving plan, which runs forward only and has no iteration. */
static void check_serve(const struct hv_plan *p, struct list *l)
{
    for (size_t r = 0; r < p->n_replicas; r++) {
        for (size_t i = 0; i < p->replicas[r].n_stages; i++) {
            if (p->replicas[r].stages[i].zero.stage > 0) {
                add(l, r, i, "zero", "every rank of a serving plan holds its weights whole");
            }
        }
    }
}

/** True where micro-batches of a replica give samples of modules. */
static bool gives_samples(const struct hv_replica *r)
{
    for (int64_t k = 0; r->list != NULL && k < r->micro_batches; k++) {
        if (r->list[k].n_scales > 0) {
            return true;
        }
    }
    return false;
}

/** Approximated knobs of the gradient reduction. */
static void check_sync(const struct hv_sync *y, struct list *l)
{
    if (y->kind == HV_SYNC_PARTIAL && y->weights == HV_WEIGHTS_STALENESS) {
        add_plan(l, "sync.weights", "the spectral gap is computed for equal weights");
    }
    if (y->kind == HV_SYNC_PARTIAL || y->kind == HV_SYNC_GOSSIP) {
        add_plan(l, "sync.kind",
                 "groups that average at the same time do not slow each other down down");
    }
    if (y->n_buckets > 1) {
        add_plan(l, "sync.bucket_MiB", "the first size is used for all buckets");
    }
    if (y->cycle_s > 0 || y->chunk_bytes > 0 || y->priority != HV_PRIORITY_FIFO) {
        add_plan(l, "sync.cycle_ms",
                 "buckets are reduced whole, in the order in which they are ready");
    }
}

/** Approximated knobs of training plans. */
static void check_train(const struct hv_plan *p, struct list *l)
{
    for (size_t r = 0; r < p->n_replicas; r++) {
        if (gives_samples(&p->replicas[r])) {
            add_plan(l, "replicas.micro_batches",
                     "memory counts every micro-batch with the size of the largest");
        }
    }
    check_sync(&p->sync, l);
    if (strncmp(p->schedule.name, "dualpipe", strlen("dualpipe")) == 0) {
        add_plan(
            l, "schedule.name",
            "an overlapped pair takes as long as its forward and its backward one after the other");
    }
    if (p->schedule.n_slice_tokens > 0) {
        add_plan(l, "schedule.slices", "slices are timed as equal token counts");
    }
}

void hv__find_rough(const struct hv_plan *p, struct hv_arena *arena, struct hv_verdict *out)
{
    struct list l = {.arena = arena, .schedule = p->schedule.name};
    for (size_t r = 0; r < p->n_replicas; r++) {
        for (size_t i = 0; i < p->replicas[r].n_stages; i++) {
            check_stage(&l, r, i, &p->replicas[r].stages[i]);
        }
    }
    if (p->mode == HV_MODE_SERVE) {
        check_serve(p, &l);
    } else {
        check_train(p, &l);
    }
    if (hv_plan_shares_devices(p)) {
        add_plan(&l, "replicas", "stages on the same devices are timed as if each used them alone");
    }
    out->rough = l.items;
    out->n_rough = l.n;
}
