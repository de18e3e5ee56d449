/**
 * The critical path of an iteration: from its end back through host work, gathers, optimizer and
 * the reductions of the rank that ends last, then through the passes of the pipeline that the first
 * of them waited for (hv_pipe_critical_to).
 */
#include <math.h>
#include <string.h>

#include "solver/eval/timeline/timeline_int.h"

/** Times that differ by less than this share of the iteration are equal. */
#define SAME_REL 1e-9

/** A walk back: what is found from the end on. */
struct walk {
    const struct hv__lowered *l;
    struct hv__path_piece *pieces; /**< in reverse order */
    size_t n, cap;
    double at_s;   /**< everything behind it is found */
    double same_s; /**< times as near as this are equal */
    size_t flat;   /**< rank that is followed */
};

/** Follows until from_s; nothing where that is not before. */
static void go_back(struct walk *w, double from_s, int32_t row, int32_t node, uint8_t kind)
{
    if (!(from_s < w->at_s)) {
        return;
    }
    if (w->n == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 64;
        struct hv__path_piece *more = hv_arena_new(w->l->arena, struct hv__path_piece, cap);
        if (w->n > 0) {
            memcpy(more, w->pieces, w->n * sizeof *more);
        }
        w->pieces = more;
        w->cap = cap;
    }
    w->pieces[w->n++] = (struct hv__path_piece){
        .start_s = from_s, .end_s = w->at_s, .row = row, .node = node, .kind = kind};
    w->at_s = from_s;
}

/** Pipeline of a flat rank. */
static size_t pipeline_of(const struct hv__lowered *l, size_t flat)
{
    size_t i = 0;
    while (l->pipelines.rank_at[i + 1] <= flat) {
        i++;
    }
    return i;
}

static const struct hv__rank *rank_at(const struct hv__lowered *l, size_t flat)
{
    size_t i = pipeline_of(l, flat);
    return &l->pipelines.items[i].ranks[flat - l->pipelines.rank_at[i]];
}

/** The rank that ends last, the first of equals: with its tail, or where there is none its passes.
 */
static size_t last_rank(const struct hv__lowered *l)
{
    size_t best = 0, n = l->pipelines.rank_at[l->pipelines.n];
    double latest = -1;
    for (size_t flat = 0; flat < n; flat++) {
        const struct hv__rank *rk = rank_at(l, flat);
        double end_s =
            l->schedule.stale ? rk->compute_end_s : rk->sync_end_s + rk->optimizer_s + rk->gather_s;
        if (end_s > latest) {
            latest = end_s;
            best = flat;
        }
    }
    return best;
}

/** Host work, gather and optimizer of the rank that ends last. */
static void walk_tail(struct walk *w)
{
    const struct hv__rank *rk = rank_at(w->l, w->flat);
    int32_t row = (int32_t)w->flat;
    double optimized_s = rk->sync_end_s + rk->optimizer_s;
    go_back(w, optimized_s + rk->gather_s, row, -1, HV_SPAN_STEP);
    go_back(w, optimized_s, row, -1, HV_SPAN_GATHER);
    go_back(w, rk->sync_end_s, row, -1, HV_SPAN_OPT);
}

static bool takes_part(const struct hv__reduction *r, size_t flat)
{
    size_t k = 0;
    while (k < r->n_ranks && r->ranks[k] != flat) {
        k++;
    }
    return k < r->n_ranks;
}

/** The last reduction of a rank that has ended by a time, and not before its passes; NULL: none. */
static const struct hv__reduction *reduction_before(const struct walk *w)
{
    const struct hv__reduction *best = NULL;
    double passes_s = rank_at(w->l, w->flat)->compute_end_s;
    for (size_t i = 0; i < w->l->iteration.n_reductions; i++) {
        const struct hv__reduction *r = &w->l->iteration.reductions[i];
        if (r->end_s <= w->at_s + w->same_s && r->end_s > passes_s + w->same_s &&
            r->end_s > r->start_s && takes_part(r, w->flat) &&
            (best == NULL || r->end_s > best->end_s)) {
            best = r;
        }
    }
    return best;
}

