/** Parts of a stage: runs of blocks with one set of degrees. */
#include "solver/plan/parts.h"

#include "solver/base/whole.h"

const struct hv_degrees *hv_stage_degrees(const struct hv_stage *s, int block)
{
    for (size_t i = s->n_degrees; i-- > 0;) {
        if (s->degrees[i].from <= block && block < s->degrees[i].to) {
            return &s->degrees[i];
        }
    }
    return NULL;
}

struct hv_stage hv_stage_with_degrees(const struct hv_stage *s, const struct hv_degrees *d)
{
    struct hv_stage part = *s;
    part.degrees = NULL;
    part.n_degrees = 0;
    if (d != NULL) {
        part.tp = d->tp;
        part.sequence_parallel = d->sequence_parallel;
        part.cp = d->cp;
        part.dp = d->dp;
        part.zero = d->zero;
    }
    return part;
}

static bool same_tp(const struct hv_tp *a, const struct hv_tp *b)
{
    return a->scheme == b->scheme && a->degree == b->degree && a->depth == b->depth &&
           a->regather == b->regather && a->shares == b->shares;
}

static bool same_cp(const struct hv_cp *a, const struct hv_cp *b)
{
    return a->scheme == b->scheme && a->degree == b->degree && a->ulysses == b->ulysses &&
           a->inner == b->inner && a->tile == b->tile && a->layout == b->layout &&
           a->order == b->order && a->backward == b->backward && a->dims == b->dims;
}

static bool same_zero(const struct hv_zero *a, const struct hv_zero *b)
{
    return a->stage == b->stage && a->shard_group == b->shard_group && a->unit == b->unit &&
           a->reshard == b->reshard && a->prefetch == b->prefetch && a->limit == b->limit &&
           a->gather == b->gather && a->gather_at == b->gather_at && a->reduce == b->reduce;
}

bool hv_stage_same_degrees(const struct hv_stage *s, const struct hv_degrees *a,
                           const struct hv_degrees *b)
{
    if (a == b) {
        return true;
    }
    const struct hv_stage x = hv_stage_with_degrees(s, a), y = hv_stage_with_degrees(s, b);
    return same_tp(&x.tp, &y.tp) && x.sequence_parallel == y.sequence_parallel &&
           same_cp(&x.cp, &y.cp) && x.dp == y.dp && same_zero(&x.zero, &y.zero);
}

int hv_stage_part_end(const struct hv_stage *s, int at2, int to2)
{
    const struct hv_degrees *own = hv_stage_degrees(s, at2 / 2);
    int end2 = to2;
    for (size_t i = 0; i < s->n_degrees; i++) {
        const int edges[] = {s->degrees[i].from, s->degrees[i].to};
        for (size_t k = 0; k < HV_COUNT(edges); k++) {
            bool inside = edges[k] > at2 / 2 && 2 * edges[k] < end2;
            if (inside && !hv_stage_same_degrees(s, hv_stage_degrees(s, edges[k]), own)) {
                end2 = 2 * edges[k];
            }
        }
    }
    return end2;
}

/** Blocks of the stage before half block `at2` of its range number `chunk`. */
static size_t blocks_before(const struct hv_stage *s, size_t chunk, int at2)
{
    size_t n = 0;
    for (size_t i = 0; i < chunk; i++) {
        n += (size_t)(s->ranges[i].to2 + 1) / 2 - (size_t)s->ranges[i].from2 / 2;
    }
    return n + (size_t)at2 / 2 - (size_t)s->ranges[chunk].from2 / 2;
}

struct hv_stage hv_stage_cut(const struct hv_stage *s, struct hv_range *range)
{
    struct hv_stage cut = *s;
    cut.ranges = range;
    cut.n_ranges = 1;
    for (size_t i = 0; i < s->n_ranges && s->recompute_per != NULL; i++) {
        const struct hv_range *x = &s->ranges[i];
        size_t before = blocks_before(s, i, range->from2);
        if (x->from2 <= range->from2 && range->to2 <= x->to2 && before < s->n_recompute_per) {
            cut.recompute_per += before;
            cut.n_recompute_per -= before;
            break;
        }
    }
    return cut;
}

struct hv_stage hv_stage_part(const struct hv_stage *s, struct hv_range *range)
{
    struct hv_stage cut = hv_stage_cut(s, range);
    return hv_stage_with_degrees(&cut, hv_stage_degrees(s, range->from2 / 2));
}

bool hv_stage_next_part(struct hv_part_walk *w)
{
    const struct hv_stage *s = &w->replica->stages[w->stage];
    bool ended = w->begun && w->chunk < s->n_ranges && w->range.to2 >= s->ranges[w->chunk].to2;
    int at2 = w->range.to2;
    w->chunk += ended;
    while (w->chunk < s->n_ranges && (ended || !w->begun)) {
        at2 = s->ranges[w->chunk].from2;
        if (at2 < s->ranges[w->chunk].to2) {
            break;
        }
        w->chunk++;
    }
    if (w->chunk >= s->n_ranges) {
        return false;
    }
    int to2 = s->ranges[w->chunk].to2;
    w->range = (struct hv_range){at2, hv_stage_part_end(s, at2, to2)};
    w->part = hv_stage_part(s, &w->range);
    w->part.embedding =
        w->chunk == 0 && at2 == s->ranges[0].from2 && hv_stage_has_embedding(w->replica, w->stage);
    w->part.head = w->chunk + 1 == s->n_ranges && w->range.to2 == to2 &&
                   hv_stage_has_head(w->replica, w->stage);
    w->begun = true;
    return true;
}

static int64_t width_of(const struct hv_tp *tp, const struct hv_cp *cp)
{
    return (int64_t)(tp->degree > 1 ? tp->degree : 1) * (cp->degree > 1 ? cp->degree : 1);
}

size_t hv_stage_width(const struct hv_stage *s)
{
    int64_t width = width_of(&s->tp, &s->cp);
    for (size_t i = 0; i < s->n_degrees; i++) {
        width = hv_gcd(width, width_of(&s->degrees[i].tp, &s->degrees[i].cp));
    }
    return (size_t)width;
}
