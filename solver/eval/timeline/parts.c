/** The unequal dp ranks of a row, and the order in which a picture shows rows, dp ranks and links.
 * A dp rank that is faster than the slowest waits for it: its times follow from those of the row.
 */
#include "solver/eval/moves/moves.h"
#include "solver/eval/timeline/timeline_int.h"

/** Number of different dp ranks that a new one is compared with; unequal ranks come in runs. */
#define LOOK_BACK 8

static double backward_s(const struct hv_pass *p)
{
    return p->input_grad_s + p->recompute_s;
}

/** Seconds of an operation of a global stage on dp rank d. */
static double work_s(const struct hv__gstage *g, size_t i_pass, uint8_t span_kind)
{
    const struct hv_pass *plain = &g->plain[i_pass], *pass = &g->pass[i_pass];
    switch ((enum hv_span_kind)span_kind) {
    case HV_SPAN_F:
        return plain->forward_s;
    case HV_SPAN_B:
        return plain->input_alone_s + plain->recompute_s;
    case HV_SPAN_W:
        return plain->weight_alone_s;
    case HV_SPAN_BW:
        return backward_s(plain) + plain->weight_grad_s;
    case HV_SPAN_PAIR:
        return plain->forward_s + backward_s(plain) + plain->weight_grad_s;
    case HV_SPAN_R:
        return g->again ? backward_s(pass) - backward_s(plain) : plain->forward_s;
    case HV_SPAN_HOP:
    case HV_SPAN_LEAVE:
    case HV_SPAN_RETURN:
    case HV_SPAN_SYNC:
    case HV_SPAN_OPT:
    case HV_SPAN_GATHER:
    case HV_SPAN_STEP:
    case HV_SPAN_WHOLE:
    case HV_SPAN_SCATTER:
    case HV_SPAN_KIND_N:
        break;
    }
    return 0;
}

static double slowest_s(const struct hv__gstage *g, size_t first, size_t n, uint8_t span_kind)
{
    double most = 0;
    for (size_t d = 0; d < n; d++) {
        most = fmax(most, work_s(g, first + d, span_kind));
    }
    return most;
}

/** The global stage of an operation as this rank runs it. */
static const struct hv__gstage *gstage_of(const struct hv__pipeline *pl, size_t rank, int32_t stage)
{
    for (size_t p = 0; p < pl->n_pipes; p++) {
        const struct hv__gstage *g = &pl->gstages[p * pl->n_gstages + (size_t)stage];
        if (g->rank == rank) {
            return g;
        }
    }
    return NULL;
}

double hv_timeline_part_end_s(const struct hv_timeline *t, const struct hv_timeline_part *part,
                              const struct hv_span *s)
{
    const struct hv__pipeline *pl = part->pipeline;
    const struct hv_timeline_op *op = &t->ops[s->id];
    bool is_pass = op->micro_batch >= 0 && !hv_span_is_transfer(op->kind);
    const struct hv__gstage *g = is_pass ? gstage_of(pl, part->rank, op->stage) : NULL;
    if (g == NULL) {
        return s->end_s;
    }
    size_t n_dp = pl->ranks[part->rank].n_dp;
    size_t first = hv__shape_of(pl, op->stage, op->micro_batch, op->slice) * n_dp;
    double all = slowest_s(g, first, n_dp, op->kind);
    double own = work_s(g, first + part->dp_rank, op->kind);
    return all > 0 ? s->start_s + (s->end_s - s->start_s) * (own / all) : s->end_s;
}

/** True where two dp ranks take equally long for all operations. */
static bool same_work(const struct hv__pipeline *pl, size_t rank, size_t a, size_t b)
{
    static const uint8_t kinds[] = {HV_SPAN_F, HV_SPAN_B, HV_SPAN_W, HV_SPAN_R};
    size_t n_dp = pl->ranks[rank].n_dp;
    for (size_t i = 0; i < pl->n_pipes * pl->n_gstages; i++) {
        const struct hv__gstage *g = &pl->gstages[i];
        for (size_t k = 0; g->rank == rank && k < pl->n_shapes * HV_COUNT(kinds); k++) {
            size_t first = k / HV_COUNT(kinds) * n_dp;
            uint8_t kind = kinds[k % HV_COUNT(kinds)];
            double x = work_s(g, first + a, kind), y = work_s(g, first + b, kind);
            if (fabs(x - y) > 1e-9 * fmax(x, y)) {
                return false;
            }
        }
    }
    const struct hv_memory *x = &pl->ranks[rank].memory[a], *y = &pl->ranks[rank].memory[b];
    return x->limit_bytes == y->limit_bytes && x->parameters == y->parameters;
}

/** Lists the different dp ranks, each with the number of ranks like it; returns their number. */
static size_t find_parts(const struct hv__pipeline *pl, size_t rank, struct hv_timeline_part *out)
{
    const struct hv__rank *rk = &pl->ranks[rank];
    size_t n = 0;
    for (size_t d = 0; d < rk->n_dp; d++) {
        if (rk->n_like[d] == 0) {
            continue;
        }
        size_t i = n;
        while (i > 0 && n - i < LOOK_BACK && !same_work(pl, rank, out[i - 1].dp_rank, d)) {
            i--;
        }
        if (i > 0 && n - i < LOOK_BACK) {
            out[i - 1].n_alike += rk->n_like[d];
        } else {
            out[n++] = (struct hv_timeline_part){
                .dp_rank = d, .rank = rank, .n_alike = rk->n_like[d], .pipeline = pl};
        }
    }
    return n;
}