/** The last node of a rank that began before a time; -1: none. O(log nodes). */
static int32_t node_before(const struct hv__lowered *l, size_t flat, double at_s)
{
    size_t i = pipeline_of(l, flat);
    const struct hv__pipeline *pl = &l->pipelines.items[i];
    size_t rank = flat - l->pipelines.rank_at[i];
    int32_t lo = pl->pipe->rank_node_at[rank], hi = pl->pipe->rank_node_at[rank + 1], first = lo;
    while (lo < hi) {
        int32_t mid = lo + (hi - lo) / 2;
        if (pl->run.node_start_s[mid] < at_s) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo > first ? lo - 1 : -1;
}

/** End of the passes of a rank before a time: that time where one is running then. */
static double passes_until(const struct hv__lowered *l, size_t flat, double at_s)
{
    int32_t n = node_before(l, flat, at_s);
    return n < 0 ? 0 : fmin(at_s, l->pipelines.items[pipeline_of(l, flat)].run.node_end_s[n]);
}

/** The rank that a reduction waited for: of those that take part the one whose passes go on longest
 * until it begins; of equals the one whose pass ended then. */
static size_t waited_for(const struct walk *w, const struct hv__reduction *r)
{
    size_t best = r->ranks[0];
    double latest = -1, least = HUGE_VAL;
    for (size_t k = 0; k < r->n_ranks; k++) {
        double until = passes_until(w->l, r->ranks[k], r->start_s);
        double end = fabs(rank_at(w->l, r->ranks[k])->compute_end_s - r->start_s);
        if (until > latest + w->same_s || (until >= latest - w->same_s && end < least)) {
            latest = fmax(latest, until);
            least = end;
            best = r->ranks[k];
        }
    }
    return best;
}

/** The reduction that ended when another began, on a rank of both; NULL: none. */
static const struct hv__reduction *reduction_behind(const struct walk *w,
                                                    const struct hv__reduction *next)
{
    for (size_t i = 0; i < w->l->iteration.n_reductions; i++) {
        const struct hv__reduction *r = &w->l->iteration.reductions[i];
        if (r->end_s <= r->start_s || fabs(r->end_s - next->start_s) > w->same_s) {
            continue;
        }
        for (size_t k = 0; k < next->n_ranks; k++) {
            if (takes_part(r, next->ranks[k])) {
                return r;
            }
        }
    }
    return NULL;
}

/** Reductions one behind the other, to the rank whose gradients the first waited for. */
static void walk_reductions(struct walk *w)
{
    const struct hv__reduction *r = reduction_before(w);
    for (size_t i = 0; r != NULL && i < w->l->iteration.n_reductions; i++) {
        /* what follows it without a reduction are copies between precisions */
        go_back(w, r->end_s, (int32_t)w->flat, -1, HV_SPAN_SYNC);
        go_back(w, r->start_s, (int32_t)w->flat, -1, HV_SPAN_SYNC);
        const struct hv__reduction *behind = reduction_behind(w, r);
        if (behind == NULL) {
            w->flat = waited_for(w, r);
        } else if (!takes_part(behind, w->flat)) {
            size_t k = 0;
            while (!takes_part(behind, r->ranks[k])) {
                k++;
            }
            w->flat = r->ranks[k];
        }
        r = behind;
    }
}

/** The passes of the pipeline, to the beginning. */
static void walk_passes(struct walk *w, const struct hv__pipeline *pl, int32_t rank_row,
                        int32_t last)
{
    const struct hv_pipe_link *links = NULL;
    size_t n = 0;
    hv_pipe_critical_to(w->l->arena, pl->pipe, &pl->cost, &pl->run, last, &links, &n);
    for (size_t i = n; i-- > 0;) {
        int32_t node = links[i].node, row = rank_row + hv_pipe_rank_of(pl->pipe, node);
        double behind_s = i > 0 ? pl->run.node_end_s[links[i - 1].node] : 0;
        bool hop = links[i].reason == HV_PIPE_HOP || links[i].reason == HV_PIPE_DATA;
        go_back(w, pl->run.node_start_s[node], row, node, 0);
        go_back(w, behind_s, hop ? -1 : row, -1,
                (uint8_t)(hop                                 ? HV_SPAN_HOP
                          : links[i].reason == HV_PIPE_GATHER ? HV_SPAN_WHOLE
                                                              : HV_SPAN_GATHER));
    }
    go_back(w, 0, rank_row, -1, HV_SPAN_GATHER);
}

static void turn_round(struct hv__path_piece *pieces, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct hv__path_piece x = pieces[i];
        pieces[i] = pieces[n - 1 - i];
        pieces[n - 1 - i] = x;
    }
}

