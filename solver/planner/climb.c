/* One step of a climb: a changed plan is evaluated and kept where it is better. */
#include "solver/planner/improve_int.h"

bool hv__attempt(struct hv__climb *c, struct hv__sketch *next, bool refit)
{
    if (hv__is_over(c->s)) {
        return false;
    }
    const struct hv__limits most = {c->value, c->value};
    double value = refit ? hv__refit(c->s, next, most) : hv__judge_sketch(c->s, next, c->value);
    if (!(value < c->value * (1 - 1e-9))) {
        return false;
    }
    c->k = *next;
    c->value = value;
    c->moved = true;
    return true;
}

int hv__most_devices(const struct hv__climb *c, const struct hv__stage_run *run)
{
    return hv__run_devices(run) + hv__spare_devices(c->s, &c->k, run->pool);
}

int hv__whole_nodes(const struct hv__climb *c, const struct hv__stage_run *run)
{
    int node = c->s->pools[run->pool].node_devices, most = hv__most_devices(c, run);
    int n = (hv__run_devices(run) + node - 1) / node * node;
    return n < most ? n : most;
}

bool hv__set_degrees(const struct hv__climb *c, struct hv__replica_sketch *r,
                     struct hv__stage_run *run, int n)
{
    const struct hv__pool *p = &c->s->pools[run->pool];
    int width = run->n_stages * run->tp * run->cp;
    if (run->tp < 1 || run->cp < 1 || run->n_stages < 1 || run->tp > p->per_node || width > n) {
        return false;
    }
    if (run->second_dp > 0) {
        int most = r->micro_batch - run->second_dp;
        run->dp = n / width < most ? n / width : most;
        return run->dp > 0 && hv__share_micro_batch(c->s, r, run);
    }
    bool even = run->dp < 1 || r->micro_batch % run->dp == 0; /* a new run has no degrees yet */
    run->dp = even ? hv__even_ranks(r->micro_batch, n / width)
                   : hv__uneven_ranks(c->s, r->micro_batch, n / width);
    while (run->ep > 1 && run->dp % run->ep != 0) {
        run->ep /= 2;
    }
    return true;
}
