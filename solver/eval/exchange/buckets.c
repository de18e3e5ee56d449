/** Streams of gradients, tensor by tensor, and the buckets that they are closed into. */
#include "solver/eval/exchange/buckets.h"

#include <stdlib.h>

/** Shares below this are rounding errors. */
#define ROUNDING 1e-12

/* ---- streams --------------------------------------------------------------------------------- */

static bool same_holders(const struct hv__segment *a, const struct hv__segment *b)
{
    bool same = a->n_holders == b->n_holders;
    for (size_t i = 0; same && i < a->n_holders; i++) {
        same =
            a->holders[i].pipeline == b->holders[i].pipeline && a->holders[i].g == b->holders[i].g;
    }
    return same;
}

/** Bytes of a gradient's whole that one rank reduces: of tensor parallelism the largest share, of
 * routed experts those that it has. */
static double bytes_per_parameter(const struct hv__lowered *l, const struct hv__segment *s,
                                  bool routed)
{
    const struct hv_stage *st = s->holders[0].stage;
    double bytes = hv_job_grad_bytes(hv_cost_job(l->k));
    if (!routed) {
        return bytes * hv_tp_largest_frac(&st->tp);
    }
    int over = hv_stage_experts_over(st);
    return bytes / (hv_stage_expert_tp(st, over) * over);
}

/** The flat ranks of a stream: tied embeddings may sit twice on one. */
static void list_ranks(const struct hv__lowered *l, struct hv__bucket_stream *s)
{
    s->ranks = hv_arena_new(l->arena, size_t, s->n_holders + 1);
    s->members = hv_arena_new(l->arena, struct hv__rank *, s->n_holders + 1);
    for (size_t i = 0; i < s->n_holders; i++) {
        size_t k = 0;
        while (k < s->n_ranks && s->ranks[k] != s->holders[i].flat_rank) {
            k++;
        }
        s->ranks[k] = s->holders[i].flat_rank;
        s->members[k] = s->holders[i].rank;
        s->n_ranks = k == s->n_ranks ? k + 1 : s->n_ranks;
    }
}

/** Orders ends by arrival: from the last leaf to the first, where two leaves meet the embedding of
 * the upper one before the head of the lower one. */
static int by_arrival(const void *x, const void *y)
{
    const struct hv__segment *a = *(const struct hv__segment *const *)x;
    const struct hv__segment *b = *(const struct hv__segment *const *)y;
    size_t i = hv__end_leaf(a->from2), k = hv__end_leaf(b->from2);
    if (i != k) {
        return i > k ? -1 : 1;
    }
    return (int)hv__end_is_head(b->from2) - (int)hv__end_is_head(a->from2);
}

static void next_tensor(const struct hv__lowered *l, struct hv__bucket_stream *s);

/** Puts a stream of these segments at its first tensor. */
static void open_stream(struct hv__lowered *l, const struct hv__segment *first,
                        struct hv__bucket_stream *s)
{
    s->holders = first->holders;
    s->n_holders = first->n_holders;
    s->bytes_per_parameter = bytes_per_parameter(l, first, s->routed);
    s->end2 = s->blocks != NULL ? s->blocks->to2 : 0;
    list_ranks(l, s);
    if (s->n_ends > 1) {
        qsort(s->ends, s->n_ends, sizeof *s->ends, by_arrival);
    }
    s->more = true;
    if (!s->whole) {
        next_tensor(l, s);
    }
}

/** Adds a segment to the stream, as its blocks or one of its ends. */
static void add_segment(struct hv__bucket_stream *s, const struct hv__segment *x)
{
    if (x->from2 >= 0) {
        s->blocks = x;
    } else {
        s->ends[s->n_ends++] = x;
    }
}

/** True where gradients are a flat buffer that is cut at the size of buckets. */
static bool cuts(const struct hv__lowered *l)
{
    bool transformers = true;
    for (size_t i = 0; i < l->leaves.n; i++) {
        transformers = transformers && l->leaves.items[i].model->kind == HV_MODEL_TRANSFORMER;
    }
    return transformers && !(l->plan->sync.cycle_s > 0) && !hv__runtime(l)->bucket_of_tensors;
}