struct hv__path hv__find_path(const struct hv__lowered *l, double end_s)
{
    struct walk w = {.l = l, .at_s = end_s, .same_s = SAME_REL * end_s, .flat = last_rank(l)};
    if (!l->schedule.stale) {
        walk_tail(&w);
        walk_reductions(&w);
    }
    size_t i = pipeline_of(l, w.flat);
    const struct hv__pipeline *pl = &l->pipelines.items[i];
    int32_t last = node_before(l, w.flat, w.at_s), rank_row = (int32_t)l->pipelines.rank_at[i];
    if (last >= 0) { /* its stream, or an exchange behind it, may go on longer */
        go_back(&w, pl->run.node_end_s[last], (int32_t)w.flat, -1, HV_SPAN_SYNC);
        walk_passes(&w, pl, rank_row, last);
    } else {
        go_back(&w, 0, (int32_t)w.flat, -1, HV_SPAN_SYNC);
    }
    turn_round(w.pieces, w.n);
    struct hv__path p = {.pieces = w.pieces, .n = w.n, .i_pipeline = i};
    p.critical = hv_arena_new(l->arena, bool, (size_t)pl->pipe->n_nodes + 1);
    for (size_t k = 0; k < p.n; k++) {
        if (p.pieces[k].node >= 0) {
            p.critical[p.pieces[k].node] = true;
        }
    }
    return p;
}

bool hv__path_has(const struct hv__path *p, int32_t row, uint8_t kind, double start_s)
{
    for (size_t i = p->n; i-- > 0 && p->pieces[i].node < 0;) {
        const struct hv__path_piece *x = &p->pieces[i];
        if (x->row == row && x->kind == kind &&
            fabs(x->start_s - start_s) <= 1e-12 * (1 + start_s)) {
            return true;
        }
    }
    return false;
}

enum hv_status hv__paint_path(struct hv__painter *p, struct hv_err *err)
{
    struct hv_timeline_path *out = &p->t->path;
    const struct hv__pipeline *pl = &p->l->pipelines.items[p->path->i_pipeline];
    out->row_s = hv_arena_new(p->l->arena, double, p->t->n_rows + 1);
    struct hv_span *spans = hv_arena_new(p->l->arena, struct hv_span, p->path->n + 1);
    for (size_t i = 0; i < p->path->n; i++) {
        const struct hv__path_piece *x = &p->path->pieces[i];
        *(x->row < 0 ? &out->links_s : &out->row_s[x->row]) += x->end_s - x->start_s;
        spans[i] = (struct hv_span){.start_s = x->start_s,
                                    .end_s = x->end_s,
                                    .id = -1,
                                    .item = -1,
                                    .group = x->row,
                                    .kind = x->kind};
        if (x->node >= 0) {
            int32_t rank = x->row - (int32_t)p->l->pipelines.rank_at[p->path->i_pipeline];
            spans[i].id = p->first_op[x->row] + x->node - pl->pipe->rank_node_at[rank];
            spans[i].item = p->t->ops[spans[i].id].micro_batch;
            spans[i].kind = p->t->ops[spans[i].id].kind;
        }
    }
    return hv_lanes_add(p->l->arena, &out->lanes,
                        &(struct hv_lane){.name = "path", .spans = spans, .n_spans = p->path->n},
                        err);
}
