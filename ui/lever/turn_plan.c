/*
 * The effect of a lever on the plan of a trial. The tree is canonical: every member is where
 * plan_write puts it.
 */
#include "ui/lever/lever_int.h"

#include "solver/base/units.h"
#include "solver/io/own/plan/write.h"
#include <math.h>
#include <stdlib.h>

/* Makes the plan an unshared tree that may be changed in place, without its claim, which no longer
 * applies. */
static void own_plan(struct hv__trial *t)
{
    if (t->plan_changed) {
        return;
    }
    json_t *tree = hv_plan_to_json(t->base, NULL, NULL, NULL);
    json_object_del(tree, "claimed");
    json_decref(t->plan);
    t->plan = tree;
    t->plan_changed = true;
}

static json_t *replica_at(struct hv__trial *t, size_t i)
{
    return json_array_get(json_object_get(t->plan, "replicas"), i);
}

static json_t *stage_at(struct hv__trial *t, size_t i, size_t k)
{
    return json_array_get(json_object_get(replica_at(t, i), "stages"), k);
}

/* The same member in every stage. */
static void set_stages(struct hv__trial *t, const char *key, json_t *value)
{
    for (size_t i = 0; i < t->base->n_replicas; i++) {
        for (size_t k = 0; k < t->base->replicas[i].n_stages; k++) {
            json_object_set(stage_at(t, i, k), key, value);
        }
    }
    json_decref(value);
}

static void set_zero_of(json_t *at, int stage)
{
    json_t *zero = json_object_get(at, "zero");
    if (json_is_object(zero)) {
        json_object_set_new(zero, "stage", json_integer(stage));
    } else {
        json_object_set_new(at, "zero", json_integer(stage));
    }
}

/* The stage of ZeRO alone, of all layers; the other members of a written object stay. */
static void set_zero(struct hv__trial *t, int stage)
{
    for (size_t i = 0; i < t->base->n_replicas; i++) {
        for (size_t k = 0; k < t->base->replicas[i].n_stages; k++) {
            json_t *at = stage_at(t, i, k), *entries = json_object_get(at, "degrees");
            set_zero_of(at, stage);
            for (size_t e = 0; e < json_array_size(entries); e++) {
                set_zero_of(json_array_get(entries, e), stage);
            }
        }
    }
}

static int64_t micro_batches(struct hv__trial *t, size_t i)
{
    return (int64_t)json_integer_value(json_object_get(replica_at(t, i), "micro_batches"));
}

/* Sequences of a micro-batch of replica entry i, as the tree has it now. */
static int micro_size(struct hv__trial *t, size_t i)
{
    const json_t *own = json_object_get(replica_at(t, i), "micro_batch");
    own = own != NULL ? own : json_object_get(t->plan, "micro_batch");
    return own != NULL ? (int)json_integer_value(own) : 1;
}

static void scale_micro_batches(struct hv__trial *t, double by)
{
    for (size_t i = 0; i < t->base->n_replicas; i++) {
        json_object_set_new(replica_at(t, i), "micro_batches",
                            json_integer((json_int_t)((double)micro_batches(t, i) * by + 0.5)));
    }
}

static void set_micro_batch(struct hv__trial *t, double value, double base)
{
    json_object_set_new(t->plan, "micro_batch", json_integer((json_int_t)value));
    for (size_t i = 0; i < t->base->n_replicas; i++) {
        json_object_del(replica_at(t, i), "micro_batch");
        for (size_t k = 0; k < t->base->replicas[i].n_stages; k++) {
            json_object_del(stage_at(t, i, k), "micro_batch");
        }
    }
    scale_micro_batches(t, base / value);
}

/* Divides the ranks of a stage anew: tp of them share a layer, the others are data parallel. */
static void set_degrees(struct hv__trial *t, size_t i, size_t k, int tp)
{
    const struct hv_stage *s = &t->base->replicas[i].stages[k];
    json_t *at = stage_at(t, i, k);
    json_object_set_new(at, "tp", json_integer(tp));
    json_object_set_new(at, "dp", json_integer((json_int_t)s->tp.degree * s->dp / tp));
    if (tp == 1) {
        json_object_del(at, "sequence_parallel");
    }
}