struct hv__bucket_stream *hv__bucket_streams(struct hv__lowered *l, size_t *out_n)
{
    size_t n_segments = 0, n = 0;
    const struct hv__segment *all = hv__segments(l, &n_segments);
    bool whole = !hv__overlaps(l) || l->schedule.stale;
    struct hv__bucket_stream *out =
        hv_arena_new(l->arena, struct hv__bucket_stream, 2 * n_segments + 1);
    bool *taken = hv_arena_new(l->arena, bool, n_segments + 1);
    for (size_t i = 0; i < n_segments; i++) {
        if (taken[i]) {
            continue;
        }
        struct hv__bucket_stream s = {.whole = whole, .cut = cuts(l)};
        s.ends = hv_arena_new(l->arena, const struct hv__segment *, 2 * l->leaves.n);
        add_segment(&s, &all[i]);
        for (size_t k = i + 1; !whole && k < n_segments; k++) {
            if (!taken[k] && (all[k].from2 < 0 || s.blocks == NULL) &&
                same_holders(&all[i], &all[k])) {
                add_segment(&s, &all[k]);
                taken[k] = true;
            }
        }
        bool routed = !whole && s.blocks != NULL && hv__segment_parameters(l, s.blocks).experts > 0;
        for (int r = 0; r <= (int)routed; r++) {
            out[n] = s;
            out[n].routed = r == 1;
            out[n].n_ends = r == 1 ? 0 : s.n_ends;
            open_stream(l, &all[i], &out[n++]);
        }
    }
    *out_n = n;
    return out;
}

/* ---- tensors in order of arrival ---------------------------------------------------------------
 */

/** When a tensor has come. */
struct arrival {
    double ready_s;
    size_t last;  /**< the holder that has it last */
    bool certain; /**< see hv__arrival */
};

/** Time at which all holders have so many parameters of the tensor at the head of a stream. */
static struct arrival arrival_of(const struct hv__lowered *l, const struct hv__arrived *t,
                                 double parameters)
{
    struct arrival a = {0, 0, true};
    double at2 = t->from_at2 - (t->from_at2 - t->to_at2) * (parameters / t->parameters);
    for (size_t i = 0; i < t->segment->n_holders; i++) {
        struct hv__holder *h = &t->segment->holders[i];
        struct hv__arrival own =
            t->segment->from2 < 0 ? hv__end_arrival(l, h, t->segment->from2) : hv__arrival(h, at2);
        a.certain = a.certain && own.certain;
        if (own.at_s > a.ready_s) {
            a.ready_s = own.at_s;
            a.last = i;
        }
    }
    return a;
}

/** Lowest half block of a leaf above which a head lies; the first one of an embedding's leaf. */
static int place_of_end(const struct hv__lowered *l, const struct hv__segment *x)
{
    size_t leaf = hv__end_leaf(x->from2) + (hv__end_is_head(x->from2) ? 1 : 0);
    return leaf < l->leaves.n ? 2 * (int)l->leaves.items[leaf].first : INT32_MAX;
}

/** Weights that a half shares with an earlier block have their gradients there: joins its tensors
 * to one of each kind. */
static void leave_shared_out(struct hv__bucket_stream *s)
{
    double dense = 0, routed = 0;
    bool shares = false;
    for (size_t i = 0; i < s->n_half; i++) {
        *(s->half[i].routed ? &routed : &dense) += s->half[i].parameters;
        shares = shares || s->half[i].parameters < 0;
    }
    if (shares) {
        s->half[0] = (struct hv_weight){routed, true};
        s->half[1] = (struct hv_weight){fmax(0, dense), false};
        s->n_half = 2;
    }
}

/** Lists the flat gradients of the run of equal blocks before end2 as one tensor of each kind. */
static int list_run(const struct hv__lowered *l, struct hv__bucket_stream *s)
{
    int from2 = s->blocks->from2;
    for (size_t i = 0; i < s->blocks->n_holders; i++) {
        int below2 = hv__run_below(&s->blocks->holders[i], s->end2);
        from2 = below2 > from2 ? below2 : from2;
    }
    struct hv__parameters p =
        hv__range_parameters(l->k, &l->leaves, (struct hv_range){from2, s->end2});
    s->half[0] = (struct hv_weight){s->routed ? p.experts : p.dense, s->routed};
    s->n_half = 1;
    return from2;
}

/** Lists the tensors of the half block before end2, of a model that is no transformer both halves
 * at once. */