static const char *part_name(const struct hv__lowered *l, const struct hv__rank *rk,
                             const struct hv_timeline_part *part)
{
    struct hv_str s = {0};
    hv_str_adds(&s, "  ");
    hv_address_format(hv_cost_cluster(l->k), rk->devices + part->dp_rank * rk->width, rk->width,
                      ",", &s);
    if (part->n_alike > 1) {
        hv_str_addf(&s, " x%zu", part->n_alike);
    }
    const char *name = hv_arena_strdup(l->arena, hv_str_cstr(&s));
    hv_str_free(&s);
    return name;
}

static enum hv_status part_memory(struct hv__painter *p, const struct hv__pipeline *pl,
                                  struct hv_timeline_part *part, struct hv_err *err)
{
    struct hv_pipe_memory mem = hv__memory_tables(p->l, pl, part->dp_rank);
    const struct hv_memory *m = &pl->ranks[part->rank].memory[part->dp_rank];
    size_t n = 0;
    struct hv_memory_step *steps = hv__memory_steps(p->l, pl, &mem, part->rank, part->dp_rank, &n);
    part->memory_limit_bytes = m->limit_bytes - m->reserve_bytes;
    return hv_steps_make(p->l->arena, steps, n, &part->memory, err);
}

enum hv_status hv__paint_parts(struct hv__painter *p, size_t i_pipeline, size_t rank,
                               struct hv_err *err)
{
    const struct hv__pipeline *pl = &p->l->pipelines.items[i_pipeline];
    const struct hv__rank *rk = &pl->ranks[rank];
    struct hv_timeline_row *row = &p->t->rows[p->l->pipelines.rank_at[i_pipeline] + rank];
    if (rk->n_dp < 2) {
        return HV_OK;
    }
    row->parts = hv_arena_new(p->l->arena, struct hv_timeline_part, rk->n_dp);
    row->n_parts = find_parts(pl, rank, row->parts);
    if (row->n_parts < 2) {
        row->n_parts = 0; /* all of them run as the row does */
    }
    double fullest = -1;
    for (size_t i = 0; i < row->n_parts; i++) {
        struct hv_timeline_part *x = &row->parts[i];
        x->name = part_name(p->l, rk, x);
        enum hv_status st = part_memory(p, pl, x, err);
        if (st != HV_OK) {
            return st;
        }
        double share = hv_steps_max(&x->memory, 0, p->t->end_s) / x->memory_limit_bytes;
        if (share > fullest) { /* the row shows the worst of them */
            fullest = share;
            row->memory = x->memory;
            row->memory_limit_bytes = x->memory_limit_bytes;
        }
    }
    return HV_OK;
}

/* ---- the order of a picture ---- */

static void add_track(struct hv_timeline_tracks *out, enum hv_track_kind kind, size_t row,
                      size_t index)
{
    out->items[out->n++] = (struct hv_timeline_track){.kind = kind, .row = row, .index = index};
}

/** Links in order of the row that sends: [n_rows + 1] where those of each row begin. */
static size_t *sort_links(struct hv_arena *a, const struct hv_timeline *t, size_t **order)
{
    size_t *at = hv_arena_new(a, size_t, t->n_rows + 2);
    *order = hv_arena_new(a, size_t, t->n_links + 1);
    for (size_t i = 0; i < t->n_links; i++) {
        at[t->links[i].from_row + 2]++;
    }
    for (size_t i = 2; i < t->n_rows + 2; i++) {
        at[i] += at[i - 1];
    }
    for (size_t i = 0; i < t->n_links; i++) {
        (*order)[at[t->links[i].from_row + 1]++] = i;
    }
    return at;
}

void hv__list_tracks(struct hv_timeline *t, struct hv_arena *arena)
{
    size_t *order = NULL, *at = sort_links(arena, t, &order);
    size_t most = 2 * t->n_rows + t->n_links;
    for (size_t i = 0; i < t->n_rows; i++) {
        most += t->rows[i].n_parts;
    }
    for (unsigned which = 0; which < HV_TRACKS_N; which++) {
        struct hv_timeline_tracks *out = &t->tracks[which];
        bool links = (which & HV_TRACKS_LINKS) != 0, parts = (which & HV_TRACKS_PARTS) != 0;
        *out = (struct hv_timeline_tracks){
            .timeline = t, .items = hv_arena_new(arena, struct hv_timeline_track, most + 1)};
        for (size_t i = 0; i < t->n_rows; i++) {
            add_track(out, links ? HV_TRACK_COMPUTE : HV_TRACK_ALL, i, 0);
            for (size_t k = 0; parts && k < t->rows[i].n_parts; k++) {
                add_track(out, HV_TRACK_PART, i, k);
            }
            if (links && t->lanes.items[t->rows[i].link_lane].n_spans > 0) {
                add_track(out, HV_TRACK_SYNC, i, 0);
            }
            for (size_t k = at[i]; k < at[i + 1]; k++) {
                if (links || t->links[order[k]].beside) {
                    add_track(out, HV_TRACK_HOPS, i, order[k]);
                }
            }
        }
    }
}
