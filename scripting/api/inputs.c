/*
 * The run's inputs as plugins reach them: handles that go stale with the run, the devices that
 * plans may use, the fields of a job. The views themselves are api_input.c.
 */
#include "scripting/api/input_int.h"
#include "solver/base/units.h"
#include "solver/workload/router.h"

/** A view: the inputs belong to the run, the handle only knows when it was made. */
struct view {
    uint32_t generation;
};

struct hv__run *hv__run_of(lua_State *L, const char *fn)
{
    struct hv_host *h = hv__host(L);

    hv__check_stop(L);
    if (h->run == NULL) {
        luaL_error(L, "%s: there is no run here (inside plan, apply and claim there is)", fn);
    }
    return h->run;
}

const struct hv_inputs *hv__inputs_at(lua_State *L, const char *type)
{
    const struct view *v = luaL_checkudata(L, 1, type);
    struct hv_host *h = hv__host(L);

    hv__check_stop(L);
    if (h->run == NULL || v->generation != h->generation) {
        luaL_error(L, "this %s belongs to a run that has ended", type);
    }
    return h->run->request->inputs;
}

void hv__push_view(lua_State *L, const char *type)
{
    struct view *v = lua_newuserdatauv(L, sizeof *v, 0);
    v->generation = hv__host(L)->generation;
    luaL_setmetatable(L, type);
}

const struct hv_cluster *hv__cluster_at(lua_State *L)
{
    return hv__inputs_at(L, HV__CLUSTER)->cluster.cluster;
}

double hv__peak_of(lua_State *L, const struct hv_device_kind *k)
{
    enum hv_precision p = hv__host(L)->run->request->inputs->job.job.precision;
    return hv_device_has(k, p) ? hv_device_peak_flops_per_s(k, p) : HV_UNKNOWN;
}

bool hv__is_usable(lua_State *L, const struct hv_cluster *c, uint32_t device)
{
    const struct hv__run *r = hv__host(L)->run;
    return c->groups[hv_cluster_device(c, device).group].state == HV_NODE_OK &&
           (r->lost == NULL || !r->lost[device]);
}

void hv__push_job(lua_State *L, const struct hv_job *j)
{
    lua_newtable(L);
    hv__set_text(L, "name", j->name);
    hv__set_num(L, "global_batch", (double)j->global_batch);
    hv__set_num(L, "sequence", (double)j->sequence);
    hv__set_num(L, "output_tokens", (double)hv_job_output_tokens(j));
    hv__set_text(L, "precision", hv_precision_name(j->precision));
    hv__set_text(L, "optimizer", hv_optimizer_name(j->optimizer));
    hv__set_text(L, "minimize", hv_minimize_name(j->objective.minimize));
    hv__set_num(L, "weight_bytes", hv_job_weight_bytes(j));
    hv__set_num(L, "activation_bytes", hv_job_activation_bytes(j));
    hv__set_num(L, "grad_bytes", hv_job_grad_bytes(j));
    hv__set_num(L, "master_bytes", hv_job_master_bytes(j));
    hv__set_num(L, "optimizer_bytes", hv_job_optimizer_bytes(j));
    if (!hv_router_is_even(j->routing)) { /* else every expert has the same number of tokens */
        hv__set_text(L, "routing", hv_router_name(j->routing->kind));
    }
    lua_pushboolean(L, j->objective.allow_stale);
    lua_setfield(L, -2, "allow_stale");
    lua_pushboolean(L, j->objective.allow_drop);
    lua_setfield(L, -2, "allow_drop");
}