static int list_half(const struct hv__lowered *l, struct hv__bucket_stream *s)
{
    int h = s->end2 - 1;
    const struct hv_model_leaf *leaf = &l->leaves.items[hv__leaf_of(l, (size_t)h / 2)];
    if (leaf->model->kind == HV_MODEL_TRANSFORMER) {
        const struct hv_block *b = &leaf->model->blocks[(size_t)h / 2 - leaf->first];
        s->n_half = hv_half_tensors(leaf->model, b, h % 2 == 1, s->half);
        leave_shared_out(s);
        return h;
    }
    h -= h % 2 == 1 && h > s->blocks->from2 ? 1 : 0;
    struct hv_range r = {h, s->end2};
    s->half[0] = (struct hv_weight){hv__range_parameters(l->k, &l->leaves, r).dense, false};
    s->n_half = 1;
    return h;
}

/** Lists the tensors that come next and moves end2 below them. */
static void list_tensors(const struct hv__lowered *l, struct hv__bucket_stream *s)
{
    s->half_end2 = s->end2;
    s->end2 = (s->cut ? list_run : list_half)(l, s);
    s->i_half = 0;
    s->half_parameters = s->half_done = 0;
    for (size_t i = 0; i < s->n_half; i++) {
        s->half_parameters += s->half[i].parameters;
    }
}

/** Place in the blocks behind what has been listed of the half block at hand. */
static double place_now(const struct hv__bucket_stream *s)
{
    double left = 1 - s->half_done / s->half_parameters;
    return s->end2 + (s->half_end2 - s->end2) * left;
}

/** Takes the next tensor of the half block at hand that is one of the stream's. */
static bool next_in_half(struct hv__bucket_stream *s)
{
    while (s->i_half < s->n_half) {
        const struct hv_weight *t = &s->half[s->i_half++];
        double from_at2 = place_now(s);
        s->half_done += t->parameters;
        if (t->routed == s->routed && t->parameters > 0) {
            s->ahead = (struct hv__arrived){s->blocks, t->parameters, 0, from_at2, place_now(s)};
            return true;
        }
    }
    return false;
}

/** Moves to the next tensor; sets `more` to false behind the last. */
static void next_tensor(const struct hv__lowered *l, struct hv__bucket_stream *s)
{
    while (!next_in_half(s)) {
        bool blocks = s->blocks != NULL && s->end2 > s->blocks->from2;
        if (s->i_end < s->n_ends && (!blocks || place_of_end(l, s->ends[s->i_end]) >= s->end2)) {
            const struct hv__segment *x = s->ends[s->i_end++];
            double parameters = hv__segment_parameters(l, x).dense;
            if (parameters > 0) {
                s->ahead = (struct hv__arrived){x, parameters, 0, 0, 0};
                return;
            }
        } else if (blocks) {
            list_tensors(l, s);
        } else {
            s->more = false;
            return;
        }
    }
}

/* ---- buckets --------------------------------------------------------------------------------- */

/** Time at which a bucket whose gradients are there may start: at once, or at the next tick of the
 * cycle; a last digit does not miss a tick. */
static double tick_s(const struct hv__lowered *l, double ready_s)
{
    double cycle_s = l->plan->sync.cycle_s;
    return cycle_s > 0 ? cycle_s * ceil(ready_s / cycle_s * (1 - ROUNDING)) : ready_s;
}

/** Parameters of the next bucket of a stream. */
static double next_size(const struct hv__lowered *l, const struct hv__bucket_stream *s)
{
    const struct hv_sync *y = &l->plan->sync;
    size_t which = s->n_closed < y->n_buckets ? s->n_closed : y->n_buckets - 1;
    return fmax(1, y->bucket_bytes[which] / s->bytes_per_parameter);
}

/** A bucket that is being filled. */
struct filling {
    double size, parameters, ready_s; /**< size: in parameters */
    bool certain;                     /**< see hv__arrival */
};

/** Lets a bucket wait for so many parameters of the tensor at the head of its stream. */
static void wait_for(const struct hv__lowered *l, const struct hv__arrived *t, double parameters,
                     struct filling *f)
{
    struct arrival a = arrival_of(l, t, parameters);
    f->ready_s = fmax(f->ready_s, a.ready_s);
    f->certain = f->certain && a.certain;
}

