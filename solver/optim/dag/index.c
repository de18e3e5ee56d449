/* Operator graphs by index, and the value of a placement: the load of the busiest device. */
#include "solver/base/units.h"
#include "solver/optim/dag/dag_int.h"

#include <math.h>
#include <stdint.h>

void hv__dag_index(const struct hv_dag *g, struct hv_arena *a, struct hv__dag_index *x)
{
    size_t n = g->n_nodes, d = g->n_classes;
    x->g = g;
    x->out_at = hv_arena_new(a, size_t, n + 2);
    x->in_at = hv_arena_new(a, size_t, n + 2);
    x->out = hv_arena_new(a, size_t, g->n_edges);
    x->in = hv_arena_new(a, size_t, g->n_edges);
    x->cost = hv_arena_new(a, double, n);
    x->member_at = hv_arena_new(a, size_t, d + 2);
    x->member = hv_arena_new(a, size_t, n);
    for (size_t e = 0; e < g->n_edges; e++) {
        x->out_at[g->edges[e].from + 2]++;
        x->in_at[g->edges[e].to + 2]++;
        x->cost[g->edges[e].from] = fmax(x->cost[g->edges[e].from], g->edges[e].cost);
    }
    for (size_t v = 0; v < n; v++) {
        x->out_at[v + 2] += x->out_at[v + 1];
        x->in_at[v + 2] += x->in_at[v + 1];
        x->member_at[g->nodes[v].color + 2]++;
    }
    for (size_t c = 0; c < d; c++) {
        x->member_at[c + 2] += x->member_at[c + 1];
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        x->out[x->out_at[g->edges[e].from + 1]++] = g->edges[e].to;
        x->in[x->in_at[g->edges[e].to + 1]++] = g->edges[e].from;
    }
    for (size_t v = 0; v < n; v++) {
        x->member[x->member_at[g->nodes[v].color + 1]++] = v;
    }
}

/* Loads from compute alone; false where a class is split, a kind is wrong or memory is exceeded. */
bool hv__dag_nodes_fit(const struct hv_dag *g, const size_t *device, double *load, double *bytes,
                       size_t *class_device)
{
    size_t n_devices = g->n_accelerators + g->n_cpus;
    for (size_t c = 0; c < g->n_classes; c++) {
        class_device[c] = SIZE_MAX;
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        const struct hv_dag_node *x = &g->nodes[v];
        bool accel = device[v] < g->n_accelerators;
        if (device[v] >= n_devices || (accel && x->cpu_only)) {
            return false;
        }
        if (class_device[x->color] != SIZE_MAX && class_device[x->color] != device[v]) {
            return false;
        }
        class_device[x->color] = device[v];
        load[device[v]] += accel ? x->accel : x->cpu;
        bytes[device[v]] += accel ? x->bytes : 0;
    }
    for (size_t d = 0; d < n_devices; d++) {
        if (bytes[d] > g->memory * (1 + 1e-12)) {
            return false;
        }
    }
    return true;
}

double hv_dag_judge(const struct hv_dag *g, const size_t *device, double *load)
{
    struct hv_arena a = {0};
    struct hv__dag_index x;
    size_t n_devices = g->n_accelerators + g->n_cpus;
    double worst = 0;
    for (size_t d = 0; d < n_devices; d++) {
        load[d] = 0;
    }
    bool ok = hv__dag_nodes_fit(g, device, load, hv_arena_new(&a, double, n_devices),
                                hv_arena_new(&a, size_t, g->n_classes));
    size_t *seen = hv_arena_new(&a, size_t, n_devices);
    hv__dag_index(g, &a, &x);
    for (size_t v = 0; ok && v < g->n_nodes; v++) {
        for (size_t e = x.out_at[v]; e < x.out_at[v + 1]; e++) {
            size_t at = device[v], to = device[x.out[e]];
            if (to == at || seen[to] == v + 1) {
                continue;
            }
            if (seen[at] != v + 1) { /* each output is sent once */
                load[at] += at < g->n_accelerators ? x.cost[v] : 0;
            }
            load[to] += to < g->n_accelerators ? x.cost[v] : 0;
            seen[at] = seen[to] = v + 1;
        }
    }
    for (size_t d = 0; d < n_devices; d++) {
        worst = fmax(worst, load[d]);
    }
    hv_arena_free(&a);
    return ok ? worst : HUGE_VAL;
}
