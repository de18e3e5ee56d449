/** Pipelines of different replica entries that are equal but for their devices: the first is
 * lowered, the others share its tables. */
#include "solver/eval/train/steps.h"

#include <string.h>

/** Only entries of one stage and one copy share: their passes depend on no other pipeline, and
 * they have no transfers. */
static bool may_share(const struct hv__pipeline *pl)
{
    const struct hv_replica *r = pl->replica;
    return r->n_stages == 1 && r->count == 1 && r->list == NULL;
}

/** True where a stage has no list that changes its passes, except devices and ranges. */
static bool has_no_lists(const struct hv_stage *s)
{
    return s->n_ops == 0 && s->n_after <= 0 && s->tp.shares == NULL && s->cp.n_dims == 0 &&
           s->shares == NULL && s->n_moe == 0 && s->n_degrees == 0 && s->n_recompute_per == 0 &&
           s->n_offload == 0 && s->mesh.n == 0 && s->place.n == 0 && s->fuse.n == 0 &&
           s->n_shard == 0;
}

/** The stage without what is_same_stage compares by content. */
static void blank(const struct hv_stage *s, struct hv_stage *out)
{
    memcpy(out, s, sizeof *out);
    out->devices = NULL;
    out->ranges = NULL;
    out->module = NULL;
}

/** True where two stages differ in their devices only. Bytes are compared: padding may make equal
 * stages differ, and they are then lowered one by one. */
static bool is_same_stage(const struct hv_stage *a, const struct hv_stage *b)
{
    struct hv_stage x, y;
    if (!has_no_lists(a) || !has_no_lists(b) || (a->module == NULL) != (b->module == NULL)) {
        return false;
    }
    blank(a, &x);
    blank(b, &y);
    return memcmp(&x, &y, sizeof x) == 0 &&
           memcmp(a->ranges, b->ranges, a->n_ranges * sizeof *a->ranges) == 0 &&
           (a->module == NULL || strcmp(a->module, b->module) == 0);
}

static bool is_alike(const struct hv__pipeline *a, const struct hv__pipeline *b)
{
    const struct hv_replica *r = a->replica, *s = b->replica;
    return a->placement == b->placement && r->micro_batch == s->micro_batch &&
           r->micro_batches == s->micro_batches && is_same_stage(&r->stages[0], &s->stages[0]);
}

void hv__take_again(const struct hv__lowered *l, struct hv__pipeline *pl, struct hv__pipeline *from)
{
    const struct hv__pipeline own = *pl;
    from->shared = true;
    *pl = *from;
    pl->i_replica = own.i_replica;
    pl->replica = own.replica;
    pl->first_of_entry = own.first_of_entry;
    pl->copies = own.copies;
    pl->like = from;
    pl->ranks = hv_arena_copy(l->arena, from->ranks, from->n_ranks, sizeof *from->ranks);
    pl->ranks[0].devices = own.replica->stages[0].devices;
}

bool hv__take_like(const struct hv__lowered *l, struct hv__recent *recent, struct hv__pipeline *pl)
{
    size_t known = recent->n < HV_COUNT(recent->items) ? recent->n : HV_COUNT(recent->items);
    bool drawn = l->lengths != NULL && l->lengths->quantiles != NULL; /* lengths of its own */
    for (size_t i = 0; may_share(pl) && !drawn && i < known; i++) {
        if (is_alike(recent->items[i], pl)) {
            hv__take_again(l, pl, recent->items[i]);
            return true;
        }
    }
    return false;
}

void hv__note_lowered(struct hv__recent *recent, struct hv__pipeline *pl)
{
    if (may_share(pl)) {
        recent->items[recent->n++ % HV_COUNT(recent->items)] = pl;
    }
}