/** True where the tensor at the head of the stream joins a bucket. */
static bool joins(const struct hv__lowered *l, const struct hv__bucket_stream *s,
                  const struct filling *f)
{
    if (!s->more) {
        return false;
    }
    if (!(l->plan->sync.cycle_s > 0)) {
        return f->parameters < f->size;
    }
    return f->parameters + s->ahead.parameters <= f->size * (1 + ROUNDING) &&
           tick_s(l, arrival_of(l, &s->ahead, s->ahead.parameters).ready_s) <=
               tick_s(l, f->ready_s);
}

/** Fills a bucket with whole tensors. */
static void fill_whole(const struct hv__lowered *l, struct hv__bucket_stream *s, struct filling *f)
{
    s->n_closed++;
    do {
        f->parameters += s->ahead.parameters;
        wait_for(l, &s->ahead, s->ahead.parameters, f);
        next_tensor(l, s);
    } while (joins(l, s, f));
}

/** Fills a bucket from the flat gradients of blocks to exactly its size, or with all that is left;
 * an end is a bucket of its own. */
static void fill_cut(const struct hv__lowered *l, struct hv__bucket_stream *s, struct filling *f)
{
    if (s->ahead.segment->from2 < 0) {
        f->size = s->ahead.parameters;
    } else {
        s->n_closed++;
    }
    const struct hv__segment *first = s->ahead.segment;
    while (s->more && s->ahead.segment == first && f->parameters < f->size) {
        struct hv__arrived *t = &s->ahead;
        double left = t->parameters - t->taken, room = f->size - f->parameters;
        bool all = left <= room * (1 + ROUNDING);
        t->taken = all ? t->parameters : t->taken + room;
        f->parameters = all && left < room ? f->parameters + left : f->size;
        wait_for(l, t, t->taken, f);
        if (all) {
            next_tensor(l, s);
        }
    }
}

/** True where all holders have so many parameters of the tensor at the head of a stream, and are as
 * late with them as with fewer: what comes between is then known too, by equal steps. */
static bool alike(const struct hv__arrived *t, double fewer, double parameters)
{
    double places[2];
    for (int i = 0; i < 2; i++) {
        double part = (i == 0 ? fewer : parameters) / t->parameters;
        places[i] = t->from_at2 - (t->from_at2 - t->to_at2) * part;
    }
    for (size_t i = 0; i < t->segment->n_holders; i++) {
        struct hv__holder *h = &t->segment->holders[i];
        struct hv__arrival first = hv__arrival(h, places[0]), last = hv__arrival(h, places[1]);
        if (!last.certain || first.by_s != last.by_s) {
            return false;
        }
    }
    return true;
}

/** How many of n buckets of a tensor from now on come alike, by bisection: delays only grow. */
static double alike_buckets(const struct hv__arrived *t, double size, double n)
{
    double first = t->taken + size, known = 1, over = n + 1;
    if (alike(t, first, t->taken + n * size)) {
        return n;
    }
    while (over - known > 1) {
        double some = floor((known + over) / 2);
        *(alike(t, first, t->taken + some * size) ? &known : &over) = some;
    }
    return known;
}

/** Takes as many whole buckets as the tensor at the head of a stream fills by itself, if these are
 * at least two and one holder has all of them last. */
static bool fill_run(const struct hv__lowered *l, struct hv__bucket_stream *s, double size,
                     struct hv__bucket *out)
{
    struct hv__arrived *t = &s->ahead;
    double n = floor((t->parameters - t->taken) / size * (1 - ROUNDING));
    if (t->segment->from2 < 0 || s->n_closed + 1 < l->plan->sync.n_buckets || n < 2) {
        return false;
    }
    n = alike_buckets(t, size, n);
    if (n < 2) {
        return false;
    }
    struct arrival first = arrival_of(l, t, t->taken + size);
    struct arrival last = arrival_of(l, t, t->taken + n * size);
    if (first.last != last.last) {
        return false;
    }
    t->taken += n * size;
    s->n_closed += (size_t)n;
    *out = (struct hv__bucket){.n = n,
                               .ready_s = first.ready_s,
                               .certain = first.certain && last.certain,
                               .step_s = (last.ready_s - first.ready_s) / (n - 1)};
    return true;
}

