/*
 * The effect of a lever on the cluster and the job of a trial, as key paths and values, so that
 * accepting makes the same edit. Not for plans (turn_plan.c).
 */
#include "ui/lever/lever_int.h"

#include "solver/base/units.h"
#include <math.h>
#include <string.h>

static enum hv_status HV_PRINTF(3, 4)
    set_at(struct hv__trial *t, json_t *value, const char *fmt, ...)
{
    struct hv_str path = {0};
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(&path, fmt, ap);
    va_end(ap);
    enum hv_status st = hv__trial_set(t, hv_str_cstr(&path), value);
    hv_str_free(&path);
    return st;
}

static json_t *number(double x)
{
    return hv_json_num(x);
}

/* Sets all peaks of the kind `as` to those of `k` multiplied by `by`. */
static enum hv_status set_peaks(struct hv__trial *t, const struct hv_device_kind *k, const char *as,
                                double by)
{
    json_t *flops = json_object();
    for (int i = 0; i < HV_PRECISION_N; i++) {
        if (hv_known(k->flops_per_s[i])) {
            json_object_set_new(flops, hv_precision_name((enum hv_precision)i),
                                number(k->flops_per_s[i] * by / HV_TFLOPS));
        }
    }
    enum hv_status st = set_at(t, flops, "cluster.devices[\"%s\"].dense_TFLOPS", as);
    if (st == HV_OK && hv_known(k->matmul_flops_per_s)) {
        st = set_at(t, number(k->matmul_flops_per_s * by / HV_TFLOPS),
                    "cluster.devices[\"%s\"].matmul_TFLOPS", as);
    }
    return st;
}

/* A kind like `k` that computes and reads memory `by` times as slowly; its name goes to `name`. */
static enum hv_status make_slow_kind(struct hv__trial *t, const struct hv_device_kind *k, double by,
                                     struct hv_str *name)
{
    hv_str_addf(name, "%s, %.4g x slower", k->name, by);
    enum hv_status st =
        set_at(t, json_string(k->name), "cluster.devices[\"%s\"].base", hv_str_cstr(name));
    if (st == HV_OK) {
        st = set_peaks(t, k, hv_str_cstr(name), 1 / by);
    }
    if (st == HV_OK && hv_known(k->memory_bytes_per_s)) {
        st = set_at(t, number(k->memory_bytes_per_s / by / HV_GBPS),
                    "cluster.devices[\"%s\"].bandwidth_GBps", hv_str_cstr(name));
    }
    return st;
}

static enum hv_status slow_group(struct hv__trial *t, size_t group, double by)
{
    const struct hv_node_group *g = &hv_session_cluster(t->s)->cluster->groups[group];
    const json_t *node = json_array_get(json_object_get(t->tree[HV_DOC_CLUSTER], "nodes"), group);
    const json_t *list = json_object_get(node, "devices");
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < g->n_slots; i++) {
        const struct hv_device_kind *k = g->slots[i].kind;
        struct hv_str name = {0};
        if (k->cls == HV_CLASS_CPU) {
            continue;
        }
        st = make_slow_kind(t, k, by, &name);
        if (st == HV_OK && json_is_array(list) && json_array_size(list) == g->n_slots) {
            st = set_at(t, json_string(hv_str_cstr(&name)),
                        "cluster.nodes[%zu].devices[%zu].device", group, i);
        } else if (st == HV_OK && !json_is_array(list)) {
            st = set_at(t, json_string(hv_str_cstr(&name)), "cluster.nodes[%zu].device", group);
        }
        hv_str_free(&name);
    }
    return st;
}

static enum hv_status set_kind(struct hv__trial *t, const struct hv_lever *l, double value)
{
    const struct hv_device_kind *k = hv_session_cluster(t->s)->cluster->kinds[l->i];
    if (l->kind == HV_LEVER_FLOPS) {
        return set_peaks(t, k, k->name, value / l->base);
    }
    return set_at(t, number(value), "cluster.devices[\"%s\"].%s", k->name,
                  l->kind == HV_LEVER_MEMORY ? "memory_GiB" : "bandwidth_GBps");
}

static enum hv_status turn_cluster(struct hv__trial *t, const struct hv_lever *l, double value)
{
    switch ((int)l->kind) {
    case HV_LEVER_NODES:
        return set_at(t, json_integer((json_int_t)value), "cluster.nodes[%zu].count", l->i);
    case HV_LEVER_SLOW:
        return slow_group(t, l->i, value);
    case HV_LEVER_NIC:
        return set_at(t, number(value), "cluster.nodes[%zu].nic.bandwidth_GBps", l->i);
    case HV_LEVER_INTRA:
        return set_at(t, number(value), "cluster.nodes[%zu].intra.bandwidth_GBps", l->i);
    case HV_LEVER_NETWORK:
        return set_at(t, number(value), "cluster.network.bandwidth_GBps");
    case HV_LEVER_LINK:
        return set_at(t, number(value), "cluster.network.links[%zu].bandwidth_GBps", l->i);
    case HV_LEVER_PRICE:
        return set_at(t, number(value), "cluster.nodes[%zu].price_usd_per_hour", l->i);
    case HV_LEVER_PREEMPTED:
        return set_at(t, number(value), "cluster.nodes[%zu].preemptions_per_hour", l->i);
    default:
        return set_kind(t, l, value);
    }
}

enum hv_status hv__trial_turn(struct hv__trial *t, const struct hv_lever *l, double value)
{
    switch (l->kind) {
    case HV_LEVER_SEQUENCE:
        return set_at(t, json_integer((json_int_t)value), "job.sequence");
    case HV_LEVER_BATCH:
    case HV_LEVER_MICRO:
    case HV_LEVER_SCHEDULE:
    case HV_LEVER_CHUNKS:
    case HV_LEVER_RECOMPUTE:
    case HV_LEVER_ZERO:
    case HV_LEVER_TP:
    case HV_LEVER_LAYERS:
    case HV_LEVER_FAILED:
        return hv__trial_turn_plan(t, l, value);
    case HV_LEVER_NODES:
    case HV_LEVER_SLOW:
    case HV_LEVER_NIC:
    case HV_LEVER_INTRA:
    case HV_LEVER_NETWORK:
    case HV_LEVER_LINK:
    case HV_LEVER_FLOPS:
    case HV_LEVER_HBM:
    case HV_LEVER_MEMORY:
    case HV_LEVER_PRICE:
    case HV_LEVER_PREEMPTED:
        return turn_cluster(t, l, value);
    case HV_LEVER_INTERVAL:
        return set_at(t, value > 0 ? number(hv__lever_intervals_s[(size_t)value]) : json_null(),
                      "job.failures.checkpoint_interval_s");
    case HV_LEVER_RESTART:
        return set_at(t, number(value), "job.failures.%s", l->j == 0 ? "restart_s" : "regroup_s");
    case HV_LEVER_N:
        break;
    }
    return HV_EINTERNAL;
}