static void set_tp(struct hv__trial *t, const struct hv_lever *l, int tp)
{
    for (size_t i = 0; i < t->base->n_replicas; i++) {
        for (size_t k = 0; k < t->base->replicas[i].n_stages; k++) {
            if (l->j == HV_LEVER_ALL || (l->i == i && l->j == k)) {
                set_degrees(t, i, k, tp);
            }
        }
    }
}

static void set_border(struct hv__trial *t, size_t i, size_t j, int64_t block)
{
    json_t *a = json_object_get(stage_at(t, i, j - 1), "layers");
    json_t *b = json_object_get(stage_at(t, i, j), "layers");
    json_array_set_new(a, 1, json_integer((json_int_t)block));
    json_array_set_new(b, 0, json_integer((json_int_t)block));
}

/* ---- a node fails ---------------------------------------------------------------------------- */

static bool is_on(const struct hv_plan *p, const uint32_t *devices, size_t n, uint32_t node)
{
    for (size_t i = 0; i < n; i++) {
        if (hv_cluster_node_of(p->cluster, devices[i]) == node) {
            return true;
        }
    }
    return false;
}

static void set_devices(struct hv__trial *t, json_t *stage, const uint32_t *ids, size_t n)
{
    struct hv_str text = {0};
    hv_address_format(t->base->cluster, ids, n, ", ", &text);
    json_object_set_new(stage, "devices", json_string(hv_str_cstr(&text)));
    hv_str_free(&text);
}

/* Removes the pipelines that use the node; returns how many remain. */
static int lose_copies(struct hv__trial *t, size_t i, uint32_t node)
{
    const struct hv_replica *r = &t->base->replicas[i];
    bool *lost = hv_xcalloc((size_t)r->count, sizeof *lost);
    int left = 0;
    for (int c = 0; c < r->count; c++) {
        for (size_t k = 0; k < r->n_stages; k++) {
            size_t ranks = hv_stage_ranks(r, &r->stages[k]);
            lost[c] |= is_on(t->base, r->stages[k].devices + (size_t)c * ranks, ranks, node);
        }
        left += !lost[c];
    }
    for (size_t k = 0; left > 0 && left < r->count && k < r->n_stages; k++) {
        size_t ranks = hv_stage_ranks(r, &r->stages[k]), n = 0;
        uint32_t *kept = hv_xcalloc(r->stages[k].n_devices, sizeof *kept);
        for (int c = 0; c < r->count; c++) {
            for (size_t d = 0; !lost[c] && d < ranks; d++) {
                kept[n++] = r->stages[k].devices[(size_t)c * ranks + d];
            }
        }
        set_devices(t, stage_at(t, i, k), kept, n);
        free(kept);
    }
    if (left > 0) {
        json_object_set_new(replica_at(t, i), "count", json_integer(left));
    }
    free(lost);
    return left;
}

/* Sequences of a micro-batch over fewer ranks, the first ones one more where they do not divide. */
static void set_ranks_left(json_t *stage, int left, int size, enum hv_deal deal)
{
    json_object_set_new(stage, "dp", json_integer(left));
    json_object_del(stage, "shares");
    if (deal != HV_DEAL_SPLIT || size % left == 0) {
        return;
    }
    json_t *shares = json_array();
    for (int i = 0; i < left; i++) {
        json_array_append_new(shares, json_integer(size / left + (i < size % left)));
    }
    json_object_set_new(stage, "shares", shares);
}

/* Keeps the data-parallel ranks of the only copy that are not on the node; false when a stage has
 * none left. */
static bool lose_ranks(struct hv__trial *t, size_t i, uint32_t node)
{
    const struct hv_replica *r = &t->base->replicas[i];
    for (size_t k = 0; k < r->n_stages; k++) {
        const struct hv_stage *s = &r->stages[k];
        size_t dp = s->dp > 1 ? (size_t)s->dp : 1, each = s->n_devices / dp, n = 0;
        if (!is_on(t->base, s->devices, s->n_devices, node)) {
            continue;
        }
        if (s->n_degrees > 0) {
            return false; /* the ranks of one layer are not those of another */
        }
        uint32_t *kept = hv_xcalloc(s->n_devices, sizeof *kept);
        for (size_t d = 0; d < dp; d++) {
            for (size_t x = 0; !is_on(t->base, s->devices + d * each, each, node) && x < each;
                 x++) {
                kept[n++] = s->devices[d * each + x];
            }
        }
        int left = (int)(n / each), size = micro_size(t, i);
        bool enough = left > 0 && (s->deal != HV_DEAL_SPLIT || size >= left);
        if (enough) {
            set_devices(t, stage_at(t, i, k), kept, n);
            set_ranks_left(stage_at(t, i, k), left, size, s->deal);
        }
        free(kept);
        if (!enough) {
            return false;
        }
    }
    return true;
}