/** Prices so many parameters that are reduced at once. */
static struct hv__bucket_price price_whole(struct hv__lowered *l, struct hv__bucket_stream *s,
                                           const struct hv__segment *x, struct hv__parameters p)
{
    struct hv__bucket_price b = {.parameters = p.dense + p.experts};
    if (hv__by_servers(l)) {
        b.duration_s = hv__push_pull_s(l, x, p, &b.lanes);
    } else {
        b.duration_s = hv__bucket_s(l, x, p);
        s->lanes = s->n_prices == 0 && b.duration_s > 0 ? hv__segment_lanes(l, x) : s->lanes;
        b.lanes = s->lanes;
    }
    b.chunk_s = b.duration_s;
    return b;
}

/** Prices a bucket that is reduced in chunks of so many bytes on a rank, one after the other. */
static struct hv__bucket_price price_chunks(struct hv__lowered *l, struct hv__bucket_stream *s,
                                            const struct hv__segment *x, struct hv__parameters p,
                                            double n)
{
    double whole = floor(n * (1 + ROUNDING)), rest = n - whole > ROUNDING * n ? n - whole : 0;
    struct hv__parameters one = {p.dense / n, p.experts / n};
    struct hv__bucket_price b = price_whole(l, s, x, one);
    b.parameters = p.dense + p.experts;
    b.duration_s = whole * b.chunk_s;
    if (rest > 0) {
        struct hv__parameters last = {one.dense * rest, one.experts * rest};
        b.duration_s += price_whole(l, s, x, last).duration_s;
    }
    return b;
}

/** Prices a bucket that begins in a segment, or remembers the price. */
static struct hv__bucket_price price_of(struct hv__lowered *l, struct hv__bucket_stream *s,
                                        const struct hv__segment *x, struct hv__parameters p)
{
    double parameters = p.dense + p.experts;
    for (size_t i = 0; i < HV__BUCKET_PRICES && i < s->n_prices; i++) {
        if (s->prices[i].parameters == parameters) {
            return s->prices[i];
        }
    }
    double chunk_bytes = l->plan->sync.chunk_bytes;
    double n = chunk_bytes > 0 ? parameters * s->bytes_per_parameter / chunk_bytes : 0;
    struct hv__bucket_price b = n > 1 ? price_chunks(l, s, x, p, n) : price_whole(l, s, x, p);
    s->prices[s->n_prices++ % HV__BUCKET_PRICES] = b;
    return b;
}

/** The one bucket of a segment that is reduced whole. */
static bool whole_bucket(struct hv__lowered *l, struct hv__bucket_stream *s, struct hv__bucket *out)
{
    const struct hv__segment *x = s->blocks != NULL ? s->blocks : s->ends[0];
    struct hv__bucket_price b = price_of(l, s, x, hv__segment_parameters(l, x));
    double ready_s = 0;
    bool certain = true;
    for (size_t i = 0; i < s->n_holders; i++) {
        const struct hv__delays *d = s->holders[i].delays;
        double end_s = d != NULL ? d->rank_end_s : hv__own_end_s(s->holders[i].rank);
        ready_s = fmax(ready_s, end_s);
        certain = certain && isfinite(end_s);
    }
    *out = (struct hv__bucket){.n = 1,
                               .ready_s = tick_s(l, ready_s),
                               .certain = certain,
                               .duration_s = b.duration_s,
                               .chunk_s = b.chunk_s,
                               .lanes = b.lanes};
    s->more = false;
    return b.duration_s > 0;
}

bool hv__next_bucket(struct hv__lowered *l, struct hv__bucket_stream *s, struct hv__bucket *out)
{
    if (!s->more) {
        return false;
    }
    if (s->whole) {
        return whole_bucket(l, s, out);
    }
    const struct hv__segment *first = s->ahead.segment;
    struct filling f = {.size = next_size(l, s), .certain = true};
    if (s->cut && fill_run(l, s, f.size, out)) {
        f.parameters = f.size;
    } else {
        (s->cut ? fill_cut : fill_whole)(l, s, &f);
        *out = (struct hv__bucket){.n = 1, .ready_s = tick_s(l, f.ready_s), .certain = f.certain};
    }
    struct hv__parameters p = {s->routed ? 0 : f.parameters, s->routed ? f.parameters : 0};
    struct hv__bucket_price b = price_of(l, s, first, p);
    out->duration_s = b.duration_s;
    out->chunk_s = b.chunk_s;
    out->lanes = b.lanes;
    s->more = s->more && b.duration_s > 0;
    return b.duration_s > 0;
}
