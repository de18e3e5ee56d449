/** Lanes for painters: a compute lane and a link lane per pipeline rank, with memory over time. */
#include "solver/eval/moves/moves.h"
#include "solver/eval/timeline/timeline_int.h"

static const char *const span_letters[HV_SPAN_KIND_N] = {
#define X(c, letter, text) letter,
    HV_SPAN_MAP(X)
#undef X
};
static const char *const span_texts[HV_SPAN_KIND_N] = {
#define X(c, letter, text) text,
    HV_SPAN_MAP(X)
#undef X
};

const char *hv_span_kind_letter(enum hv_span_kind k)
{
    return span_letters[k];
}

const char *hv_span_kind_text(enum hv_span_kind k)
{
    return span_texts[k];
}

static uint8_t span_kind(uint8_t op_kind)
{
    static const uint8_t map[HV_OP_KIND_N] = {HV_SPAN_F, HV_SPAN_B, HV_SPAN_W, HV_SPAN_BW,
                                              HV_SPAN_R};
    return map[op_kind];
}

/** Compute spans of one rank: its operations, then the optimizer. */
static void paint_compute(struct hv__painter *p, const struct hv__pipeline *pl, size_t rank,
                          const bool *critical, const double *slack)
{
    int32_t row = (int32_t)p->t->n_rows - 1;
    p->n_spans = 0;
    p->first_op[row] = (int32_t)p->t->n_ops;
    for (int32_t n = pl->pipe->rank_node_at[rank]; n < pl->pipe->rank_node_at[rank + 1]; n++) {
        size_t first = hv_pipe_first_op(pl->pipe, n), next = hv_pipe_first_op(pl->pipe, n + 1);
        const struct hv_op *op = &pl->schedule->ops[first];
        uint8_t kind = next - first > 1 ? (uint8_t)HV_SPAN_PAIR : span_kind(op->kind);
        int32_t id =
            hv__paint_op(p, (struct hv_timeline_op){.stage = op->stage,
                                                    .micro_batch = op->mb,
                                                    .slice = op->slice,
                                                    .paired = next - first > 1 ? op[1].mb : -1,
                                                    .kind = kind,
                                                    .critical = critical[n],
                                                    .slack_s = slack[n]});
        hv__paint_span(p, pl->run.node_start_s[n], pl->run.node_end_s[n], id);
    }
    const struct hv__rank *rk = &pl->ranks[rank];
    if (!p->l->schedule.stale && rk->optimizer_s > 0) {
        int32_t id = hv__paint_op(
            p, (struct hv_timeline_op){
                   .stage = (int32_t)rk->stage,
                   .micro_batch = -1,
                   .slice = -1,
                   .kind = HV_SPAN_OPT,
                   .critical = hv__path_has(p->path, row, HV_SPAN_OPT, rk->sync_end_s)});
        hv__paint_span(p, rk->sync_end_s, rk->sync_end_s + rk->optimizer_s, id);
    }
    if (!p->l->schedule.stale && p->l->iteration.step_s > 0) {
        double before = fmax(p->l->iteration.total_s - p->l->iteration.step_s,
                             rk->sync_end_s + rk->optimizer_s);
        int32_t id = hv__paint_op(
            p,
            (struct hv_timeline_op){.stage = (int32_t)rk->stage,
                                    .micro_batch = -1,
                                    .slice = -1,
                                    .kind = HV_SPAN_STEP,
                                    .critical = hv__path_has(p->path, row, HV_SPAN_STEP, before)});
        hv__paint_span(p, before, p->l->iteration.total_s, id);
    }
}

/** Link spans of one rank: gathers beside its first passes, reductions it takes part in, its gather
 * at the end. */
