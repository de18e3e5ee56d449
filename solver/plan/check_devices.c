/*
 * Rule B: a device is in one stage (unless the schedule orders several on it), present, and able to
 * compute the job's precision; collectives stay inside a fabric.
 */
#include "solver/base/str.h"
#include "solver/base/units.h"
#include "solver/plan/check_inside.h"
#include <stdint.h>
#include <string.h>

/* Which replica, stage and copy a device was first seen in; 0 = none, else the running stage number
 * + 1. */
struct seen {
    uint32_t replica1, stage1, copy;
};

static const char *address_of(const struct hv_check *c, uint32_t id, struct hv_str *text)
{
    hv_str_clear(text);
    hv_address_format(c->p->cluster, &id, 1, ",", text);
    return hv_str_cstr(text);
}

static const char *fabric_of(const struct hv_check *c, uint32_t id)
{
    const struct hv_device_kind *k = hv_cluster_device(c->p->cluster, id).kind;
    if (k->fabric != NULL) {
        return k->fabric;
    }
    return k->vendor != NULL ? k->vendor : "";
}

/* Devices of the stage that are taken already: one finding with their number and the first of them.
 */
static void check_overlap(const struct hv_check *c, const struct hv_check_stage *at,
                          struct seen *seen)
{
    bool sharing = hv_plan_schedule_shares_devices(c->p->schedule.name);
    size_t taken = 0, each = hv_stage_ranks(at->r, at->s);
    uint32_t example = 0;
    struct seen first = {0};
    for (size_t i = 0; i < at->s->n_devices; i++) {
        struct seen *was = &seen[at->s->devices[i]];
        uint32_t copy = (uint32_t)(each > 0 ? i / each : 0); /* no order goes over two copies */
        bool other_stage = was->stage1 != at->stage + 1;
        bool same_copy = was->replica1 == at->replica + 1 && was->copy == copy;
        if (was->replica1 != 0 && !(sharing && same_copy && other_stage) && taken++ == 0) {
            example = at->s->devices[i];
            first = *was;
        }
        *was = (struct seen){(uint32_t)at->replica + 1, (uint32_t)at->stage + 1, copy};
    }
    if (taken == 0) {
        return;
    }
    struct hv_str text = {0};
    hv_check_stage_add(c, at, "devices", HV_V_DEVICES_OVERLAP, (double)taken,
                       "%zu of its devices are in use already: %s is in replicas[%u].stages[%u]",
                       taken, address_of(c, example, &text), first.replica1 - 1, first.stage1 - 1);
    hv_str_free(&text);
}

/* Offloads to devices of the stage itself, which free no memory; `seen` knows the stage already. */
static void check_offload(const struct hv_check *c, const struct hv_check_stage *at,
                          const struct seen *seen)
{
    for (size_t i = 0; i < at->s->n_offload; i++) {
        const struct hv_offload *o = &at->s->offload[i];
        for (size_t k = 0; !o->to_host && k < o->n_devices; k++) {
            const struct seen *was = &seen[o->devices[k]];
            if (was->replica1 == at->replica + 1 && was->stage1 == at->stage + 1) {
                struct hv_str text = {0};
                hv_check_stage_add(
                    c, at, "offload", HV_V_DEVICES_OVERLAP, 1,
                    "%s belongs to the stage itself, so that moving memory there frees "
                    "none; name devices of other stages, spare ones, or the host",
                    address_of(c, o->devices[k], &text));
                hv_str_free(&text);
                return;
            }
        }
    }
}

static void check_present_and_able(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_cluster *cl = c->p->cluster;
    size_t draining = 0, unable = 0;
    uint32_t drain_example = 0, unable_example = 0;
    for (size_t i = 0; i < at->s->n_devices; i++) {
        struct hv_device_ref d = hv_cluster_device(cl, at->s->devices[i]);
        if (cl->groups[d.group].state == HV_NODE_DRAIN && draining++ == 0) {
            drain_example = at->s->devices[i];
        }
        if (!hv_device_has(d.kind, c->j->precision) && unable++ == 0) {
            unable_example = at->s->devices[i];
        }
    }
    struct hv_str text = {0};
    if (draining > 0) {
        hv_check_stage_add(c, at, "devices", HV_V_UNKNOWN_DEVICE, (double)draining,
                           "%zu of its devices are on nodes in state drain, such as %s", draining,
                           address_of(c, drain_example, &text));
    }
    if (unable > 0) {
        hv_check_stage_add(c, at, "devices", HV_V_PRECISION, (double)unable,
                           "%zu of its devices cannot compute in %s, such as %s (%s)", unable,
                           hv_precision_name(c->j->precision), address_of(c, unable_example, &text),
                           hv_cluster_device(cl, unable_example).kind->name);
    }
    hv_str_free(&text);
}