/* Sequences of one copy of replica entry i. */
static double sequences(struct hv__trial *t, size_t i)
{
    const struct hv_replica *r = &t->base->replicas[i];
    return r->list != NULL ? (double)hv_replica_sequences(t->base, r)
                           : (double)micro_batches(t, i) * micro_size(t, i);
}

/* Distributes the batch of the removed replicas over the others, in whole micro-batches. */
static enum hv_status share_batch(struct hv__trial *t, const int *copies)
{
    double all = 0, left = 0, sum = 0;
    for (size_t i = 0; i < t->base->n_replicas; i++) {
        all += sequences(t, i) * t->base->replicas[i].count;
        left += sequences(t, i) * copies[i];
    }
    for (size_t i = 0; i < t->base->n_replicas; i++) {
        double n = (double)micro_batches(t, i) * all / left;
        if (t->base->replicas[i].list == NULL && left < all && copies[i] > 0) {
            json_object_set_new(replica_at(t, i), "micro_batches",
                                json_integer((json_int_t)ceil(n - 1e-6)));
        }
        sum += sequences(t, i) * copies[i];
    }
    for (size_t i = t->base->n_replicas; i-- > 0;) {
        if (copies[i] == 0) {
            json_array_remove(json_object_get(t->plan, "replicas"), i);
        }
    }
    return hv__trial_set(t, "job.global_batch", json_integer((json_int_t)sum));
}

/* Removes node number `node` from the plan. */
static enum hv_status lose_node(struct hv__trial *t, uint32_t node)
{
    const struct hv_plan *p = t->base;
    int *copies = hv_xcalloc(p->n_replicas + 1, sizeof *copies);
    size_t n_left = 0;
    own_plan(t);
    for (size_t i = 0; i < p->n_replicas; i++) {
        copies[i] = p->replicas[i].count > 1 ? lose_copies(t, i, node) : lose_ranks(t, i, node);
        n_left += copies[i] > 0;
    }
    const struct hv_node_group *g = hv_cluster_group_of_node(p->cluster, node);
    enum hv_status st = n_left > 0 ? share_batch(t, copies)
                                   : hv_err_set(t->err, HV_ENO,
                                                "the plan cannot lose %s[%u]: every replica has a "
                                                "stage with all its ranks on this node",
                                                g->name, node - g->first_node);
    free(copies);
    return st;
}

/* ---- the levers ------------------------------------------------------------------------------ */

enum hv_status hv__trial_turn_plan(struct hv__trial *t, const struct hv_lever *l, double value)
{
    static const char *const recompute[] = {"none", "selective", "full"};
    own_plan(t);
    switch ((int)l->kind) {
    case HV_LEVER_BATCH:
        scale_micro_batches(t, value / l->base);
        return hv__trial_set(t, "job.global_batch", json_integer((json_int_t)value));
    case HV_LEVER_MICRO:
        set_micro_batch(t, value, l->base);
        return HV_OK;
    case HV_LEVER_SCHEDULE:
        return hv__trial_set_schedule(t, l->words[hv_lever_at(l, value)]);
    case HV_LEVER_CHUNKS:
        return hv__trial_set_chunks(t, (int)value);
    case HV_LEVER_RECOMPUTE:
        set_stages(t, "recompute", json_string(recompute[hv_lever_at(l, value) % 3]));
        return HV_OK;
    case HV_LEVER_ZERO:
        set_zero(t, (int)hv_lever_at(l, value) % 4);
        return HV_OK;
    case HV_LEVER_TP:
        set_tp(t, l, (int)value);
        return HV_OK;
    case HV_LEVER_LAYERS:
        set_border(t, l->i, l->j, (int64_t)value);
        return HV_OK;
    default:
        break;
    }
    struct hv_arena a = {0};
    size_t n = 0, at = (size_t)value;
    const uint32_t *nodes = hv__plan_nodes(t->base, &a, &n);
    enum hv_status st = at >= 1 && at <= n ? lose_node(t, nodes[at - 1]) : HV_OK;
    hv_arena_free(&a);
    return st;
}