static void paint_link(struct hv__painter *p, const struct hv__pipeline *pl, size_t i_pipeline,
                       size_t rank)
{
    p->n_spans = 0;
    const struct hv__rank *rk = &pl->ranks[rank];
    size_t flat = p->l->pipelines.rank_at[i_pipeline] + rank;
    if (rk->late_gather_s > 0) {
        int32_t id = hv__paint_op(p, (struct hv_timeline_op){.stage = (int32_t)rk->stage,
                                                             .micro_batch = -1,
                                                             .slice = -1,
                                                             .kind = HV_SPAN_GATHER});
        hv__paint_span(p, 0, rk->late_gather_s, id);
    }
    for (size_t i = 0; i < p->l->iteration.n_reductions; i++) {
        const struct hv__reduction *r = &p->l->iteration.reductions[i];
        for (size_t k = 0; k < r->n_ranks; k++) {
            if (r->ranks[k] == flat) {
                int32_t id = hv__paint_op(
                    p, (struct hv_timeline_op){.stage = (int32_t)rk->stage,
                                               .micro_batch = -1,
                                               .slice = -1,
                                               .kind = HV_SPAN_SYNC,
                                               .critical = hv__path_has(p->path, (int32_t)flat,
                                                                        HV_SPAN_SYNC, r->start_s)});
                hv__paint_span(p, r->start_s, r->end_s, id);
                break;
            }
        }
    }
    for (size_t i = 0; i < pl->waves.n_exchanges; i++) {
        const struct hv_span *s = &pl->waves.exchanges[i * pl->n_ranks + rank];
        if (s->end_s > s->start_s) {
            int32_t id = hv__paint_op(p, (struct hv_timeline_op){.stage = (int32_t)rk->stage,
                                                                 .micro_batch = -1,
                                                                 .slice = -1,
                                                                 .kind = HV_SPAN_SYNC});
            hv__paint_span(p, s->start_s, s->end_s, id);
        }
    }
    if (!p->l->schedule.stale && rk->gather_s > 0) {
        double at = rk->sync_end_s + rk->optimizer_s;
        int32_t id =
            hv__paint_op(p, (struct hv_timeline_op){.stage = (int32_t)rk->stage,
                                                    .micro_batch = -1,
                                                    .slice = -1,
                                                    .kind = HV_SPAN_GATHER,
                                                    .critical = hv__path_has(p->path, (int32_t)flat,
                                                                             HV_SPAN_GATHER, at)});
        hv__paint_span(p, at, at + rk->gather_s, id);
    }
}

static const char *layers_text(struct hv_arena *a, const struct hv_stage *s)
{
    int halves = 0;
    for (size_t i = 0; i < s->n_ranges; i++) {
        halves += s->ranges[i].to2 - s->ranges[i].from2;
    }
    return hv_arena_printf(a, halves % 2 ? "%d.5 L" : "%d L", halves / 2);
}

static const char *row_name(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t rank)
{
    struct hv_str s = {0};
    const struct hv__rank *rk = &pl->ranks[rank];
    if (l->plan->n_replicas > 1 || l->pipelines.n > 1) {
        hv_str_addf(&s, "r%zu ", pl->i_replica);
    }
    const char *modules = hv__modules_of(l, &pl->replica->stages[rk->stage]);
    hv_str_addf(&s, "%s ", hv__rank_name(l, pl, rank));
    if (modules != NULL) {
        hv_str_addf(&s, "%s ", modules);
    }
    hv_address_format(hv_cost_cluster(l->k), rk->devices, rk->n_devices, ",", &s);
    const char *name = hv_arena_strdup(l->arena, hv_str_cstr(&s));
    hv_str_free(&s);
    return name;
}

static enum hv_status paint_rank(struct hv__painter *p, size_t i_pipeline, size_t rank,
                                 const bool *critical, const double *slack,
                                 const struct hv_pipe_memory *mem, struct hv_err *err)
{
    const struct hv__pipeline *pl = &p->l->pipelines.items[i_pipeline];
    struct hv_timeline_row *row = &p->t->rows[p->t->n_rows++];
    const struct hv__rank *rk = &pl->ranks[rank];
    const struct hv_memory *m = &rk->memory[0];
    *row = (struct hv_timeline_row){.replica = pl->i_replica,
                                    .stage = hv__written_stage(p->l, pl->i_replica, rk->stage),
                                    .multiplicity = pl->multiplicity,
                                    .name = row_name(p->l, pl, rank),
                                    .layers =
                                        layers_text(p->l->arena, &pl->replica->stages[rk->stage]),
                                    .busy_frac = pl->idle[rank].busy_s / p->t->end_s,
                                    .memory_limit_bytes = m->limit_bytes - m->reserve_bytes};
    paint_compute(p, pl, rank, critical, slack);
    enum hv_status st = hv__paint_lane(p, row->name, HV_RESOURCE_COMPUTE, &row->compute_lane, err);
    if (st != HV_OK) {
        return st;
    }
    paint_link(p, pl, i_pipeline, rank);
    st = hv__paint_lane(p, row->name, HV_RESOURCE_LINK, &row->link_lane, err);
    if (st != HV_OK) {
        return st;
    }
    st = hv__paint_rings(p, pl, rank, row, err);
    if (st != HV_OK) {
        return st;
    }
    size_t n = 0;
    struct hv_memory_step *steps = hv__memory_steps(p->l, pl, mem, rank, 0, &n);
    return hv_steps_make(p->l->arena, steps, n, &row->memory, err);
}