/* Group of ranks first, first + stride, … of one copy: true where all share a fabric. */
static bool one_fabric(const struct hv_check *c, const uint32_t *ids, size_t n, size_t stride)
{
    const char *fabric = fabric_of(c, ids[0]);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(fabric_of(c, ids[i * stride]), fabric) != 0) {
            return false;
        }
    }
    return true;
}

/* One kind of group of a copy: blocks of n × stride ranks, in each `stride` groups. */
static bool groups_fit(const struct hv_check *c, const uint32_t *copy, size_t ranks, size_t n,
                       size_t stride)
{
    for (size_t at = 0; n > 1 && at + n * stride <= ranks; at += n * stride) {
        for (size_t k = 0; k < stride; k++) {
            if (!one_fabric(c, copy + at + k, n, stride)) {
                return false;
            }
        }
    }
    return true;
}

static void check_stage_fabric(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_stage *s = at->s;
    size_t ranks = hv_stage_ranks(at->r, s);
    size_t tp = (size_t)s->tp.degree, cp = (size_t)s->cp.degree, dp = (size_t)s->dp;
    bool mesh = s->mesh.n > 0;
    struct {
        const char *key;
        size_t n, stride;
    } kinds[] = {{mesh ? "mesh" : "tp", mesh ? ranks : tp, 1}, {"cp", cp, tp}, {"dp", dp, tp * cp}};
    if (s->place.n > 0 || ranks == 0 || one_fabric(c, s->devices, s->n_devices, 1)) {
        return;
    }
    for (size_t k = 0; k < (mesh ? 1 : HV_COUNT(kinds)); k++) {
        bool fit = true;
        for (size_t copy = 0; copy < (size_t)at->r->count && fit; copy++) {
            fit = groups_fit(c, s->devices + copy * ranks, ranks, kinds[k].n, kinds[k].stride);
        }
        if (!fit && (k < 2 || c->p->mode == HV_MODE_TRAIN)) {
            hv_check_stage_add(c, at, kinds[k].key, HV_V_FABRIC, HV_UNKNOWN,
                               "a %s group of %zu devices has more than one fabric, such as %s and "
                               "%s devices; collectives need one",
                               kinds[k].key, kinds[k].n, fabric_of(c, s->devices[0]),
                               fabric_of(c, s->devices[s->n_devices - 1]));
        }
    }
}

/*
 * Holders of one block in different copies reduce its gradients: with all-reduce they need one
 * fabric. Each half block remembers the fabric of its first holder; one finding per stage that
 * differs.
 */
static void check_reduction_fabric(const struct hv_check *c, const struct hv_check_stage *at,
                                   const char **fabrics, unsigned *held)
{
    const struct hv_stage *s = at->s;
    memset(held, 0, c->n_halves * sizeof *held);
    hv_check_mark(c, s, held);
    size_t ranks = hv_stage_ranks(at->r, s);
    for (size_t h = 0; h < c->n_halves; h++) {
        if (held[h] == 0) {
            continue;
        }
        if (fabrics[h] == NULL) {
            fabrics[h] = fabric_of(c, s->devices[0]);
        }
        for (size_t copy = 0; copy < (size_t)at->r->count; copy++) {
            const char *own = fabric_of(c, s->devices[copy * ranks]);
            if (strcmp(own, fabrics[h]) == 0) {
                continue;
            }
            hv_check_stage_add(
                c, at, "devices", HV_V_FABRIC, HV_UNKNOWN,
                "block %zu is reduced with all-reduce between %s and %s devices; use "
                "sync kind ps or keep its holders on one fabric",
                h / 2, fabrics[h], own);
            return;
        }
        while (h + 1 < c->n_halves && held[h + 1] > 0 &&
               (fabrics[h + 1] == NULL || strcmp(fabrics[h + 1], fabrics[h]) == 0)) {
            fabrics[h + 1] = fabrics[h];
            h++;
        }
    }
}

void hv_check_devices(const struct hv_check *c)
{
    struct hv_arena scratch = {0};
    struct seen *seen = hv_arena_new(&scratch, struct seen, c->p->cluster->n_devices);
    const char **fabrics = hv_arena_new(&scratch, const char *, c->n_halves);
    unsigned *held = hv_arena_new(&scratch, unsigned, c->n_halves);
    bool reduces = c->p->mode == HV_MODE_TRAIN && c->p->sync.kind == HV_SYNC_ALLREDUCE;
    for (size_t i = 0; i < c->p->n_replicas; i++) {
        const struct hv_replica *r = &c->p->replicas[i];
        for (size_t k = 0; k < r->n_stages; k++) {
            struct hv_check_stage at = {i, k, r, &r->stages[k]};
            check_overlap(c, &at, seen);
            check_offload(c, &at, seen);
            check_present_and_able(c, &at);
            check_stage_fabric(c, &at);
            if (reduces) {
                check_reduction_fabric(c, &at, fabrics, held);
            }
        }
    }
    hv_arena_free(&scratch);
}
