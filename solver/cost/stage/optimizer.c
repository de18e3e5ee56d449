/*
 * The optimizer step of a rank: on its own device, bound by memory; on its host (Ren et al. 2021,
 * ZeRO-Offload); on other devices. Which share goes where is in offload.c.
 */
#include <math.h>

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/stage/stage_int.h"

double hv__optimizer_s(const struct hv__context *k, const struct hv_device_kind *device,
                       double parameters)
{
    const struct hv_job *j = &k->job;
    if (!(parameters > 0) || j->optimizer == HV_OPT_NONE) {
        return 0;
    }
    bool timed = k->parts && k->parts->update_s;
    double measured_s = timed ? k->parts->update_s(k, device) : HV_UNKNOWN;
    if (hv_known(measured_s)) {
        return parameters * measured_s;
    }
    /* gradients read, weights written, master copy and states read and written */
    double bytes = hv_job_grad_bytes(j) + hv_job_weight_bytes(j) +
                   2 * (hv_job_master_bytes(j) + hv_job_optimizer_bytes(j));
    struct hv_efficiency e = hv_efficiency_of(device, j->precision);
    return e.launch_s + parameters * bytes / e.bytes_per_s;
}

/* Seconds of the step of all that a node's host updates: bound by its memory. */
static double host_step_s(const struct hv__context *k, uint32_t node, double parameters)
{
    const struct hv_job *j = &k->job;
    const struct hv_cluster *c = k->cluster;
    double memory = hv_or(hv_cluster_group_of_node(c, node)->host_memory_bytes_per_s,
                          HV_HOST_MEMORY_BYTES_PER_S);
    double bytes =
        2 * hv_job_weight_bytes(j) + 2 * (hv_job_master_bytes(j) + hv_job_optimizer_bytes(j));
    return parameters * bytes / (HV_EFF_HOST_UPDATE * memory);
}

double hv__peer_optimizer_s(const struct hv__context *k, const struct hv_stage *s,
                            const struct hv_peer_update *u)
{
    double copy_s = 0, step_s = 0;
    for (size_t i = 0; i < s->n_offload; i++) {
        const struct hv_offload *o = &s->offload[i];
        double n = o->to_host ? 0 : u->parameters * hv__optimizer_part(s, i) / (double)o->n_devices;
        for (size_t d = 0; n > 0 && d < o->n_devices; d++) {
            double rate = hv_cluster_path(k->cluster, u->device, o->devices[d]).bytes_per_s;
            copy_s += o->devices[d] != u->device && rate > 0
                          ? n * hv_job_weight_bytes(&k->job) / (HV_EFF_HOST * rate)
                          : 0;
            const struct hv_device_kind *kind = hv_cluster_device(k->cluster, o->devices[d]).kind;
            step_s = fmax(step_s, hv__optimizer_s(k, kind, n));
        }
    }
    return fmax(0, copy_s - u->backward_s) + fmax(step_s, copy_s);
}

double hv__offload_optimizer_s(const struct hv__context *k, const struct hv_host_update *u)
{
    const struct hv_cluster *c = k->cluster;
    double rate = hv_cost_host_bytes_per_s(c, u->devices, u->n_devices, u->device);
    double copy_s = u->parameters * hv_job_weight_bytes(&k->job) / rate;
    uint32_t node = hv_cluster_node_of(c, u->device);
    double step_s = host_step_s(k, node, u->node_parameters);
    return k->job.optimizer == HV_OPT_NONE || !(u->parameters > 0)
               ? 0
               : fmax(0, copy_s - u->backward_s) + fmax(step_s, copy_s);
}