static enum hv_status paint_pipeline(struct hv__painter *p, size_t i_pipeline, struct hv_err *err)
{
    struct hv__pipeline *pl = &p->l->pipelines.items[i_pipeline];
    struct hv_arena *a = p->l->arena;
    bool *critical = i_pipeline == p->path->i_pipeline
                         ? p->path->critical
                         : hv_arena_new(a, bool, (size_t)pl->pipe->n_nodes + 1);
    double *slack = hv_arena_new(a, double, (size_t)pl->pipe->n_nodes + 1);
    hv_pipe_slack(pl->pipe, &pl->cost, &pl->run, slack);
    struct hv_pipe_memory mem = hv__memory_tables(p->l, pl, 0);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        enum hv_status st = paint_rank(p, i_pipeline, r, critical, slack, &mem, err);
        if (st == HV_OK) {
            st = hv__paint_stream(p, i_pipeline, r, err);
        }
        if (st == HV_OK) {
            st = hv__paint_parts(p, i_pipeline, r, err);
        }
        if (st == HV_OK) {
            size_t done = HV__AT_RANKS - HV__AT_JUDGED;
            done = done * (p->l->pipelines.rank_at[i_pipeline] + r + 1) /
                   p->l->pipelines.rank_at[p->l->pipelines.n];
            st = hv__report_progress(p->l, HV__AT_JUDGED + (unsigned)done, err);
        }
        if (st != HV_OK) {
            return st;
        }
    }
    const struct hv__node_facts facts = {critical, slack};
    enum hv_status st = hv__paint_hops(p, i_pipeline, &facts, err);
    return st == HV_OK ? hv__paint_moves(p, i_pipeline, &facts, err) : st;
}

enum hv_status hv__timeline(const struct hv__lowered *l, struct hv_verdict *out, struct hv_err *err)
{
    struct hv_timeline *t = hv_arena_new(l->arena, struct hv_timeline, 1);
    struct hv__painter p = {.l = l, .t = t};
    size_t n = 0, n_hops = 0, n_links = 0;
    for (size_t i = 0; i < l->iteration.n_reductions; i++) {
        n += l->iteration.reductions[i].n_ranks;
    }
    t->end_s = l->schedule.stale ? l->iteration.pipeline_s : l->iteration.total_s;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        /* operations; and per rank optimizer, gather and host work */
        n += (size_t)l->pipelines.items[i].pipe->n_nodes +
             (3 + l->pipelines.items[i].waves.n_exchanges) * l->pipelines.items[i].n_ranks;
        for (size_t k = 0;
             k < l->pipelines.items[i].waves.n_exchanges * l->pipelines.items[i].n_ranks; k++) {
            t->end_s = fmax(t->end_s, l->pipelines.items[i].waves.exchanges[k].end_s);
        }
        n += hv__count_hops(&l->pipelines.items[i]) + hv__count_tasks(&l->pipelines.items[i]) +
             l->pipelines.items[i].moving.n;
        n_hops +=
            (size_t)(l->pipelines.items[i].pipe->n_hops + l->pipelines.items[i].moving.n_lanes);
        n_links += l->pipelines.items[i].n_ranks;
    }
    n_links += n_hops; /* one per hop, and per rank with sharded chunks */
    t->rows = hv_arena_new(l->arena, struct hv_timeline_row, l->pipelines.rank_at[l->pipelines.n]);
    t->ops = hv_arena_new(l->arena, struct hv_timeline_op, n + 1);
    t->hops = hv_arena_new(l->arena, struct hv_timeline_hop, n_hops + 1);
    t->links = hv_arena_new(l->arena, struct hv_timeline_link, n_links + 1);
    p.spans = hv_arena_new(l->arena, struct hv_span, n + 1);
    p.first_op = hv_arena_new(l->arena, int32_t, l->pipelines.rank_at[l->pipelines.n] + 1);
    const struct hv__path path = hv__find_path(l, t->end_s);
    p.path = &path;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        enum hv_status st = paint_pipeline(&p, i, err);
        if (st != HV_OK) {
            return st;
        }
    }
    hv__list_tracks(t, l->arena);
    out->timeline = t;
    return hv__paint_path(&p, err);
}
